#!/usr/bin/env python3
"""claim_wait - long polls: thousands may wait, they cost next to nothing, and nothing is claimed for a client that has gone."""
import json
import selectors
import socket
import time

from checks import metric, stop_clean
from pawl_test import TIMEOUT_S, Database, Pawl, main, psql, setting, test, wait_until
from servers import Session

POLLERS = 2000


def request(pawl, domain, route="domains", **body):
    payload = json.dumps({"limit": 1, **body}).encode()
    return (f"POST /v1/{route}/{domain}/claim HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {pawl.TOKEN}\r\n"
            f"Content-Length: {len(payload)}\r\n\r\n").encode() + payload


class Pollers:
    """Clients that have sent a claim and wait for its answer, on one thread."""

    def __init__(self, pawl, count, domain, **body):
        self.selector = selectors.DefaultSelector()
        self.answers = []
        self.add(pawl, count, domain, **body)

    def add(self, pawl, count, domain, **body):
        address = ("127.0.0.1", pawl.server.port)
        for _ in range(count):
            one = socket.create_connection(address, timeout=TIMEOUT_S)
            one.sendall(request(pawl, domain, **body))
            self.selector.register(one, selectors.EVENT_READ)

    def read(self):
        """Answers that have come by now, in all."""
        for key, _ in self.selector.select(0.01):
            self.selector.unregister(key.fileobj)
            with key.fileobj as one:
                head, body = one.recv(65536).split(b"\r\n\r\n", 1)
            assert head.startswith(b"HTTP/1.1 200"), head
            self.answers.append(json.loads(body)["items"])
        return self.answers

    def read_whole(self):
        """The same for answers of any size, one after the other."""
        for key, _ in self.selector.select(0.01):
            self.selector.unregister(key.fileobj)
            with key.fileobj as one, one.makefile("rb") as answer:
                assert answer.readline().startswith(b"HTTP/1.1 200")
                head = [line.lower().partition(b":") for line in iter(answer.readline, b"\r\n")]
                size = next(int(value) for name, _, value in head if name == b"content-length")
                self.answers.append(json.loads(answer.read(size))["items"])
        return self.answers

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()
        self.selector.close()


def send(pawl, count=1, domain="shop"):
    for _ in range(count):
        assert pawl.http("POST", "/v1/commands", {"domain": domain, "type": "charge"}).status == 201


def claim(pawl, limit=1, domain="shop", **body):
    answer = pawl.http("POST", f"/v1/domains/{domain}/claim", {"limit": limit, **body})
    assert answer.status == 200, answer.body
    return answer.json["items"]


def claims_counted(db):
    """From now on pg_stat_user_functions counts calls, in new connections."""
    db.rows(f"alter database \"{db.name}\" set track_functions = 'all'")


def claim_calls(db):
    """After the server has ended, so that all is counted."""
    return int(db.value("select coalesce(sum(calls), 0) from pg_stat_user_functions where funcname = 'claim'"))


@test
def two_thousand_pollers_wait_and_only_as_many_as_there_is_work_are_answered():
    with Database() as db, Pawl(db) as pawl:
        claims_counted(db)
        pawl.serve()
        send(pawl, domain="other")
        start = time.monotonic()
        pollers = Pollers(pawl, POLLERS, "shop", wait_s=60)
        wait_until(lambda: metric(pawl, "pawl_http_connections") > POLLERS, what="all are connected")
        assert pollers.read() == []
        send(pawl)
        wait_until(lambda: len(pollers.read()) >= 1, what="one got it")
        send(pawl, 50)
        wait_until(lambda: len(pollers.read()) >= 51, what="fifty more got one each")
        send(pawl, 50, domain="other")
        assert [len(items) for items in pollers.read()] == [1] * 51
        assert len({items[0]["command_id"] for items in pollers.answers}) == 51
        assert pawl.http("GET", "/health/ready").status == 200
        seconds = time.monotonic() - start
        stop_clean(pawl.server)  # which answers all that wait
        wait_until(lambda: len(pollers.read()) == POLLERS, what="all are answered")
        assert sum(len(items) for items in pollers.answers) == 51
        pollers.close()
        # One look for each that came at most, a few for each command, and a poll a second: not one a second for each poller.
        calls = claim_calls(db)
        assert calls < 2 * POLLERS + 51 * 4 + 4 * seconds + 50, (calls, seconds)


