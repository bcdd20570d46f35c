#!/usr/bin/env python3
"""ledger_restore - pg_dump, restore on another server, verify: clean; and the restored ledger continues."""
import os
import random
import subprocess

from ledger_checker import ledger_read, check
from ledger_servers import new_key, rows_of, servers_stop, wallets_open
from ledger_swarm import Swarm, resolve, spend, topup, transfer
from pawl_test import TIMEOUT_S, Pawl, main, setting, test, wait_until
from servers import Cluster, Session

MOVES = 2000
SEALED = "select coalesce(max(upto), -1) >= (select max(id) from wallet.txn) from wallet.seal"


def program(name):
    return os.path.join(setting("PAWL_TEST_BIN"), name)


def dump_restore(source, target):
    """Everything, with rights, as an operator does it; an error ends it."""
    with subprocess.Popen([program("pg_dump"), source], stdout=subprocess.PIPE) as dump:
        subprocess.run([program("psql"), "-Xq", "-v", "ON_ERROR_STOP=1", "-o", os.devnull, target], stdin=dump.stdout,
                       check=True, timeout=TIMEOUT_S)
        assert dump.wait(60) == 0


def moves(server, names, count, history):
    """Some of everything that a client may do."""
    chance = random.Random(count)

    def client(place):
        for _ in range(count // 16):
            payer, payee = chance.sample(names, 2)
            move = chance.choice((transfer(new_key(), payer, payee, chance.randrange(1, 300)), topup(new_key(), payer, 5),
                                  spend(new_key(), payer, 7)))
            yield from resolve(move, 1, chance, history)

    Swarm([server.port]).run([client(place) for place in range(16)])


def request_of(operation):
    """Path and body as they were sent."""
    key, amount = operation.attempts[0].key, operation.amount
    move = transfer(key, operation.owner, operation.other, amount) if operation.kind == "transfer" else \
        {"topup": topup, "spend": spend}[operation.kind](key, operation.owner, amount)
    return move.path, move.body


def verify(pawl, rows):
    """By the program, which goes over all of it, and by SQL."""
    done = pawl.run("wallet", "verify")
    assert done.code == 0, (done.stdout, done.stderr)
    assert rows("select * from wallet.verify()") == []


def seal_mark(rows, url):
    """Sealing while another session writes leaves a mark with a transaction id in it: a large one, on an old server."""
    rows("do $$ begin for i in 1 .. 5000 loop perform pg_current_xact_id(); commit; end loop; end $$")
    with Session(url) as session:
        session.do(f"begin; select refusal from wallet.post(array['topup'], array['{new_key()}']::uuid[], array['w0'], array[1])")
        rows("select wallet.seal()")
        session.do("rollback")


@test
def a_restored_ledger_verifies_and_accepts_postings():
    names = [f"w{n}" for n in range(20)]
    history = []
    with Cluster() as there, Cluster() as here:
        with Pawl(there.url()) as pawl:
            assert pawl.run("migrate").code == 0
            rows = rows_of(there.url())
            keys = wallets_open(rows, names, 1000)
            server = pawl.serve()
            moves(server, names, MOVES, history)
            hold = new_key()
            assert server.http("POST", "/v1/holds", {"txn_id": hold, "owner": "w0", "amount": 1}, Pawl.TOKEN).status == 201
            servers_stop([server])
            wait_until(lambda: rows("select wallet.seal()") == ["0"], what="nothing is left to seal")
            assert rows(SEALED) == ["t"]
            verify(pawl, rows)
            seal_mark(rows, there.url())
            before = rows("select id, upto, hash from wallet.seal order by id")
        # Transaction ids begin anew over there; roles belong to a server and not to a database.
        for role in there.rows("select distinct role from pawl.grant_contains()"):
            here.rows(f"create role {role} nologin")
        here.rows("create database restored")
        dump_restore(there.url(), here.url("restored"))
        with Pawl(here.url("restored")) as pawl:
            rows = rows_of(here.url("restored"))
            assert rows("select before::text::numeric > pg_current_xact_id()::text::numeric from wallet.seal_mark") == ["t"], \
                "its mark is from the future"
            assert rows("select * from wallet.verify(true)") == []
            verify(pawl, rows)
            assert rows("select id, upto, hash from wallet.seal order by id") == before
            assert not check(history, ledger_read(rows), [*keys, hold])
            server = pawl.serve()
            again = server.http("POST", *request_of(history[0]), Pawl.TOKEN)
            assert again.body == history[0].attempts[-1].body and again.headers["idempotency-replayed"] == "true", again
            moves(server, names, 320, history)
            answer = server.http("GET", "/v1/ledger/verify", token=Pawl.TOKEN)
            assert answer.status == 200 and answer.json["ok"] and answer.json["findings"] == [], answer
            answer = server.http("POST", f"/v1/holds/{hold}/void", {"txn_id": new_key()}, Pawl.TOKEN)
            assert answer.status == 201, answer
            keys += [hold, answer.json["txn_id"]]
            servers_stop([server])
            wait_until(lambda: rows("select wallet.seal()") == ["0"] and rows(SEALED) == ["t"], what="sealing goes on")
            verify(pawl, rows)
            assert not check(history, ledger_read(rows), keys)
            assert rows("select has_function_privilege('pawl_app', p.oid, 'execute'), "
                        "has_table_privilege('pawl_app', 'wallet.entry', 'update, delete') "
                        "from pg_proc p where p.oid = 'wallet.post'::regproc") == ["t|f"]


@test
def a_private_server_is_restored_as_the_manual_says():
    with Pawl() as there, Pawl() as here:
        there.serve("--role", "api")
        key = new_key()
        for arguments in (("wallet", "create", "ann"), ("wallet", "topup", "ann", "100", "--txn-id", key), ("send", "shop", "charge")):
            assert there.run(*arguments).code == 0, arguments
        assert here.run("db", "start").code == 0
        source, target = (pawl.run("db", "url", "--admin").stdout.strip() for pawl in (there, here))
        dump = os.path.join(here.home, "pawl.dump")
        subprocess.run([program("pg_dump"), "--format=custom", f"--file={dump}", source], check=True, timeout=TIMEOUT_S)
        subprocess.run([program("psql"), "-Xqc", "drop schema app", target], check=True, timeout=TIMEOUT_S)
        subprocess.run([program("pg_restore"), "--exit-on-error", f"--dbname={target}", dump], check=True, timeout=TIMEOUT_S)
        assert here.run("migrate").code == 0
        doctor = here.run("doctor", "--json")
        assert doctor.code == 0, doctor.stdout
        assert "100" in here.run("wallet", "balance", "ann").stdout
        assert here.run("wallet", "topup", "ann", "100", "--txn-id", key).code == 0
        assert here.run("wallet", "balance", "ann", "--json").json["balance"] == 100, "its key was restored, too"
        assert here.run("command", "list", "--count").stdout.strip().startswith("1")
        assert here.run("db", "stop").code == 0


main()
