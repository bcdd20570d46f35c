#!/usr/bin/env python3
"""process_result - what a step or a process returns is kept once, bounded, and shown as it was written. The pods run with default settings."""
import os
import tempfile

from pawl_test import Database, Pawl, main, test, wait_until
from process_cli import cli, define, lines, refusal, run, show, start, steps, wait_status


@test
def a_step_whose_result_cannot_be_saved_is_compensated_and_not_run_again():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        seen = os.path.join(folder, "seen")
        pay = {"name": "pay", "exec": f"echo paid >> {seen}; echo '{{}}'", "save": {"x": "{{result.id}}"},
               "compensate": {"exec": f"echo refunded >> {seen}; echo '{{}}'"}}
        _, ended = run(pawl, {"type": "saves", "on_failure": "compensate", "steps": [pay]}, "COMPENSATED", "FAILED", "WAITING_FOR_TSQ")
        assert ended["status"] == "COMPENSATED" and lines(seen) == ["paid", "refunded"], (ended, lines(seen))
        os.unlink(seen)
        process, stuck = run(pawl, {"type": "stays", "on_failure": "troubleshoot", "steps": [pay]}, "WAITING_FOR_TSQ")
        assert "pay" in stuck["error"] and lines(seen) == ["paid"], stuck
        cli(pawl, "retry", process)
        wait_until(lambda: db.value("select count(*) from pawl.tsq") == "1" and db.value(
            "select count(*) from pawl.audit where event = 'MOVED_TO_TSQ'") == "2", what="the step has failed again")
        assert lines(seen) == ["paid"], lines(seen)
        cli(pawl, "cancel", process, "--compensate")
        wait_status(pawl, process, "COMPENSATED")
        assert lines(seen) == ["paid", "refunded"], lines(seen)


@test
def a_state_that_would_grow_too_large_fails_the_step_that_has_happened():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        seen = os.path.join(folder, "seen")
        big = {"name": "big", "exec": f"echo done >> {seen}; printf '\"'; head -c 600000 /dev/zero | tr '\\0' a; printf '\"'",
               "save": {"x": "{{result}}"}, "compensate": {"exec": f"echo undone >> {seen}; echo '{{}}'"}}
        _, ended = run(pawl, {"type": "grows", "on_failure": "compensate", "steps": [big]}, "COMPENSATED", "FAILED", "WAITING_FOR_TSQ",
                       state={"text": "b" * 600000})
        assert ended["status"] == "COMPENSATED" and "1048576 bytes" in ended["error"], ended["error"]
        assert lines(seen) == ["done", "undone"], lines(seen)


