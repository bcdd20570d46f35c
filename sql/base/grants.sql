-- grants.sql - every right in schemas pawl, wallet and rating, in one table; last of the definitions, so that every
-- function above is closed before a role sees it. Schema pgmq has its own: sql/pgmq/grants.sql.
--
--   pawl_reader     reads states, numbers and times: no payloads, results, states or metadata of commands, processes
--                   and dead letters, no tokens
--   pawl_sender     sends commands, cancels them, starts and signals processes, keeps dead letters
--   pawl_worker     claims, extends, settles; runs processes
--   pawl_handler    calls functions of applications and settles with a token; for logins whose sessions run code of
--                   others
--   pawl_poster     moves money between wallets: neither creates it, nor sets floors, freezes or unfreezes
--   pawl_treasurer  is a poster that may do all of that: see wallet.treasury()
--   pawl_monitor    runs the periodic tasks: retention, expiry, seals, dead letters
--   pawl_app        reader, sender, worker and poster together; looks up API keys, reads payloads, registers matches
--   pawl_admin      everything an operator does, and all of the above
--
-- A function without a row is for the owner only. Rows name all overloads of a function. A new function gets a row here
-- and one in test/integration/rights_test.py, which calls every function as every role. No role can read lease tokens:
-- a claim returns them to the worker that claimed, and only a caller that has one settles. Roles belong to the whole
-- server, not to this database, so they are created here and not in a migration: a restored database meets a server
-- without them. A user without the right to create roles goes on without; `pawl doctor` reports it, and `select
-- pawl.grant_roles()` catches up once they exist. Containment is by grants, not by membership, because the owner of the
-- functions may grant them without any right over the roles. `alter default privileges in schema` cannot take from
-- public what PostgreSQL gives to it everywhere; hence the revoke. Errors: none of its own.

-- Who may call what; roles without their prefix, '*' is all of them.
create or replace function pawl.grant_functions ()
  returns table (name text, roles text)
  language sql immutable
