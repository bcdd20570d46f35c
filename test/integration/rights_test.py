#!/usr/bin/env python3
"""rights - every function and every secret column, tried as every role.

RIGHTS is the whole truth: a function that is not in it is for the owner only. A new function that roles may call gets a row
here and one in sql/base/grants.sql.
"""
import json
import urllib.parse
from fnmatch import fnmatchcase

from pawl_test import Database, Pawl, main, test

ROLES = ["reader", "sender", "worker", "handler", "poster", "treasurer", "monitor", "app", "admin"]
# A role, and those whose rights it has as well.
CONTAINS = {
    "treasurer": ["poster"],
    "monitor": ["reader"],
    "worker": ["handler"],
    "app": ["reader", "sender", "worker", "handler", "poster"],
    "admin": ROLES,
}

# Function, overloads included; the roles that may call it, without those that contain them. The first match counts.
RIGHTS = """
pawl.now                 reader sender worker poster monitor
pawl.micros              reader sender worker poster monitor
pawl.iso                 reader sender worker poster monitor
pawl.grant_functions     reader
pawl.grant_contains      reader
pawl.uuid7               sender poster

pawl.send                sender
pawl.send_items          sender
pawl.key                 sender poster
pawl.batch_new           sender
pawl.batch_seal          sender
pawl.batch_progress      reader sender
pawl.batch_page          reader
pawl.cancel              sender
pawl.command_cancel      sender
pawl.decided_status      sender
pawl.wake                sender worker
pawl.is_name             sender worker
pawl.name_check          sender worker
pawl.domain_find         sender worker
pawl.decided_position             worker
pawl.claimers_ready               worker
pawl.claim               worker
pawl.claim_isolate       worker
pawl.handler_is_safe     handler
pawl.handler_call        handler
pawl.handler_call_shared handler
pawl.extend              worker
pawl.report_progress     worker
pawl.release             worker
pawl.postpone            worker
pawl.settle              worker
pawl.settle_items        handler
pawl.requeue_due          worker monitor
pawl.attached_is_due      worker monitor
pawl.attached_due         worker monitor
pawl.claim_isolate       worker
pawl.send_items          sender
pawl.command_status      reader
pawl.command_number      reader
pawl.commands_find       reader
pawl.commands_show       app
pawl.commands_fit        reader
pawl.reply_queue_list    app
pawl.reply_read          app
pawl.reply_ack           app
pawl.outcomes_find       reader
pawl.outcomes_ended      reader
pawl.outcome_get         app
pawl.page_check          reader
pawl.command_ids         reader
pawl.pending_ids         reader
pawl.pending_sources     reader
pawl.queued_since        reader
pawl.ready_heads         reader
pawl.has_work            worker
pawl.command_list        reader
pawl.command_page        reader
pawl.command_count       reader
pawl.backlog             reader
pawl.backlog_domains     reader
pawl.domain_limit_remove admin
pawl.domain_limit_set    admin
pawl.domain_limits       reader
pawl.domain_held         reader
pawl.domain_list         reader
pawl.domain_pause        admin
pawl.domain_pauses       reader worker
pawl.domain_resume       admin
pawl.rows_about          reader
pawl.command_show        app
pawl.tsq_decide          admin
pawl.bulk_start          admin
pawl.bulk_step           monitor
pawl.bulk_skip           monitor
pawl.bulk_count          reader
pawl.bulk_show           reader
pawl.command_decide      admin
pawl.reply_command_id    reader sender worker
pawl.reply_retry         monitor
pawl.batch_expire        monitor
pawl.batch_idle_s        reader
pawl.reply_queues_bound  monitor
pawl.reply_queues_percent reader
pawl.prune_replies       monitor
pawl.prune_dead_letters  monitor
pawl.retry_policy_set    admin
pawl.cron_times          reader
pawl.schedule_list       reader
pawl.schedule_next       reader
pawl.schedules_failing   reader
pawl.schedules_due_ms    reader
pawl.schedule_payload    app
pawl.schedule_create     admin
pawl.schedule_pause      admin
pawl.schedule_resume     admin
pawl.schedule_run        admin
pawl.schedule_delete     admin
pawl.schedules_fire      monitor
pawl.retry_policy_list   reader
pawl.on_complete_retry   monitor
pawl.retention_ready     monitor
pawl.retain              monitor
pawl.maintain            monitor
pawl.retention_jump_s    reader
pawl.prune               monitor
pawl.prune_commands      monitor
pawl.prune_keys          monitor
pawl.prune_audit         monitor
pawl.least_age_set       admin

pawl.start               sender
pawl.start_many          sender
pawl.signal              sender
pawl.signal_one          sender
pawl.process_signal      sender
pawl.process_domains     sender
pawl.process_load        worker
pawl.process_counted     worker
pawl.process_write       handler
pawl.process_list        reader
pawl.process_show        app
pawl.process_type_note    reader sender
pawl.process_define      admin
pawl.process_bind        worker
pawl.process_orphans_cancel worker
pawl.process_retry       admin
pawl.process_compensate  sender
pawl.process_move        admin

pawl.telegram_lease      monitor
pawl.telegram_name       monitor
pawl.telegram_prune      monitor
pawl.bot_letter_keep monitor
pawl.bot_letter_end monitor
pawl.bot_letter_done monitor
pawl.telegram_waiting    reader
pawl.telegram_put        sender
pawl.telegram_moved      worker
pawl.telegram_delivered  worker
pawl.telegram_reference  worker
pawl.telegram_message    worker
pawl.telegram_file       worker
pawl.telegram_about      worker
pawl.telegram_pace       worker
pawl.telegram_pace_answer worker
pawl.telegram_pace_message worker
pawl.telegram_superseded worker
pawl.telegram_limited    worker
pawl.telegram_member_get worker
pawl.telegram_member_put worker
pawl.telegram_member_forget worker
pawl.telegram_ask_limited worker

pawl.dead_letter_put     sender monitor
pawl.dead_letter_put_own monitor
pawl.dead_letter_claim   monitor
pawl.dead_letter_hold    monitor
pawl.dead_letter_settle  monitor
pawl.dead_letter_forward monitor
pawl.dead_letter_route   admin
pawl.dead_letter_retried_by reader
pawl.dead_letter_data    app monitor
pawl.dead_letter_shown   reader
pawl.json_shown          reader
pawl.json_bytes          reader
pawl.json_is_large       reader
pawl.json_max            reader
pawl.dead_letter_retry   admin
pawl.dead_letter_delete  admin

pawl.task_claim          monitor
pawl.task_release        monitor
pawl.tally_add           worker monitor
pawl.stat_add             worker monitor
pawl.stat_maintain        monitor
pawl.stat_list            reader
pawl.command_times        worker monitor
pawl.tally_sum           reader

pawl.key_find            app
pawl.key_used            app
pawl.bound_command       reader
pawl.bound_batch         reader
pawl.bound_domains       reader
pawl.bound_domain        reader
pawl.bound_text          reader
pawl.command_page_bound  reader
pawl.process_list_bound  reader
wallet.bound_txn         reader
wallet.bound_owner       reader
pawl.key_create          admin
pawl.key_list            admin
pawl.key_revoke          admin

pawl.answer_find         admin
pawl.answer_keep         admin

wallet.get              reader poster
wallet.assets_of         reader poster
wallet.balance_at        reader poster
wallet.entries           reader poster
wallet.wallet_page       reader poster
wallet.hold_page         reader poster
wallet.transaction_page  reader poster
wallet.statement         reader poster
wallet.transaction       reader poster
wallet.open              poster
wallet.post              poster
wallet.post_transfer     poster
wallet.treasury          treasurer
wallet.emit_to           admin
wallet.clock_ahead       reader
wallet.expire            monitor
wallet.expire_from       monitor
wallet.seal              monitor
wallet.verify            reader
wallet.verify_plan       reader
wallet.verify_step       reader
wallet.verify_record       admin

rating.group_get           reader
rating.group_list          reader
rating.board               reader
rating.namesakes           reader
rating.places              reader
rating.stats               reader
rating.matches             reader
rating.player_history      reader
rating.head_to_head        reader
rating.chart_points        reader
rating.match_get           reader
rating.replay_chunk        reader
rating.verify_members      reader
rating.players_named       reader
rating.players_get         reader
rating.players_of_users    reader
rating.usage_is_left       reader
rating.timezone_find       reader
rating.group_timezone      reader
rating.group_times         reader
rating.group_open          app
rating.group_set           app
rating.group_move          app
rating.players_seen        app
rating.usage_add           app
rating.turns_open          app
rating.question_put        app
rating.question_take       app
rating.prune               monitor
rating.matches_read        app
rating.matches_write       app
rating.undo_find           app
rating.undo_versions       app
rating.undo_begin          app
rating.undo_end            app
rating.matches_after       app
rating.history_rewrite     app

pgmq.list_queues                   reader
pgmq.metrics                       reader
pgmq.metrics_all                   reader
pgmq.format_table_name             reader
pgmq._refuse_queue_name            reader
pgmq.test_routing                  reader
pgmq.list_notify_insert_throttles  reader
pgmq.list_topic_bindings           reader
pgmq.validate_routing_key          reader
pgmq._validate_words               reader
pgmq.drop_queue                    admin
pgmq._grant_roles
pgmq.acquire_queue_lock
pgmq.*                             app
"""

