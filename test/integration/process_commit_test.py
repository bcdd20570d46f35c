#!/usr/bin/env python3
"""process_commit - functions of `sql` steps that fail when their transaction ends, change its settings, or change the state of their own process in
it; and results that cannot be recorded for a while."""
import os
import tempfile

from pawl_test import Database, Pawl, main, psql, setting, test, wait_until
from process_cli import define, lines, run, show, start, wait_status

UNDO = {"name": "first", "exec": "echo '{}'", "compensate": {"exec": "true"}}


def deferred(db, code):
    """A function whose row fails at the end of its transaction, with this SQLSTATE."""
    db.rows(f"""create table late{code} (key uuid);
                create function late{code}_check () returns trigger language plpgsql as $$
                begin raise exception 'no stock' using errcode = '{code}'; end $$;
                create constraint trigger late{code} after insert on late{code} deferrable initially deferred
                  for each row execute function late{code}_check ();
                create function public.f{code} (input jsonb, key uuid) returns jsonb language plpgsql as $$
                begin insert into public.late{code} values (key); return '{{}}'; end $$""")
    return f"public.f{code}"


@test
def a_deferred_constraint_that_fails_is_a_failed_attempt():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        for code, attempts in (("23503", 2), ("28000", 2), ("57P01", 2), ("QU065", 1), ("QU070", 1)):
            process, shown = run(pawl, {"type": f"late{code}".lower(), "on_failure": "compensate", "steps": [
                UNDO, {"name": "f", "sql": deferred(db, code).lower(), "retry": {"attempts": 2, "delay": "10ms"}}]}, "COMPENSATED", "WAITING_FOR_TSQ")
            failed = [step["error"] for step in shown["steps"] if step["name"] == "f"]
            assert len(failed) == attempts and all("no stock" in error and code in error for error in failed), (code, shown)
            assert shown["status"] == "COMPENSATED", (code, shown)
            assert db.value(f"select count(*) from late{code}") == "0"


@test
def a_state_that_was_rolled_back_is_not_taken():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        # The first call changes the state of its own process, so what it would save depends on a state that it has changed: it is rolled back.
        db.rows("""create sequence calls;
                   create function public.change (input jsonb, key uuid) returns jsonb language plpgsql as $$
                   begin
                     if nextval('public.calls') = 1 then
                       perform pawl.signal((input ->> 'process')::uuid, 'note', '{"n": 666}', 'k');
                     end if;
                     return '{"v": 5}';
                   end $$""")
        process, shown = run(pawl, {"type": "change", "on_failure": "troubleshoot", "steps": [
            {"name": "f", "sql": "public.change", "input": {"process": "{{process.id}}"}, "save": {"x": ["{{state.n}}", "{{result.v}}"]}},
            {"name": "s", "set": {"y": "{{state.n}}"}}]}, "COMPLETED", "WAITING_FOR_TSQ", state={"n": 1})
        assert shown["status"] == "COMPLETED" and shown["state"] == {"n": 1, "x": [1, 5], "y": 1}, shown
        assert db.value("select last_value from calls") == "2"


@test
def a_function_that_always_changes_what_it_saves_fails_by_its_policy():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        db.rows("""create function public.change (input jsonb, key uuid) returns jsonb language plpgsql as $$
                   begin perform pawl.signal((input ->> 'process')::uuid, 'note', '{"n": 666}', 'k'); return '{"v": 5}'; end $$""")
        process, shown = run(pawl, {"type": "change", "on_failure": "troubleshoot", "steps": [
            {"name": "f", "sql": "public.change", "input": {"process": "{{process.id}}"}, "save": {"x": ["{{state.n}}", "{{result.v}}"]},
             "retry": {"attempts": 2, "delay": "10ms"}}]}, "COMPLETED", "WAITING_FOR_TSQ", state={"n": 1})
        assert shown["status"] == "WAITING_FOR_TSQ" and shown["state"] == {"n": 1}, shown
        assert [step["error"] for step in show(pawl, process)["steps"]] == ["the state has changed in each of 100 tries"] * 2, shown


@test
def a_result_is_recorded_when_the_database_accepts_logins_again():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        server = pawl.serve()
        runs, go = os.path.join(folder, "runs"), os.path.join(folder, "go")
        define(pawl, {"type": "away", "domain": "edge", "steps": [
            {"name": "once", "exec": f"echo run >> {runs}; while test ! -e {go}; do sleep 0.1; done; echo '{{}}'"}]})
        process = start(pawl, "away")
        wait_until(lambda: os.path.exists(runs), what="the program runs")
        # No database of this name: the server refuses each login (3D000) without being away.
        psql(setting("PAWL_TEST_URL"), f"alter database {db.name} allow_connections false")
        psql(setting("PAWL_TEST_URL"), f"select pg_terminate_backend(pid, 60000) from pg_stat_activity where datname = '{db.name}'")
        psql(setting("PAWL_TEST_URL"), f"alter database {db.name} rename to {db.name}_away; alter database {db.name}_away allow_connections true")
        try:
            # Until no connection from before is left in the pool: from then on each login is refused, and nothing else happens.
            for _ in range(20):
                wait_until(lambda: pawl.http("GET", f"/v1/processes/{process}").json.get("type") == "/problems/database-refused", what="logins are refused")
            with open(go, "w", encoding="utf-8"):
                pass
            said = wait_until(lambda: [line for line in server.stderr if "not recorded yet" in line or "is interrupted" in line], what="the result cannot be recorded")
            assert "not recorded yet" in said[0] and "ERR_REFUSED" in said[0], said
        finally:
            psql(setting("PAWL_TEST_URL"), f"alter database {db.name}_away rename to {db.name}")
        wait_status(pawl, process, "COMPLETED")
        with open(runs, encoding="utf-8") as file:
            assert file.read().split() == ["run"]


