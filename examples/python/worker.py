#!/usr/bin/env python3
"""worker.py - a worker over HTTP with nothing but Python's standard library.

    PAWL_URL=http://127.0.0.1:8080 PAWL_TOKEN=... ./worker.py shop

Claims commands of the types it has handlers for with a long poll, extends the lease while a handler runs, and settles each
command. On SIGTERM or Ctrl-C it finishes the command in progress and ends; a long poll is given up at once. The key needs the
scope "command".
"""
import json
import os
import signal
import sys
import threading
import time
import urllib.error
import urllib.request

URL = os.environ.get("PAWL_URL", "http://127.0.0.1:8080")
TOKEN = os.environ.get("PAWL_TOKEN") or sys.exit("PAWL_TOKEN is not set: pawl key create NAME --scopes command prints one")
LEASE_S = float(os.environ.get("LEASE_S", "30"))
WAIT_S = float(os.environ.get("WAIT_S", "20"))


class Refused(Exception):
    """A business refusal: the answer is no, and asking again would not change it."""


class Stopped(Exception):
    """A signal came while nothing was in progress."""


# Handlers. After a crash a command is handled again: command_id is the key that makes its effects happen once.

def add(payload, command_id):
    return {"sum": sum(payload["numbers"])}


def sleep(payload, command_id):
    time.sleep(payload["seconds"])
    return {"slept": payload["seconds"]}


def refuse(payload, command_id):
    raise Refused("not today")


HANDLERS = {"add": add, "sleep": sleep, "refuse": refuse}


def post(path, body, timeout=30):
    """One request. Retries while the server is unavailable; any other refusal is a bug here."""
    request = urllib.request.Request(URL + path, json.dumps(body).encode(), {
        "Authorization": "Bearer " + TOKEN, "Content-Type": "application/json"})
    while True:
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code in (401, 403):
                sys.exit(f"PAWL_TOKEN is refused: {json.load(error)['detail']}")
            if error.code < 500 and error.code != 429:
                raise
            time.sleep(float(error.headers.get("Retry-After", 1)))
        except OSError:
            time.sleep(1)


class Heartbeat:
    """Extends a lease while a handler runs. If the lease is lost or the command canceled, settling changes nothing."""

    def __init__(self, domain, item):
        self.path = f"/v1/domains/{domain}/extend"
        self.body = {"items": [{"command_id": item["command_id"], "lease": item["lease"]}], "lease_s": LEASE_S}
        self.done = threading.Event()
        self.thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.done.set()
        self.thread.join()

    def _run(self):
        while not self.done.wait(LEASE_S / 3):
            if post(self.path, self.body)["items"][0]["verdict"] in ("lost", "canceled"):
                return


def outcome(item):
    """The outcome for settle: complete, reject (final), fail (an operator decides) or retry."""
    try:
        return {"outcome": "complete", "result": HANDLERS[item["type"]](item["payload"], item["command_id"])}
    except Refused as refusal:
        return {"outcome": "reject", "error": str(refusal)}
    except (LookupError, TypeError) as error:  # the payload is malformed: another attempt would not help
        return {"outcome": "fail", "error": str(error)}
    except Exception as error:
        return {"outcome": "retry", "error": str(error)}


def main(domain):
    stopping, polling = threading.Event(), False
    claim = {"limit": 1, "lease_s": LEASE_S, "wait_s": WAIT_S, "types": list(HANDLERS)}

    def stop(*_):
        stopping.set()
        if polling:
            raise Stopped

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    while not stopping.is_set():
        try:
            # Claimed in the very moment of a signal, a command is delivered again when its lease ends.
            polling = True
            items = post(f"/v1/domains/{domain}/claim", claim, WAIT_S + 30)["items"]
            polling = False
        except Stopped:
            return
        for item in items:
            with Heartbeat(domain, item):
                ended = outcome(item)
            verdict = post(f"/v1/domains/{domain}/settle", {"items": [
                {"command_id": item["command_id"], "lease": item["lease"], **ended}]})["items"][0]
            print(item["command_id"], verdict["status"] if verdict["settled"] else "lease lost", flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: worker.py DOMAIN")
    main(sys.argv[1])
