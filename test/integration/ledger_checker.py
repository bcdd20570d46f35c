"""ledger_checker - does the ledger agree with what the clients saw?

A history is a list of operations as their clients lived through them: what was asked for, and every attempt with its key,
when it was sent, when and how it was answered (status None: no answer, so nobody knows). The ledger is read from the
database afterwards. check() compares the two and returns findings, each a sentence that begins with its kind:

    unresolved      a key was tried and its client never learnt what became of it
    lost            acknowledged, but not in the ledger
    doubled         one operation, more than one effect
    refused-posted  refused, but in the ledger
    unasked         in the ledger, but nobody asked for it
    answer          what was answered is not what the ledger says
    replay          one key was answered in two ways, or a repeat does not say that it is one
    broken          an answer that no client should get: 500 and its like
    legs            a transaction's entries are not what its kind, wallets and amount ask for
    sum             entries of a transaction, or balances of an asset, that do not sum to zero
    version         a wallet's versions have a gap or a double
    chain           a balance or a held amount does not follow from the one before it
    floor           a wallet was taken below its floor
    state           how a wallet stands is not what its last entry says
    hold            a hold is not what its transactions say
    order           B began after A had been answered, and yet came before A in a wallet
"""
import json
from collections import defaultdict
from typing import NamedTuple, Optional

CREATED = 201
KEPT = (201, 409)  # what is kept under its key
UNDECIDED = (408, 429)  # besides 5xx: answers after which the same key is to be tried again


class Attempt(NamedTuple):
    key: str
    invoked: float
    answered: float
    status: Optional[int]  # None: no answer
    body: bytes
    replayed: bool = False  # the answer says that it is one that was given before


class Operation(NamedTuple):
    kind: str
    owner: str            # whose; who pays
    other: Optional[str]  # who gets it
    amount: Optional[int]  # None: all of it
    attempts: list


class Txn(NamedTuple):
    number: int
    key: str
    kind: str
    wallet: int
    other: Optional[int]
    amount: int
    ref: Optional[int]
    refusal: str  # "": posted


class Entry(NamedTuple):
    wallet: int
    version: int
    txn: int
    amount: int
    balance: int
    held: int
    floor: int


class Hold(NamedTuple):
    number: int
    wallet: int
    amount: int
    captured: int
    status: str


class State(NamedTuple):
    wallet: int
    version: int
    balance: int
    held: int


class Ledger(NamedTuple):
    wallets: dict  # id: (owner, asset)
    txns: list
    entries: list  # by wallet and version
    states: list
    holds: list


def decided(status):
    """Does this status end an operation? Otherwise its key has to be tried again."""
    return status is not None and status < 500 and status not in UNDECIDED


# --- reading the ledger ---

def number(text):
    return int(text) if text else None


def typed(row, kind):
    """A row of text as what the fields of the tuple say."""
    return kind(*(value if hint is str else number(value)
                  for value, hint in zip(row.split("|"), kind.__annotations__.values())))


def ledger_read(rows):
    """rows: a function that runs SQL and returns lines, columns separated by |. Owners must not contain one."""
    wallets = {}
    for line in rows("select w.id, a.code, w.owner from wallet.wallet w join wallet.asset a on a.id = w.asset_id"):
        wallet, asset, owner = line.split("|")
        wallets[int(wallet)] = (owner, asset)

    def table(kind, sql):
        return [typed(line, kind) for line in rows(sql)]

    return Ledger(
        wallets,
        table(Txn, "select id, txn_id, kind, wallet_id, other_id, amount, ref, refusal from wallet.txn order by id"),
        table(Entry, "select wallet_id, version, txn, amount, balance, coalesce(held, 0), coalesce(floor, 0) "
                     "from wallet.entry order by wallet_id, version, txn"),
        table(State, "select id, version, balance, held from wallet.state order by id"),
        table(Hold, "select id, wallet_id, amount, captured, status from wallet.holds order by id"))


def grouped(items, key):
    groups = defaultdict(list)
    for item in items:
        groups[key(item)].append(item)
    return groups


# --- the ledger by themselves ---

def legs_wanted(txn, ledger):
    """What a transaction must do: {owner: amount}."""
    def owner(wallet):
        return ledger.wallets[wallet][0] if wallet else "@system"

    who, other = owner(txn.wallet), owner(txn.other)
    if txn.refusal:
        return {}
    if txn.kind == "topup":
        return {who: txn.amount, "@system": -txn.amount}
    if txn.kind in ("spend", "transfer", "capture"):
        return {who: -txn.amount, other: txn.amount}
    return {who: 0}


