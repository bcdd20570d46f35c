#!/usr/bin/env python3
"""process_decision - each decision about a process, and its deadline, has one defined result. The pods run with default settings."""
import json
import os
import tempfile

from pawl_test import Database, Pawl, main, test, wait_until
from process_cli import cli, define, lines, run, show, start, wait_status
from servers import Session


# --- cancellations ---

@test
def a_process_that_is_being_compensated_cannot_be_canceled_without_it():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        seen, repaired = os.path.join(folder, "seen"), os.path.join(folder, "repaired")
        define(pawl, {"type": "undo", "domain": "edge", "on_failure": "compensate", "steps": [
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
        define(pawl, {"type": "waits", "domain": "edge", "steps": [
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
            define(pawl, {"type": "last-" + kind, "domain": "edge", "on_failure": "compensate", "steps": [
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
        define(pawl, {"type": "late", "domain": "edge", "deadline": "2s", "on_deadline": "fail", "steps": [{"name": "long", "exec": "sleep 1000", "retry": {"attempts": 1}}]})
        process = start(pawl, "late")
        ended = wait_status(pawl, process, "FAILED", "COMPLETED", "WAITING_FOR_TSQ")
        # The second one: on a slow machine it has passed before the program began.
        assert ended["status"] == "FAILED" and ("program ran longer than" in ended["error"] or "deadline of the process" in ended["error"]), ended
        define(pawl, {"type": "late-last", "domain": "edge", "deadline": "1h", "on_deadline": "compensate", "steps": [
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
        define(pawl, {"type": "exec", "domain": "edge", "steps": [
            {"name": "first", "exec": f"echo first >> {seen}; until test -e {folder}/go; do sleep 0.1; done"}, {"name": "second", "exec": f"echo second >> {seen}"}, {"name": "third", "set": {"a": 1}}]})
        define(pawl, {"type": "sql", "domain": "edge", "steps": [
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


# --- compensations that failed ---

@test
def a_compensation_that_failed_is_named_and_a_retry_from_a_step_does_not_drop_it():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        seen, repaired = os.path.join(folder, "seen"), os.path.join(folder, "repaired")
        definition = {"type": "undo", "on_failure": "compensate", "steps": [
            {"name": "a", "exec": f"echo a >> {seen}; echo '{{}}'",
             "compensate": {"exec": f"test -e {repaired} || exit 70; echo undo-a >> {seen}; echo '{{}}'"}},
            {"name": "b", "exec": "exit 70"}]}
        process, stuck = run(pawl, definition, "WAITING_FOR_TSQ")
        assert stuck["error"].startswith("step ~a: "), stuck["error"]
        refused = cli(pawl, "retry", process, "--from", "a", code=1)
        assert "compensat" in json.dumps(refused), refused
        with open(repaired, "w", encoding="utf-8"):
            pass
        cli(pawl, "retry", process)
        ended = wait_status(pawl, process, "COMPENSATED", "WAITING_FOR_TSQ")
        assert ended["status"] == "COMPENSATED" and ended["error"].startswith("step b: "), ended
        assert lines(seen) == ["a", "undo-a"], lines(seen)


@test
def a_process_whose_compensation_failed_says_what_an_operator_may_do():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        define(pawl, {"type": "stuck", "domain": "edge", "steps": [
            {"name": "a", "exec": "true", "compensate": {"exec": "exit 70"}}, {"name": "b", "exec": "exit 70"}]})
        process = start(pawl, "stuck")
        wait_status(pawl, process, "WAITING_FOR_TSQ")
        done = pawl.run("process", "retry", process, "--from", "b")
        assert done.code == 1 and "has a compensation that failed, so it cannot go back to a step" in done.stderr, done
        assert "a cancel skips those that are left" in done.stderr, done
        assert cli(pawl, "cancel", process)["status"] == "CANCELED"


# --- decisions that come late or meet several ---

@test
def the_answer_to_a_decision_that_came_too_late_names_the_present_status():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        repaired = os.path.join(folder, "repaired")
        pawl.serve()
        define(pawl, {"type": "late", "domain": "edge", "on_failure": "troubleshoot", "steps": [
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
def a_process_tried_again_after_its_deadline_is_not_activated_over_and_over():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        wait = {"name": "w", "wait": {"response": "go"}}
        process, _ = run(pawl, {"type": "late", "deadline": "2s", "on_deadline": "troubleshoot", "steps": [wait]}, "WAITING_FOR_TSQ")
        cli(pawl, "retry", process)
        wait_status(pawl, process, "WAITING_FOR_ASYNC")
        assert db.value("select due > now() + interval '1 year' from pawl.delayed") == "t"
        cli(pawl, "signal", process, "go")
        wait_status(pawl, process, "COMPLETED")


@test
def one_ambiguous_id_does_not_stop_a_decision_about_others():
    with Database() as db, Pawl(db) as pawl:
        twin, other, third = (f"00000000-0000-4000-8000-00000000000{n}" for n in (1, 2, 3))
        db.rows(f"""select pawl.start('t', '{{}}', '{twin}', 'a'), pawl.start('t', '{{}}', '{twin}', 'b'),
                           pawl.start('t', '{{}}', '{other}', 'a'), pawl.start('t', '{{}}', '{third}', 'a')""")
        db.rows(f"""insert into pawl.process_step (id, step, attempt, started_at, ended_at)
                    select c.id, 'begun', 1, now(), now() from pawl.command c where c.command_id = '{other}'""")
        ids = f"array['{twin}', '{other}']::uuid[]"
        assert db.rows(f"select verdict from pawl.process_retry({ids}) order by ord") == ["AMBIGUOUS", "NOT_IN_TSQ"]
        assert db.rows(f"select verdict from pawl.process_compensate({ids}) order by ord") == ["AMBIGUOUS", "CANCELING"]
        ids = f"array['{twin}', '{other}', '{third}']::uuid[]"
        assert db.rows(f"select verdict from pawl.command_cancel({ids}, pawl.process_domains({ids}, null)) order by ord") == [
            "AMBIGUOUS", "COMPENSATING", "CANCELED"]
        for verb in ("cancel", "retry"):
            assert "process:a, process:b" in json.dumps(cli(pawl, verb, twin, code=1))


main()