# What no role reads, wherever a column has such a name in schemas pawl and wallet.
SECRET_COLUMNS = ["payload", "salt", "state", "token", "result", "operation_data", "on_complete", "hash", "secret"]
SECRET_EXCEPT = ["wallet.seal.hash", "wallet.verified.hash"]  # the chain's hashes are there to be compared

# Prepares a call to the point where PostgreSQL checks the right to it, and runs nothing: a body may wait, loop or change things.
# Arguments are columns, because a call with constants may be computed away. 42501 that names a function or schema: no right.
TRY = """
create function pg_temp.may(p_role text, p_function oid) returns boolean language plpgsql as $$
declare
  v_sql text := (select format('explain select %s(%s) from (select 1 %s offset 0) t', p.oid::regproc,
                               coalesce(string_agg(format('t.a%s', t.ord), ', ' order by t.ord) filter (where t.ord > 0), ''),
                               coalesce(string_agg(format(', null::%s as a%s', replace(format_type(t.type, null), 'anyarray', 'text[]'), t.ord), ''
                                                   order by t.ord) filter (where t.ord > 0), ''))
                 from pg_proc p left join unnest(p.proargtypes) with ordinality t (type, ord) on true
                 where p.oid = p_function group by p.oid);
  v_message text;
begin
  begin
    execute format('set local role %I', p_role);
    execute v_sql;
    raise exception 'back' using errcode = 'ZZ001';
  exception
    when insufficient_privilege then
      get stacked diagnostics v_message = message_text;
      return v_message !~ '^permission denied for (function|schema)';
    when sqlstate 'ZZ001' then
      return true;
  end;
end $$;
"""
EVERY_FUNCTION = """
select p.oid, n.nspname || '.' || p.proname, p.oid::regprocedure
from pg_proc p join pg_namespace n on n.oid = p.pronamespace
where n.nspname in ('pawl', 'wallet', 'rating', 'pgmq') and p.prokind = 'f' and p.prorettype <> 'trigger'::regtype
order by 2, 3
"""


