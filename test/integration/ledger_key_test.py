#!/usr/bin/env python3
"""ledger_key - one key, one effect, one answer: from another server, after a restart, in a race, after a lost answer."""
import random
from contextlib import contextmanager

from checks import problem
from ledger_servers import ledger_agrees, new_key, ports_of, rows_of, servers_start, servers_stop, wallets_open
from ledger_swarm import Request, Swarm, resolve, transfer
from pawl_test import Database, Pawl, Proxy, main, test, wait_until
from servers import Cluster, Session

TWINS = 32
CUTS = 60


def post(server, path, body, headers=None):
    return server.http("POST", path, body, Pawl.TOKEN, headers)


def is_replayed(answer):
    return answer.headers.get("idempotency-replayed") == "true"


@contextmanager
def shop(servers=2, env=None):
    """Two wallets with money, a hold and a payment, and servers."""
    with Database() as db, Pawl(db, env=env) as pawl:
        rows = rows_of(db.url)
        wallets_open(rows, ["ann", "bob", "cid"], 1000)
        rows("select * from wallet.open(array['ann', 'bob'], array['EUR', 'EUR'])")
        yield pawl, rows, servers_start(pawl, servers)


def effects(rows):
    """Equal before and after: nothing was done."""
    return rows("select (select count(*) from wallet.txn), (select count(*) from wallet.entry), "
                "(select sum(version) from wallet.state), (select count(*) from wallet.wallet)")


def placed(server, path, body):
    """The key of something that later requests refer to."""
    answer = post(server, path, body)
    assert answer.status == 201, answer
    return body["txn_id"]


def operations(server):
    """{name: (path, body, status, other values of its fields)}: one of each kind, and refusals that are kept."""
    def key():
        return {"txn_id": new_key()}

    hold = placed(server, "/v1/holds", {**key(), "owner": "ann", "amount": 100})
    hold2 = placed(server, "/v1/holds", {**key(), "owner": "ann", "amount": 100})
    paid = placed(server, "/v1/transfers", {**key(), "from": "ann", "to": "bob", "amount": 50})
    why = {"metadata": {"why": ["a", 1.5, None]}}
    other_why = {"metadata": {"why": ["a", 1.5]}}
    legs = [{"owner": "ann", "amount": -5}, {"owner": "bob", "amount": 3}, {"owner": "@system", "amount": 2}]
    return {
        "topup": ("/v1/wallets/ann/topup", {**key(), "amount": 7, **why}, 201, {"amount": 8, "asset": "EUR", **other_why}),
        "spend": ("/v1/wallets/ann/spend", {**key(), "amount": 7, **why}, 201, {"amount": 8, "asset": "EUR", **other_why}),
        "transfer": ("/v1/transfers", {**key(), "from": "ann", "to": "bob", "amount": 7, **why}, 201,
                     {"from": "cid", "to": "cid", "amount": 8, "asset": "EUR", **other_why}),
        "multi": ("/v1/transactions", {**key(), "legs": legs, **why}, 201,
                  {"legs": [{"owner": "ann", "amount": -5}, {"owner": "bob", "amount": 5}], **other_why}),
        "hold": ("/v1/holds", {**key(), "owner": "ann", "amount": 7, "expires_in_s": 3600, **why}, 201,
                 {"owner": "bob", "amount": 8, "expires_in_s": 3601, "asset": "EUR", **other_why}),
        "capture": (f"/v1/holds/{hold}/capture", {**key(), "amount": 30, "to": "bob", **why}, 201,
                    {"amount": 31, "to": "cid", **other_why}),
        "capture the rest": (f"/v1/holds/{hold}/capture", key(), 201, {"amount": 70, "to": "bob", **why}),
        "void": (f"/v1/holds/{hold2}/void", {**key(), **why}, 201, other_why),
        "refund": (f"/v1/transactions/{paid}/refund", {**key(), "amount": 20, **why}, 201, {"amount": 21, **other_why}),
        "refund the rest": (f"/v1/transactions/{paid}/refund", key(), 201, {"amount": 30, **why}),
        "freeze": ("/v1/wallets/cid/freeze", {**key(), **why}, 201, other_why),
        "unfreeze": ("/v1/wallets/cid/unfreeze", {**key(), **why}, 201, other_why),
        "floor": ("/v1/wallets/cid/floor", {**key(), "floor": -5, **why}, 201, {"floor": -6, **other_why}),
        "too much": ("/v1/wallets/bob/spend", {**key(), "amount": 99999}, 409, {"amount": 99998, **why}),
        "too much held": ("/v1/holds", {**key(), "owner": "bob", "amount": 99999}, 409, {"amount": 99998, **why}),
        "captured after the end": (f"/v1/holds/{hold}/capture", {**key(), "amount": 1}, 409, {"amount": 2, "to": "bob"}),
        "refunded too often": (f"/v1/transactions/{paid}/refund", {**key(), "amount": 1}, 409, {"amount": 2, **why}),
    }


