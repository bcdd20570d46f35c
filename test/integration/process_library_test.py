#!/usr/bin/env python3
"""process_library - processes written in C with libpawl: replayed after a kill at each point, changed functions, lost leases, start, signal."""
import concurrent.futures
import hashlib
import os
import signal
import tempfile
import uuid

from pawl_test import Database, Pawl, Process, main, setting, test, wait_until
from process_cli import show
from servers import Cluster

PROGRAM = os.path.join(setting("PAWL_BUILD"), "test", "integration", "library_process")
HEARD_MS = 15000  # a lease whose heartbeats, one each third of it, a test waits for
FORWARD = ["reserve", "count", "began", "number", "note", "approval", "rest", "charge", "ship"]


class Shop:
    """One order in a domain of its own, whose type has the same name, with the program that runs it."""

    def __init__(self, db, pawl, folder, domain):
        self.db, self.pawl, self.domain, self.id = db, pawl, domain, str(uuid.uuid4())
        self.effects = os.path.join(folder, domain)
        self.program = None

    def start(self, state="{}", *deadline):
        done = self.pawl_library("start", self.domain, state, self.id, *deadline)
        assert done == (0, f"{self.id} new"), done
        return self

    def pawl_library(self, *arguments):
        process = Process([PROGRAM, self.db.url, *arguments])
        code = process.wait()
        return code, " ".join(process.stdout or process.stderr)

    def run(self, variant="", crash_at=None, lease_ms=60000):
        environment = {**os.environ, "EFFECTS": self.effects, "LEASE_MS": str(lease_ms)}
        if crash_at:
            environment["CRASH_AT"] = str(crash_at)
        self.program = Process([PROGRAM, self.db.url, "run", self.domain, variant], env=environment)
        self.pawl.processes.append(self.program)
        return self.program

    def leases_end(self):
        """Those of programs that were killed; that of the present one is long enough for any stall."""
        self.db.rows("update pawl.lease l set until = pawl.now() from pawl.domain_name n where n.id = l.domain_id and l.until > pawl.now() "
                     f"and n.name = 'process:{self.domain}' and split_part(l.worker, ':', 2) <> '{self.program.pid}'")

    def approve(self, key="1"):
        return self.pawl_library("signal", self.id, "approval", '{"approved": true}', key)

    def show(self):
        return self.pawl.http("GET", f"/v1/processes/{self.id}").json

    def wait(self, *statuses):
        return wait_until(lambda: (lambda s: s if s["status"] in statuses else None)(self.show()),
                          what=f"{self.domain} is {statuses}")

    def settle(self):
        items = self.pawl.http("POST", f"/v1/domains/{self.domain}/claim", body={"limit": 9}).json["items"]
        for item in items:
            self.pawl.http("POST", f"/v1/domains/{self.domain}/settle", body={"items": [
                {"command_id": item["command_id"], "lease": item["lease"], "outcome": "complete", "result": {"paid": item["payload"]}}]})

    def lines(self):
        if not os.path.exists(self.effects):
            return []
        with open(self.effects, encoding="utf-8") as file:
            return file.read().splitlines()


class Site:
    def __enter__(self):
        self.db, self.folder = Database().__enter__(), tempfile.TemporaryDirectory()
        self.pawl = Pawl(self.db).__enter__()
        self.pawl.serve()
        self.db.rows("create table counted (key uuid primary key)")
        return self

    def __exit__(self, *error):
        self.pawl.__exit__(*error)
        self.db.__exit__(*error)
        self.folder.cleanup()

    def shop(self, domain):
        return Shop(self.db, self.pawl, self.folder.name, domain)


@test
def a_database_that_refuses_the_login_costs_a_step_in_c_no_attempt():
    with Cluster() as cluster, Pawl(cluster.url()) as pawl, tempfile.TemporaryDirectory() as folder:
        assert pawl.run("migrate").code == 0
        cluster.rows("create role lib superuser login")
        cluster.rows("select pawl.start('shop', p_domain => 'shop')")
        effects, log = os.path.join(folder, "shop"), os.path.join(cluster.folder, "log")
        program = Process([PROGRAM, cluster.url(user="lib"), "run", "shop", "asleep"],
                          env={**os.environ, "EFFECTS": effects, "LEASE_MS": "5000"})  # it cannot give its lease back
        pawl.processes.append(program)
        wait_until(lambda: os.path.exists(effects), what="the step runs")
        cluster.rows("alter role lib nologin")
        cluster.rows("select pg_terminate_backend(pid) from pg_stat_activity where usename = 'lib'")

        def refusals():
            with open(log, encoding="utf-8") as file:
                return file.read().count("not permitted to log in")

        wait_until(lambda: refusals() >= 3, what="its logins are refused")
        cluster.rows("alter role lib login")
        wait_until(lambda: cluster.rows("select pawl.process_status(id) from pawl.process") in (["COMPLETED"], ["WAITING_FOR_TSQ"]), what="it has ended")
        assert cluster.rows("select pawl.process_status(id) from pawl.process") == ["COMPLETED"]
        assert cluster.rows("select verdict, attempt from pawl.process_step") == ["done|1"]
        assert program.stop() == 0, program.stderr


