#!/usr/bin/env python3
"""library - what an installed libpawl gives to a C program: a header, a pkg-config file, only the names it promises, and the
bus and the wallet ledger. The programs are examples/c/*.c, compiled the way a user does it, library_bus.c and
library_wallet.c."""
import os
import re
import shutil
import signal
import subprocess
import tempfile

from bus_commands import counts, new_id, retry_at_once, send, show, wait_status
from pawl_test import TIMEOUT_S, Database, Pawl, Process, Proxy, main, setting, test, wait_until
from servers import backends

SOURCE, BUILD = setting("PAWL_SOURCE"), setting("PAWL_BUILD")
BUS = os.path.join(BUILD, "test/integration/library_bus")
STATIC = os.path.join(BUILD, "test/integration/library_static")
WALLET = os.path.join(BUILD, "test/integration/library_wallet")
THE_ID = "0198c0de-0000-7000-8000-00000000000a"
UNAVAILABLE = 4


class Installed:
    """The build, installed below a folder, and programs compiled against that."""

    def __enter__(self):
        self.folder = tempfile.mkdtemp(prefix="pawl-install.", dir="/tmp")
        subprocess.run(["meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--destdir", self.folder], check=True,
                       stdout=subprocess.DEVNULL, timeout=TIMEOUT_S * 2)
        self.library = self.find("libpawl.so")
        self.env = {**os.environ, "PKG_CONFIG_PATH": os.path.dirname(self.find("pawl.pc")),
                    "PKG_CONFIG_SYSROOT_DIR": self.folder, "LD_LIBRARY_PATH": os.path.dirname(self.library)}
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.folder, ignore_errors=True)

    def find(self, name):
        for folder, _, files in os.walk(self.folder):
            if name in files:
                return os.path.join(folder, name)
        raise AssertionError(f"{name} was not installed")

    def compile(self, source):
        """The program made of one file; once."""
        program = os.path.join(self.folder, os.path.basename(source)[:-2])
        if os.path.exists(program):
            return program
        flags = subprocess.run(["pkg-config", "--cflags", "--libs", "pawl"], env=self.env, check=True, capture_output=True,
                               text=True).stdout.split()
        sanitize = setting("PAWL_SANITIZE")
        subprocess.run(["cc", "-std=c17", "-Wall", "-Wextra", "-Werror",
                        *([f"-fsanitize={sanitize}"] if sanitize != "none" else []),
                        os.path.join(SOURCE, source), *flags, "-o", program], check=True, timeout=TIMEOUT_S)
        return program

    def run(self, program, *arguments):
        return subprocess.run([program, *arguments], env=self.env, capture_output=True, text=True, timeout=TIMEOUT_S)

    def bus(self, db, scenario):
        """What library_bus.c was got, line by line."""
        url = db.url if isinstance(db, Database) else db
        done = self.run(BUS, url, scenario)
        assert done.returncode == 0 and done.stderr == "", (done.stdout, done.stderr[-4000:])
        return done.stdout.splitlines()

    def wallet(self, db, scenario):
        """What library_wallet.c was got, line by line."""
        url = db.url if isinstance(db, Database) else db
        done = self.run(WALLET, url, scenario)
        assert done.returncode == 0 and done.stderr == "", (done.stdout, done.stderr[-4000:])
        return done.stdout.splitlines()

    def start(self, program, *arguments, stdin=subprocess.DEVNULL):
        return Process([program, *arguments], self.env, stdin)


@test
def an_installed_library_serves_a_program():
    with Database(empty=True) as db:
        program = installed.compile("examples/c/transaction.c")

        def place(key, amount, url=db.url):
            return installed.run(program, url, key, amount)

        first = place("order-1", "250")
        assert (first.returncode, first.stdout, first.stderr) == (0, "order-1 booked, total 250\n", "")
        assert place("order-1", "250").stdout == "order-1 was booked before, total 250\n"
        assert place("order-2", "50").stdout == "order-2 booked, total 300\n"
        bad = place("order-3", "-1")
        assert bad.returncode == 1 and bad.stderr.startswith("23514: "), bad
        assert db.value("select count(*) from orders") == "2"
        dead = place("order-4", "1", "postgresql://postgres@127.0.0.1:1/postgres")
        assert dead.returncode == 1 and "refused" in dead.stderr, dead
        wrong = place("order-4", "1", "postgresql://[::1/x")
        assert wrong.returncode == 1 and "malformed" in wrong.stderr, wrong
        with Proxy(db) as proxy:
            proxy.do("cut-on answered 1 insert into orders")
            again = place("order-5", "7", proxy.url)
            assert again.stdout == "order-5 booked, total 307\n", again
            proxy.do("cut-commit answered 2")  # the table's commit, and the order's
            again = place("order-6", "3", proxy.url)
            assert again.returncode == 0 and again.stdout.endswith("total 310\n"), again
        assert db.value("select sum(amount) from orders") == "310"


