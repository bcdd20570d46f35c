-- wallet_session.sql - what is sealed, verified and returned does not depend on the settings of a session or a role.
create function k(n integer) returns uuid language sql as $$ select lpad(n::text, 32, '0')::uuid $$;
create table settings (name text, value text);
insert into settings values ('bytea_output', 'escape'), ('datestyle', 'Postgres, DMY'), ('datestyle', 'German'), ('datestyle', 'SQL, MDY'), ('intervalstyle', 'iso_8601'),
  ('intervalstyle', 'sql_standard'), ('timezone', 'Asia/Kathmandu'), ('timezone', 'America/St_Johns'), ('extra_float_digits', '-15'), ('extra_float_digits', '3'),
  ('xmlbinary', 'hex'), ('lc_monetary', 'C'), ('quote_all_identifiers', 'on'), ('backslash_quote', 'on'), ('standard_conforming_strings', 'off'),
  ('array_nulls', 'off'), ('enable_indexscan', 'off'), ('search_path', 'pg_temp');
select count(*) from wallet.open(array['ann', 'bob'], p_metadata => array['{"x": 1.50, "y": "\\x00é"}', null]::jsonb[]);
select count(*) from wallet.post(array['topup', 'hold'], array[k(1), k(2)], array['ann', 'ann'], array[100, 10],
  p_requests => array['{"metadata": {"f": 0.1, "t": "2026-01-01"}}', '{"expires_in_s": 1000}']::jsonb[]);
select wallet.seal() > 0 as sealed;

-- Everything that hashes or prints, as one text.
create function results() returns text language sql as $$
  select md5(concat_ws('|', (select string_agg(v::text, ',') from wallet.verify() v), wallet.transaction(public.k(1)), wallet.transaction(public.k(2)),
    (select string_agg(jsonb_build_array(e.number, e.txn_id, e.kind, e.amount, e.metadata, pawl.micros(e.at))::text, ',') from wallet.entries('ann') e),
    (select string_agg(jsonb_build_array(s.number, s.balance, s.metadata, pawl.micros(s.at))::text, ',') from wallet.statement('ann') s),
    (select encode(string_agg(b.hash, ''), 'hex') from wallet.seal s cross join lateral wallet.block(-1, s.upto, s.sealed_at, '') b where s.id = 1)))
$$;
create table right_results as select results();
create function differs(p_name text, p_value text) returns boolean language plpgsql as $$
begin
  perform set_config(p_name, p_value, true);
  perform count(*) from wallet.open(array['cid' || p_value]);
  perform wallet.seal();
  return public.results() <> (select results from public.right_results) or exists (select from wallet.verify());
end
$$;
create procedure each() language plpgsql as $$
declare
  v_row record;
begin
  for v_row in select * from public.settings loop
    if public.differs(v_row.name, v_row.value) then
      raise warning '% = % changes what is returned', v_row.name, v_row.value;
    end if;
    commit; -- the setting ends, what was sealed under it stays
  end loop;
end
$$;
call each();
select * from wallet.verify();
-- The same by role: what is sealed under its settings is right without them, and the other way round.
create function role_has(p_words text) returns void language plpgsql as $$
begin
  execute format('alter role current_user in database %I %s', current_database(), p_words);
end
$$;
select role_has('set bytea_output = escape'), role_has('set extra_float_digits = -3');
\c -
select current_setting('bytea_output') as bytea, current_setting('extra_float_digits') as digits;
select count(*) from wallet.open(array['eve']);
select wallet.seal() > 0 as sealed, (select count(*) from wallet.verify()) as findings;
select role_has('reset all');
\c -
select current_setting('bytea_output') as bytea;
select * from wallet.verify();
