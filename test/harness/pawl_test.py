"""pawl_test - integration tests: real processes, signals, sockets and a real PostgreSQL.

    from pawl_test import Database, Pawl, main, test

    @test
    def serve_answers_ready():
        with Database() as db, Pawl(db) as pawl:
            pawl.serve()
            assert pawl.http("GET", "/health/ready").status == 200

    main()

Tests run in the order they are written and print TAP; PAWL_TEST=substring runs some of them, and one that matches none
of them fails. Nothing is skipped: without a cluster (PAWL_TEST_URL) or a program (PAWL_BIN) they fail. Whatever a test starts is stopped at the end of its
`with`.
"""
import http.client
import itertools
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import urllib.parse
from dataclasses import dataclass

TIMEOUT_S = 180  # for a command that works: a machine may be slow and stall
FACT_S = 45      # for a fact or a response that takes seconds at most; wait_until() adds the time in which the machine did not run us
NAP_S = 0.02
NAP_S_MAX = 0.5
READY = re.compile(r"pawl is ready on http://([^:/\s]+):(\d+)")


def setting(name):
    """A variable of the environment that the test cannot do without."""
    if name not in os.environ:
        raise AssertionError(f"{name} is not set: run ./dev test, or test/harness/cluster.sh run COMMAND")
    return os.environ[name]


def wait_until(fact, timeout=FACT_S, what="the fact"):
    """Call fact() until it is true and return what it returned. Never sleep and hope: wait for something."""
    deadline = time.monotonic() + timeout
    while True:
        began = time.monotonic()
        value = fact()
        if value:
            return value
        before = time.monotonic()
        if before > deadline:
            raise AssertionError(f"{what}: not within {timeout} s")
        # Many facts start a program, which takes CPU time from what we wait for: ask for a fifth of the time at most.
        nap = min(max(NAP_S, 4 * (before - began)), NAP_S_MAX)
        time.sleep(nap)
        deadline += time.monotonic() - before - nap


# --- database ---

def url_with_database(url, name):
    return urllib.parse.urlsplit(url)._replace(path="/" + name).geturl()


def psql(url, sql):
    """Run SQL and return its rows as lines of text, columns separated by |."""
    program = os.path.join(setting("PAWL_TEST_BIN"), "psql")
    done = subprocess.run([program, "-XAtq", "-v", "ON_ERROR_STOP=1", "-f", "-", url], input=sql, text=True,
                          capture_output=True, timeout=TIMEOUT_S)
    if done.returncode != 0:
        raise AssertionError(f"{sql}: {done.stderr.strip()}")
    return done.stdout.splitlines()


class Database:
    """A database of one's own, dropped at the end. With the schema unless empty."""

    numbers = itertools.count(1)
    template = None  # with the schema; made by the first test of the run that needs it

    def __init__(self, empty=False):
        self.empty = empty
        self.name = f"test_{os.getpid()}_{next(Database.numbers)}_{time.time_ns() % 10**9:x}"
        self.url = url_with_database(setting("PAWL_TEST_URL"), self.name)

    @staticmethod
    def template_name():
        if not Database.template:
            done = subprocess.run([setting("PAWL_TEST_TEMPLATE")], capture_output=True, text=True, timeout=TIMEOUT_S * 3)
            if done.returncode != 0:
                raise AssertionError(done.stderr.strip())
            Database.template = done.stdout.strip()
        return Database.template

    def __enter__(self):
        template = "template0" if self.empty else Database.template_name()
        # Copied file by file: the default, which copies through WAL, takes three times as much CPU time.
        psql(setting("PAWL_TEST_URL"), f"create database {self.name} template {template} strategy file_copy")
        return self

    def __exit__(self, *_):
        psql(setting("PAWL_TEST_URL"), f"drop database {self.name} with (force)")

    def rows(self, sql):
        return psql(self.url, sql)

    def value(self, sql):
        rows = self.rows(sql)
        assert len(rows) == 1, f"{sql}: {len(rows)} rows, not one"
        return rows[0]


# --- processes ---

