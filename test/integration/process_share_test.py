#!/usr/bin/env python3
"""process_share - a process takes no more of its pod than its share, and leaves the rest to others. The pods run with default settings."""
import json
import os
import signal
import tempfile

from pawl_test import Database, Pawl, main, test, wait_until
from process_cli import cli, define, lines, run, show, start, steps, wait_status
from servers import Session


# --- memory and time ---

@test
def a_process_with_thousands_of_responses_does_not_stop_its_pod():
    with Database() as db, Pawl(db) as pawl:
        pod = pawl.serve()
        process, _ = run(pawl, {"type": "many", "steps": [{"name": "w", "wait": {"response": "go"}}]}, "WAITING_FOR_ASYNC")
        for first in range(0, 5000, 500):  # each a transaction: one of them all would keep 5,000 versions of the process's row
            db.rows(f"do $$ begin for i in {first + 1}..{first + 500} loop perform pawl.signal('{process}', 'n' || i, '{{\"a\": 1}}', 'k'); commit; end loop; end $$")
        cli(pawl, "signal", process, "go")
        wait_status(pawl, process, "COMPLETED")
        assert pod.is_running()


@test
def a_process_with_large_results_ends_its_activation_in_time():
    """78 states of 860 KB, and results of 70 MB in all, which are refused at their limit."""
    with Database() as db, Pawl(db) as pawl:
        pod = pawl.serve()
        each = {"name": "all", "each": "{{state.list}}", "concurrency": 1, "steps": [{"name": "put", "set": {"last": "{{item}}"}}]}
        run(pawl, {"type": "states", "steps": [each]}, "COMPLETED", state={"list": list(range(90)), "text": "a" * 860000})
        big = {"name": "all", "each": "{{state.list}}", "concurrency": 1,
               "steps": [{"name": "big", "exec": "printf '\"'; head -c 1000000 /dev/zero | tr '\\0' a; printf '\"'"}]}
        _, stuck = run(pawl, {"type": "results", "on_failure": "troubleshoot", "steps": [big]}, "WAITING_FOR_TSQ",
                       state={"list": list(range(70))})
        assert "16777216 bytes together" in stuck["error"], stuck["error"]
        assert pod.is_running()


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


# --- connections and locks ---

# Blocks until the test lets it go, whatever the speed of the machine.
BLOCKS = """
    create schema edge; grant usage on schema edge to public;
    create function edge.block (input jsonb, key uuid) returns jsonb language plpgsql as $$
    begin
      perform pg_advisory_xact_lock_shared(77);
      return '1';
    end $$"""


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


@test
def a_transaction_that_has_signaled_one_process_does_not_hold_up_others():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder, Session(db.url) as session:
        pawl.serve()
        seen = os.path.join(folder, "seen")
        define(pawl, {"domain": "edge", "type": "slow", "steps": [
            {"name": "run", "exec": f"echo $PAWL_COMMAND_ID >> {seen}; until [ -e {folder}/go ]; do sleep 0.1; done; echo '{{}}'", "save": {"x": 1}}]})
        processes = [start(pawl, "slow") for _ in range(6)]
        wait_until(lambda: len(lines(seen)) == 6, what="all programs run")
        session.do(f"begin; select pawl.signal('{processes[0]}', 'hello')")
        with open(f"{folder}/go", "w", encoding="utf-8"):
            pass
        for process in processes[1:]:
            wait_status(pawl, process, "COMPLETED")
        assert show(pawl, processes[0])["status"] in ("IN_PROGRESS", "PENDING"), "it is postponed while it is locked"
        session.do("commit")
        wait_status(pawl, processes[0], "COMPLETED")
        assert len(lines(seen)) == 6, lines(seen)