@test
def a_step_in_c_whose_result_cannot_be_recorded_has_happened_and_is_not_run_again():
    with Site() as site:
        shop = site.shop("heavy").start()
        shop.run("heavy")
        shown = shop.wait("WAITING_FOR_TSQ")
        assert "step heavy-5 has run, and its result cannot be recorded" in shown["error"], shown["error"]
        assert [s["name"] for s in shown["steps"]][-1] == "heavy-5:done", [s["name"] for s in shown["steps"]]
        for _ in range(2):
            assert site.pawl.run("process", "retry", shop.id).code == 0
            shop.wait("WAITING_FOR_TSQ")
        assert [line.split()[0] for line in shop.lines()] == [f"heavy-{n}" for n in range(1, 6)], shop.lines()
        assert shop.program.stop() == 0, shop.program.stderr


@test
def a_process_in_c_survives_a_kill_at_each_point():
    with Site() as site:
        def order(number):
            shop, killed = site.shop(f"shop{number}").start(), 0
            assert shop.approve() == (0, "STORED")
            shop.run(crash_at=number)

            def step():
                nonlocal killed
                if not shop.program.is_running():
                    assert not killed, shop.program.stderr
                    killed = 1
                    shop.run()
                if killed:
                    shop.leases_end()
                shop.settle()
                shown = shop.show()
                return shown if shown["ended_at"] or shown["status"] == "WAITING_FOR_TSQ" else None

            shown = wait_until(step, timeout=600, what=f"order {number} ended")
            assert shop.program.stop() == 0, shop.program.stderr
            return shown, shop.lines(), killed

        numbers = range(1, 17)
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            runs = list(pool.map(order, numbers))
        for number, (shown, lines, killed) in zip(numbers, runs):
            assert shown["status"] == "COMPLETED" and shown["result"]["stock"] == 1, (number, shown)
            steps = {s["name"]: s["result"] for s in shown["steps"]}
            assert [s["name"] for s in shown["steps"]] == FORWARD, (number, shown["steps"])
            assert shown["result"]["number"] == steps["number"] and shown["result"]["began"] == steps["began"] // 1000
            for name in ("reserve", "ship"):  # again only after a kill between effect and record, and then with the same key
                made = [line for line in lines if line.startswith(name + " ")]
                assert 1 <= len(made) <= 1 + killed and len(set(made)) == 1, (number, lines)
            assert len(lines) <= 2 + killed, (number, lines)
        assert sum(killed for _, _, killed in runs) >= 12
        assert site.db.value("select count(*) from counted") == str(len(numbers))


@test
def a_changed_function_is_found_before_anything_runs():
    with Site() as site:
        words = {"swapped": 'call 1 was step "reserve" when it was recorded, and is "count" now',
                 "input": 'step "reserve" was recorded with another input',
                 "kind": 'step "reserve" was a step when it was recorded, and is a sleep now',
                 "short": 'the function ended before step "reserve", which is recorded'}
        for variant, expected in words.items():
            shop = site.shop(variant).start()
            shop.run()
            before = shop.wait("WAITING_FOR_ASYNC")
            assert shop.program.stop() == 0, shop.program.stderr
            lines = shop.lines()
            shop.run(variant)
            assert shop.approve() == (0, "RESUMED")
            shown = shop.wait("WAITING_FOR_TSQ")
            assert shown["error"] == f"the history differs: {expected}", shown["error"]
            assert (shop.lines(), shown["steps"]) == (lines, before["steps"]), "nothing was run or recorded"
            assert shop.program.stop() == 0, shop.program.stderr
            # With the function that was recorded, an operator has it tried again.
            shop.run("no-charge")
            assert site.pawl.run("process", "retry", shop.id).code == 0
            assert shop.wait("COMPLETED")["result"]["stock"] == 1
            assert shop.program.stop() == 0, shop.program.stderr


@test
def a_result_that_is_passed_on_is_the_same_input_in_a_replay():
    with Site() as site:
        shop = site.shop("passes")
        shop.start().run("passes-on")
        wait_until(lambda: shop.show()["waits_for"] == {"approval": 1}, what="it waits")
        assert shop.pawl_library("signal", shop.id, "approval", '{"z":  1.0, "a": "\\u0062"}', "1")[0] == 0
        shown = shop.wait("COMPLETED", "WAITING_FOR_TSQ")
        assert (shown["status"], names_of(shown)) == ("COMPLETED", ["reserve", "pack", "approval", "ship"]), shown