as $$
  values
    ('pawl.now',                'reader sender worker poster monitor'),
    ('pawl.micros',             'reader sender worker poster monitor'),
    ('pawl.iso',                'reader sender worker poster monitor'),
    ('pawl.grant_functions',    'reader'),
    ('pawl.grant_contains',     'reader'),
    ('pawl.uuid7',              'sender poster'),
    -- commands
    ('pawl.send',               'sender'),
    ('pawl.send_items',         'sender'),
    ('pawl.key',                'sender poster'),
    ('pawl.batch_new',          'sender'),
    ('pawl.batch_seal',         'sender'),
    ('pawl.batch_progress',     'reader sender'),
    ('pawl.batch_page',         'reader'),
    ('pawl.cancel',             'sender'),
    ('pawl.command_cancel',     'sender'),
    ('pawl.wake',               'sender worker'),
    ('pawl.is_name',            'sender worker'),
    ('pawl.name_check',         'sender worker'),
    ('pawl.domain_find',        'sender worker'),
    ('pawl.decided_position',   'worker'),
    ('pawl.claimers_ready',     'worker'),
    ('pawl.claim',              'worker'),
    ('pawl.claim_isolate',      'worker'),
    ('pawl.handler_is_safe',    'handler'),
    ('pawl.handler_call',       'handler'),
    ('pawl.handler_call_shared', 'handler'),
    ('pawl.has_work',           'worker'),
    ('pawl.domain_pause',       'admin'),
    ('pawl.domain_resume',      'admin'),
    ('pawl.domain_limit_set',   'admin'),
    ('pawl.domain_limit_remove', 'admin'),
    ('pawl.domain_limits',      'reader'),
    ('pawl.domain_held',        'reader'),
    ('pawl.domain_pauses',      'reader worker'),
    ('pawl.extend',             'worker'),
    ('pawl.report_progress',    'worker'),
    ('pawl.release',            'worker'),
    ('pawl.postpone',           'worker'),
    ('pawl.settle',             'worker'),
    ('pawl.settle_items',       'handler'),
    ('pawl.requeue_due',        'worker monitor'),
    ('pawl.attached_is_due',    'worker monitor'),
    ('pawl.attached_due',       'worker monitor'),
    ('pawl.command_status',     'reader'),
    ('pawl.decided_status',     'sender'),
    ('pawl.command_number',     'reader'),
    ('pawl.commands_find',      'reader'),
    ('pawl.page_check',         'reader'),
    ('pawl.command_ids',        'reader'),
    ('pawl.pending_ids',        'reader'),
    ('pawl.pending_sources',    'reader'),
    ('pawl.queued_since',       'reader'),
    ('pawl.ready_heads',        'reader'),
    ('pawl.command_list',       'reader'),
    ('pawl.command_page',       'reader'),
    ('pawl.command_count',      'reader'),
    ('pawl.backlog',            'reader'),
    ('pawl.rows_about',         'reader'),
    ('pawl.domain_list',        'reader'),
    ('pawl.backlog_domains',    'reader'),
    ('pawl.command_show',       'app'),
    ('pawl.commands_show',      'app'),
    ('pawl.commands_fit',       'reader'),
    ('pawl.outcomes_find',      'reader'),
    ('pawl.outcomes_ended',     'reader'),
    ('pawl.outcome_get',        'app'),
    ('pawl.tsq_decide',         'admin'),
    ('pawl.bulk_start',         'admin'),
    ('pawl.bulk_step',          'monitor'),
    ('pawl.bulk_skip',          'monitor'),
    ('pawl.bulk_count',         'reader'),
    ('pawl.bulk_show',          'reader'),
    ('pawl.command_decide',     'admin'),
    ('pawl.reply_command_id',   'reader sender worker'),
    ('pawl.reply_retry',        'monitor'),
    ('pawl.batch_expire',       'monitor'),
    ('pawl.batch_idle_s',       'reader'),
    ('pawl.reply_queues_bound', 'monitor'),
    ('pawl.reply_queue_list',   'app'),
    ('pawl.reply_read',         'app'),
    ('pawl.reply_ack',          'app'),
    ('pawl.reply_queues_percent', 'reader'),
    ('pawl.prune_replies',      'monitor'),
    ('pawl.prune_dead_letters', 'monitor'),
    ('pawl.retry_policy_set',   'admin'),
    ('pawl.retry_policy_list',  'reader'),
    ('pawl.on_complete_retry',  'monitor'),
    ('pawl.retention_ready',    'monitor'),
    ('pawl.retain',             'monitor'),
    ('pawl.maintain',           'monitor'),
    ('pawl.retention_jump_s',   'reader'),
    ('pawl.prune',              'monitor'),
    ('pawl.prune_commands',     'monitor'),
    ('pawl.prune_keys',         'monitor'),
    ('pawl.prune_audit',        'monitor'),
    ('pawl.least_age_set',      'admin'),
    -- processes
    ('pawl.start',              'sender'),
    ('pawl.start_many',         'sender'),
    ('pawl.signal',             'sender'),
    ('pawl.signal_one',         'sender'),
    ('pawl.process_signal',     'sender'),
    ('pawl.process_domains',    'sender'),
    ('pawl.process_load',       'worker'),
    ('pawl.process_counted',    'worker'),
    ('pawl.process_write',      'handler'),
    ('pawl.process_list',       'reader'),
    ('pawl.process_show',       'app'),
    ('pawl.process_bind',       'worker'),
    ('pawl.process_orphans_cancel', 'worker'),
    ('pawl.process_type_note',  'reader sender'),
    ('pawl.process_define',     'admin'),
    ('pawl.process_retry',      'admin'),
    ('pawl.process_compensate', 'sender'),
    ('pawl.process_move',       'admin'),
    -- schedules
    ('pawl.cron_times',         'reader'),
    ('pawl.schedule_list',      'reader'),
    ('pawl.schedule_next',      'reader'),
    ('pawl.schedules_failing',  'reader'),
    ('pawl.schedules_due_ms',   'reader'),
    ('pawl.schedule_payload',   'app'),
    ('pawl.schedule_create',    'admin'),
    ('pawl.schedule_pause',     'admin'),
    ('pawl.schedule_resume',    'admin'),
    ('pawl.schedule_run',       'admin'),
    ('pawl.schedule_delete',    'admin'),
    ('pawl.schedules_fire',     'monitor'),
    -- the bot
    ('pawl.telegram_lease',     'monitor'),
    ('pawl.telegram_name',      'monitor'),
    ('pawl.telegram_prune',     'monitor'),
    ('pawl.bot_letter_keep', 'monitor'),
    ('pawl.bot_letter_end', 'monitor'),
    ('pawl.bot_letter_done', 'monitor'),
    ('pawl.telegram_waiting',   'reader'),
    ('pawl.telegram_put',       'sender'),
    ('pawl.telegram_moved',     'worker'),
    ('pawl.telegram_delivered', 'worker'),
    ('pawl.telegram_reference', 'worker'),
    ('pawl.telegram_message',   'worker'),
    ('pawl.telegram_file',      'worker'),
    ('pawl.telegram_about',     'worker'),
    ('pawl.telegram_pace',      'worker'),
    ('pawl.telegram_pace_answer', 'worker'),
    ('pawl.telegram_pace_message', 'worker'),
    ('pawl.telegram_superseded', 'worker'),
    ('pawl.telegram_limited',   'worker'),
    ('pawl.telegram_member_get', 'worker'),
    ('pawl.telegram_member_put', 'worker'),
    ('pawl.telegram_member_forget', 'worker'),
    ('pawl.telegram_ask_limited', 'worker'),
    -- dead letters
    ('pawl.dead_letter_put',    'sender monitor'),
    ('pawl.dead_letter_put_own', 'monitor'),
    ('pawl.dead_letter_claim',  'monitor'),
    ('pawl.dead_letter_hold',   'monitor'),
    ('pawl.dead_letter_settle', 'monitor'),
    ('pawl.dead_letter_forward', 'monitor'),
    ('pawl.dead_letter_route',  'admin'),
    ('pawl.dead_letter_retried_by', 'reader'),
    ('pawl.dead_letter_data',   'app monitor'),
    ('pawl.dead_letter_shown',  'reader'),
    ('pawl.json_shown',         'reader'),
    ('pawl.json_bytes',         'reader'),
    ('pawl.json_is_large',      'reader'),
    ('pawl.json_max',           'reader'),
    ('pawl.dead_letter_retry',  'admin'),
    ('pawl.dead_letter_delete', 'admin'),
    -- periodic tasks
    ('pawl.task_claim',         'monitor'),
    ('pawl.task_release',       'monitor'),
    ('pawl.stat_add',           'worker monitor'),
    ('pawl.stat_maintain',      'monitor'),
    ('pawl.stat_list',          'reader'),
    ('pawl.command_times',      'worker monitor'),
    ('pawl.tally_add',          'worker monitor'),
    ('pawl.tally_sum',          'reader'),
    -- API keys
    ('pawl.key_find',           'app'),
    ('pawl.key_used',           'app'),
    ('pawl.bound_command',      'reader'),
    ('pawl.bound_batch',        'reader'),
    ('pawl.bound_domains',      'reader'),
    ('pawl.bound_domain',       'reader'),
    ('pawl.bound_text',         'reader'),
    ('pawl.command_page_bound', 'reader'),
    ('pawl.process_list_bound', 'reader'),
    ('wallet.bound_txn',        'reader'),
    ('wallet.bound_owner',      'reader'),
    ('pawl.key_create',         'admin'),
    ('pawl.key_list',           'admin'),
    ('pawl.key_revoke',         'admin'),
    -- answers kept for Idempotency-Key
    ('pawl.answer_find',        'admin'),
    ('pawl.answer_keep',        'admin'),
    -- wallets
    ('wallet.get',              'reader poster'),
    ('wallet.assets_of',        'reader poster'),
    ('wallet.balance_at',       'reader poster'),
    ('wallet.entries',          'reader poster'),
    ('wallet.wallet_page',      'reader poster'),
    ('wallet.hold_page',        'reader poster'),
    ('wallet.transaction_page', 'reader poster'),
    ('wallet.statement',        'reader poster'),
    ('wallet.transaction',      'reader poster'),
    ('wallet.open',             'poster'),
    ('wallet.post',             'poster'),
    ('wallet.post_transfer',    'poster'),
    ('wallet.treasury',         'treasurer'),
    ('wallet.emit_to',          'admin'),
    ('wallet.clock_ahead',      'reader'),
    ('wallet.expire',           'monitor'),
    ('wallet.expire_from',      'monitor'),
    ('wallet.seal',             'monitor'),
    ('wallet.verify',           'reader'),
    ('wallet.verify_plan',      'reader'),
    ('wallet.verify_step',      'reader'),
    ('wallet.verify_record',    'admin'),
    -- ratings
    ('rating.group_get',        'reader'),
    ('rating.group_list',       'reader'),
    ('rating.board',            'reader'),
    ('rating.namesakes',        'reader'),
    ('rating.places',           'reader'),
    ('rating.stats',            'reader'),
    ('rating.matches',          'reader'),
    ('rating.player_history',   'reader'),
    ('rating.head_to_head',     'reader'),
    ('rating.chart_points',     'reader'),
    ('rating.match_get',        'reader'),
    ('rating.replay_chunk',     'reader'),
    ('rating.verify_members',   'reader'),
    ('rating.players_named',    'reader'),
    ('rating.players_get',      'reader'),
    ('rating.players_of_users', 'reader'),
    ('rating.usage_is_left',    'reader'),
    ('rating.timezone_find',    'reader'),
    ('rating.group_timezone',   'reader'),
    ('rating.group_times',      'reader'),
    ('rating.group_open',       'app'),
    ('rating.group_set',        'app'),
    ('rating.group_move',       'app'),
    ('rating.players_seen',     'app'),
    ('rating.usage_add',        'app'),
    ('rating.turns_open',       'app'),
    ('rating.question_put',     'app'),
    ('rating.question_take',    'app'),
    ('rating.prune',            'monitor'),
    ('rating.matches_read',     'app'),
    ('rating.matches_write',    'app'),
    ('rating.undo_find',        'app'),
    ('rating.undo_versions',    'app'),
    ('rating.undo_begin',       'app'),
    ('rating.undo_end',         'app'),
    ('rating.matches_after',    'app'),
    ('rating.history_rewrite',  'app')
