#!/usr/bin/env python3
"""bus_wake - who queues commands notifies the workers of their domains after the commit: decisions of operators, order keys, requeued commands."""
import os
import re
import subprocess

from pawl_test import Database, Pawl, Process, main, setting, test, wait_until
from bus_commands import new_id, send
from process_cli import define, start


class Listener:
    """psql that listens to notifications of work."""

    def __init__(self, db):
        self.psql = Process([os.path.join(setting("PAWL_TEST_BIN"), "psql"), "-Xq", db.url], stdin=subprocess.PIPE)
        self.heard("listen pawl_work")
        wait_until(lambda: self.heard("select 'listening'") or self.psql.said("listening"), what="it listens")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.psql.kill()

    def heard(self, sql="select 1"):
        """The domains of all notifications so far; psql reads them after a statement."""
        self.psql.process.stdin.write(sql + ";\n")
        self.psql.process.stdin.flush()
        return [found[1] for line in self.psql.stdout[:] if (found := re.search('payload "(.*?)"', line))]

    def wait(self, domain, what):
        """Until a notification for the domain came; then forget all of them."""
        wait_until(lambda: domain in self.heard(), what=what)
        self.psql.stdout.clear()


def fail_one(db):
    """The command that is leased goes to the troubleshooting queue."""
    assert db.value("select s.status from pawl.lease l, pawl.settle(array[l.id], array[l.token], '{fail}') s") == "IN_TSQ"


def claim_one(db, domain):
    """One command, although more were asked for."""
    assert db.value(f"select count(*) from pawl.claim(pawl.domain_find('{domain}'), 10, 600000, array_fill(0::bigint, '{{10}}'), null, 'w')") == "1"


@test
def a_retry_from_the_troubleshooting_queue_wakes_its_domain():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        ids = [send(pawl, "shop", "charge") for _ in range(3)]
        db.rows("select count(*) from pawl.claim(pawl.domain_find('shop'), 10, 600000, array_fill(0::bigint, '{10}'), null, 'w')")
        db.rows("select s.status from pawl.lease l, pawl.settle(array[l.id], array[l.token], '{fail}') s")
        assert db.value("select count(*) from pawl.tsq") == "3"
        with Listener(db) as listener:
            assert pawl.http("POST", f"/v1/tsq/{ids[0]}/retry", {}).status == 200
            listener.wait("shop", "the retry over HTTP wakes the domain")
            assert pawl.run("tsq", "retry", ids[1]).code == 0
            listener.wait("shop", "the retry from the command line wakes the domain")
            assert pawl.run("tsq", "retry", "--all", "--domain", "shop", "--yes").stdout == "1 queued again\n"
            listener.wait("shop", "the retry of all that match wakes the domain")


@test
def an_end_by_decision_wakes_for_the_next_command_of_its_key():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        ids = [send(pawl, "shop", "charge", None, "--order-key", "k") for _ in range(5)]
        with Listener(db) as listener:
            for what, decide in (
                    ("a cancellation over HTTP", lambda id: pawl.http("POST", f"/v1/commands/{id}/cancel", {}).status == 200),
                    ("a cancellation from the command line", lambda id: pawl.run("command", "cancel", id).code == 0),
                    ("a cancellation in troubleshooting", lambda id: pawl.http("POST", f"/v1/tsq/{id}/cancel", {}).status == 200),
                    ("a completion by an operator", lambda id: pawl.http("POST", f"/v1/tsq/{id}/complete", {}).status == 200)):
                claim_one(db, "shop")  # the others are parked, and stay so while the first is in troubleshooting
                fail_one(db)
                assert decide(ids.pop(0))
                listener.wait("shop", f"{what} wakes for the next one")


@test
def requeued_commands_wake_their_domains():
    with Database() as db, Pawl(db) as pawl:
        # No worker of these domains runs in the pod: its monitor requeues.
        pawl.serve()
        with Listener(db) as listener:
            sent = pawl.http("POST", "/v1/commands", {"domain": "later", "type": "t", "delay_s": 1})
            assert sent.status == 201, sent
            send(pawl, "lost", "t")
            listener.wait("lost", "a command that can be claimed wakes its domain")
            claim_one(db, "lost")
            db.rows("update pawl.lease set until = now() - interval '1 s'")
            listener.wait("lost", "an expired lease wakes its domain")
            wait_until(lambda: db.value("select count(*) from pawl.ready") == "2", what="both are queued")
        with Listener(db) as listener:
            pawl.http("POST", "/v1/commands", {"domain": "later", "type": "t", "delay_s": 1})
            listener.wait("later", "a delayed command that is due wakes its domain")


@test
def the_last_command_of_a_batch_wakes_its_domain():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        batch = new_id()
        body = {"batch_id": batch, "open": True, "on_complete": {"domain": "report", "type": "t"},
                "items": [{"domain": "shop", "type": "t", "command_id": new_id()}]}
        assert pawl.http("POST", "/v1/commands/batch", body).status == 201
        claim = pawl.http("POST", "/v1/domains/shop/claim", {"limit": 1}).json["items"]
        settle = {"items": [{"command_id": claim[0]["command_id"], "lease": claim[0]["lease"], "outcome": "complete"}]}
        assert pawl.http("POST", "/v1/domains/shop/settle", settle).json["items"][0]["settled"]
        with Listener(db) as listener:
            assert pawl.http("POST", f"/v1/batches/{batch}/seal", {}).status == 200
            listener.wait("report", "the command that follows a batch wakes its domain")


@test
def a_retry_without_a_delay_wakes_its_domain():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        send(pawl, "shop", "charge")
        claim = pawl.http("POST", "/v1/domains/shop/claim", {"limit": 1}).json["items"]
        settle = {"items": [{"command_id": claim[0]["command_id"], "lease": claim[0]["lease"], "outcome": "retry", "delay_s": 0}]}
        with Listener(db) as listener:
            assert pawl.http("POST", "/v1/domains/shop/settle", settle).json["items"][0]["settled"]
            listener.wait("shop", "a command that is queued again immediately wakes its domain")


@test
def a_step_that_sends_a_command_or_starts_a_child_wakes_its_domain():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        define(pawl, {"domain": "edge", "type": "order", "steps": [
            {"name": "both", "parallel": {"x": [{"name": "pay", "command": {"domain": "bank", "type": "charge"}}],
                                          "y": [{"name": "sub", "process": {"domain": "other", "type": "child"}}]}}]})
        with Listener(db) as listener:
            start(pawl, "order")
            wait_until(lambda: {"bank", "process:other"} <= set(listener.heard()), what="both domains are woken")


main()
