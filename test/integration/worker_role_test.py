#!/usr/bin/env python3
"""worker_role - workers in the daemon: sections [worker NAME] of the settings file, run by pawl serve."""
import json
import os
import signal
from contextlib import contextmanager

from bus_commands import events, send, show, wait_status, work
from checks import is_clean, metric, refused, stop_clean
from pawl_test import Database, Pawl, main, psql, test, wait_until

DOUBLE = """create schema app;
create function app.double (payload jsonb, command_id uuid) returns jsonb language sql as $$
  select to_jsonb((payload ->> 'n')::int * 2)
$$"""


def settings(pawl, text):
    """The settings file that the pod finds by itself."""
    with open(os.path.join(pawl.home, "pawl.ini"), "w", encoding="utf-8") as file:
        file.write(text)


def serve_workers(pawl):
    """A pod that only works: it has no address."""
    process = pawl.start("serve", "--role", "worker")
    wait_until(lambda: process.said(r"^pawl is ready$") or not process.is_running(), what="ready")
    assert process.is_running(), process.stderr
    return process


def gate(pawl, name):
    """A handler that says when it began and ends when it may; the two files."""
    began, go = (os.path.join(pawl.home, f"{name}-{part}") for part in ("began", "go"))
    script = os.path.join(pawl.home, f"{name}.sh")
    with open(script, "w", encoding="utf-8") as file:
        file.write(f"#!/bin/sh\necho $PAWL_COMMAND_ID >> {began}\nwhile [ ! -e {go} ]; do sleep 0.05; done\necho 1\n")
    os.chmod(script, 0o755)
    return script, began, go


def lines(path):
    return open(path, encoding="utf-8").read().split() if os.path.exists(path) else []


@test
def each_section_is_a_worker_of_its_domain():
    with Database() as db, Pawl(db) as pawl:
        db.rows(DOUBLE)
        settings(pawl, "[worker shop]\nexec = cat\nconcurrency = 2\n[worker maths]\nsql = app.double\n"
                       "[worker some]\ndomain = mixed\ntypes = this, that\nexec = echo 3\n")
        pawl.serve()
        shop = [send(pawl, "shop", "charge", {"n": n}) for n in range(5)]
        doubled, this, other = send(pawl, "maths", "any", {"n": 21}), send(pawl, "mixed", "that"), send(pawl, "mixed", "other")
        for number, command in enumerate(shop):
            assert wait_status(pawl, command, "COMPLETED")["result"] == {"n": number}
        assert wait_status(pawl, doubled, "COMPLETED")["result"] == 42
        assert wait_status(pawl, this, "COMPLETED")["result"] == 3
        assert show(pawl, other)["status"] == "PENDING", "no worker takes this type"
        for domain, count in (("shop", 5), ("maths", 1), ("mixed", 1)):
            label = f'domain="{domain}"'
            wait_until(lambda: metric(pawl, "pawl_worker_commands_total", label + ',outcome="completed"') == count,
                       what=f"{domain} counts its commands")
            assert metric(pawl, "pawl_worker_handler_seconds_count", label) == count
            won = metric(pawl, "pawl_worker_claims_total", label + ',outcome="won"')
            assert 1 <= won <= count <= won + metric(pawl, "pawl_worker_claim_seconds_count", label)
            assert metric(pawl, "pawl_worker_handlers_running", label) == 0
        actors = {event["actor"] for command in (shop[0], doubled) for event in show(pawl, command)["audit"]
                  if event["event"] == "RECEIVED"}
        assert len(actors) == 2 and all(f":{pawl.server.pid}:" in actor for actor in actors), actors
        assert pawl.server.said('"workers": ?3|workers=3'), pawl.server.stderr
        stop_clean(pawl.server)


@test
def slow_functions_leave_requests_and_tasks_their_connections():
    domains = ("one", "two", "three")
    with Database() as db, Pawl(db) as pawl:
        db.rows("create schema app; create table app.gate (is_open boolean); create function app.wait (payload jsonb, command_id uuid) "
                "returns jsonb language plpgsql as $$ begin while not exists (select from app.gate) loop perform pg_sleep(0.05); "
                "end loop; return payload; end $$")
        settings(pawl, "".join(f"[worker {domain}]\nsql = app.wait\n" for domain in domains))
        pawl.serve()
        commands = [send(pawl, domain, "wait") for domain in domains for _ in range(8)]
        wait_until(lambda: db.value("select count(*) from pg_stat_activity where state = 'active' and query like '%handler_call%' "
                                    "and pid <> pg_backend_pid()") == "24", what="all handlers run")
        for _ in range(5):
            assert show(pawl, send(pawl, "other", "quick"))["status"] == "PENDING"
        assert pawl.http("GET", "/health/ready").status == 200
        db.rows("insert into app.gate values (true)")
        for command in commands:
            wait_status(pawl, command, "COMPLETED")
        stop_clean(pawl.server)


