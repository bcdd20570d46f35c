#!/usr/bin/env python3
"""process_code - processes run by workers over HTTP: claims with history, reports, leases; and the order of examples/python-process, killed at
every point."""
import concurrent.futures
import contextlib
import io
import json
import os
import tempfile
import time
import uuid

from pawl_test import Database, Pawl, main, test, wait_until
from process_worker import claim, module_worker, order_worker, post, process_module, report, show
from servers import Session

STATE = {"items": ["lamp"], "amount": 5, "rest": 0.1}


def start(pawl, state=None, domain="shop", kind="py-order"):
    return post(pawl, "/v1/processes", {"type": kind, "domain": domain, "state": state or {}}, 201)["process_id"]


def ended(pawl, process_id):
    return wait_until(lambda: (lambda s: s if s["ended_at"] or s["status"] == "WAITING_FOR_TSQ" else None)(show(pawl, process_id)),
                      what=f"{process_id} ended")


@test
def a_worker_claims_records_and_ends_a_process():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        process_id = start(pawl, {"total": 1})
        item, = claim(pawl)
        assert (item["process_id"], item["state"], item["input"], item["version"], item["steps"], item["responses"], item["phase"]) == (
            process_id, {"total": 1}, {"total": 1}, 1, [], [], "forward"), item
        record = {"step": "reserve", "result": {"id": 7}, "call": 0, "call_kind": "step", "input_hash": "abc", "took_s": 0.5}
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
        verdict = report(pawl, item, record={"step": "approval", "kind": "begin", "call": 0, "call_kind": "wait", "input_hash": "x"},
                         wait={"step": "approval", "responses": [{"name": "approval", "count": 1}]})
        assert verdict["verdict"] == "written", verdict
        shown = show(pawl, process_id)
        assert (shown["status"], shown["waits_for"], shown["step"]) == ("WAITING_FOR_ASYNC", {"approval": 1}, "approval"), shown
        answer = pawl.http("POST", f"/v1/processes/{process_id}/signals/approval", body={"approved": True})
        assert answer.headers["pawl-status"] == "RESUMED"
        item, = claim(pawl)
        assert [(s["step"], s["kind"], s["attempt"], s["call"], s["input_hash"]) for s in item["steps"]] == [("approval", "begin", 1, 0, "x")], item
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
def a_worker_in_python_names_itself_in_the_audit():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve("--role", "api")
        received = []

        def order(run):
            received.extend(event["actor"] for event in show(pawl, run.id)["audit"] if event["event"] == "RECEIVED")

        worker = module_worker(pawl, "shop", {"py-order": order})
        process = start(pawl)
        worker.turn()
        assert received == [worker.name], (received, worker.name)
        assert show(pawl, process)["status"] == "COMPLETED"


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
def a_file_is_refused_while_code_runs_the_first_step_of_a_process():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        process_id = start(pawl)
        item, = claim(pawl)  # and nothing is recorded yet
        file = json.dumps({"type": "py-order", "domain": "shop", "steps": [{"name": "one", "set": {"a": 1}}]})
        refused = pawl.run("process", "define", "-", "--json", stdin=file)
        assert refused.code == 1 and json.loads(refused.stderr)["type"] == "/problems/type-is-code", refused
        assert report(pawl, item, record={"step": "charge"}, wait={"step": "go", "responses": [{"name": "go", "count": 1}]})["verdict"] == "written"
        assert pawl.run("process", "define", "-", stdin=file).code == 1
        pawl.http("POST", f"/v1/processes/{process_id}/signals/go", body={})
        item, = claim(pawl)
        assert report(pawl, item, end={"outcome": "complete"})["verdict"] == "written"
        assert show(pawl, process_id)["status"] == "COMPLETED"


@test
def a_process_is_given_its_definition_once_and_the_same_call_again_returns_it():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve("--role", "api")
        process_id = start(pawl)
        file = json.dumps({"type": "py-order", "domain": "shop", "steps": [{"name": "one", "set": {"a": 1}}]})
        assert pawl.run("process", "define", "-", stdin=file).code == 0
        post(pawl, "/v1/domains/process:shop/claim", {"limit": 1, "wait_s": 60})
        number = db.value(f"select id from pawl.command where command_id = '{process_id}'")
        bind = f"select pawl.process_bind(l.id, l.token) from pawl.lease l where l.id = {number}"
        bound = db.value(bind)
        assert bound and db.value(bind) == bound == db.value(f"select definition_id from pawl.process where id = {number}")
        assert db.value(bind.replace("l.token)", "l.token + 1)")) == ""  # by a worker that has lost the lease


