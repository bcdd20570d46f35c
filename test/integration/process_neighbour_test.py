#!/usr/bin/env python3
"""process_neighbour - a domain, or a type of it, that is slow, hangs or is huge leaves a part of its pod to others. The pods run with default settings."""
import contextlib
import os
import socket
import tempfile
import threading

from pawl_test import Database, Pawl, main, test, wait_until
from process_cli import define, lines, start, wait_status


def start_many(db, domain, type_, count, state="'{}'"):
    db.rows(f"select pawl.start('{type_}', {state}, p_domain => '{domain}') from generate_series(1, {count}) n")


def ended(db, type_, status="COMPLETED"):
    return int(db.value(f"select count(*) from pawl.outcome o join pawl.command c using (id) where c.type = '{type_}' and o.status = '{status}'"))


def in_progress(db, type_):
    return int(db.value(f"select count(*) from pawl.lease l join pawl.command c using (id) where c.type = '{type_}'"))


def no_more_begin(count):
    """Those that run are as many as may run, however long they take to begin."""
    seen = []
    wait_until(lambda: seen.append(count()) or len(seen) > 100 and len(set(seen[-100:])) == 1, what="no more begin")


def waiting_program(folder, name="hanging"):
    """It counts itself, and ends when the file `open` is there, or with the folder."""
    return f"echo x >> {folder}/{name}; while [ -d {folder} ] && [ ! -e {folder}/open ]; do sleep 0.1; done"


class Folder(tempfile.TemporaryDirectory):
    """Of programs that wait for its file `open`; at the end they are let go."""

    def __enter__(self):
        os.chmod(self.name, 0o777)
        return self.name

    def __exit__(self, *exception):
        open(os.path.join(self.name, "open"), "w").close()
        super().__exit__(*exception)


@test
def a_domain_whose_functions_are_slow_leaves_a_connection_to_other_domains():
    """40 processes whose function runs for an hour; two steps of eight processes of another domain are done meanwhile."""
    with Database() as db, Pawl(db) as pawl:
        db.rows("""create schema demo; create function demo.slow(input jsonb, key uuid) returns jsonb language sql as $$ select '1'::jsonb from pg_sleep(3600) $$;
                   create function demo.quick(input jsonb, key uuid) returns jsonb language sql as $$ select '1'::jsonb $$""")
        define(pawl, {"domain": "tenant-a", "type": "slow", "steps": [{"name": "s", "sql": "demo.slow", "timeout": "2h"}]})
        define(pawl, {"domain": "tenant-b", "type": "quick", "steps": [{"name": "a", "sql": "demo.quick"}, {"name": "b", "sql": "demo.quick"}]})
        start_many(db, "tenant-a", "slow", 40)
        pawl.serve()
        wait_until(lambda: int(db.value("select count(*) from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()")) >= 3,
                   what="functions of tenant-a run")
        start_many(db, "tenant-b", "quick", 8)
        wait_until(lambda: ended(db, "quick") == 8, what="the processes of tenant-b have ended")


@test
def a_domain_with_large_inputs_leaves_memory_to_other_domains():
    """16 programs with inputs of 3 MB hang; one of another domain with an input of 100 kB runs."""
    with Database() as db, Pawl(db) as pawl, Folder() as folder:
        define(pawl, {"domain": "bx", "type": "large", "steps": [
            {"name": "s", "exec": f"cat > /dev/null; {waiting_program(folder)}", "input": ["{{state.text}}"] * 4, "timeout": "1h"}]})
        define(pawl, {"domain": "by", "type": "small", "steps": [{"name": "s", "exec": "wc -c", "input": "{{state.text}}"}]})
        start_many(db, "bx", "large", 16, "jsonb_build_object('text', repeat('x', 750000))")
        pawl.serve()
        wait_until(lambda: in_progress(db, "large") == 16 and len(lines(f"{folder}/hanging")) >= 8, what="programs with large inputs hang")
        no_more_begin(lambda: len(lines(f"{folder}/hanging")))
        start_many(db, "by", "small", 1, "jsonb_build_object('text', repeat('x', 100000))")
        wait_until(lambda: ended(db, "small") == 1, what="the small one has ended")


class Silent:
    """A server that takes connections and neither reads nor answers."""

    def __init__(self):
        self.socket, self.taken = socket.create_server(("127.0.0.1", 0)), []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                self.taken.append(self.socket.accept()[0])

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        for taken in [*self.taken, self.socket]:
            taken.shutdown(socket.SHUT_RDWR)
            taken.close()

    @property
    def address(self):
        return "127.0.0.1:%d" % self.socket.getsockname()[1]


