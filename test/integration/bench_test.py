#!/usr/bin/env python3
"""bench - measures in databases of its own, and leaves neither them nor anything in the user's behind."""
import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import urllib.parse

from bus_commands import counts, send
from checks import is_clean, refused
from pawl_test import TIMEOUT_S, Database, Pawl, main, psql, setting, test, url_with_database, wait_until
from servers import IS_ROOT, Session, as_postgres, free_port

INTERRUPTED = 75
TINY = ("--count", "1000", "--rounds", "2")


def databases(process):
    """The databases that this bench has made and not dropped."""
    return psql(setting("PAWL_TEST_URL"),
                f"select datname from pg_database where datname like 'pawl\\_bench\\_{process.pid}\\_%'")


def ended(process, code):
    """It has ended so, cleanly, and its databases are gone."""
    found = process.wait(TIMEOUT_S * 2)
    assert found == code, f"exit {found}, not {code}: {process.stderr}"
    assert is_clean(process), process.stderr
    assert databases(process) == [], databases(process)
    return process


def report(pawl, *arguments):
    """What a bench that runs to its end reports; commands that were sent are all accounted for."""
    process = ended(pawl.start("bench", *arguments, "--json"), 0)
    assert process.stderr == [] and len(process.stdout) == 1, (process.stdout, process.stderr)
    found = json.loads(process.stdout[0])
    assert found["bench"] == arguments[0] and found["complete"] is True, found
    assert found["synchronous_commit"] == "off" and found["fsync"] == "off" and found["cpus"] >= 1, found
    assert found["server_version"].split(".")[0].isdigit(), found
    place = found["counts"]
    assert place["sent"] == place["completed"] + place["ready"] + place["delayed"] + place["leased"], place
    return found


def figures(found):
    """{(section, figure): (median, runs)}, each sound in itself."""
    rows = {(row["section"], row["figure"]): (row["median"], row["runs"]) for row in found["figures"]}
    assert len(rows) == len(found["figures"]), found["figures"]
    for median, runs in rows.values():
        assert min(runs) <= median <= max(runs), (median, runs)
    return rows


def is_ratio(percent, second, first):
    """Is it the second to the first in percent, as far as two rates rounded to whole numbers can tell?"""
    return 100 * (second - 0.5) / (first + 0.5) - 0.1 < percent < 100 * (second + 0.5) / (first - 0.5) + 0.1


@contextlib.contextmanager
def untouched(db, pawl):
    """The user's database has the same rows afterwards."""
    send(pawl, "shop", "charge", {"n": 1})
    before = counts(db)
    yield
    assert counts(db) == before, f"{counts(db)}, not {before}"


# --- what it measures ---

@test
def updates_of_the_bot_are_stored_handled_and_answered():
    with Database() as db, Pawl(db) as pawl, untouched(db, pawl):
        found = report(pawl, "bot", "--count", "60", "--rounds", "2", "--groups", "5", "--clients", "4")
        rows = figures(found)
        # Each update was handled, and its answer was taken out of the outbox.
        assert found["counts"] == {"sent": 240, "ready": 0, "delayed": 0, "leased": 0, "completed": 240}, found
        assert len(rows["bot", "updates"][1]) == 2 and min(rows["bot", "updates"][1]) > 0, rows
        assert rows["bot, each update", "WAL"][0] > 0, rows
        # More than may wait in the outbox.
        found = report(pawl, "bot", "--count", "1500", "--rounds", "1", "--groups", "100", "--clients", "16")
        assert found["counts"]["completed"] == 3000, found
        refused(pawl, "bench", "bot", "--count", "241", "--rounds", "1", "--groups", "1", code=2, words=["241 updates need --groups 2"])


