#!/usr/bin/env python3
"""process_move - processes moved to newer versions of their definitions, and decisions about all that match a filter."""
import itertools
import json
import pathlib
import re
import tempfile
import uuid

from pawl_test import Database, Pawl, main, test, wait_until
from servers import Session, in_threads


def cli(pawl, *arguments, code=0, **options):
    done = pawl.run("process", *arguments, "--json", **options)
    assert done.code == code, (arguments, done)
    return json.loads(done.stdout) if done.stdout else json.loads(done.stderr)


def define(pawl, *steps, kind="order", **more):
    return cli(pawl, "define", "-", stdin=json.dumps({"type": kind, "domain": "shop", "steps": steps, **more}))["version"]


def start(pawl, kind="order", state=None):
    return cli(pawl, "start", kind, json.dumps(state or {}), "--domain", "shop")["process_id"]


def wait_status(pawl, process_id, *statuses):
    return wait_until(lambda: (lambda s: s if s["status"] in statuses else None)(cli(pawl, "show", process_id)),
                      what=f"{process_id} is {statuses}")


def named(name, **kind):
    return {"name": name, **kind}


RESERVE, ASK, SHIP = named("reserve", set={"a": 1}), named("ask", wait={"response": "say"}), named("ship", set={"shipped": True})


def record(db, number, step, item="{}", kind="step", result="null", error="null"):
    db.rows(f"""insert into pawl.process_step (id, step, item, kind, result, error, started_at, ended_at)
                values ({number}, '{step}', '{item}', '{kind}', '{result}', {error}, now(), now())""")


def differs_from(pawl, db, number, old, new):
    """Why a process that has run by the steps of `old` cannot go on by those of `new`."""
    versions = [define(pawl, *steps, kind="compared") for steps in (old, new)]
    ids = [db.value(f"select id from pawl.process_definition where type = 'compared' and version = {version}") for version in versions]
    return db.value(f"select pawl.process_differs({number}, {ids[0]}, {ids[1]})")


@test
def a_waiting_process_goes_on_with_the_version_it_was_moved_to():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        assert define(pawl, RESERVE, ASK, SHIP) == 1
        moved, kept = start(pawl), start(pawl)
        for one in (moved, kept):
            wait_status(pawl, one, "WAITING_FOR_ASYNC")
        assert define(pawl, RESERVE, named("ask", wait={"response": "say", "count": 2}), named("pack", set={"packed": 1}), SHIP) == 2
        # By one that is no operator, to a version that is not there, with a body that has no version.
        reader = pawl.run("key", "create", "app", "--scopes", "process", "--json").json["token"]
        path = f"/v1/processes/{moved}/move"
        assert pawl.http("POST", path, body={"version": 2}, token=reader).status == 403
        assert pawl.http("POST", path, body={"version": 9}).status == 404
        for body in ({}, {"version": 0}, {"version": "2"}, {"to": 2}):
            assert pawl.http("POST", path, body=body).status == 400, body
        answer = pawl.http("POST", path, body={"version": 2, "operator": "ann", "reason": "packs now"})
        assert answer.status == 200 and (answer.json["from_version"], answer.json["version"], answer.json["operator"]) == (1, 2, "ann"), answer.body
        # The same again, by another operator, says who did it.
        again = cli(pawl, "move", moved, "--to", "2", "--operator", "bob")
        assert (again["operator"], again["from_version"]) == ("ann", 2), again
        shown = wait_status(pawl, moved, "WAITING_FOR_ASYNC")
        wait_until(lambda: cli(pawl, "show", moved)["waits_for"] == {"say": 2}, what="it waits by its new definition")
        assert shown["version"] == 2
        move, = (r for r in shown["responses"] if r["kind"] == "move")
        assert (move["actor"], move["payload"]) == ("ann", {"from": 1, "to": 2, "reason": "packs now", "login": "postgres"}), move
        for one in (moved, moved, kept):
            assert pawl.run("process", "signal", one, "say", "{}").code == 0
        shown = wait_status(pawl, moved, "COMPLETED")
        assert [s["name"] for s in shown["steps"]] == ["reserve", "ask", "pack", "ship"] and shown["state"]["packed"] == 1, shown
        shown = wait_status(pawl, kept, "COMPLETED")
        assert shown["version"] == 1 and "pack" not in [s["name"] for s in shown["steps"]], shown
        refused = pawl.run("process", "move", kept, "--to", "2")
        assert refused.code == 1 and "has ended already" in refused.stderr, refused
        refused = pawl.run("process", "move", moved, "--to", "1")
        assert refused.code == 1 and ("newer than 1" in refused.stderr or "ended" in refused.stderr), refused
        assert pawl.run("process", "move", str(uuid.uuid4()), "--to", "2").code == 1
        assert pawl.run("process", "move", kept).code == 2


