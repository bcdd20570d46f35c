#!/usr/bin/env python3
"""wallet_cli - money on the command line: what it prints, what it refuses, and that a repeat is no second posting."""
import csv
import io
import json
import os
import re
import subprocess
import tempfile

from bus_commands import new_id
from checks import SANITIZER, problem, refused, refused_done
from pawl_test import TIMEOUT_S, Database, Pawl, Proxy, main, setting, test, wait_until

NOBODY = "00000000-0000-4000-8000-000000000000"
LARGEST = 2**53 - 1


def wallet(pawl, *arguments, stdin=""):
    """It works, and says so in one JSON document."""
    done = pawl.run("wallet", *arguments, "--json", stdin=stdin)
    assert done.code == 0 and done.stderr == "", (arguments, done)
    assert done.stdout.endswith("\n") and done.stdout.count("\n") == 1, done.stdout
    return done.json


def words(pawl, *arguments, stdin=""):
    """It works, and says so in words."""
    done = pawl.run("wallet", *arguments, stdin=stdin)
    assert done.code == 0 and not SANITIZER.search(done.stderr), (arguments, done)
    return done.stdout


def no(pawl, *arguments, code=1, words):
    return refused(pawl, "wallet", *arguments, code=code, words=words)


def opened(pawl, **amounts):
    """Wallets with something in them."""
    for owner, amount in amounts.items():
        assert wallet(pawl, "create", owner)["created"] is True
        if amount:
            wallet(pawl, "topup", owner, str(amount))


def balance(pawl, owner, *flags):
    return wallet(pawl, "balance", owner, *flags)["balance"]


def ledger_rows(db):
    return db.value("select concat_ws(' ', (select count(*) from wallet.txn), (select count(*) from wallet.entry), "
                    "(select count(*) from wallet.wallet), (select sum(amount) from wallet.entry))")


def lines(*items):
    return "".join(json.dumps(item) + "\n" for item in items)


@test
def money_comes_moves_and_goes():
    with Database() as db, Pawl(db) as pawl:
        made = wallet(pawl, "create", "ann", "--floor", "-50", "--metadata", '{"plan": "gold"}')
        assert (made["owner"], made["asset"], made["floor"], made["balance"], made["created"]) == ("ann", "CREDIT", -50, 0, True)
        wallet(pawl, "create", "bob")
        top = wallet(pawl, "topup", "ann", "1000", "--metadata", '{"by": "card"}')
        assert top["status"] == "posted" and top["kind"] == "topup" and top["owner"] == "ann", top
        assert (top["amount"], top["balance_before"], top["balance"], top["available"]) == (1000, 0, 1000, 1050), top
        move = wallet(pawl, "transfer", "ann", "bob", "300")
        assert (move["from"], move["to"], move["balance"], move["version"]) == ("ann", "bob", 700, 2), move
        assert wallet(pawl, "spend", "bob", "100")["balance"] == 200
        assert wallet(pawl, "refund", move["txn_id"], "--amount", "100")["amount"] == 100
        assert re.search(r"^owner +ann\nfrom +bob\namount +50 CREDIT\n", words(pawl, "refund", move["txn_id"], "--amount", "50"), re.M)
        now = wallet(pawl, "balance", "ann")
        assert (now["balance"], now["held"], now["available"], now["floor"]) == (850, 0, 900, -50), now
        assert now["metadata"] == {"plan": "gold"} and now["frozen"] is False
        assert balance(pawl, "bob") == 50 and balance(pawl, "@system") == -900
        assert db.value("select sum(amount) from wallet.entry") == "0"
        wallet(pawl, "topup", "ann", str(LARGEST - 850))
        assert balance(pawl, "ann") == LARGEST


