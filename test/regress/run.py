#!/usr/bin/env python3
"""Runs SQL and compares what it says with what it should say.

    run.py              every test
    run.py NAME...      some of them: regress/dead_letter, or a part of the name

  regress/sql/NAME.sql        psql prints statements and answers     -> regress/expected/NAME.out
  isolation/specs/NAME.spec   isolationtester interleaves sessions   -> isolation/expected/NAME.out

Each test has a database of its own from the template; some run at the same time. Output is TAP; a difference is shown as a diff. PAWL_TEST_ACCEPT=1
writes what was said to expected/, for a person to read before it is committed.
"""
import difflib
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TEST = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(TEST / "harness"))
from pawl_test import Database, check_chosen, setting  # noqa: E402

TIMEOUT_S = 60
PARALLEL = 3  # tests at a time: isolation tests wait for each other's locks most of the time
ENVIRONMENT = {**os.environ, "PGTZ": "UTC", "PGDATESTYLE": "ISO, YMD", "PGOPTIONS": "-c intervalstyle=postgres",
               "PSQLRC": "/dev/null", "LC_ALL": "C"}


def pgxs(program):
    """isolationtester lives beside the extension makefiles."""
    path = Path(setting("PAWL_TEST_BIN")).parent / "lib/pgxs/src/test" / program
    if not path.exists():
        makefile = subprocess.run(["pg_config", "--pgxs"], capture_output=True, text=True).stdout.strip()
        path = Path(makefile).parent.parent / "test" / program
    assert path.exists(), f"{path} is missing: install postgresql-server-dev or the client package"
    return str(path)


def psql_command(url):
    return [os.path.join(setting("PAWL_TEST_BIN"), "psql"), "-Xaq", "-v", "SHOW_CONTEXT=never", "-d", url]


def isolation_command(url):
    return [pgxs("isolation/isolationtester"), url]


KINDS = (("regress", "sql/*.sql", psql_command), ("isolation", "specs/*.spec", isolation_command))


def collect(names):
    """(name, input file, expected file, command) of every test that is asked for."""
    for kind, pattern, command in KINDS:
        for file in sorted((TEST / kind).glob(pattern)):
            name = f"{kind}/{file.stem}"
            if not names or any(part in name for part in names):
                yield name, file, TEST / kind / "expected" / f"{file.stem}.out", command


def run(file, command):
    with Database() as db, open(file, encoding="utf-8") as source:
        done = subprocess.run(command(db.url), stdin=source, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env=ENVIRONMENT, text=True, timeout=TIMEOUT_S, cwd=file.parent)
    # An error that a statement raises is part of the output; this is a spec that cannot be read, or a lost server.
    if done.returncode != 0:
        raise AssertionError(f"{done.args[0]} ended with {done.returncode}: {done.stdout[-2000:]}")
    return done.stdout


def compare(name, file, expected, command):
    """The diff, empty when all is well."""
    actual = run(file, command)
    if os.environ.get("PAWL_TEST_ACCEPT"):
        expected.parent.mkdir(exist_ok=True)
        expected.write_text(actual, encoding="utf-8")
    if not expected.exists():
        return f"{expected.relative_to(TEST)} is missing; it said:\n{actual}"
    return "".join(difflib.unified_diff(expected.read_text(encoding="utf-8").splitlines(True), actual.splitlines(True),
                                        f"expected/{expected.name}", f"said by {name}"))


def attempt(test):
    """What is wrong, empty when all is well; and the seconds it took."""
    start = time.monotonic()
    try:
        trouble = compare(*test)
    except Exception as error:  # one broken test must not hide the others
        trouble = f"{type(error).__name__}: {error}"
    return trouble, time.monotonic() - start


def main():
    only = os.environ.get("PAWL_TEST")
    names = sys.argv[1:] or ([only] if only else [])
    tests = list(collect(names))
    failed = 0
    check_chosen(tests, " ".join(names))
    try:
        Database.template_name()  # once, before the threads need it
    except AssertionError as error:
        sys.exit(f"the schema does not load: {error}")
    print(f"1..{len(tests)}")
    with ThreadPoolExecutor(PARALLEL) as pool:
        for number, (test, (trouble, seconds)) in enumerate(zip(tests, pool.map(attempt, tests)), 1):
            failed += bool(trouble)
            print(f"{'not ok' if trouble else 'ok'} {number} - {test[0]}")
            for line in trouble.splitlines():
                print("# " + line)
            print(f"# {seconds:.2f} s", flush=True)
    sys.exit(1 if failed else 0)


main()