@test
def idle_pollers_cost_their_polls_whatever_happens_in_other_domains():
    with Database() as db, Pawl(db) as pawl:
        claims_counted(db)
        pawl.serve()
        start = time.monotonic()
        types = [f"{n:03d}" + "t" * 97 for n in range(100)]
        pollers = Pollers(pawl, 20, "shop", wait_s=60, types=types)
        wait_until(lambda: metric(pawl, "pawl_http_connections") > 20, what="all are connected")
        send(pawl, 400, domain="other")  # a notification every few milliseconds
        assert pollers.read() == []
        seconds = time.monotonic() - start
        stop_clean(pawl.server)
        wait_until(lambda: len(pollers.read()) == 20, what="all are answered")
        pollers.close()
        calls = claim_calls(db)
        assert calls < 20 * 2 + 4 * seconds + 10, (calls, seconds)


@test
def groups_that_wait_cost_one_statement_per_poll_together_and_miss_nothing():
    domains = 300
    with Database() as db, Pawl(db) as pawl:
        claims_counted(db)
        db.rows(f"select pawl.domain_id('d' || n) from generate_series(1, {domains}) n")
        pawl.serve()
        pollers = Pollers(pawl, 0, "none")
        for number in range(1, domains + 1):
            pollers.add(pawl, 1, f"d{number}", wait_s=60, **({"types": ["a", "b"]} if number % 2 else {}))
        spent = lambda: metric(pawl, 'pawl_transactions_total{outcome="ok"}')
        polls = lambda: int(db.value("select coalesce(sum(calls), 0) from pg_stat_user_functions where funcname = 'claimers_ready'"))
        wait_until(lambda: metric(pawl, "pawl_http_connections") > domains, what="all are connected")
        # Each group finds its domain and claims once when it comes. Then nothing happens but polls.
        wait_until(lambda: spent() >= 2 * domains, what="all have claimed")
        some = polls()
        wait_until(lambda: polls() >= some + 2, what="polls")
        began, before = time.monotonic(), spent()
        wait_until(lambda: polls() >= some + 7, what="more polls")
        rate = (spent() - before) / (time.monotonic() - began)
        assert rate < 60, f"{rate:.0f} transactions a second"
        # pawl.send notifies no worker: that is what a lost notification looks like.
        some = polls()
        db.rows(f"select pawl.send('d' || n, 'c', to_jsonb(n)) from generate_series(2, {domains}, 14) n; "
                "select pawl.send('d3', 'b', '3'), pawl.send('d5', 'c', '5')")
        found = [3, *range(2, domains + 1, 14)]
        wait_until(lambda: len(pollers.read()) >= len(found), what="all were found by polls")
        assert sorted(items[0]["payload"] for items in pollers.answers) == sorted(found), pollers.answers
        pollers.close()
        stop_clean(pawl.server)  # and its sessions have written their statistics
        assert polls() - some < domains / 2, f"{polls() - some} polls: each asks for all"


@test
def claims_that_wait_are_served_by_one_statement_and_each_gets_its_own():
    with Database() as db, Pawl(db) as pawl:
        claims_counted(db)
        pawl.serve()
        send(pawl, 70)
        with Session(db.url) as session:
            session.do("begin")
            session.do("lock table pawl.ready in access exclusive mode")
            first = Pollers(pawl, 1, "shop", wait_s=30, worker="first")
            wait_until(lambda: db.value("select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query ~ 'claim' "
                                        f"and datname = '{db.name}'") == "1", what="the first claim waits")
            others = [Pollers(pawl, 1, "shop", wait_s=30, worker=f"w{number}") for number in range(60)]
            large = Pollers(pawl, 1, "shop", wait_s=30, limit=5, worker="large")
            slow = Pollers(pawl, 1, "shop", wait_s=30, lease_s=3600, worker="slow")  # another lease time: a claim of its own
            wait_until(lambda: metric(pawl, "pawl_http_connections") >= 63, what="all are connected")
            session.do("commit")
        every = [first, *others, large, slow]
        wait_until(lambda: all(len(one.read()) == 1 for one in every), what="all are answered")
        assert [len(one.answers[0]) for one in every] == [1] * 61 + [5, 1]
        owners = dict(row.split("|") for row in db.rows(
            "select c.command_id, l.worker from pawl.lease l join pawl.command c on c.id = l.id"))
        for one, name in zip(every, ["first", *(f"w{number}" for number in range(60)), "large", "slow"]):
            for item in one.answers[0]:
                assert owners.pop(item["command_id"]) == name, (item, name)
        assert owners == {}
        for one in every:
            one.close()
        stop_clean(pawl.server)
        # The first one; those that came meanwhile, of which the last may come a claim later; the one with another lease.
        assert claim_calls(db) <= 8, claim_calls(db)


