#!/usr/bin/env python3
"""stall - what another transaction holds delays only the requests that need it: no route that serves others runs out of threads or connections."""
from bus_commands import new_id
from checks import metric, stop_clean
from pawl_test import TIMEOUT_S, Database, Pawl, main, test, wait_until
from process_worker import claim as claim_activations
from servers import Session, in_threads

MANY = 80  # more than PAWL_HTTP_THREADS, and many times the pool
# The number of threads and connections is that of the default settings. Requests that wait get more time, so that none of them is over
# before the others have been asked, however slow the machine is.
ENV = {"PAWL_REQUEST_TIMEOUT": "5m"}


def post(pawl, path, body, status=200, **rest):
    answer = pawl.http("POST", path, body, timeout=TIMEOUT_S, **rest)
    assert answer.status == status, f"{path}: {answer.status}, not {status}: {answer.body!r}"
    return answer.json


def wallets_open(pawl, *owners):
    for owner in owners:
        post(pawl, "/v1/wallets", {"owner": owner}, 201)
        post(pawl, f"/v1/wallets/{owner}/topup", {"txn_id": new_id(), "amount": 1000}, 201)


def claim(pawl, domain):
    item, = post(pawl, f"/v1/domains/{domain}/claim", {"limit": 1, "lease_s": 600})["items"]
    return {"command_id": item["command_id"], "lease": item["lease"]}


def waiting(db):
    return int(db.value("select count(*) from pg_stat_activity where wait_event_type = 'Lock' and "
                        f"datname = '{db.name}' and application_name = 'pawl'"))


class Waiting:
    """Requests that wait, each on a connection of its own."""

    def __init__(self, pawl, db, request):
        self.answers = []
        before = metric(pawl, "pawl_http_connections")
        self.join = in_threads(MANY, lambda n: self.answers.append(request(n)))
        # Before the first of them is refused a lock there may be a moment without a waiter; then one waits most of the time.
        wait_until(lambda: metric(pawl, "pawl_http_connections") >= before + MANY, what="all are connected")
        wait_until(lambda: waiting(db) >= 1, what="one waits for the lock")

    def statuses(self):
        for error in self.join():
            if error:
                raise error
        return {answer.status for answer in self.answers}


def leases_are_served(pawl, leases, process):
    """What keeps leases alive, and what ends them; some under an Idempotency-Key."""
    kept, settled, keyed = leases
    for key in (None, {"Idempotency-Key": new_id()}):
        verdict, = post(pawl, "/v1/domains/web/extend", {"lease_s": 600, "items": [kept]}, headers=key)["items"]
        assert verdict["extended"], verdict
    for lease, key in ((settled, None), (keyed, {"Idempotency-Key": new_id()})):
        verdict, = post(pawl, "/v1/domains/web/settle", {"items": [{**lease, "outcome": "complete"}]}, headers=key)["items"]
        assert verdict["settled"], verdict
    lease = {"process_id": process["process_id"], "lease": process["lease"]}
    verdict, = post(pawl, "/v1/process-domains/shop/extend", {"items": [lease]})["items"]
    assert verdict["verdict"] == "extended", verdict
    verdict, = post(pawl, "/v1/process-domains/shop/report", {"items": [{**lease, "record": {"step": "reserve"}}]})["items"]
    assert verdict["verdict"] == "written", verdict


def others_are_served(pawl, leases, process):
    leases_are_served(pawl, leases, process)
    assert pawl.http("GET", "/v1/wallets/eve", timeout=TIMEOUT_S).json["balance"] == 1000
    assert pawl.http("GET", "/v1/commands?domain=web", timeout=TIMEOUT_S).status == 200
    post(pawl, f"/v1/processes/{process['process_id']}/signals/paid", {}, 201)
    post(pawl, "/v1/wallets", {"owner": "new"}, 201)


def leases_take(pawl):
    leases = []
    for _ in range(3):
        post(pawl, "/v1/commands", {"domain": "web", "type": "charge"}, 201)
        leases.append(claim(pawl, "web"))
    post(pawl, "/v1/processes", {"type": "py-order", "domain": "shop", "state": {}}, 201)
    process, = claim_activations(pawl, lease_s=600)
    return leases, process