@test
def a_pod_without_the_role_leaves_its_workers_alone():
    with Database() as db, Pawl(db) as pawl:
        settings(pawl, "[worker shop]\nexec = true\n")
        pawl.serve("--role", "api,monitor")
        command = send(pawl, "shop", "charge")
        assert pawl.run("work", "shop", "--noop", "--drain", "--json").json["completed"] == 1
        assert show(pawl, command)["status"] == "COMPLETED" and metric(pawl, "pawl_commands_claimed_total") == 0
        stop_clean(pawl.server)


@test
def a_stop_waits_for_handlers_and_releases_what_was_not_begun():
    with Database() as db, Pawl(db) as pawl:
        script, began, go = gate(pawl, "slow")
        settings(pawl, f"[worker shop]\nexec = {script}\nconcurrency = 1\n")
        first, second = send(pawl, "shop", "charge"), send(pawl, "shop", "charge")
        pod = serve_workers(pawl)
        assert not any("token" in line for line in pod.stdout), "it serves no HTTP"
        wait_until(lambda: lines(began) == [first], what="the handler runs")
        assert db.value("select count(*) from pawl.lease") == "1", "no more is claimed than can begin"
        pod.send(signal.SIGTERM)
        assert pod.is_running()
        open(go, "w", encoding="utf-8").close()
        assert pod.wait() == 0 and is_clean(pod), pod.stderr
        done, left = show(pawl, first), show(pawl, second)
        assert (done["status"], done["attempts"]) == ("COMPLETED", 1), done
        assert (left["status"], left["attempts"]) == ("PENDING", 0) and lines(began) == [first], left


@test
def a_handler_that_outlasts_the_stop_is_ended_and_its_command_tried_again():
    with Database() as db, Pawl(db, env={"PAWL_DRAIN_TIMEOUT": "100ms"}) as pawl:
        script, began, _ = gate(pawl, "endless")
        settings(pawl, f"[worker shop]\nexec = {script}\n")
        command = send(pawl, "shop", "charge")
        pod = serve_workers(pawl)
        wait_until(lambda: lines(began) == [command], what="the handler runs")
        assert pod.stop() == 0 and is_clean(pod), pod.stderr
        found = show(pawl, command)
        assert found["status"] == "PENDING" and events(found)[-1] == "RETRY_SCHEDULED", found
        settings(pawl, "[worker shop]\nexec = true\n")
        pod = serve_workers(pawl)
        wait_status(pawl, command, "COMPLETED")
        assert pod.stop() == 0 and is_clean(pod), pod.stderr


@test
def a_killed_pod_loses_no_command_and_ends_none_twice():
    with Database() as db, Pawl(db) as pawl:
        script, began, go = gate(pawl, "killed")
        settings(pawl, f"[worker shop]\nexec = {script}\nconcurrency = 4\n")
        sent = [send(pawl, "shop", "charge") for _ in range(4)]
        victim = serve_workers(pawl)
        wait_until(lambda: len(lines(began)) == 4, what="all of them run")
        victim.send(signal.SIGKILL)
        victim.wait()
        db.rows("update pawl.lease set until = now()")  # as if its time were over
        other = serve_workers(pawl)
        wait_until(lambda: len(lines(began)) == 8, what="all of them run again")
        open(go, "w", encoding="utf-8").close()
        for command in sent:
            found = wait_status(pawl, command, "COMPLETED")
            assert found["attempts"] == 2 and events(found).count("COMPLETED") == 1, found
        assert sorted(lines(began)) == sorted(sent * 2)
        assert other.stop() == 0 and is_clean(other), other.stderr


