-- 0008_payload_bytes.sql - how long a payload is as text, measured once when it is sent.
--
-- A payload of a few bytes can be more than a gigabyte as text ([1e131071, ...]), and a claim that met one failed, again and again.
-- Null: below 1000 bytes. Commands that have not ended are measured now; one that cannot be is given the largest length, so that it
-- is claimed alone, fails, and is moved to the troubleshooting queue (pawl.claim_isolate).

alter table pawl.command add column payload_bytes integer;

do $$
declare
  v_id bigint;
  v_bytes integer;
begin
  for v_id in
    select c.id from pawl.command c where not exists (select from pawl.outcome o where o.id = c.id)
  loop
    begin
      select octet_length(c.payload::text) into v_bytes from pawl.command c where c.id = v_id;
    exception when others then
      v_bytes := 2147483647;
    end;
    update pawl.command c set payload_bytes = v_bytes where c.id = v_id and v_bytes >= 1000;
  end loop;
end
$$;
