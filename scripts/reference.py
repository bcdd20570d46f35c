#!/usr/bin/env python3
"""reference.py PAWL FILE [--check]: write docs/reference.md from the tables in the program, or check that it is current."""
import json
import subprocess
import sys

TOPICS = [
    ("Commands", []),
    ("Flags", []),
    ("Settings", ["settings"]),
    ("Routes", ["routes"]),
    ("Errors", ["errors"]),
    ("Metrics", ["metrics"]),
    ("Process definitions", ["definitions"]),
]
HEAD = """# Reference

Made from the tables in the program by `scripts/reference.py`; a test compares it. `pawl help` shows the same.
"""


def help_text(pawl, *words):
    return subprocess.run([pawl, "help", *words], check=True, capture_output=True, text=True).stdout


def flags(pawl):
    """The commands that have flags of their own, with each flag on a line."""
    lines = []
    for command in json.loads(help_text(pawl, "--json")):
        if command["flags"]:
            lines.append(" ".join(filter(None, ["pawl", command["group"], command["verb"], command["usage"]])))
        for flag in command["flags"]:
            name = " ".join(filter(None, [flag["flag"], flag["value"]]))
            lines.append(f"  {name:<22} {flag['meaning']}")
    return "\n".join(lines)


def page(pawl):
    parts = [HEAD]
    for title, topic in TOPICS:
        text = flags(pawl) if title == "Flags" else help_text(pawl, *topic)
        parts.append(f"\n## {title}\n\n```text\n{text.rstrip()}\n```\n")
    return "".join(parts)


def main(pawl, path, *options):
    made = page(pawl)
    if "--check" not in options:
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
