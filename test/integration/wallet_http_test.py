#!/usr/bin/env python3
"""wallet_http - money over HTTP: every route, every refusal, the same bytes twice."""
import csv
import io
import json
import urllib.parse
import uuid

from checks import metric, problem, stop_clean
from pawl_test import Database, Pawl, main, test, wait_until
from servers import Cluster, Session, in_threads

MAX = 2**53 - 1
MONEY = ("balance_before", "balance", "held", "available", "version")


def key():
    return str(uuid.uuid4())


def path(owner, rest=""):
    return "/v1/wallets/" + urllib.parse.quote(owner, safe="") + rest


def post(pawl, where, body, status=201, **rest):
    answer = pawl.http("POST", where, body, **rest)
    assert answer.status == status, f"{where}: {answer.status}, not {status}: {answer.body!r}"
    return answer


def get(pawl, where, status=200):
    answer = pawl.http("GET", where)
    assert answer.status == status, f"{where}: {answer.status}, not {status}: {answer.body!r}"
    return answer.json


def opened(pawl, *owners, amount=0, **rest):
    for owner in owners:
        post(pawl, "/v1/wallets", {"owner": owner, **rest})
        if amount:
            asset = {"asset": rest["asset"]} if "asset" in rest else {}
            post(pawl, path(owner, "/topup"), {"txn_id": key(), "amount": amount, **asset})


def balance(pawl, owner, asset="CREDIT"):
    return get(pawl, path(owner, f"?asset={asset}"))["balance"]


def rows(db):
    """Everything that a request could have written."""
    return db.value("select (select count(*) from wallet.txn) || ' ' || (select count(*) from wallet.entry) || ' ' || "
                    "(select count(*) from wallet.wallet) || ' ' || (select count(*) from wallet.hold) || ' ' || "
                    "(select count(*) from wallet.asset)")


def adds_up(db):
    """The equations of the ledger."""
    assert db.value("select count(*) from (select t.asset_id from wallet.entry e join wallet.txn t on t.id = e.txn join "
                    "wallet.wallet w on w.id = e.wallet_id group by w.asset_id, t.asset_id having sum(e.amount) <> 0) x") == "0"
    assert db.value("select count(*) from wallet.state s where s.balance <> (select sum(e.amount) from wallet.entry e "
                    "where e.wallet_id = s.id)") == "0"


def twice(pawl, where, body, **rest):
    """The answer; a second one has the same status and the same bytes, and says so."""
    first, again = (pawl.http("POST", where, body, **rest) for _ in range(2))
    assert (again.status, again.body) == (first.status, first.body), (first, again)
    assert "idempotency-replayed" not in first.headers, first.headers
    assert again.headers["idempotency-replayed"] == "true", again.headers
    assert first.headers["pawl-balance"] == again.headers["pawl-balance"], again.headers
    return first


# --- wallets ---

@test
def a_wallet_is_opened_once_and_reported_as_known_the_second_time():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        body = {"owner": "ann", "floor": -50, "metadata": {"tier": [1, 2.50]}}
        answer = twice(pawl, "/v1/wallets", body)
        assert answer.status == 201 and answer.headers["pawl-balance"] == "0", answer
        first = answer.json
        assert first.pop("created_at").endswith("Z")
        assert first == {"owner": "ann", "asset": "CREDIT", "balance": 0, "held": 0, "available": 50, "floor": -50,
                         "version": 0, "frozen": False, "metadata": {"tier": [1, 2.50]}}, first
        post(pawl, path("ann", "/topup"), {"txn_id": key(), "amount": 7})
        again = post(pawl, "/v1/wallets", body)
        assert again.json == get(pawl, path("ann")) and again.headers["pawl-balance"] == "7", again
        before = rows(db)
        problem(pawl.http("POST", "/v1/wallets", {**body, "floor": 0}), 422, "key-reused", "floor")
        problem(pawl.http("POST", "/v1/wallets", {**body, "metadata": {}}), 422, "key-reused", "metadata")
        assert rows(db) == before
        stands = get(pawl, path("ann"))
        assert (stands["balance"], stands["available"], stands["version"]) == (7, 57, 1), stands
        used = key()
        post(pawl, "/v1/wallets", {"owner": "bob", "txn_id": used})
        problem(pawl.http("POST", "/v1/wallets", {"owner": "eve"}, headers={"Idempotency-Key": used}), 422, "key-reused")
        problem(pawl.http("GET", path("eve")), 404, "wallet-unknown", "eve")
        stop_clean(pawl.server)


@test
def owners_have_any_name_and_a_wallet_per_asset():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        names = ["o'hara \"x\"", "🦆/💶", "a%2Fb?c=d#e", "ü" * 127, "DROP TABLE;--", "\\N{NULL}", "{a,b}", " "]
        opened(pawl, *names, amount=5)
        for name in names:
            assert get(pawl, path(name))["owner"] == name
            moved = post(pawl, "/v1/transfers", {"txn_id": key(), "from": name, "to": names[names[0] == name], "amount": 1})
            assert moved.json["from"] == name, moved.json
        opened(pawl, names[1], asset="EUR.2", amount=3)
        found = get(pawl, "/v1/owners/" + urllib.parse.quote(names[1], safe="") + "/wallets")["items"]
        assert [(w["asset"], w["balance"]) for w in found] == [("CREDIT", 5), ("EUR.2", 3)], found
        problem(pawl.http("GET", "/v1/owners/nobody/wallets"), 404)
        system = get(pawl, path("@system"))
        assert system["balance"] == -5 * len(names) and "floor" not in system, system
        assert get(pawl, path("@system", "?asset=EUR.2"))["balance"] == -3
        adds_up(db)
        stop_clean(pawl.server)


# --- mutations ---

