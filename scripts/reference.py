#!/usr/bin/env python3
"""reference.py PAWL FILE [--check]: write docs/reference.md from the tables in the program, or check that it is current."""
import subprocess
import sys

TOPICS = [
    ("Commands", []),
    ("Settings", ["settings"]),
    ("Routes", ["routes"]),
    ("Errors", ["errors"]),
    ("Metrics", ["metrics"]),
]
HEAD = """# Reference

Made from the tables in the program by `scripts/reference.py`; a test compares it. `pawl help` shows the same.
"""


def page(pawl):
    parts = [HEAD]
    for title, topic in TOPICS:
        text = subprocess.run([pawl, "help", *topic], check=True, capture_output=True, text=True).stdout
        parts.append(f"\n## {title}\n\n```text\n{text.rstrip()}\n```\n")
    return "".join(parts)


def main(pawl, path, *flags):
    made = page(pawl)
    if "--check" not in flags:
        with open(path, "w", encoding="utf-8") as out:
            out.write(made)
        return 0
    with open(path, encoding="utf-8") as old:
        if old.read() == made:
            return 0
    print(f"{path} is not what the program says: run ./dev docs", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
