#!/usr/bin/env python3
"""cli - data to stdout, words to stderr, JSON on request, an honest exit code."""
import http.client
import json
import re
import subprocess
import urllib.request
import uuid

from checks import dead_letters_put, refused
from pawl_test import TIMEOUT_S, Database, Pawl, main, psql, setting, test, wait_until

COMMANDS = ["serve", "send", "work", "command show", "command list", "command cancel", "command delete", "tsq list", "tsq retry",
            "tsq cancel", "tsq complete", "batch create", "batch list", "batch seal", "batch show", "migrate", "migrate status", "doctor", "db start", "db stop",
            "db status", "db url", "dlq list", "dlq show", "dlq retry", "dlq delete", "key create", "key list",
            "key revoke", "policy set", "policy show", "policy reset",
            "domain list", "domain show", "domain pause", "domain resume", "domain limit", "stats", "reply list", "reply read", "reply ack",
            *(f"process {verb}" for verb in ("define", "definitions", "start", "show", "list", "signal", "retry", "cancel", "complete", "move")),
            *(f"schedule {verb}" for verb in ("create", "list", "show", "next", "run", "pause", "resume", "delete")),
            "rating leaderboard", "rating history", "rating verify",
            "bench bot", "bench commands", "bench latency", "bench processes", "bench transfers", "health", "completion", "help", "version", *(f"wallet {verb}" for verb in (
                "list", "holds", "transactions", "create", "topup", "spend", "transfer", "hold", "capture", "void", "refund", "freeze", "unfreeze", "floor",
                "batch", "balance", "entries", "statement", "show", "verify", "events"))]
NOBODY = "00000000-0000-4000-8000-000000000000"


def done_json(pawl, kind, *arguments):
    """It works, and its output is one JSON document of this kind, alone."""
    done = pawl.run(*arguments, "--json")
    assert done.code == 0 and done.stderr == "", (arguments, done)
    assert done.stdout.endswith("\n") and done.stdout.count("\n") == 1, done.stdout
    value = json.loads(done.stdout)
    assert isinstance(value, kind), (arguments, value)
    return value


@test
def every_command_speaks_json():
    with Database(empty=True) as db, Pawl(db) as pawl:
        assert all(row["state"] == "pending" for row in done_json(pawl, list, "migrate", "status"))
        applied = done_json(pawl, dict, "migrate")
        assert applied["applied"] == applied["version"] > 0
        assert done_json(pawl, dict, "migrate") == {"applied": 0, "version": applied["version"]}
        status = done_json(pawl, list, "migrate", "status")
        assert len(status) == applied["version"] and all(row["state"] == "applied" for row in status)
        assert done_json(pawl, dict, "db", "url") == {"url": db.url}
        assert done_json(pawl, list, "dlq", "list") == []
        first, second = dead_letters_put(db, ["a", "b"])
        assert [row["id"] for row in done_json(pawl, list, "dlq", "list")] == [second, first]
        assert done_json(pawl, dict, "dlq", "show", str(first))["operation_key"] == "a"
        assert done_json(pawl, dict, "dlq", "retry", str(first))["status"] == "pending"
        assert done_json(pawl, dict, "dlq", "delete", str(first)) == {"id": first, "deleted": True}
        key = done_json(pawl, dict, "key", "create", "one", "--scopes", "read,admin")
        assert key["token"].startswith("pawl_")
        rows = done_json(pawl, list, "key", "list")
        assert [(row["id"], row["name"]) for row in rows] == [(key["id"], "one")] and "token" not in rows[0]
        assert done_json(pawl, dict, "key", "revoke", "one") == {"id": key["id"], "name": "one", "revoked": True}
        assert set(done_json(pawl, dict, "version")) == {"version"}


def send_one(pawl, *arguments):
    sent = done_json(pawl, dict, "send", "shop", "ship", '{"n": 1}', *arguments)
    assert sent["status"] == "PENDING" and sent["created"] is True, sent
    return sent["command_id"]


def work_all(pawl, *arguments):
    return done_json(pawl, dict, "work", "shop", "--drain", *arguments)


def ids(rows):
    return [row["command_id"] for row in rows]


