#!/usr/bin/env python3
"""Ratios to other programs on one PostgreSQL, measured alternately. Called by ./dev bench peers.

    peers.py [commands] [latency] [transfers] [base]      all unless given

commands: pawl against graphile-worker (installed by npm into a temporary folder) and against pgmq.send_batch of schema pgmq.
transfers: POST /v1/transfers against the six statements of plain_post.sql. base: live requests, memory and start.
With another pawl program, such as a build of an earlier commit, each section also compares with that.
Each round runs all variants, in an order that changes; a ratio compares figures of the same round, and the median counts.
Everything is on a private PostgreSQL with its defaults (fsync and synchronous_commit on), two clients for batches of 1,000, which
peers get as a parameter of a prepared statement, as a program would send it.

Settings by environment: PAWL_BENCH_ROUNDS (5), PAWL_BENCH_COUNT (100000 commands a round), PAWL_BENCH_SECONDS (3, of each load),
PAWL_BENCH_OTHER (another pawl program), PAWL_BENCH_NODE (folder with node_modules, else npm install).
"""
import contextlib
import functools
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ROUNDS = int(os.environ.get("PAWL_BENCH_ROUNDS", 5))
COUNT = int(os.environ.get("PAWL_BENCH_COUNT", 100000))
SECONDS = int(os.environ.get("PAWL_BENCH_SECONDS", 3))
OTHER = os.environ.get("PAWL_BENCH_OTHER")
BATCH = 1000
CLIENTS = 2
PAYLOAD = '{"to": "ann", "amount": 100}'
TOKEN = "bench-0123456789abcdef"


def output(*command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=options.pop("cwd", ROOT), **options)
    if done.returncode != 0:
        sys.exit(f"peers.py: {' '.join(command)[:200]} failed\n{done.stdout[-2000:]}")
    return done.stdout


class Server:
    """A pawl program with a home and a private PostgreSQL of its own."""

    def __init__(self, program, folder, name):
        self.program, self.folder = program, folder
        self.environment = {**os.environ, "PAWL_HOME": os.path.join(folder, name), "PAWL_LOG": "warn", "PAWL_ADMIN_TOKEN": TOKEN}
        for name in ("PAWL_DATABASE_URL", "PAWL_LISTEN_DATABASE_URL", "DATABASE_URL"):
            self.environment.pop(name, None)
        self.pawl("db", "start")
        newest = max(os.listdir("/usr/lib/postgresql"), key=int)
        self.bin = f"/usr/lib/postgresql/{newest}/bin"

    def stop(self):
        self.pawl("db", "stop")

    @functools.cached_property
    def url(self):
        """As the superuser, who owns everything on a private server."""
        return self.pawl("db", "url").strip().replace("://app@", "://pawl@")

    def pawl(self, *arguments):
        return output(self.program, *arguments, env=self.environment)

    def database(self, name):
        return re.sub(r"^(\w+://[^/]*)/[^?]*", rf"\1/{name}", self.url)

    def sql(self, text, database=None):
        return output(f"{self.bin}/psql", "-qXAt", "-v", "ON_ERROR_STOP=1", "-d", database or self.url, input=text)

    def pgbench(self, *arguments, database=None):
        return float(re.search(r"^tps = ([\d.]+)", output(f"{self.bin}/pgbench", "-n", "-M", "prepared", *arguments, database or self.url,
                                                          stderr=subprocess.DEVNULL), re.M)[1])

    @contextlib.contextmanager
    def serve(self):
        """Yields the address, the process id, and the milliseconds until it was ready."""
        begin = time.monotonic()
        process = subprocess.Popen([self.program, "serve", "--listen", "127.0.0.1:0"], stdout=subprocess.PIPE, text=True,
                                   env=self.environment)
        try:
            line = process.stdout.readline()
            ready_ms = (time.monotonic() - begin) * 1000
            yield "http://127.0.0.1:" + line.rsplit(":", 1)[1].strip(), process.pid, ready_ms
        finally:
            process.terminate()
            process.wait()

    def wrk(self, connections, *arguments):
        said = output("wrk", f"-t{min(2, connections)}", f"-c{connections}", f"-d{SECONDS}s", *arguments, env=self.environment)
        if re.search(r"Non-2xx|Socket errors|Refused: [1-9]", said):
            sys.exit("peers.py: not all requests succeeded\n" + said)
        return float(re.search(r"Requests/sec: +([\d.]+)", said)[1])


def median(values):
    return statistics.median_low(values)


def alternate(variants, rounds=ROUNDS):
    """{name: [figure of each round]}; variants are functions by name."""
    figures = {name: [] for name in variants}
    names = list(variants)
    for i in range(rounds):
        for name in names[i % len(names):] + names[:i % len(names)]:
            figures[name].append(variants[name]())
    return figures


