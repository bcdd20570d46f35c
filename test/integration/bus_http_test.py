#!/usr/bin/env python3
"""bus_http - commands, batches and workers over HTTP."""
import json
import signal
import tempfile
import time

from bus_commands import counts, events, new_id, replies, retry_at_once, send, show, wait_status, work
from checks import problem, refused, stop_clean
from pawl_test import Database, Pawl, main, test, wait_until
from servers import Session, in_threads


def post(pawl, path, body, status=200, **rest):
    answer = pawl.http("POST", path, body, **rest)
    assert answer.status == status, f"{path}: {answer.status}, not {status}: {answer.body!r}"
    return answer.json


def claim(pawl, limit=1, domain="shop", **rest):
    return post(pawl, f"/v1/domains/{domain}/claim", {"limit": limit, **rest})["items"]


def settle(pawl, *items, domain="shop"):
    """Each item: (claimed, outcome, more). The verdicts."""
    rows = [{"command_id": c["command_id"], "lease": c["lease"], "outcome": outcome, **(more[0] if more else {})}
            for c, outcome, *more in items]
    return post(pawl, f"/v1/domains/{domain}/settle", {"items": rows})["items"]


def command(pawl, command_id):
    answer = pawl.http("GET", f"/v1/commands/{command_id}")
    assert answer.status == 200, answer.body
    return answer.json


def post_command(pawl, **fields):
    return post(pawl, "/v1/commands", {"domain": "shop", "type": "charge", **fields}, 201)["command_id"]


def is_replayed(answer):
    return answer.headers.get("idempotency-replayed") == "true"


# --- send ---

@test
def a_command_is_sent_once_and_reported_as_known_the_second_time():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        body = {"domain": "shop", "type": "charge", "payload": {"n": [1, 2.50]}, "command_id": new_id(), "delay_s": 3600.5,
                "priority": 0, "max_attempts": 9, "reply_to": "answers", "correlation_id": "c-1"}
        first, again = [pawl.http("POST", "/v1/commands", body) for _ in range(2)]
        assert first.json == {"command_id": body["command_id"], "status": "PENDING"} and not is_replayed(first), first
        assert (again.status, again.body) == (201, first.body) and is_replayed(again), again
        kept = command(pawl, body["command_id"])
        same = ("domain", "type", "payload", "priority", "max_attempts", "reply_to", "correlation_id")
        assert [kept[key] for key in same] == [body[key] for key in same], kept
        assert kept["due_at"] and kept["audit"][0]["event"] == "SENT" and kept["audit"][0]["actor"], kept
        assert db.value("select round(extract(epoch from due - created_at), 1) from pawl.delayed join pawl.command "
                        "using (id)") == "3600.5"
        before = counts(db)
        detail = problem(pawl.http("POST", "/v1/commands", {**body, "payload": {"n": 2}}), 422, part="payload")["detail"]
        assert body["command_id"] in detail, detail
        problem(pawl.http("POST", "/v1/commands", {**body, "type": "refund"}), 422, part='type is "refund"')
        assert counts(db) == before
        problem(pawl.http("GET", f"/v1/commands/{new_id()}"), 404)
        problem(pawl.http("GET", "/v1/commands/7"), 400, part="id")
        stop_clean(pawl.server)


@test
def the_idempotency_key_may_stand_in_the_header():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        body, key = {"domain": "shop", "type": "charge"}, new_id()
        for value, more in [(key, {}), (f'"{key}"', {}), (key.upper(), {}), (key, {"command_id": key})]:
            answer = pawl.http("POST", "/v1/commands", {**body, **more}, headers={"Idempotency-Key": value})
            assert answer.status == 201 and answer.json["command_id"] == key, answer
            assert is_replayed(answer) == ((value, more) != (key, {})), answer
        before = counts(db)
        for value, more in [("x" * 201, {}), ("", {}), ('"', {}), ('"seven', {}), (new_id(), {"command_id": key}),
                            ("seven", {"command_id": key})]:
            problem(pawl.http("POST", "/v1/commands", {**body, **more}, headers={"Idempotency-Key": value}), 400,
                    part="Idempotency-Key")
        assert counts(db) == before and db.value("select count(*) from pawl.command") == "1"


@test
def bad_commands_are_refused_by_field_and_nothing_is_written():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        before = counts(db)
        good = {"domain": "shop", "type": "charge"}
        for change, field in [
                ({"domain": None}, "domain"), ({"domain": ""}, "domain"), ({"domain": "no spaces"}, "domain"),
                ({"domain": 7}, "domain"), ({"domain": "d" * 64}, "domain"), ({"type": "a/b"}, "type"),
                ({"type": ["x"]}, "type"), ({"command_id": "7"}, "command_id"), ({"delay_s": -1}, "delay_s"),
                ({"delay_s": "1"}, "delay_s"), ({"delay_s": 1e300}, "delay_s"), ({"priority": 10}, "priority"),
                ({"priority": 1.5}, "priority"), ({"max_attempts": 0}, "max_attempts"),
                ({"max_attempts": 1 << 70}, "max_attempts"), ({"reply_to": "a--b"}, "reply_to"),
                ({"reply_to": "q" * 48}, "reply_to"), ({"correlation_id": "c" * 201}, "correlation_id"),
                ({"batch_id": "x"}, "batch_id"), ({"payloud": {}}, "payloud"), ({"actor": "me"}, "actor"),
                ({"payload": "\0"}, "\\u0000"), ({"correlation_id": "a\0"}, "\\u0000")]:
            answer = pawl.http("POST", "/v1/commands", {**good, **change})
            assert field in problem(answer, 400)["detail"], (change, answer.body)
        problem(pawl.http("POST", "/v1/commands", {**good, "batch_id": new_id()}), 404, part="not found")
        assert counts(db) == before


