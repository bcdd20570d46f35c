#!/usr/bin/env python3
"""resume_start - a process that a response, an outcome or the end of a child resumes starts on a free handler of the pod that recorded it, without a claim, and
neither a crash nor a lost answer loses or doubles it."""
import os
import re
import signal

from checks import metric, stop_clean
from pawl_test import Database, Pawl, Proxy, main, test, wait_until
from process_cli import define
from servers import Cluster, in_threads

STARTED = "pawl_commands_started_total"
SCHEMA = """create schema app; create table app.effect (key uuid, process uuid, n int generated always as identity);
create function app.note (input jsonb, key uuid) returns jsonb language sql security definer set search_path = app, pg_temp as $$
  insert into app.effect (key, process) values (key, (input ->> 'id')::uuid); select '{}'::jsonb $$"""
NOTE = {"name": "note", "sql": "app.note", "input": {"id": "{{process.id}}"}}
ASK = {"domain": "edge", "type": "ask", "steps": [{"name": "approval", "wait": {"response": "go"}}, NOTE]}


def begin(pawl, type_="ask", **more):
    """The id of a process started over HTTP."""
    answer = pawl.http("POST", "/v1/processes", {"domain": "edge", "type": type_, **more})
    assert answer.status == 201, answer.body
    return answer.json["process_id"]


def status(pawl, id_):
    return pawl.http("GET", f"/v1/processes/{id_}").json["status"]


def wait_status(pawl, id_, word):
    wait_until(lambda: status(pawl, id_) == word, what=f"{id_} is {word}")


def waiting(pawl, **more):
    id_ = begin(pawl, **more)
    wait_status(pawl, id_, "WAITING_FOR_ASYNC")
    return id_


def respond(pawl, id_):
    answer = pawl.http("POST", f"/v1/processes/{id_}/signals/go", {}, headers={"Idempotency-Key": id_})
    assert answer.status == 201, answer.body
    return answer.headers["pawl-status"]


def respond_started(pawl):
    """Processes that waited and got a response, until one has started by it, the last one. The worker may just be asking for work at first."""
    ids = []

    def has_started():
        ids.append(waiting(pawl))
        before = metric(pawl, STARTED)
        respond(pawl, ids[-1])
        wait_status(pawl, ids[-1], "COMPLETED")
        return metric(pawl, STARTED) > before

    wait_until(has_started, what="one starts by its response")
    return ids


def pod(pawl, db, definition=None, env=None, ini=""):
    db.rows(SCHEMA)
    with open(os.path.join(pawl.home, "pawl.ini"), "w", encoding="utf-8") as file:
        file.write(ini)
    pawl.serve(env=env)
    define(pawl, definition or ASK)


def each_once(db, ids):
    """Each of these processes has had its effect once, in its first attempt."""
    assert sorted(db.rows("select process from app.effect")) == sorted(ids)
    assert db.rows("select o.status, o.attempts from pawl.outcome o join pawl.process p using (id) group by 1, 2") == ["COMPLETED|1"]


@test
def a_response_starts_its_process_without_a_claim():
    with Database() as db, Pawl(db) as pawl:
        pod(pawl, db)
        ids = respond_started(pawl)
        more = [waiting(pawl) for _ in range(30)]
        before, sent = metric(pawl, STARTED), metric(pawl, "pawl_wakeups_total", 'direction="sent"')
        for id_ in more:
            assert respond(pawl, id_) == "RESUMED"
            wait_status(pawl, id_, "COMPLETED")
        # The worker asks for work every few seconds only. What was started has notified nobody.
        started = metric(pawl, STARTED) - before
        assert started >= 20, started
        assert metric(pawl, "pawl_wakeups_total", 'direction="sent"') - sent <= len(more) - started
        each_once(db, ids + more)
        stop_clean(pawl.server)


