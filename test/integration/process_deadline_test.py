#!/usr/bin/env python3
"""process_deadline - deadlines that a start gives: over HTTP and the command line, of processes in Python and of definitions; without a worker,
while a step runs, against a response and against the end, and with workers that are killed."""
import concurrent.futures
import os
import tempfile
import threading
import uuid

from pawl_test import Database, Pawl, main, test, wait_until
from process_worker import claim, module_worker, order_worker, post, process_module, report, show
from process_cli import cli, define, wait_status

LATE = "the deadline of the process has passed"


def begin(pawl, state=None, **fields):
    return post(pawl, "/v1/processes", {"type": "py-order", "domain": "shop", "state": state or {}, **fields}, 201)["process_id"]


def deadline_pass(db, *processes):
    """As if the deadlines passed now: a busy machine may take longer than any deadline to come to this point."""
    numbers = ", ".join(f"pawl.process_number('{process}')" for process in processes)
    db.rows(f"update pawl.process set deadline = pawl.now(), deadline_due = pawl.now() where id in ({numbers})")


def events(shown):
    return [(event["event"], event["details"].get("action") or event["details"].get("by")) for event in shown["audit"]
            if event["event"] in ("DEADLINE_PASSED", "RESUMED", "CANCEL_REQUESTED")]


@test
def a_start_gives_a_deadline_and_a_repeat_must_give_the_same():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        process = str(uuid.uuid4())
        assert begin(pawl, process_id=process, deadline="2h", on_deadline="compensate") == process
        shown = show(pawl, process)
        assert shown["on_deadline"] == "compensate" and shown["deadline"] > shown["created_at"], shown
        assert begin(pawl, process_id=process, deadline="120m", on_deadline="compensate") == process
        for fields, words in (({}, 'deadline is none, it was sent as "7200000 ms, compensate"'),
                              ({"deadline": "3h", "on_deadline": "compensate"}, 'deadline is "10800000 ms, compensate"'),
                              ({"deadline": "2h"}, 'deadline is "7200000 ms", it was'),
                              ({"deadline": "2999-01-01T00:00:00Z", "on_deadline": "compensate"}, 'deadline is "2999-01-01T00:00:00.000000Z, compensate"')):
            answer = post(pawl, "/v1/processes", {"type": "py-order", "domain": "shop", "process_id": process, **fields}, 422)
            assert words in answer["detail"], answer
        for fields, words in (({"deadline": "soon"}, "deadline must be a duration"), ({"deadline": "0s"}, "deadline must be a duration"),
                              ({"deadline": "4000d"}, "deadline must be a duration"), ({"deadline": 5}, "deadline"),
                              ({"deadline": "2026-02-30"}, "deadline must be"), ({"on_deadline": "fail"}, "on_deadline needs a deadline"),
                              ({"deadline": "2h", "on_deadline": "stop"}, "on_deadline")):
            answer = post(pawl, "/v1/processes", {"type": "py-order", "domain": "shop", **fields}, 400)
            assert words in answer["detail"], (fields, answer)
        assert db.value("select count(*) from pawl.process") == "1"
        # On the command line, where show prints it.
        started = cli(pawl, "start", "py-order", "--domain", "shop", "--deadline", "2999-01-01")["process_id"]
        line, = [line for line in pawl.run("process", "show", started).stdout.splitlines() if line.startswith("deadline")]
        assert " 2999-01-01" in line and line.endswith(", then troubleshoot"), line
        for arguments, words in ((["--deadline", "1"], "deadline must be a duration"), (["--on-deadline", "fail"], "on_deadline needs a deadline"),
                                 (["--deadline", "1h", "--on-deadline", "stop"], "on_deadline must be troubleshoot, compensate or fail")):
            done = pawl.run("process", "start", "py-order", *arguments)
            assert done.code != 0 and words in done.stderr, done
        item = claim(pawl, limit=1)[0]
        assert (item["deadline"], item["on_deadline"]) == (shown["deadline"], "compensate"), item


@test
def a_deadline_has_its_action_although_no_worker_is_there():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        ends = {"fail": "FAILED", "troubleshoot": "WAITING_FOR_TSQ", "compensate": "COMPENSATED"}
        ids = {action: begin(pawl, deadline="100ms", on_deadline=action) for action in ends}
        ids["compensate"], waiting = begin(pawl, deadline="100ms", on_deadline="compensate"), begin(pawl, deadline="1h", on_deadline="fail")
        for action, status in ends.items():
            shown = wait_status(pawl, ids[action], status)
            assert (shown["error"], events(shown)) == (LATE, [("DEADLINE_PASSED", action)]), shown
        # One that waits, whose worker is gone. Its own timeout is far away.
        item = [i for i in claim(pawl, limit=9) if i["process_id"] == waiting][0]
        report(pawl, item, record={"step": "w", "kind": "begin"}, wait={"step": "w", "responses": [{"name": "go", "count": 1}], "until": "2999-01-01T00:00:00Z"})
        assert show(pawl, waiting)["status"] == "WAITING_FOR_ASYNC"
        deadline_pass(db, waiting)
        shown = wait_status(pawl, waiting, "FAILED")
        assert (shown["error"], events(shown)) == (LATE, [("DEADLINE_PASSED", "fail")]), shown
        assert pawl.http("POST", f"/v1/processes/{waiting}/signals/go", body={}).headers["pawl-status"] == "LATE"