ROUTES = ("/v1/commands", "/v1/commands/batch", "/v1/domains/shop/claim", "/v1/domains/shop/settle",
          "/v1/domains/shop/extend", "/v1/domains/shop/progress", f"/v1/tsq/{new_id()}/retry", f"/v1/tsq/{new_id()}/complete",
          f"/v1/commands/{new_id()}/cancel")


@test
def hostile_bodies_are_refused_on_every_route_and_nothing_is_written():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        before = counts(db)
        for path in ROUTES:
            for body in (b"{", b"[]", b"null", b"7", b'"x"', b"\0", b"\xff\xfe", b'{"a":' * 5000, b"[" * 100000,
                         b'{"domain":"shop","domain":"shop","type":"x"}', b'{"limit":1e999}', b'{"limit":-0}',
                         b'{"items":[{}]}', b'{"items":[null]}', b'{"items":{}}', b'{"items":[[]],"lease_s":5}',
                         b'{"domain":"\xed\xa0\x80","type":"x"}', b'{"domain":"a","type":"x","payload":{"a":"\\u0000"}}',
                         b'{"limit":1,"lease_s":NaN}', b'{"limit":1} x', b'{"__proto__":{}}',
                         b'{"items":[{"command_id":"' + b"a" * 36 + b'","lease":1,"outcome":"complete"}]}'):
                answer = pawl.http("POST", path, body, headers={"Content-Type": "application/json"})
                assert 400 <= answer.status < 500, f"{path} {body[:40]!r}: {answer.status} {answer.body!r}"
                assert counts(db) == before, f"{path} {body[:40]!r} wrote something"
        for path in ("/v1/domains/no%20spaces/claim", "/v1/domains/%00/claim", "/v1/domains/%ff/claim",
                     "/v1/domains/" + "d" * 64 + "/claim"):
            answer = pawl.http("POST", path, {"limit": 1})
            assert 400 <= answer.status < 500, f"{path}: {answer.status} {answer.body!r}"
        assert counts(db) == before
        for path in ("/v1/commands?status=DONE", "/v1/commands?limit=0", "/v1/commands?cursor=x", "/v1/tsq?limit=1001",
                     "/v1/commands?domain=%00", "/v1/commands?type=%ff", "/v1/batches/7"):
            answer = pawl.http("GET", path)
            assert 400 <= answer.status < 500, f"{path}: {answer.status} {answer.body!r}"
        stop_clean(pawl.server)


@test
def sixty_four_senders_of_one_id_make_one_command_and_get_equal_answers():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        body = {"domain": "shop", "type": "charge", "payload": {"n": 1}, "command_id": new_id()}
        answers = in_threads(64, lambda _: pawl.http("POST", "/v1/commands", body))()
        assert {(answer.status, answer.body) for answer in answers} == {(201, answers[0].body)}, answers
        assert answers[0].json == {"command_id": body["command_id"], "status": "PENDING"}, answers[0]
        assert sum(not is_replayed(answer) for answer in answers) == 1, "one of them sent it"
        assert db.value("select count(*) from pawl.command") == db.value("select count(*) from pawl.ready") == "1"
        assert events(command(pawl, body["command_id"])) == ["SENT"]


@test
def scopes_decide_who_may_send():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        keys = {scope: pawl.run("key", "create", scope, "--scopes", scope, "--json").json["token"]
                for scope in ("read", "command", "wallet")}
        sent = post_command(pawl)
        before = counts(db)
        for path in ROUTES:
            for scope in ("read", "wallet"):
                problem(pawl.http("POST", path, {}, token=keys[scope]), 403)
            problem(pawl.http("POST", path, {}, token=None), 401)
        assert counts(db) == before
        for path in ("/v1/commands", f"/v1/commands/{sent}", "/v1/tsq"):
            for scope in ("read", "command"):
                assert pawl.http("GET", path, token=keys[scope]).status == 200, (path, scope)
            problem(pawl.http("GET", path, token=keys["wallet"]), 403)
        by_key = post(pawl, "/v1/commands", {"domain": "shop", "type": "x"}, 201, token=keys["command"])["command_id"]
        assert "command" in command(pawl, by_key)["audit"][0]["actor"]


# --- work ---

@test
def claim_hands_out_each_command_once_in_order():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        ids = [post_command(pawl, payload=n, type="a" if n % 2 else "b") for n in range(6)]
        first = claim(pawl, 2)
        assert [(c["command_id"], c["payload"], c["attempt"], c["max_attempts"]) for c in first] == [
            (ids[0], 0, 1, 3), (ids[1], 1, 1, 3)], first
        assert [c["command_id"] for c in claim(pawl, 10, types=["a"])] == [ids[3], ids[5]]
        assert [c["command_id"] for c in claim(pawl, 10)] == [ids[2], ids[4]]
        assert claim(pawl, 10) == claim(pawl, 10, domain="other") == []
        assert command(pawl, ids[0])["status"] == "IN_PROGRESS"
        for body, field in [({"limit": 0}, "limit"), ({"limit": 1001}, "limit"), ({"limit": 1.5}, "limit"),
                            ({"limit": 1, "lease_s": 0}, "lease_s"), ({"limit": 1, "lease_s": 86401}, "lease_s"),
                            ({"limit": 1, "wait_s": 61}, "wait_s"), ({"limit": 1, "wait_s": -1}, "wait_s"),
                            ({"limit": 1, "types": []}, "types"), ({"limit": 1, "types": [7]}, "types"),
                            ({"limit": 1, "wait": 1}, "wait")]:
            assert field in problem(pawl.http("POST", "/v1/domains/shop/claim", body), 400)["detail"], body


@test
def a_claim_without_a_limit_returns_one_command():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        sent = {post_command(pawl) for _ in range(2)}
        claimed = [pawl.http("POST", "/v1/domains/shop/claim", body).json["items"] for body in ({}, None, {})]
        assert [len(items) for items in claimed] == [1, 1, 0] and {items[0]["command_id"] for items in claimed[:2]} == sent, claimed


