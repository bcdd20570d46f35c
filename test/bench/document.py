"""Writes what stands between the markers of docs/benchmarks.md and README.md, and the charts, from the results of one run.

A block begins with `<!-- bench NAME -->` and ends with `<!-- bench end -->`. Without results each figure is "not measured", and blocks
of README.md stay as they are. The same results always give the same text.
"""
import datetime
import os
import re

import chart
from instructions import COUNTED
from paths import GROWTH, PATHS
from programs import ROOT
from rows import README_ROWS, ROWS, is_met, measured

NOT_MEASURED = "not measured"
PICTURES = "docs/pictures"
MARKED = re.compile(r"(<!-- bench ([\w-]+) -->\n).*?(<!-- bench end -->)", re.S)


def number(value, unit=""):
    """With as many digits as mean something."""
    digits = 0 if value >= 100 or (value == int(value) and unit not in ("times", "ms")) else 1 if value >= 10 else 2
    return f"{value:,.{digits}f}"


def with_unit(value, unit):
    return number(value, unit) + (unit if unit in ("/s", "") else " " + unit)


def target_text(row):
    if row.target is None:
        return "reported"
    if row.peer or row.over:
        return f"{row.target:.1f} {'times' if row.peer else row.unit}"
    return f"{row.target:,g}" + (row.unit if row.unit == "/s" else " " + row.unit)


def measured_text(row, found):
    if not found:
        return NOT_MEASURED
    unit = "times" if row.peer else "times" if row.over else row.unit
    value = with_unit(found.median, unit)
    spread = f" ({number(min(found.values), unit)} to {number(max(found.values), unit)})" if len(found.values) > 1 else ""
    sides = f": {with_unit(found.ours, row.unit)} and {with_unit(found.theirs, row.unit)}" if row.peer else ""
    if row.over:
        sides = f": {number(found.ours)} and {number(found.theirs)} ms"
    return (value if is_met(row, found) else f"**{value}**") + spread + sides


def rows_table(chosen, results, commands=True):
    lines = ["| figure | target | measured | beside |" + (" command |" if commands else ""), "|---|---|---|---|" + ("---|" if commands else "")]
    for row in chosen:
        cells = [row.text, target_text(row), measured_text(row, measured(row, results)), row.peer_text] + ([f"`{row.command}`"] if commands else [])
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def conditions(report):
    if not report:
        return "No run has been written here yet. `./dev bench report` takes the figures and writes this page."
    machine, options = report["machine"], report["options"]
    flush = " and ".join(f"{value:.2f}" for value in dict.fromkeys(machine["flush_ms"]))
    packages = ", ".join(f"{name} {version}" for name, version in machine["packages"].items())
    lines = [
        f"- Run of {report['date']}, commit `{machine['commit']}`, {options['rounds']} rounds, {report['minutes']:.0f} minutes",
        f"- {machine['cpus']} processors ({machine['processor']}), {machine['memory_gb']:.0f} GB, {machine['system']}",
        f"- PostgreSQL {machine['postgresql']}, fsync and synchronous_commit on; a flush (`pg_test_fsync`, fdatasync) took {flush} ms before and after",
    ]
    if packages:
        lines.append(f"- {packages}, Node.js {machine['node']}")
    return "\n".join(lines)


def throughput(results):
    turns = results.get("concurrency")
    if not turns:
        return NOT_MEASURED
    levels = sorted({int(name.rsplit(" ", 1)[1]) for name in turns})
    lines = ["| a second, at once: | " + " | ".join(map(str, levels)) + " |", "|---|" + "---|" * len(levels)]
    for ours, (text, peer, peer_text) in PATHS.items():
        for path, name in ((ours, text), (peer, peer_text)):
            cells = [number(median_of(turns, path, n)) if turns.get(f"{path} {n}") else NOT_MEASURED for n in levels]
            line = f"| {name} | " + " | ".join(cells) + " |"
            if line not in lines:
                lines.append(line)
    return "\n".join(lines) + f"\n\n![Throughput by concurrency](pictures/throughput.svg)\n\nRepeated by `./dev bench report concurrency`; {rounds_text(turns)}."


