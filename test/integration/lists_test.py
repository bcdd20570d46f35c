#!/usr/bin/env python3
"""lists - wallets, holds, transactions and batches, by HTTP and by the command line: the same rows, filters, cursors, refusals."""
import uuid

from checks import problem
from pawl_test import Database, Pawl, main, test


def key():
    return str(uuid.uuid4())


def post(pawl, where, body):
    answer = pawl.http("POST", where, body)
    assert answer.status == 201, f"{where}: {answer.status}: {answer.body!r}"
    return answer.json


def pages(pawl, where, limit=1000):
    """The items of all pages, and how many pages there were."""
    items, cursor, count = [], None, 0
    while True:
        answer = pawl.http("GET", f"{where}{'&' if '?' in where else '?'}limit={limit}" + (f"&cursor={cursor}" if cursor else ""))
        assert answer.status == 200, f"{where}: {answer.status}: {answer.body!r}"
        items += answer.json["items"]
        count += 1
        cursor = answer.json["next_cursor"]
        if not cursor:
            return items, count


def same(pawl, where, *command):
    """What both ways answer with, which is the same."""
    items = pages(pawl, where)[0]
    said = pawl.run(*command, "--json")
    assert said.code == 0, said.stderr
    assert said.json == items, f"{where}: {items}\n{command}: {said.json}"
    return items


def refused(pawl, where, *words):
    answer = pawl.http("GET", where)
    assert answer.status == 400, f"{where}: {answer.status}"
    for word in words:
        assert word in answer.json["detail"], answer.json


@test
def money_is_listed_newest_first_by_http_and_by_the_command_line():
    with Database() as db, Pawl(db) as pawl:
        assert pawl.run("migrate").code == 0
        pawl.serve()
        for owner in ("eu/ann", "eu/bob", "us/cid", "eu_x"):
            post(pawl, "/v1/wallets", {"owner": owner})
            post(pawl, f"/v1/wallets/{owner.replace('/', '%2F')}/topup", {"txn_id": key(), "amount": 100})
        post(pawl, "/v1/wallets", {"owner": "eu/ann", "asset": "GOLD"})
        hold, other = key(), key()
        post(pawl, "/v1/holds", {"txn_id": hold, "owner": "eu/ann", "amount": 30})
        post(pawl, "/v1/holds", {"txn_id": other, "owner": "us/cid", "amount": 40, "expires_in_s": 3600})
        post(pawl, f"/v1/holds/{hold}/capture", {"txn_id": key(), "amount": 10, "to": "eu/bob"})
        assert pawl.http("POST", "/v1/transfers", {"txn_id": key(), "from": "eu_x", "to": "eu/bob", "amount": 101}).status == 409

        wallets = same(pawl, "/v1/wallets", "wallet", "list")
        assert [(w["owner"], w["asset"]) for w in wallets if w["owner"] != "@system"] == [
            ("eu/ann", "GOLD"), ("eu_x", "CREDIT"), ("us/cid", "CREDIT"), ("eu/bob", "CREDIT"), ("eu/ann", "CREDIT")], wallets
        for wallet in wallets:
            shown = pawl.http("GET", f"/v1/wallets/{wallet['owner'].replace('/', '%2F')}?asset={wallet['asset']}").json
            shown.pop("metadata")
            assert shown == wallet, (shown, wallet)
        assert len(same(pawl, "/v1/wallets?owner=eu/*", "wallet", "list", "--owner", "eu/*")) == 3
        assert len(same(pawl, "/v1/wallets?owner=eu_x", "wallet", "list", "--owner", "eu_x")) == 1
        assert len(same(pawl, "/v1/wallets?asset=GOLD&owner=eu*", "wallet", "list", "--asset", "GOLD", "--owner", "eu*")) == 1
        assert same(pawl, "/v1/wallets?until=2020-01-01T00:00:00Z", "wallet", "list", "--until", "2020-01-01") == []
        one_by_one, count = pages(pawl, "/v1/wallets", limit=1)
        assert one_by_one == wallets and count == len(wallets) + 1, count

        holds = same(pawl, "/v1/holds", "wallet", "holds")
        assert [(h["txn_id"], h["remaining"], h["status"]) for h in holds] == [(other, 40, "OPEN"), (hold, 20, "OPEN")], holds
        for line in holds:
            shown = pawl.http("GET", f"/v1/holds/{line['txn_id']}").json
            assert {k: v for k, v in line.items() if v is not None} == shown, (line, shown)
        assert [h["txn_id"] for h in same(pawl, "/v1/holds?owner=us/*&status=OPEN", "wallet", "holds", "--owner", "us/*", "--status", "OPEN")] == [other]
        assert same(pawl, "/v1/holds?status=VOIDED", "wallet", "holds", "--status", "VOIDED") == []

        done = same(pawl, "/v1/transactions", "wallet", "transactions")
        assert [t["kind"] for t in done][:4] == ["transfer", "capture", "hold", "hold"], done
        assert done[0]["status"] == "refused" and done[0]["reason"] and done[1]["ref"] == hold, done[:2]
        bobs = same(pawl, "/v1/transactions?owner=eu/bob&kind=transfer", "wallet", "transactions", "--owner", "eu/bob", "--kind", "transfer")
        assert [t["txn_id"] for t in bobs] == [done[0]["txn_id"]], bobs
        assert len(same(pawl, "/v1/transactions?status=refused", "wallet", "transactions", "--status", "refused")) == 1
        assert same(pawl, "/v1/transactions?since=2020-01-01T00:00:00Z", "wallet", "transactions", "--since", "2020-01-01") == done

        refused(pawl, "/v1/wallets?owner=%01", "owner")
        refused(pawl, "/v1/wallets?asset=gold", "asset", "gold")
        refused(pawl, "/v1/holds?status=OPENED", "status", "OPENED", "did you mean \"OPEN\"")
        refused(pawl, "/v1/transactions?kind=topupp", "kind", "topup")
        refused(pawl, "/v1/transactions?since=yesterday", "since", "yesterday")
        refused(pawl, "/v1/wallets?limit=1001", "limit")
        refused(pawl, "/v1/wallets?cursor=-1", "cursor")
        refused(pawl, "/v1/wallets?name=x", "name")
        for command in (("list", "--asset", "gold"), ("holds", "--status", "OPENED"), ("transactions", "--kind", "topupp"), ("list", "--limit", "0")):
            said = pawl.run("wallet", *command)
            assert said.code == 2 and command[-1] in said.stderr, (command, said.code, said.stderr)
        assert pawl.http("GET", "/v1/wallets", token=None).status == 401
        # A table for people.
        said = pawl.run("wallet", "holds").stdout
        assert "remaining" in said and other in said, said