@test
def a_worker_names_itself_in_the_audit():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        key = pawl.run("key", "create", "shop", "--scopes", "command", "--json").json["token"]
        for token, name, actor in [(key, "host-7", "shop (host-7)"), (key, None, "shop"), (pawl.TOKEN, "host-8", "host-8"),
                                   (pawl.TOKEN, None, "admin")]:
            sent = post_command(pawl)
            body = {"limit": 1} if name is None else {"limit": 1, "worker": name}
            claimed = pawl.http("POST", "/v1/domains/shop/claim", body, token=token).json["items"]
            assert [c["command_id"] for c in claimed] == [sent]
            received = [event["actor"] for event in command(pawl, sent)["audit"] if event["event"] == "RECEIVED"]
            assert received == [actor], received
        for wrong in ("x" * 201, 7):
            assert "worker" in problem(pawl.http("POST", "/v1/domains/shop/claim", {"limit": 1, "worker": wrong}), 400)["detail"]


@test
def large_payloads_come_in_several_claims_and_cost_no_attempt():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        db.rows("select pawl.send('shop', 'charge', to_jsonb(repeat(md5(n::text), 65536))) from generate_series(1, 12) n")
        items = []
        while more := claim(pawl, 100):
            items += more
        assert len({item["command_id"] for item in items}) == 12
        assert all(item["attempt"] == 1 and len(item["payload"]) == 2 << 20 for item in items)


@test
def the_audit_names_the_worker_of_each_claim():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        for name in ("ann", "bob", "ann"):
            key = pawl.run("key", "create", name, "--scopes", "command", "--json").json["token"]
            post_command(pawl)
            item, = post(pawl, "/v1/domains/shop/claim", {"limit": 1}, token=key)["items"]
            actor = db.value("select actor from pawl.audit a join pawl.command c using (id) "
                             f"where event = 'RECEIVED' and c.command_id = '{item['command_id']}'")
            assert name in actor, (name, actor)
            pawl.run("key", "revoke", name)


@test
def sixty_four_claimers_claim_each_of_a_thousand_once():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        db.rows("select count(*) from pawl.send('shop', array_fill('charge'::text, array[1000]), "
                "array(select to_jsonb(n) from generate_series(1, 1000) n))")

        def all_of_one(_):
            mine = []
            while items := claim(pawl, 7):
                mine += [item["payload"] for item in items]
            return mine

        found = in_threads(64, all_of_one)()
        assert all(isinstance(mine, list) for mine in found), found
        assert sorted(n for mine in found for n in mine) == list(range(1, 1001))


@test
def a_long_poll_wakes_within_a_second_of_a_send():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        start = time.monotonic()
        assert claim(pawl, wait_s=1) == [] and time.monotonic() - start > 0.9
        # What is sent in SQL wakes nobody, so that commits need not queue for it: the next look finds it, a second later.
        for sender, most_s in ((lambda: post_command(pawl), 1), (lambda: send(pawl, "shop", "charge"), 1),
                               (lambda: db.value("select pawl.send('shop', 'charge')"), 2)):
            took_s = []  # a machine that stalls delays any of them; it does not delay all
            while not took_s or min(took_s) >= most_s:
                assert len(took_s) < 10, took_s
                now = db.value("select clock_timestamp()")
                waiter = in_threads(1, lambda _: (claim(pawl, wait_s=60), time.monotonic()))
                # It waits once its first look has found nothing; a send before that would be found without any wake-up.
                wait_until(lambda now=now: db.value(
                    "select count(*) from pg_stat_activity where query ~ 'pawl.(claim|decided_position|domain_find)' and state = 'idle' and "
                    f"datname = '{db.name}' and query_start > '{now}'") != "0", what="a first look")
                sender()
                sent_at = time.monotonic()
                items, at = waiter()[0]
                assert len(items) == 1, items
                took_s.append(at - sent_at)
                settle(pawl, (items[0], "complete"))


@test
def settle_has_a_verdict_for_each_of_the_four_outcomes():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        for n in range(5):
            post_command(pawl, payload=n, reply_to="answers")
        done, again, failed, rejected, at_once = claim(pawl, 5)
        verdicts = settle(pawl, (done, "complete", {"result": {"paid": 7}}), (again, "retry", {"error": "busy"}),
                          (failed, "fail", {"error": "no such card"}), (rejected, "reject", {"error": "no money"}),
                          (at_once, "retry", {"delay_s": 0}))
        assert [(v["settled"], v["status"]) for v in verdicts] == [
            (True, "COMPLETED"), (True, "PENDING"), (True, "IN_TSQ"), (True, "FAILED"), (True, "PENDING")], verdicts
        assert [v["command_id"] for v in verdicts] == [c["command_id"] for c in (done, again, failed, rejected, at_once)]
        assert command(pawl, done["command_id"])["result"] == {"paid": 7}
        assert command(pawl, failed["command_id"])["error"] == "no such card"
        assert command(pawl, rejected["command_id"])["error"] == "no money"
        assert command(pawl, again["command_id"])["audit"][-1]["details"]["error"] == "busy"
        assert sorted(reply["status"] for reply in replies(db, "answers")) == ["COMPLETED", "FAILED"]
        back, = claim(pawl, 10)
        assert back["command_id"] == at_once["command_id"] and back["attempt"] == 2, back
        for row, field in [({"outcome": "done"}, "outcome"), ({"lease": 0}, "lease"), ({"lease": "1"}, "lease"),
                           ({"command_id": "x"}, "command_id"), ({"delay_s": -1}, "delay_s"), ({"results": 1}, "results"),
                           ({"error": 7}, "error")]:
            body = {"items": [{"command_id": back["command_id"], "lease": back["lease"], "outcome": "complete", **row}]}
            detail = problem(pawl.http("POST", "/v1/domains/shop/settle", body), 400)["detail"]
            assert field in detail and "items[0]" in detail, detail
        problem(pawl.http("POST", "/v1/domains/shop/settle", {"items": []}), 400, part="items")
        assert command(pawl, back["command_id"])["status"] == "IN_PROGRESS"


