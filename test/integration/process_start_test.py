#!/usr/bin/env python3
"""process_start - processes that are started with a delay and a priority, and many in one call: over HTTP, on the command line and in C."""
import concurrent.futures
import json
import os
import uuid

from pawl_test import Database, Pawl, Process, main, setting, test, wait_until
from process_cli import cli, wait_status
from process_worker import post, show
from servers import Session

NAP = {"domain": "shop", "type": "nap", "steps": [{"name": "note", "set": {"noted": True}}]}


def begin(pawl, status=201, **fields):
    return post(pawl, "/v1/processes", {"type": "order", "domain": "shop", **fields}, status)


def many(pawl, items, key=None, status=201):
    answer = pawl.http("POST", "/v1/processes/batch", {"items": items}, headers={"Idempotency-Key": key} if key else None)
    assert answer.status == status, (answer.status, answer.body)
    return answer


def count(db):
    return int(db.value("select count(*) from pawl.process"))


def due_now(db, process):
    """As if its delay had passed."""
    db.rows(f"update pawl.delayed set due = pawl.now() where id = pawl.process_number('{process}')")


@test
def a_delayed_start_is_pending_until_it_is_due_and_then_runs():
    with Database() as db, Pawl(db) as pawl:
        cli(pawl, "define", "-", stdin=json.dumps(NAP))
        pawl.serve()
        ids = [begin(pawl, type="nap", delay_s=3600, deadline="1m")["process_id"],
               cli(pawl, "start", "nap", "--domain", "shop", "--delay", "1h", "--deadline", "1m")["process_id"]]
        for process in ids:
            shown = show(pawl, process)
            assert (shown["status"], shown["step"]) == ("PENDING", None) and shown["continues_at"] > shown["created_at"], shown
            assert shown["deadline"] > shown["continues_at"], "it counts from when it is due"
            assert "until " in pawl.run("process", "show", process).stdout
        listed = pawl.http("GET", "/v1/processes?status=PENDING").json["items"]
        assert sorted(row["process_id"] for row in listed) == sorted(ids), listed
        for process in ids:
            due_now(db, process)
            shown = wait_status(pawl, process, "COMPLETED")
            assert shown["state"] == {"noted": True}, shown


@test
def the_highest_priority_is_claimed_first():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve("--role", "api")
        low, usual, high = (begin(pawl, **fields)["process_id"] for fields in ({"priority": 0}, {}, {"priority": 9}))
        higher = cli(pawl, "start", "order", "--domain", "shop", "--priority", "5")["process_id"]
        claimed = post(pawl, "/v1/process-domains/shop/claim", {"types": ["order"], "limit": 4})["items"]
        assert [item["process_id"] for item in claimed] == [high, higher, usual, low], claimed


@test
def odd_delays_and_priorities_are_refused_and_nothing_is_written():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve("--role", "api")
        process = str(uuid.uuid4())
        assert begin(pawl, process_id=process, delay_s=0.5, priority=7) == begin(pawl, process_id=process, delay_s=9, priority=7)
        assert '"4", it was sent as "7"'.replace('"', "") in begin(pawl, 422, process_id=process)["detail"]
        for fields, word in (({"delay_s": -1}, "delay_s"), ({"delay_s": "1h"}, "delay_s"), ({"delay_s": 1e300}, "delay_s"), ({"delay_s": True}, "delay_s"),
                             ({"delay_s": 315360001}, "delay_s"), ({"delay_s": [1]}, "delay_s"), ({"priority": 10}, "priority"), ({"priority": -1}, "priority"),
                             ({"priority": 1.5}, "priority"), ({"priority": "9"}, "priority"), ({"priority": 2 ** 64}, "priority"), ({"delay": 1}, "delay")):
            assert word in begin(pawl, 400, **fields)["detail"], fields
            assert f"items[1].{word}" in many(pawl, [{"type": "order"}, {"type": "order", **fields}], status=400).json["detail"], fields
        for arguments, word in ((["--delay", "-1s"], "--delay"), (["--delay", "soon"], "--delay"), (["--priority", "10"], "--priority"),
                                (["--priority", "high"], "--priority"), (["--delay", "9999d"], "delay")):
            done = pawl.run("process", "start", "order", *arguments)
            assert done.code in (1, 2) and word in done.stderr, (arguments, done)
        assert count(db) == 1