def function_that_sets(db, name, setting_, value):
    db.rows(f"""create function public.{name} (input jsonb, key uuid) returns jsonb language plpgsql as $$
                begin
                  insert into public.effects values (key);
                  perform pg_catalog.set_config('{setting_}', '{value}', true);
                  return '{{"name": "\u0416"}}';
                end $$""")
    return f"public.{name}"


@test
def a_function_that_changes_settings_of_its_transaction_does_not_change_them_for_its_record():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        db.rows("create table public.effects (key uuid)")
        # A role that every server has, and that has no rights here.
        changes = (("role", "pg_monitor"), ("session_authorization", "pg_monitor"), ("search_path", "nowhere"), ("statement_timeout", "1"),
                   ("session_replication_role", "replica"), ("client_encoding", "LATIN1"))
        for name, value in changes:
            _, shown = run(pawl, {"type": name, "on_failure": "troubleshoot", "steps": [
                {"name": "f", "sql": function_that_sets(db, f"f_{name}", name, value), "save": {"x": "{{result.name}}"}, "retry": {"attempts": 1}},
                {"name": "s", "set": {"y": 1}}]}, "COMPLETED", "WAITING_FOR_TSQ")
            assert shown["status"] == "COMPLETED" and shown["state"] == {"x": "\u0416", "y": 1}, (name, shown)
        assert db.value("select count(*) from public.effects") == str(len(changes))


@test
def a_function_that_makes_its_transaction_read_only_is_a_failed_attempt():
    with Database() as db, Pawl(db) as pawl:
        server = pawl.serve()
        db.rows("create table public.effects (key uuid)")
        _, shown = run(pawl, {"type": "reads", "on_failure": "troubleshoot", "steps": [
            {"name": "f", "sql": function_that_sets(db, "f", "transaction_read_only", "on"), "retry": {"attempts": 2, "delay": "10ms"}}]},
            "COMPLETED", "WAITING_FOR_TSQ")
        failed = [step.get("error", "") for step in shown["steps"]]
        assert len(failed) == 2 and all("public.f made its transaction read only" in error for error in failed), shown
        assert shown["status"] == "WAITING_FOR_TSQ" and db.value("select count(*) from public.effects") == "0", shown
        # Neither is its connection taken for one to a standby, nor the activation for one that kills its worker.
        assert not [line for line in server.stderr if '"operation":"step"' in line and "running again" in line], server.stderr


@test
def a_function_cannot_have_its_operators_called_by_what_records_its_result():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        # For every operator on texts, integers and numbers there is one in schema trap that would come before it.
        db.rows("""create table public.called (name text);
                   create schema trap;
                   do $$
                   declare v_row record;
                   begin
                     for v_row in
                       select o.oprname as name, o.oprleft::regtype as l, o.oprright::regtype as r, o.oprcode::regproc as code, o.oprresult::regtype as result
                       from pg_operator o
                       where o.oprleft in ('text'::regtype, 'int4'::regtype, 'int8'::regtype) and o.oprright = o.oprleft
                         and o.oprname in ('=', '<>', '<', '>', '<=', '>=', '*', '+', '-', '||')
                     loop
                       execute format('create function trap.%I (%s, %s) returns %s language plpgsql as $f$
                         begin insert into public.called values (%L); return %s($1, $2); end $f$', v_row.code, v_row.l, v_row.r, v_row.result, v_row.name, v_row.code);
                       execute format('create operator trap.%s (leftarg = %s, rightarg = %s, function = trap.%I)', v_row.name, v_row.l, v_row.r, v_row.code);
                     end loop;
                   end $$;
                   create table public.effects (key uuid)""")
        _, shown = run(pawl, {"type": "trap", "on_failure": "troubleshoot", "steps": [
            {"name": "f", "sql": function_that_sets(db, "f", "search_path", "trap, pg_catalog"), "retry": {"attempts": 1}}]}, "COMPLETED", "WAITING_FOR_TSQ")
        assert shown["status"] == "COMPLETED", shown
        assert db.rows("select distinct name from public.called") in ("", []), db.rows("select name from public.called")


