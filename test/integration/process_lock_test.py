#!/usr/bin/env python3
"""process_lock - processes that an application's open transaction has locked hold no places of a pod. The pods run with default settings."""
import os
import re
import tempfile
import threading
import time

from pawl_test import Database, Pawl, main, test, wait_until
from process_cli import define, lines
from servers import Session, backends

LOCKED = 100
FREE = 50


def start_many(db, type_, count):
    db.rows(f"select pawl.start('{type_}', jsonb_build_object('n', n), p_domain => 'lock') from generate_series(1, {count}) n")


def ended(db, type_, status="COMPLETED"):
    return int(db.value(f"select count(*) from pawl.outcome o join pawl.command c using (id) where c.type = '{type_}' and o.status = '{status}'"))


def free_ones_end(pawl, db):
    """More of them than there are places, while the lock is held."""
    define(pawl, {"domain": "lock", "type": "free", "steps": [{"name": "s", "set": {"a": 1}}, {"name": "p", "exec": "echo 1", "save": {"b": 2}}]})
    start_many(db, "free", FREE)
    wait_until(lambda: ended(db, "free") == FREE, what="the free ones have ended")


def runs_are(seen, count):
    """Each process has run its step once."""
    assert sorted(lines(seen), key=int) == [str(n) for n in range(1, count + 1)], lines(seen)


def no_attempt_counts(db, type_):
    assert db.value(f"select max(o.attempts) from pawl.outcome o join pawl.command c using (id) where c.type = '{type_}'") == "1"


@test
def locked_processes_leave_their_places_to_others():
    """Locked before they are begun, by a response that is not committed: each does its step, cannot save the result, and is tried later."""
    with Database() as db, Pawl(db) as pawl, Session(db.url) as other, tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        seen = os.path.join(folder, "seen")
        define(pawl, {"domain": "lock", "type": "held", "steps": [
            {"name": "first", "exec": f"n=$(cat); echo $n >> {seen}; echo $n", "input": "{{state.n}}", "retry": {"attempts": 1}, "save": {"v": "{{result}}"}},
            {"name": "w", "wait": {"response": "x"}}, {"name": "last", "set": {"done": True}}]})
        start_many(db, "held", LOCKED)
        other.do("begin")
        other.do("select pawl.signal(c.command_id, 'x') from pawl.command c where c.type = 'held'")
        pawl.serve()
        free_ones_end(pawl, db)
        wait_until(lambda: len(lines(seen)) == LOCKED, what="the locked ones have done their step")
        assert ended(db, "held") == 0
        other.do("commit")
        wait_until(lambda: ended(db, "held") == LOCKED, what="the locked ones have ended")
        runs_are(seen, LOCKED)
        no_attempt_counts(db, "held")
        assert db.value("select count(*) from pawl.process p join pawl.command c using (id)"
                        " where c.type = 'held' and (p.state -> 'v') = (p.state -> 'n') and p.state ? 'done'") == str(LOCKED)


@test
def processes_that_are_locked_while_a_step_runs_leave_their_places():
    """All places run a program when the application locks their processes."""
    with Database() as db, Pawl(db) as pawl, Session(db.url) as other, tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        seen = os.path.join(folder, "seen")
        define(pawl, {"domain": "lock", "type": "held", "steps": [
            {"name": "first", "exec": f"echo $(cat) >> {seen}; while ! test -e {folder}/go; do sleep 0.1; done; echo 7",
             "input": "{{state.n}}", "retry": {"attempts": 1}, "save": {"v": "{{result}}"}}]})
        pawl.serve()
        start_many(db, "held", LOCKED)
        wait_until(lambda: len(lines(seen)) == 16, what="all places are taken")
        other.do("begin")
        other.do("select pawl.signal(c.command_id, 'x') from pawl.command c where c.type = 'held'")
        with open(f"{folder}/go", "w", encoding="utf-8"):
            pass
        free_ones_end(pawl, db)
        assert ended(db, "held") == 0
        other.do("rollback")
        wait_until(lambda: ended(db, "held") == LOCKED, what="the locked ones have ended")
        runs_are(seen, LOCKED)
        no_attempt_counts(db, "held")


def all_tried(pawl, db):
    assert backends(db, "wait_event_type = 'Lock' and query ~ 'process_bind'") == 0
    found = re.search(r'^pawl_process_activations_total\{domain="lock",outcome="interrupted"\} (\S+)$', pawl.http("GET", "/metrics").body.decode(), re.M)
    return found and float(found[1]) >= LOCKED


@test
def locked_processes_whose_type_is_defined_now_leave_their_places_and_connections():
    """Started before their type is defined: a worker gives each its definition first, and does not wait for the lock with a connection."""
    with Database() as db, Pawl(db) as pawl, Session(db.url) as other:
        start_many(db, "held", LOCKED)
        other.do("begin")
        other.do("select pawl.signal(c.command_id, 'x') from pawl.command c where c.type = 'held'")
        pawl.serve()
        define(pawl, {"domain": "lock", "type": "held", "steps": [{"name": "w", "wait": {"response": "x"}}, {"name": "last", "set": {"done": True}}]})
        wait_until(lambda: all_tried(pawl, db), what="all of them were tried")
        free_ones_end(pawl, db)
        assert ended(db, "held") == 0
        other.do("commit")
        wait_until(lambda: ended(db, "held") == LOCKED, what="the locked ones have ended")
        no_attempt_counts(db, "held")