@test
def many_starts_have_a_verdict_each_and_a_repeat_has_the_same_bytes():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve("--role", "api")
        known, delayed = begin(pawl, state={"a": 1})["process_id"], str(uuid.uuid4())
        items = [{"type": "order", "domain": "shop", "state": {"n": 1}}, {"type": "order", "domain": "shop", "process_id": known, "state": {"a": 2}},
                 {"type": "order", "domain": "shop", "state": {"n": "\u0001"}, "priority": 9},
                 {"type": "order", "domain": "yard", "process_id": delayed, "delay_s": 60, "deadline": "1h", "on_deadline": "fail"},
                 {"type": "order", "domain": "yard", "process_id": delayed, "deadline": "1h", "on_deadline": "fail"},
                 {"type": "order", "domain": "yard", "process_id": delayed, "state": {"other": True}}]
        first = many(pawl, items, "order-17")
        verdicts = first.json["items"]
        assert [item.get("status") for item in verdicts] == ["PENDING", None, "PENDING", "PENDING", "PENDING", None], verdicts
        assert verdicts[1] == {"process_id": known, "error": f"process {known} exists already: state differs from what was sent first"}, verdicts
        assert verdicts[3] == {"process_id": delayed, "status": "PENDING"} and "state differs" in verdicts[5]["error"], verdicts
        assert count(db) == 4 and show(pawl, delayed)["continues_at"], "the neighbours of what was refused are started"
        again = many(pawl, items, "order-17")
        assert (again.body, again.headers.get("idempotency-replayed"), count(db)) == (first.body, "true", 4)
        problem = many(pawl, items[:1], "order-17", 422).json
        assert problem["type"].endswith("key-reused"), problem
        # As if the pod had died before it stored the answer: the ids are those of the key.
        db.rows("delete from pawl.kept_answer")
        assert (many(pawl, items, "order-17").body, count(db)) == (first.body, 4)
        db.rows("delete from pawl.kept_answer")
        assert "items[0]: " in many(pawl, [{**items[0], "state": {"n": 2}}], "order-17", 422).json["detail"]
        # With ids and without a key.
        mine = [{"type": "order", "process_id": str(uuid.uuid4())} for _ in range(1000)]
        assert not many(pawl, mine).headers.get("idempotency-replayed")
        assert many(pawl, mine).headers.get("idempotency-replayed") == "true" and count(db) == 1004


@test
def a_batch_of_starts_that_is_wrong_writes_nothing():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve("--role", "api")
        good = {"type": "order", "domain": "shop"}
        for bad, word in (({"type": "no type"}, "items[1]: type"), ({"domain": "shop"}, "items[1].type"), ({"type": "order", "state": []}, "items[1]: state"),
                          ({"type": "order", "process_id": "x"}, "items[1].process_id"), ({"type": "order", "domain": "process:x"}, "items[1]: domain"),
                          ({"type": "order", "deadline": "soon"}, "items[1]: deadline"), ({"type": "order", "on_deadline": "fail"}, "items[1]: on_deadline"),
                          (None, "items[1]"), ([], "items[1]"), ({"type": "order", "items": []}, "items[1]")):
            detail = many(pawl, [good, bad], status=400).json["detail"]
            assert word in detail, (bad, detail)
        for body in ({}, {"items": []}, {"items": {}}, {"items": [good] * 1001}, [good], {"items": [good], "name": "x"}):
            answer = pawl.http("POST", "/v1/processes/batch", body)
            assert answer.status == 400, (body, answer)
        assert count(db) == 0
        # What only PostgreSQL refuses is the verdict of its item: a state that is too large when its numbers are written out.
        large = json.dumps({"items": [good, {**good, "state": {"n": ["HUGE"] * 9}}, good]}).replace('"HUGE"', "1e131071")
        sent = pawl.http("POST", "/v1/processes/batch", large.encode())
        assert sent.status == 201 and [item.get("status") for item in sent.json["items"]] == ["PENDING", None, "PENDING"], sent.body
        assert "state must have at most" in sent.json["items"][1]["error"] and count(db) == 2, sent.body
        token = pawl.run("key", "create", "reader", "--scopes", "read,command", "--json").json["token"]
        assert pawl.http("POST", "/v1/processes/batch", {"items": [good]}, token).status == 403