@test
def a_step_sends_a_command_in_its_transaction():
    with Site() as site:
        shop = site.shop("sends").start()
        shop.run("sends")
        assert [s["name"] for s in shop.wait("WAITING_FOR_ASYNC")["steps"]][:2] == FORWARD[:2]
        wait_until(lambda: shop.db.value("select count(*) from pawl.command c join pawl.domain_name n on n.id = c.domain_id and n.name = 'parcels'") == "1",
                   what="the command was sent")
        assert shop.program.stop() == 0, shop.program.stderr


@test
def a_name_that_is_called_twice_is_found():
    with Site() as site:
        shop = site.shop("twice").start()
        shop.run("twice")
        assert shop.wait("WAITING_FOR_TSQ")["error"] == (
            'step "reserve" is call 1 and call 3: each call of a process must have a name of its own')
        assert len(shop.lines()) == 1 and shop.program.stop() == 0, shop.program.stderr


@test
def a_name_that_a_loop_uses_twice_is_found_in_the_activation_that_calls_it():
    with Site() as site:
        shop = site.shop("payout").start()
        shop.run("payout")
        assert shop.wait("COMPLETED", "WAITING_FOR_TSQ")["error"] == (
            'step "pay" is call 1 and call 2: each call of a process must have a name of its own')
        assert len(shop.lines()) == 1 and shop.program.stop() == 0, shop.program.stderr
        # With names of their own all three are paid.
        shop = site.shop("payout-each").start()
        shop.run("payout-each")
        assert [s["name"] for s in shop.wait("COMPLETED", "WAITING_FOR_TSQ")["steps"]] == ["pay-1", "pay-2", "pay-3"]
        assert len(set(shop.lines())) == 3 and shop.program.stop() == 0, shop.program.stderr


@test
def a_command_that_timed_out_is_not_sent_again_by_a_retry():
    with Site() as site:
        shop = site.shop("impatient").start()
        assert shop.approve() == (0, "STORED")
        shop.run("impatient")
        assert "no outcome came in time" in shop.wait("WAITING_FOR_TSQ")["error"]
        shop.settle()  # it completes late
        assert site.pawl.run("process", "retry", shop.id).code == 0
        shown = shop.wait("COMPLETED", "WAITING_FOR_TSQ")
        assert shown["status"] == "COMPLETED", shown
        assert site.db.value("select count(*) from pawl.command where type = 'charge'") == "1"
        assert shop.program.stop() == 0, shop.program.stderr


@test
def a_retry_leaves_failures_that_a_function_in_c_has_handled():
    with Site() as site:
        for by in ("step", "command", "child"):
            shop = site.shop("handled-" + by).start()
            shop.run("handled-" + by)
            if by != "step":
                shop.wait("WAITING_FOR_REPLY")
                domain = ("process:" if by == "child" else "") + shop.domain
                items = wait_until(lambda: site.pawl.http("POST", f"/v1/domains/{domain}/claim", body={"types": ["charge"], "limit": 1}).json["items"],
                                   what="it has sent")
                site.pawl.http("POST", f"/v1/domains/{domain}/settle", body={"items": [
                    {"command_id": items[0]["command_id"], "lease": items[0]["lease"], "outcome": "reject"}]})
            assert shop.wait("WAITING_FOR_TSQ")["error"].endswith("mail is broken")
            with open(shop.effects + ".fixed", "w", encoding="utf-8"):
                pass
            assert site.pawl.run("process", "retry", shop.id).code == 0
            shown = wait_until(lambda: shop.show()["ended_at"] and shop.show(), what="it ended")
            assert (shown["status"], shown["result"]) == ("COMPLETED", "invoice"), shown
            expected = ["card"] * (by == "step") + ["invoice", "mail", "mail"]
            assert [line.split()[0] for line in shop.lines()] == expected, shop.lines()
            assert shop.program.stop() == 0, shop.program.stderr
        assert site.db.value("select count(*) from pawl.command where type = 'charge'") == "2"


@test
def a_function_in_c_that_fails_by_itself_says_why():
    with Site() as site:
        shop = site.shop("disapproved").start()
        shop.run("disapproved")
        assert shop.wait("WAITING_FOR_TSQ")["error"] == "it was not approved"
        assert shop.program.stop() == 0, shop.program.stderr