$$;

-- Who may read which tables and sequences; hidden columns are readable by no role.
create or replace function pawl.grant_tables ()
  returns table (name text, hidden text, roles text)
  language sql immutable
as $$
  values
    ('pawl.migration',         '',                     'reader sender worker poster monitor'),
    ('pawl.definition',        '',                     'reader sender worker poster monitor'),
    ('pawl.failed_operations', 'operation_data lease', 'reader'),
    ('pawl.dead_letter_route', '',                     'reader'),
    ('pawl.domain',            '',                     'reader worker'),
    ('pawl.domain_name',       '',                     'reader worker'),
    ('pawl.retry_policy',      '',                     'reader'),
    ('pawl.reply_queue',       '',                     'reader'),
    ('pawl.reply_queue_bound', '',                     'reader'),
    ('pawl.batch',             'on_complete',          'reader'),
    ('pawl.command',           'payload',              'reader worker'),
    ('pawl.command_seq',       '',                     'reader'),
    ('pawl.ready',             '',                     'reader worker'),
    ('pawl.parked',            '',                     'reader worker'),
    ('pawl.gate',              '',                     'reader'),
    ('pawl.pause',             '',                     'reader worker'),
    ('pawl.gate_limit',        '',                     'reader'),
    ('pawl.gate_use',          '',                     'reader'),
    ('pawl.line',              '',                     'reader'),
    ('pawl.slot',              'token',                'reader'),
    ('pawl.order_turn',        '',                     'reader worker'),
    ('pawl.order_handover',    '',                     'reader worker'),
    ('pawl.delayed',           '',                     'reader worker'),
    ('pawl.lease',             'token',                'reader worker'),
    ('pawl.lost_attempt',      '',                     'reader'),
    ('pawl.progress',          '',                     'reader'),
    ('pawl.tsq',               '',                     'reader'),
    ('pawl.outcome',           'token result',         'reader'),
    ('pawl.kept_key',          'payload_hash',         'reader'),
    ('pawl.event',             '',                     'reader'),
    ('pawl.kept_audit',        '',                     'reader'),
    ('pawl.control_event',     '',                     'reader'),
    ('pawl.bulk_operation',    'argument',             'reader'),
    ('pawl.bulk_chunk',        '',                     'reader'),
    ('pawl.bulk_locked',       '',                     'reader'),
    ('pawl.audit_start',       '',                     'reader'),
    ('pawl.audit',             '',                     'reader'),
    ('pawl.task',              '',                     'reader'),
    ('pawl.least_age',         '',                     'reader'),
    ('pawl.tally',             '',                     'reader'),
    ('pawl.stat',              '',                     'reader'),
    ('pawl.stat_hour',         '',                     'reader'),
    ('pawl.stat_clock',        '',                     'reader'),
    ('pawl.process_definition', 'source',              'reader'),
    ('pawl.process_definition', '',                    'worker'),
    ('pawl.process_definition_step', 'until',          'reader'),
    ('pawl.process',           'state input secret',   'reader'),
    ('pawl.process_step',      'input_hash result',    'reader'),
    ('pawl.process_response',  'payload',              'reader'),
    ('pawl.kept_response',     'payload_hash',         'reader'),
    ('pawl.process_sent',      '',                     'reader'),
    ('pawl.process_orphan',    '',                     'reader worker'),
    ('pawl.response_seq',      '',                     'reader'),
    ('pawl.step_seq',          '',                     'reader'),
    ('pawl.schedule',          'payload salt',         'reader'),
    ('pawl.schedule_state',    '',                     'reader'),
    ('wallet.asset',           '',                     'reader'),
    ('wallet.wallet',          '',                     'reader'),
    ('wallet.state',           '',                     'reader'),
    ('wallet.txn',             '',                     'reader'),
    ('wallet.txn_seq',         '',                     'reader'),
    ('wallet.entry',           '',                     'reader'),
    ('wallet.hold',            '',                     'reader'),
    ('wallet.holds',           '',                     'reader'),
    ('wallet.seal',            '',                     'reader'),
    ('wallet.verified',        '',                     'reader'),
    ('rating.rules',           '',                     'reader'),
    ('rating.groups',          '',                     'reader'),
    ('rating.player',          '',                     'reader'),
    ('rating.username',        '',                     'reader'),
    ('rating.member',          '',                     'reader'),
    ('rating.match',           '',                     'reader'),
    ('rating.history',         '',                     'reader'),
    ('rating.undo',            '',                     'reader'),
    ('rating.group_alias',     '',                     'reader'),
    ('rating.question',        'key',                  'reader')