@test
def a_program_is_compiled_and_run_without_an_install():
    env = {**os.environ, "PKG_CONFIG_PATH": os.path.join(BUILD, "meson-uninstalled"), "LD_LIBRARY_PATH": BUILD}
    flags = subprocess.run(["pkg-config", "--cflags", "--libs", "pawl"], env=env, check=True, capture_output=True, text=True).stdout.split()
    sanitize = setting("PAWL_SANITIZE")
    with Database() as db, tempfile.TemporaryDirectory(prefix="pawl-compile.") as folder:
        program = os.path.join(folder, "transaction")
        subprocess.run(["cc", *([f"-fsanitize={sanitize}"] if sanitize != "none" else []),
                        os.path.join(SOURCE, "examples/c/transaction.c"), *flags, "-o", program], check=True, timeout=TIMEOUT_S)
        done = subprocess.run([program, db.url, "order-1", "250"], env=env, capture_output=True, text=True, timeout=TIMEOUT_S)
        assert done.stdout == "order-1 booked, total 250\n", done


@test
def a_child_of_fork_is_refused_in_words_and_its_parent_is_not_disturbed():
    words = re.compile(r"6 opened in process \d+, of which this is a child: open the library after fork\(\), not before")
    with Database() as db:
        db.rows("create table mine (n int)")
        got = installed.bus(db, "fork")
        ends = [line for line in got if line.startswith("child: ")]
        assert ends == ["child: exited 0", "child: exited 0", f"child: signal {signal.SIGABRT.value}"], got
        assert got[-1] == "session: the same", got
        aborted = [line for line in got if line.startswith("libpawl: ")]
        assert len(aborted) == 1 and aborted[0].endswith("the child returned from a function that pawl had called"), got
        calls = dict(line.split(": ", 1) for line in got if not line.startswith(("child: ", "libpawl: ", "session: ")))
        assert len(calls) == 16 and all(words.fullmatch(said) for said in calls.values()), got
        assert db.value("select (select count(*) from mine), (select count(*) from pawl.command)") == "1|0"


@test
def a_statement_that_cannot_be_sent_is_refused_and_costs_no_connection():
    with Database(empty=True) as db:
        assert installed.bus(db, "query") == [
            "null: 1 sql must be a statement, got NULL",
            "negative: 1 a statement can have 0 to 65535 parameters, got -1",
            "too many: 1 a statement can have 0 to 65535 parameters, got 65536",
            "no array: 1 parameters must be an array of 1 texts, got NULL",
            "session: the same"]


@test
def the_library_shows_its_promised_names_and_no_others():
    with open(os.path.join(SOURCE, "include/pawl/exports.txt"), encoding="utf-8") as file:
        names = subprocess.run(["nm", "-D", "--defined-only", installed.library], check=True, capture_output=True, text=True)
        shown = sorted(line.split()[-1].split("@")[0] for line in names.stdout.splitlines() if line.split()[-2] in "TDBR")
        assert shown == sorted(file.read().split()), shown
        header = installed.find("pawl.h")
        assert os.path.relpath(header, installed.folder).endswith("include/pawl/pawl.h"), header


@test
def the_static_library_leaves_all_other_names_to_the_program():
    names = subprocess.run(["nm", "-g", "--defined-only", installed.find("libpawl.a")], check=True, capture_output=True, text=True)
    shown = sorted(line.split()[-1] for line in names.stdout.splitlines() if len(line.split()) == 3)
    with open(os.path.join(SOURCE, "include/pawl/exports.txt"), encoding="utf-8") as file:
        assert shown == sorted(file.read().split()), shown
    with Database() as db:
        done = installed.run(STATIC, db.url)
        assert (done.returncode, done.stdout.splitlines(), done.stderr) == (0, [
            "open: 0", "post: 0", "again: 0 1", "raised: 2", "called: 0, parsed: 0"], ""), done


# --- sending ---

@test
def a_command_is_sent_once_and_refusals_say_why():
    with Database() as db, Pawl(db) as pawl:
        got = dict(line.split(": ", 1) for line in installed.bus(db, "send"))
        assert got["full"] == "0 new PENDING " and got["again"] == "0 known PENDING ", got
        assert got["other payload"] == \
            f"1 known PENDING command {THE_ID} exists already: payload differs from what was sent first", got
        assert got["defaults"] == got["lowest"] == "0 new PENDING ", got
        for label, words in (("no domain", "domain must be"), ("bad json", "payload"), ("bad id", "command_id must be a UUID"),
                             ("bad priority", "priority must be an integer from 0 to 9, got 10")):
            assert got[label].startswith("1 known - ") and words in got[label], (label, got)
        assert got["no batch"].startswith("2 known - batch") and "not found" in got["no batch"], got
        found = db.rows("select type, payload, priority, max_attempts, reply_to, correlation_id from pawl.command order by id")
        assert found == ['charge|{"order": 7}|9|5|answers|order-7', "plain|{}|4|3||", "lowest|{}|0|3||"], found
        assert db.value("select due > now() + interval '59 min' from pawl.delayed") == "t"
        assert show(pawl, THE_ID)["audit"][0]["actor"] == "ann"