@test
def calls_that_make_no_sense_are_named():
    words = {"silent": "the function gave no reason", "sleep": 'sleep "rest": its time must not be negative',
             "wait": 'wait "answer": timeout must not be negative', "send": 'step "ask": timeout must not be negative',
             "both": 'step "pack": it has a body and a tx_body, and needs one of them',
             "neither": 'step "": it needs a body or a tx_body'}
    with Site() as site:
        shops = {variant: site.shop(variant).start() for variant in words}
        for variant, shop in shops.items():
            shop.run(variant)
        got = {variant: shop.wait("WAITING_FOR_TSQ")["error"] for variant, shop in shops.items()}
        assert got == words, got
        for shop in shops.values():
            assert shop.program.stop() == 0, shop.program.stderr


@test
def steps_in_c_are_retried_refused_timed_out_and_canceled():
    with Site() as site:
        flaky = site.shop("flaky").start()
        flaky.run("flaky")
        flaky.approve()
        wait_until(lambda: flaky.settle() or flaky.show()["ended_at"], what="it ended")
        shown = flaky.show()
        assert shown["status"] == "COMPLETED", shown
        assert [(s["attempt"], s["error"]) for s in shown["steps"] if s["name"] == "ship"] == [
            (1, "attempt 1 of 5"), (2, "attempt 2 of 5"), (3, None)], shown["steps"]
        late, canceled, refused = (site.shop(name).start() for name in ("late", "canceled", "refused"))
        for shop in (late, canceled, refused):
            shop.run(shop.domain)
        canceled.wait("WAITING_FOR_ASYNC")
        assert site.pawl.run("process", "cancel", canceled.id, "--compensate", "--operator", "ann", "--reason", "customer called").code == 0
        refused.approve()
        wait_until(lambda: refused.settle() or refused.show()["ended_at"], what="it ended")
        for shop, reason in ((late, "no approval came"), (canceled, "canceled by ann: customer called"), (refused, "out of boxes")):
            shown = shop.wait("COMPENSATED")
            assert (shown["error"], shown["steps"][-1]["name"]) == (reason, "release"), shown
            assert [line.split()[0] for line in shop.lines()].count("release") == 1


def deadline_set(site, shop):
    """As if its deadline passed now: a busy machine may take longer than any deadline to come to this point."""
    site.db.rows(f"update pawl.process set deadline = pawl.now(), deadline_due = pawl.now() where id = pawl.process_number('{shop.id}')")


def large_run(site, variant, state="'{}'"):
    """The orders of these variants need more memory than an activation has, if it keeps what it does not need any more."""
    shop = site.shop(variant)
    site.db.rows(f"select pawl.start('{variant}', {state}, '{shop.id}', '{variant}')")
    shop.run(variant)
    shown = wait_until(lambda: not shop.program.is_running() or (lambda s: s if s["ended_at"] or s["status"] == "WAITING_FOR_TSQ" else None)(shop.show()),
                       timeout=300, what=f"{variant} ended")
    assert shop.program.is_running(), shop.program.stderr
    assert shown["status"] == "COMPLETED", (shown["status"], shown["error"])
    assert shop.program.stop() == 0, shop.program.stderr
    return shop, shown


@test
def a_function_in_c_is_called_any_number_of_times_in_one_activation():
    with Site() as site:
        shop, shown = large_run(site, "large-events")
        assert shown["result"] == 20 and 21 <= len(shop.lines()) < 24, (shown["result"], shop.lines())


@test
def a_function_in_c_says_its_result_any_number_of_times():
    with Site() as site:
        assert large_run(site, "large-results")[1]["result"] == 20


def hashed(text):
    return hashlib.blake2b(text, digest_size=16)


@test
def a_function_in_c_sends_many_large_payloads():
    with Site() as site:
        worker = site.pawl.start("work", "large-sends", "--noop")
        large_run(site, "large-sends")
        assert worker.stop() == 0, worker.stderr
        # The hash is that of the hashes of all parts; JSON is hashed by its kind and value.
        parts = (b"large-sends", b"/", b"charge", b"/", b"\x05" + b"x" * 3999998)
        mark = "16|command|" + hashed(b"".join(hashed(part).digest() for part in parts)).hexdigest()[:16]
        assert site.db.value("select call, call_kind, input_hash from pawl.process_step where step = 'send-16' and kind = 'step'") == mark


@test
def a_function_in_c_patches_a_large_state_in_several_activations():
    with Site() as site:
        shop, shown = large_run(site, "large-patches", "jsonb_build_object('text', repeat('x', 1000000))")
        assert shown["state"]["a"] == 1 and len(shop.lines()) > 2, shop.lines()


