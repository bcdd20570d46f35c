#!/usr/bin/env python3
"""saga_worker.py DOMAIN DATABASE_URL - runs sagas (saga.py) over HTTP with the module of examples/python-process."""
import json
import os
import signal
import sys

SOURCE = os.environ["PAWL_SOURCE"]
sys.path += [os.path.join(SOURCE, folder) for folder in ("examples/python-process", "test/integration", "test/harness")]
from servers import Session  # noqa: E402
from process import Failed, Refused, Worker  # noqa: E402
import saga as sagas  # noqa: E402


class Saga:
    """One call of the function."""

    def __init__(self, run, domain, session):
        self.run, self.domain, self.session, self.saga = run, domain, session, run.input["saga"]
        self.results, self.undos, self.round = {}, [], ""

    def name(self, node):
        return node["name"] + self.round

    def nodes(self, nodes):
        for node in nodes:
            getattr(self, "run_" + node["do"])(node)

    def done(self, node, result):
        self.results[node["name"]] = result
        if node.get("undo"):
            self.undos.append((node["undo"], self.round))

    def act(self, node, key):
        """A worker that was killed may have done it, under the same key: once."""
        given = json.dumps({**sagas.given(node, self.round), "process": self.run.id, "once": True})
        outcome, = self.session.do(f"select demo.act($saga${given}$saga$, '{key}')")
        if outcome == "refuse":
            raise Refused(outcome)
        if outcome != "ok":
            raise RuntimeError(outcome)
        return {"value": node["value"]}

    def run_step(self, node):
        attempts = node["outcomes"].index("fail") + 1 if "fail" in node["outcomes"] else node["attempts"]
        self.done(node, self.run.step(self.name(node), lambda key: self.act(node, key), attempts=attempts,
                                      delay=sagas.DELAY_S, factor=1))

    def run_wait(self, node):
        timeout = sagas.WAIT_MS / 1000 if node["come"] == "never" else None
        if node["race"]:
            came = self.run.wait_any(node["race"], timeout=timeout, step=self.name(node))
            result = {"response": came[0], "payload": came[1]} if came else None
        else:
            result = self.run.wait(node["response"], count=node["count"], timeout=timeout, step=self.name(node))
        if not timeout:
            self.done(node, result)
        elif node["to"] == "fail":
            raise Failed("no response came")

    def run_sleep(self, node):
        self.run.sleep(self.name(node), node["ms"] / 1000)

    def run_set(self, node):
        self.run.patch(self.name(node), lambda state: sagas.patch_of(node, state, self.results))

    def holds(self, node):
        return self.run.step(self.name(node), lambda _: sagas.holds(node, self.run.state))

    def run_if(self, node):
        self.nodes(node["then" if self.holds(node) else "else"])

    def run_loop(self, node):
        is_over, rounds = False, 0
        while not is_over and rounds < node["times"]:
            self.round, rounds = f".{rounds}", rounds + 1
            self.nodes(node["nodes"])
            is_over = self.holds(node)
        self.round = ""
        is_failure = not is_over and node["to"] == "fail"
        self.done(node, self.run.step(node["name"], lambda _: self.loop_end(node, rounds, is_failure), attempts=1))

    def loop_end(self, node, rounds, is_failure):
        if is_failure:
            raise RuntimeError("did not end")
        return sagas.loop_result(node, rounds, self.results)

    def run_child(self, node):
        self.done(node, self.run.child(node["name"], self.domain, "saga", sagas.state_of(node["saga"])))


def function(domain, session):
    def run_saga(run):
        saga = Saga(run, domain, session)
        try:
            saga.nodes(saga.saga["nodes"])
        except Failed as failure:
            if saga.saga["on_failure"] != "compensate":
                raise
            run.compensating()
            for undo, saga.round in reversed(saga.undos):
                saga.run_step(undo)
            return str(failure)
        return {name: saga.results.get(name) for name in saga.saga["result"]}

    return run_saga


if __name__ == "__main__":
    with Session(sys.argv[2]) as database:
        worker = Worker(sys.argv[1], {"saga": function(sys.argv[1], database)}, wait=1.0, name=f"saga:{os.getpid()}")
        signal.signal(signal.SIGTERM, lambda *_: worker.stop())
        worker.run()