def ratio_row(text, ours, theirs, target):
    ratios = [a / b for a, b in zip(ours, theirs)]
    shown = " ".join(f"{r:.2f}" for r in ratios)
    print(f"| {text} | {target} | {median(ratios):.2f} | {shown} | {median(ours):,.0f} / {median(theirs):,.0f} |", flush=True)


def figure_row(text, values, target, digits=0):
    shown = " ".join(f"{v:,.{digits}f}" for v in values)
    print(f"| {text} | {target} | {median(values):,.{digits}f} | {shown} | |", flush=True)


# ---- commands ----

class Graphile:
    def __init__(self, server, folder):
        self.server, self.url = server, server.database("graphile")
        self.folder = os.environ.get("PAWL_BENCH_NODE")
        if not self.folder:
            self.folder = folder
            output("npm", "install", "--no-audit", "--no-fund", "--silent", "graphile-worker", "pg", cwd=folder)
        self.script = os.path.join(self.folder, "graphile.mjs")
        shutil.copy(os.path.join(ROOT, "test/bench/graphile.mjs"), self.script)
        server.sql("create database graphile")
        self.node("migrate")

    def node(self, *arguments):
        return output("node", self.script, *arguments, env={**os.environ, "DATABASE_URL": self.url}, cwd=self.folder)

    def send(self, file):
        spec = '"(noop,\\"' + PAYLOAD.replace('"', '\\"\\"') + '\\",,,,,,)"'
        return batches(self.server, file, "select count(*) from graphile_worker.add_jobs(:list)", spec, self.url)

    def handle(self):
        return float(self.node("handle", str(COUNT)))