@test
def commands_and_children_of_a_step_are_sent_once_and_answer():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        process_id = start(pawl)
        item, = claim(pawl)
        send = {"step": "charge", "domain": "bank", "type": "charge", "payload": {"amount": 5}}
        wait = {"step": "charge", "status": "WAITING_FOR_REPLY", "responses": [{"kind": "reply", "name": "charge", "count": 1}]}
        first = report(pawl, item, send=send)
        verdict = report(pawl, item, send=send, wait=wait)
        assert verdict["verdict"] == "written" and verdict["command_id"] == first["command_id"], (first, verdict)
        assert show(pawl, process_id)["status"] == "WAITING_FOR_REPLY"
        command, = post(pawl, "/v1/domains/bank/claim", {"limit": 10})["items"]
        assert (command["command_id"], command["payload"]) == (verdict["command_id"], {"amount": 5})
        post(pawl, "/v1/domains/bank/settle", {"items": [{"command_id": command["command_id"], "lease": command["lease"],
                                                         "outcome": "complete", "result": {"ok": 1}}]})
        item, = claim(pawl)
        assert [(r["kind"], r["name"], r["payload"]["result"]) for r in item["responses"]] == [("reply", "charge", {"ok": 1})], item
        # A child is a process.
        child = {"step": "refund", "domain": "shop", "type": "refund", "payload": {"a": 1}, "process": True}
        verdict = report(pawl, item, send=child, wait={**wait, "step": "refund", "responses": [{"kind": "reply", "name": "refund", "count": 1}]})
        inner, = claim(pawl, types=["refund"])
        assert (inner["process_id"], inner["state"]) == (verdict["command_id"], {"a": 1})
        report(pawl, inner, end={"outcome": "reject", "error": "no"})
        item, = claim(pawl)
        assert [r["payload"]["status"] for r in item["responses"]] == ["COMPLETED", "FAILED"], item
        # What is not written is not sent, and has no id.
        stale = report(pawl, item, send={**send, "step": "stale"}, record={"step": "patch"}, patch={"x": 1}, version=9999)
        assert (stale["verdict"], stale.get("command_id")) == ("stale", None), stale
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
        item, = claim(pawl, lease_s=60)
        left = "select until > now() + interval '5 min' from pawl.lease"
        assert db.value(left) == "f"
        extend = {"items": [{"process_id": process_id, "lease": item["lease"]}], "lease_s": 600}
        assert post(pawl, "/v1/process-domains/shop/extend", extend)["items"][0]["verdict"] == "extended"
        assert db.value(left) == "t"
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
def a_report_that_fails_for_a_passing_reason_is_busy_and_not_refused():
    """As while an index is created: the step has run, and its record is written when the lock is gone."""
    with Database() as db, Pawl(db, env={"PAWL_REQUEST_TIMEOUT": "1s"}) as pawl:
        pawl.serve()
        start(pawl)
        item, = claim(pawl)
        with Session(db.url) as other:
            other.do("begin")
            other.do("lock table pawl.process_step in share mode")
            answer = pawl.http("POST", "/v1/process-domains/shop/report", body={"items": [
                {"process_id": item["process_id"], "lease": item["lease"], "record": {"step": "charge"}}]})
            assert answer.status == 503 or [v["verdict"] for v in answer.json["items"]] == ["busy"], (answer.status, answer.body)
            other.do("rollback")
        assert report(pawl, item, record={"step": "charge"})["verdict"] == "written"