@test
def every_command_of_the_bus_speaks_json():
    with Database() as db, Pawl(db) as pawl:
        assert done_json(pawl, list, "command", "list") == []
        assert done_json(pawl, list, "tsq", "list") == []
        first = send_one(pawl)
        again = done_json(pawl, dict, "send", "shop", "ship", '{"n": 1}', "--id", first)
        assert again == {"command_id": first, "status": "PENDING", "created": False}
        assert pawl.run("send", "shop", "ship", "--lines", "--json", stdin="1\n2\n").json == {"sent": 2}
        assert done_json(pawl, dict, "command", "list", "--count") == {"count": 3}
        assert done_json(pawl, dict, "command", "show", first)["status"] == "PENDING"
        canceled = done_json(pawl, dict, "command", "cancel", first)
        assert (canceled["command_id"], canceled["status"]) == (first, "CANCELED"), canceled
        counts = {"claimed": 2, "completed": 2, "retried": 0, "failed": 0, "rejected": 0, "lost": 0, "released": 0, "canceled": 0}
        assert work_all(pawl, "--noop") == counts
        assert len(done_json(pawl, list, "command", "list", "--status", "COMPLETED")) == 2
        batch = done_json(pawl, dict, "batch", "create", "--name", "four")["batch_id"]
        failed = [send_one(pawl, "--batch", batch) for _ in range(4)]
        assert work_all(pawl, "--exec", "exit 70")["failed"] == 4
        assert ids(done_json(pawl, list, "tsq", "list")) == failed[::-1]
        assert done_json(pawl, dict, "batch", "show", batch)["in_tsq"] == 4
        for action, status in (("retry", "PENDING"), ("cancel", "CANCELED"), ("complete", "COMPLETED")):
            command = failed.pop()
            decided = done_json(pawl, dict, "tsq", action, command)
            assert (decided["command_id"], decided["status"], decided["decision"]) == (command, status, action), decided
        assert done_json(pawl, dict, "tsq", "cancel", "--all", "--domain", "shop", "--yes")["decided"] == 1
        assert done_json(pawl, list, "tsq", "list") == []


@test
def a_batch_is_created_filled_and_sealed():
    with Database() as db, Pawl(db) as pawl:
        last = '{"domain": "shop", "type": "done", "payload": {"n": 9}}'
        batch = pawl.run("batch", "create", "--name", "night", "--on-complete", last).stdout.strip()
        again = done_json(pawl, dict, "batch", "create", "--id", batch, "--name", "night", "--on-complete", last)
        assert again == {"batch_id": batch}, again
        refused(pawl, "batch", "create", "--id", batch, "--name", "day", code=1, words=[batch, "name differs"])
        assert pawl.run("send", "shop", "ship", "--lines", "--batch", batch, stdin="1\n2\n3\n").code == 0
        assert work_all(pawl, "--noop")["completed"] == 3, "an open batch does not complete"
        sealed = done_json(pawl, dict, "batch", "seal", batch)
        assert (sealed["name"], sealed["status"], sealed["completed"]) == ("night", "COMPLETED", 3), sealed
        assert "status       COMPLETED\n" in pawl.run("batch", "seal", batch).stdout, "sealed twice it is sealed once"
        last, = done_json(pawl, list, "command", "list", "--type", "done")
        shown = done_json(pawl, dict, "command", "show", last["command_id"])
        assert (shown["payload"], shown["correlation_id"]) == ({"n": 9}, batch), shown
        refused(pawl, "send", "shop", "ship", "--batch", batch, code=1, words=["sealed"])
        refused(pawl, "batch", "seal", NOBODY, code=1, words=[NOBODY, "not found"])
        refused(pawl, "batch", "create", "--on-complete", "{", code=2, words=["--on-complete"])
        refused(pawl, "batch", "create", "--on-complete", '{"domain": "shop"}', code=2, words=["--on-complete", "type"])


