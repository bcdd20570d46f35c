#!/usr/bin/env python3
"""repeats - what the same request answers a second time: wallets, commands, lock waits, and any POST under a key."""
import hashlib
import uuid

from bus_commands import events, retry_at_once, send, show, status, work
from checks import dead_letters_put, problem, stop_clean
from pawl_test import Database, Pawl, main, test
from servers import Session


def new_key():
    return str(uuid.uuid4())


def is_replayed(answer):
    return answer.headers.get("idempotency-replayed") == "true"


@test
def a_wallet_opened_again_answers_its_present_state():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        body = {"owner": "ann", "floor": -50, "metadata": {"tier": 1}}
        first = pawl.http("POST", "/v1/wallets", body)
        again = pawl.http("POST", "/v1/wallets", body)
        assert (again.status, again.body) == (201, first.body) and is_replayed(again), again
        assert pawl.http("POST", "/v1/wallets/ann/topup", {"txn_id": new_key(), "amount": 70}).status == 201
        assert pawl.http("POST", "/v1/holds", {"txn_id": new_key(), "owner": "ann", "amount": 20}).status == 201
        again = pawl.http("POST", "/v1/wallets", body)
        assert again.status == 201 and is_replayed(again) and again.headers["pawl-balance"] == "70", again
        assert again.json == pawl.http("GET", "/v1/wallets/ann").json, again.body
        assert (again.json["balance"], again.json["held"], again.json["available"]) == (70, 20, 100), again.body
        assert again.json["created_at"] == first.json["created_at"], again.body
        stop_clean(pawl.server)


@test
def a_command_sent_again_answers_the_same_bytes_whatever_became_of_it():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        body = {"domain": "shop", "type": "charge", "payload": {"n": 1}, "command_id": new_key()}
        batch = {"batch_id": new_key(), "items": [{"domain": "shop", "type": "charge"}, {"domain": "shop", "type": "pay"}]}
        first, many = pawl.http("POST", "/v1/commands", body), pawl.http("POST", "/v1/commands/batch", batch)
        assert first.status == many.status == 201, (first, many)
        assert first.headers["pawl-status"] == "PENDING", first.headers
        work(pawl, "shop", "--noop")
        assert status(pawl, body["command_id"]) == "COMPLETED"
        again = pawl.http("POST", "/v1/commands", body)
        assert (again.status, again.body) == (201, first.body) and is_replayed(again), (again, first)
        assert again.headers["pawl-status"] == "COMPLETED", again.headers
        again = pawl.http("POST", "/v1/commands/batch", batch)
        assert (again.status, again.body) == (201, many.body) and is_replayed(again), (again, many)
        stop_clean(pawl.server)


# --- the header Idempotency-Key ---

def keyed(pawl, path, body, key, token=Pawl.TOKEN):
    return pawl.http("POST", path, body, token, headers={"Idempotency-Key": key})


def same_twice(pawl, path, body, key):
    """The first answer; the second has its status and bytes, and says so."""
    first, again = keyed(pawl, path, body, key), keyed(pawl, path, body, key)
    assert first.status in (200, 201) and not is_replayed(first), first
    assert (again.status, again.body) == (first.status, first.body) and is_replayed(again), (first, again)
    return first


@test
def any_text_is_a_key_and_each_api_key_has_its_own():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        other = pawl.run("key", "create", "other", "--scopes", "wallet,treasury,command", "--json").json["token"]
        for owner in ("ann", "bob"):
            assert pawl.http("POST", "/v1/wallets", {"owner": owner}).status == 201
        path, body = "/v1/wallets/ann/topup", {"amount": 5}
        longest = "ä" * 100
        ids = {same_twice(pawl, path, body, key.encode().decode("latin-1")).json["txn_id"]
               for key in ("order-17", "order-18", longest, "a,b;c", 'say \\"', "1")}
        assert len(ids) == 6, ids
        first = keyed(pawl, path, body, '"order-17"')
        assert is_replayed(first) and first.json["txn_id"] in ids, "quoted it is the same text"
        quoted = keyed(pawl, path, body, '"say \\\\\\""')
        assert is_replayed(quoted) and quoted.json["txn_id"] in ids, "a quoted string escapes quotes and backslashes"
        assert keyed(pawl, path, {**body, "txn_id": first.json["txn_id"]}, "order-17").body == first.body, "they agree"
        problem(keyed(pawl, path, {**body, "txn_id": new_key()}, "order-17"), 400, part="Idempotency-Key")
        problem(keyed(pawl, path, {"amount": 6}, "order-17"), 422, "key-reused", "amount")
        theirs = keyed(pawl, path, body, "order-17", other)
        assert theirs.status == 201 and not is_replayed(theirs) and theirs.json["txn_id"] not in ids, theirs
        assert db.value("select balance from wallet.get(array['ann'])") == "35"
        sent = same_twice(pawl, "/v1/commands", {"domain": "shop", "type": "charge"}, "order-17")
        assert status(pawl, sent.json["command_id"]) == "PENDING"
        same_twice(pawl, "/v1/commands/batch", {"items": [{"domain": "shop", "type": "charge"}]}, "order-17 batch")
        same_twice(pawl, "/v1/transfers/batch", {"items": [{"from": "ann", "to": "bob", "amount": 1}]}, "order-17 items")
        stop_clean(pawl.server)