@test
def a_repeated_report_of_the_last_record_that_fits_is_written():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        process_id = start(pawl)
        item, = claim(pawl)
        assert item["records_left"] == 10000, item
        assert report(pawl, item, record={"step": "first"})["verdict"] == "written"
        db.rows("""insert into pawl.process_step (id, step, started_at, ended_at)
                   select id, 's' || n, started_at, ended_at from pawl.process_step, generate_series(1, 9998) n""")
        assert report(pawl, item, record={"step": "last"}, patch={"a": 1})["verdict"] == "written"
        again = report(pawl, item, record={"step": "last"}, patch={"a": 1})  # its answer was lost
        assert (again["verdict"], show(pawl, process_id)["state_version"]) == ("written", 2), again
        assert report(pawl, item, record={"step": "more"})["verdict"] == "refused"
        assert report(pawl, item, release=True)["verdict"] == "written"
        ran = []
        worker = module_worker(pawl, "shop", {"py-order": lambda run: run.step("more", lambda key: ran.append(1))})
        assert worker.turn() == 1
        shown = pawl.http("GET", "/v1/processes?domain=shop").json["items"]
        assert [p["status"] for p in shown] == ["WAITING_FOR_TSQ"] and not ran, "a body ran whose record cannot be written"


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
                ({"record": {"step": "a", "kind": "gone"}}, "kind"),
                ({"record": {"step": "a", "verdict": "lost"}}, "verdict"),
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
        for parts, words in [
                ({"record": {"step": "a", "error": "x" * 8193}}, "record.error must have at most 8192 bytes, got 8193"),
                ({"end": {"outcome": "fail", "error": "\u00e4" * 4097}}, "end.error must have at most 8192 bytes, got 8194")]:
            detail = report(pawl, item, status=413, **parts)["detail"]
            assert words in detail and "items[0]" in detail, (parts, detail)
        assert report(pawl, item, record={"step": "a", "error": "x" * 8192})["verdict"] == "written"
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
        answer = pawl.http("POST", "/v1/process-domains/filed/claim", body={"types": ["filed"], "wait_s": 60})
        assert answer.status == 409 and "has a definition" in answer.json["detail"], answer.body
        assert show(pawl, process_id)["status"] == "PENDING"
        # Those of other types in the same claim are given.
        others = [start(pawl, domain="filed", kind="coded"), start(pawl, domain="filed", kind="coded")]
        second = start(pawl, domain="filed", kind="filed")
        for expected in (others, None):
            answer = pawl.http("POST", "/v1/process-domains/filed/claim", body={"types": ["coded", "filed"], "limit": 10, "wait_s": 60})
            if expected:
                assert answer.status == 200 and [item["process_id"] for item in answer.json["items"]] == expected, answer.body
                assert all(item["steps"] == [] and item["state"] == {} for item in answer.json["items"]), answer.body
            else:
                assert answer.status == 409, answer.body
            assert {show(pawl, p)["status"] for p in (process_id, second)} == {"PENDING"}
        assert {show(pawl, p)["status"] for p in others} == {"IN_PROGRESS"}


@test
def states_in_the_answer_to_a_report_are_bounded():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        start(pawl, {"text": "x" * 1000000})
        item, = claim(pawl)
        for count, states in ((1, 1), (400, 8)):
            rows = [{"process_id": item["process_id"], "lease": item["lease"], "record": {"step": f"s{n}"}, "patch": {"a": 1}, "version": 999} for n in range(count)]
            answer = pawl.http("POST", "/v1/process-domains/shop/report", body={"items": rows})
            assert answer.status == 200, answer.body[:500]
            verdicts = answer.json["items"]
            assert [v["verdict"] for v in verdicts] == ["stale"] * count, {v["verdict"] for v in verdicts}
            given = [v for v in verdicts if "state" in v]
            assert verdicts[0] is given[0] and len(given) == states and all(v["version"] == item["version"] for v in given), len(given)
        assert report(pawl, item, record={"step": "a"}, patch={"text": None}, version=item["version"])["verdict"] == "written"


@test
def a_claim_returns_as_many_large_states_as_fit():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        count, fits = 70, 8
        db.rows(f"select pawl.start('py-order', p_domain => 'shop') from generate_series(1, {count})")
        db.rows("update pawl.process set state = jsonb_build_object('text', repeat('x', 1000000))")  # PostgreSQL compresses it, a response does not
        left = count
        while left > 0:
            items = claim(pawl, limit=100)
            assert len(items) == min(left, fits), (len(items), left)
            assert all(len(item["state"]["text"]) == 1000000 and item["attempt"] == 1 for item in items)
            for item in items:
                assert report(pawl, item, end={"outcome": "complete"})["verdict"] == "written"
            left -= len(items)
            assert db.value("select count(*) from pawl.lease") == "0"


def records_add(db, process_id, count, changed="{}"):
    """Repeats its first record."""
    db.rows(f"""insert into pawl.process_step
                select (jsonb_populate_record(s, jsonb_build_object('step', 's' || n, 'number', nextval('pawl.step_seq')) || '{changed}')).*
                from pawl.process_step s, generate_series(2, {count}) n where s.id = pawl.process_number('{process_id}')""")