@test
def commands_with_an_order_key_run_one_at_a_time_in_order_in_a_program():
    with Database() as db:
        got = installed.bus(db, "order")
        counts = [int(word) for word in re.findall(r"\d+", got[0])]
        assert counts[1] == 200 and counts[2] >= 70 and counts[3:] == [0, 0, 0, 0], got
        assert got[1] == "out of order: 0", got
        assert got[2:4] == ["long key: 1 known - order_key must be 1 to 200 bytes, got 201",
                            "empty key: 1 known - order_key must be 1 to 200 bytes, got 0"], got
        assert got[4] == "chained: 0 new PENDING ", got
        assert got[5] == 'bad chain: 1 known - reply_to must not name a domain of processes, got "command:process:shop/t"', got
        assert db.rows("select order_key, reply_to from pawl.command where type = 't'") == ["k|command:next/t"]
        assert db.rows("select count(*), count(distinct order_key) from pawl.command where type = 'count'") == ["200|5"]


@test
def text_keys_and_unique_keys_in_a_program():
    with Database() as db:
        got = installed.bus(db, "keys")
        key = db.value("select pawl.key('order-1')")
        unique = db.value("select command_id from pawl.command where type = 'u'")
        wrong = [f"{THE_ID} known - key and id differ: give one of them", "known - key must be UTF-8 of 1 to 200 bytes, got 0",
                 'known - on_duplicate must be keep, replace or move, got "drop"']
        assert got[0] == f"send: 0 {key} new - " and got[3] == f"send: 0 {unique} new - " and got[4] == f"send: 0 {unique} known replaced ", got
        assert got[6] == f"many: 0 {key} known - ", got
        assert got[9:11] == [f"many: 0 {unique} known kept ", f"many: 0 {unique} known replaced "], got
        for call, first in (("send", 0), ("many", 6)):
            for line, words in zip((got[first + 1], got[first + 2], got[first + 5]), wrong):
                assert line.startswith(call + ": 1 ") and line.endswith(words.split(" ", 1)[1]), (line, words)
        assert got[12:] == [f"start: 0 {key} new - ", f"starts: 0 {key} known - ", f"tx send: 0 {key} known - ", f"tx start: 0 {key} known - "], got
        assert db.rows("select type, payload from pawl.command order by id") == ["a|1", "u|2", "order|{}"]


@test
def a_bad_command_does_not_keep_its_neighbours_from_being_sent():
    with Database() as db:
        got = installed.bus(db, "many")
        assert [line.split()[1] for line in got[:7]] == ["0", "1", "1", "1", "0", "2", "0"], got
        assert got[0] == "a: 0 new PENDING " and got[4] == "e: 0 new PENDING " and got[6] == "a: 0 known PENDING ", got
        assert 'type is "d", it was sent as "a"' in got[3], got
        assert got[7] == "all: " + re.sub(r"b: 1 known - ", "1 ", got[1]), got
        assert got[8:] == ["good: 0", "none: 1"], got
        assert db.rows("select type from pawl.command order by id") == ["a", "e"]


@test
def a_command_sent_in_a_transaction_shares_its_fate():
    with Database() as db:
        db.rows("create table mine (id integer generated always as identity)")
        got = installed.bus(db, "outbox")
        refusal = f'command {THE_ID} exists already: type is "refused", it was sent as "committed"'
        assert got[0:2] == ["rolled-back: 0 new PENDING ", "end: 1 the body rolled back"], got
        assert got[2:6] == ["committed: 0 new PENDING ", "end: 0 ", "committed: 0 known PENDING ", "end: 0 "], got
        assert got[6].startswith("refused-and-swallowed: 1 known PENDING ") and got[7] == "end: 0 ", got
        assert got[8:10] == ["refused: 1 known PENDING " + refusal, "end: 1 " + refusal], got
        assert got[10].startswith("bad type: 1 known - type must be") and got[11] == "end: 0 ", got
        assert db.rows("select type from pawl.command") == ["committed"]
        assert db.value("select count(*) from mine") == "4"


@test
def many_commands_sent_in_a_transaction_share_its_fate():
    with Database() as db:
        got = installed.bus(db, "outbox-many")
        verdicts = ["a: 0 new PENDING ", got[1], "c: 0 new PENDING "]
        assert got[1].startswith("b: 1 known - payload"), got
        refusal = got[1].removeprefix("b: 1 known - ")
        assert got == [*verdicts, "end: 1 " + refusal, *verdicts, "end: 0 "], got
        assert db.rows("select type, priority from pawl.command order by id") == ["a|4", "c|7"]


