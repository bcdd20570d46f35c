#!/usr/bin/env python3
"""foreign_code - functions of applications that outlive their deadline, or say more than their pod should hold in memory."""
import os
from contextlib import contextmanager

from bus_commands import events, send, show
from checks import measured, memory_mib, metric, stop_clean
from pawl_test import Database, Pawl, main, test, wait_until
from process_cli import define, start, wait_status as wait_process

SIZE = 3
# A loop that catches what a client can send, and tells the server not to look whether it is gone.
OUTLIVE = """
create function app.outlive () returns void language plpgsql as $$
begin
  perform set_config('client_connection_check_interval', '0', true);
  loop
    begin
      perform pg_sleep(60);
    exception when query_canceled then null;
    end;
  end loop;
end $$;
create function app.outlives (payload jsonb, command_id uuid) returns jsonb language plpgsql security definer as
  'begin perform app.outlive(); return payload; end';
create function app.quick (payload jsonb, command_id uuid) returns jsonb language sql security definer as 'select payload';
create table app.late (depth int);
create function app.outlive_commit () returns trigger language plpgsql as $$
begin
  if new.depth < 1 then
    set constraints all deferred;
    insert into app.late values (new.depth + 1);
  else
    perform app.outlive();
  end if;
  return null;
end $$;
create constraint trigger late after insert on app.late deferrable initially deferred for each row execute function app.outlive_commit();
create function app.commits (payload jsonb, command_id uuid) returns jsonb language sql security definer as
  'insert into app.late values (0) returning payload';
grant insert, select on all tables in schema app to public;
"""


@contextmanager
def handlers(connections=SIZE):
    """A login of handlers that may have as many connections as the pool: those that end what runs in them have pawl's own login."""
    with Database() as db:
        login = f"handler_of_{db.name}"
        db.rows(f"create role {login} login connection limit {connections} in role pawl_handler; create schema app; "
                f"grant usage on schema app to {login}; {OUTLIVE}")
        env = {"PAWL_HANDLER_DATABASE_URL": db.url.replace("postgres@", f"{login}@", 1), "PAWL_POOL_MIN": "1",
               "PAWL_POOL_MAX": str(SIZE), "PAWL_POOL_RESERVED": "0"}
        try:
            with Pawl(db, env=env) as pawl:
                yield db, pawl, login
        finally:
            db.rows(f"drop owned by {login} cascade; drop role {login}")


def running(db, login):
    """The processes of the server that run the function."""
    return set(db.rows(f"select pid from pg_stat_activity where usename = '{login}' and state = 'active' and wait_event = 'PgSleep'"))


def all_ended(db, pids):
    listed = ", ".join(pids)
    wait_until(lambda: db.value(f"select count(*) from pg_stat_activity where pid in ({listed})") == "0", what="the server has ended them")


@test
def steps_that_catch_their_cancel_leave_their_connections_to_others():
    with handlers() as (db, pawl, login):
        define(pawl, {"domain": "edge", "type": "outlives", "on_failure": "troubleshoot", "steps": [
            {"name": "s", "sql": "app.outlives", "timeout": "1s", "retry": {"attempts": 2, "delay": "10ms"}}]})
        define(pawl, {"domain": "edge", "type": "quick", "steps": [{"name": "s", "sql": "app.quick"}]})
        pawl.serve()
        for _ in range(2 * SIZE):
            start(pawl, "outlives")
        seen = set()

        def all_tried():
            seen.update(running(db, login))
            return db.value("select count(*) from pawl.tsq") == str(2 * SIZE)
        wait_until(all_tried, what="each of them was tried twice")
        all_ended(db, seen)
        wait_process(pawl, start(pawl, "quick"), "COMPLETED")
        assert metric(pawl, "pawl_pool_processes_ended_total") == 4 * SIZE
        stop_clean(pawl.server)


# Not security definer, so with the rights of the session: they end every session of their login that has become idle, again and again.
HOSTILE = """
create function app.ends_others (payload jsonb, command_id uuid) returns jsonb language plpgsql as $$
begin
  perform set_config('client_connection_check_interval', '0', true);
  loop
    begin
      perform pg_stat_clear_snapshot();
      perform pg_terminate_backend(pid) from pg_stat_activity where usename = session_user and state = 'idle'
        and state_change < clock_timestamp() - interval '100 ms';
      perform pg_sleep(0.001);
    exception when query_canceled then null;
    end;
  end loop;
end $$;
"""


