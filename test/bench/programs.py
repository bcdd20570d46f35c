"""The programs that are measured: pawl with a private PostgreSQL, and its peers beside it on the same server.

Each turn returns {"per_s": ...} or other figures by name. Those of a turn with a Meter have also, for each operation: processor time of
PostgreSQL and of the program that works (not of one that only makes load), in microseconds, and bytes of WAL.
"""
import contextlib
import functools
import json
import os
import re
import resource
import shutil
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
HERE = os.path.join(ROOT, "test/bench")
TOKEN = "bench-0123456789abcdef"
PAYLOAD = '{"to": "ann", "amount": 100}'
TIMEOUT_S = 300  # of one program; no turn takes so long
CONNECTIONS_MAX = 300  # 256 clients of pgbench, and a daemon
PER_ITEM = ("server_us", "program_us", "wal_bytes")
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
# The versions that are compared with; report.json has those that npm installed.
PACKAGES = ("graphile-worker", "pg", "@dbos-inc/dbos-sdk")


def output(*command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False, timeout=TIMEOUT_S, **options)
    if done.returncode != 0:
        sys.exit(f"bench: {' '.join(command)[:200]} ended with status {done.returncode}\n{done.stdout[-1000:]}{done.stderr[-3000:]}")
    return done.stdout


def stat_ticks(pid):
    """Processor time of a process, and of its children that have ended; and its parent."""
    with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
        fields = file.read().rpartition(")")[2].split()
    return int(fields[11]) + int(fields[12]), int(fields[13]) + int(fields[14]), int(fields[1])


def tree_seconds(root):
    """Processor time of a process and all below it, ended or not."""
    ticks = sum(stat_ticks(root)[:2])
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):  # it has just ended
            own, _, parent = stat_ticks(name)
            ticks += own if parent == root else 0
    return ticks * TICK_S