@test
def a_lost_answer_leaves_one_command():
    with Database() as db, Proxy(db) as proxy:
        proxy.do("cut-on answered 1 from pawl.send")
        assert installed.bus(proxy.url, "one") == ["one: 0 known PENDING "]
        assert db.value("select count(*) from pawl.command") == "1"
        assert proxy.do("counts")["cuts"] == 1
    got = installed.bus("postgresql://postgres@127.0.0.1:1/postgres", "one")
    assert got[0].startswith(f"one: {UNAVAILABLE} known - ") and "refused" in got[0], got


@test
def workers_are_notified_of_sent_commands():
    for scenario, domains in (("one", {"shop"}), ("many", {"shop", "other"}), ("outbox-many", {"many", "more"})):
        with Database() as db:
            ear = Process([os.path.join(setting("PAWL_TEST_BIN"), "psql"), "-Xq", db.url], stdin=subprocess.PIPE)

            def hear(sql):
                ear.process.stdin.write(sql + ";\n")
                ear.process.stdin.flush()
                return {re.search('payload "(.*?)"', line)[1] for line in ear.stdout[:] if "payload" in line}

            try:
                hear("listen pawl_work")
                wait_until(lambda: hear("select 'listening'") or ear.said("listening"), what="it listens")
                installed.bus(db, scenario)
                wait_until(lambda: hear("select 1") == domains, what=f"{domains} are got")
            finally:
                ear.kill()


@test
def closing_waits_for_calls_of_other_threads():
    with Database(empty=True) as db:
        assert installed.bus(db, "close") == ["slow: 0"]


# --- handling ---

def outcome(pawl, command_id):
    found = show(pawl, command_id)
    return found["status"], found["result"], found["error"]


@test
def a_handler_decides_how_a_command_ends():
    with Database() as db, Pawl(db) as pawl:
        kinds = ("complete", "retry", "fail", "reject", "silent", "bad-result", "large-result", "mistake", "unheard-of")
        ids = {kind: send(pawl, "shop", kind, {"order": 7}) for kind in kinds}
        assert installed.bus(db, "work") == ["11 claimed, 1 completed, 2 retried, 7 failed, 1 rejected, 0 lost, 0 running"]
        got = {kind: outcome(pawl, ids[kind]) for kind in kinds}
        assert got["complete"] == ("COMPLETED", {"attempt": 1, "of": 3, "payload": {"order": 7}}, None), got
        assert got["retry"] == ("IN_TSQ", None, "not yet: 3"), got
        assert got["fail"] == ("IN_TSQ", None, "bad bytes ?(, ??"), got
        assert got["reject"] == ("FAILED", None, "not today \u00e9"), got
        assert got["silent"] == ("IN_TSQ", None, "the handler gave no reason"), got
        assert got["bad-result"][2].startswith("result is no JSON: "), got
        assert got["large-result"][2] == "result has 5242879 bytes: at most 4194304 are allowed", got
        assert got["mistake"] == ("IN_TSQ", None, "the handler returned 3, which is not a PawlOutcome"), got
        assert got["unheard-of"][2] == "no such type in domain shop", got


@test
def a_handler_snoozes_without_using_an_attempt():
    with Database() as db, Pawl(db) as pawl:
        command = send(pawl, "shop", "snooze", None, "--max-attempts", "1")
        got = installed.bus(db, "work")
        assert " 1 completed, " in got[0] and " 0 failed, " in got[0], got
        assert outcome(pawl, command)[0] == "COMPLETED" and show(pawl, command)["attempts"] == 1
        assert db.value("select details from pawl.event where event = 'SNOOZED'") == '{"reason": "not open yet", "delay_ms": 1000}'


@test
def a_handler_reports_progress_and_its_next_attempt_is_given_it():
    with Database() as db, Pawl(db) as pawl:
        command = send(pawl, "shop", "progress", {})
        assert installed.bus(db, "work") == ["2 claimed, 1 completed, 1 retried, 0 failed, 0 rejected, 0 lost, 0 running"]
        result = show(pawl, command)["result"]
        assert {**result["last"], "at": None} == {"step": None, "attempt": 1, "percent": None, "text": "page 5", "at": None}, result
        assert result["refused"] == ("percent must be from 0 to 100, got 101; percent or text must be given; "
                                     "text must have 1 to 200 characters, got 0"), result


@test
def a_handler_gets_sigterm_at_its_timeout():
    with Database() as db, Pawl(db) as pawl:
        retry_at_once(db, "shop")
        hung = send(pawl, "shop", "hang", None, "--max-attempts", "2")
        assert installed.bus(db, "timeout") == ["2 claimed, 0 completed, 1 retried, 1 failed, 0 rejected, 0 lost, 0 running"]
        assert outcome(pawl, hung) == ("IN_TSQ", None, "handler ran longer than 200 ms and was stopped: not yet: 2")