@test
def an_outcome_starts_the_process_that_waits_for_it():
    """Of a command that another worker of the pod settles, and of a child."""
    mail = {"domain": "edge", "type": "mail", "steps": [{"name": "mail", "command": {"domain": "shop", "type": "t", "payload": {}}}, NOTE]}
    parent = {"domain": "edge", "type": "parent", "steps": [{"name": "child", "process": {"type": "ask", "domain": "edge", "state": {}}},
                                                             {"name": "done", "set": {"is_done": True}}]}
    with Database() as db, Pawl(db) as pawl:
        gate = os.path.join(pawl.home, "gate")
        pod(pawl, db, mail, ini=f"[worker shop]\nexec = until rm {gate} 2>/dev/null; do sleep 0.02; done\n")
        define(pawl, ASK)
        define(pawl, parent)
        respond_started(pawl)

        def has_started(type_, end):
            id_ = begin(pawl, type_)
            wait_status(pawl, id_, "WAITING_FOR_REPLY")
            before = metric(pawl, STARTED)
            end(id_)
            wait_status(pawl, id_, "COMPLETED")
            return metric(pawl, STARTED) > before

        def child_ends(id_):
            child = wait_until(lambda: db.rows("select c.command_id from pawl.command c join pawl.process_sent s on s.sent_id = c.id join pawl.command p on p.id = s.id "
                                               f"where p.command_id = '{id_}'"), what="it has a child")[0]
            wait_status(pawl, child, "WAITING_FOR_ASYNC")
            db.rows(f"select pawl.signal('{child}', 'go'); select pawl.wake('process:edge')")

        def command_ends(_):
            with open(gate, "x", encoding="utf-8"):
                pass

        wait_until(lambda: has_started("mail", command_ends), what="one starts by the outcome of its command")
        wait_until(lambda: has_started("parent", child_ends), what="one starts by the end of its child")
        assert db.rows("select status, attempts from pawl.outcome group by 1, 2") == ["COMPLETED|1"]
        stop_clean(pawl.server)


@test
def a_command_of_a_step_starts_without_a_claim():
    mail = {"domain": "edge", "type": "mail", "steps": [{"name": "mail", "command": {"domain": "shop", "type": "t", "payload": {"n": 7}}}]}
    count = 20
    with Database() as db, Pawl(db) as pawl:
        pod(pawl, db, mail, ini="[worker shop]\nexec = cat\n")

        def run():
            id_ = begin(pawl, "mail")
            wait_status(pawl, id_, "COMPLETED")

        def has_started():
            before = metric(pawl, STARTED)
            run()
            return metric(pawl, STARTED) >= before + 2

        wait_until(has_started, what="a process and its command start")
        claims, notified = [metric(pawl, "pawl_worker_claims_total", f'domain="shop",outcome="{outcome}"') for outcome in ("won", "empty")], 'direction="sent"'
        started, wakeups = metric(pawl, STARTED), metric(pawl, "pawl_wakeups_total", notified)
        for _ in range(count):
            run()
        # The process and its command; also the process again, unless the outcome came before it was suspended.
        assert metric(pawl, STARTED) - started >= count * 3 / 2
        assert metric(pawl, "pawl_worker_claims_total", 'domain="shop",outcome="won"') - claims[0] <= count / 4
        assert metric(pawl, "pawl_wakeups_total", notified) - wakeups <= count
        assert db.rows("select status, attempts from pawl.outcome group by 1, 2") == ["COMPLETED|1"]
        assert db.rows("select distinct o.result from pawl.outcome o join pawl.command c using (id) where c.type = 't'") == ['{"n": 7}']
        stop_clean(pawl.server)


