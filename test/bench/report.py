#!/usr/bin/env python3
"""Measures what docs/benchmarks.md shows, on this machine, and writes that page. Called by ./dev bench.

    report [GROUP]... [--rounds N] [--minutes N] [--smoke] [--no-peers] [--other PROGRAM]
    render       write docs/benchmarks.md, README.md and the charts again, from the results of the last report of all groups
    peers        install the peers that are npm packages, to build/bench/node

A report of all groups writes build/bench/report.json, then what `render` writes; one of some groups prints their rows. Nothing else may run
on the machine. Each round runs all variants of a group, in an order that changes; a ratio compares figures of the same round. When --minutes
(25) have passed, no further round begins: groups that have had one round keep it, and the concurrency group, which is last, gets what is left.
--smoke: tiny counts, one round and no fsync, to see that everything runs; it writes nothing to the documents. --no-peers: without npm.
--other: another pawl program, of its own build folder, takes turns with this one (PAWL_BENCH_OTHER).
"""
import argparse
import contextlib
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import document
from paths import GROUPS, Context, measure
from programs import ROOT, Node, Server, node_install, output

FOLDER = os.path.join(ROOT, "build/bench")
RESULTS = os.path.join(FOLDER, "report.json")
NODE = os.path.join(FOLDER, "node")
PREPARE_S = 15  # of a group, besides its rounds; growth fills its databases
PREPARE_GROWTH_S = 90


def flush_ms(server):
    """Of 8 kB, by fdatasync, on the disk of the server: the second test of the program, whose others are not waited for."""
    command = [f"{server.bin}/pg_test_fsync", "-s", "1", "-f", os.path.join(server.folder, "flush")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            found = re.match(r"\s+fdatasync\s+[\d.]+ ops/sec\s+(\d+) usecs/op", line)
            if found:
                process.terminate()
                return int(found[1]) / 1000
    sys.exit("bench: pg_test_fsync measures no fdatasync")


def line_of(path, pattern):
    with contextlib.suppress(OSError), open(path, encoding="utf-8") as file:
        found = re.search(pattern, file.read(), re.M)
        if found:
            return found[1].strip()
    return "unknown"


def machine_facts(server, node):
    commit = "unknown"
    if shutil.which("git") and os.path.exists(os.path.join(ROOT, ".git")):
        commit = output("git", "-c", f"safe.directory={ROOT}", "describe", "--always", "--dirty", "--exclude=*", cwd=ROOT).strip()
    return {"cpus": os.cpu_count(), "processor": line_of("/proc/cpuinfo", r"^model name\s*: (.*)"),
            "memory_gb": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30,
            "system": line_of("/etc/os-release", r'^PRETTY_NAME="?([^"\n]*)') + f", Linux {platform.release()}",
            "postgresql": server.sql("show server_version"), "commit": commit,
            "packages": node.versions() if node else {}, "node": output("node", "--version").strip().lstrip("v") if node else ""}


class Progress:
    """Says on standard error what runs and when the end is expected: by the time that rounds should take, and how they kept to it."""

    def __init__(self, names, rounds, minutes):
        self.names, self.rounds = names, rounds
        self.start = time.monotonic()
        self.ends_at = self.start + minutes * 60

    @staticmethod
    def prepare_s(name):
        return PREPARE_GROWTH_S if name == "growth" else PREPARE_S

    def expected_s(self, name):
        group = GROUPS[name]
        return self.prepare_s(name) + group.round_s * min(self.rounds, group.rounds_max)

    def left_s(self, name, done_rounds):
        """Of this group after some rounds, and of those behind it."""
        behind = self.names[self.names.index(name) + 1:]
        group = GROUPS[name]
        return group.round_s * (min(self.rounds, group.rounds_max) - done_rounds) + sum(map(self.expected_s, behind))

    def show(self, name, number, variant):
        elapsed = time.monotonic() - self.start
        left = self.left_s(name, number)
        total = sum(map(self.expected_s, self.names))
        pace = elapsed / max(1, total - left) if elapsed > 60 else 1
        left = min(left * min(3, max(0.3, pace)), max(self.ends_at - time.monotonic(), GROUPS[name].round_s))
        end = time.strftime("%H:%M", time.localtime(time.time() + left))
        print(f"\r\033[K{elapsed // 60:.0f}:{elapsed % 60:02.0f} {name}, round {number + 1} of {min(self.rounds, GROUPS[name].rounds_max)}: {variant};"
              f" ends at {end}", end="", file=sys.stderr, flush=True)


def group_run(context, name, rounds, progress, ends_at):
    """{variant: [figures of each round]}: whole rounds, at least one."""
    found = {}
    with contextlib.closing(measure(context, name)) as every_round:
        for number, turns in enumerate(every_round):
            for variant, figures in turns:
                found.setdefault(variant, []).append(figures)
                progress.show(name, number, variant)
            if number + 1 >= rounds or time.monotonic() + GROUPS[name].round_s > ends_at:
                break
    return found


def groups_run(context, names, rounds, minutes):
    """{group: {variant: [...]}}. A group that fails is left out and named, so that an hour of others is not lost."""
    found, failed = {}, []
    progress = Progress(names, rounds, minutes)
    for i, name in enumerate(names):
        reserved = sum(progress.prepare_s(other) + GROUPS[other].round_s for other in names[i + 1:])
        try:
            found[name] = group_run(context, name, rounds, progress, progress.ends_at - reserved)
        except (SystemExit, AssertionError, subprocess.SubprocessError, OSError) as problem:
            print(f"\r\033[Kbench: {name} failed and is left out: {problem}", file=sys.stderr)
            failed.append(name)
    print("\r\033[K", end="", file=sys.stderr)
    return found, failed


def report(options, names):
    """Results as report.json has them, and the groups that failed."""
    rounds = 1 if options.smoke else options.rounds
    begin = time.monotonic()
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="pawl-bench.", dir="/tmp"))
        os.chmod(folder, 0o755)
        servers = {"": options.build, **({"other ": os.path.dirname(os.path.abspath(options.other))} if options.other else {})}
        for tag, build in servers.items():
            servers[tag] = Server(build, folder, "other" if tag else "home", is_durable=not options.smoke)
            stack.callback(servers[tag].stop)
        node = None if options.no_peers else Node(servers[""], node_install(NODE))
        machine = machine_facts(servers[""], node)
        flush_before = flush_ms(servers[""])
        groups, failed = groups_run(Context(servers, node, options.smoke), names, rounds, options.minutes)
        machine["flush_ms"] = [flush_before] + ([] if options.smoke else [flush_ms(servers[""])])
    return {"date": document.date_now(), "options": {"rounds": rounds, "smoke": options.smoke}, "machine": machine,
            "minutes": (time.monotonic() - begin) / 60, "groups": groups}, failed