@test
def processes_of_three_steps_are_run_weighed_and_resumed():
    with Database() as db, Pawl(db) as pawl, untouched(db, pawl):
        found = report(pawl, "processes", "--count", "300", "--rounds", "2", "--clients", "16")
        rows = figures(found)
        assert found["counts"] == {"sent": 600, "ready": 0, "delayed": 0, "leased": 0, "completed": 600}, found
        assert {("start", "processes"), ("run", "processes"), ("run", "steps")} <= set(rows), rows
        assert all(len(rows[key][1]) == 2 and min(rows[key][1]) > 0 for key in rows if key[0] in ("start", "run")), rows
        assert rows["run, each step", "table process_step"][0] > 0 and rows["run, each step", "WAL"][0] > 0, rows
        found = report(pawl, "processes", "--closed", "--count", "60", "--rounds", "1", "--clients", "3")
        assert found["counts"]["completed"] == 60 and figures(found)["closed", "processes, from start to end"][0] > 0, found
        found = report(pawl, "processes", "--resume", "--rate", "50", "--seconds", "1")
        rows = figures(found)
        assert found["counts"]["completed"] == 50, found
        assert 0 < rows["resume", "response to running process, p50"][0] <= rows["resume", "response to running process, max"][0], rows
        found = report(pawl, "processes", "--waiting", "500", "--count", "100", "--rounds", "1")
        assert found["counts"]["delayed"] == 500 and found["counts"]["completed"] == 200, found


@test
def commands_are_sent_handled_and_weighed():
    with Database() as db, Pawl(db) as pawl, untouched(db, pawl):
        found = report(pawl, "commands", *TINY)
        assert found["options"] == {"count": 1000, "batch": 1000, "clients": 2, "rounds": 2, "rate": 2000}, found
        assert found["counts"] == {"sent": 2000, "ready": 0, "delayed": 0, "leased": 0, "completed": 2000}, found
        rows = figures(found)
        for section in ("send", "handle"):
            median, runs = rows[section, "commands"]
            assert median > 0 and len(runs) == 2, rows
            assert rows[section, "WAL"][0] > 100, rows  # and what other tests write to the same server
            tables = [runs for (where, name), (_, runs) in rows.items() if where == section and name.startswith("table ")]
            total = rows[section, "tables and indexes"][1]
            assert len(tables) >= 3 and len(total) == 2, rows
            for round_number, whole in enumerate(total):
                parts = sum(runs[round_number] for runs in tables if len(runs) == 2)
                assert 0 <= whole and abs(whole - parts) <= 20, (section, whole, parts)
        assert ("send", "table command") in rows and ("handle", "table outcome") in rows, rows
        assert found["windows"] == [] and found["judgements"] == [], found


@test
def an_uneven_count_per_client_is_sent_completely():
    with Database(empty=True) as db, Pawl(db) as pawl:
        found = report(pawl, "commands", "--count", "1003", "--rounds", "1", "--clients", "4", "--batch", "100")
        assert found["counts"]["completed"] == 1003, found


@test
def single_sends_stay_queued():
    with Database() as db, Pawl(db) as pawl, untouched(db, pawl):
        found = report(pawl, "commands", "--single", "--count", "200", "--rounds", "1", "--clients", "8")
        assert found["counts"]["sent"] == found["counts"]["ready"] == 200, found
        assert list(figures(found)) == [("single", "commands")], found


@test
def with_and_without_delayed_commands_take_turns():
    with Database() as db, Pawl(db) as pawl, untouched(db, pawl):
        found = report(pawl, "commands", *TINY, "--delayed", "3000")
        assert found["counts"] == {"sent": 7000, "ready": 0, "delayed": 3000, "leased": 0, "completed": 4000}, found
        rows = figures(found)
        none, many = rows["delayed", "handle, none delayed"][1], rows["delayed", "handle, many delayed"][1]
        ratio = rows["delayed", "the second to the first"][1]
        assert len(none) == len(many) == len(ratio) == 2, rows
        assert all(is_ratio(c, b, a) for a, b, c in zip(none, many, ratio)), rows


@test
def transfers_are_measured_in_every_way():
    with Database() as db, Pawl(db) as pawl, untouched(db, pawl):
        few = ["--wallets", "20", "--count", "300", "--rounds", "1"]
        rows = figures(report(pawl, "transfers", *few, "--clients", "8"))
        assert rows["transfers", "transfers"][0] > 0 and rows["transfers", "p50"][0] <= rows["transfers", "p99"][0], rows
        assert rows["transfers", "WAL"][0] > 100 and ("transfers", "table entry") in rows, rows
        rows = figures(report(pawl, "transfers", *few, "--clients", "8", "--hot"))
        any_rate, hot = rows["hot", "transfers, any wallets"][0], rows["hot", "transfers, all from one wallet"][0]
        assert is_ratio(rows["hot", "the second to the first"][0], hot, any_rate), rows
        assert figures(report(pawl, "transfers", *few, "--arrays", "100"))["arrays", "transfers"][0] > 0
        rows = figures(report(pawl, "transfers", *few, "--history", "1000"))
        assert rows["history", "reads of a wallet with 1000 entries"][0] > 0, rows
        rows = figures(report(pawl, "transfers", *few, "--verify", "1000"))
        assert list(rows) == [("verify", "seal and verify"), ("verify", "verify")], rows


