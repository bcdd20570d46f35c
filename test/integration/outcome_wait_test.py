#!/usr/bin/env python3
"""outcome_wait - clients that wait for the end of a command or process: over HTTP, in the command line and in C. Thousands wait without a thread each,
the end is seen of what others end, and a pod without waiters asks nothing.

1,000 clients wait at once; with PAWL_TEST_FULL=1 10,000, as docs/guarantees-tests.md says."""
import datetime
import json
import os
import selectors
import socket
import statistics
import subprocess
import threading
import time

from bus_commands import counts, new_id, send
from checks import measured, memory_mib, metric, problem, stop_clean
from pawl_test import FACT_S, TIMEOUT_S, Database, Pawl, main, psql, setting, test, wait_until
from process_cli import define

FULL = bool(os.environ.get("PAWL_TEST_FULL"))
CLIENTS = 10_000 if FULL else 1000
RATE_S = 500
SECOND = 20  # clients that connect to another pod
PROGRAM = os.path.join(setting("PAWL_BUILD"), "test/integration/library_outcome")

SETTLE = "select count(*) from pawl.lease l, pawl.settle(array[l.id], array[l.token], array['{}'], array['{}'::jsonb])"


class Waiters:
    """Clients that each wait for one command, on one thread; a client's answer has the moment when it came."""

    def __init__(self, server, token):
        self.address, self.token = ("127.0.0.1", server.port), token
        self.selector = selectors.DefaultSelector()
        self.answers = {}  # by id: status of HTTP, document, moment

    def add(self, command_id, wait_s=60, kind="commands"):
        one = socket.create_connection(self.address, timeout=TIMEOUT_S)
        one.sendall(f"GET /v1/{kind}/{command_id}?wait_s={wait_s} HTTP/1.1\r\nHost: localhost\r\n"
                    f"Authorization: Bearer {self.token}\r\n\r\n".encode())
        self.selector.register(one, selectors.EVENT_READ, command_id)

    def read(self, timeout=0.01):
        """Answers that have come by now, in all."""
        for key, _ in self.selector.select(timeout):
            self.selector.unregister(key.fileobj)
            with key.fileobj as one, one.makefile("rb") as answer:
                status = int(answer.readline().split()[1])
                moment = time.time()
                head = [line.lower().partition(b":") for line in iter(answer.readline, b"\r\n")]
                size = next(int(value) for name, _, value in head if name == b"content-length")
                self.answers[key.data] = (status, json.loads(answer.read(size)), moment)
        return self.answers

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()
        self.selector.close()


def waiting(pawl, count):
    wait_until(lambda: metric(pawl, "pawl_outcome_waits") == count, what=f"{count} clients wait")


def claim(pawl, domain="shop", limit=1, **body):
    answer = pawl.http("POST", f"/v1/domains/{domain}/claim", {"limit": limit, "wait_s": FACT_S, **body})
    assert answer.status == 200, answer.body
    return answer.json["items"]


def settle(pawl, items, outcome="complete", domain="shop", **fields):
    answer = pawl.http("POST", f"/v1/domains/{domain}/settle",
                       {"items": [{"command_id": one["command_id"], "lease": one["lease"], "outcome": outcome, **fields}
                                  for one in items]})
    assert answer.status == 200 and all(one["settled"] for one in answer.json["items"]), answer.body


def waited(pawl, command_id, wait_s=60, kind="commands", **options):
    """The answer of one client, and how long it took."""
    began = time.monotonic()
    answer = pawl.http("GET", f"/v1/{kind}/{command_id}?wait_s={wait_s}", timeout=TIMEOUT_S, **options)
    return answer, time.monotonic() - began


@test
def a_client_gets_the_outcome_when_the_command_has_ended_and_not_before():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        command = send(pawl, "shop", "charge")
        answer, took = waited(pawl, command, 0.3)
        assert answer.status == 200 and answer.json["status"] == "PENDING" and took >= 0.3, (answer.body, took)
        answer, _ = waited(pawl, command, 0)
        assert answer.json["status"] == "PENDING"
        with Waiters(pawl.server, pawl.TOKEN) as waiters:
            waiters.add(command)
            waiting(pawl, 1)
            items = claim(pawl)
            assert not waiters.read(), "a lease is no end"
            settle(pawl, items, result={"paid": 7})
            wait_until(waiters.read, what="it is answered")
        status, shown, _ = waiters.answers[command]
        assert status == 200 and shown["status"] == "COMPLETED" and shown["result"] == {"paid": 7}, shown
        plain = pawl.http("GET", f"/v1/commands/{command}").json
        assert shown == plain, (shown, plain)
        answer, took = waited(pawl, command)  # ended already
        assert answer.json == plain and took < 30, took
        waiting(pawl, 0)


