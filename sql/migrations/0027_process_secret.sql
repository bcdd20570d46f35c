-- 0027_process_secret.sql - a random value per process, from which the ids of what its steps send and post are derived. They could be computed
-- from the process's id before, so that another sender of that domain could take one before the step did.
--
-- Processes that exist keep the ids they have used: their value is null.

alter table pawl.process add column secret uuid;
alter table pawl.process alter column secret set default gen_random_uuid();