@test
def a_process_that_runs_is_not_moved():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve("--role", "api,monitor")
        define(pawl, RESERVE, ASK)
        process_id = start(pawl)
        item, = pawl.http("POST", "/v1/domains/process:shop/claim", body={"limit": 1, "lease_s": 600, "wait_s": 60}).json["items"]
        assert item["command_id"] == process_id
        define(pawl, RESERVE, ASK, SHIP)
        answer = pawl.http("POST", f"/v1/processes/{process_id}/move", body={"version": 2})
        assert answer.status == 409 and "runs right now" in answer.json["detail"], answer.body
        assert cli(pawl, "show", process_id)["version"] == 1
        db.rows("update pawl.lease set until = now() - interval '1 s'")
        wait_until(lambda: pawl.http("POST", f"/v1/processes/{process_id}/move", body={"version": 2}).status == 200, what="it does not run")
        # Code has no versions.
        code = start(pawl, "code")
        answer = pawl.http("POST", f"/v1/processes/{code}/move", body={"version": 1})
        assert answer.status == 409 and "its steps are code" in answer.json["detail"], answer.body


@test
def a_version_in_which_records_mean_something_else_is_refused_with_the_first_step():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve("--role", "api")
        check = named("check", when="state.a == 1", then="ask")
        each = named("mails", each="{{state.list}}", steps=[named("send", set={"sent": "{{index}}"}), named("log", set={"b": 1})])
        both = named("both", parallel={"left": [named("dig", set={"c": 1}), named("fill", set={"c": 2})], "right": [named("paint", set={"d": 1})]})
        skipped = named("skipped", set={"s": 1})
        old = [RESERVE, check, skipped, ASK, each, both, SHIP]
        define(pawl, *old)
        process_id = start(pawl)
        number = db.value(f"select id from pawl.command where command_id = '{process_id}'")
        # Passed: reserve, check (over skipped), ask, the first item of the each; the second one has sent, and so has the left branch.
        for step, item, kind, result in (
                ("reserve", "{}", "step", "null"), ("check", "{}", "step", "true"), ("ask", "{}", "step", "{}"), ("ask", "{}", "begin", "null"),
                ("mails", "{}", "begin", "[1,2]"), ("send", "{0}", "step", "null"), ("log", "{0}", "step", "null"), ("send", "{1}", "step", "null")):
            record(db, number, step, item, kind, result)

        def differs(*steps):
            return differs_from(pawl, db, number, old, steps)

        def without(name):
            return [step for step in old if step["name"] != name]

        def inner(*steps):
            return [{**each, "steps": steps} if step is each else step for step in old]

        more = named("more", set={"m": 1})
        send, log = each["steps"]
        for steps, words in [
                (old, ""), ([*old, more], ""), (old[:-1], ""), (without("skipped"), ""),
                ([*old[:2], more, *old[2:]], ""),  # passed over, as "skipped" is
                ([*old[:6], more, SHIP], ""), ([{**RESERVE, "set": {"a": 2}}, *old[1:]], ""), (inner(send, log, more), ""),
                (without("both"), ""), (inner(send, {**log, "set": {"b": 2}}), ""),
                (old[1:], 'step "reserve" does not exist'),
                ([named("reserve", sleep="1s"), *old[1:]], 'step "reserve" was a set and is a sleep'),
                ([more, *old], 'step "reserve" comes after "more", which has not run'),
                ([check, RESERVE, *old[2:]], 'step "reserve" is passed over by "check"'),
                ([RESERVE, check, skipped, each, ASK, both, SHIP], 'step "mails" comes before "ask"'),
                ([RESERVE, {**check, "then": "ship"}, *old[2:]], 'step "ask" is passed over by "check"'),
                ([*old[:4], more, *old[4:]], 'step "mails" comes after "more", which has not run'),
                ([*inner(log)[:5], named("send", set={"sent": 1}), both, SHIP], 'step "send" was inside of 1 loops and is inside of 0'),
                (inner(more, send, log), 'step "send" comes after "more", which has not run'),
                (inner(log, send), 'step "send" comes after "log", which has not run'),
                (without("mails"), 'step "mails" does not exist')]:
            found = differs(*steps)
            assert (found or "") == words if not words or words.startswith("step") else words in found, (words, found)
        # In a branch: the parallel has no record until it is joined.
        db.rows(f"delete from pawl.process_step where id = {number} and step in ('send', 'log', 'mails')")
        record(db, number, "mails")
        record(db, number, "dig")
        assert not differs(*old)
        renamed = {**both, "parallel": {"up": both["parallel"]["left"], "right": both["parallel"]["right"]}}
        assert differs(*old[:5], renamed, SHIP) == 'step "dig" is in another list of steps'
        assert differs(*old[:4], both, each, SHIP) == 'step "both" comes before "mails"'
        assert differs(*old[:5], more, both, SHIP) == 'step "both" comes after "more", which has not run'
        # A wait that has begun waits for the same.
        db.rows(f"delete from pawl.process_step where id = {number} and (step, kind) not in (('reserve', 'step'), ('check', 'step'), ('ask', 'begin'))")
        assert differs(*old[:3], named("ask", wait={"response": "cry"}), *old[4:]) == 'step "ask" waits for "cry" instead of "say"'