def machine_ticks():
    """Idle ones, and all, of all processors."""
    with open("/proc/stat", encoding="ascii") as file:
        ticks = [int(field) for field in file.readline().split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


class Meter:
    """From its creation to figures(): what one turn takes of the server, of the program, and of the machine."""

    def __init__(self, server, daemon=None):
        self.server, self.daemon = server, daemon
        self.begin = self.read()

    def read(self):
        usage = resource.getrusage(resource.RUSAGE_CHILDREN)
        daemon_s = sum(stat_ticks(self.daemon)[:2]) * TICK_S if self.daemon else 0
        return tree_seconds(self.server.postmaster), usage.ru_utime + usage.ru_stime, daemon_s, self.server.wal(), *machine_ticks()

    def figures(self, count, program_s=None):
        """program_s: as the program itself says; without it the daemon's or that of the programs that were run meanwhile."""
        server_s, children_s, daemon_s, wal, idle, ticks = (b - a for a, b in zip(self.begin, self.read()))
        if program_s is None:
            program_s = daemon_s if self.daemon else children_s
        return {"server_us": server_s * 1e6 / count, "program_us": program_s * 1e6 / count, "wal_bytes": wal / count,
                "busy_percent": 100 * (1 - idle / max(1, ticks))}


class Server:
    """A pawl program with a home and a private PostgreSQL of its own."""

    def __init__(self, build, folder, name, is_durable=True):
        self.program = os.path.join(build, "pawl")
        self.library = os.path.join(build, "test/bench/library_bench")
        if not os.path.exists(self.library):  # of another build: ours, with its library
            self.library = os.path.join(ROOT, "build/test/bench/library_bench")
        self.folder, self.home = folder, os.path.join(folder, name)
        self.environment = {**os.environ, "PAWL_HOME": self.home, "PAWL_LOG": "warn", "PAWL_ADMIN_TOKEN": TOKEN, "LD_LIBRARY_PATH": build}
        for variable in ("PAWL_DATABASE_URL", "PAWL_LISTEN_DATABASE_URL", "PAWL_HANDLER_DATABASE_URL", "DATABASE_URL"):
            self.environment.pop(variable, None)
        self.bin = max((entry.path for entry in os.scandir("/usr/lib/postgresql")), key=lambda p: int(os.path.basename(p))) + "/bin"
        self.pawl("db", "start")
        self.stop()
        with open(os.path.join(self.home, "pg/data/postgresql.conf"), "a", encoding="utf-8") as file:
            file.write(f"max_connections = {CONNECTIONS_MAX}\n" + ("" if is_durable else "fsync = off\n"))
        self.pawl("db", "start")
        with open(os.path.join(self.home, "pg/data/postmaster.pid"), encoding="utf-8") as file:
            self.postmaster = int(file.readline())

    def stop(self):
        self.pawl("db", "stop")

    @functools.cached_property
    def url(self):
        return self.pawl("db", "url", "--admin").strip()

    def database(self, name):
        return re.sub(r"^(\w+://[^/]*)/[^?]*", rf"\1/{name}", self.url)

    def pawl(self, *arguments, url=None):
        return output(self.program, *arguments, env={**self.environment, **({"PAWL_DATABASE_URL": url} if url else {})})

    def bench(self, *arguments):
        """{(section, figure): value} of `pawl bench`, one round."""
        report = json.loads(self.pawl("bench", *arguments, "--json"))
        return {(row["section"], row["figure"]): row["runs"][0] for row in report["figures"]}

    def sql(self, text, url=None):
        return output(f"{self.bin}/psql", "-qXAt", "-v", "ON_ERROR_STOP=1", "-d", url or self.url, input=text).strip()

    def wal(self):
        return int(self.sql("select (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint"))

    def reset(self):
        """As a new database is."""
        schemas = self.sql("select string_agg(quote_ident(nspname), ', ') from pg_namespace where nspname !~ '^(pg_|information_schema$|public$|app$)'")
        self.sql(f"drop schema {schemas} cascade" if schemas else "")
        self.pawl("migrate")

    def database_new(self, name):
        """An empty database; its URL."""
        self.sql(f"drop database if exists {name} with (force)")
        self.sql(f"create database {name}")
        return self.database(name)

    def library_run(self, *arguments, url=None):
        return json.loads(output(self.library, url or self.url, *map(str, arguments), env=self.environment))

    def library_start(self, *arguments):
        return subprocess.Popen([self.library, self.url, *map(str, arguments)], stdout=subprocess.PIPE, text=True, env=self.environment)

    def pgbench(self, clients, *arguments, url=None):
        """Transactions a second, and what they take."""
        meter = Meter(self)
        said = output(f"{self.bin}/pgbench", "-n", "-M", "prepared", "-c", str(clients), "-j", str(min(2, clients)), *arguments, url or self.url)
        count = int(re.search(r"^number of transactions actually processed: (\d+)", said, re.M)[1])
        return {**meter.figures(count, program_s=0), "per_s": float(re.search(r"^tps = ([\d.]+)", said, re.M)[1])}

    def first_start_ms(self):
        """Of a daemon that makes its PostgreSQL, in a home of its own."""
        home = {**self.environment, "PAWL_HOME": os.path.join(self.folder, "first")}
        with self.serve(home) as (_, _, ready_ms):
            pass
        output(self.program, "db", "stop", env=home)
        shutil.rmtree(home["PAWL_HOME"])
        return ready_ms

    @contextlib.contextmanager
    def serve(self, environment=None):
        """A daemon: yields its address, its process id, and the milliseconds until it was ready."""
        begin = time.monotonic()
        process = subprocess.Popen([self.program, "serve", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True,
                                   env=environment or self.environment)
        try:
            line = process.stdout.readline()
            if not line:
                sys.exit("bench: pawl serve does not start")
            yield "http://127.0.0.1:" + line.rsplit(":", 1)[1].strip(), process.pid, (time.monotonic() - begin) * 1000
        finally:
            process.terminate()
            process.wait()

    def wrk(self, daemon, connections, seconds, path, *arguments, script=None):
        """Requests a second, percentiles in ms, and what the daemon and PostgreSQL take for each request."""
        address, pid, _ = daemon
        meter = Meter(self, pid)
        command = ["wrk", f"-t{min(2, connections)}", f"-c{connections}", f"-d{seconds}s", "--latency"]
        said = output(*command, *(("-s", os.path.join(HERE, script)) if script else ()), address + path, "--", *map(str, arguments),
                      env=self.environment)
        if re.search(r"Non-2xx|Socket errors|Refused: [1-9]", said):
            sys.exit(f"bench: {script}: not all requests succeeded\n" + said)
        settled = re.search(r"^Settled: (\d+)", said, re.M)
        requests = int(re.search(r"(\d+) requests in", said)[1])
        rate = float(re.search(r"^Requests/sec: +([\d.]+)", said, re.M)[1])
        marks = {f"p{n}": float(ms) for n, ms in re.findall(r"^P(\d+): ([\d.]+)", said, re.M)}
        count = int(settled[1]) if settled else requests
        return {**meter.figures(count), **marks, "per_s": rate * count / requests}


class Node:
    """Peers that run in Node.js, in a folder with their packages, and the databases of one server."""

    def __init__(self, server, folder):
        self.server, self.folder = server, folder
        for script in ("graphile.mjs", "dbos.mjs"):  # they find their packages beside them
            shutil.copy(os.path.join(HERE, script), folder)

    def run(self, script, database, *arguments):
        # A URL of JavaScript has a host; the parameter host wins.
        url = self.server.database(database).replace("@/", "@localhost/")
        return output("node", script, *map(str, arguments), cwd=self.folder, env={**os.environ, "DATABASE_URL": url})

    def measured(self, script, database, count, *arguments):
        meter = Meter(self.server)
        figures = json.loads(self.run(script, database, *arguments).splitlines()[-1])
        return {**meter.figures(count, figures.pop("cpu_s")), "per_s": figures["per_s"]}

    def graphile_new(self):
        self.server.database_new("graphile")
        self.run("graphile.mjs", "graphile", "migrate")

    def graphile_send(self, count):
        """Jobs a second, 1,000 in a call from two clients."""
        spec = '"(noop,\\"' + PAYLOAD.replace('"', '\\"\\"') + '\\",,,,,,)"'
        return batches(self.server, "select count(*) from graphile_worker.add_jobs(:list)", spec, count, self.server.database("graphile"))

    def graphile(self, count, concurrency):
        url = self.server.database("graphile")
        self.server.sql("truncate graphile_worker._private_jobs", url)
        self.graphile_send(count)
        self.server.sql("checkpoint")
        return self.measured("graphile.mjs", "graphile", count, "handle", count, concurrency)

    def dbos(self, count, clients):
        self.server.sql("checkpoint")
        return self.measured("dbos.mjs", "dbos", count + min(count, 2 * clients), count, clients)

    def versions(self):
        found = {}
        for package in PACKAGES:
            with open(os.path.join(self.folder, "node_modules", package, "package.json"), encoding="utf-8") as file:
                found[package] = json.load(file)["version"]
        return found


def node_install(folder):
    """Install the peers by npm; those of an earlier run stay."""
    os.makedirs(folder, exist_ok=True)
    if not all(os.path.exists(os.path.join(folder, "node_modules", package)) for package in PACKAGES):
        output("npm", "install", "--no-audit", "--no-fund", "--silent", *PACKAGES, cwd=folder)
    return folder


def shared(figures, size):
    """Figures of operations of this many items each, for each item."""
    return {name: value * size if name == "per_s" else value / size if name in PER_ITEM else value for name, value in figures.items()}


def batches(server, statement, element, count, url=None, size=1000, clients=2):
    """Items a second of a statement that takes an array of items as :list, from two clients of pgbench."""
    file = os.path.join(server.folder, "batch.sql")
    with open(file, "w", encoding="utf-8") as script:
        script.write(statement + ";\n")
    size = min(size, count // clients)
    assert count % (size * clients) == 0, f"{count} items are not whole batches"
    found = server.pgbench(clients, "-t", str(count // size // clients), "-D", "list={" + ",".join([element] * size) + "}", "-f", file, url=url)
    return shared(found, size)
