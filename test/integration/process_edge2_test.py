#!/usr/bin/env python3
"""process_edge2 - processes at the edges: failures that are final, responses that branches compete for, limits, depth, and compensations
of what reached them. The pods run with default settings.
"""
import datetime
import hashlib
import json
import os
import signal
import tempfile
import uuid

from helpers import Session
from pawl_test import Database, Pawl, main, test, wait_until
from process_helpers import cli, define, lines, run, show, start, wait_status


def steps(pawl, process, name):
    return [step for step in show(pawl, process)["steps"] if step["name"] == name]


# --- compensations ---

@test
def a_compensation_that_failed_is_named_and_a_retry_from_a_step_does_not_drop_it():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        seen, repaired = os.path.join(folder, "seen"), os.path.join(folder, "repaired")
        definition = {"type": "undo", "on_failure": "compensate", "steps": [
            {"name": "a", "exec": f"echo a >> {seen}; echo '{{}}'",
             "compensate": {"exec": f"test -e {repaired} || exit 70; echo undo-a >> {seen}; echo '{{}}'"}},
            {"name": "b", "exec": "exit 70"}]}
        process, stuck = run(pawl, definition, "WAITING_FOR_TSQ")
        assert stuck["error"].startswith("step ~a: "), stuck["error"]
        refused = cli(pawl, "retry", process, "--from", "a", code=1)
        assert "compensat" in json.dumps(refused), refused
        with open(repaired, "w", encoding="utf-8"):
            pass
        cli(pawl, "retry", process)
        ended = wait_status(pawl, process, "COMPENSATED", "WAITING_FOR_TSQ")
        assert ended["status"] == "COMPENSATED" and ended["error"].startswith("step b: "), ended
        assert lines(seen) == ["a", "undo-a"], lines(seen)


# --- failures that are final ---

@test
def a_permanent_failure_is_not_tried_again_after_a_crash():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pod = pawl.serve()
        seen = os.path.join(folder, "seen")
        both = {"name": "both", "parallel": {"a": [{"name": "x", "exec": f"echo x >> {seen}; exit 65"}],
                                             "b": [{"name": "y", "exec": f"echo y >> {seen}; sleep 60"}]}}
        define(pawl, {"domain": "edge", "type": "final", "on_failure": "troubleshoot", "steps": [both]})
        process = start(pawl, "final")
        wait_until(lambda: steps(pawl, process, "x") and "y" in lines(seen), what="x has failed and y runs")
        pod.kill()
        db.rows("update pawl.lease set until = now()")
        pawl.serve()
        ended = wait_status(pawl, process, "FAILED", "WAITING_FOR_TSQ")
        assert ended["status"] == "FAILED", ended  # a refusal: nothing to look into
        assert lines(seen).count("x") == 1 and len(steps(pawl, process, "x")) == 1, lines(seen)


@test
def no_step_begins_after_a_branch_or_an_item_has_failed():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        assert pawl.run("wallet", "create", "ann").code == 0 and pawl.run("wallet", "topup", "ann", "100").code == 0
        spend = {"name": "pay", "wallet": {"kind": "spend", "owner": "ann", "amount": 100}}
        for kind in ("parallel", "each"):
            go = os.path.join(folder, kind)
            wait = f"until test -e {go}; do sleep 0.05; done"
            both = {"parallel": {"x": [{"name": "hold", "exec": wait}, spend], "y": [{"name": "broken", "exec": "exit 70"}]},
                    "each": "{{state.items}}", "concurrency": 2,
                    "steps": [{"name": "hold", "input": "{{item}}", "exec": f"test $(cat) = 1 || exit 70; {wait}"}, spend]}
            both = {key: value for key, value in both.items() if (key == "parallel") == (kind == "parallel")}
            define(pawl, {"domain": "edge", "type": kind, "on_failure": "compensate", "steps": [{"name": "both", **both}]})
            process = start(pawl, kind, {"items": [1, 2]})
            wait_until(lambda: steps(pawl, process, "broken" if kind == "parallel" else "hold[1]"), what="a step has failed")
            with open(go, "w", encoding="utf-8"):
                pass
            ended = wait_status(pawl, process, "COMPENSATED", "WAITING_FOR_TSQ", "COMPLETED")
            names = {step["name"].split("[")[0] for step in ended["steps"]}
            assert ended["status"] == "COMPENSATED" and "hold" in names and "pay" not in names, ended
        assert json.loads(pawl.run("wallet", "balance", "ann", "--json").stdout)["balance"] == 100