@test
def a_deadline_of_the_start_replaces_that_of_the_definition():
    with Database() as db, Pawl(db) as pawl:
        define(pawl, {"type": "saga", "domain": "shop", "deadline": "1h", "on_deadline": "fail", "steps": [
            {"name": "one", "exec": "true", "compensate": {"exec": "true"}}, {"name": "w", "wait": {"response": "go"}}]})
        pawl.serve()
        own, given, late = (cli(pawl, "start", "saga", "--domain", "shop", *more)["process_id"] for more in (
            [], ["--deadline", "2h", "--on-deadline", "compensate"], ["--deadline", "2h", "--on-deadline", "troubleshoot"]))
        for process in (own, given, late):
            assert wait_status(pawl, process, "WAITING_FOR_ASYNC")["step"] == "w"
        deadline_pass(db, own, given, late)
        for process, status in ((own, "FAILED"), (given, "COMPENSATED"), (late, "WAITING_FOR_TSQ")):
            shown = wait_status(pawl, process, "FAILED", "COMPENSATED", "WAITING_FOR_TSQ")
            assert (shown["status"], shown["error"]) == (status, LATE), shown
            assert [s["name"] for s in shown["steps"]] == ["one"] + ["~one"] * (status == "COMPENSATED"), shown
        cli(pawl, "retry", late)
        assert wait_status(pawl, late, "WAITING_FOR_ASYNC")["continues_at"] is None, "after a retry it has no deadline any more"
        # While its step runs, in a pod of its own: the step is stopped.
        define(pawl, {"type": "long", "domain": "shop", "steps": [{"name": "one", "exec": "sleep 1000", "retry": {"attempts": 1}}]})
        process = cli(pawl, "start", "long", "--domain", "shop", "--deadline", "2s", "--on-deadline", "fail")["process_id"]
        shown = wait_status(pawl, process, "FAILED")
        assert LATE in shown["error"] or "program ran longer than" in shown["error"], shown


@test
def a_process_in_python_learns_of_its_deadline_at_its_next_call():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        seen, passed = [], set()

        def deadline_decided(process):
            if process not in passed:
                passed.add(process)
                deadline_pass(db, process)
                wait_until(lambda: events(show(pawl, process)), what="it was decided")

        def order(run):
            run.step("reserve", lambda key: None)
            try:
                run.step("pass", lambda key: deadline_decided(run.id))
                run.step("ship", lambda key: seen.append("shipped"))
            except process_module.Refused as refused:
                seen.append(str(refused))
                run.compensating()
                run.step("release", lambda key: seen.append("released"), input=str(refused))
                return str(refused)
            return "done"

        worker = module_worker(pawl, "shop", {"py-order": order})
        process = begin(pawl, deadline="1h", on_deadline="compensate")
        wait_until(lambda: worker.turn() and show(pawl, process)["ended_at"], what="it ended")
        shown = show(pawl, process)
        assert (shown["status"], shown["error"], [s["name"] for s in shown["steps"]]) == ("COMPENSATED", LATE, ["reserve", "pass", "release"]), shown
        assert "shipped" not in seen and seen.count("released") == 1 and seen[-2:] == [LATE, "released"], seen
        assert events(shown) == [("DEADLINE_PASSED", "compensate")], shown["audit"]
        # With the other actions it has ended, and what runs is written nowhere.
        for action, status in (("fail", "FAILED"), ("troubleshoot", "WAITING_FOR_TSQ")):
            del seen[:]
            process = begin(pawl, deadline="1h", on_deadline=action)
            assert worker.turn() == 1
            shown = show(pawl, process)
            assert (shown["status"], shown["error"], [s["name"] for s in shown["steps"]], seen) == (status, LATE, ["reserve"], []), shown
        assert pawl.run("process", "retry", process).code == 0
        assert worker.turn() == 1
        assert (show(pawl, process)["result"], seen) == ("done", ["shipped"]), "an operator who has it tried again means it"


