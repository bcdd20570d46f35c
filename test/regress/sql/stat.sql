-- stat.sql - numbers over time: a flush is counted once, hours are summed from their rows, old rows are deleted, bad arguments are refused.

\set source '\'00000000-0000-4000-8000-000000000001\''
select pawl.stat_add(:source, 1, '{sent,wait}', '{shop,shop}', '{5,3}', array[null, '{0,2,1}']);
select pawl.stat_add(:source, 1, '{sent,wait}', '{shop,shop}', '{5,3}', array[null, '{0,2,1}']) as repeated;
select pawl.stat_add(:source, 2, '{sent}', '{shop}', '{7}', array[null::text]);
select measure, sum(count) as count from pawl.stat group by 1 order by 1;
select flush from pawl.stat_source;

-- Wrong arguments write nothing.
select pawl.stat_add(:source, 3, '{Sent}', '{shop}', '{1}', array[null::text]);
select pawl.stat_add(:source, 3, '{sent}', '{shop}', '{0}', array[null::text]);
select pawl.stat_add(:source, 3, '{sent}', '{shop}', '{null}', array[null::text]);
select pawl.stat_add(:source, 3, '{sent}', '{shop}', '{1}', '{"{-1}"}');
select pawl.stat_add(:source, 3, '{sent}', '{shop,mail}', '{1}', array[null::text]);
select pawl.stat_add(null, 3, '{sent}', '{shop}', '{1}', array[null::text]);
select pawl.stat_list('sent', 'shop', pawl.now() - interval '1 hour', 61);
select pawl.stat_list('sent', 'shop', pawl.now() - interval '3 days', 60);
select pawl.stat_list('sent', 'shop', pawl.now() - interval '3 days', 120);
select pawl.stat_list('sent', null, pawl.now() - interval '7 hours', 60);
select pawl.stat_list('sent', 'shop', null, 60);
select flush from pawl.stat_source;

-- Quantiles, by interpolation; above the last bound it is that bound.
select pawl.stat_quantile_us('{10}', 0.5) as half_ms, pawl.stat_quantile_us('{0,10}', 0.5) as ms_3, pawl.stat_quantile_us('{9,0,1}', 0.95) as ms_7_5,
       pawl.stat_quantile_us('{0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,4}', 0.5) as most, pawl.stat_quantile_us(null, 0.5) as none;
select pawl.stat_buckets_sum(b) from (values ('{1,2}'::bigint[]), (null), ('{0,1,4}')) v (b);

-- Three hours ago, by two processes; and rows older than 14 days and a year.
delete from pawl.stat;
insert into pawl.stat (at, measure, label, source, flush, count, buckets)
  select date_trunc('hour', pawl.now()) - interval '3 hours' + n * interval '1 minute', 'wait', 'shop', gen_random_uuid(), 1, 2, '{0,2}'
  from generate_series(0, 9) n;
insert into pawl.stat (at, measure, label, source, flush, count)
  select pawl.now() - interval '15 days', 'sent', 'shop', gen_random_uuid(), 1, 1 from generate_series(1, 30);
insert into pawl.stat_hour (at, measure, label, count)
  select pawl.now() - interval '400 days' - n * interval '1 hour', 'sent', 'shop', 1 from generate_series(1, 5) n;
update pawl.stat_clock set summed_until = date_trunc('hour', pawl.now()) - interval '3 hours';
select pawl.stat_maintain(10) as deleted;
select pawl.stat_maintain() as deleted;
select pawl.stat_maintain() as deleted;
select measure, label, count, buckets from pawl.stat_hour;
select count(*) from pawl.stat;
-- Summed again it is the same, and a step of hours reads it.
update pawl.stat_clock set summed_until = date_trunc('hour', pawl.now()) - interval '3 hours';
select pawl.stat_maintain() as deleted;
select count, p50_us, p95_us from pawl.stat_list('wait', 'shop', pawl.now() - interval '5 hours', 3600);
select count, p50_us, p95_us from pawl.stat_list('wait', null, pawl.now() - interval '5 hours', 3600);