# --- responses ---

@test
def one_response_meets_one_of_many_waits_that_begin_together():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        branches = {f"b{i}": [{"name": f"nap{i}", "exec": "sleep 0.2; echo 1"}, {"name": f"w{i}", "wait": {"response": "go"}}]
                    for i in range(8)}
        define(pawl, {"domain": "edge", "type": "compete", "steps": [{"name": "all", "parallel": branches}]})
        process = start(pawl, "compete")
        cli(pawl, "signal", process, "go", "1")
        for count in range(1, 9):
            wait_until(lambda: len([s for s in show(pawl, process)["steps"] if s["name"] in {f"w{i}" for i in range(8)}]) == count,
                       what=f"{count} waits are met")
            wait_status(pawl, process, "WAITING_FOR_ASYNC" if count < 8 else "COMPLETED")
            met = [s for s in show(pawl, process)["steps"] if s["name"] in {f"w{i}" for i in range(8)}]
            assert sorted(s["result"] for s in met) == list(range(1, count + 1)), met
            if count < 8:
                cli(pawl, "signal", process, "go", str(count + 1))


@test
def responses_that_are_too_large_together_fail_the_wait_with_a_reason():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        wait = {"name": "w", "wait": {"response": "part", "count": 5}}
        process, _ = run(pawl, {"type": "parts", "on_failure": "fail", "steps": [wait]}, "WAITING_FOR_ASYNC")
        for i in range(5):
            assert pawl.run("process", "signal", process, "part", "-", stdin=json.dumps("a" * 1000000)).code == 0, i
        ended = wait_status(pawl, process, "FAILED", "WAITING_FOR_TSQ", "COMPLETED")
        assert ended["status"] == "FAILED" and "4194304 bytes together" in ended["error"], ended["error"]


# --- what has begun ---

@test
def an_each_and_a_sleep_that_have_begun_do_not_read_the_state_again():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        each = {"name": "all", "each": "{{state.order.items}}", "steps": [{"name": "w", "wait": {"response": "go"}},
                                                                          {"name": "n", "set": {"last": "{{item}}"}}]}
        process, _ = run(pawl, {"type": "begun", "steps": [each]}, "WAITING_FOR_ASYNC", state={"order": {"items": [7]}})
        cli(pawl, "signal", process, "other", '{"order": {"state": "changed"}}')
        cli(pawl, "signal", process, "go", '{"order": 1}')
        assert wait_status(pawl, process, "COMPLETED", "WAITING_FOR_TSQ")["state"]["last"] == 7
        until = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(days=2)).strftime("%Y-%m-%dT%H:%M:%SZ")
        naps = {"name": "both", "parallel": {"a": [{"name": "nap", "sleep": {"until": "{{state.at}}"}}],
                                             "b": [{"name": "w", "wait": {"response": "go"}}]}}
        process, _ = run(pawl, {"type": "nap", "on_failure": "troubleshoot", "steps": [naps]}, "WAITING_FOR_ASYNC",
                         state={"at": until})
        cli(pawl, "signal", process, "go", '{"at": null}')
        wait_until(lambda: steps(pawl, process, "w"), what="the wait is met")
        again = wait_status(pawl, process, "WAITING_FOR_ASYNC", "WAITING_FOR_TSQ")
        assert again["status"] == "WAITING_FOR_ASYNC" and again["continues_at"].startswith(until[:19]), again


@test
def branches_run_side_by_side_when_any_of_them_is_slow():
    """b and c wait for each other's file, so one after the other they would never end."""
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()

        def meet(mine, other):
            return f"touch {folder}/{mine}; for i in $(seq 300); do test -e {folder}/{other} && echo 1 && exit 0; sleep 0.1; done; exit 70"

        both = {"name": "both", "parallel": {"a": [{"name": "s", "set": {"x": 1}}],
                                             "b": [{"name": "x", "exec": meet("x", "y")}], "c": [{"name": "y", "exec": meet("y", "x")}]}}
        _, ended = run(pawl, {"type": "side", "on_failure": "fail", "steps": [both]}, "COMPLETED", "FAILED")
        assert ended["status"] == "COMPLETED", ended


# --- limits ---

