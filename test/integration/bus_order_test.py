#!/usr/bin/env python3
"""bus_order - order keys from outside: workers that are killed, the command line, HTTP, metrics, doctor."""
import os
import random
import signal

from pawl_test import Database, Pawl, main, test, wait_until
from servers import Session

SEED = 20261
FULL = bool(os.environ.get("PAWL_TEST_FULL"))
KEYS, COMMANDS, KILLS = (200, 50000, 100) if FULL else (100, 10000, 25)
# `seen` is how many commands of the key had been committed when this one started. One at a time and in order: it is n.
HANDLER = """
create schema orders;
create table orders.run (order_key text, n integer, seen integer);
create index on orders.run (order_key);
create function orders.run(payload jsonb, command_id uuid) returns jsonb language plpgsql as $$
begin
  insert into orders.run
  select payload->>'key', (payload->>'n')::integer, count(r.n) from orders.run r where r.order_key = payload->>'key';
  perform pg_sleep(0.002);
  if random() < 0.05 then
    raise exception 'a transient failure';
  end if;
  return payload;
end
$$;
"""
# Nothing is parked or held when all have ended, and while they run no command is in two tables or in none.
LEFT = """select (select count(*) from pawl.parked), (select count(*) from pawl.order_turn), (select count(*) from pawl.order_handover),
                 (select count(*) from pawl.ready), (select count(*) from pawl.lease), (select count(*) from pawl.delayed),
                 (select count(*) from pawl.tsq)"""
RUNNING_TWICE = """
    select c.order_key from pawl.command c
    where c.order_key is not null and exists (select from pawl.lease l where l.id = c.id)
    group by c.domain_id, c.order_key having count(*) > 1"""


def ended(session):
    return int(session.do("select count(*) from pawl.outcome")[0])


def send_step(session, step, size):
    """Commands step*size to (step+1)*size - 1, spread over the keys, in one call."""
    session.do(f"""
        select count(*) from (select array_agg(n / {KEYS}) ns, array_agg(n % {KEYS}) ks
                              from generate_series({step * size}, {(step + 1) * size - 1}) n) i,
        pawl.send('orders', array_fill('run'::text, array[{size}]),
          (select array_agg(jsonb_build_object('key', 'k' || u.k, 'n', u.n) order by u.o)
           from unnest(i.ns, i.ks) with ordinality u (n, k, o)),
          p_max_attempts => array_fill(1000::smallint, array[{size}]),
          p_priorities => (select array_agg((u.o % 10)::smallint order by u.o) from unnest(i.ns) with ordinality u (n, o)),
          p_order_keys => (select array_agg('k' || u.k order by u.o) from unnest(i.ks) with ordinality u (k, o)))""")


