#!/usr/bin/env python3
"""process_limit - steps and processes that go too far are stopped with a reason, and their neighbours are not touched."""
import http.server
import json
import os
import tempfile
import threading
import time

import process_cli
from pawl_test import Database, Pawl, main, test, wait_until
from process_cli import cli, define, lines, run, wait_status
from servers import Gate


def start(pawl, kind, state=None):
    return process_cli.start(pawl, kind, state, "process")


class Faulty(http.server.ThreadingHTTPServer):
    """An HTTP server that misbehaves by path, and remembers who asked when with which key."""

    daemon_threads = True

    def __init__(self):
        server = self
        self.asked, self.is_over = [], threading.Event()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                server.asked.append((self.path, time.monotonic(), self.headers.get("Idempotency-Key")))
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                first = [path for path, _, _ in server.asked].count(self.path) == 1
                if self.path == "/500":
                    self.answer(500, b"broken")
                elif self.path == "/429" and first:
                    self.answer(429, b"", {"Retry-After": "2"})
                elif self.path == "/loop":
                    self.answer(302, b"", {"Location": "/loop"})
                elif self.path == "/endless":
                    self.endless()
                elif self.path == "/slow":
                    server.is_over.wait()
                else:
                    self.answer(200, b'{"fine": true}')

            do_GET = do_POST

            def answer(self, status, body, headers=None):
                self.send_response(status)
                for name, value in (headers or {}).items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def endless(self):
                self.send_response(200)
                self.end_headers()
                try:
                    while True:
                        self.wfile.write(b"x" * 65536)
                except OSError:
                    pass

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *_):
        self.is_over.set()
        self.shutdown()
        self.server_close()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}"

    def times(self, path):
        return [at for asked, at, _ in self.asked if asked == path]


def http_definition(kind, url, timeout="1h"):
    return {"type": kind, "domain": "process", "on_failure": "troubleshoot", "steps": [
        {"name": "call", "http": {"method": "POST", "url": url, "body": {"n": 1}}, "timeout": timeout,
         "retry": {"attempts": 2, "delay": "50ms", "delay_max": "100ms"}}]}


@test
def http_steps_are_bounded_retried_by_their_policy_and_then_troubleshot():
    with Database() as db, Faulty() as faulty, Pawl(db, env={"PAWL_STEP_HOSTS": f"127.0.0.1:1, 127.0.0.1:{faulty.server_address[1]}"}) as pawl:
        for name in ("500", "429", "loop", "endless", "fine"):
            define(pawl, http_definition("h" + name, f"{faulty.url}/{name}"))
        define(pawl, http_definition("hslow", f"{faulty.url}/slow", timeout="1s"))
        define(pawl, http_definition("hrefused", "http://127.0.0.1:1/"))
        pawl.serve()
        ids = {name: start(pawl, "h" + name) for name in ("500", "429", "loop", "endless", "slow", "refused", "fine")}
        for name, words in {"500": "status 500: broken", "loop": "", "endless": "", "slow": "", "refused": ""}.items():
            shown = wait_status(pawl, ids[name], "WAITING_FOR_TSQ", "FAILED", "COMPLETED")
            assert shown["status"] == "WAITING_FOR_TSQ" and words in shown["error"], (name, shown)
            assert [s["attempt"] for s in shown["steps"]] == list(range(1, len(shown["steps"]) + 1)), (name, shown)
            assert len(shown["steps"]) in ((1, 2) if name in ("loop", "endless") else (2,)), (name, shown)
        assert wait_status(pawl, ids["fine"], "COMPLETED")["result"] is not None
        asked = wait_until(lambda: len(faulty.times("/429")) > 1 and faulty.times("/429"), what="it was asked again")
        assert asked[1] - asked[0] >= 1.9, asked
        wait_status(pawl, ids["429"], "COMPLETED")
        keys = {key for path, _, key in faulty.asked if path == "/500"}
        assert len(keys) == 1 and None not in keys, keys


@test
def private_addresses_are_refused_unless_they_are_allowed():
    with Database() as db, Faulty() as faulty, Pawl(db) as pawl:
        port = faulty.server_address[1]
        hosts = ["127.0.0.1", "localhost", "[::1]", "169.254.169.254", "10.0.0.1"]
        for i, host in enumerate(hosts):
            define(pawl, http_definition(f"p{i}", f"http://{host}:{port}/fine"))
        pawl.serve()
        for i, host in enumerate(hosts):
            shown = wait_status(pawl, start(pawl, f"p{i}"), "WAITING_FOR_TSQ", "FAILED", "COMPLETED")
            assert shown["status"] == "WAITING_FOR_TSQ", (host, shown)
            assert "private address" in shown["error"] and "PAWL_STEP_HOSTS" in shown["error"], (host, shown)
        assert faulty.asked == [], faulty.asked