class Process:
    """A running program whose two outputs are collected while it runs."""

    def __init__(self, command, env=None, stdin=subprocess.DEVNULL):
        self.command = command
        self.stdout, self.stderr = [], []
        self.process = subprocess.Popen(command, env=env, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, errors="replace")
        self.readers = [threading.Thread(target=self._read, args=pair, daemon=True)
                        for pair in ((self.process.stdout, self.stdout), (self.process.stderr, self.stderr))]
        for reader in self.readers:
            reader.start()

    @staticmethod
    def _read(stream, lines):
        for line in stream:
            lines.append(line.rstrip("\n"))

    @property
    def pid(self):
        return self.process.pid

    def is_running(self):
        return self.process.poll() is None

    def send(self, number):
        self.process.send_signal(number)

    def wait(self, timeout=TIMEOUT_S):
        """Wait for the end; the exit code, negative for a signal."""
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"{self.command[0]} did not end within {timeout} s") from None
        for reader in self.readers:
            reader.join(TIMEOUT_S)
        return code

    def stop(self, number=signal.SIGTERM, timeout=TIMEOUT_S):
        self.send(number)
        return self.wait(timeout)

    def kill(self):
        """For the end of a test: whatever state it is in."""
        if self.is_running():
            self.process.kill()
        self.wait()

    def said(self, pattern):
        """The match of the first line, of either output, that contains the pattern."""
        for line in self.stdout[:] + self.stderr[:]:
            match = re.search(pattern, line)
            if match:
                return match
        return None


@dataclass
class Answer:
    """The response to an HTTP request. Header names are lower case."""
    status: int
    headers: dict
    body: bytes

    @property
    def json(self):
        return json.loads(self.body)


class Server(Process):
    """A `pawl serve` that is ready, with its address."""

    def __init__(self, command, env, wait=True):
        super().__init__(command, env)
        self.host = self.port = None
        if wait:
            self.wait_ready()

    def wait_started(self, timeout=FACT_S):
        """It accepts requests, whatever it answers."""
        def ready():
            if not self.is_running():
                raise AssertionError(f"serve ended with {self.wait()}: " + " / ".join(self.stderr[-5:]))
            return self.said(READY)

        self.host, port = wait_until(ready, timeout, "serve says that it is ready").groups()
        self.port = int(port)

    def wait_ready(self, timeout=FACT_S):
        self.wait_started(timeout)
        wait_until(lambda: self.http("GET", "/health/ready").status == 200, timeout, "/health/ready answers 200")

    def last_words(self):
        """For a test that failed: is the server alive, and what did it say last?"""
        code = self.process.poll()
        state = "running" if code is None else f"ended with {code}"
        return f"serve is {state}, its last lines:\n" + "\n".join(self.stderr[-40:])

    def http(self, method, path, body=None, token=None, headers=None, timeout=FACT_S):
        """One request on a connection of its own. body: bytes as they are, anything else as JSON."""
        head = dict(headers or {})
        if token:
            head["Authorization"] = f"Bearer {token}"
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            head.setdefault("Content-Type", "application/json")
        connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout)
        try:
            connection.request(method, path, body, head)
            response = connection.getresponse()
            return Answer(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())
        except ConnectionError as error:
            error.add_note(self.last_words())
            raise
        finally:
            connection.close()


@dataclass
class Done:
    """How a command ended."""
    code: int
    stdout: str
    stderr: str

    @property
    def json(self):
        return json.loads(self.stdout)


