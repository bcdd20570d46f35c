#!/usr/bin/env python3
"""docs - the commands in README.md and docs/*.md run, and print what the document shows.

A fenced block of type console is run: lines that begin with "$ " are commands, "> " continues one, the rest is output. Ids, tokens
and times may differ, runs of spaces count as one, and "..." stands for any text in a line or, alone, for any lines. Each document runs
by itself, in one shell against a new database with URL and TOKEN set, and all of them run one after another against one database, in the
order in which README.md lists them.
"""
import os
import re
import shutil
import subprocess
import tempfile

from pawl_test import Database, Pawl, main, setting, test

SOURCE = setting("PAWL_SOURCE")
BLOCK = re.compile(r"^( *)```console\n(.*?)^ *```$", re.M | re.S)
MASKS = [
    (re.compile(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b"), "ID"),
    (re.compile(r"\bpawl_[A-Za-z0-9_-]{43}"), "TOKEN"),
    (re.compile(r"\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(\.\d+)?Z"), "TIME"),
    (re.compile(r"\b[\w.-]+:\d+:[0-9a-f]{8}\b"), "WORKER"),
    (re.compile(r'(?<="lease":)\d+'), "LEASE"),
    (re.compile(r"\s+"), " "),
]


def masked(line):
    for pattern, word in MASKS:
        line = pattern.sub(word, line)
    return line.strip()


def steps(path):
    """(command, lines of output) of a document, in order."""
    with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
        text = file.read()
    found = []
    for indent, body in BLOCK.findall(text):
        for line in body.splitlines():
            line = line.removeprefix(indent)
            if line.startswith("$ "):
                found.append([line[2:], []])
            elif line.startswith("> "):
                found[-1][0] += "\n" + line[2:]
            else:
                found[-1][1].append(line)
    return found


def matches(wanted, got):
    """Does the output look as shown? Both without blank lines."""
    if not wanted:
        return not got
    if wanted[0] == "...":
        return any(matches(wanted[1:], got[n:]) for n in range(len(got) + 1))
    if not got:
        return False
    pattern = ".*".join(re.escape(part) for part in masked(wanted[0]).split("..."))
    return re.fullmatch(pattern, masked(got[0])) is not None and matches(wanted[1:], got[1:])


def run(pawl, server, folder, found):
    """What each command printed."""
    address, script = f"{server.host}:{server.port}", []
    for number, (command, _) in enumerate(found):
        command = command.replace("127.0.0.1:8080", address).replace("/var/lib/pawl", pawl.home).replace("~/.pawl", pawl.home)
        script.append(f"printf '\\n\\036{number}\\n'\n{{ {command}\n}} 2>&1")
    env = {**pawl.env, "TOKEN": Pawl.TOKEN, "URL": f"http://{address}",
           "PATH": os.pathsep.join((setting("PAWL_BUILD"), setting("PAWL_TEST_BIN"), pawl.env["PATH"]))}
    done = subprocess.run(["bash", "-c", "\n".join(script)], cwd=folder, env=env, capture_output=True, text=True, timeout=600)
    said = {}
    for part in done.stdout.split("\036")[1:]:
        number, _, output = part.partition("\n")
        said[int(number)] = output.replace(address, "127.0.0.1:8080").replace(pawl.home, "/var/lib/pawl")
    assert len(said) == len(found), (done.stdout, done.stderr)
    return [said[number] for number in range(len(found))]


def check(*paths):
    """Each document in a shell of its own, one after another, against one database."""
    folder = tempfile.mkdtemp(prefix="pawl-docs.", dir="/tmp")
    try:
        os.symlink(os.path.join(SOURCE, "examples"), os.path.join(folder, "examples"))
        with Database() as db, Pawl(db) as pawl:
            server = pawl.serve()
            with open(os.path.join(pawl.home, "token"), "w", encoding="ascii") as file:
                file.write(Pawl.TOKEN)
            for path in paths:
                found = steps(path)
                assert found, f"{path} has no block of type console"
                for (command, shown), said in zip(found, run(pawl, server, folder, found)):
                    wanted = [line.strip() for line in shown if line.strip()]
                    got = [line for line in said.splitlines() if line.strip()]
                    assert matches(wanted, got), f"{path}: {command}\nprinted\n{said}\nnot\n" + "\n".join(shown)
    finally:
        shutil.rmtree(folder)


DOCUMENTS = ["README.md", "docs/bus.md", "docs/process.md", "docs/schedules.md", "docs/ledger.md", "docs/http.md"]


@test
def documents_run_one_after_another_on_one_database():
    check(*DOCUMENTS)


@test
def every_command_in_the_readme_runs():
    check("README.md")


@test
def every_command_about_the_bus_runs():
    check("docs/bus.md")


@test
def every_command_about_processes_runs():
    check("docs/process.md")


@test
def every_command_about_schedules_runs():
    check("docs/schedules.md")


@test
def every_command_about_the_ledger_runs():
    check("docs/ledger.md")


@test
def every_command_about_http_runs():
    check("docs/http.md")


@test
def every_statement_about_sql_runs():
    with Database() as db:
        role = f"application_of_{db.name}"
        db.rows(f"create role {role}")
        try:
            with open(os.path.join(SOURCE, "docs/sql.md"), encoding="utf-8") as file:
                blocks = re.findall(r"^```sql\n(.*?)^```$", file.read(), re.S | re.M)
            assert len(blocks) > 5, blocks
            for block in blocks:
                db.rows(block.replace("my_application", role))
        finally:
            db.rows(f"drop owned by {role}; drop role {role}")


@test
def every_statement_about_operations_runs():
    with open(os.path.join(SOURCE, "docs/operations.md"), encoding="utf-8") as file:
        statements = re.findall(r"^    (select pawl\.[^;]*;)", file.read(), re.M)
    assert len(statements) > 1, statements
    with Database() as db:
        for statement in statements:
            db.rows(statement)


@test
def documents_show_no_commands_that_are_not_run():
    """A prompt outside of a console block would be a command that no test runs."""
    for folder in ("", "docs", "examples"):
        for name in os.listdir(os.path.join(SOURCE, folder)):
            path = os.path.join(folder, name)
            if not name.endswith(".md") or path in DOCUMENTS:
                continue
            with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
                assert not re.search(r"^ *\$ \S", file.read(), re.M), f"{path} has a prompt, but is not in DOCUMENTS"
    for path in DOCUMENTS:
        with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
            rest = BLOCK.sub("", file.read())
        assert not re.search(r"^ *\$ \S", rest, re.M), f"{path} has a prompt outside of a console block"


main()
