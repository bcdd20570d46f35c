-- tally.sql - counts of processes: what one of them adds cannot make the sums fail, on which the sharing of tasks depends.

select pawl.tally_add('00000000-0000-4000-8000-000000000001', 1, '{handlers}', '{9223372036854775807}');
select pawl.tally_add('00000000-0000-4000-8000-000000000001', 1, '{null}', '{1}');
select pawl.tally_add('00000000-0000-4000-8000-000000000001', 1, '{handlers}', '{null}');
select pawl.tally_add('00000000-0000-4000-8000-000000000001', 1, '{handlers}', '{0}');
select pawl.tally_add('00000000-0000-4000-8000-000000000001', 1, '{handlers,handlers_failed}', '{5,2}');
select pawl.tally_add('00000000-0000-4000-8000-000000000001', 1, '{handlers,handlers_failed}', '{5,2}');
select * from pawl.tally_sum();
-- Rows that were stored before counts had a limit.
insert into pawl.tally select pawl.now(), 'handlers', 9223372036854775807, '00000000-0000-4000-8000-000000000002', n from generate_series(1, 2) n;
select * from pawl.tally_sum();
