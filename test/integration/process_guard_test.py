#!/usr/bin/env python3
"""process_guard - what users define, return and decide does not break a process, its neighbours or its pod. The pods run with default settings."""
import json
import os
import tempfile

from pawl_test import Database, Pawl, main, test, wait_until
from process_helpers import cli, define, show, wait_status

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
        wait_until(lambda: db.value("select count(*) from pawl.outcome where status = 'COMPLETED'") == "100", timeout=120, what="all have ended")
        assert pod.is_running() and len(set(ids)) == 100
        assert threads(pod) <= before + 100 * 4, (before, threads(pod))
        # A worker is replaced whenever its domain gets a type; the one before does not stay.
        for i in range(5):
            source = json.dumps({"type": f"t{i}", "domain": "grows", "steps": [{"name": "a", "set": {"a": 1}}]})
            db.rows(f"select pawl.process_define('grows', 't{i}', $q${source}$q$, null, null, 'test')")
            db.rows(f"select pawl.start('t{i}', p_domain => 'grows')")
            wait_until(lambda n=101 + i: db.value("select count(*) from pawl.outcome") == str(n), timeout=60, what=f"type {i} runs")
        assert pod.is_running()
        wait_until(lambda: threads(pod) <= before + 102 * 4, timeout=60, what="replaced workers have ended")
        assert pawl.stop() == 0


main()
