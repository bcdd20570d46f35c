#!/usr/bin/env python3
"""Rows of the table of docs/benchmarks.md from what `pawl bench ... --json` said on standard input."""
import json
import sys


def number(value):
    return f"{value:,}"


def main():
    report = json.load(sys.stdin)
    for row in report["figures"]:
        runs = " ".join(number(run) for run in row["runs"])
        print(f"| {row['section']}: {row['figure']} | {number(row['median'])} {row['unit']} | {runs} |")
    for row in report["judgements"]:
        print(f"| {row['section']}: flat | {'yes' if row['flat'] else 'no'} | {row['why']} |")
    return 0 if report["complete"] else 1


if __name__ == "__main__":
    sys.exit(main())
