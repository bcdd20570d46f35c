#!/usr/bin/env python3
"""ledger_crash - money moves while servers are killed and PostgreSQL restarts, and every client learns what became of it.

64 clients send transfers between 200 wallets to three servers. One server is killed each second and started again; PostgreSQL
is stopped as in a crash once. A client that got no answer tries the same key on another server until it gets one. Afterwards
the checker (ledger_checker.py) compares what they saw with the ledger.

PAWL_LEDGER_TRANSFERS: how many; 20000 by default, because each second counts in CI; 100000 is the number that is promised.

Then errors are planted, into the functions or into the clients, and the checker must find them.
"""
import os
import random
import signal
import threading
import time

from checks import is_clean
from ledger_checker import Operation, ledger_read, check, kinds_of
from ledger_servers import ledger_agrees, new_key, ports_of, rows_of, servers_start, servers_stop, wallets_open
from ledger_swarm import RETRY_S, SwarmProcess, resolve, spend, topup, transfer, try_once
from pawl_test import Database, Pawl, main, test
from servers import Cluster

SEED = 1492
TRANSFERS = int(os.environ.get("PAWL_LEDGER_TRANSFERS", "20000"))
CLIENTS = 64
WALLETS = 200
SERVERS = 3
KILL_EVERY_S = 1.0
TIMEOUT_S = 300 + TRANSFERS // 50
# The breaker probes soon, so that an outage of a second does not become one of half a minute.
ENV = {"PAWL_BREAKER_OPEN": "500ms", "PAWL_REQUEST_TIMEOUT": "5s"}
NO_DATABASE = 69  # the exit code of a serve that cannot begin without one


def owners(count):
    return [f"w{n}" for n in range(count)]


def random_move(chance, names):
    """Nearly always a transfer; now and then money comes in or goes out."""
    key, what, amount = new_key(chance), chance.random(), chance.randrange(1, 200)
    payer, payee = chance.sample(names, 2)
    if what < 0.02:
        return topup(key, payer, amount)
    if what < 0.04:
        return spend(key, payer, amount)
    return transfer(key, payer, payee, amount)


def client(place, count, names, servers, history, done, *, hang_up=0.0, again=0.01):
    """One after the other. again: how many answered ones are asked once more; hang_up: how many answers are not waited for."""
    chance = random.Random(SEED * 1000 + place)
    for _ in range(count):
        move = random_move(chance, names)
        yield from resolve(move, servers, chance, history, hang_up=chance.random() < hang_up)
        if chance.random() < again:
            yield from try_once(move, chance.randrange(servers), history[-1].attempts)
        done.value += 1


def clients(count, names, servers, **habits):
    """What SwarmProcess wants: the generators."""
    def make(history, done):
        return [client(place, count // CLIENTS + (place < count % CLIENTS), names, servers, history, done, **habits)
                for place in range(CLIENTS)]

    return make


class Killer:
    """Each second another one of the servers dies and comes back on a port of its own."""

    def __init__(self, pawl, servers, ports):
        self.pawl, self.servers, self.ports = pawl, servers, ports
        self.kills = 0
        self.trouble = None
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.work, daemon=True)
        self.thread.start()

    def work(self):
        try:
            begun = time.monotonic()
            while not self.over.wait(max(0.0, begun + (self.kills + 1) * KILL_EVERY_S - time.monotonic())):
                self.kill(self.kills % SERVERS)
        except Exception as error:
            self.trouble = error

    def kill(self, place):
        victim = self.servers[place]
        assert victim.stop(signal.SIGKILL) == -signal.SIGKILL, f"it had ended by itself: {victim.stderr[-5:]}"
        assert is_clean(victim), "\n".join(victim.stderr)
        self.kills += 1
        self.servers[place] = self.revive()
        self.ports[place] = self.servers[place].port

    def revive(self):
        """As a supervisor does: one that meets a database which is just being restarted gives up soon, and is started anew."""
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            server = self.pawl.serve(env=ENV, wait=False)
            try:
                server.wait_ready(TIMEOUT_S)
                return server
            except (AssertionError, ConnectionError):
                if server.is_running() or server.wait() != NO_DATABASE or time.monotonic() > deadline:
                    raise

    def stop(self):
        self.over.set()
        self.thread.join(TIMEOUT_S)
        assert self.trouble is None, self.trouble


def wait_done(swarm, count):
    """Until this many are through, or the clients have ended."""
    deadline = time.monotonic() + TIMEOUT_S
    while swarm.done.value < count and swarm.is_running():
        assert time.monotonic() < deadline, f"{swarm.done.value} of {count} after {TIMEOUT_S} s"
        time.sleep(0.05)


