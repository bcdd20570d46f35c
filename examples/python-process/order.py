#!/usr/bin/env python3
"""order.py - an order as a process in Python: reserve, wait for an approval, rest, charge by a command, ship; undone if it fails.

    PAWL_URL=http://127.0.0.1:8080 PAWL_TOKEN=... ./order.py py-shop
    pawl process start py-order '{"items": ["lamp"], "amount": 5}' --domain py-shop
    pawl process signal ID approval '{"approved": true}'
    pawl work bank --exec cat --drain        # handles the command charge; then the order ends as COMPLETED

The steps only write a line to the file EFFECTS, with the step's key: a shop would pass the key on to its stock and its carrier, so that a
step that runs again after a crash does the same thing again and nothing new.
"""
import os
import signal
import sys

from process import Failed, Refused, Worker


def effect(name, key):
    line = f"{name} {key}\n"
    with open(os.environ.get("EFFECTS", "/dev/stdout"), "a", encoding="utf-8") as file:
        file.write(line)
    return {"key": key}


def order(run):
    stock = run.step("reserve", lambda key: effect("reserve", key), input=run.input["items"], patch=lambda result: {"stock": result["key"]})
    try:
        approval = run.wait("approval", timeout=run.input.get("patience", 86400))
        if not approval or not approval.get("approved"):
            raise Refused("it was not approved")
        run.sleep("rest", run.input.get("rest", 1))
        charged = run.command("charge", run.input.get("bank", "bank"), "charge", {"amount": run.input["amount"]})
        shipped = run.step("ship", lambda key: effect("ship", key))
    except Failed as failure:
        run.compensating()
        run.step("release", lambda key: effect("release", key), input=stock)
        return str(failure)  # why it ends as COMPENSATED
    return {"charged": charged, "shipped": shipped["key"]}


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: order.py DOMAIN")
    worker = Worker(sys.argv[1], {"py-order": order}, lease=float(os.environ.get("LEASE_S", "60")), wait=float(os.environ.get("WAIT_S", "20")))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: worker.stop())
    worker.run()
