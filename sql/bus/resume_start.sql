-- resume_start.sql - start what a program resumes on its own free handlers: the transaction that queues a command leases it, and no claim follows.
--
-- The caller offers handlers, at most one of each of its workers: [{"domain", "token", "worker", "lease_ms", "types": null or a list, "allowed": those of the
-- types of which one more may begin, null: all, "after": ten positions behind which the worker's claims begin}]. The functions that take offers keep
-- them in the setting pawl.offers until the end of the transaction, where pawl.process_resume reads them. An offer is used once.
-- A token belongs to one call and stays the same in all its tries, so a try that finds what an earlier one has committed learns what that has leased.
-- Errors: QU001 arguments out of range. 42501 the login may not work.

-- The offers as rows.
create or replace function pawl.offers_read (p_offers jsonb)
  returns table (domain text, token bigint, worker text, lease_ms integer, types text[], allowed text[], after bigint[])
  language sql stable
as $$
  select o.domain, o.token, o.worker, o.lease_ms, o.types, o.allowed, o.after
  from jsonb_to_recordset(p_offers) o (domain text, token bigint, worker text, lease_ms integer, types text[], allowed text[], after bigint[])
$$;

create or replace function pawl.offers_are_valid (p_offers jsonb)
  returns boolean
  language plpgsql stable
as $$
begin
  return jsonb_typeof(p_offers) = 'array' and jsonb_array_length(p_offers) <= 100 and not exists (
    select from pawl.offers_read(p_offers) o
    where (pawl.is_name(o.domain, 63) and o.token is not null and octet_length(o.worker) between 1 and 400 and o.lease_ms between 100 and 86400000
           and cardinality(o.after) = 10 and array_position(o.after, null) is null) is not true);
exception when data_exception or invalid_parameter_value then
  return false;
end
$$;

-- Until the end of the transaction these handlers are offered to what it resumes.
create or replace function pawl.offers_set (p_offers jsonb)
  returns void
  language plpgsql
as $$
begin
  if not pawl.offers_are_valid(p_offers) then
    raise exception 'offers must be at most 100 handlers, each with domain, token, worker, lease_ms from 100 to 86400000 and after, of ten positions'
      using errcode = 'QU001';
  end if;
  -- By its login, because this function may run as its owner.
  if not has_function_privilege(session_user, 'pawl.claim'::regproc, 'execute') then
    raise exception 'the login may not work, so it has no handlers to offer' using errcode = '42501';
  end if;
  perform set_config('pawl.offers', p_offers::text, true);
end
$$;

-- The offers that are left. Code of applications may have written the setting in its session: what is no list of offers counts as none, and so do those of a
-- login that may not work.
create or replace function pawl.offers_left ()
  returns jsonb
  language plpgsql stable
as $$
begin
  return case when has_function_privilege(session_user, 'pawl.claim'::regproc, 'execute') and pawl.offers_are_valid(current_setting('pawl.offers', true)::jsonb)
              then current_setting('pawl.offers', true)::jsonb end;
exception when data_exception then
  return null;
end
$$;

-- The first of these delayed commands, which the caller has locked and is about to queue, that may start on the handler offered, if a claim of its worker would find
-- it before all that is ready. One that has been begun since it was delayed, has an order key or is in its last attempt is left to a claim, and so is what comes
-- after it.
create or replace function pawl.resume_first (
  p_ids bigint[], p_domain_id integer, p_types text[], p_allowed text[], p_after bigint[], out id bigint, out priority smallint)
  language plpgsql
as $$
declare
  v_can_start boolean;
begin
  select d.id, d.priority, d.attempt = 0 and d.max_attempts > 1 and c.order_key is null into id, priority, v_can_start
  from unnest(p_ids) i (id)
  cross join lateral (select d.* from pawl.delayed d where d.id = i.id limit 1) d
  cross join lateral (select c.type, c.order_key from pawl.command c where c.id = i.id limit 1) c
  where d.domain_id = p_domain_id and (p_types is null or c.type = any (p_types)) and (p_allowed is null or c.type = any (p_allowed))
  order by d.priority desc, d.due, d.id
  limit 1;
  -- Positions from before a restore: what is ready may be anywhere. A domain that is paused or limited: a claim decides.
  if v_can_start is not true or pawl.allocated() < any (p_after) or exists (select from pawl.gate g where g.domain_id = p_domain_id)
     or pawl.send_waiting(p_domain_id, priority, p_types, p_after) is not null then
    id := null;
  end if;
end
$$;

-- Lease those of these delayed commands, which the caller has locked, that may start on a handler offered. Returns them.
create or replace function pawl.resume_start (p_ids bigint[])
  returns bigint[]
  language plpgsql
as $$
declare
  v_offers jsonb := pawl.offers_left();
  v_ids bigint[] := p_ids;
  v_started bigint[] := '{}';
  v_used bigint[] := '{}'; -- tokens
  v_offer record;
  v_id bigint;
  v_now timestamptz;
  v_deleted bigint;
  v_inserted bigint;
begin
  for v_offer in select o.*, pawl.domain_find(o.domain) as domain_id from pawl.offers_read(v_offers) o loop
    v_id := (select f.id from pawl.resume_first(v_ids, v_offer.domain_id, v_offer.types, v_offer.allowed, v_offer.after) f);
    continue when v_id is null;
    v_now := pawl.now();
    with resumed as (
      delete from pawl.delayed d where d.id = v_id returning d.*
    ), leased as (
      insert into pawl.lease (id, token, until, domain_id, priority, attempt, max_attempts, extras, started_at, worker, lease_ms)
      select d.id, v_offer.token, v_now + v_offer.lease_ms * interval '1 ms', d.domain_id, d.priority, 1, d.max_attempts, d.extras, v_now, v_offer.worker,
             v_offer.lease_ms
      from resumed d
      returning 1
    )
    select (select count(*) from resumed), (select count(*) from leased) into v_deleted, v_inserted;
    perform pawl.moved(v_deleted, v_inserted);
    v_started := v_started || v_id;
    v_used := v_used || v_offer.token;
    v_ids := array_remove(v_ids, v_id);
  end loop;
  if v_used <> '{}' then
    perform set_config('pawl.offers', coalesce((
      select jsonb_agg(o) from jsonb_array_elements(v_offers) o where (o ->> 'token')::bigint <> all (v_used)), '[]')::text, true);
  end if;
  return v_started;
end
$$;

-- Those of these commands that have a lease with the token of an offer, by this call or by an earlier try of it, as pawl.claim would have returned them, with what
-- their module reads for its worker; null: none has. p_offers null: none was offered.
create or replace function pawl.resume_started (p_ids bigint[], p_offers jsonb)
  returns jsonb
  language plpgsql
as $$
begin
  return (
    select jsonb_agg(jsonb_build_object(
             'id', l.id, 'token', l.token, 'command_id', c.command_id, 'type', c.type, 'payload', c.payload, 'attempt', l.attempt, 'max_attempts', l.max_attempts,
             'priority', l.priority, 'loaded', pawl.attached_loaded(n.name, l.id, l.token)))
    from (select distinct i.id from unnest(p_ids) i (id)) i
    cross join lateral (select l.* from pawl.lease l where l.id = i.id limit 1) l
    cross join lateral (select from pawl.offers_read(p_offers) o where o.token = l.token limit 1) o
    cross join lateral (select c.* from pawl.command c where c.id = i.id limit 1) c
    cross join lateral (select n.name from pawl.domain_name n where n.id = c.domain_id limit 1) n);
end
$$;
