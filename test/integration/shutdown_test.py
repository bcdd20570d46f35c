#!/usr/bin/env python3
"""shutdown - a signal at any moment: what was accepted is answered, what hangs is cut off, nothing is left behind."""
import http.client
import json
import os
import signal
import socket
import struct
import subprocess
import tempfile
import time

from checks import is_clean, metric, stop_clean
from pawl_test import TIMEOUT_S, Database, Pawl, Proxy, main, setting, test, wait_until
from servers import Session, backends, in_threads, postmaster_pid

LOCK = "begin; lock table pawl.failed_operations in access exclusive mode"
WORKERS = 2
EXECUTORS = 8
READERS = 3  # of these: half are for reads, and one key leaves some to others
CALLS = 100
PATIENT = {"PAWL_REQUEST_TIMEOUT": "20m", "PAWL_DRAIN_TIMEOUT": "20m", "PAWL_WORKERS": str(WORKERS), "PAWL_HTTP_THREADS": str(EXECUTORS)}


def lists_start(pawl, count):
    """Requests that wait for the table, for longer than any test."""
    return in_threads(count, lambda _: pawl.http("GET", "/v1/dead-letters").status)


def lists_in_flight(db, pawl, count):
    """All of them are inside: each executor that may read has one, the others wait in the queue."""
    wait_until(lambda: metric(pawl, "pawl_http_queue") == count - min(count, READERS), what="all requests are inside")
    # Jobs wait for the table too: it must be a list.
    wait_until(lambda: backends(db, "wait_event_type = 'Lock' and query ~ 'order by id desc'"), what="one waits in the database")


def is_refused(server):
    try:
        server.http("GET", "/health/live")
    except (ConnectionRefusedError, ConnectionResetError, http.client.RemoteDisconnected):
        return True
    return False


@test
def a_hundred_requests_in_flight_are_all_answered():
    with Database() as db, Pawl(db, env=PATIENT) as pawl:
        server = pawl.serve()
        with Session(db.url) as session:
            session.do(LOCK)
            answers = lists_start(pawl, CALLS)
            lists_in_flight(db, pawl, CALLS)
            server.send(signal.SIGTERM)
            wait_until(lambda: is_refused(server), what="new connections are refused")
            assert server.is_running(), "it left its callers alone"
            session.do("rollback")
            statuses = answers()
        assert statuses == [200] * CALLS, statuses
        assert server.wait() == 0
        assert is_clean(server), server.stderr
        assert server.said("stopped")
        assert backends(db) == 0


@test
def a_request_that_hangs_is_cut_off():
    env = {**PATIENT, "PAWL_DRAIN_TIMEOUT": "2s", "PAWL_CLOSE_TIMEOUT": "1s"}
    with Database() as db, Pawl(db, env=env) as pawl, Session(db.url) as session:
        server = pawl.serve()
        session.do(LOCK)
        answers = lists_start(pawl, 1)
        lists_in_flight(db, pawl, 1)
        begin = time.monotonic()
        server.send(signal.SIGTERM)
        assert server.wait() == 0
        assert time.monotonic() - begin >= 2, time.monotonic() - begin
        assert is_clean(server), server.stderr
        assert server.said("work in flight was cut off")
        wait_until(lambda: backends(db) == 0, what="its statement is gone")
        assert answers()[0] != 200


@test
def a_second_signal_ends_it_on_the_spot():
    with Database() as db, Pawl(db, env=PATIENT) as pawl, Session(db.url) as session:
        server = pawl.serve()
        session.do(LOCK)
        answers = lists_start(pawl, 1)
        lists_in_flight(db, pawl, 1)
        server.send(signal.SIGTERM)
        wait_until(lambda: is_refused(server), what="it is stopping")
        server.send(signal.SIGINT)
        assert server.wait() == 1
        answers()