@test
def every_mutation_answers_the_same_bytes_twice():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        opened(pawl, "ann", "bob")
        hold, other, first = key(), key(), key()

        def same(where, body, **fields):
            answer = twice(pawl, where, {"txn_id": key(), **body})
            assert answer.status == 201 and answer.headers["pawl-balance"] == str(answer.json["balance"]), answer
            got = answer.json
            assert got.pop("at").endswith("Z") and got.pop("txn_id"), got
            assert got == {"asset": "CREDIT", **fields}, got

        def after(*money):
            return dict(zip(MONEY, money))

        same(path("ann", "/topup"), {"txn_id": first, "amount": 100}, owner="ann", amount=100, **after(0, 100, 0, 100, 1))
        same(path("ann", "/spend"), {"amount": 10, "metadata": {"n": "é"}}, owner="ann", amount=10, **after(100, 90, 0, 90, 2))
        same("/v1/transfers", {"from": "ann", "to": "bob", "amount": 20}, **{"from": "ann"}, to="bob", amount=20,
             **after(90, 70, 0, 70, 3))
        same("/v1/holds", {"txn_id": hold, "owner": "ann", "amount": 30}, owner="ann", amount=30, expires_at=None,
             **after(70, 70, 30, 40, 4))
        same(f"/v1/holds/{hold}/capture", {"amount": 5, "to": "bob"}, hold=hold, owner="ann", to="bob", amount=5,
             **after(70, 65, 25, 40, 5))
        same(f"/v1/holds/{hold}/capture", {}, hold=hold, owner="ann", to="@system", amount=25, **after(65, 40, 0, 40, 6))
        same("/v1/holds", {"txn_id": other, "owner": "ann", "amount": 1}, owner="ann", amount=1, expires_at=None,
             **after(40, 40, 1, 39, 7))
        same(f"/v1/holds/{other}/void", {}, hold=other, owner="ann", amount=1, **after(40, 40, 0, 40, 8))
        same(f"/v1/transactions/{first}/refund", {"amount": 7}, refund_of=first, owner="ann", amount=7,
             **after(40, 33, 0, 33, 9))
        same(path("ann", "/floor"), {"floor": -9}, owner="ann", floor=-9, **after(33, 33, 0, 42, 10))
        same(path("ann", "/freeze"), {}, owner="ann", frozen=True, **after(33, 33, 0, 42, 11))
        same(path("ann", "/unfreeze"), {}, owner="ann", frozen=False, **after(33, 33, 0, 42, 12))
        assert balance(pawl, "bob") == 25
        adds_up(db)
        stop_clean(pawl.server)


@test
def a_repeat_gets_the_first_answer_and_the_present_state():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        opened(pawl, "ann", amount=100)
        body = {"txn_id": key(), "amount": 10}
        first = post(pawl, path("ann", "/spend"), body)
        post(pawl, path("ann", "/topup"), {"txn_id": key(), "amount": 5})
        again = post(pawl, path("ann", "/spend"), body)
        assert again.body == first.body and again.json["balance"] == 90, again
        assert (first.headers["pawl-balance"], again.headers["pawl-balance"]) == ("90", "95")
        # A refusal is kept as well, though by now it could be done.
        short = {"txn_id": key(), "amount": 1000}
        refused = twice(pawl, path("ann", "/spend"), short)
        got = problem(refused, 409, "insufficient-funds", '"ann" has 95 available, 1000 are needed')
        assert got["instance"] == f"/v1/transactions/{short['txn_id']}", got
        post(pawl, path("ann", "/topup"), {"txn_id": key(), "amount": 2000})
        later = post(pawl, path("ann", "/spend"), short, 409)
        assert later.body == refused.body and later.headers["pawl-balance"] == "2095", later
        kept = get(pawl, got["instance"])
        assert (kept["status"], kept["refusal"], kept["entries"]) == ("refused", "insufficient-funds", []), kept
        assert metric(pawl, "pawl_ledger_operations_total", 'outcome="replayed"') == 3
        assert metric(pawl, "pawl_ledger_operations_total", 'outcome="refused"') == 1
        assert metric(pawl, "pawl_ledger_operations_total", 'outcome="posted"') == 4
        stop_clean(pawl.server)


@test
def the_key_may_stand_in_the_header():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        opened(pawl, "ann", amount=100)
        where, used = path("ann", "/spend"), key()
        for value in (used, f'"{used}"', used.upper()):
            answer = post(pawl, where, {"amount": 1}, headers={"Idempotency-Key": value})
            assert answer.json["txn_id"] == used and answer.json["balance"] == 99, answer.json
        post(pawl, where, {"amount": 1, "txn_id": used}, headers={"Idempotency-Key": used})
        post(pawl, path("ann", "/freeze"), None, headers={"Idempotency-Key": key()})
        before = rows(db)
        problem(pawl.http("POST", where, {"amount": 1, "txn_id": used}, headers={"Idempotency-Key": key()}), 400, part="txn_id")
        problem(pawl.http("POST", where, {"amount": 1}, headers={"Idempotency-Key": '"seven'}), 400, part="Idempotency-Key")
        problem(pawl.http("POST", where, {"amount": 1}), 400, part="txn_id")
        problem(pawl.http("POST", where, {"amount": 1, "txn_id": "7"}), 400, part="txn_id")
        problem(pawl.http("POST", where, {"amount": 1, "txn_id": None}), 400, part="txn_id")
        assert rows(db) == before
        stop_clean(pawl.server)


@test
def the_same_key_with_another_body_names_the_field():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        opened(pawl, "ann", "bob", "eve", amount=100)
        opened(pawl, "ann", "bob", asset="EUR", amount=100)
        hold, spent = key(), key()
        transfer = {"txn_id": key(), "from": "ann", "to": "bob", "amount": 5, "metadata": {"a": 1}}
        place = {"txn_id": hold, "owner": "ann", "amount": 9, "expires_in_s": 600}
        legs = [{"owner": "ann", "amount": -2}, {"owner": "bob", "amount": 2}]
        multi = {"txn_id": key(), "legs": legs}
        post(pawl, "/v1/transfers", transfer)
        post(pawl, "/v1/holds", place)
        post(pawl, "/v1/transactions", multi)
        post(pawl, path("ann", "/spend"), {"txn_id": spent, "amount": 3})
        floor = {"txn_id": key(), "floor": -1}
        post(pawl, path("eve", "/floor"), floor)
        capture = {"txn_id": key(), "amount": 2}
        post(pawl, f"/v1/holds/{hold}/capture", capture)
        before = rows(db)
        for where, body, more, field in [
                ("/v1/transfers", transfer, {"from": "eve"}, '"from"'), ("/v1/transfers", transfer, {"to": "eve"}, '"to"'),
                ("/v1/transfers", transfer, {"amount": 6}, '"amount"'), ("/v1/transfers", transfer, {"asset": "EUR"}, '"asset"'),
                ("/v1/transfers", transfer, {"metadata": {"a": 2}}, '"metadata"'), ("/v1/transfers", transfer, {"to": "who"}, '"to"'),
                ("/v1/transfers", transfer, {"metadata": None}, '"metadata"'),
                ("/v1/holds", place, {"owner": "bob"}, '"owner"'), ("/v1/holds", place, {"expires_in_s": 601}, '"expires_in_s"'),
                ("/v1/transactions", multi, {"legs": [*legs[1:], {"owner": "eve", "amount": -2}]}, '"'),
                ("/v1/transactions", multi, {"legs": [{"owner": "ann", "amount": -1}, {"owner": "bob", "amount": 1}]}, "legs"),
                (path("eve", "/floor"), floor, {"floor": -2}, '"floor"'), (path("bob", "/floor"), floor, {}, '"owner"'),
                (f"/v1/holds/{hold}/capture", capture, {"amount": 1}, '"amount"'),
                (f"/v1/holds/{hold}/capture", capture, {"to": "bob"}, '"to"'),
                (f"/v1/holds/{hold}/void", {"txn_id": capture["txn_id"]}, {}, "capture"),
                (path("ann", "/topup"), {"txn_id": spent, "amount": 3}, {}, "spend")]:
            problem(pawl.http("POST", where, {**body, **more}), 422, "key-reused", field)
        assert rows(db) == before
        reordered = {**transfer, "metadata": {"a": 1.0}, "asset": "CREDIT"}
        assert pawl.http("POST", "/v1/transfers", {**reordered, "metadata": {"a": 1}}).status == 201
        stop_clean(pawl.server)


