#!/usr/bin/env python3
"""process_wait - a wait takes one response, and waits and sleeps begin once. The pods run with default settings."""
import datetime
import json

from pawl_test import Database, Pawl, main, test, wait_until
from process_cli import cli, define, run, show, start, steps, wait_status
from servers import Session


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
def responses_that_are_too_large_together_fail_the_wait_with_a_reason():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        wait = {"name": "w", "wait": {"response": "part", "count": 5}}
        process, _ = run(pawl, {"type": "parts", "on_failure": "fail", "steps": [wait]}, "WAITING_FOR_ASYNC")
        for i in range(5):
            assert pawl.run("process", "signal", process, "part", "-", stdin=json.dumps("a" * 1000000)).code == 0, i
        ended = wait_status(pawl, process, "FAILED", "WAITING_FOR_TSQ", "COMPLETED")
        assert ended["status"] == "FAILED" and "4194304 bytes together" in ended["error"], ended["error"]


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


# --- sleeps ---

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
def a_sleep_takes_its_length_from_the_state_and_a_wrong_one_can_be_mended():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        define(pawl, {"type": "rest", "domain": "edge", "on_failure": "troubleshoot", "steps": [{"name": "rest", "sleep": {"for": "{{state.n}}ms"}}]})
        wait_status(pawl, start(pawl, "rest", {"n": 20}), "COMPLETED")
        process = start(pawl, "rest", {"n": "soon"})
        stuck = wait_status(pawl, process, "WAITING_FOR_TSQ")
        assert stuck["error"].startswith('step rest: "soonms" is not a duration') and stuck["step"] == "rest", stuck
        assert [row["process_id"] for row in cli(pawl, "list", "--step", "rest", "--status", "WAITING_FOR_TSQ")] == [process]
        cli(pawl, "signal", process, "mend", '{"n": 5}')
        cli(pawl, "retry", process)
        wait_status(pawl, process, "COMPLETED")
        for wrong, words in (({"for": "1s", "until": "x"}, "exactly one of for and until"), ({}, "exactly one of for and until")):
            done = pawl.run("process", "define", "-", stdin=json.dumps({"type": "x", "domain": "edge", "steps": [{"name": "r", "sleep": wrong}]}))
            assert done.code != 0 and words in done.stderr, done


main()