def cancel_open(end):
    """An operator cancels a hundred processes, of which 16 run, and leaves the transaction open."""
    with Database() as db, Pawl(db) as pawl, Session(db.url) as other, tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        seen = os.path.join(folder, "seen")
        define(pawl, {"domain": "lock", "type": "held", "steps": [
            {"name": "first", "exec": f"echo $(cat) >> {seen}; while ! test -e {folder}/go; do sleep 0.1; done; echo 7",
             "input": "{{state.n}}", "retry": {"attempts": 1}, "save": {"v": "{{result}}"}},
            {"name": "last", "exec": "echo 1"}]})
        pawl.serve()
        start_many(db, "held", LOCKED)
        wait_until(lambda: len(lines(seen)) == 16, what="all places are taken")
        other.do("begin")
        other.do("select from pawl.cancel(array(select c.command_id from pawl.command c where c.type = 'held'))")
        with open(f"{folder}/go", "w", encoding="utf-8"):
            pass
        free_ones_end(pawl, db)
        assert ended(db, "held") == 0 and len(lines(seen)) == 16
        other.do(end)
        status = "CANCELED" if end == "commit" else "COMPLETED"
        wait_until(lambda: ended(db, "held", status) == LOCKED, what="the locked ones have ended")
        if end == "commit":
            assert len(lines(seen)) == 16, lines(seen)
        else:
            runs_are(seen, LOCKED)


@test
def a_cancellation_that_is_rolled_back_has_held_no_places():
    cancel_open("rollback")


@test
def a_cancellation_that_is_not_committed_yet_holds_no_places():
    cancel_open("commit")


# Signals until the process has ended, one after the other, each committed by itself.
STREAM = """do $$ begin
  for i in 1..4000 loop
    exit when exists (select from pawl.outcome o where o.id = {number});
    perform pawl.signal('{process}', 'noise', '{{}}', '{name}' || i);
    commit;
  end loop;
end $$"""


@test
def a_process_that_is_signaled_all_the_time_makes_progress():
    """Its steps patch a state of 900 kB that is another one whenever they have read it."""
    with Database() as db, Pawl(db) as pawl:
        define(pawl, {"domain": "lock", "type": "busy", "steps": [
            {"name": "w", "wait": {"response": "go"}}, {"name": "a", "set": {"a": "{{state.n}}"}}, {"name": "b", "exec": "echo 2", "save": {"b": "{{state.a}}"}},
            {"name": "z", "sleep": "100ms"}, {"name": "c", "set": {"c": "{{state.b}}"}}]})
        process = db.value("select pawl.start('busy', jsonb_build_object('n', 1, 'text', repeat('x', 900000)), p_domain => 'lock')")
        number = db.value(f"select pawl.process_number('{process}')")
        pawl.serve()
        wait_until(lambda: db.value(f"select wait from pawl.process where id = {number}") == "WAITING_FOR_ASYNC", what="it waits")
        senders = [threading.Thread(target=db.rows, args=[STREAM.format(number=number, process=process, name=name)]) for name in "xy"]
        for sender in senders:
            sender.start()
        wait_until(lambda: int(db.value(f"select response_count from pawl.process where id = {number}")) > 10, what="signals come")
        db.rows(f"select pawl.signal('{process}', 'go')")
        try:
            wait_until(lambda: ended(db, "busy") == 1, what="it has ended")
        finally:
            db.rows(f"select from pawl.cancel(array['{process}'::uuid]) where not exists (select from pawl.outcome)")
            for sender in senders:
                sender.join()
        assert [db.value(f"select state ->> '{key}' from pawl.process where id = {number}") for key in "abc"] == ["1", "1", "1"]
        text = pawl.http("GET", "/metrics").body.decode()
        assert re.search(r'pawl_process_busy_total\{domain="lock"\} [1-9]', text), text


@test
def signals_over_http_that_meet_each_other_wait_for_their_turn():
    """Two clients, one process with a state of 900 kB, which each signal rewrites: each is stored at once or after a wait."""
    with Database() as db, Pawl(db) as pawl:
        process = db.value("select pawl.start('x', jsonb_build_object('text', repeat('x', 900000)), p_domain => 'lock')")
        pawl.serve()
        seen = []

        def client():
            for _ in range(30):
                seen.append(pawl.http("POST", f"/v1/processes/{process}/signals/noise", {}).status)

        clients = [threading.Thread(target=client) for _ in range(2)]
        for each in clients:
            each.start()
        for each in clients:
            each.join()
        assert seen == [201] * 60, seen
        text = pawl.http("GET", "/metrics").body.decode()
        assert 'pawl_process_signal_seconds_count{domain="lock"} 60' in text, text


@test
def a_process_that_stays_locked_is_tried_less_and_less_often_and_leaves_two_events_a_minute():
    with Database() as db, Pawl(db) as pawl, Session(db.url) as other:
        define(pawl, {"domain": "lock", "type": "held", "steps": [{"name": "s", "set": {"a": 1}}]})
        start_many(db, "held", 1)
        other.do("begin")
        other.do("select pawl.signal(c.command_id, 'x') from pawl.command c where c.type = 'held'")
        began = time.monotonic()
        pawl.serve()

        def tries():
            found = re.search(r'pawl_process_activations_total\{domain="lock",outcome="interrupted"\} (\d+)', pawl.http("GET", "/metrics").body.decode())
            return int(found[1]) if found else 0

        wait_until(lambda: tries() >= 4, what="it is tried four times")
        assert time.monotonic() - began > 1 + 2 + 4
        events = int(db.value("select count(*) from pawl.event e where e.event in ('RECEIVED', 'RETRY_SCHEDULED')"))
        assert events <= 2 * (1 + int((time.monotonic() - began) / 60)), events
        other.do("commit")
        wait_until(lambda: ended(db, "held") == 1, what="it has ended")


main()