def rounds_text(turns):
    count = min(len(values) for values in turns.values())
    return f"the median of {count} rounds" if count > 1 else "one round"


def median_of(turns, path, n):
    values = sorted(turn["per_s"] for turn in turns[f"{path} {n}"])
    return values[len(values) // 2]


COSTS = [
    ("handlers", [(f"{program} {n}", text.format(n)) for n in (8, 24, 64)
                  for program, text in (("pawl", "libpawl handler, {} at once"), ("graphile", "graphile-worker, {} at once"))]),
    ("inserts", [("sql 8", "`--sql` handler, one row"), ("http 64", "HTTP, claim and settle of 1"), ("http hundreds", "HTTP, claims and settles of 100"),
                 ("pgbench 8", "pgbench, one row")]),
    ("send", [("pawl", "`pawl_send_many`"), ("http 64", "`POST /v1/commands`"), ("graphile", "`add_jobs`"), ("pgmq", "`pgmq.send_batch`")]),
    ("processes", [("pawl 32", "process of three steps, 32 at once"), ("pawl 1", "the same, one at a time"), ("dbos 32", "DBOS, 32 at once"),
                   ("dbos 1", "DBOS, one at a time")]),
    ("transfers", [("http 64", "`POST /v1/transfers`, 64 connections"), ("http batches", "`POST /v1/transfers/batch`"), ("six 64", "six statements, 64 clients")]),
]


def costs(results):
    lines = ["| each command, process or transfer | PostgreSQL | the program | WAL | command |", "|---|---|---|---|---|"]
    for group, variants in COSTS:
        for variant, text in variants:
            turns = results.get(group, {}).get(variant)
            cells = [NOT_MEASURED] * 3
            if turns:
                values = [sorted(turn[name] for turn in turns)[len(turns) // 2] for name in ("server_us", "program_us", "wal_bytes")]
                cells = [f"{number(values[0])} µs", f"{number(values[1])} µs" if values[1] else "", f"{values[2]:,.0f} bytes"]
            lines.append(f"| {text} | " + " | ".join(cells) + f" | `./dev bench report {group}` |")
    return "\n".join(lines)


def instructions(results):
    lines = ["| for each item | instructions of PostgreSQL |", "|---|---|"]
    for name, (_, text, _, _) in COUNTED.items():
        turns = results.get("instructions", {}).get(name)
        lines.append(f"| {text} | " + (f"{turns[0]['instructions']:,.0f}" if turns else NOT_MEASURED) + " |")
    return "\n".join(lines) + "\n\nRepeated by `./dev bench report instructions`."


def missed(results):
    lines = ["| figure | reason |", "|---|---|"]
    for row in ROWS:
        found = measured(row, results)
        if found and not is_met(row, found):
            lines.append(f"| {row.text} ({row.group}) | {row.why or 'not known'} |")
    return "\n".join(lines) if len(lines) > 2 else "None." if results else NOT_MEASURED


def with_picture(table, picture, text, results):
    shown = f"\n\n![{text}](pictures/{picture}.svg)" if picture in charts(results) else ""
    return table + shown


def blocks(report):
    """{name: text} of docs/benchmarks.md."""
    results = report["groups"] if report else {}
    found = {name: rows_table([row for row in ROWS if row.table == name], results) for name in dict.fromkeys(row.table for row in ROWS)}
    found["latency"] = with_picture(found["latency"], "latency", "Latency", results)
    found["growth"] = with_picture(found["growth"], "growth", "Growth", results)
    return {**found, "conditions": conditions(report), "throughput": throughput(results), "costs": costs(results),
            "instructions": instructions(results), "missed": missed(results)}


def readme_blocks(report):
    if not report:
        return {}
    chosen = {(row.group, row.variant, row.field, row.peer): row for row in ROWS}
    return {name: rows_table([chosen[key] for key in keys], report["groups"], commands=False) for name, keys in README_ROWS.items()}


# ---- charts ----

def plain(text):
    return text.replace("`", "")


def throughput_chart(turns):
    panels = []
    for ours, (text, peer, peer_text) in PATHS.items():
        series = []
        for path, name in ((ours, "pawl"), (peer, peer_text.split(",")[0])):
            levels = sorted(int(key.rsplit(" ", 1)[1]) for key, values in turns.items() if values and key.rsplit(" ", 1)[0] == path)
            if levels:
                series.append((name, [(n, median_of(turns, path, n)) for n in levels]))
        if series:
            panels.append((f"{plain(text)}, a second", "at once", series))
    return chart.lines(panels, "Throughput by concurrency, pawl beside each peer")


LATENCIES = [("latency", "same program", "send", "send"), ("latency", "same program", "start", "send to start of handler, same program"),
             ("latency", "other program", "start", "send to start of handler, other program"), ("resume", "response", "response", "response"),
             ("resume", "response", "run", "response until its process runs"), ("send", "http 64", "", "POST /v1/commands, 64 connections"),
             ("transfers", "http 64", "", "POST /v1/transfers, 64 connections")]


def latency_chart(results):
    bars = []
    for group, variant, prefix, text in LATENCIES:
        turns = results.get(group, {}).get(variant)
        if turns:
            names = {mark: f"{prefix}_{mark}" if prefix else mark for mark in ("p50", "p90", "p99")}
            bars.append((text, {mark: sorted(turn[name] for turn in turns)[len(turns) // 2] for mark, name in names.items()}))
    return chart.percentiles(bars, "Latency: median, 90th and 99th percentile")


def growth_chart(turns):
    series = [(text, [(i + 1, turn["per_s"]) for i, turn in enumerate(turns[name])]) for name, text in GROWTH.items() if turns.get(name)]
    return chart.lines([("Commands handled a second, in rounds of as many each", "round", series)], "Growth", columns=1, is_log=False)


def charts(results):
    """{name: SVG} of what was measured."""
    found = {}
    if results.get("concurrency"):
        found["throughput"] = throughput_chart(results["concurrency"])
    if results.get("latency"):
        found["latency"] = latency_chart(results)
    if results.get("growth"):
        found["growth"] = growth_chart(results["growth"])
    return found


# ---- files ----

def replaced(text, found):
    return MARKED.sub(lambda match: match[1] + found[match[2]] + "\n" + match[3] if match[2] in found else match[0], text)


def documents(report, root=ROOT):
    """{path: what it should contain}, of the documents and, after a run, of the charts."""
    found = {}
    for path, parts in (("docs/benchmarks.md", blocks(report)), ("README.md", readme_blocks(report))):
        with open(os.path.join(root, path), encoding="utf-8") as file:
            found[path] = replaced(file.read(), parts)
    if report:
        found.update({f"{PICTURES}/{name}.svg": svg for name, svg in charts(report["groups"]).items()})
    return found


def write(report, root=ROOT):
    for path, text in documents(report, root).items():
        os.makedirs(os.path.dirname(os.path.join(root, path)), exist_ok=True)
        with open(os.path.join(root, path), "w", encoding="utf-8") as file:
            file.write(text)


def table_print(results, names):
    """For a terminal, the rows of these groups; those of another build beside them."""
    chosen = [row for row in ROWS if row.group in names]
    if chosen:
        print(rows_table(chosen, results))
    others = [(row, measured(row._replace(over=None), results, peer="other " + row.variant)) for row in chosen]
    for row, found in others:
        if found:
            print(f"| {row.text}, against the other build | | {measured_text(row._replace(peer='other', target=None, over=None), found)} | | |")
    for name, table in (("concurrency", throughput), ("instructions", instructions)):
        if name in names:
            print("\n" + table(results))


def date_now():
    return datetime.datetime.now(datetime.timezone.utc).date().isoformat()