@test
def a_deadline_that_passes_while_a_process_waits_or_retries_has_its_action():
    with Database() as db, Pawl(db) as pawl:
        db.rows("""create schema demo; create table demo.undone ();
            create function demo.one(input jsonb, key uuid) returns jsonb language sql as $$ select '1'::jsonb $$;
            create function demo.undo(input jsonb, key uuid) returns jsonb language sql as $$ insert into demo.undone default values returning '1'::jsonb $$""")
        ends = {"troubleshoot": "WAITING_FOR_TSQ", "compensate": "COMPENSATED", "fail": "FAILED"}
        lasts = {"waits": {"wait": {"response": "go"}}, "retries": {"exec": "exit 1", "retry": {"attempts": 1000, "delay": "100ms", "factor": 1}}}
        for action in ends:
            for last, step in lasts.items():
                define(pawl, {"type": f"{action}-{last}", "domain": "process", "deadline": "3s", "on_deadline": action, "steps": [
                    {"name": "one", "sql": "demo.one", "compensate": {"sql": "demo.undo"}}, {"name": "last", **step}]})
        pawl.serve()
        ids = {(action, last): start(pawl, f"{action}-{last}") for action in ends for last in lasts}
        for (action, last), process_id in ids.items():
            shown = wait_status(pawl, process_id, "WAITING_FOR_TSQ", "COMPENSATED", "FAILED", "COMPLETED")
            assert shown["status"] == ends[action] and "deadline of the process has passed" in shown["error"], (action, last, shown)
            # A busy machine may have begun it too late even for its first step: what was done is what is undone.
            names = [s["name"] for s in shown["steps"] if not s["error"]]
            assert shown["deadline"] and names in ([], ["one"], ["one", "~one"]), shown
            assert ("~one" in names) == ("one" in names and action == "compensate"), shown
        assert db.value("select count(*) from demo.undone") == db.value("select count(*) from pawl.process_step where step = 'one' and undo")


@test
def activations_steps_waits_and_compensations_are_counted_by_domain():
    with Database() as db, Pawl(db) as pawl:
        db.rows("""create schema demo;
            create function demo.one(input jsonb, key uuid) returns jsonb language sql as $$ select '1'::jsonb $$;
            create function demo.no(input jsonb, key uuid) returns jsonb language plpgsql as $$ begin raise exception 'no' using errcode = 'QU065'; end $$""")
        for domain in ("one", "two"):
            define(pawl, {"type": "saga", "domain": domain, "on_failure": "compensate", "steps": [
                {"name": "first", "sql": "demo.one", "compensate": {"sql": "demo.one"}}, {"name": "rest", "wait": {"response": "go"}},
                {"name": "last", "sql": "demo.no"}]})
        pawl.serve()
        ids = [pawl.run("process", "start", "saga", "{}", "--domain", "one", "--json").json["process_id"] for _ in range(3)]
        for process_id in ids:
            wait_status(pawl, process_id, "WAITING_FOR_ASYNC")
            assert pawl.run("process", "signal", process_id, "go").code == 0
            wait_status(pawl, process_id, "COMPENSATED")
        wanted = {'pawl_process_activations_total{domain="one",outcome="ended"}': 3,
                  'pawl_process_activations_total{domain="one",outcome="suspended"}': 3,
                  'pawl_process_waits_total{domain="one",for="async"}': 3,
                  'pawl_process_steps_total{domain="one",outcome="succeeded"}': 9,  # first, rest and the compensation
                  'pawl_process_steps_total{domain="one",outcome="failed"}': 3,
                  'pawl_process_compensations_total{domain="one"}': 3,
                  'pawl_process_step_seconds_count{domain="one"}': 9}

        def counted():
            text = pawl.http("GET", "/metrics").body.decode()
            return dict(line.rsplit(" ", 1) for line in text.splitlines() if line.startswith("pawl_process_"))

        # The end is counted once it is committed.
        wait_until(lambda: float(counted().get('pawl_process_activations_total{domain="one",outcome="ended"}', 0)) >= 3, what="all ends are counted")
        found = counted()
        assert {name: float(found.get(name, -1)) for name in wanted} == wanted, found
        assert not any('domain="two"' in name and float(value) for name, value in found.items()), found


