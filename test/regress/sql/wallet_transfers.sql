-- wallet_transfers.sql - several transfers are posted by wallet.post_transfers, with the same outcome as in the general path
-- (wallet.post_arrays). Each case runs twice: by wallet.post between owners "s...", by wallet.post_arrays between owners "a..." with the
-- same history.
create function k(n integer) returns uuid language sql as $$ select lpad(n::text, 32, '0')::uuid $$;
\set VERBOSITY terse
set track_functions = 'all';

-- What both paths must agree on. Owners and keys differ by their first letter and digit only. is_short: wallet.post_arrays was not called.
create table seen (n serial, path text, outcome text, is_short boolean);
create function arrays_calls() returns bigint language sql as $$
  select coalesce((select calls from pg_stat_xact_user_functions where schemaname = 'wallet' and funcname = 'post_arrays'), 0)
$$;
create function outcome(p_path text, p_keys uuid[], p_owners text[], p_amounts bigint[], p_others text[], p_assets text[], p_requests jsonb[],
                        p_atomic boolean)
  returns void language plpgsql as $$
declare
  v_owners text[] := array(select p_path || o from unnest(p_owners) with ordinality u (o, n) order by n);
  v_others text[] := array(select p_path || o from unnest(p_others) with ordinality u (o, n) order by n);
  v_kinds text[] := array_fill('transfer'::text, array[cardinality(p_keys)]);
  v_calls bigint := arrays_calls();
  v_outcome text;
  v_failed boolean := false;
begin
  begin
    select string_agg((to_jsonb(p) - '{number,at,txn_id,owner,other,sentence}'::text[])::text || ' ' || right(p.txn_id::text, 3) || ' '
             || coalesce(substr(p.owner, 2), 'null') || ' ' || coalesce(substr(p.other, 2), 'null')
             || coalesce(': ' || replace(p.sentence, '"' || p_path, '"'), ''), e'\n')
    into v_outcome
    from (select p.* from wallet.post(v_kinds, p_keys, v_owners, p_amounts, v_others, p_assets, null, p_requests, p_atomic) p where p_path = 's'
          union all
          select p.* from wallet.post_arrays(v_kinds, p_keys, v_owners, p_amounts, v_others, p_assets, null, p_requests, p_atomic) p
          where p_path = 'a') p;
  exception when others then
    v_failed := true;
    v_outcome := sqlstate || ' ' || replace(sqlerrm, '"' || p_path, '"');
  end;
  insert into seen (path, outcome, is_short) values (p_path, v_outcome, p_path = 's' and not v_failed and v_calls = arrays_calls());
end
$$;
-- Keys as numbers below 1000.
create procedure post_twice(p_keys integer[], p_owners text[], p_amounts bigint[], p_others text[], p_assets text[] default null,
                            p_requests jsonb[] default null, p_atomic boolean default false) language plpgsql as $$
declare
  v_path text;
begin
  foreach v_path in array array['s', 'a'] loop
    perform outcome(v_path, array(select k(n + case v_path when 's' then 1000 else 2000 end) from unnest(p_keys) n), p_owners, p_amounts, p_others, p_assets,
      p_requests, p_atomic);
  end loop;
  commit;
end
$$;

select count(*) from wallet.open(array['sann', 'sbob', 'scat', 'sice', 'smax', 'aann', 'abob', 'acat', 'aice', 'amax']);
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

call post_twice('{1,2}', '{ann,ann}', '{10,5}', '{bob,cat}');
call post_twice('{3,4,5}', '{bob,cat,ann}', '{4,1,2}', '{ann,bob,cat}');            -- each wallet pays and is paid
call post_twice('{6,7}', '{ann,bob}', '{20,25}', '{bob,cat}');                       -- paid from what the call brings
call post_twice('{8,9,10}', '{ann,ann,ann}', '{1,1,1}', '{bob,bob,bob}', p_requests => array[null, '{"metadata": {"a": 1}}', '{}']::jsonb[]);
call post_twice('{11,12}', '{ann,bob}', '{1,1}', '{bob,ann}', p_assets => '{EUR,EUR}');
call post_twice('{13,14}', '{owe,owe}', '{20,30}', '{bob,cat}');                     -- down to the floor
call post_twice('{15,16}', '{ann,ann}', '{1,1}', '{bob,cat}', p_atomic => true);
call post_twice('{17,18}', '{ann,bob}', '{1,1}', '{bob,ann}', p_assets => '{NULL,NULL}');
-- What wallet.post_transfers leaves to the general path.
call post_twice('{1,2}', '{ann,ann}', '{10,5}', '{bob,cat}');                        -- repeated
call post_twice('{1,19}', '{ann,ann}', '{11,1}', '{bob,cat}');                       -- one key with another body
call post_twice('{20,20}', '{ann,ann}', '{1,1}', '{bob,bob}');                       -- a key twice
call post_twice('{21,22}', '{ann,ann}', '{1,1000}', '{bob,cat}');                    -- one is refused
call post_twice('{21,22}', '{ann,ann}', '{1,1000}', '{bob,cat}');
call post_twice('{23,24}', '{ann,ann}', '{1,1000}', '{bob,cat}', p_atomic => true);
call post_twice('{25,26}', '{owe,ann}', '{1,1}', '{bob,cat}');                       -- below the floor
call post_twice('{27,28}', '{ann,ice}', '{1,1}', '{ice,bob}');
call post_twice('{29,30}', '{ann,ann}', '{1,1}', '{max,bob}');
call post_twice('{31,32}', '{ann,ann}', '{1,1}', '{zoe,bob}');
call post_twice('{33,34}', '{ann,ann}', '{1,1}', '{bob,bob}', p_assets => '{NON,NON}');
call post_twice('{35,36}', '{ann,ann}', '{1,1}', '{bob,bob}', p_assets => '{EVT,EVT}');
call post_twice('{37,38}', '{ann,ann}', '{1,1}', '{bob,bob}', p_assets => '{EUR,CREDIT}');
call post_twice('{39,40}', '{ann,ann}', '{1,1}', '{ann,bob}');
call post_twice('{41,42}', '{ann,ann}', '{0,1}', '{bob,bob}');
call post_twice('{43,44}', '{ann,ann}', '{NULL,1}', '{bob,bob}');
call post_twice('{45,46}', '{NULL,ann}', '{1,1}', '{bob,bob}');
call post_twice('{47,48}', '{ann,ann}', '{1,1}', '{bob,NULL}');
call post_twice('{49,NULL}', '{ann,ann}', '{1,1}', '{bob,bob}');
call post_twice('{50,51}', '{ann,ann}', '{1,1}', '{bob,bob}', p_requests => array['[]', null]::jsonb[]);
call post_twice('{52,53}', '{ann,ann}', '{1,1}', '{bob,bob}', p_requests => array[null, '{"floor": 1}']::jsonb[]);
call post_twice('{54,55}', '{ann,ann}', '{1,1,1}', '{bob,bob}');
begin isolation level repeatable read;
select outcome(p.path, array[k(p.n), k(p.n + 1)], '{ann,ann}', '{1,1}', '{bob,cat}', null, null, false)
from (values ('s', 1056), ('a', 2056)) p (path, n);
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
select * from wallet.verify();
