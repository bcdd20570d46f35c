-- bulk.sql - one decision about all commands or processes that match a filter.
--
-- An operation is a row of pawl.bulk_operation. It is run in chunks, each of which is a transaction of some 100 ms: pawl.bulk_step locks the operation, reads on
-- where the chunk before has ended, decides, and records what came of it. So a process that dies loses one chunk, which is done again by the next caller;
-- and others wait for no more than a chunk. Monitors call it, and the command line while it waits. Only what was sent before the operation began is concerned.
-- What another transaction has locked is set aside, tried again when everything has been read, for c_locked, and then counted as locked.
-- The decisions are those about a single command or process, with the operator of the operation in the audit of each.
-- delete: as retention does (bus/prune.sql). Keys and the audit stay; a command of a batch that has not completed is refused.
-- Lock order: the operation, which is not waited for; attached rows, without waiting; then the rows of the bus, without waiting; what the end of a command
-- locks besides is waited for 100 ms at most.
-- Errors: QU001 an argument is out of range.

-- The members of a filter as its author names them; raises for what it must not have.
create or replace function pawl.bulk_check (p_noun text, p_action text, p_filter jsonb)
  returns void
  language plpgsql stable
as $$
declare
  v_actions constant text[] := case p_noun when 'command' then '{retry,cancel,complete,delete}'::text[]
                                           when 'process' then '{retry,cancel,compensate,complete,delete}' end;
  v_ended constant text[] := '{COMPLETED,FAILED,CANCELED,COMPENSATED}';
  v_members constant text[] := '{domain,type,status,since,until}'::text[] || case p_noun
    when 'command' then '{batch_id,command_id,correlation_id,order_key}'::text[] else '{step,text}' end;
  v_status text := p_filter ->> 'status';
  v_wrong text;
  v_tsq constant text := case p_noun when 'command' then 'IN_TSQ' else 'WAITING_FOR_TSQ' end;
begin
  if v_actions is null then
    raise exception 'noun must be command or process, got %', coalesce(p_noun, 'null') using errcode = 'QU001';
  end if;
  if (p_action = any (v_actions)) is not true then
    raise exception 'action must be %, got %', array_to_string(v_actions, ', '), coalesce(p_action, 'null') using errcode = 'QU001';
  end if;
  if (jsonb_typeof(p_filter) = 'object') is not true then
    raise exception 'filter must be an object' using errcode = 'QU001';
  end if;
  -- A member that is misspelled or null must not match everything.
  select f.name into v_wrong from jsonb_each(p_filter) f (name, value)
  where f.name <> all (v_members) or jsonb_typeof(f.value) <> 'string' order by f.name limit 1;
  if v_wrong is not null then
    raise exception 'filter.% must be a text, and one of: %', left(v_wrong, 80), array_to_string(v_members, ', ') using errcode = 'QU001';
  end if;
  if p_action in ('retry', 'complete') and v_status <> v_tsq then
    raise exception 'status must be % for %, got %', v_tsq, p_action, v_status using errcode = 'QU001';
  elsif p_action in ('cancel', 'compensate') and v_status = any (v_ended) then
    raise exception 'status must be that of commands that have not ended for %, got %', p_action, v_status using errcode = 'QU001';
  elsif p_action = 'delete' and v_status <> all (v_ended) then
    raise exception 'status must be COMPLETED, FAILED or CANCELED for delete, got %', v_status using errcode = 'QU001';
  end if;
end
$$;

-- The next of what matches, below p_below: at most p_limit of it, of p_rows rows. next: where to go on; null: there is no more.
create or replace function pawl.bulk_scan (
  p_noun text, p_action text, p_filter jsonb, p_below bigint, p_limit integer, p_rows integer, out ids bigint[], out next bigint)
  language plpgsql stable
