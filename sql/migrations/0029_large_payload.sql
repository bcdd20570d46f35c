-- 0029_large_payload.sql - rows of queued commands say whether the payload is large.
--
-- A claim reads the lengths of payloads before it leases commands. extras is true now also for commands whose payload has 1000 bytes or
-- more as text (command.payload_bytes is not null), so that a claim need not read the others twice. A command that is sent
-- between this migration and the new functions (within a second) is not marked, and counts as small in the claim that takes it.

lock table pawl.ready, pawl.delayed, pawl.lease in access exclusive mode;
update pawl.ready r set extras = true
where not r.extras and exists (select from pawl.command c where c.id = r.id and c.payload_bytes is not null);
update pawl.delayed d set extras = true
where not d.extras and exists (select from pawl.command c where c.id = d.id and c.payload_bytes is not null);
update pawl.lease l set extras = true
where not l.extras and exists (select from pawl.command c where c.id = l.id and c.payload_bytes is not null);