@test
def commands_of_a_key_run_one_at_a_time_in_order_while_workers_are_killed():
    chance = random.Random(SEED)
    with Database() as db, Pawl(db) as pawl, Session(db.url) as session:
        session.do(HANDLER)
        assert pawl.run("policy", "set", "orders", "0s,20ms").code == 0

        def work():
            return pawl.start("work", "orders", "--lease", "1s", "-j", "8", "--sql", "orders.run")

        workers = [work() for _ in range(3)]
        marks = sorted(chance.sample(range(COMMANDS // 20, COMMANDS * 9 // 10), KILLS))
        size, sent = COMMANDS // 20, 0
        for mark in marks:
            while sent < COMMANDS and sent < mark * 2 + size:
                send_step(session, sent // size, size)
                sent += size
            wait_until(lambda: ended(session) >= mark, what=f"{mark} have ended")
            assert session.do(RUNNING_TWICE) == []
            place = chance.randrange(len(workers))
            assert workers[place].stop(signal.SIGKILL) == -signal.SIGKILL, f"it had ended by itself: {workers[place].stderr[-5:]}"
            workers[place] = work()
        while sent < COMMANDS:
            send_step(session, sent // size, size)
            sent += size
        wait_until(lambda: ended(session) == COMMANDS, timeout=600, what="all have ended")
        for worker in workers:
            worker.send(signal.SIGTERM)
        for worker in workers:
            assert worker.wait() == 0, worker.stderr[-5:]
        assert session.do("select count(*), count(distinct (order_key, n)), count(*) filter (where seen <> n) from orders.run") \
            == [f"{COMMANDS}|{COMMANDS}|0"]
        assert session.do("select count(*) from pawl.outcome where status <> 'COMPLETED'") == ["0"]
        assert session.do(LEFT) == ["0|0|0|0|0|0|0"], session.do(LEFT)
        lost = int(session.do("select count(*) from pawl.audit where details->>'reason' = 'its worker was lost'")[0])
        retried = int(session.do("select count(*) from pawl.audit where details->>'error' like 'a transient failure%'")[0])
        assert lost > 0 and retried > 0, (lost, retried)


@test
def the_command_line_sends_shows_and_sets_the_policy():
    with Database() as db, Pawl(db) as pawl:
        first = pawl.run("send", "shop", "charge", "1", "--order-key", "customer 7").stdout.strip()
        assert pawl.run("send", "shop", "charge", "--lines", "--order-key", "customer 7", stdin="2\n3\n").code == 0
        claimed = db.rows("select payload from pawl.claim(pawl.domain_find('shop'), 10, 60000, array_fill(0::bigint, '{10}'), null, 'w')")
        assert claimed == ["1"], claimed
        second = db.value("select command_id from pawl.command where payload = '2'")
        shown = pawl.run("command", "show", second).stdout
        assert "order key    customer 7\n" in shown and f"waits for    {first}\n" in shown, shown
        assert pawl.run("command", "show", second, "--json").json["status"] == "PENDING"
        assert "waits for" not in pawl.run("command", "show", first).stdout
        assert pawl.run("command", "list", "--domain", "shop", "--status", "PENDING", "--count").stdout == "2\n"
        assert pawl.run("command", "cancel", second).code == 0
        assert pawl.run("command", "list", "--domain", "shop", "--status", "PENDING", "--count").stdout == "1\n"
        # A key that is too long is refused, and named.
        refused = pawl.run("send", "shop", "charge", "--order-key", "x" * 201)
        assert refused.code == 2 and "order_key must be 1 to 200 bytes, got 201" in refused.stderr, refused
        assert pawl.run("policy", "set", "shop", "--order-key", "release").code == 0
        assert pawl.run("policy", "set", "shop", "1s,2s", "--type", "charge").code == 0
        items = pawl.run("policy", "show", "shop", "--json").json
        assert [(i["type"], i["delays_s"], i["order_key"]) for i in items] == \
            [("*", [10, 60, 300], "release"), ("charge", [1, 2], "release")], items
        assert pawl.run("policy", "set", "shop").code == 2
        assert pawl.run("policy", "set", "shop", "--order-key", "keep").code == 2
        # Released: the next one is queued when the first is in troubleshooting.
        db.rows("select s.status from pawl.lease l, pawl.settle(array[l.id], array[l.token], '{fail}') s")
        assert db.rows("select c.payload from pawl.ready r join pawl.command c using (id)") == ["3"]
        assert "order key" in pawl.run("policy", "show", "shop").stdout


@test
def http_sends_settles_and_wakes_the_next_one():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        for n in (1, 2):
            sent = pawl.http("POST", "/v1/commands", {"domain": "shop", "type": "t", "payload": n, "order_key": "k"})
            assert sent.status == 201, sent
        batch = {"items": [{"domain": "shop", "type": "t", "payload": n, "order_key": "k"} for n in (3, 4)]}
        assert pawl.http("POST", "/v1/commands/batch", batch).status == 201
        for bad, why in (("", "order_key"), ("x" * 201, "order_key"), (7, "order_key")):
            refused = pawl.http("POST", "/v1/commands", {"domain": "shop", "type": "t", "order_key": bad})
            assert refused.status == 400 and why in refused.json["detail"], refused.json
        for expected in (1, 2, 3, 4):
            claim = pawl.http("POST", "/v1/domains/shop/claim", {"limit": 10, "wait_s": 60, "lease_s": 60}).json["items"]
            assert [item["payload"] for item in claim] == [expected], claim
            assert pawl.http("POST", "/v1/domains/shop/claim", {"limit": 10}).json["items"] == []
            before = wakeups(pawl)
            settled = pawl.http("POST", "/v1/domains/shop/settle",
                                {"items": [{"command_id": claim[0]["command_id"], "lease": claim[0]["lease"], "outcome": "complete"}]})
            assert settled.json["items"][0]["settled"], settled.json
            wait_until(lambda: wakeups(pawl) > before, what="the end wakes the domain")
        policy = "/v1/domains/shop/retry-policy"
        assert pawl.http("PUT", policy, {"order_key": "release"}).json["items"][0]["order_key"] == "release"
        assert pawl.http("PUT", policy, {"order_key": "keep"}).status == 400
        assert pawl.http("PUT", policy, {}).status == 400
        assert pawl.http("PUT", policy, {"delays_s": [1]}).json["items"][0]["order_key"] == "hold"
        assert db.value("select count(*) from pawl.order_turn") == "0"


def wakeups(pawl):
    return int(pawl.http("GET", "/metrics").body.decode().split('pawl_wakeups_total{direction="sent"} ')[1].split()[0])


@test
def doctor_and_metrics_know_parked_commands():
    with Database() as db, Pawl(db) as pawl:
        for n in range(3):
            assert pawl.run("send", "shop", "charge", str(n), "--order-key", "k").code == 0
        db.rows("select count(*) from pawl.claim(pawl.domain_find('shop'), 10, 600000, array_fill(0::bigint, '{10}'), null, 'w')")
        assert db.value("select count(*) from pawl.parked") == "2"
        assert "no row is stuck" in pawl.run("doctor").stdout
        pawl.serve()
        assert 'pawl_commands_all{state="parked"}' in pawl.http("GET", "/metrics").body.decode()
        # A key that no command has is what the check is for.
        db.rows("delete from pawl.order_turn")
        assert "order keys" in pawl.run("doctor").stdout


main()