@test
def a_process_at_its_limit_of_records_is_compensated():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        seen = os.path.join(folder, "seen")
        cash = {"name": "cash", "exec": f"echo cash >> {seen}; echo 1", "compensate": {"exec": f"echo back >> {seen}; echo 1"}}
        each = {"name": "all", "each": "{{state.list}}", "steps": [{"name": "n", "set": {"n": "{{index}}"}}]}
        _, ended = run(pawl, {"type": "full", "on_failure": "compensate", "steps": [cash, each]}, "COMPENSATED", "WAITING_FOR_TSQ",
                       state={"list": [0] * 10000})
        assert ended["status"] == "COMPENSATED" and "10000" in ended["error"], ended["error"]
        assert lines(seen) == ["cash", "back"] and len(ended["steps"]) == 2, (lines(seen), len(ended["steps"]))
        wait = {"name": "w", "wait": {"response": "go"}}
        process, _ = run(pawl, {"type": "brim", "on_failure": "compensate", "steps": [cash, wait, {"name": "n", "set": {"n": 1}}]},
                         "WAITING_FOR_ASYNC")
        db.rows(f"""insert into pawl.process_step (id, name, attempt, result, started_at, ended_at)
                    select c.id, 'n:' || n, 1, 'null', now(), now() from pawl.command c, generate_series(1, 9999) n
                    where c.command_id = '{process}'""")
        cli(pawl, "signal", process, "go")
        ended = f"select o.status || ' ' || o.error from pawl.outcome o join pawl.command c using (id) where c.command_id = '{process}'"
        wait_until(lambda: db.rows(ended), what="it has ended")  # thousands of steps take long to show
        assert db.value(ended).startswith("FAILED step w: ") and "10000" in db.value(ended), db.value(ended)
        assert lines(seen) == ["cash", "back"] * 2, lines(seen)


@test
def a_deeply_nested_response_or_result_does_not_stop_the_process():
    deep = "[" * 64 + "]" * 64
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        db.rows("""create schema edge; grant usage on schema edge to public;
                   create function edge.deep (input jsonb, key uuid) returns jsonb language sql
                   as $$ select (repeat('[', 200) || repeat(']', 200))::jsonb $$""")
        steps_ = [{"name": "w", "wait": {"response": "ping"}}, {"name": "d", "sql": "edge.deep"}, {"name": "v", "wait": {"response": "go"}}]
        process, _ = run(pawl, {"type": "deep", "steps": steps_}, "WAITING_FOR_ASYNC")
        cli(pawl, "signal", process, "ping", deep)
        wait_until(lambda: db.value("select count(*) from pawl.process_step where name = 'd'") == "1", what="the function has run")
        db.rows(f"select pawl.signal('{process}', 'go')")
        wait_status(pawl, process, "COMPLETED")
        assert pawl.run("process", "show", process).code == 0


# --- functions and operations of the ledger ---

# Blocks until the test lets it go, whatever the speed of the machine.
BLOCKS = """
    create schema edge; grant usage on schema edge to public;
    create function edge.block (input jsonb, key uuid) returns jsonb language plpgsql as $$
    begin
      perform pg_advisory_xact_lock_shared(77);
      return '1';
    end $$"""


@test
def a_lock_on_a_wallet_is_no_refusal():
    with Database() as db, Pawl(db) as pawl, Session(db.url) as other:
        pawl.serve()
        for arguments in (["create", "ann"], ["topup", "ann", "100"]):
            assert pawl.run("wallet", *arguments).code == 0
        other.do("begin")
        other.do("lock table wallet.state in access exclusive mode")
        hold = {"name": "h", "wallet": {"kind": "hold", "owner": "ann", "amount": 5}, "timeout": "1s",
                "retry": {"attempts": 100, "delay": "1s", "factor": 1}}
        process, waits = run(pawl, {"type": "locked", "on_failure": "compensate", "steps": [hold]}, "WAITING_FOR_RETRY", "FAILED",
                             "COMPENSATED")
        assert waits["status"] == "WAITING_FOR_RETRY", waits
        other.do("commit")
        wait_status(pawl, process, "COMPLETED")
        refused = {**hold, "wallet": {"kind": "hold", "owner": "ann", "amount": 5000}}
        _, ended = run(pawl, {"type": "refused", "on_failure": "troubleshoot", "steps": [refused]}, "FAILED", "WAITING_FOR_TSQ")
        assert ended["status"] == "FAILED" and len(ended["steps"]) == 1, ended


