-- 0041_process_deadline.sql - deadlines that the start of a process gives, and when they are to be decided about.
--
-- deadline_due changes once, so updates of pawl.process before it stay heap-only.

alter table pawl.process
  add column deadline_given text, -- by the start, see pawl.deadline_read; null: the deadline is that of the definition
  add column deadline_due timestamptz; -- when its deadline is decided about; null: it has none, or it was

update pawl.process p set deadline_due = p.deadline
where p.deadline is not null and not exists (select from pawl.outcome o where o.id = p.id);

create index process_deadline_due on pawl.process (deadline_due) where deadline_due is not null;