@test
def a_response_over_http_is_one_statement():
    """And its limits, in one round trip: no transaction block around it."""
    with Cluster(conf="log_statement = all\nlog_line_prefix = '%p '\n") as cluster, Pawl() as pawl:
        cluster.rows("create database shop")
        pawl.env["PAWL_DATABASE_URL"] = cluster.url("shop")
        assert pawl.run("migrate").code == 0
        cluster.rows(SCHEMA, "shop")
        pawl.serve()
        define(pawl, ASK)
        ids = [waiting(pawl) for _ in range(3)]
        for id_ in ids:
            assert respond(pawl, id_) == "RESUMED"
            wait_status(pawl, id_, "COMPLETED")
        with open(os.path.join(cluster.folder, "log"), encoding="utf-8", errors="replace") as file:
            said = re.findall(r"^(\d+) LOG:  (?:statement|execute [^:]*): (.*)", file.read(), re.M)
        before, newest = [], {}
        for pid, text in said:
            if text.startswith("select s.verdict"):
                before.append(newest[pid])
            newest[pid] = text
        assert len(before) == len(ids) and all("set_config('statement_timeout'" in text for text in before), before
        stop_clean(pawl.server)


@test
def what_is_ready_goes_before_what_is_resumed():
    """A process that is ready, and that the worker has not noticed yet because plain SQL resumed it, goes before one that a response resumes after it."""
    with Database() as db, Pawl(db) as pawl:
        pod(pawl, db)
        respond_started(pawl)
        for _ in range(10):
            first, second = waiting(pawl), waiting(pawl)
            db.rows(f"select pawl.signal('{first}', 'go')")
            begun = db.value(f"select count(*) from pawl.lease l join pawl.command c using (id) where c.command_id = '{first}'")
            respond(pawl, second)
            wait_status(pawl, second, "COMPLETED")
            wait_status(pawl, first, "COMPLETED")
            order = db.rows("select c.command_id from pawl.audit a join pawl.command c on c.command_id = a.command_id where a.event = 'RECEIVED' and a.attempt = 1 "
                            f"and a.command_id in ('{first}', '{second}') order by a.at")
            assert begun in ("0", "1") and order[-2:] == [first, second], (order, first, second)
        stop_clean(pawl.server)


@test
def a_pod_killed_before_it_begins_what_it_resumed_loses_nothing():
    with Database() as db, Pawl(db) as pawl:
        pod(pawl, db, env={"PAWL_FAULT": "bus.resume.before:kill"})
        ids = []

        def is_killed():
            ids.append(waiting(pawl))
            try:
                respond(pawl, ids[-1])
            except OSError:
                return True
            wait_status(pawl, ids[-1], "COMPLETED")
            return False

        wait_until(is_killed, what="it is killed between the commit and the start")
        assert pawl.server.wait() == -signal.SIGKILL
        assert db.rows("select c.command_id, l.attempt from pawl.lease l join pawl.command c using (id)") == [f"{ids[-1]}|1"]
        db.rows("update pawl.lease set until = now() - interval '1 s'")
        pawl.serve()
        assert respond(pawl, ids[-1]) == "REPEATED"
        for id_ in ids:
            wait_status(pawl, id_, "COMPLETED")
        assert sorted(db.rows("select process from app.effect")) == sorted(ids)
        # The loss counts as an attempt, as that of any command that a worker has leased, until the activation has recorded something.
        assert db.rows("select c.command_id, l.attempt from pawl.lost_attempt l join pawl.command c using (id)") == [f"{ids[-1]}|1"]
        stop_clean(pawl.server)


@test
def a_lost_answer_to_a_response_neither_loses_nor_doubles():
    with Database() as db, Proxy(db) as proxy, Pawl(db) as pawl:
        pod(pawl, db, env={"PAWL_DATABASE_URL": proxy.url, "PAWL_BREAKER_OPEN": "500ms"})
        ids = respond_started(pawl)
        for moment in ("before", "sent", "answered"):
            def has_started_after_a_cut():
                """A statement has its text only before it was prepared on its connection, so all begin anew."""
                cuts = proxy.do("cut")["cuts"]
                ids.append(waiting(pawl))
                started = metric(pawl, STARTED)
                proxy.do(f"cut-on {moment} 1 pawl.signal_one")
                respond(pawl, ids[-1])
                wait_status(pawl, ids[-1], "COMPLETED")
                return proxy.do("counts")["cuts"] > cuts and metric(pawl, STARTED) > started

            wait_until(has_started_after_a_cut, what=f"one starts whose response was cut: {moment}")
        # None waits for its lease to expire: the next try learns what the first one has committed.
        each_once(db, ids)
        stop_clean(pawl.server)