@test
def the_same_again_is_the_same_from_everywhere_and_for_ever():
    with shop() as (pawl, rows, servers):
        every = operations(servers[0])
        first = {name: post(servers[0], path, body) for name, (path, body, _, _) in every.items()}
        for name, (_, _, status, _) in every.items():
            assert first[name].status == status and not is_replayed(first[name]), (name, first[name])
        # Something else happens in between, so that an answer made anew would differ.
        rows(f"select * from wallet.post(array['topup', 'topup'], array['{new_key()}', '{new_key()}']::uuid[], "
             "array['ann', 'bob'], array[999999, 999999])")
        before = effects(rows)
        servers_stop(servers[:1])
        restarted = pawl.serve()
        for server in (servers[1], restarted):
            for name, (path, body, status, _) in every.items():
                again = post(server, path, body)
                assert (again.status, again.body) == (status, first[name].body), (name, again.body, first[name].body)
                assert is_replayed(again), (name, again.headers)
                assert again.headers["content-type"] == first[name].headers["content-type"], (name, again.headers)
        assert effects(rows) == before
        servers_stop([servers[1], restarted])


@test
def another_body_under_the_key_is_refused_by_the_name_of_its_field():
    with shop() as (_, rows, servers):
        every = operations(servers[0])
        for name, (path, body, status, _) in every.items():
            assert post(servers[0], path, body).status == status, name
        before = effects(rows)
        for name, (path, body, _, changes) in every.items():
            for field, value in changes.items():
                answer = post(servers[1], path, {**body, field: value})
                assert f'"{field}"' in problem(answer, 422, "key-reused")["detail"], (name, field, answer.body)
                assert not is_replayed(answer)
            less = {field: value for field, value in body.items() if field != "metadata"}
            if less != body:
                assert '"metadata"' in problem(post(servers[1], path, less), 422, "key-reused")["detail"], name
        # Under the key of something else altogether.
        for name, (path, body, _, _) in every.items():
            key = every["topup" if name != "topup" else "spend"][1]["txn_id"]
            problem(post(servers[1], path, {**body, "txn_id": key}), 422, "key-reused", part=key)
        path, body, _, _ = every["topup"]
        assert '"owner"' in problem(post(servers[1], "/v1/wallets/bob/topup", body), 422)["detail"]
        path, body, _, _ = every["void"]
        other = placed(servers[0], "/v1/holds", {"txn_id": new_key(), "owner": "ann", "amount": 1})
        assert '"hold"' in problem(post(servers[1], f"/v1/holds/{other}/void", body), 422)["detail"]
        assert effects(rows) != before, "only that hold"
        assert rows("select * from wallet.verify()") == []