@test
def functions_cannot_end_what_ends_them():
    """Nor take its connection: it has pawl's own login, to whose sessions they have no right."""
    with handlers() as (db, pawl, login):
        db.rows(HOSTILE)
        commands = [send(pawl, "shop", "hostile") for _ in range(SIZE)]
        worker = pawl.start("work", "shop", "--sql", "app.ends_others", "--timeout", "5s", "-j", str(SIZE))
        hostile = f"select pid from pg_stat_activity where usename = '{login}' and state = 'active'"
        wait_until(lambda: len(db.rows(hostile)) == SIZE, what="all of them run")
        all_ended(db, db.rows(hostile))
        for command in commands:
            wait_until(lambda: "RETRY_SCHEDULED" in events(show(pawl, command)), what="it counts as an attempt")
        stop_clean(worker)


@test
def a_login_without_the_right_leaves_the_end_to_that_of_the_functions():
    """And says so once. Doctor says so before, with the grant that mends it."""
    with handlers(connections=SIZE + 1) as (db, pawl, login):
        plain = f"worker_of_{db.name}"
        db.rows(f"create role {plain} login in role pawl_worker, pawl_monitor, pawl_reader")
        try:
            send(pawl, "shop", "outlives")
            pawl.env["PAWL_DATABASE_URL"] = db.url.replace("postgres@", f"{plain}@", 1)
            found = {row["check"]: row for row in pawl.run("doctor", "--json").json}["handlers' login"]
            assert (found["state"], found["advice"]) == ("warn", f"run as an administrator: grant {login} to {plain}"), found
            worker = pawl.start("work", "shop", "--sql", "app.outlives", "--timeout", "1s")
            wait_until(lambda: running(db, login), what="it runs")
            all_ended(db, running(db, login))
            assert len([line for line in worker.stderr if "may not end sessions" in line]) == 1, worker.stderr
            stop_clean(worker)
            db.rows(found["advice"].split(": ")[1])
            found = {row["check"]: row for row in pawl.run("doctor", "--json").json}["handlers' login"]
            assert found["state"] == "ok", found
            worker = pawl.start("work", "shop", "--sql", "app.outlives", "--timeout", "1s")
            wait_until(lambda: running(db, login), what="it runs again")
            all_ended(db, running(db, login))
            stop_clean(worker)
            assert not [line for line in worker.stderr if "may not end sessions" in line], worker.stderr
        finally:
            db.rows(f"drop owned by {plain}; drop role {plain}")


@test
def a_trigger_at_the_commit_that_catches_everything_is_ended():
    with handlers() as (db, pawl, login):
        command = send(pawl, "shop", "late")
        worker = pawl.start("work", "shop", "--sql", "app.commits", "--timeout", "1s")
        wait_until(lambda: running(db, login), what="the trigger runs at the commit")
        all_ended(db, running(db, login))
        assert db.value("select count(*) from app.late") == "0", "nothing of it was committed"
        wait_until(lambda: "RETRY_SCHEDULED" in events(show(pawl, command)), what="it counts as an attempt")
        stop_clean(worker)


@test
def a_pod_that_stops_ends_the_functions_that_it_cuts_off():
    with handlers() as (db, pawl, login):
        send(pawl, "shop", "outlives")
        pawl.env.update(PAWL_DRAIN_TIMEOUT="1s", PAWL_CLOSE_TIMEOUT="1s")
        with open(os.path.join(pawl.home, "pawl.ini"), "w", encoding="utf-8") as file:
            file.write("[worker shop]\nsql = app.outlives\ntimeout = 1h\n")
        pawl.serve()
        wait_until(lambda: running(db, login), what="it runs")
        pids = running(db, login)
        stop_clean(pawl.server)
        all_ended(db, pids)


# What a function says besides its result: so many MiB, as one text.
SAYS = """
create function app.says (payload jsonb, command_id uuid) returns jsonb language plpgsql security definer as $$
declare
  v_text text := repeat('abcdefg,', (payload ->> 'mib')::int * 131072);
begin
  case payload ->> 'how'
    when 'error' then raise exception '%', v_text using errcode = 'QU065';
    when 'detail' then raise exception 'refused' using errcode = 'QU065', detail = v_text, hint = v_text;
    when 'names' then raise exception 'refused' using errcode = 'QU065', column = v_text, constraint = v_text, datatype = v_text,
      table = v_text, schema = v_text;
    when 'canceled' then raise exception '%', v_text using errcode = 'query_canceled';
    when 'notice' then raise notice '%', v_text;
    when 'wake' then perform set_config('pawl.wake', v_text, true);
    else
      raise info '%', v_text;
      perform pg_sleep((payload ->> 'then')::int);
  end case;
  return '1';
end $$;
"""