@test
def an_outcome_after_the_timeout_is_kept_unless_it_is_a_retry():
    with Database() as db, Pawl(db) as pawl:
        db.rows(STUMBLE)
        refused = send(pawl, "shop", "reject-late")
        silent = send(pawl, "shop", "silent-late", None, "--max-attempts", "1")
        assert installed.bus(db, "timeout") == ["2 claimed, 0 completed, 0 retried, 1 failed, 1 rejected, 0 lost, 0 running"]
        assert outcome(pawl, refused) == ("FAILED", None, "not today \u00e9")
        assert outcome(pawl, silent) == ("IN_TSQ", None, "handler ran longer than 200 ms and was stopped")
        refused = send(pawl, "shop", "reject-late")
        assert installed.bus(db, "timeout-in-tx") == ["1 claimed, 0 completed, 0 retried, 0 failed, 1 rejected, 0 lost, 0 running"]
        assert outcome(pawl, refused) == ("FAILED", None, "not today \u00e9")
        assert db.value("select count(*) from effect") == "0"


@test
def a_worker_stops_when_another_thread_says_so():
    with Database() as db, Pawl(db) as pawl:
        ids = [send(pawl, "shop", "hang") for _ in range(4)]
        got = installed.bus(db, "stop")
        assert got[0] == "again: 1 a worker can be run once", got
        assert re.fullmatch(r"(2|3|4) claimed, 0 completed, \1 retried, 0 failed, 0 rejected, 0 lost, 0 running", got[1]), got
        assert got[2].startswith("0 claimed, "), got
        assert {show(pawl, hung)["status"] for hung in ids} == {"PENDING"}
        stopped = db.value("select count(*) from pawl.audit where details::text like '%was stopped because its worker was%'")
        assert int(stopped) >= 2, stopped  # and perhaps one that began just before


@test
def a_worker_takes_only_its_types():
    with Database() as db, Pawl(db) as pawl:
        other = send(pawl, "shop", "fail")
        for _ in range(3):
            send(pawl, "shop", "complete")
        assert installed.bus(db, "types") == ["3 claimed, 3 completed, 0 retried, 0 failed, 0 rejected, 0 lost, 0 running"]
        assert show(pawl, other)["attempts"] == 0


@test
def a_worker_listens_for_work():
    with Database() as db, Pawl(db) as pawl:
        worker = installed.start(BUS, db.url, "wait", stdin=subprocess.PIPE)
        pawl.processes.append(worker)
        wait_until(lambda: db.value("select count(*) from pg_stat_activity where datname = current_database() "
                                    "and query ilike 'listen%'") == "1", what="the worker listens")
        wait_status(pawl, send(pawl, "shop", "complete"), "COMPLETED")
        worker.process.stdin.write("\n")
        worker.process.stdin.close()
        assert worker.wait() == 0 and worker.said("1 completed") and not worker.stderr, (worker.stdout, worker.stderr)


@test
def a_worker_with_wrong_options_is_refused():
    with Database() as db:
        before = counts(db)
        got = installed.bus(db, "options")
        assert [line.split()[0] for line in got] == ["1"] * 7, got
        for line, words in zip(got, ("domain", "handler", "handler", "concurrency", "lease_ms", "timeout_ms", "domain")):
            assert words in line, got
        assert counts(db) == before


# --- exactly once ---

STUMBLE = """
create sequence stumbles;
create function stumble() returns integer language plpgsql as $$
begin
  if nextval('stumbles') = 1 then
    raise exception 'deadlock detected' using errcode = '40P01';
  end if;
  return 1;
end $$;
create table effect (id uuid); -- no key: a second effect would be seen
"""


@test
def what_a_handler_writes_in_its_transaction_happens_exactly_once_or_never():
    with Database() as db, Pawl(db) as pawl:
        db.rows(STUMBLE)
        kinds = ("write", "reject", "give-up", "later", "broken", "swallowed", "ended", "deadlock")
        ids = {kind: send(pawl, "shop", kind, None, "--max-attempts", "1") for kind in kinds}
        assert installed.bus(db, "work-in-tx") == \
            ["8 claimed, 2 completed, 0 retried, 5 failed, 1 rejected, 0 lost, 0 running"]
        got = {kind: outcome(pawl, ids[kind]) for kind in kinds}
        assert got["write"] == got["deadlock"] == ("COMPLETED", "done", None), got
        assert show(pawl, ids["deadlock"])["attempts"] == 1 and db.value("select last_value from stumbles") == "2"
        assert got["reject"] == ("FAILED", None, "the handler gave no reason"), got
        assert got["give-up"][0] == got["later"][0] == "IN_TSQ", got
        assert got["broken"] == ("IN_TSQ", None, "division by zero"), got
        assert got["swallowed"] == ("IN_TSQ", None, "division by zero (SQLSTATE 22012)"), got
        assert got["ended"] == ("IN_TSQ", None, "the handler ended its transaction by itself"), got
        assert sorted(db.rows("select id from effect")) == sorted([ids["write"], ids["deadlock"]])
        assert db.value("select count(*) from pawl.command where type = 'note'") == "2"


