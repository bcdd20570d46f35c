#!/usr/bin/env python3
"""progress - what programs, workers over HTTP and steps report while they run: operators see it, and the next attempt is given it."""
import json
import os
import signal

from bus_commands import new_id, send, show
from pawl_test import Database, Pawl, main, test, wait_until
from process_cli import define, start, wait_status
from process_cli import show as process_show
from process_worker import module_worker
from process_worker import show as process_over_http

REPORTS = """echo 'pawl: {"percent": 40, "text": "page 4 of 10"}' >&$PAWL_PROGRESS_FD"""


def without_time(progress):
    return {name: value for name, value in progress.items() if name != "at"}


def reported(pawl, command_id):
    return wait_until(lambda: show(pawl, command_id)["progress"], what="progress is shown")


@test
def progress_survives_the_kill_of_its_worker_and_is_given_to_the_next_attempt():
    with Database() as db, Pawl(db) as pawl:
        command = send(pawl, "shop", "print", {"pages": 10})
        assert show(pawl, command)["progress"] is None
        first = pawl.start("work", "shop", "--exec", REPORTS + "; exec sleep 600", "--lease", "1s")
        progress = reported(pawl, command)
        assert without_time(progress) == {"step": None, "attempt": 1, "percent": 40, "text": "page 4 of 10"}, progress
        shown = pawl.run("command", "show", command).stdout
        assert "40 %, page 4 of 10 (attempt 1, " in shown, shown
        first.send(signal.SIGKILL)
        first.wait()
        file = os.path.join(pawl.home, "given")
        second = pawl.start("work", "shop", "--exec", f"printf %s \"$PAWL_PROGRESS\" > '{file}'; echo '7'", "--drain")
        assert second.wait() == 0, second.stderr
        with open(file, encoding="utf-8") as given:
            assert json.load(given) == progress
        ended = show(pawl, command)
        assert (ended["status"], ended["result"], ended["attempts"]) == ("COMPLETED", 7, 2)
        assert ended["progress"] == progress, "as of the attempt before, which is the last one that reported"


@test
def program_that_fails_leaves_its_last_progress_to_the_next_attempt():
    with Database() as db, Pawl(db) as pawl:
        pawl.run("policy", "set", "shop", "0s")
        command = send(pawl, "shop", "print", {})
        # No time passes between its report and its end.
        program = f"""[ "$PAWL_PROGRESS" ] && exec echo "$PAWL_PROGRESS"; {REPORTS}; exit 75"""
        done = pawl.run("work", "shop", "--exec", program, "--drain")
        assert done.code == 0, done.stderr
        ended = show(pawl, command)
        assert ended["attempts"] == 2 and without_time(ended["result"]) == {
            "step": None, "attempt": 1, "percent": 40, "text": "page 4 of 10"}, ended


def post(pawl, path, body, status=200):
    answer = pawl.http("POST", path, body)
    assert answer.status == status, answer
    return answer.json


def claim(pawl, path, **body):
    item, = post(pawl, path + "/claim", {"wait_s": 30, **body})["items"]
    return item


REFUSED = [({"percent": 101}, "items[1].percent must be"), ({"percent": -1}, "items[1].percent must be"),
           ({"percent": 1.5}, "items[1].percent must be"), ({"percent": "1"}, "items[1].percent must be"),
           ({"text": 7}, "items[1].text must be"), ({"text": ""}, "items[1]: text must have 1 to 200 characters, got 0"),
           ({"text": "\u00e4" * 201}, "items[1]: text must have 1 to 200 characters, got 201"),
           ({"text": "a\0"}, "u0000"), ({}, "items[1]: percent or text must be given"), ({"percentage": 1}, "percentage")]


def refused(db, pawl, path, item):
    """Whatever is wrong with one item, nothing of the request is written."""
    before = db.rows("select * from pawl.progress")
    for change, words in REFUSED:
        given = {"items": [{**item, "percent": 99}, {**item, **change}]}
        assert words in post(pawl, path, given, 400)["detail"], (change, words)
    assert db.rows("select * from pawl.progress") == before


