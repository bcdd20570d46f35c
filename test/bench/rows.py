"""The list of measurements: a row is a figure of docs/benchmarks.md with its target, its path, its peer and the command that repeats it.

Its group (paths.py) measures it in turns with its peer. A row has a value per round; the median counts, and the smallest and the largest are
its spread.
"""
import statistics
from typing import NamedTuple


class Row(NamedTuple):
    table: str
    text: str
    group: str
    variant: str
    field: str = "per_s"
    target: float = None  # None: reported
    unit: str = "/s"
    peer: str = None  # a variant of the same group: the row is the ratio to it, of the same round
    peer_text: str = ""
    over: str = None  # a field of the same turn: the row is the multiple of it
    is_most: bool = False  # the target is the most that is allowed, not the least
    why: str = ""  # shown if the target is missed

    @property
    def command(self):
        return f"./dev bench report {self.group}"

    @property
    def key(self):
        return f"{self.group}: {self.variant}, {self.field}" + (f", {self.peer}" if self.peer else "")


GRAPHILE = "graphile-worker's local queue, {} jobs at once"
SHORT = "A write for a few processes costs nearly as much as one for sixty, so fewer at once are slower"
FLUSHES = "Two transactions one after the other: the {}, which waits for its flush, and the claim"

ROWS = [
    *(Row("commands", f"libpawl handler, {'8 handlers (the default)' if n == 8 else f'{n} handlers'}", "handlers", f"pawl {n}", target=target,
          peer=f"graphile {n}", peer_text=GRAPHILE.format(n),
          why="Three index inserts, the scan of `ready` and two lookups per command; graphile-worker updates a job's row once and deletes it")
      for n, target in ((8, 2.0), (24, 2.0), (64, 2.5))),
    Row("commands", "`pawl work --sql`, a function that inserts one row, 8 handlers (the default)", "inserts", "sql 8", target=1.0, peer="pgbench 8",
        peer_text="8 clients of pgbench that insert the row in a transaction each",
        why="Short functions share transactions, and the claim, the lease and the outcome of a command are rows beside the inserted one"),
    Row("commands", "HTTP, a claim of 1 and a settle of 1 per command, 64 connections", "inserts", "http 64", target=0.4, peer="pgbench 8",
        peer_text="8 clients of pgbench that insert one row in a transaction each", why="Two requests and two transactions per command, which others share"),
    Row("commands", "HTTP, claims and settles of 100, 8 connections", "inserts", "http hundreds", target=40000,
        why="Where the processors are in use, it is the limit of the machine: wrk, the daemon and PostgreSQL share them"),
    Row("commands", "processors in use meanwhile", "inserts", "http hundreds", "busy_percent", unit="%"),
    Row("commands", "`pawl_send_many`, 1,000 each, 2 threads", "send", "pawl", target=2.0, peer="graphile",
        peer_text="`add_jobs` of graphile-worker, 1,000 in a call, 2 clients",
        why="A command is two rows and three index entries. Left to do: `nextval` per range, and ranges of commands in `ready` "
            "([ADR 14](adr/0014-growth-of-the-bus.md))"),
    Row("commands", "`pawl_send_many`, beside messages", "send", "pawl", target=0.6, peer="pgmq", peer_text="`pgmq.send_batch` of [schema `pgmq`](pgmq.md), 1,000 in a call",
        why="A message of `pgmq` is one row with two index entries"),
    Row("commands", "`POST /v1/commands`, one each, 64 connections", "send", "http 64", target=8000),

    *(Row("latency", f"libpawl, send to start of handler, 100/s, {text}: p50", "latency", variant, "start_p50", target, unit="times the send", over="send_p50",
          is_most=True, why=FLUSHES.format("send") + more)
      for variant, text, target, more in (("same program", "same program", 1.2, ""),
                                          ("other program", "other program", 1.8, ". The notification between them is a third one, without a flush"))),
    *(Row("latency", f"libpawl, send to start of handler, 100/s, {variant}: p99", "latency", variant, "start_p99", 5, unit="ms", is_most=True, why=FLUSHES.format("send"))
      for variant in ("same program", "other program")),
    Row("latency", "libpawl, from a response until its process runs, 100/s: p50", "resume", "response", "run_p50", 1.5, unit="times the response",
        over="response_p50", is_most=True, why=FLUSHES.format("response")),
    Row("latency", "libpawl, from a response until its process runs, 100/s: p99", "resume", "response", "run_p99", unit="ms", is_most=True),

    *(Row("processes", f"libpawl, three steps, from start to end, {text}", "processes", f"pawl {n}", target=target, peer=f"dbos {n}",
          peer_text=f"DBOS for TypeScript, three steps, {text}", why=SHORT) for n, text, target in ((32, "32 at once", 10), (1, "one at a time", 3))),

    Row("transfers", "`POST /v1/transfers`, 64 connections", "transfers", "http 64", target=5, peer="six 64",
        peer_text="the six statements of `plain_post.sql` in a transaction, 64 clients of pgbench",
        why="Batches of some 30, where starting seven plans and looking up 60 different wallets weigh most. The cheaper a commit, the less is gained by "
            "sharing it"),
    Row("transfers", "`POST /v1/transfers`, 64 connections: p99", "transfers", "http 64", "p99", 25, unit="ms", is_most=True),
    Row("transfers", "`POST /v1/transfers`, 64 connections, all from one wallet", "transfers", "http one wallet", target=12, peer="six one wallet",
        peer_text="the six statements, all on one wallet"),
    Row("transfers", "`POST /v1/transfers`, 1 connection", "transfers", "http 1", target=1.0, peer="six 1", peer_text="the six statements, 1 client without HTTP"),
    Row("transfers", "`POST /v1/transfers/batch`, 1,000 each, 2 connections", "transfers", "http batches", target=32000,
        why="Three rows, six index entries and the lookups of wallets, last entries and keys for each transfer. Two batches of 1,000 on 1,000 wallets have nearly "
            "all wallets in common, so one waits for the other, and PostgreSQL uses one core"),
    Row("transfers", "`GET /v1/wallets/{owner}`, 64 connections", "transfers", "read 64", target=12000),
    Row("transfers", "`pawl wallet verify` of 1,000,000 sealed entries", "verify", "pawl", "verify_verify", 10000, unit="ms", is_most=True),

    *(Row("growth", f"libpawl handler, 8 handlers, {text}", "growth", name, target=0.9, peer="none", peer_text="a database without them, in turns")
      for name, text in (("delayed", "beside 1,000,000 delayed commands"), ("retained", "beside 1,000,000 ended commands"),
                         ("snapshot", "while another connection keeps an old snapshot"), ("xid", "while another connection keeps a transaction id open"))),

    Row("daemon", "resident memory of an idle `pawl serve`", "daemon", "pawl", "memory_mb", 13, unit="MB", is_most=True),
    Row("daemon", "start on an existing database, until ready", "daemon", "pawl", "start_ms", 40, unit="ms", is_most=True),
    Row("daemon", "first start with a private PostgreSQL, until ready", "daemon", "first", "start_ms", 6000, unit="ms", is_most=True),
    Row("daemon", "`GET /health/live`, 64 connections", "daemon", "pawl", "live_per_s", 50000),

    Row("bot", "updates stored, match registered, answer queued and taken out; 1,000 groups of 8 players, 128 updates at once", "bot", "pawl", target=1500),
    Row("bot", "WAL per update", "bot", "pawl", "wal_bytes", unit="bytes"),
]