@test
def a_statement_is_canceled_when_the_time_of_its_handler_is_up():
    with Database() as db, Pawl(db) as pawl:
        db.rows(STUMBLE)
        slow = send(pawl, "shop", "slow", None, "--max-attempts", "1")
        installed.bus(db, "timeout-in-tx")
        status, result, error = outcome(pawl, slow)
        assert (status, result) == ("IN_TSQ", None), (status, result)
        # The server, the connection and the worker all look at the clock; on a busy machine any of them may be the first.
        assert re.search("statement timeout|did not answer in time|ran longer than 2000 ms", error), error
        wait_until(lambda: backends(db, "state = 'active' and query ~ 'pg_sleep'") == 0, what="the server is done with it")
        assert db.value("select count(*) from effect") == "0"


@test
def a_lost_commit_of_a_handler_has_its_effect_once():
    with Database() as db, Pawl(db) as pawl, Proxy(db) as proxy:
        db.rows(STUMBLE)
        written = send(pawl, "shop", "write")
        proxy.do("cut-commit answered 1")
        got = installed.bus(proxy.url, "work-in-tx")
        assert got == ["1 claimed, 1 completed, 0 retried, 0 failed, 0 rejected, 0 lost, 0 running"], got
        assert proxy.do("counts")["cuts"] == 1
        assert db.rows("select id from effect") == [written] and show(pawl, written)["attempts"] == 1


@test
def senders_and_two_workers_share_a_process():
    with Database() as db:
        db.rows(STUMBLE)
        got = installed.bus(db, "storm")
        assert got == ["200 claimed, 200 completed, 0 retried, 0 failed, 0 rejected, 0 lost, 0 running"] * 2, got
        assert db.value("select count(*) from effect") == "200"
        assert db.value("select count(*) from pawl.outcome where status = 'COMPLETED'") == "400"
        assert db.value("select count(*) from pawl.command where type = 'note'") == "200"


@test
def a_program_starts_what_it_sends():
    """Its commands began in the transactions that sent them, so no claim has found them."""
    with Database() as db:
        got = installed.bus(db, "start")
        started, claimed = map(int, re.fullmatch(r"(\d+) started, (\d+) claimed", got[0]).groups())
        assert started == 1 and db.value("select count(*) from pawl.outcome where status = 'COMPLETED' and attempts = 1") == str(started + claimed), got


@test
def the_examples_send_and_handle_orders():
    with Database() as db, Pawl(db) as pawl:
        place, charge = (installed.compile(f"examples/c/{name}.c") for name in ("send", "worker"))
        worker = installed.start(charge, db.url)
        pawl.processes.append(worker)
        small, large = new_id(), new_id()
        for order, amount in ((small, "250"), (large, "5000")):
            done = installed.run(place, db.url, order, amount)
            assert (done.returncode, done.stdout, done.stderr) == (0, f"{order} placed, PENDING\n", ""), done
        wrong = send(pawl, "shop", "charge", {"sum": 1})
        assert wait_status(pawl, small, "COMPLETED")["result"] == {"charged": 250}
        assert wait_status(pawl, large, "FAILED")["error"] == "amount 5000 is above the limit of 1000"
        assert "violates not-null constraint" in wait_status(pawl, wrong, "IN_TSQ")["error"]
        assert installed.run(place, db.url, small, "250").stdout == f"{small} was placed before, COMPLETED\n"
        assert worker.stop(signal.SIGINT) == 0 and not worker.stderr, worker.stderr
        assert worker.stdout == ["1 completed, 1 rejected, 1 failed"], worker.stdout
        assert db.rows("select id, amount from charged") == [f"{small}|250"]
        assert db.rows("select payload from pawl.command where domain_id = pawl.domain_id('post')") == ['{"amount": 250}']


# --- the wallet ledger ---

def posted(amount, before, after, held, available, version, how="new"):
    return f"0 {how} {amount}: {before} -> {after}, held {held}, available {available}, version {version}"


def stands(balance, held, available, floor, version, frozen=""):
    return f"0 {balance}, held {held}, available {available}, floor {floor}, version {version}{frozen} "


def txn_id(number):
    return f"0198c0de-0000-7000-8000-{number:012}"


KINDS = {"topup": posted(500, 1000, 1500, 0, 1500, 2), "spend": posted(100, 1500, 1400, 0, 1400, 3),
         "transfer": posted(300, 1400, 1100, 0, 1100, 4), "multi": posted(30, 1100, 1070, 0, 1070, 5),
         "hold": posted(200, 1070, 1070, 200, 870, 6), "capture": posted(50, 1070, 1020, 150, 870, 7),
         "void": posted(150, 1020, 1020, 0, 1020, 8), "refund": posted(100, 1020, 1120, 0, 1120, 9),
         "freeze": posted(0, 1120, 1120, 0, 1120, 10), "unfreeze": posted(0, 1120, 1120, 0, 1120, 11),
         "floor": posted(0, 1120, 1120, 0, 1220, 12)}
