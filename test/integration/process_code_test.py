#!/usr/bin/env python3
"""process_code - processes run by workers over HTTP: claims with history, reports, leases; and the order of examples/python-process, killed at
every point."""
import concurrent.futures
import json
import os
import sys
import tempfile
import time
import uuid

from pawl_test import Database, Pawl, Process, main, setting, test, wait_until

ORDER = os.path.join(setting("PAWL_SOURCE"), "examples", "python-process", "order.py")
STATE = {"items": ["lamp"], "amount": 5, "rest": 0.1}


def post(pawl, path, body, status=200):
    answer = pawl.http("POST", path, body=body, headers={"Content-Type": "application/json"})
    assert answer.status == status, (answer.status, answer.body)
    return answer.json


def claim(pawl, domain="shop", types=("py-order",), **more):
    return post(pawl, f"/v1/process-domains/{domain}/claim", {"types": list(types), "wait_s": 10, **more})["items"]


def report(pawl, item, domain="shop", status=200, **parts):
    answer = post(pawl, f"/v1/process-domains/{domain}/report",
                  {"items": [{"process_id": item["process_id"], "lease": item["lease"], **parts}]}, status)
    return answer["items"][0] if status == 200 else answer


def start(pawl, state=None, domain="shop", kind="py-order"):
    return post(pawl, "/v1/processes", {"type": kind, "domain": domain, "state": state or {}}, 201)["process_id"]


def show(pawl, process_id):
    return pawl.http("GET", f"/v1/processes/{process_id}").json


def ended(pawl, process_id):
    return wait_until(lambda: (lambda s: s if s["ended_at"] or s["status"] == "WAITING_FOR_TSQ" else None)(show(pawl, process_id)),
                      timeout=120, what=f"{process_id} ended")


@test
def a_worker_claims_records_and_ends_a_process():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        process_id = start(pawl, {"total": 1})
        item, = claim(pawl)
        assert (item["process_id"], item["state"], item["input"], item["version"], item["steps"], item["responses"], item["phase"]) == (
            process_id, {"total": 1}, {"total": 1}, 1, [], [], "forward"), item
        record = {"step": "reserve", "result": {"id": 7}, "input_hash": "0:step:abc", "took_s": 0.5}
        for _ in range(2):  # repeated, because its answer was lost: one record, one patch
            verdict = report(pawl, item, record=record, patch={"stock": 7}, version=1)
            assert (verdict["verdict"], verdict["canceled"], verdict["version"], verdict["state"]) == (
                "written", False, 2, {"total": 1, "stock": 7}), verdict
        assert report(pawl, item, record={"step": "ship"}, patch={"x": 1}, version=1)["verdict"] == "stale"
        assert report(pawl, item, end={"outcome": "complete", "result": [1]})["verdict"] == "written"
        shown = show(pawl, process_id)
        assert (shown["status"], shown["result"], shown["version"]) == ("COMPLETED", [1], None), shown
        assert [(s["name"], s["result"], 400 < s["took_ms"] < 700) for s in shown["steps"]] == [("reserve", {"id": 7}, True)], shown["steps"]
        assert report(pawl, item, record={"step": "late"})["verdict"] == "lost"
        assert len(show(pawl, process_id)["steps"]) == 1