@test
def a_deadline_ends_a_process_in_c_or_has_it_compensated():
    with Site() as site:
        late = "the deadline of the process has passed"
        waits, broken = (site.shop(name).start("{}", "1h", "compensate") for name in ("waits", "broken"))
        for shop in (waits, broken):
            shop.run()
            shop.wait("WAITING_FOR_ASYNC")
        broken.program.kill()
        for shop in (waits, broken):
            deadline_set(site, shop)
        shown = waits.wait("COMPENSATED")
        assert (shown["error"], shown["steps"][-1]["name"], shown["on_deadline"]) == (late, "release", "compensate"), shown
        assert [line.split()[0] for line in waits.lines()].count("release") == 1
        # Its worker is gone: it is queued, and compensated when one is there.
        assert broken.wait("PENDING", "COMPENSATED")["status"] == "PENDING"
        broken.run(crash_at=7)  # killed after the effect of its compensation, before its record
        wait_until(lambda: not broken.program.is_running(), timeout=120, what="it is killed")
        broken.run()
        broken.leases_end()
        shown = broken.wait("COMPENSATED")
        assert shown["error"] == late, shown
        released = [line for line in broken.lines() if line.startswith("release ")]
        assert len(released) == 2 and len(set(released)) == 1, released
        # While a step runs, which learns of it by its heartbeat.
        for action, status in (("fail", "FAILED"), ("troubleshoot", "WAITING_FOR_TSQ")):
            shop = site.shop(action).start("{}", "1h", action)
            shop.run("stuck", lease_ms=HEARD_MS)
            wait_until(lambda: shop.lines(), what="the step runs")
            deadline_set(site, shop)
            shown = shop.wait(status)
            assert (shown["error"], shown["steps"]) == (late, []), shown
            assert shop.program.stop() == 0, shop.program.stderr
            assert (shop.show()["status"], shop.show()["steps"]) == (status, []), "what it did is recorded nowhere"


@test
def a_command_that_completes_while_its_process_in_c_is_canceled_is_known_to_it():
    with Site() as site:
        for number, outcome in enumerate(("complete", "reject")):
            shop = site.shop(f"open{number}").start()
            shop.run()
            shop.approve()
            shop.wait("WAITING_FOR_REPLY")
            item = site.pawl.http("POST", f"/v1/domains/{shop.domain}/claim", body={"limit": 1}).json["items"][0]
            assert site.pawl.run("process", "cancel", shop.id, "--compensate").code == 0
            wait_until(lambda: shop.show()["waits_for"] == {"reply of charge": 1} and shop.show()["status"] == "COMPENSATING", what="it waits")
            assert not [line for line in shop.lines() if line.startswith("release ")], shop.lines()
            site.pawl.http("POST", f"/v1/domains/{shop.domain}/settle", body={"items": [
                {"command_id": item["command_id"], "lease": item["lease"], "outcome": outcome}]})
            shown = shop.wait("COMPENSATED")
            assert [(s["name"], s["error"] is None) for s in shown["steps"]][-2:] == [("charge", outcome == "complete"), ("release", True)], shown
            assert shop.program.stop() == 0, shop.program.stderr


@test
def a_runner_that_lost_its_lease_writes_nothing():
    with Site() as site:
        shop = site.shop("stuck").start()
        first = shop.run("stuck", lease_ms=HEARD_MS)
        wait_until(lambda: shop.lines(), what="the step runs")
        first.send(signal.SIGSTOP)
        site.db.rows("update pawl.lease set until = now() - interval '1 s'")
        second = shop.run()
        shown = shop.wait("WAITING_FOR_ASYNC")
        first.send(signal.SIGCONT)  # its step ends now; what it writes is refused
        assert first.stop() == 0, first.stderr
        assert shop.show()["steps"] == shown["steps"], "the old runner wrote"
        shop.approve()
        wait_until(lambda: shop.settle() or shop.show()["ended_at"], what="it ended")
        assert shop.show()["status"] == "COMPLETED"
        assert second.stop() == 0, second.stderr