@test
def one_and_two_processes_take_turns():
    with Database() as db, Pawl(db) as pawl, untouched(db, pawl):
        found = report(pawl, "commands", *TINY, "--processes", "2")
        assert found["counts"]["sent"] == found["counts"]["completed"] == 4000, found
        rows = figures(found)
        assert [name for _, name in rows] == ["handle, one process", "handle, 2 processes together",
                                              "the second to the first"], rows
        assert all(len(runs) == 2 and min(runs) > 0 for _, runs in rows.values()), rows


@test
def an_offered_rate_is_shown_by_windows_and_judged():
    with Database() as db, Pawl(db) as pawl, untouched(db, pawl):
        found = report(pawl, "commands", "--rate", "200", "--paced", "1s", "--hold", "1s", "--hold-xid", "1s")
        sections = ("paced", "hold", "hold-xid")
        assert [row["section"] for row in found["judgements"]] == list(sections), found
        assert all(isinstance(row["flat"], bool) and "claim p50" in row["why"] for row in found["judgements"]), found
        assert found["counts"]["completed"] == found["counts"]["sent"] >= 3 * 200, found
        for section in sections:
            windows = [row for row in found["windows"] if row["section"] == section]
            assert len(windows) == 6 and windows[-1]["until_s"] >= 0.99, windows
            assert all(a["until_s"] < b["until_s"] for a, b in zip(windows, windows[1:])), windows
            assert all(row["offered_per_s"] == 200 for row in windows), windows
            assert sum(row["done_per_s"] for row in windows) > 0, windows
            assert any(0 < row["claim_p50_ms"] <= row["claim_p99_ms"] for row in windows), windows
            assert any(0 < row["start_p50_ms"] <= row["start_p99_ms"] for row in windows), windows


def held(process):
    """The state of the transaction that the bench holds: has it a snapshot, has it a number?"""
    rows = psql(setting("PAWL_TEST_URL"), "select backend_xmin is not null, backend_xid is not null from pg_stat_activity "
                f"where datname like 'pawl\\_bench\\_{process.pid}\\_%' and application_name = 'pawl bench hold' "
                "and state = 'idle in transaction'")
    return rows[0] if rows else None


@test
def the_held_transaction_is_really_there():
    with Database() as db, Pawl(db) as pawl:
        for flag, wanted in (("--hold", "t|f"), ("--hold-xid", "t|t")):
            process = pawl.start("bench", "commands", flag, "60s", "--rate", "50")
            wait_until(lambda process=process, wanted=wanted: held(process) == wanted, what=f"{flag} holds {wanted}")
            process.send(signal.SIGINT)
            ended(process, INTERRUPTED)


@test
def latency_is_reported_in_percentiles():
    with Database() as db, Pawl(db) as pawl, untouched(db, pawl):
        found = report(pawl, "latency", "--rate", "50", "--seconds", "1")
        assert found["options"] == {"rate": 50, "seconds": 1}, found
        assert found["counts"]["completed"] == found["counts"]["sent"] >= 50, found
        rows = figures(found)
        marks = [rows["latency", f"send to start of handler, {mark}"][0] for mark in ("p50", "p90", "p99", "max")]
        assert 0 < marks[0] and marks == sorted(marks), marks