@test
def what_the_bus_cannot_do_it_says():
    with Database() as db, Pawl(db) as pawl:
        for arguments in (["command", "show"], ["command", "cancel"], ["tsq", "retry"], ["batch", "show"]):
            refused(pawl, *arguments, NOBODY, code=1, words=["not found"])
            refused(pawl, *arguments, "nothing", code=2, words=["nothing", "UUID"])
        refused(pawl, "work", "shop", code=2, words=["--exec", "--sql", "--noop"])
        refused(pawl, "send", "shop", "ship", "{", code=2, words=["payload"])
        refused(pawl, "send", "no spaces", "ship", code=2, words=["domain must be", '"no spaces"'])
        refused(pawl, "send", "shop", "ship", "--reply-to", "a--b", code=2, words=["reply_to must be", '"a--b"'])
        refused(pawl, "policy", "set", "no spaces", "10s", code=2, words=["domain must be", '"no spaces"'])
        for arguments in (["-"], ["--lines"]):  # bad data is no wrong usage
            assert pawl.run("send", "shop", "ship", *arguments, stdin="{").code == 1, arguments
        with open("/proc/self/mem", "rb") as unreadable:
            done = subprocess.run([setting("PAWL_BIN"), "send", "shop", "ship", "--lines"], env=pawl.env, stdin=unreadable,
                                  capture_output=True, text=True, timeout=TIMEOUT_S)
        assert done.returncode == 1 and "cannot read standard input" in done.stderr and done.stdout == "", done
        command = send_one(pawl)
        refused(pawl, "send", "shop", "ship", '{"n": 2}', "--id", command, code=1, words=[command, "payload differs"])
        assert work_all(pawl, "--exec", "exit 70")["failed"] == 1
        asked = pawl.run("tsq", "retry", "--all")
        assert asked.code == 2 and "1 command matches: add --yes to decide about it" in asked.stderr, asked
        refused(pawl, "tsq", "retry", command, "--all", "--yes", code=2, words=["ID", "--all"])
        refused(pawl, "command", "cancel", command, "--all", code=2, words=["--all"])
        refused(pawl, "tsq", "list", "--status", "FAILED", code=2, words=["--status"])
        refused(pawl, "tsq", "retry", command, "--result", "1", code=2, words=["--result"])
        refused(pawl, "policy", "set", "shop", "10s,90", code=2, words=["each of DELAYS must be a duration", '"90"'])
        assert len(done_json(pawl, list, "tsq", "list")) == 1, "only --yes acts"


@test
def tables_are_aligned_and_empty_ones_say_so():
    with Database() as db, Pawl(db) as pawl:
        empty = pawl.run("dlq", "list")
        assert empty.code == 0 and empty.stdout == "" and "no dead letters" in empty.stderr
        letter, = dead_letters_put(db, ["a"])
        table = pawl.run("dlq", "list").stdout.splitlines()
        assert len(table) == 2 and "created" in table[0] and re.search(rf"\b{letter}\b.*sample.*pending.*it broke", table[1])
        shown = pawl.run("dlq", "show", str(letter)).stdout
        assert "status      pending" in shown and "last retry  never" in shown
        db.rows("update pawl.failed_operations set error_message = E'two\\nlines\\tand \\033[31mred'")
        assert len(pawl.run("dlq", "list").stdout.splitlines()) == 2, "a message cannot break the table"
        assert "\033" not in pawl.run("dlq", "list").stdout


@test
def dead_letters_are_shown_to_each_role_with_what_it_may_read():
    with Database() as db, Pawl(db) as pawl:
        letter, = dead_letters_put(db, ["a"])
        secret = pawl.run("dlq", "show", str(letter), "--json").json["operation_data"]
        assert secret is not None
        for role, data in (("reader", None), ("monitor", secret), ("app", secret), ("admin", secret)):
            name = f"{role}_of_{db.name}"
            db.rows(f"create role {name} login in role pawl_{role}")
            try:
                with Pawl(f"{db.url}{'&' if '?' in db.url else '?'}user={name}") as other:
                    row, = done_json(other, list, "dlq", "list")
                    assert (row["id"], row["error_message"], row["operation_data"]) == (letter, "it broke", data), (role, row)
                    row, = done_json(other, list, "dlq", "list", "--status", "pending")
                    assert row["operation_data"] == data, (role, row)
                    shown = other.run("dlq", "show", str(letter))
                    assert shown.code == 0 and ("data        -" in shown.stdout) == (data is None), (role, shown)
            finally:
                db.rows(f"drop role {name}")