def rights():
    return [(words[0], set(words[1:])) for line in RIGHTS.splitlines() if (words := line.split())]


def allowed(name):
    """The roles that may call the function of this name."""
    least = next((roles for pattern, roles in rights() if fnmatchcase(name, pattern)), set())
    return {role for role in ROLES if least & {role, *CONTAINS.get(role, [])}}


@test
def every_function_is_tried_as_every_role():
    with Database() as db:
        functions = [line.split("|") for line in db.rows(EVERY_FUNCTION)]
        assert len(functions) > 100, functions
        ids = ",".join(oid for oid, _, _ in functions)
        roles = ",".join(f"('pawl_{role}')" for role in ROLES)
        answers = [line.split("|") for line in db.rows(
            f"{TRY} select f.oid, r.role, pg_temp.may(r.role, f.oid) from unnest('{{{ids}}}'::oid[]) f (oid), "
            f"(values {roles}) r (role)")]
        may = {(oid, role): yes == "t" for oid, role, yes in answers}
        wrong = [f"{signature}: pawl_{role} {'may' if may[oid, f'pawl_{role}'] else 'may not'} call it"
                 for oid, name, signature in functions for role in ROLES
                 if may[oid, f"pawl_{role}"] != (role in allowed(name))]
        assert not wrong, "sql/base/grants.sql and RIGHTS differ:\n" + "\n".join(wrong)


