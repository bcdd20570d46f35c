"""What tests of processes share: the command line as JSON, and waiting for a status."""
import json

from pawl_test import wait_until


def cli(pawl, *arguments, code=0, **options):
    done = pawl.run("process", *arguments, "--json", **options)
    assert done.code == code, (arguments, done)
    return json.loads(done.stdout if code == 0 else done.stderr)


def define(pawl, definition):
    return cli(pawl, "define", "-", stdin=json.dumps(definition))


def show(pawl, process_id):
    return cli(pawl, "show", process_id)


def wait_status(pawl, process_id, *statuses):
    def reached():
        shown = show(pawl, process_id)
        return shown if shown["status"] in statuses else None

    try:
        return wait_until(reached, timeout=60, what=f"{process_id} is {' or '.join(statuses)}")
    except AssertionError as error:
        error.add_note(json.dumps(show(pawl, process_id)))
        raise