@test
def the_last_error_is_shown_while_a_command_waits_for_its_next_attempt():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        now, later = post_command(pawl, payload=1), post_command(pawl, payload=2)

        def looks(command_id):
            listed = pawl.http("GET", "/v1/commands?status=PENDING").json["items"]
            one = next(item for item in listed if item["command_id"] == command_id)
            whole = command(pawl, command_id)
            assert all(one[key] == whole[key] for key in ("status", "attempts", "error")), (one, whole)
            return whole["status"], whole["attempts"], whole["error"]

        assert looks(now) == ("PENDING", 0, None)
        settle(pawl, *[(item, "retry", {"error": "line is busy", "delay_s": delay}) for item, delay in zip(claim(pawl, 2), (0, 60))])
        assert looks(now) == looks(later) == ("PENDING", 1, "line is busy")
        again, = claim(pawl, 2)
        running = command(pawl, now)
        assert (running["status"], running["attempts"], running["error"]) == ("IN_PROGRESS", 2, "line is busy"), running
        settle(pawl, (again, "complete"))
        ended = command(pawl, now)
        assert (ended["status"], ended["attempts"], ended["error"]) == ("COMPLETED", 2, None), ended
        stop_clean(pawl.server)


@test
def a_settle_says_whether_it_may_be_sent_again():
    with Database() as db, Pawl(db) as pawl, Session(db.url) as session:
        pawl.serve()
        for _ in range(3):
            post_command(pawl)
        good, bad, locked = claim(pawl, 3, lease_s=600)
        gone = {**good, "lease": good["lease"] + 1}
        session.do(f"begin; select from pawl.lease l join pawl.command c using (id) where c.command_id = '{locked['command_id']}' for update of l")

        def settled(*items):
            rows = [json.dumps({"command_id": c["command_id"], "lease": c["lease"], "outcome": "complete"})[:-1] + more + "}" for c, more in items]
            answer = pawl.http("POST", "/v1/domains/shop/settle", f'{{"items": [{", ".join(rows)}]}}'.encode(), headers={"Content-Type": "application/json"})
            assert answer.status == 200, answer.body
            return [(item["settled"], item["verdict"], item["status"], "error" in item) for item in answer.json["items"]]

        assert settled((gone, ""), (locked, ""), (bad, ', "result": 1e200000'), (good, "")) == [
            (False, "lost", "IN_PROGRESS", False), (False, "busy", None, True), (False, "refused", None, True), (True, "settled", "COMPLETED", False)]
        session.do("rollback")
        assert settled((locked, ""), (bad, "")) == [(True, "settled", "COMPLETED", False)] * 2


@test
def a_late_settle_changes_nothing_and_is_refused():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        sent = post_command(pawl, reply_to="answers")
        late, = claim(pawl, lease_s=1)
        mine, = claim(pawl, lease_s=60, wait_s=60)  # after the lease has run out
        assert mine["command_id"] == sent and mine["attempt"] == 2 and mine["lease"] != late["lease"], (late, mine)
        for outcome in ("complete", "retry", "fail", "reject"):
            verdict, = settle(pawl, (late, outcome))
            assert (verdict["settled"], verdict["status"]) == (False, "IN_PROGRESS"), verdict
        row = {"command_id": sent, "lease": late["lease"]}
        verdict, = post(pawl, "/v1/domains/shop/extend", {"items": [row], "lease_s": 60})["items"]
        assert (verdict["extended"], verdict["verdict"]) == (False, "lost"), verdict
        assert settle(pawl, (mine, "complete", {"result": 2}))[0]["settled"]
        verdict, = settle(pawl, (late, "reject"))
        assert (verdict["settled"], verdict["status"]) == (False, "COMPLETED"), verdict
        assert command(pawl, sent)["result"] == 2 and len(replies(db, "answers")) == 1
        unknown = {"command_id": new_id(), "lease": 1}
        good = post_command(pawl)
        verdicts = settle(pawl, (unknown, "complete"), (claim(pawl)[0], "complete"))
        assert [v["settled"] for v in verdicts] == [False, True], verdicts
        assert command(pawl, good)["status"] == "COMPLETED"
        other, = (post_command(pawl), claim(pawl))[1]
        assert not settle(pawl, (other, "complete"), domain="elsewhere")[0]["settled"]


@test
def extend_keeps_a_lease_and_reports_a_cancellation():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        sent = post_command(pawl, reply_to="answers")
        mine, = claim(pawl, lease_s=30)
        row = {"command_id": sent, "lease": mine["lease"]}
        until = command(pawl, sent)["lease_until"]

        def extend(**change):
            return pawl.http("POST", "/v1/domains/shop/extend", {"items": [row], "lease_s": 600, **change})

        verdict, = extend().json["items"]
        assert (verdict["extended"], verdict["verdict"]) == (True, "extended"), verdict
        assert command(pawl, sent)["lease_until"] > until
        for change, field in [({"lease_s": 0}, "lease_s"), ({"lease_s": 86401}, "lease_s"), ({"items": []}, "items"),
                              ({"items": [{**row, "x": 1}]}, "x")]:
            assert field in problem(extend(**change), 400)["detail"], change
        asked = post(pawl, f"/v1/commands/{sent}/cancel", {"reason": "wrong", "operator": "ann"})
        assert asked["status"] == "CANCELING", asked
        assert command(pawl, sent)["status"] == "IN_PROGRESS"
        verdict, = extend().json["items"]
        assert (verdict["extended"], verdict["verdict"]) == (False, "canceled"), verdict
        ended = command(pawl, sent)
        assert ended["status"] == "CANCELED" and "ann" in [event["actor"] for event in ended["audit"]], ended
        verdict, = settle(pawl, (mine, "complete"))
        assert (verdict["settled"], verdict["status"]) == (False, "CANCELED"), verdict
        assert [reply["status"] for reply in replies(db, "answers")] == ["CANCELED"]
        again = pawl.http("POST", f"/v1/commands/{sent}/cancel", {"reason": "wrong", "operator": "ann"})
        assert again.status == 200 and is_replayed(again) and again.json["status"] == "CANCELED", again
        assert again.json["decided_at"] == asked["decided_at"], (again.json, asked)
        other = problem(pawl.http("POST", f"/v1/commands/{sent}/cancel", {"operator": "bob"}), 409, part="cancel by ann at 20")
        assert other["type"] == "/problems/decided-otherwise", other
        late = post_command(pawl)
        settle(pawl, (claim(pawl)[0], "complete"))
        problem(pawl.http("POST", f"/v1/commands/{late}/cancel", {}), 409, part="ended")