@test
def help_names_every_command_and_every_setting():
    with Pawl() as pawl:
        for arguments in (["help"], [], ["--help"]):
            done = pawl.run(*arguments)
            assert done.code == 0 and done.stderr == "", done
            for command in COMMANDS:
                assert re.search(rf"^  pawl {command}\b", done.stdout, re.M), f"{command} is missing: {done.stdout}"
        listed = re.findall(r"^  pawl ([a-z]+(?: [a-z]+(?![a-z|]))?)", pawl.run("help").stdout, re.M)
        assert sorted(listed) == sorted(COMMANDS), set(listed) ^ set(COMMANDS)
        # Groups have headings, and descriptions begin in one column and end before column 101.
        page = pawl.run("help").stdout.splitlines()
        assert {"Commands", "Processes", "Wallets", "Operations"} <= set(page), page
        columns = {re.match(r"  pawl .*?  +", line).end() for line in page if line.startswith("  pawl")}
        assert len(columns) == 1 and max(map(len, page)) <= 100, (columns, page)
        definitions = pawl.run("help", "definitions").stdout
        assert max(map(len, definitions.splitlines())) <= 100, definitions
        assert "from, to, amount, asset?, metadata?" in definitions and "hold, to?, amount?" in definitions, definitions
        settings = pawl.run("help", "settings").stdout
        for name in ("PAWL_DATABASE_URL", "PAWL_HOME", "PAWL_LISTEN", "PAWL_POOL_MAX", "PAWL_LOG", "PAWL_ROLE"):
            assert name in settings
        assert "--scopes" in pawl.run("help", "key").stdout
        one = pawl.run("help", "key", "create").stdout
        assert "--scopes" in one and "key list" not in one and pawl.run("key", "create", "--help").stdout == one, one
        assert pawl.run("dlq").stdout.count("pawl dlq") == 4
        for verb in ("retry", "cancel", "complete"):
            assert ("--result" in pawl.run("help", "tsq", verb).stdout) == (verb == "complete"), verb
        work = " ".join(pawl.run("help", "work").stdout.split())
        assert all(words in work for words in ("(payload jsonb, command_id uuid) returns jsonb", "shell", "no limit")), work
        refused(pawl, "help", "nothing", code=2, words=["nothing", "definitions"])
        refused(pawl, "help", "key", "nothing", code=2, words=["key nothing"])
        assert pawl.run("--version").stdout == pawl.run("version").stdout


@test
def help_speaks_json():
    with Pawl() as pawl:
        commands = done_json(pawl, list, "help")
        assert sorted(" ".join(filter(None, (row["group"], row["verb"]))) for row in commands) == sorted(COMMANDS), commands
        key, = done_json(pawl, list, "help", "key", "create")
        assert key["usage"] == "NAME" and [flag["flag"] for flag in key["flags"]] == ["--scopes", "--domains", "--owners", "--expires", "--operator", "--reason"], key
        for topic, wanted in [("settings", {"setting": "PAWL_LISTEN", "default": "127.0.0.1:8080"}),
                              ("metrics", {"metric": "pawl_http_queue", "kind": "gauge"}),
                              ("errors", {"type": "database-unavailable", "status": 503, "exit": 69}),
                              ("routes", {"method": "GET", "path": "/metrics", "scope": "read, operate or admin"}),
                              ("definitions", {"object": "step", "field": "on_timeout", "kinds": "wait"})]:
            rows = done_json(pawl, list, "help", topic)
            assert any(wanted.items() <= row.items() for row in rows), (wanted, rows)
            text = " ".join(pawl.run("help", topic).stdout.split())
            assert all(str(value) in text for row in rows for value in row.values() if value and topic != "settings"), topic


@test
def serve_says_in_json_where_it_is():
    with Database() as db, Pawl(db) as pawl:
        server = pawl.start("serve", "--json", "--listen", "127.0.0.1:0")
        line, = wait_until(lambda: server.stdout[:], what="a line")
        said = json.loads(line)
        assert said["url"].startswith("http://127.0.0.1:") and said["token_file"] is None, said  # the token is given
        with urllib.request.urlopen(said["url"] + "/health/live", timeout=TIMEOUT_S) as answer:
            assert answer.status == 200
        assert server.stop() == 0 and len(server.stdout) == 1, server.stdout


@test
def flags_may_stand_anywhere_and_behind_two_dashes_nothing_is_a_flag():
    with Database() as db, Pawl(db) as pawl:
        url = {"url": db.url}
        for arguments in (["--json", "db", "url"], ["db", "--json", "url"], ["db", "url", "--json"]):
            assert pawl.run(*arguments).json == url, arguments
        assert pawl.run("--log=debug", "--pool-max", "3", "--json", "db", "url").json == url
        command = pawl.run("send", "--priority=7", "shop", "--max-attempts", "2", "ship", "--", "-7.5").stdout.strip()
        shown = done_json(pawl, dict, "command", "show", command)
        assert (shown["priority"], shown["max_attempts"], shown["payload"]) == (7, 2, -7.5), shown
        refused(pawl, "send", "shop", "ship", "--", "1", "--json", code=2, words=["--json", "one argument too many"])
        refused(pawl, "work", "shop", "--noop", "-j0", code=2, words=["-j must be an integer from 1", '"0"'])
        assert done_json(pawl, dict, "work", "shop", "--noop", "--drain", "-j2")["completed"] == 1


