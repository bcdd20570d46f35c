-- wallet_chain.sql - verification follows held, floor, frozen and the available amount entry by entry, also where nothing is sealed.
create function k(n integer) returns uuid language sql as $$ select lpad(n::text, 32, '0')::uuid $$;
select count(*) from wallet.open(array['ann', 'bob'], p_floors => array[0, -50]::bigint[]);
select ord, refusal from wallet.post(array['topup', 'hold', 'capture', 'void', 'floor', 'spend', 'freeze', 'unfreeze', 'transfer', 'hold'],
  array[k(1), k(2), k(3), k(4), k(5), k(6), k(7), k(8), k(9), k(10)], array['ann', 'ann', null, null, 'bob', 'bob', 'ann', 'ann', 'ann', 'ann'],
  array[1000, 100, 40, null, null, 60, null, null, 10, 5]::bigint[], array[null, null, 'bob', null, null, null, null, null, 'bob', null],
  p_refs => array[null, null, k(2), k(2), null, null, null, null, null, null],
  p_requests => array[null, null, null, null, '{"floor": -100}', null, null, null, null, null]::jsonb[]);
select * from wallet.verify();
create function found(p_sql text) returns setof text language plpgsql as $$
begin
  set local session_replication_role = replica;
  execute p_sql;
  return query select v.what || ' of ' || coalesce(w.owner, '') || ': ' || v.sentence from wallet.verify() v
    left join wallet.wallet w on v.which like 'entry of wallet ' || w.id || ',%' or v.which = 'wallet ' || w.id order by 1;
  raise exception 'taken back' using errcode = 'ZZ001';
end
$$;
create function finds(p_what text, p_sql text) returns table (what text, finding text) language plpgsql as $$
declare
  v_found text[];
begin
  begin
    -- what was found outlives the exception, the change does not
    set local session_replication_role = replica;
    execute p_sql;
    v_found := array(select v.what || coalesce(' of ' || w.owner, '') || ': ' || regexp_replace(v.sentence, '[0-9]{5,}', 'N', 'g') from wallet.verify() v
      left join wallet.wallet w on v.which like 'entry of wallet ' || w.id || ',%' or v.which = 'wallet ' || w.id order by 1);
    raise exception using errcode = 'ZZ001';
  exception when sqlstate 'ZZ001' then
    null;
  end;
  return query select p_what, f from unnest(v_found) f;
end
$$;
drop function found;
-- p_key: the transaction; its entry of p_owner gets this change.
create function change(p_key integer, p_owner text, p_set text) returns text language sql as $$
  select format('update wallet.entry e set %s from wallet.txn t, wallet.wallet w where t.txn_id = %L and e.txn = t.id and w.id = e.wallet_id and w.owner = %L', p_set, k(p_key), p_owner) $$;
select * from finds('held of a transfer', change(9, 'ann', 'held = 7'));
select * from finds('held of a capture', change(3, 'ann', 'held = 100'));
select * from finds('held of what was credited', change(9, 'bob', 'held = 1'));
select * from finds('floor of a spend', change(6, 'bob', 'floor = -5000'));
select * from finds('another floor than was set', change(5, 'bob', 'floor = -101'));
select * from finds('frozen by a transfer', change(9, 'ann', 'frozen = true'));
select * from finds('not frozen by a freeze', change(7, 'ann', 'frozen = null'));
-- Nothing else is wrong: every sum and every chain adds up, but bob went below his floor, and ann moved while frozen.
select * from finds('below the floor', format('update wallet.txn set amount = amount + 500 where txn_id = %L; ', k(6))
  || change(6, 'bob', 'amount = e.amount - 500, balance = e.balance - 500') || ';' || change(9, 'bob', 'balance = e.balance - 500')
  || ';' || change(6, '@system', 'amount = e.amount + 500, balance = e.balance + 500')
  || '; update wallet.entry e set balance = e.balance + 500 from wallet.wallet w where w.id = e.wallet_id and w.owner = ''@system'' and (e.wallet_id, e.txn) in
     (select l.wallet_id, l.txn from wallet.entry l join wallet.entry s on s.wallet_id = l.wallet_id and l.version > s.version join wallet.txn t on t.id = s.txn where t.txn_id = ' || quote_literal(k(6)) || ')');
select * from finds('moved while frozen', format('update wallet.txn set kind = ''freeze'' where txn_id = %L; ', k(8)) || change(8, 'ann', 'frozen = true')
  || ';' || change(9, 'ann', 'frozen = true') || ';' || change(10, 'ann', 'frozen = true'));
select * from wallet.verify();
