#!/usr/bin/env python3
"""pgbouncer - a pooler in transaction mode in between: everything works, and nothing of a session stays behind."""
import os
import shutil
import subprocess
import tempfile
import urllib.parse

from checks import dead_letters_put, metric, stop_clean
from pawl_test import TIMEOUT_S, Database, Pawl, main, psql, test, wait_until
from servers import IS_ROOT, as_postgres, free_port

POOL = 3  # connections to the server, fewer than pawl opens to the pooler
STATE = ["statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout", "transaction_read_only",
         "search_path", "application_name", "timezone", "session_authorization", "synchronous_commit"]


class PgBouncer:
    """Debian's PgBouncer, in front of the test's server, as it comes: nothing is allowed to it for pawl's sake."""

    def __init__(self, db):
        self.db = db
        self.port = free_port()
        self.url = f"postgresql://postgres@127.0.0.1:{self.port}/{db.name}"
        self.folder = tempfile.mkdtemp(prefix="pawl-bouncer.", dir="/tmp")

    def __enter__(self):
        query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(self.db.url).query))
        config = os.path.join(self.folder, "pgbouncer.ini")
        with open(config, "w", encoding="utf-8") as file:
            file.write(f"[databases]\n* = host={query['host']} port={query['port']} user=postgres\n[pgbouncer]\n"
                       f"listen_addr = 127.0.0.1\nlisten_port = {self.port}\nunix_socket_dir =\nauth_type = any\n"
                       f"pool_mode = transaction\ndefault_pool_size = {POOL}\nlogfile = {self.folder}/log\n")
        if IS_ROOT:
            shutil.chown(self.folder, "postgres")
        program = shutil.which("pgbouncer", path=os.environ["PATH"] + ":/usr/sbin")
        assert program, "pgbouncer is not installed"
        self.process = subprocess.Popen(as_postgres([program, "-q", config]), stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        wait_until(self._answers, what="PgBouncer answers")
        return self

    def _answers(self):
        try:
            return psql(self.url, "select 1") == ["1"]
        except AssertionError:
            assert self.process.poll() is None, "PgBouncer ended"
            return False

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait(TIMEOUT_S)
        shutil.rmtree(self.folder, ignore_errors=True)


def session_state(url):
    """What a client finds that gets one of the pooler's connections, for each of them."""
    script = "".join(f"show {name};\n" for name in STATE) + \
        "select count(*) from pg_prepared_statements;\nselect count(*) from pg_listening_channels();\n" \
        "select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid();\n" \
        "select count(*) from pg_cursors;\n"
    return psql(url, "begin;\n" + script + "commit;")


def lines(pawl, words):
    return [line for line in pawl.server.stderr if words in line]


@test
def everything_works_through_a_pooler_and_leaves_no_state():
    # LISTEN is session state by nature: it gets the direct way that docs/operations.md asks for.
    with Database(empty=True) as db, PgBouncer(db) as bouncer, \
            Pawl(bouncer.url, env={"PAWL_LISTEN_DATABASE_URL": db.url}) as pawl:
        fresh = session_state(bouncer.url)
        assert pawl.run("migrate").code == 0
        pawl.serve()
        key = pawl.run("key", "create", "pooled", "--scopes", "read,admin,command")
        assert key.code == 0, key.stderr
        token = key.stdout.strip()
        ids = dead_letters_put(db, ["a", "b", "c"])
        # Statements that are prepared where the server is reached directly.
        for number in range(10):
            sent = pawl.http("POST", "/v1/commands", {"domain": "mail", "type": "t", "payload": {"n": number}}, token=token)
            assert sent.status == 201, sent
        assert pawl.run("work", "mail", "--noop", "--drain").code == 0
        assert psql(db.url, "select count(*) from pawl.outcome") == ["10"]
        for _ in range(30):
            assert pawl.http("GET", "/health/ready").status == 200
            assert len(pawl.http("GET", "/v1/dead-letters", token=token).json["items"]) == 3
        assert pawl.http("POST", f"/v1/dead-letters/{ids[0]}/retry", token=token).status == 200
        assert pawl.http("DELETE", f"/v1/dead-letters/{ids[1]}", token=token).status == 204
        wait_until(lambda: metric(pawl, "pawl_dead_letters") == 2, what="the monitor counts")
        for _ in range(POOL * 3):
            found = session_state(bouncer.url)
            assert found == fresh, f"{found}, not {fresh}"
        stop_clean(pawl.server)
        assert session_state(bouncer.url) == fresh


def done(pawl, *arguments, stdin=""):
    """It works; its JSON."""
    ended = pawl.run(*arguments, "--json", stdin=stdin)
    assert ended.code == 0, (arguments, ended.stderr)
    return ended.json


def bus_works(db, pawl):
    """Functions and programs, ends good and bad, operators, replies: three workers."""
    db.rows("create schema shop; create table shop.effect (command_id uuid); "
            "create function shop.effect(payload jsonb, command_id uuid) returns jsonb language sql as "
            "$$ insert into shop.effect values (command_id); select payload $$")
    workers = [pawl.start("work", "functions", "--sql", "shop.effect") for _ in range(2)]
    workers.append(pawl.start("work", "programs", "--exec", 'read n; [ "$n" -lt 200 ] || exit 70; echo "$n"'))
    numbers = "".join(f"{n}\n" for n in range(1000))
    assert done(pawl, "send", "functions", "count", "--lines", "--reply-to", "answers", stdin=numbers) == {"sent": 1000}
    assert done(pawl, "send", "programs", "count", "--lines", "--reply-to", "answers",
                stdin="".join(f"{n}\n" for n in range(203))) == {"sent": 203}
    wait_until(lambda: done(pawl, "command", "list", "--count", "--status", "COMPLETED") == {"count": 1200}, what="done")
    wait_until(lambda: len(done(pawl, "tsq", "list")) == 3, what="three need an operator")
    retried, canceled, completed = [row["command_id"] for row in done(pawl, "tsq", "list")]
    assert done(pawl, "tsq", "cancel", canceled)["status"] == "CANCELED"
    assert done(pawl, "tsq", "complete", completed, "--result", "1")["status"] == "COMPLETED"
    assert done(pawl, "tsq", "retry", retried)["status"] == "PENDING"
    wait_until(lambda: done(pawl, "command", "show", retried)["status"] == "IN_TSQ", what="it failed again")
    assert done(pawl, "tsq", "cancel", "--all", "--yes")["decided"] == 1
    assert db.value("select count(*), count(distinct command_id) from shop.effect") == "1000|1000"
    assert db.value("select count(*), count(distinct message->>'command_id') from pgmq.q_answers") == "1203|1203"
    assert db.value("select count(*) from pawl.outcome join pawl.command using (id) where result = payload") == "1200"
    for worker in workers:
        stop_clean(worker)


@test
def the_bus_works_through_a_pooler_by_polling():
    with Database() as db, PgBouncer(db) as bouncer, Pawl(bouncer.url) as pawl:
        bus_works(db, pawl)


@test
def the_bus_works_through_a_pooler_and_leaves_no_state():
    with Database() as db, PgBouncer(db) as bouncer, \
            Pawl(bouncer.url, env={"PAWL_LISTEN_DATABASE_URL": db.url}) as pawl:
        fresh = session_state(bouncer.url)
        bus_works(db, pawl)
        for _ in range(POOL * 3):
            found = session_state(bouncer.url)
            assert found == fresh, f"{found}, not {fresh}"


@test
def polling_takes_over_and_says_so_once():
    with Database() as db, PgBouncer(db) as bouncer, Pawl(bouncer.url) as pawl:
        pawl.serve()
        wait_until(lambda: lines(pawl, "polling"), what="it says so")
        assert metric(pawl, "pawl_listen_up") == 0
        stop_clean(pawl.server)
        assert len(lines(pawl, "polling")) == 1, lines(pawl, "polling")


@test
def a_direct_url_restores_notifications():
    with Database() as db, PgBouncer(db) as bouncer, Pawl(bouncer.url, env={"PAWL_LISTEN_DATABASE_URL": db.url}) as pawl:
        pawl.serve()
        wait_until(lambda: metric(pawl, "pawl_listen_up") == 1, what="notifications arrive")
        assert not lines(pawl, "polling")
        stop_clean(pawl.server)


# Operators of another schema, found before the ones of PostgreSQL by a session that looks there, and run with its rights.
TRAP = """
create schema trap;
grant usage on schema trap to public;
create table trap.caught (who text, what text);
create function trap.same(a {type}, b {type}) returns boolean language plpgsql as $$
begin
  insert into trap.caught values (session_user, pg_catalog.current_query());
  return pg_catalog.{function}(a, b);
end $$;
create operator trap.= (leftarg = {type}, rightarg = {type}, function = trap.same);
"""


@test
def statements_of_pawl_look_for_names_in_no_schema_of_others():
    with Database() as db, PgBouncer(db) as bouncer:
        for type_name, function in (("text", "texteq"), ("bigint", "int8eq"), ("uuid", "uuid_eq"), ("integer", "int4eq")):
            trap = TRAP.format(type=type_name, function=function)
            db.rows(trap if type_name == "text" else trap[trap.index("create function"):].replace("same", "same_" + type_name))
        db.rows(f"alter database {db.name} set search_path = trap, pg_catalog, public")
        assert db.value("select 'a'::text = 'a'::text") == "t" and db.value("select count(*)::text from trap.caught") == "1"
        db.rows("delete from trap.caught")
        for name, url in (("direct", db.url), ("pooled", bouncer.url)):
            with Pawl(url, env={"PAWL_LISTEN_DATABASE_URL": db.url}) as pawl:
                pawl.serve()
                sent = pawl.http("POST", "/v1/commands", {"domain": "shop", "type": "t"})
                assert sent.status == 201, sent
                assert pawl.http("POST", "/v1/commands/batch", {"items": [{"domain": "shop", "type": "t"}]}).status == 201
                assert pawl.http("GET", "/v1/commands?domain=shop").status == 200
                assert pawl.run("key", "create", name, "--scopes", "read").code == 0
                assert pawl.run("work", "shop", "--noop", "--drain").code == 0
                assert pawl.http("POST", "/v1/wallets", {"owner": name}).status == 201
                paid = pawl.http("POST", f"/v1/wallets/{name}/topup", {"txn_id": sent.json["command_id"], "amount": 5})
                assert paid.status == 201, paid
                assert pawl.run("doctor").stdout
                stop_clean(pawl.server)
            caught = db.rows("select who, what from trap.caught limit 3")
            assert not caught, caught

main()