@test
def holds_are_captured_voided_and_run_out():
    with Database() as db, Pawl(db) as pawl:
        opened(pawl, ann=1000, shop=0)
        first = wallet(pawl, "hold", "ann", "400", "--expires-in", "15m")
        assert (first["held"], first["available"], first["balance"]) == (400, 600, 1000), first
        part = wallet(pawl, "capture", first["txn_id"], "--amount", "150", "--to", "shop")
        assert (part["amount"], part["owner"], part["to"], part["held"]) == (150, "ann", "shop", 250), part
        no(pawl, "capture", first["txn_id"], "--amount", "251", words=["250", "251"])
        assert wallet(pawl, "void", first["txn_id"])["held"] == 0
        no(pawl, "capture", first["txn_id"], words=["voided"])
        second = wallet(pawl, "hold", "ann", "50")
        assert wallet(pawl, "capture", second["txn_id"])["balance"] == 800
        assert balance(pawl, "shop") == 150
        hold = wallet(pawl, "show", first["txn_id"])["hold"]
        assert (hold["status"], hold["captured"], hold["amount"]) == ("VOIDED", 150, 400), hold
        left = int(db.value("select extract(epoch from h.expires_at - t.at) from wallet.hold h join wallet.txn t using (id) "
                            f"where t.txn_id = '{first['txn_id']}'").split(".")[0])
        assert left == 15 * 60
        for bad in ("0", "0s", "1500ms", "soon", "-5m"):
            no(pawl, "hold", "ann", "1", "--expires-in", bad, code=2, words=["--expires-in"])


@test
def a_repeat_is_reported_and_posted_once():
    with Database() as db, Pawl(db) as pawl:
        opened(pawl, ann=1000)
        first = wallet(pawl, "spend", "ann", "800")
        same = ["spend", "ann", "800", "--txn-id", first["txn_id"].upper()]
        before = ledger_rows(db)
        again = wallet(pawl, *same)
        assert again == {**first, "status": "already posted"}, again
        assert "already posted" in words(pawl, *same)
        wallet(pawl, "topup", "ann", "5")
        assert re.search(r"^now +205 CREDIT$", words(pawl, *same), re.M), "and how it stands by now"
        assert wallet(pawl, *same)["balance_now"] == 205
        no(pawl, "spend", "ann", "801", "--txn-id", first["txn_id"], words=[first["txn_id"], "amount"])
        no(pawl, "topup", "ann", "800", "--txn-id", first["txn_id"], words=[first["txn_id"], "another operation"])
        key = new_id()
        assert "already" not in no(pawl, "spend", "ann", "900", "--txn-id", key, words=["205", "900"])
        wallet(pawl, "topup", "ann", "5000")
        no(pawl, "spend", "ann", "900", "--txn-id", key, words=["already refused", "205"])
        assert balance(pawl, "ann") == 5205 and before != ledger_rows(db)
        assert wallet(pawl, "create", "ann")["created"] is False
        assert "already exists" in words(pawl, "create", "ann")
        no(pawl, "create", "ann", "--floor", "-1", words=["ann", "floor"])


@test
def what_a_second_opening_does_not_name_is_not_compared():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        wallet(pawl, "create", "eve", "--floor", "-500", "--metadata", '{"tier": 2}')
        again = wallet(pawl, "create", "eve")
        assert (again["created"], again["floor"]) == (False, -500), again
        assert pawl.http("POST", "/v1/wallets", {"owner": "eve"}).json["floor"] == -500
        for floor in ("0", "-499"):
            no(pawl, "create", "eve", "--floor", floor, words=["eve", "floor"])
            problem(pawl.http("POST", "/v1/wallets", {"owner": "eve", "floor": int(floor)}), 422, part="floor")
        no(pawl, "create", "eve", "--metadata", '{"tier": 3}', words=["eve", "metadata"])


@test
def a_new_floor_is_printed():
    with Database() as db, Pawl(db) as pawl:
        opened(pawl, ann=10)
        assert re.search(r"^floor +-500 CREDIT$", words(pawl, "floor", "ann", "-500"), re.M)