@test
def a_lock_on_the_process_costs_a_function_or_a_post_no_attempt():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        assert pawl.run("wallet", "create", "ann").code == 0 and pawl.run("wallet", "topup", "ann", "100").code == 0
        db.rows("""create schema demo; create sequence demo.calls; create table demo.stop (n integer); insert into demo.stop values (1);
                   create function demo.save (input jsonb, key uuid) returns jsonb language plpgsql as $$
                   begin while exists (select from demo.stop) loop perform pg_sleep(0.05); end loop;
                   perform nextval('demo.calls'); return '{"v": 1}'; end $$""")
        both = {"name": "both", "parallel": {
            "a": [{"name": "f", "sql": "demo.save", "retry": {"attempts": 1}, "save": {"f": "{{result.v}}"}}],
            "b": [{"name": "nap", "sql": "demo.save", "retry": {"attempts": 1}},
                  {"name": "w", "wallet": {"kind": "spend", "owner": "ann", "amount": 30}, "retry": {"attempts": 1}, "save": {"w": "{{result.amount}}"}}]}}
        define(pawl, {"domain": "edge", "type": "saves", "on_failure": "troubleshoot", "steps": [both]})
        process = start(pawl, "saves")
        wait_until(lambda: db.value("select count(*) from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'") == "2",
                   what="the functions run")
        with Session(db.url) as other:
            other.do("begin")
            other.do(f"select pawl.signal('{process}', 'x')")
            db.rows("delete from demo.stop")
            # Tried again and again, and rolled back each time.
            wait_until(lambda: int(db.value("select last_value from demo.calls")) >= 12, what="the function is tried again")
            assert [(s["name"], s["error"]) for s in show(pawl, process)["steps"]] == [("nap", None)]
            other.do("commit")
        ended = wait_status(pawl, process, "COMPLETED", "WAITING_FOR_TSQ", "FAILED")
        assert ended["status"] == "COMPLETED" and (ended["state"]["f"], ended["state"]["w"]) == (1, 30), ended
        assert all(step["error"] is None for step in ended["steps"]), ended
        assert pawl.run("wallet", "balance", "ann", "--json").json["balance"] == 70


@test
def functions_that_block_leave_connections_to_requests():
    with Database() as db, Pawl(db) as pawl, Session(db.url) as other:
        pod = pawl.serve()
        db.rows(BLOCKS)
        other.do("select pg_advisory_lock(77)")
        branches = {f"b{i}": [{"name": f"s{i}", "sql": "edge.block"}] for i in range(16)}
        define(pawl, {"domain": "edge", "type": "blocks", "steps": [{"name": "all", "parallel": branches}]})
        processes = [start(pawl, "blocks") for _ in range(2)]
        blocked = "select count(*) from pg_locks where locktype = 'advisory' and objid = 77 and not granted"
        wait_until(lambda: db.value(blocked) != "0", what="functions block")
        for _ in range(5):
            assert pod.http("GET", "/health/ready").status == 200
            assert pod.http("GET", "/v1/processes", token=pawl.TOKEN).status == 200
        assert int(db.value(blocked)) <= 4, db.value(blocked)
        other.do("select pg_advisory_unlock(77)")
        for process in processes:
            wait_status(pawl, process, "COMPLETED")


@test
def a_pod_that_stops_ends_its_functions_and_gives_their_processes_back():
    with Database() as db, Pawl(db, env={"PAWL_DRAIN_TIMEOUT": "1s"}) as pawl, Session(db.url) as other:
        pod = pawl.serve()
        db.rows(BLOCKS)
        other.do("select pg_advisory_lock(77)")
        define(pawl, {"domain": "edge", "type": "stops", "steps": [{"name": "s", "sql": "edge.block", "timeout": "1h"}]})
        process = start(pawl, "stops")
        wait_until(lambda: db.value("select count(*) from pg_locks where locktype = 'advisory' and objid = 77 and not granted") == "1",
                   what="the function blocks")
        pod.send(signal.SIGTERM)
        pod.wait()
        assert db.value("select count(*) from pawl.lease") == "0"
        assert db.value("select count(*) || ' ' || max(attempt) from pawl.ready") == "1 0"
        assert steps(pawl, process, "s") == []
        other.do("select pg_advisory_unlock(77)")
        pawl.serve()
        wait_status(pawl, process, "COMPLETED")


# --- ends ---