@test
def a_claim_of_histories_whose_response_is_larger_than_they_leases_what_it_returns():
    """A record takes a multiple of its bytes in a response."""
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        processes = [start(pawl) for _ in range(10)]
        for item in claim(pawl, limit=100):
            assert report(pawl, item, record={"step": "s1"})["verdict"] == "written"
            assert report(pawl, item, release=True)["verdict"] == "written"
        for process_id in processes[:9]:
            records_add(db, process_id, 9000)
        records_add(db, processes[9], 400, '{"taken": "{[0,10000)}", "response": "r"}')  # too large by itself
        left = set(processes[:9])
        while left:
            items = claim(pawl, limit=100)
            assert items and db.value("select count(*) from pawl.lease") == str(len(items)), len(items)
            assert all(len(item["steps"]) == 9000 and item["attempt"] == 1 for item in items), [(len(item["steps"]), item["attempt"]) for item in items]
            left -= {item["process_id"] for item in items}
            for item in items:
                assert report(pawl, item, end={"outcome": "complete"})["verdict"] == "written"
        assert claim(pawl, limit=100, wait_s=0) == []
        listed = pawl.http("GET", "/v1/processes?domain=shop&status=WAITING_FOR_TSQ").json["items"]
        assert [item["process_id"] for item in listed] == [processes[9]] and "16777216 bytes" in listed[0]["error"], listed


@test
def a_history_that_cannot_be_loaded_does_not_stop_claims():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        small, huge = start(pawl), start(pawl)
        for item in claim(pawl, limit=100):
            assert report(pawl, item, record={"step": "first"})["verdict"] == "written"
            assert report(pawl, item, release=True)["verdict"] == "written"
        db.rows(f"""insert into pawl.process_step select (jsonb_populate_record(s, jsonb_build_object('step', 's' || n, 'error', repeat('x', 8000)))).*
                    from pawl.process_step s, generate_series(2, 9000) n where s.id = pawl.process_number('{huge}')""")
        assert [item["process_id"] for item in claim(pawl, limit=100)] == [small]
        assert claim(pawl, limit=100, wait_s=0) == []
        listed = pawl.http("GET", "/v1/processes?domain=shop&status=WAITING_FOR_TSQ").json["items"]
        assert [(item["process_id"], item["error"]) for item in listed] == [(huge, "state, records and responses are larger than a worker over HTTP can be given")], listed


@test
def code_that_has_recorded_its_limit_can_be_compensated():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        process_id = start(pawl)
        item, = claim(pawl)
        assert report(pawl, item, record={"step": "first"})["verdict"] == "written"
        db.rows("""insert into pawl.process_step select (jsonb_populate_record(s, jsonb_build_object('step', 's' || n, 'number', nextval('pawl.step_seq')))).*
                   from pawl.process_step s, generate_series(2, 10000) n""")
        refused = report(pawl, item, record={"step": "more"})
        assert refused["verdict"] == "refused" and "10000 steps" in refused["error"], refused
        assert report(pawl, item, phase="compensating")["verdict"] == "written"
        rows = [{"process_id": process_id, "lease": item["lease"], "record": {"step": f"undo{n}"}} for n in range(1000)]
        assert {v["verdict"] for v in post(pawl, "/v1/process-domains/shop/report", {"items": rows})["items"]} == {"written"}
        assert report(pawl, item, phase="compensated", end={"outcome": "reject", "error": "undone"})["verdict"] == "written"
        assert show(pawl, process_id)["status"] == "COMPENSATED"


# Every order passes these points as often, however slow the machine is: what it waits for comes when it is seen waiting.
CRASH_POINTS = [f"{name} {number}" for number in (1, 2) for name in (
    "before the step", "after the step", "after the record", "before it is suspended", "after it was suspended")] + [
    "after a wait began 1", "before the end 1", "after the end 1"]


def order_run(pawl, folder, number, crash_at):
    """One order in a domain of its own, whose worker is killed once. Returns the process and how often each effect happened."""
    domain, effects, bank = f"shop{number}", os.path.join(folder, str(number)), None
    process_id = start(pawl, {**STATE, "bank": f"bank{number}"}, domain)
    approved = crash_at.endswith("1")  # before it waits for it, so that the rest and the command are the first to suspend it
    if approved:
        approve(pawl, process_id)
    worker = order_worker(pawl, domain, effects, crash_at, lease_s=1)
    killed = False
    try:
        def step():
            nonlocal worker, killed, approved, bank
            if not worker.is_running():
                assert not killed, "killed twice"
                killed = True
                worker = order_worker(pawl, domain, effects, lease_s=1)
            shown = show(pawl, process_id)
            if shown["status"] == "WAITING_FOR_ASYNC" and not approved:
                approve(pawl, process_id)
                approved = True
            if shown["status"] == "WAITING_FOR_REPLY" and not bank:
                bank = pawl.start("work", f"bank{number}", "--exec", "echo '{\"paid\": true}'")
            ended = shown["ended_at"] or shown["status"] == "WAITING_FOR_TSQ"
            return shown if ended and killed else None

        shown = wait_until(step, timeout=600, what=f"order {number} ended, its worker killed {crash_at}")
    finally:
        worker.kill()
        if bank:
            bank.kill()
    with open(effects, encoding="utf-8") as file:
        lines = file.read().splitlines()
    return shown, lines


