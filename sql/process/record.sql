-- record.sql - records of steps: as the engine gives them, and as people read them.
--
-- A record has the columns of pawl.process_step. What gives it its place in a process is (step, item, undo, kind, aside, attempt). Its text, "ship[2]", is
-- printed and never read: nothing is found by a part of it.

-- A record as pawl.process_write takes it; absent members have the values that they have most often. Times are in microseconds since 1970.
create or replace function pawl.record_read (p_record jsonb)
  returns table (step text, item integer[], undo boolean, kind text, aside smallint, attempt smallint, verdict text, retry_at timestamptz,
                 response text, taken int4multirange, call integer, call_kind text, input_hash text, started_at timestamptz)
  language sql stable
as $$
  select r.step, coalesce(r.item, '{}'), coalesce(r.undo, false), coalesce(r.kind, 'step'), coalesce(r.aside, 0::smallint),
         coalesce(r.attempt, 1::smallint), r.verdict, timestamptz 'epoch' + r.retry_us * interval '1 us', r.response, r.taken, r.call, r.call_kind, r.input_hash,
         timestamptz 'epoch' + r.started_us * interval '1 us'
  from jsonb_to_record(p_record) r (
    step text, item integer[], undo boolean, kind text, aside smallint, attempt smallint, verdict text, retry_us bigint, response text, taken int4multirange,
    call integer, call_kind text, input_hash text, started_us bigint)
$$;

-- Can all of these be read? Nulls can. The table's constraints say the rest.
create or replace function pawl.records_are_valid (p_records jsonb[])
  returns boolean
  language plpgsql stable
as $$
declare
  c_most constant timestamptz := timestamptz '9999-12-31 23:59:59.999999+00';
begin
  return not exists (
    select from unnest(p_records) u (record)
    cross join lateral pawl.record_read(u.record) r
    where u.record is not null
      and (r.step <> '' and octet_length(r.step) <= 400 and coalesce(octet_length(r.call_kind), 0) <= 40
           and coalesce(octet_length(r.input_hash), 0) <= 200 and coalesce(octet_length(r.response), 0) <= 400 and r.attempt between 0 and 32767 and r.aside >= 0 and coalesce(r.started_at, 'epoch') between 'epoch' and c_most
           and coalesce(r.retry_at, 'epoch') between 'epoch' and c_most) is not true);
exception when data_exception or invalid_parameter_value then
  return false;
end
$$;

-- Stable, not immutable, because array_to_string() is, so that it is inlined.
-- "ship", "ship[2]", "~ship[2]" (its compensation); "ship[2]:done", "ship:gone1" (set aside by the first retry from a step).
create or replace function pawl.record_text (p_step text, p_item integer[], p_undo boolean, p_kind text default 'step', p_aside integer default 0)
  returns text
  language sql stable
as $$
  select case when p_undo then '~' else '' end || p_step
    || case when p_item = '{}' then '' else '[' || array_to_string(p_item, '][') || ']' end
    || case when p_kind = 'step' then '' else ':' || p_kind end
    || case when p_aside = 0 then '' else ':gone' || p_aside end
$$;

-- What a process waits for: signals of a name, replies to a step, or any response. to_step, to_item: the step that waits, of signals: one that names another
-- step is not for it.
create or replace function pawl.waits_read (p_waits jsonb)
  returns table (kind text, name text, item integer[], undo boolean, aside integer, count bigint, to_step text, to_item integer[])
  language sql stable
as $$
  select w.kind, coalesce(w.name, ''), coalesce(w.item, '{}'), coalesce(w.undo, false), coalesce(w.aside, 0), w.count, w.to_step, coalesce(w.to_item, '{}')
  from jsonb_to_recordset(p_waits) w (
    kind text, name text, item integer[], undo boolean, aside integer, count bigint, to_step text, to_item integer[])
$$;

-- The steps that responses name, as they are shown, for processes; null: it names none. Steps of definitions have items, "approval[2]", from 0 and fewer than
-- a process has records (RUN_RECORDS_MAX), in at most 7 lists around them; in code every text is a name. Raises for a text that is no step.
create or replace function pawl.steps_read (p_ids bigint[], p_steps text[])
  returns table (ord bigint, step text, item text)
  language plpgsql stable
as $$
#variable_conflict use_column
declare
  c_defined constant text := '^[A-Za-z0-9][A-Za-z0-9_-]{0,49}(\[(0|[1-9][0-9]{0,3})\]){0,7}$';
  c_code constant text := '^[A-Za-z0-9][][A-Za-z0-9_.:~-]{0,199}$';
  v_wrong text;
begin
  select left(u.step, 60) into v_wrong
  from unnest(p_ids, p_steps) u (id, step)
  left join lateral (select p.definition_id from pawl.process p where p.id = u.id limit 1) p on true
  where u.step is not null and u.step !~ case when p.definition_id is null then c_code else c_defined end limit 1;
  if v_wrong is not null then
    raise exception 'step must be the name of a step such as approval, or of an item''s such as approval[2], got "%"', v_wrong using errcode = 'QP001';
  end if;
  return query
    select u.ord, case when p.is_code then u.step else split_part(u.step, '[', 1) end,
           case when p.is_code or u.step not like '%[%' then '{}'
                else '{' || replace(rtrim(substr(u.step, strpos(u.step, '[') + 1), ']'), '][', ',') || '}' end
    from unnest(p_ids, p_steps) with ordinality u (id, step, ord)
    cross join lateral (select exists (select from pawl.process p where p.id = u.id and p.definition_id is null) as is_code) p
    where u.step is not null
    order by u.ord;
end
$$;

-- The same for people: {"approval": 2, "reply of ship[2]": 1}; of a wait that one of several names ends: {"any of: approved, rejected": 1}.
create or replace function pawl.waits_shown (p_waits jsonb)
  returns jsonb
  language plpgsql stable
as $$
begin
  return (
    select jsonb_object_agg(s.name, s.count)
    from (
      select n.name, min(n.count) as count
      from (
        select case when count(*) > 1 then 'any of: ' else '' end || string_agg(case w.kind
                 when 'any' then '*' when 'signal' then w.name else 'reply of ' || pawl.record_text(w.name, w.item, w.undo, p_aside => w.aside) end, ', ' order by w.name)
                 as name, min(w.count) as count
        from pawl.waits_read(p_waits) with ordinality w (kind, name, item, undo, aside, count, to_step, to_item, ord)
        group by w.to_step, w.to_item, case when w.to_step is null then w.ord end) n -- the names of one wait together
      group by n.name) s);
end
$$;

-- The record that gets the reply of a command, of "response:{...}", and in which life of its process; nothing: it is no such target.
create or replace function pawl.target_read (p_target text)
  returns table (id bigint, step text, item integer[], undo boolean, aside smallint, life integer)
  language plpgsql immutable
as $$
begin
  if p_target not like 'response:{%' or p_target is null then
    return;
  end if;
  return query
    select r.process, r.step, coalesce(r.item, '{}'), coalesce(r.undo, false), coalesce(r.aside, 0::smallint), coalesce(r.life, 1)
    from jsonb_to_record(substr(p_target, 10)::jsonb) r (process bigint, step text, item integer[], undo boolean, aside smallint, life integer)
    where r.process > 0 and r.step <> '';
exception when data_exception then
  return;
end
$$;