@test
def a_suspended_process_is_resumed_by_its_response_with_its_history():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        process_id = start(pawl)
        item, = claim(pawl)
        verdict = report(pawl, item, record={"step": "approval:begun", "input_hash": "0:wait:x"},
                         wait={"step": "approval", "responses": [{"name": "approval", "count": 1}]})
        assert verdict["verdict"] == "written", verdict
        shown = show(pawl, process_id)
        assert (shown["status"], shown["waits_for"], shown["step"]) == ("WAITING_FOR_ASYNC", {"approval": 1}, "approval"), shown
        answer = pawl.http("POST", f"/v1/processes/{process_id}/signals/approval", body={"approved": True})
        assert answer.headers["pawl-status"] == "RESUMED"
        item, = claim(pawl)
        assert [(s["step"], s["attempt"], s["input_hash"]) for s in item["steps"]] == [("approval:begun", 1, "0:wait:x")], item
        assert [(r["name"], r["payload"]) for r in item["responses"]] == [("approval", {"approved": True})], item
        # It has come already: the process is not suspended but goes on with what is known now.
        met = report(pawl, item, wait={"step": "again", "responses": [{"name": "approval", "count": 1}]})
        assert (met["verdict"], len(met["responses"]), len(met["steps"]), met["state"]) == ("met", 1, 1, {"approved": True}), met
        # A time resumes it, too.
        assert report(pawl, item, wait={"step": "rest", "until": item["now"]})["verdict"] == "written"
        item, = claim(pawl)
        # Given back, it can be claimed at once.
        assert report(pawl, item, release=True)["verdict"] == "written"
        again, = claim(pawl)
        assert (again["process_id"], again["attempt"]) == (process_id, item["attempt"]) and again["lease"] != item["lease"]
        assert report(pawl, item, record={"step": "late"})["verdict"] == "lost"


@test
def a_file_for_a_type_that_runs_as_code_is_refused():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        process_id = start(pawl)
        item, = claim(pawl)
        assert report(pawl, item, record={"step": "reserve"}, wait={"step": "go", "responses": [{"name": "go", "count": 1}]})["verdict"] == "written"
        file = json.dumps({"type": "py-order", "domain": "shop", "steps": [{"name": "one", "set": {"a": 1}}]})
        refused = pawl.run("process", "define", "-", "--json", stdin=file)
        assert refused.code == 1 and process_id in json.loads(refused.stderr)["detail"], refused
        assert json.loads(refused.stderr)["type"] == "/problems/type-is-code", refused
        assert pawl.http("POST", f"/v1/processes/{process_id}/signals/go", body={}).headers["pawl-status"] == "RESUMED"
        item, = claim(pawl)  # its worker goes on with it
        assert report(pawl, item, end={"outcome": "complete"})["verdict"] == "written"
        other = start(pawl, kind="py-later")  # not begun: it waits for its definition
        assert pawl.run("process", "define", "-", stdin=file.replace("py-order", "py-later")).code == 0
        assert ended(pawl, other)["status"] == "COMPLETED"
        assert pawl.run("process", "define", "-", stdin=file).code == 0  # none of them is open


@test
def commands_and_children_of_a_step_are_sent_once_and_answer():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        process_id = start(pawl)
        item, = claim(pawl)
        send = {"step": "charge", "domain": "bank", "type": "charge", "payload": {"amount": 5}}
        wait = {"step": "charge", "status": "WAITING_FOR_REPLY", "responses": [{"name": "$reply.charge", "count": 1}]}
        first = report(pawl, item, send=send)
        verdict = report(pawl, item, send=send, wait=wait)
        assert verdict["verdict"] == "written" and verdict["command_id"] == first["command_id"], (first, verdict)
        assert show(pawl, process_id)["status"] == "WAITING_FOR_REPLY"
        command, = post(pawl, "/v1/domains/bank/claim", {"limit": 10})["items"]
        assert (command["command_id"], command["payload"]) == (verdict["command_id"], {"amount": 5})
        post(pawl, "/v1/domains/bank/settle", {"items": [{"command_id": command["command_id"], "lease": command["lease"],
                                                         "outcome": "complete", "result": {"ok": 1}}]})
        item, = claim(pawl)
        assert [(r["name"], r["payload"]["result"]) for r in item["responses"]] == [("$reply.charge", {"ok": 1})], item
        # A child is a process.
        child = {"step": "refund", "domain": "shop", "type": "refund", "payload": {"a": 1}, "process": True}
        verdict = report(pawl, item, send=child, wait={**wait, "step": "refund", "responses": [{"name": "$reply.refund", "count": 1}]})
        inner, = claim(pawl, types=["refund"])
        assert (inner["process_id"], inner["state"]) == (verdict["command_id"], {"a": 1})
        report(pawl, inner, end={"outcome": "reject", "error": "no"})
        item, = claim(pawl)
        assert [r["payload"]["status"] for r in item["responses"]] == ["COMPLETED", "FAILED"], item
        # What the lease does not allow is not sent.
        report(pawl, item, end={"outcome": "fail", "error": "enough"})
        assert report(pawl, item, send={**send, "step": "late"})["verdict"] == "lost"
        assert db.value("select count(*) from pawl.command where type = 'charge'") == "1"
        assert show(pawl, process_id)["status"] == "WAITING_FOR_TSQ"


