#!/usr/bin/env python3
"""Keeps the names of the shared library to those of include/pawl/exports.txt (one per line, # starts a comment).

    exports.py EXPORTS OUT.map          writes the linker's version script
    exports.py --check EXPORTS LIB      compares the list with what the library shows, by nm -D
"""
import subprocess
import sys
from pathlib import Path


def names_read(path):
    lines = (line.split("#", 1)[0].strip() for line in Path(path).read_text(encoding="utf-8").splitlines())
    return sorted(line for line in lines if line)


def map_render(names):
    return "{\n  global:\n" + "".join(f"    {name};\n" for name in names) + "  local: *;\n};\n"


def check(exports, library):
    output = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    shown = {line.split()[-1].split("@")[0] for line in output.splitlines()}
    listed = set(names_read(exports))
    for name in sorted(shown - listed):
        print(f'{exports}:1: "{name}" is exported but not listed')
    for name in sorted(listed - shown):
        print(f'{exports}:1: "{name}" is listed but not exported')
    return 0 if shown == listed else 1


def main(args):
    if len(args) == 3 and args[0] == "--check":
        return check(args[1], args[2])
    if len(args) != 2:
        sys.exit("usage: exports.py EXPORTS OUT.map | exports.py --check EXPORTS LIB")
    Path(args[1]).write_text(map_render(names_read(args[0])), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