@test
def a_repeat_in_a_later_round_keeps_its_place():
    """The decisions after rounds are no record that it has ended."""
    with Database() as db, Pawl(db) as pawl:
        pawl.serve("--role", "api")
        more, again = named("more", set={"m": 1}), named("again", repeat=[named("ask", wait={"response": "say"})], until="state.done")
        define(pawl, RESERVE, again, SHIP)
        number = db.value(f"select pawl.process_number('{start(pawl)}')")
        for step, item in (("reserve", "{}"), ("ask", "{0}"), ("again", "{0}")):
            record(db, number, step, item)
        record(db, number, "ask", "{1}", "begin")

        def differs(*steps):
            return differs_from(pawl, db, number, [RESERVE, again, SHIP], steps)

        assert not differs(RESERVE, again, more)
        assert differs(RESERVE, more, again, SHIP) == 'step "again" comes after "more", which has not run'
        assert differs(again, RESERVE, SHIP) == 'step "again" comes before "reserve"'


@test
def a_version_without_the_compensation_of_what_was_done_is_refused():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve("--role", "api")
        pay = named("pay", command={"domain": "bank", "type": "pay"})
        each = named("all", each="{{state.list}}", steps=[named("send", exec="true", compensate={"exec": "true"})])
        old, new = [{**pay, "compensate": {"exec": "refund"}}, each, ASK], [pay, each, ASK]
        define(pawl, *old)
        process_id = start(pawl)
        number = db.value(f"select id from pawl.command where command_id = '{process_id}'")

        def differs(steps):
            return differs_from(pawl, db, number, old, steps)

        # It has not run, or has failed: it is done with the new version, or not at all.
        assert not differs(new)
        record(db, number, "pay", error="'declined'")
        assert not differs(new)
        refused = 'step "pay" has no compensation for what it did'
        db.rows(f"delete from pawl.process_step where id = {number}")
        record(db, number, "pay")
        assert differs(new) == refused
        assert not differs([{**pay, "compensate": {"sql": "app.refund"}}, each, ASK])  # another compensation is one
        # It has run, and its result could not be recorded.
        db.rows(f"delete from pawl.process_step where id = {number}")
        record(db, number, "pay", kind="done")
        assert differs(new) == refused
        db.rows(f"delete from pawl.process_step where id = {number}")
        # One of several items.
        record(db, number, "pay")
        record(db, number, "all", kind="begin")
        record(db, number, "send", "{1}", "done")
        bare = {**each, "steps": [named("send", exec="true")]}
        assert differs([old[0], bare, ASK]) == 'step "send" has no compensation for what it did'
        # While it is compensated, as before.
        db.rows(f"delete from pawl.process_step where id = {number} and step <> 'pay'")
        db.rows(f"update pawl.process set phase = 'compensating' where id = {number}")
        assert differs(new) == refused


