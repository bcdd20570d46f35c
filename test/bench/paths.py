"""What is measured: groups of variants that run in turns, so that other load and the state of the disk affect all of them.

A group prepares, and returns its variants by name: functions that run one turn and return its figures. Those of another build
(--other) have "other " before their name. A variant is a path that users run, or a peer on the same server: libpawl as a program links
it (library.c), `pawl work`, requests to `pawl serve`, `pawl bench` where that calls what users call.
"""
import contextlib
import json
import os
import re
import shutil
import subprocess
import time
from typing import NamedTuple

from instructions import COUNTED, count
from programs import HERE, PAYLOAD, Meter, Node, Server, batches, output, shared

LEVELS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
WALLETS = """
    select count(*) from wallet.open(array(select 'w' || n from generate_series(1, 1000) n));
    select count(*) from wallet.post(array_fill('topup'::text, array[1000]), array(select gen_random_uuid() from generate_series(1, 1000)),
      array(select 'w' || n from generate_series(1, 1000) n), array_fill(1000000000::bigint, array[1000]));"""
# The handler, and the peer's statement: one row each.
INSERT = """
    create schema if not exists shop;
    grant usage on schema shop to pawl_handler;
    create table if not exists shop.row (id uuid primary key, payload jsonb not null);
    create or replace function shop.insert_row(payload jsonb, command_id uuid) returns jsonb language sql security definer set search_path = pg_temp
    as $$ insert into shop.row values ($2, $1) returning '{}'::jsonb $$;"""


class Context(NamedTuple):
    servers: dict  # {"": ours, "other ": of another build}
    node: object  # None: without the peers of npm
    smoke: bool

    @property
    def seconds(self):
        return 1 if self.smoke else 2

    @property
    def pgbench(self):
        return ("-t", "5") if self.smoke else ("-T", str(self.seconds))

    def count(self, full, smoke=200):
        return smoke if self.smoke else full


class Group(NamedTuple):
    prepare: object  # (context, stack) -> {variant: function}
    text: str
    round_s: float  # how long a round takes, for the expected end
    rounds_max: int = 100


def each(context, variants):
    """{name: function} for every server, from {name: function of a server}."""
    return {tag + name: lambda server=server, turn=turn: turn(server) for tag, server in context.servers.items() for name, turn in variants.items()}


def reset(context):
    for server in context.servers.values():
        server.reset()


# ---- paths ----

def handle(server, count, concurrency, url=None):
    server.library_run("send", count, 2, url=url)
    server.sql("checkpoint")
    meter = Meter(server)
    return {**server.library_run("handle", count, concurrency, url=url), **meter.figures(count)}


def sql_handler(server, count, concurrency):
    """From the first claim to the last settle, so that the start of the program does not count."""
    newest = server.sql("select coalesce(max(id), 0) from pawl.command")
    queue(server, "sql", count)
    server.sql("truncate shop.row; checkpoint")
    meter = Meter(server)
    server.pawl("work", "sql", "--sql", "shop.insert_row", "--drain", "-j", str(concurrency))
    figures = meter.figures(count)
    done, seconds = server.sql("select count(*), extract(epoch from max(ended_at) - min(started_at)) "
                               f"from pawl.outcome where id > {newest} and status = 'COMPLETED'").split("|")
    assert int(done) == count == int(server.sql("select count(*) from shop.row")), f"{done} of {count} commands were completed"
    return {**figures, "per_s": count / float(seconds)}


def inserts(server, clients, duration):
    server.sql("truncate shop.row; checkpoint")
    file = os.path.join(server.folder, "insert.sql")
    with open(file, "w", encoding="utf-8") as script:
        script.write(f"insert into shop.row values (gen_random_uuid(), '{PAYLOAD}');\n")
    return server.pgbench(clients, *duration, "-f", file)


def queue(server, domain, count):
    """Send what is missing to have this many commands queued."""
    missing = count - int(server.sql(f"select count(*) from pawl.ready where domain_id = pawl.domain_find('{domain}')"))
    server.sql(f"""
        select count(*) from generate_series(1, {missing}, 1000) n, lateral (select least(1000, {missing} - n + 1)::integer as size) l,
          lateral (select count(*) from pawl.send('{domain}', array_fill('noop'::text, array[size]), array_fill('{PAYLOAD}'::jsonb, array[size]))) s""")


