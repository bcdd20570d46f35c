"""Instructions of PostgreSQL for each item of an array, counted by valgrind in a single-user server: a figure that a busy machine does not change.

Each is the difference between a run of few calls and one of more, so that the start of the server does not count. Statements are parsed
and planned in each call, as clients without prepared statements have it; with a thousand items in a call that hardly counts.
"""
import os
import re
import subprocess
import sys

from programs import PAYLOAD

DOMAIN = "bench"
SEND = f"select count(*) from pawl.send('{DOMAIN}', array_fill('noop'::text, array[{{size}}]), array_fill('{PAYLOAD}'::jsonb, array[{{size}}]));"
# The position behind which a claim starts is that of its cursor: the number of the last command that was settled.
CLAIM = (f"select count(*) from pawl.claim(pawl.domain_find('{DOMAIN}'), {{size}}, 3600000, "
         "array_fill((select coalesce(max(id), 0) from pawl.outcome), array[10]), null, 'w');"
         "select count(*) from (select array_agg(id) as ids, array_agg(token) as tokens from pawl.lease) l, "
         "pawl.settle(l.ids, l.tokens, array_fill('complete'::text, array[{size}]));")
JOBS = (f"select count(*) from graphile_worker.add_jobs(array_fill(row('noop', '{PAYLOAD}', null, null, null, null, null, null)"
        "::graphile_worker.job_spec, array[{size}]));")
MESSAGES = f"select count(*) from pgmq.send_batch('{DOMAIN}', array_fill('{PAYLOAD}'::jsonb, array[{{size}}]));"
TRANSFERS = ("select count(*) from wallet.post(array_fill('transfer'::text, array[{size}]), "
             "array(select gen_random_uuid() from generate_series(1, {size})), "
             "array(select 'w' || 1 + (n * 7919 + {call}) % 500 from generate_series(1, {size}) n), array_fill(1::bigint, array[{size}]), "
             "array(select 'w' || 501 + (n * 104729 + {call}) % 500 from generate_series(1, {size}) n));")

# What is counted: (database, text, statement, items in a call). Claims find what sends before them have queued.
COUNTED = {
    "send": ("pawl", "`pawl.send`, 1,000 in a call", SEND, 1000),
    "add_jobs": ("graphile", "`add_jobs` of graphile-worker, 1,000 in a call", JOBS, 1000),
    "pgmq": ("pawl", "`pgmq.send_batch` of schema `pgmq`, 1,000 in a call", MESSAGES, 1000),
    "claim": ("pawl", "`pawl.claim` and `pawl.settle`, 500 in a call", CLAIM, 500),
    "transfers": ("pawl", "`wallet.post`, 1,000 transfers in a call", TRANSFERS, 1000),
    "transfers 30": ("pawl", "`wallet.post`, 30 transfers in a call", TRANSFERS, 30),
}
FEW, MORE, MORE_SMALL = 1, 6, 40


def run_count(server, database, statement, size, calls):
    data = os.path.join(server.home, "pg/data")
    command = ["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", f"{server.bin}/postgres", "--single", "-D", data, "-c", "fsync=off",
               "-c", "logging_collector=off", database]
    # PostgreSQL refuses to run as root; the owner of its data may.
    if os.geteuid() == 0:
        command = ["runuser", "-u", "postgres", "--", *command]
    lines = "".join(statement.replace("{size}", str(size)).replace("{call}", str(call)).replace(";", ";\n") for call in range(calls))
    done = subprocess.run(command, input=lines, capture_output=True, text=True, check=False, cwd="/")
    found = re.search(r"Collected : (\d+)", done.stderr)
    if not found or re.search(r"ERROR|FATAL", done.stderr):
        sys.exit("bench: instructions cannot be counted\n" + done.stderr[-2000:])
    return int(found[1])


def count(server, name, smoke):
    """Instructions per item. The server is stopped."""
    database, _, statement, size = COUNTED[name]
    size, more = (10, FEW + 1) if smoke else (size, MORE if size >= 500 else MORE_SMALL)
    run_count(server, database, statement, size, 1)  # the first one in a database does more
    few, many = (run_count(server, database, statement, size, calls) for calls in (FEW, more))
    return {"instructions": (many - few) / ((more - FEW) * size)}
