#!/usr/bin/env python3
"""process_define - definition files are checked and drawn without a database, and SQL checks what it stores."""
import json
import os
import re

from pawl_test import Database, Pawl, main, setting, test, wait_until
from process_cli import cli, define, refusal, start, wait_status
from servers import Session

ORDER = os.path.join(setting("PAWL_SOURCE"), "examples", "order-saga", "order.json")
# Nothing listens there: a command that asks the database fails.
NOWHERE = {"PAWL_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"}


def define_files(pawl, *arguments, **options):
    return pawl.run("process", "define", *arguments, **options)


@test
def check_accepts_the_example_without_a_database():
    with Pawl(env=NOWHERE) as pawl:
        done = define_files(pawl, ORDER, "--check")
        assert (done.code, done.stdout, done.stderr) == (0, "shop order is valid: 14 steps, 5 compensations\n", ""), done
        with open(ORDER, encoding="utf-8") as file:
            piped = define_files(pawl, "-", "--check", "--json", stdin=file.read())
        assert json.loads(piped.stdout) == {"domain": "shop", "type": "order", "steps": 14, "compensations": 5}, piped


@test
def check_refuses_with_the_place_in_the_file():
    with Pawl(env=NOWHERE) as pawl:
        path = os.path.join(pawl.home, "bad.json")
        with open(ORDER, encoding="utf-8") as file:
            text = file.read()
        for old, new, words in [
                ('"then": "approval"', '"then": "approvel"', ":33:15: steps[2].then: no step is named \"approvel\", did you mean"),
                ('{{steps.address.to}}', '{{steps.ship.to}}', ":78:59: steps[6].parallel.label[1].input.to: step \"ship\" comes later"),
                ('"sql": "shop.ship"', '"sqll": "shop.ship"', ":86:7: steps[7].sqll: unknown field \"sqll\", did you mean \"sql\"?"),
                ('"deadline": "2d"', '"deadline": "2d",,', ":4:20: not valid JSON: expected a name in double quotes, found ','")]:
            assert text.count(old) == 1, old
            with open(path, "w", encoding="utf-8") as file:
                file.write(text.replace(old, new))
            done = define_files(pawl, path, "--check")
            assert (done.code, done.stdout) == (1, "") and f"pawl: {path}{words}" in done.stderr, done
            problem = json.loads(define_files(pawl, path, "--diagram", "--json").stderr)
            assert problem["detail"].startswith(f"{path}{words}") and problem["exit"] == 1, problem
        done = define_files(pawl, "-", "--check", stdin="[]")
        assert done.code == 1 and done.stderr == "pawl: standard input:1:1: must be an object, got an array\n", done
        done = define_files(pawl, "-", "--check", stdin=" " * (1 << 20) + "{}")
        assert done.code == 1 and "at most 1048576 are allowed" in done.stderr, done


@test
def files_that_cannot_be_read_are_wrong_usage():
    with Pawl(env=NOWHERE) as pawl:
        for path, words in [(os.path.join(pawl.home, "none.json"), "No such file"), (pawl.home, "Is a directory")]:
            done = define_files(pawl, path, "--check")
            assert done.code == 2 and f'FILE "{path}" cannot be read: {words}' in done.stderr, done


@test
def diagram_draws_the_example():
    with Pawl(env=NOWHERE) as pawl:
        done = define_files(pawl, ORDER, "--diagram")
        lines = done.stdout.splitlines()
        assert done.code == 0 and done.stderr == "" and lines[0] == "flowchart TD", done
        assert "    s0 -.->|compensate| c0" in lines and '    s0["reserve<br/>sql shop.reserve"]' in lines, done
        words = [line.strip().split(" ")[0] for line in lines]
        assert words.count("end") == words.count("subgraph") == 3, done
        shown = json.loads(define_files(pawl, ORDER, "--diagram", "--json").stdout)
        assert shown["diagram"] == done.stdout and shown["steps"] == 14, shown


# --- with a database ---

