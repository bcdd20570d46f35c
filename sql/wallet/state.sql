-- state.sql - the present state of wallets, from their last entries.
create or replace view wallet.state as
  select w.id, e.balance, coalesce(e.held, 0) as held, coalesce(e.floor, 0) as floor, e.version,
         coalesce(e.frozen, false) as frozen, t.at as last_at
  from wallet.wallet w
  cross join lateral (select e.* from wallet.entry e where e.wallet_id = w.id order by e.version desc limit 1) e
  cross join lateral (select t.at from wallet.txn t where t.id = e.txn limit 1) t;