@test
def killed_servers_and_a_restarted_database_lose_nothing_and_do_nothing_twice():
    # Commits are durable here, as in production: a crash takes back nothing that was confirmed.
    with Cluster(conf="synchronous_commit = on\n") as cluster, Pawl(cluster.url(), env=ENV) as pawl:
        assert pawl.run("migrate").code == 0
        rows = rows_of(cluster.url())
        keys = wallets_open(rows, owners(WALLETS), 1000)
        servers = servers_start(pawl, SERVERS)
        swarm = SwarmProcess(ports_of(servers), clients(TRANSFERS, owners(WALLETS), SERVERS))
        begun = time.monotonic()
        try:
            killer = Killer(pawl, servers, swarm.ports)
            wait_done(swarm, TRANSFERS // 4)
            assert swarm.is_running(), "the restart came too late to hurt"
            cluster.restart("immediate")
            history = swarm.result(TIMEOUT_S)
            took = time.monotonic() - begun
            killer.stop()
        finally:
            swarm.stop()
        servers_stop(servers)
        assert len(history) == TRANSFERS
        unclear = sum(len(operation.attempts) > 2 or operation.attempts[0].status is None for operation in history)
        assert unclear, "no answer was lost: nothing was tested"
        ledger_agrees(rows, history, keys)
        posted = sum(operation.attempts[-1].status == 201 for operation in history)
        print(f"# {TRANSFERS} in {took:.1f} s, {posted} posted, {killer.kills} kills, {unclear} without a first answer")


# --- planted errors ---

def replaced(rows, function, *changes):
    """The definition of a function with other words in it."""
    text = "\n".join(rows(f"select pg_get_functiondef('{function}'::regproc)"))
    for old, new in changes:
        assert old in text, f"{function} does not say {old!r}"
        text = text.replace(old, new)
    rows(text)


def lock_forgotten(rows):
    """Without the key of entries: that alone would turn most of it into errors instead of wrong entries."""
    replaced(rows, "wallet.post_lock", ("for no key update skip locked", ""), ("for no key update", ""))
    rows("alter table wallet.entry drop constraint entry_pkey; create index on wallet.entry (wallet_id, version)")


def key_forgotten(rows):
    """Nobody looks whether a key was used; and without the unique key, which would say so."""
    replaced(rows, "wallet.items_referred", ("from wallet.txn k where k.txn_id = u.txn_id limit 1", "where false"))
    replaced(rows, "wallet.legs_run", ("select from wallet.txn t where t.txn_id = p_txn_ids[1]", "select where false"),
             ("select from wallet.txn t where t.txn_id = k.txn_id limit 1", "select where false"))
    replaced(rows, "wallet.refusals_under_lock", ("from wallet.txn t where t.txn_id = u.txn_id and u.refusal is null limit 1", "where false"))
    replaced(rows, "wallet.batch_txns", ("on conflict on constraint txn_key do nothing", ""))
    rows("alter table wallet.txn drop constraint txn_key; create index on wallet.txn (txn_id)")


def reply_forgotten(rows):
    """A repeat gets the wallet's present balance in the header, not the balance of the first response."""
    replaced(rows, "wallet.post_replay", ("e.balance - e.amount, e.balance, coalesce", "e.balance - e.amount, s.balance, coalesce"))


def client_with_new_keys(place, count, names, servers, history, done):
    """Does not wait for one answer in ten, and then tries under another key, as if the first one had never been."""
    chance = random.Random(SEED * 1000 + place)
    for _ in range(count):
        move, attempts = random_move(chance, names), []
        answer = yield from try_once(move, chance.randrange(servers), attempts, hang_up=chance.random() < 0.1)
        while answer is None:
            yield RETRY_S
            move = move._replace(body={**move.body, "txn_id": new_key(chance)})
            answer = yield from try_once(move, chance.randrange(servers), attempts)
        history.append(Operation(move.kind, move.owner, move.other, move.amount, attempts))
        done.value += 1


def findings_of(plant=lambda rows: None, make=None, count=3000, wallets=20):
    """What the checker finds after a run with an error in it."""
    with Database() as db, Pawl(db, env=ENV) as pawl:
        rows = rows_of(db.url)
        keys = wallets_open(rows, owners(wallets), 1000)
        plant(rows)
        servers = servers_start(pawl, SERVERS)
        swarm = SwarmProcess(ports_of(servers), make or clients(count, owners(wallets), SERVERS, hang_up=0.02, again=0.1))
        try:
            history = swarm.result(TIMEOUT_S)
        finally:
            swarm.stop()
        return check(history, ledger_read(rows), keys)


@test
def without_a_planted_error_nothing_is_found():
    findings = findings_of()
    assert not findings, findings[:10]


@test
def a_lock_that_is_skipped_is_found():
    kinds = kinds_of(findings_of(lock_forgotten))
    assert {"version", "chain"} & kinds, kinds


@test
def a_key_that_is_ignored_is_found():
    kinds = kinds_of(findings_of(key_forgotten))
    assert {"doubled", "replay"} <= kinds, kinds


@test
def a_reply_that_is_made_anew_is_found():
    kinds = kinds_of(findings_of(reply_forgotten))
    assert "replay" in kinds or "answer" in kinds, kinds


@test
def a_client_that_does_not_resolve_is_found():
    def make(history, done):
        return [client_with_new_keys(place, 40, owners(20), SERVERS, history, done) for place in range(CLIENTS)]

    kinds = kinds_of(findings_of(make=make))
    assert {"unresolved", "doubled"} <= kinds, kinds


main()
