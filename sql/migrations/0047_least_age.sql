-- 0047_least_age.sql - the least age of what retention deletes; pawl.prune_check reads it, pawl.least_age_set writes it. The defaults are the least
-- values of the settings PAWL_KEEP_..._DAYS and PAWL_BATCH_EXPIRY.

create table pawl.least_age (
  what text primary key,
  age interval not null check (age between interval '0' and interval '36500 days')
);
insert into pawl.least_age (what, age) values
  ('commands', '1 day'), ('keys', '1 day'), ('audit', '1 day'), ('replies', '1 day'), ('dead letters', '1 day'), ('batches', '1 s');