@test
def a_worker_that_failed_is_started_again_and_the_others_go_on():
    rename = "do $$ declare f regprocedure; begin for f in select oid from pg_proc where pronamespace = 'pawl'::regnamespace " \
             "and proname = '{0}' loop execute format('alter function %s rename to {1}', f); end loop; end $$"
    with Database() as db, Pawl(db) as pawl:
        settings(pawl, "[worker shop]\nexec = true\n")
        pawl.serve()
        wait_status(pawl, send(pawl, "shop", "charge"), "COMPLETED")
        db.rows(rename.format("claim", "claim_gone"))
        db.rows("select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() "
                "and pid <> pg_backend_pid()")  # what they prepared would still find it
        wait_until(lambda: pawl.server.said("a worker has failed"), what="it is said")
        assert pawl.server.said('worker of domain ."shop')
        assert pawl.http("GET", "/health/live").status == 200
        db.rows(rename.format("claim_gone", "claim"))
        wait_status(pawl, send(pawl, "shop", "charge"), "COMPLETED")
        stop_clean(pawl.server)


@test
def a_worker_that_cannot_work_stops_the_start():
    with Database() as db, Pawl(db) as pawl:
        for text, code, words in [
                ("[worker shop]\nexec = ./nowhere\n", 2, ["[worker shop]", "line 1", "./nowhere"]),
                ("[worker shop]\nsql = app.none\n", 1, ["[worker shop]", "app.none"]),
                ("[worker shop]\n", 2, ["[worker shop]", "line 1", "exec", "sql"]),
                ("[worker bad name!]\nexec = cat\n", 2, ["[worker bad name!]", "line 1", "domain must be"]),
                ("[worker shop]\nexec = cat\ntypes = " + ",".join(f"t{n}" for n in range(101)) + "\n", 2, ["[worker shop]", "at most 100"]),
                ("[worker shop]\nexec = true\nsql = a.b\n", 2, ["[worker shop]", "exactly one"]),
                ("[worker shop]\nexec = true\nconcurency = 3\n", 2, ["line 3", "concurrency"]),
                ("[worker shop]\nexec = true\nconcurrency = 0\n", 2, ["line 3", "1 to 1000"]),
                ("[worker shop]\nexec = true\nlease = 5\n", 2, ["line 3", "duration"]),
                ("\n[workers shop]\n", 2, ["line 2", "[worker NAME]"])]:
            settings(pawl, text)
            refused(pawl, "serve", "--listen", "127.0.0.1:0", code=code, words=words)
        assert db.value("select count(*) from pawl.domain") == "0"


@test
def a_handler_of_the_applications_login_runs_as_that_login():
    with Pawl() as pawl:
        assert pawl.run("db", "start").code == 0 and pawl.run("migrate").code == 0
        url = pawl.run("db", "url").stdout.strip()
        psql(url, "create table app.who (name text); create function app.note (payload jsonb, command_id uuid) returns jsonb "
                  "language sql as $$ insert into app.who values (current_user) returning '{}'::jsonb $$")
        sent = send(pawl, "shop", "charge")
        words = ["app.note", '"app"', '"handler"', "security definer"]
        refused(pawl, "work", "shop", "--sql", "app.note", "--drain", code=1, words=words)
        settings(pawl, "[worker shop]\nsql = app.note\n")
        refused(pawl, "serve", "--listen", "127.0.0.1:0", code=1, words=["[worker shop]", *words])
        psql(url, "alter function app.note(jsonb, uuid) security definer")
        work(pawl, "shop", "--sql", "app.note")
        assert show(pawl, sent)["status"] == "COMPLETED" and psql(url, "select * from app.who") == ["app"]
        assert pawl.run("db", "stop").code == 0


# What no function of an application may do, whenever it runs. app.try() runs each and notes whose rights it had.
FORBIDDEN = ["alter role app superuser", "alter role handler superuser", "set session authorization pawl", "set session authorization pawl_owner",
             "set role pawl", "set role pawl_owner", "set role pawl_admin", "grant pawl_admin to app", "copy (select 1) to program 'true'",
             "create table pawl.mine ()", "select token from pawl.lease", "update wallet.state set balance = 1",
             "truncate pawl.kept_audit"]
