#!/usr/bin/env python3
"""examples - each example under examples/ does what it says. The test "library" has those in C that handle and post."""
import configparser
import os
import subprocess
import sys
import tempfile

from bus_commands import new_id, replies, retry_at_once, send, show, wait_status, work
from pawl_test import TIMEOUT_S, Database, Pawl, Process, main, setting, test, wait_until

START_S = 2 * 120  # APP_START_MS, for the private PostgreSQL and again for the migrations
EXAMPLES = os.path.join(setting("PAWL_SOURCE"), "examples")


def sql_file(db, path):
    subprocess.run([os.path.join(setting("PAWL_TEST_BIN"), "psql"), "-Xq", "-v", "ON_ERROR_STOP=1", "-f", path, db.url],
                   check=True, capture_output=True, timeout=TIMEOUT_S)


@test
def shell_handler_charges_refuses_and_survives_a_second_run():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as receipts:
        pawl.env["RECEIPTS"] = receipts
        retry_at_once(db, "shop")
        handler = os.path.join(EXAMPLES, "shell/handler.sh")
        good, large, wrong = (send(pawl, "shop", "charge", payload)
                              for payload in ({"order": 7, "amount": 250}, {"amount": 5000}, {"order": 8}))
        work(pawl, "shop", "--exec", handler)
        assert show(pawl, good)["result"] == {"charged": 250, "attempt": 1}
        found = [((c := show(pawl, sent))["status"], c["error"]) for sent in (large, wrong)]
        assert found == [("FAILED", "amount 5000 is above the limit of 1000"), ("IN_TSQ", "payload has no amount")], found
        again = subprocess.run([handler], input='{"amount": 999}', text=True, capture_output=True, timeout=TIMEOUT_S,
                               env={**pawl.env, "PAWL_COMMAND_ID": good, "PAWL_ATTEMPT": "2"})
        assert again.returncode == 0, again.stderr
        assert os.listdir(receipts) == [good]
        with open(os.path.join(receipts, good), encoding="utf-8") as receipt:
            assert receipt.read() == "250\n"
        later = send(pawl, "shop", "charge", {"amount": 1}, "--max-attempts", "2")
        pawl.env["RECEIPTS"] = "/does/not/exist"
        work(pawl, "shop", "--exec", handler)
        assert show(pawl, later)["attempts"] == 2 and show(pawl, later)["status"] == "IN_TSQ"


@test
def shell_wallet_says_how_it_is_called():
    for arguments in ([], ["ann"], ["ann", "250", new_id(), "more"]):
        done = subprocess.run([os.path.join(EXAMPLES, "shell/wallet.sh"), *arguments], capture_output=True, text=True, timeout=TIMEOUT_S)
        assert done.returncode == 2 and done.stderr == "usage: wallet.sh CUSTOMER AMOUNT ORDER-UUID\n", done


def seconds(text):
    return int(text.removesuffix("s"))


@test
def systemd_unit_stops_no_sooner_than_pawl_and_does_not_restart_wrong_settings():
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str
    unit.read(os.path.join(EXAMPLES, "systemd/pawl.service"))
    service = unit["Service"]
    with Pawl(None) as pawl:
        rows = {row["setting"]: row for row in pawl.run("help", "settings", "--json").json}
        limits = [seconds(rows[name]["default"]) for name in ("PAWL_DRAIN_TIMEOUT", "PAWL_CLOSE_TIMEOUT")]
        assert seconds(service["TimeoutStopSec"]) > sum(limits) + 5, (service["TimeoutStopSec"], limits)
        program, *arguments = service["ExecStart"].split()
        assert os.path.basename(program) == "pawl" and arguments == ["serve"], service["ExecStart"]
        wrong = pawl.run(*arguments, env={"PAWL_POOL_MAX": "none"})
        assert str(wrong.code) == service["RestartPreventExitStatus"], wrong
    assert service["Environment"] == "PAWL_HOME=/var/lib/" + service["StateDirectory"]
    assert service["ExecReload"].split()[1] == "-HUP"
    assert service["Type"] == "notify", service["Type"]  # started means ready: shutdown_test.py
    assert seconds(service["TimeoutStartSec"]) > START_S, "systemd would kill a first start that is still in time"


@test
def systemd_unit_is_confined():
    """Exposure as systemd counts it, from 0 to 10."""
    checked = subprocess.run(["systemd-analyze", "security", "--offline=true", "--threshold=29", "--no-pager",
                              os.path.join(EXAMPLES, "systemd/pawl.service")],
                             text=True, capture_output=True, timeout=TIMEOUT_S)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@test
def sql_handler_charges_an_account_exactly_once():
    with Database() as db, Pawl(db) as pawl:
        for _ in range(2):  # it may be loaded again
            sql_file(db, os.path.join(EXAMPLES, "sql/charge.sql"))
        db.rows("insert into shop.account values ('ann', 1000)")
        charges = [send(pawl, "shop", "charge", {"account": "ann", "amount": 300}, "--reply-to", "answers")
                   for _ in range(4)]
        wrong = send(pawl, "shop", "charge", {"account": "ann", "amount": 0})
        work(pawl, "shop", "--sql", "shop.charge")
        ends = sorted(show(pawl, charge)["status"] for charge in charges)
        assert ends == ["COMPLETED", "COMPLETED", "COMPLETED", "FAILED"], ends
        assert db.value("select balance from shop.account") == "100"
        assert show(pawl, wrong)["status"] == "IN_TSQ"
        assert sorted(reply["result"]["balance"] for reply in replies(db, "answers") if reply["result"]) == [100, 400, 700]