def is_running(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().split()[2] != "Z"
    except FileNotFoundError:
        return False


@test
def a_second_signal_ends_programs_too():
    with Database() as db, Pawl(db, env=PATIENT) as pawl, tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        named = os.path.join(folder, "pid")
        pawl.run("process", "define", "-", stdin=json.dumps({"type": "long", "domain": "long", "steps": [
            {"name": "x", "exec": f"trap '' TERM; echo $$ > {named}.new; mv {named}.new {named}; while :; do sleep 1; done"}]}))
        pawl.run("process", "start", "long", "--domain", "long")
        server = pawl.serve()
        wait_until(lambda: os.path.exists(named), what="the program runs")
        with open(named, encoding="utf-8") as file:
            pid = int(file.read())
        server.send(signal.SIGTERM)
        wait_until(lambda: is_refused(server), what="it is stopping")
        assert is_running(pid)
        server.send(signal.SIGTERM)
        assert server.wait() == 1
        wait_until(lambda: not is_running(pid), what="the program has ended")


@test
def an_idle_server_stops_at_once():
    with Database() as db, Pawl(db, env=PATIENT) as pawl:
        for number in (signal.SIGTERM, signal.SIGINT):
            server = pawl.serve()
            assert server.stop(number) == 0  # and not when its time to drain is over
            assert is_clean(server), server.stderr
            assert backends(db) == 0


@test
def a_hangup_reloads_what_can_change():
    with Database() as db, Pawl(db) as pawl:
        file = os.path.join(pawl.home, "pawl.ini")

        def rewrite(text):
            with open(file, "w", encoding="utf-8") as out:
                out.write(text)
            server.send(signal.SIGHUP)

        with open(file, "w", encoding="utf-8") as out:
            out.write("log = error\n")
        server = pawl.serve()
        assert not server.stderr, "quieter than error"
        rewrite("log = info\n")
        wait_until(lambda: server.said("settings reloaded"), what="reloaded")
        assert not server.said("next start"), "nothing else was changed"
        rewrite("log = info\npool_max = 7\nrequest_timeout = 9s\n")
        said = wait_until(lambda: server.said(".*take effect at the next start.*"), what="it says what needs a start").group(0)
        assert "PAWL_POOL_MAX, PAWL_REQUEST_TIMEOUT" in said, said
        assert "worker" not in said, said
        rewrite("log = deafening\n")
        wait_until(lambda: server.said("settings were not reloaded.*deafening"), what="refused, with the reason")
        assert server.http("GET", "/health/live").status == 200
        stop_clean(server)
        assert server.said("stopping"), "the level of before the bad file stayed"


class Manager:
    """A service manager's end of NOTIFY_SOCKET: what was sent to it, and by which process."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "notify")
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.socket.settimeout(TIMEOUT_S)
        self.socket.bind(self.path)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def next(self):
        """The process id of the sender, and the assignments."""
        data, ancillary, _, _ = self.socket.recvmsg(4096, socket.CMSG_SPACE(struct.calcsize("3i")))
        pid = next(struct.unpack("3i", value)[0] for _, kind, value in ancillary if kind == socket.SCM_CREDENTIALS)
        return pid, dict(line.split("=", 1) for line in data.decode().splitlines())


@test
def a_service_manager_is_notified_of_readiness_reload_and_stop_by_the_daemon_alone():
    with tempfile.TemporaryDirectory() as folder, Manager(folder) as manager, Pawl() as pawl:
        os.chmod(folder, 0o755)
        os.chmod(manager.path, 0o777)
        server = pawl.serve(env={"NOTIFY_SOCKET": manager.path}, wait=False)
        pid, state = manager.next()
        assert pid == server.pid and state["READY"] == "1", (pid, server.pid, state)
        server.wait_started()
        assert server.http("GET", "/health/ready").status == 200, "ready as soon as it says so"
        assert state["STATUS"] == f"ready on http://127.0.0.1:{server.port}", state
        with open(f"/proc/{postmaster_pid(pawl.home)}/environ", "rb") as environment:
            assert b"NOTIFY_SOCKET" not in environment.read(), "PostgreSQL would notify in pawl's name"
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000
        server.send(signal.SIGHUP)
        pid, state = manager.next()
        assert pid == server.pid and state["RELOADING"] == "1" and int(state["MONOTONIC_USEC"]) >= before, (pid, state)
        assert manager.next() == (server.pid, {"READY": "1", "STATUS": f"ready on http://127.0.0.1:{server.port}"})
        with open(os.path.join(pawl.home, "pawl.ini"), "w", encoding="utf-8") as out:
            out.write("log = deafening\n")
        server.send(signal.SIGHUP)
        assert manager.next()[1]["RELOADING"] == "1"
        assert manager.next() == (server.pid, {"READY": "1", "STATUS": "the last reload failed, see the log"})
        server.send(signal.SIGTERM)
        assert manager.next() == (server.pid, {"STOPPING": "1", "STATUS": "stopping"})
        assert server.wait() == 0
        assert is_clean(server), server.stderr


@test
def a_hangup_names_the_workers_that_were_changed_added_and_removed():
    with Database() as db, Pawl(db) as pawl:
        file = os.path.join(pawl.home, "pawl.ini")

        def rewrite(*workers):
            with open(file, "w", encoding="utf-8") as out:
                out.write("".join(f"[worker {name}]\nexec = {line}\n" for name, line in workers))

        rewrite(("same", "true"), ("changed", "true"), ("removed", "true"))
        server = pawl.serve()
        rewrite(("same", "true"), ("changed", "false"), ("added", "true"))
        server.send(signal.SIGHUP)
        said = wait_until(lambda: server.said(".*take effect at the next start.*"), what="it names what needs a start").group(0)
        assert "[worker changed], [worker added], [worker removed]" in said and "[worker same]" not in said, said
        stop_clean(server)


@test
def a_signal_during_the_start_ends_it_soon():
    with Database() as db, Proxy(db) as proxy:
        proxy.do("mode blackhole")
        with Pawl(proxy.url, env={"PAWL_CONNECT_TIMEOUT": "20m"}) as pawl:
            server = pawl.serve(wait=False)
            wait_until(lambda: proxy.do("counts")["accepted"] >= 1, what="it waits for the database")
            assert server.stop() == 0


@test
def a_signal_during_the_first_start_leaves_no_server():
    with Pawl() as pawl:
        server = pawl.serve(wait=False)
        wait_until(lambda: os.path.exists(os.path.join(pawl.home, "pg")), what="it makes its home")
        assert server.stop() == 0
        assert postmaster_pid(pawl.home) == 0
        pawl.serve()
        stop_clean(pawl.server)


@test
def without_standard_files_no_other_file_takes_their_descriptors():
    """What is written to standard output or error must not reach a client or the database."""
    with Database() as db, Pawl(db) as pawl:
        process = subprocess.Popen(["/bin/sh", "-c", 'exec "$0" serve --role monitor <&- >&- 2>&-', setting("PAWL_BIN")],
                                   env=pawl.env)
        try:
            wait_until(lambda: process.poll() is not None or backends(db), what="connected")
            assert [os.readlink(f"/proc/{process.pid}/fd/{number}") for number in range(3)] == ["/dev/null"] * 3
            process.terminate()
            assert process.wait(TIMEOUT_S) == 0
        finally:
            process.kill()
            process.wait()


main()