class Pawl:
    """The program under test, with a home and an environment of its own."""

    TOKEN = "test-token-0123456789abcdef"

    def __init__(self, db=None, env=None, home=None):
        """db: a Database or a URL; None: pawl's private PostgreSQL below home."""
        self.own_home = home is None
        self.home = home or tempfile.mkdtemp(prefix="pawl-home.", dir=os.environ.get("PAWL_TEST_RUN", "/tmp"))
        os.chmod(self.home, 0o755)  # as root the private PostgreSQL belongs to the user postgres
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("PAWL_") and k != "DATABASE_URL"}
        self.env.update(PAWL_HOME=self.home, PAWL_ADMIN_TOKEN=self.TOKEN)
        if db is not None:
            self.env["PAWL_DATABASE_URL"] = db.url if isinstance(db, Database) else db
        self.env.update(env or {})
        self.processes = []
        self.server = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            process.kill()
        if "PAWL_DATABASE_URL" not in self.env:
            self.run("db", "stop")
        if self.own_home:
            shutil.rmtree(self.home, ignore_errors=True)

    def _command(self, arguments):
        return [setting("PAWL_BIN"), *arguments]

    def run(self, *arguments, stdin="", env=None, timeout=TIMEOUT_S):
        """Run a command to its end."""
        done = subprocess.run(self._command(arguments), env={**self.env, **(env or {})}, input=stdin, text=True,
                              errors="replace", capture_output=True, timeout=timeout)
        return Done(done.returncode, done.stdout, done.stderr)

    def start(self, *arguments, env=None):
        """Start a command and leave it running."""
        process = Process(self._command(arguments), {**self.env, **(env or {})})
        self.processes.append(process)
        return process

    def serve(self, *arguments, env=None, wait=True):
        """Start `pawl serve` on a free port; the newest one is what http() and stop() speak to."""
        self.server = Server(self._command(["serve", "--listen", "127.0.0.1:0", *arguments]),
                             {**self.env, **(env or {})}, wait=False)
        self.processes.append(self.server)
        if wait:
            self.server.wait_ready()
        return self.server

    def http(self, method, path, body=None, token=TOKEN, headers=None, timeout=FACT_S):
        return self.server.http(method, path, body, token, headers, timeout)

    def stop(self, number=signal.SIGTERM, timeout=TIMEOUT_S):
        return self.server.stop(number, timeout)


class Proxy:
    """pawl_test_proxy: a bad network, on request. Its commands stand in test/harness/proxy_main.c."""

    def __init__(self, db):
        upstream = db.url if isinstance(db, Database) else db
        self.process = subprocess.Popen([setting("PAWL_TEST_PROXY"), upstream], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())
        parts = urllib.parse.urlsplit(upstream)
        query = [(k, v) for k, v in urllib.parse.parse_qsl(parts.query) if k not in ("host", "port")]
        self.url = parts._replace(netloc=f"{parts.username or 'postgres'}@127.0.0.1:{self.port}",
                                  query=urllib.parse.urlencode(query)).geturl()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(TIMEOUT_S)
        self.process.stdout.close()

    def do(self, command):
        """Obey, then say how many connections were accepted, are open and were cut."""
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        assert answer.startswith("ok "), f"{command}: {answer.strip()}"
        return dict(zip(("accepted", "open", "cuts"), map(int, re.findall(r"\d+", answer))))


# --- tests ---

_tests = []


def test(function):
    _tests.append(function)
    return function


def _diagnose(text):
    for line in text.rstrip().splitlines():
        print("# " + line)


def mark(name):
    """Tell cluster.sh whether PAWL_TEST matched something."""
    if "PAWL_TEST_RUN" in os.environ:
        open(os.path.join(os.environ["PAWL_TEST_RUN"], "filter." + name), "w").close()


def check_chosen(chosen, only):
    """End a program none of whose tests were chosen: a typing error must not look like a success. meson runs many programs with one
    PAWL_TEST, so there it is enough that one of them matched, and cluster.sh judges."""
    if chosen or not only:
        mark("matched")
        return
    words = f'"{only}" is part of no test\'s name'
    if "PAWL_TEST_MANY" not in os.environ:
        sys.exit(f"{words} in {sys.argv[0]}")
    mark("missed")
    print(f"1..0 # SKIP {words}")
    sys.exit(0)


def main():
    """Run what was collected; exit code 0 when all passed."""
    only = os.environ.get("PAWL_TEST", "")
    chosen = [function for function in _tests if only in function.__name__]
    check_chosen(chosen, only)
    failed = 0
    print(f"1..{len(chosen)}")
    for number, function in enumerate(chosen, 1):
        start = time.monotonic()
        try:
            function()
            verdict = "ok"
        except Exception:  # a test's failure must not hide the ones after it
            verdict = "not ok"
            failed += 1
            _diagnose(traceback.format_exc())
        print(f"{verdict} {number} - {function.__name__}")
        print(f"# {time.monotonic() - start:.2f} s", flush=True)
    sys.exit(1 if failed else 0)