@test
def workers_over_http_report_progress_and_are_given_it():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        command, domain = send(pawl, "shop", "print", {}), "/v1/domains/shop"
        first = claim(pawl, domain, lease_s=60)
        assert first["progress"] is None, first
        mine = {"command_id": command, "lease": first["lease"]}
        items = [{**mine, "percent": 40}, {**mine, "lease": first["lease"] - 1, "percent": 41}, {**mine, "command_id": new_id(), "text": "x"}]
        answer = post(pawl, domain + "/progress", {"items": items})
        assert [(i["reported"], i["verdict"]) for i in answer["items"]] == [(True, "reported"), (False, "lost"), (False, "lost")], answer
        post(pawl, domain + "/progress", {"items": [{**mine, "percent": 50, "text": "\u00e4" * 200}]})
        shown = pawl.http("GET", f"/v1/commands/{command}").json["progress"]
        assert without_time(shown) == {"step": None, "attempt": 1, "percent": 50, "text": "\u00e4" * 200}, shown
        refused(db, pawl, domain + "/progress", mine)
        db.rows("update pawl.lease set until = now() - interval '1 s'")
        second = claim(pawl, domain, lease_s=60)
        assert (second["attempt"], second["progress"]) == (2, shown), second
        # The first worker does not know yet that it has lost its lease.
        verdict, = post(pawl, domain + "/progress", {"items": [{**mine, "percent": 99}]})["items"]
        assert verdict["verdict"] == "lost" and show(pawl, command)["progress"] == shown


@test
def steps_over_http_report_progress_and_the_next_activation_is_given_it():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        process = post(pawl, "/v1/processes", {"type": "job", "domain": "shop"}, 201)["process_id"]
        domain = "/v1/process-domains/shop"
        first = claim(pawl, domain, types=["job"])
        assert first["progress"] is None, first
        mine = {"process_id": process, "lease": first["lease"], "step": "pack"}
        answer = post(pawl, domain + "/progress", {"items": [{**mine, "percent": 7, "text": "boxes"}, {**mine, "lease": 1, "percent": 1}]})
        assert [i["verdict"] for i in answer["items"]] == ["reported", "lost"], answer
        shown = pawl.http("GET", f"/v1/processes/{process}").json["progress"]
        assert without_time(shown) == {"step": "pack", "attempt": 1, "percent": 7, "text": "boxes"}, shown
        words = pawl.run("process", "show", process, "--domain", "shop").stdout
        assert "pack: 7 %, boxes (attempt 1, " in words, words
        refused(db, pawl, domain + "/progress", mine)
        post(pawl, domain + "/progress", {"items": [{"process_id": process, "lease": first["lease"], "percent": 1}]}, 400)
        db.rows("update pawl.lease set until = now() - interval '1 s'")
        second = claim(pawl, domain, types=["job"])
        assert second["progress"] == shown, second
        verdict, = post(pawl, domain + "/progress", {"items": [{**mine, "percent": 99}]})["items"]
        assert verdict["verdict"] == "lost"


@test
def exec_step_reports_progress_and_its_next_attempt_is_given_it():
    with Database() as db, Pawl(db) as pawl:
        file = os.path.join(pawl.home, "given")
        stay = f'[ "$PAWL_PROGRESS" ] || {{ {REPORTS}; exec sleep 600; }}; echo "$PAWL_PROGRESS"'
        define(pawl, {"type": "job", "domain": "edge", "steps": [
            {"name": "print", "exec": stay, "timeout": "20m"},
            {"name": "bind", "exec": f"printf %s \"${{PAWL_PROGRESS-none}}\" > '{file}'"}]})
        pod = pawl.serve()
        process = start(pawl, "job")
        progress = wait_until(lambda: process_show(pawl, process)["progress"], what="progress is shown")
        assert without_time(progress) == {"step": "print", "attempt": 1, "percent": 40, "text": "page 4 of 10"}, progress
        pod.send(signal.SIGKILL)
        pod.wait()
        db.rows("update pawl.lease set until = now() - interval '1 s'")
        pawl.serve()
        shown = wait_status(pawl, process, "COMPLETED")
        result, = [step["result"] for step in shown["steps"] if step["name"] == "print"]
        assert result == progress, shown
        with open(file, encoding="utf-8") as given:
            assert given.read() == "none", "that was another step"