@test
def functions_that_run_as_their_caller_read_only_what_it_may_read():
    """Really called, as they change nothing: each that is stable, without the rights of its owner, as each role that may call it."""
    with Database() as db:
        db.rows("select pawl.send('shop', 't')")
        functions = [line.split("|") for line in db.rows(EVERY_FUNCTION.replace("order by", "and not p.prosecdef and p.provolatile <> 'v' order by"))]
        assert len(functions) > 10, functions
        stopped = []
        for oid, name, signature in functions:
            arguments = db.value(f"select string_agg('null::' || replace(format_type(t, null), 'anyarray', 'text[]'), ', ') from unnest("
                                 f"(select proargtypes from pg_proc where oid = {oid})) t")
            for role in allowed(name):
                answer = attempt(db, f"pawl_{role}", f"set transaction_read_only = on; select {signature.split('(')[0]}({arguments})")
                stopped += [f"{signature} as pawl_{role}: {answer}"] if "permission denied for" in answer else []
        assert not stopped, "\n".join(stopped)
        number = "pawl.command_number((select command_id from pawl.command))"
        assert attempt(db, "pawl_reader", f"select at, event, actor, details from pawl.audit where id = {number} order by at, step, place") == ""


@test
def every_row_names_a_function():
    with Database() as db:
        names = {line.split("|")[1] for line in db.rows(EVERY_FUNCTION)}
        gone = [pattern for pattern, _ in rights() if not any(fnmatchcase(name, pattern) for name in names)]
        assert not gone, f"no such function: {gone}"
        granted = set(db.rows("select name from pawl.grant_functions()"))
        assert granted <= names, f"sql/base/grants.sql names no function: {granted - names}"
        tables = db.rows("select name from pawl.grant_tables() where to_regclass(name) is null")
        assert not tables, f"sql/base/grants.sql names no table: {tables}"


@test
def no_role_reads_secrets_or_writes_tables():
    with Database() as db:
        roles = ",".join(f"('pawl_{role}')" for role in ROLES)
        secrets = ",".join(f"'{name}'" for name in SECRET_COLUMNS)
        readable = db.rows(
            f"select r.role, format('%s.%s', c.oid::regclass, a.attname) from (values {roles}) r (role), pg_class c "
            f"join pg_attribute a on a.attrelid = c.oid where c.relnamespace in ('pawl'::regnamespace, 'wallet'::regnamespace, 'rating'::regnamespace) "
            f"and c.relkind in ('r', 'p', 'v') and a.attname in ({secrets}) "
            f"and has_column_privilege(r.role, c.oid, a.attnum, 'select')")
        assert not [row for row in readable if row.split("|")[1] not in SECRET_EXCEPT], readable
        written = db.rows(
            f"select r.role, c.oid::regclass from (values {roles}) r (role), pg_class c "
            f"where c.relnamespace in ('pawl'::regnamespace, 'wallet'::regnamespace, 'rating'::regnamespace) and c.relkind in ('r', 'p', 'v') "
            f"and has_table_privilege(r.role, c.oid, 'insert, update, delete, truncate')")
        assert not written, written
        keys = db.rows(f"select r.role from (values {roles}) r (role) where has_any_column_privilege(r.role, 'pawl.api_key', 'select')")
        assert not keys, keys