@test
def the_asset_of_a_hold_or_a_transaction_can_be_checked():
    with Database() as db, Pawl(db) as pawl:
        opened(pawl, ann=100)
        for verb, flags in [("capture", ()), ("void", ())]:
            hold = wallet(pawl, "hold", "ann", "10")["txn_id"]
            no(pawl, verb, hold, "--asset", "EUR", *flags, words=['asset is "EUR"'])
            assert wallet(pawl, verb, hold, "--asset", "CREDIT", *flags)["status"] == "posted"
        spent = wallet(pawl, "spend", "ann", "5")["txn_id"]
        no(pawl, "refund", spent, "--asset", "EUR", words=['asset is "EUR"'])
        assert wallet(pawl, "refund", spent, "--asset", "CREDIT")["status"] == "posted"


@test
def a_single_seal_is_not_called_seals():
    with Database() as db, Pawl(db) as pawl:
        opened(pawl, ann=100)
        wait_until(lambda: int(db.value("select wallet.seal(1000)")) >= 0 and db.value("select count(*) from wallet.seal") == "1",
                   what="a seal")
        assert re.search(r", 1 seal(,|$)", words(pawl, "verify"), re.M), words(pawl, "verify")


@test
def a_key_that_was_made_is_named_when_the_outcome_is_unclear():
    with Database() as db, Pawl(db) as pawl, Proxy(db) as proxy, Pawl(proxy.url) as far:
        opened(pawl, ann=1000)
        proxy.do("cut-on answered 1 wallet.post")
        assert wallet(far, "spend", "ann", "5")["status"] == "already posted", "one lost answer is asked for again"
        proxy.do("cut-on answered 100 wallet.post")
        done = far.run("wallet", "spend", "ann", "10")
        key = re.search(r"repeat with --txn-id ([0-9a-f-]{36})", done.stderr)
        assert done.code in (69, 75) and key and done.stdout == "", done
        assert wallet(pawl, "spend", "ann", "10", "--txn-id", key[1])["status"] == "already posted"
        assert balance(pawl, "ann") == 985


@test
def refusals_are_one_sentence():
    with Database() as db, Pawl(db) as pawl:
        opened(pawl, ann=200, bob=0)
        no(pawl, "spend", "ann", "800", words=["200", "800"])
        no(pawl, "spend", "nobody", "1", words=["nobody"])
        no(pawl, "transfer", "ann", "nobody", "1", words=["nobody"])
        no(pawl, "transfer", "ann", "bob", "1", "--asset", "EUR", words=["ann", "EUR"])
        for verb in ("capture", "void", "refund", "show"):
            no(pawl, verb, NOBODY, words=[NOBODY] if verb == "show" else ["no"])
        for verb in ("balance", "entries", "statement"):
            no(pawl, verb, "nobody", words=["nobody", "CREDIT"])
            no(pawl, verb, "ann", "--asset", "EUR", words=["ann", "EUR"])
        no(pawl, "balance", "ann", "--at", "2001-01-01", words=["ann", "2001"])
        assert wallet(pawl, "freeze", "ann")["status"] == "posted"
        assert "frozen" in words(pawl, "balance", "ann")
        no(pawl, "spend", "ann", "1", words=["frozen"])
        wallet(pawl, "unfreeze", "ann")
        assert wallet(pawl, "floor", "ann", "-500")["available"] == 700
        assert wallet(pawl, "spend", "ann", "700")["balance"] == -500
        no(pawl, "spend", "ann", "1", words=["0", "1"])