@test
def the_key_is_required_and_may_stand_in_the_header():
    with shop(1) as (_, rows, (server,)):
        path, body = "/v1/wallets/ann/topup", {"amount": 5}
        before = effects(rows)
        problem(post(server, path, body), 400, part="txn_id")
        key = new_key()
        for value in ("seven", "", '"', new_key()):  # "seven" is a key, but not this one
            problem(post(server, path, {**body, "txn_id": key}, {"Idempotency-Key": value}), 400, part="Idempotency-Key")
        assert effects(rows) == before
        first = post(server, path, body, {"Idempotency-Key": key})
        assert first.status == 201 and first.json["txn_id"] == key, first
        for value in (f'"{key}"', key.upper()):
            again = post(server, path, body, {"Idempotency-Key": value})
            assert (again.status, again.body) == (201, first.body) and is_replayed(again), (value, again)
        for headers in ({}, {"Idempotency-Key": key}):
            again = post(server, path, {**body, "txn_id": key}, headers)
            assert (again.status, again.body) == (201, first.body) and is_replayed(again), (headers, again)
        assert rows("select balance from wallet.get(array['ann'])") == ["1005"]


@test
def twins_that_race_are_one():
    with shop() as (_, rows, servers):
        for turn in range(20):
            amount, status = (10, 201) if turn % 2 == 0 else (10 ** 9, 409)
            body = {"txn_id": new_key(), "from": "ann", "to": "bob", "amount": amount}
            txns, entries = map(int, effects(rows)[0].split("|")[:2])
            answers = []

            def twin(place):
                answers.append((yield Request(place % 2, "/v1/transfers", body)))

            Swarm(ports_of(servers)).run([twin(place) for place in range(TWINS)])
            assert {answer.status for answer in answers} == {status}, answers
            assert len({answer.body for answer in answers}) == 1, {answer.body for answer in answers}
            assert sum(not answer.replayed for answer in answers) == 1, "one of them did it"
            after = effects(rows)[0].split("|")[:2]
            assert after == [str(txns + 1), str(entries + (2 if status == 201 else 0))], (txns, entries, after)
        assert rows("select owner, balance from wallet.get(array['ann', 'bob']) order by ord") == ["ann|900", "bob|1100"]
        assert rows("select * from wallet.verify()") == []


@test
def two_bodies_that_race_under_one_key_are_one():
    with shop() as (_, rows, servers):
        for turn in range(20):
            key, answers = new_key(), []

            def rival(place):
                body = {"txn_id": key, "amount": 1 + place % 4}
                owner = ("ann", "bob", "cid")[place % 3]
                answers.append((place, (yield Request(place % 2, f"/v1/wallets/{owner}/topup", body))))

            Swarm(ports_of(servers)).run([rival(place) for place in range(TWINS)])
            won = {answer.body for _, answer in answers if answer.status == 201}
            places = {place % 12 for place, answer in answers if answer.status == 201}
            assert len(won) == 1 and len(places) == 1, (won, places)
            assert {answer.status for _, answer in answers} == {201, 422}, [answer.status for _, answer in answers]
            assert rows(f"select count(*) from wallet.txn where txn_id = '{key}'") == ["1"]
        assert rows("select * from wallet.verify()") == []


@test
def a_refusal_is_remembered_whatever_comes():
    with shop(1) as (_, rows, (server,)):
        body = {"txn_id": new_key(), "amount": 1500}
        first = post(server, "/v1/wallets/ann/spend", body)
        problem(first, 409, "insufficient-funds")
        assert post(server, "/v1/wallets/ann/topup", {"txn_id": new_key(), "amount": 5000}).status == 201
        again = post(server, "/v1/wallets/ann/spend", body)
        assert (again.status, again.body) == (409, first.body) and is_replayed(again), again
        assert post(server, "/v1/wallets/ann/spend", {**body, "txn_id": new_key()}).status == 201
        # An unknown wallet is no decision: once it is opened, the same key works.
        body = {"txn_id": new_key(), "amount": 1}
        problem(post(server, "/v1/wallets/dan/topup", body), 404, "wallet-unknown")
        assert post(server, "/v1/wallets", {"owner": "dan"}).status == 201
        answer = post(server, "/v1/wallets/dan/topup", body)
        assert answer.status == 201 and not is_replayed(answer), answer
        assert rows("select * from wallet.verify()") == []