FIELDS_WRONG = 32


@test
def a_wallet_is_opened_once_and_read():
    with Database() as db:
        got = installed.wallet(db, "open")
        words = dict(line.split(": ", 1) for line in got[:10])
        assert words["first"] == "0 new " and words["again"] == "0 known " and words["full"] == "0 new ", got
        assert words["floor"] == '1 known the wallet of "ann" in CREDIT already exists with another floor', got
        assert words["key"] == f"1 known txn_id {txn_id(7)} was used before for another operation", got
        for label, field in (("no owner", "owner"), ("bad asset", "asset"), ("bad floor", "floor"), ("bad id", "txn_id"),
                             ("bad metadata", "metadata")):
            assert words[label].startswith(f"1 known {field}"), (label, got)
        assert got[10:12] == ["ann: " + stands(0, 0, 0, 0, 0), "ann: " + stands(0, 0, 50, -50, 0)], got
        assert got[12].startswith("bob: 2 ") and got[12].endswith('there is no wallet of "bob" in CREDIT'), got
        assert got[13].startswith("@system: 0 0, "), got
        assert db.rows("select owner, metadata from wallet.wallet where owner <> '@system' order by id") == \
            ["ann|", 'ann|{"tier": 1}']


@test
def every_kind_of_operation_is_posted():
    with Database() as db, Pawl(db) as pawl:
        got = installed.wallet(db, "kinds")
        words = dict(line.split(": ", 1) for line in got)
        assert {kind: words[kind] for kind in KINDS} == KINDS, got
        assert words["frozen"].startswith("1 new wallet-frozen: "), got
        assert got[9] == "ann: " + stands(1120, 0, 1120, 0, 10, ", frozen"), got
        assert got[-2:] == ["ann: " + stands(1120, 0, 1220, -100, 12), "bob: " + stands(370, 0, 370, 0, 3)], got
        assert pawl.run("wallet", "verify").code == 0


@test
def every_kind_of_operation_is_posted_in_one_transaction():
    with Database() as db:
        got = installed.wallet(db, "kinds-in-tx")
        assert got[:11] == ["item: " + verdict for verdict in KINDS.values()], got
        assert got[11] == "item: 1 new hold-ended: the hold is voided (0 0)", got
        assert got[12] == "item: 1 new over-refunded: 0 of 100 are left to refund (0 0)", got
        assert got[13:] == ["ann: " + stands(1120, 0, 1220, -100, 12), "bob: " + stands(380, 0, 380, 0, 3)], got


@test
def a_key_decides_once_and_a_refusal_is_remembered():
    with Database() as db:
        words = dict(line.split(": ", 1) for line in installed.wallet(db, "keys"))
        refusal = 'insufficient-funds: "ann" has 600 available, 900 are needed (0 0)'
        assert words["first"] == posted(400, 1000, 600, 0, 600, 2), words
        assert words["again"] == posted(400, 1000, 600, 0, 600, 2, "replayed"), words
        assert words["other amount"] == f'1 new key-reused: txn_id {txn_id(2)} was used before with another "amount" (0 0)', words
        assert words["other kind"].startswith("1 new key-reused: ") and "another operation: spend" in words["other kind"], words
        assert words["too much"] == "1 new " + refusal and words["still refused"] == "1 replayed " + refusal, words
        for label, kind in (("nobody", "wallet"), ("no hold", "hold"), ("no transaction", "transaction")):
            assert words[label].startswith(f"2 new {kind}-unknown: there is no "), (label, words)
        assert words["ann"] == stands(1600, 0, 1600, 0, 3), words


@test
def a_bad_operation_is_refused_and_its_field_is_named():
    for scenario in ("bad", "bad-in-tx"):
        with Database() as db:
            got = installed.wallet(db, scenario)
            assert len(got) == FIELDS_WRONG + (scenario == "bad"), got
            for line in got[:FIELDS_WRONG]:
                field, words = line.split(": ", 1)
                assert words.startswith(f"1 new invalid-request: {field}"), line
            for line in got[FIELDS_WRONG:]:
                assert line.startswith("number: 1 new invalid-request: metadata must have no number"), line
            assert db.rows("select kind from wallet.txn where kind <> 'open'") == ["topup"]