# What stands between the markers of README.md, by (group, variant, field, peer).
README_ROWS = {
    "peers": [("handlers", "pawl 8", "per_s", "graphile 8"), ("inserts", "sql 8", "per_s", "pgbench 8"), ("inserts", "http 64", "per_s", "pgbench 8"),
              ("processes", "pawl 32", "per_s", "dbos 32"), ("transfers", "http 64", "per_s", "six 64")],
    "waits": [("latency", "same program", "start_p50", None), ("latency", "other program", "start_p50", None), ("latency", "same program", "start_p99", None),
              ("resume", "response", "run_p50", None), ("daemon", "pawl", "memory_mb", None), ("daemon", "pawl", "start_ms", None)],
}


class Measured(NamedTuple):
    values: list  # of each round
    ours: float
    theirs: float  # None: no peer

    @property
    def median(self):
        return statistics.median(self.values)


def measured(row, results, variant=None, peer=None):
    """From the rounds of a run; None: it was not measured. variant, peer: others than the row's."""
    turns = results.get(row.group, {})
    ours, theirs = turns.get(variant or row.variant), turns.get(peer or row.peer) if peer or row.peer else None
    if not ours or row.field not in ours[0] or ((peer or row.peer) and not theirs):
        return None
    values = [turn[row.field] for turn in ours]
    if theirs is not None:
        others = [turn[row.field] for turn in theirs]
        ratios = [a / b for a, b in zip(values, others)]
        return Measured(ratios, statistics.median(values), statistics.median(others))
    if row.over:
        return Measured([turn[row.field] / turn[row.over] for turn in ours], statistics.median(values), statistics.median(t[row.over] for t in ours))
    return Measured(values, statistics.median(values), None)


def is_met(row, found):
    return row.target is None or (found.median <= row.target if row.is_most else found.median >= row.target)