def say(pawl, how, mib, then=0):
    """The processes of three steps that say so much at once."""
    define(pawl, {"domain": "edge", "type": how, "on_failure": "troubleshoot", "steps": [
        {"name": "s", "sql": "app.says", "input": {"how": how, "mib": mib, "then": then}, "retry": {"attempts": 1}}]})
    return [start(pawl, how) for _ in range(SIZE)]


@test
def what_a_function_says_besides_its_result_takes_no_memory():
    with handlers() as (db, pawl, _):
        db.rows(SAYS)
        measured(pawl)
        pawl.serve()
        before = memory_mib(pawl.server.pid)
        for how, end in (("error", "FAILED"), ("detail", "FAILED"), ("names", "FAILED"), ("canceled", "WAITING_FOR_TSQ"), ("notice", "COMPLETED"), ("wake", "COMPLETED")):
            for process in say(pawl, how, 32):
                wait_process(pawl, process, end)
            most = memory_mib(pawl.server.pid, "VmHWM")
            assert most < before + 60, f"{how}: {before} MiB, then {most} MiB"
        stop_clean(pawl.server)


@test
def a_notice_that_cannot_be_kept_from_a_pod_leaves_its_memory_with_its_connection():
    """INFO is sent at any client_min_messages. More than 64 MiB are a failed attempt, whose function is ended."""
    with handlers() as (db, pawl, login):
        db.rows(SAYS)
        measured(pawl)
        pawl.serve()
        before = memory_mib(pawl.server.pid)
        for process in say(pawl, "info", 32):
            wait_process(pawl, process, "COMPLETED")
        wait_until(lambda: memory_mib(pawl.server.pid) < before + 60, what="the memory is free again")
        hanging, *_ = say(pawl, "info", 80, then=3600)
        shown = wait_process(pawl, hanging, "WAITING_FOR_TSQ")
        assert "more than 64 MiB before its result" in shown["error"], shown
        wait_until(lambda: not running(db, login), what="the functions are ended")
        wait_until(lambda: memory_mib(pawl.server.pid) < before + 60, what="the memory is free again")
        command = send(pawl, "shop", "info", {"how": "info", "mib": 80, "then": 3600})
        worker = pawl.start("work", "shop", "--sql", "app.says")
        wait_until(lambda: "more than 64 MiB before its result" in (show(pawl, command)["error"] or ""), what="a command says so as well")
        stop_clean(worker)
        stop_clean(pawl.server)


# At the commit, however early constraints are checked: what no function around it could catch.
SAYS_LATE = """
create table app.said (depth int);
create function app.say_late () returns trigger language plpgsql as $$
begin
  if new.depth < 1 then
    set constraints all deferred;
    insert into app.said values (new.depth + 1);
  else
    raise exception '%', repeat('abcdefg,', 200 * 131072);
  end if;
  return null;
end $$;
create constraint trigger late after insert on app.said deferrable initially deferred for each row execute function app.say_late();
create function app.says_late (payload jsonb, command_id uuid) returns jsonb language sql security definer as
  'insert into app.said values (0) returning payload';
grant insert on app.said to public;
"""


@test
def one_message_of_any_length_takes_64_mib():
    """An INFO, and an error at the commit. libpq would hold each whole, and twice."""
    with handlers() as (db, pawl, login):
        db.rows(SAYS + SAYS_LATE)
        measured(pawl)
        for name, step in (("info", {"sql": "app.says", "input": {"how": "info", "mib": 200, "then": 0}}), ("late", {"sql": "app.says_late"})):
            define(pawl, {"domain": "edge", "type": name, "on_failure": "troubleshoot", "steps": [{"name": "s", "retry": {"attempts": 1}, **step}]})
        pawl.serve()
        before = memory_mib(pawl.server.pid)
        shown = wait_process(pawl, start(pawl, "info"), "WAITING_FOR_TSQ")
        assert "more than 64 MiB before its result" in shown["error"], shown
        late = start(pawl, "late")
        wait_until(lambda: "answer to commit lost" in "".join(pawl.server.stderr), what="it is not known whether it has committed")
        wait_until(lambda: not db.rows(f"select pid from pg_stat_activity where usename = '{login}' and state <> 'idle'"), what="it is ended")
        most = memory_mib(pawl.server.pid, "VmHWM")
        assert most < before + 220, f"{before} MiB, then {most} MiB"
        wait_until(lambda: memory_mib(pawl.server.pid) < before + 60, what="the memory is free again")
        assert pawl.run("process", "cancel", late).code == 0 and db.value("select count(*) from app.said") == "0"
        stop_clean(pawl.server)


main()
