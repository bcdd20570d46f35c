-- 0037_process_step_number.sql - the order of a process's records. Times do not give it: a clock may be set back, and a step's begin is estimated by its pod.

create sequence pawl.step_seq;
alter table pawl.process_step add column number bigint not null default 0; -- 0: recorded before this migration; ended_at orders these
alter table pawl.process_step alter column number set default nextval('pawl.step_seq');