FINE = {"type": "fine", "domain": "process", "steps": [{"name": "one", "set": {"done": True}}]}


def neighbours_are_fine(pawl):
    for process_id in [start(pawl, "fine") for _ in range(5)]:
        wait_status(pawl, process_id, "COMPLETED")


@test
def a_huge_result_of_a_function_fails_its_step_and_no_pod():
    with Database() as db, Pawl(db) as pawl:
        db.rows("""create schema demo;
            create function demo.much(input jsonb, key uuid) returns jsonb language sql as $$ select to_jsonb(repeat('x', (input ->> 'mb')::integer * 1000000)) $$""")
        define(pawl, FINE)
        define(pawl, {"type": "much", "domain": "process", "on_failure": "compensate", "steps": [
            {"name": "first", "set": {"a": 1}}, {"name": "much", "sql": "demo.much", "input": {"mb": "{{state.mb}}"}, "retry": {"attempts": 1}}]})
        daemon = pawl.serve()
        ids = [start(pawl, "much", {"mb": mb}) for mb in (2, 20, 40, 60, 70)]
        for process_id in ids:
            shown = wait_status(pawl, process_id, "COMPENSATED", "WAITING_FOR_TSQ", "COMPLETED")
            assert shown["status"] == "COMPENSATED" and "much" in shown["error"], shown
        neighbours_are_fine(pawl)
        assert daemon.is_running()


@test
def whatever_a_function_raises_is_a_failure_of_its_step():
    with Database() as db, Pawl(db) as pawl:
        db.rows("""create schema demo;
            create function demo.raise(input jsonb, key uuid) returns jsonb language plpgsql as
              $$ begin raise exception 'no' using errcode = input ->> 'code'; end $$""")
        define(pawl, {"type": "raise", "domain": "process", "on_failure": "compensate", "steps": [
            {"name": "first", "set": {"a": 1}}, {"name": "raise", "sql": "demo.raise", "input": {"code": "{{state.code}}"}, "retry": {"attempts": 1}}]})
        pawl.serve()
        codes = ("28000", "28P01", "3D000", "57P01", "08006", "08007", "40003", "53300", "P0001")
        ids = {code: start(pawl, "raise", {"code": code}) for code in codes}
        for code, process_id in ids.items():
            shown = wait_status(pawl, process_id, "COMPENSATED", "WAITING_FOR_TSQ", "COMPLETED")
            assert shown["status"] == "COMPENSATED" and f"SQLSTATE {code}" in shown["error"], (code, shown)


@test
def a_state_that_grows_past_its_limit_stops_its_process_only():
    with Database() as db, Pawl(db) as pawl:
        define(pawl, FINE)
        define(pawl, {"type": "grow", "domain": "process", "on_failure": "troubleshoot", "steps": [
            {"name": "more", "each": "{{state.list}}", "concurrency": 1, "steps": [
                {"name": "grow", "exec": "head -c 200000 /dev/zero | tr '\\0' x | sed 's/^/\"/; s/$/\"/'", "retry": {"attempts": 1}},
                {"name": "keep", "set": {"all": "{{state.all?}}{{steps.grow}}"}}]}]})
        pawl.serve()
        process_id = start(pawl, "grow", {"list": list(range(10))})
        neighbours_are_fine(pawl)
        shown = wait_status(pawl, process_id, "WAITING_FOR_TSQ", "FAILED", "COMPLETED")
        assert shown["status"] == "WAITING_FOR_TSQ" and "1048576 bytes" in shown["error"], shown["error"]
        assert 0 < len(json.dumps(shown["state"])) < 1048576
        neighbours_are_fine(pawl)
        # From outside: the response is refused, and nothing of it is stored.
        refused = db.rows(f"""select verdict from pawl.process_respond(array[pawl.process_number('{process_id}')], array['more'], array['k'],
            array[jsonb_build_object('large', repeat('x', 900000), 'more', md5('x'))], 'test')""")
        assert refused == ["TOO_LARGE"], refused
        assert db.value("select count(*) from pawl.process_response") == "0"