def approve(pawl, process_id):
    assert pawl.http("POST", f"/v1/processes/{process_id}/signals/approval", body={"approved": True}).status == 201


@test
def an_order_in_python_survives_a_kill_at_each_point():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            runs = list(pool.map(lambda run: order_run(pawl, folder, *run), enumerate(CRASH_POINTS)))
        for at, (shown, lines) in zip(CRASH_POINTS, runs):
            assert shown["status"] == "COMPLETED" and shown["result"]["charged"] == {"paid": True}, (at, shown)
            names = [s["name"] for s in shown["steps"]]
            assert sorted(names) == sorted(["reserve", "approval", "rest", "charge", "ship"]), (at, names)
            assert len(set(lines)) == 2, (at, lines)  # reserve and ship, each with one key in all its attempts
            # Again only if its worker was lost after the effect and before the record: by the kill, or on a slow machine by a stall.
            lost = int(db.value(f"select count(*) from pawl.audit where command_id = '{shown['process_id']}' and details->>'reason' = 'its worker was lost'"))
            stalls = lost - (not at.startswith(("after it was suspended", "after the end")))  # where it holds no lease when it is killed
            again = at.startswith("after the step")
            assert 2 + again <= len(lines) <= 2 + again + stalls, (at, lost, lines)


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
            for process_id, reason in ((refused, "it was not approved"), (late, "it was not approved"), (canceled, "canceled by eve")):
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
                wait_until(lambda: show(pawl, process_id)["waits_for"] == {"reply of charge": 1} and show(pawl, process_id)["status"] == "COMPENSATING",
                           what="it waits for its command before it compensates")
                post(pawl, f"/v1/domains/bank-{outcome}/settle", {"items": [{"command_id": item["command_id"], "lease": item["lease"], "outcome": outcome}]})
                shown = ended(pawl, process_id)
                assert shown["status"] == "COMPENSATED", shown
                assert [(s["name"], s["error"] is None) for s in shown["steps"]][-2:] == [("charge", outcome == "complete"), ("release", True)], shown
        finally:
            worker.kill()


def bank_end(pawl, outcome):
    item = post(pawl, "/v1/domains/bank/claim", {"limit": 1, "wait_s": 60})["items"][0]
    post(pawl, "/v1/domains/bank/settle", {"items": [{"command_id": item["command_id"], "lease": item["lease"], "outcome": outcome}]})
    return item["command_id"]


@test
def a_process_in_python_goes_on_behind_a_command_that_an_operator_had_retried():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()

        def pay(run):
            run.command("charge", "bank", "charge", {"n": 1})
            run.wait("go")
            return {"paid": True}

        worker = module_worker(pawl, "shop", {"py-order": pay})
        process_id = start(pawl)
        assert worker.turn() == 1
        first = db.value("select command_id from pawl.command where type = 'charge'")
        assert pawl.run("command", "cancel", first).code == 0
        assert worker.turn() == 1 and show(pawl, process_id)["status"] == "WAITING_FOR_TSQ", show(pawl, process_id)
        assert pawl.run("process", "retry", process_id).code == 0
        assert worker.turn() == 1
        second = bank_end(pawl, "complete")
        assert worker.turn() == 1 and show(pawl, process_id)["status"] == "WAITING_FOR_ASYNC", show(pawl, process_id)
        pawl.http("POST", f"/v1/processes/{process_id}/signals/go", body={})
        item, = claim(pawl)
        report(pawl, item, end={"outcome": "fail", "error": "an operator is needed"})
        assert pawl.run("process", "retry", process_id, "--from", "charge").code == 0
        assert worker.turn() == 1
        third = bank_end(pawl, "complete")
        assert len({first, second, third}) == 3
        while not show(pawl, process_id)["ended_at"]:
            assert show(pawl, process_id)["status"] != "WAITING_FOR_TSQ", show(pawl, process_id)
            pawl.http("POST", f"/v1/processes/{process_id}/signals/go", body={})
            assert worker.turn() == 1
        assert show(pawl, process_id)["status"] == "COMPLETED"