# --- refusals ---

@test
def refusals_have_their_status_and_their_type():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        opened(pawl, "ann", "bob", "rich", amount=100)
        opened(pawl, "ann", asset="EUR", amount=1)
        post(pawl, path("rich", "/topup"), {"txn_id": key(), "amount": MAX - 100})
        hold, voided, spent = key(), key(), key()
        post(pawl, "/v1/holds", {"txn_id": hold, "owner": "ann", "amount": 60})
        post(pawl, "/v1/holds", {"txn_id": voided, "owner": "ann", "amount": 10})
        post(pawl, f"/v1/holds/{voided}/void", {"txn_id": key()})
        post(pawl, path("bob", "/spend"), {"txn_id": spent, "amount": 10})
        pay = {"from": "ann", "to": "bob", "amount": 1}
        for where, body, status, kind in [
                (path("ann", "/spend"), {"amount": 41}, 409, "insufficient-funds"),
                ("/v1/transfers", {**pay, "amount": 41}, 409, "insufficient-funds"),
                ("/v1/holds", {"owner": "ann", "amount": 41}, 409, "insufficient-funds"),
                (path("rich", "/topup"), {"amount": 1}, 409, "balance-limit"),
                (f"/v1/holds/{voided}/capture", {}, 409, "hold-ended"), (f"/v1/holds/{voided}/void", {}, 409, "hold-ended"),
                (f"/v1/holds/{hold}/capture", {"amount": 61}, 409, "over-captured"),
                (f"/v1/transactions/{spent}/refund", {"amount": 11}, 409, "over-refunded")]:
            answer = twice(pawl, where, {"txn_id": key(), **body})
            problem(answer, status, kind)
        before = rows(db)
        for where, body, status, kind in [
                (f"/v1/transactions/{hold}/refund", {}, 409, "not-refundable"),
                (path("who", "/spend"), {"amount": 1}, 404, "wallet-unknown"),
                (path("ann", "/spend"), {"amount": 1, "asset": "USD"}, 404, "wallet-unknown"),
                ("/v1/transfers", {**pay, "to": "who"}, 404, "wallet-unknown"),
                ("/v1/transfers", {**pay, "asset": "EUR"}, 404, "wallet-unknown"),
                ("/v1/holds", {"owner": "who", "amount": 1}, 404, "wallet-unknown"),
                (f"/v1/holds/{key()}/capture", {}, 404, "hold-unknown"), (f"/v1/holds/{spent}/void", {}, 404, "hold-unknown"),
                (f"/v1/holds/{hold}/capture", {"to": "who"}, 404, "wallet-unknown"),
                (f"/v1/transactions/{key()}/refund", {}, 404, "transaction-unknown"),
                (path("who", "/freeze"), {}, 404, "wallet-unknown"), (path("who", "/floor"), {"floor": 0}, 404, "wallet-unknown"),
                (f"/v1/holds/{hold}/capture", {"to": "ann"}, 400, "same-wallet"),
                ("/v1/transactions", {"legs": [{"owner": "ann", "amount": -1}, {"owner": "who", "amount": 1}]}, 404,
                 "wallet-unknown")]:
            problem(pawl.http("POST", where, {"txn_id": key(), **body}), status, kind)
        for where, kind in [(path("who"), "wallet-unknown"), (path("who", "/entries"), "wallet-unknown"),
                            (path("who", "/statement"), "wallet-unknown"), (path("ann", "?asset=USD"), "wallet-unknown"),
                            (path("ann", "?at=2001-01-01T00:00:00Z"), "wallet-unknown"), (f"/v1/holds/{key()}", "hold-unknown"),
                            (f"/v1/holds/{spent}", "hold-unknown"), (f"/v1/transactions/{key()}", "transaction-unknown")]:
            problem(pawl.http("GET", where), 404, kind)
        assert rows(db) == before
        post(pawl, path("ann", "/freeze"), {"txn_id": key()})
        for where, body in [("/v1/transfers", pay), ("/v1/transfers", {**pay, "from": "bob", "to": "ann"}),
                            (path("ann", "/topup"), {"amount": 1}), (f"/v1/holds/{hold}/capture", {})]:
            problem(twice(pawl, where, {"txn_id": key(), **body}), 409, "wallet-frozen", "ann")
        post(pawl, f"/v1/holds/{hold}/void", {"txn_id": key()})
        adds_up(db)
        stop_clean(pawl.server)


