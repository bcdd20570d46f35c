#!/usr/bin/env python3
"""ledger_race - many want the same money at the same moment, from several servers.

A and B pay each other 2,000 times, and 2,000 holds are raced for; with PAWL_TEST_FULL=1 10,000 of each.
"""
import math
import os
import random
import threading
import time

from ledger_checker import Operation
from ledger_servers import ledger_agrees, new_key, ports_of, rows_of, servers_start, servers_stop, wallets_open
from ledger_swarm import Move, Request, Swarm, resolve, spend, transfer, try_once
from pawl_test import TIMEOUT_S, Database, Pawl, main, test, wait_until
from servers import Session

SEED = 77
FULL = bool(os.environ.get("PAWL_TEST_FULL"))
TRANSFERS = HOLDS = 10000 if FULL else 2000
HOLDS_PER_ROUND = 500
HOLD_CLIENTS = 32  # that capture, and as many that void
FIRST_TAKES_S = 4.0  # a guess at how long the clients take for a round; then as long as the round before took
AMOUNT = 5


@test
def of_64_who_spend_800_from_1000_one_succeeds():
    with Database() as db, Pawl(db) as pawl:
        rows = rows_of(db.url)
        keys = wallets_open(rows, ["ann"], 1000)
        servers = servers_start(pawl, 2)
        history, answers = [], []

        def client(place):
            move, attempts = spend(new_key(), "ann", 800), []
            answers.append((yield from try_once(move, place % 2, attempts)))
            history.append(Operation(move.kind, move.owner, move.other, move.amount, attempts))

        Swarm(ports_of(servers)).run([client(place) for place in range(64)])
        assert sorted(answer.status for answer in answers) == [201] + [409] * 63, [answer.status for answer in answers]
        for answer in answers:
            assert answer.status == 201 or b'"/problems/insufficient-funds"' in answer.body, answer
            assert answer.status == 201 or b'\\"ann\\" has 200 available, 800 are needed' in answer.body, answer
        assert rows("select balance, held, available, version from wallet.get(array['ann'])") == ["200|0|200|2"]
        ledger_agrees(rows, history, keys)
        servers_stop(servers)


def payers(place, servers, history, broken):
    """There and back, one by one, and both in one batch in which a key comes twice."""
    chance = random.Random(SEED * 100 + place)
    while len(history) < TRANSFERS:
        there = ["ann", "bob"] if chance.random() < 0.5 else ["bob", "ann"]
        if chance.random() < 0.9:
            yield from resolve(transfer(new_key(chance), *there, chance.randrange(1, 10)), servers, chance, history)
            broken.extend(attempt for attempt in history[-1].attempts if attempt.status not in (201, 409))
        else:
            first, second = transfer(new_key(chance), *there, 1), transfer(new_key(chance), *reversed(there), 1)
            invoked = time.monotonic()
            answer = yield Request(chance.randrange(servers), "/v1/transfers/batch",
                                   {"items": [first.body, second.body, first.body]})
            if answer is None or answer.status != 200:
                broken.append((invoked, answer))


@test
def transfers_in_both_directions_meet_no_deadlock():
    with Database() as db, Pawl(db) as pawl:
        rows = rows_of(db.url)
        keys = wallets_open(rows, ["ann", "bob"], 100000)
        servers = servers_start(pawl, 3)
        history, broken = [], []
        Swarm(ports_of(servers)).run([payers(place, 3, history, broken) for place in range(32)])
        assert not broken, f"{len(broken)} answers that no client should get: {broken[:3]}"
        deadlocks = rows("select deadlocks from pg_stat_database where datname = current_database()")
        servers_stop(servers)
        batched = rows("select txn_id from wallet.txn where kind = 'transfer'")
        ledger_agrees(rows, history, keys + batched)
        print(f"# {len(history)} transfers, deadlocks inside PostgreSQL: {deadlocks[0]}")
        assert deadlocks == ["0"], deadlocks


# --- holds ---