@test
def messages_of_queues_are_for_those_that_work_with_them():
    with Database() as db:
        db.rows("select pgmq.create('q')")
        may = dict(line.split("|") for line in db.rows(
            "select r, has_table_privilege(r, 'pgmq.q_q', 'select') from unnest('{pawl_reader,pawl_sender,pawl_worker,"
            "pawl_poster,pawl_treasurer,pawl_monitor,pawl_app,pawl_admin}'::text[]) r"))
        assert {role for role, yes in may.items() if yes == "t"} == {"pawl_app", "pawl_admin"}, may
        assert db.rows("set role pawl_reader; select queue_length from pgmq.metrics('q')") == ["0"]


def attempt(db, role, sql, become="set role"):
    """"" or what psql said, as a role."""
    try:
        db.rows(f"{become} {role}; {sql}")
    except AssertionError as error:
        return str(error)
    return ""


@test
def a_monitor_sends_what_a_letter_says_and_nothing_else():
    forged = '''{"queue": "command:shop/paid", "message": {"forged": true}, "domain": "shop", "type": "paid"}'''
    with Database() as db:
        for name in ("reply_retry", "on_complete_send", "on_complete_retry"):
            assert attempt(db, "pawl_monitor", f"select pawl.{name}('{forged}')"), name
        for kind in ("reply", "on_complete"):
            for name in ("dead_letter_keep", "dead_letter_put", "dead_letter_put_own"):
                assert attempt(db, "pawl_monitor", f"select pawl.{name}(array['{kind}'], array['k'], array['{forged}'::jsonb], array['e'], array['c'], 0)"), name
        assert db.rows("select * from pawl.command") == [] and db.rows("select * from pawl.failed_operations") == []
        db.rows(f"select pawl.dead_letter_keep(array['on_complete'], array['k'], array['{forged}'::jsonb], array['e'], array['c'], 0)")
        assert "not found" in attempt(db, "pawl_monitor", "select pawl.reply_retry('k')"), "a letter of another type"
        assert attempt(db, "pawl_monitor", "select pawl.on_complete_retry('k')") == ""
        assert db.rows("select type from pawl.command") == ["paid"]
        db.rows("update pawl.failed_operations set status = 'resolved'")
        assert "not found" in attempt(db, "pawl_monitor", "select pawl.on_complete_retry('k')")


@test
def the_state_of_a_process_is_not_found_out_by_searching_it():
    login = "set session authorization"
    with Database() as db:
        name = f"login_of_{db.name}"
        db.rows(f"create role {name} login in role pawl_reader; select pawl.start('order', '{{\"card\": \"4111\"}}')")
        try:
            assert "may not search states" in attempt(db, name, "select * from pawl.process_list(p_text => '4111')", login)
            assert attempt(db, name, "select * from pawl.process_list()", login) == ""
            db.rows(f"grant pawl_app to {name}")
            assert attempt(db, name, "select * from pawl.process_list(p_text => '4111')", login) == ""
        finally:
            db.rows(f"drop role {name}")


def post(kind, owner, amount="null", request="null"):
    return (f"select refusal from wallet.post(array['{kind}'], array[gen_random_uuid()], array[{owner}], array[{amount}]::bigint[], "
            f"null, null, null, array[{request}]::jsonb[])")


@test
def money_is_created_by_treasurers_only():
    legs = """'{"legs": [{"owner": "@system", "amount": -5}, {"owner": "a", "amount": 5}]}'"""
    burn = """'{"legs": [{"owner": "@system", "amount": 5}, {"owner": "a", "amount": -5}]}'"""
    treasury = [post("topup", "'a'", 5), post("floor", "'a'", "null", "'{\"floor\": -5}'"), post("freeze", "'a'"),
                post("unfreeze", "'a'"), post("multi", "null", "null", legs),
                "select wallet.open(array['b'], null, array[-5])"]
    with Database() as db:
        db.rows("select wallet.open(array['a'])")
        for sql in treasury:
            assert "pawl_treasurer" in attempt(db, "pawl_poster", sql), sql
            assert "pawl_treasurer" in attempt(db, "pawl_app", sql), sql
            assert attempt(db, "pawl_treasurer", sql) == "", sql
            assert attempt(db, "pawl_admin", sql) == "", sql
        for sql in [post("spend", "'a'", 5), post("multi", "null", "null", burn), "select wallet.open(array['c'])"]:
            assert attempt(db, "pawl_poster", sql) == "", sql
        # One of several operations is enough.
        mixed = ("select refusal from wallet.post(array['spend', 'topup'], array[gen_random_uuid(), gen_random_uuid()], "
                 "array['a', 'a'], array[1, 1])")
        assert "pawl_treasurer" in attempt(db, "pawl_poster", mixed)


