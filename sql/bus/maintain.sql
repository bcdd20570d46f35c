-- maintain.sql - what a monitor does for the bus once a minute: seal abandoned batches, delete old replies and resolved dead
-- letters, drop idle reply queues, forget the use of rates that nothing uses any more.
--
-- Lock order: batch rows that no transaction holds (skip locked); a reply queue's tables, for at most 100 ms of waiting each.
-- One queue that fails keeps none of the others from being pruned.
-- Errors: QU001 a limit out of range, an age below that of pawl.least_age.

-- Batches that were opened, and got no command since, longer ago than p_older: they are sealed, so that they complete and their
-- last command is sent. One that a sender holds is not abandoned. Returns how many.
create or replace function pawl.batch_expire (p_limit integer, p_older interval)
  returns integer
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_cutoff timestamptz := pawl.prune_check('batches', p_limit, p_older);
  v_ids bigint[];
begin
  v_ids := array(
    select b.id from pawl.batch b
    where b.sealed_at is null and b.created_at < v_cutoff
      and coalesce((select c.created_at from pawl.command c where c.batch_id = b.id order by c.id desc limit 1), b.created_at) < v_cutoff
    order by b.created_at
    limit p_limit
    for update skip locked);
  if cardinality(v_ids) > 0 then
    update pawl.batch b set sealed_at = pawl.now(), expired = true where b.id = any (v_ids);
    perform pawl.batch_check_apart(v_ids);
  end if;
  return cardinality(v_ids);
end
$$;

-- For how long the most idle open batch has had no new command, in seconds, of the 1000 that were opened first; 0: none is open.
create or replace function pawl.batch_idle_s ()
  returns bigint
  language sql stable security definer set search_path = pawl, pg_temp
as $$
  select coalesce(max(extract(epoch from pawl.now() - i.since)), 0)::bigint
  from (
    select coalesce((select c.created_at from pawl.command c where c.batch_id = b.id order by c.id desc limit 1), b.created_at) as since
    from pawl.batch b where b.sealed_at is null order by b.created_at limit 1000
  ) i
$$;

create or replace function pawl.prune_dead_letters (p_limit integer, p_older interval)
  returns bigint
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_cutoff timestamptz := pawl.prune_check('dead letters', p_limit, p_older);
  v_gone bigint;
begin
  delete from pawl.failed_operations f
  where f.id = any (array(
    select f.id from pawl.failed_operations f
    where f.status = 'resolved' and coalesce(f.last_retry_at, f.created_at) < v_cutoff
    order by coalesce(f.last_retry_at, f.created_at)
    limit p_limit
    for update skip locked));
  get diagnostics v_gone = row_count;
  return v_gone;
end
$$;

-- False for a queue that its reader created: before the first send, after dropping the one that pawl made, or under another spelling of
-- its name, which has the same tables. Also false when there is no queue.
create or replace function pawl.reply_queue_is_own (p_name text)
  returns boolean
  language plpgsql
as $$
begin
  return to_regclass(format('pgmq.%I', pgmq.format_table_name(p_name, 'q'))) is not null
    and exists (
      select from pawl.reply_queue r join pgmq.meta m on m.queue_name = r.name
      where r.name = p_name and m.created_at <= r.created_at)
    and not exists (select from pgmq.meta m where lower(m.queue_name) = lower(p_name) and m.queue_name <> p_name);
end
$$;

-- One queue that pawl made: replies older than the cutoff go, and the queue with them when no reply came since and nothing is in it
-- or in its archive. The queue is locked before it is read, so that a reply that is being sent is not dropped.
create or replace function pawl.prune_reply_queue (p_name text, p_limit integer, p_cutoff timestamptz)
  returns bigint
  language plpgsql security definer set search_path = pawl, pg_temp set lock_timeout = '100ms'
as $$
declare
  v_queue text := pgmq.format_table_name(p_name, 'q');
  v_archive text := pgmq.format_table_name(p_name, 'a');
  v_known pawl.reply_queue;
  v_last bigint;
  v_gone bigint;
  v_used boolean;
begin
  if not pawl.reply_queue_is_own(p_name) then
    delete from pawl.reply_queue r where r.name = p_name; -- its reader dropped it, or made one of its own
    return 0;
  end if;
  execute format('delete from pgmq.%1$I where msg_id = any (array(
                    select msg_id from pgmq.%1$I where enqueued_at < $1 order by msg_id limit $2))', v_queue)
    using p_cutoff, p_limit;
  get diagnostics v_gone = row_count;
  v_last := coalesce(pg_sequence_last_value(pg_get_serial_sequence(format('pgmq.%I', v_queue), 'msg_id')::regclass), 0);
  select * into v_known from pawl.reply_queue r where r.name = p_name;
  if v_last <> v_known.last_msg_id then
    update pawl.reply_queue r set used_at = pawl.now(), last_msg_id = v_last where r.name = p_name;
  elsif v_known.used_at < p_cutoff then
    execute format('lock table pgmq.%I in access exclusive mode', v_queue);
    execute format('select exists (select from pgmq.%I) or exists (select from pgmq.%I)', v_queue, v_archive) into v_used;
    if not v_used and pawl.reply_queue_is_own(p_name) then
      perform pgmq.drop_queue(p_name);
      delete from pawl.reply_queue r where r.name = p_name;
    end if;
  end if;
  return v_gone;
end
$$;

-- Up to 20 queues by name, from `after` on; null is the beginning, and as a result: that was the last one. gone: deleted replies.
create or replace function pawl.prune_replies (p_limit integer, p_older interval, inout after text, out gone bigint)
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_most constant integer := 20;
  v_name text;
  v_count integer := 0;
  v_cutoff timestamptz := pawl.prune_check('replies', p_limit, p_older);
begin
  gone := 0;
  for v_name in
    select r.name from pawl.reply_queue r where r.name > coalesce(prune_replies.after, '') order by r.name limit v_most
  loop
    v_count := v_count + 1;
    after := v_name;
    begin
      gone := gone + pawl.prune_reply_queue(v_name, p_limit, v_cutoff);
    exception when others then
      if pawl.is_transient(sqlstate) then
        raise;
      end if; -- in use, or broken: the next round tries again
    end;
  end loop;
  if v_count < v_most then
    after := null;
  end if;
end
$$;

-- What a monitor calls: all of them, unless retention waits (bus/prune.sql).
create or replace function pawl.maintain (
  p_limit integer, p_batch_older interval, p_replies_older interval, p_letters_older interval, inout after text,
  out expired integer, out replies bigint, out letters bigint)
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
begin
  if not pawl.retention_ready() then
    after := null;
    expired := 0;
    replies := 0;
    letters := 0;
    return;
  end if;
  expired := pawl.batch_expire(least(p_limit, 100), p_batch_older);
  select r.gone, r.after into maintain.replies, maintain.after from pawl.prune_replies(p_limit, p_replies_older, maintain.after) r;
  letters := pawl.prune_dead_letters(p_limit, p_letters_older);
  perform pawl.gate_prune(p_limit);
end
$$;