@test
def the_troubleshooting_queue_is_decided_over_http():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        ids = [post_command(pawl, payload=n) for n in range(3)] + [post_command(pawl, domain="other")]
        for domain, count in (("shop", 3), ("other", 1)):
            settle(pawl, *[(c, "fail", {"error": "broken"}) for c in claim(pawl, count, domain)], domain=domain)
        page = pawl.http("GET", "/v1/tsq?domain=shop&limit=2").json
        assert [item["command_id"] for item in page["items"]] == [ids[2], ids[1]] and page["next_cursor"], page
        rest = pawl.http("GET", f"/v1/tsq?domain=shop&limit=2&cursor={page['next_cursor']}").json
        assert [item["command_id"] for item in rest["items"]] == [ids[0]] and rest["next_cursor"] is None, rest
        assert len(pawl.http("GET", "/v1/tsq").json["items"]) == 4
        for verb, command_id, body, status in [
                ("retry", ids[0], {"operator": "ann"}, "PENDING"),
                ("cancel", ids[1], {"operator": "ann", "reason": "r"}, "CANCELED"),
                ("complete", ids[2], {"operator": "ann", "result": {"by": "hand"}}, "COMPLETED")]:
            before = counts(db)
            problem(pawl.http("POST", f"/v1/tsq/{command_id}/{verb}", {**body, "why": 1}), 400, part="why")
            assert counts(db) == before
            answer = post(pawl, f"/v1/tsq/{command_id}/{verb}", body)
            assert answer["decided_at"] and answer == {"command_id": command_id, "status": status, "decision": verb,
                                                       "operator": "ann", "decided_at": answer["decided_at"]}, answer
            last = command(pawl, command_id)["audit"][-1]
            assert (last["event"], last["actor"]) == ("OPERATOR_" + verb.upper(), "ann"), last
            before = counts(db)
            again = pawl.http("POST", f"/v1/tsq/{command_id}/{verb}", body)
            assert again.status == 200 and is_replayed(again) and again.json == answer, again
            for other, change in [(verb, {**body, "operator": "bob"}), (verb, {**body, "reason": "x"}),
                                  ("cancel" if verb != "cancel" else "retry", {"operator": "ann"})]:
                problem(pawl.http("POST", f"/v1/tsq/{command_id}/{other}", change), 409, part=f"{verb} by ann at 20")
            assert counts(db) == before
            problem(pawl.http("POST", f"/v1/tsq/{new_id()}/{verb}", body), 404)
        assert command(pawl, ids[2])["result"] == {"by": "hand"}
        assert claim(pawl)[0]["attempt"] == 1
        post(pawl, f"/v1/tsq/{ids[3]}/retry", None)
        assert command(pawl, ids[3])["audit"][-1]["actor"], "the key's name stands in for the operator"


@test
def one_id_in_two_domains_is_reached_by_its_domain():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        sent = new_id()
        for domain in ("shop", "till"):
            post_command(pawl, domain=domain, payload=domain, command_id=sent)
        for method, path, body in [("GET", f"/v1/commands/{sent}", None), ("POST", f"/v1/commands/{sent}/cancel", {}),
                                   ("POST", f"/v1/tsq/{sent}/retry", {})]:
            ambiguous = problem(pawl.http(method, path, body), 409, part="shop, till")
            assert ambiguous["type"] == "/problems/ambiguous-id", ambiguous
            problem(pawl.http(method, path + "?domain=nowhere", body), 404)
        for domain in ("shop", "till"):
            assert pawl.http("GET", f"/v1/commands/{sent}?domain={domain}").json["payload"] == domain
            settle(pawl, (claim(pawl, 1, domain)[0], "fail", {"error": "broken"}), domain=domain)
        assert post(pawl, f"/v1/tsq/{sent}/complete?domain=till", {})["status"] == "COMPLETED"
        done = pawl.run("command", "show", sent)
        assert done.code == 1 and "shop, till" in done.stderr, done
        assert pawl.run("command", "show", sent, "--domain", "till", "--json").json["status"] == "COMPLETED"
        assert pawl.run("tsq", "retry", sent, "--domain", "shop").stdout == f"{sent} PENDING\n"
        again = pawl.run("tsq", "retry", sent, "--domain", "shop", "--json")
        assert again.json["decision"] == "retry" and again.json["status"] == "PENDING", again
        assert pawl.run("command", "cancel", sent, "--domain", "shop").stdout == f"{sent} CANCELED\n"
        assert db.value("select count(*) from pawl.audit where event like 'OPERATOR%'") == "2"


@test
def a_settle_of_a_command_that_does_not_exist_is_found_by_its_id():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        post_command(pawl)
        unknown = new_id()
        verdict, = post(pawl, "/v1/domains/shop/settle",
                        {"items": [{"command_id": unknown, "lease": 7, "outcome": "complete"}]})["items"]
        assert (verdict["settled"], verdict["status"]) == (False, "UNKNOWN"), verdict
        assert db.value("select d.name from pawl.audit a join pawl.domain d on d.id = a.domain_id "
                        f"where a.command_id = '{unknown}' and a.details ? 'orphan'") == "shop"