@test
def a_process_that_fans_out_too_far_is_stopped_with_a_reason():
    with Database() as db, Pawl(db) as pawl:
        define(pawl, FINE)
        define(pawl, {"type": "fan", "domain": "process", "on_failure": "troubleshoot", "steps": [
            {"name": "all", "each": "{{state.list}}", "concurrency": 64, "steps": [{"name": "child", "process": {"type": "fine", "domain": "process"}}]}]})
        pawl.serve()
        process_id = start(pawl, "fan", {"list": list(range(10001))})
        neighbours_are_fine(pawl)
        shown = wait_status(pawl, process_id, "WAITING_FOR_TSQ", "FAILED", "COMPLETED")
        assert shown["status"] == "WAITING_FOR_TSQ" and "has 10001 items" in shown["error"] and "may record 10000" in shown["error"], shown["error"]
        assert db.value("select count(*) from pawl.command c where c.type = 'fine' and c.sender like 'process %'") == "0"


def line_count(folder, name):
    path = os.path.join(folder, name)
    return len(open(path).readlines()) if os.path.exists(path) else 0


def started_at_once(folder, least):
    """How many programs run when no more are started; so many are, however long it takes."""
    seen = []
    wait_until(lambda: line_count(folder, "started") >= least, what=f"{least} programs are started")
    wait_until(lambda: seen.append(line_count(folder, "started")) or (len(seen) > 100 and seen[-1] > 0 and len(set(seen[-100:])) == 1),
               what="no more programs are started")
    return line_count(folder, "started")


def program_of(folder, gate):
    """It counts itself, and ends when the gate is open."""
    return f"echo x >> {folder}/started; cat > {folder}/input.$$; {gate.wait}; echo x >> {folder}/ended"


@test
def inputs_of_steps_share_the_memory_of_their_pod():
    """Inputs of 3.6 MB, 32 programs that want one: a domain has three quarters of 32 MiB, and small inputs are not held up."""
    with tempfile.TemporaryDirectory() as folder, Database() as db, Pawl(db) as pawl:
        gate = Gate(f"{folder}/gate")
        os.chmod(folder, 0o777)
        define(pawl, {"type": "large", "domain": "process", "steps": [{"name": "all", "each": "{{state.items}}", "concurrency": 16, "steps": [
            {"name": "run", "exec": program_of(folder, gate), "input": ["{{state.text}}"] * 4, "timeout": "1h"}]}]})
        define(pawl, {"type": "small", "domain": "process", "steps": [{"name": "run", "exec": "cat", "input": "{{state.text}}"}]})
        pawl.serve()
        large = db.rows("""select pawl.start('large', jsonb_build_object('items', (select jsonb_agg(i) from generate_series(1, 16) i),
                                                                        'text', repeat('x', 900000))) from generate_series(1, 2)""")
        most = (24 << 20) // 3600000
        assert started_at_once(folder, most) == most, line_count(folder, "started")
        wait_status(pawl, start(pawl, "small", {"text": "y"}), "COMPLETED")
        gate.open()
        for process in large:
            wait_status(pawl, process, "COMPLETED")
        assert line_count(folder, "started") == line_count(folder, "ended") == 32


@test
def activations_share_the_memory_of_their_pod():
    """12 processes with records of 9 MB each, resumed at the same moment: a pod claims what 64 MiB hold, and the rest afterwards."""
    with tempfile.TemporaryDirectory() as folder, Database() as db, Pawl(db) as pawl:
        gate = Gate(f"{folder}/gate")
        os.chmod(folder, 0o777)
        db.rows("""create schema demo; create function demo.large(input jsonb, key uuid) returns jsonb language sql
                   as $$ select to_jsonb(repeat('x', 1000000)) $$""")
        steps = [{"name": f"record{n}", "sql": "demo.large"} for n in range(9)]
        define(pawl, {"type": "large", "domain": "process", "steps": steps + [
            {"name": "go", "wait": {"response": "go"}}, {"name": "run", "exec": program_of(folder, gate)}]})
        pawl.serve()
        large = [start(pawl, "large") for _ in range(12)]
        for process in large:
            wait_status(pawl, process, "WAITING_FOR_ASYNC")
        db.rows("select pawl.signal(c.command_id, 'go') from pawl.command c where c.type = 'large'")
        most = started_at_once(folder, 4)
        assert most <= 8, most
        gate.open()
        for process in large:
            wait_status(pawl, process, "COMPLETED")
        assert line_count(folder, "started") == line_count(folder, "ended") == 12


