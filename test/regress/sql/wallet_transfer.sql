-- wallet_transfer.sql - one transfer is posted by wallet.post_transfer, with the same outcome as in the general path (wallet.post_arrays).
-- Each case runs twice: by wallet.post between owners "s...", by wallet.post_arrays between owners "a..." with the same history.
create function k(n integer) returns uuid language sql as $$ select lpad(n::text, 32, '0')::uuid $$;
\set VERBOSITY terse
set track_functions = 'all';

-- What both paths must agree on. Owners and keys differ by their first letter and digit only. is_short: wallet.post_arrays was not called.
create table seen (n serial, path text, outcome text, is_short boolean);
create function outcome(p_path text, p_key integer, p_owner text, p_amount bigint, p_other text, p_asset text default null, p_request jsonb default null,
                        p_atomic boolean default false)
  returns void language plpgsql as $$
declare
  v_row record;
  v_arrays bigint := coalesce((select calls from pg_stat_xact_user_functions where schemaname = 'wallet' and funcname = 'post_arrays'), 0);
  v_outcome text;
  v_failed boolean := false;
begin
  begin
    if p_path = 's' then
      select * into v_row from wallet.post(array['transfer'], array[k(p_key)], array[p_path || p_owner], array[p_amount], array[p_path || p_other],
        case when p_asset is not null then array[p_asset] end, null, case when p_request is not null then array[p_request] end, p_atomic);
    else
      select * into v_row from wallet.post_arrays(array['transfer'], array[k(p_key)], array[p_path || p_owner], array[p_amount], array[p_path || p_other],
        case when p_asset is not null then array[p_asset] end, null, case when p_request is not null then array[p_request] end, p_atomic);
    end if;
    v_outcome := (to_jsonb(v_row) - '{number,at,txn_id,owner,other,sentence}'::text[])::text || ' ' || right(v_row.txn_id::text, 3) || ' '
      || coalesce(substr(v_row.owner, 2), 'null') || ' ' || coalesce(substr(v_row.other, 2), 'null')
      || coalesce(': ' || replace(v_row.sentence, '"' || p_path, '"'), '');
  exception when others then
    v_failed := true;
    v_outcome := sqlstate || ' ' || replace(sqlerrm, '"' || p_path, '"');
  end;
  insert into seen (path, outcome, is_short)
  values (p_path, v_outcome, p_path = 's' and not v_failed and v_arrays = coalesce((select calls from pg_stat_xact_user_functions
                                                                     where schemaname = 'wallet' and funcname = 'post_arrays'), 0));
end
$$;
create procedure post_twice(p_key integer, p_owner text, p_amount bigint, p_other text, p_asset text default null, p_request jsonb default null,
                      p_atomic boolean default false) language plpgsql as $$
begin
  perform outcome('s', 1000 + p_key, p_owner, p_amount, p_other, p_asset, p_request, p_atomic);
  perform outcome('a', 2000 + p_key, p_owner, p_amount, p_other, p_asset, p_request, p_atomic);
  commit;
end
$$;

select count(*) from wallet.open(array['sann', 'sbob', 'sice', 'smax', 'aann', 'abob', 'aice', 'amax']);
select count(*) from wallet.open(array['sann', 'sbob', 'aann', 'abob'], array_fill('EUR'::text, array[4]));
select count(*) from wallet.open(array['sann', 'sbob', 'aann', 'abob'], array_fill('EVT'::text, array[4]));
select count(*) from wallet.open(array['sowe', 'aowe'], p_floors => array[-50, -50]);
select wallet.emit_to('EVT', 'events');
select count(*) from wallet.post(array_fill('topup'::text, array[4]), array[k(1), k(2), k(3), k(4)], array['sann', 'aann', 'smax', 'amax'],
  array[100, 100, 9007199254740991, 9007199254740991]);