as $$
declare
  v_domain integer := (select d.id from pawl.domain_name d where d.name = p_filter ->> 'domain' order by d.id limit 1);
  v_batch bigint := (select b.id from pawl.batch b where b.batch_id = (p_filter ->> 'batch_id')::uuid);
  v_since timestamptz := p_filter ->> 'since';
  v_until timestamptz := p_filter ->> 'until';
  v_status text := coalesce(p_filter ->> 'status', case when p_action in ('retry', 'complete') then 'IN_TSQ' when p_action = 'delete' then 'ENDED' else 'OPEN' end);
  v_range record;
  v_last bigint;
begin
  ids := '{}';
  select r.before, r.after into v_range from pawl.id_range('pawl.command', 'created_at', v_since, v_until, p_below) r;
  if p_noun = 'command' then
    if p_filter ? 'domain' and v_domain is null or p_filter ? 'batch_id' and v_batch is null then
      return;
    end if;
    select coalesce(array_agg(i.id order by i.id desc) filter (where i.hit), '{}'), max(i.id) filter (where i.is_last)
    into ids, v_last
    from pawl.command_ids(v_domain, v_status, p_filter ->> 'type', v_range.before, p_limit, p_rows,
           row(null, p_filter ->> 'correlation_id', p_filter ->> 'order_key', v_since, v_until, null)::pawl.command_filter, v_range.after, v_batch,
           (p_filter ->> 'command_id')::uuid) i;
    next := case when cardinality(ids) = p_limit then ids[p_limit] else v_last end;
    return;
  end if;
  select coalesce(array_agg(l.id order by l.id desc) filter (where
           l.id is not null and (p_action = 'delete') = (l.status in ('COMPLETED', 'FAILED', 'CANCELED', 'COMPENSATED'))
           and (v_since is null or l.created_at >= v_since)), '{}'),
         case when count(l.id) = p_limit then min(l.id) else max(l.last) filter (where l.id is null) end
  into ids, next
  from pawl.process_list(p_filter ->> 'domain', p_filter ->> 'type',
         coalesce(p_filter ->> 'status', case when p_action in ('retry', 'complete') then 'WAITING_FOR_TSQ' end), p_filter ->> 'step', p_filter ->> 'text',
         case when v_until is not null then greatest(pawl.now() - v_until, '0') end, v_range.before, p_limit, least(p_rows, 10000)) l;
  if next <= v_range.after then
    next := null;
  end if;
end
$$;

-- How many match now, counted up to p_most: then is_exact is false, and there are at least so many. Reads 20 pages at most.
create or replace function pawl.bulk_count (
  p_noun text, p_action text, p_filter jsonb, p_most integer default 10000, out count bigint, out is_exact boolean)
  language plpgsql stable security definer set search_path = pawl, pg_temp
as $$
declare
  c_pages constant integer := 20;
  v_below bigint := 9223372036854775807;
  v_scan record;
begin
  if (p_most between 1 and 1000000) is not true then
    raise exception 'most must be from 1 to 1000000, got %', coalesce(p_most::text, 'null') using errcode = 'QU001';
  end if;
  perform pawl.bulk_check(p_noun, p_action, p_filter);
  count := 0;
  for v_page in 1..c_pages loop
    select s.ids, s.next into v_scan from pawl.bulk_scan(p_noun, p_action, p_filter, v_below, 1000, 20000) s;
    count := count + cardinality(v_scan.ids);
    v_below := v_scan.next;
    exit when v_below is null or count >= p_most;
  end loop;
  is_exact := v_below is null;
end
$$;

-- Begin an operation; the same again is the same operation. differs: the member in which the first use of its id differs.
create or replace function pawl.bulk_start (
  p_operation_id uuid, p_noun text, p_action text, p_filter jsonb, p_argument jsonb default null, p_operator text default session_user,
  p_reason text default null, out operation_id uuid, out is_new boolean, out differs text)
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
#variable_conflict use_column
declare
  c_open_max constant integer := 100;
  v_id uuid := coalesce(p_operation_id, pawl.uuid7());
  v_operator text := pawl.operator_name(p_operator);
  v_row pawl.bulk_operation;
  v_upto bigint;
