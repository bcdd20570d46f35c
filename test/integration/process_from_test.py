#!/usr/bin/env python3
"""process_from - retry a process from a step: what is run again, with which keys and inputs, and what a later compensation finds. The pods run with default
settings.
"""
import http.server
import json
import os
import tempfile
import threading

from pawl_test import Database, Pawl, main, test, wait_until
from process_cli import cli, define, show, wait_status


def run(pawl, definition, *statuses, state=None):
    """Define it, start one, and wait for one of the statuses."""
    define(pawl, {"domain": "from", **definition})
    process = cli(pawl, "start", definition["type"], "-", "--domain", "from", stdin=json.dumps(state or {}))["process_id"]
    return process, wait_status(pawl, process, *statuses)


def lines(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return file.read().splitlines()


def retried(pawl, process, step, *statuses):
    """Retry from this step, and wait for the end of that run."""
    cli(pawl, "retry", process, "--from", step)
    return wait_status(pawl, process, *statuses)


def balance(db, owner):
    return int(db.value(f"select balance from wallet.get(array['{owner}'], array['CREDIT'])"))


def funded(pawl, owner, amount):
    assert pawl.run("wallet", "create", owner).code == 0
    assert pawl.run("wallet", "topup", owner, str(amount)).code == 0


SPEND = {"name": "pay", "wallet": {"kind": "spend", "owner": "ann", "amount": "{{state.n}}"},
         "compensate": {"wallet": {"kind": "topup", "owner": "ann", "amount": "{{result.amount}}"}}}


def gate(folder, status=70):
    """A step that fails until the file `open` exists."""
    return {"name": "x", "exec": f"test -e {folder}/open || exit {status}; echo '{{}}'"}


def open_gate(folder):
    with open(os.path.join(folder, "open"), "w", encoding="utf-8"):
        pass


# --- keys and compensations ---

@test
def a_ledger_step_is_posted_again_and_a_later_compensation_undoes_both():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        funded(pawl, "ann", 500)
        process, _ = run(pawl, {"type": "wal", "on_failure": "troubleshoot", "steps": [SPEND, gate(folder)]}, "WAITING_FOR_TSQ", state={"n": 5})
        cli(pawl, "signal", process, "fix", '{"n": 7}')
        again = retried(pawl, process, "pay", "WAITING_FOR_TSQ", "FAILED", "COMPENSATED")
        assert again["status"] == "WAITING_FOR_TSQ", again
        assert balance(db, "ann") == 488, again
        names = [step["name"] for step in again["steps"]]
        assert names == ["pay:gone1", "x:gone1", "pay", "x"], names
        txns = [step["result"]["txn_id"] for step in again["steps"] if step["name"].startswith("pay")]
        assert len(set(txns)) == 2, txns
        retried(pawl, process, "pay", "WAITING_FOR_TSQ")
        assert balance(db, "ann") == 481
        cli(pawl, "cancel", process, "--compensate")
        ended = wait_status(pawl, process, "COMPENSATED", "WAITING_FOR_TSQ")
        assert ended["status"] == "COMPENSATED", ended
        assert balance(db, "ann") == 500, ended
        undone = [event["details"]["step"] for event in ended["audit"] if event["event"] == "COMPENSATION"]
        assert undone == ["pay", "pay:gone2", "pay:gone1"], undone


@test
def a_program_gets_another_key_and_is_compensated_with_its_own_result():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        seen = os.path.join(folder, "seen")
        undo = {"exec": f"read input; echo undo $input >> {seen}; echo '{{}}'", "input": {"of": "{{result.n}}", "a": "{{steps.a.n}}"}}
        steps = [{"name": "a", "exec": "cat", "input": {"n": "{{state.n}}"}},
                 {"name": "b", "exec": f"echo $PAWL_COMMAND_ID >> {seen}; cat", "input": {"n": "{{state.n}}"}, "compensate": undo},
                 gate(folder)]
        process, _ = run(pawl, {"type": "prog", "on_failure": "troubleshoot", "steps": steps}, "WAITING_FOR_TSQ", state={"n": 1})
        cli(pawl, "signal", process, "fix", '{"n": 2}')
        retried(pawl, process, "a", "WAITING_FOR_TSQ")
        assert len(set(lines(seen))) == 2, lines(seen)
        cli(pawl, "retry", process)  # the key of a plain retry stays, and b is not run again
        wait_until(lambda: len([s for s in show(pawl, process)["steps"] if s["name"] == "x"]) == 2, what="x has failed twice")
        wait_status(pawl, process, "WAITING_FOR_TSQ")
        cli(pawl, "cancel", process, "--compensate")
        wait_status(pawl, process, "COMPENSATED")
        assert lines(seen)[2:] == ['undo {"of": 2, "a": 2}', 'undo {"of": 1, "a": 1}'], lines(seen)


@test
def a_command_that_completed_after_its_step_timed_out_is_compensated_with_its_own_result():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        charged, refunded = os.path.join(folder, "charged"), os.path.join(folder, "refunded")
        charge = ("work", "shopt", "--exec", f"wc -l < {charged} > {folder}/n; echo charged >> {charged}; echo \"{{\\\"n\\\": $(cat {folder}/n)}}\"", "--drain")
        with open(charged, "w", encoding="utf-8"):
            pass
        process, _ = run(pawl, {"type": "late", "on_failure": "troubleshoot", "steps": [
            {"name": "pay", "command": {"domain": "shopt", "type": "charge"}, "timeout": "200ms", "retry": {"attempts": 1},
             "compensate": {"exec": f"cat >> {refunded}; echo >> {refunded}", "input": {"n": "{{result.n}}"}}},
            {"name": "w", "wait": {"response": "go"}}]}, "WAITING_FOR_TSQ")
        assert pawl.run(*charge).code == 0
        wait_until(lambda: any((r["kind"], r["name"]) == ("reply", "pay") for r in show(pawl, process)["responses"]), what="the reply is there")
        cli(pawl, "retry", process, "--from", "pay")
        wait_until(lambda: db.value("select count(*) from pawl.command c join pawl.domain_name n on n.id = c.domain_id and n.name = 'shopt'") == "2",
                   what="another command is sent")
        assert pawl.run(*charge).code == 0
        wait_status(pawl, process, "WAITING_FOR_ASYNC", "WAITING_FOR_TSQ")
        cli(pawl, "cancel", process, "--compensate")
        wait_status(pawl, process, "COMPENSATED")
        assert lines(charged) == ["charged"] * 2 and [json.loads(x)["n"] for x in lines(refunded)] == [1, 0], (lines(charged), lines(refunded))


@test
def items_of_an_each_that_was_set_aside_are_compensated_with_the_items_it_had():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        seen = os.path.join(folder, "seen")
        inner = {"name": "i", "exec": f"read item; echo do $item >> {seen}; echo '{{}}'", "input": "{{item}}",
                 "compensate": {"exec": f"read item; echo undo $item >> {seen}; echo '{{}}'", "input": "{{item}}"}}
        process, _ = run(pawl, {"type": "items", "on_failure": "troubleshoot", "steps": [
            {"name": "e", "each": "{{state.l}}", "concurrency": 1, "steps": [inner]}, gate(folder)]}, "WAITING_FOR_TSQ", state={"l": [1, 2]})
        cli(pawl, "signal", process, "fix", '{"l": [7]}')
        retried(pawl, process, "e", "WAITING_FOR_TSQ")
        cli(pawl, "cancel", process, "--compensate")
        wait_status(pawl, process, "COMPENSATED")
        assert lines(seen) == ["do 1", "do 2", "do 7", "undo 7", "undo 2", "undo 1"], lines(seen)


# --- inputs ---

class Bank(http.server.ThreadingHTTPServer):
    """Acts once per key. The first request is answered when its client has given up; a known key with another body is refused."""

    def __init__(self):
        bank, self.bodies, self.asked, self.given_up = self, {}, [], threading.Event()

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                key, body = self.headers["Idempotency-Key"], self.rfile.read(int(self.headers["Content-Length"]))
                bank.asked.append((key, body))
                if len(bank.asked) == 1:
                    bank.given_up.wait(600)
                self.send_response(200 if bank.bodies.setdefault(key, body) == body else 422)
                self.send_header("Content-Length", "2")
                self.end_headers()
                try:
                    self.wfile.write(b"{}")
                except OSError:
                    pass

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


@test
def all_attempts_of_a_request_send_the_same_input():
    with Database() as db, Bank() as bank, Pawl(db, env={"PAWL_STEP_HOSTS": f"127.0.0.1:{bank.server_port}"}) as pawl:
        pawl.serve()
        define(pawl, {"domain": "from", "type": "bank", "on_failure": "troubleshoot", "steps": [
            {"name": "pay", "http": {"method": "POST", "url": f"http://127.0.0.1:{bank.server_port}/{{{{state.n}}}}", "body": {"amount": "{{state.n}}", "to": "{{state.t}}"}},
             "timeout": "5s"}, {"name": "w", "wait": {"response": "go"}}]})
        process = cli(pawl, "start", "bank", '{"n": 5, "t": "b\\u00e9 \\" 1"}', "--domain", "from")["process_id"]
        wait_until(lambda: bank.asked, what="the first attempt")
        cli(pawl, "signal", process, "fix", '{"n": 7}')
        wait_until(lambda: len(bank.asked) >= 2, what="the second attempt")
        bank.given_up.set()
        shown = wait_status(pawl, process, "WAITING_FOR_ASYNC", "WAITING_FOR_TSQ")
        assert shown["status"] == "WAITING_FOR_ASYNC", shown
        assert len(set(bank.asked)) == 1 and json.loads(bank.asked[0][1]) == {"amount": 5, "to": 'b\u00e9 " 1'}, bank.asked
        assert {step["name"] for step in shown["steps"]} == {"pay"}, shown["steps"]
        bank.shutdown()


@test
def all_attempts_of_a_program_get_the_same_input_until_it_is_set_aside():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        seen = os.path.join(folder, "seen")
        pay = {"name": "pay", "exec": f"read n; echo $PAWL_COMMAND_ID $n >> {seen}; test -e {folder}/open || exit 1; echo '{{}}'", "input": "{{state.n}}",
               "retry": {"attempts": 1}}
        process, _ = run(pawl, {"type": "same", "on_failure": "troubleshoot", "steps": [pay]}, "WAITING_FOR_TSQ", state={"n": 5})
        cli(pawl, "signal", process, "fix", '{"n": 7}')
        cli(pawl, "retry", process)
        wait_status(pawl, process, "WAITING_FOR_TSQ")
        open_gate(folder)
        assert retried(pawl, process, "pay", "COMPLETED", "WAITING_FOR_TSQ")["status"] == "COMPLETED"
        (first, *a), (again, *b), (other, *c) = (line.split() for line in lines(seen))
        assert first == again != other and (a, b, c) == (["5"], ["5"], ["7"]), lines(seen)


@test
def a_retry_after_a_final_failure_takes_the_corrected_state():
    """The program has said no; a compensation cannot be set aside, so nothing else could correct its input."""
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        seen = os.path.join(folder, "seen")
        undo = {"exec": f"read v; echo $PAWL_COMMAND_ID $v >> {seen}; test $v = '\"good\"' || exit 70; echo 1", "input": "{{state.v}}"}
        process, _ = run(pawl, {"type": "wrong", "on_failure": "compensate", "steps": [
            {"name": "a", "exec": "echo 1", "compensate": undo}, {"name": "x", "exec": "exit 70"}]}, "WAITING_FOR_TSQ", state={"v": "bad"})
        cli(pawl, "retry", process)
        wait_until(lambda: len(lines(seen)) == 2, what="it is tried again")
        wait_status(pawl, process, "WAITING_FOR_TSQ")
        cli(pawl, "signal", process, "fix", '{"v": "good"}')
        cli(pawl, "retry", process)
        assert wait_status(pawl, process, "COMPENSATED", "WAITING_FOR_TSQ")["status"] == "COMPENSATED"
        keys, values = zip(*(line.split() for line in lines(seen)))
        assert len(set(keys)) == 1 and values == ('"bad"', '"bad"', '"good"'), lines(seen)


class Shop(http.server.ThreadingHTTPServer):
    """Remembers what it is asked. A path with "bad" is answered with 500."""

    def __init__(self):
        shop, self.asked = self, []

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                names = ("Authorization", "X-Tenant", "X-Trace")
                shop.asked.append((self.path, {name: self.headers[name] for name in names if name in self.headers}, body, self.headers["Idempotency-Key"]))
                self.send_response(500 if "bad" in self.path else 200)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()


@test
def a_moved_request_has_the_url_and_headers_of_the_new_version():
    with Database() as db, Shop() as shop, Pawl(db, env={"PAWL_STEP_HOSTS": f"127.0.0.1:{shop.server_port}"}) as pawl:
        pawl.serve()

        def version(path, headers):
            return {"domain": "from", "type": "moved", "on_failure": "troubleshoot", "steps": [{"name": "pay", "retry": {"attempts": 1}, "http": {
                "method": "POST", "url": f"http://127.0.0.1:{shop.server_port}/{path}/{{{{state.n}}}}", "headers": headers, "body": {"n": "{{state.n}}"}}}]}

        process, _ = run(pawl, version("bad", {"Authorization": "Bearer secret", "X-Tenant": "t{{state.n}}"}), "WAITING_FOR_TSQ", state={"n": 5})
        kept = db.value("select result::text from pawl.process_step where step = 'pay' and kind = 'input'")
        assert "t5" in kept and "secret" not in kept, kept
        cli(pawl, "signal", process, "fix", '{"n": 7}')
        define(pawl, version("good", {"X-Tenant": "t{{state.n}}", "X-Trace": "on"}))
        cli(pawl, "move", process, "--to", "2")
        cli(pawl, "retry", process)
        assert wait_status(pawl, process, "COMPLETED", "WAITING_FOR_TSQ")["status"] == "COMPLETED"
        (*first, key), (*second, again) = shop.asked
        assert first == ["/bad/5", {"Authorization": "Bearer secret", "X-Tenant": "t5"}, {"n": 5}] and key == again, shop.asked
        assert second == ["/good/7", {"X-Tenant": "t5", "X-Trace": "on"}, {"n": 5}], shop.asked
        shop.shutdown()


# --- which steps it can be ---

@test
def a_step_whose_result_could_not_be_saved_can_be_run_again():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        seen = os.path.join(folder, "seen")
        steps = [{"name": "pay", "exec": f"echo pay >> {seen}; test -e {folder}/open && echo '{{\"id\": 1}}' || echo '{{}}'",
                  "save": {"x": "{{result.id}}"}, "compensate": {"exec": f"echo undo >> {seen}"}}, {"name": "w", "wait": {"response": "go"}}]
        process, stuck = run(pawl, {"type": "done", "on_failure": "troubleshoot", "steps": steps}, "WAITING_FOR_TSQ")
        assert [step["name"] for step in stuck["steps"]] == ["pay:done"], stuck
        open_gate(folder)
        assert retried(pawl, process, "pay", "WAITING_FOR_ASYNC", "WAITING_FOR_TSQ")["status"] == "WAITING_FOR_ASYNC"
        assert lines(seen) == ["pay", "pay"], lines(seen)
        cli(pawl, "cancel", process, "--compensate")
        wait_status(pawl, process, "COMPENSATED")
        assert lines(seen) == ["pay", "pay", "undo", "undo"], lines(seen)


@test
def an_each_in_which_a_step_failed_can_be_begun_anew():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        inner = {"name": "i", "exec": "read item; test $item = 1 || exit 70; echo '{}'", "input": "{{item}}"}
        process, _ = run(pawl, {"type": "anew", "on_failure": "troubleshoot", "steps": [{"name": "e", "each": "{{state.l}}", "steps": [inner]}]},
                         "WAITING_FOR_TSQ", state={"l": [1, 2]})
        cli(pawl, "signal", process, "fix", '{"l": [1, 1]}')
        assert retried(pawl, process, "e", "COMPLETED", "WAITING_FOR_TSQ")["status"] == "COMPLETED"


def branches(folder, *, inside=False):
    seen = os.path.join(folder, "seen")
    a = [{"name": "pa", "exec": f"echo pa >> {seen}; echo '{{}}'"}]
    b = [{"name": "pb", "exec": f"echo pb >> {seen}; echo '{{}}'"}]
    return seen, [{"name": "p", "parallel": {"a": a, "b": b + [gate(folder)] if inside else b}}] + ([] if inside else [gate(folder)])


@test
def the_branches_of_a_parallel_are_run_again():
    for inside in (False, True):
        with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
            pawl.serve()
            seen, steps = branches(folder, inside=inside)
            process, _ = run(pawl, {"type": "both", "on_failure": "troubleshoot", "steps": steps}, "WAITING_FOR_TSQ")
            assert sorted(lines(seen)) == ["pa", "pb"], lines(seen)
            open_gate(folder)
            assert retried(pawl, process, "p", "COMPLETED", "WAITING_FOR_TSQ")["status"] == "COMPLETED"
            assert sorted(lines(seen)) == ["pa", "pa", "pb", "pb"], lines(seen)


@test
def a_parallel_inside_an_each_is_run_again_for_one_item():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        seen = os.path.join(folder, "seen")
        one = {"name": "p", "parallel": {"a": [{"name": "pa", "exec": f"echo $PAWL_TYPE >> {seen}; echo '{{}}'"}]}}
        process, _ = run(pawl, {"type": "nested", "on_failure": "troubleshoot", "steps": [
            {"name": "e", "each": "{{state.l}}", "concurrency": 1, "steps": [one]}, gate(folder)]}, "WAITING_FOR_TSQ", state={"l": [1, 2]})
        assert lines(seen) == ["pa[0]", "pa[1]"], lines(seen)
        open_gate(folder)
        assert retried(pawl, process, "p[1]", "COMPLETED", "WAITING_FOR_TSQ")["status"] == "COMPLETED"
        assert lines(seen) == ["pa[0]", "pa[1]", "pa[1]"], lines(seen)


# --- many at once ---

@test
def what_ran_beside_a_step_is_not_run_again():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        seen = os.path.join(folder, "seen")

        def step(name, gated=False):
            return {"name": name, "exec": f"read n; {f'test $n != 2 -o -e {folder}/open || exit 70; ' if gated else ''}echo {name} $n >> {seen}; echo '{{}}'",
                    "input": "{{item}}"}

        process, _ = run(pawl, {"type": "beside", "on_failure": "troubleshoot", "steps": [
            {"name": "e", "each": "{{state.l}}", "concurrency": 4, "steps": [step("pay"), step("send", gated=True), step("mail")]},
            {"name": "last", "exec": f"echo last >> {seen}; echo '{{}}'"}]}, "WAITING_FOR_TSQ", state={"l": [1, 2, 3, 4]})
        assert "pay 2" in lines(seen) and "send 2" not in lines(seen), lines(seen)
        open_gate(folder)
        retried(pawl, process, "send[1]", "COMPLETED")
        assert sorted(lines(seen)) == sorted([f"{s} {n}" for n in (1, 2, 3, 4) for s in ("pay", "send", "mail")] + ["last"]), lines(seen)
        # A branch beside it in a parallel; what follows the parallel is run again.
        os.remove(os.path.join(folder, "open"))
        os.remove(seen)
        process, _ = run(pawl, {"type": "branches", "on_failure": "troubleshoot", "steps": [
            {"name": "p", "parallel": {"a": [{"name": "pa", "exec": f"echo pa >> {seen}; echo '{{}}'"}],
                                       "b": [{"name": "pb", "exec": f"echo pb >> {seen}; echo '{{}}'"}]}},
            gate(folder)]}, "WAITING_FOR_TSQ")
        open_gate(folder)
        retried(pawl, process, "pb", "COMPLETED")
        assert sorted(lines(seen)) == ["pa", "pb", "pb"], lines(seen)


@test
def a_step_whose_command_is_open_is_not_sent_again():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        process, _ = run(pawl, {"type": "open", "on_failure": "troubleshoot", "steps": [
            {"name": "pay", "command": {"domain": "shopo", "type": "charge", "payload": {"n": "{{state.n}}"}}, "timeout": "200ms", "retry": {"attempts": 1}}]},
            "WAITING_FOR_TSQ", state={"n": 5})
        cli(pawl, "signal", process, "fix", '{"n": 7}')
        refused = pawl.run("process", "retry", process, "--from", "pay")
        assert refused.code == 1 and 'has sent a command or child from step "pay" on that has not ended' in refused.stderr, refused
        command = db.value("select c.command_id from pawl.command c join pawl.domain_name n on n.id = c.domain_id and n.name = 'shopo'")
        assert pawl.run("command", "cancel", command).code == 0
        cli(pawl, "retry", process, "--from", "pay")
        payload = "select string_agg(c.payload ->> 'n', ' ' order by c.id) from pawl.command c join pawl.domain_name n on n.id = c.domain_id and n.name = 'shopo'"
        wait_until(lambda: db.value(payload) == "5 7", what="it is sent again, with the state as it is now")


def payout_failed(db, pawl, folder, *names):
    """A process that has sent a payment to each of the names but the last, whose check then fails."""
    bad = f"until test -e {folder}/open; do sleep 0.02; done; exit 70"
    define(pawl, {"domain": "from", "type": "payout", "on_failure": "troubleshoot", "steps": [
        {"name": "e", "each": "{{state.list}}", "concurrency": 4, "steps": [
            {"name": "check", "exec": f"read name; if test \"$name\" = '\"bad\"'; then {bad}; fi; echo '{{}}'", "input": "{{item}}"},
            {"name": "pay", "command": {"domain": "bank", "type": "pay", "payload": {"to": "{{item}}"}},
             "compensate": {"command": {"domain": "bank", "type": "refund", "payload": {"of": "{{item}}"}}}}]}]})
    process = cli(pawl, "start", "payout", "-", "--domain", "from", stdin=json.dumps({"list": [*names, "bad"]}))["process_id"]
    wait_until(lambda: len(sent(db, "pay")) == len(names), what="the others are sent")
    open_gate(folder)
    wait_status(pawl, process, "WAITING_FOR_TSQ")
    return process


def sent(db, type_):
    """To whom commands of this type were sent, in the order of sending."""
    return (db.value(f"select string_agg(coalesce(c.payload ->> 'to', c.payload ->> 'of'), ' ' order by c.id) from pawl.command c where c.type = '{type_}'") or "").split()


@test
def commands_that_are_open_without_a_record_are_not_taken_for_those_of_another_run():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        process = payout_failed(db, pawl, folder, "ann", "bob")
        cli(pawl, "signal", process, "fix", '{"list": ["bob", "carl"]}')
        for step in ("e", "pay[0]", "e[1]"):
            refused = pawl.run("process", "retry", process, "--from", step)
            assert refused.code == 1 and f'has sent a command or child from step "{step}" on that has not ended' in refused.stderr, refused
        assert sorted(sent(db, "pay")) == ["ann", "bob"]
        # Their steps have not recorded that they completed: the process is in the troubleshooting queue.
        pawl.run("work", "bank", "--exec", "echo '{}'", "--drain")
        cli(pawl, "retry", process, "--from", "e")
        wait_until(lambda: len(sent(db, "pay")) == 4, what="both are sent")
        assert sorted(sent(db, "pay")[2:]) == ["bob", "carl"], sent(db, "pay")
        # What was paid in both runs is undone, each with the item of its run.
        cli(pawl, "cancel", process, "--compensate")
        wait_until(lambda: pawl.run("work", "bank", "--exec", "echo '{}'", "--drain").code == 0 and show(pawl, process)["ended_at"], timeout=60, what="it has ended")
        assert show(pawl, process)["status"] == "COMPENSATED"
        done = db.value("select string_agg(c.payload ->> 'to', ' ' order by 1) from pawl.command c join pawl.outcome o on o.id = c.id where c.type = 'pay' and o.status = 'COMPLETED'")
        assert sorted(sent(db, "refund")) == sorted(done.split()) and {"ann", "bob"} <= set(done.split()), (done, sent(db, "refund"))


@test
def a_command_that_failed_without_a_record_is_sent_again_by_a_retry_from_its_step():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        process = payout_failed(db, pawl, folder, "ann")
        command = db.value("select command_id from pawl.command where type = 'pay'")
        assert pawl.run("command", "cancel", command).code == 0
        cli(pawl, "signal", process, "fix", '{"list": ["carl"]}')
        cli(pawl, "retry", process, "--from", "pay[0]")
        wait_until(lambda: len(sent(db, "pay")) == 2, what="it is sent again")
        assert db.value("select count(*) from pawl.process_step where step = 'pay' and item = '{0}' and aside = 1 and error is not null") == "1"


@test
def a_retry_from_an_item_of_an_each_that_has_ended_runs_that_item_again():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        seen = os.path.join(folder, "seen")
        process, _ = run(pawl, {"type": "item", "on_failure": "troubleshoot", "steps": [
            {"name": "e", "each": "{{state.list}}", "steps": [{"name": "mail", "exec": f"read n; echo $n >> {seen}; echo '{{}}'", "input": "{{item}}"}]},
            gate(folder)]}, "WAITING_FOR_TSQ", state={"list": [1, 2, 3]})
        refused = pawl.run("process", "retry", process, "--from", "e[1][0]")
        assert refused.code == 1 and 'has not recorded step "e[1][0]"' in refused.stderr, refused
        open_gate(folder)
        retried(pawl, process, "e[1]", "COMPLETED")
        assert sorted(lines(seen)) == ["1", "2", "2", "3"], lines(seen)


@test
def a_retry_from_a_step_reads_the_definition_once_however_many_commands_are_open():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        define(pawl, {"type": "many", "domain": "from", "on_failure": "troubleshoot", "steps": [
            {"name": "p", "parallel": {
                "a": [{"name": "outer", "each": "{{state.list}}", "concurrency": 40, "steps": [
                    {"name": "inner", "each": "{{state.list}}", "concurrency": 40, "steps": [{"name": "pay", "command": {"domain": "bank", "type": "pay"}, "timeout": "1h"}]}]}],
                "b": [{"name": "all", "wait": {"response": "go"}}, {"name": "bad", "exec": "exit 70"}]}}]})
        process = cli(pawl, "start", "many", "-", "--domain", "from", stdin=json.dumps({"list": list(range(40))}))["process_id"]
        wait_until(lambda: db.value("select count(*) from pawl.process_sent") == "1600", timeout=300, what="all are sent")
        wait_status(pawl, process, "WAITING_FOR_ASYNC", "WAITING_FOR_REPLY")
        cli(pawl, "signal", process, "go", "{}")
        wait_status(pawl, process, "WAITING_FOR_TSQ")
        number = db.value(f"select pawl.process_number('{process}')")
        calls = "select coalesce(sum(calls), 0) from pg_stat_xact_user_functions where funcname = 'definition_steps'"
        counted = db.value(f"set track_functions = 'all'; select cardinality(pawl.process_sent_from(array[{number}], 'p')) || ' ' || ({calls})")
        assert counted in ("1 0", "1 1", "1 2"), counted
        refused = pawl.run("process", "retry", process, "--from", "p")
        assert refused.code == 1 and "has not ended" in refused.stderr, refused


def results(shown):
    return {step["name"]: step["result"] for step in shown["steps"] if step["error"] is None}


@test
def a_wait_of_several_side_by_side_that_is_run_again_takes_the_response_that_it_had_taken():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        process, _ = run(pawl, {"type": "votes", "on_failure": "troubleshoot", "steps": [
            {"name": "e", "each": "{{state.l}}", "concurrency": 3, "steps": [{"name": "ask", "wait": {"response": "vote"}}]},
            gate(folder)]}, "WAITING_FOR_ASYNC", state={"l": [1, 2, 3]})
        for name in ("ann", "bob", "carl"):
            cli(pawl, "signal", process, "vote", json.dumps(name))
        before = results(wait_status(pawl, process, "WAITING_FOR_TSQ"))
        asked = ("ask[0]", "ask[1]", "ask[2]")
        assert {before[step] for step in asked} == {"ann", "bob", "carl"}, before
        for step in asked:
            after = results(retried(pawl, process, step, "WAITING_FOR_TSQ", "WAITING_FOR_ASYNC"))
            assert [after.get(one) for one in asked] == [before[one] for one in asked], (step, before, after)
        open_gate(folder)
        cli(pawl, "retry", process)
        wait_status(pawl, process, "COMPLETED")


@test
def each_response_is_taken_by_one_wait_also_where_waits_that_were_set_aside_left_some():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        shut = os.path.join(folder, "shut")
        process, _ = run(pawl, {"type": "gaps", "on_failure": "troubleshoot", "steps": [
            {"name": "p", "parallel": {
                "a": [{"name": "pre", "exec": f"test ! -e {shut} || exit 70; echo '{{}}'"}, {"name": "one", "wait": {"response": "vote"}}],
                "b": [{"name": "two", "wait": {"response": "vote"}}],
                "c": [{"name": "both", "wait": {"response": "vote", "count": 2}}]}},
            gate(folder)]}, "WAITING_FOR_ASYNC")
        for number in range(1, 3):  # one after the other: "both" needs two that are free
            cli(pawl, "signal", process, "vote", str(number))
            wait_until(lambda: len({"one", "two"} & set(results(show(pawl, process)))) == number, what=f"{number} waits are met")
        for number in (3, 4):
            cli(pawl, "signal", process, "vote", str(number))
        before = results(wait_status(pawl, process, "WAITING_FOR_TSQ"))
        assert sorted([before["one"], before["two"], *before["both"]]) == [1, 2, 3, 4] and before["both"] == [3, 4], before
        # "one" gives up its response, and cannot take one, because the step before it fails; "both" takes the first two that are free.
        with open(shut, "w", encoding="utf-8"):
            pass
        assert "one" not in results(retried(pawl, process, "pre", "WAITING_FOR_TSQ"))
        after = results(retried(pawl, process, "both", "WAITING_FOR_TSQ"))
        assert after["two"] == before["two"] and after["both"] == [before["one"], 3], (before, after)
        os.unlink(shut)
        open_gate(folder)
        cli(pawl, "retry", process)
        after = results(wait_status(pawl, process, "COMPLETED"))
        assert (after["one"], after["two"], after["both"]) == (4, before["two"], [before["one"], 3]), (before, after)
        assert db.value("select taken from pawl.process_step where step = 'both'") in ("{[0,1),[2,3)}", "{[1,3)}")


@test
def a_process_that_has_not_recorded_the_step_keeps_none_of_the_others_from_being_retried():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        steps = [{"name": "a", "exec": "read n; test $n = 1 || exit 70; echo '{}'", "input": "{{state.n}}"}, {"name": "b", "exec": "echo '{}'"}, gate(folder)]
        with_b = [run(pawl, {"type": "rr", "on_failure": "troubleshoot", "steps": steps}, "WAITING_FOR_TSQ", state={"n": 1})[0] for _ in range(2)]
        without, _ = run(pawl, {"type": "rr", "on_failure": "troubleshoot", "steps": steps}, "WAITING_FOR_TSQ", state={"n": 2})
        open_gate(folder)
        done = pawl.run("process", "retry", "--all", "--type", "rr", "--from", "b", "--yes", "--json")
        assert done.code == 1 and f"{without} has not recorded step" in done.stderr, done
        counted = json.loads(done.stdout)
        assert (counted["matched"], counted["decided"], counted["refused"]) == (3, 2, 1), counted
        for process in with_b:
            wait_status(pawl, process, "COMPLETED")
        assert show(pawl, without)["status"] == "WAITING_FOR_TSQ"
        assert [step["name"] for step in show(pawl, without)["steps"]] == ["a"]


main()