@test
def activations_share_the_memory_of_what_they_add():
    """16 processes add 4.5 MB each, then run a program that waits. Not all of them may hold that much at the same time: one at least is ended and begun again."""
    with tempfile.TemporaryDirectory() as folder, Database() as db, Pawl(db) as pawl:
        gate = Gate(f"{folder}/gate")
        os.chmod(folder, 0o777)
        db.rows("""create schema demo; create function demo.large(input jsonb, key uuid) returns jsonb language sql
                   as $$ select to_jsonb(repeat('x', 900000)) $$""")
        define(pawl, {"type": "adds", "domain": "process", "steps": [
            *[{"name": f"record{n}", "sql": "demo.large"} for n in range(5)], {"name": "run", "exec": program_of(folder, gate)}]})
        pawl.serve()
        adds = [start(pawl, "adds") for _ in range(16)]
        wait_until(lambda: db.value("select count(*) from pawl.event e where e.details ->> 'reason' = 'released by its worker: the attempt does not count'") != "0",
                   what="one is begun again")
        gate.open()
        for process in adds:
            wait_status(pawl, process, "COMPLETED")
        assert line_count(folder, "started") == line_count(folder, "ended") == 16
        assert db.value("select count(*) from pawl.process_step s where s.step like 'record%'") == "80"


@test
def nested_branches_share_the_threads_of_their_pod():
    """16 items with 16 branches each: 256 programs, of which a domain runs 49 at once: on 48 of the 64 threads, and on that of the activation."""
    with tempfile.TemporaryDirectory() as folder, Database() as db, Pawl(db) as pawl:
        gate = Gate(f"{folder}/gate")
        os.chmod(folder, 0o777)
        branches = {f"b{n}": [{"name": f"run{n}", "exec": program_of(folder, gate)}] for n in range(16)}
        define(pawl, {"type": "wide", "domain": "process", "steps": [{"name": "all", "each": "{{state.items}}", "concurrency": 16,
                                                 "steps": [{"name": "side", "parallel": branches}]}]})
        pawl.serve()
        process = start(pawl, "wide", {"items": list(range(16))})
        assert started_at_once(folder, 49) == 49, line_count(folder, "started")
        gate.open()
        wait_status(pawl, process, "COMPLETED")
        assert line_count(folder, "started") == line_count(folder, "ended") == 256


@test
def a_process_at_its_limit_of_records_is_compensated():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        seen = os.path.join(folder, "seen")
        cash = {"name": "cash", "exec": f"echo cash >> {seen}; echo 1", "compensate": {"exec": f"echo back >> {seen}; echo 1"}}
        each = {"name": "all", "each": "{{state.list}}", "steps": [{"name": "n", "set": {"n": "{{index}}"}}]}
        _, ended = run(pawl, {"type": "full", "on_failure": "compensate", "steps": [cash, each]}, "COMPENSATED", "WAITING_FOR_TSQ",
                       state={"list": [0] * 10000})
        assert ended["status"] == "COMPENSATED" and "10000" in ended["error"], ended["error"]
        assert lines(seen) == ["cash", "back"] and len(ended["steps"]) == 2, (lines(seen), len(ended["steps"]))
        wait = {"name": "w", "wait": {"response": "go"}}
        process, _ = run(pawl, {"type": "brim", "on_failure": "compensate", "steps": [cash, wait, {"name": "n", "set": {"n": 1}}]},
                         "WAITING_FOR_ASYNC")
        db.rows(f"""insert into pawl.process_step (id, step, attempt, result, started_at, ended_at)
                    select c.id, 'n-' || n, 1, 'null', now(), now() from pawl.command c, generate_series(1, 9999) n
                    where c.command_id = '{process}'""")
        cli(pawl, "signal", process, "go")
        ended = f"select o.status || ' ' || o.error from pawl.outcome o join pawl.command c using (id) where c.command_id = '{process}'"
        wait_until(lambda: db.rows(ended), what="it has ended")  # thousands of steps take long to show
        assert db.value(ended).startswith("FAILED step w: ") and "10000" in db.value(ended), db.value(ended)
        assert lines(seen) == ["cash", "back"] * 2, lines(seen)


@test
def children_are_nested_at_most_100_levels():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        bomb = {"type": "bomb", "on_failure": "fail", "steps": [{"name": "c", "process": {"type": "bomb", "domain": "edge", "state": {}}}]}
        _, ended = run(pawl, bomb, "FAILED", "WAITING_FOR_TSQ", "COMPLETED")
        assert ended["status"] == "FAILED", ended
        assert db.value("select count(*) || ' ' || max(depth) from pawl.process") == "101 100"
        assert db.value("select count(*) from pawl.outcome where error like '%nested at most 100 levels%'") != "0"


main()