@test
def a_result_that_cannot_be_rendered_follows_on_failure():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        seen = os.path.join(folder, "seen")
        pay = {"name": "pay", "exec": f"echo paid >> {seen}; echo 1", "compensate": {"exec": f"echo back >> {seen}; echo 1"}}
        _, ended = run(pawl, {"type": "ends", "on_failure": "compensate", "steps": [pay], "result": {"x": "{{state.missing}}"}},
                       "COMPENSATED", "WAITING_FOR_TSQ")
        assert ended["status"] == "COMPENSATED" and ended["error"].startswith("result: "), ended
        assert lines(seen) == ["paid", "back"], lines(seen)


@test
def a_process_that_was_started_before_its_type_was_defined_runs():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        process = start(pawl, "early")
        define(pawl, {"domain": "edge", "type": "early", "deadline": "1h", "steps": [{"name": "n", "set": {"n": 1}},
                                                                                     {"name": "w", "wait": {"response": "go"}}]})
        waits = wait_status(pawl, process, "WAITING_FOR_ASYNC", "WAITING_FOR_TSQ")
        assert waits["status"] == "WAITING_FOR_ASYNC" and waits["version"] == 1 and waits["deadline"] == waits["continues_at"], waits
        cli(pawl, "signal", process, "go")
        wait_status(pawl, process, "COMPLETED")


# --- children ---

@test
def children_are_nested_at_most_100_levels():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        bomb = {"type": "bomb", "on_failure": "fail", "steps": [{"name": "c", "process": {"type": "bomb", "domain": "edge", "state": {}}}]}
        _, ended = run(pawl, bomb, "FAILED", "WAITING_FOR_TSQ", "COMPLETED")
        assert ended["status"] == "FAILED", ended
        assert db.value("select count(*) || ' ' || max(depth) from pawl.process") == "101 100"
        assert db.value("select count(*) from pawl.outcome where error like '%nested at most 100 levels%'") != "0"


# --- SQL ---

def refusal(db, sql):
    """The SQLSTATE with which a statement fails."""
    db.rows(f"""create or replace function public.refusal () returns text language plpgsql as $f$
                begin {sql}; return 'none'; exception when others then return sqlstate; end $f$""")
    return db.value("select public.refusal()")


@test
def one_ambiguous_id_does_not_stop_a_decision_about_others():
    with Database() as db, Pawl(db) as pawl:
        twin, other, third = (f"00000000-0000-4000-8000-00000000000{n}" for n in (1, 2, 3))
        db.rows(f"""select pawl.start('t', '{{}}', '{twin}', 'a'), pawl.start('t', '{{}}', '{twin}', 'b'),
                           pawl.start('t', '{{}}', '{other}', 'a'), pawl.start('t', '{{}}', '{third}', 'a')""")
        db.rows(f"""insert into pawl.process_step (id, name, attempt, started_at, ended_at)
                    select c.id, 'begun', 1, now(), now() from pawl.command c where c.command_id = '{other}'""")
        ids = f"array['{twin}', '{other}']::uuid[]"
        assert db.rows(f"select verdict from pawl.process_retry({ids}) order by ord") == ["AMBIGUOUS", "NOT_IN_TSQ"]
        assert db.rows(f"select verdict from pawl.process_compensate({ids}) order by ord") == ["AMBIGUOUS", "CANCELING"]
        ids = f"array['{twin}', '{other}', '{third}']::uuid[]"
        assert db.rows(f"select verdict from pawl.command_cancel({ids}, pawl.process_domains({ids}, null)) order by ord") == [
            "AMBIGUOUS", "COMPENSATING", "CANCELED"]
        for verb in ("cancel", "retry"):
            assert "process:a, process:b" in json.dumps(cli(pawl, verb, twin, code=1))


@test
def a_definition_is_checked_in_sql_too():
    with Database() as db:
        for arguments in ("'d', 't', 'not json', null, null, null", "'d', 't', '[]', null, null, null"):
            assert refusal(db, f"perform pawl.process_define({arguments})") == "QP001", arguments
        valid = json.dumps({"type": "t", "domain": "d", "steps": [{"name": "a", "set": {"a": 1}}]})
        assert refusal(db, f"perform pawl.process_define('d', 't', '{valid}', -1, 'fail', null)") == "QP001"
        assert refusal(db, f"perform pawl.process_define('d', 't', '{valid}', 9223372036854775807, 'fail', null)") == "QP001"
        assert refusal(db, f"perform pawl.process_define('d', 't', '{valid}', 1000, 'nonsense', null)") == "QP001"
        assert refusal(db, f"perform pawl.process_define('d', 't', '{valid}', 1000, 'fail', null)") == "none"


