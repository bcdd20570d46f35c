#!/usr/bin/env python3
"""process_edge - processes at the edges: results that cannot be saved, outcomes that come late, retries after a timeout, branches that
depend on each other, and what one process may use of its pod. The pods run with default settings.
"""
import os
import tempfile

from helpers import Session
from pawl_test import Database, Pawl, main, test, wait_until
from process_helpers import cli, define, lines, run, show, start, wait_status


# --- results that cannot be saved ---

@test
def a_step_whose_result_cannot_be_saved_is_compensated_and_not_run_again():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        seen = os.path.join(folder, "seen")
        pay = {"name": "pay", "exec": f"echo paid >> {seen}; echo '{{}}'", "save": {"x": "{{result.id}}"},
               "compensate": {"exec": f"echo refunded >> {seen}; echo '{{}}'"}}
        _, ended = run(pawl, {"type": "saves", "on_failure": "compensate", "steps": [pay]}, "COMPENSATED", "FAILED", "WAITING_FOR_TSQ")
        assert ended["status"] == "COMPENSATED" and lines(seen) == ["paid", "refunded"], (ended, lines(seen))
        os.unlink(seen)
        process, stuck = run(pawl, {"type": "stays", "on_failure": "troubleshoot", "steps": [pay]}, "WAITING_FOR_TSQ")
        assert "pay" in stuck["error"] and lines(seen) == ["paid"], stuck
        cli(pawl, "retry", process)
        wait_until(lambda: db.value("select count(*) from pawl.tsq") == "1" and db.value(
            "select count(*) from pawl.audit where event = 'MOVED_TO_TSQ'") == "2", what="the step has failed again")
        assert lines(seen) == ["paid"], lines(seen)
        cli(pawl, "cancel", process, "--compensate")
        wait_status(pawl, process, "COMPENSATED")
        assert lines(seen) == ["paid", "refunded"], lines(seen)


@test
def a_state_that_would_grow_too_large_fails_the_step_that_has_happened():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        seen = os.path.join(folder, "seen")
        big = {"name": "big", "exec": f"echo done >> {seen}; printf '\"'; head -c 600000 /dev/zero | tr '\\0' a; printf '\"'",
               "save": {"x": "{{result}}"}, "compensate": {"exec": f"echo undone >> {seen}; echo '{{}}'"}}
        _, ended = run(pawl, {"type": "grows", "on_failure": "compensate", "steps": [big]}, "COMPENSATED", "FAILED", "WAITING_FOR_TSQ",
                       state={"text": "b" * 600000})
        assert ended["status"] == "COMPENSATED" and "1048576 bytes" in ended["error"], ended["error"]
        assert lines(seen) == ["done", "undone"], lines(seen)


# --- outcomes of commands ---

@test
def a_command_that_is_late_is_not_sent_twice_and_its_outcome_counts():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        bill = {"name": "bill", "command": {"domain": "late", "type": "charge", "payload": {"n": 1}}, "timeout": "1s",
                "retry": {"attempts": 3, "delay": "1s"}}
        process, _ = run(pawl, {"type": "cmdt", "on_failure": "troubleshoot", "steps": [bill]}, "WAITING_FOR_TSQ")
        assert db.value("select count(*) from pawl.command c join pawl.domain_name n on n.id = c.domain_id where n.name = 'late'") == "1"
        assert len([s for s in show(pawl, process)["steps"] if s["name"] == "bill"]) == 3
        done = pawl.run("work", "late", "--exec", "echo '{\"paid\": 1}'", "--drain")
        assert done.code == 0, done
        cli(pawl, "retry", process)
        ended = wait_status(pawl, process, "COMPLETED", "WAITING_FOR_TSQ")
        assert ended["status"] == "COMPLETED", ended
        assert db.value("select count(*) from pawl.command c join pawl.domain_name n on n.id = c.domain_id where n.name = 'late'") == "1"