@test
def a_process_in_code_does_not_complete_after_its_deadline():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        ends = {"fail": "FAILED", "troubleshoot": "WAITING_FOR_TSQ", "compensate": "WAITING_FOR_TSQ"}
        last = {"record": {"step": "last"}, "end": {"outcome": "complete", "result": 1}}
        for action, status in ends.items():
            process = begin(pawl, deadline="1h", on_deadline=action)
            item, = claim(pawl)
            # In one transaction with the end of the requeuer's turn in between: neither the worker nor the server was first.
            db.rows(f"update pawl.process set deadline = pawl.now() where id = pawl.process_number('{process}')")
            assert report(pawl, item, **last)["verdict"] == "ended"
            shown = show(pawl, process)
            assert (shown["status"], shown["result"], [s["name"] for s in shown["steps"]]) == (status, None, ["last"]), shown
            assert shown["error"].startswith(LATE) and events(shown) == [("DEADLINE_PASSED", action)], shown
            if status == "WAITING_FOR_TSQ":
                assert pawl.run("process", "retry", process).code == 0
                item, = claim(pawl)
                assert report(pawl, item, **last)["verdict"] == "written"
                assert show(pawl, process)["status"] == "COMPLETED"


@test
def a_worker_that_is_killed_while_a_deadline_is_compensated_is_replaced():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        state = {"items": ["lamp"], "amount": 5}
        for number, crash_at in enumerate(("before it is suspended 1", "before the step 1", "after the step 1", "before the end 1")):
            effects, domain = os.path.join(folder, str(number)), f"shop{number}"
            process = begin(pawl, state, domain=domain, deadline="1h", on_deadline="compensate")
            worker = order_worker(pawl, domain, effects)
            try:
                wait_status(pawl, process, "WAITING_FOR_ASYNC")
                worker.kill()
                deadline_pass(db, process)
                wait_status(pawl, process, "PENDING")
                worker = order_worker(pawl, domain, effects, crash_at, lease_s=1)
                wait_until(lambda: not worker.is_running(), timeout=120, what=f"it is killed {crash_at}")
                assert not show(pawl, process)["ended_at"]
                worker = order_worker(pawl, domain, effects)
                shown = wait_status(pawl, process, "COMPENSATED")
            finally:
                worker.kill()
            assert shown["error"] == LATE and [s["name"] for s in shown["steps"]] == ["reserve", "release"], shown
            with open(effects, encoding="utf-8") as file:
                lines = file.read().splitlines()
            assert len(set(lines)) == 2 and len(lines) <= 3, (crash_at, lines)


@test
def a_deadline_against_a_response_and_against_the_end_has_one_result():
    with Database() as db, Pawl(db) as pawl, concurrent.futures.ThreadPoolExecutor(8) as pool:
        pawl.serve()
        waiting = [begin(pawl, deadline="1h", on_deadline="compensate") for _ in range(24)]
        for item in claim(pawl, limit=24):
            report(pawl, item, record={"step": "w", "kind": "begin"}, wait={"step": "w", "responses": [{"name": "go", "count": 1}]})
        running = [begin(pawl, deadline="1h", on_deadline="fail") for _ in range(24)]
        items = {item["process_id"]: item for item in claim(pawl, limit=24)}
        assert set(items) == set(running)
        gate = threading.Barrier(8)

        def signal(process):
            gate.wait()
            return pawl.http("POST", f"/v1/processes/{process}/signals/go", body={}).headers["pawl-status"]

        def end(process):
            gate.wait()
            while (verdict := report(pawl, items[process], end={"outcome": "complete", "result": 1})["verdict"]) == "busy":
                pass  # another transaction has the process locked: a worker sends it again
            return verdict

        def late(process):
            gate.wait()
            deadline_pass(db, process)

        for at in range(0, 24, 2):  # two of each and their deadlines at once
            made = [(call, process, pool.submit(call, process)) for call, process in (
                [(signal, p) for p in waiting[at:at + 2]] + [(end, p) for p in running[at:at + 2]]
                + [(late, p) for p in waiting[at:at + 2] + running[at:at + 2]])]
            for call, process, future in made:
                result = future.result()
                if call is end:
                    shown = wait_status(pawl, process, "COMPLETED", "FAILED")
                    assert (shown["status"], len(events(shown))) == (("COMPLETED", 0) if result == "written" else ("FAILED", 1)), (result, shown)
                    assert result in ("written", "ended", "lost"), result
                if call is signal:
                    wait_until(lambda: ("DEADLINE_PASSED", "compensate") in events(show(pawl, process)), what="it was decided")
                    shown = show(pawl, process)
                    resumed = [by for event, by in events(shown) if event == "RESUMED"]
                    assert (resumed, shown["status"]) == (["response" if result == "RESUMED" else "deadline"], "PENDING"), (result, shown["audit"])
                    assert [event for event, _ in events(shown)].count("DEADLINE_PASSED") == 1, shown["audit"]


main()
