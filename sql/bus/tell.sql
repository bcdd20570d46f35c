-- tell.sql - who waits for the end of a command: its sender's reply queue, and its batch.
--
-- Invariant: called once for each command that ends, in the transaction that ends it; so a reply is sent exactly once,
-- and a batch's last command completes it exactly once.
-- Lock order: batch rows by id.

-- Reply queues are queues of schema pgmq, so any client of PGMQ can read them.
create or replace function pawl.reply_queues (p_names text[])
  returns void
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_name text;
begin
  for v_name in
    select distinct n from unnest(p_names) n
    where n is not null and not exists (select from pgmq.meta m where m.queue_name = n)
  loop
    perform pgmq.create(v_name);
  end loop;
end
$$;

create or replace function pawl.tell (p_ids bigint[])
  returns void
  language plpgsql security definer set search_path = pawl, pg_temp
as $$
declare
  v_queue text;
  v_replies jsonb[];
begin
  for v_queue, v_replies in
    select c.reply_to,
           array_agg(jsonb_build_object('command_id', c.command_id, 'domain', d.name, 'type', c.type, 'status', o.status,
                       'result', o.result, 'error', o.error, 'correlation_id', c.correlation_id) order by c.id)
    from pawl.command c
    join pawl.outcome o on o.id = c.id
    cross join lateral (select n.name from pawl.domain_name n where n.id = c.domain_id limit 1) d
    where c.id = any (p_ids) and c.reply_to is not null
    group by c.reply_to
    order by c.reply_to
  loop
    -- Whoever dropped it since does not keep the command from ending, and with it all that ends or is rescued beside it.
    perform pawl.reply_queues(array[v_queue]);
    perform pgmq.send_batch(v_queue, v_replies);
  end loop;
  perform pawl.batch_look(b.id)
  from (select distinct c.batch_id as id from pawl.command c where c.id = any (p_ids) and c.batch_id is not null order by 1) b;
end
$$;