@test
def a_server_killed_between_a_resumed_lease_and_its_commit_loses_nothing():
    """A trigger holds the transaction that has inserted the lease, until PostgreSQL is killed."""
    with Cluster(conf="synchronous_commit = on\n") as cluster, Pawl() as pawl:
        cluster.rows("create database shop")
        url = cluster.url("shop")
        assert pawl.run("migrate", env={"PAWL_DATABASE_URL": url}).code == 0
        cluster.rows(SCHEMA, "shop")
        pawl.env["PAWL_DATABASE_URL"] = url
        pawl.serve(env={"PAWL_BREAKER_OPEN": "500ms"})
        define(pawl, ASK)
        ids = respond_started(pawl)
        cluster.rows("create table app.gate (is_open boolean); create function app.hold () returns trigger language plpgsql as $$ begin "
                     "if not exists (select from app.gate) and current_query() like '%signal_one%' then perform pg_sleep(60); end if; return null; end $$; "
                     "create trigger hold after insert on pawl.lease for each row execute function app.hold()", "shop")
        held = "select count(*) from pg_stat_activity where wait_event = 'PgSleep' and query like '%signal_one%'"

        def is_held():
            ids.append(waiting(pawl))
            posting = in_threads(1, lambda _: pawl.http("POST", f"/v1/processes/{ids[-1]}/signals/go", {}, headers={"Idempotency-Key": ids[-1]}))
            wait_until(lambda: cluster.rows(held, "shop") == ["1"] or status(pawl, ids[-1]) == "COMPLETED", what="it is held, or was claimed and has ended")
            return cluster.rows(held, "shop") == ["1"] and posting

        posting = wait_until(is_held, what="one is held")
        cluster.stop("immediate")
        cluster.start()
        cluster.rows("insert into app.gate values (true)", "shop")
        posting()
        wait_until(lambda: pawl.http("POST", f"/v1/processes/{ids[-1]}/signals/go", {}, headers={"Idempotency-Key": ids[-1]}).status == 201,
                   what="the response is stored, by the first request or by this one")
        for id_ in ids:
            wait_status(pawl, id_, "COMPLETED")
        assert sorted(cluster.rows("select process from app.effect", "shop")) == sorted(ids)
        stop_clean(pawl.server)


@test
def a_pod_that_stops_releases_what_it_has_resumed():
    with Database() as db, Pawl(db) as pawl:
        pod(pawl, db)
        respond_started(pawl)
        ids = [begin(pawl) for _ in range(200)]
        wait_until(lambda: db.value("select count(*) from pawl.process where wait is not null") == "200", what="all wait")
        answered = []

        def respond_until_stopped(part):
            for id_ in ids[part::4]:
                try:
                    respond(pawl, id_)
                    answered.append(id_)
                except (OSError, AssertionError):
                    return

        threads = in_threads(4, respond_until_stopped)
        wait_until(lambda: len(answered) > 40, what="responses are sent")
        stop_clean(pawl.server)
        threads()
        assert db.value("select count(*) from pawl.lease") == "0"
        assert db.value("select count(*) from pawl.lost_attempt") == "0"
        pawl.serve()
        for id_ in ids:
            respond(pawl, id_)
        wait_until(lambda: db.value("select count(*) from pawl.outcome") == db.value("select count(*) from pawl.process"), what="all have ended")
        assert db.rows("select process from app.effect group by 1 having count(*) <> 1") == []
        assert db.rows("select status from pawl.outcome group by 1") == ["COMPLETED"]
        stop_clean(pawl.server)


main()
