#!/usr/bin/env python3
"""send_start - what a pod sends starts on its own free handlers, without a claim, and neither a crash nor a lost answer loses or doubles it."""
import os
import signal

from bus_commands import events, new_id
from checks import metric, stop_clean
from pawl_test import Database, Pawl, Proxy, main, test, wait_until
from process_cli import define
from servers import Cluster, in_threads

STARTED = "pawl_commands_started_total"
EFFECT = """create schema app; create table app.effect (command_id uuid, n int generated always as identity);
create function app.effect (payload jsonb, command_id uuid) returns jsonb language sql as $$
  insert into app.effect (command_id) values (command_id); select payload $$"""


def settings(pawl, text):
    """The settings file that the pod finds by itself."""
    with open(os.path.join(pawl.home, "pawl.ini"), "w", encoding="utf-8") as file:
        file.write(text)


def post(pawl, **more):
    """The id of a command sent over HTTP."""
    answer = pawl.http("POST", "/v1/commands", {"domain": "shop", "type": "t", **more})
    assert answer.status == 201, answer.body
    return answer.json["command_id"]


def show(pawl, id_):
    return pawl.http("GET", f"/v1/commands/{id_}").json


def wait_completed(pawl, id_):
    wait_until(lambda: show(pawl, id_)["status"] == "COMPLETED", what=f"{id_} is COMPLETED")


def claims_won(pawl, domain="shop"):
    return metric(pawl, "pawl_worker_claims_total", f'domain="{domain}",outcome="won"')


def post_started(pawl, **more):
    """Commands sent over HTTP until one has started; their ids, the started one last. The worker may just be asking for work at first."""
    ids, before = [], metric(pawl, STARTED)

    def has_started():
        ids.append(post(pawl, **more))
        wait_completed(pawl, ids[-1])
        return metric(pawl, STARTED) > before

    wait_until(has_started, what="one starts")
    return ids


@test
def a_command_starts_on_an_idle_worker_without_a_claim():
    with Database() as db, Pawl(db) as pawl:
        settings(pawl, "[worker shop]\nexec = cat\n")
        pawl.serve()
        ids = post_started(pawl, payload={"b": [1, 2], "a": "x"})
        done = show(pawl, ids[-1])
        assert (done["status"], done["attempts"], done["result"]) == ("COMPLETED", 1, {"a": "x", "b": [1, 2]}), done
        assert events(done) == ["SENT", "RECEIVED", "COMPLETED"], done
        assert f":{pawl.server.pid}:" in done["audit"][1]["actor"], done
        for _ in range(30):
            ids.append(post(pawl))
            wait_completed(pawl, ids[-1])
        # Each was started or claimed, and by far the most were started: the worker asks for work every few seconds only.
        started = metric(pawl, STARTED)
        assert started + claims_won(pawl) == len(ids) == metric(pawl, "pawl_commands_claimed_total"), (started, len(ids))
        assert metric(pawl, "pawl_worker_commands_total", 'domain="shop",outcome="completed"') == len(ids)
        # Only what was not started has notified anybody.
        assert metric(pawl, "pawl_wakeups_total", 'direction="sent"') <= len(ids) - started
        stop_clean(pawl.server)
        assert db.rows("select status, attempts, count(*) from pawl.outcome group by 1, 2") == [f"COMPLETED|1|{len(ids)}"]


@test
def a_full_worker_claims_what_it_could_not_start():
    with Database() as db, Pawl(db) as pawl:
        db.rows(EFFECT)
        settings(pawl, "[worker shop]\nsql = app.effect\nconcurrency = 2\n")
        pawl.serve()
        post_started(pawl)
        ids = [id for list_ in in_threads(8, lambda _: [post(pawl) for _ in range(50)])() for id in list_]
        for id_ in ids:
            wait_completed(pawl, id_)
        wrong = db.rows("select command_id from app.effect group by 1 having count(*) <> 1 union all "
                        "select c.command_id from pawl.command c left join app.effect e using (command_id) where e.n is null")
        assert wrong == [], wrong
        assert db.rows("select status, attempts from pawl.outcome group by 1, 2") == ["COMPLETED|1"]
        stop_clean(pawl.server)


