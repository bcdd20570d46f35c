-- $1 hashes in hexadecimal digits. A row for each that is the hash of a live key: ord of the hash, name, scopes, left_us bigint: for
-- how long it is still good, by the database's clock; null: for ever.
select h.ord::integer as ord, k.name, k.scopes,
       case when k.expires_at is not null then greatest(k.expires_at - pawl.micros(pawl.now()), 1) end as left_us
from unnest($1::text[]) with ordinality h (hex, ord)
cross join lateral pawl.key_find(decode(h.hex, 'hex')) k