@test
def a_retry_policy_is_set_and_followed():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        path = "/v1/domains/shop/retry-policy"
        default = {"type": "*", "delays_s": [10, 60, 300], "is_default": True, "order_key": "hold"}
        assert pawl.http("GET", path).json == {"domain": "shop", "items": [default]}
        for body, part in [({}, "delays_s"), ({"delays_s": []}, "delays_s"), ({"delays_s": 7}, "delays_s"),
                           ({"delays_s": ["1"]}, "delays_s"), ({"delays_s": [1, None]}, "delays_s"), ({"delays_s": [-1]}, "delays_s"),
                           ({"delays_s": [[1]]}, "delays_s"), ({"delays_s": [1e9]}, "delays_s"), ({"delays_s": [1] * 101}, "delays_s"),
                           ({"delays_s": [1], "type": "no type"}, "type")]:
            problem(pawl.http("PUT", path, body), 400, part=part)
        problem(pawl.http("PUT", "/v1/domains/no%20domain/retry-policy", {"delays_s": [1]}), 400, part="domain")
        assert db.value("select count(*) from pawl.retry_policy") == "0"
        own = {"type": "*", "delays_s": [3600, 7200.5], "is_default": False, "order_key": "hold"}
        for _ in range(2):
            assert pawl.http("PUT", path, {"delays_s": [3600, 7200.5]}).json["items"] == [own]
        both = pawl.http("PUT", path, {"delays_s": [0], "type": "charge"}).json["items"]
        assert both == [own, {"type": "charge", "delays_s": [0], "is_default": False, "order_key": "hold"}], both
        sent = {kind: post_command(pawl, type=kind) for kind in ("charge", "other")}
        settle(pawl, *[(c, "retry", {"error": "x"}) for c in claim(pawl, 2)])
        assert command(pawl, sent["charge"])["due_at"] is None  # queued at once
        assert db.value("select due > now() + interval '40 min' from pawl.delayed") == "t"
        assert pawl.http("DELETE", path + "?type=charge").json["items"] == [own]
        assert pawl.http("DELETE", path).json["items"] == [default]
        done = pawl.run("policy", "set", "shop", "10s,1m,1h", "--type", "charge", "--json")
        assert done.json[1] == {"type": "charge", "delays_s": [10, 60, 3600], "is_default": False, "order_key": "hold"}, done
        assert "10s,1m,1h" in pawl.run("policy", "show", "shop").stdout
        assert pawl.run("policy", "reset", "shop", "--type", "charge", "--json").json == [default]
        refused(pawl, "policy", "set", "shop", "10s,soon", code=2, words=["DELAYS", "soon"])
        reader = pawl.run("key", "create", "reader", "--scopes", "read,send,work", "--json").json["token"]
        assert pawl.http("GET", path, token=reader).status == 200
        problem(pawl.http("PUT", path, {"delays_s": [1]}, token=reader), 403)


# --- batches ---

LAST = {"domain": "after", "type": "all-done", "payload": {"x": 1}}


def batch_body(count, **rest):
    return {"batch_id": new_id(), "name": "night", "on_complete": LAST,
            "items": [{"domain": "shop", "type": "charge", "payload": n, "command_id": new_id()} for n in range(count)],
            **rest}


def last_ones(db, batch_id):
    """How many times the batch's last command was sent."""
    return int(db.value(f"select count(*) from pawl.command where type = 'all-done' and correlation_id = '{batch_id}'"))


def wait_complete(db, batch_id):
    """Commands that end beside each other may leave it to the next requeue."""
    wait_until(lambda: last_ones(db, batch_id) == 1, what="the batch is complete")


@test
def batch_sends_its_last_command_when_all_have_ended():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        body = batch_body(4)
        answer = post(pawl, "/v1/commands/batch", body, 201)
        assert answer["batch_id"] == body["batch_id"], answer
        assert [item["command_id"] for item in answer["items"]] == [item["command_id"] for item in body["items"]], answer
        one, two, three, four = claim(pawl, 4)
        settle(pawl, (one, "complete"), (two, "reject"), (three, "fail"))
        seen = pawl.http("GET", f"/v1/batches/{body['batch_id']}").json
        wanted = {"status": "SEALED", "name": "night", "total": 4, "pending": 0, "in_progress": 1, "completed": 1,
                  "failed": 1, "canceled": 0, "in_tsq": 1}
        assert {key: seen[key] for key in wanted} == wanted, seen
        settle(pawl, (four, "complete"))
        assert last_ones(db, body["batch_id"]) == 0  # one waits for an operator
        post(pawl, f"/v1/tsq/{three['command_id']}/cancel", {})
        wait_complete(db, body["batch_id"])
        last, = claim(pawl, 5, "after")
        assert (last["type"], last["payload"]) == ("all-done", {"x": 1}), last
        text = pawl.run("batch", "show", body["batch_id"]).stdout
        assert "COMPLETED" in text and "total        4" in text and "canceled     1" in text, text
        problem(pawl.http("GET", f"/v1/batches/{new_id()}"), 404)


@test
def batch_may_be_filled_later_and_empty_ones_complete_at_once():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        body = batch_body(1, open=True)
        post(pawl, "/v1/commands/batch", body, 201)
        settle(pawl, (claim(pawl)[0], "complete"))
        assert last_ones(db, body["batch_id"]) == 0  # more may come
        post_command(pawl, batch_id=body["batch_id"])
        seen = post(pawl, f"/v1/batches/{body['batch_id']}/seal", {})
        assert (seen["status"], seen["total"]) == ("SEALED", 2), seen
        problem(pawl.http("POST", "/v1/commands", {"domain": "shop", "type": "x", "batch_id": body["batch_id"]}), 409,
                part="sealed")
        settle(pawl, (claim(pawl)[0], "complete"))
        wait_complete(db, body["batch_id"])
        empty = post(pawl, "/v1/commands/batch", {"open": True, "on_complete": LAST}, 201)["batch_id"]
        assert last_ones(db, empty) == 0
        post(pawl, f"/v1/batches/{empty}/seal", {})
        assert last_ones(db, empty) == 1