def id_of(text, api_key="admin"):
    """As docs/http.md describes it: clients that repeat a request after an upgrade rely on it."""
    made = bytearray(hashlib.sha256(f"pawl key\0{api_key}\0{text}".encode()).digest()[:16])
    made[6] = made[6] & 0x0F | 0x80
    made[8] = made[8] & 0x3F | 0x80
    return str(uuid.UUID(bytes=bytes(made)))


@test
def the_id_made_from_a_text_never_changes():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        made = keyed(pawl, "/v1/commands", {"domain": "shop", "type": "charge"}, "order-17").json["command_id"]
        assert made == id_of("order-17") == "54732249-9bf4-8c36-9821-d8cbb56ea44f", made


@test
def a_repeated_decision_under_its_key_is_done_once():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        retry_at_once(db, "shop")
        failed, refused, waiting = (send(pawl, "shop", kind, 1) for kind in ("a", "b", "c"))
        work(pawl, "shop", "--exec", "exit 70", "--type", "a")
        work(pawl, "shop", "--exec", "exit 70", "--type", "b")
        body = {"reason": "try it"}
        first = same_twice(pawl, f"/v1/tsq/{failed}/retry", body, "retry 1")
        work(pawl, "shop", "--exec", "exit 70", "--type", "a")
        again = keyed(pawl, f"/v1/tsq/{failed}/retry", body, "retry 1")
        assert (again.status, again.body) == (200, first.body) and is_replayed(again), again
        assert status(pawl, failed) == "IN_TSQ", "a late repeat decides nothing"
        problem(keyed(pawl, f"/v1/tsq/{refused}/retry", body, "retry 1"), 422, "key-reused")
        problem(keyed(pawl, f"/v1/tsq/{failed}/retry", {"reason": "else"}, "retry 1"), 422, "key-reused")
        problem(keyed(pawl, f"/v1/tsq/{failed}/retry?domain=shop", body, "retry 1"), 422, "key-reused")
        other = pawl.run("key", "create", "other", "--scopes", "admin", "--json").json["token"]
        assert keyed(pawl, f"/v1/tsq/{refused}/complete", {"result": 7}, "retry 1", other).status == 200, "a key of their own"
        same_twice(pawl, f"/v1/tsq/{failed}/cancel", body, "cancel 1")
        same_twice(pawl, f"/v1/commands/{waiting}/cancel", {}, "cancel 2")
        assert events(show(pawl, waiting)).count("CANCELED") == 1
        letter = dead_letters_put(db, ["one"])[0]
        same_twice(pawl, f"/v1/dead-letters/{letter}/retry", None, "letter")
        batch = pawl.http("POST", "/v1/commands/batch", {"open": True, "items": []}).json["batch_id"]
        same_twice(pawl, f"/v1/batches/{batch}/seal", None, "seal")
        for path in (f"/v1/tsq/{new_key()}/retry", f"/v1/commands/{new_key()}/cancel"):
            for _ in range(2):
                answer = keyed(pawl, path, {}, "unknown")
                assert answer.status in (404, 409, 422) and not is_replayed(answer), "a refusal is not kept"
        stop_clean(pawl.server)


@test
def workers_may_repeat_a_settlement_but_not_a_claim():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        for number in range(2):
            send(pawl, "shop", "charge", number)
        before = db.value("select count(*) from pawl.ready")
        problem(keyed(pawl, "/v1/domains/shop/claim", {"limit": 2}, "claim"), 400, part="Idempotency-Key")
        assert db.value("select count(*) from pawl.ready") == before
        items = pawl.http("POST", "/v1/domains/shop/claim", {"limit": 2}).json["items"]
        leases = [{"command_id": item["command_id"], "lease": item["lease"]} for item in items]
        kept = same_twice(pawl, "/v1/domains/shop/extend", {"lease_s": 60, "items": leases}, "extend")
        assert [item["extended"] for item in kept.json["items"]] == [True, True], kept
        kept = same_twice(pawl, "/v1/domains/shop/progress", {"items": [{**lease, "percent": 1} for lease in leases]}, "progress")
        assert [item["reported"] for item in kept.json["items"]] == [True, True], kept
        ends = {"items": [{**lease, "outcome": "complete"} for lease in leases]}
        done = same_twice(pawl, "/v1/domains/shop/settle", ends, "settle")
        assert [item["settled"] for item in done.json["items"]] == [True, True], done
        stop_clean(pawl.server)