@test
def a_command_or_child_that_is_refused_ends_a_process_in_python_as_failed():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        worker = module_worker(pawl, "shop", {"py-order": lambda run: run.command("charge", "bank", "charge"),
                                              "py-parent": lambda run: run.child("order", "shop", "py-order")})
        parent = start(pawl, kind="py-parent")
        assert worker.turn() == 1 and worker.turn() == 1
        bank_end(pawl, "reject")
        child = db.value("select command_id from pawl.command where type = 'py-order'")
        assert worker.turn() == 1 and show(pawl, child)["status"] == "FAILED", show(pawl, child)
        assert worker.turn() == 1 and show(pawl, parent)["status"] == "FAILED", show(pawl, parent)


class Payment:
    """Orders that are paid by card, or else by an invoice, and then mailed. What is not in `allowed` fails."""

    def __init__(self, pawl):
        self.pawl, self.allowed, self.ran = pawl, {"invoice"}, []
        self.worker = module_worker(pawl, "shop", {"py-order": self.order})

    def act(self, name):
        self.ran.append(name)
        if name not in self.allowed:
            raise ValueError(name + " is declined")

    def order(self, run):
        try:
            if run.input["by"] == "step":
                run.step("card", lambda key: self.act("card"), attempts=1)
            elif run.input["by"] == "command":
                run.command("card", "bank", "charge")
            else:
                run.child("card", "bank", "charge")
            paid = "card"
        except process_module.Failed:
            run.step("invoice", lambda key: self.act("invoice"))
            paid = "invoice"
        run.step("mail", lambda key: self.act("mail"), attempts=1)
        return {"paid": paid}

    def failed(self, by):
        """One whose card was declined, which was handled, and whose mail has failed."""
        process_id = start(self.pawl, {"by": by})
        assert self.worker.turn() == 1
        if by == "command":
            bank_end(self.pawl, "reject")
        elif by == "child":
            item, = claim(self.pawl, "bank", ("charge",))
            assert report(self.pawl, item, "bank", end={"outcome": "reject", "error": "declined"})["verdict"] == "written"
        if by != "step":
            assert self.worker.turn() == 1
        assert show(self.pawl, process_id)["status"] == "WAITING_FOR_TSQ" and self.ran[-2:] == ["invoice", "mail"], show(self.pawl, process_id)
        return process_id

    def retry(self, process_id, *arguments):
        assert self.pawl.run("process", "retry", process_id, *arguments).code == 0
        assert self.worker.turn() == 1
        return show(self.pawl, process_id)


@test
def a_retry_leaves_failures_that_a_function_in_python_has_handled():
    for by in ("step", "command", "child"):
        with Database() as db, Pawl(db) as pawl:
            pawl.serve()
            payment = Payment(pawl)
            process_id = payment.failed(by)
            payment.allowed.add("card")
            shown = payment.retry(process_id)
            assert shown["status"] == "WAITING_FOR_TSQ" and shown["error"] == "step mail: ValueError: mail is declined", shown
            payment.allowed.add("mail")
            shown = payment.retry(process_id)
            assert (shown["status"], shown["result"]) == ("COMPLETED", {"paid": "invoice"}), shown
            assert payment.ran == ["card"] * (by == "step") + ["invoice", "mail", "mail", "mail"], payment.ran
            assert db.value("select count(*) from pawl.command where type = 'charge'") == str(int(by != "step"))


@test
def a_retry_from_a_step_leaves_failures_before_it_that_a_function_in_python_has_handled():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        for by in ("step", "command"):
            payment = Payment(pawl)
            process_id = payment.failed(by)
            payment.allowed = {"card", "invoice", "mail"}
            shown = payment.retry(process_id, "--from", "invoice")
            assert (shown["status"], shown["result"]) == ("COMPLETED", {"paid": "invoice"}), shown
            assert payment.ran == ["card"] * (by == "step") + ["invoice", "mail"] * 2, payment.ran
            payment = Payment(pawl)
            process_id = payment.failed(by)  # from the call that failed itself: it is run again
            payment.allowed = {"card", "invoice", "mail"}
            shown = payment.retry(process_id, "--from", "card")
            if by == "command":
                bank_end(pawl, "complete")
                assert payment.worker.turn() == 1
                shown = show(pawl, process_id)
            assert (shown["status"], shown["result"]) == ("COMPLETED", {"paid": "card"}), shown


