#!/usr/bin/env python3
"""process_crash - pods are killed and the server restarts while processes run: every process ends, and no step's effect happens twice."""
import json
import os
import random
import signal

from pawl_test import Pawl, main, test, wait_until
from helpers import Cluster

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
DEFINITION = {"type": "chain", "domain": "demo", "steps": [
    {"name": f"s{n}", "sql": "demo.effect", "input": {"name": f"s{n}", "of": "{{process.id}}"}} for n in range(STEPS)]}


def literal(text):
    return "$pawl$" + text + "$pawl$"


def ended(cluster):
    return int(cluster.rows("select count(*) from pawl.outcome")[0])


@test
def killed_pods_and_a_restarted_server_lose_and_repeat_nothing():
    chance = random.Random(SEED)
    with Cluster(conf="synchronous_commit = on\n") as cluster, \
            Pawl(cluster.url(), env={"PAWL_PROCESS_LEASE": "2s", "PAWL_LISTEN": "127.0.0.1:0"}) as pawl:
        assert pawl.run("migrate").code == 0
        cluster.rows(EFFECT)
        cluster.rows("select pawl.process_define('demo', 'chain', " + literal(json.dumps(DEFINITION)) + ", null, null, 'test')")
        cluster.rows(f"select count(pawl.start('chain', p_domain => 'demo')) from generate_series(1, {COUNT})")
        pods = [pawl.start("serve", "--role", "worker") for _ in range(3)]
        marks = sorted(chance.sample(range(1, COUNT * 8 // 10), KILLS))
        for at, mark in enumerate(marks):
            wait_until(lambda: ended(cluster) >= mark, timeout=120, what=f"{mark} have ended")
            if at == KILLS // 2:
                cluster.restart("immediate")
                continue
            place = chance.randrange(len(pods))
            pods[place].stop(signal.SIGKILL)
            pods[place] = pawl.start("serve", "--role", "worker")
        wait_until(lambda: ended(cluster) == COUNT, timeout=180, what="all have ended")
        for pod in pods:
            pod.send(signal.SIGTERM)
        for pod in pods:
            assert pod.wait() == 0, pod.stderr[-5:]
        assert cluster.rows("select distinct pawl.process_status(id) from pawl.process") == ["COMPLETED"]
        assert cluster.rows("select count(*), count(distinct key) from demo.effect") == [f"{COUNT * STEPS}|{COUNT * STEPS}"]
        assert cluster.rows("select count(*), max(attempt) from pawl.process_step") == [f"{COUNT * STEPS}|1"]
        assert cluster.rows("select count(*) from pawl.lease") == ["0"]


main()
