-- 0033_process_orphan.sql - notes about what a process has sent name each command or child, so that what its compensations send is not canceled.
--
--     process_orphan  one row per command or child that was open when its process ended or began to be compensated; deleted when it is canceled

create table pawl.process_orphan_note (
  sent_id bigint primary key, -- of the command or child
  id bigint not null, -- of the process
  compensates boolean not null, -- what the child has done
  tries integer not null default 0 -- calls in which another transaction held it
);

insert into pawl.process_orphan_note (sent_id, id, compensates)
select s.sent_id, o.id, o.compensates
from pawl.process_orphan o
join pawl.process_sent s on s.id = o.id
join pawl.command c on c.id = s.sent_id
where not exists (select from pawl.outcome e where e.id = s.sent_id)
  and (c.reply_to not like 'response:%/$reply.~%' or exists (select from pawl.outcome e where e.id = o.id));

drop table pawl.process_orphan;
alter table pawl.process_orphan_note rename to process_orphan;
alter index pawl.process_orphan_note_pkey rename to process_orphan_pkey;
create index process_orphan_next on pawl.process_orphan (tries, sent_id);
