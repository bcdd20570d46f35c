-- answer.sql - answers kept under the header Idempotency-Key for 7 days.
-- For pods alone: the caller that keeps an answer decides what the client gets, and the one that finds an answer reads what the client got.
-- Only successful answers are kept. What they answer is safe to run again by itself (a decision, a settlement by lease), so a
-- request whose answer was lost before it was kept may run a second time.
-- Lock order: one row of kept_answer; rows that another transaction holds are skipped.
-- Errors: PW003 an argument is missing or out of range.

-- The answer under a key, none when there is none. is_same: it was kept for this request.
create or replace function pawl.answer_find (p_key uuid, p_request bytea)
  returns table (status integer, body text, is_same boolean)
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
#variable_conflict use_column
begin
  return query
    select a.status, a.body, a.request = p_request
    from pawl.kept_answer a
    where a.key = p_key and a.kept_at > pawl.now() - interval '7 days';
  if found then
    perform pawl.replay_barrier();
  end if;
end
$$;

-- Keep an answer; the first one under a key stays. Each call deletes up to two that are too old, so that the table shrinks
-- without a task of its own. Returns whether it was kept.
create or replace function pawl.answer_keep (p_key uuid, p_request bytea, p_status integer, p_body text)
  returns boolean
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
begin
  if (p_key is not null and octet_length(p_request) = 32 and p_status between 200 and 299 and p_body is not null) is not true then
    raise exception 'key and body must be given, request must be a hash of 32 bytes, and status from 200 to 299' using errcode = 'PW003';
  end if;
  delete from pawl.kept_answer a
  where a.key in (select o.key from pawl.kept_answer o
                  where o.kept_at <= pawl.now() - interval '7 days'
                  order by o.kept_at limit 2 for update skip locked);
  -- One that is too old and not deleted yet counts for nothing, as in answer_find.
  insert into pawl.kept_answer as a (key, request, status, body, kept_at)
  values (p_key, p_request, p_status, p_body, pawl.now())
  on conflict (key) do update
    set request = excluded.request, status = excluded.status, body = excluded.body, kept_at = excluded.kept_at
    where a.kept_at <= pawl.now() - interval '7 days';
  return found;
end
$$;