@test
def a_claim_of_a_type_reads_a_long_queue_of_another_in_parts():
    with Database() as db, Pawl(db) as pawl:
        claims_counted(db)
        db.rows("select count(*) from (select pawl.send('shop', array_fill('t'::text, array[1000]), array_fill('1'::jsonb, array[1000])) "
                "from generate_series(1, 45)) s")
        pawl.serve("--role", "api")
        assert claim(pawl, types=["none"]) == []
        send(pawl)
        assert [item["type"] for item in claim(pawl, types=["charge"])] == ["charge"]
        with Pollers(pawl, 20, "shop", types=["charge", "late"], wait_s=60) as pollers:
            wait_until(lambda: metric(pawl, "pawl_http_connections") > 20, what="all are connected")
            db.rows("select pawl.send('shop', 'late') from generate_series(1, 20)")
            wait_until(lambda: len(pollers.read()) == 20, what="each got one")
            assert all(len(items) == 1 for items in pollers.answers)
        stop_clean(pawl.server)
        assert claim_calls(db) >= 3 * 45000 // 5000  # 5,000 commands of other types each


@test
def what_is_claimed_for_several_waiters_is_whole_for_each():
    """Progress of the attempts before, and payloads of which not all fit into one claim."""
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        for number in range(12):
            assert pawl.http("POST", "/v1/commands", {"domain": "shop", "type": "charge", "payload": {"n": number, "x": "x" * 1000000}}).status == 201
        items = [item for _ in range(4) for item in claim(pawl, 12)]
        assert len(items) == 12
        for item in items:
            report = {"command_id": item["command_id"], "lease": item["lease"], "percent": 60, "text": "n" * 150}
            assert pawl.http("POST", "/v1/domains/shop/progress", {"items": [report]}).json["items"][0]["verdict"] == "reported"
        settles = [{"command_id": item["command_id"], "lease": item["lease"], "outcome": "retry", "delay_s": 0} for item in items]
        with Session(db.url) as session:
            session.do("begin")
            session.do("lock table pawl.ready in access exclusive mode")
            pollers = [Pollers(pawl, 1, "shop", wait_s=30) for _ in range(12)]
            wait_until(lambda: db.value("select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query ~ 'claim' "
                                        f"and datname = '{db.name}'") == "1", what="the first claim waits")
            session.do("commit")
        for first in range(0, 12, 4):
            assert pawl.http("POST", "/v1/domains/shop/settle", {"items": settles[first:first + 4]}).status == 200
        wait_until(lambda: all(len(one.read_whole()) == 1 for one in pollers), what="all are answered")
        got = [one.answers[0][0] for one in pollers]
        assert {item["payload"]["n"] for item in got} == set(range(12))
        assert all(item["progress"]["text"] == "n" * 150 for item in got), got[0]["progress"]
        for one in pollers:
            one.close()
        stop_clean(pawl.server)


