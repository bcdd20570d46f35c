-- 0007_domain.sql - a domain's number follows from its name, so that a sender in an open transaction keeps no other sender waiting.
--
-- The number of a new domain was the next value of an identity column, known to others only after the commit, and its name was
-- unique: every other sender of the domain waited for that commit. Now any number of transactions may write the same (id, name)
-- at once, and no constraint makes one wait for another. Domains that exist keep their numbers.

-- Rarely written: one row per domain, or a few if several transactions sent to a new domain at the same time.
create table pawl.domain_name (
  row bigint generated always as identity primary key,
  id integer not null,
  name text not null,
  constraint domain_name_check check (name ~ '^[A-Za-z0-9][A-Za-z0-9_.:-]{0,62}$')
);
insert into pawl.domain_name (id, name) select d.id, d.name from pawl.domain d order by d.id;
create index domain_name_name on pawl.domain_name (name, id);
create index domain_name_id on pawl.domain_name (id, name);

alter table pawl.retry_policy drop constraint retry_policy_domain_id_fkey;
drop table pawl.domain;

alter table pawl.retry_policy alter column domain_id type integer;
alter table pawl.command alter column domain_id type integer;
alter table pawl.ready alter column domain_id type integer;
alter table pawl.delayed alter column domain_id type integer;
alter table pawl.lease alter column domain_id type integer;
alter table pawl.tsq alter column domain_id type integer;
alter table pawl.outcome alter column domain_id type integer;
alter table pawl.audit alter column domain_id type integer;

-- One row per domain, for reading.
create view pawl.domain as
  select distinct on (d.id) d.id, d.name from pawl.domain_name d order by d.id, d.row;
