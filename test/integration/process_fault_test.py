#!/usr/bin/env python3
"""process_fault - a pod is killed at the n-th pass over any named point of the process engine: the end is the same as without a kill.

The points are claim.after, step.before, step.after, record.before, record.after, suspend.before, suspend.after, branch.after, end.before and
end.after of module process; compensations pass those of steps. The processes have steps of every kind that acts: sql, exec, parallel, each, repeat, sleep,
wait (a race, and one that a response names), wallet, command (handled by a worker of the same pod) and process (a child). PAWL_TEST_FULL=1 kills at every pass, else at every STRIDE-th.
PAWL_TEST_PART=2/4 makes the second of every four of these kills, so that a full run can be split.
"""
import os
import signal

from pawl_test import Database, Pawl, main, test, wait_until
from process_cli import define

FULL = bool(os.environ.get("PAWL_TEST_FULL"))
STRIDE = 1 if FULL else 41
PART, PARTS = (int(n) for n in os.environ.get("PAWL_TEST_PART", "1/1").split("/"))
PASSES_MAX = 400
EFFECT = """
create schema demo;
create table demo.effect (key uuid, name text);
create function demo.effect(input jsonb, key uuid) returns jsonb language sql as $$
  insert into demo.effect values (key, input #>> '{}') returning input
$$;
create function demo.refuse(input jsonb, key uuid) returns jsonb language plpgsql as $$
begin raise exception 'no' using errcode = 'QU065'; end $$;
create function demo.handle(payload jsonb, command_id uuid) returns jsonb language sql as $$
  insert into demo.effect values (command_id, payload #>> '{}') returning '{"handled": true}'::jsonb
$$;
"""
WORKER = "[worker jobs]\nsql = demo.handle\nlease = 1s\n"


def effect(name, **more):
    return {"name": name, "sql": "demo.effect", "input": name, "compensate": {"sql": "demo.effect", "input": "undo " + name}, **more}


def definition(kind, program):
    return {"type": kind, "domain": "demo", "on_failure": "compensate", "steps": [
        effect("first", save={"first": "{{result}}"}),
        {"name": "both", "parallel": {"left": [effect("left")], "right": [effect("right")]}},
        {"name": "program", "exec": program, "input": "{{state.list}}", "compensate": {"sql": "demo.effect", "input": "undo program"}},
        {"name": "hold", "wallet": {"kind": "hold", "owner": "ann", "amount": 5}, "compensate": {"wallet": {"kind": "void", "hold": "{{result.txn_id}}"}}},
        {"name": "job", "command": {"domain": "jobs", "type": "do", "payload": "job"}, "save": {"job": "{{result}}"},
         "compensate": {"command": {"domain": "jobs", "type": "undo", "payload": "undo job"}}},
        {"name": "child", "process": {"type": "kid", "state": {"of": kind}}, "compensate": {"sql": "demo.effect", "input": "undo child"}},
        {"name": "rest", "sleep": "50ms"},
        {"name": "answer", "wait": {"any": ["stay", "go"]}, "timeout": "1h"},
        {"name": "named", "wait": {"response": "go"}},
        {"name": "items", "each": "{{state.list}}", "concurrency": 2, "steps": [effect("item", input="{{item}}")]},
        {"name": "poll", "repeat": [effect("round", input="round {{index}}"), {"name": "pause", "sleep": "20ms"}], "until": 'steps.round == "round 1"'},
        {"name": "take", "wallet": {"kind": "capture", "hold": "{{steps.hold.txn_id}}"}} if kind == "good" else {"name": "take", "set": {}},
        effect("last") if kind == "good" else {"name": "last", "sql": "demo.refuse"}]}


KID = {"type": "kid", "domain": "demo", "steps": [effect("kid"), {"name": "nap", "sleep": "20ms"}, effect("grown")]}