@test
def a_lease_that_ended_writes_nothing_and_a_heartbeat_keeps_it():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        process_id = start(pawl)
        item, = claim(pawl, lease_s=1)
        extend = {"items": [{"process_id": process_id, "lease": item["lease"]}], "lease_s": 600}
        assert post(pawl, "/v1/process-domains/shop/extend", extend)["items"][0]["verdict"] == "extended"
        time.sleep(1.2)  # longer than the first lease: only the heartbeat can have kept it
        assert report(pawl, item, record={"step": "a"})["verdict"] == "written"
        db.rows("update pawl.lease set until = now() - interval '1 s'")
        second, = claim(pawl, lease_s=600)
        assert second["lease"] != item["lease"] and second["attempt"] >= 1
        assert report(pawl, item, record={"step": "b"}, patch={"b": 1})["verdict"] == "lost"
        assert report(pawl, item, end={"outcome": "complete"})["verdict"] == "lost"
        assert post(pawl, "/v1/process-domains/shop/extend", extend)["items"][0]["verdict"] == "lost"
        shown = show(pawl, process_id)
        assert ([s["name"] for s in shown["steps"]], shown["state"], shown["status"]) == (["a"], {}, "IN_PROGRESS"), shown


@test
def reports_in_one_call_do_not_fail_each_other():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        ids = [start(pawl) for _ in range(3)]
        items = claim(pawl, limit=100)
        while len(items) < 3:
            items += claim(pawl, limit=100)
        by_id = {item["process_id"]: item for item in items}
        # A number that PostgreSQL cannot keep, an unknown process, a state that is too large.
        rows = [{"process_id": ids[0], "lease": by_id[ids[0]]["lease"], "record": {"step": "a", "result": 1}},
                {"process_id": ids[1], "lease": by_id[ids[1]]["lease"], "record": {"step": "a", "result": "NUMBER"}},
                {"process_id": str(uuid.uuid4()), "lease": 1, "record": {"step": "a"}},
                {"process_id": ids[2], "lease": by_id[ids[2]]["lease"], "record": {"step": "a"}, "patch": {"x": "y" * (1 << 20)}}]
        body = json.dumps({"items": rows}).replace('"NUMBER"', "1e" + "9" * 6).encode()
        verdicts = post(pawl, "/v1/process-domains/shop/report", body)["items"]
        assert [v["verdict"] for v in verdicts] == ["written", "refused", "lost", "too_large"], verdicts
        assert [len(show(pawl, i)["steps"]) for i in ids] == [1, 0, 0]


