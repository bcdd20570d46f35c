-- The owners of those wallets that another transaction has locked now. The others are locked for the moment of this statement.
-- $1 owners
with named as materialized (
  select w.id, w.owner
  from (select distinct o from unnest($1::text[]) o where o <> '@system') o (owner)
  cross join lateral (select w.id, w.owner from wallet.wallet w where w.owner = o.owner offset 0) w
), free as materialized (
  select w.id from wallet.wallet w where w.id = any (array(select n.id from named n)) order by w.id for no key update skip locked
)
select distinct n.owner as value from named n where not exists (select from free f where f.id = n.id)