@test
def kept_answers_go_after_a_week():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        batch = pawl.http("POST", "/v1/commands/batch", {"open": True, "items": []}).json["batch_id"]
        for number in range(5):
            same_twice(pawl, f"/v1/batches/{batch}/seal", None, f"seal {number}")
        db.rows("update pawl.kept_answer set kept_at = kept_at - interval '7 days'")
        assert not is_replayed(keyed(pawl, f"/v1/batches/{batch}/seal", None, "seal new"))
        assert db.value("select count(*) from pawl.kept_answer") == "4", "each new one takes two old ones away"
        stop_clean(pawl.server)


@test
def a_lock_wait_that_was_rolled_back_is_not_in_doubt():
    with Database() as db, Pawl(db, env={"PAWL_REQUEST_TIMEOUT": "6s"}) as pawl:
        server = pawl.serve()
        assert pawl.http("POST", "/v1/wallets", {"owner": "ann"}).status == 201
        send(pawl, "shop", "charge", None, "--id", twin := new_key())
        body = {"txn_id": new_key(), "amount": 5}
        with Session(db.url) as session:
            session.do("begin; lock table wallet.txn, pawl.command in access exclusive mode")
            answers = [pawl.http("POST", "/v1/wallets/ann/topup", body),
                       pawl.http("POST", "/v1/commands", {"domain": "shop", "type": "charge", "command_id": new_key()}),
                       pawl.http("POST", "/v1/wallets", {"owner": "bob"}),
                       pawl.http("POST", f"/v1/commands/{twin}/cancel", {})]
            session.do("rollback")
        for answer in answers:
            found = problem(answer, 503)
            assert found["type"] in ("/problems/timed-out", "/problems/try-again"), found
            assert "may have" not in found["title"] + found["detail"], found
        assert db.value("select count(*) from pawl.command") == "1"
        assert pawl.http("POST", "/v1/wallets/ann/topup", body).json["balance"] == 5
        assert pawl.http("GET", "/v1/wallets/bob").status == 404
        stop_clean(server)


@test
def a_command_sent_again_with_another_field_is_refused_with_its_name():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        body = {"domain": "shop", "type": "charge", "command_id": new_key(), "priority": 7, "max_attempts": 2, "reply_to": "answers",
                "correlation_id": "c"}
        assert pawl.http("POST", "/v1/commands", body).status == 201
        for field, value in [("priority", 3), ("max_attempts", 5), ("reply_to", "others"), ("correlation_id", "d"), ("payload", [1])]:
            problem(pawl.http("POST", "/v1/commands", {**body, field: value}), 422, part=field)
            if field != "payload":
                problem(pawl.http("POST", "/v1/commands", {key: body[key] for key in body if key != field}), 422, part=field)
        assert pawl.http("POST", "/v1/commands", {**body, "delay_s": 5}).status == 201, "when it was due is no longer known"

        key = {"Idempotency-Key": "night run"}
        items = [{"domain": "shop", "type": "charge", "payload": {"n": n}} for n in range(3)]
        first = pawl.http("POST", "/v1/commands/batch", {"items": items}, headers=key)
        assert first.status == 201
        before = db.value("select count(*) from pawl.command"), db.value("select count(*) from pawl.batch")
        other = [items[0], {**items[1], "payload": {"n": 9}}, items[2]]
        detail = problem(pawl.http("POST", "/v1/commands/batch", {"items": other}, headers=key), 422, part="payload")["detail"]
        assert "items[1]" in detail, detail
        problem(pawl.http("POST", "/v1/commands/batch", {"items": items * 2}, headers=key), 409, part="sealed")
        fewer = pawl.http("POST", "/v1/commands/batch", {"items": items[:2]}, headers=key)
        assert fewer.status == 201 and fewer.json["items"] == first.json["items"][:2], fewer.body
        # All refused under a new id: the batch is not created either, and its last command not sent.
        clash = {"items": [{**body, "payload": [1]}], "on_complete": {"domain": "shop", "type": "report"}}
        problem(pawl.http("POST", "/v1/commands/batch", clash), 422, part="payload")
        assert (db.value("select count(*) from pawl.command"), db.value("select count(*) from pawl.batch")) == before


main()