@test
def a_function_leaves_nothing_in_the_session():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        db.rows("""
            create schema edge;
            grant usage on schema edge to public;
            create function edge.leave (input jsonb, key uuid) returns jsonb language plpgsql as $$
            begin
              perform set_config('search_path', 'edge, pg_catalog', false), set_config('synchronous_commit', 'off', false),
                      pg_advisory_lock(42);
              return '{}';
            end $$""")
        steps = [{"name": f"s{i}", "sql": "edge.leave"} for i in range(3)]
        run(pawl, {"type": "leaves", "steps": steps}, "COMPLETED")
        assert db.value("select count(*) from pg_locks where locktype = 'advisory' and objid = 42") == "0"


# --- workers, domains and types ---

def threads(pod):
    return len(os.listdir(f"/proc/{pod.pid}/task"))


@test
def a_pod_runs_processes_of_a_hundred_domains_and_of_types_that_are_added():
    with Database() as db, Pawl(db) as pawl:
        pod = pawl.serve()
        before = threads(pod)
        for i in range(100):
            define(pawl, {"type": "x", "domain": f"d{i}", "steps": [{"name": "a", "set": {"a": 1}}]})
        ids = [db.value(f"select pawl.start('x', p_domain => 'd{i}')") for i in range(100)]
        wait_until(lambda: db.value("select count(*) from pawl.outcome where status = 'COMPLETED'") == "100", what="all have ended")
        assert pod.is_running() and len(set(ids)) == 100
        assert threads(pod) <= before + 100 * 4, (before, threads(pod))
        # A worker is replaced whenever its domain gets a type; the one before does not stay.
        for i in range(5):
            define(pawl, {"type": f"t{i}", "domain": "grows", "steps": [{"name": "a", "set": {"a": 1}}]})
            db.rows(f"select pawl.start('t{i}', p_domain => 'grows')")
            wait_until(lambda n=101 + i: db.value("select count(*) from pawl.outcome") == str(n), what=f"type {i} runs")
        assert pod.is_running()
        wait_until(lambda: threads(pod) <= before + 102 * 4, what="replaced workers have ended")
        assert pawl.stop() == 0


@test
def a_domain_runs_as_many_at_once_however_many_types_are_defined():
    """Two of one type, and a third more for the others."""
    with Database() as db, Pawl(db, env={"PAWL_PROCESS_CONCURRENCY": "2"}) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        began, gate = os.path.join(folder, "began"), os.path.join(folder, "open")
        long = {"name": "a", "exec": f"echo $PAWL_COMMAND_ID >> {began}; until test -e {gate}; do sleep 0.1; done; echo 1"}
        started = []
        for number in range(3):
            define(pawl, {"domain": "edge", "type": f"long{number}", "steps": [long]})
            started += [start(pawl, f"long{number}") for _ in range(2)]
            most = 2 if number == 0 else 3
            wait_until(lambda most=most: len(lines(began)) >= most, what=f"{most} run")
            # Of another domain, defined later: the pod has seen all types before it.
            run(pawl, {"domain": f"later{number}", "type": "short", "steps": [{"name": "s", "set": {"a": 1}}]}, "COMPLETED")
            assert len(lines(began)) == most, lines(began)
        open(gate, "w").close()
        for process in started:
            wait_status(pawl, process, "COMPLETED")
        assert len(set(lines(began))) == len(lines(began)) == 6, lines(began)


@test
def more_types_than_one_worker_claims_are_all_run():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        for i in range(104):
            define(pawl, {"domain": "types", "type": f"t{i:03}", "steps": [{"name": "note", "set": {"a": 1}}]})
        define(pawl, {"domain": "zoo", "type": "z", "steps": [{"name": "note", "set": {"a": 1}}]})
        for type_, domain in (("t000", "types"), ("t103", "types"), ("z", "zoo")):
            wait_status(pawl, start(pawl, type_, domain=domain), "COMPLETED")


@test
def workers_of_commands_do_not_take_processes():
    with Database() as db, Pawl(db) as pawl:
        process = db.value("select pawl.start('x', p_domain => 'edge')")
        done = pawl.run("work", "process:edge", "--noop", "--drain")
        assert done.code == 2 and "has processes" in done.stderr, done
        assert db.value(f"select pawl.process_status(pawl.process_number('{process}'))") == "PENDING"


main()