@test
def the_end_is_seen_of_what_others_end():
    """Another pod, an application in SQL, an operator; the troubleshooting queue is no end."""
    with Database() as db, Pawl(db) as pawl, Pawl(db) as other:
        pawl.serve("--role", "api")
        other.serve("--role", "api")
        ids = {name: send(pawl, "shop", name) for name in ("pod", "sql", "operator", "reject", "tsq")}
        with Waiters(pawl.server, pawl.TOKEN) as waiters:
            for command in ids.values():
                waiters.add(command)
            waiting(pawl, 5)
            settle(other, claim(other, types=["pod"]))
            wait_until(lambda: ids["pod"] in waiters.read(), what="what another pod has settled")
            claim(other, types=["sql"])
            assert db.value(SETTLE.format("complete", "1")) == "1"
            wait_until(lambda: ids["sql"] in waiters.read(), what="what SQL has settled")
            assert other.http("POST", f"/v1/commands/{ids['operator']}/cancel", {}).status == 200
            settle(other, claim(other, types=["reject"]), "reject", error="no stock")
            settle(other, claim(other, types=["tsq"]), "fail", error="broken")
            wait_until(lambda: len(waiters.read()) == 4, what="a cancellation and a rejection")
            waiting(pawl, 1)
            assert other.http("POST", f"/v1/tsq/{ids['tsq']}/complete", {"result": 5}).status == 200
            wait_until(lambda: len(waiters.read()) == 5, what="a decision about troubleshooting")
        ends = {name: waiters.answers[command][1]["status"] for name, command in ids.items()}
        assert ends == {"pod": "COMPLETED", "sql": "COMPLETED", "operator": "CANCELED", "reject": "FAILED", "tsq": "COMPLETED"}, ends


@test
def a_process_is_waited_for_by_its_own_route():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        define(pawl, {"domain": "orders", "type": "buy", "steps": [
            {"name": "reserve", "exec": "echo 1", "compensate": {"exec": "echo 2"}},
            {"name": "approval", "wait": {"response": "approval"}},
            {"name": "no", "fail": "not approved"}]})
        ids = [pawl.http("POST", "/v1/processes", {"type": "buy", "domain": "orders"}).json["process_id"] for _ in range(2)]
        wait_until(lambda: all(pawl.http("GET", f"/v1/processes/{one}").json["status"].startswith("WAITING") for one in ids))
        answer, _ = waited(pawl, ids[0], 0.1, "processes")
        assert answer.json["status"] == "WAITING_FOR_ASYNC", answer.body
        with Waiters(pawl.server, pawl.TOKEN) as waiters:
            for one in ids:
                waiters.add(one, kind="processes")
            waiting(pawl, 2)
            pawl.http("POST", f"/v1/processes/{ids[0]}/signals/approval", {})
            wait_until(waiters.read, what="one is answered")
            status, shown, _ = waiters.answers[ids[0]]
            assert status == 200 and shown["status"] == "COMPENSATED", shown
            assert shown == pawl.http("GET", f"/v1/processes/{ids[0]}").json
            waiting(pawl, 1)
        command = send(pawl, "shop", "charge")
        answer, took = waited(pawl, command, 60, "processes")
        problem(answer, 404, part=command)
        assert took < 30


@test
def what_cannot_be_waited_for_is_refused_at_once():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        key = pawl.run("key", "create", "shop", "--scopes", "command", "--json").json["token"]
        wallets = pawl.run("key", "create", "bank", "--scopes", "wallet", "--json").json["token"]
        command, twice = send(pawl, "shop", "charge"), new_id()
        for domain in ("shop", "stock"):
            send(pawl, domain, "charge", None, "--id", twice)
        process = pawl.http("POST", "/v1/processes", {"type": "buy"}).json["process_id"]
        before = counts(db)
        for wait_s in ("", "x", "-1", "61", "60.001", "1e1", "1.", ".5", "5s", "99999999999999999999", "0x1", "%20"):
            problem(pawl.http("GET", f"/v1/commands/{command}?wait_s={wait_s}"), 400, part='"wait_s" must be a number from 0 to 60')
        problem(pawl.http("GET", f"/v1/commands/seven?wait_s=5"), 400, part="id must be a UUID")
        problem(pawl.http("GET", f"/v1/commands/{command}?wait_s=5&wait_s=5"), 400)
        for answer, status, part in (
                (waited(pawl, new_id()), 404, "not found"), (waited(pawl, new_id(), kind="processes"), 404, "not found"),
                (waited(pawl, twice), 409, "shop, stock"), (waited(pawl, command, token=wallets), 403, "scope"),
                (waited(pawl, process, token=key), 403, "process"), (waited(pawl, command, token="wrong"), 401, "")):
            problem(answer[0], status, part=part)
            assert answer[1] < 30, answer
        plain = pawl.http("GET", f"/v1/commands/{process}", token=key)
        assert plain.json["detail"] == waited(pawl, process, token=key)[0].json["detail"]
        answer, _ = waited(pawl, f"{twice}", "0&domain=stock", token=key)
        assert answer.status == 200 and answer.json["domain"] == "stock"
        db.rows(f"delete from pawl.ready; delete from pawl.command where command_id = '{command}'")
        problem(waited(pawl, command)[0], 404)
        assert counts(db).split()[2:-4] == before.split()[2:-4], (counts(db), before)  # but for the command that was deleted
        waiting(pawl, 0)