@test
def start_and_signal_in_c_are_idempotent_and_refusals_name_the_field():
    with Site() as site:
        shop = site.shop("shop").start('{"a": 1}')
        assert shop.pawl_library("start", "shop", '{"a": 1}', shop.id) == (0, f"{shop.id} known")
        for arguments, words in ((["start", "shop", '{"a": 2}', shop.id], "exists already: state differs"), (["start", "shop", "[1]", shop.id], "state must be a JSON object"),
                                 (["start", "no domain", "{}", shop.id], "must be 1 to"),
                                 (["start", "shop", '{"a": 1}', shop.id, "1h", "fail"], 'deadline is "3600000 ms, fail", it was sent as none'),
                                 (["start", "shop", "{}", shop.id, "soon", "fail"], "deadline must be a duration from 1ms to 3650d"),
                                 (["start", "shop", "{}", shop.id, "1h", "stop"], "on_deadline must be troubleshoot, compensate or fail"),
                                 (["signal", shop.id, "no name", "{}", "1"], "name must be"), (["signal", "x", "a", "{}", "1"], "process_id must be a UUID"),
                                 (["signal", str(uuid.uuid4()), "a", "{}", "1"], "not found")):
            code, text = shop.pawl_library(*arguments)
            assert code == 1 and words in text, (arguments, text)
        assert [shop.approve()[1], shop.approve()[1], shop.approve("2")[1]] == ["STORED", "REPEATED", "STORED"]
        # Started from SQL, HTTP and C at once it is one process; so it is with a deadline.
        for time in ("1h", "2999-01-01T00:00:00Z"):
            dated = str(uuid.uuid4())
            assert shop.pawl_library("start", "shop", "{}", dated, time, "fail") == (0, f"{dated} new")
            answer = site.pawl.http("POST", "/v1/processes", {"type": "shop", "domain": "shop", "process_id": dated, "deadline": time, "on_deadline": "fail"})
            assert (answer.status, answer.headers.get("idempotency-replayed")) == (201, "true"), answer.body
            site.db.rows(f"select pawl.start('shop', '{{}}', '{dated}', 'shop', {'p_deadline' if time == '1h' else 'p_deadline_at'} => '{time}', p_on_deadline => 'fail')")
            assert site.pawl.run("process", "start", "shop", "--domain", "shop", "--id", dated, "--deadline", time, "--on-deadline", "fail").code == 0
        both = str(uuid.uuid4())
        with concurrent.futures.ThreadPoolExecutor(9) as pool:
            made = [pool.submit(shop.pawl_library, "start", "shop", "{}", both) for _ in range(3)]
            made += [pool.submit(site.db.rows, f"select pawl.start('shop', '{{}}', '{both}', 'shop')") for _ in range(3)]
            made += [pool.submit(site.pawl.http, "POST", "/v1/processes", {"type": "shop", "domain": "shop", "process_id": both}) for _ in range(3)]
            made = [one.result() for one in made]
        assert all(code == 0 for code, _ in made[:3]) and all(answer.status == 201 for answer in made[6:]), made
        assert site.db.value(f"select count(*) from pawl.process p join pawl.command c on c.id = p.id where c.command_id = '{both}'") == "1"


@test
def the_example_in_c_runs_an_order():
    with Site() as site:
        program = Process([os.path.join(setting("PAWL_BUILD"), "examples/c/example_process"), site.db.url])
        site.pawl.processes.append(program)
        shop = site.shop("bank")  # for its commands
        shop.id = site.pawl.run("process", "start", "c-order", '{"item": "lamp", "amount": 5}', "--domain", "c-shop", "--json").json["process_id"]
        shop.wait("WAITING_FOR_ASYNC")
        assert shop.approve() == (0, "RESUMED")
        wait_until(lambda: shop.settle() or shop.show()["ended_at"], what="it ended")
        assert shop.show()["status"] == "COMPLETED" and shop.show()["result"]["began_ms"] > 0, shop.show()
        assert site.db.value("select string_agg(what, ' ' order by what) from noted") == "reserved shipped"
        shop.id = site.pawl.run("process", "start", "c-order", '{"item": "lamp"}', "--domain", "c-shop", "--json").json["process_id"]
        shop.wait("WAITING_FOR_ASYNC")
        refusal = '{"approved": false, "note": "not true"}'
        assert site.pawl.run("process", "signal", shop.id, "approval", refusal).code == 0
        wait_until(lambda: shop.show()["ended_at"], what="it ended")
        assert (shop.show()["status"], shop.show()["error"]) == ("COMPENSATED", "it was not approved"), shop.show()
        assert site.db.value("select string_agg(what, ' ' order by what) from noted") == "released reserved reserved shipped"
        assert program.stop() == 0, program.stderr


def signaled(shop, name):
    assert shop.pawl_library("signal", shop.id, name, "{}", name)[0] == 0


def waiting(shop, *names, variant="changed-0"):
    """A process of this program that has got these signals and waits for the next one."""
    shop.start().run(variant)
    for name in names:
        signaled(shop, name)
    following = {(): "go", ("go",): "end", ("go", "end"): "received"}[names]
    wait_until(lambda: shop.show()["waits_for"] == {following: 1}, what=f"{shop.domain} waits for {following}")
    assert shop.program.stop() == 0, shop.program.stderr
    return shop


def names_of(shown):
    return [s["name"] for s in shown["steps"]]


