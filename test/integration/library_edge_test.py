#!/usr/bin/env python3
"""library_edge - what libpawl refuses, in words and without a crash: NULL, negative times, bad options, a server that says no, one that is silent."""
import os
import socket
import subprocess
import threading
import time

from bus_commands import send, wait_status
from pawl_test import TIMEOUT_S, Database, Pawl, Process, Proxy, main, setting, test, url_with_database, wait_until

EDGE = os.path.join(setting("PAWL_BUILD"), "test/integration/library_edge")
STOP_S = 4.0  # what a stop may take at most in one of three tries; a silent server held it up for 8 s and more
REFUSED, TRY_AGAIN, FAILED = 1, 3, 6


def edge(db, scenario):
    """What library_edge.c printed, line by line."""
    done = subprocess.run([EDGE, db.url, scenario], capture_output=True, text=True, timeout=TIMEOUT_S)
    assert done.returncode == 0 and done.stderr == "", (done.stdout, done.stderr[-4000:])
    return done.stdout.splitlines()


@test
def null_is_a_default_or_refused_in_words():
    with Database() as db:
        got = edge(db, "null")
        assert got == [
            "open: 1 database_url must be a url, got NULL",
            "ping: 1 pawl must be what pawl_open() has returned, got NULL",
            "transaction: 0 ",
            "no body: 1 body must be a function, got NULL",
            "tx_send: 1 commands must be an array, got NULL",
            "tx_post_many: 1 operations must be an array, got NULL",
            "tx_start: 1 start must be given, got NULL",
            "in tx: 0 ",
            got[8],
            "send_many: 1 commands must be an array, got NULL",
            "start: 1 start must be given, got NULL",
            "signal: 1 signal must be given, got NULL",
            "wallet_open: 1 wallet must be given, got NULL",
            "wallet_get: 2 there is no wallet of \"@system\" in CREDIT",
            "post: 1 operation must be given, got NULL",
            "post_many: 1 operations must be an array, got NULL",
            "worker_open: 1 a worker needs options, got NULL",
            "worker_run: 1 worker must be what pawl_worker_open() has returned, got NULL",
            "claimed: 0"], got
        assert got[8].startswith("send: 1 domain must be "), got


@test
def outputs_are_empty_after_a_failure():
    with Database() as db:
        negative = "timeout_ms must not be negative, got -1"
        assert edge(db, "outputs") == ["open: NULL NULL", "result: 0 0 NULL 0", "verdict: NULL", "wallet: 0 0 0",
                                       f"lists: 0 {negative}, 0 {negative}"]


@test
def no_time_is_the_default_and_a_negative_time_is_refused():
    with Database() as db:
        got = edge(db, "times")
        assert got[0] == "default: 0 " and len(got) == 11, got
        for line in got[1:]:
            assert line.split(": ", 1)[1] == f"{REFUSED} timeout_ms must not be negative, got -1", got
        assert db.value("select count(*) from pawl.command") == "0"


@test
def only_changed_rows_are_counted_and_only_one_statement_is_run():
    with Database(empty=True) as db:
        got = edge(db, "statements")
        assert got[:8] == ["create: 0", "insert: 3", "update: 2", "select: 0", "delete: 1", "insert: 1", "values: 0", "end: 0 "], got
        assert got[8].startswith(f"several: {FAILED} cannot insert multiple commands"), got
        assert db.rows("select n from counted order by n") == ["3", "4", "9"]


@test
def closing_in_a_function_that_pawl_called_does_nothing():
    with Database() as db:
        assert edge(db, "close") == ["body: 0 ", "send: 0 ", "run: 0 ", "completed: 1"]


@test
def closing_does_not_wait_for_a_function_that_does_not_return():
    """It is closed while the function still has its transaction, whose time is over; the last call frees the rest."""
    with Database() as db:
        assert edge(db, "stuck") == ["closed", f"query: {TRY_AGAIN}", f"stuck: {TRY_AGAIN}"]


@test
def a_worker_with_a_bad_list_of_types_or_url_is_refused():
    with Database() as db:
        got = edge(db, "options")
        assert [line.split()[1] for line in got] == [str(REFUSED)] * 4, got
        assert got[0] == got[2] == "open: 1 types must be 1 to 100 types and a NULL, or NULL for all types", got
        assert got[1].startswith("open: 1 types must be ") and got[3].startswith("open: 1 listen_url: database url must begin with postgresql://"), got


# --- a server that says no, and one that says nothing ---

def worker_ends(url):
    """Without being stopped: its standard input stays open."""
    program = Process([EDGE, url, "work"], stdin=subprocess.PIPE)
    try:
        wait_until(lambda: program.stdout, what="the worker has ended by itself")
        return program.stdout[0]
    finally:
        program.process.stdin.close()
        program.wait()


@test
def a_worker_that_can_never_work_ends_with_words():
    with Database() as db:
        got = worker_ends(url_with_database(db.url, "nodb"))
        assert got.startswith("run: 1 cannot connect to database") and 'database "nodb" does not exist' in got, got
        nobody = db.url + ("&" if "?" in db.url else "?") + "user=nobody_here"
        got = worker_ends(nobody)
        assert got.startswith("run: 1 cannot connect to database") and 'role "nobody_here" does not exist' in got, got
    got = worker_ends("postgresql://postgres@127.0.0.1:99999/postgres")
    assert got == "open: 1 the database url's port must be a number from 1 to 65535", got


@test
def a_worker_that_has_worked_waits_until_its_role_may_log_in_again():
    role = f"library_edge_{os.getpid()}"
    with Database() as db, Pawl(db) as pawl, Proxy(db) as proxy:
        db.rows(f"create role {role} login superuser")
        worker = Process([EDGE, proxy.url.replace("postgres@", role + "@"), "work"], stdin=subprocess.PIPE)
        pawl.processes.append(worker)
        wait_status(pawl, send(pawl, "shop", "t"), "COMPLETED")
        db.rows(f"alter role {role} nologin")
        before = proxy.do("counts")["accepted"]
        db.rows(f"select pg_terminate_backend(pid) from pg_stat_activity where usename = '{role}'")
        wait_until(lambda: proxy.do("counts")["accepted"] >= before + 3, what="it was refused several times")
        db.rows(f"alter role {role} login")
        wait_status(pawl, send(pawl, "shop", "t"), "COMPLETED")
        worker.process.stdin.close()
        assert worker.wait() == 0 and worker.stdout == ["run: 0 "], (worker.stdout, worker.stderr)
        db.rows(f"drop role {role}")


class Silence:
    """A server that accepts connections and never answers."""

    def __enter__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"postgresql://postgres@127.0.0.1:{self.listener.getsockname()[1]}/postgres"
        self.accepted = []
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def _accept(self):
        while True:
            try:
                self.accepted.append(self.listener.accept()[0])
            except OSError:
                return

    def __exit__(self, *_):
        self.listener.close()
        for connection in self.accepted:
            connection.close()


def stop_seconds():
    """From the stop of a worker whose server is silent to the end of its program."""
    with Silence() as silence:
        program = Process([EDGE, silence.url, "work"], stdin=subprocess.PIPE)
        wait_until(lambda: len(silence.accepted) >= 2, what="it claims and listens")
        began = time.monotonic()
        program.process.stdin.close()
        assert program.wait() == 0 and program.stdout == ["run: 0 "], (program.stdout, program.stderr)
        return time.monotonic() - began


@test
def a_worker_is_stopped_before_a_silent_server():
    taken = []
    for _ in range(3):
        taken.append(stop_seconds())
        if taken[-1] < STOP_S:
            return
    raise AssertionError(f"the stop took {taken}")


main()
