-- pgmq_notify.sql - who notifies, and how often. What listeners hear is in isolation/specs/queue_notify.spec.

select pgmq.create('Loud');
select pgmq.enable_notify_insert('nowhere');
select pgmq.enable_notify_insert('Loud', -1);
select pgmq.update_notify_insert('nowhere', 1);
select pgmq.update_notify_insert('Loud', -1);
select pgmq.update_notify_insert('Loud', 1);
select pgmq.disable_notify_insert('Loud');
select pgmq.enable_notify_insert('Loud');
select * from pgmq.list_notify_insert_throttles();
select tgname, tgdeferrable, tgconstraint <> 0 as is_constraint, pg_get_triggerdef(oid) as definition
from pg_trigger where tgrelid = 'pgmq.q_loud'::regclass;

-- The throttle: one notification per interval; enabling or changing it begins anew.
select pgmq.send('Loud', '1');
select last_notified_at > now() - interval '1 min' as notified, last_notified_at as first_time from pgmq.notify_insert_throttle \gset
select pgmq.update_notify_insert('Loud', 3600000);
select queue_name, throttle_interval_ms, last_notified_at from pgmq.list_notify_insert_throttles();
select pgmq.send('Loud', '2');
select last_notified_at as second_time from pgmq.notify_insert_throttle \gset
select pgmq.send('Loud', '3');
select :'notified' as notified, :'second_time'::timestamptz > :'first_time' as again,
       last_notified_at = :'second_time' as throttled from pgmq.notify_insert_throttle;
select pgmq.enable_notify_insert(queue_name => 'Loud', throttle_interval_ms => 0);
select pgmq.send('Loud', '4');
select last_notified_at as third_time from pgmq.notify_insert_throttle \gset
select pgmq.send('Loud', '5');
select last_notified_at > :'third_time' as every_time from pgmq.notify_insert_throttle;

select pgmq.create('another');
select pgmq.enable_notify_insert('another', 7);
select queue_name, throttle_interval_ms from pgmq.list_notify_insert_throttles();
select pgmq.disable_notify_insert('Loud');
select pgmq.send('Loud', '6');
-- The throttle goes with its queue.
select pgmq.drop_queue('another');
select * from pgmq.list_notify_insert_throttles();
