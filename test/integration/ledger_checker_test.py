#!/usr/bin/env python3
"""ledger_checker - does the checker find what it is there for? Small ledgers by hand, sound first, then with one error each."""
import json

from ledger_checker import Attempt, Ledger, Entry, Hold, Operation, State, Txn, check, kinds_of
from pawl_test import main, test

WALLETS = {1: ("@system", "CREDIT"), 2: ("ann", "CREDIT"), 3: ("bob", "CREDIT")}


def body(key, amount, before, balance, version, held=0):
    return json.dumps({"txn_id": key, "amount": amount, "balance_before": before, "balance": balance, "held": held,
                       "available": balance - held, "version": version}).encode()


def sound():
    """Ann gets 100 from outside, gives 30 to bob, asks for too much, has 20 held and 20 captured; all of it in order."""
    txns = [Txn(n, f"open{n}", "open", n, None, 0, None, "") for n in (1, 2, 3)] + [
        Txn(11, "k1", "topup", 2, 1, 100, None, ""), Txn(12, "k2", "transfer", 2, 3, 30, None, ""),
        Txn(13, "k3", "spend", 2, 1, 500, None, "insufficient-funds"), Txn(14, "k4", "hold", 2, None, 20, None, ""),
        Txn(15, "k5", "capture", 2, 3, 20, 14, "")]
    entries = [Entry(1, 0, 1, 0, 0, 0, 0), Entry(1, 1, 11, -100, -100, 0, -1000),
               Entry(2, 0, 2, 0, 0, 0, 0), Entry(2, 1, 11, 100, 100, 0, 0), Entry(2, 2, 12, -30, 70, 0, 0),
               Entry(2, 3, 14, 0, 70, 20, 0), Entry(2, 4, 15, -20, 50, 0, 0),
               Entry(3, 0, 3, 0, 0, 0, 0), Entry(3, 1, 12, 30, 30, 0, 0), Entry(3, 2, 15, 20, 50, 0, 0)]
    states = [State(1, 1, -100, 0), State(2, 4, 50, 0), State(3, 2, 50, 0)]
    history = [
        Operation("topup", "ann", None, 100, [Attempt("k1", 1.0, 1.5, None, b""), Attempt("k1", 2.0, 2.5, 503, b"{}"),
                                              Attempt("k1", 3.0, 3.5, 201, body("k1", 100, 0, 100, 1))]),
        Operation("transfer", "ann", "bob", 30, [Attempt("k2", 4.0, 4.5, 201, body("k2", 30, 100, 70, 2)),
                                                 Attempt("k2", 4.6, 4.7, 201, body("k2", 30, 100, 70, 2), True)]),
        Operation("spend", "ann", None, 500, [Attempt("k3", 5.0, 5.5, 409, b"{}")]),
        Operation("hold", "ann", None, 20, [Attempt("k4", 6.0, 6.5, 201, body("k4", 20, 70, 70, 3, 20))]),
        Operation("capture", "ann", "bob", None, [Attempt("k5", 7.0, 7.5, 201, body("k5", 20, 70, 50, 4))])]
    return history, Ledger(WALLETS, txns, entries, states, [Hold(14, 2, 20, 20, "CAPTURED")])


def found(change):
    """The kinds of findings after one change to sound ledger and histories."""
    history, ledger = sound()
    change(history, ledger)
    return kinds_of(check(history, ledger))


def put(rows, place, **fields):
    rows[place] = rows[place]._replace(**fields)


def attempt_put(history, operation, attempt, **fields):
    put(history[operation].attempts, attempt, **fields)


@test
def a_sound_ledger_has_no_finding():
    history, ledger = sound()
    assert check(history, ledger) == []


