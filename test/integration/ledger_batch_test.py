#!/usr/bin/env python3
"""ledger_batch - many operations in one call are decided as if each had come alone.

Two databases get the same operations in the same order, by chance: one in calls of many, the other one by one. Every verdict
must be the same, and so must the ledgers. PAWL_LEDGER_OPERATIONS: how many; 6000 by default.
"""
import json
import os
import random

from ledger_servers import new_key
from pawl_test import Database, main, test
from servers import Session

SEED = int(os.environ.get("PAWL_LEDGER_SEED", "11"))
OPERATIONS = int(os.environ.get("PAWL_LEDGER_OPERATIONS", "6000"))
OWNERS = ("ann", "bob", "cid", "dan")
VERDICT = ("p.txn_id, p.is_new, p.refusal, p.sentence, p.differs, p.kind, p.owner, p.other, p.asset, p.amount, p.balance_before, "
           "p.balance, p.held, p.available, p.version")
LEDGER = """
select w.owner, a.code, e.version, t.txn_id, e.amount, e.balance, e.held, e.floor, e.frozen
from wallet.entry e join wallet.wallet w on w.id = e.wallet_id join wallet.asset a on a.id = w.asset_id
join wallet.txn t on t.id = e.txn
where w.owner <> '@system' and e.version > 0 order by 1, 2, 3"""
HOLDS = "select t.txn_id, h.amount, h.captured, h.status from wallet.holds h join wallet.txn t on t.id = h.id order by 1"
# Numbers and times are not compared; the clock of both is the real one, and no hold comes near its time.
OPENING = """
select count(*) from wallet.open(array['ann', 'bob', 'cid', 'dan', 'ann', 'bob'], array[null, null, null, null, 'EUR', 'EUR'],
                                 array[0, -100, 0, 0, 0, -50]::bigint[])"""


KINDS = {"topup": 12, "spend": 20, "transfer": 30, "multi": 6, "hold": 12, "capture": 12, "void": 6, "refund": 8, "freeze": 1,
         "unfreeze": 2, "floor": 1}  # and how often


class Maker:
    """Operations that mean something often enough: about keys, holds and payments that exist, or nearly."""

    def __init__(self, chance):
        self.chance = chance
        self.kinds = KINDS
        self.said = []  # all that were asked for
        self.holds, self.paid = [], []

    def pick(self, keys):
        return self.chance.choice(keys[-12:]) if keys and self.chance.random() < 0.95 else new_key(self.chance)

    def call(self, size):
        """Sometimes of the most simple ones only, which are decided by a shorter way."""
        self.kinds = KINDS if self.chance.random() < 0.5 else dict.fromkeys(("topup", "spend", "transfer"), 1)
        return [operation for operation in (self.make() for _ in range(size)) if is_sound(operation)]

    def make(self):
        chance = self.chance
        roll = chance.random()
        if self.said and roll < 0.08:
            return dict(self.again())
        if self.said and roll < 0.11:
            return {**self.again(), "amount": chance.randrange(1, 50)}
        if self.said and roll < 0.12:
            return {**self.fresh(), "key": self.again()["key"]}
        return self.fresh()

    def again(self):
        """One of the last, of the kinds that this call has."""
        last = self.said[-40:]
        return self.chance.choice([operation for operation in last if operation["kind"] in self.kinds] or last)

    def fresh(self):
        chance = self.chance
        kind = chance.choices(list(self.kinds), self.kinds.values())[0]
        operation = {"kind": kind, "key": new_key(chance)}
        if kind in ("topup", "spend", "transfer", "hold"):
            operation.update(owner=self.owner(), amount=chance.randrange(1, 120),
                             asset=chance.choice((None, None, None, "CREDIT", "EUR")))
        if kind == "transfer":
            operation["other"] = chance.choice([name for name in OWNERS if name != operation["owner"]])
        if kind == "hold":
            operation["request"] = chance.choice((None, {"expires_in_s": 3600}, {"metadata": {"n": chance.randrange(3)}}))
            self.holds.append(operation["key"])
        if kind in ("capture", "void"):
            operation["ref"] = self.pick(self.holds)
        if kind == "refund":
            operation["ref"] = self.pick(self.paid)
        if kind in ("capture", "refund"):
            operation["amount"] = chance.choice((None, chance.randrange(1, 60)))
        if kind == "capture":
            operation["other"] = chance.choice((None, *OWNERS))
        if kind in ("freeze", "unfreeze", "floor"):
            operation["owner"] = self.owner()
        if kind == "floor":
            operation["request"] = {"floor": -chance.randrange(0, 200)}
        if kind == "multi":
            operation["request"] = {"legs": self.legs()}
        if kind in ("topup", "spend", "transfer", "capture", "multi"):
            self.paid.append(operation["key"])
        self.said.append(operation)
        return operation

    def owner(self):
        return self.chance.choice(OWNERS) if self.chance.random() < 0.98 else "nobody"

    def legs(self):
        """Three that sum to zero, or two."""
        first, second = -self.chance.randrange(1, 60), self.chance.randrange(1, 60)
        names = self.chance.sample([*OWNERS, "@system"], 3)
        return [{"owner": name, "amount": amount} for name, amount in zip(names, (first, second, -first - second)) if amount]