@test
def bad_reports_and_claims_are_refused_by_field():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        start(pawl)
        item, = claim(pawl)
        for parts, words in [
                ({"patch": {}}, "patch needs a record"),
                ({"record": {"step": "a"}, "patch": [1]}, "patch must be a JSON object"),
                ({"record": {"step": "a", "result": 1, "error": "x"}}, "a result or an error"),
                ({"record": {"step": "-a"}}, "record.step must be"),
                ({"record": {"step": "a", "attempt": 0}}, "attempt must be"),
                ({"record": {"stepp": "a"}}, "stepp"),
                ({"version": 3}, "version needs a patch"),
                ({"wait": {"step": "a"}}, "nothing would resume"),
                ({"wait": {"step": "a", "until": "soon"}}, "wait.until must be a time"),
                ({"wait": {"step": "a", "until": "2026-11-16T10:-1:00Z"}}, "wait.until must be a time"),
                ({"wait": {"step": "a", "status": "COMPLETED", "until": item["now"]}}, "status"),
                ({"wait": {"step": "a", "responses": [{"name": "x", "count": 1}] * 2}}, "twice"),
                ({"wait": {"step": "a", "until": item["now"]}, "end": {"outcome": "fail"}}, "at most one of"),
                ({"end": {"outcome": "retry"}}, "outcome"),
                ({"end": {"outcome": "complete", "error": "x"}}, "end.error belongs to"),
                ({"send": {"step": "a", "domain": "no domain", "type": "x"}}, "domain"),
                ({"send": {"step": "a", "domain": "shop", "type": "x", "payload": 1, "process": True}}, "state must be a JSON object"),
                ({"phase": "forward"}, "phase")]:
            detail = report(pawl, item, status=400, **parts)["detail"]
            assert words in detail and "items[0]" in detail, (parts, detail)
        for body, words in [({}, "types"), ({"types": []}, "types"), ({"types": ["a"], "limit": 101}, "limit"),
                            ({"types": ["a"], "lease_s": 0}, "lease_s")]:
            answer = pawl.http("POST", "/v1/process-domains/shop/claim", body=body)
            assert answer.status == 400 and words in answer.json["detail"], (body, answer.body)
        assert pawl.http("POST", "/v1/process-domains/no%20domain/claim", body={"types": ["a"]}).status == 400
        # Other scopes may not.
        key = pawl.run("key", "create", "reader", "--scopes", "read,command", "--json")
        token = key.json["token"]
        for path in ("claim", "report", "extend"):
            assert pawl.http("POST", f"/v1/process-domains/shop/{path}", body={}, token=token).status == 403
        # A type that has a definition is run by pods.
        define = pawl.run("process", "define", "-", stdin=json.dumps(
            {"type": "filed", "domain": "filed", "steps": [{"name": "a", "wait": {"response": "never"}}]}))
        assert define.code == 0, define
        pawl.stop()
        pawl.serve("--role", "api")
        process_id = start(pawl, domain="filed", kind="filed")
        answer = pawl.http("POST", "/v1/process-domains/filed/claim", body={"types": ["filed"], "wait_s": 10})
        assert answer.status == 409 and "has a definition" in answer.json["detail"], answer.body
        assert show(pawl, process_id)["status"] == "PENDING"


def order_worker(pawl, domain, effects, crash_at=None):
    environment = {**os.environ, "PAWL_URL": f"http://{pawl.server.host}:{pawl.server.port}", "PAWL_TOKEN": pawl.TOKEN, "EFFECTS": effects, "LEASE_S": "1", "WAIT_S": "5"}
    if crash_at:
        environment["CRASH_AT"] = str(crash_at)
    worker = Process([sys.executable, ORDER, domain], env=environment)
    pawl.processes.append(worker)
    return worker


def order_run(pawl, folder, number):
    """One order in a domain of its own, whose worker is killed at point `number`. Returns the process and how often each effect happened."""
    domain, effects = f"shop{number}", os.path.join(folder, str(number))
    process_id = start(pawl, {**STATE, "bank": f"bank{number}"}, domain)
    assert pawl.http("POST", f"/v1/processes/{process_id}/signals/approval", body={"approved": True}).status == 201
    worker = order_worker(pawl, domain, effects, number)
    bank = pawl.start("work", f"bank{number}", "--exec", "echo '{\"paid\": true}'")
    killed = False
    try:
        def step():
            nonlocal worker, killed
            if not worker.is_running():
                assert not killed, "killed twice"
                killed = True
                worker = order_worker(pawl, domain, effects)
            shown = show(pawl, process_id)
            return shown if shown["ended_at"] or shown["status"] == "WAITING_FOR_TSQ" else None

        shown = wait_until(step, timeout=200, what=f"order {number} ended")
    finally:
        worker.kill()
        bank.kill()
    with open(effects, encoding="utf-8") as file:
        lines = file.read().splitlines()
    return shown, lines, killed


@test
def an_order_in_python_survives_a_kill_at_each_point():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        numbers = range(1, 17)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            runs = list(pool.map(lambda number: order_run(pawl, folder, number), numbers))
        kills = 0
        for number, (shown, lines, killed) in zip(numbers, runs):
            assert shown["status"] == "COMPLETED" and shown["result"]["charged"] == {"paid": True}, (number, shown)
            names = [s["name"] for s in shown["steps"]]
            assert sorted(names) == sorted(["reserve", "approval", "rest", "charge", "ship"]), (number, names)
            for name in ("reserve", "ship"):  # again only if it was killed after the effect and before the record, and then with the same key
                made = [line for line in lines if line.startswith(name + " ")]
                assert 1 <= len(made) <= 1 + killed and len(set(made)) == 1, (number, lines)
            assert sum(line.startswith("reserve ") for line in lines) + sum(line.startswith("ship ") for line in lines) <= 2 + killed
            kills += killed
        assert kills >= 12, kills  # the last points may be behind the end


