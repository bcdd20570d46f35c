#!/usr/bin/env python3
"""process_race - starts, responses, timeouts, patches and leases of one process that meet: each has one defined result.

PAWL_TEST_FULL=1 runs the sizes that docs/guarantees-tests.md names: 5,000 timeouts, 10,000 patches.
"""
import json
import os
import signal
import uuid

from pawl_test import Database, Pawl, main, test, wait_until
from process_cli import define
from servers import Session, in_threads

FULL = bool(os.environ.get("PAWL_TEST_FULL"))
TIMEOUTS = 5000 if FULL else 160
PATCHES = 5000 if FULL else 250  # of each of two writers
RESPONSES = 64
SLOW = """
create schema demo;
create table demo.run (key uuid, worker int default pg_backend_pid());
create function demo.note(input jsonb, key uuid) returns jsonb language sql as $$ insert into demo.run values (key) returning input $$;
"""


def start(db, kind, state="{}"):
    return db.value(f"select pawl.start('{kind}', $s${state}$s$, p_domain => 'demo')")


def status(db, process_id):
    return db.value(f"select pawl.process_status(pawl.process_number('{process_id}'))")


def wait_status(db, process_id, wanted):
    wait_until(lambda: status(db, process_id) == wanted, what=f"{process_id} is {wanted}")


def steps(db, process_id):
    return db.rows(f"select step || ' ' || attempt from pawl.process_step where id = pawl.process_number('{process_id}') "
                   "and kind = 'step' order by number")


# --- starts ---