@test
def what_was_paid_is_refunded_although_a_version_without_the_refund_exists():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        ledger = pathlib.Path(folder, "ledger")
        pay, last = named("pay", exec=f"echo paid >> {ledger}"), named("last", exec="exit 70")
        undo = {"compensate": {"exec": f"echo refunded >> {ledger}"}}
        sent = named("bill", command={"domain": "bank", "type": "charge"})
        options = {"on_failure": "compensate"}
        define(pawl, {**pay, **undo}, ASK, last, **options)
        process_id = start(pawl)
        define(pawl, {**sent, **undo}, last, kind="sent", **options)
        other = start(pawl, "sent")
        wait_status(pawl, process_id, "WAITING_FOR_ASYNC")
        wait_status(pawl, other, "WAITING_FOR_REPLY")
        assert define(pawl, pay, ASK, last, **options) == 2 and define(pawl, sent, last, kind="sent", **options) == 2
        for one, step in ((process_id, "pay"), (other, "bill")):
            refused = cli(pawl, "move", one, "--to", "2", code=1)["detail"]
            assert f'step "{step}" has no compensation for what it did' in refused, refused
        cli(pawl, "signal", process_id, "say")
        shown = wait_status(pawl, process_id, "COMPENSATED")
        assert shown["version"] == 1 and ledger.read_text().split() == ["paid", "refunded"], shown