@test
def a_change_with_a_version_sends_no_process_in_c_to_troubleshooting():
    old, new = ["pack", "go", "end", "ship", "received"], ["pack", "go", "label", "print", "end", "ship", "received"]
    with Site() as site:
        before, at, after = waiting(site.shop("before")), waiting(site.shop("at"), "go"), waiting(site.shop("after"), "go", "end")
        for shop, names, expected in ((before, ("go", "end", "received"), new), (at, ("end", "received"), old), (after, ("received",), old)):
            shop.run("changed-1")
            for name in names:
                signaled(shop, name)
            shown = shop.wait("COMPLETED", "WAITING_FOR_TSQ")
            assert (shown["status"], names_of(shown)) == ("COMPLETED", expected), shown
            assert shop.program.stop() == 0, shop.program.stderr
        rows = site.db.rows("select call, call_kind, result from pawl.process_step where step in ('label', 'print') order by call")
        assert rows == ["2|version|1", "3|step|1"], rows


@test
def a_version_in_c_is_the_same_after_a_kill_at_each_point():
    with Site() as site:
        def order(number):
            shop, killed = waiting(site.shop(f"kill{number}")), 0
            shop.run("changed-1", crash_at=number)
            for name in ("go", "end", "received"):
                signaled(shop, name)

            def step():
                nonlocal killed
                if not shop.program.is_running():
                    assert not killed, shop.program.stderr
                    killed = 1
                    shop.run("changed-1")
                if killed:
                    shop.leases_end()
                shown = shop.show()
                return shown if shown["ended_at"] or shown["status"] == "WAITING_FOR_TSQ" else None

            shown = wait_until(step, timeout=600, what=f"order {number} ended")
            assert shop.program.stop() == 0, shop.program.stderr
            assert (shown["status"], names_of(shown)) == ("COMPLETED", ["pack", "go", "label", "print", "end", "ship", "received"]), (number, shown)
            return killed

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(order, range(1, 9))) >= 6


@test
def a_recorded_version_is_passed_over_when_its_code_is_deleted():
    with Site() as site:
        shop = waiting(site.shop("gone"), "go", variant="changed-1")
        shop.run("changed-gone")
        for name in ("end", "received"):
            signaled(shop, name)
        shown = shop.wait("COMPLETED", "WAITING_FOR_TSQ")
        assert (shown["status"], names_of(shown)) == ("COMPLETED", ["pack", "go", "label", "print", "end", "ship", "received"]), shown
        assert shop.program.stop() == 0, shop.program.stderr
        last = site.shop("last").start()  # as the last record
        last.run("ending-1", crash_at=3)
        wait_until(lambda: not last.program.is_running(), what="it is killed")
        assert names_of(last.show()) == ["pack", "label"]
        last.run("ending-gone")
        last.leases_end()
        assert last.wait("COMPLETED", "WAITING_FOR_TSQ")["status"] == "COMPLETED", last.show()
        assert last.program.stop() == 0, last.program.stderr
        bad = site.shop("bad").start()
        bad.run("ending-0")
        assert bad.wait("WAITING_FOR_TSQ")["error"] == 'version "label": newest must be from 1, got 0'
        assert bad.program.stop() == 0, bad.program.stderr


@test
def an_older_program_in_c_gives_a_process_of_a_newer_one_back():
    with Site() as site:
        shop = waiting(site.shop("newer"), "go", variant="changed-2")
        shop.run("changed-1")
        for name in ("end", "received"):
            signaled(shop, name)
        reason = 'change "label" of the process is version 2, and this worker knows versions up to 1'
        shown = wait_until(lambda: (lambda s: s if reason in str(s["audit"]) else None)(shop.show()), what="it was given back")
        assert shown["status"] in ("PENDING", "IN_PROGRESS"), shown
        assert shop.program.stop() == 0, shop.program.stderr
        shop.run("changed-2")
        shown = shop.wait("COMPLETED", "WAITING_FOR_TSQ")
        assert (shown["status"], names_of(shown)[2:4]) == ("COMPLETED", ["label", "print"]), shown
        assert shop.program.stop() == 0, shop.program.stderr


@test
def a_canceled_process_in_c_records_no_version():
    with Site() as site:
        shop = waiting(site.shop("canceled"))
        shop.run("changed-1", crash_at=1)  # behind the wait, before it asks
        signaled(shop, "go")
        wait_until(lambda: not shop.program.is_running(), what="it is killed")
        assert site.pawl.run("process", "cancel", shop.id, "--compensate").code == 0
        shop.run("changed-1", crash_at=9)  # after the effect of its compensation, before its record
        shop.leases_end()
        wait_until(lambda: not shop.program.is_running(), what="it is killed")
        shop.run("changed-1")
        shop.leases_end()
        shown = shop.wait("COMPENSATED", "WAITING_FOR_TSQ")
        assert (shown["status"], names_of(shown)) == ("COMPENSATED", ["pack", "go", "unpack"]), shown
        assert shop.program.stop() == 0, shop.program.stderr