@test
def an_order_in_python_is_compensated_when_it_is_refused_or_canceled():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        effects = os.path.join(folder, "effects")
        worker = order_worker(pawl, "shop", effects)
        try:
            refused, late, canceled = (start(pawl, {**STATE, "patience": patience}) for patience in (600, 0.1, 600))
            pawl.http("POST", f"/v1/processes/{refused}/signals/approval", body={"approved": False})
            wait_until(lambda: show(pawl, canceled)["status"] == "WAITING_FOR_ASYNC", what="it waits")
            answer = pawl.http("POST", f"/v1/processes/{canceled}/cancel", body={"compensate": True, "operator": "eve"})
            assert answer.status == 200, answer.body
            for process_id, reason in ((refused, "it was not approved"), (late, "it was not approved"), (canceled, "canceled by an operator")):
                shown = ended(pawl, process_id)
                assert (shown["status"], shown["error"]) == ("COMPENSATED", reason), shown
                assert [s["name"] for s in shown["steps"]][-1] == "release", shown
        finally:
            worker.kill()
        with open(effects, encoding="utf-8") as file:
            assert sorted(line.split()[0] for line in file) == ["release"] * 3 + ["reserve"] * 3


@test
def a_command_that_completes_while_its_process_in_python_is_canceled_is_known_to_it():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        worker = order_worker(pawl, "shop", os.path.join(folder, "effects"))
        try:
            for outcome in ("complete", "reject"):
                process_id = start(pawl, {**STATE, "bank": "bank-" + outcome})
                pawl.http("POST", f"/v1/processes/{process_id}/signals/approval", body={"approved": True})
                wait_until(lambda: show(pawl, process_id)["status"] == "WAITING_FOR_REPLY", what="it waits for its command")
                item = post(pawl, f"/v1/domains/bank-{outcome}/claim", {"limit": 1})["items"][0]
                assert pawl.http("POST", f"/v1/processes/{process_id}/cancel", body={"compensate": True}).status == 200
                wait_until(lambda: show(pawl, process_id)["waits_for"] == {"$reply.charge": 1} and show(pawl, process_id)["status"] == "COMPENSATING",
                           what="it waits for its command before it compensates")
                post(pawl, f"/v1/domains/bank-{outcome}/settle", {"items": [{"command_id": item["command_id"], "lease": item["lease"], "outcome": outcome}]})
                shown = ended(pawl, process_id)
                assert shown["status"] == "COMPENSATED", shown
                assert [(s["name"], s["error"] is None) for s in shown["steps"]][-2:] == [("charge", outcome == "complete"), ("release", True)], shown
        finally:
            worker.kill()


@test
def a_changed_function_is_reported_with_the_first_step_that_differs():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        effects = os.path.join(folder, "effects")
        other_order, other_input = start(pawl), start(pawl)
        marks = {}
        for _ in range(2):
            item, = claim(pawl)
            marks[item["process_id"]] = item
        report(pawl, marks[other_order], record={"step": "pack", "input_hash": "0:step:1"}, release=True)
        report(pawl, marks[other_input], record={"step": "reserve", "input_hash": "0:step:1"}, release=True)
        db.rows("update pawl.command set payload = '" + json.dumps(STATE) + "'")
        worker = order_worker(pawl, "shop", effects)
        try:
            for process_id, words in ((other_order, 'call 1 was step "pack" when it was recorded, and is "reserve" now'),
                                      (other_input, 'step "reserve" was recorded with another kind or input')):
                shown = ended(pawl, process_id)
                assert shown["status"] == "WAITING_FOR_TSQ" and words in shown["error"], shown
        finally:
            worker.kill()
        assert not os.path.exists(effects)


main()