@test
def what_has_begun_or_used_up_responses_must_mean_the_same():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()

        def bill(domain, kind="charge"):
            return named("bill", command={"domain": domain, "type": kind})

        go, begin = {"response": "go"}, {"response": "begin"}
        first, second = named("w1", wait=go), named("w2", wait=go)
        cases = [  # the first version, the status in which it waits, a version that is refused and why, one that is not
            ("sent", [bill("shopx")], "WAITING_FOR_REPLY", [bill("shopy")], 'has sent "charge" to domain "shopx", and would send "charge" to domain "shopy"',
             [bill("shopx"), SHIP]),
            ("type", [bill("shopx")], "WAITING_FOR_REPLY", [bill("shopx", "bill")], 'has sent "charge"', [{**bill("shopx"), "timeout": "1h"}]),
            ("gone", [bill("shopx")], "WAITING_FOR_REPLY", [SHIP], 'step "bill" does not exist', [bill("shopx"), SHIP]),
            ("child", [named("kid", process={"type": "x", "domain": "a"})], "WAITING_FOR_REPLY", [named("kid", process={"type": "x", "domain": "b"})],
             'has sent "x" to domain "a"', [named("kid", process={"type": "x", "domain": "a"}), SHIP]),
            ("fixed", [named("s", sleep="1h")], "WAITING_FOR_ASYNC", [named("s", sleep={"until": "{{state.t}}"})],
             "sleeps until a time from a template instead of for a fixed time", [named("s", sleep="2h")]),
            ("for", [named("s", sleep={"for": "{{state.h}}h"})], "WAITING_FOR_ASYNC", [named("s", sleep={"until": "{{state.t}}"})],
             "sleeps until a time from a template instead of for a time", [named("s", sleep={"for": "{{state.h}}d"})]),
            ("used", [first, second], "WAITING_FOR_ASYNC", [named("w1", wait=begin), second], 'has used up responses "go", and would have used "begin"',
             [first, second, SHIP]),
            ("count", [first, second], "WAITING_FOR_ASYNC", [named("w1", wait={**go, "count": 2}), second], "has used up 1 responses, and would have used 2",
             [first, named("w2", wait={**go, "count": 2})])]
        ids = {}
        for kind, steps, status, *_ in cases:
            define(pawl, *steps, kind=kind)
            ids[kind] = start(pawl, kind, {"h": 1, "t": "2030-01-01T00:00:00Z"})
            if steps[0] is first:
                cli(pawl, "signal", ids[kind], "go")
        for kind, steps, status, refused, why, accepted in cases:
            wait_until(lambda: (lambda s: s["status"] == status and s["step"] == steps[-1]["name"])(cli(pawl, "show", ids[kind])), what=kind)
            assert define(pawl, *refused, kind=kind) == 2
            assert why in cli(pawl, "move", ids[kind], "--to", "2", code=1)["detail"], (kind, cli(pawl, "move", ids[kind], "--to", "2", code=1))
            assert define(pawl, *accepted, kind=kind) == 3
            assert cli(pawl, "move", ids[kind], "--to", "3")["version"] == 3
        # A version that one of the types does not have keeps none of the others from being moved.
        define(pawl, first, second, SHIP, named("more", set={"m": 1}), kind="used")
        done = pawl.run("process", "move", "--all", "--domain", "shop", "--to", "4", "--yes", "--json")
        assert done.code == 1 and json.loads(done.stdout)["decided"] == 1, done


@test
def all_that_match_are_moved_retried_completed_and_canceled():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        db.rows("create function public.broken(input jsonb, key uuid) returns jsonb language plpgsql as "
                "$$ begin raise exception 'broken' using errcode = 'QU070'; end $$")
        define(pawl, named("dig", sql="public.broken"), kind="job")
        define(pawl, ASK, kind="talk")
        jobs, talks = [start(pawl, "job", {"n": n}) for n in range(6)], [start(pawl, "talk") for _ in range(3)]
        for one in jobs:
            wait_status(pawl, one, "WAITING_FOR_TSQ")
        for one in talks:
            wait_status(pawl, one, "WAITING_FOR_ASYNC")

        def bulk(*arguments, code=0):
            return cli(pawl, *arguments, "--all", "--domain", "shop", code=code)

        assert pawl.run("process", "cancel", "--all", "--domain", "shop").code == 2, "it needs --yes"
        assert pawl.run("process", "cancel", jobs[0], "--all", "--yes").code == 2
        assert pawl.run("process", "complete", "--all", "--status", "PENDING", "--yes").code == 2
        assert bulk("complete", "--dry-run") == {"matched": 6, "decided": 0, "known": 0, "refused": 0, "locked": 0}
        assert bulk("complete", "--type", "talk", "--dry-run")["matched"] == 0
        assert bulk("complete", "--text", '"n": 4', "--yes", "--operator", "ann", "--result", "7")["decided"] == 1
        shown = cli(pawl, "show", jobs[4])
        assert (shown["status"], shown["result"]) == ("COMPLETED", 7)
        assert [e["actor"] for e in shown["audit"] if e["event"] == "OPERATOR_COMPLETE"] == ["ann"], shown["audit"]
        again = pawl.run("process", "complete", jobs[4], "--operator", "bob", "--result", "7", "--json")
        assert again.code == 1 and "was decided already: complete by ann" in json.loads(again.stderr)["detail"], again
        assert bulk("cancel", "--status", "WAITING_FOR_TSQ", "--step", "nothing", "--yes")["matched"] == 0
        assert bulk("cancel", "--type", "job", "--older", "1d", "--yes")["matched"] == 0
        db.rows("create or replace function public.broken(input jsonb, key uuid) returns jsonb language sql as $$ select '1'::jsonb $$")
        assert bulk("retry", "--type", "job", "--yes")["decided"] == 5
        for one in jobs[:4]:
            wait_status(pawl, one, "COMPLETED")
        define(pawl, ASK, SHIP, kind="talk")
        define(pawl, named("other", set={"a": 1}), ASK, kind="talk")
        assert bulk("move", "--type", "talk", "--to", "2", "--dry-run")["matched"] == 3
        assert bulk("move", "--type", "talk", "--to", "2", "--yes", "--operator", "ann")["decided"] == 3
        assert bulk("move", "--type", "talk", "--to", "2", "--yes")["known"] == 3
        for one in talks:
            wait_status(pawl, one, "WAITING_FOR_ASYNC")
        refused = pawl.run("process", "move", "--all", "--domain", "shop", "--type", "talk", "--to", "3", "--yes")
        assert refused.code == 1 and refused.stdout == "0 moved, 3 refused\n", refused
        assert refused.stderr.count('step "ask" comes after "other", which has not run') == 3, refused
        assert bulk("cancel", "--type", "talk", "--yes")["decided"] == 3
        for one in talks:
            wait_status(pawl, one, "CANCELED")
        assert bulk("cancel", "--yes")["matched"] == 0, "all have ended"


