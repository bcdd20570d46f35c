-- The time zone that a text names: $1 text; null: none.
select rating.timezone_find($1::text) as value