@test
def the_rows_of_a_definition_are_checked_in_sql_too():
    def refused(db, steps, deadline="1000", action="'fail'", source="'{}'"):
        return refusal(db, f"perform pawl.process_define('d', 't', {source}, {deadline}, {action}, null, $j${json.dumps(steps)}$j$)")

    step, wait = {"name": "a", "kind": "set"}, {"name": "a", "kind": "wait"}
    with Database() as db:
        wrong = [None, {}, [], 5, [5], [{"name": "a"}], [{"kind": "set"}], [{**step, "name": 5.5, "position": "x"}], [step, step],
                 [{**step, "name": "a b"}], [{**step, "name": "end"}], [step, {**step, "name": "b", "position": 0}], [{**step, "last": 1000}],
                 [{**step, "last": -1}], [wait], [{**wait, "response": "go"}], [{**wait, "until": "true", "response": "go", "responses": 1}],
                 [{**step, "response": "go"}], [{**step, "kind": "when"}], [{**step, "kind": "when", "then_at": 0, "else_at": 1}],
                 [{"name": f"n{i}", "kind": "set"} for i in range(1001)]]
        for steps in wrong:
            assert refused(db, steps).startswith("QP001: steps"), (steps, refused(db, steps))
        for deadline, action in (("-1", "'fail'"), ("9223372036854775807", "'fail'"), ("1000", "'nonsense'"), ("null", "null")):
            assert refused(db, [step], deadline, action).startswith("QP001: deadline"), (deadline, action)
        assert refused(db, [step], source="''").startswith("QP001: definition must have")
        assert db.value("select (select count(*) from pawl.process_definition) + (select count(*) from pawl.process_definition_step)") == "0"
        assert refused(db, [{**wait, "response": "go", "responses": 1}]) == "none"


@test
def the_rows_of_a_definition_say_where_its_steps_are_and_what_they_do():
    file = {"type": "t", "domain": "d", "steps": [
        {"name": "pay", "command": {"type": "pay", "domain": "bank"}, "compensate": {"command": {"type": "refund"}}},
        {"name": "all", "each": "{{state.list}}", "steps": [
            {"name": "both", "parallel": {"left": [{"name": "dig", "exec": "true"}, {"name": "fill", "set": {"c": 1}}], "right": [{"name": "rest", "sleep": "1h"}]}},
            {"name": "poll", "repeat": [{"name": "kid", "process": {"type": "x"}}], "until": "true"}]},
        {"name": "ok", "when": "state.a", "then": "until"},
        {"name": "ask", "wait": {"response": "go", "count": 3}},
        {"name": "until", "wait": {"until": "state.b == \"x\""}},
        {"name": "last", "when": "state.c", "then": "end"}]}
    with Database() as db, Pawl(db) as pawl:
        define(pawl, file)
        rows = db.rows("select row(number, last, name, kind, list, position, depth, parent, is_loop, acts, is_compensated) from pawl.process_definition_step order by number")
        assert rows == ["(0,0,pay,command,\"\",0,0,,f,t,t)", "(1,7,all,each,\"\",1,0,,t,f,f)", "(2,5,both,parallel,/all/,0,1,all,f,f,f)",
                        "(3,3,dig,exec,/all//both/left,0,1,both,f,t,f)", "(4,4,fill,set,/all//both/left,1,1,both,f,f,f)",
                        "(5,5,rest,sleep,/all//both/right,0,1,both,f,f,f)", "(6,7,poll,repeat,/all/,1,1,all,t,f,f)", "(7,7,kid,process,/all//poll/,0,2,poll,f,t,f)",
                        "(8,8,ok,when,\"\",2,0,,f,f,f)", "(9,9,ask,wait,\"\",3,0,,f,f,f)", "(10,10,until,wait,\"\",4,0,,f,f,f)",
                        "(11,11,last,when,\"\",5,0,,f,f,f)"], rows
        rows = db.rows("select concat_ws('|', name, sends, undo_sends, response, responses, until, sleeps, then_at, else_at) from pawl.process_definition_step "
                       "where coalesce(sends, sleeps, response, until) is not null or then_at is not null order by number")
        assert rows == ['pay|"pay" to domain "bank"|"refund" to domain "d"', "rest|for a fixed time", 'kid|"x" to domain "d"', "ok|4|3", "ask|go|3",
                        'until|1|state.b == "x"', "last|6|6"], rows
        assert db.value("select deadline_action from pawl.process_definition") == "compensate"