@test
def batches_of_transfers_on_a_locked_wallet_delay_no_other_route():
    with Database() as db, Pawl(db, env=ENV) as pawl:
        pawl.serve()
        wallets_open(pawl, "ann", "bob", "eve")
        leases, process = leases_take(pawl)

        def batch(n):
            items = [{"txn_id": new_id(), "from": "bob", "to": "ann", "amount": 1}, {"txn_id": new_id(), "from": "ann", "to": "bob", "amount": 1}]
            return pawl.http("POST", "/v1/transfers/batch", {"items": items, "atomic": n % 2 == 0}, timeout=TIMEOUT_S)

        with Session(db.url) as session:
            session.do("begin")
            session.do("select from wallet.wallet w where w.owner = 'ann' for update")
            held = Waiting(pawl, db, batch)
            others_are_served(pawl, leases, process)
            items = [{"txn_id": new_id(), "from": "eve", "to": "bob", "amount": 1}]
            verdict, = post(pawl, "/v1/transfers/batch", {"items": items})["items"]
            assert verdict["posted"], verdict
            assert waiting(db) <= 4, "the connections are for others, too"
            assert held.answers == [], held.answers[0]
            session.do("rollback")
        assert held.statuses() == {200}, held.answers
        assert all(verdict["posted"] for answer in held.answers for verdict in answer.json["items"]), held.answers
        assert db.value("select count(*) from wallet.txn where kind = 'transfer'") == str(2 * MANY + 1)
        stop_clean(pawl.server)


@test
def batches_of_commands_on_a_locked_batch_delay_no_other_route():
    with Database() as db, Pawl(db, env=ENV) as pawl:
        pawl.serve()
        wallets_open(pawl, "eve")
        leases, process = leases_take(pawl)
        batch_id = new_id()
        post(pawl, "/v1/commands/batch", {"batch_id": batch_id, "open": True, "items": []}, 201)

        def batch(_):
            items = [{"domain": "bulk", "type": "charge", "command_id": new_id()}]
            return pawl.http("POST", "/v1/commands/batch", {"batch_id": batch_id, "open": True, "items": items}, timeout=TIMEOUT_S)

        with Session(db.url) as session:
            session.do("begin")
            session.do(f"select from pawl.batch b where b.batch_id = '{batch_id}' for update")
            held = Waiting(pawl, db, batch)
            others_are_served(pawl, leases, process)
            post(pawl, "/v1/commands/batch", {"items": [{"domain": "bulk", "type": "other"}]}, 201)
            assert waiting(db) <= 4, "the connections are for others, too"
            assert held.answers == [], held.answers[0]
            session.do("rollback")
        assert held.statuses() == {201}, held.answers
        assert pawl.http("GET", f"/v1/batches/{batch_id}").json["total"] == MANY
        stop_clean(pawl.server)


@test
def decisions_about_a_locked_batch_delay_no_other_route():
    with Database() as db, Pawl(db, env=ENV) as pawl:
        pawl.serve()
        wallets_open(pawl, "eve")
        leases, process = leases_take(pawl)
        batch_id = new_id()
        post(pawl, "/v1/commands/batch", {"batch_id": batch_id, "open": True, "items": []}, 201)
        with Session(db.url) as session:
            session.do("begin")
            session.do(f"select from pawl.batch b where b.batch_id = '{batch_id}' for update")
            held = Waiting(pawl, db, lambda _: pawl.http("POST", f"/v1/batches/{batch_id}/seal", timeout=TIMEOUT_S))
            others_are_served(pawl, leases, process)
            assert held.answers == [], held.answers[0]
            session.do("rollback")
        assert held.statuses() == {200}, held.answers
        stop_clean(pawl.server)


