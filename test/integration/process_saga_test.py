#!/usr/bin/env python3
"""process_saga - the same random sagas run by a definition file, by a function in C and by a worker over HTTP, while
workers are killed: they end in the same status and state, with the same result, effects and timeline, those of a model.

saga.py makes the sagas, library_saga.c and saga_worker.py run them. 30 of them; with PAWL_TEST_FULL=1 1,000.
PAWL_TEST_SAGA=SEED/FIRST/COUNT runs others.
"""
import json
import os
import random
import re
import signal
import sys
import time
import urllib.parse

import saga as sagas
from checks import is_clean
from pawl_test import TIMEOUT_S, Database, Pawl, Process, main, setting, test, wait_until
from process_worker import post
from servers import Session

FULL = bool(os.environ.get("PAWL_TEST_FULL"))
# The first 30 of this seed have every kind of end; children are refused, compensations need an operator, loops are exhausted.
SEED, FIRST, COUNT = (int(n) for n in os.environ.get("PAWL_TEST_SAGA", f"59/0/{1000 if FULL else 30}").split("/"))
ROUND = 30  # sagas at once
KILLS = 6   # in a round
DOMAINS = ("file", "c", "python")
FINAL = ("COMPLETED", "FAILED", "COMPENSATED", "CANCELED")
# An effect that happens twice fails its step, as its key becomes null. A worker over HTTP may repeat it under its key.
SCHEMA = """
create schema demo;
create table demo.effect (number bigserial, process uuid, step text, key text primary key);
create function demo.act(given jsonb, key text) returns text language plpgsql security definer as $$
declare
  v_process uuid := given ->> 'process';
  v_outcomes jsonb := given -> 'outcomes';
  v_last integer := jsonb_array_length(v_outcomes) - 1;
  v_failed integer := 0;
  v_outcome text;
begin
  if v_last > 0 then
    v_failed := (select count(*) from jsonb_array_elements(pawl.process_show(v_process) -> 'steps') s
                 where replace(s ->> 'name', '~', 'undo-') = given ->> 'step' and s ->> 'error' is not null);
  end if;
  v_outcome := v_outcomes ->> least(v_failed, v_last);
  if v_outcome = 'ok' then
    insert into demo.effect (process, step, key) values (v_process, given ->> 'step', key)
    on conflict on constraint effect_pkey do update set key = case when given ? 'once' then excluded.key end;
  end if;
  return v_outcome;
end
$$;
create function demo.step(input jsonb, key uuid) returns jsonb language plpgsql security definer as $$
declare
  v_outcome text := demo.act(input, key::text);
begin
  if v_outcome <> 'ok' then
    raise exception '%', v_outcome
      using errcode = case v_outcome when 'refuse' then 'QU065' when 'fail' then 'QU070' else 'P0001' end;
  end if;
  return jsonb_build_object('value', input -> 'value');
end
$$;
"""