@test
def results_are_not_in_the_audit_after_a_retry_from_a_step():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        two = [{"name": "a", "exec": "echo '\"s3cr3t\"'"}, {"name": "b", "exec": "exit 70"}]
        process, _ = run(pawl, {"type": "hides", "on_failure": "troubleshoot", "steps": two}, "WAITING_FOR_TSQ")
        cli(pawl, "retry", process, "--from", "a")
        wait_until(lambda: len(steps(pawl, process, "b")) == 1 and show(pawl, process)["status"] == "WAITING_FOR_TSQ", what="it failed again")
        assert db.value("select count(*) from pawl.event where details ? 'deleted'") == "1"
        assert db.value("select count(*) from pawl.event where details::text like '%s3cr3t%'") == "0"


@test
def a_process_with_large_results_can_be_shown():
    with Database() as db, Pawl(db) as pawl:
        pod = pawl.serve()
        process, _ = run(pawl, {"type": "large", "steps": [{"name": "w", "wait": {"response": "go"}}]}, "WAITING_FOR_ASYNC")
        db.rows(f"""insert into pawl.process_step (id, name, attempt, result, started_at, ended_at)
                    select c.id, 'n' || n, 1, to_jsonb(repeat('a', 1000000)), now(), now() + n * interval '1 s'
                    from pawl.command c, generate_series(1, 20) n where c.command_id = '{process}'""")
        shown = {step["name"]: step["result"] for step in show(pawl, process)["steps"]}
        assert len(shown["n20"]) == 1000000 and len(shown["n1"]) < 300 and shown["n1"].endswith("..."), {n: len(r or "") for n, r in shown.items()}
        assert pod.http("GET", f"/v1/processes/{process}", token=pawl.TOKEN).status == 200
        assert pawl.run("process", "show", process).code == 0


@test
def retention_leaves_a_process_that_stores_a_response():
    with Database() as db, Session(db.url) as other:
        db.rows("select pawl.start('t', '{}', '00000000-0000-4000-8000-000000000003', 'd')")
        db.rows("select pawl.cancel(array['00000000-0000-4000-8000-000000000003']::uuid[])")
        other.do("begin")
        assert other.do("select pawl.signal('00000000-0000-4000-8000-000000000003', 'late')") == ["LATE"]
        prune = "select pawl.prune_ids(array(select id from pawl.process), now())"
        assert db.value(prune) == "0"
        other.do("commit")
        assert db.value(prune) == "1"
        assert db.value("select (select count(*) from pawl.process) + (select count(*) from pawl.process_response)") == "0"


# --- ids of what is sent ---

def computed_id(domain, process, record, number=1):
    """The id of a step's command as it would follow from what other senders can know."""
    text = b"\0".join([f"process:{domain}".encode(), process.encode(), f"{record}#{number}".encode()])
    hashed = bytearray(hashlib.blake2b(text, digest_size=16).digest())
    hashed[6] = hashed[6] & 0x0f | 0x80
    hashed[8] = hashed[8] & 0x3f | 0x80
    return str(uuid.UUID(bytes=bytes(hashed)))


@test
def ids_of_what_a_step_sends_cannot_be_computed_and_taken_before():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        define(pawl, {"type": "bill", "domain": "edge", "steps": [{"name": "bill", "command": {"domain": "bank", "type": "charge", "payload": {"n": 1}}}]})
        process = str(uuid.uuid4())
        taken = computed_id("edge", process, "bill")
        db.rows(f"select pawl.send('bank', 'charge', '{{\"n\": 1}}', '{taken}')")
        cli(pawl, "start", "bill", "{}", "--domain", "edge", "--id", process)
        wait_status(pawl, process, "WAITING_FOR_REPLY")
        sent = db.rows("select command_id from pawl.command where type = 'charge' and reply_to like 'response:%'")
        assert len(sent) == 1 and sent != [taken], sent
        assert pawl.run("work", "bank", "--noop", "--drain").code == 0
        wait_status(pawl, process, "COMPLETED")
        # A process from before has no secret, and keeps the ids that it has used.
        old = str(uuid.uuid4())
        with Session(db.url) as session:
            session.do("begin")
            session.do(f"select pawl.start('bill', '{{}}', '{old}', 'edge')")
            session.do(f"update pawl.process set secret = null where id = pawl.process_number('{old}')")
            session.do("commit")
        wait_status(pawl, old, "WAITING_FOR_REPLY")
        assert db.value(f"select count(*) from pawl.command where command_id = '{computed_id('edge', old, 'bill')}'") == "1"


main()