def http_claims(server, daemon, connections, limit, seconds, queued):
    queue(server, "http", queued)
    server.sql("checkpoint")
    return server.wrk(daemon, connections, seconds, "", "http", limit, script="claim.lua")


def http_sends(server, daemon, connections, seconds):
    server.sql("checkpoint")
    return server.wrk(daemon, connections, seconds, "", script="send.lua")


def transfers(server, daemon, connections, seconds, mode="any"):
    server.sql("checkpoint")
    return shared(server.wrk(daemon, connections, seconds, "", mode, script="transfer.lua"), 1000 if mode == "batch" else 1)


def six_statements(server, clients, duration, wallets=1000):
    server.sql("checkpoint")
    return server.pgbench(clients, *duration, "-D", f"wallets={wallets}", "-f", os.path.join(HERE, "plain_post.sql"))


def processes(server, count, clients):
    server.sql("checkpoint")
    meter = Meter(server)
    return {**server.library_run("processes", count, clients), **meter.figures(count)}


def processes_count(context, clients):
    """Some seconds of them."""
    return context.count(min(4000, 100 + 40 * clients), max(20, clients))


def dbos_count(context, clients):
    return context.count(min(400, 100 + 20 * clients), max(20, clients))


def plain_tables(server):
    with open(os.path.join(HERE, "plain.sql"), encoding="utf-8") as plain:
        server.sql(plain.read())


# ---- groups ----

def group_handlers(context, _stack):
    reset(context)
    variants = each(context, {f"pawl {n}": lambda server, n=n: handle(server, context.count(100000), n) for n in (8, 24, 64)})
    if context.node:
        context.node.graphile_new()
        variants.update({f"graphile {n}": lambda n=n: context.node.graphile(context.count(40000), n) for n in (8, 24, 64)})
    return variants


def daemons(context, stack):
    return {id(server): stack.enter_context(server.serve()) for server in context.servers.values()}


def group_inserts(context, stack):
    reset(context)
    for server in context.servers.values():
        server.sql(INSERT)
    daemon = daemons(context, stack)
    seconds = context.seconds
    return {
        **each(context, {
            "sql 8": lambda server: sql_handler(server, context.count(8000), 8),
            "http 64": lambda server: http_claims(server, daemon[id(server)], 64, 1, seconds, context.count(30000, 20000) * seconds),
            "http hundreds": lambda server: http_claims(server, daemon[id(server)], 8, 100, seconds, 90000 * seconds)}),
        "pgbench 8": lambda: inserts(context.servers[""], 8, context.pgbench)}


def group_send(context, stack):
    reset(context)
    payload = '"' + PAYLOAD.replace('"', '\\"') + '"'
    count = context.count(100000, 2000)
    daemon = daemons(context, stack)

    def pawl(server):
        server.sql("checkpoint")
        meter = Meter(server)
        return {**server.library_run("send", count, 2), **meter.figures(count)}

    def graphile():
        context.servers[""].sql("truncate graphile_worker._private_jobs", context.servers[""].database("graphile"))
        context.servers[""].sql("checkpoint")
        return context.node.graphile_send(count)

    def pgmq(server):
        server.sql("select pgmq.drop_queue('bench'); select pgmq.create('bench'); checkpoint")
        return batches(server, "select count(*) from pgmq.send_batch('bench', :list)", payload, count)

    variants = each(context, {"pawl": pawl, "pgmq": pgmq, "http 64": lambda server: http_sends(server, daemon[id(server)], 64, context.seconds)})
    if context.node:
        context.node.graphile_new()
        variants["graphile"] = graphile
    return variants


def group_latency(context, _stack):
    reset(context)
    seconds = 1 if context.smoke else 4

    def other_program(server):
        receiver = server.library_start("receive", 100 * seconds)
        assert receiver.stdout.readline() == "ready\n"
        sent = server.library_run("pace", 100, seconds)
        said = receiver.communicate(timeout=60)[0]
        return {**sent, **json.loads(said)}

    return each(context, {"same program": lambda server: server.library_run("latency", 100, seconds), "other program": other_program})


def group_resume(context, _stack):
    reset(context)
    return each(context, {"response": lambda server: server.library_run("resume", 100, 1 if context.smoke else 4)})