def batches(server, file, statement, element, url):
    """Items a second of a statement that takes BATCH elements as :list."""
    with open(file, "w", encoding="utf-8") as script:
        script.write(statement + ";\n")
    items = "{" + ",".join([element] * BATCH) + "}"
    return BATCH * server.pgbench("-c", str(CLIENTS), "-j", str(CLIENTS), "-t", str(COUNT // BATCH // CLIENTS), "-D", "list=" + items,
                                  "-f", file, database=url)


def bench_commands(server):
    """Figures of pawl bench commands, by section and name."""
    report = json.loads(server.pawl("bench", "commands", "--count", str(COUNT), "--rounds", "1", "--json"))
    return {(row["section"], row["figure"]): row["runs"][0] for row in report["figures"]}


def commands(server, other):
    folder = server.folder
    graphile = Graphile(server, folder)
    file = os.path.join(folder, "script.sql")
    payload = '"' + PAYLOAD.replace('"', '\\"') + '"'
    wal = {"send": [], "handle": []}
    names = ("send", "handle", "sql", "graphile", "graphile handle", "pgmq", "other send", "other handle")
    figures = {name: [] for name in names}

    def pawl():
        runs = bench_commands(server)
        figures["send"].append(runs["send", "commands"])
        figures["handle"].append(runs["handle", "commands"])
        for section, values in wal.items():
            values.append(next(v for (s, f), v in runs.items() if s == section and "WAL" in f))

    def other_pawl():
        runs = bench_commands(other)
        figures["other send"].append(runs["send", "commands"])
        figures["other handle"].append(runs["handle", "commands"])

    def sql():
        server.sql("truncate pawl.command, pawl.ready; checkpoint")
        figures["sql"].append(batches(server, file, f"select count(*) from pawl.send('bench', array_fill('noop'::text, array[{BATCH}]), :list)",
                                      payload, server.url))

    def pgmq():
        server.sql("select pgmq.drop_queue('bench'); select pgmq.create('bench'); checkpoint")
        figures["pgmq"].append(batches(server, file, "select count(*) from pgmq.send_batch('bench', :list)", payload, server.url))

    def graphile_worker():
        server.sql("truncate graphile_worker._private_jobs", graphile.url)
        server.sql("checkpoint")
        figures["graphile"].append(graphile.send(file))
        figures["graphile handle"].append(graphile.handle())

    server.pawl("migrate")
    alternate({"pawl": pawl, "graphile": graphile_worker, "pgmq": pgmq, "sql": sql, **({"other": other_pawl} if other else {})})
    ratio_row("`pawl bench commands`: send 1,000 each, against graphile-worker `add_jobs`", figures["send"], figures["graphile"], 2.0)
    ratio_row("the same against `pgmq.send_batch` of schema pgmq", figures["send"], figures["pgmq"], 0.6)
    ratio_row("`pawl.send` from SQL, ids by the server, against `add_jobs`", figures["sql"], figures["graphile"], "-")
    ratio_row("the same against `pgmq.send_batch`", figures["sql"], figures["pgmq"], "-")
    ratio_row("claim, complete, settle against graphile-worker's local queue", figures["handle"], figures["graphile handle"], 3.5)
    figure_row("WAL per command sent, bytes", wal["send"], "-")
    figure_row("WAL per command handled, bytes", wal["handle"], "1,100 both")
    if other:
        ratio_row("send, against the other program", figures["send"], figures["other send"], "-")
        ratio_row("claim, complete, settle, against the other program", figures["handle"], figures["other handle"], "-")


def latency(server, other):
    del other
    rows = {"p50": [], "p99": []}
    for _ in range(min(ROUNDS, 3)):
        report = json.loads(server.pawl("bench", "latency", "--seconds", str(3 * SECONDS), "--json"))
        for row in report["figures"]:
            for name, values in rows.items():
                if name in row["figure"]:
                    values.append(row["runs"][0])
    figure_row("send to start of handler at 100/s, p50, ms", rows["p50"], 1.2, 1)
    figure_row("the same, p99, ms", rows["p99"], 3, 1)


# ---- transfers ----

WALLETS = """
    select count(*) from wallet.open(array(select 'w' || n from generate_series(1, 1000) n));
    select count(*) from wallet.post(array_fill('topup'::text, array[1000]), array(select gen_random_uuid() from generate_series(1, 1000)),
      array(select 'w' || n from generate_series(1, 1000) n), array_fill(1000000000::bigint, array[1000]));"""


def transfers(server, other):
    script = os.path.join(ROOT, "test/bench/transfer.lua")

    def post(program, address, connections, mode):
        return program.wrk(connections, "-s", script, address, "--", mode)

    def plain_post(clients):
        return server.pgbench("-c", str(clients), "-j", str(min(2, clients)), "-T", str(SECONDS), "-D", "wallets=1000",
                              "-f", os.path.join(ROOT, "test/bench/plain_post.sql"))

    with contextlib.ExitStack() as stack:
        address = stack.enter_context(server.serve())[0]
        with open(os.path.join(ROOT, "test/bench/plain.sql"), encoding="utf-8") as plain:
            server.sql(plain.read())
        server.sql(WALLETS)
        variants = {
            "many": lambda: post(server, address, 64, "any"), "plain many": lambda: plain_post(64),
            "one": lambda: post(server, address, 1, "any"), "plain one": lambda: plain_post(1),
            "batch": lambda: post(server, address, 2, "batch") * 1000}
        if other:
            other_address = stack.enter_context(other.serve())[0]
            other.sql(WALLETS)
            for name, connections, mode, each in (("many", 64, "any", 1), ("one", 1, "any", 1), ("batch", 2, "batch", 1000)):
                variants["other " + name] = lambda c=connections, m=mode, e=each: post(other, other_address, c, m) * e
        figures = alternate(variants)
    ratio_row("`POST /v1/transfers`, 64 connections, against the six statements, 64 clients", figures["many"], figures["plain many"], 5)
    ratio_row("the same, 1 connection against 1 client", figures["one"], figures["plain one"], 1.0)
    figure_row("`POST /v1/transfers/batch`, 1,000 each, 2 connections, transfers/s", figures["batch"], "32,000")
    if other:
        for name, text in (("many", "64 connections"), ("one", "1 connection"), ("batch", "batches of 1,000, 2 connections")):
            ratio_row(f"transfers, {text}, against the other program", figures[name], figures["other " + name], "-")


# ---- base ----

def base(server, other):
    servers = {"ours": server, **({"other": other} if other else {})}
    figures = {name: {"live": [], "memory": [], "start": []} for name in servers}

    def measure(name):
        with servers[name].serve() as (address, process, ready_ms):
            figures[name]["start"].append(ready_ms)
            output("curl", "-sf", address + "/health/ready")
            with open(f"/proc/{process}/status", encoding="ascii") as status:
                figures[name]["memory"].append(int(re.search(r"VmRSS:\s+(\d+)", status.read())[1]) / 1024)
            figures[name]["live"].append(servers[name].wrk(64, address + "/health/live"))

    for name in servers:
        with servers[name].serve():  # the first start migrates
            pass
    alternate({name: lambda name=name: measure(name) for name in servers})
    for figure, text, digits in (("live", "`GET /health/live`, 64 connections, a second", 0), ("memory", "resident memory of the idle daemon, MB", 1),
                                 ("start", "start on an existing database, ms", 0)):
        figure_row(text, figures["ours"][figure], "-", digits)
        if other:
            figure_row("the same, the other program", figures["other"][figure], "-", digits)


SECTIONS = {"commands": commands, "latency": latency, "transfers": transfers, "base": base}


def main():
    chosen = sys.argv[1:] or list(SECTIONS)
    if any(name not in SECTIONS for name in chosen):
        sys.exit(__doc__)
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="pawl-peers."))
        os.chmod(folder, 0o755)
        server = Server(os.path.join(ROOT, "build/pawl"), folder, "home")
        stack.callback(server.stop)
        other = Server(OTHER, folder, "other") if OTHER else None
        if other:
            stack.callback(other.stop)
        print("| figure | target | median | each round | median of both sides |\n|---|---|---|---|---|")
        for name in chosen:
            SECTIONS[name](server, other)


if __name__ == "__main__":
    main()