@test
def a_wait_that_was_too_long_is_not_remembered():
    with shop(1, {"PAWL_REQUEST_TIMEOUT": "8s"}) as (pawl, rows, (server,)):
        body = {"txn_id": new_key(), "amount": 5}
        with Session(pawl.env["PAWL_DATABASE_URL"]) as session:
            session.do("begin; select id from wallet.wallet where owner = 'ann' for update")
            answer = post(server, "/v1/wallets/ann/topup", body)
            problem(answer, 503)
            assert "retry-after" in answer.headers, answer.headers
            others = post(server, "/v1/wallets/bob/topup", {"txn_id": new_key(), "amount": 5})
            assert others.status == 201, "nobody else waits"
            session.do("rollback")
        again = post(server, "/v1/wallets/ann/topup", body)
        assert again.status == 201 and again.json["balance"] == 1005 and not is_replayed(again), again
        assert rows("select * from wallet.verify()") == []


@test
def an_outage_is_not_remembered():
    with Cluster(conf="synchronous_commit = on\n") as cluster, Pawl(cluster.url(), env={"PAWL_BREAKER_OPEN": "500ms"}) as pawl:
        assert pawl.run("migrate").code == 0
        rows = rows_of(cluster.url())
        wallets_open(rows, ["ann"], 1000)
        server = pawl.serve()
        body = {"txn_id": new_key(), "amount": 5}
        cluster._ctl("-m", "fast", "stop")
        answer = post(server, "/v1/wallets/ann/topup", body)
        problem(answer, 503)
        assert "retry-after" in answer.headers, answer.headers
        cluster._ctl("start")
        again = wait_until(lambda: (found := post(server, "/v1/wallets/ann/topup", body)).status == 201 and found,
                           what="it is back")
        assert again.json["balance"] == 1005 and not is_replayed(again), again
        servers_stop([server])


@test
def an_answer_that_was_lost_on_the_way_is_found_again():
    chance = random.Random(3)
    with Database() as db, Proxy(db) as proxy, Pawl(proxy.url, env={"PAWL_BREAKER_FAILURES": "1000"}) as pawl:
        rows = rows_of(db.url)
        keys = wallets_open(rows, ["ann", "bob"], 1000)
        server = pawl.serve()
        history = []
        for turn in range(CUTS):
            moment = ("before", "sent", "answered")[turn % 3]
            proxy.do(f"cut-on {moment} 1 wallet.post")
            move = transfer(new_key(), *(("ann", "bob") if turn % 2 else ("bob", "ann")), 1 if turn % 5 else 10 ** 6)
            Swarm([server.port]).run([resolve(move, 1, chance, history)])
            first = history[-1].attempts[0]
            assert first.status in (201, 409), f"{moment}: the client got {first}"
        cuts = proxy.do("counts")["cuts"]
        assert cuts >= CUTS, f"only {cuts} connections were cut"
        # Cut again and again: the response says to try the same key, and the operation was done once.
        proxy.do("cut-on answered 1000 wallet.post")
        move = transfer(new_key(), "ann", "bob", 3)
        answer = post(server, move.path, move.body)
        problem(answer, 503)
        proxy.do("cut-on answered 0 wallet.post")
        Swarm([server.port]).run([resolve(move, 1, chance, history)])
        assert history[-1].attempts[-1].status == 201 and history[-1].attempts[-1].replayed, history[-1]
        ledger_agrees(rows, history, keys)
        servers_stop([server])


@test
def the_key_of_a_batch_is_that_of_its_items():
    with shop() as (_, rows, servers):
        items = [{"from": "ann", "to": "bob", "amount": amount} for amount in (10, 20, 10 ** 6)]

        def ask(server, key, **change):
            return post(server, "/v1/transfers/batch", {"items": items, **change}, headers={"Idempotency-Key": key})

        key = new_key()
        first = ask(servers[0], key)
        assert first.status == 200 and (first.json["posted"], first.json["refused"]) == (2, 1), first
        assert not is_replayed(first) and len({item["txn_id"] for item in first.json["items"]}) == 3, first
        before = effects(rows)
        again = ask(servers[1], f'"{key}"')
        assert (again.status, again.body) == (200, first.body) and is_replayed(again), again
        other = ask(servers[1], key, items=[{**items[0], "amount": 11}] + items[1:])
        assert other.json["items"][0]["status"] == 422 and "amount" in other.json["items"][0]["detail"], other
        assert not is_replayed(other)
        assert ask(servers[0], '"seven').status == 400
        assert post(servers[0], "/v1/transfers/batch", {"items": items}).status == 400
        assert effects(rows) == before