@test
def without_json_a_table_is_printed_with_the_commit_settings():
    with Database() as db, Pawl(db) as pawl:
        process = ended(pawl.start("bench", "commands", "--count", "500", "--rounds", "1"), 0)
        assert process.said(r"^PostgreSQL \d+.*, synchronous_commit off, fsync off, \d+ CPUs$"), process.stdout
        assert process.said(r"^send +commands +\d+ +/s +\d+$"), process.stdout
        assert process.said(r"^handle +WAL +\d+ +bytes each +\d+$"), process.stdout
        got = pawl.run("help", "bench").stdout
        for word in ("bench commands", "--hold-xid", "--processes", "bench latency", "--seconds"):
            assert word in got, got


# --- what it leaves ---

@test
def interrupted_at_any_moment_it_drops_its_databases():
    with Database() as db, Pawl(db) as pawl, untouched(db, pawl):
        for number, arguments, moment in [
                (signal.SIGINT, ("--count", "10000000"), lambda p: databases(p)),
                (signal.SIGTERM, ("--count", "10000000"), lambda p: rows_in(p, "command")),
                (signal.SIGINT, ("--count", "10", "--delayed", "10000000"), lambda p: len(databases(p)) == 2),
                (signal.SIGHUP, ("--hold", "10m", "--rate", "100"), lambda p: rows_in(p, "outcome"))]:
            process = pawl.start("bench", "commands", *arguments)
            wait_until(lambda process=process, moment=moment: moment(process), what=f"{arguments} is under way")
            process.send(number)
            ended(process, INTERRUPTED)
            assert process.said("^pawl: interrupted$"), process.stderr


def rows_in(process, table):
    """Are there rows in a table of its database?"""
    for name in databases(process):
        with contextlib.suppress(AssertionError):  # not migrated yet
            return psql(url_with_database(setting("PAWL_TEST_URL"), name), f"select 1 from pawl.{table} limit 1")
    return []


def children(process):
    with open(f"/proc/{process.pid}/task/{process.pid}/children", encoding="ascii") as file:
        return file.read().split()


@test
def interrupted_it_ends_its_worker_processes_too():
    with Database() as db, Pawl(db) as pawl:
        process = pawl.start("bench", "commands", "--count", "300000", "--rounds", "1", "--processes", "2")
        workers = wait_until(lambda: children(process), timeout=TIMEOUT_S * 4, what="a worker process is there")
        process.send(signal.SIGINT)
        ended(process, INTERRUPTED)
        assert not any(os.path.exists(f"/proc/{pid}") for pid in workers), workers


@test
def an_interrupted_bench_reports_what_it_measured():
    with Database() as db, Pawl(db) as pawl:
        process = pawl.start("bench", "commands", "--rate", "50", "--hold", "30s", "--json")
        url = setting("PAWL_TEST_URL")
        name = wait_until(lambda: databases(process), what="its database is there")[0]
        wait_until(lambda: rows_in(process, "outcome") and
                   int(psql(url_with_database(url, name), "select count(*) from pawl.outcome")[0]) > 50 + 2 * 50 * 30 / 6,
                   what="two windows have passed")
        process.send(signal.SIGINT)
        ended(process, INTERRUPTED)
        found = json.loads(process.stdout[0])
        assert found["complete"] is False and found["windows"] and not found["judgements"], found


@test
def a_bench_that_fails_drops_its_database():
    with Database() as db, Pawl(db) as pawl, untouched(db, pawl):
        process = pawl.start("bench", "commands", "--count", "10000000")
        wait_until(lambda: rows_in(process, "command"), what="it sends")
        psql(url_with_database(setting("PAWL_TEST_URL"), databases(process)[0]), "alter table pawl.ready rename to gone")
        ended(process, 1)
        assert len(process.stderr) == 1 and process.said("^pawl: "), process.stderr


@contextlib.contextmanager
def plain_role(db, rights=""):
    """A role with these rights and no others, and the URL of the database for it."""
    role = f"{db.name}_plain"
    db.rows(f"create role {role} login {rights}")
    try:
        yield role, db.url.replace("postgres@", f"{role}@", 1)
    finally:
        db.rows(f"drop role {role}")