@test
def the_same_start_from_sql_http_and_the_command_line_at_once_is_one_process():
    with Database() as db, Pawl(db) as pawl:
        db.rows(SLOW)
        define(pawl, {"type": "one", "domain": "demo", "steps": [{"name": "note", "sql": "demo.note"}]})
        pods = [pawl.serve(wait=False) for _ in range(3)]
        for pod in pods:
            pod.wait_ready()
        for _ in range(3):
            key = str(uuid.uuid4())

            def call(i, key=key):
                if i % 3 == 0:
                    return db.value(f"select pawl.start('one', '{{}}', '{key}', 'demo')")
                if i % 3 == 1:
                    body = {"type": "one", "domain": "demo", "process_id": key, "state": {}}
                    answer = pods[i // 3].http("POST", "/v1/processes", body, token=pawl.TOKEN)
                    assert answer.status in (200, 201), answer
                    return answer.json["process_id"]
                done = pawl.run("process", "start", "one", "{}", "--domain", "demo", "--id", key, "--json")
                assert done.code == 0, done
                return done.json["process_id"]

            assert set(in_threads(9, call)()) == {key}
            wait_status(db, key, "COMPLETED")
            assert db.value(f"select count(*) from pawl.command where command_id = '{key}'") == "1"
            assert steps(db, key) == ["note 1"], steps(db, key)
        # Three pods, one activation each: every effect once.
        assert db.value("select count(*) || ' ' || count(distinct key) from demo.run") == "3 3"


# --- responses ---

def signal_over_http(pod, process_id, payload, key):
    """The verdict. A request that waited too long for the process's lock is answered with 503."""
    while True:
        answer = pod.http("POST", f"/v1/processes/{process_id}/signals/vote", payload, token=Pawl.TOKEN, headers={"Idempotency-Key": key})
        if answer.status == 201:
            return answer.headers["pawl-status"]
        assert answer.status == 503, answer


WAITS = {"type": "votes", "domain": "demo", "steps": [
    {"name": "all", "wait": {"response": "vote", "count": RESPONSES}}, {"name": "note", "sql": "demo.note"}]}


@test
def different_responses_at_once_over_three_pods_are_merged_once_and_resume_once():
    with Database() as db, Pawl(db) as pawl:
        db.rows(SLOW)
        define(pawl, WAITS)
        pods = [pawl.serve(wait=False) for _ in range(3)]
        for pod in pods:
            pod.wait_ready()
        process_id = start(db, "votes")
        wait_status(db, process_id, "WAITING_FOR_ASYNC")

        verdicts = in_threads(RESPONSES, lambda i: signal_over_http(pods[i % 3], process_id, {f"v{i}": i}, f"k{i}"))()
        assert sorted(verdicts) == ["RESUMED"] + ["STORED"] * (RESPONSES - 1), verdicts
        wait_status(db, process_id, "COMPLETED")
        state = json.loads(db.value(f"select state from pawl.process where id = pawl.process_number('{process_id}')"))
        assert state == {f"v{i}": i for i in range(RESPONSES)}, state
        # In order of arrival, each once; the version counts each patch.
        result = json.loads(db.value("select result from pawl.process_step where step = 'all' and kind = 'step'"))
        assert sorted(next(iter(vote)) for vote in result) == sorted(f"v{i}" for i in range(RESPONSES)), result
        assert db.value("select string_agg(payload::text, ',' order by number) from pawl.process_response") == \
            db.value("select string_agg(v::text, ',' order by n) from pawl.process_step, jsonb_array_elements(result) with ordinality e (v, n) where step = 'all' and kind = 'step'")
        assert db.value("select count(*) from demo.run") == "1" and db.value("select version from pawl.process") == str(RESPONSES + 1)


@test
def the_same_response_at_once_is_applied_once_and_the_others_are_repeats():
    with Database() as db, Pawl(db) as pawl:
        db.rows(SLOW)
        define(pawl, {"type": "vote", "domain": "demo", "steps": [{"name": "one", "wait": {"response": "vote"}}, {"name": "note", "sql": "demo.note"}]})
        pods = [pawl.serve(wait=False) for _ in range(3)]
        for pod in pods:
            pod.wait_ready()
        process_id = start(db, "vote")
        wait_status(db, process_id, "WAITING_FOR_ASYNC")

        def vote(i):
            if i % 4:
                return signal_over_http(pods[i % 3], process_id, {"v": 1}, "k")
            return db.value(f"select pawl.signal('{process_id}', 'vote', '{{\"v\": 1}}', 'k')")

        verdicts = in_threads(RESPONSES, vote)()
        assert sorted(verdicts, key=str) == ["REPEATED"] * (RESPONSES - 1) + ["RESUMED"], verdicts
        wait_status(db, process_id, "COMPLETED")
        assert db.value("select count(*) || ' ' || (select version from pawl.process) from pawl.process_response") == "1 2"
        assert db.value("select count(*) from demo.run") == "1"
        # The same key with another payload is another response, and is refused.
        assert "another payload" in pawl.run("process", "signal", process_id, "vote", '{"v": 2}', "--key", "k").stderr
        assert db.value(f"select pawl.signal('{process_id}', 'vote', '{{\"v\": 1}}', 'k')") == "REPEATED"


@test
def of_a_response_and_a_timeout_exactly_one_is_recorded():
    with Database() as db, Pawl(db) as pawl:
        define(pawl, {"type": "race", "domain": "demo", "steps": [
            {"name": "race", "wait": {"response": "go"}, "timeout": "2s", "on_timeout": "continue"}]})
        db.rows(f"select count(pawl.start('race', p_domain => 'demo')) from generate_series(1, {TIMEOUTS})")
        pods = [pawl.start("serve", "--role", "worker", "--listen", "127.0.0.1:0") for _ in range(2)]
        threads = 8

        def respond(i):
            # When the timeout of each is due, give or take 30 ms; the first one at once, and the last one when it has ended, so that both
            # sides win somewhere, on fast machines and on slow ones.
            with Session(db.url) as session:
                session.do("create temp table answered (id bigint, verdict text)")
                session.do(f"""
                    do $do$
                    declare
                      v_id bigint; v_key uuid; v_due timestamptz; v_done bigint[] := '{{}}'; v_left integer;
                    begin
                      loop
                        select count(*) into v_left from pawl.process p where p.id % {threads} = {i} and p.id <> all (v_done);
                        exit when v_left = 0;
                        select d.id, c.command_id, d.due into v_id, v_key, v_due
                        from pawl.delayed d join pawl.command c on c.id = d.id
                        where d.id % {threads} = {i} and d.id <> all (v_done) order by d.due limit 1;
                        if not found or v_left = 1 then -- it has ended, or has not been run yet
                          insert into answered select p.id, 'MISSED' from pawl.process p join pawl.outcome o on o.id = p.id
                          where p.id % {threads} = {i} and p.id <> all (v_done);
                          v_done := v_done || array(select t.id from answered t where t.id <> all (v_done));
                          perform pg_sleep(0.005);
                          commit;
                          continue;
                        end if;
                        commit;
                        if v_done <> '{{}}' then
                          perform pg_sleep(greatest(0, extract(epoch from v_due - clock_timestamp()) + random() * 0.06 - 0.03));
                        end if;
                        insert into answered select v_id, pawl.signal(v_key, 'go', '{{"come": true}}', 'k');
                        v_done := v_done || v_id;
                        commit;
                      end loop;
                    end $do$""")
                return session.do("select id || ' ' || verdict from answered")

        verdicts = dict(row.split() for rows in in_threads(threads, respond)(600) for row in rows)
        wait_until(lambda: db.value("select count(*) from pawl.outcome") == str(TIMEOUTS), what="all have ended")
        recorded = dict(row.split("|") for row in db.rows("select id, coalesce(result::text, 'null') from pawl.process_step where step = 'race' and kind = 'step'"))
        assert len(recorded) == len(verdicts) == TIMEOUTS, (len(recorded), len(verdicts))
        assert db.value("select count(*) from pawl.process_step where step = 'race' and kind = 'step'") == str(TIMEOUTS)
        for process, verdict in verdicts.items():
            if verdict == "RESUMED":
                assert recorded[process] == '{"come": true}', (process, verdict, recorded[process])
            elif verdict in ("LATE", "MISSED"):
                assert recorded[process] == "null", (process, verdict, recorded[process])
            else:  # it ran just then: whichever came first
                assert verdict == "STORED", verdict
        assert db.rows("select distinct pawl.process_status(id) from pawl.process") == ["COMPLETED"]
        both = {recorded[p] for p in verdicts}
        assert both == {"null", '{"come": true}'}, f"no race: {both}"
        for pod in pods:
            pod.send(signal.SIGTERM)


# --- writers of one state ---

@test
def of_two_writers_of_a_state_none_loses_a_patch_silently():
    with Database() as db:
        process_id = start(db, "counter", '{"n": 0}')
        number, token = db.value("""
            select c.id || ' ' || c.token
            from pawl.claim((select id from pawl.domain_name where name = 'process:demo'), 1, 3600000, array_fill(0::bigint, array[10]), null, 'w') c""").split()

        def increment(i):
            # Both read the first version before either of them writes, so that one of them at least is stale. Reads, computes, and writes under the version that it read; tries again when the verdict is that it was stale, or that the process was locked.
            with Session(db.url) as session:
                session.do("create temp table count (stale integer)")
                session.do(f"""
                    do $do$
                    declare v_state jsonb; v_version bigint; v_verdict text; v_stale integer := 0;
                    begin
                      for v_at in 1 .. {PATCHES} loop
                        loop
                          select p.state, p.version into v_state, v_version from pawl.process p where p.id = {number};
                          commit;
                          if v_at = 1 and v_stale = 0 then
                            perform pg_advisory_xact_lock_shared(77);
                            commit;
                          end if;
                          select w.verdict into v_verdict from pawl.process_write(array[{number}::bigint], array[{token}::bigint], array[jsonb_build_object('step', 'w{i}-' || v_at)], null, null,
                            array[jsonb_build_object('n', (v_state ->> 'n')::bigint + 1)], array[v_version], null, null, null, null, null, null, null, null, null) w;
                          commit;
                          exit when v_verdict = 'WRITTEN';
                          if v_verdict not in ('STALE', 'BUSY') then raise exception 'verdict %', v_verdict; end if;
                          v_stale := v_stale + 1;
                        end loop;
                      end loop;
                      insert into count values (v_stale);
                    end $do$""")
                return int(session.do("select stale from count")[0])

        def respond(_):
            with Session(db.url) as session:
                session.do(f"""
                    do $do$
                    begin
                      perform pg_advisory_xact_lock_shared(77);
                      commit;
                      for v_at in 1 .. {PATCHES} loop
                        perform pawl.signal('{process_id}', 'note', jsonb_build_object('r', v_at), 'k' || v_at);
                        commit;
                      end loop;
                    end $do$""")

        with Session(db.url) as gate:
            gate.do("select pg_advisory_lock(77)")
            join = in_threads(3, lambda i: respond(i) if i == 2 else increment(i))
            wait_until(lambda: db.value("select count(*) from pg_locks where locktype = 'advisory' and objid = 77 and not granted") == "3", what="all are there")
        stale = join(600)
        assert all(not isinstance(s, Exception) for s in stale), stale
        assert stale[0] + stale[1] > 0, "no race"
        state = json.loads(db.value(f"select state from pawl.process where id = {number}"))
        assert state == {"n": 2 * PATCHES, "r": PATCHES}, state
        assert db.value(f"select version from pawl.process where id = {number}") == str(1 + 3 * PATCHES)
        assert db.value("select count(*) from pawl.process_step") == str(2 * PATCHES)


# --- leases ---

def exec_definition(program):
    return {"type": "slow", "domain": "demo", "steps": [
        {"name": "slow", "exec": program, "retry": {"attempts": 1}}, {"name": "note", "sql": "demo.note"}]}


@test
def a_step_that_takes_longer_than_its_lease_is_kept_by_heartbeats():
    with Database() as db, Pawl(db, env={"PAWL_PROCESS_LEASE": "9s"}) as pawl:
        db.rows(SLOW)
        go = os.path.join(pawl.home, "go")
        define(pawl, exec_definition(f"until test -e {go}; do sleep 0.1; done; echo 1"))
        for _ in range(2):
            pawl.start("serve", "--role", "worker", "--listen", "127.0.0.1:0")
        process_id = start(db, "slow")
        first = wait_until(lambda: db.rows("select until from pawl.lease"), what="it runs")[0]
        wait_until(lambda: db.value(f"select now() > '{first}'") == "t", what="the time of its first lease is over")
        with open(go, "w", encoding="utf-8"):
            pass
        wait_status(db, process_id, "COMPLETED")
        assert steps(db, process_id) == ["slow 1", "note 1"]
        audit = db.rows(f"select e ->> 'event' from jsonb_array_elements(pawl.process_show('{process_id}') -> 'audit') e")
        assert audit.count("RECEIVED") == 1, audit


@test
def a_stopped_worker_loses_its_lease_and_its_writes_are_refused():
    with Database() as db, Pawl(db, env={"PAWL_PROCESS_LEASE": "1s"}) as pawl:
        db.rows(SLOW)
        marker = os.path.join(pawl.home, "marker")
        # The first runner says that it runs and waits for the file to go; the second one finds it gone.
        define(pawl, exec_definition(f"test -e {marker}.second || {{ touch {marker}; while test -e {marker}; do sleep 0.05; done; }}; echo 1"))
        first = pawl.start("serve", "--role", "worker", "--listen", "127.0.0.1:0")
        process_id = start(db, "slow")
        wait_until(lambda: os.path.exists(marker), what="the step runs")
        first.send(signal.SIGSTOP)
        with open(marker + ".second", "w", encoding="utf-8"):
            pass
        token = db.value("select token from pawl.lease")
        pawl.start("serve", "--role", "worker", "--listen", "127.0.0.1:0")
        wait_status(db, process_id, "COMPLETED")
        before = db.rows("select * from pawl.process_step order by step")
        os.remove(marker)
        first.send(signal.SIGCONT)
        assert first.stop() == 0, first.stderr[-5:]  # it ends what it runs first
        assert db.rows("select * from pawl.process_step order by step") == before and steps(db, process_id) == ["slow 1", "note 1"]
        assert db.value("select count(*) from demo.run") == "1"
        refused = db.rows(f"""select verdict from pawl.process_write(array[pawl.process_number('{process_id}')], array[{token}::bigint], array[jsonb_build_object('step', 'late')], null, null, array['{{"late": true}}'::jsonb], array[0::bigint], null, null, null, null, null, null, null, null, null)""")
        assert refused == ["LOST"] and db.value("select state from pawl.process") == "{}"


# --- shutdown ---

@test
def sigterm_while_steps_run_sleep_and_wait_loses_nothing_and_uses_no_attempt():
    with Database() as db, Pawl(db) as pawl:
        db.rows(SLOW)
        marker = os.path.join(pawl.home, "ran")
        for kind, step in {"runs": {"exec": f"echo x >> {marker}; until test -e {marker}.go; do sleep 0.1; done; echo 1", "retry": {"attempts": 1}},
                           "sleeps": {"sleep": "1h"}, "waits": {"wait": {"response": "go"}}}.items():
            define(pawl, {"type": kind, "domain": "demo", "steps": [{"name": "step", **step}, {"name": "note", "sql": "demo.note"}]})
        pod = pawl.start("serve", "--role", "worker", "--listen", "127.0.0.1:0")
        ids = {kind: start(db, kind) for kind in ("runs", "sleeps", "waits")}
        wait_until(lambda: os.path.exists(marker), what="the step runs")
        for kind in ("sleeps", "waits"):
            wait_status(db, ids[kind], "WAITING_FOR_ASYNC")
        pod.send(signal.SIGTERM)
        wait_until(lambda: pod.said("stopping"), what="it is stopping")
        with open(marker + ".go", "w", encoding="utf-8"):
            pass
        assert pod.wait() == 0, pod.stderr[-5:]
        assert db.value("select count(*) from pawl.lease") == "0"
        # An hour passes.
        db.rows("update pawl.process_step set started_at = started_at - interval '1 h', ended_at = ended_at - interval '1 h';"
                "update pawl.delayed set due = due - interval '1 h'")
        assert db.value(f"select pawl.signal('{ids['waits']}', 'go')") == "RESUMED"
        pawl.start("serve", "--role", "worker", "--listen", "127.0.0.1:0")
        for process_id in ids.values():
            wait_status(db, process_id, "COMPLETED")
            assert steps(db, process_id) == ["step 1", "note 1"], steps(db, process_id)
        assert db.value("select count(*) from demo.run") == "3"


main()