@test
def a_refused_operation_does_not_keep_its_neighbours_from_being_posted():
    with Database() as db:
        got = installed.wallet(db, "many")
        reused = f'txn_id {txn_id(4)} was used before with another "amount"'
        refusal = '"bob" has 300 available, 301 are needed'
        assert got[:3] == ["item: " + posted(300, 1000, 700, 0, 700, 2), f"item: 1 new insufficient-funds: {refusal} (0 0)",
                            "item: " + posted(100, 300, 200, 0, 200, 2)], got
        assert got[3].startswith("item: 1 new invalid-request: owner") and "metadata" in got[4], got
        assert got[5:9] == ["item: " + posted(700, 700, 700, 700, 0, 3), "item: " + posted(700, 700, 0, 0, 0, 4),
                             "item: " + posted(100, 300, 200, 0, 200, 2, "replayed"),
                             f"item: 1 new key-reused: {reused} (0 0)"], got
        assert got[9:] == ["all: 1 " + refusal, "good: 0", "none: 1 1 to 8000 operations can be posted in one call, got 0",
                            "ann: " + stands(0, 0, 0, 0, 4), "bob: " + stands(200, 0, 200, 0, 2)], got


@test
def operations_too_large_for_one_transaction_are_posted_in_order():
    with Database() as db:
        assert installed.wallet(db, "large") == ["mistakes: 0", "ann: " + stands(600, 0, 600, 0, 401)]


@test
def an_operation_in_a_transaction_shares_its_fate():
    with Database() as db:
        db.rows("create table mine (id integer generated always as identity)")
        got = installed.wallet(db, "tx")
        spent, reused = posted(400, 1000, 600, 0, 600, 2), f'txn_id {txn_id(2)} was used before with another "amount"'
        before, after = "ann: " + stands(1000, 0, 1000, 0, 1), "ann: " + stands(600, 0, 600, 0, 2)
        poor, nobody = '"ann" has 600 available, 900 are needed', 'there is no wallet of "zoe" in CREDIT'
        assert got == [
            "post: " + spent, "end: 1 the body rolled back", before,
            "post: " + spent, "end: 0 ", after,
            "post: " + spent.replace("new", "replayed"), "end: 0 ", after,
            f"post: 1 new key-reused: {reused} (0 0)", "end: 1 " + reused, after,
            f"post: 1 new insufficient-funds: {poor} (0 0)", "end: 1 " + poor, after,
            f"post: 1 new insufficient-funds: {poor} (0 0)", "end: 0 ", after,
            f"post: 2 new wallet-unknown: {nobody} (0 0)", "end: 2 " + nobody, after,
            'pair: 1 "ann" has 100 available, 500 are needed', after], got
        assert db.value("select count(*) from mine") == "3"
        assert db.rows("select txn_id, refusal from wallet.txn where kind <> 'open' order by id") == \
            [txn_id(1) + "|", txn_id(2) + "|", txn_id(3) + "|insufficient-funds"]


@test
def sixteen_threads_spend_what_there_is_and_no_more():
    with Database() as db, Pawl(db) as pawl:
        assert installed.wallet(db, "race") == ["posted: 33 of 80", "ann: " + stands(10, 0, 10, 0, 34)]
        assert db.value("select count(*) from wallet.txn where kind = 'spend' and refusal is null") == "33"
        assert pawl.run("wallet", "verify").code == 0


@test
def a_transaction_that_lost_a_deadlock_over_wallets_is_run_again():
    with Database() as db:
        got = installed.wallet(db, "crossing")
        assert got[1:] == ["ends: 0 0, runs: 3", "ann: " + stands(1000, 2, 998, 0, 3), "bob: " + stands(1000, 2, 998, 0, 3)], got


@test
def a_lost_answer_leaves_one_operation():
    with Database() as db, Proxy(db) as proxy:
        installed.wallet(db, "make")
        proxy.do("cut-on answered 1 wallet.post")
        assert installed.wallet(proxy.url, "one") == ["one: " + posted(400, 1000, 600, 0, 600, 2, "replayed")]
        assert proxy.do("counts")["cuts"] == 1
    got = installed.wallet("postgresql://postgres@127.0.0.1:1/postgres", "one")
    assert got[0].startswith(f"one: {UNAVAILABLE} new database-unavailable: ") and "refused" in got[0], got


@test
def the_example_sells_for_money():
    with Database() as db:
        program = installed.compile("examples/c/wallet.c")
        installed.wallet(db, "make")
        order, large = new_id(), new_id()
        done = installed.run(program, db.url, order, "ann", "250")
        assert (done.returncode, done.stdout, done.stderr) == (0, f"{order} bought, ann has 750 left\n", ""), done
        assert installed.run(program, db.url, order, "ann", "250").stdout == f"{order} was bought before, ann has 750 left\n"
        poor = installed.run(program, db.url, large, "ann", "751")
        assert (poor.returncode, poor.stderr) == (1, 'QW011: "ann" has 750 available, 751 are needed\n'), poor
        assert installed.run(program, db.url, order, "ann", "1").returncode == 1
        assert db.rows("select id, buyer from bought") == [f"{order}|ann"]
        assert db.value("select balance from wallet.get(array['shop'])") == "250"


with Installed() as installed:
    main()