@test
def a_key_twice_in_a_batch_is_posted_once():
    with shop() as (_, rows, servers):
        one = {"txn_id": new_key(), "from": "ann", "to": "bob", "amount": 10}
        much = {"txn_id": new_key(), "from": "ann", "to": "bob", "amount": 10 ** 6}
        items = [one, much, one, {**one, "amount": 11}, much, {**one, "txn_id": new_key()}]
        first = post(servers[0], "/v1/transfers/batch", {"items": items})
        assert first.status == 200, first
        verdicts = first.json["items"]
        assert [item["posted"] for item in verdicts] == [True, False, True, False, False, True], verdicts
        assert [item.get("status") for item in verdicts] == [None, 409, None, 422, 409, None], verdicts
        assert "amount" in verdicts[3]["detail"], verdicts[3]
        assert [verdicts[0][name] for name in ("balance", "version")] == [verdicts[2][name] for name in ("balance", "version")]
        assert rows("select owner, balance from wallet.get(array['ann', 'bob']) order by ord") == ["ann|980", "bob|1020"]
        before = effects(rows)
        again = post(servers[1], "/v1/transfers/batch", {"items": items})
        assert (again.status, again.body) == (200, first.body) and effects(rows) == before, again
        # The same one alone: the bytes of its own answer.
        alone = post(servers[1], "/v1/transfers", one)
        assert alone.status == 201 and is_replayed(alone) and alone.json["balance"] == verdicts[0]["balance"], alone
        # All or nothing: nothing, and its keys are free.
        fresh = {**one, "txn_id": new_key()}
        answer = post(servers[0], "/v1/transfers/batch", {"atomic": True, "items": [fresh, {**much, "txn_id": new_key()}]})
        assert answer.status == 409 and effects(rows) == before, answer
        answer = post(servers[0], "/v1/transfers/batch", {"atomic": True, "items": [fresh, fresh]})
        assert answer.status == 200 and [item["posted"] for item in answer.json["items"]] == [True, True], answer
        assert rows("select owner, balance from wallet.get(array['ann', 'bob']) order by ord") == ["ann|970", "bob|1030"]
        assert rows("select * from wallet.verify()") == []


@test
def a_bad_neighbour_in_the_same_transaction_spoils_nothing():
    """Requests of the same moment share a transaction; each keeps its own verdict."""
    with shop() as (_, rows, servers):
        def neighbour(place, answers):
            for turn in range(30):
                body = {"txn_id": new_key(), "amount": 1}
                path, wanted = "/v1/wallets/ann/topup", 201
                if place % 8 == 0:
                    body["metadata"], wanted = {"n": [1e300, "\u2028", {"deep": [[[[]]]]}]}, 201
                elif place % 8 == 1:
                    path, wanted = "/v1/wallets/nobody/topup", 404
                elif place % 8 == 2:
                    path, body["amount"], wanted = "/v1/wallets/ann/spend", 10 ** 9, 409
                elif place % 8 == 3:
                    path, body["asset"], wanted = "/v1/wallets/cid/topup", "EUR", 404
                answer = yield Request(place % 2, path, body)
                answers.append((wanted, answer.status if answer else None))

        answers = []
        Swarm(ports_of(servers)).run([neighbour(place, answers) for place in range(64)])
        assert all(wanted == status for wanted, status in answers), [pair for pair in answers if pair[0] != pair[1]][:10]
        assert rows("select * from wallet.verify()") == []


main()
