-- audit.sql - what happened to each command, and by whom.
--
-- Invariant: each event is shown once. SENT follows from the command's row; RECEIVED from the lease while it lasts, then from the outcome
-- of the settle that ended it; the end follows from that outcome. All other events are rows of pawl.event, and so is RECEIVED when the
-- lease ended otherwise: a statement that deletes a lease without writing its started_at and worker to pawl.outcome writes the event.
-- When retention deletes a command and its outcome, it writes what the audit needs of them to pawl.kept_audit. What is older than the
-- audit's retention is not shown, wherever it is.
--
-- Ordered by (at, step, place): step and place decide between events of the same microsecond. By id it is read by index; by command_id
-- too, but for pawl.event and pawl.kept_audit, which are scanned.
create or replace view pawl.audit as
  select a.* from (
    select c.id, c.created_at as at, c.domain_id, 0::smallint as attempt, 'SENT'::text as event, c.command_id, c.sender as actor,
           null::jsonb as details, 0 as step, null::tid as place
    from pawl.command c
    union all
    select e.id, e.at, e.domain_id, e.attempt, e.event,
           coalesce(e.command_id, c.command_id, (select k.command_id from pawl.kept_audit k where k.id = e.id limit 1)), e.actor, e.details,
           case when e.event = 'OPERATOR_CANCEL' then 3
                when e.event in ('COMPLETED', 'FAILED', 'CANCELED', 'OPERATOR_COMPLETE') then 4
                else 1 end, e.ctid
    from pawl.event e left join pawl.command c on c.id = e.id
    union all
    select l.id, l.started_at, l.domain_id, l.attempt, 'RECEIVED', c.command_id, l.worker, null, 2, null
    from pawl.lease l join pawl.command c on c.id = l.id
    union all
    select o.id, o.started_at, o.domain_id, o.attempts, 'RECEIVED', c.command_id, o.worker, null, 2, null
    from pawl.outcome o join pawl.command c on c.id = o.id where o.started_at is not null
    union all
    select o.id, o.ended_at, o.domain_id, o.attempts, o.status, c.command_id, null,
           case when o.error is not null then jsonb_build_object('error', o.error) end, 4, null
    from pawl.outcome o join pawl.command c on c.id = o.id where o.started_at is not null
    union all
    select k.id, k.created_at, k.domain_id, 0::smallint, 'SENT', k.command_id, k.sender, null, 0, null
    from pawl.kept_audit k
    union all
    select k.id, k.started_at, k.domain_id, k.attempts, 'RECEIVED', k.command_id, k.worker, null, 2, null
    from pawl.kept_audit k where k.started_at is not null
    union all
    select k.id, k.ended_at, k.domain_id, k.attempts, k.status, k.command_id, null,
           case when k.error is not null then jsonb_build_object('error', k.error) end, 4, null
    from pawl.kept_audit k where k.started_at is not null
  ) a
  -- A start in the future was set by a clock that ran ahead: nothing is hidden until retention sets it anew.
  where a.at >= (select case when s.at <= pawl.now() then s.at else '-infinity' end from pawl.audit_start s);