@test
def output_that_cannot_be_written_is_a_failure():
    with Database() as db, Pawl(db) as pawl:
        dead_letters_put(db, [f"key-{i}" for i in range(300)])  # more than one buffer
        for arguments in (["version"], ["help"], ["dlq", "list", "--json", "--limit", "300"], ["key", "create", "one"]):
            with open("/dev/full", "w", encoding="ascii") as full:
                done = subprocess.run([setting("PAWL_BIN"), *arguments], env=pawl.env, stdout=full, stderr=subprocess.PIPE,
                                      text=True, timeout=TIMEOUT_S)
            assert done.returncode == 1 and "cannot write to standard output" in done.stderr, (arguments, done)


def denied(url, sql):
    """psql is refused for want of a right."""
    try:
        psql(url, sql)
    except AssertionError as error:
        assert re.search("permission denied|must be owner", str(error)), error
    else:
        raise AssertionError(f"allowed: {sql}")


@test
def applications_get_a_login_that_owns_nothing_of_pawl():
    with Pawl() as pawl:
        assert pawl.run("db", "start").code == 0 and pawl.run("migrate").code == 0
        url, owner = (pawl.run("db", "url", *flag).stdout.strip() for flag in ([], ["--admin"]))
        assert psql(owner, "select current_user, rolsuper from pg_roles where rolname = current_user") == ["pawl|t"]
        for again in range(2):
            assert psql(url, "select session_user, rolsuper, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls "
                             "from pg_roles where rolname = current_user") == ["app|f|f|f|f|f"]
            psql(url, f"create table orders_{again} (id int)")
            assert psql(url, f"select 'orders_{again}'::regclass::text, n.nspname from pg_class c join pg_namespace n "
                             f"on n.oid = relnamespace where relname = 'orders_{again}'") == [f"orders_{again}|app"]
            psql(url, f"create schema shop_{again}")
            psql(url, "select * from pawl.send('shop', 'charge')")
            psql(url, f"select * from wallet.open(array['ann_{again}'])")
            psql(url, f"select * from wallet.post(array['topup'], array[gen_random_uuid()], array['ann_{again}'], array[5])")
            for sql in ("delete from pawl.command", "create table pawl.mine (id int)", "drop table pawl.command",
                        "truncate wallet.entry",
                        "create table public.mine (id int)", "create role other"):
                denied(url, sql)
            # A login that is gone is made again by the next start.
            psql(owner, "drop owned by app cascade; drop role app")
            assert pawl.run("command", "list").code == 0
        assert pawl.run("command", "list", "--count", "--json").code == 0 and pawl.run("db", "stop").code == 0


@test
def the_private_server_is_managed_by_hand():
    with Pawl() as pawl:
        assert done_json(pawl, dict, "db", "status")["initialised"] is False
        started = done_json(pawl, dict, "db", "start")
        status = done_json(pawl, dict, "db", "status")
        assert status["running"] and status["url"] == started["url"] == done_json(pawl, dict, "db", "url")["url"]
        assert status["admin_url"] == done_json(pawl, dict, "db", "url", "--admin")["url"] != status["url"]
        assert psql(status["url"], "select current_user") == ["app"], "before the schema is there, too"
        assert done_json(pawl, list, "dlq", "list") == [], "a command brings the private schema up to date"
        pawl.serve()
        refused(pawl, "db", "stop", code=1, words=["in use"])
        assert pawl.stop() == 0
        assert done_json(pawl, dict, "db", "status")["running"], "started by hand, it stays"
        assert done_json(pawl, dict, "db", "stop") == {"running": False}
        assert done_json(pawl, dict, "db", "status")["running"] is False
    with Pawl("postgresql://postgres@127.0.0.1:1/postgres?application_name=a%22b") as pawl:
        assert done_json(pawl, dict, "db", "url", "--admin") == done_json(pawl, dict, "db", "url")
        refused(pawl, "db", "start", code=2, words=["PAWL_DATABASE_URL"])
        assert done_json(pawl, dict, "db", "url")["url"].endswith("a%22b")
    with Pawl("host=/nowhere application_name='a\"b'") as pawl:
        assert done_json(pawl, dict, "db", "url")["url"] == "host=/nowhere application_name='a\"b'"