# Everything that an end consists of. A step that fails may be tried once more after a kill; one that succeeded has one record.
END = """
select c.type, pawl.process_status(p.id), p.state, p.version,
       (select string_agg(n.name || ' ' || case when s.step in ('hold', 'take') then 'posted' else coalesce(s.result::text, 'null') end,
                          ', ' order by n.name collate "C")
        from pawl.process_step s cross join lateral (select pawl.record_text(s.step, s.item, s.undo, s.kind, s.aside) as name) n
        where s.id = p.id and s.error is null),
       (select o.error from pawl.outcome o where o.id = p.id)
from pawl.process p join pawl.command c on c.id = p.id where p.id > {since} order by 1, p.state::text"""


def ended(db, since):
    """Processes, their children and the commands that they sent."""
    return db.value(f"select count(*) from pawl.command c where c.id > {since} and not exists (select from pawl.outcome o where o.id = c.id)") == "0"


def end_wait(db, pod, since):
    """False: the pod has ended before."""
    wait_until(lambda: ended(db, since) or not pod.is_running(), what="both have ended, or the pod has")
    return ended(db, since)


def start(db):
    since = db.value("select coalesce(max(id), 0) from pawl.command")
    db.rows("truncate demo.effect")
    for kind in ("bad", "good"):
        process_id = db.value(f"""select pawl.start('{kind}', '{{"list": ["i0", "i1"]}}', p_domain => 'demo')""")
        db.rows(f"select pawl.signal('{process_id}', 'go', '{{\"come\": 1}}', 'k', p_step => 'named')")
        db.rows(f"select pawl.signal('{process_id}', 'go', '{{\"come\": 2}}', 'l')")
    return since


def end_of(db, since):
    assert db.value("select held from wallet.balance_at('ann', now())") == "0"
    effects = db.rows("select name || ' ' || count(*) from demo.effect group by name order by name")
    assert db.value("select count(*) = count(distinct key) from demo.effect") == "t", effects
    return db.rows(END.format(since=since)), effects


@test
def a_kill_at_any_point_of_the_engine_changes_nothing_about_the_end():
    with Database() as db, Pawl(db, env={"PAWL_PROCESS_LEASE": "1s", "PAWL_LISTEN": "127.0.0.1:0"}) as pawl:
        db.rows(EFFECT)
        program = "echo x >> " + os.path.join(pawl.home, "program") + "; echo 7"
        with open(os.path.join(pawl.home, "pawl.ini"), "w") as out:
            out.write(WORKER)
        assert pawl.run("wallet", "create", "ann").code == 0 and pawl.run("wallet", "topup", "ann", "1000000").code == 0
        for source in (definition("good", program), definition("bad", program), KID):
            define(pawl, source)
        since = start(db)
        pod = pawl.start("serve", "--role", "worker")
        assert end_wait(db, pod, since)
        pod.stop()
        wanted = end_of(db, since)
        assert "COMPENSATED" in wanted[0][0] and "COMPLETED" in wanted[0][1] and len(wanted[0]) == 4, wanted
        assert {"first 2", "i0 2", "job 2", "kid 2", "undo child 1", "undo first 1", "undo job 1", "round 0 2", "round 1 2", "undo round 2"} <= set(wanted[1]), wanted
        deaths, passes = 0, (PART - 1) * STRIDE
        while passes < PASSES_MAX:
            since = start(db)
            pod = pawl.start("serve", "--role", "worker", env={"PAWL_FAULT": f"process.*:kill:1:{passes}"})
            if not end_wait(db, pod, since) or not pod.is_running():
                assert pod.wait() == -signal.SIGKILL, (passes, pod.stderr[-5:])
                deaths += 1
                pod = pawl.start("serve", "--role", "worker")
                assert end_wait(db, pod, since), pod.stderr[-5:]
                is_last = False
            else:
                is_last = True
            pod.stop()
            assert end_of(db, since) == wanted, (passes, end_of(db, since), wanted)
            if is_last:
                break
            passes += STRIDE * PARTS
        assert deaths >= (20 if FULL else 3) // PARTS, deaths
        assert db.value("select count(*) from pawl.lease") == "0"
        assert pawl.run("wallet", "verify").code == 0


main()
