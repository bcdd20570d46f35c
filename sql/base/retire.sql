-- retire.sql - drops functions of earlier versions that `create or replace` cannot replace: another argument type, argument name or
-- result type. First of the definitions. A function whose signature stays the same is never dropped, because functions and views
-- of users may depend on it. pawl.send and pawl.start of earlier versions are renamed where they do.
-- Errors: 2BP01 something of a user depends on a function that goes; the message names both.

do $$
declare
  v_gone record;
  v_user text;
begin
  for v_gone in
    select p.oid, p.oid::regprocedure::text as name,
           case when p.proname = 'start' then case when 'p_deadline' = any (p.proargnames) then 'start_unkeyed' else 'start_undated' end
                when 'p_order_key' = any (p.proargnames) then 'send_unkeyed' else 'send_unordered' end as earlier
    from pg_proc p
    join (values
      -- Signature; and an argument name or a result type that only the earlier version had, or ("!") an argument name that it had not,
      -- where that is the difference.
      ('pawl.drawing_oldest(integer)', null, null),
      ('pawl.domain_find(text)', null, 'smallint'),
      ('pawl.domain_id(text)', null, 'smallint'),
      ('pawl.batch_open(uuid,smallint,uuid[])', null, null),
      ('pawl.claim(smallint,integer,integer,bigint[],text[],text)', null, null),
      ('pawl.bring_back(integer,timestamptz,integer)', null, null),
      ('pawl.lease_tokens(bigint[],bigint[])', null, null),
      ('pawl.prune_check(integer,interval)', null, null),
      ('pawl.prune_check(text,integer,interval)', null, 'void'),
      ('pawl.records_from(bigint[],text)', '!is_open', null),
      ('pawl.process_set_aside(bigint[],text,text)', null, null),
      ('pawl.process_retry(uuid[],text[],text,text,text)', null, null),
      ('pawl.backlog()', 'drawn', null),
      ('pawl.backlog()', 'troubled', null),
      ('pawl.backlog()', '!oldest_domain', null),
      ('pawl.horizon(smallint,bigint[],text[])', null, null),
      ('pawl.retry_delay_ms(smallint,text,integer)', null, null),
      ('pawl.command_ids(smallint,text,text,bigint,integer)', null, null),
      ('pawl.command_ids(integer,text,text,bigint,integer)', null, null),
      ('pawl.pending_ids(integer,text,bigint,integer)', null, null),
      ('pawl.batch_look(bigint)', null, null),
      ('pawl.process_load(bigint[])', null, null),
      ('pawl.payloads_bytes(jsonb[])', null, null),
      ('pawl.cancel_one(bigint,text,text)', null, null),
      ('pawl.prune_audit(integer,interval,bigint)', null, null),
      ('pawl.send_items(boolean,text,text[],jsonb[],uuid[],bigint[],smallint[],smallint[],text[],text[],uuid,text)', null, null),
      ('pawl.send_put(integer,bigint,timestamptz,text,uuid[],text[],jsonb[],integer[],bigint[],smallint[],smallint[],text[],text[],uuid[])', null, null),
      ('pawl.send_items(boolean,text,text[],jsonb[],uuid[],bigint[],smallint[],smallint[],text[],text[],uuid,text,text[])', null, null),
      ('pawl.send_put(integer,bigint,timestamptz,text,uuid[],text[],jsonb[],integer[],bigint[],smallint[],smallint[],text[],text[],text[],uuid[])', null, null),
      ('pawl.send_items(boolean,text,text[],jsonb[],uuid[],bigint[],smallint[],smallint[],text[],text[],uuid,text,text[],boolean)', null, null),
      ('pawl.send_known(integer,bigint[])', null, null),
      ('pawl.start(text,jsonb,uuid,text,text)', null, null),
      ('pawl.process_load(bigint[],bigint)', null, null),
      ('pawl.retry_policy_set(text,text,bigint[])', null, null),
      ('pawl.send(text,text[],jsonb[],uuid[],bigint[],smallint[],smallint[],text[],text[],uuid,text)', null, null),
      ('pawl.send(text,text,jsonb,uuid,interval,integer,integer,text,text,uuid)', null, null),
      ('pawl.send(text,text,text,text,text,text,text,text,text,text)', null, null),
      ('pawl.send(text,text,jsonb,uuid,interval,integer,integer,text,text,uuid,text)', null, null),
      ('pawl.send(text,text,text,text,text,text,text,text,text,text,text)', null, null),
      ('pawl.start(text,jsonb,uuid,text,text,interval,text,timestamptz)', null, null),
      ('pawl.retry_policy_list(text)', '!order_key', null),
      ('pawl.reply_deliver(text,jsonb[])', null, 'void'),
      ('pawl.order_admit(integer,bigint[],text[],integer)', null, 'boolean[]'),
      ('pawl.order_open(integer,text[],bigint[])', null, 'text[]'),
      ('pawl.order_wait(integer[],text[],bigint[])', null, null),
      ('wallet.legs_run(wallet.legs,bigint,boolean,timestamptz,boolean)', null, null),
      ('wallet.legs_run(wallet.legs,bigint,boolean,timestamptz,boolean,uuid[])', null, null),
      ('wallet.post_run(text[],uuid[],text[],bigint[],text[],text[],uuid[],jsonb[],boolean,boolean)', null, 'record'),
      ('wallet.post_arrays(text[],uuid[],text[],bigint[],text[],text[],uuid[],jsonb[],boolean)', null, 'record'),
      ('wallet.post_nowait(text[],uuid[],text[],bigint[],text[],text[],uuid[],jsonb[])', null, 'record'),
      ('wallet.post_transfer(uuid,text,bigint,text,text,jsonb,boolean)', null, 'record'),
      ('wallet.post_transfers(uuid[],text[],bigint[],text[],text[],jsonb[],boolean)', null, 'record'),
      ('wallet.post_batch(text[],uuid[],text[],bigint[],text[],text[],uuid[],jsonb[],integer,boolean)', null, 'record'),
      ('wallet.post_replay(wallet.batch,text[],bigint[])', null, 'record'),
      ('wallet.post_remaining(wallet.batch,text[],text[],bigint[],timestamptz,integer)', null, 'record'),
      ('wallet.transfers_lock(uuid[],text[],bigint[],text[],text,jsonb[])', null, null),
      ('wallet.transfers_legs(bigint[],text[],text[],bigint[],text[],timestamptz)', null, null),
      ('wallet.transfers_write(timestamptz,uuid[],smallint,bigint[],jsonb[],bigint[],bigint[],bigint[],bigint[],bigint[])', null, null),
      ('pawl.drawing(integer)', null, null),
      ('pawl.drawing_bound()', null, null),
      ('pawl.drawing_oldest(integer,bigint)', null, null),
      ('pawl.tell(bigint[])', null, null),
      ('pawl.finish_untold(bigint[],text,text,jsonb,text,text)', null, null),
      ('pawl.bring_back(integer,timestamptz,integer,timestamptz)', null, null),
      ('pawl.horizon(integer,bigint[],text[])', null, null),
      ('pawl.decisions_told(uuid[],text[],text[],text,text,text,jsonb,text)', null, null),
      ('wallet.post_refer(text[],uuid[],text[],text[],text[],uuid[],jsonb[])', null, null),
      ('wallet.post_told(wallet.batch,text[],bigint[])', null, null),
      ('wallet.post_rest(wallet.batch,text[],text[],bigint[],timestamptz,integer)', null, null),
      ('wallet.post_together(text[],uuid[],text[],bigint[],text[],text[],uuid[],jsonb[],integer,boolean)', null, null),
      ('wallet.post_stretches(text[],uuid[],bigint[],uuid[])', null, null),
      ('wallet.look(text[],text[])', null, null),
      ('wallet.seal_horizon()', null, null),
      ('wallet.verify_note(bigint)', null, null),
      ('rating.verify_members(bigint)', '!changes', null),
      ('rating.question_get(bigint,bigint)', null, null),
      ('pawl.telegram_pace(bigint,bigint[],integer,integer,integer,integer)', 'p_horizon_ms', null),
      ('rating.turn_open(bigint,text,text,timestamptz,bigint[],text[],text[],boolean[],boolean[],bigint,boolean,bigint[],text[])', null, null),
      ('rating.match_read(bigint,text,bigint,bigint,integer,integer)', null, null),
      ('rating.match_write(bigint,text,integer,bigint,integer,integer,bigint[],bigint[],double precision[],double precision[],double precision[],double precision[],double precision[],double precision[])', null, null),
      ('rating.places(bigint,bigint[])', null, null),
      ('rating.usage_add(bigint,bigint)', null, null),
      ('rating.usage_add(bigint[],bigint[])', null, null),
      ('rating.matches_read(bigint[],text[],bigint[],bigint[],integer[],integer[])', null, null),
      ('rating.matches_write(bigint[],text[],integer[],bigint[],integer[],integer[],bigint[],bigint[],double precision[],double precision[],double precision[],double precision[],double precision[],double precision[])', null, null),
      ('rating.turns_open(bigint[],text[],text[],timestamptz[],bigint[],boolean[],integer[],bigint[],text[],text[],boolean[],boolean[],integer[],integer[],bigint[],text[])', null, null),
      ('rating.usernames_seen(timestamptz,bigint[],text[])', null, null),
      ('pawl.dead_letter_is_held(text,jsonb,text)', null, null),
      ('pawl.reserved_sent(text,text[],bigint[])', null, null),
      ('pawl.process_commands_sent(text,text[],bigint[])', null, null),
      ('pawl.process_commands_write(text,text[],bigint[])', null, null),
      ('pawl.name_check(text,text,integer)', null, null),
      ('pawl.signal_name_guard(text)', null, null),
      ('pawl.give_up(bigint[],text)', null, null),
      ('pawl.process_give_up(bigint[],text)', null, null),
      ('pawl.send_items(boolean,text,text[],jsonb[],uuid[],bigint[],smallint[],smallint[],text[],text[],uuid,text,text[],boolean,text[])', null, null),
      ('pawl.attached_due(integer,timestamptz)', null, null),
      ('pawl.process_deadlines_pass(integer,timestamptz)', null, 'integer'),
      ('pawl.lease_extend_locked(bigint[],bigint[],integer[],timestamptz)', null, null),
      ('pawl.attached_deadlines_check(text,text[],integer)', null, null),
      ('pawl.attached_deadlines_set(bigint[],uuid[],text[])', null, null),
      ('pawl.attached_deadline_refusal(text,integer,uuid,text)', null, null),
      ('pawl.process_deadlines_check(text,text[],integer)', null, null),
      ('pawl.process_hold(bigint[])', null, null),
      ('pawl.write_leases(bigint[],bigint[])', null, null),
      ('pawl.process_candidates(integer,text,bigint,integer)', null, null),
      ('pawl.process_respond(bigint[],text[],text[],jsonb[],text,boolean)', '!first', null)
    ) as r (signature, argument, result) on p.oid = to_regprocedure(r.signature)
    where (r.argument is null or r.argument = any (p.proargnames) or ltrim(r.argument, '!') <> all (p.proargnames) and r.argument ~ '^!')
      and (r.result is null or p.prorettype = r.result::regtype)
  loop
    begin
      execute format('drop function %s', v_gone.name);
    exception when dependent_objects_still_exist then
      -- Its body calls the present functions by name, so what is bound to it goes on.
      if v_gone.name like 'pawl.send(%' or v_gone.name like 'pawl.start(%' then
        execute format('alter function %s rename to %s', v_gone.name, v_gone.earlier);
        continue;
      end if;
      select string_agg(distinct pg_describe_object(d.classid, d.objid, 0), ', ') into v_user
      from pg_depend d where d.refclassid = 'pg_proc'::regclass and d.refobjid = v_gone.oid;
      raise exception 'function % was replaced or renamed, and % depends on it: drop that, migrate, then create it again',
        v_gone.name, v_user using errcode = '2BP01';
    end;
  end loop;
end
$$;