@test
def a_batch_takes_as_many_commands_as_its_schema_says():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        schema = pawl.http("GET", "/openapi.json").json["paths"]["/v1/commands/batch"]["post"]["requestBody"]
        most = schema["content"]["application/json"]["schema"]["properties"]["items"]["maxItems"]
        items = [{"domain": "shop", "type": "charge", "payload": {"order": n}, "correlation_id": "c" * 50} for n in range(most + 1)]
        assert len(post(pawl, "/v1/commands/batch", {"items": items[:most]}, 201)["items"]) == most == 8000
        problem(pawl.http("POST", "/v1/commands/batch", {"items": items}), 400, part=f"items must be an array of at most {most}")
        assert db.value("select count(*) from pawl.command") == str(most)


@test
def a_reply_queue_may_have_any_name_that_queues_have():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        sent = post_command(pawl, reply_to="shop-answers.v2")
        settle(pawl, (claim(pawl)[0], "complete"))
        assert db.value("select message ->> 'command_id' from pgmq.read('shop-answers.v2', 0, 1)") == sent


@test
def bad_batches_are_refused_by_field_and_nothing_is_written():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        before = counts(db)
        good = batch_body(2)
        item = good["items"][0]
        for body in ({}, {"on_complete": LAST}, {"items": []}, {"items": [], "open": False, "name": "n"}):
            problem(pawl.http("POST", "/v1/commands/batch", body), 400, part="items must be an array of 1 to 8000")
            assert counts(db) == before, f"{body}: something was written"
        for change, field in [
                ({"items": [item, {"domain": "shop"}]}, "items[1]"),
                ({"items": [item, {**item, "domain": "a b"}]}, "items[1]"),
                ({"items": [item, {**item, "batch_id": new_id()}]}, "items[1].batch_id"), ({"items": 7}, "items"),
                ({"items": [item] * 8001}, "items"), ({"name": "n" * 201}, "name"), ({"batch_id": "x"}, "batch_id"),
                ({"on_complete": {}}, 'missing field "on_complete.domain"'),
                ({"on_complete": "x"}, 'on_complete must be an object, got "x"'),
                ({"on_complete": {**LAST, "domain": "no spaces"}}, "on_complete"),
                ({"on_complete": {**LAST, "type": "a/b"}}, "on_complete"),
                ({"on_complete": {**LAST, "priority": 3}}, "priority"), ({"extra": 1}, "extra")]:
            answer = pawl.http("POST", "/v1/commands/batch", {**good, **change})
            assert field in problem(answer, 400)["detail"], (field, answer.body)
            assert counts(db) == before, f"{field}: something was written"


@test
def batch_same_request_twice_is_one_batch():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        body = batch_body(3)
        first = pawl.http("POST", "/v1/commands/batch", body)
        before = counts(db)
        again = pawl.http("POST", "/v1/commands/batch", body)
        assert (again.status, again.body) == (201, first.body), again
        assert is_replayed(again) and not is_replayed(first), (first, again)
        work(pawl, "shop", "--noop")
        wait_complete(db, body["batch_id"])
        done = pawl.http("POST", "/v1/commands/batch", body)
        assert (done.status, done.body) == (201, first.body) and is_replayed(done), "the same bytes after they ran as well"
        assert counts(db).split()[0] == str(int(before.split()[0]) + 1)
        for change, field in [({"name": "day"}, "name"), ({"on_complete": {**LAST, "type": "else"}}, "on_complete")]:
            problem(pawl.http("POST", "/v1/commands/batch", {**body, **change}), 422, part=field)
        more = {**body, "items": body["items"] + [{"domain": "shop", "type": "charge"}]}
        problem(pawl.http("POST", "/v1/commands/batch", more), 409, part="sealed")
        twins = batch_body(3)
        answers = in_threads(16, lambda _: pawl.http("POST", "/v1/commands/batch", twins))()
        assert {answer.status for answer in answers} == {201}, answers
        work(pawl, "shop", "--noop")
        wait_complete(db, twins["batch_id"])
        assert db.value("select count(*) from pawl.batch") == "2"


@test
def batch_two_workers_complete_it_once():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        batches = [post(pawl, "/v1/commands/batch", batch_body(20), 201)["batch_id"] for _ in range(5)]
        # No handler ends before both workers have begun one.
        program = f"touch {folder}/$PPID; until test $(ls {folder} | wc -l) -eq 2; do sleep 0.02; done"
        workers = [pawl.start("work", "shop", "--exec", program, "-j", "4", "--batch", "4", "--drain") for _ in range(2)]
        assert [worker.wait() for worker in workers] == [0, 0]
        for batch in batches:
            wait_complete(db, batch)
        assert [last_ones(db, batch) for batch in batches] == [1] * 5
        assert db.value("select count(distinct actor) from pawl.audit where event = 'RECEIVED'") == "2"


@test
def batch_concurrent_ends_complete_it_once():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        for _ in range(10):
            body = batch_body(2)
            post(pawl, "/v1/commands/batch", body, 201)
            pair = claim(pawl, 2)
            verdicts = in_threads(2, lambda i, pair=pair: settle(pawl, (pair[i], "complete")))()
            assert all(verdict[0]["settled"] for verdict in verdicts), verdicts
            wait_complete(db, body["batch_id"])
        # The same, held open in the middle: the second end does not wait for the first one, and a requeue sees both.
        body = batch_body(2)
        post(pawl, "/v1/commands/batch", body, 201)
        first, second = claim(pawl, 2)
        with Session(db.url) as session:
            session.do("begin")
            number = db.value(f"select id from pawl.command where command_id = '{first['command_id']}'")
            session.do(f"select * from pawl.settle(array[{number}], array[{first['lease']}], array['complete'])")
            assert settle(pawl, (second, "complete"))[0]["settled"]
            assert last_ones(db, body["batch_id"]) == 0
            session.do("commit")
        wait_complete(db, body["batch_id"])


