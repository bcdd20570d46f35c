-- command_repeat.sql - the same id with another field is refused, and the refusal names the field. The delay is not compared: the row keeps
-- when the command is due, not how long that was.
select count(*) from pawl.batch_new('00000000-0000-4000-8000-0000000000b1');
select count(*) from pawl.batch_new('00000000-0000-4000-8000-0000000000b2');
create function again (
  p_id text, p_priority integer default null, p_max_attempts integer default null, p_reply_to text default null,
  p_correlation_id text default null, p_batch text default null, p_delay bigint default null)
  returns table (is_new boolean, refusal text) language sql as $$
  select s.is_new, s.refusal
  from pawl.send('shop', array['a'], array['1']::jsonb[], array[('00000000-0000-4000-8000-00000000000' || p_id)::uuid],
    array[p_delay], array[p_priority::smallint], array[p_max_attempts::smallint], array[p_reply_to], array[p_correlation_id],
    ('00000000-0000-4000-8000-0000000000' || p_batch)::uuid) s
$$;
-- What is left out is the default.
select * from again('1');
select * from again('1', 4, 3, p_delay => 1000);
select * from again('1', 5);
select * from again('1', p_max_attempts => 1);
select * from again('1', p_reply_to => 'answers');
select * from again('1', p_correlation_id => 'x');
select * from again('1', p_batch => 'b1');
-- What was given first has to be given again.
select * from again('2', 9, 1, 'answers', 'x', 'b1');
select * from again('2', 9, 1, 'answers', 'x', 'b1');
select * from again('2', null, 1, 'answers', 'x', 'b1');
select * from again('2', 9, null, 'answers', 'x', 'b1');
select * from again('2', 9, 1, 'others', 'x', 'b1');
select * from again('2', 9, 1, null, 'x', 'b1');
select * from again('2', 9, 1, 'answers', 'y', 'b1');
select * from again('2', 9, 1, 'answers', 'x', 'b2');
select * from again('2', 9, 1, 'answers', 'x');
-- Two items of one call.
select ord, is_new, refusal from pawl.send('shop', array['a', 'a'], array['1', '1']::jsonb[],
  array['00000000-0000-4000-8000-000000000003', '00000000-0000-4000-8000-000000000003']::uuid[], p_priorities => '{1,2}');
select pawl.send('shop', 'a', '1'::jsonb, '00000000-0000-4000-8000-000000000003', p_priority => 7);