@test
def commands_of_a_key_keep_their_order():
    """One at a time: each handler has the lock of its key while it runs."""
    alone = """create function app.alone (payload jsonb, command_id uuid) returns jsonb language plpgsql as $$
      declare v_key text := (select c.order_key from pawl.command c where c.command_id = alone.command_id);
      begin
        if not pg_try_advisory_lock(hashtext(v_key)) then raise exception 'another command of its key runs'; end if;
        perform pg_sleep(0.02);
        insert into app.effect (command_id) values (command_id);
        perform pg_advisory_unlock(hashtext(v_key));
        return payload;
      end $$"""
    with Database() as db, Pawl(db) as pawl:
        db.rows(EFFECT)
        db.rows(alone)
        settings(pawl, "[worker shop]\nsql = app.alone\nconcurrency = 8\nalone = on\n")
        pawl.serve()
        ids = []
        while metric(pawl, STARTED) < 10:
            sent = [post(pawl, order_key=f"k{n % 3}", max_attempts=2) for n in range(9)]
            for id_ in sent:
                wait_completed(pawl, id_)
            ids += sent
        for key in range(3):
            done = db.rows("select e.command_id from app.effect e join pawl.command c using (command_id) "
                           f"where c.order_key = 'k{key}' order by e.n")
            assert done == ids[key::3]
        assert db.rows("select attempts from pawl.outcome group by 1") == ["1"]
        assert db.value("select count(*) from pawl.order_turn") == "0"
        stop_clean(pawl.server)


@test
def what_waits_goes_first():
    """A command that the worker has not noticed yet, because plain SQL sent it, begins before one of its priority that is sent after it."""
    with Database() as db, Pawl(db) as pawl:
        db.rows(EFFECT)
        settings(pawl, "[worker shop]\nsql = app.effect\nconcurrency = 1\n")
        pawl.serve()
        post_started(pawl)
        for _ in range(20):
            waits = db.value("select pawl.send('shop', 't')")
            sent = post(pawl)
            wait_completed(pawl, sent)
            order = db.rows(f"select command_id from app.effect where command_id in ('{waits}', '{sent}') order by n")
            assert order == [waits, sent], (order, waits, sent)
        stop_clean(pawl.server)


@test
def a_pod_killed_before_it_begins_loses_nothing():
    with Database() as db, Pawl(db) as pawl:
        db.rows(EFFECT)
        settings(pawl, "[worker shop]\nsql = app.effect\n")
        pawl.serve(env={"PAWL_FAULT": "bus.start.before:kill"})
        ids = []

        def is_killed():
            ids.append(new_id())
            try:
                post(pawl, command_id=ids[-1])
            except OSError:
                return True
            wait_completed(pawl, ids[-1])
            return False

        wait_until(is_killed, what="it is killed between the commit and the start")
        assert pawl.server.wait() == -signal.SIGKILL
        assert db.rows("select c.command_id, l.attempt from pawl.lease l join pawl.command c using (id)")[-1:] == [f"{ids[-1]}|1"]
        db.rows("update pawl.lease set until = now() - interval '1 s'")
        pawl.serve()
        for id_ in ids:
            wait_completed(pawl, id_)
        # The loss counts as an attempt, as that of any command that a worker has leased.
        assert show(pawl, ids[-1])["attempts"] == 2
        assert sorted(db.rows("select command_id from app.effect")) == sorted(ids)
        stop_clean(pawl.server)


@test
def a_lost_answer_to_the_commit_neither_loses_nor_doubles():
    with Database() as db, Proxy(db) as proxy, Pawl(db) as pawl:
        db.rows(EFFECT)
        settings(pawl, "[worker shop]\nsql = app.effect\n")
        pawl.serve(env={"PAWL_DATABASE_URL": proxy.url, "PAWL_BREAKER_OPEN": "500ms"})
        ids = post_started(pawl)
        empty = 'domain="shop",outcome="empty"'
        for moment in ("before", "sent", "answered", "answered"):
            def has_started_after_a_cut():
                """A statement has its text only before it was prepared on its connection, so all begin anew."""
                started, claims = metric(pawl, STARTED), metric(pawl, "pawl_worker_claims_total", empty)
                cuts = proxy.do("cut")["cuts"]
                wait_until(lambda: metric(pawl, "pawl_worker_claims_total", empty) > claims, what="the worker claims again")
                proxy.do(f"cut-on {moment} 1 pawl.send_items")
                ids.append(post(pawl, command_id=new_id()))
                wait_completed(pawl, ids[-1])
                return proxy.do("counts")["cuts"] > cuts and metric(pawl, STARTED) > started

            wait_until(has_started_after_a_cut, what=f"one starts whose send was cut: {moment}")
        # None waits for its lease to expire: the next try learns what the first one has committed.
        assert db.rows("select status, attempts from pawl.outcome group by 1, 2") == ["COMPLETED|1"]
        stop_clean(pawl.server)


