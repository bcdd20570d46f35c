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
from process_helpers import cli, define, show, wait_status


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
                    bank.given_up.wait(60)
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
             "timeout": "2s"}, {"name": "w", "wait": {"response": "go"}}]})
        process = cli(pawl, "start", "bank", '{"n": 5, "t": "b\\u00e9 \\" 1"}', "--domain", "from")["process_id"]
        wait_until(lambda: len(bank.asked) == 1, what="the first attempt")
        cli(pawl, "signal", process, "fix", '{"n": 7}')
        wait_until(lambda: len(bank.asked) == 2, what="the second attempt")
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
