-- cron.sql - cron expressions: what is refused and why, Vixie's rules for days, and both changes of the clocks in three zones.
\set VERBOSITY terse
set timezone = 'UTC';
-- Refused.
select pawl.cron_times(null);
select pawl.cron_times('');
select pawl.cron_times('* * * *');
select pawl.cron_times('@reboot');
select pawl.cron_times('60 * * * *');
select pawl.cron_times('* 24 * * *');
select pawl.cron_times('* * 0 * *');
select pawl.cron_times('* * * 13 *');
select pawl.cron_times('* * * * 8');
select pawl.cron_times('* * * * mon-');
select pawl.cron_times('* * * * fri-mon');
select pawl.cron_times('5/15 * * * *');
select pawl.cron_times('*/0 * * * *');
select pawl.cron_times('*/60 * * * *');
select pawl.cron_times('1,,2 * * * *');
select pawl.cron_times('-1 * * * *');
select pawl.cron_times('30 2 30 2 *');
select pawl.cron_times('0 0 31 4,6,9,11 *');
select pawl.cron_times('0 0 * * *', 'Europe/Atlantis');
select pawl.cron_times('0 0 * * *', 'EST');
select pawl.cron_times('0 0 * * *', null);
select pawl.cron_times('0 0 * * *', p_count => 0);
select pawl.cron_times('0 0 * * *', p_after => 'infinity');
-- A day that is rare; both day fields, of which one is enough, or the only one that says something.
select array_agg(t) from pawl.cron_times('0 0 29 2 *', 'UTC', 3, '2026-01-01 00:00 UTC') t;
select array_agg(t::date) from pawl.cron_times('0 0 13 * fri', 'UTC', 5, '2026-01-01 00:00 UTC') t;
select array_agg(t::date) from pawl.cron_times('0 0 */13 * fri', 'UTC', 3, '2026-01-01 00:00 UTC') t;
select array_agg(t::date) from pawl.cron_times('0 0 1 jan,JUL *', 'UTC', 3, '2026-01-01 00:00 UTC') t;
select array_agg(t::date) from pawl.cron_times('0 0 * * sat-sun', 'UTC', 3, '2026-01-01 00:00 UTC') t;
select array_agg(t) from pawl.cron_times('@weekly', 'UTC', 2, '2026-01-01 00:00 UTC') t;
select array_agg(t) from pawl.cron_times('5-50/20 23 * * 7', 'UTC', 4, '2026-01-01 00:00 UTC') t;
-- Clocks that are set forward: a time that they skip comes at the first moment after the gap, once.
select t, to_char(t at time zone 'Europe/Berlin', 'DD HH24:MI') from pawl.cron_times('*/30 2 * * *', 'Europe/Berlin', 5, '2026-03-27 23:00 UTC') t;
select t, to_char(t at time zone 'Australia/Lord_Howe', 'DD HH24:MI') from pawl.cron_times('15 2 * * *', 'Australia/Lord_Howe', 3, '2026-10-02 23:00 UTC') t;
select t, to_char(t at time zone 'America/Santiago', 'DD HH24:MI') from pawl.cron_times('@daily', 'America/Santiago', 3, '2026-09-04 23:00 UTC') t;
-- Clocks that are set back: a time that they show twice comes the first time.
select t, to_char(t at time zone 'Europe/Berlin', 'DD HH24:MI') from pawl.cron_times('*/30 2 * * *', 'Europe/Berlin', 5, '2026-10-24 12:00 UTC') t;
select t, to_char(t at time zone 'Australia/Lord_Howe', 'DD HH24:MI') from pawl.cron_times('45 1 * * *', 'Australia/Lord_Howe', 3, '2026-04-03 23:00 UTC') t;
select t, to_char(t at time zone 'America/Santiago', 'DD HH24:MI') from pawl.cron_times('30 23 * * *', 'America/Santiago', 3, '2026-04-03 23:00 UTC') t;
-- An expression of every hour follows the clocks: each half hour that passes.
select zone, change, bool_and(t = change - interval '3 h' + n * interval '30 min') as is_even
from (values ('Europe/Berlin', timestamptz '2026-03-29 01:00 UTC'), ('Europe/Berlin', '2026-10-25 01:00 UTC'),
             ('Australia/Lord_Howe', '2026-04-04 15:00 UTC'), ('Australia/Lord_Howe', '2026-10-03 15:30 UTC'),
             ('America/Santiago', '2026-04-05 03:00 UTC'), ('America/Santiago', '2026-09-06 04:00 UTC')) c (zone, change)
cross join lateral pawl.cron_times('*/30 * * * *', zone, 12, change - interval '3 h') with ordinality t (t, n)
group by zone, change order by zone, change;
