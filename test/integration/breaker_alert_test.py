#!/usr/bin/env python3
"""breaker_alert - an outage of the database: live all the time, ready only while it is up, an alert for both changes."""
from checks import alert, metric, problem, stop_clean
from pawl_test import Database, Pawl, Proxy, main, test, wait_until
from servers import Receiver

# A request counts once, however often it tries to connect: five of them open the breaker, and a silent server makes each wait.
ENV = {"PAWL_BREAKER_OPEN": "1s", "PAWL_CONNECT_TIMEOUT": "1s", "PAWL_REQUEST_TIMEOUT": "2s"}


def not_ready(pawl):
    """The answer that says so; None: it is ready."""
    answer = pawl.http("GET", "/health/ready")
    return answer if answer.status == 503 else None


def outage_and_return(mode):
    with Database() as db, Proxy(db) as proxy, Receiver() as receiver, \
            Pawl(proxy.url, env={**ENV, "PAWL_ALERT_WEBHOOK": receiver.url}) as pawl:
        pawl.serve()
        key = pawl.run("key", "create", "known").stdout.strip()
        wait_until(lambda: pawl.http("GET", "/v1/alerts", token=key).status == 200, what="the key is known")
        proxy.do(f"mode {mode}")
        proxy.do("cut")
        answer = wait_until(lambda: not_ready(pawl), what="not ready")
        detail = problem(answer, 503)["detail"]
        assert "database" in detail or "PostgreSQL" in detail, detail
        assert int(answer.headers["retry-after"]) >= 1
        assert pawl.http("GET", "/health/live").status == 200

        def opened():
            pawl.http("GET", "/health/ready")
            return alert(pawl, "breaker-open")["state"] == "firing"

        wait_until(opened, what="the alert fires")
        assert metric(pawl, "pawl_alert_firing", 'alert="breaker-open"') == 1
        answer = pawl.http("GET", "/v1/dead-letters")
        problem(answer, 503)
        assert pawl.http("GET", "/v1/alerts", token=key).status == 200, "a key that was known is honoured"
        proxy.do("mode pass")
        wait_until(lambda: pawl.http("GET", "/health/ready").status == 200, what="ready again")
        wait_until(lambda: alert(pawl, "breaker-open")["state"] == "resolved", what="resolved")
        wait_until(lambda: pawl.http("GET", "/v1/dead-letters").status == 200, what="requests are answered again")
        wait_until(lambda: receiver.states("breaker-open")[-1:] == ["resolved"], what="the webhook knows")
        states = receiver.states("breaker-open")
        assert states == ["firing", "resolved"] * (len(states) // 2), states
        stop_clean(pawl.server)


@test
def a_database_that_refuses():
    outage_and_return("refuse")


@test
def a_database_that_does_not_answer():
    outage_and_return("blackhole")


main()