@test
def batches_are_listed_by_http_and_by_the_command_line():
    with Database() as db, Pawl(db) as pawl:
        assert pawl.run("migrate").code == 0
        pawl.serve()
        ids = [key() for _ in range(3)]
        for id in ids:
            assert pawl.run("batch", "create", "--id", id, "--name", "nightly").code == 0
        assert pawl.run("send", "bills", "bill", "--batch", ids[0]).code == 0
        assert pawl.run("batch", "seal", ids[0]).code == 0
        assert pawl.run("batch", "seal", ids[1]).code == 0
        batches = same(pawl, "/v1/batches", "batch", "list")
        assert [(b["batch_id"], b["status"], b["domain"]) for b in batches] == [
            (ids[2], "OPEN", None), (ids[1], "COMPLETED", None), (ids[0], "SEALED", "bills")], batches
        assert len(same(pawl, "/v1/batches?status=SEALED&name=nightly", "batch", "list", "--status", "SEALED", "--name", "nightly")) == 1
        assert same(pawl, "/v1/batches?name=daily", "batch", "list", "--name", "daily") == []
        assert same(pawl, "/v1/batches?until=2020-01-01T00:00:00Z", "batch", "list", "--until", "2020-01-01") == []
        assert pages(pawl, "/v1/batches", limit=1) == (batches, 4)
        refused(pawl, "/v1/batches?status=SEALD", "status", "SEALED")
        said = pawl.run("batch", "list", "--status", "SEALD")
        assert said.code == 2 and "SEALED" in said.stderr, (said.code, said.stderr)
        problem(pawl.http("GET", "/v1/batches?domain=x"), 400, "invalid-request")


main()