select count(*) from wallet.post(array_fill('topup'::text, array[4]), array[k(5), k(6), k(7), k(8)], array['sann', 'aann', 'sann', 'aann'],
  array[100, 100, 100, 100], p_assets => array['EUR', 'EUR', 'EVT', 'EVT']);
select count(*) from wallet.post(array['hold', 'hold'], array[k(9), k(10)], array['sann', 'aann'], array[30, 30]);
select count(*) from wallet.post(array['freeze', 'freeze'], array[k(11), k(12)], array['sice', 'aice'], null);

call post_twice(1, 'ann', 10, 'bob');
call post_twice(2, 'bob', 4, 'ann');                                             -- the payee's id is smaller, and it has a hold
call post_twice(3, 'ann', 1, 'bob', p_request => '{"metadata": {"a": 1}}');
call post_twice(4, 'ann', 1, 'bob', p_request => '{}');
call post_twice(5, 'ann', 1, 'bob', p_asset => 'EUR');
call post_twice(6, 'owe', 50, 'bob');                                            -- down to the floor
call post_twice(7, 'ann', 1, 'bob', p_atomic => true);
-- What wallet.post_transfer leaves to the general path.
call post_twice(1, 'ann', 10, 'bob');                                            -- repeated
call post_twice(1, 'ann', 11, 'bob');                                            -- another body
call post_twice(8, 'ann', 1000, 'bob');
call post_twice(8, 'ann', 1000, 'bob');                                          -- a refusal, repeated
call post_twice(9, 'ann', 62, 'bob');                                            -- available only without the hold
call post_twice(10, 'owe', 1, 'bob');
call post_twice(11, 'ice', 1, 'bob');
call post_twice(12, 'ann', 1, 'ice');
call post_twice(13, 'ann', 1, 'max');
call post_twice(14, 'ann', 1, 'zoe');
call post_twice(15, 'ann', 1, 'bob', p_asset => 'NON');
call post_twice(16, 'ann', 1, 'bob', p_asset => 'EVT');
call post_twice(17, 'ann', 1, 'ann');
call post_twice(18, 'ann', 0, 'bob');
call post_twice(19, 'ann', null, 'bob');
call post_twice(20, null, 1, 'bob');
call post_twice(21, 'ann', 1, 'bob', p_request => '[]');
call post_twice(22, 'ann', 1, 'bob', p_request => '{"floor": 1}');
call post_twice(23, 'ann', 1000, 'bob', p_atomic => true);
begin isolation level repeatable read;
select outcome('s', 1024, 'ann', 1, 'bob'), outcome('a', 2024, 'ann', 1, 'bob');
commit;

-- The outcome of each case, and whether the short path gave it.
select outcome, bool_or(is_short) as is_short, count(*) as paths from seen group by outcome, (n + 1) / 2 order by min(n);
-- The rows that were written are the same.
select count(*) as differences
from (select substr(w.owner, 2) as owner, w.asset_id, e.version, e.amount, e.balance, e.held, e.floor, e.frozen, t.kind, t.request, t.refusal, t.amount
      from wallet.entry e join wallet.wallet w on w.id = e.wallet_id join wallet.txn t on t.id = e.txn where w.owner like 's%'
      except all
      select substr(w.owner, 2), w.asset_id, e.version, e.amount, e.balance, e.held, e.floor, e.frozen, t.kind, t.request, t.refusal, t.amount
      from wallet.entry e join wallet.wallet w on w.id = e.wallet_id join wallet.txn t on t.id = e.txn where w.owner like 'a%') d;
select count(*) as entries from wallet.entry e join wallet.wallet w on w.id = e.wallet_id where w.owner like 's%';
-- @system is no party to a transfer, whichever function is called.
select * from wallet.post_transfer(k(31), '@system', 1, 'sbob', null, null, false);
select * from wallet.post_transfer(k(31), 'sann', 1, '@system', null, null, false);
select * from wallet.post_transfer(null, 'sann', 1, 'sbob', null, null, false);
select * from wallet.verify();