@test
def bad_input_names_its_argument_and_writes_nothing():
    with Database() as db, Pawl(db) as pawl:
        opened(pawl, ann=200, bob=0)
        before = ledger_rows(db)
        for bad in ("0", "-1", "1.5", "1e3", "", "ten", "0x10", str(LARGEST + 1), "9" * 40):
            no(pawl, "topup", "ann", bad, code=2, words=["N must be an integer", bad])
            no(pawl, "transfer", "ann", "bob", bad, code=2, words=["N must be an integer", bad])
            no(pawl, "refund", NOBODY, "--amount", bad, code=2, words=["--amount", bad])
        for bad in ("", "@system", "@x", "two\nlines", "a" * 256, "\u0085"):
            no(pawl, "create", bad, code=2, words=["OWNER"])
            no(pawl, "spend", bad, "1", code=2, words=["owner"])
            no(pawl, "transfer", bad, "bob", "1", code=2, words=["from"])
            no(pawl, "transfer", "ann", bad, "1", code=2, words=["to "])
        for bad in ("credit", "", "A" * 33, "€"):
            no(pawl, "topup", "ann", "1", "--asset", bad, code=2, words=["asset"])
            no(pawl, "balance", "ann", "--asset", bad, code=2, words=["--asset"])
        for bad in ("1", "[]", "{", '{"a": 1, "a": 2}', "null"):
            no(pawl, "topup", "ann", "1", "--metadata", bad, code=2, words=["metadata"])
        for bad in ("1", "x" * 36, NOBODY + "0"):
            no(pawl, "topup", "ann", "1", "--txn-id", bad, code=2, words=["--txn-id", "UUID"])
            no(pawl, "capture", bad, code=2, words=["ID must be", "UUID"])
            no(pawl, "show", bad, code=2, words=["ID must be", "UUID", "pawl wallet balance"])
        for bad in ("1", str(-LARGEST - 1), "-1.5"):
            no(pawl, "floor", "ann", bad, code=2, words=["N must be an integer"])
        for bad in ("yesterday", "2026-02-30", "2026-11-15T25:00", "2026-11-15 10:00 ", "2026-1-1", "2026-11-15T10:00+99"):
            no(pawl, "entries", "ann", "--since", bad, code=2, words=["--since", "2026-11-15"])
        no(pawl, "entries", "ann", "--kind", "transfr", code=2, words=["--kind", 'did you mean "transfer"?'])
        no(pawl, "entries", "ann", "--limit", "0", code=2, words=["--limit"])
        no(pawl, "transfer", "ann", "ann", "1", code=2, words=["same"])
        no(pawl, "topup", "ann", code=2, words=["OWNER N"])
        no(pawl, "toppup", "ann", "1", code=2, words=["topup"])
        no(pawl, "topup", "ann", "1", "--txnid", NOBODY, code=2, words=["--txn-id"])
        no(pawl, "balance", "ann", "--all", "--at", "1m", code=2, words=["--all"])
        refused_done(pawl.run("wallet", "statement", "ann", "--csv", "--json"), 2, ["--csv"], is_json=True)
        no(pawl, "batch", "/does/not/exist", code=2, words=["/does/not/exist"])
        assert ledger_rows(db) == before


@test
def without_a_database_the_exit_is_69():
    with Pawl("postgresql://postgres@127.0.0.1:1/postgres?connect_timeout=1") as pawl:
        for arguments in (["balance", "ann"], ["topup", "ann", "1"], ["batch"]):
            no(pawl, *arguments, code=69, words=["127.0.0.1"])


@test
def amounts_stand_to_the_right_with_their_asset():
    with Database() as db, Pawl(db) as pawl:
        opened(pawl, ann=1000, bob=0)
        wallet(pawl, "create", "ann", "--asset", "EUR")
        wallet(pawl, "topup", "ann", "7", "--asset", "EUR")
        posted = words(pawl, "transfer", "ann", "bob", "50").splitlines()
        assert re.match(r"transfer +posted, 20\d\d-\d\d-\d\d \d\d:\d\d:\d\dZ$", posted[0]), posted
        assert re.match(r"txn_id +[0-9a-f-]{36}$", posted[1]), posted
        assert posted[2:] == ["from       ann", "to         bob", "amount      50 CREDIT", "balance    950 CREDIT",
                              "available  950 CREDIT"], posted
        table = words(pawl, "balance", "ann", "--all").splitlines()
        assert [row.split()[:3] for row in table[1:]] == [["ann", "950", "CREDIT"], ["ann", "7", "EUR"]], table
        assert [row["asset"] for row in wallet(pawl, "balance", "ann", "--all")] == ["CREDIT", "EUR"]
        assert wallet(pawl, "balance", "nobody", "--all") == []
        end = table[0].index("balance") + len("balance")
        assert all(row[:end].endswith(number) for row, number in zip(table[1:], ("950", "7"))), table
        entries = words(pawl, "entries", "ann").splitlines()
        assert re.search(r"transfer +-50  CREDIT +950 +0  bob ", entries[1]), entries
        assert re.search(r"topup +1000  CREDIT +1000 +0  @system ", entries[2]) and len(entries) == 3, entries
        none = pawl.run("wallet", "entries", "bob", "--kind", "refund")
        assert none.code == 0 and none.stdout == "" and "no entries" in none.stderr