@test
def all_but_those_that_an_application_has_locked_are_decided_at_once():
    with Database() as db, Pawl(db) as pawl, Session(db.url) as session:
        pawl.serve("--role", "api,monitor")
        define(pawl, ASK, kind="talk")
        talks = [start(pawl, "talk") for _ in range(4)]
        session.do(f"begin; select pawl.signal('{talks[1]}', 'hello')")
        # The command goes on with the one that was locked as soon as the application has committed; the others did not wait for it.
        command = pawl.start("process", "cancel", "--all", "--domain", "shop", "--compensate", "--yes", "--operator", "ann")
        wait_until(lambda: db.value("select count(*) from pawl.process_response where kind = 'cancel'") == "3", what="the others are decided")
        session.do("commit")
        assert command.wait() == 0, command.stderr
        assert command.stdout == ["4 to be compensated"], command.stdout
        # One that stays locked is named.
        define(pawl, ASK, kind="ask")
        talks = [start(pawl, "ask") for _ in range(3)]
        define(pawl, ASK, SHIP, kind="ask")
        session.do(f"begin; select pawl.signal('{talks[1]}', 'hello')")
        left = f"process {talks[1]} is locked by another transaction: it was left as it is"
        done = pawl.run("process", "cancel", "--all", "--domain", "shop", "--type", "ask", "--yes")
        assert done.code == 75 and left in done.stderr, done
        assert done.stdout == "2 canceled, 1 locked\n", done
        done = pawl.run("process", "move", "--all", "--domain", "shop", "--type", "ask", "--to", "2", "--yes")
        assert done.code == 75 and left in done.stderr, done
        session.do("commit")
        assert cli(pawl, "cancel", "--all", "--domain", "shop", "--type", "ask", "--yes")["locked"] == 0


def walked(db, kind, count):
    """`count` processes that have recorded all `set` steps of their definition and are about to wait."""
    db.rows(f"select count(pawl.start('{kind}', p_domain => 'shop')) from generate_series(1, {count})")
    db.rows(f"""insert into pawl.process_step (id, step, kind, result, started_at, ended_at)
                select p.id, s.name, 'step', 'null', now(), now()
                from pawl.process p join pawl.process_definition d on d.id = p.definition_id and d.type = '{kind}'
                join pawl.process_definition_step s on s.definition_id = d.id and s.kind = 'set' order by p.id, s.number""")
    return db.rows(f"select command_id from pawl.command where type = '{kind}' order by id")