@test
def a_claim_of_commands_and_one_of_activations_share_nothing():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve("--role", "api")
        with Session(db.url) as session:
            session.do("begin")
            session.do("lock table pawl.ready in access exclusive mode")
            first = Pollers(pawl, 1, "process:shop", wait_s=30, types=["order"])
            second = Pollers(pawl, 0, "shop")
            second.add(pawl, 1, "shop", route="process-domains", wait_s=30, types=["order"])
            wait_until(lambda: int(db.value("select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query ~ 'claim' "
                                            f"and datname = '{db.name}'")) >= 1, what="a claim waits")
            session.do("commit")
        db.rows("select pawl.start('order', p_domain => 'shop') from generate_series(1, 2)")
        wait_until(lambda: len(first.read()) == 1 and len(second.read()) == 1, what="both are answered")
        assert "payload" in first.answers[0][0] and "secret" in second.answers[0][0]
        for one in (first, second):
            one.close()
        stop_clean(pawl.server)


@test
def nothing_is_claimed_for_a_client_that_went_away():
    """curl -m2 with wait_s 30: its poll used to claim for it, and each command lost an attempt."""
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        before = metric(pawl, "pawl_http_connections")
        gone = Pollers(pawl, 20, "shop", wait_s=60)
        wait_until(lambda: metric(pawl, "pawl_http_connections") >= before + 20, what="all are connected")
        gone.close()
        wait_until(lambda: metric(pawl, "pawl_http_connections") <= before, what="all are gone")
        send(pawl, 20)
        items = claim(pawl, 20)
        assert [item["attempt"] for item in items] == [1] * 20, items
        assert db.value("select count(*) from pawl.audit where event = 'RECEIVED'") == "20"
        stop_clean(pawl.server)


@test
def a_claim_that_cannot_be_delivered_is_given_back_without_an_attempt():
    """The request and the end of its connection come in one packet, while there is work."""
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        send(pawl, 5)
        address = ("127.0.0.1", pawl.server.port)
        for _ in range(40):
            with socket.create_connection(address, timeout=TIMEOUT_S) as one:
                one.send(request(pawl, "shop", limit=5, wait_s=30), socket.MSG_MORE)  # it goes with the end
        wait_until(lambda: metric(pawl, "pawl_http_connections") <= 1, what="all are gone")
        wait_until(lambda: db.value("select count(*) from pawl.lease") == "0", what="all is given back")
        items = []
        wait_until(lambda: len(items.extend(claim(pawl, 10, wait_s=10)) or items) >= 5, what="all can be claimed")
        assert len(items) == 5 and {item["attempt"] for item in items} == {1}, items
        assert pawl.http("GET", "/v1/tsq").json["items"] == []
        stop_clean(pawl.server)


@test
def a_claim_under_way_for_a_client_that_goes_away_is_given_back():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        send(pawl, 5)
        with Session(db.url) as session:
            session.do("begin")
            session.do("lock table pawl.ready in access exclusive mode")
            gone = Pollers(pawl, 1, "shop", limit=5, wait_s=30)
            wait_until(lambda: db.value("select count(*) from pg_stat_activity where wait_event_type = 'Lock' and query ~ 'claim' "
                                        f"and datname = '{db.name}'") == "1", what="the claim waits")
            gone.close()
            session.do("commit")
        wait_until(lambda: db.value("select count(*) from pawl.audit where details ->> 'reason' ~ 'released by its worker'") == "5",
                   what="all five are given back")
        items = claim(pawl, 10)
        assert len(items) == 5 and {item["attempt"] for item in items} == {1}, items
        stop_clean(pawl.server)


@test
def a_long_poll_survives_an_outage_and_a_single_claim_reports_it():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        pollers = Pollers(pawl, 3, "shop", wait_s=60)
        claim(pawl)
        outside = setting("PAWL_TEST_URL")
        psql(outside, f"alter database {db.name} allow_connections false")
        psql(outside, f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{db.name}'")
        wait_until(lambda: pawl.http("POST", "/v1/domains/shop/claim", {"limit": 1}).status == 503, what="an outage")
        assert pollers.read() == []
        psql(outside, f"alter database {db.name} allow_connections true")
        wait_until(lambda: pawl.http("POST", "/v1/commands", {"domain": "shop", "type": "charge"}).status == 201,
                   what="a send")
        wait_until(lambda: len(pollers.read()) >= 1, what="one got it")
        pollers.close()
        stop_clean(pawl.server)


main()