@test
def a_history_marks_the_failures_that_a_retry_has_reset():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()

        def resets(*records, lost=False):
            process_id = start(pawl)
            item, = claim(pawl)
            for record in records:
                assert report(pawl, item, record=record)["verdict"] == "written"
            if lost:
                db.rows("update pawl.lease set attempt = max_attempts, until = now() - interval '1 s'")
            else:
                assert report(pawl, item, end={"outcome": "fail", "error": "an operator is needed"})["verdict"] == "written"
            wait_until(lambda: show(pawl, process_id)["status"] == "WAITING_FOR_TSQ", what="it is in troubleshooting")
            assert pawl.run("process", "retry", process_id).code == 0
            item, = claim(pawl)
            assert report(pawl, item, end={"outcome": "complete"})["verdict"] == "written"
            return {step["step"] for step in item["steps"] if step["reset"]}

        def call(number):
            return {"call": number, "call_kind": "step"}

        card, invoice = {"step": "card", "error": "declined", **call(0)}, {"step": "invoice", **call(1)}
        mail = [{"step": "mail", "attempt": attempt, "error": "away", "verdict": "final", **call(2)} for attempt in (1, 2)]
        assert resets(card) == {"card"}
        assert resets(card, invoice) == set()
        assert resets(card, invoice, *mail) == {"mail"}
        assert resets(card, {"step": "go", "kind": "begin", "call": 1, "call_kind": "wait"}) == set()
        # Without numbers it is not known which of them were handled.
        assert resets(*({**record, "call_kind": None} for record in (card, invoice, *mail))) == {"card", "mail"}
        # Its workers were lost in a call that has no record, so no call has failed.
        assert resets(card, lost=True) == set()


@test
def the_end_of_a_compensation_over_http_is_not_a_refusal():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        process_id = start(pawl)
        item, = claim(pawl)
        reject = {"outcome": "reject", "error": "the refund is refused"}
        assert report(pawl, item, phase="compensating")["verdict"] == "written"
        refused = report(pawl, item, end=reject)
        assert refused["verdict"] == "refused" and "cannot end by reject before the phase compensated" in refused["error"], refused
        assert show(pawl, process_id)["status"] == "COMPENSATING"
        assert report(pawl, item, end={"outcome": "fail", "error": "the refund is refused"})["verdict"] == "written"
        assert show(pawl, process_id)["status"] == "WAITING_FOR_TSQ"
        assert pawl.run("process", "retry", process_id).code == 0
        item, = claim(pawl)
        other = start(pawl)
        second, = claim(pawl)
        body = {"items": [{"process_id": i["process_id"], "lease": i["lease"], **parts} for i, parts in (
            (item, {"phase": "compensated", "end": reject}), (second, {"phase": "compensating"}), (second, {"end": reject}))]}
        answers = post(pawl, "/v1/process-domains/shop/report", body)["items"]
        assert [answer["verdict"] for answer in answers] == ["written", "written", "refused"], answers
        assert [show(pawl, i)["status"] for i in (process_id, other)] == ["COMPENSATED", "COMPENSATING"]
        # Nor does what is compensated complete, before the phase compensated or with it.
        for parts in ({}, {"phase": "compensated"}):
            refused = report(pawl, second, end={"outcome": "complete"}, **parts)
            assert refused["verdict"] == "refused" and "cannot end by complete" in refused["error"], refused
        assert report(pawl, second, phase="compensated")["verdict"] == "written"
        assert report(pawl, second, phase="compensating")["verdict"] == "written"
        assert report(pawl, second, end=reject)["verdict"] == "written"
        assert show(pawl, other)["status"] == "COMPENSATED"


# A record was named by these once.
RESERVED_ONCE = ["pay", "pay:begun", "pay:begun1", "pay:done", "pay:input", "pay:timeout", "pay:gone1", "pay[0]"]


@test
def no_name_of_a_step_is_reserved_and_a_long_error_is_shortened_in_python():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()

        def bad(key):
            raise ValueError("\u00e4" * 9000)

        functions = {"py-order": lambda run: [run.step(name, lambda key, n=name: n) for name in RESERVED_ONCE], "py-long": lambda run: run.step("pay", bad, attempts=1)}
        worker = module_worker(pawl, "shop", functions)
        named, long = start(pawl), start(pawl, kind="py-long")
        while not show(pawl, named)["ended_at"] or not show(pawl, long)["error"]:
            assert worker.turn() > 0
        shown = show(pawl, named)
        assert shown["status"] == "COMPLETED" and shown["result"] == RESERVED_ONCE, shown
        assert [(s["name"], s["result"]) for s in shown["steps"]] == [(name, name) for name in RESERVED_ONCE], shown
        shown = show(pawl, long)
        assert shown["status"] == "WAITING_FOR_TSQ" and shown["steps"][0]["error"].startswith("ValueError: \u00e4"), shown
        assert 8180 < len(shown["steps"][0]["error"].encode()) <= 8192