def group_processes(context, _stack):
    reset(context)
    variants = each(context, {f"pawl {n}": lambda server, n=n: processes(server, processes_count(context, n), n) for n in (32, 1)})
    if context.node:
        context.servers[""].database_new("dbos")
        variants.update({f"dbos {n}": lambda n=n: context.node.dbos(dbos_count(context, n), n) for n in (32, 1)})
    return variants


def group_transfers(context, stack):
    reset(context)
    for server in context.servers.values():
        server.sql(WALLETS)
    server = context.servers[""]
    plain_tables(server)
    daemon = daemons(context, stack)
    seconds = context.seconds

    def post(connections, mode):
        return lambda server: transfers(server, daemon[id(server)], connections, seconds, mode)

    return {
        **each(context, {"read 64": lambda server: server.wrk(daemon[id(server)], 64, seconds, "", 1000, script="look.lua"),
                         "http 64": post(64, "any"), "http one wallet": post(64, "hot"), "http 1": post(1, "any"), "http batches": post(2, "batch")}),
        "six 64": lambda: six_statements(server, 64, context.pgbench), "six one wallet": lambda: six_statements(server, 64, context.pgbench, wallets=1),
        "six 1": lambda: six_statements(server, 1, context.pgbench)}


GROWTH = {"none": "an empty database", "delayed": "delayed commands", "retained": "ended commands", "snapshot": "an old snapshot",
          "xid": "an open transaction id"}