@test
def a_process_in_c_lives_many_lives_under_kills():
    """Each event is counted once, in order; nothing but keys grows with the lives."""
    most = 1000
    with Site() as site:
        shop = site.shop("lives").start(f'{{"sum": 0, "most": {most}}}')
        site.db.rows(f"""select pawl.signal('{shop.id}', 'event', jsonb_build_object('n', n), 'event-' || n, 'lives') from generate_series(1, {most}) n""")
        kills, life = 0, 0

        def run():
            shop.run("lives", None if kills >= 40 else 3 + 11 * (kills % 7))
            shop.leases_end()

        run()

        def step():
            nonlocal kills, life
            if not shop.program.is_running():
                kills += 1
                run()
            shown = site.db.rows("select life, (select count(*) from pawl.process_step), pawl.process_status(id) from pawl.process")[0].split("|")
            assert int(shown[0]) >= life and int(shown[1]) <= 3, shown
            life = int(shown[0])
            return shown[2] if shown[2] in ("COMPLETED", "WAITING_FOR_TSQ", "FAILED") else None

        status = wait_until(step, timeout=300, what=f"it has lived {most} lives")
        shown = shop.show()
        assert (status, shown["life"], shown["result"]) == ("COMPLETED", most, {"sum": most * (most + 1) // 2, "most": most}), (status, shown["life"], shown["error"], shown["result"])
        assert kills >= 30, kills
        assert site.db.value("select count(*) from counted") == str(most), "a step in a transaction happens once in each life, with a key of its own"
        sizes = site.db.rows("select (select count(*) from pawl.process_step), (select count(*) from pawl.process_response), (select count(*) from pawl.kept_response)")
        assert sizes == [f"3|1|{most - 1}"] or sizes == [f"2|1|{most - 1}"], sizes
        for n in (1, most // 2, most):
            assert shop.pawl_library("signal", shop.id, "event", f'{{"n": {n}}}', f"event-{n}") == (0, "REPEATED"), n
        assert shop.program.stop() == 0, shop.program.stderr


@test
def a_process_in_c_that_cannot_continue_says_why():
    with Site() as site:
        words = {"wrong-state": "the state that the process continues with must be a JSON object",
                 "wrong-compensating": "a process that is being compensated cannot continue as new",
                 "wrong-early": 'the history differs: the function continued as new before step "pack", which is recorded'}
        for variant, expected in words.items():
            shop = site.shop(variant).start()
            shop.run(variant)
            assert wait_until(lambda: shop.show()["status"] == "WAITING_FOR_ASYNC" or None, what="it waits")
            assert shop.pawl_library("signal", shop.id, "event", "{}", "1") == (0, "RESUMED")
            shown = shop.wait("WAITING_FOR_TSQ", "COMPLETED", "COMPENSATED")
            assert (shown["status"], shown["error"], shown["life"]) == ("WAITING_FOR_TSQ", expected, 1), shown
            assert shop.program.stop() == 0, shop.program.stderr
        # Canceled at the same moment: the call fails, and the function compensates.
        shop = site.shop("wrong-cancel").start()
        shop.run("wrong-cancel")
        wait_until(lambda: any(s["name"] == "event" for s in shop.show()["steps"]), what="it is about to continue")
        assert site.pawl.run("process", "cancel", shop.id, "--compensate").code == 0
        with open(shop.effects + ".canceled", "w", encoding="utf-8"):
            pass
        shown = shop.wait("COMPENSATED", "WAITING_FOR_TSQ")
        assert (shown["status"], [s["name"] for s in shown["steps"]], shown["life"]) == ("COMPENSATED", ["pack", "event", "unpack"], 1), shown
        assert shop.program.stop() == 0, shop.program.stderr


@test
def a_step_reports_progress_and_its_next_attempt_is_given_it():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        shop = Shop(db, pawl, folder, "progress").start()
        shop.run("progress")
        shown = wait_until(lambda: (s := show(pawl, shop.id))["status"] == "COMPLETED" and s, what="it is complete")
        progress = {**shown["progress"], "at": None}
        assert progress == {"step": "pack", "attempt": 1, "percent": 60, "text": "boxes", "at": None}, shown
        assert {**shown["result"], "at": None} == progress, shown
        assert [(s["name"], s["result"]) for s in shown["steps"] if s["name"] == "other"] == [("other", False)], shown


main()