def failed_json(pawl, *arguments, code, kind, part="", env=None):
    """It fails: one JSON document on stderr, nothing on stdout."""
    done = pawl.run(*arguments, env=env)
    assert done.code == code and done.stdout == "", (arguments, done)
    assert done.stderr.count("\n") == 1, done.stderr
    got = json.loads(done.stderr)
    assert set(got) == {"type", "title", "detail", "exit"} and got["exit"] == code, got
    assert got["type"] == "/problems/" + kind and part in got["detail"], got


@test
def errors_are_json_with_json():
    with Database() as db, Pawl(db) as pawl:
        failed_json(pawl, "command", "show", NOBODY, "--json", code=1, kind="not-found", part=NOBODY)
        failed_json(pawl, "wallet", "spend", "eve", "5", "--json", code=1, kind="wallet-unknown", part="eve")
        failed_json(pawl, "--json", "command", "list", "--limit", "ten", code=2, kind="wrong-usage",
                    part='--limit must be an integer from 1 to 1000, got "ten"')
        failed_json(pawl, "sevre", "--json", code=2, kind="wrong-usage", part='"serve"')
        failed_json(pawl, "migrate", "--json", "--pool-max", "many", code=2, kind="wrong-usage",
                    part='--pool-max must be an integer from 1 to 1000, got "many"')
        failed_json(pawl, "send", "shop", "charge", "--delay", "soon", "--json", code=2, kind="wrong-usage",
                    part="--delay must be a duration such as")
        nowhere = {"PAWL_DATABASE_URL": "postgresql://eve@127.0.0.1:1/shop"}
        failed_json(pawl, "dlq", "list", "--json", code=69, kind="database-unavailable", part="127.0.0.1", env=nowhere)
        with open("/dev/full", "w", encoding="utf-8") as full:
            done = subprocess.run([setting("PAWL_BIN"), "command", "list", "--json"], env=pawl.env, stdout=full,
                                  stderr=subprocess.PIPE, text=True)
        assert done.returncode == 1 and "standard output" in json.loads(done.stderr)["detail"], done
        plain = pawl.run("send", "--", "shop", "--json", "{")
        assert plain.code and plain.stderr.startswith("pawl: "), "behind -- it is an argument"