@test
def a_name_that_a_loop_in_python_uses_twice_is_found_in_the_activation_that_calls_it():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        paid = []

        def payout(run):
            try:
                return [run.step("pay", lambda key, who=who: paid.append((who, key))) for who in ("ann", "bob", "carl")]
            except Exception:  # what a function catches does not hide it
                return []

        def votes(run):
            return [run.wait("vote"), run.wait("vote")]

        def each(run):
            return [run.step(f"pay-{who}", lambda key, who=who: paid.append((who, key))) for who in ("ann", "bob", "carl")]

        worker = module_worker(pawl, "shop", {"py-order": payout, "py-votes": votes, "py-each": each})
        twice, waits, right = start(pawl), start(pawl, kind="py-votes"), start(pawl, kind="py-each")
        for vote in (1, 2):
            post(pawl, f"/v1/processes/{waits}/signals/vote", {"vote": vote}, 201)
        while not all((lambda s: s["ended_at"] or s["error"])(show(pawl, i)) for i in (twice, waits, right)):
            assert worker.turn() > 0
        for process_id, name in ((twice, "pay"), (waits, "vote")):
            shown = show(pawl, process_id)
            assert (shown["status"], shown["error"]) == (
                "WAITING_FOR_TSQ", f'step "{name}" is call 1 and call 2: each call of a process must have a name of its own'), shown
        assert show(pawl, right)["status"] == "COMPLETED"
        assert sorted(who for who, key in paid) == ["ann", "ann", "bob", "carl"] and len({key for who, key in paid}) == 4, paid


@test
def a_result_in_python_that_cannot_be_recorded_stops_its_process_only():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        ran = []

        def bad(run):
            value = {"nan": float("nan"), "date": time.localtime, "large": "x" * 20000000, "fine": 1}[run.input["value"]]
            if run.input["in"] == "step":
                run.step("one", lambda key: (ran.append(run.input["value"]), value)[1])
            return value if run.input["in"] == "end" else None

        worker = module_worker(pawl, "shop", {"py-order": bad})
        for place in ("step", "end"):
            for value in ("nan", "date", "large", "fine"):
                process_id = start(pawl, {"value": value, "in": place})
                assert worker.turn() == 1
                shown = show(pawl, process_id)
                assert shown["status"] == ("COMPLETED" if value == "fine" else "WAITING_FOR_TSQ"), shown
                if value != "fine" and place == "step":
                    assert "has run" in shown["error"], shown["error"]
                    assert pawl.run("process", "retry", process_id).code == 0
                    assert worker.turn() == 1 and show(pawl, process_id)["status"] == "WAITING_FOR_TSQ"
        assert ran == ["nan", "date", "large", "fine"], ran
        process_id = start(pawl, {})  # an exception of the function itself is shown with its type, and its line is on the worker's standard error
        with contextlib.redirect_stderr(io.StringIO()) as log:
            assert worker.turn() == 1 and show(pawl, process_id)["error"] == "KeyError: 'value'", show(pawl, process_id)
        assert log.getvalue().startswith(f"process {process_id} (py-order) ") and ", in bad\n" in log.getvalue(), log.getvalue()


@test
def a_compensation_in_python_that_is_refused_goes_to_troubleshooting():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        allowed, done = [], []

        def refund(key):
            if not allowed:
                raise process_module.Refused("the refund is refused")

        def saga(run):
            run.step("pay", lambda key: 1)
            try:
                run.wait("go")
            except process_module.Failed:
                run.compensating()
                run.step("refund", refund)
                run.step("release", lambda key: done.append(1))

        worker = module_worker(pawl, "shop", {"py-order": saga})
        process_id = start(pawl)
        assert worker.turn() == 1
        assert pawl.http("POST", f"/v1/processes/{process_id}/cancel", body={"compensate": True}).status == 200
        while show(pawl, process_id)["status"] not in ("WAITING_FOR_TSQ", "COMPENSATED", "FAILED"):
            assert worker.turn() == 1
        assert show(pawl, process_id)["status"] == "WAITING_FOR_TSQ" and not done, show(pawl, process_id)
        allowed.append(1)
        assert pawl.run("process", "retry", process_id).code == 0
        assert worker.turn() == 1
        assert show(pawl, process_id)["status"] == "COMPENSATED" and done == [1], show(pawl, process_id)


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
        report(pawl, marks[other_order], record={"step": "pack", "call": 0, "call_kind": "step", "input_hash": "1"}, release=True)
        report(pawl, marks[other_input], record={"step": "reserve", "call": 0, "call_kind": "step", "input_hash": "1"}, release=True)
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