@test
def step_in_python_reports_progress_and_its_next_attempt_is_given_it():
    given, seen = [], []

    def pack(run):
        def body(key):
            given.append(run.last_progress())
            if given[-1]:
                return "packed"
            run.progress(30, "boxes")
            wait_until(lambda: seen.append(process_over_http(pawl, run.id)["progress"]) or seen[-1], what="the heartbeat sends it")
            for percent, text in ((101, None), (1.5, None), (None, ""), (None, "x" * 201), (None, None)):
                try:
                    run.progress(percent, text)
                    raise AssertionError((percent, text))
                except ValueError:
                    pass
            run.progress(text="and labels")
            raise RuntimeError("no more labels")

        run.step("pack", body, delay=0)
        return run.step("other", lambda key: run.last_progress())

    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        process = post(pawl, "/v1/processes", {"type": "job", "domain": "shop"}, 201)["process_id"]
        worker = module_worker(pawl, "shop", {"job": pack})
        wait_until(lambda: worker.turn() or process_over_http(pawl, process)["status"] == "COMPLETED", what="it is complete")
        first = without_time(next(progress for progress in seen if progress))
        assert first == {"step": "pack", "attempt": 1, "percent": 30, "text": "boxes"}, seen
        ended = process_over_http(pawl, process)
        assert [s["verdict"] for s in ended["steps"] if s["name"] == "pack"] == ["failed", "done"] and ended["result"] is None, ended
        assert given[0] is None and given[-1]["text"] == "and labels" and given[-1]["percent"] is None, given


@test
def lines_that_are_no_progress_are_logged_once():
    with Database() as db, Pawl(db) as pawl:
        command = send(pawl, "shop", "print", {})
        done = pawl.run("work", "shop", "--exec", "for i in 1 2 3; do echo half way >&3; done", "--drain")
        assert done.code == 0 and show(pawl, command)["status"] == "COMPLETED"
        lines = [line for line in done.stderr.splitlines() if "no progress" in line]
        assert len(lines) == 1 and json.loads(lines[0])["lines"] == 3, done.stderr
        assert db.value("select count(*) from pawl.progress") == "0"


@test
def reports_of_a_worker_share_a_statement_and_no_report_costs_none():
    with Database() as db, Pawl(db) as pawl:
        db.rows(f"alter database {db.name} set track_functions = 'all'")
        calls = "select coalesce(sum(calls), 0) from pg_stat_user_functions where funcname = 'report_progress'"
        for n in range(20):
            send(pawl, "shop", "print", {"n": n})
        done = pawl.run("work", "shop", "--exec", "true", "--drain", "-j", "20")
        assert done.code == 0 and db.value("select count(*) from pawl.outcome") == "20", done.stderr
        assert db.value("select count(*) from pg_stat_user_functions where funcname = 'settle_items'") == "1"
        assert db.value(calls) == "0"
        for n in range(20):
            send(pawl, "shop", "print", {"n": n})
        stop = os.path.join(pawl.home, "stop")
        began = float(db.value("select extract(epoch from clock_timestamp())"))
        worker = pawl.start("work", "shop", "-j", "20", "--drain", "--exec",
                            f"while ! [ -e '{stop}' ]; do {REPORTS}; sleep 0.1; done")
        wait_until(lambda: db.value("select count(*) from pawl.progress") == "20", what="all have reported")
        since = db.value("select max(at) + interval '3 s' from pawl.progress")
        wait_until(lambda: db.value(f"select count(*) from pawl.progress where at > '{since}'") == "20", what="reports go on")
        with open(stop, "w", encoding="ascii"):
            pass
        assert worker.wait() == 0, worker.stderr
        seconds = float(db.value("select extract(epoch from clock_timestamp())")) - began
        made = int(db.value(calls))
        assert 1 <= made <= seconds + 1, f"{made} statements in {seconds} s"


main()