@test
def a_login_has_the_rights_of_its_roles():
    """As pods and applications connect: a member, without SET ROLE."""
    login = "set session authorization"
    with Database() as db:
        name = f"login_of_{db.name}"
        topup = post("topup", "'a'", 5)
        db.rows(f"create role {name} login in role pawl_poster; select wallet.open(array['a'])")
        try:
            assert "pawl_treasurer" in attempt(db, name, topup, login)
            db.rows(f"grant pawl_treasurer to {name}")
            assert attempt(db, name, topup, login) == ""
            assert "pawl_treasurer" in attempt(db, f"{name}; set role pawl_poster", topup, login), "a role that was set counts"
        finally:
            db.rows(f"drop role {name}")


@test
def a_command_that_is_refused_names_the_role_that_is_needed():
    with Database() as db:
        name = f"login_of_{db.name}"
        db.rows(f"create role {name} login in role pawl_app")
        try:
            with Pawl(db.url.replace("postgres@", f"{name}@", 1)) as pawl:
                done = pawl.run("process", "retry", "018f0000-0000-7000-8000-000000000001")
            assert done.code == 1 and f"user {name} needs the role pawl_admin: grant pawl_admin to {name}" in done.stderr, done
        finally:
            db.rows(f"drop role {name}")


@test
def the_audit_names_the_login_of_a_caller_that_names_a_person():
    login = "set session authorization"
    with Database() as db:
        shop, boss = f"shop_of_{db.name}", f"boss_of_{db.name}"
        db.rows(f"create role {shop} login in role pawl_sender; create role {boss} login in role pawl_admin")
        sent = ("select pawl.send{}({}'shop', array['t'], array['1']::jsonb[], null, null, null, null, null, null, null, {})")
        try:
            for actor in ("'ann'", f"'{boss}'", "'reply'", "null"):
                assert attempt(db, shop, sent.format("", "", actor), login) == ""
                assert attempt(db, shop, sent.format("_items", "false, ", actor), login) == ""
            assert attempt(db, boss, sent.format("", "", "'ann'"), login) == "", "as a pod, which knows who asked it"
            assert db.rows("select coalesce(sender, '-') from pawl.command order by id") == [
                f"{shop} (ann)"] * 2 + [f"{shop} ({boss})"] * 2 + [f"{shop} (reply)"] * 2 + ["-"] * 2 + ["ann"]
            for who, sender, operator in ((shop, f"{shop} (ann)", "ann"), (boss, f"{shop} (reply)", "ann"), (boss, "ann", boss)):
                command_id = db.rows(f"select command_id from pawl.command where sender = '{sender}'")[0]
                assert attempt(db, who, f"select pawl.command_cancel('{{{command_id}}}', null, '{operator}', 'r')", login) == ""
            assert db.rows("select distinct actor, details->>'login', details->>'reason' from pawl.audit where event = 'CANCELED' order by 1, 2") == [
                f"ann|{boss}|r", f"{boss}||r", f"{shop} (ann)||r"]
            # A process that runs.
            steps = '[{"name": "a", "kind": "set"}]'
            source = '{"type": "order", "domain": "shop", "steps": [{"name": "a", "set": {"a": %s}}]}'
            db.rows(f"select pawl.process_define('shop', 'order', '{source % 1}', null, 'troubleshoot', 'ann', '{steps}'); select pawl.start('order', '{{}}', p_domain => 'shop'); "
                    f"select pawl.process_define('shop', 'order', '{source % 2}', null, 'troubleshoot', 'ann', '{steps}')")
            process = db.value("select command_id from pawl.command where type = 'order'")
            assert attempt(db, boss, f"select pawl.process_move('{{{process}}}', null, 2, 'ann', 'r')", login) == ""
            db.rows("select pawl.claim(pawl.domain_find('process:shop'), 1, 60000, array_fill(0::bigint, array[10]), null, 'w')")
            assert attempt(db, boss, f"select pawl.process_compensate('{{{process}}}', null, 'ann', 'r')", login) == ""
            assert db.rows("select e.event, e.actor, e.details->>'reason', e.details->>'login' from pawl.command c, pawl.process_events(c.id) e "
                           f"where c.command_id = '{process}' and e.event in ('MOVED', 'CANCEL_REQUESTED') order by e.at") == [
                f"MOVED|ann|r|{boss}", f"CANCEL_REQUESTED|ann|r|{boss}"]
            assert f'"login": "{boss}"' in db.value("select pawl.command_show(command_id)::text from pawl.audit where event = 'CANCELED' and details ? 'login'")
        finally:
            db.rows(f"drop role {shop}, {boss}")


