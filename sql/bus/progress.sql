-- progress.sql - what handlers report while they run: a percentage, a sentence, or both.
--
-- Invariants: a report is written under the token of a lease, as settle and extend are. A command has one row, with its newest report, and the attempt
-- that made it: the next attempt finds it, and it stays when the command ends, until retention deletes the command.
-- Lock order: rows of progress by id, skipping locked ones; then, for first reports only, leases by id, skipping locked ones.
-- Errors: QU001 arrays of different length, with nulls or of more than 10000 elements; a percentage, a text or a step out of range.

-- A report as JSON. Written to be inlined.
create or replace function pawl.progress_object (p_step text, p_attempt smallint, p_percent smallint, p_text text, p_at timestamptz)
  returns jsonb
  language sql immutable
as $$
  select jsonb_build_object('step', p_step, 'attempt', p_attempt, 'percent', p_percent, 'text', p_text, 'at', pawl.iso(p_at))
$$;

-- The newest report of a command; null: it has reported nothing.
create or replace function pawl.progress_get (p_id bigint)
  returns jsonb
  language sql stable
as $$
  select pawl.progress_object(g.step, g.attempt, g.percent, g.text, g.at) from pawl.progress g where g.id = p_id
$$;

-- Raises for the first report that is wrong.
create or replace function pawl.progress_check (p_count integer, p_percents integer[], p_texts text[], p_steps text[])
  returns void
  language plpgsql immutable
as $$
declare
  v_wrong text;
begin
  perform pawl.array_check('percents', p_percents, p_count, 'QU001', true), pawl.array_check('texts', p_texts, p_count, 'QU001', true),
          pawl.array_check('steps', p_steps, p_count, 'QU001', true);
  select case
      when u.percent not between 0 and 100 then format('percents[%s] must be from 0 to 100, got %s', u.ord, u.percent)
      when char_length(u.text) not between 1 and 200 then format('texts[%s] must have 1 to 200 characters, got %s', u.ord, char_length(u.text))
      when char_length(u.step) not between 1 and 400 then format('steps[%s] must have 1 to 400 characters, got %s', u.ord, char_length(u.step))
      else format('percents[%s] and texts[%s] must not both be null', u.ord, u.ord)
    end into v_wrong
  from (select g.ord, p_percents[g.ord] as percent, p_texts[g.ord] as text, p_steps[g.ord] as step from generate_series(1, p_count) g (ord)) u
  where u.percent not between 0 and 100 or char_length(u.text) not between 1 and 200 or char_length(u.step) not between 1 and 400
    or (u.percent is null and u.text is null)
  order by u.ord
  limit 1;
  if found then
    raise exception '%', v_wrong using errcode = 'QU001';
  end if;
end
$$;

-- Write the newest progress of commands that are leased. p_percents, p_texts: null elements, or null for all, are not given. p_steps: of a
-- process, the step that reports, for people. The last report of a command counts, and replaces the one before as a whole.
-- Verdicts: REPORTED; LOST (another token, or no lease at all); BUSY (another transaction has a row locked: report it again).
-- A row of progress is locked before its lease is read. So a worker that has lost its lease meanwhile has either written before the next attempt's first
-- report, or finds no lease.
create or replace function pawl.report_progress (
  p_ids bigint[], p_tokens bigint[], p_percents integer[] default null, p_texts text[] default null, p_steps text[] default null)
  returns table (ord integer, verdict text)
  language plpgsql security definer set search_path = pawl, pg_temp
  set plan = keyed_cached
as $$
#variable_conflict use_column
declare
  v_now timestamptz := pawl.now();
  v_ords integer[];
  v_tids tid[];
  v_updated bigint[];
  v_inserted bigint[];
begin
  perform pawl.lease_check(p_ids, p_tokens), pawl.progress_check(cardinality(p_ids), p_percents, p_texts, p_steps);
  select array_agg(h.ord), array_agg(h.tid) into v_ords, v_tids
  from (
    select i.ord, g.tid
    from (
      select distinct on (u.id) u.id, u.ord
      from unnest(p_ids, p_tokens) with ordinality u (id, token, ord)
      cross join lateral (select from pawl.lease l where l.id = u.id and l.token = u.token limit 1) l
      order by u.id, u.ord desc) i
    cross join lateral (select g.ctid as tid from pawl.progress g where g.id = i.id for no key update skip locked) g) h;
  with updated as (
    update pawl.progress g
    set attempt = l.attempt, percent = p_percents[u.ord], text = p_texts[u.ord], step = p_steps[u.ord], at = v_now
    from unnest(v_ords, v_tids) u (ord, tid)
    cross join lateral (
      select l.attempt from pawl.lease l where l.id = p_ids[u.ord] and l.token = p_tokens[u.ord] limit 1) l
    where g.ctid = u.tid
    returning g.id
  )
  select array_agg(u.id) into v_updated from updated u;
  if coalesce(cardinality(v_updated), 0) < cardinality(p_ids) then
    -- First reports. There is no row yet that could be locked, so the lease is.
    with inserted as (
      insert into pawl.progress (id, attempt, percent, text, step, at)
      select i.id, l.attempt, p_percents[i.ord], p_texts[i.ord], p_steps[i.ord], v_now
      from (
        select distinct on (u.id) u.id, u.token, u.ord
        from unnest(p_ids, p_tokens) with ordinality u (id, token, ord)
        cross join lateral (select from pawl.lease l where l.id = u.id and l.token = u.token limit 1) l
        left join lateral (select g.id from pawl.progress g where g.id = u.id limit 1) g on true
        where g.id is null
        order by u.id, u.ord desc) i
      cross join lateral (
        select l.attempt from pawl.lease l where l.id = i.id and l.token = i.token for no key update skip locked) l
      on conflict (id) do nothing
      returning id
    )
    select array_agg(i.id) into v_inserted from inserted i;
  end if;
  return query
    select s.ord::integer, case when not s.is_leased then 'LOST' when s.is_written then 'REPORTED' else 'BUSY' end
    from (
      -- By a window, because row by row a join of two lists takes the square of their length.
      select v.ord, v.is_leased, bool_or(v.is_written) over (partition by v.id) as is_written
      from (
        select u.ord, u.id, l.id is not null, false
        from unnest(p_ids, p_tokens) with ordinality u (id, token, ord)
        left join lateral (select l.id from pawl.lease l where l.id = u.id and l.token = u.token limit 1) l on true
        union all
        select null, w, null, true from unnest(v_updated || v_inserted) w
      ) v (ord, id, is_leased, is_written)
    ) s
    where s.ord is not null
    order by s.ord;
end
$$;