@test
def bad_input_is_named_and_writes_nothing():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        opened(pawl, "ann", "bob", amount=100)
        hold = key()
        post(pawl, "/v1/holds", {"txn_id": hold, "owner": "ann", "amount": 10})
        before = rows(db)
        pay = {"from": "ann", "to": "bob"}

        def bad(where, text, part):
            body = text.replace("KEY", key()) if isinstance(text, str) else json.dumps({"txn_id": key(), **text})
            problem(pawl.http("POST", where, body.encode(), headers={"Content-Type": "application/json"}), 400, part=part)

        for amount in ("0", "-1", str(2**53), "1.5", "1.0", "1e400", "1e2", '"5"', "null", "true", "[]", "{}", "9" * 400, "-0.1"):
            for where, rest in [("/v1/transfers", '"from":"ann","to":"bob",'), (path("ann", "/topup"), ""),
                                (path("ann", "/spend"), ""), ("/v1/holds", '"owner":"ann",')]:
                bad(where, f'{{"txn_id":"KEY",{rest}"amount":{amount}}}', "amount")
            bad("/v1/transfers/batch", f'{{"items":[{{"txn_id":"KEY","from":"ann","to":"bob","amount":{amount}}}]}}',
                "items[0].amount")
            if amount != "null":
                bad(f"/v1/holds/{hold}/capture", f'{{"txn_id":"KEY","amount":{amount}}}', "amount")
        for owner in ("", "x" * 256, "ü" * 128, "a\nb", "\x7f", "\u0085", "@system", "@me"):
            bad("/v1/wallets", {"owner": owner}, "owner")
            bad("/v1/transfers", {"from": owner, "to": "bob", "amount": 1}, "from")
            bad("/v1/transfers", {"from": "ann", "to": owner, "amount": 1}, "to")
            bad("/v1/holds", {"owner": owner, "amount": 1}, "owner")
            bad(f"/v1/holds/{hold}/capture", {"to": owner}, "to")
            if owner:
                bad(path(owner, "/spend"), {"amount": 1}, "owner")
                bad(path(owner, "/freeze"), {}, "owner")
            if owner not in ("", "@system"):
                problem(pawl.http("GET", path(owner)), 400, part="owner")
                bad("/v1/transactions", {"legs": [{"owner": owner, "amount": -1}, {"owner": "bob", "amount": 1}]}, "legs[0].owner")
        for asset in ("", "eur", "1A", "A" * 33, "É", "A B", "A;", 7):
            bad("/v1/wallets", {"owner": "new", "asset": asset}, "asset")
            bad("/v1/transfers", {**pay, "amount": 1, "asset": asset}, "asset")
            bad(path("ann", "/topup"), {"amount": 1, "asset": asset}, "asset")
            if asset:
                problem(pawl.http("GET", path("ann", "?asset=" + urllib.parse.quote(str(asset)))), 400, part="asset")
        bad("/v1/transfers", {"from": "ann", "to": "ann", "amount": 1}, "from")
        bad("/v1/transfers", {**pay, "amount": 1, "sum": 1}, "sum")
        bad("/v1/transfers", {"from": "ann", "amount": 1}, "to")
        bad("/v1/transfers", '{"txn_id":"KEY","from":"ann","to":"bob","amount":1,"amount":2}', "amount")
        bad("/v1/transfers", '{"txn_id":"KEY",', "line")
        bad("/v1/transfers", "[]", "")
        for metadata in ("[]", "7", '"x"', "true", '{"a":' + "1" * 70000 + "}"):
            bad(path("ann", "/topup"), f'{{"txn_id":"KEY","amount":1,"metadata":{metadata}}}', "metadata")
        bad(path("ann", "/topup"), '{"txn_id":"KEY","amount":1,"metadata":{"n":1e500000}}', "metadata")
        bad(path("ann", "/topup"), '{"txn_id":"KEY","amount":1,"metadata":{"n":"\\u0000"}}', "")
        for floor in (1, -2**53, 0.5, "0"):
            bad("/v1/wallets", {"owner": "new", "floor": floor}, "floor")
            bad(path("ann", "/floor"), {"floor": floor}, "floor")
        for seconds in (0, -1, 315360001, 1.5, "9"):
            bad("/v1/holds", {"owner": "ann", "amount": 1, "expires_in_s": seconds}, "expires_in_s")
        ann, bob = {"owner": "ann", "amount": -1}, {"owner": "bob", "amount": 1}
        for legs in ([], [ann], [ann, ann], [ann, {**bob, "amount": 2}], [ann, {**bob, "amount": 0}], [ann, {**bob, "asset": "EUR"}],
                     [ann, {**bob, "asset": "x"}], [ann] + [bob] * 100, "x", [ann, {"owner": "bob"}],
                     [{"owner": "@system", "amount": -1}, {"owner": "@system", "amount": 1, "asset": "CREDIT"}]):
            bad("/v1/transactions", {"legs": legs}, "legs")
        for where in ("/v1/holds/7/capture", "/v1/holds/7/void", "/v1/transactions/7/refund"):
            bad(where, {}, "txn_id")
        for where, part in [("?at=yesterday", "at"), ("?at=2026-02-30T00:00:00Z", "at"), ("?at=2026-01-01", "at"), ("?at=", "at"),
                            ("?at=infinity", "at"), ("?at=0000-01-01T00:00:00Z", "at"), ("/entries?since=now", "since"),
                            ("/entries?until=1", "until"), ("/entries?limit=0", "limit"), ("/entries?limit=1001", "limit"),
                            ("/entries?cursor=x", "cursor"), ("/entries?kind=theft", "kind"), ("/statement?format=pdf", "format"),
                            ("/entries?sort=up", "sort")]:
            problem(pawl.http("GET", path("ann", where)), 400, part=part)
        problem(pawl.http("GET", "/v1/holds/7"), 400, part="txn_id")
        problem(pawl.http("GET", "/v1/transactions/7"), 400, part="txn_id")
        bad("/v1/transfers/batch", '{"items":[]}', "items")
        bad("/v1/transfers/batch", '{"items":[{"txn_id":"KEY","from":"ann","to":"ann","amount":1}]}', "items[0].from")
        bad("/v1/transfers/batch", '{"items":[{"from":"ann","to":"bob","amount":1}]}', "items[0].txn_id")
        for number in ("1e500000", "1e-20000", "[1e40000, 1e40000]", "-1E+99999999999999999999"):
            good = '{"txn_id":"%s","from":"ann","to":"bob","amount":1,"metadata":{"n":1e3}},' % key()
            bad("/v1/transfers/batch", f'{{"items":[{good * 3}{{"txn_id":"KEY","from":"ann","to":"bob","amount":1,"metadata":'
                f'{{"n":{number}}}}}]}}', "items[3].metadata")
            bad("/v1/wallets", f'{{"owner":"new","metadata":{{"n":{number}}}}}', "metadata")
        assert rows(db) == before and balance(pawl, "ann") == 100
        stop_clean(pawl.server)


# --- many ---

@test
def a_batch_has_a_verdict_for_each_in_order():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        opened(pawl, "ann", "bob", amount=100)

        def item(amount=1, **more):
            return {"txn_id": key(), "from": "ann", "to": "bob", "amount": amount, **more}

        used = item(2)
        post(pawl, "/v1/transfers", used)
        twin = item(3)
        items = [item(10), item(1000), item(to="who"), used, {**used, "amount": 3}, twin, twin, {**twin, "to": "eve"}, item(85)]
        first = post(pawl, "/v1/transfers/batch", {"items": items}, 200)
        got = first.json
        assert (got["posted"], got["refused"]) == (5, 4), got
        assert [v["txn_id"] for v in got["items"]] == [i["txn_id"] for i in items]
        assert [v["posted"] for v in got["items"]] == [True, False, False, True, False, True, True, False, True], got
        assert [v["type"] for v in got["items"] if not v["posted"]] == [
            "/problems/insufficient-funds", "/problems/wallet-unknown", "/problems/key-reused", "/problems/key-reused"], got
        assert "amount" in got["items"][4]["detail"] and '"to"' in got["items"][7]["detail"], got
        assert [v["balance"] for v in got["items"] if v["posted"]] == [88, 98, 85, 85, 0], got
        assert post(pawl, "/v1/transfers/batch", {"items": items}, 200).body == first.body
        assert balance(pawl, "ann") == 0 and balance(pawl, "bob") == 200
        adds_up(db)
        stop_clean(pawl.server)


