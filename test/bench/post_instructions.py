#!/usr/bin/env python3
"""Instructions that wallet.post takes, counted by valgrind: a figure that a busy machine does not change.

    post_instructions.py BIN DATA DATABASE SIZE

BIN: folder of postgres. DATA: the data folder of a stopped server (a copy is best). DATABASE: with wallets w1 to w1000 that have
money. SIZE: transfers in a call. Run it as the owner of DATA. Prints the difference between a run of few calls and one of more,
for each call and each transfer; with the statement's own parsing, which is the same for all versions.
"""
import random
import re
import subprocess
import sys
import uuid


def statements(size, calls):
    source = random.Random(7)

    def texts(first, last):
        return ",".join(f"'w{source.randint(first, last)}'" for _ in range(size))

    for _ in range(calls):
        keys = ",".join(f"'{uuid.uuid4()}'" for _ in range(size))
        yield (f"select count(*) from wallet.post(array_fill('transfer'::text, array[{size}]), array[{keys}]::uuid[], "
               f"array[{texts(1, 500)}], array_fill(1::bigint, array[{size}]), array[{texts(501, 1000)}]);\n")


def instructions(bin_dir, data, database, size, calls):
    done = subprocess.run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", f"{bin_dir}/postgres", "--single", "-D", data,
                           "-c", "fsync=off", database], input="".join(statements(size, calls)), capture_output=True, text=True)
    found = re.search(r"Collected : (\d+)", done.stderr)
    assert found, done.stderr[-1000:]
    return int(found[1])


def main():
    bin_dir, data, database, size = sys.argv[1:4] + [int(sys.argv[4])]
    few, more = (20, 60) if size < 10 else (2, 6)
    each = (instructions(bin_dir, data, database, size, more) - instructions(bin_dir, data, database, size, few)) // (more - few)
    print(f"{database}: {each} a call, {each // size} a transfer")


main()