@test
def a_domain_with_large_requests_leaves_memory_to_other_domains():
    """60 requests of 0.9 MB in parts of 60 kB hang or wait: what counts is their sum, of which three quarters of 32 MiB hold 27."""
    with Database() as db, Silent() as server, Pawl(db, env={"PAWL_STEP_HOSTS": server.address, "PAWL_PROCESS_CONCURRENCY": "60"}) as pawl:
        define(pawl, {"domain": "bx", "type": "large", "steps": [{"name": "s", "timeout": "1h", "http": {
            "method": "POST", "url": f"http://{server.address}/", "body": {"text": "{{state.text}}"},
            "headers": {f"x-{n}": "{{state.text}}" for n in range(14)}}}]})
        define(pawl, {"domain": "by", "type": "small", "steps": [{"name": "s", "exec": "wc -c", "input": "{{state.text}}"}]})
        start_many(db, "bx", "large", 60, "jsonb_build_object('text', repeat('x', 60000))")
        pawl.serve()
        wait_until(lambda: in_progress(db, "large") == 60 and len(server.taken) >= 20, what="large requests hang")
        no_more_begin(lambda: len(server.taken))
        assert len(server.taken) == (24 << 20) // 900000, len(server.taken)
        start_many(db, "by", "small", 1, "jsonb_build_object('text', repeat('x', 100000))")
        wait_until(lambda: ended(db, "small") == 1, what="the small one has ended")


@test
def a_domain_with_many_branches_leaves_threads_to_other_domains():
    """5 lists of 16 programs hang; three branches of another domain wait for each other, so they need three threads."""
    with Database() as db, Pawl(db) as pawl, Folder() as folder:
        meet = f"echo x >> {folder}/met; while [ $(wc -l < {folder}/met) -lt 3 ]; do sleep 0.1; done"
        define(pawl, {"domain": "tx", "type": "wide", "steps": [{"name": "all", "each": "{{state.items}}", "concurrency": 16, "steps": [
            {"name": "s", "exec": waiting_program(folder), "timeout": "1h"}]}]})
        define(pawl, {"domain": "ty", "type": "meets", "steps": [{"name": "all", "parallel": {
            name: [{"name": name, "exec": meet, "timeout": "1h"}] for name in ("a", "b", "c")}}]})
        start_many(db, "tx", "wide", 5, "jsonb_build_object('items', (select jsonb_agg(i) from generate_series(1, 16) i))")
        pawl.serve()
        wait_until(lambda: len(lines(f"{folder}/hanging")) >= 5 + 48, what="programs of the lists hang")
        start_many(db, "ty", "meets", 1)
        wait_until(lambda: ended(db, "meets") == 1, what="the branches have met")


@test
def a_type_whose_programs_hang_leaves_places_to_other_types_of_its_domain():
    """More processes of it than there are places; others of the domain are begun, continue at their time, and are compensated."""
    with Database() as db, Pawl(db) as pawl, Folder() as folder:
        define(pawl, {"domain": "edge", "type": "hang", "steps": [{"name": "s", "exec": waiting_program(folder), "timeout": "1h"}]})
        define(pawl, {"domain": "edge", "type": "due", "steps": [{"name": "z", "sleep": "2s"}, {"name": "s", "set": {"a": 1}}]})
        define(pawl, {"domain": "edge", "type": "undone", "steps": [
            {"name": "s", "exec": "echo 1", "compensate": {"exec": f"echo undone >> {folder}/undone"}}, {"name": "w", "wait": {"response": "never"}}]})
        define(pawl, {"domain": "edge", "type": "quick", "steps": [{"name": "s", "set": {"a": 1}}]})
        pawl.serve()
        undone, due = start(pawl, "undone"), start(pawl, "due")
        wait_status(pawl, undone, "WAITING_FOR_ASYNC")
        start_many(db, "edge", "hang", 100)
        wait_until(lambda: len(lines(f"{folder}/hanging")) >= 15, what="programs hang")
        start_many(db, "edge", "quick", 8)
        wait_until(lambda: ended(db, "quick") == 8, what="the quick ones have ended")
        wait_status(pawl, due, "COMPLETED")
        pawl.run("process", "cancel", undone, "--compensate")
        wait_status(pawl, undone, "COMPENSATED")
        assert lines(f"{folder}/undone") == ["undone"]
        assert len(lines(f"{folder}/hanging")) <= 16
        # What is not claimed is not given back either: no audit grows while they hang.
        assert int(db.value("select count(*) from pawl.event e where e.event = 'RETRY_SCHEDULED'")) <= 28


@test
def a_type_alone_has_as_many_places_as_are_set_and_all_of_its_processes_end():
    with Database() as db, Pawl(db) as pawl, Folder() as folder:
        define(pawl, {"domain": "edge", "type": "hang", "steps": [{"name": "s", "exec": waiting_program(folder), "timeout": "1h"}]})
        start_many(db, "edge", "hang", 60)
        pawl.serve()
        wait_until(lambda: len(lines(f"{folder}/hanging")) == 16, what="16 programs run")
        open(os.path.join(folder, "open"), "w").close()
        wait_until(lambda: ended(db, "hang") == 60, what="all have ended")


@test
def a_program_without_a_timeout_is_stopped_after_ten_minutes():
    """The fault says that its time is over."""
    with Database() as db, Pawl(db) as pawl, Folder() as folder:
        define(pawl, {"domain": "edge", "type": "hang", "on_failure": "fail", "steps": [
            {"name": "s", "exec": waiting_program(folder), "retry": {"attempts": 1}}]})
        pawl.serve(env={"PAWL_FAULT": "process.exec.late:fail"})
        assert "program ran longer than 600000 ms" in wait_status(pawl, start(pawl, "hang"), "FAILED")["error"]


main()
