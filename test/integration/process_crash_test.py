#!/usr/bin/env python3
"""process_crash - pods are killed and the server restarts while processes run: every process ends, and no step's effect happens twice."""
import json
import os
import random
import signal
import tempfile

from pawl_test import Pawl, main, test, wait_until
from process_cli import define
from servers import Cluster

SEED = 4711
COUNT = int(os.environ.get("PAWL_TEST_PROCESSES", "300"))
KILLS = int(os.environ.get("PAWL_TEST_KILLS", "12"))
STEPS = 5
# No key on purpose: an effect that happened twice is two rows.
EFFECT = """
create schema demo;
create table demo.effect (key uuid, name text);
create function demo.effect(input jsonb, key uuid) returns jsonb language sql as $$
  insert into demo.effect values (key, input ->> 'name');
  select pg_sleep(0.005);
  select input
$$;
"""
PROGRAM = """at=$(date +%s%6N); of=$(cat); printf '%s %s %s\\n' "$PAWL_COMMAND_ID" "$at" "$of" >> {file}"""


def definition(file):
    """Functions and programs in turns. A program that was killed may run again, but not once its step is recorded."""
    return {"type": "chain", "domain": "demo", "steps": [
        {"name": f"s{n}", "input": {"name": f"s{n}", "of": "{{process.id}}"},
         **({"exec": PROGRAM.format(file=file)} if n % 2 else {"sql": "demo.effect"})} for n in range(STEPS)]}


def ended(cluster):
    return int(cluster.rows("select count(*) from pawl.outcome")[0])


def leases_end(cluster, pods):
    """Leases of pods that were killed end now; those of the others are long enough for any stall."""
    alive = ", ".join(str(pod.pid) for pod in pods)
    cluster.rows(f"update pawl.lease set until = pawl.now() where split_part(worker, ':', 2)::integer <> all (array[{alive}]) and until > pawl.now()")


def outcomes(cluster):
    return set(cluster.rows("select id, status, ended_at from pawl.outcome"))


def runs_of_programs(file):
    """(process, step): when the program began, in microseconds."""
    begun, names = {}, {}
    with open(file, encoding="utf-8") as lines:
        for key, at, given in (line.rstrip("\n").split(" ", 2) for line in lines):
            begun.setdefault(key, []).append(int(at))
            if given:  # nothing if its pod died before it passed the input
                names[key] = (json.loads(given)["of"], json.loads(given)["name"])
    return {names[key]: times for key, times in begun.items()}


@test
def killed_pods_and_a_restarted_server_lose_and_repeat_nothing():
    chance = random.Random(SEED)
    with tempfile.TemporaryDirectory() as folder, Cluster(conf="synchronous_commit = on\n") as cluster, \
            Pawl(cluster.url(), env={"PAWL_PROCESS_LEASE": "60s", "PAWL_LISTEN": "127.0.0.1:0"}) as pawl:
        assert pawl.run("migrate").code == 0
        file, seen = os.path.join(folder, "runs"), set()
        cluster.rows(EFFECT)
        define(pawl, definition(file))
        cluster.rows(f"select count(pawl.start('chain', p_domain => 'demo')) from generate_series(1, {COUNT})")
        pods = [pawl.start("serve", "--role", "worker") for _ in range(3)]
        marks = sorted(chance.sample(range(1, COUNT * 8 // 10), KILLS))
        for at, mark in enumerate(marks):
            wait_until(lambda: leases_end(cluster, pods) or ended(cluster) >= mark, what=f"{mark} have ended")
            seen |= outcomes(cluster)
            if at == KILLS // 2:
                cluster.restart("immediate")
                continue
            place = chance.randrange(len(pods))
            pods[place].stop(signal.SIGKILL)
            pods[place] = pawl.start("serve", "--role", "worker")
        wait_until(lambda: leases_end(cluster, pods) or ended(cluster) == COUNT, what="all have ended")
        for pod in pods:  # the last one may have been started a moment ago
            wait_until(lambda pod=pod: pod.said("pawl is ready"), what="a pod has started")
            pod.send(signal.SIGTERM)
        for pod in pods:
            assert pod.wait() == 0, pod.stderr[-5:]
        assert cluster.rows("select distinct pawl.process_status(id) from pawl.process") == ["COMPLETED"]
        assert len(seen) > 0 and seen <= outcomes(cluster), "the end of a process has changed"
        functions, programs = COUNT * (STEPS + 1) // 2, COUNT * (STEPS // 2)
        assert cluster.rows("select count(*), count(distinct key) from demo.effect") == [f"{functions}|{functions}"]
        assert cluster.rows("select count(*), max(attempt) from pawl.process_step") == [f"{COUNT * STEPS}|1"]
        recorded = {(process, step): int(at) for process, step, at in (line.split("|") for line in cluster.rows(
            "select c.command_id, s.step, pawl.micros(s.ended_at) from pawl.process_step s join pawl.command c on c.id = s.id where s.step in ('s1', 's3')"))}
        begun = runs_of_programs(file)
        assert begun.keys() == recorded.keys() and len(begun) == programs
        late = {name: (times, recorded[name]) for name, times in begun.items() if max(times) > recorded[name]}
        assert not late, late
        assert cluster.rows("select count(*) from pawl.lease") == ["0"]


main()