begin
  perform pawl.bulk_check(p_noun, p_action, p_filter);
  if char_length(p_reason) > 1000 then
    raise exception 'reason must have at most 1000 characters, got %', char_length(p_reason) using errcode = 'QU001';
  end if;
  operation_id := v_id;
  v_upto := coalesce((select max(c.id) from pawl.command c), 0);
  insert into pawl.bulk_operation (operation_id, noun, action, filter, argument, operator, reason, upto, below, chunk, created_at)
  select v_id, p_noun, p_action, p_filter, p_argument, v_operator, p_reason, v_upto, v_upto + 1, 64, pawl.now()
  on conflict on constraint bulk_operation_operation_id_key do nothing;
  is_new := found;
  if not is_new then
    select * into v_row from pawl.bulk_operation b where b.operation_id = v_id;
    differs := case when v_row.noun <> p_noun then 'noun' when v_row.action <> p_action then 'action'
                    when v_row.filter <> p_filter then 'filter' when v_row.argument is distinct from p_argument then 'argument' end;
    return;
  end if;
  if (select count(*) from (select from pawl.bulk_operation b where b.ended_at is null limit c_open_max + 1) o) > c_open_max then
    raise exception '% bulk operations have not ended: wait for one of them', c_open_max using errcode = 'QU007';
  end if;
  perform pawl.control_add('bulk', v_id::text, p_action, p_operator, p_reason,
    jsonb_build_object('noun', p_noun, 'filter', p_filter)); -- without the argument: readers may not read results
  perform pg_notify('pawl_bulk', '');
end
$$;

-- Delete ended commands as retention does. Verdicts: DELETED, KEPT (its batch has not completed), LOCKED (try again), NOT_FOUND.
create or replace function pawl.bulk_delete (p_ids bigint[])
  returns table (id bigint, verdict text)
  language plpgsql
as $$
declare
  v_start timestamptz := (select case when s.at <= pawl.now() then s.at else '-infinity' end from pawl.audit_start s);
  v_there bigint[] := array(select o.id from pawl.outcome o where o.id = any (p_ids));
  v_free bigint[] := pawl.prunable_of_batches(v_there, 'infinity');
begin
  if cardinality(v_free) > 0 and pawl.kept_audit_make(v_free, v_start) then
    perform pawl.prune_ids(v_free, v_start);
  end if;
  return query
    select u.id, case when u.id <> all (v_there) then 'NOT_FOUND' when u.id <> all (v_free) then 'KEPT'
                      when exists (select from pawl.outcome o where o.id = u.id) then 'LOCKED' else 'DELETED' end
    from unnest(p_ids) u (id);
end
$$;

-- Decide about these commands. The verdicts are those of the decision about one.
create or replace function pawl.bulk_decide (p_operation pawl.bulk_operation, p_ids bigint[])
  returns table (id bigint, verdict text, is_new boolean)
  language plpgsql
as $$
#variable_conflict use_column
declare
  v_ids bigint[];
  v_names uuid[];
  v_domains text[];
  v_plain text[]; -- as processes name them