@test
def batch_same_key_again_is_the_same_batch_without_any_ids():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        body = {"name": "night", "on_complete": LAST, "items": [{"domain": "shop", "type": "charge", "payload": 1}] * 3}
        key = new_id()

        def ask(value=key, **change):
            return pawl.http("POST", "/v1/commands/batch", {**body, **change}, headers={"Idempotency-Key": value})

        first = ask()
        assert first.status == 201 and not is_replayed(first) and first.json["batch_id"] == key, first
        assert len({item["command_id"] for item in first.json["items"]}) == 3, first
        before = counts(db)
        for value, change in [(key, {}), (f'"{key.upper()}"', {}), (key, {"batch_id": key})]:
            again = ask(value, **change)
            assert (again.status, again.body) == (201, first.body) and is_replayed(again), again
        differs = ask(items=body["items"][:2] + [{"domain": "shop", "type": "charge", "payload": 2}])
        assert "payload differs" in problem(differs, 422, part="items[2]")["detail"] and not is_replayed(differs), differs
        for value, change in [('""', {}), ("seven", {"batch_id": key}), (new_id(), {"batch_id": key})]:
            problem(pawl.http("POST", "/v1/commands/batch", {**body, **change}, headers={"Idempotency-Key": value}), 400,
                    part="Idempotency-Key")
        problem(pawl.http("POST", "/v1/commands/batch", {**body, "items": body["items"] * 2},
                          headers={"Idempotency-Key": key}), 409, part="sealed")
        assert counts(db) == before
        twin = new_id()
        answers = in_threads(16, lambda _: ask(twin))()
        assert len({answer.body for answer in answers}) == 1 and answers[0].status == 201, answers
        assert sum(not is_replayed(answer) for answer in answers) == 1, "one of them sent it"
        work(pawl, "shop", "--noop")
        for batch in (key, twin):
            wait_complete(db, batch)
        stop_clean(pawl.server)


@test
def batch_open_under_a_key_needs_ids_and_a_repeat_sends_nothing():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        key, bare = new_id(), {"domain": "shop", "type": "charge"}
        before = counts(db)
        for change, headers in [({}, {"Idempotency-Key": key}), ({"batch_id": key}, None)]:
            body = {"open": True, "items": [{**bare, "command_id": new_id()}, bare], **change}
            problem(pawl.http("POST", "/v1/commands/batch", body, headers=headers), 400, part="items[1].command_id is required")
        assert counts(db) == before
        # Each request adds its own commands, and a repeat of any of them adds none.
        parts = [{"open": opened, "on_complete": LAST, "items": [{**bare, "command_id": new_id()} for _ in range(3)]}
                 for opened in (True, True, False)]
        for body in parts:
            first, again = [pawl.http("POST", "/v1/commands/batch", body, headers={"Idempotency-Key": key}) for _ in range(2)]
            assert first.status == 201 and not is_replayed(first), first
            assert (again.status, again.body) == (201, first.body) and is_replayed(again), again
        assert work(pawl, "shop", "--noop")["completed"] == 9
        wait_complete(db, key)
        # Without a key each request makes a batch of its own, and needs no ids.
        made = [post(pawl, "/v1/commands/batch", {"open": True, "items": [bare]}, 201)["batch_id"] for _ in range(2)]
        assert made[0] != made[1]
        stop_clean(pawl.server)


@test
def batch_crash_then_recovery():
    with Database() as db, Pawl(db) as pawl:
        server = pawl.serve()
        retry_at_once(db, "shop")
        body = batch_body(2)
        body["items"].append({"domain": "zoo", "type": "charge", "command_id": new_id()})
        before = counts(db)
        with Session(db.url) as session:
            # The server dies when the batch and some of its commands are written, the others and the seal are not.
            session.do("begin")
            session.do("select pawl.send('zoo', 'charge', '{}', %s)" % repr(body["items"][2]["command_id"]))
            asking = in_threads(1, lambda _: pawl.http("POST", "/v1/commands/batch", body))
            wait_until(lambda: db.value("select count(*) from pg_stat_activity where wait_event_type = 'Lock' and "
                                        f"datname = '{db.name}'") == "1", what="it waits for a command that another transaction sends")
            server.stop(signal.SIGKILL)
            assert isinstance(asking()[0], Exception)
            db.rows(f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{db.name}' and "
                    "application_name = 'pawl'")
            session.do("rollback")
        assert counts(db) == before, "all of it or nothing"
        pawl.serve()
        again = pawl.http("POST", "/v1/commands/batch", body)
        assert again.status == 201 and not is_replayed(again), again
        work(pawl, "zoo", "--noop")
        body["items"].insert(0, body["items"].pop())
        # A worker dies with the last command in its hands.
        for claimed in claim(pawl, 1):
            settle(pawl, (claimed, "complete"))
        worker = pawl.start("work", "shop", "--lease", "60s", "--exec", "sleep 600")
        wait_status(pawl, body["items"][2]["command_id"], "IN_PROGRESS")
        worker.stop(signal.SIGKILL)
        db.rows("update pawl.lease set until = now()")  # as if its time were over
        assert last_ones(db, body["batch_id"]) == 0
        assert work(pawl, "shop", "--noop")["completed"] == 1
        wait_complete(db, body["batch_id"])
        assert show(pawl, body["items"][2]["command_id"])["attempts"] == 2


main()
