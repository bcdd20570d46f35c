-- pgmq_group.sql - messages of one group come one after the other.

create function heard (record pgmq.message_record) returns text
  language sql as $$ select (record.message #>> '{}') || '/' || record.read_ct $$;

-- The same cases without and with the index that create_fifo_index makes.
select pgmq.create('plain');
select pgmq.create('indexed');
select pgmq.create_fifo_index('indexed');

create procedure fill (queue text)
  language plpgsql as $$
begin
  perform pgmq.purge_queue(queue);
  perform pgmq.send(queue, to_jsonb(m), case when m not like '-%' then jsonb_build_object('x-pgmq-group', left(m, 1)) end)
  from unnest(array['a1', 'a2', 'a3', 'b1', 'b2', '-1', 'c1', '-2']) with ordinality as u (m, place)
  order by place;
end
$$;
create procedure show (queue text, call text)
  language plpgsql as $$
declare
  v_text text;
begin
  execute format('select string_agg(heard(r.m), '' '' order by r.place)
                  from (select m, row_number() over () as place from pgmq.%s as m) as r', format(call, queue)) into v_text;
  raise notice '%: %', format(call, queue), coalesce(v_text, 'nothing');
end
$$;
create procedure hide (queue text, names text[], seconds integer)
  language plpgsql as $$
begin
  execute format('select pgmq.set_vt(%L, array(select msg_id from pgmq.q_%s where message #>> ''{}'' = any ($1)), $2)', queue, queue)
    using names, seconds;
end
$$;
create procedure cases (queue text)
  language plpgsql as $$
begin
  raise notice '-- group by group';
  call fill(queue);
  call show(queue, 'read_grouped(%L, 100, 4)');
  call show(queue, 'read_grouped(%L, 100, 4)');
  call show(queue, 'read_grouped(%L, 100, 4)');
  raise notice '-- a hidden head blocks its group; nothing is given out past a hidden message';
  call fill(queue);
  call hide(queue, array['a1', 'b2'], 100);
  call show(queue, 'read_grouped(%L, 0, 10)');
  call show(queue, 'read_grouped_rr(%L, 0, 10)');
  call show(queue, 'read_grouped_head(%L, 0, 10)');
  raise notice '-- in turn';
  call fill(queue);
  call show(queue, 'read_grouped_rr(%L, 0, 3)');
  call show(queue, 'read_grouped_rr(%L, 0, 6)');
  call show(queue, 'read_grouped_rr(%L, 100, 100)');
  call show(queue, 'read_grouped_rr(%L, 100, 100)');
  raise notice '-- heads';
  call fill(queue);
  call show(queue, 'read_grouped_head(%L, 100, 2)');
  call show(queue, 'read_grouped_head(%L, 100, 10)');
  call show(queue, 'read_grouped_head(%L, 100, 10)');
  raise notice '-- with poll';
  call fill(queue);
  call show(queue, 'read_grouped_with_poll(%L, 0, 3, 0)');
  call show(queue, 'read_grouped_with_poll(%L, 0, 3)');
  call show(queue, 'read_grouped_rr_with_poll(queue_name => %L, vt => 0, qty => 3, max_poll_seconds => 5, poll_interval_ms => 100)');
  call show(queue, 'read_grouped_head_with_poll(%L, 100, 3, 1, 50)');
  call show(queue, 'read_grouped_head_with_poll(%L, 100, 3, 1, 50)');
  call show(queue, 'read_grouped_head_with_poll(%L, 100, 3, 1, 50)');
  raise notice '-- without a quantity, and without an end of the poll';
  call fill(queue);
  call show(queue, 'read_grouped(%L, 100, null)');
  call show(queue, 'read_grouped_rr(%L, 100, null)');
  call show(queue, 'read_grouped_rr(%L, 100, -1)');
  call show(queue, 'read_grouped_with_poll(%L, 0, 1, null, 20)');
  call show(queue, 'read_grouped_head(%L, 100, null)');
  raise notice '-- none';
  perform pgmq.purge_queue(queue);
  call show(queue, 'read_grouped(%L, 0, 3)');
  call show(queue, 'read_grouped_rr(%L, 0, 3)');
  call show(queue, 'read_grouped_head(%L, 0, 3)');
  raise notice '-- more groups than are looked at first, the first ones hidden';
  perform pgmq.send_batch(queue, array_agg(to_jsonb(n)), array_agg(jsonb_build_object('x-pgmq-group', n::text)))
  from generate_series(1, 3000) as n;
  execute format('update pgmq.q_%s set vt = clock_timestamp() + interval ''1 day'' where (message #>> ''{}'')::integer <= 2500', queue);
  call show(queue, 'read_grouped(%L, 0, 3)');
  call show(queue, 'read_grouped_rr(%L, 0, 3)');
  call show(queue, 'read_grouped_head(%L, 0, 3)');
end
$$;
call cases('plain');
call cases('indexed');