@test
def the_asset_of_a_hold_or_a_transaction_can_be_checked():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        opened(pawl, "ann", amount=100)
        hold, spent = key(), key()
        post(pawl, "/v1/holds", {"txn_id": hold, "owner": "ann", "amount": 10})
        post(pawl, path("ann", "/spend"), {"txn_id": spent, "amount": 5})
        for route in (f"/v1/holds/{hold}/capture", f"/v1/holds/{hold}/void", f"/v1/transactions/{spent}/refund"):
            problem(pawl.http("POST", route, {"txn_id": key(), "asset": "EUR"}), 400, "asset-mismatch", "EUR")
        post(pawl, f"/v1/holds/{hold}/capture", {"txn_id": key(), "asset": "CREDIT", "amount": 4})
        post(pawl, f"/v1/holds/{hold}/void", {"txn_id": key(), "asset": "CREDIT"})
        post(pawl, f"/v1/transactions/{spent}/refund", {"txn_id": key(), "asset": "CREDIT"})
        assert balance(pawl, "ann") == 96


@test
def an_atomic_batch_is_posted_whole_or_not_at_all():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        opened(pawl, "ann", "bob", amount=100)
        items = [{"txn_id": key(), "from": "ann", "to": "bob", "amount": amount} for amount in (60, 60, 10)]
        before = rows(db)
        answer = post(pawl, "/v1/transfers/batch", {"atomic": True, "items": items}, 409)
        got = problem(answer, 409, "not-posted", "items[1]")
        assert [v["posted"] for v in got["items"]] == [False] * 3 and got["refused"] == 3, got
        assert got["items"][1]["type"] == "/problems/insufficient-funds", got
        assert got["instance"] == answer.headers["x-request-id"], got
        assert "items[1]" in got["items"][0]["detail"] and "items[1]" in got["items"][2]["detail"], got
        assert rows(db) == before and balance(pawl, "ann") == 100
        post(pawl, path("ann", "/topup"), {"txn_id": key(), "amount": 100})
        first = post(pawl, "/v1/transfers/batch", {"atomic": True, "items": items}, 200)
        assert first.json["posted"] == 3 and balance(pawl, "ann") == 70, first
        assert "idempotency-replayed" not in first.headers
        again = post(pawl, "/v1/transfers/batch", {"atomic": True, "items": items}, 200)
        assert again.body == first.body and again.headers["idempotency-replayed"] == "true", again
        assert balance(pawl, "ann") == 70
        stop_clean(pawl.server)


