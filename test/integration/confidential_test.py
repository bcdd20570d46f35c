#!/usr/bin/env python3
"""confidential - an outage or overload answer names no host, port, user or path of the database; the log does."""
import uuid

from checks import problem, stop_clean
from pawl_test import Pawl, main, test, wait_until
from servers import Cluster, Session

USER = "quietuser"


def requests():
    """(method, path, body) of routes of every kind: inline, suspended, with an executor, in batches."""
    def key():
        return {"txn_id": str(uuid.uuid4())}

    some_id = str(uuid.uuid4())
    return [
        ("GET", "/health/ready", None), ("GET", "/v1/wallets/ann", None), ("GET", "/v1/commands", None),
        ("GET", f"/v1/commands/{some_id}", None), ("GET", "/v1/ledger/verify", None), ("GET", "/v1/dead-letters", None),
        ("POST", "/v1/wallets", {"owner": "bob"}), ("POST", "/v1/wallets/ann/topup", {**key(), "amount": 1}),
        ("POST", "/v1/transfers/batch", {"items": [{**key(), "from": "ann", "to": "bob", "amount": 1}]}),
        ("POST", "/v1/transactions", {**key(), "legs": [{"owner": "ann", "amount": -1}, {"owner": "@system", "amount": 1}]}),
        ("POST", "/v1/commands", {"domain": "shop", "type": "charge"}),
        ("POST", "/v1/commands/batch", {"items": [{"domain": "shop", "type": "charge"}]}),
        ("POST", "/v1/domains/shop/claim", {"limit": 1}),
        ("POST", "/v1/domains/shop/settle", {"items": [{"command_id": some_id, "lease": 1, "outcome": "complete"}]}),
        ("POST", f"/v1/tsq/{some_id}/retry", {}),
    ]


def names_nothing(pawl, secrets, kinds):
    for method, path, body in requests():
        answer = pawl.http(method, path, body)
        got = problem(answer, 503)
        assert got["type"] in kinds, (path, got)
        for secret in secrets:
            assert secret not in answer.body.decode(), (path, secret, got)


@test
def an_outage_and_an_overload_name_nothing_to_clients():
    with Cluster() as cluster:
        cluster.rows(f"create role {USER} superuser login")
        env = {"PAWL_REQUEST_TIMEOUT": "1s", "PAWL_POOL_MAX": "2", "PAWL_BREAKER_FAILURES": "1000"}
        with Pawl(cluster.url(user=USER), env=env) as pawl:
            assert pawl.run("migrate").code == 0
            pawl.serve()
            wait_until(lambda: pawl.http("POST", "/v1/wallets", {"owner": "ann"}).status == 201, what="the wallet is open")
            secrets = ["127.0.0.1", str(cluster.port), USER, "postgres", cluster.folder, "host=", "dbname="]
            with Session(cluster.url()) as session:  # everything waits for a lock, or for a connection
                tables = cluster.rows("select string_agg(oid::regclass::text, ', ') from pg_class where relkind = 'r' and "
                                      "relnamespace in ('pawl'::regnamespace, 'wallet'::regnamespace)")[0]
                session.do(f"begin; lock table {tables} in access exclusive mode")
                waiting = [request for request in requests() if request[1] == "/v1/wallets/ann/topup"]
                for method, path, body in waiting:
                    answer = pawl.http(method, path, body)
                    got = problem(answer, 503)
                    assert not any(secret in answer.body.decode() for secret in secrets), got
                session.do("rollback")
            cluster._ctl("-m", "fast", "stop")
            wait_until(lambda: pawl.http("GET", "/health/ready").status == 503, what="the answer of the last check is not given any more")
            names_nothing(pawl, secrets, {"/problems/database-unavailable", "/problems/timed-out", "/problems/try-again"})
            wait_until(lambda: any("a request failed" in line and str(cluster.port) in line for line in pawl.server.stderr),
                       what="the log has the details")
            stop_clean(pawl.server)
            cluster._ctl("start")


main()