TRAPS = """create table app.proof (place text, statement text, who text, failed boolean);
grant insert on app.proof to public;
create function app.try (place text) returns void language plpgsql as $$
declare
  v_statement text;
begin
  foreach v_statement in array array[STATEMENTS] loop
    begin
      execute v_statement;
      insert into app.proof values (place, v_statement, current_user, false);
    exception when others then
      insert into app.proof values (place, v_statement, current_user, true);
    end;
  end loop;
end $$;
create table app.trap (id serial, depth int not null);
grant insert on app.trap to public;
grant usage on sequence app.trap_id_seq to public;
create function app.sprung () returns trigger language plpgsql as $$
begin
  perform app.try('trigger ' || new.depth);
  if new.depth < 2 then
    set constraints all deferred; -- so that the next one fires after everything pawl does in the transaction
    insert into app.trap (depth) values (new.depth + 1);
  end if;
  return null;
end $$;
create constraint trigger sprung after insert on app.trap deferrable initially deferred for each row execute function app.sprung();
create function app.differs (a text, b text) returns boolean language plpgsql as $$
begin
  perform app.try('operator');
  return false;
end $$;
create operator app.<> (leftarg = text, rightarg = text, function = app.differs);
create function app.plain (payload jsonb, command_id uuid) returns jsonb language plpgsql security definer as $$
begin
  perform app.try('handler');
  return '1';
end $$;
create function app.deferred (payload jsonb, command_id uuid) returns jsonb language sql security definer as $$
  insert into app.trap (depth) values (0) returning '1'::jsonb
$$;
create function app.path (payload jsonb, command_id uuid) returns jsonb language plpgsql security definer as $$
begin
  set search_path = app, pg_catalog;
  return '1';
end $$;
create function app.temp (payload jsonb, command_id uuid) returns jsonb language plpgsql security definer as $$
begin
  create temp table ready as select 1; -- hides tables of pawl where a search_path is not fixed
  create function pg_temp.texteq (a text, b text) returns boolean language sql as 'select app.try(''temp function'') is null';
  set search_path = pg_temp, app, pg_catalog;
  return '1';
end $$;
create function app.role (payload jsonb, command_id uuid) returns jsonb language plpgsql security definer as $$
begin
  perform set_config('role', 'pawl_app', false), set_config('statement_timeout', '1h', true);
  return '1';
exception when others then
  perform set_config('session_authorization', 'app', false);
  return '1';
end $$;
""".replace("STATEMENTS", ", ".join("'" + text.replace("'", "''") + "'" for text in FORBIDDEN))


@test
def what_a_function_leaves_behind_has_no_rights():
    with Pawl() as pawl:
        assert pawl.run("db", "start").code == 0 and pawl.run("migrate").code == 0
        url, admin = (pawl.run("db", "url", *flag).stdout.strip() for flag in ([], ["--admin"]))
        psql(url, TRAPS)
        for name in ("plain", "deferred", "path", "deferred", "temp", "deferred", "role", "plain"):
            send(pawl, name, "trap")
            pawl.run("work", name, "--sql", f"app.{name}", "--drain", "-j", "1")
        psql(url, "truncate app.trap")
        send(pawl, "none", "trap")
        refused = pawl.run("work", "none", "--sql", "app.plain", "--drain", env={"PAWL_HANDLER_DATABASE_URL": url.replace("app@", "stranger@", 1)})
        assert refused.code != 0 and "stranger" in refused.stderr, "a login of the handlers that is set counts for the private server, too"
        source = os.path.join(pawl.home, "trap.json")
        with open(source, "w", encoding="utf-8") as file:
            json.dump({"type": "trap", "domain": "trap", "steps": [{"name": name, "sql": f"app.{name}"} for name in ("path", "deferred", "plain")]}, file)
        assert pawl.run("process", "define", source).code == 0
        pawl.serve()
        started = pawl.run("process", "start", "trap", "--domain", "trap").stdout.split()[0]
        wait_status(pawl, started, "COMPLETED")
        assert psql(url, "select count(*) from app.trap") == ["3"], "the step's transaction committed"
        done = psql(url, "select place, who, statement from app.proof where not failed")
        assert done == [], done
        ran = psql(url, "select distinct place, who from app.proof order by 1, 2")
        assert ran == ["handler|app", "trigger 0|handler", "trigger 1|handler", "trigger 2|handler"], ran
        assert psql(admin, "select rolname from pg_roles where rolsuper or rolcreaterole or rolreplication order by 1") == ["pawl"]
        assert psql(admin, "select distinct usename from pg_stat_activity where application_name ~ '^pawl' and backend_type = 'client backend' "
                           "order by 1") == ["handler", "pawl_owner"], "nobody of pawl's is a superuser"