def literal(value):
    if value is None:
        return "null"
    return str(value) if isinstance(value, int) else "'" + value.replace("'", "''") + "'"


def array(operations, name, cast):
    """As the program passes it: none at all if no operation has one, for which there are shorter ways."""
    if all(operation.get(name) is None for operation in operations):
        return "null"
    values = ", ".join(literal(json.dumps(operation[name]) if isinstance(operation.get(name), dict) else operation.get(name))
                       for operation in operations)
    return f"array[{values}]::{cast}[]"


def post_sql(operations, atomic=False):
    arrays = ", ".join(array(operations, name, cast) for name, cast in (
        ("kind", "text"), ("key", "uuid"), ("owner", "text"), ("amount", "bigint"), ("other", "text"), ("asset", "text"),
        ("ref", "uuid"), ("request", "jsonb")))
    return f"select {VERDICT} from wallet.post({arrays}, {atomic}) p order by p.ord"


def post(session, operations):
    """Verdicts as lines."""
    return session.do(post_sql(operations))


def is_sound(operation):
    """Not one of those for which wallet.post refuses the whole call; a repeat with another amount may have become one."""
    return operation["kind"] not in ("multi", "void", "freeze", "unfreeze", "floor") or not operation.get("amount")


def calls(chance, count, sizes):
    """So many operations, in calls of these sizes."""
    maker = Maker(chance)
    while count > 0:
        call = maker.call(chance.choice(sizes))
        count -= len(call)
        if call:
            yield call


@test
def many_in_one_call_are_decided_as_if_each_had_come_alone():
    met = set()
    with Database() as many, Database() as alone, Session(many.url) as together, Session(alone.url) as single:
        for session in (together, single):
            session.do(OPENING)
        for call in calls(random.Random(SEED), OPERATIONS, (1, 2, 5, 20, 60)):
            verdicts = post(together, call)
            assert len(verdicts) == len(call), (len(verdicts), call)
            for operation, verdict in zip(call, verdicts):
                wanted = post(single, [operation])
                assert [verdict] == wanted, f"{operation} of {call}\n many: {verdict}\nalone: {wanted[0]}"
                met.add((operation["kind"], verdict.split("|")[2]))
        assert together.do(LEDGER) == single.do(LEDGER)
        assert together.do(HOLDS) == single.do(HOLDS)
        for session in (together, single):
            assert session.do("select * from wallet.verify()") == []
    wanted = {"", "insufficient-funds", "wallet-frozen", "hold-ended", "over-captured", "over-refunded", "not-refundable",
              "wallet-unknown", "hold-unknown", "transaction-unknown", "same-wallet"}
    assert wanted <= {refusal for _, refusal in met}, f"never met: {wanted - {refusal for _, refusal in met}}"
    assert len({kind for kind, refusal in met if refusal == ""}) == 11, met


@test
def all_or_none_is_one_of_the_two():
    """A call that is atomic is posted as if each had come alone, or it raises an error and leaves the ledger as they were."""
    ends = {"posted": 0, "taken back": 0}
    with Database() as many, Database() as alone, Session(alone.url) as single:
        many.rows(OPENING)
        single.do(OPENING)
        for call in calls(random.Random(SEED + 1), OPERATIONS // 20, (1, 2, 3)):
            before = many.rows(LEDGER + "; select count(*) from wallet.txn")
            single.do("begin")
            verdicts = [post(single, [operation])[0] for operation in call]
            refused = any(verdict.split("|")[2] or verdict.split("|")[4] for verdict in verdicts)
            single.do("rollback" if refused else "commit")
            try:
                found = many.rows(post_sql(call, atomic=True))
            except AssertionError as error:
                assert refused and "item " in str(error), error
                assert many.rows(LEDGER + "; select count(*) from wallet.txn") == before
                ends["taken back"] += 1
            else:
                assert not refused and found == verdicts, (call, found, verdicts)
                ends["posted"] += 1
        assert many.rows(LEDGER) == single.do(LEDGER)
    assert min(ends.values()) >= 5, ends


main()