@test
def times_say_that_they_are_utc():
    with Database() as db, Pawl(db) as pawl:
        stamp = re.compile(r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?")
        sent = pawl.run("send", "shop", "ship").stdout.strip()
        letter = dead_letters_put(db, ["a"])[0]
        pawl.run("key", "create", "one")
        pawl.run("wallet", "create", "ann")
        pawl.run("wallet", "topup", "ann", "5")
        for arguments in (["command", "list"], ["command", "show", sent], ["dlq", "list"], ["dlq", "show", str(letter)],
                          ["key", "list"], ["wallet", "entries", "ann"], ["wallet", "statement", "ann"],
                          ["wallet", "balance", "ann", "--at", "2999-01-01"], ["migrate", "status"]):
            done = pawl.run(*arguments)
            found = [done.stdout[match.end():match.end() + 1] for match in stamp.finditer(done.stdout)]
            assert done.code == 0 and found and set(found) == {"Z"}, (arguments, done)


@test
def a_list_larger_than_a_buffer_is_whole():
    with Database() as db, Pawl(db) as pawl:
        for number in range(3):
            dead_letters_put(db, [f"k{number}-{row}" for row in range(100)])
        db.rows("update pawl.failed_operations set operation_data = jsonb_build_object('text', repeat('x', 70000))")
        done = pawl.run("dlq", "list", "--limit", "300", "--json")
        assert done.code == 0 and len(done.stdout) > 20 << 20, (done.code, len(done.stdout), done.stderr)
        rows = json.loads(done.stdout)
        assert len(rows) == 300 and len({row["id"] for row in rows}) == 300, len(rows)
        assert [row["id"] for row in rows] == sorted((row["id"] for row in rows), reverse=True)
        assert pawl.run("dlq", "list", "--limit", "50").stdout.count("\n") == 51
        pawl.serve()
        seen, query = [], "?limit=300"
        while query:
            answer = pawl.http("GET", "/v1/dead-letters" + query)
            assert answer.status == 200 and len(answer.body) < 16 << 20, (answer.status, len(answer.body))
            seen += [row["id"] for row in answer.json["items"]]
            query = answer.json["next_cursor"] and f"?limit=300&cursor={answer.json['next_cursor']}"
        assert seen == [row["id"] for row in rows], len(seen)


@test
def a_page_of_commands_ends_early_where_errors_are_large():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        items = [{"domain": "shop", "type": "charge"}] * 400
        sent = pawl.http("POST", "/v1/commands/batch", {"items": items}).json["items"]
        leased = pawl.http("POST", "/v1/domains/shop/claim", {"limit": 400}).json["items"]
        # Each control character becomes six in JSON.
        ends = [{"command_id": item["command_id"], "lease": item["lease"], "outcome": "reject", "error": "\x01" * 8000}
                for item in leased]
        for first in range(0, 400, 100):
            assert pawl.http("POST", "/v1/domains/shop/settle", {"items": ends[first:first + 100]}).status == 200
        seen, query, pages = [], "?limit=1000", 0
        while query:
            answer = pawl.http("GET", "/v1/commands" + query)
            assert answer.status == 200 and len(answer.body) < 16 << 20, (answer.status, len(answer.body))
            seen += [row["command_id"] for row in answer.json["items"]]
            query, pages = answer.json["next_cursor"] and f"?limit=1000&cursor={answer.json['next_cursor']}", pages + 1
        assert sorted(seen) == sorted(item["command_id"] for item in sent) and pages > 1, (len(seen), pages)


@test
def lines_are_sent_in_batches_of_bounded_size():
    with Database() as db, Pawl(db) as pawl:
        lines = "".join(json.dumps("x" * 1_000_000) + "\n" for _ in range(60))
        done = pawl.run("send", "shop", "big", "--lines", "--json", stdin=lines)
        assert done.code == 0 and done.json == {"sent": 60}, done
        batches = int(db.value("select count(distinct created_at) from pawl.command"))
        assert batches >= 12, f"{batches} batches for 60 MB: at most 5 lines of 1 MB each"


@test
def a_worker_counts_what_went_to_troubleshooting():
    with Database() as db, Pawl(db) as pawl:
        for _ in range(3):
            send_one(pawl, "--max-attempts", "1")
        done = pawl.run("work", "shop", "--exec", "exit 1", "--drain")
        assert done.code == 0 and done.stdout == ("3 claimed: 0 completed, 0 retried, 3 in troubleshooting, 0 rejected, "
                                                  "0 lost\n"), done


@test
def request_ids_are_uuids_in_order():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        connection = http.client.HTTPConnection(pawl.server.host, pawl.server.port)
        ids = []
        for _ in range(40):
            connection.request("GET", "/health/live")
            answer = connection.getresponse()
            answer.read()
            ids.append(answer.headers["X-Request-Id"])
        connection.close()
        assert all(str(uuid.UUID(one)) == one for one in ids), ids
        assert sorted(ids) == ids and len(set(ids)) == 40, ids


@test
def a_filter_or_a_dry_run_with_one_id_decides_nothing():
    with Database() as db, Pawl(db) as pawl:
        db.rows("select pawl.start('order', '{}', '018f0000-0000-7000-8000-000000000001'), pawl.send('shop', 'pay', '{}', '018f0000-0000-7000-8000-000000000001')")
        decisions = [("process", verb) for verb in ("retry", "cancel", "complete")] + [("process", "move", "--to", "2")]
        for decision in decisions:
            for flags in (("--dry-run",), ("--type", "other"), ("--status", "PENDING"), ("--step", "a"), ("--older", "30d"), ("--text", "x")):
                refused = pawl.run(*decision, "018f0000-0000-7000-8000-000000000001", *flags)
                assert refused.code == 2 and f"{flags[0]} goes with --all, not with one ID" in refused.stderr, (decision, flags, refused)
        refused = pawl.run("tsq", "cancel", "018f0000-0000-7000-8000-000000000001", "--type", "other")
        assert refused.code == 2 and "--type goes with --all" in refused.stderr, refused
        assert db.value("select count(*) from pawl.outcome") == "0"


main()