@test
def entries_can_be_narrowed_and_the_past_be_asked():
    with Database() as db, Pawl(db) as pawl:
        opened(pawl, ann=1000)
        for amount in (1, 2, 3):
            wallet(pawl, "spend", "ann", str(amount))
        rows = wallet(pawl, "entries", "ann")
        assert [row["amount"] for row in rows] == [-3, -2, -1, 1000]
        assert [row["amount"] for row in wallet(pawl, "entries", "ann", "--limit", "2")] == [-3, -2]
        assert [row["amount"] for row in wallet(pawl, "entries", "ann", "--kind", "topup")] == [1000]
        times = db.rows("select to_char(t.at at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US') from wallet.txn t "
                        "where t.kind = 'spend' order by t.id")
        between = wallet(pawl, "entries", "ann", "--since", times[0] + "Z", "--until", times[1])
        assert [row["amount"] for row in between] == [-2, -1], between
        assert wallet(pawl, "balance", "ann", "--at", times[1])["balance"] == 997
        there = db.value(f"select to_char('{times[1]}Z'::timestamptz at time zone 'UTC' + interval '90 minutes', "
                         "'YYYY-MM-DD HH24:MI:SS.US')") + "+01:30"
        assert wallet(pawl, "balance", "ann", "--at", there)["balance"] == 997
        assert wallet(pawl, "balance", "ann", "--at", "2999-12-31")["balance"] == 994
        assert re.search(r"ann +997  CREDIT", words(pawl, "balance", "ann", "--at", times[1]))
        assert wallet(pawl, "entries", "ann", "--since", "1h") == rows and wallet(pawl, "entries", "ann", "--until", "1h") == []