def check_legs(ledger, entries_of):
    for txn in ledger.txns:
        entries = entries_of.get(txn.number, [])
        if txn.kind not in ("multi", "refund"):
            found = {ledger.wallets[entry.wallet][0]: entry.amount for entry in entries}
            wanted = legs_wanted(txn, ledger)
            if found != wanted or len(entries) != len(wanted):
                yield f"legs: {txn.kind} {txn.key} has {found}, not {wanted}"
    numbers = {txn.number for txn in ledger.txns}
    for txn, entries in entries_of.items():
        if txn not in numbers:
            yield f"unasked: entries of transaction {txn}, which is not there"
        totals = defaultdict(int)
        for entry in entries:
            totals[ledger.wallets[entry.wallet][1]] += entry.amount
        if any(totals.values()):
            yield f"sum: entries of transaction {txn} sum to {dict(totals)}"


def check_wallet(wallet, entries, kinds):
    """One wallet from its opening on."""
    balance = held = 0
    for place, entry in enumerate(entries):
        if entry.version != place:
            yield f"version: wallet {wallet} has version {entry.version} at place {place}"
        if entry.balance != balance + entry.amount:
            yield f"chain: wallet {wallet}, version {entry.version}: {balance} and {entry.amount} are not {entry.balance}"
        txn = kinds.get(entry.txn)
        change = 0
        if txn and txn.wallet == wallet:
            change = {"hold": txn.amount, "capture": -txn.amount, "void": -txn.amount, "expire": -txn.amount}.get(txn.kind, 0)
        if entry.held != held + change:
            yield f"chain: wallet {wallet}, version {entry.version}: held is {entry.held}, {held} and {change} are not"
        fell = entry.balance - entry.held < balance - held
        if fell and entry.balance - entry.held < entry.floor:
            yield f"floor: wallet {wallet}, version {entry.version}: {entry.balance} less {entry.held} is below {entry.floor}"
        balance, held = entry.balance, entry.held


def check_wallets(ledger):
    kinds = {txn.number: txn for txn in ledger.txns}
    by_wallet = grouped(ledger.entries, lambda entry: entry.wallet)
    for wallet, entries in by_wallet.items():
        yield from check_wallet(wallet, entries, kinds)
    totals = defaultdict(int)
    for state in ledger.states:
        totals[ledger.wallets[state.wallet][1]] += state.balance
        last = by_wallet[state.wallet][-1] if by_wallet[state.wallet] else None
        if last is None or (last.version, last.balance, last.held) != (state.version, state.balance, state.held):
            yield f"state: wallet {state.wallet} stands at {state}, its last entry is {last}"
    for asset, total in totals.items():
        if total:
            yield f"sum: balances of {asset} sum to {total}"


def check_holds(ledger):
    about = grouped((txn for txn in ledger.txns if txn.ref is not None and not txn.refusal), lambda txn: txn.ref)
    open_of = defaultdict(int)
    for hold in ledger.holds:
        captured = sum(txn.amount for txn in about[hold.number] if txn.kind == "capture")
        ends = [txn.kind for txn in about[hold.number] if txn.kind in ("void", "expire")]
        wanted = {"void": "VOIDED", "expire": "EXPIRED"}[ends[0]] if ends else \
            "CAPTURED" if captured == hold.amount else "OPEN"
        if captured != hold.captured or hold.status != wanted or len(ends) + (captured == hold.amount) > 1:
            yield f"hold: {hold}, but captured were {captured}, and it was ended by {ends}"
        if hold.status == "OPEN":
            open_of[hold.wallet] += hold.amount - hold.captured
    for state in ledger.states:
        if state.held != open_of[state.wallet]:
            yield f"hold: wallet {state.wallet} holds {state.held}, its open holds are {open_of[state.wallet]}"


# --- the ledger against what clients saw ---

def check_resolved(operation):
    """Every key that was sent has an answer that decides, and never two different ones."""
    for key, attempts in grouped(operation.attempts, lambda attempt: attempt.key).items():
        answers = [attempt for attempt in attempts if decided(attempt.status)]
        if not answers:
            yield f"unresolved: {operation.kind} {key} of {operation.owner}"
        for attempt in answers[1:]:
            if attempt[3:5] != answers[0][3:5] or attempt.status in KEPT and not attempt.replayed:
                yield f"replay: {operation.kind} {key} was answered {answers[0]}, and then {attempt}"
        for attempt in attempts:
            if attempt.status is not None and attempt.status >= 500 and attempt.status != 503:
                yield f"broken: {operation.kind} {key} was answered {attempt.status} {attempt.body!r}"