class Site:
    """A server, and two workers of each front end."""

    def __enter__(self):
        self.db = Database().__enter__()
        self.pawl = Pawl(self.db, env={"PAWL_LISTEN": "127.0.0.1:0"}).__enter__()
        self.session = Session(self.db.url).__enter__()
        self.db.rows(SCHEMA)
        self.pawl.serve("--role", "api")
        self.workers = [(domain, self.start(domain)) for domain in DOMAINS * 2]
        self.ended = set()  # the processes of earlier rounds
        return self

    def __exit__(self, *error):
        self.session.__exit__(*error)
        self.pawl.__exit__(*error)
        self.db.__exit__(*error)

    def start(self, domain):
        if domain == "file":
            return self.pawl.start("serve", "--role", "worker")
        if domain == "c":
            program = [os.path.join(setting("PAWL_BUILD"), "test", "integration", "library_saga"), self.db.url, domain]
        else:
            script = os.path.join(setting("PAWL_SOURCE"), "test", "integration", "saga_worker.py")
            program = [sys.executable, script, domain, self.db.url]
        url = f"http://{self.pawl.server.host}:{self.pawl.server.port}"
        worker = Process(program, env={**os.environ, "PAWL_URL": url, "PAWL_TOKEN": self.pawl.TOKEN})
        self.pawl.processes.append(worker)
        return worker

    def kill(self, place):
        domain, worker = self.workers[place]
        assert worker.is_running(), (domain, worker.wait(), worker.stderr[-5:])
        worker.stop(signal.SIGKILL)
        self.workers[place] = domain, self.start(domain)

    def leases_end(self):
        """Those of workers that were killed; those of the others are long enough for any stall."""
        alive = ", ".join(f"'{worker.pid}'" for _, worker in self.workers)
        self.session.do("update pawl.lease set until = pawl.now() "
                        f"where split_part(worker, ':', 2) <> all (array[{alive}]) and until > pawl.now()")

    def stop(self):
        for _, worker in self.workers:
            worker.send(signal.SIGTERM)
        for domain, worker in self.workers:
            assert worker.wait() == 0 and is_clean(worker), (domain, worker.stderr[-20:])

    # --- what senders and operators do, and what they see ---

    def list(self, domain):
        """The processes of this round."""
        items = self.pawl.http("GET", f"/v1/processes?domain={domain}&limit={ROUND * 10}").json["items"]
        return [item for item in items if item["process_id"] not in self.ended]

    def show(self, process_id):
        return self.pawl.http("GET", f"/v1/processes/{process_id}").json

    def begin(self, saga, domain):
        if domain == "file":
            for definition in sagas.definitions(saga, domain):
                answer = self.pawl.http("PUT", "/v1/process-definitions", body=definition)
                assert answer.status == 200, (definition, answer.body)
        kind = sagas.type_of(saga) if domain == "file" else "saga"
        start = {"type": kind, "domain": domain, "state": sagas.state_of(saga)}
        process_id = post(self.pawl, "/v1/processes", start, 201)["process_id"]
        for node in sagas.walk(saga["nodes"]):
            if node["do"] == "wait" and node["come"] == "early":
                self.respond(process_id, node)
                self.respond(process_id, node)  # which changes nothing
        return process_id

    def respond(self, process_id, node, step=None):
        """step: the wait as it is shown, if it is in a loop."""
        for key, payload, named in sagas.responses(node, step or node["name"]):
            headers = {"Content-Type": "application/json", "Idempotency-Key": key}
            query = f"?step={urllib.parse.quote(named)}" if named else ""
            answer = self.pawl.http("POST", f"/v1/processes/{process_id}/signals/{node['response']}{query}",
                                    body=json.dumps(payload).encode(), headers=headers)
            assert answer.status == 201, answer.body

    def decide(self, process_id, decision, **more):
        return self.pawl.http("POST", f"/v1/processes/{process_id}/{decision}", body={"operator": "ann", **more}).status