# Runs the SQL of its payload, at once or by a trigger after the function has returned.
RUNS = """
create schema shop authorization {app};
set role {app};
create table shop.todo (sql text);
create function shop.runs() returns trigger language plpgsql as $$ begin execute new.sql; return new; end $$;
create constraint trigger todo after insert on shop.todo deferrable initially deferred for each row execute function shop.runs();
create function shop.handle(payload jsonb, command_id uuid) returns jsonb language plpgsql security definer as $$
begin
  if payload ? 'later' then
    insert into shop.todo values (payload->>'later');
  else
    execute payload->>'sql';
  end if;
  return null;
end $$;
"""


@test
def a_handler_of_an_application_has_only_the_rights_of_the_handlers_login():
    """The application's login may mint, and may name responses of processes; the login whose sessions run its functions may not."""
    with Database() as db:
        app, handler = f"app_of_{db.name}", f"handler_of_{db.name}"
        url = urllib.parse.urlsplit(db.url)
        handler_url = url._replace(netloc=f"{handler}@{url.netloc.partition('@')[2]}").geturl()
        db.rows(f"create role {app} login in role pawl_app, pawl_treasurer; create role {handler} login in role pawl_handler; "
                f"{RUNS.format(app=app)} reset role; grant usage on schema shop to {handler}; select wallet.open(array['a'])")
        topup, reply = post("topup", "'a'", 5), "select pawl.send('shop', 't', '1'::jsonb, p_reply_to => 'response:{\"process\": 1, \"step\": \"ship\"}')"
        try:
            with Pawl(db, env={"PAWL_HANDLER_DATABASE_URL": handler_url}) as pawl:
                for sql in (topup, reply):
                    assert attempt(db, app, sql, "set session authorization") == "", sql
                    for how in ("sql", "later"):
                        error = handled(db, pawl, {how: sql})
                        assert ("pawl_treasurer" if sql == topup else "reply_to must") in error or "permission denied" in error, (how, sql, error)
                assert handled(db, pawl, {"sql": post("spend", "'a'", 1)}) == "", "what the function's owner may without the treasury"
                assert db.value("select balance from wallet.get(array['a'])") == "4"
        finally:
            db.rows(f"drop owned by {app}, {handler}; drop role {app}, {handler}")


def handled(db, pawl, payload):
    """The error of a command that the function has handled; "": none."""
    sent = db.value(f"select pawl.send('work', 't', $${json.dumps(payload)}$$::jsonb, p_max_attempts => 1)")
    done = pawl.run("work", "work", "--sql", "shop.handle", "--drain")
    assert done.code == 0, done.stderr
    return db.value(f"select coalesce(t.error, '') from pawl.command c left join pawl.tsq t using (id) where c.command_id = '{sent}'")


