-- replay.sql - a response to a repeated request is sent only when the first response is durable.
--
-- A row can be visible before a synchronous standby has it: its commit's wait was canceled, or the server restarted in
-- the middle of it. A transaction that only reads such a row commits without waiting, so its answer could be lost with
-- the primary. Every function that answers from a row of an earlier call therefore calls pawl.replay_barrier(). It
-- writes one small WAL record and takes a transaction id, so the commit of the transaction that reads waits for the
-- standby as any other commit does, and everything before it in the WAL has been replicated too.

-- Does nothing without synchronous standbys, or where synchronous_commit is off or local.
create or replace function pawl.replay_barrier ()
  returns void
  language plpgsql set search_path = pawl, pg_temp
as $$
begin
  if current_setting('synchronous_standby_names') <> ''
    and current_setting('synchronous_commit') not in ('off', 'local')
  then
    perform pg_logical_emit_message(true, 'pawl', '');
  end if;
end
$$;