begin
  if p_operation.action = 'delete' then
    return query select d.id, d.verdict, d.verdict = 'DELETED' from pawl.bulk_delete(p_ids) d;
    return;
  end if;
  select array_agg(c.id order by c.id), array_agg(c.command_id order by c.id), array_agg(n.name order by c.id), array_agg(substr(n.name, 9) order by c.id)
  into v_ids, v_names, v_domains, v_plain
  from pawl.command c
  cross join lateral (select n.name from pawl.domain_name n where n.id = c.domain_id limit 1) n
  where c.id = any (p_ids);
  if v_ids is null then
    return;
  end if;
  if p_operation.action = 'compensate' then
    return query
      select v_ids[d.ord], d.verdict, d.is_new from pawl.process_compensate(v_names, v_plain, p_operation.operator, p_operation.reason) d;
  elsif p_operation.action = 'retry' and p_operation.argument ? 'from' then
    return query
      select v_ids[d.ord], d.verdict, d.is_new
      from pawl.process_retry(v_names, v_plain, p_operation.operator, p_operation.reason, p_operation.argument ->> 'from', p_operation.operation_id) d;
  elsif p_operation.action = 'cancel' and p_operation.filter ->> 'status' is distinct from 'IN_TSQ' then
    return query
      select v_ids[d.ord], d.verdict, d.is_new from pawl.command_cancel(v_names, v_domains, p_operation.operator, p_operation.reason) d;
  else
    return query
      select v_ids[d.ord], d.verdict, d.is_new
      from pawl.command_decide(v_names, v_domains, p_operation.action, p_operation.operator, p_operation.reason,
                               case when p_operation.action = 'complete' then p_operation.argument -> 'result' end) d;
  end if;
end
$$;

-- The same. One that fails stops none beside it: what fails together is halved until it is alone. After p_until what is left is LOCKED: it is tried later.
create or replace function pawl.bulk_apart (p_operation pawl.bulk_operation, p_ids bigint[], p_until timestamptz)
  returns table (id bigint, verdict text, is_new boolean, why text)
  language plpgsql
as $$
#variable_conflict use_column
declare
  v_count integer := coalesce(cardinality(p_ids), 0);
  v_ids bigint[];
  v_verdicts text[];
  v_new boolean[];
begin
  if v_count = 0 then
    return;
  end if;
  if clock_timestamp() > p_until then
    return query select u.id, 'LOCKED', false, null::text from unnest(p_ids) u (id);
    return;
  end if;
  begin
    select array_agg(d.id), array_agg(d.verdict), array_agg(d.is_new) into v_ids, v_verdicts, v_new from pawl.bulk_decide(p_operation, p_ids) d;
    return query select u.id, u.verdict, u.is_new, null::text from unnest(v_ids, v_verdicts, v_new) u (id, verdict, is_new);
    return;
  exception when others then
    if v_count = 1 and (sqlstate in ('55P03', '40P01')) then
      return query select p_ids[1], 'LOCKED', false, null::text;
      return;
    elsif pawl.is_transient(sqlstate) and sqlstate <> '40P01' then
      raise;
    elsif v_count = 1 then
      return query select p_ids[1], 'FAILED', false, sqlerrm;
      return;
    end if;
  end;
  return query select * from pawl.bulk_apart(p_operation, p_ids[:v_count / 2], p_until);
  return query select * from pawl.bulk_apart(p_operation, p_ids[v_count / 2 + 1:], p_until);
end
$$;

-- Decide about a chunk and record what came of it. p_matched: how many of them are counted for the first time.
create or replace function pawl.bulk_chunk_do (p_operation pawl.bulk_operation, p_ids bigint[], p_matched integer)
  returns void
  language plpgsql
  set plan = keyed_cached
as $$
declare
  c_longest constant interval := interval '1 s';
  v_locked bigint[] := '{}'; -- by other transactions
  v_held bigint[] := p_ids;