@test
def a_definition_that_is_stored_is_notified_after_its_commit():
    with Database() as db, Pawl(db) as pawl, Session(db.url) as listener:
        pawl.serve()
        listener.do("listen pawl_definition")
        file = {"type": "t", "domain": "d", "steps": [{"name": "a", "set": {"b": 1}}]}
        define(pawl, file)
        said = wait_until(lambda: listener.do("select 1")[1:], what="the notification arrives")
        assert len(said) == 1 and said[0].startswith('Asynchronous notification "pawl_definition" with payload "d" received'), said
        define(pawl, file)  # nothing is stored
        file["domain"] = "e"
        done = pawl.http("PUT", "/v1/process-definitions", body=file)
        assert done.status == 200, done
        said = wait_until(lambda: listener.do("select 1")[1:], what="the notification arrives")
        assert len(said) == 1 and 'with payload "e" received' in said[0], said


@test
def every_definition_of_the_manual_is_stored():
    """All kinds of steps are in these files."""
    with open(os.path.join(setting("PAWL_SOURCE"), "docs/definitions.md"), encoding="utf-8") as file:
        files = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", file.read(), re.S)]
    with open(ORDER, encoding="utf-8") as file:
        files.append(json.load(file))
    with Database() as db, Pawl(db) as pawl:
        for source in files:
            define(pawl, source)
        done = pawl.run("process", "define", "-", "--check", stdin=json.dumps({"type": "x", "domain": "d", "steps": [{"name": "none"}]}))
        kinds = re.search("exactly one of (.*); it has none", done.stderr)[1].split(", ")
        assert set(db.rows("select distinct kind from pawl.process_definition_step")) == set(kinds), kinds


@test
def what_can_be_known_of_a_file_or_a_start_is_refused_at_once():
    with Database() as db, Pawl(db) as pawl:
        for sleep, word in (({"for": "5"}, 'for must be a duration'), ({"until": "tomorrow"}, 'until must be a time'), ({"for": "9999d"}, "up to 3650d")):
            done = pawl.run("process", "define", "-", "--check", stdin=json.dumps({"type": "x", "domain": "edge", "steps": [{"name": "r", "sleep": sleep}]}))
            assert done.code == 1 and word in done.stderr and "steps[0].sleep" in done.stderr, done
        done = pawl.run("process", "define", "-", "--check", stdin=json.dumps({"type": "x", "domain": "edge", "steps": [
            {"name": "r", "sleep": {"for": "5s"}}, {"name": "u", "sleep": {"until": "2026-11-20T18:00:00Z"}}]}))
        assert done.code == 0, done
        done = pawl.run("process", "start", "x", "--domain", "process:edge")
        assert done.code == 2 and 'give "edge"' in done.stderr, done
        assert 'give "edge"' in refusal(db, "perform pawl.start('x', p_domain => 'process:edge')")


@test
def a_process_that_was_started_before_its_type_was_defined_runs():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        process = start(pawl, "early")
        define(pawl, {"domain": "edge", "type": "early", "deadline": "1h", "steps": [{"name": "n", "set": {"n": 1}},
                                                                                     {"name": "w", "wait": {"response": "go"}}]})
        waits = wait_status(pawl, process, "WAITING_FOR_ASYNC", "WAITING_FOR_TSQ")
        assert waits["status"] == "WAITING_FOR_ASYNC" and waits["version"] == 1 and waits["deadline"] == waits["continues_at"], waits
        cli(pawl, "signal", process, "go")
        wait_status(pawl, process, "COMPLETED")


main()