@test
def a_batch_of_eight_thousand_fits():
    with Database() as db, Pawl(db, env={"PAWL_REQUEST_TIMEOUT": "60s"}) as pawl:
        pawl.serve()
        opened(pawl, "ann", "bob", amount=MAX // 4)
        items = [{"txn_id": key(), "from": ("ann", "bob")[i % 2], "to": ("bob", "ann")[i % 2], "amount": i + 1,
                  "metadata": {"note": "x" * 40}} for i in range(8000)]
        got = post(pawl, "/v1/transfers/batch", {"items": items}, 200).json
        assert got["posted"] == 8000 and [v["txn_id"] for v in got["items"]] == [i["txn_id"] for i in items]
        same = [items[0]] * 8000
        again = post(pawl, "/v1/transfers/batch", {"items": same}, 200)
        assert again.json["posted"] == 8000 and again.headers["idempotency-replayed"] == "true", again.headers
        problem(pawl.http("POST", "/v1/transfers/batch", {"items": items + items[:1]}), 400, part="items")
        adds_up(db)
        stop_clean(pawl.server)


@test
def a_transaction_has_many_legs_and_is_given_back_whole():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        opened(pawl, "ann", "bob", amount=100)
        opened(pawl, "ann", "bob", asset="EUR", amount=10)
        body = {"txn_id": key(), "metadata": {"deal": 1}, "legs": [
            {"owner": "ann", "amount": -50}, {"owner": "bob", "amount": 45}, {"owner": "@system", "amount": 5},
            {"owner": "ann", "amount": 4, "asset": "EUR"}, {"owner": "bob", "amount": -4, "asset": "EUR"}]}
        first = twice(pawl, "/v1/transactions", body).json
        changed = {(e["owner"], e["asset"]): (e["amount"], e["balance"]) for e in first["entries"] if e["owner"] != "@system"}
        assert changed == {("ann", "CREDIT"): (-50, 50), ("bob", "CREDIT"): (45, 145), ("ann", "EUR"): (4, 14),
                           ("bob", "EUR"): (-4, 6)}, first
        kept = get(pawl, f"/v1/transactions/{body['txn_id']}")
        assert kept["kind"] == "multi" and kept["metadata"] == {"deal": 1} and len(kept["entries"]) == 5, kept
        problem(pawl.http("POST", f"/v1/transactions/{body['txn_id']}/refund", {"txn_id": key(), "amount": 1}), 409, "not-refundable")
        twice(pawl, f"/v1/transactions/{body['txn_id']}/refund", {"txn_id": key()})
        assert [balance(pawl, o, a) for o in ("ann", "bob") for a in ("CREDIT", "EUR")] == [100, 10, 100, 10]
        adds_up(db)
        stop_clean(pawl.server)


@test
def racing_twins_are_one_operation():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        opened(pawl, "ann", "bob", amount=100)
        body = {"txn_id": key(), "from": "ann", "to": "bob", "amount": 7}
        answers = in_threads(24, lambda n: pawl.http("POST", "/v1/transfers", body))()
        assert {a.status for a in answers} == {201} and len({a.body for a in answers}) == 1, answers
        assert sum("idempotency-replayed" not in a.headers for a in answers) == 1
        assert balance(pawl, "ann") == 93
        # Many who want the last of it: as many get it as there is.
        answers = in_threads(24, lambda n: pawl.http("POST", path("ann", "/spend"), {"txn_id": key(), "amount": 10}))()
        assert sorted(a.status for a in answers) == [201] * 9 + [409] * 15, [a.status for a in answers]
        assert balance(pawl, "ann") == 3
        adds_up(db)
        stop_clean(pawl.server)


# --- holds ---

@test
def a_hold_without_capture_expires_on_time():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        opened(pawl, "ann", amount=100)
        hold, kept = key(), key()
        got = post(pawl, "/v1/holds", {"txn_id": hold, "owner": "ann", "amount": 60, "expires_in_s": 1, "metadata": {"r": 1}}).json
        assert got["expires_at"] > got["at"] and got["available"] == 40, got
        post(pawl, "/v1/holds", {"txn_id": kept, "owner": "ann", "amount": 10})
        seen = get(pawl, f"/v1/holds/{hold}")
        assert (seen["owner"], seen["amount"], seen["captured"], seen["metadata"]) == ("ann", 60, 0, {"r": 1}), seen
        wait_until(lambda: get(pawl, path("ann"))["held"] == 10, what="the hold expires")
        seen = get(pawl, f"/v1/holds/{hold}")
        assert (seen["status"], seen["remaining"]) == ("EXPIRED", 0), seen
        late = db.value(f"select extract(epoch from e.at - h.expires_at) from wallet.txn t join wallet.hold h on h.id = t.id "
                        f"join wallet.txn e on e.ref = t.id where t.txn_id = '{hold}'")
        assert 0 <= float(late) < 30, late
        problem(twice(pawl, f"/v1/holds/{hold}/capture", {"txn_id": key()}), 409, "hold-ended", "expired")
        seen = get(pawl, f"/v1/holds/{kept}")
        assert (seen["status"], seen["remaining"]) == ("OPEN", 10) and "expires_at" not in seen, seen
        stop_clean(pawl.server)


# --- looking back ---

@test
def entries_come_newest_first_in_pages():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        opened(pawl, "ann", "b,\"ob\"", amount=100)
        stood = []
        for n in range(5):
            got = post(pawl, "/v1/transfers", {"txn_id": key(), "from": "ann", "to": "b,\"ob\"", "amount": n + 1, "metadata": {"n": n}})
            stood.append((got.json["at"], got.json["balance"], got.json["version"]))
        page, seen = "", []
        while True:
            answer = get(pawl, path("ann", f"/entries?limit=2{page}"))
            seen += answer["items"]
            if answer["next_cursor"] is None:
                break
            page = f"&cursor={answer['next_cursor']}"
        assert [(e["kind"], e["amount"], e["balance"], e["version"]) for e in seen] == [
            ("transfer", -5, 85, 6), ("transfer", -4, 90, 5), ("transfer", -3, 94, 4), ("transfer", -2, 97, 3), ("transfer", -1, 99, 2),
            ("topup", 100, 100, 1)], seen
        assert seen[0]["other"] == "b,\"ob\"" and seen[0]["metadata"] == {"n": 4} and seen[5]["other"] == "@system", seen
        assert [e["amount"] for e in get(pawl, path("ann", "/entries?kind=topup"))["items"]] == [100]
        assert get(pawl, path("ann", "/entries?kind=refund"))["items"] == []
        window = get(pawl, path("ann", f"/entries?since={stood[1][0]}&until={stood[3][0]}"))["items"]
        assert [e["amount"] for e in window] == [-4, -3, -2], window
        for at, amount, version in stood:
            past = get(pawl, path("ann", f"?at={at}"))
            assert (past["balance"], past["version"]) == (amount, version), past
            zoned = get(pawl, path("ann", f"?at={at[:-1]}+00:00"))
            assert zoned["balance"] == amount, zoned
        answer = pawl.http("GET", path("ann", "/statement?format=csv"))
        assert answer.headers["content-type"].startswith("text/csv"), answer.headers
        table = list(csv.DictReader(io.StringIO(answer.body.decode(), newline="")))
        assert sum(int(row["amount"]) for row in table) == 85 and len(table) == 6, table
        assert {row["other"] for row in table} == {"b,\"ob\"", "@system"}, table
        assert [json.loads(row["metadata"] or "null") for row in table if row["kind"] == "transfer"] == [
            {"n": n} for n in range(5)], table
        assert [row["txn_id"] for row in table] == [e["txn_id"] for e in reversed(seen)], table
        short = pawl.http("GET", path("ann", "/statement?limit=4"))
        rest = get(pawl, path("ann", f"/statement?limit=4&cursor={short.headers['pawl-next-cursor']}"))
        assert [e["txn_id"] for e in short.json["items"] + rest["items"]] == [row["txn_id"] for row in table]
        stop_clean(pawl.server)


def paged(pawl, where, limit, **query):
    """All pages; from the second on the cursor alone says what they are pages of."""
    items, answers = [], 0
    while True:
        answer = pawl.http("GET", where + "?" + urllib.parse.urlencode({"limit": limit, **query}))
        assert answer.status == 200, answer
        page, answers = answer.json, answers + 1
        assert answer.headers.get("pawl-next-cursor") == page["next_cursor"], answer.headers
        assert len(page["items"]) == limit or page["next_cursor"] is None, page
        items += page["items"]
        if page["next_cursor"] is None:
            return items, answers
        query = {"cursor": page["next_cursor"]}


@test
def a_cursor_carries_its_filter():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        opened(pawl, "ann", "bob", amount=1000)
        opened(pawl, "ann", asset="EUR", amount=1000)
        times = []
        for n in range(1, 13):
            for asset in ("CREDIT", "EUR"):
                got = post(pawl, path("ann", "/spend" if n % 3 else "/topup"), {"txn_id": key(), "amount": n, "asset": asset}).json
            times.append(got["at"])
        filters = [{}, {"asset": "EUR"}, {"asset": "EUR", "since": times[2]}, {"until": times[7]},
                   {"asset": "EUR", "since": times[1], "until": times[9][:-1] + "+00:00"}]
        for part, more in (("/entries", [{"kind": "spend"}, {"asset": "EUR", "kind": "topup", "since": times[0], "until": times[10]}]),
                           ("/statement", [])):
            for given in filters + more:
                whole, answers = paged(pawl, path("ann", part), 1000, **given)
                assert answers == 1 and len(whole) >= 3, (given, whole)
                for limit in (1, 2, 5):
                    assert paged(pawl, path("ann", part), limit, **given)[0] == whole, (part, given, limit)
        first = get(pawl, path("ann", f"/entries?limit=2&asset=EUR&kind=spend&since={times[0]}"))
        cursor = first["next_cursor"]
        rest = get(pawl, path("ann", f"/entries?cursor={cursor}"))
        assert get(pawl, path("ann", f"/entries?cursor={cursor}&asset=EUR&kind=spend&since={times[0]}")) == rest
        assert rest["asset"] == "EUR" and {e["kind"] for e in rest["items"]} == {"spend"}, rest
        for more, part in (("asset=CREDIT", "asset"), ("kind=topup", "kind"), (f"since={times[1]}", "since"), (f"until={times[1]}", "until")):
            problem(pawl.http("GET", path("ann", f"/entries?cursor={cursor}&{more}")), 400, part=f"{part} must be that of the cursor")
        for where in (path("bob", f"/entries?cursor={cursor}"), path("ann", f"/statement?cursor={cursor}")):
            problem(pawl.http("GET", where), 400, part="cursor")
        for bad in ("", "1", "x", cursor[:-1], cursor + "A", cursor[1:], cursor.swapcase(), cursor[:20] + "_" + cursor[21:], "A" * 3000,
                    "%00", "é"):
            answer = pawl.http("GET", path("ann", "/entries?cursor=" + urllib.parse.quote(bad)))
            problem(answer, 400, part="cursor")
        stop_clean(pawl.server)


@test
def a_statement_of_the_system_adds_up_over_its_stripes():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        opened(pawl, *(f"w{n}" for n in range(8)), amount=100)
        in_threads(8, lambda n: [post(pawl, path(f"w{n}", "/spend"), {"txn_id": key(), "amount": 1 + n}) for _ in range(12)])()
        total = get(pawl, path("@system"))
        items, _ = paged(pawl, path("@system", "/statement"), 7)
        assert len(items) == 8 + 8 * 12 and items[-1]["balance"] == total["balance"], (items[-1], total)
        assert [e["version"] for e in items] == list(range(1, len(items) + 1)) and items[-1]["version"] == total["version"]
        assert all(e["balance"] == before["balance"] + e["amount"] for before, e in zip([{"balance": 0}] + items, items)), items
        later = get(pawl, path("@system", f"/statement?since={items[40]['at']}"))["items"]
        assert later[0]["balance"] - later[0]["amount"] == sum(e["amount"] for e in items if e["at"] < items[40]["at"]), later[0]
        table = csv.DictReader(io.StringIO(pawl.http("GET", path("@system", "/statement?format=csv")).body.decode(), newline=""))
        assert [int(row["balance"]) for row in table] == [e["balance"] for e in items]
        got = pawl.run("wallet", "statement", "@system", "--json").json
        assert got["entries"] == items and got["closing"] == total["balance"], "both doors tell the same"
        stop_clean(pawl.server)


@test
def a_page_ends_early_where_it_grows_large():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        opened(pawl, "ann", "bob", amount=1000)
        note = {"note": "x" * 60000}
        for _ in range(3):
            post(pawl, "/v1/transfers/batch", {"items": [{"txn_id": key(), "from": "ann", "to": "bob", "amount": 1, "metadata": note}
                                                         for _ in range(100)]}, 200)
        for part, limit in (("/entries", 1000), ("/statement", 10000)):
            seen, query, pages = [], f"limit={limit}", 0
            while query:
                answer = pawl.http("GET", path("bob", f"{part}?{query}"))
                assert answer.status == 200 and len(answer.body) < 9 << 20, (answer.status, len(answer.body))
                seen += [e["version"] for e in answer.json["items"]]
                query, pages = answer.json["next_cursor"] and f"cursor={answer.json['next_cursor']}", pages + 1
            assert sorted(seen, reverse=part == "/entries") == seen and len(seen) == 301 and pages > 2, (len(seen), pages)
        stop_clean(pawl.server)


@test
def the_past_has_all_that_the_present_has():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        opened(pawl, "ann", amount=100)
        held = post(pawl, "/v1/holds", {"txn_id": key(), "owner": "ann", "amount": 30}).json
        lower = post(pawl, path("ann", "/floor"), {"txn_id": key(), "floor": -50}).json
        post(pawl, path("ann", "/spend"), {"txn_id": key(), "amount": 120})
        assert get(pawl, path("ann", f"?at={held['at']}")) == {
            "owner": "ann", "asset": "CREDIT", "at": held["at"], "balance": 100, "held": 30, "available": 70, "floor": 0, "version": 2}
        assert get(pawl, path("ann", f"?at={lower['at']}")) == {
            "owner": "ann", "asset": "CREDIT", "at": lower["at"], "balance": 100, "held": 30, "available": 120, "floor": -50, "version": 3}
        system = get(pawl, path("@system", f"?at={lower['at']}"))
        assert (system["balance"], system["available"]) == (-100, -100) and "floor" not in system, system
        got = pawl.run("wallet", "balance", "ann", "--at", held["at"], "--json").json
        assert got == get(pawl, path("ann", f"?at={held['at']}")), got
        assert pawl.run("wallet", "balance", "ann", "--json").json == get(pawl, path("ann")), "both doors tell the same"
        stop_clean(pawl.server)


# --- what is promised ---

@test
def openapi_shows_answers_as_they_are():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        opened(pawl, "ann", "bob", amount=1000)
        paths = get(pawl, "/openapi.json")["paths"]

        def shown(method, where):
            return next(iter(paths[where][method]["responses"].values()))["content"]["application/json"]["example"]

        def same(example, got):
            assert set(example) == set(got), (example, got)

        hold, taken, paid = key(), key(), key()
        for where, place, body in [
                ("/v1/wallets", {}, {"owner": "eve"}), ("/v1/wallets/{owner}/topup", {}, {"amount": 1}),
                ("/v1/wallets/{owner}/spend", {}, {"txn_id": paid, "amount": 1}),
                ("/v1/transfers", {}, {"from": "ann", "to": "bob", "amount": 1}),
                ("/v1/holds", {}, {"txn_id": hold, "owner": "ann", "amount": 9, "expires_in_s": 600}),
                ("/v1/holds/{txn_id}/capture", {"txn_id": hold}, {"txn_id": taken, "amount": 1, "to": "bob"}),
                ("/v1/holds/{txn_id}/void", {"txn_id": hold}, {}), ("/v1/transactions/{txn_id}/refund", {"txn_id": taken}, {}),
                ("/v1/transactions", {}, {"legs": [{"owner": "ann", "amount": -1}, {"owner": "bob", "amount": 1}]}),
                ("/v1/wallets/{owner}/floor", {}, {"floor": -1}), ("/v1/wallets/{owner}/freeze", {}, {}),
                ("/v1/wallets/{owner}/unfreeze", {}, {})]:
            got = post(pawl, where.format(**{"owner": "ann", **place}), {"txn_id": key(), **body})
            same(shown("post", where), got.json)
        same(shown("get", "/v1/wallets/{owner}"), get(pawl, path("ann")))
        same(shown("get", "/v1/owners/{owner}/wallets")["items"][0], get(pawl, "/v1/owners/ann/wallets")["items"][0])
        for part in ("entries", "statement"):
            same(shown("get", "/v1/wallets/{owner}/" + part), get(pawl, path("ann", "/" + part)))
            same(shown("get", "/v1/wallets/{owner}/" + part)["items"][0], get(pawl, path("ann", "/" + part))["items"][0])
        same(shown("get", "/v1/holds/{txn_id}"), get(pawl, f"/v1/holds/{hold}"))
        same(shown("get", "/v1/transactions/{txn_id}"), get(pawl, f"/v1/transactions/{paid}"))
        items = [{"txn_id": key(), "from": "ann", "to": "bob", "amount": amount} for amount in (1, 5000)]
        got, example = post(pawl, "/v1/transfers/batch", {"items": items}, 200).json, shown("post", "/v1/transfers/batch")
        same(example, got)
        for n in range(2):
            same(example["items"][n], got["items"][n])
        stop_clean(pawl.server)


# --- doors ---

@test
def scopes_and_a_full_pool():
    with Database() as db, Pawl(db, env={"PAWL_POOL_MIN": "1", "PAWL_POOL_MAX": "2", "PAWL_REQUEST_TIMEOUT": "8s"}) as pawl:
        reads = pawl.run("key", "create", "reader", "--scopes", "read", "--json").json["token"]
        works = pawl.run("key", "create", "worker", "--scopes", "wallet", "--json").json["token"]
        other = pawl.run("key", "create", "sender", "--scopes", "command", "--json").json["token"]
        pawl.serve()
        opened(pawl, "ann", "bob", amount=100)
        spend = path("ann", "/spend")
        for token, status in [(reads, 403), (other, 403), (works, 201), (None, 401)]:
            assert pawl.http("POST", spend, {"txn_id": key(), "amount": 1}, token=token).status == status
        for token, status in [(reads, 200), (works, 200), (other, 403), (None, 401)]:
            assert pawl.http("GET", path("ann"), token=token).status == status
        with Session(db.url) as session:
            session.do("begin; select * from wallet.wallet where owner <> '@system' for update")
            answers = in_threads(8, lambda n: pawl.http("POST", spend, {"txn_id": key(), "amount": 1}))()
            assert {a.status for a in answers} == {503} and all(a.headers["retry-after"] for a in answers), answers
            session.do("rollback")
        wait_until(lambda: pawl.http("POST", spend, {"txn_id": key(), "amount": 1}).status == 201, what="it goes on")
        adds_up(db)
        stop_clean(pawl.server)


@test
def a_locked_wallet_delays_no_other_wallet():
    """Transactions are shared, so operations that wait for one wallet must not hold up others, nor take the pool's connections.
    With default settings, whatever pool they give."""
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        opened(pawl, "ann", "bob", amount=100)
        tokens = [pawl.run("key", "create", f"k{n}", "--scopes", "read", "--json").json["token"] for n in range(8)]

        def waiting():
            return int(db.value("select count(*) from pg_stat_activity where wait_event_type = 'Lock' and "
                                f"datname = '{db.name}'"))

        def spend(owner, txn_id):
            return pawl.http("POST", path(owner, "/spend"), {"txn_id": txn_id, "amount": 1})

        keys = [[key() for _ in range(3)] for _ in tokens]
        with Session(db.url) as session:
            session.do("begin")
            session.do("select from wallet.wallet w where w.owner = 'ann' for update")
            # More than there are threads for requests that wait.
            many = in_threads(70, lambda _: pawl.http("POST", "/v1/transactions", {
                "txn_id": key(), "legs": [{"owner": "ann", "amount": -1}, {"owner": "@system", "amount": 1}]}))
            held = []
            for token, three in zip(tokens, keys):
                held.append(in_threads(3, lambda n, three=three: spend("ann", three[n])))
                wait_until(lambda: waiting() >= 1, what="one waits for the lock")
                assert waiting() <= 3, "the connections are for others, too"
                assert spend("bob", key()).status == 201
                assert pawl.http("POST", "/v1/commands", {"domain": "shop", "type": "charge"}).status == 201
                assert pawl.http("GET", path("bob"), token=token).status == 200
                assert pawl.http("GET", "/health/ready").status == 200
            wait_until(lambda: waiting() >= 1, what="the lock is still waited for")
            session.do("rollback")
        assert {answer.status for join in held for answer in join()} <= {201, 503}  # some may have met their deadline
        assert {spend("ann", one).status for three in keys for one in three} == {201}
        assert {answer.status for answer in many()} <= {201, 503}
        assert balance(pawl, "bob") == 92
        adds_up(db)
        stop_clean(pawl.server)


@test
def a_lock_held_past_the_deadline_is_reported_as_not_committed():
    with Database() as db, Pawl(db, env={"PAWL_REQUEST_TIMEOUT": "8s"}) as pawl:
        pawl.serve()
        opened(pawl, "ann", "bob", amount=100)
        with Session(db.url) as session:
            session.do("begin")
            session.do("select from wallet.wallet w where w.owner = 'ann' for update")
            keys = [key() for _ in range(12)]

            def kinds():
                answers = in_threads(len(keys), lambda n: pawl.http(
                    "POST", "/v1/transfers", {"txn_id": keys[n], "from": "bob", "to": "ann", "amount": 1}))()
                found = {answer.json["type"] for answer in answers}
                # The last two only where the machine is so busy that the time is over before the lock's.
                assert found <= {"/problems/try-again", "/problems/timed-out", "/problems/try-same-key"}, answers
                return found

            wait_until(lambda: "/problems/try-again" in kinds(), what="an answer that nothing was done")
            session.do("rollback")
        assert (balance(pawl, "ann"), balance(pawl, "bob")) == (100, 100)
        for one in keys:
            post(pawl, "/v1/transfers", {"txn_id": one, "from": "bob", "to": "ann", "amount": 1})
        assert (balance(pawl, "ann"), balance(pawl, "bob")) == (112, 88)
        adds_up(db)
        stop_clean(pawl.server)


@test
def a_post_in_doubt_is_never_reported_as_not_committed():
    """While no standby confirms, a commit can neither be seen nor be taken back. "timed-out" would say that nothing was done."""
    with Cluster(conf="fsync = on\nsynchronous_commit = on\nmax_wal_senders = 2\nwal_level = replica\n") as cluster, \
            Pawl(cluster.url(), env={"PAWL_REQUEST_TIMEOUT": "6s"}) as pawl:
        pawl.serve()
        opened(pawl, "ann", "bob", amount=100)

        def standbys(names):
            cluster.rows(f"alter system set synchronous_standby_names = '{names}'; select pg_reload_conf()")
            wait_until(lambda: cluster.rows("show synchronous_standby_names") == [names], what="the setting is in force")

        def transfer(txn_id):
            return pawl.http("POST", "/v1/transfers", {"txn_id": txn_id, "from": "ann", "to": "bob", "amount": 1})

        standbys("nobody")
        keys = [key() for _ in range(6)]
        answers = in_threads(len(keys), lambda n: transfer(keys[n]))()
        assert {answer.status for answer in answers} == {503}, answers
        # A restart ends the commits' waits, so that their rows can be seen.
        cluster.restart("immediate")
        done = set(cluster.rows("select txn_id from wallet.txn"))
        assert done & set(keys), "no transfer was committed"
        for one, answer in zip(keys, answers):
            assert one not in done or answer.json["type"] == "/problems/try-same-key", answer.body
        standbys("")
        for one in keys:
            wait_until(lambda one=one: transfer(one).status == 201, what="the transfer's answer")
        assert (balance(pawl, "ann"), balance(pawl, "bob")) == (94, 106)
        stop_clean(pawl.server)


main()