@test
def a_last_step_whose_result_cannot_be_stored_is_compensated_and_not_run_again():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        seen = os.path.join(folder, "seen")
        for on_failure, status in (("compensate", "COMPENSATED"), ("troubleshoot", "WAITING_FOR_TSQ")):
            define(pawl, {"type": on_failure, "domain": "edge", "on_failure": on_failure, "steps": [
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
        define(pawl, {"type": "result", "domain": "edge", "on_failure": "compensate", "steps": [
            {"name": "pay", "exec": f"echo paid result >> {seen}; echo 1", "compensate": {"exec": f"echo refunded result >> {seen}"}}],
            "result": {"n": "{{state.n}}" * 20}})
        process = start(pawl, "result", {"n": "x" * 1000000})
        assert wait_status(pawl, process, "COMPENSATED", "WAITING_FOR_TSQ", "COMPLETED")["status"] == "COMPENSATED"
        assert lines(seen)[-2:] == ["paid result", "refunded result"], lines(seen)


NUMBERS = "printf '['; for i in $(seq 8999); do printf 1e131071,; done; printf '1e131071]'"


@test
def numbers_of_results_are_measured_as_they_are_written_out():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        seen = os.path.join(folder, "seen")
        define(pawl, {"type": "huge", "domain": "edge", "on_failure": "compensate", "steps": [
            {"name": "pay", "exec": NUMBERS, "compensate": {"exec": f"echo refunded >> {seen}"}},
            {"name": "w", "wait": {"response": "go"}}, {"name": "z", "set": {"z": 1}}]})
        process = start(pawl, "huge")
        ended = wait_status(pawl, process, "COMPENSATED", "WAITING_FOR_TSQ", "WAITING_FOR_ASYNC")
        assert ended["status"] == "COMPENSATED" and "16777216 bytes" in ended["error"], ended["status"]
        assert lines(seen) == ["refunded"]
        assert "results must have at most 16777216 bytes" in refusal(db, """perform pawl.process_write(array[1::bigint], array[1::bigint], '{"{\\"step\\": \\"s\\"}"}',
            array[('[' || repeat('1e131071,', 8999) || '1e131071]')::jsonb], null, null, null, null, null, null, null, null, null, null, null, null)""")
        # One that an earlier version has stored can be shown, loaded and compensated.
        define(pawl, {"type": "old", "domain": "edge", "on_failure": "compensate", "steps": [
            {"name": "pay", "exec": "echo 1", "compensate": {"exec": f"echo old >> {seen}"}}, {"name": "w", "wait": {"response": "go"}}]})
        process = start(pawl, "old")
        wait_status(pawl, process, "WAITING_FOR_ASYNC")
        db.rows("update pawl.process_step set result = ('[' || repeat('1e131071,', 8999) || '1e131071]')::jsonb "
                f"where id = pawl.process_number('{process}') and step = 'pay'")
        assert [s["result"].get("truncated") for s in show(pawl, process)["steps"]] == [True]
        cli(pawl, "cancel", process, "--compensate")
        wait_status(pawl, process, "COMPENSATED")
        assert lines(seen) == ["refunded", "old"]


@test
def a_deeply_nested_response_or_result_does_not_stop_the_process():
    deep = "[" * 64 + "]" * 64
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        db.rows("""create schema edge; grant usage on schema edge to public;
                   create function edge.deep (input jsonb, key uuid) returns jsonb language sql
                   as $$ select (repeat('[', 200) || repeat(']', 200))::jsonb $$""")
        steps_ = [{"name": "w", "wait": {"response": "ping"}}, {"name": "d", "sql": "edge.deep"}, {"name": "v", "wait": {"response": "go"}}]
        process, _ = run(pawl, {"type": "deep", "steps": steps_}, "WAITING_FOR_ASYNC")
        cli(pawl, "signal", process, "ping", deep)
        wait_until(lambda: db.value("select count(*) from pawl.process_step where step = 'd'") == "1", what="the function has run")
        db.rows(f"select pawl.signal('{process}', 'go')")
        wait_status(pawl, process, "COMPLETED")
        assert pawl.run("process", "show", process).code == 0


@test
def a_result_that_cannot_be_rendered_follows_on_failure():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        seen = os.path.join(folder, "seen")
        pay = {"name": "pay", "exec": f"echo paid >> {seen}; echo 1", "compensate": {"exec": f"echo back >> {seen}; echo 1"}}
        _, ended = run(pawl, {"type": "ends", "on_failure": "compensate", "steps": [pay], "result": {"x": "{{state.missing}}"}},
                       "COMPENSATED", "WAITING_FOR_TSQ")
        assert ended["status"] == "COMPENSATED" and ended["error"].startswith("result: "), ended
        assert lines(seen) == ["paid", "back"], lines(seen)


# --- what is shown ---

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
def results_are_not_in_the_audit_after_a_retry_from_a_step():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        two = [{"name": "a", "exec": "echo '\"s3cr3t\"'"}, {"name": "b", "exec": "exit 70"}]
        process, _ = run(pawl, {"type": "hides", "on_failure": "troubleshoot", "steps": two}, "WAITING_FOR_TSQ")
        cli(pawl, "retry", process, "--from", "a")
        wait_until(lambda: len(steps(pawl, process, "b")) == 1 and show(pawl, process)["status"] == "WAITING_FOR_TSQ", what="it failed again")
        assert db.value("select count(*) from pawl.event where details ? 'deleted'") == "1"
        assert db.value("select count(*) from pawl.event where details::text like '%s3cr3t%'") == "0"


@test
def a_process_with_large_results_can_be_shown():
    with Database() as db, Pawl(db) as pawl:
        pod = pawl.serve()
        process, _ = run(pawl, {"type": "large", "steps": [{"name": "w", "wait": {"response": "go"}}]}, "WAITING_FOR_ASYNC")
        db.rows(f"""insert into pawl.process_step (id, step, attempt, result, started_at, ended_at)
                    select c.id, 'n' || n, 1, to_jsonb(repeat('a', 1000000)), now(), now() + n * interval '1 s'
                    from pawl.command c, generate_series(1, 20) n where c.command_id = '{process}'""")
        shown = {step["name"]: step["result"] for step in show(pawl, process)["steps"]}
        assert len(shown["n20"]) == 1000000 and len(shown["n1"]) < 300 and shown["n1"].endswith("..."), {n: len(r or "") for n, r in shown.items()}
        assert pod.http("GET", f"/v1/processes/{process}", token=pawl.TOKEN).status == 200
        assert pawl.run("process", "show", process).code == 0


main()