@test
def what_was_kept_is_not_erased_by_a_monitor_that_names_a_short_age():
    calls = [("commands", "select pawl.prune(1000, interval '{}', interval '90 days')"), ("audit", "select pawl.prune(1000, interval '30 days', interval '{}')"),
             ("commands", "select pawl.prune_commands(1000, interval '{}', null)"), ("audit", "select pawl.prune_audit(1000, interval '{}')"),
             ("keys", "select pawl.prune_keys(1000, interval '{}')"), ("keys", "select pawl.retain(1000, interval '30 days', interval '{}', null)"),
             ("replies", "select pawl.prune_replies(1000, interval '{}', null)"), ("dead letters", "select pawl.prune_dead_letters(1000, interval '{}')"),
             ("batches", "select pawl.batch_expire(1000, interval '{}')")]
    with Database() as db:
        for what, call in calls:
            # As intervals are compared, the last two are 10 and 53 days; as they are subtracted, they end in the future and at most a day ago.
            for age in ["0", "-1 day", "200000 years", "-120 months 3610 days", "-120 months 3653 days"]:
                sql = call.format(age)
                assert f"age of {what} must be from " in attempt(db, "pawl_monitor", sql), sql
                assert "permission denied" in attempt(db, "pawl_app", sql), sql
            assert attempt(db, "pawl_monitor", call.format("1 day")) == "", call
        assert "limit must be" in attempt(db, "pawl_monitor", "select pawl.prune_audit(null, interval '1 day')")
        assert "age of audit" in attempt(db, "pawl_monitor", "select pawl.prune_audit(1, null)")
        assert "permission denied" in attempt(db, "pawl_monitor", "select pawl.least_age_set('keys', '0')")
        assert attempt(db, "pawl_admin", "select pawl.least_age_set('keys', '300 days')") == ""
        assert "from 300 days" in attempt(db, "pawl_monitor", "select pawl.prune_keys(1, '299 days')")
        assert "age must be from 0" in attempt(db, "pawl_admin", "select pawl.least_age_set('keys', '-120 months 3610 days')")
        assert "what must be one of audit, batches" in attempt(db, "pawl_admin", "select pawl.least_age_set('key', '1 day')")


@test
def a_monitor_cannot_say_that_the_ledger_was_verified():
    with Database() as db:
        assert "permission denied" in attempt(db, "pawl_monitor", "select wallet.verify_record(1)")
        assert attempt(db, "pawl_admin", "select wallet.verify_record(1)") == ""


@test
def functions_of_others_are_called_by_a_login_without_any_other_right_of_pawl():
    """Their owner gains nothing by a login that it may act as anyway: then it may have more."""
    call = "select pawl.handler_call('app', 'f', '{}', gen_random_uuid())"
    with Database() as db:
        login, owner = f"handler_of_{db.name}", f"owner_of_{db.name}"
        others = [f"pawl_{role}" for role in ROLES if role != "handler"] + [db.value("select current_user"), f"worker_of_{db.name}"]
        db.rows(f"create role {login} login in role pawl_handler; create role {owner}; create role worker_of_{db.name} in role pawl_worker; "
                f"create schema app; grant usage on schema app to public; "
                f"create function app.f (payload jsonb, command_id uuid) returns jsonb language sql security definer as 'select payload'; "
                f"alter function app.f owner to {owner}")
        try:
            for inherits in ("inherit", "noinherit"):
                for other in others:
                    assert attempt(db, login, call, "set session authorization") == "", other
                    db.rows(f"alter role {login} {inherits}; grant {other} to {login}")
                    if inherits == "inherit":  # else it may not call handler_call() itself
                        assert "by a login of pawl_handler only" in attempt(db, login, call, "set session authorization"), other
                    assert db.rows(f"set session authorization {login}; set role pawl_handler; select pawl.handler_is_safe('app.f'::regproc)") == ["f"], other
                    db.rows(f"grant {login} to {owner}")
                    assert db.rows(f"set session authorization {login}; set role pawl_handler; select pawl.handler_is_safe('app.f'::regproc)") == ["t"], other
                    db.rows(f"revoke {login} from {owner}; revoke {other} from {login}; alter role {login} inherit")
        finally:
            db.rows(f"drop schema app cascade; drop role {login}, {owner}, worker_of_{db.name}")


main()