@test
def a_statement_adds_up_over_pages():
    with Database() as db, Pawl(db) as pawl:
        opened(pawl, ann=10000, bob=0)
        moves = lines(*({"txn_id": new_id(), "from": "ann", "to": "bob", "amount": n % 7 + 1,
                         "metadata": {"note": f'"{n}", said'}} for n in range(1500)))
        assert len(wallet(pawl, "batch", stdin=moves)) == 1500
        left = 10000 - sum(n % 7 + 1 for n in range(1500))
        got = wallet(pawl, "statement", "ann")
        assert (got["opening"], got["closing"], got["in"], got["out"]) == (0, left, 10000, left - 10000), got["closing"]
        assert [row["version"] for row in got["entries"]] == list(range(1, 1502))
        assert got["entries"][-1]["balance"] == left == balance(pawl, "ann")
        rows = list(csv.DictReader(io.StringIO(words(pawl, "statement", "ann", "--csv"))))
        assert [int(row["balance"]) for row in rows] == [row["balance"] for row in got["entries"]]
        assert [row["at"] for row in rows] == db.rows("select to_char(at at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') "
                                                      "from wallet.txn where kind in ('topup', 'transfer') order by id")
        assert json.loads(rows[1]["metadata"]) == {"note": '"0", said'} and rows[1]["other"] == "bob"
        middle = db.value("select to_char(min(at) at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"') from wallet.txn where kind = 'transfer'")
        later = wallet(pawl, "statement", "ann", "--since", middle)
        assert (later["opening"], later["in"], later["closing"]) == (10000, 0, left), later["opening"]
        paper = words(pawl, "statement", "ann").splitlines()
        assert re.match(rf"ann +1501 +0 +10000 +{left - 10000} +{left}  CREDIT$", paper[-1]), paper[-1]
        everything = wallet(pawl, "statement", "@system")
        assert (everything["opening"], everything["closing"], everything["entries"][-1]["balance"]) == (0, -10000, -10000)
        assert wallet(pawl, "statement", "bob", "--until", "1h")["entries"] == []


@test
def large_metadata_is_accepted_by_every_interface():
    with Database() as db, Pawl(db) as pawl:
        opened(pawl, ann=0)
        large = {"text": "x" * 60000}
        items = lines(*({"kind": "topup", "txn_id": new_id(), "owner": "ann", "amount": 1, "metadata": large} for _ in range(400)))
        assert len(wallet(pawl, "batch", stdin=items)) == 400
        rows = wallet(pawl, "entries", "ann", "--limit", "400")
        assert len(rows) == 400 and all(row["metadata"] == large for row in rows)
        assert [row["balance"] for row in wallet(pawl, "statement", "ann")["entries"]] == list(range(1, 401))
        assert len(words(pawl, "statement", "ann", "--csv").splitlines()) == 401


@test
def one_transaction_is_shown_with_its_legs():
    with Database() as db, Pawl(db) as pawl:
        opened(pawl, ann=1000, bob=0)
        move = wallet(pawl, "transfer", "ann", "bob", "300", "--metadata", '{"order": 7}')
        refund = wallet(pawl, "refund", move["txn_id"], "--amount", "100")
        shown = words(pawl, "show", move["txn_id"])
        for line in ("transfer +posted, 20", "from +ann", "to +bob", "amount +300 CREDIT", "refunded +100 CREDIT",
                     'metadata +{"order": 7}', "owner +amount +asset +balance +held +version", "ann +-300 +CREDIT +700 +0 +2",
                     "bob +300 +CREDIT +300 +0 +1"):
            assert re.search(rf"^{line}", shown, re.M), (line, shown)
        shown = words(pawl, "show", refund["txn_id"])
        assert re.search(rf"^ref +{move['txn_id']}\nowner +ann\nfrom +bob\namount +100 CREDIT$", shown, re.M), shown
        assert re.search(r"^owner +ann\namount +1000 CREDIT$", words(pawl, "show", wallet(pawl, "topup", "ann", "1000")["txn_id"]), re.M)
        wallet(pawl, "spend", "ann", "1000")
        key = new_id()
        no(pawl, "spend", "bob", "900", "--txn-id", key, words=["200"])
        assert re.search(r"^spend +refused, .*\nreason .*200", words(pawl, "show", key))
        hold = wallet(pawl, "hold", "ann", "10", "--expires-in", "1h")
        assert re.search(r"^hold +OPEN, 0 of 10 captured, until 20", words(pawl, "show", hold["txn_id"]), re.M)
        assert sum(leg["amount"] for leg in wallet(pawl, "show", move["txn_id"])["entries"]) == 0


@test
def a_batch_has_a_verdict_for_each_line():
    with Database() as db, Pawl(db) as pawl, tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
        opened(pawl, ann=100, bob=0, shop=0)
        hold = new_id()
        good = [{"txn_id": new_id(), "from": "ann", "to": "bob", "amount": 30},
                {"kind": "hold", "txn_id": hold, "owner": "ann", "amount": 20, "expires_in_s": 60},
                {"kind": "capture", "txn_id": new_id(), "hold": hold, "to": "shop"},
                {"kind": "multi", "txn_id": new_id(), "legs": [{"owner": "ann", "amount": -2}, {"owner": "bob", "amount": 1},
                                                               {"owner": "shop", "amount": 1}]}]
        poor = {"kind": "spend", "txn_id": new_id(), "owner": "bob", "amount": 1000}
        file.write(lines(*good) + "\n" + lines(poor, good[0], {"txn_id": new_id(), "from": "ann", "to": "eve", "amount": 1}))
        file.flush()
        done = pawl.run("wallet", "batch", file.name, "--json")
        got = done.json
        assert done.code == 1 and "2 of 7 operations were refused" in done.stderr, done
        assert [item["status"] for item in got] == ["posted"] * 4 + ["refused", "already posted", "refused"], got
        assert [item["line"] for item in got] == [1, 2, 3, 4, 6, 7, 8]
        assert got[4]["type"] == "/problems/insufficient-funds" and "eve" in got[6]["detail"], got
        assert (balance(pawl, "ann"), balance(pawl, "bob"), balance(pawl, "shop")) == (48, 31, 21)
        again = pawl.run("wallet", "batch", file.name)
        assert again.code == 1 and again.stdout.endswith("0 posted, 5 already posted, 2 refused\n"), again
        assert re.search(rf"^ +6  spend +{poor['txn_id']}", again.stdout, re.M), again.stdout
        assert words(pawl, "batch", "-", stdin=lines(*good)) == "0 posted, 4 already posted, 0 refused\n"
        assert words(pawl, "batch") == "0 posted, 0 already posted, 0 refused\n" and wallet(pawl, "batch") == []


@test
def an_atomic_batch_is_posted_whole_or_not_at_all():
    with Database() as db, Pawl(db) as pawl:
        opened(pawl, ann=100, bob=0)
        first, second = ({"txn_id": new_id(), "from": "ann", "to": "bob", "amount": 60} for _ in range(2))
        before = ledger_rows(db)
        done = pawl.run("wallet", "batch", "--atomic", stdin=lines(first, second))
        refused_done(done, 1, ["nothing was posted", "line 2", "40"])
        refused_done(pawl.run("wallet", "batch", stdin=lines(first) + '{"kind": "spend"}\n'), 1, ["line 2: ", "; nothing from line 1 on was posted"])
        refused_done(pawl.run("wallet", "batch", "--atomic", "--json", stdin=lines(first, second)), 1, ["line 2"], is_json=True)
        assert ledger_rows(db) == before
        wallet(pawl, "topup", "ann", "20")
        assert words(pawl, "batch", "--atomic", stdin=lines(first, second)) == "2 posted, 0 already posted, 0 refused\n"
        assert balance(pawl, "bob") == 120
        many = lines(*({"kind": "topup", "txn_id": new_id(), "owner": "ann", "amount": 1} for _ in range(8001)))
        refused_done(pawl.run("wallet", "batch", "--atomic", stdin=many), 1, ["8000"])
        assert balance(pawl, "ann") == 0


@test
def a_bad_line_is_named():
    with Database() as db, Pawl(db) as pawl:
        opened(pawl, ann=100, bob=0)
        good = {"txn_id": new_id(), "from": "ann", "to": "bob", "amount": 1}
        before = ledger_rows(db)
        for bad, word in (("{", "column"), ("[]", "object"), (json.dumps({**good, "amount": 0}), "amount"),
                          (json.dumps({**good, "amount": 1.5}), "amount"), (json.dumps({**good, "amout": 1}), "amout"),
                          (json.dumps({**good, "kind": "transfr"}), 'did you mean "transfer"?'),
                          (json.dumps({**good, "owner": "ann"}), 'transfer has no field "owner"'),
                          (json.dumps({"kind": "floor", "txn_id": new_id(), "owner": "ann"}), 'missing field "floor"'),
                          (json.dumps({"kind": "capture", "txn_id": new_id()}), 'missing field "hold"'),
                          (json.dumps({"kind": "refund", "txn_id": new_id(), "hold": new_id()}), 'no field "hold"'),
                          (json.dumps({k: v for k, v in good.items() if k != "txn_id"}), "txn_id"),
                          ('{"txn_id":"%s","from":"ann","to":"bob","amount":1,"metadata":{"n":1e500000}}' % new_id(), "metadata"),
                          (json.dumps({**good, "to": "ann"}), "same"), (json.dumps({**good, "metadata": []}), "metadata"),
                          (json.dumps({**good, "metadata": {"a": "b" * 70000}}), "65536")):
            refused_done(pawl.run("wallet", "batch", "--json", stdin=json.dumps(good) + "\n" + bad + "\n"), 1, ["line 2", word],
                         is_json=True)
        ann, bob = {"owner": "ann", "amount": -2}, {"owner": "bob", "amount": 2}
        for legs, word in (([ann, {**bob, "amount": 1}], "sum to zero"), ([ann], "legs"), ([ann, {**bob, "owner": "ann"}], "once"),
                           ([ann, {**bob, "amount": 0}], "legs[1].amount"), ([ann, {**bob, "asset": "eur"}], "legs[1].asset"),
                           ([ann, {"owner": "bob"}], "legs[1].amount"), (None, "legs"), ([ann] * 101, "legs")):
            multi = {"kind": "multi", "txn_id": new_id(), "legs": legs}
            refused_done(pawl.run("wallet", "batch", stdin=lines(good, multi)), 1, ["line 2", word])
        refused_done(pawl.run("wallet", "batch", stdin=lines(good, {**good, "legs": [ann, bob]})), 1, ["line 2", 'no field "legs"'])
        assert ledger_rows(db) == before, "lines are read before they are posted"


@test
def each_transaction_sends_a_command_when_asked():
    with Database() as db, Pawl(db) as pawl:
        opened(pawl, ann=100)
        assert wallet(pawl, "events", "CREDIT", "ledger") == {"asset": "CREDIT", "domain": "ledger"}
        spent = wallet(pawl, "spend", "ann", "7")
        got = pawl.run("command", "list", "--domain", "ledger", "--json").json
        assert [item["type"] for item in got] == ["wallet.posted"], got
        payload = pawl.run("command", "show", got[0]["command_id"], "--json").json["payload"]
        assert (payload["txn_id"], payload["owner"], payload["amount"]) == (spent["txn_id"], "ann", 7), payload
        assert "nothing" in words(pawl, "events", "CREDIT", "off")
        wallet(pawl, "spend", "ann", "7")
        assert len(pawl.run("command", "list", "--domain", "ledger", "--json").json) == 1
        assert "ledger" in words(pawl, "events", "CREDIT", "ledger")
        no(pawl, "events", "credit", "ledger", code=2, words=["ASSET"])
        no(pawl, "events", "CREDIT", "no such domain", code=2, words=["domain"])


# --- the examples ---

def example(path, *arguments, env):
    return subprocess.run([os.path.join(setting("PAWL_SOURCE"), "examples", path), *arguments], env=env, capture_output=True,
                          text=True, timeout=TIMEOUT_S)


@test
def the_shell_example_takes_the_money_once():
    with Database() as db, Pawl(db) as pawl:
        opened(pawl, ann=1000)
        env = {**pawl.env, "PATH": os.path.dirname(setting("PAWL_BIN")) + os.pathsep + pawl.env["PATH"]}
        order = new_id()
        for _ in range(2):
            done = example("shell/wallet.sh", "ann", "250", order, env=env)
            assert done.returncode == 0 and json.loads(done.stdout)["balance"] == 250, done
        assert balance(pawl, "ann") == 750
        poor = example("shell/wallet.sh", "ann", "751", new_id(), env=env)
        assert poor.returncode == 1 and "750" in poor.stderr and "is not paid" in poor.stderr, poor


@test
def the_curl_example_moves_money_in_each_run():
    with Database() as db, Pawl(db) as pawl:
        server = pawl.serve()
        opened(pawl, ann=1000, bob=1000)  # existing wallets do not matter
        token = pawl.run("key", "create", "shop", "--scopes", "wallet,treasury").stdout.strip()
        env = {**pawl.env, "PAWL_URL": f"http://{server.host}:{server.port}", "PAWL_TOKEN": token}
        for _ in range(2):
            done = example("curl/wallet.sh", env=env)
            assert done.returncode == 0, done
            got = [json.loads(line) for line in done.stdout.splitlines()]
            buyer, seller = got[0]["owner"], got[1]["owner"]
            assert got[3] == got[4] and (got[3]["from"], got[3]["to"], got[3]["balance"]) == (buyer, seller, 700), got
            assert got[5]["balance"] == 700 and [item["amount"] for item in got[6]["items"]] == [300], got
            assert got[7]["status"] == 409 and got[7]["type"].endswith("insufficient-funds"), got[7]
            assert (balance(pawl, buyer), balance(pawl, seller)) == (700, 300)


main()
