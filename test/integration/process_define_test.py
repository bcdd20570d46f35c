#!/usr/bin/env python3
"""process_define - pawl process define checks and draws definition files without a database."""
import json
import os

from pawl_test import Pawl, main, setting, test

ORDER = os.path.join(setting("PAWL_SOURCE"), "examples", "order-saga", "order.json")
# Nothing listens there: a command that asks the database fails.
NOWHERE = {"PAWL_DATABASE_URL": "postgresql://nobody@127.0.0.1:1/none"}


def define(pawl, *arguments, **options):
    return pawl.run("process", "define", *arguments, **options)


@test
def check_accepts_the_example_without_a_database():
    with Pawl(env=NOWHERE) as pawl:
        done = define(pawl, ORDER, "--check")
        assert (done.code, done.stdout, done.stderr) == (0, "shop order is valid: 14 steps, 5 compensations\n", ""), done
        with open(ORDER, encoding="utf-8") as file:
            piped = define(pawl, "-", "--check", "--json", stdin=file.read())
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
            done = define(pawl, path, "--check")
            assert (done.code, done.stdout) == (1, "") and f"pawl: {path}{words}" in done.stderr, done
            problem = json.loads(define(pawl, path, "--diagram", "--json").stderr)
            assert problem["detail"].startswith(f"{path}{words}") and problem["exit"] == 1, problem
        done = define(pawl, "-", "--check", stdin="[]")
        assert done.code == 1 and done.stderr == "pawl: standard input:1:1: must be an object, got an array\n", done
        done = define(pawl, "-", "--check", stdin=" " * (1 << 20) + "{}")
        assert done.code == 1 and "at most 1048576 are allowed" in done.stderr, done


@test
def files_that_cannot_be_read_are_wrong_usage():
    with Pawl(env=NOWHERE) as pawl:
        for path, words in [(os.path.join(pawl.home, "none.json"), "No such file"), (pawl.home, "Is a directory")]:
            done = define(pawl, path, "--check")
            assert done.code == 2 and f'FILE "{path}" cannot be read: {words}' in done.stderr, done


@test
def diagram_draws_the_example():
    with Pawl(env=NOWHERE) as pawl:
        done = define(pawl, ORDER, "--diagram")
        lines = done.stdout.splitlines()
        assert done.code == 0 and done.stderr == "" and lines[0] == "flowchart TD", done
        assert "    s0 -.->|compensate| c0" in lines and '    s0["reserve<br/>sql shop.reserve"]' in lines, done
        words = [line.strip().split(" ")[0] for line in lines]
        assert words.count("end") == words.count("subgraph") == 3, done
        shown = json.loads(define(pawl, ORDER, "--diagram", "--json").stdout)
        assert shown["diagram"] == done.stdout and shown["steps"] == 14, shown


main()
