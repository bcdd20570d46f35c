#!/usr/bin/env python3
"""process_edge2 - processes at the edges: failures that are final, responses that branches compete for, limits, depth, and compensations
of what reached them. The pods run with default settings.
"""
import json
import os
import signal
import tempfile

from helpers import Session
from pawl_test import Database, Pawl, main, test, wait_until
from process_helpers import cli, define, show, wait_status


def start(pawl, type_, state=None, domain="edge"):
    return cli(pawl, "start", type_, "-", "--domain", domain, stdin=json.dumps(state or {}))["process_id"]


def run(pawl, definition, *statuses, state=None):
    """Define it, start one, and wait for one of the statuses."""
    define(pawl, {"domain": "edge", **definition})
    process = start(pawl, definition["type"], state)
    return process, wait_status(pawl, process, *statuses)


def lines(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return file.read().split()


def steps(pawl, process, name):
    return [step for step in show(pawl, process)["steps"] if step["name"] == name]


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


# --- what a process has sent ---

def sent_status(db, domain):
    """How the only command of a domain ended; empty: it has not."""
    return db.rows(f"""select o.status from pawl.command c join pawl.domain_name n on n.id = c.domain_id
                       join pawl.outcome o on o.id = c.id where n.name = '{domain}'""")


@test
def what_a_process_has_sent_is_canceled_with_it():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        seen = os.path.join(folder, "seen")
        define(pawl, {"domain": "kids", "type": "kid", "on_failure": "compensate", "steps": [
            {"name": "k", "exec": f"echo kid >> {seen}; echo 1", "compensate": {"exec": f"echo undo >> {seen}; echo 1"}},
            {"name": "w", "wait": {"response": "never"}}]})
        both = {"name": "both", "parallel": {"a": [{"name": "c", "command": {"domain": "far", "type": "x", "payload": {}}}],
                                             "b": [{"name": "p", "process": {"type": "kid", "domain": "kids", "state": {}}}],
                                             "c": [{"name": "w", "wait": {"response": "fail"}},
                                                   {"name": "f", "exec": "exit 70"}]}}
        kid = "select pawl.process_status(p.id) from pawl.process p where p.depth = 1 order by p.id desc limit 1"
        for number, (decide, action, ends) in enumerate((
                (lambda p: cli(pawl, "cancel", p), "troubleshoot", ("CANCELED", "CANCELED")),
                (lambda p: cli(pawl, "cancel", p, "--compensate"), "troubleshoot", ("COMPENSATED", "COMPENSATED")),
                (lambda p: cli(pawl, "signal", p, "fail"), "compensate", ("COMPENSATED", "COMPENSATED")),
                (lambda p: cli(pawl, "signal", p, "fail"), "fail", ("FAILED", "COMPENSATED")))):
            before = len(lines(seen))
            both["parallel"]["a"][0]["command"]["domain"] = f"far{number}"
            process, _ = run(pawl, {"type": f"parent{number}", "on_failure": action, "steps": [both]}, "WAITING_FOR_REPLY")
            wait_until(lambda: len(lines(seen)) == before + 1 and db.value(kid) == "WAITING_FOR_ASYNC", what="the child waits")
            decide(process)
            wait_status(pawl, process, ends[0])
            wait_until(lambda: db.value(kid) == ends[1], what=f"the child is {ends[1]}")
            wait_until(lambda: sent_status(db, f"far{number}") == ["CANCELED"], what="the command is canceled")
            assert lines(seen)[before:] == (["kid"] if ends[1] == "CANCELED" else ["kid", "undo"]), lines(seen)
        wait_until(lambda: db.value("select count(*) from pawl.process_orphan") == "0", what="no note is left")


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
        twin, other = "00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"
        db.rows(f"""select pawl.start('t', '{{}}', '{twin}', 'a'), pawl.start('t', '{{}}', '{twin}', 'b'),
                           pawl.start('t', '{{}}', '{other}', 'a')""")
        ids = f"array['{twin}', '{other}']::uuid[]"
        assert db.rows(f"select verdict from pawl.process_retry({ids}) order by ord") == ["AMBIGUOUS", "NOT_IN_TSQ"]
        assert db.rows(f"select verdict from pawl.process_compensate({ids}) order by ord") == ["AMBIGUOUS", "CANCELING"]
        assert db.rows(f"select verdict from pawl.command_cancel({ids}, pawl.process_domains({ids}, null)) order by ord") == [
            "AMBIGUOUS", "CANCELED"]
        for verb in ("cancel", "retry"):
            assert "process:a, process:b" in json.dumps(cli(pawl, verb, twin, code=1))


@test
def a_definition_is_checked_in_sql_too():
    with Database() as db:
        for arguments in ("'d', 't', 'not json', null, null, null", "'d', 't', '[]', null, null, null",
                          "'d', 't', '{}', -1, 'fail', null", "'d', 't', '{}', 9223372036854775807, 'fail', null",
                          "'d', 't', '{}', 1000, 'nonsense', null"):
            assert refusal(db, f"perform pawl.process_define({arguments})") == "QP001", arguments
        assert refusal(db, "perform pawl.process_define('d', 't', '{}', 1000, 'fail', null)") == "none"


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


main()