def refuse(db, statement, when="true"):
    """A trigger of the application's: no record of a step can be inserted where `when` holds."""
    db.rows(f"""create function public.refuse () returns trigger language plpgsql as $$
                begin
                  if {when} then {statement}; end if;
                  return new;
                end $$;
                create trigger refuse before insert on pawl.process_step for each row execute function public.refuse ()""")


def accept(db):
    db.rows("drop trigger refuse on pawl.process_step; drop function public.refuse ()")


REFUSALS = {"42P01": "perform from public.nowhere", "42501": "raise exception 'no right' using errcode = '42501'",
            "XX000": "raise exception 'broken' using errcode = 'XX000'", "P0001": "raise exception 'not today'"}


@test
def a_result_that_the_server_does_not_store_is_stored_when_it_does():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        server = pawl.serve()
        db.rows("""create table public.effects (key uuid unique);
                   create function public.f (input jsonb, key uuid) returns jsonb language sql as $$
                     insert into public.effects values (key); select '{}'::jsonb $$""")
        assert pawl.run("wallet", "create", "ann").code == 0 and pawl.run("wallet", "topup", "ann", "100").code == 0
        for code, statement in REFUSALS.items():
            runs, name = os.path.join(folder, code), code.lower()
            actions = ({"exec": f"echo run >> {runs}; echo '{{}}'"}, {"sql": "public.f"}, {"wallet": {"kind": "spend", "owner": "ann", "amount": 5}})
            for kind, action in zip(("exec", "sql", "wallet"), actions):
                define(pawl, {"type": f"{kind}{name}", "domain": "edge", "on_failure": "compensate", "steps": [
                    {"name": "once", **action, "retry": {"attempts": 2, "delay": "10ms"}}, {"name": "s", "set": {"y": 1}}]})
            refuse(db, statement)
            processes = [start(pawl, f"{kind}{name}") for kind in ("exec", "sql", "wallet")]
            for process in processes:
                wait_until(lambda: [line for line in server.stderr if "not recorded yet" in line and process in line], what="each is logged")
            accept(db)
            for process in processes:
                shown = wait_status(pawl, process, "COMPLETED", "WAITING_FOR_TSQ", "FAILED", "COMPENSATED")
                assert shown["status"] == "COMPLETED", (code, shown)
                failed = [step["error"] for step in shown["steps"] if step.get("error")]
                assert all("its result cannot be recorded" in error and code in error for error in failed), (code, shown)
            # Once, unless the result was held for so long that the activation was retried.
            retried = [event for event in show(pawl, processes[0])["audit"] if event["event"] == "RETRY_SCHEDULED"]
            assert len(lines(runs)) == 1 + len(retried), (code, lines(runs), retried)
        assert db.value("select count(*) from public.effects") == str(len(REFUSALS))
        assert "80" in pawl.run("wallet", "balance", "ann").stdout, pawl.run("wallet", "balance", "ann")


@test
def an_activation_whose_results_are_not_stored_is_retried_and_says_why():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        server = pawl.serve()
        runs = os.path.join(folder, "runs")
        db.rows("select pawl.retry_policy_set('process:edge', '*', array[1])")
        refuse(db, REFUSALS["42501"])
        define(pawl, {"type": "long", "domain": "edge", "steps": [{"name": "once", "exec": f"echo run >> {runs}; echo '{{}}'"}, {"name": "s", "set": {"y": 1}}]})
        process = start(pawl, "long")
        wait_until(lambda: len(lines(runs)) > 1, what="it was retried")
        assert [line for line in server.stderr if "it will be retried" in line and "no right" in line], server.stderr
        scheduled = [event for event in show(pawl, process)["audit"] if event["event"] == "RETRY_SCHEDULED"]
        assert scheduled and "cannot be recorded (SQLSTATE 42501): no right" in str(scheduled[0]), show(pawl, process)
        accept(db)
        assert wait_status(pawl, process, "COMPLETED", "WAITING_FOR_TSQ", "FAILED")["status"] == "COMPLETED"


@test
def a_process_whose_results_are_not_stored_holds_up_none_beside_it():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        refuse(db, REFUSALS["42P01"], "new.step = 'bad'")
        define(pawl, {"type": "bad", "domain": "edge", "steps": [{"name": "bad", "set": {"y": 1}}, {"name": "s", "set": {"y": 1}}]})
        define(pawl, {"type": "good", "domain": "edge", "steps": [{"name": f"s{i}", "set": {"y": i}} for i in range(20)]})
        bad = [start(pawl, "bad") for _ in range(4)]
        db.rows("select pawl.start('good', p_domain => 'edge') from generate_series(1, 100)")
        good = "select count(*) from pawl.command c where c.type = 'good' and pawl.process_status(c.id) "
        wait_until(lambda: db.value(good + "not in ('PENDING', 'IN_PROGRESS')") == "100", what="the others have ended")
        assert db.value(good + "= 'COMPLETED'") == "100", db.rows("select pawl.process_status(id), count(*) from pawl.process group by 1")
        accept(db)
        for process in bad:
            assert wait_status(pawl, process, "COMPLETED", "WAITING_FOR_TSQ", "FAILED")["status"] == "COMPLETED"


main()
