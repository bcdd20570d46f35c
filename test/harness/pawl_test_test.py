#!/usr/bin/env python3
"""Can the Python harness tell right from wrong? Needs no pawl: a few lines of Python play its part."""
import os
import signal
import subprocess
import sys
import tempfile

from pawl_test import Database, Pawl, Process, Proxy, main, psql, setting, test, wait_until

FAKE_PAWL = """#!/usr/bin/env python3
import http.server, sys
if sys.argv[1] != "serve":
    print("out"), print("err", file=sys.stderr), sys.exit(3)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b'{"token": "%s"}' % self.headers.get("Authorization", "").encode())
    def log_message(self, *_):
        pass
server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
print(f"pawl is ready on http://127.0.0.1:{server.server_port}", flush=True)
server.serve_forever()
"""


def fails(function):
    try:
        function()
    except AssertionError:
        return True
    return False


@test
def wait_until_gives_up():
    assert fails(lambda: wait_until(lambda: False, 0.1, "never"))
    assert wait_until(lambda: 7) == 7


@test
def database_is_there_and_then_gone():
    with Database(empty=True) as db:
        db.rows("create table t (n int); insert into t values (1), (2)")
        assert db.rows("select n from t order by n") == ["1", "2"]
        assert db.value("select count(*) from t") == "2"
        assert fails(lambda: db.rows("select nothing from nowhere"))
    assert fails(lambda: psql(db.url, "select 1"))


@test
def pawl_runs_serves_and_stops():
    with tempfile.NamedTemporaryFile("w", dir="/tmp", suffix=".py") as fake:
        fake.write(FAKE_PAWL)
        fake.flush()
        with tempfile.TemporaryDirectory() as folder:
            program = os.path.join(folder, "pawl")
            with open(program, "w") as file:
                file.write(f"#!/bin/sh\nexec '{sys.executable}' '{fake.name}' \"$@\"\n")
            os.chmod(program, 0o755)
            before = os.environ.get("PAWL_BIN")
            os.environ["PAWL_BIN"] = program
            try:
                pawl_script()
            finally:
                os.environ.pop("PAWL_BIN") if before is None else os.environ.update(PAWL_BIN=before)


def pawl_script():
    with Pawl("postgresql://nowhere/none") as pawl:
        done = pawl.run("version")
        assert (done.code, done.stdout, done.stderr) == (3, "out\n", "err\n")
        pawl.serve()
        assert pawl.http("GET", "/x").json["token"] == f"Bearer {Pawl.TOKEN}"
        assert pawl.stop(signal.SIGTERM) == -signal.SIGTERM
        server = pawl.serve()
    assert not server.is_running() and not os.path.exists(pawl.home)


@test
def process_that_ends_is_read_to_its_end():
    process = Process(["sh", "-c", "echo one; echo two >&2; exit 5"])
    assert process.wait() == 5
    assert process.stdout == ["one"] and process.stderr == ["two"] and process.said("tw.")


@test
def proxy_cuts_a_commit_of_psql():
    with Database(empty=True) as db, Proxy(db) as proxy:
        db.rows("create table t (n int)")
        proxy.do("cut-commit answered 1")
        assert fails(lambda: psql(proxy.url, "begin;\ninsert into t values (1);\ncommit;"))
        assert db.value("select count(*) from t") == "1"
        assert proxy.do("counts") == {"accepted": 1, "open": 0, "cuts": 1}
        assert fails(lambda: proxy.do("make tea"))


HERE = os.path.dirname(os.path.abspath(__file__))
SCRIPT = "from pawl_test import main, test\n@test\ndef good(): pass\n@test\ndef bad(): assert False, 'sum'\nmain()\n"


def run_as(command, **variables):
    """Run a program of tests as if this one had not been started by meson, and with other variables."""
    environment = {k: v for k, v in os.environ.items() if k not in ("PAWL_TEST", "PAWL_TEST_MANY")}
    return subprocess.run(command, env={**environment, "PYTHONPATH": HERE, **variables}, capture_output=True, text=True)


@test
def a_filter_that_matches_nothing_fails():
    python, regress = [sys.executable, "-c", SCRIPT], [os.path.join(HERE, "../regress/run.py")]
    for program in (python, regress, [setting("PAWL_TEST_HARNESS")]):
        with tempfile.TemporaryDirectory() as folder:
            done = run_as(program, PAWL_TEST="no_such_test", PAWL_TEST_RUN=folder)
            assert done.returncode == 1 and '"no_such_test" is part of no test\'s name' in done.stderr, (program, done)
            # meson runs several programs, and one of them may match.
            done = run_as(program, PAWL_TEST="no_such_test", PAWL_TEST_RUN=folder, PAWL_TEST_MANY="1")
            assert done.returncode == 0 and "1..0 # SKIP" in done.stdout, (program, done)
            assert os.listdir(folder) == ["filter.missed"]
    assert run_as(python, PAWL_TEST="good").returncode == 0


@test
def the_cluster_fails_if_no_program_matches():
    def run(script):
        done = run_as([os.path.join(HERE, "cluster.sh"), "run", "sh", "-c", script], PAWL_TEST="typo")
        return done.returncode, "is part of no test's name: nothing was tested" in done.stderr

    assert run("touch $PAWL_TEST_RUN/filter.missed") == (1, True)
    assert run("touch $PAWL_TEST_RUN/filter.missed $PAWL_TEST_RUN/filter.matched") == (0, False)
    assert run("true") == (0, False)


@test
def a_schema_that_does_not_load_shows_why():
    with tempfile.TemporaryDirectory() as folder:
        helper = os.path.join(folder, "template")
        with open(helper, "w") as file:
            file.write("#!/bin/sh\necho 'syntax error at or near \"selekt\"' >&2\nexit 1\n")
        os.chmod(helper, 0o755)
        done = run_as([os.path.join(HERE, "../regress/run.py"), "regress/base"], PAWL_TEST_TEMPLATE=helper)
        assert done.returncode == 1 and 'syntax error at or near "selekt"' in done.stderr, done
        assert "Traceback" not in done.stderr, done.stderr


@test
def failures_are_seen():
    done = run_as([sys.executable, "-c", SCRIPT])
    assert done.returncode == 1
    for line in ("1..2\nok 1 - good", "not ok 2 - bad", "# AssertionError: sum"):
        assert line in done.stdout, done.stdout


main()
