#!/usr/bin/env python3
"""worker_role - workers in the daemon: sections [worker NAME] of the settings file, run by pawl serve."""
import os
import signal

from bus_helpers import events, send, show, wait_status, work
from pawl_test import Database, Pawl, main, psql, test, wait_until
from helpers import is_clean, metric, refused, stop_clean

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
        words = ["app.note", '"app"', '"pawl"', "security definer"]
        refused(pawl, "work", "shop", "--sql", "app.note", "--drain", code=1, words=words)
        settings(pawl, "[worker shop]\nsql = app.note\n")
        refused(pawl, "serve", "--listen", "127.0.0.1:0", code=1, words=["[worker shop]", *words])
        psql(url, "alter function app.note(jsonb, uuid) security definer")
        work(pawl, "shop", "--sql", "app.note")
        assert show(pawl, sent)["status"] == "COMPLETED" and psql(url, "select * from app.who") == ["app"]
        assert pawl.run("db", "stop").code == 0


main()
