#!/usr/bin/env python3
"""progress - what programs, workers over HTTP and steps report while they run: operators see it, and the next attempt is given it."""
import json
import os
import signal

from bus_commands import send, show
from pawl_test import Database, Pawl, main, test, wait_until

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