def save(found, path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(found, file, indent=1)
        file.write("\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, prog="./dev bench",
                                     usage="./dev bench report [GROUP]... [OPTION]... | render | peers")
    parser.add_argument("what", choices=("report", "render", "peers"))
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=", ".join(f"{name} ({group.text})" for name, group in GROUPS.items()))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--minutes", type=float, default=25)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--other", default=os.environ.get("PAWL_BENCH_OTHER"))
    parser.add_argument("--build", default=os.path.join(ROOT, "build"), help=argparse.SUPPRESS)
    parser.add_argument("--json", help=argparse.SUPPRESS)
    options = parser.parse_intermixed_args()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # servers are stopped then, too
    unknown = [name for name in options.groups if name not in GROUPS]
    if unknown or options.rounds < 1:
        parser.error(f"there is no group {unknown[0]}; the groups are {', '.join(GROUPS)}" if unknown else "--rounds must be 1 or more")
    if options.what == "peers":
        print(f"installed: {node_install(NODE)}")
        return
    if options.what == "render":
        if not os.path.exists(RESULTS):
            sys.exit(f"bench: there is no {os.path.relpath(RESULTS)}: run ./dev bench report first")
        with open(RESULTS, encoding="utf-8") as file:
            document.write(json.load(file))
        return
    names = options.groups or list(GROUPS)
    found, failed = report(options, names)
    is_whole = not (options.groups or options.smoke or options.no_peers or options.other)
    save(found, options.json or (RESULTS if is_whole else os.path.join(FOLDER, "partial.json")))
    document.table_print(found["groups"], names)
    if is_whole:
        document.write(found)
    if failed:
        sys.exit(f"bench: failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