@test
def c_program_sends_in_the_transaction_that_places_the_order():
    with Database() as db, Pawl(db) as pawl:
        program = os.path.join(setting("PAWL_BUILD"), "examples/c/example_send")

        def place(order, amount):
            return subprocess.run([program, db.url, order, amount], capture_output=True, text=True, timeout=TIMEOUT_S)

        order = new_id()
        first = place(order, "250")
        assert (first.returncode, first.stdout, first.stderr) == (0, f"{order} placed, PENDING\n", ""), first
        assert place(order, "250").stdout == f"{order} was placed before, PENDING\n"
        command = show(pawl, order)
        assert (command["domain"], command["type"]) == ("shop", "charge"), command
        assert command["payload"] == {"amount": 250}, command
        other = place(order, "251")
        assert other.returncode == 1 and "exists already: payload differs" in other.stderr, other
        bad = place(new_id(), "-1")
        assert bad.returncode == 1 and bad.stderr.startswith("23514: "), bad
        assert db.value("select count(*) from placed") == db.value("select count(*) from pawl.command") == "1"


@test
def python_worker_claims_keeps_its_lease_and_settles():
    with Database() as db, Pawl(db) as pawl:
        server = pawl.serve()
        token = pawl.run("key", "create", "worker", "--scopes", "command", "--json").json["token"]
        worker = Process([sys.executable, os.path.join(EXAMPLES, "python/worker.py"), "shop"],
                         {**os.environ, "PAWL_URL": f"http://{server.host}:{server.port}", "PAWL_TOKEN": token,
                          "LEASE_S": "6"})
        pawl.processes.append(worker)
        added = send(pawl, "shop", "add", {"numbers": [1, 2, 39]})
        assert wait_status(pawl, added, "COMPLETED")["result"] == {"sum": 42}
        long = send(pawl, "shop", "sleep", {"seconds": 13})  # longer than two leases
        command = wait_status(pawl, long, "COMPLETED")
        assert command["attempts"] == 1 and command["result"] == {"slept": 13}, command
        assert wait_status(pawl, send(pawl, "shop", "refuse"), "FAILED")["error"] == "not today"
        assert wait_status(pawl, send(pawl, "shop", "add", {}), "IN_TSQ")["error"] == "'numbers'"
        wait_until(lambda: worker.said("IN_TSQ"), what="the worker says so")
        assert worker.said(f"{added} COMPLETED")
        other = send(pawl, "shop", "juggle")
        last = send(pawl, "shop", "sleep", {"seconds": 8})
        wait_status(pawl, last, "IN_PROGRESS")
        assert worker.stop() == 0, worker.stderr
        assert show(pawl, last)["status"] == "COMPLETED"
        left = show(pawl, other)
        assert (left["status"], left["attempts"]) == ("PENDING", 0), "what it cannot handle it does not claim"


@test
def python_workers_say_in_a_sentence_what_is_wrong_with_their_token():
    with Database() as db, Pawl(db) as pawl:
        server = pawl.serve()
        weak = pawl.run("key", "create", "weak", "--scopes", "wallet", "--json").json["token"]
        env = {**os.environ, "PAWL_URL": f"http://{server.host}:{server.port}", "EFFECTS": "/dev/null"}
        for program in ("python/worker.py", "python-process/order.py"):
            for token, words in ((None, "PAWL_TOKEN is not set: pawl key create NAME --scopes "), ("wrong", "PAWL_TOKEN is refused: "),
                                 (weak, "PAWL_TOKEN is refused: ")):
                done = subprocess.run([sys.executable, os.path.join(EXAMPLES, program), "shop"], env={**env, **({"PAWL_TOKEN": token} if token else {})},
                                      capture_output=True, text=True, timeout=TIMEOUT_S)
                assert done.returncode == 1 and done.stderr.startswith(words) and done.stderr.count("\n") == 1, done


@test
def python_worker_ends_a_long_poll_at_a_signal():
    with Database() as db, Pawl(db) as pawl:
        server = pawl.serve()
        token = pawl.run("key", "create", "worker", "--scopes", "command", "--json").json["token"]
        worker = Process([sys.executable, os.path.join(EXAMPLES, "python/worker.py"), "shop"],
                         {**os.environ, "PAWL_URL": f"http://{server.host}:{server.port}", "PAWL_TOKEN": token,
                          "WAIT_S": "60"})
        pawl.processes.append(worker)
        assert wait_status(pawl, send(pawl, "shop", "add", {"numbers": [1]}), "COMPLETED")
        wait_until(lambda: worker.said("COMPLETED"), what="it claims again")
        assert worker.stop(timeout=45) == 0, worker.stderr  # sooner than the poll would end


main()