@test
def a_retry_sends_a_command_that_was_canceled_again():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        bill = {"name": "bill", "command": {"domain": "again", "type": "charge", "payload": {}}}
        sent = "select c.command_id from pawl.command c join pawl.domain_name n on n.id = c.domain_id where n.name = 'again' order by c.id"
        process, _ = run(pawl, {"type": "cmd", "on_failure": "troubleshoot", "steps": [bill]}, "WAITING_FOR_REPLY")
        for retry in (("retry",), ("retry", "--from", "bill")):
            assert pawl.run("command", "cancel", db.rows(sent)[-1]).code == 0
            wait_status(pawl, process, "WAITING_FOR_TSQ")
            cli(pawl, retry[0], process, *retry[1:])
            wait_status(pawl, process, "WAITING_FOR_REPLY")
        assert len(db.rows(sent)) == 3, db.rows(sent)
        assert pawl.run("work", "again", "--exec", "echo '{}'", "--drain").code == 0
        wait_status(pawl, process, "COMPLETED")


# --- waits ---

@test
def a_wait_that_timed_out_waits_again_after_a_retry():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        wait = {"name": "w", "wait": {"response": "go"}, "timeout": "1h"}
        process, _ = run(pawl, {"type": "waitt", "on_failure": "troubleshoot", "steps": [wait]}, "WAITING_FOR_ASYNC")
        for retry in (("retry",), ("retry",), ("retry", "--from", "w")):
            # An hour passes.
            db.rows("update pawl.process_step set started_at = started_at - interval '1 h', ended_at = ended_at - interval '1 h';"
                    "update pawl.process set retried_at = retried_at - interval '1 h'; update pawl.delayed set due = due - interval '1 h'")
            wait_status(pawl, process, "WAITING_FOR_TSQ")
            cli(pawl, retry[0], process, *retry[1:])
            wait_status(pawl, process, "WAITING_FOR_ASYNC")
            assert db.value("select due > now() + interval '50 min' from pawl.delayed") == "t", "it waits for as long again"
        cli(pawl, "signal", process, "go")
        wait_status(pawl, process, "COMPLETED")


@test
def a_condition_is_evaluated_again_when_another_branch_patches_the_state():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        both = {"name": "both", "parallel": {"a": [{"name": "wa", "wait": {"until": "state.done"}}],
                                             "b": [{"name": "nap", "sleep": "1s"}, {"name": "fin", "set": {"done": True}}]}}
        run(pawl, {"type": "until", "steps": [both]}, "COMPLETED")


@test
def a_response_of_null_is_used_up_by_one_wait():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        steps = [{"name": "one", "wait": {"response": "ping"}}, {"name": "two", "wait": {"response": "ping"}}]
        process, _ = run(pawl, {"type": "nulls", "steps": steps}, "WAITING_FOR_ASYNC")
        cli(pawl, "signal", process, "ping", "null")
        wait_until(lambda: show(pawl, process)["step"] == "two", what="the second wait")
        assert wait_status(pawl, process, "WAITING_FOR_ASYNC")["waits_for"] == {"ping": 2}
        cli(pawl, "signal", process, "ping", "null")
        wait_status(pawl, process, "COMPLETED")


@test
def a_process_tried_again_after_its_deadline_is_not_activated_over_and_over():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        wait = {"name": "w", "wait": {"response": "go"}}
        process, _ = run(pawl, {"type": "late", "deadline": "2s", "on_deadline": "troubleshoot", "steps": [wait]}, "WAITING_FOR_TSQ")
        cli(pawl, "retry", process)
        wait_status(pawl, process, "WAITING_FOR_ASYNC")
        assert db.value("select due > now() + interval '1 year' from pawl.delayed") == "t"
        cli(pawl, "signal", process, "go")
        wait_status(pawl, process, "COMPLETED")


# --- what one process may use ---

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


# --- functions of applications ---

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


@test
def more_types_than_one_worker_claims_are_all_run():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        for i in range(104):
            define(pawl, {"domain": "types", "type": f"t{i:03}", "steps": [{"name": "note", "set": {"a": 1}}]})
        define(pawl, {"domain": "zoo", "type": "z", "steps": [{"name": "note", "set": {"a": 1}}]})
        for type_, domain in (("t000", "types"), ("t103", "types"), ("z", "zoo")):
            wait_status(pawl, start(pawl, type_, domain=domain), "COMPLETED")


main()