@test
def a_plain_role_drops_its_database_after_a_session_of_the_server_there():
    """As a vacuum of the server's own is: a plain role may not end it, and can only wait for its end."""
    with Database() as db, plain_role(db, "createdb") as (_, url), Pawl(url) as pawl:
        process = pawl.start("bench", "commands", "--count", "10000000")
        wait_until(lambda: rows_in(process, "command"), what="it sends")
        name = databases(process)[0]
        with Session(url_with_database(setting("PAWL_TEST_URL"), name)) as session:
            assert session.do("select 1") == ["1"]
            process.send(signal.SIGINT)
            wait_until(lambda: psql(setting("PAWL_TEST_URL"), "select 1 from pg_stat_activity where state = 'active' "
                                    f"and query = 'drop database if exists {name}'"), what="it waits for the session")
        ended(process, INTERRUPTED)


# --- what it refuses ---

@test
def a_role_that_may_not_create_databases_is_refused_by_name():
    with Database() as db, plain_role(db) as (role, url), Pawl(url) as pawl:
        refused(pawl, "bench", "latency", code=1, words=[role, "may not create databases", "createdb"])
        db.rows(f"alter role {role} createdb")
        report(pawl, "commands", *TINY, "--delayed", "100")


@contextlib.contextmanager
def pooler(db, row):
    """PgBouncer with one row of databases; the URL of the test's database through it."""
    folder, port = tempfile.mkdtemp(prefix="pawl-bouncer.", dir="/tmp"), free_port()
    query = dict(urllib.parse.parse_qsl(urllib.parse.urlsplit(db.url).query))
    config = os.path.join(folder, "pgbouncer.ini")
    with open(config, "w", encoding="utf-8") as file:
        file.write(f"[databases]\n{row} host={query['host']} port={query['port']} user=postgres\n[pgbouncer]\n"
                   f"listen_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\nauth_type = any\n"
                   f"pool_mode = transaction\nlogfile = {folder}/log\n")
    if IS_ROOT:
        shutil.chown(folder, "postgres")
    program = shutil.which("pgbouncer", path=os.environ["PATH"] + ":/usr/sbin")
    process = subprocess.Popen(as_postgres([program, "-q", config]), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    url = f"postgresql://postgres@127.0.0.1:{port}/{db.name}"

    def answers():
        with contextlib.suppress(AssertionError):
            return psql(url, "select 1") == ["1"]
        return False

    try:
        wait_until(answers, what="PgBouncer answers")
        yield url
    finally:
        process.kill()
        process.wait(TIMEOUT_S)
        shutil.rmtree(folder, ignore_errors=True)


@test
def a_pooler_that_cannot_lead_to_a_new_database_is_refused():
    with Database() as db:
        for row, word in ((f"{db.name} =", "a list of databases"), (f"* = dbname={db.name}", "in front of one database")):
            with pooler(db, row) as url, Pawl(url) as pawl:
                before = counts(db)
                process = pawl.start("bench", "latency", "--seconds", "1")
                code = process.wait(TIMEOUT_S * 2)
                assert code != 0 and databases(process) == [] and counts(db) == before, (code, process.stderr)
                assert len(process.stderr) == 1 and word in process.stderr[0], process.stderr


@test
def a_pooler_that_leads_everywhere_will_do():
    with Database() as db, pooler(db, "* =") as url, Pawl(url, env={"PAWL_LISTEN_DATABASE_URL": db.url}) as pawl:
        found = report(pawl, "latency", "--seconds", "1", "--rate", "20")
        assert found["counts"]["completed"] >= 20, found


@test
def wrong_flags_are_named_before_anything_is_made():
    with Pawl("postgresql://nobody@127.0.0.1:1/none") as pawl:
        for arguments, words in [
                (("commands", "--count", "0"), ["--count"]),
                (("commands", "--rounds", "33"), ["--rounds", "32"]),
                (("commands", "--processes", "1"), ["--processes"]),
                (("commands", "--hold", "10ms"), ["--hold", "1s"]),
                (("commands", "--hold", "soon"), ["--hold"]),
                (("latency", "--rate", "-1"), ["--rate"]),
                (("latency", "--hold", "10s"), ["--hold"]),
                (("processes", "--resume", "--count", "100"), ["--count has no effect with --resume"]),
                (("processes", "--seconds", "5"), ["--seconds has no effect without a flag"]),
                (("letency",), ["latency"])]:
            refused(pawl, "bench", *arguments, code=2, words=words)
        refused(pawl, "bench", "latency", code=69, words=["127.0.0.1"])


main()