$$;

-- Every role with the roles whose rights it has, itself among them.
create or replace function pawl.grant_contains ()
  returns table (role text, contains text)
  language sql immutable
as $$
  with recursive direct (role, contains) as (
    values ('reader', 'reader'), ('sender', 'sender'), ('worker', 'worker'), ('worker', 'handler'),
      ('handler', 'handler'), ('poster', 'poster'),
           ('treasurer', 'treasurer'), ('treasurer', 'poster'),
           ('monitor', 'monitor'), ('monitor', 'reader'),
           ('app', 'app'), ('app', 'reader'), ('app', 'sender'), ('app', 'worker'), ('app', 'poster'),
           ('admin', 'admin'), ('admin', 'app'), ('admin', 'treasurer'), ('admin', 'monitor')
  ), closed as (
    select d.role, d.contains from direct d
    union
    select c.role, d.contains from closed c join direct d on d.role = c.contains
  )
  select 'pawl_' || c.role, c.contains from closed c
$$;

-- One statement per role and kind of right; what is not in the tables above is taken away.
create or replace function pawl.grant_statements ()
  returns setof text
  language sql stable set search_path = pawl, pg_temp
as $$
  with role as materialized (
    select c.role, c.contains from pawl.grant_contains() c join pg_catalog.pg_roles r on r.rolname = c.role
  ), function as materialized (
    select distinct r.role, n.nspname, p.oid::regprocedure as name
    from pawl.grant_functions() g
    join role r on r.contains = any (string_to_array(g.roles, ' '))
    join pg_catalog.pg_namespace n on n.nspname = split_part(g.name, '.', 1)
    join pg_catalog.pg_proc p on p.pronamespace = n.oid and p.proname = split_part(g.name, '.', 2)
  ), relation as materialized (
    select distinct r.role, n.nspname, c.oid::regclass as name, c.relkind, a.columns, a.is_whole
    from pawl.grant_tables() g
    join role r on r.contains = any (string_to_array(g.roles, ' '))
    join pg_catalog.pg_namespace n on n.nspname = split_part(g.name, '.', 1)
    join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = split_part(g.name, '.', 2)
    cross join lateral (
      select
        string_agg(quote_ident(a.attname), ', ' order by a.attnum)
          filter (where a.attname <> all (h.names)) as columns,
             cardinality(h.names) = 0 as is_whole
      from (select string_to_array(g.hidden, ' ') as names) h, pg_catalog.pg_attribute a
      where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      group by h.names
    ) a
  )
  select format('revoke all on all tables in schema %I from %I', s.name, r.role)
  from (select distinct role from role) r, (values ('pawl'), ('wallet'), ('rating')) s (name)
  union all
  select format('revoke all on all sequences in schema %I from %I', s.name, r.role)
  from (select distinct role from role) r, (values ('pawl'), ('wallet'), ('rating')) s (name)
  union all
  select format('revoke all on all functions in schema %I from %I', s.name, r.role)
  from (select distinct role from role) r, (values ('pawl'), ('wallet'), ('rating')) s (name)
  union all
  select format('grant usage on schema %I to %I', u.nspname, u.role)
  from (select role, nspname from function union select role, nspname from relation) u
  union all
  select format('grant execute on function %s to %I', string_agg(f.name::text, ', '), f.role)
  from function f group by f.role
  union all
  select format('grant select on %s to %I', string_agg(t.name::text, ', '), t.role)
  from relation t where t.is_whole and t.relkind <> 'S' group by t.role
  union all
  select format('grant select (%s) on %s to %I', t.columns, t.name, t.role) from relation t where not t.is_whole
  union all
  select format('grant select on sequence %s to %I', string_agg(t.name::text, ', '), t.role)
  from relation t where t.relkind = 'S' group by t.role
$$;

create or replace function pawl.grant_roles ()
  returns void
  language plpgsql set search_path = pawl, pg_temp
as $$
declare
  v_role text;
  v_sql  text;
begin
  for v_role in select distinct c.role from pawl.grant_contains() c order by c.role loop
    begin
      if not exists (select from pg_catalog.pg_roles where rolname = v_role) then
        execute format('create role %I nologin', v_role);
      end if;
    exception when duplicate_object or unique_violation or insufficient_privilege then
      null; -- another database's migration created it just now, or this user has no right to
    end;
  end loop;
  for v_sql in select s from pawl.grant_statements() s loop
    execute v_sql;
  end loop;
  -- Only where schema pgmq is ours; see sql/pgmq/grants.sql.
  if to_regprocedure('pgmq._grant_roles()') is not null then
    execute 'select pgmq._grant_roles()';
  end if;
end
$$;

revoke all on all functions in schema pawl, wallet, rating from public;
select pawl.grant_roles();