@test
def a_client_that_goes_away_waits_no_more_and_a_pod_without_waiters_asks_nothing():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve("--role", "api")
        command = send(pawl, "shop", "charge")
        with Waiters(pawl.server, pawl.TOKEN) as waiters:
            for _ in range(50):
                waiters.add(command)
            waiting(pawl, 50)
            polls = metric(pawl, "pawl_outcome_polls_total")
            began = time.monotonic()
            wait_until(lambda: metric(pawl, "pawl_outcome_polls_total") >= polls + 10, what="it asks")
            asked, seconds = metric(pawl, "pawl_outcome_polls_total") - polls, time.monotonic() - began
            assert asked <= seconds * 40 + 2, (asked, seconds)  # one statement for all, every 25 ms
        waiting(pawl, 0)
        polls = metric(pawl, "pawl_outcome_polls_total")
        assert waited(pawl, command, 0)[0].status == 200  # found once, and not asked about
        assert metric(pawl, "pawl_outcome_polls_total") <= polls + 1
        stop_clean(pawl.server)


@test
def waits_survive_an_outage_of_their_statements_and_end_with_the_pod():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        first, second = send(pawl, "shop", "first"), send(pawl, "shop", "second")
        items = claim(pawl, limit=2)
        with Waiters(pawl.server, pawl.TOKEN) as waiters:
            waiters.add(first)
            waiters.add(second)
            waiting(pawl, 2)
            polls = metric(pawl, "pawl_outcome_polls_total")
            psql(setting("PAWL_TEST_URL"), f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{db.name}'")
            wait_until(lambda: metric(pawl, "pawl_outcome_polls_total") > polls + 3, what="it asks again")
            wait_until(lambda: pawl.http("GET", "/health/ready").status == 200, what="it is ready again")
            settle(pawl, [one for one in items if one["command_id"] == first])
            wait_until(waiters.read, what="it is answered")
            assert waiters.answers[first][1]["status"] == "COMPLETED"
            stop_clean(pawl.server)
            wait_until(lambda: len(waiters.read()) == 2, what="the other is answered as it is")
            assert waiters.answers[second][:1] == (200,) and waiters.answers[second][1]["status"] == "IN_PROGRESS"


class Paced(threading.Thread):
    """Settles leased commands at a rate, in another session, as an application does."""

    def __init__(self, db, count):
        super().__init__()
        self.db, self.count = db, count

    def run(self):
        each = RATE_S // 20  # 50 ms of them
        psql(self.db.url, f"""
            do $$
            declare
              v_next timestamptz := clock_timestamp();
              v_left integer := {self.count};
            begin
              while v_left > 0 loop
                perform pawl.settle(array_agg(l.id order by l.id), array_agg(l.token order by l.id), array_fill('complete'::text, array[count(*)::integer]))
                from (select * from pawl.lease order by id limit {each}) l;
                v_left := v_left - {each};
                commit;
                v_next := v_next + interval '50 ms';
                perform pg_sleep(greatest(0, extract(epoch from v_next - clock_timestamp())));
              end loop;
            end $$""")


def ended_at(shown):
    return datetime.datetime.fromisoformat(shown["ended_at"]).timestamp()


@test
def ten_thousand_clients_wait_at_once():
    """Memory and threads are bounded, and each is answered a moment after the end of its command: 500 commands end in a second."""
    with Database() as db, Pawl(db) as pawl:
        measured(pawl)
        pawl.serve("--role", "api", "--http-connections", str(2 * CLIENTS))
        ids = [new_id() for _ in range(CLIENTS)]
        for at in range(0, CLIENTS, 1000):
            answer = pawl.http("POST", "/v1/commands/batch",
                               {"items": [{"domain": "shop", "type": "charge", "command_id": one} for one in ids[at:at + 1000]]})
            assert answer.status == 201, answer.body
        leased = 0
        while leased < CLIENTS:
            leased += len(claim(pawl, limit=1000, lease_s=3600))
        threads = len(os.listdir(f"/proc/{pawl.server.process.pid}/task"))
        memory = memory_mib(pawl.server.process.pid)
        with Waiters(pawl.server, pawl.TOKEN) as waiters:
            for one in ids:
                waiters.add(one)
            waiting(pawl, CLIENTS)
            grown = memory_mib(pawl.server.process.pid) - memory
            assert grown < 20 + CLIENTS * 0.05, f"{grown} MiB for {CLIENTS} clients"
            began = pawl.http("GET", "/health/ready")
            assert began.status == 200
            paced = Paced(db, CLIENTS)
            paced.start()
            wait_until(lambda: len(waiters.read()) == CLIENTS, timeout=TIMEOUT_S, what="all are answered")
            paced.join()
            more = len(os.listdir(f"/proc/{pawl.server.process.pid}/task")) - threads
            assert more <= 16, f"{more} threads more"
        late = []
        for status, shown, moment in waiters.answers.values():
            assert status == 200 and shown["status"] == "COMPLETED", shown
            late.append(moment - ended_at(shown))
        late.sort()
        figures = (f"{CLIENTS} clients: answered {statistics.median(late) * 1000:.0f} ms after the end (median), "
                   f"{late[int(len(late) * 0.99)] * 1000:.0f} ms (p99), {late[-1] * 1000:.0f} ms (most); {grown} MiB, {more} threads more")
        print("# " + figures)
        assert statistics.median(late) < (0.05 if FULL else 1), figures
        assert late[-1] < 10, figures


@test
def the_command_line_waits_for_the_outcome():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        worker = pawl.start("work", "shop", "--exec", 'case $PAWL_TYPE in no) echo "no stock" >&2; exit 65;; *) echo \'{"paid": 7}\';; esac')
        done = pawl.run("send", "shop", "charge", "--wait", '{"order": 7}')
        command, outcome = done.stdout.splitlines()
        assert done.code == 0 and outcome == 'COMPLETED {"paid": 7}' and len(command) == 36, done
        done = pawl.run("send", "shop", "charge", "--wait=20s", "--json", "--id", command, '{"order": 7}')
        assert done.code == 0 and done.json == {"command_id": command, "status": "COMPLETED", "created": False,
                                                "result": {"paid": 7}, "error": None}, done
        done = pawl.run("send", "shop", "no", "--wait", "20s")
        assert done.code == 1 and done.stdout.splitlines()[1] == "FAILED: no stock" and "has ended as FAILED: no stock" in done.stderr, done
        done = pawl.run("send", "nobody", "charge", "--wait", "100ms", "--json")
        assert done.code == 75 and done.json["status"] == "PENDING" and "has not ended in time: it is PENDING" in done.stderr, done
        worker.stop()
        define(pawl, {"domain": "process", "type": "buy", "steps": [{"name": "on", "wait": {"response": "on"}, "timeout": "1s"}]})
        done = pawl.run("process", "start", "buy", "--wait", "60ms", "--json")
        assert done.code == 75 and done.json["created"], done
        assert done.json["status"] in ("PENDING", "IN_PROGRESS", "WAITING_FOR_ASYNC"), done
        define(pawl, {"domain": "process", "type": "add", "steps": [{"name": "add", "set": {"sum": 3}}], "result": {"sum": "{{state.sum}}"}})
        done = pawl.run("process", "start", "add", "--wait")
        assert done.code == 0 and done.stdout.splitlines()[1] == 'COMPLETED {"sum": 3}', done
        for arguments, words in ((("send", "shop", "charge", "--wait=5x"), "--wait"), (("send", "shop", "charge", "--wait=0s"), "1ms"),
                                 (("send", "shop", "charge", "--lines", "--wait"), "--wait waits for one"),
                                 (("process", "start", "buy", "--lines", "--wait"), "--wait waits for one")):
            refused = pawl.run(*arguments)
            assert refused.code == 2 and words in refused.stderr and not refused.stdout, refused


@test
def a_c_program_waits_for_the_outcome():
    with Database() as db:
        done = subprocess.run([PROGRAM, db.url], capture_output=True, text=True, timeout=TIMEOUT_S, check=True)
        assert done.stdout.splitlines() == [
            'in time: 0 1 COMPLETED {"n": 1} -', "late: 3 0 PENDING - -", "says so", "another domain: 2 0 - - -", "no process: 2 0 - - -",
            "no id: 1 0 - - -", "NULL: 1 0 - - -", "negative: 1 0 - - -", "process: 3 0 PENDING - -", "threads: 50 of 50"], done.stdout


main()
