#!/usr/bin/env python3
"""Adds up what `meson test` wrote down and ends with "N passed, N failed".

    summary.py BUILD_DIR...

A TAP program counts once per `ok` or `not ok` line, any other test counts once. A program that dies, hangs or breaks
its plan counts as one failure more than its `not ok` lines show, at least when they show none. What failed prints its
output. No test at all is a failure: a run that proves nothing must not look green.
"""
import json
import re
import sys
from collections import Counter
from pathlib import Path

PLAN = re.compile(r"^\s*1\.\.\d+", re.MULTILINE)
POINT = re.compile(r"^\s*(ok|not ok)\b(.*)$", re.MULTILINE)
DIRECTIVE = re.compile(r"#\s*(skip|todo)", re.IGNORECASE)
GOOD = {"OK", "EXPECTEDFAIL"}
OUTPUT_LINES_MAX = 200


def count(test):
    """Counter of passed, failed and skipped for one entry of the log."""
    counts = Counter()
    if test["result"] == "SKIP":
        return Counter(skipped=1)
    if PLAN.search(test.get("stdout", "")):
        for verdict, rest in POINT.findall(test["stdout"]):
            skipped = DIRECTIVE.search(rest)
            counts["skipped" if skipped else "passed" if verdict == "ok" else "failed"] += 1
    elif test["result"] in GOOD:
        counts["passed"] += 1
    if test["result"] not in GOOD and counts["failed"] == 0:
        counts["failed"] += 1
    return counts


def show(build, test):
    print(f"\n--- {build}: {test['name']}: {test['result']} after {test['duration']:.1f} s")
    for stream in ("stdout", "stderr"):
        lines = test.get(stream, "").splitlines()
        if len(lines) > OUTPUT_LINES_MAX:
            print(f"({len(lines) - OUTPUT_LINES_MAX} lines of {stream} left out, see {build}/meson-logs/testlog.txt)")
        print("\n".join(lines[-OUTPUT_LINES_MAX:]))


def main(builds):
    total = Counter()
    for build in builds:
        log = Path(build, "meson-logs", "testlog.json")
        if not log.exists():
            continue
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
            test = json.loads(line)
            counts = count(test)
            total += counts
            if counts["failed"]:
                show(build, test)
    if not total["passed"] and not total["failed"]:
        print("\nno test was run")
        total["failed"] = 1
    skipped = f", {total['skipped']} skipped" if total["skipped"] else ""
    print(f"\n{total['passed']} passed, {total['failed']} failed{skipped}")
    return 1 if total["failed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
