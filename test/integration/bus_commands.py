"""bus_commands - what the tests of the command bus share: send, read, work until nothing is left."""
import json
import uuid

from checks import SANITIZER
from pawl_test import FACT_S, TIMEOUT_S, wait_until

PLACES = ("command", "ready", "delayed", "lease", "tsq", "outcome", "batch", "audit")


def new_id():
    return str(uuid.uuid4())


def counts(db):
    """How many rows each table of the bus holds: equal before and after means that nothing was written."""
    return db.value("select concat_ws(' ', " + ", ".join(f"(select count(*) from pawl.{place})" for place in PLACES) +
                    ", (select count(*) from pawl.domain), (select count(*) from pgmq.meta))")


def send(pawl, domain, kind, payload=None, *flags):
    """The id of a command sent from the command line."""
    arguments = [] if payload is None else [json.dumps(payload)]
    done = pawl.run("send", domain, kind, *arguments, *flags)
    assert done.code == 0, done.stderr
    return done.stdout.strip()


def show(pawl, command_id):
    """All that is known about one command."""
    done = pawl.run("command", "show", command_id, "--json")
    assert done.code == 0, done.stderr
    return done.json


def status(pawl, command_id):
    return show(pawl, command_id)["status"]


def events(command):
    return [event["event"] for event in command["audit"]]


def work(pawl, domain, *flags, timeout=TIMEOUT_S):
    """Work until nothing is left; the counts."""
    done = pawl.run("work", domain, *flags, "--drain", "--json", timeout=timeout)
    assert done.code == 0, done.stderr
    assert not SANITIZER.search(done.stderr), done.stderr
    return done.json


def wait_status(pawl, command_id, wanted, timeout=FACT_S):
    return wait_until(lambda: (found := show(pawl, command_id))["status"] == wanted and found, timeout,
                      f"{command_id} is {wanted}")


def retry_at_once(db, domain, delay_ms=1):
    """A schedule that tests can wait for."""
    db.rows(f"insert into pawl.retry_policy select pawl.domain_id('{domain}'), '*', array[{delay_ms}] "
            "on conflict (domain_id, type) do update set delays_ms = excluded.delays_ms")


def replies(db, queue):
    """What came to a reply queue, in order."""
    return [json.loads(row) for row in db.rows(f"select message from pgmq.q_{queue} order by msg_id")]
