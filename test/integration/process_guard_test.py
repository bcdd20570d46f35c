#!/usr/bin/env python3
"""process_guard - what users define, return and decide does not break a process, its neighbours or its pod. The pods run with default settings."""
import http.server
import json
import os
import tempfile
import threading
import time

from helpers import Session
from pawl_test import Database, Pawl, main, test, wait_until
from process_helpers import cli, define, run, show, wait_status

NUMBERS = "printf '['; for i in $(seq 8999); do printf 1e131071,; done; printf '1e131071]'"


def start(pawl, type_, state=None, domain="guard"):
    return cli(pawl, "start", type_, "-", "--domain", domain, stdin=json.dumps(state or {}))["process_id"]


def lines(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return file.read().splitlines()


def refusal(db, sql):
    """The error with which a statement fails."""
    db.rows(f"""create or replace function public.refusal () returns text language plpgsql as $f$
                begin {sql}; return 'none'; exception when others then return sqlerrm; end $f$""")
    return db.value("select public.refusal()")


@test
def a_function_that_ends_its_connection_runs_once_per_activation():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        db.rows("""create sequence public.calls;
                   create function public.die (input jsonb, key uuid) returns jsonb language plpgsql as $$
                   begin perform nextval('public.calls'), pg_terminate_backend(pg_backend_pid()); perform pg_sleep(10); return '1'; end $$""")
        process, shown = run(pawl, {"type": "die", "domain": "guard", "on_failure": "troubleshoot", "steps": [
            {"name": "x", "sql": "public.die", "retry": {"attempts": 1}}]}, "WAITING_FOR_TSQ")
        assert shown["error"].startswith("step x: the connection to the database was lost while its function ran"), shown["error"]
        assert db.value("select last_value from public.calls") == "10"


# --- results that cannot be stored ---

@test
def a_last_step_whose_result_cannot_be_stored_is_compensated_and_not_run_again():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        seen = os.path.join(folder, "seen")
        for on_failure, status in (("compensate", "COMPENSATED"), ("troubleshoot", "WAITING_FOR_TSQ")):
            define(pawl, {"type": on_failure, "domain": "guard", "on_failure": on_failure, "steps": [
                {"name": "pay", "exec": f"echo paid {on_failure} >> {seen}; echo 1e999999", "retry": {"attempts": 1},
                 "compensate": {"exec": f"echo refunded {on_failure} >> {seen}"}}]})
            process = start(pawl, on_failure)
            ended = wait_status(pawl, process, "COMPENSATED", "WAITING_FOR_TSQ")
            assert ended["status"] == status and ended["error"].startswith("step pay: "), ended
        assert lines(seen) == ["paid compensate", "refunded compensate", "paid troubleshoot"], lines(seen)
        # What has happened is known: a retry goes on without a result, and does not do it again.
        cli(pawl, "retry", process)
        wait_status(pawl, process, "COMPLETED")
        assert lines(seen)[2:] == ["paid troubleshoot"], lines(seen)
        # A result of the process that cannot be stored is a failure like that of a step, which has happened.
        define(pawl, {"type": "result", "domain": "guard", "on_failure": "compensate", "steps": [
            {"name": "pay", "exec": f"echo paid result >> {seen}; echo 1", "compensate": {"exec": f"echo refunded result >> {seen}"}}],
            "result": {"n": "{{state.n}}" * 20}})
        process = start(pawl, "result", {"n": "x" * 1000000})
        assert wait_status(pawl, process, "COMPENSATED", "WAITING_FOR_TSQ", "COMPLETED")["status"] == "COMPENSATED"
        assert lines(seen)[-2:] == ["paid result", "refunded result"], lines(seen)


@test
def numbers_of_results_are_measured_as_they_are_written_out():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        seen = os.path.join(folder, "seen")
        define(pawl, {"type": "huge", "domain": "guard", "on_failure": "compensate", "steps": [
            {"name": "pay", "exec": NUMBERS, "compensate": {"exec": f"echo refunded >> {seen}"}},
            {"name": "w", "wait": {"response": "go"}}, {"name": "z", "set": {"z": 1}}]})
        process = start(pawl, "huge")
        ended = wait_status(pawl, process, "COMPENSATED", "WAITING_FOR_TSQ", "WAITING_FOR_ASYNC")
        assert ended["status"] == "COMPENSATED" and "16777216 bytes" in ended["error"], ended["status"]
        assert lines(seen) == ["refunded"]
        assert "results must have at most 16777216 bytes" in refusal(db, """perform pawl.process_write(array[1::bigint], array[1::bigint], '{s}', '{1}', null,
            array[('[' || repeat('1e131071,', 8999) || '1e131071]')::jsonb], null, null, null, null, null, null, null, null, null, null, null, null)""")
        # One that an earlier version has stored can be shown, loaded and compensated.
        define(pawl, {"type": "old", "domain": "guard", "on_failure": "compensate", "steps": [
            {"name": "pay", "exec": "echo 1", "compensate": {"exec": f"echo old >> {seen}"}}, {"name": "w", "wait": {"response": "go"}}]})
        process = start(pawl, "old")
        wait_status(pawl, process, "WAITING_FOR_ASYNC")
        db.rows("update pawl.process_step set result = ('[' || repeat('1e131071,', 8999) || '1e131071]')::jsonb "
                f"where id = pawl.process_number('{process}') and name = 'pay'")
        assert [s["result"].get("truncated") for s in show(pawl, process)["steps"]] == [True]
        cli(pawl, "cancel", process, "--compensate")
        wait_status(pawl, process, "COMPENSATED")
        assert lines(seen) == ["refunded", "old"]


# --- decisions ---

@test
def a_process_that_is_being_compensated_cannot_be_canceled_without_it():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        seen, repaired = os.path.join(folder, "seen"), os.path.join(folder, "repaired")
        define(pawl, {"type": "undo", "domain": "guard", "on_failure": "compensate", "steps": [
            {"name": "a", "exec": "echo 1", "compensate": {"exec": f"echo undo-a >> {seen}"}},
            {"name": "b", "exec": "echo 1", "compensate": {"exec": f"test -e {repaired} || exit 1; echo undo-b >> {seen}", "retry": {"attempts": 1000, "delay": "1s", "factor": 1}}},
            {"name": "x", "exec": "exit 70"}]})
        process = start(pawl, "undo")
        wait_status(pawl, process, "COMPENSATING")
        # Between two attempts of the compensation, and while one runs.
        for _ in range(5):
            done = pawl.run("process", "cancel", process, "--operator", "ann")
            assert done.code == 1 and "is being compensated" in done.stderr, done
            assert show(pawl, process)["status"] == "COMPENSATING"
        assert db.value(f"select verdict from pawl.cancel(array['{process}'::uuid])") == "COMPENSATING"
        answer = pawl.http("POST", f"/v1/processes/{process}/cancel", {}, token=pawl.TOKEN)
        assert answer.status == 409 and answer.json["type"].endswith("process-compensating"), answer
        with open(repaired, "w", encoding="utf-8"):
            pass
        wait_status(pawl, process, "COMPENSATED")
        assert lines(seen) == ["undo-b", "undo-a"], lines(seen)
        # A cancellation with compensation that was decided earlier stands.
        define(pawl, {"type": "waits", "domain": "guard", "steps": [
            {"name": "a", "exec": "echo 1", "compensate": {"exec": f"echo undo >> {seen}"}}, {"name": "w", "wait": {"response": "go"}}]})
        process = start(pawl, "waits")
        wait_status(pawl, process, "WAITING_FOR_ASYNC")
        assert db.rows(f"""begin; select verdict from pawl.process_compensate(array['{process}'::uuid]);
            select verdict from pawl.cancel(array['{process}'::uuid]); commit""") == ["CANCELING", "COMPENSATING"]
        wait_status(pawl, process, "COMPENSATED")


@test
def a_cancellation_or_deadline_during_the_last_step_has_its_result():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        seen, go = os.path.join(folder, "seen"), os.path.join(folder, "go")
        for kind, last in (("exec", {"exec": f"echo began >> {seen}; until test -e {go}; do sleep 0.1; done; echo last >> {seen}"}),
                           ("sql", {"sql": "demo.last"})):
            db.rows("""create schema if not exists demo; create table if not exists demo.go (n integer); insert into demo.go values (1);
                create or replace function demo.last (input jsonb, key uuid) returns jsonb language plpgsql as $$
                begin while exists (select from demo.go) loop perform pg_sleep(0.05); end loop; return 'null'; end $$""")
            define(pawl, {"type": "last-" + kind, "domain": "guard", "on_failure": "compensate", "steps": [
                {"name": "a", "exec": "echo 1", "compensate": {"exec": f"echo undo-a-{kind} >> {seen}"}},
                {"name": "last", **last, "compensate": {"exec": f"echo undo-last-{kind} >> {seen}"}}]})
            process = start(pawl, "last-" + kind)
            wait_until(lambda: "began" in lines(seen) if kind == "exec" else db.value("select count(*) from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'") != "0",
                       what="the last step runs")
            assert cli(pawl, "cancel", process, "--compensate")["status"] == "CANCELING"
            with open(go, "w", encoding="utf-8"):
                pass
            db.rows("delete from demo.go")
            ended = wait_status(pawl, process, "COMPENSATED", "COMPLETED")
            assert ended["status"] == "COMPENSATED" and [s["name"] for s in ended["steps"]] == ["a", "last", "~last", "~a"], ended
        assert lines(seen) == ["began", "last", "undo-last-exec", "undo-a-exec", "undo-last-sql", "undo-a-sql"], lines(seen)
        # A deadline ends what runs, and what comes after it.
        define(pawl, {"type": "late", "domain": "guard", "deadline": "2s", "on_deadline": "fail", "steps": [{"name": "long", "exec": "sleep 1000", "retry": {"attempts": 1}}]})
        process = start(pawl, "late")
        ended = wait_status(pawl, process, "FAILED", "COMPLETED", "WAITING_FOR_TSQ")
        # The second one: on a slow machine it has passed before the program began.
        assert ended["status"] == "FAILED" and ("program ran longer than" in ended["error"] or "deadline of the process" in ended["error"]), ended
        define(pawl, {"type": "late-last", "domain": "guard", "deadline": "1h", "on_deadline": "compensate", "steps": [
            {"name": "a", "exec": "echo 1", "compensate": {"exec": f"echo undo-late >> {seen}"}},
            {"name": "last", "command": {"domain": "slow", "type": "x"}}]})
        process = start(pawl, "late-last")
        wait_status(pawl, process, "WAITING_FOR_REPLY")
        db.rows(f"update pawl.process set deadline = pawl.now() where id = pawl.process_number('{process}'); "
                f"update pawl.delayed set due = pawl.now() where id = pawl.process_number('{process}')")
        ended = wait_status(pawl, process, "COMPENSATED", "COMPLETED")
        assert ended["status"] == "COMPENSATED" and ended["error"] == "the deadline of the process has passed", ended
        assert lines(seen)[-1] == "undo-late"


@test
def a_process_that_is_canceled_ends_with_the_step_that_runs():
    """And not when its worker next extends the lease: no step that has not begun is begun."""
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        seen = os.path.join(folder, "seen")
        db.rows("""create schema demo; create table demo.ran (step text);
            create function demo.first(input jsonb, key uuid) returns jsonb language plpgsql as
              $$ begin perform pg_advisory_xact_lock_shared(77); insert into demo.ran values ('first'); return '1'; end $$;
            create function demo.second(input jsonb, key uuid) returns jsonb language plpgsql as
              $$ begin insert into demo.ran values ('second'); return '1'; end $$""")
        define(pawl, {"type": "exec", "domain": "guard", "steps": [
            {"name": "first", "exec": f"echo first >> {seen}; until test -e {folder}/go; do sleep 0.1; done"}, {"name": "second", "exec": f"echo second >> {seen}"}, {"name": "third", "set": {"a": 1}}]})
        define(pawl, {"type": "sql", "domain": "guard", "steps": [
            {"name": "first", "sql": "demo.first"}, {"name": "second", "sql": "demo.second"}, {"name": "third", "set": {"a": 1}}]})
        pawl.serve()
        with Session(db.url) as other:
            other.do("select pg_advisory_lock(77)")
            ids = [start(pawl, "exec"), start(pawl, "sql")]
            wait_until(lambda: lines(seen) and db.value("select count(*) from pg_locks where locktype = 'advisory' and objid = 77 and not granted") == "1",
                       what="both run their first step")
            for process_id in ids:
                assert cli(pawl, "cancel", process_id)["status"] == "CANCELING"
            open(f"{folder}/go", "w", encoding="utf-8").close()
        for process_id in ids:
            shown = wait_status(pawl, process_id, "CANCELED", "COMPLETED")
            assert shown["status"] == "CANCELED" and [s["name"] for s in shown["steps"]] == ["first"], shown
        assert lines(seen) == ["first"] and db.rows("select step from demo.ran") == ["first"]


@test
def a_step_that_has_ended_is_recorded_when_a_lock_is_released_and_not_run_again():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        seen = os.path.join(folder, "seen")
        define(pawl, {"type": "once", "domain": "guard", "steps": [
            {"name": "first", "exec": f"echo first >> {seen}; while ! test -e {folder}/go; do sleep 0.1; done", "retry": {"attempts": 1}}, {"name": "second", "set": {"a": 1}}]})
        pawl.serve()
        one = start(pawl, "once")
        wait_until(lambda: lines(seen), what="it runs")
        with Session(db.url) as other:
            other.do("begin")
            other.do("lock table pawl.process_step in share mode")
            open(f"{folder}/go", "w").close()
            waiting = ("select coalesce(max(query_start)::text, '') from pg_stat_activity"
                       " where wait_event_type = 'Lock' and query like '%process_write%' and pid <> pg_backend_pid()")
            first = wait_until(lambda: db.value(waiting), what="its record waits")
            wait_until(lambda: db.value(waiting) not in ("", first), what="it is tried again")
            other.do("rollback")
        assert wait_status(pawl, one, "COMPLETED")["status"] == "COMPLETED" and lines(seen) == ["first"], lines(seen)


@test
def workers_of_commands_do_not_take_processes():
    with Database() as db, Pawl(db) as pawl:
        process = db.value("select pawl.start('x', p_domain => 'guard')")
        done = pawl.run("work", "process:guard", "--noop", "--drain")
        assert done.code == 2 and "has processes" in done.stderr, done
        assert db.value(f"select pawl.process_status(pawl.process_number('{process}'))") == "PENDING"


# --- steps ---

@test
def a_fail_step_ends_the_process_with_its_reason_and_has_it_compensated():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        seen = os.path.join(folder, "seen")
        steps = [{"name": "pay", "exec": f"echo paid >> {seen}; echo 1"},
                 {"name": "check", "when": "state.ok", "then": "ship", "else": "no"},
                 {"name": "no", "fail": "not approved: {{state.why}}"},
                 {"name": "ship", "set": {"shipped": True}}]
        define(pawl, {"type": "plain", "domain": "guard", "steps": steps})
        ended = wait_status(pawl, start(pawl, "plain", {"why": "too dear"}), "FAILED", "WAITING_FOR_TSQ", "COMPLETED")
        assert ended["status"] == "FAILED" and ended["error"] == "step no: not approved: too dear" and ended["step"] == "no", ended
        assert wait_status(pawl, start(pawl, "plain", {"ok": True}), "FAILED", "COMPLETED")["status"] == "COMPLETED"
        steps[0]["compensate"] = {"exec": f"echo refunded >> {seen}"}
        define(pawl, {"type": "undone", "domain": "guard", "steps": steps})
        process = start(pawl, "undone", {"why": "late"})
        ended = wait_status(pawl, process, "COMPENSATED", "FAILED", "WAITING_FOR_TSQ")
        assert ended["status"] == "COMPENSATED" and ended["error"] == "step no: not approved: late", ended
        assert lines(seen)[-2:] == ["paid", "refunded"]
        # The timeline says when the compensation began, and how the process ended.
        events = [event["event"] for event in ended["audit"]]
        assert events[-1] == "COMPENSATED" and events.index("COMPENSATING") < events.index("COMPENSATION"), events
        printed = pawl.run("process", "show", process).stdout
        assert "COMPENSATING" in printed and "COMPENSATED" in printed.splitlines()[-1], printed
        # Nothing comes behind it.
        done = pawl.run("process", "define", "-", stdin=json.dumps({"type": "x", "domain": "guard", "steps": [{"name": "no", "fail": "x"}, {"name": "b", "set": {"b": 1}}]}))
        assert done.code != 0 and "cannot be reached" in done.stderr, done


@test
def what_can_be_known_of_a_file_or_a_start_is_refused_at_once():
    with Database() as db, Pawl(db) as pawl:
        for sleep, word in (({"for": "5"}, 'for must be a duration'), ({"until": "tomorrow"}, 'until must be a time'), ({"for": "9999d"}, "up to 3650d")):
            done = pawl.run("process", "define", "-", "--check", stdin=json.dumps({"type": "x", "domain": "guard", "steps": [{"name": "r", "sleep": sleep}]}))
            assert done.code == 1 and word in done.stderr and "steps[0].sleep" in done.stderr, done
        done = pawl.run("process", "define", "-", "--check", stdin=json.dumps({"type": "x", "domain": "guard", "steps": [
            {"name": "r", "sleep": {"for": "5s"}}, {"name": "u", "sleep": {"until": "2026-11-20T18:00:00Z"}}]}))
        assert done.code == 0, done
        done = pawl.run("process", "start", "x", "--domain", "process:guard")
        assert done.code == 2 and 'give "guard"' in done.stderr, done
        assert 'give "guard"' in refusal(db, "perform pawl.start('x', p_domain => 'process:guard')")


@test
def a_sleep_takes_its_length_from_the_state_and_a_wrong_one_can_be_mended():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        define(pawl, {"type": "rest", "domain": "guard", "on_failure": "troubleshoot", "steps": [{"name": "rest", "sleep": {"for": "{{state.n}}ms"}}]})
        wait_status(pawl, start(pawl, "rest", {"n": 20}), "COMPLETED")
        process = start(pawl, "rest", {"n": "soon"})
        stuck = wait_status(pawl, process, "WAITING_FOR_TSQ")
        assert stuck["error"].startswith('step rest: "soonms" is not a duration') and stuck["step"] == "rest", stuck
        assert [row["process_id"] for row in cli(pawl, "list", "--step", "rest", "--status", "WAITING_FOR_TSQ")] == [process]
        cli(pawl, "signal", process, "mend", '{"n": 5}')
        cli(pawl, "retry", process)
        wait_status(pawl, process, "COMPLETED")
        for wrong, words in (({"for": "1s", "until": "x"}, "exactly one of for and until"), ({}, "exactly one of for and until")):
            done = pawl.run("process", "define", "-", stdin=json.dumps({"type": "x", "domain": "guard", "steps": [{"name": "r", "sleep": wrong}]}))
            assert done.code != 0 and words in done.stderr, done


class Busy(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.seen.append(time.time())
        self.send_response(429)
        self.send_header("Retry-After", "3600")
        self.end_headers()

    def log_message(self, *_):
        pass


@test
def a_retry_after_is_kept_with_the_attempt():
    with Database() as db, http.server.HTTPServer(("127.0.0.1", 0), Busy) as server, \
            Pawl(db, env={"PAWL_STEP_HOSTS": f"127.0.0.1:{server.server_port}"}) as pawl:
        server.seen = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        pawl.serve()
        define(pawl, {"type": "call", "domain": "guard", "steps": [{"name": "call", "http": {"method": "GET", "url": f"http://127.0.0.1:{server.server_port}/"}}]})
        process = start(pawl, "call")
        waiting = wait_status(pawl, process, "WAITING_FOR_RETRY", "WAITING_FOR_TSQ")
        assert waiting["status"] == "WAITING_FOR_RETRY" and "Retry-After 3600 s" in waiting["steps"][0]["error"], waiting
        # A response resumes it, and the attempt is not made sooner for that.
        define(pawl, {"type": "both", "domain": "guard", "steps": [{"name": "both", "parallel": {
            "a": [{"name": "call2", "http": {"method": "GET", "url": f"http://127.0.0.1:{server.server_port}/"}}],
            "b": [{"name": "w", "wait": {"response": "go"}}, {"name": "w2", "wait": {"response": "stop"}}]}}]})
        process = start(pawl, "both")
        wait_until(lambda: len(server.seen) == 2 and show(pawl, process)["status"] == "WAITING_FOR_ASYNC", what="it waits")
        assert cli(pawl, "signal", process, "go")["verdict"] == "RESUMED"
        wait_until(lambda: [s["name"] for s in show(pawl, process)["steps"]].count("w") == 1, what="it went on")
        wait_status(pawl, process, "WAITING_FOR_ASYNC")
        due = db.value(f"select extract(epoch from due - clock_timestamp()) > 3000 from pawl.delayed where id = pawl.process_number('{process}')")
        assert due == "t" and len(server.seen) == 2, (due, server.seen)
        server.shutdown()


# --- many domains and types ---

def threads(pod):
    return len(os.listdir(f"/proc/{pod.pid}/task"))


@test
def a_pod_runs_processes_of_a_hundred_domains_and_of_types_that_are_added():
    with Database() as db, Pawl(db) as pawl:
        pod = pawl.serve()
        before = threads(pod)
        for i in range(100):
            source = json.dumps({"type": "x", "domain": f"d{i}", "steps": [{"name": "a", "set": {"a": 1}}]})
            db.rows(f"select pawl.process_define('d{i}', 'x', $q${source}$q$, null, null, 'test')")
        ids = [db.value(f"select pawl.start('x', p_domain => 'd{i}')") for i in range(100)]
        wait_until(lambda: db.value("select count(*) from pawl.outcome where status = 'COMPLETED'") == "100", what="all have ended")
        assert pod.is_running() and len(set(ids)) == 100
        assert threads(pod) <= before + 100 * 4, (before, threads(pod))
        # A worker is replaced whenever its domain gets a type; the one before does not stay.
        for i in range(5):
            source = json.dumps({"type": f"t{i}", "domain": "grows", "steps": [{"name": "a", "set": {"a": 1}}]})
            db.rows(f"select pawl.process_define('grows', 't{i}', $q${source}$q$, null, null, 'test')")
            db.rows(f"select pawl.start('t{i}', p_domain => 'grows')")
            wait_until(lambda n=101 + i: db.value("select count(*) from pawl.outcome") == str(n), what=f"type {i} runs")
        assert pod.is_running()
        wait_until(lambda: threads(pod) <= before + 102 * 4, what="replaced workers have ended")
        assert pawl.stop() == 0


@test
def outputs_and_conditions_are_shown_as_they_were_written():
    """A program that prints no JSON has its text as its result; a wait for a condition shows it; a repeated decision that differs says in what it may."""
    with Database() as db, Pawl(db) as pawl:
        define(pawl, {"type": "vote", "domain": "t", "steps": [
            {"name": "say", "exec": "echo 'hello \"you\"'; echo", "save": {"said": "{{result}}"}}, {"name": "none", "exec": "echo"},
            {"name": "json", "exec": "echo '{\"a\": 1}'"}, {"name": "long", "exec": "head -c 20000 /dev/zero | tr '\\0' x"},
            {"name": "both", "parallel": {"votes": [{"name": "votes", "wait": {"until": "state.votes >= 2"}}]}}]})
        pawl.serve()
        vote = cli(pawl, "start", "vote", "{}", "--domain", "t")["process_id"]
        shown = wait_status(pawl, vote, "WAITING_FOR_ASYNC")
        results = {step["name"]: step["result"] for step in shown["steps"]}
        assert results == {"say": 'hello "you"', "none": None, "json": {"a": 1}, "long": "x" * 8192}, results
        assert shown["state"] == {"said": 'hello "you"'} and shown["condition"] == "state.votes >= 2", shown
        text = pawl.run("process", "show", vote).stdout
        assert "waits for    state.votes >= 2\n" in text, text
        assert pawl.run("process", "cancel", vote, "--reason", "x").code == 0
        again = pawl.run("process", "cancel", vote)
        assert again.code == 1 and "was decided already: cancel by" in again.stderr and "the same decision, operator, reason and result" in again.stderr, again


@test
def the_answer_to_a_decision_that_came_too_late_names_the_present_status():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        repaired = os.path.join(folder, "repaired")
        pawl.serve()
        define(pawl, {"type": "late", "domain": "guard", "on_failure": "troubleshoot", "steps": [
            {"name": "a", "exec": f"test -e {repaired} || exit 70"}, {"name": "go", "wait": {"response": "go"}}]})
        process = start(pawl, "late")
        wait_status(pawl, process, "WAITING_FOR_TSQ")
        with open(repaired, "w", encoding="utf-8"):
            pass
        cli(pawl, "retry", process)
        wait_status(pawl, process, "WAITING_FOR_ASYNC")
        for decision in (["complete", process], ["retry", process, "--from", "go"]):
            done = pawl.run("process", *decision)
            assert done.code == 1 and f"{process} is not in the troubleshooting queue: it is WAITING_FOR_ASYNC, after a retry by" in done.stderr, done
        answer = pawl.http("POST", f"/v1/processes/{process}/complete", {}, token=pawl.TOKEN)
        assert answer.status == 409 and "it is WAITING_FOR_ASYNC" in answer.json["detail"], answer
        cli(pawl, "signal", process, "go", "{}")
        wait_status(pawl, process, "COMPLETED")
        again = pawl.run("process", "retry", process)
        assert again.code == 0 and again.stdout == f"{process} COMPLETED\n" and "decided already: retry by" in again.stderr, again
        assert cli(pawl, "retry", process)["status"] == "COMPLETED"
        process = start(pawl, "late")
        wait_status(pawl, process, "WAITING_FOR_ASYNC")
        done = pawl.run("process", "retry", process)
        assert done.code == 1 and "is not in the troubleshooting queue: it is WAITING_FOR_ASYNC\n" in done.stderr, done


@test
def a_process_whose_compensation_failed_says_what_an_operator_may_do():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        define(pawl, {"type": "stuck", "domain": "guard", "steps": [
            {"name": "a", "exec": "true", "compensate": {"exec": "exit 70"}}, {"name": "b", "exec": "exit 70"}]})
        process = start(pawl, "stuck")
        wait_status(pawl, process, "WAITING_FOR_TSQ")
        done = pawl.run("process", "retry", process, "--from", "b")
        assert done.code == 1 and "has a compensation that failed, so it cannot go back to a step" in done.stderr, done
        assert "a cancel skips those that are left" in done.stderr, done
        assert cli(pawl, "cancel", process)["status"] == "CANCELED"


@test
def a_program_that_cannot_be_started_is_postponed():
    """As when no process can be forked: it costs no attempt, and is not claimed again at once."""
    with Database() as db, Pawl(db, env={"PAWL_FAULT": "bus.exec.spawn:fail:3"}) as pawl:
        pawl.serve()
        process, shown = run(pawl, {"type": "busy", "on_failure": "fail", "steps": [{"name": "a", "exec": "echo 1", "retry": {"attempts": 1}}]}, "COMPLETED", "FAILED")
        assert shown["status"] == "COMPLETED", shown
        events = [(e["event"], (e["details"] or {}).get("delay_ms")) for e in shown["audit"]]
        assert events.count(("RETRY_SCHEDULED", 1000)) == 3, events


@test
def a_domain_runs_as_many_at_once_however_many_types_are_defined():
    with Database() as db, Pawl(db, env={"PAWL_PROCESS_CONCURRENCY": "2"}) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        began, gate = os.path.join(folder, "began"), os.path.join(folder, "open")
        long = {"name": "a", "exec": f"echo $PAWL_COMMAND_ID >> {began}; until test -e {gate}; do sleep 0.1; done; echo 1"}
        started = []
        for number in range(3):
            define(pawl, {"domain": "guard", "type": f"long{number}", "steps": [long]})
            started += [start(pawl, f"long{number}") for _ in range(2)]
            wait_until(lambda: len(lines(began)) >= 2, what="two run")
            # Of another domain, defined later: the pod has seen all types before it.
            run(pawl, {"domain": f"later{number}", "type": "short", "steps": [{"name": "s", "set": {"a": 1}}]}, "COMPLETED")
            assert len(lines(began)) == 2, lines(began)
        open(gate, "w").close()
        for process in started:
            wait_status(pawl, process, "COMPLETED")
        assert len(set(lines(began))) == len(lines(began)) == 6, lines(began)


main()