# What is done to the sound ledger, and which kind of finding must be among those that show.
PLANTED = {
    "a client gave up": ("unresolved", lambda h, b: attempt_put(h, 0, 2, status=None)),
    "a client took an overload for an answer": ("unresolved", lambda h, b: h[0].attempts.pop()),
    "a client tried again under a new key": ("unresolved", lambda h, b: h[2].attempts.insert(
        0, Attempt("k9", 4.9, 4.95, None, b""))),
    "acknowledged, never written": ("lost", lambda h, b: h.append(
        Operation("topup", "ann", None, 5, [Attempt("k9", 8, 9, 201, body("k9", 5, 50, 55, 5))]))),
    "acknowledged, kept as refused": ("lost", lambda h, b: attempt_put(h, 2, 0, status=201)),
    "one key, two transactions": ("doubled", lambda h, b: b.txns.append(b.txns[4]._replace(number=16))),
    "one operation, two keys that both were posted": ("doubled", lambda h, b: h[1].attempts.append(
        Attempt("k1", 4.8, 4.9, 201, body("k1", 100, 0, 100, 1)))),
    "refused, but posted": ("refused-posted", lambda h, b: attempt_put(h, 3, 0, status=409, body=b"{}")),
    "posted, and nobody asked": ("unasked", lambda h, b: h.pop()),
    "entries without a transaction": ("unasked", lambda h, b: b.txns.pop()),
    "reported another balance": ("answer", lambda h, b: attempt_put(h, 3, 0, body=body("k4", 20, 70, 71, 3, 20))),
    "reported another version": ("answer", lambda h, b: attempt_put(h, 3, 0, body=body("k4", 20, 70, 70, 4, 20))),
    "reported another held amount": ("answer", lambda h, b: attempt_put(h, 3, 0, body=body("k4", 20, 70, 70, 3, 10))),
    "reported no JSON": ("answer", lambda h, b: attempt_put(h, 3, 0, body=b"ok")),
    "posted for another owner": ("answer", lambda h, b: put(h, 0, owner="bob")),
    "posted with another amount": ("answer", lambda h, b: put(h, 1, amount=31)),
    "posted to another wallet": ("answer", lambda h, b: put(h, 1, other="ann")),
    "a repeat with other bytes": ("replay", lambda h, b: attempt_put(h, 1, 1, body=body("k2", 30, 100, 70, 2) + b" ")),
    "a repeat with another status": ("replay", lambda h, b: attempt_put(h, 1, 1, status=200)),
    "a repeat that does not say so": ("replay", lambda h, b: attempt_put(h, 1, 1, replayed=False)),
    "an answer 500": ("broken", lambda h, b: attempt_put(h, 0, 1, status=500)),
    "a transaction without one of its entries": ("legs", lambda h, b: b.entries.pop(8)),
    "a refused one with entries": ("legs", lambda h, b: b.entries.insert(7, Entry(2, 5, 13, 0, 50, 0, 0))),
    "the wrong wallet was credited": ("legs", lambda h, b: put(b.txns, 4, other=1)),
    "money out of nothing": ("sum", lambda h, b: put(b.entries, 8, amount=31, balance=31)),
    "balances that do not add up": ("sum", lambda h, b: put(b.states, 2, balance=51)),
    "a gap in the versions": ("version", lambda h, b: put(b.entries, 9, version=3)),
    "a version twice": ("version", lambda h, b: put(b.entries, 6, version=3)),
    "a lost update": ("chain", lambda h, b: put(b.entries, 6, balance=80)),
    "a held amount that was forgotten": ("chain", lambda h, b: put(b.entries, 6, held=20)),
    "an overdraft": ("floor", lambda h, b: put(b.entries, 4, floor=71)),
    "a state that is behind": ("state", lambda h, b: put(b.states, 1, version=3, balance=70, held=20)),
    "a hold captured twice": ("hold", lambda h, b: b.txns.append(Txn(16, "k6", "capture", 2, 3, 20, 14, ""))),
    "a hold captured and voided": ("hold", lambda h, b: b.txns.append(Txn(16, "k6", "void", 2, None, 20, 14, ""))),
    "a hold that is said to be open": ("hold", lambda h, b: put(b.holds, 0, status="OPEN")),
    "an order that nobody saw": ("order", lambda h, b: attempt_put(h, 4, 0, invoked=3.8, answered=3.9)),
}


@test
def each_planted_error_is_found():
    for what, (kind, change) in PLANTED.items():
        kinds = found(change)
        assert kind in kinds, f"{what}: {kind} was not found, but {sorted(kinds)}"


@test
def every_kind_of_finding_has_a_planted_error():
    import ledger_checker
    named = {line.split()[0] for line in ledger_checker.__doc__.splitlines() if line.startswith("    ")}
    assert named == {kind for kind, _ in PLANTED.values()}, named


@test
def what_may_overlap_is_not_an_error_of_order():
    # The capture began before the hold was answered: either order would be right.
    history, ledger = sound()
    attempt_put(history, 3, 0, answered=7.2)
    attempt_put(history, 4, 0, invoked=6.1, answered=6.4)
    assert check(history, ledger) == []


main()
