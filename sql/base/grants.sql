-- grants.sql - who may do what; last of the definitions, so that every function above is closed before anyone sees it.
--   pawl_reader  looks: all tables but api_key
--   pawl_app     works: looks, and runs what a pod or an application runs
--   pawl_admin   decides: works, and runs what an operator runs
-- Roles belong to the whole server, not to this database, so they are made here and not in a migration: a restored
-- database meets a server without them. A user who may not create roles goes on without; `pawl doctor` tells, and after
-- someone has created them `select pawl.grant_roles()` catches up.
-- `alter default privileges in schema` cannot take from public what PostgreSQL gives to it everywhere; hence the revoke.
-- Errors: none of its own.

create or replace function pawl.grant_roles ()
  returns void
  language plpgsql set search_path = pawl, pg_temp
as $$
declare
  v_role  text;
  v_grant text;
begin
  foreach v_role in array array['pawl_reader', 'pawl_app', 'pawl_admin'] loop
    begin
      if not exists (select from pg_catalog.pg_roles where rolname = v_role) then
        execute format('create role %I nologin', v_role);
      end if;
    exception when duplicate_object or unique_violation or insufficient_privilege then
      null; -- another database's migration made it just now, or it is not for us to make
    end;
  end loop;

  for v_role, v_grant in
    select r.rolname, g.what
    from (values
      ('pawl_reader', 'usage on schema pawl'),
      ('pawl_reader', 'select on pawl.migration, pawl.definition, pawl.failed_operations'),
      ('pawl_reader', 'execute on function pawl.now, pawl.micros'),
      ('pawl_reader', 'select on pawl.domain, pawl.retry_policy, pawl.batch, pawl.command, pawl.ready, pawl.delayed,
                                 pawl.lease, pawl.tsq, pawl.outcome, pawl.audit, pawl.command_seq'),
      ('pawl_reader', 'execute on function pawl.batch_progress, pawl.command_status, pawl.command_number, pawl.iso,
                                           pawl.command_show, pawl.command_ids, pawl.command_list, pawl.command_count,
                                           pawl.backlog'),
      ('pawl_app',    'execute on function
                         pawl.send(text, text[], jsonb[], uuid[], bigint[], smallint[], smallint[], text[], text[], uuid, text),
                         pawl.send(text, text, jsonb, uuid, interval, integer, integer, text, text, uuid),
                         pawl.send(text, text, text, text, text, text, text, text, text, text)'),
      ('pawl_app',    'execute on function pawl.domain_find, pawl.domain_id, pawl.claim, pawl.extend, pawl.settle, pawl.bring_back, pawl.horizon,
                                           pawl.batch_new, pawl.batch_seal, pawl.uuid7, pawl.cancel, pawl.prune, pawl.prune_commands,
                                           pawl.prune_audit, pawl.wake'),
      ('pawl_admin',  'execute on function pawl.tsq_decide'),
      ('pawl_app',    'execute on function pawl.dead_letter_put, pawl.dead_letter_claim, pawl.dead_letter_hold,
                                           pawl.dead_letter_settle'),
      ('pawl_app',    'execute on function pawl.key_find'),
      ('pawl_app',    'execute on function pawl.answer_find, pawl.answer_keep'),
      ('pawl_admin',  'execute on function pawl.dead_letter_retry, pawl.dead_letter_delete'),
      ('pawl_admin',  'execute on function pawl.key_create, pawl.key_list, pawl.key_revoke'),
      ('pawl_admin',  'execute on function pawl.grant_roles'),
      ('pawl_reader', 'usage on schema wallet'),
      ('pawl_reader', 'select on wallet.asset, wallet.wallet, wallet.state, wallet.txn, wallet.entry, wallet.hold, wallet.seal,
                                 wallet.verified, wallet.txn_seq'),
      ('pawl_reader', 'execute on function wallet.look, wallet.assets_of, wallet.balance_at, wallet.entries, wallet.statement, wallet.transaction,
                                           wallet.expire_next, wallet.verify_plan, wallet.verify_step, wallet.verify'),
      ('pawl_app',    'execute on function wallet.open, wallet.post, wallet.expire, wallet.seal, wallet.verify_note'),
      ('pawl_admin',  'execute on function wallet.emit_to')
    ) as g (least, what)
    join (values ('pawl_reader', 1), ('pawl_app', 2), ('pawl_admin', 3)) as least (rolname, rank) on least.rolname = g.least
    join (values ('pawl_reader', 1), ('pawl_app', 2), ('pawl_admin', 3)) as r (rolname, rank) on r.rank >= least.rank
    join pg_catalog.pg_roles p on p.rolname = r.rolname
  loop
    execute format('grant %s to %I', v_grant, v_role);
  end loop;
  -- Only where schema pgmq is ours; see sql/pgmq/grants.sql.
  if to_regprocedure('pgmq._grant_roles()') is not null then
    execute 'select pgmq._grant_roles()';
  end if;
end
$$;

revoke all on all functions in schema pawl, wallet from public;
select pawl.grant_roles();