def holds_place(rows, expires_in_s):
    """A round's holds, [(key, owner)], and when they expire by our clock."""
    group = [(new_key(), f"h{n % 20}") for n in range(HOLDS_PER_ROUND)]
    names = ", ".join(f"'{owner}'" for _, owner in group)
    placed = rows(f"select count(*) from wallet.post(array_fill('hold'::text, array[{len(group)}]), "
                  f"array{[key for key, _ in group]}::uuid[], array[{names}], "
                  f"array_fill({AMOUNT}::bigint, array[{len(group)}]), "
                  f"p_requests => array_fill('{{\"expires_in_s\": {expires_in_s}}}'::jsonb, array[{len(group)}])) p "
                  "where p.refusal is null")
    assert placed == [str(len(group))], placed
    left = rows(f"select extract(epoch from max(h.expires_at) - clock_timestamp()) from wallet.hold h "
                f"join wallet.txn t on t.id = h.id where t.txn_id = any (array{[key for key, _ in group]}::uuid[])")
    return group, time.monotonic() + float(left[0])


def racers(client, kind, group, start, servers, history):
    """This client's share of a round's holds, one after the other from the start on."""
    chance = random.Random(f"{SEED} {kind} {client} {start}")
    yield max(0.0, start - time.monotonic())
    for hold, owner in group[client::HOLD_CLIENTS]:
        body, other = {"txn_id": new_key(chance)}, None
        if kind == "capture":
            other = body["to"] = "shop"
        move = Move(kind, owner, other, None, f"/v1/holds/{hold}/{kind}", body)
        yield from resolve(move, servers, chance, history)


def round_race(rows, servers, takes_s, history):
    """Captures and voids so timed that the holds expire half-way through. Returns the keys, and how long the clients took."""
    group, due = holds_place(rows, math.ceil(takes_s / 2 + 1))
    start = due - takes_s / 2
    Swarm(ports_of(servers)).run([racers(client, kind, group, start, len(servers), history)
                                  for client in range(HOLD_CLIENTS) for kind in ("capture", "void")])
    return [key for key, _ in group], time.monotonic() - start


class Expirers:
    """Sessions that do what monitors do, all the time."""

    def __init__(self, url, count):
        self.over = threading.Event()
        self.released = [0] * count
        self.threads = [threading.Thread(target=self.work, args=(url, place), daemon=True) for place in range(count)]
        for thread in self.threads:
            thread.start()

    def work(self, url, place):
        with Session(url) as session:
            while not self.over.wait(0.02):
                self.released[place] += int(session.do("select wallet.expire(20)")[0])

    def stop(self):
        self.over.set()
        for thread in self.threads:
            thread.join(TIMEOUT_S)
        return sum(self.released)


@test
def of_capture_void_and_expiry_one_wins():
    with Database() as db, Pawl(db) as pawl:
        rows = rows_of(db.url)
        names = [f"h{n}" for n in range(20)]
        keys = wallets_open(rows, names, 10 * HOLDS * AMOUNT) + wallets_open(rows, ["shop"])
        servers = servers_start(pawl, 3)
        history, placed, takes_s = [], [], FIRST_TAKES_S
        expirers = Expirers(db.url, 3)
        for _ in range(HOLDS // HOLDS_PER_ROUND):
            keys_placed, takes_s = round_race(rows, servers, takes_s, history)
            placed += keys_placed
        wait_until(lambda: rows("select count(*) from wallet.hold where status = 'OPEN'") == ["0"], what="no hold is open")
        expirers.stop()
        servers_stop(servers)
        won = [operation.kind for operation in history if operation.attempts[-1].status == 201]
        counts = {"capture": won.count("capture"), "void": won.count("void"),
                  "expire": int(rows("select count(*) from wallet.txn where kind = 'expire' and refusal is null")[0])}
        print(f"# who won: {counts}")
        assert sum(counts.values()) == len(placed), counts
        assert min(counts.values()) > len(placed) // 100, f"{counts}: this was no race"
        assert rows("select ref from wallet.txn where kind in ('capture', 'void', 'expire') and refusal is null "
                    "group by ref having count(*) > 1") == []
        assert rows(f"select balance = {AMOUNT * counts['capture']} from wallet.get(array['shop'])") == ["t"]
        assert rows("select sum(held) from wallet.state") == ["0"]
        assert rows("select refusal, count(*) > 0 from wallet.txn where refusal is not null group by refusal") == ["hold-ended|t"]
        ledger_agrees(rows, history, keys + placed)


main()