@contextmanager
def handlers_login(db, sql):
    """The login of handlers of a server that is not pawl's own, with schema app; the environment that names it."""
    login = f"handler_of_{db.name}"
    db.rows(f"create role {login} login in role pawl_handler; create schema app; grant usage on schema app to {login}; {sql}")
    try:
        yield login, {"PAWL_HANDLER_DATABASE_URL": db.url.replace("postgres@", f"{login}@", 1)}
    finally:
        db.rows(f"drop owned by {login} cascade; drop role {login}")


@test
def handlers_write_whatever_the_defaults_of_their_login_are():
    with Database() as db, handlers_login(db, """create table app.done (id uuid); create function app.f (payload jsonb, command_id uuid)
            returns jsonb language sql security definer as 'insert into app.done values (command_id) returning payload'""") as (login, env):
        db.rows(f"alter role {login} set default_transaction_read_only = on; alter role {login} set default_transaction_isolation = serializable")
        with Pawl(db, env=env) as pawl:
            command = send(pawl, "shop", "f", {"n": 1})
            assert work(pawl, "shop", "--sql", "app.f")["completed"] == 1
            assert show(pawl, command)["result"] == {"n": 1} and db.rows("select id from app.done") == [command]


# A trigger that fires at the commit, however early constraints are checked, and then waits until app.gate has a row.
LATE = """
create table app.gate (is_open boolean);
create table app.late (depth int);
create function app.wait () returns trigger language plpgsql as $$
begin
  if new.depth < 1 then
    set constraints all deferred;
    insert into app.late values (new.depth + 1);
    return null;
  end if;
  while not exists (select from app.gate) loop
    perform pg_sleep(0.05);
  end loop;
  return null;
end $$;
create constraint trigger wait after insert on app.late deferrable initially deferred for each row execute function app.wait();
create function app.f (payload jsonb, command_id uuid) returns jsonb language sql security definer as 'insert into app.late values (0) returning payload';
grant insert, select on all tables in schema app to public;
"""


@test
def a_trigger_at_the_commit_does_not_outlast_its_handler():
    with Database() as db, handlers_login(db, LATE) as (login, env), Pawl(db, env=env) as pawl:
        command = send(pawl, "shop", "f")
        worker = pawl.start("work", "shop", "--sql", "app.f", "--timeout", "1s")
        begun = f"select count(*) from pg_stat_activity where usename = '{login}' and query like 'commit%' and state = 'active'"
        wait_until(lambda: db.value(begun) == "1", what="the trigger waits at the commit")
        pid = db.value(f"select pid from pg_stat_activity where usename = '{login}' and query like 'commit%' and state = 'active'")
        wait_until(lambda: db.value(f"select count(*) from pg_stat_activity where pid = {pid}") == "0", what="the server has ended it")
        wait_until(lambda: "RETRY_SCHEDULED" in events(show(pawl, command)), what="it counts as an attempt")
        assert db.value("select count(*) from app.late") == "0", "nothing of it was committed"
        stop_clean(worker)


@test
def a_function_that_must_not_be_called_costs_its_command_no_attempt():
    """A refusal by the function itself, with the same SQLSTATE, is an attempt."""
    with Database() as db, handlers_login(db, """create function app.f (payload jsonb, command_id uuid) returns jsonb language plpgsql
            security definer as $$ begin if payload ? 'deny' then raise insufficient_privilege; end if; return payload; end $$""") as (login, env):
        owner = f"owner_of_{db.name}"
        db.rows(f"create role {owner}; alter function app.f owner to {owner}")
        with Pawl(db, env=env) as pawl:
            worker = pawl.start("work", "shop", "--sql", "app.f")
            wait_status(pawl, send(pawl, "shop", "f"), "COMPLETED")
            db.rows(f"grant pawl_monitor to {login}")
            command = send(pawl, "shop", "f")
            wait_until(lambda: worker.said("cannot begin a command: pausing.*PAWL_HANDLER_DATABASE_URL"), what="the worker says why")
            db.rows(f"revoke pawl_monitor from {login}")
            done = wait_status(pawl, command, "COMPLETED")
            assert done["attempts"] == 1 and "RETRY_SCHEDULED" in events(done), done
            denied = send(pawl, "shop", "f", {"deny": True})
            wait_until(lambda: show(pawl, denied)["attempts"] == 1 and show(pawl, denied)["error"], what="a failed attempt")
            stop_clean(worker)
        db.rows(f"drop owned by {owner} cascade; drop role {owner}")


main()