begin
  perform set_config('lock_timeout', '100ms', true);
  if p_operation.action <> 'delete' then
    -- Two names at least: one alone would be waited for.
    v_locked := case when cardinality(p_ids) > 0 then pawl.attached_lock(p_ids || array[-1::bigint]) else '{}' end;
    v_held := array(select u.id from unnest(p_ids) u (id) where u.id <> all (v_locked));
    v_held := pawl.commands_hold(v_held)
      || array(select l.id from pawl.lease l where l.id = any (v_held) order by l.id for no key update skip locked);
    v_locked := array(
      select u.id from unnest(p_ids) u (id)
      where u.id <> all (v_held) and exists (select from pawl.command c where c.id = u.id) and not exists (select from pawl.outcome o where o.id = u.id));
  end if;
  with done as materialized (
    select d.id, d.verdict, d.is_new, d.why from pawl.bulk_apart(p_operation, v_held, clock_timestamp() + c_longest) d
    union all
    select u.id, 'LOCKED', false, null from unnest(v_locked) u (id)
    union all -- they have ended or were deleted meanwhile
    select u.id, 'ENDED', false, null from unnest(p_ids) u (id) where u.id <> all (v_held) and u.id <> all (v_locked)
  ), class as materialized (
    select d.*, case when d.is_new then 'decided' when d.verdict = 'LOCKED' then 'locked'
                     when d.verdict in ('PENDING', 'CANCELED', 'CANCELING', 'COMPLETED', 'COMPENSATED', 'ENDED', 'NOT_IN_TSQ', 'NOT_FOUND') then 'known'
                     else 'refused' end as class
    from done d
  ), free as (
    delete from pawl.bulk_locked l
    where l.operation = p_operation.id and l.id = any (array(select c.id from class c where c.class <> 'locked'))
  ), aside as (
    insert into pawl.bulk_locked (operation, id) select p_operation.id, c.id from class c where c.class = 'locked' on conflict do nothing
  )
  insert into pawl.bulk_chunk (operation, matched, decided, known, refused, refusals)
  select p_operation.id, p_matched, count(*) filter (where c.class = 'decided'), count(*) filter (where c.class = 'known'),
         count(*) filter (where c.class = 'refused'),
         (select jsonb_agg(jsonb_build_object('id', k.command_id, 'domain', n.name, 'why', coalesce(r.why, r.verdict)))
          from (select r.* from class r where r.class = 'refused' order by r.id desc limit 10) r
          cross join lateral (select k.command_id, k.domain_id from pawl.command k where k.id = r.id limit 1) k
          cross join lateral (select n.name from pawl.domain_name n where n.id = k.domain_id limit 1) n)
  from class c;
end
$$;

-- Run the next chunk of an operation, or (null) of the one that was run longest ago. No row: there is none, or another transaction runs it. ended: it has
-- ended. wait_ms: when to call again.
create or replace function pawl.bulk_step (p_operation_id uuid default null)
  returns table (operation_id uuid, ended boolean, wait_ms integer)
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
#variable_conflict use_column
declare
  c_rows constant integer := 20000; -- read for one chunk
  c_locked constant interval := interval '5 s';
  c_pause_ms constant integer := 100; -- between tries of what is locked
  v_row pawl.bulk_operation;
  v_begin timestamptz := clock_timestamp();
  v_took interval;
  v_scan record;
  v_ids bigint[];
begin
  select b.* into v_row from pawl.bulk_operation b
  where b.ended_at is null and (p_operation_id is null or b.operation_id = p_operation_id)
  order by b.stepped_at nulls first, b.id limit 1 for update skip locked;
  if v_row.id is null then
    return;
  end if;
  operation_id := v_row.operation_id;
  wait_ms := 0;
  v_row.stepped_at := pawl.now();
  if v_row.read_at is null then
    begin
      select s.ids, s.next into v_scan from pawl.bulk_scan(v_row.noun, v_row.action, v_row.filter, v_row.below, v_row.chunk, c_rows) s;
    exception when others then
      if pawl.is_transient(sqlstate) then
        raise;
      end if;
      v_row.error := sqlerrm;
      v_row.ended_at := v_row.stepped_at;
    end;
    if v_row.error is null then
      if cardinality(v_scan.ids) > 0 then
        perform pawl.bulk_chunk_do(v_row, v_scan.ids, cardinality(v_scan.ids));
      end if;
      v_row.below := coalesce(v_scan.next, v_row.below);
      v_row.read_at := case when v_scan.next is null then v_row.stepped_at end;
      v_took := clock_timestamp() - v_begin;
      v_row.chunk := case when v_took > interval '100 ms' then greatest(v_row.chunk / 2, 8)
                          when v_took < interval '50 ms' then least(v_row.chunk * 2, 500) else v_row.chunk end;
    end if;
  else
    v_ids := array(select l.id from pawl.bulk_locked l where l.operation = v_row.id order by l.id desc limit v_row.chunk);
    if cardinality(v_ids) > 0 then
      perform pawl.bulk_chunk_do(v_row, v_ids, 0);
      wait_ms := c_pause_ms;
    end if;
  end if;
  if v_row.read_at is not null and (
       v_row.stepped_at not between v_row.read_at and v_row.read_at + c_locked
       or not exists (select from pawl.bulk_locked l where l.operation = v_row.id)) then
    v_row.ended_at := v_row.stepped_at;
  end if;
  update pawl.bulk_operation b
  set below = v_row.below, chunk = v_row.chunk, stepped_at = v_row.stepped_at, read_at = v_row.read_at, ended_at = v_row.ended_at, error = v_row.error
  where b.id = v_row.id;
  ended := v_row.ended_at is not null;
  return next;
