#!/usr/bin/env python3
"""worker.py - a worker over HTTP with nothing but Python's standard library.

    PAWL_URL=http://127.0.0.1:8080 PAWL_TOKEN=... ./worker.py shop

Claims with a long poll, keeps the lease while a handler runs, and says how each command ended. SIGTERM or Ctrl-C: the
command in hand is finished, then it ends. The key needs the scope "command".
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
TOKEN = os.environ["PAWL_TOKEN"]
LEASE_S = float(os.environ.get("LEASE_S", "30"))
WAIT_S = 20


class Refused(Exception):
    """A business refusal: the answer is no, and asking again would not change it."""


def handle(kind, payload, command_id):
    """The work itself. It may be done a second time after a crash: command_id is the key to tell by."""
    if kind == "add":
        return {"sum": sum(payload["numbers"])}
    if kind == "sleep":
        time.sleep(payload["seconds"])
        return {"slept": payload["seconds"]}
    if kind == "refuse":
        raise Refused("not today")
    raise LookupError(f"no handler for {kind}")


def post(path, body, timeout=30):
    """One request; an outage is waited out, a refusal is an error of ours."""
    request = urllib.request.Request(URL + path, json.dumps(body).encode(), {
        "Authorization": "Bearer " + TOKEN, "Content-Type": "application/json"})
    while True:
        try:
            with urllib.request.urlopen(request, timeout=timeout) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code < 500 and error.code != 429:
                raise
            time.sleep(float(error.headers.get("Retry-After", 1)))
        except OSError:
            time.sleep(1)


class Heartbeat:
    """Keeps a lease for as long as the work takes. A work that lost it, or was canceled, settles in vain: harmless."""

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
            if not post(self.path, self.body)["items"][0]["extended"]:
                return


def outcome(item):
    """How it ended, as settle wants to hear it."""
    try:
        result = handle(item["type"], item["payload"], item["command_id"])
        return {"outcome": "complete", "result": result}
    except Refused as refusal:
        return {"outcome": "reject", "error": str(refusal)}
    except (LookupError, TypeError) as error:  # wrong input stays wrong: a person should look at it
        return {"outcome": "fail", "error": str(error)}
    except Exception as error:
        return {"outcome": "retry", "error": str(error)}


def main(domain):
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    while not stopping.is_set():
        claim = {"limit": 1, "lease_s": LEASE_S, "wait_s": WAIT_S}
        for item in post(f"/v1/domains/{domain}/claim", claim, WAIT_S + 30)["items"]:
            with Heartbeat(domain, item):
                ended = outcome(item)
            verdict = post(f"/v1/domains/{domain}/settle", {"items": [
                {"command_id": item["command_id"], "lease": item["lease"], **ended}]})["items"][0]
            print(item["command_id"], verdict["status"] if verdict["settled"] else "was not ours any more", flush=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: worker.py DOMAIN")
    main(sys.argv[1])
