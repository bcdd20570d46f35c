"""process_cli - processes over the command line as JSON: define, start, show, and wait for a status."""
import json
import os

from pawl_test import wait_until


def cli(pawl, *arguments, code=0, **options):
    done = pawl.run("process", *arguments, "--json", **options)
    assert done.code == code, (arguments, done)
    return json.loads(done.stdout if code == 0 else done.stderr)


def define(pawl, definition):
    return cli(pawl, "define", "-", stdin=json.dumps(definition))


def show(pawl, process_id):
    return cli(pawl, "show", process_id)


def steps(pawl, process_id, name):
    return [step for step in show(pawl, process_id)["steps"] if step["name"] == name]


def wait_status(pawl, process_id, *statuses):
    def reached():
        shown = show(pawl, process_id)
        return shown if shown["status"] in statuses else None

    try:
        return wait_until(reached, what=f"{process_id} is {' or '.join(statuses)}")
    except AssertionError as error:
        error.add_note(json.dumps(show(pawl, process_id)))
        raise


def start(pawl, type_, state=None, domain="edge"):
    return cli(pawl, "start", type_, "-", "--domain", domain, stdin=json.dumps(state or {}))["process_id"]


def run(pawl, definition, *statuses, state=None):
    """Define it, start one, and wait for one of the statuses."""
    definition = {"domain": "edge", **definition}
    define(pawl, definition)
    process = start(pawl, definition["type"], state, definition["domain"])
    return process, wait_status(pawl, process, *statuses)


def lines(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return file.read().splitlines()


def refusal(db, sql):
    """The SQLSTATE and the message with which a statement fails."""
    db.rows(f"""create or replace function public.refusal () returns text language plpgsql as $f$
                begin {sql}; return 'none'; exception when others then return sqlstate || ': ' || sqlerrm; end $f$""")
    return db.value("select public.refusal()")
