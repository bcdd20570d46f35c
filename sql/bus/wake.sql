-- wake.sql - notify the workers of domains that have work.
-- Errors: QU001 a name is malformed.

-- Notify the workers of a domain that it has work. pawl.send does not: PostgreSQL serialises the commits of transactions that notify,
-- on the whole server. So call it after the commit, in a transaction of its own; losing it costs 2.5 s at most.
create or replace function pawl.wake (p_domain text)
  returns void
  language plpgsql
as $$
begin
  perform pawl.name_check('domain', p_domain, 63);
  perform pg_notify('pawl_work', p_domain);
end
$$;

-- The domains that a caller should wake after its commit, because this transaction queued commands there: names joined by commas, in the
-- setting pawl.wake, until the end of the transaction. What does not fit is found by polling. Who reads the setting takes 4000
-- characters of it, because any code of the transaction can write to it.
create or replace function pawl.wake_later (p_domain_ids integer[])
  returns void
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_known text := coalesce(left(current_setting('pawl.wake', true), 4000), '');
  v_names text;
begin
  select string_agg(distinct n.name, ',') into v_names
  from (select distinct i.id from unnest(p_domain_ids) i (id)) i
  cross join lateral (select n.name from pawl.domain_name n where n.id = i.id limit 1) n
  where n.name <> all (string_to_array(v_known, ','));
  if v_names is not null and length(v_known) + length(v_names) < 4000 then
    perform set_config('pawl.wake', concat_ws(',', nullif(v_known, ''), v_names), true);
  end if;
end
$$;