@test
def reads_of_one_key_that_wait_delay_no_other_route_and_no_other_key():
    """They wait for a table that only lists of dead letters read."""
    with Database() as db, Pawl(db, env=ENV) as pawl:
        pawl.serve()
        wallets_open(pawl, "eve")
        leases, process = leases_take(pawl)
        curious = pawl.run("key", "create", "curious", "--scopes", "read").stdout.strip()
        with Session(db.url) as session:
            session.do("begin; lock table pawl.failed_operations in access exclusive mode")
            held = Waiting(pawl, db, lambda _: pawl.http("GET", "/v1/dead-letters", token=curious, timeout=TIMEOUT_S))
            wait_until(lambda: waiting(db) >= 3, what="as many wait as may")
            others_are_served(pawl, leases, process)
            post(pawl, "/v1/commands", {"domain": "web", "type": "charge"}, 201)
            claim(pawl, "web")
            assert held.answers == [], held.answers[0]
            session.do("rollback")
        assert held.statuses() == {200}, held.answers[0]
        stop_clean(pawl.server)


@test
def verifications_of_the_ledger_that_wait_delay_no_read_not_even_of_their_key():
    """They wait for a table that only the seals are in. One runs, and those that came meanwhile have the result of the next one."""
    with Database() as db, Pawl(db, env=ENV) as pawl:
        pawl.serve("--role", "api")
        wallets_open(pawl, "eve")
        curious = pawl.run("key", "create", "curious", "--scopes", "read").stdout.strip()
        with Session(db.url) as session:
            session.do("begin; lock table wallet.seal in access exclusive mode")
            held = Waiting(pawl, db, lambda n: pawl.http("GET", f"/v1/ledger/verify?new={'false' if n % 2 else 'true'}", token=curious, timeout=TIMEOUT_S))
            for _ in range(3):
                assert pawl.http("GET", "/v1/wallets/eve", token=curious, timeout=TIMEOUT_S).json["balance"] == 1000
                assert pawl.http("GET", "/v1/commands?domain=web", token=curious, timeout=TIMEOUT_S).status == 200
                assert waiting(db) == 1, "one verification at a time"
            assert held.answers == [], held.answers[0]
            session.do("rollback")
        assert held.statuses() == {200}, held.answers[0]
        assert {(answer.json["ok"], answer.json["findings"] == []) for answer in held.answers} == {(True, True)}
        stop_clean(pawl.server)


@test
def reads_of_many_keys_leave_connections_to_what_is_no_read():
    with Database() as db, Pawl(db, env=ENV) as pawl:
        pawl.serve()
        leases, process = leases_take(pawl)
        keys = [pawl.run("key", "create", f"curious{n}", "--scopes", "read").stdout.strip() for n in range(8)]
        with Session(db.url) as session:
            session.do("begin; lock table pawl.failed_operations in access exclusive mode")
            held = Waiting(pawl, db, lambda n: pawl.http("GET", "/v1/dead-letters", token=keys[n % len(keys)], timeout=TIMEOUT_S))
            wait_until(lambda: waiting(db) >= 5, what="as many wait as may")
            leases_are_served(pawl, leases, process)
            post(pawl, "/v1/commands", {"domain": "web", "type": "charge"}, 201)
            claim(pawl, "web")
            assert waiting(db) == 5, "half of the pool"
            assert held.answers == [], held.answers[0]
            session.do("rollback")
        assert held.statuses() == {200}, held.answers[0]
        stop_clean(pawl.server)


@test
def many_settles_of_a_lease_that_is_locked_do_not_delay_others():
    """An application's cancel that is not committed. Each of them is tried again for a second, and then says so."""
    with Database() as db, Pawl(db, env=ENV) as pawl:
        pawl.serve()
        wallets_open(pawl, "eve")
        post(pawl, "/v1/commands", {"domain": "slow", "type": "charge"}, 201)
        locked = claim(pawl, "slow")
        leases, process = leases_take(pawl)
        with Session(db.url) as session:
            session.do("begin")
            session.do("select from pawl.lease l where l.token = " + str(locked["lease"]) + " for update")

            def settle(_):
                return pawl.http("POST", "/v1/domains/slow/settle", {"items": [{**locked, "outcome": "complete"}]}, timeout=TIMEOUT_S)

            join = in_threads(MANY, settle)
            others_are_served(pawl, leases, process)
            for answer in join():
                verdict, = answer.json["items"]
                assert not verdict["settled"] and verdict["error"], verdict
            session.do("rollback")
        verdict, = settle(0).json["items"]
        assert verdict["settled"], verdict
        stop_clean(pawl.server)


main()