@test
def a_server_killed_between_the_lease_and_the_commit_loses_nothing():
    """A trigger holds the transaction that has inserted the lease, until PostgreSQL is killed."""
    with Cluster(conf="synchronous_commit = on\n") as cluster, Pawl() as pawl:
        cluster.rows("create database shop")
        url = cluster.url("shop")
        assert pawl.run("migrate", env={"PAWL_DATABASE_URL": url}).code == 0
        cluster.rows(EFFECT, "shop")
        settings(pawl, "[worker shop]\nsql = app.effect\n")
        pawl.serve(env={"PAWL_DATABASE_URL": url, "PAWL_BREAKER_OPEN": "500ms"})
        ids = post_started_at(pawl, cluster)
        cluster.rows("create table app.gate (is_open boolean); create function app.hold () returns trigger language plpgsql as $$ begin "
                     "if not exists (select from app.gate) and exists (select from pawl.command c where c.id = new.id and c.created_at = new.started_at) "
                     "then perform pg_sleep(60); end if; return null; end $$; "
                     "create trigger hold after insert on pawl.lease for each row execute function app.hold()", "shop")
        held = "select count(*) from pg_stat_activity where wait_event = 'PgSleep' and query like '%send_items%'"

        def is_held():
            ids.append(new_id())
            posting = in_threads(1, lambda _: pawl.http("POST", "/v1/commands", {"domain": "shop", "type": "t", "command_id": ids[-1]}))
            wait_until(lambda: cluster.rows(held, "shop") == ["1"] or ended(cluster, ids[-1]), what="it is held, or was claimed and has ended")
            return cluster.rows(held, "shop") == ["1"] and posting

        posting = wait_until(is_held, what="one is held")
        cluster.stop("immediate")
        cluster.start()
        cluster.rows("insert into app.gate values (true)", "shop")
        posting()
        wait_until(lambda: pawl.http("POST", "/v1/commands", {"domain": "shop", "type": "t", "command_id": ids[-1]}).status == 201,
                   what="it is sent, by the first request or by this one")
        for id_ in ids:
            wait_until(lambda: ended(cluster, id_), what="it ends")
        assert sorted(cluster.rows("select command_id from app.effect", "shop")) == sorted(ids)
        stop_clean(pawl.server)


def ended(cluster, id_):
    return cluster.rows(f"select o.status from pawl.outcome o join pawl.command c using (id) where c.command_id = '{id_}'", "shop") == ["COMPLETED"]


def post_started_at(pawl, cluster):
    ids, before = [], metric(pawl, STARTED)

    def has_started():
        ids.append(post(pawl))
        wait_until(lambda: cluster.rows("select count(*) from pawl.outcome", "shop") == [str(len(ids))], what="it has ended")
        return metric(pawl, STARTED) > before

    wait_until(has_started, what="one starts")
    return ids


@test
def a_process_starts_on_an_idle_worker_without_a_claim():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        define(pawl, {"domain": "edge", "type": "order", "steps": [{"name": "one", "set": {"done": True}}]})
        before, ids = metric(pawl, STARTED), []

        def has_started():
            answer = pawl.http("POST", "/v1/processes", {"domain": "edge", "type": "order"})
            assert answer.status == 201, answer.body
            ids.append(answer.json["process_id"])
            wait_until(lambda: pawl.http("GET", f"/v1/processes/{ids[-1]}").json["status"] == "COMPLETED", what="it ends")
            return metric(pawl, STARTED) > before

        wait_until(has_started, what="one starts")
        assert db.rows("select status, attempts, count(*) from pawl.outcome group by 1, 2") == [f"COMPLETED|1|{len(ids)}"]
        stop_clean(pawl.server)


@test
def a_worker_that_stops_releases_what_it_has_not_begun():
    with Database() as db, Pawl(db) as pawl:
        db.rows(EFFECT)
        settings(pawl, "[worker shop]\nsql = app.effect\nconcurrency = 4\n")
        pawl.serve()
        post_started(pawl)
        sent = []

        def send_until_stopped(_):
            while pawl.server.is_running():
                id_ = new_id()
                try:
                    if pawl.http("POST", "/v1/commands", {"domain": "shop", "type": "t", "command_id": id_}).status == 201:
                        sent.append(id_)
                except OSError:
                    pass

        threads = in_threads(4, send_until_stopped)
        wait_until(lambda: len(sent) > 50, what="commands are sent")
        stop_clean(pawl.server)
        threads()
        assert db.value("select count(*) from pawl.lease") == "0"
        assert db.value("select count(*) from pawl.lost_attempt") == "0"
        lost = set(sent) - set(db.rows("select command_id from pawl.command"))
        assert not lost, lost
        pawl.serve()
        wait_until(lambda: db.value("select count(*) from pawl.outcome") == db.value("select count(*) from pawl.command"), what="all have ended")
        assert db.rows("select command_id from app.effect group by 1 having count(*) <> 1") == []
        stop_clean(pawl.server)


main()