def answer_of(operation):
    """The first answer that decides."""
    return next((attempt for attempt in operation.attempts if decided(attempt.status)), None)


def check_answer(operation, answer, txn, entry, ledger):
    """An acknowledged operation against its transaction and its owner's entry."""
    other = ledger.wallets[txn.other][0] if txn.other and txn.kind in ("transfer", "capture") else None
    asked = (operation.kind, operation.owner, operation.other)
    if asked != (txn.kind, ledger.wallets[txn.wallet][0], other) or operation.amount not in (None, txn.amount):
        yield f"answer: {asked} {operation.amount} was asked for under {txn.key}, the ledger has {txn}"
    try:
        body = json.loads(answer.body)
    except ValueError:
        yield f"answer: {txn.key} was answered {answer.body!r}"
        return
    said = tuple(body.get(name) for name in ("txn_id", "amount", "balance_before", "balance", "held", "available", "version"))
    kept = (txn.key, txn.amount, entry.balance - entry.amount, entry.balance, entry.held,
            entry.balance - entry.held - entry.floor, entry.version)
    if said != kept:
        yield f"answer: {txn.kind} {txn.key} was answered {said}, the ledger says {kept}"


def check_operation(operation, txns_of, entries_of, ledger):
    keys = {attempt.key for attempt in operation.attempts}
    txns = [txn for key in keys for txn in txns_of.get(key, ()) if not txn.refusal]
    answer = answer_of(operation)
    if len(txns) > 1:
        yield f"doubled: {operation.kind} of {operation.owner} was posted as {[txn.key for txn in txns]}"
    if answer is None:
        return
    name = f"{operation.kind} {answer.key}"
    if answer.status == CREATED and not txns:
        yield f"lost: {name} was acknowledged"
    elif answer.status == CREATED:
        entry = next((e for e in entries_of.get(txns[0].number, ()) if e.wallet == txns[0].wallet), None)
        if entry is None:
            yield f"lost: {name} was acknowledged, its owner has no entry"
        else:
            yield from check_answer(operation, answer, txns[0], entry, ledger)
    elif txns:
        yield f"refused-posted: {name} was answered {answer.status}, the ledger has {txns[0]}"


def check_asked(history, ledger, asked_elsewhere):
    keys = {attempt.key for operation in history for attempt in operation.attempts}
    for txn in ledger.txns:
        if txn.key not in keys and txn.key not in asked_elsewhere and txn.kind not in ("open", "expire"):
            yield f"unasked: {txn}"


def check_order(history, txns_of, entries_of):
    """Along the versions of a wallet: no operation was answered before an earlier one was sent."""
    times = defaultdict(list)
    for operation in history:
        answer = answer_of(operation)
        if answer is None or answer.status != CREATED:
            continue
        for txn in txns_of.get(answer.key, ()):
            for entry in entries_of.get(txn.number, ()):
                times[entry.wallet].append((entry.version, operation.attempts[0].invoked, answer.answered, txn.key))
    for wallet, spans in times.items():
        latest, who = 0.0, None
        for version, invoked, answered, key in sorted(spans):
            if answered < latest:
                yield (f"order: wallet {wallet}, version {version}: {key} was answered {latest - answered:.6f} s before "
                       f"{who} began, which has a smaller version")
            if invoked > latest:
                latest, who = invoked, key


def check(history, ledger, asked_elsewhere=()):
    """All findings; none: the ledger and the clients agree."""
    entries_of = grouped(ledger.entries, lambda entry: entry.txn)
    txns_of = grouped(ledger.txns, lambda txn: txn.key)
    findings = [*check_legs(ledger, entries_of), *check_wallets(ledger), *check_holds(ledger),
                *check_asked(history, ledger, frozenset(asked_elsewhere)), *check_order(history, txns_of, entries_of)]
    for operation in history:
        findings.extend(check_resolved(operation))
        findings.extend(check_operation(operation, txns_of, entries_of, ledger))
    return findings


def kinds_of(findings):
    return {finding.split(":", 1)[0] for finding in findings}