def long_steps(count):
    return [named(f"s{i}", set={"a": i}) for i in range(count - 1)] + [ASK]


def cost(db, process_id, kind):
    """Of the comparison of a process with version 2: blocks that it reads, and the least time of some tries, which a busy machine makes longer but never
    shorter. Without statistics, as after many starts at once."""
    ids = ",".join(db.rows(f"select id from pawl.process_definition where type = '{kind}' order by version"))
    plan = "\n".join(db.rows(5 * ("explain (analyze, buffers, costs off, timing off) "
                                  f"select pawl.process_differs(pawl.process_number('{process_id}'), {ids});")))
    return (min(int(n) for n in re.findall(r"Result.*\n *Buffers: shared hit=(\d+)", plan)),
            min(float(n) for n in re.findall(r"Execution Time: ([0-9.]+)", plan)))


@test
def the_cost_of_a_move_is_linear_in_the_records():
    """Of 100 and of 999 steps; and of 300 and of 3,000 items of an each, with steps in a parallel, which has no record yet."""
    inner = [named("both", parallel={"left": [named("a", set={"a": 1}), named("b", set={"b": 1})], "right": [named("c", set={"c": 1})]}),
             named("d", set={"d": 1})]
    with Database() as db, Pawl(db) as pawl:
        pawl.serve("--role", "api")
        costs = {}
        for count in (100, 999):
            steps, kind = long_steps(count), f"long{count}"
            define(pawl, *steps, kind=kind)
            process_id, = walked(db, kind, 1)
            define(pawl, *steps, SHIP, kind=kind)
            costs[count] = cost(db, process_id, kind)
            cli(pawl, "move", process_id, "--to", "2")
            assert cli(pawl, "show", process_id)["version"] == 2
        for count in (300, 3000):
            steps, kind = [named("all", each="{{state.list}}", steps=inner)], f"items{count}"
            define(pawl, *steps, kind=kind)
            process_id = start(pawl, kind)
            db.rows(f"""insert into pawl.process_step (id, step, item, result, started_at, ended_at)
                        select pawl.process_number('{process_id}'), s, array[i], 'null', now(), now()
                        from generate_series(0, {count - 1}) i, unnest(array['a', 'b', 'c']) s""")
            define(pawl, *steps, SHIP, kind=kind)
            costs[count] = cost(db, process_id, kind)
            cli(pawl, "move", process_id, "--to", "2")
        for small, large in ((100, 999), (300, 3000)):
            assert all(of_large < 40 * of_small for of_small, of_large in zip(costs[small], costs[large])), costs


@test
def all_are_moved_while_they_are_signaled_and_one_is_locked():
    """In transactions so short that a signal to any of them is answered."""
    count = 300
    with Database() as db, Pawl(db) as pawl, Session(db.url) as session:
        pawl.serve("--role", "api")
        steps = long_steps(50)
        define(pawl, *steps, kind="many")
        ids = walked(db, "many", count)
        define(pawl, *steps, SHIP, kind="many")
        session.do(f"begin; select pawl.signal('{ids[7]}', 'hello')")
        command = pawl.start("process", "move", "--all", "--domain", "shop", "--type", "many", "--to", "2", "--yes")
        answers = []

        def send(first):
            for at in itertools.count(first, 7):
                if not command.is_running():
                    return
                if at % count != 7:
                    answers.append(pawl.http("POST", f"/v1/processes/{ids[at % count]}/signals/hello", body={}).status)

        in_threads(2, send)()
        assert command.wait() == 75 and command.stdout == [f"{count - 1} moved, 1 locked"], (command.stdout, command.stderr)
        session.do("rollback")
        assert answers and set(answers) == {201}, answers
        moves = db.value("select count(distinct xmin::text) from pawl.process_response where kind = 'move'")
        assert int(moves) >= 5, f"{moves} transactions"
        assert db.value("select count(*) from pawl.process_response where kind = 'move'") == str(count - 1)


main()