@test
def two_batches_with_one_id_start_it_once():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve("--role", "api")
        ids = [str(uuid.uuid4()) for _ in range(50)]
        items = [{"type": "order", "domain": "shop", "process_id": process} for process in ids]
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            answers = list(pool.map(lambda order: many(pawl, order), (items, items[::-1], items, items[::-1])))
        assert all(item["status"] == "PENDING" for answer in answers for item in answer.json["items"]) and count(db) == 50
        # One whose id an open transaction is sending is waited for; its neighbours are started at once.
        held, free = str(uuid.uuid4()), str(uuid.uuid4())
        with Session(db.url) as session, concurrent.futures.ThreadPoolExecutor(1) as pool:
            session.do(f"begin; select pawl.start('order', '{{}}', '{held}', 'shop')")
            waits = pool.submit(many, pawl, [{"type": "order", "domain": "shop", "process_id": process} for process in (held, free)])
            wait_until(lambda: pawl.http("GET", f"/v1/processes/{free}").status == 200, what="the neighbour is started")
            assert not waits.done()
            session.do("commit")
            assert [item["status"] for item in waits.result().json["items"]] == ["PENDING", "PENDING"] and count(db) == 52


@test
def lines_of_standard_input_are_started_in_batches():
    with Database() as db, Pawl(db) as pawl:
        lines = "".join(f'{{"n": {n}}}\n' for n in range(1500))
        done = pawl.run("process", "start", "order", "--domain", "shop", "--lines", "--priority", "9", "--delay", "1h", "--deadline", "2h", "--json", stdin=lines)
        assert done.code == 0 and done.json == {"started": 1500}, done
        assert db.value("select count(distinct p.state) from pawl.process p join pawl.delayed d on d.id = p.id where d.priority = 9 and p.deadline > d.due") == "1500"
        done = pawl.run("process", "start", "order", "--lines", stdin='{"n": 1}\n\n[1]\n')
        assert done.code == 1 and "line 3: state must be a JSON object" in done.stderr and count(db) == 1500, done
        for arguments, word in ((["--id", str(uuid.uuid4())], "--id"), (["--key", "order-17"], "--key"), (["{}"], "--lines")):
            done = pawl.run("process", "start", "order", *arguments, "--lines", stdin="{}\n")
            assert done.code == 2 and word in done.stderr, (arguments, done)
        assert count(db) == 1500


@test
def many_starts_in_c_have_a_verdict_each():
    with Database() as db:
        ids = [str(uuid.uuid4()) for _ in range(3)]
        db.rows(f"select pawl.start('shop', '{{\"other\": 1}}', '{ids[2]}', 'shop', p_delay => '1 h', p_priority => 0)")
        program = Process([os.path.join(setting("PAWL_BUILD"), "test/integration/library_process"), db.url, "many", "shop", "3600000", "-1", ids[0], "x", ids[1], ids[2], ids[0]])
        assert program.wait() == 0, program.stderr
        verdicts = [line.split(" ", 1) for line in program.stdout]
        assert [verdict[0] for verdict in verdicts] == [ids[0], "", ids[1], ids[2], ids[0]] * 2, verdicts
        assert [verdict[1] for verdict in verdicts if verdict[1] in ("new", "known")] == ["new", "new"] + ["known"] * 4, verdicts
        assert "must be a UUID" in verdicts[1][1] and "state differs" in verdicts[3][1] and "state differs" in verdicts[8][1], verdicts
        assert db.value("select count(*) from pawl.delayed where priority = 0") == "3"


main()