end
$$;

-- What came of an operation so far. matched is what was read of what matches; locked: what other transactions have locked.
create or replace function pawl.bulk_show (p_operation_id uuid)
  returns table (operation_id uuid, noun text, action text, filter jsonb, operator text, reason text, state text, matched bigint, decided bigint,
                 known bigint, refused bigint, locked bigint, refusals jsonb, error text, created_at timestamptz, ended_at timestamptz)
  language sql stable security definer set search_path = pawl, pg_temp
as $$
  select b.operation_id, b.noun, b.action, b.filter, b.operator, b.reason,
         case when b.ended_at is null then 'running' when b.error is not null then 'failed' else 'ended' end,
         c.matched, c.decided, c.known, c.refused, (select count(*) from pawl.bulk_locked l where l.operation = b.id),
         coalesce((select jsonb_agg(r.one) from (
           select r.one from pawl.bulk_chunk k cross join lateral jsonb_array_elements(k.refusals) r (one)
           where k.operation = b.id and k.refusals is not null order by k.number limit 10) r), '[]'),
         b.error, b.created_at, b.ended_at
  from pawl.bulk_operation b
  cross join lateral (
    select coalesce(sum(k.matched), 0)::bigint as matched, coalesce(sum(k.decided), 0)::bigint as decided, coalesce(sum(k.known), 0)::bigint as known,
           coalesce(sum(k.refused), 0)::bigint as refused
    from pawl.bulk_chunk k where k.operation = b.id) c
  where b.operation_id = p_operation_id
$$;

-- Delete up to p_limit operations that ended before p_cutoff.
create or replace function pawl.bulk_prune (p_limit integer, p_cutoff timestamptz)
  returns bigint
  language plpgsql
as $$
declare
  v_ids bigint[];
begin
  v_ids := array(
    select o.id from (select b.id, b.ended_at from pawl.bulk_operation b order by b.id limit p_limit for update skip locked) o
    where o.ended_at < p_cutoff);
  delete from pawl.bulk_chunk c where c.operation = any (v_ids);
  delete from pawl.bulk_locked l where l.operation = any (v_ids);
  delete from pawl.bulk_operation b where b.id = any (v_ids);
  return cardinality(v_ids);
end
$$;

-- The operation whose turn it is has failed as a whole, by a time limit or a lost connection: others get their turn, and its next chunk is smaller.
create or replace function pawl.bulk_skip ()
  returns void
  language sql security definer set search_path = pawl, pg_temp
as $$
  update pawl.bulk_operation b
  set stepped_at = pawl.now(), chunk = greatest(b.chunk / 2, 1)
  where b.id = any (array(
    select o.id from pawl.bulk_operation o where o.ended_at is null order by o.stepped_at nulls first, o.id limit 1 for update skip locked))
$$;