def session_hold(server, url, stack, statement):
    """Another connection keeps a transaction open until the end of the group."""
    process = subprocess.Popen([f"{server.bin}/psql", "-qXAt", "-d", url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    process.stdin.write(f"begin isolation level repeatable read;\n{statement};\n")
    process.stdin.flush()
    assert process.stdout.readline().strip(), "the transaction that is held did not begin"

    def end():
        process.stdin.close()
        process.wait()

    stack.callback(end)


def group_growth(context, stack):
    """One database for each; what they hold is vacuumed once, as autovacuum would have done. In each round the same databases do the same work."""
    server = context.servers[""]
    server.reset()
    many, count = context.count(1000000, 2000), context.count(50000)
    urls = {name: server.database(f"growth_{name}") for name in GROWTH}
    for name in urls:
        if name == "none":
            server.pawl("migrate", url=server.database_new("growth_none"))
        else:
            server.sql(f"create database growth_{name} template growth_none")
        stack.callback(server.sql, f"drop database growth_{name} with (force)")
    server.library_run("send", many, 2, 30 * 24 * 3600 * 1000, url=urls["delayed"])
    server.library_run("send", many, 2, url=urls["retained"])
    server.library_run("handle", many, 64, url=urls["retained"])
    for url in urls.values():
        server.sql("vacuum (analyze)", url)
    server.sql("checkpoint")
    session_hold(server, urls["snapshot"], stack, "select count(*) from pawl.command")
    session_hold(server, urls["xid"], stack, "select pg_current_xact_id()")
    return {name: lambda url=url: handle(server, count, 8, url) for name, url in urls.items()}


def group_daemon(context, _stack):
    reset(context)

    def start(server):
        with server.serve() as daemon:
            output("curl", "-sf", daemon[0] + "/health/ready")
            time.sleep(0.2 if context.smoke else 1)
            with open(f"/proc/{daemon[1]}/status", encoding="ascii") as status:
                memory_mb = int(re.search(r"VmRSS:\s+(\d+)", status.read())[1]) / 1024
            live = server.wrk(daemon, 64, context.seconds, "/health/live")
        return {"start_ms": daemon[2], "memory_mb": memory_mb, "live_per_s": live["per_s"]}

    for server in context.servers.values():
        with server.serve():  # the first start of a schema
            pass
    return each(context, {"pawl": start, "first": lambda server: {"start_ms": server.first_start_ms()}})


def group_bot(context, _stack):
    flags = ("--count", str(context.count(10000, 60)), "--groups", str(context.count(1000, 5)), "--clients", str(context.count(128, 4)))
    return each(context, {"pawl": lambda server: {
        ("wal_bytes" if "WAL" in key[1] else "per_s"): value
        for key, value in server.bench("bot", *flags, "--rounds", "1").items() if key == ("bot", "updates") or "WAL" in key[1]}})


def group_verify(context, _stack):
    entries = context.count(1000000, 1000)

    def verify(server):
        found = server.bench("transfers", "--verify", str(entries), "--rounds", "1")
        return {re.sub(r"\W+", "_", f"{section}_{figure}"): value for (section, figure), value in found.items()}

    return each(context, {"pawl": verify})


def group_instructions(context, stack):
    """In a server of its own, which is stopped while a single-user server has its data."""
    ours = context.servers[""]
    server = Server(os.path.dirname(ours.program), ours.folder, "single")
    stack.callback(shutil.rmtree, server.home)
    stack.callback(server.stop)  # also if it could not be prepared
    server.reset()
    server.sql(WALLETS)
    server.sql("select pgmq.create('bench')")
    names = [name for name in COUNTED if context.node or name != "add_jobs"]
    if context.node:
        Node(server, context.node.folder).graphile_new()
    # What claims find: each of two runs claims some calls of them.
    queue(server, "bench", 5000)
    server.stop()
    return {name: lambda name=name: count(server, name, context.smoke) for name in (names[:1] if context.smoke else names)}


# By concurrency: path, and the peer beside it. x is connections, handlers or clients.
PATHS = {
    "handler": ("libpawl handler", "graphile", "graphile-worker, local queue"),
    "sql": ("`--sql` handler, one row", "insert", "pgbench, one row"),
    "claim": ("HTTP, one at a time", "insert", "pgbench, one row"),
    "send": ("`POST /v1/commands`", "insert", "pgbench, one row"),
    "process": ("process of three steps", "dbos", "DBOS"),
    "transfer": ("`POST /v1/transfers`", "six", "six statements"),
}


def group_concurrency(context, stack):
    reset(context)
    server = context.servers[""]
    server.sql(INSERT)
    server.sql(WALLETS)
    plain_tables(server)
    daemon = stack.enter_context(server.serve())
    seconds = context.seconds
    turns = {
        "handler": lambda n: handle(server, context.count(60000), n),
        "sql": lambda n: sql_handler(server, context.count(min(6000, 800 + 400 * n), 100), n),
        "claim": lambda n: http_claims(server, daemon, n, 1, seconds, context.count(30000, 20000) * seconds),
        "send": lambda n: http_sends(server, daemon, n, seconds),
        "transfer": lambda n: transfers(server, daemon, n, seconds),
        "insert": lambda n: inserts(server, n, context.pgbench),
        "six": lambda n: six_statements(server, n, context.pgbench),
        "process": lambda n: processes(server, processes_count(context, n), n),
    }
    if context.node:
        context.node.graphile_new()
        server.database_new("dbos")
        turns["graphile"] = lambda n: context.node.graphile(context.count(16000), n)
        turns["dbos"] = lambda n: context.node.dbos(dbos_count(context, n), n)
    levels = LEVELS[-1:] if context.smoke else LEVELS
    return {f"{name} {n}": lambda turn=turn, n=n: turn(n) for n in levels for name, turn in turns.items()}


GROUPS = {
    "handlers": Group(group_handlers, "handlers of commands, beside graphile-worker", 16),
    "inserts": Group(group_inserts, "work that writes a row, beside plain inserts", 14),
    "send": Group(group_send, "sends", 7),
    "latency": Group(group_latency, "from a send to the start of its handler", 9),
    "resume": Group(group_resume, "from a response until its process runs", 5),
    "processes": Group(group_processes, "processes, beside DBOS", 12),
    "transfers": Group(group_transfers, "transfers, beside six statements", 17),
    "growth": Group(group_growth, "growth", 12),
    "daemon": Group(group_daemon, "start and memory of the daemon", 5),
    "bot": Group(group_bot, "updates of the bot", 8, rounds_max=3),
    "verify": Group(group_verify, "verification of the ledger", 60, rounds_max=1),
    "instructions": Group(group_instructions, "instructions of PostgreSQL, counted by valgrind", 90, rounds_max=1),
    "concurrency": Group(group_concurrency, "throughput by concurrency, beside each peer", 220),
}


def measure(context, name):
    """Yields, for ever, a generator of (variant, figures) for each round, in an order that changes from round to round."""
    with contextlib.ExitStack() as stack:
        variants = GROUPS[name].prepare(context, stack)
        names = list(variants)
        for number in range(GROUPS[name].rounds_max):
            order = names[number % len(names):] + names[:number % len(names)]
            yield ((variant, variants[variant]()) for variant in order)