class Round:
    """Some sagas, each started once in each front end, with the sender and the operator that they need."""

    def __init__(self, site, numbers):
        self.site = site
        self.models = [sagas.Model(sagas.make(SEED, number)) for number in numbers]
        self.roots = [site.begin(model.saga, domain) for model in self.models for domain in DOMAINS]
        self.sagas, self.statuses, self.asked = {}, {}, set()

    def saga(self, process_id):
        if process_id not in self.sagas:
            self.sagas[process_id] = self.site.show(process_id)["state"]["saga"]
        return self.sagas[process_id]

    def run(self, rng):
        """Kill a worker whenever so many have ended. What differs from the model."""
        for count in [*sorted(rng.sample(range(len(self.roots)), min(KILLS, len(self.roots)))), len(self.roots)]:
            self.wait(count)
            if count < len(self.roots):
                self.site.kill(rng.randrange(len(self.site.workers)))
        for process_id in self.statuses:
            for node in sagas.walk(self.saga(process_id)["nodes"]):
                if node.get("late"):
                    self.site.respond(process_id, node)
        return self.differences()

    def wait(self, count):
        try:
            wait_until(lambda: self.turn() >= count, TIMEOUT_S, f"{count} of {len(self.roots)} have ended")
        except AssertionError as error:
            for process_id in (process_id for process_id, status in self.statuses.items() if status not in FINAL):
                shown = self.site.show(process_id)
                error.add_note(f"{shown['domain']} {shown['state']['saga']['path']}: {end_of(shown, effects=[])}")
            raise

    def turn(self):
        """Do what sender and operator have to do now. How many of the started processes have ended."""
        self.site.leases_end()
        for domain in DOMAINS:
            for line in self.site.list(domain):
                process_id, step = line["process_id"], line["step"]
                self.statuses[process_id] = line["status"]
                if line["status"] == "WAITING_FOR_ASYNC" and (process_id, step) not in self.asked:
                    self.asked.add((process_id, step))
                    self.answer(process_id, step)
                elif line["status"] == "WAITING_FOR_TSQ" and self.saga(process_id)["operator"] == "retry":
                    status = self.site.decide(process_id, "retry")
                    assert status in (200, 409), status  # 409: it was not in the list as it is now
        return sum(self.has_ended(process_id) for process_id in self.roots)

    def has_ended(self, process_id):
        status = self.statuses.get(process_id)
        return status in FINAL or status == "WAITING_FOR_TSQ" and self.saga(process_id)["operator"] == "leave"

    def answer(self, process_id, step):
        come = {node["name"]: node for node in sagas.walk(self.saga(process_id)["nodes"])}.get(plain(step).split("[")[0], {})
        if come.get("come") == "asked":
            self.site.respond(process_id, come, step)
        elif come.get("come") == "cancel":
            status = self.site.decide(process_id, "cancel", compensate=True)
            assert status in (200, 202), status

    def differences(self):
        shown, found = {domain: self.ends(domain) for domain in DOMAINS}, []
        for path, model in ((path, model) for root in self.models for path, model in root.all().items()):
            for domain in DOMAINS:
                got = shown[domain].pop(path, {})
                found += [f"saga {path} in {domain}: {what} is\n {got.get(what)}\nnot\n {wanted}"
                          for what, wanted in end_of_model(model).items() if got.get(what) != wanted]
        return found + [f"saga {path} in {domain} must not begin" for domain in DOMAINS for path in shown[domain]]

    def ends(self, domain):
        """How the processes of this domain have ended, by the path of the saga."""
        ends, effects = {}, {}
        for line in self.site.session.do("select process, step from demo.effect order by number"):
            process_id, step = line.split("|")
            effects.setdefault(process_id, []).append(plain(step))
        for process_id in [line["process_id"] for line in self.site.list(domain)]:
            shown = self.site.show(process_id)
            path = shown["state"]["saga"]["path"]
            assert path not in ends, f"saga {path} in {domain} was begun twice"
            ends[path] = end_of(shown, effects.get(process_id, []))
            self.site.ended.add(process_id)
        return ends


def end_of_model(model):
    return {"status": model.status, "state": model.state, "result": model.result, "effects": model.effects,
            "timeline": model.timeline, "events": model.events}


def plain(name):
    """A step's name as in a definition, without what says how it is run."""
    return re.sub(r"\.([0-9]+)$", r"[\1]", name.replace("~", "undo-").removesuffix(":timeout"))


def end_of(shown, effects):
    """What the three front ends must have in common. A compensation is ~STEP in a definition and a step with a name of
    its own in code, here undo-STEP; a timeout has a record of its own in code, STEP:timeout."""
    events = [event["event"] for event in shown["audit"]]
    timeline = [(plain(step["name"]), step["attempt"], outcome(step["error"]),
                 step["result"]) for step in shown["steps"] if "-join" not in step["name"]]
    return {"status": shown["status"], "state": shown["state"], "result": shown["result"], "effects": effects,
            "timeline": timeline, "events": {event: events.count(event) for event in sagas.EVENTS}}


def outcome(error):
    """Each front end adds its own words to those of the step. A child that did not complete is a refusal. Whether a
    timeout is a failure is recorded by definitions, and decided afterwards by code."""
    if error in (None, "timed out"):
        return "ok"
    if error.removeprefix("refused: ").startswith(("COMPENSATED: ", "FAILED: ")):
        return "refuse"
    if "did not end" in error:
        return "fail"
    return next((word for word in ("retry", "fail", "refuse") if word in error), error)


@test
def the_same_sagas_end_the_same_in_all_front_ends():
    rng, differences = random.Random(SEED), []
    with Site() as site:
        for first in range(FIRST, FIRST + COUNT, ROUND):
            numbers, began = range(first, min(first + ROUND, FIRST + COUNT)), time.monotonic()
            differences += Round(site, numbers).run(rng)
            print(f"# {len(numbers)} sagas from {first}: {time.monotonic() - began:.1f} s", flush=True)
        site.stop()
    assert not differences, (f"{len(differences)} differences; PAWL_TEST_SAGA={SEED}/N/1 runs one saga\n"
                             + "\n".join(differences[:20]))


main()
