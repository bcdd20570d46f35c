-- wallet_event.sql - a command on the bus for each asset of a transaction that has events.
create function k(n integer) returns uuid language sql as $$ select lpad(n::text, 32, '0')::uuid $$;
create view events as select d.name as domain, c.payload ->> 'txn_id' = k(1)::text as first, c.payload - 'at' - 'txn_id' as payload
  from pawl.command c join pawl.domain d on d.id = c.domain_id order by c.id;
-- No wallet is in CREDIT, and there is no such asset.
select count(*) from wallet.open(array['ann', 'bob', 'ann', 'bob', 'ann'], array['EUR', 'EUR', 'USD', 'USD', 'YEN']);
select wallet.emit_to('EUR', 'money'), wallet.emit_to('USD', 'dollars');
select refusal, asset, owner, amount from wallet.post(array['multi'], array[k(1)], null, null, p_requests => array[
  '{"metadata": {"order": 7}, "legs": [{"owner": "@system", "amount": -9, "asset": "YEN"}, {"owner": "ann", "amount": 9, "asset": "YEN"},
     {"owner": "@system", "amount": -30, "asset": "USD"}, {"owner": "ann", "amount": 10, "asset": "USD"}, {"owner": "bob", "amount": 20, "asset": "USD"},
     {"owner": "@system", "amount": -5, "asset": "EUR"}, {"owner": "bob", "amount": 5, "asset": "EUR"}]}']::jsonb[]);
select refusal, asset, amount from wallet.post(array['topup', 'hold', 'void', 'refund', 'topup'], array[k(2), k(3), k(4), k(5), k(6)], array['ann', 'ann', null, null, 'ann'],
  array[7, 3, null, null, 1]::bigint[], p_assets => array['EUR', 'EUR', null, null, 'YEN'], p_refs => array[null, null, k(3), k(1), null]);
-- A capture and an expiry name their hold too: the txn_id of an expiry is random.
select refusal, amount from wallet.post(array['hold', 'capture'], array[k(7), k(8)], array['ann', null], array[4, 1], p_assets => array['EUR', null],
  p_refs => array[null, k(7)], p_requests => array['{"expires_in_s": 1}', null]::jsonb[]);
select * from wallet.verify();
update wallet.hold set expires_at = pawl.now() - interval '1 s' where status = 'OPEN' and expires_at is not null;
select wallet.expire();
table events;
