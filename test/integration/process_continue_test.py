#!/usr/bin/env python3
"""process_continue - processes that continue as new: in Python, in C and by definitions, with responses, kills and decisions at the same moment."""
import concurrent.futures
import datetime
import json
import os
import sys

from pawl_test import Database, Pawl, Process, Proxy, main, test, wait_until
from process_worker import claim, module_worker, post, process_module, report, show
from servers import Session


def start(pawl, state=None, domain="shop", kind="py-order", **more):
    return post(pawl, "/v1/processes", {"type": kind, "domain": domain, "state": state or {}, **more}, 201)["process_id"]


def signal(pawl, process_id, name, payload, key):
    answer = pawl.http("POST", f"/v1/processes/{process_id}/signals/{name}", body=payload, headers={"Idempotency-Key": key})
    return answer.headers.get("pawl-status") or answer.status


def ended(shown):
    return shown["ended_at"] or shown["status"] == "WAITING_FOR_TSQ"


def turns(worker, pawl, process_id, fact):
    while not fact(show(pawl, process_id)):
        assert worker.turn() == 1, show(pawl, process_id)
    return show(pawl, process_id)


def counter(run):
    """Two signals in each life; ends after five lives."""
    seen = run.input.get("seen", [])
    for number in range(2):
        seen = seen + [run.wait("event", step=f"event-{number}")["n"]]
    if run.life == 5:
        return {"seen": seen, "life": run.life}
    run.continue_as_new({"seen": seen})


@test
def a_process_continues_with_a_fresh_history_and_loses_no_response():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        process_id = start(pawl, {"first": True})
        named = f"/v1/processes/{process_id}/signals/event?step=event-0"
        assert pawl.http("POST", named, body={"n": 0}, headers={"Idempotency-Key": "event-0"}).headers["pawl-status"] == "STORED"
        for n in range(1, 10):
            assert signal(pawl, process_id, "event", {"n": n}, f"event-{n}") == "STORED"
        assert signal(pawl, process_id, "other", {"kept": 1}, "other") == "STORED"
        worker = module_worker(pawl, "shop", {"py-order": counter})
        secrets = set()
        for life in range(1, 5):
            secrets.add(db.value("select secret from pawl.process"))
            assert worker.turn() == 1
            shown = show(pawl, process_id)
            assert (shown["life"], shown["status"], shown["steps"], shown["step"]) == (life + 1, "PENDING", [], None), shown
            assert shown["state"] == {"seen": list(range(2 * life)), "kept": 1, "n": 9}, shown["state"]
            assert [r["payload"] for r in shown["responses"]] == [{"n": n} for n in range(2 * life, 10)] + [{"kept": 1}], shown["responses"]
            event = [e for e in shown["audit"] if e["event"] == "CONTINUED"][-1]
            assert event["details"] == {"life": life, "step": "event-1", "records": 2, "responses": 13 - 2 * life}, event
        assert len(secrets) == 4
        assert db.value("select response_count from pawl.process") == "3"
        assert worker.turn() == 1
        shown = show(pawl, process_id)
        assert (shown["status"], shown["result"]) == ("COMPLETED", {"seen": list(range(10)), "life": 5}), shown
        # The keys of earlier lives are known.
        assert signal(pawl, process_id, "event", {"n": 1}, "event-1") == "REPEATED"
        assert pawl.http("POST", named, body={"n": 0}, headers={"Idempotency-Key": "event-0"}).headers["pawl-status"] == "REPEATED"
        reused = pawl.http("POST", f"/v1/processes/{process_id}/signals/event", body={"n": 7}, headers={"Idempotency-Key": "event-0"})
        assert reused.status in (409, 422), reused.body
        assert db.value("select count(*) from pawl.kept_response") == "8"


@test
def a_repeated_continue_continues_once():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        process_id = start(pawl)
        item, = claim(pawl)
        assert (item["life"], item["input"]) == (1, {})
        assert report(pawl, item, record={"step": "a"})["verdict"] == "written"
        assert report(pawl, item, end={"outcome": "continue", "state": {"n": 1}})["verdict"] == "written"
        assert report(pawl, item, end={"outcome": "continue", "state": {"n": 1}})["verdict"] == "lost"
        assert report(pawl, item, record={"step": "late"})["verdict"] == "lost"
        again, = claim(pawl)
        assert (again["life"], again["input"], again["state"], again["steps"], again["attempt"]) == (2, {"n": 1}, {"n": 1}, [], 1), again
        assert again["secret"] != item["secret"]
        assert report(pawl, item, end={"outcome": "continue", "state": {"n": 2}})["verdict"] == "lost"
        # The present state, and the state of a version.
        assert report(pawl, again, end={"outcome": "continue", "state": {}}, version=1)["verdict"] == "stale"
        assert report(pawl, again, end={"outcome": "continue"}, version=again["version"])["verdict"] == "written"
        refused = pawl.run("process", "define", "-", "--json", stdin=json.dumps({"type": "py-order", "domain": "shop", "steps": [{"name": "a", "set": {"a": 1}}]}))
        assert refused.code == 1 and json.loads(refused.stderr)["type"] == "/problems/type-is-code", "it has no records, and is still code"
        third, = claim(pawl)
        assert (third["life"], third["input"], third["state"]) == (3, {"n": 1}, {"n": 1}), third
        for parts, words in (({"end": {"outcome": "continue", "state": [1]}}, "end.state must be a JSON object"),
                             ({"end": {"outcome": "continue", "result": 1}}, "end.result belongs to complete"),
                             ({"end": {"outcome": "continue", "error": "x"}}, "end.error belongs to fail and reject"),
                             ({"end": {"outcome": "fail", "state": {}}}, "end.state belongs to continue"),
                             ({"end": {"outcome": "continue"}, "record": {"step": "a"}}, "continues as new alone")):
            assert words in report(pawl, third, status=400, **parts)["detail"], parts
        large = report(pawl, third, end={"outcome": "continue", "state": {"text": "x" * (1 << 20)}})
        assert large["verdict"] == "too_large", large
        assert report(pawl, third, phase="compensating")["verdict"] == "written"
        refused = report(pawl, third, end={"outcome": "continue"})
        assert refused["verdict"] == "refused" and "cannot continue as new" in refused["error"], refused
        assert show(pawl, process_id)["life"] == 3


@test
def a_decision_at_the_same_moment_comes_first():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        # Canceled while it runs.
        process_id = start(pawl)
        item, = claim(pawl)
        assert pawl.run("process", "cancel", process_id).code == 0
        assert report(pawl, item, end={"outcome": "continue", "state": {}})["verdict"] == "ended"
        assert (show(pawl, process_id)["status"], show(pawl, process_id)["life"]) == ("CANCELED", 1)
        # To be compensated: the function learns of it.
        process_id = start(pawl)
        undone = []

        def order(run):
            run.step("pack", lambda key: key)
            if not undone:
                undone.append(0)
                assert pawl.run("process", "cancel", process_id, "--compensate").code == 0
            try:
                run.continue_as_new({"n": 1})
            except process_module.Refused:
                run.compensating()
                run.step("unpack", lambda key: undone.append(1))

        shown = turns(module_worker(pawl, "shop", {"py-order": order}), pawl, process_id, ended)
        assert (shown["status"], shown["life"], [s["name"] for s in shown["steps"]]) == ("COMPENSATED", 1, ["pack", "unpack"]), shown
        # Its deadline has passed.
        for action, verdict, status in (("fail", "ended", "FAILED"), ("troubleshoot", "ended", "WAITING_FOR_TSQ"), ("compensate", "met", "IN_PROGRESS")):
            process_id = start(pawl, deadline="1h", on_deadline=action)
            item, = claim(pawl)
            with Session(db.url) as other:  # nothing else decides about it
                other.do("begin")
                other.do(f"update pawl.process set deadline = pawl.now(), deadline_due = pawl.now() where id = pawl.process_number('{process_id}')")
                other.do("commit")
                answer = report(pawl, item, end={"outcome": "continue", "state": {}})["verdict"]
            assert answer in (verdict, "lost" if verdict == "ended" else "met"), (action, answer)
            assert (show(pawl, process_id)["status"], show(pawl, process_id)["life"]) == (status, 1), show(pawl, process_id)


@test
def a_report_suspends_or_ends_a_process_once_and_refuses_what_is_behind():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        wait = {"wait": {"step": "w", "responses": [{"name": "go", "count": 1}]}}
        first, second = ({"end": {"outcome": "continue", "state": {"n": n}}} for n in (1, 2))
        complete, release, record = {"end": {"outcome": "complete", "result": 1}}, {"release": True}, {"record": {"step": "late"}, "patch": {"late": 1}}
        cases = [(wait, first, "WAITING_FOR_ASYNC"), (first, wait, "PENDING"), (first, second, "PENDING"), (first, complete, "PENDING"), (complete, first, "COMPLETED"),
                 (release, complete, "PENDING"), (release, wait, "PENDING"), (wait, record, "WAITING_FOR_ASYNC"), (wait, release, "WAITING_FOR_ASYNC")]
        for number, (one, other, status) in enumerate(cases):
            kind = f"case-{number}"
            process_id = start(pawl, {}, kind=kind)
            item, = claim(pawl, types=(kind,))
            own = {"process_id": process_id, "lease": item["lease"]}
            beside = start(pawl, {}, kind=kind)
            other_item, = claim(pawl, types=(kind,))
            body = {"items": [{**own, "record": {"step": "a"}}, {**own, **one}, {**own, **other}, {"process_id": beside, "lease": other_item["lease"], **complete}]}
            answers = post(pawl, "/v1/process-domains/shop/report", body)["items"]
            assert [a["verdict"] for a in answers] == ["written", "written", "refused", "written"], (one, other, answers)
            assert "items[1] suspends, ends or releases the process" in answers[2]["error"], answers
            shown = show(pawl, process_id)
            assert (shown["status"], shown["state"]) == (status, {"n": 1} if one is first else {}), (one, other, shown)
            assert [s["name"] for s in shown["steps"]] == ([] if one is first else ["a"]), shown["steps"]
            assert show(pawl, beside)["status"] == "COMPLETED"


@test
def a_life_that_is_given_no_state_keeps_the_present_one():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        process_id = start(pawl, {"mode": "first"})
        assert signal(pawl, process_id, "hint", {"mode": "signal"}, "hint-1") == "STORED"  # no wait takes it
        for life, state in enumerate(({"mode": "life 1"}, {"mode": "life 2", "more": True}), 1):
            item, = claim(pawl)
            assert item["life"] == life
            report(pawl, item, record={"step": "act"}, patch=state)
            assert report(pawl, item, end={"outcome": "continue"})["verdict"] == "written"
            shown = show(pawl, process_id)
            assert (shown["life"], shown["state"]) == (life + 1, state), shown
            assert [r["key"] for r in shown["responses"]] == ["hint-1"], shown["responses"]
        item, = claim(pawl)
        assert (item["input"], item["state"]) == (state, state), item
        # One that is given a state has the response in it, as if it came then.
        report(pawl, item, record={"step": "act"})
        assert report(pawl, item, end={"outcome": "continue", "state": {"mode": "given", "own": 1}})["verdict"] == "written"
        assert show(pawl, process_id)["state"] == {"mode": "signal", "own": 1}
        # So has a definition.
        define(pawl, {"type": "keeper", "domain": "shop", "steps": [
            {"name": "first", "when": "state.round >= 1", "then": "wait", "else": "again"},
            {"name": "again", "continue": {}},
            {"name": "wait", "wait": {"response": "hint"}}]})
        process_id = db.value("""select pawl.start('keeper', '{"round": 0}', p_domain => 'shop', p_delay => '1 hour')""")
        assert signal(pawl, process_id, "round", {"round": 1}, "round-1") == "STORED_UNEXPECTED"
        assert signal(pawl, process_id, "hint", {"round": 0, "mode": "hint"}, "hint-1") == "STORED"
        assert signal(pawl, process_id, "mode", {"mode": "later"}, "mode-1") == "STORED_UNEXPECTED"
        db.rows("update pawl.delayed set due = pawl.now()")
        assert signal(pawl, process_id, "mode", {"go": True}, "mode-2") == "STORED_UNEXPECTED"
        wait_until(lambda: show(pawl, process_id)["life"] >= 2, what="it has continued")
        assert show(pawl, process_id)["state"] == {"round": 0, "mode": "later", "go": True}


@test
def a_process_that_continues_for_ever_begins_a_life_a_second():
    """Lives that do nothing are a second apart, in definitions and in code; those that act or take a response are not."""
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        define(pawl, {"type": "spin", "domain": "shop", "steps": [
            {"name": "open", "wait": {"until": "state.open"}}, {"name": "mark", "set": {"mark": 1}}, {"name": "again", "continue": {}}]})
        spinning = start(pawl, {"open": True}, kind="spin")
        shown = wait_until(lambda: (lambda s: s if s["life"] >= 4 else None)(show(pawl, spinning)), what="it has lived four times")
        lives = [e for e in shown["audit"] if e["event"] == "CONTINUED"]
        times = [datetime.datetime.fromisoformat(e["at"].replace("Z", "+00:00")) for e in lives]
        assert all(late - early >= datetime.timedelta(seconds=0.5) for early, late in zip(times, times[1:])), times
        assert all(0 < e["details"]["delay_ms"] <= 1000 for e in lives), lives
        assert pawl.run("process", "cancel", spinning, "--yes").code == 0
        # In code: nothing at all, or only what does not act.
        for number, record in enumerate((None, {"step": "now", "call": 0, "call_kind": "time"}, {"step": "own", "call": 0, "call_kind": "step"}, {"step": "own"})):
            process_id = start(pawl, {}, kind=f"code-{number}")
            item, = claim(pawl, types=(f"code-{number}",))
            if record:
                report(pawl, item, record=record)
            assert report(pawl, item, end={"outcome": "continue"})["verdict"] == "written"
            shown = show(pawl, process_id)
            assert (shown["status"], shown["continues_at"] is None) == ("PENDING", number >= 2), shown
            again, = claim(pawl, types=(f"code-{number}",))  # and a worker gets it then
            assert again["life"] == 2


@test
def a_deadline_that_the_start_has_given_is_that_of_every_life():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        start(pawl, deadline="1h", on_deadline="fail")
        deadline = lambda: db.value("select concat_ws('|', deadline, deadline_due, deadline_action) from pawl.process")
        before = deadline()
        assert before.count("|") == 2 and before.endswith("|fail"), before
        item, = claim(pawl)
        assert report(pawl, item, end={"outcome": "continue", "state": {}})["verdict"] == "written"
        assert deadline() == before and db.value("select life from pawl.process") == "2"


@test
def what_a_life_has_sent_is_canceled_and_its_reply_reaches_no_step_of_the_next_one():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        process_id = start(pawl)
        item, = claim(pawl)
        send = {"step": "charge", "domain": "bank", "type": "charge", "payload": {}}
        first = report(pawl, item, send=send)["command_id"]
        held, = post(pawl, "/v1/domains/bank/claim", {"limit": 1})["items"]
        db.rows("insert into pawl.progress (id, attempt, percent, at) select p.id, 1, 50, now() from pawl.process p")
        assert report(pawl, item, end={"outcome": "continue", "state": {}})["verdict"] == "written"
        assert db.value("select count(*) from pawl.ready r join pawl.process p on p.id = r.id") == "1", "a life that has sent is not delayed"
        assert db.value("select count(*) from pawl.progress") == "0", "it was of the life that has ended"
        item, = claim(pawl)
        second = report(pawl, item, send=send, wait={"step": "charge", "status": "WAITING_FOR_REPLY", "responses": [
            {"kind": "reply", "name": "charge", "count": 1}]})["command_id"]
        assert first != second
        target = json.loads(db.value(f"select substr(reply_to, 10) from pawl.command where command_id = '{second}'"))
        assert target["life"] == 2, target
        # It is asked to end, and completes before it learns of it: no reply comes to the next life.
        post(pawl, "/v1/domains/bank/settle", {"items": [{"command_id": first, "lease": held["lease"], "outcome": "complete", "result": 1}]})
        assert db.value("select count(*) from pawl.process_response") == "0"
        assert show(pawl, process_id)["status"] == "WAITING_FOR_REPLY"
        held, = post(pawl, "/v1/domains/bank/claim", {"limit": 1})["items"]
        post(pawl, "/v1/domains/bank/settle", {"items": [{"command_id": second, "lease": held["lease"], "outcome": "complete", "result": 2}]})
        item, = claim(pawl)
        assert [r["payload"]["result"] for r in item["responses"]] == [2], item
        # A command that no worker has claimed, and a child, are canceled.
        report(pawl, item, send={**send, "step": "more"})
        child = report(pawl, item, send={**send, "step": "child", "process": True, "domain": "inner"})["command_id"]
        more = db.value("select command_id from pawl.command order by id desc offset 1 limit 1")
        assert report(pawl, item, end={"outcome": "continue", "state": {}})["verdict"] == "written"
        wait_until(lambda: db.value("select count(*) from pawl.process_orphan") == "0", what="they are canceled")
        statuses = db.rows(f"select coalesce(pawl.process_status(id), pawl.command_status(id)) from pawl.command where command_id in ('{child}', '{more}') order by id")
        assert statuses == ["CANCELED", "CANCELED"], statuses
        assert db.value("select count(*) from pawl.process_response where kind = 'reply'") == "0"


@test
def keys_of_responses_are_kept_as_long_as_other_keys():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        process_id = start(pawl)
        worker = module_worker(pawl, "shop", {"py-order": counter})
        for n in range(2):
            signal(pawl, process_id, "event", {"n": n}, f"event-{n}")
        assert worker.turn() == 1
        prune = "select pawl.prune_keys(100, '365 days')"
        db.rows(prune)
        assert db.value("select count(*) from pawl.kept_response") == "2"
        db.rows("update pawl.kept_response set at = at - interval '366 days' where key = 'event-0'")
        assert db.value(prune) == "1"
        assert db.rows("select key from pawl.kept_response") == ["event-1"]
        assert signal(pawl, process_id, "event", {"n": 1}, "event-1") == "REPEATED"
        assert signal(pawl, process_id, "event", {"n": 0}, "event-0") == "STORED"


DEFINITION = {"type": "counter", "domain": "shop", "steps": [
    {"name": "event", "wait": {"response": "event"}},
    {"name": "pay", "wallet": {"kind": "topup", "owner": "ann", "asset": "CREDIT", "amount": 1}},
    {"name": "more", "when": "steps.event.n < 4", "then": "again", "else": "bye"},
    {"name": "again", "continue": {"state": {"seen": "{{state.seen}}-{{steps.event.n}}"}}},
    {"name": "bye", "set": {"bye": True}}]}


def define(pawl, definition):
    done = pawl.run("process", "define", "-", stdin=json.dumps(definition))
    assert done.code == 0, done
    return done


@test
def a_definition_continues_with_its_newest_version():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        assert pawl.run("wallet", "create", "ann").code == 0
        define(pawl, DEFINITION)
        process_id = start(pawl, {"seen": "x"}, kind="counter")
        wait_until(lambda: show(pawl, process_id)["status"] == "WAITING_FOR_ASYNC", what="it waits")
        define(pawl, {**DEFINITION, "deadline": "1h", "on_deadline": "fail", "steps": DEFINITION["steps"][:-1] + [{"name": "bye", "set": {"bye": 2}}]})
        assert (show(pawl, process_id)["version"], show(pawl, process_id)["deadline"]) == (1, None)
        for n in range(5):
            assert signal(pawl, process_id, "event", {"n": n}, f"event-{n}") in ("RESUMED", "STORED")
        shown = wait_until(lambda: (lambda s: s if ended(s) else None)(show(pawl, process_id)), what="it has ended")
        assert (shown["status"], shown["life"], shown["version"], shown["on_deadline"]) == ("COMPLETED", 5, 2, "fail"), shown
        assert shown["state"] == {"seen": "x-0-1-2-3", "n": 4, "bye": 2}, shown["state"]
        assert db.value("select count(distinct txn_id) from wallet.txn where kind = 'topup'") == "5"
        assert [e["details"]["life"] for e in shown["audit"] if e["event"] == "CONTINUED"] == [1, 2, 3, 4], shown["audit"]
        assert db.value("select count(*) from pawl.process_step") == "4" and db.value("select count(*) from pawl.process_response") == "1"
        assert db.value("select count(*) from pawl.kept_response") == "4"


@test
def a_definition_counts_each_signal_once_also_by_a_condition():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        define(pawl, {"type": "sum", "domain": "shop", "steps": [
            {"name": "come", "wait": {"until": "state.amount > 0"}},
            {"name": "again", "continue": {"state": {"amount": 0, "total": "{{state.amount}}"}}}]})
        process_id = start(pawl, {"amount": 0}, kind="sum")
        wait_until(lambda: show(pawl, process_id)["status"] == "WAITING_FOR_ASYNC", what="it waits")
        for n in range(1, 6):
            assert signal(pawl, process_id, "amount", {"amount": n}, f"amount-{n}") == "RESUMED"
            shown = wait_until(lambda: (lambda s: s if s["life"] == n + 1 and s["status"] == "WAITING_FOR_ASYNC" else None)(show(pawl, process_id)), what="it waits")
            assert (shown["state"], shown["responses"]) == ({"amount": 0, "total": n}, []), shown
        assert signal(pawl, process_id, "amount", {"amount": 3}, "amount-3") == "REPEATED"


@test
def a_step_that_continues_is_refused_inside_of_others():
    with Database() as db, Pawl(db) as pawl:
        inside = {"type": "x", "domain": "shop", "steps": [{"name": "all", "each": "{{state.list}}", "steps": [{"name": "again", "continue": {}}]}]}
        behind = {"type": "x", "domain": "shop", "steps": [{"name": "again", "continue": {}}, {"name": "late", "set": {"a": 1}}]}
        wrong = {"type": "x", "domain": "shop", "steps": [{"name": "again", "continue": {"state": [1]}}]}
        named = {"type": "x", "domain": "shop", "steps": [{"name": "w", "when": "state.a", "then": "end"}, {"name": "again", "continue": {"life": 1}}]}
        for definition, words in ((inside, 'it must be in the process\'s own list of steps, not inside step "all"'), (behind, "cannot be reached"),
                                  (wrong, "state"), (named, "life")):
            refused = pawl.run("process", "define", "-", "--check", stdin=json.dumps(definition))
            assert refused.code != 0 and words in refused.stderr, (refused, words)
        drawn = pawl.run("process", "define", "-", "--diagram", stdin=json.dumps(DEFINITION))
        assert drawn.code == 0 and "s3 -.-> start" in drawn.stdout and "continue as new" in drawn.stdout, drawn


SUM = {"type": "sum", "domain": "shop", "steps": [
    {"name": "event", "wait": {"response": "event"}},
    {"name": "pay", "wallet": {"kind": "topup", "owner": "ann", "asset": "CREDIT", "amount": "{{steps.event.n}}"}},
    {"name": "more", "when": "steps.event.n < state.most", "then": "again", "else": "end"},
    {"name": "again", "continue": {"state": {"most": "{{state.most}}", "seen": "{{state.seen}}-{{steps.event.n}}"}}}]}


@test
def a_pod_that_is_killed_around_a_continue_counts_each_signal_once():
    with Database() as db, Pawl(db, env={"PAWL_PROCESS_LEASE": "1s", "PAWL_LISTEN": "127.0.0.1:0"}) as pawl:
        assert pawl.run("wallet", "create", "ann").code == 0
        define(pawl, SUM)
        most, deaths = 24, 0
        process_id = db.value(f"""select pawl.start('sum', '{{"most": {most}, "seen": "x"}}', p_domain => 'shop')""")
        points = [f"process.continue.{when}:{what}:1:{passes}" for when in ("before", "after") for what in ("kill", "fail") for passes in (0, 1, 3)]
        for number, fault in enumerate(points):
            pod = pawl.start("serve", "--role", "worker", env={"PAWL_FAULT": fault})
            for n in (2 * number + 1, 2 * number + 2):  # one of them may find it between two lives, or running
                assert db.value(f"""select pawl.signal('{process_id}', 'event', '{{"n": {n}}}', 'event-{n}')""") in ("STORED", "RESUMED")

            def settled():
                left = db.value("select count(*) from pawl.process_response") == "0" and db.value("select count(*) from pawl.delayed") == "1"
                return not pod.is_running() or left or db.value("select pawl.process_status(id) from pawl.process") == "COMPLETED"

            wait_until(settled, what=f"both were taken, or the pod is killed: {fault}")
            deaths += not pod.is_running()
            if pod.is_running():
                pod.stop()
        pod = pawl.start("serve", "--role", "worker")
        wait_until(lambda: db.value("select pawl.process_status(id) from pawl.process") == "COMPLETED", what="it has ended")
        pod.stop()
        assert deaths >= 4, deaths
        assert db.value("select state ->> 'seen' from pawl.process") == "x" + "".join(f"-{n}" for n in range(1, most))
        assert db.rows("select life, (select count(*) from pawl.kept_response), (select count(*) from pawl.process_response) from pawl.process") == [f"{most}|{most - 1}|1"]
        assert db.value("select balance from wallet.balance_at('ann', now())") == str(most * (most + 1) // 2)
        assert db.value("select count(*) from pawl.lease") == "0"


@test
def signals_that_come_while_a_process_continues_are_counted_once_in_their_order():
    most = 150

    def one(run):
        seen = run.input.get("seen", 0)
        n = run.wait("event")["n"]
        assert n == seen + 1, (n, seen)
        if n == most:
            return n
        run.continue_as_new({"seen": n})

    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        process_id = start(pawl)

        def send():
            for n in range(1, most + 1):
                for expected in (("RESUMED", "STORED"), ("REPEATED",)):
                    assert signal(pawl, process_id, "event", {"n": n}, f"event-{n}") in expected, n

        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            sent = pool.submit(send)
            shown = turns(module_worker(pawl, "shop", {"py-order": one}), pawl, process_id, ended)
            sent.result()
        assert (shown["status"], shown["result"], shown["life"]) == ("COMPLETED", most, most), shown
        assert db.value("select count(*) from pawl.kept_response") == str(most - 1)


ROUNDS = {"type": "rounds", "domain": "shop", "steps": [
    {"name": "decision", "wait": {"any": ["approved", "rejected"]}},
    {"name": "confirmed", "wait": {"response": "approved"}},
    {"name": "again", "continue": {"state": {"log": "{{state.log}} {{steps.decision.response}}-{{steps.decision.payload.n}}-{{steps.confirmed.n}}"}}}]}


def rounds(run):
    name, payload = run.wait_any(["approved", "rejected"], step="decision")
    confirmed = run.wait("approved", step="confirmed")
    run.continue_as_new({"log": f"{run.input['log']} {name}-{payload['n']}-{confirmed['n']}"})


@test
def races_and_named_responses_go_on_in_the_next_life():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()

        def send(process_id, name, n, step=None, key=None):
            named = f", p_step => '{step}'" if step else ""
            return db.value(f"""select pawl.signal('{process_id}', '{name}', '{{"n": {n}}}', '{key or f"k{n}"}'{named})""")

        def reaches(worker, process_id, life, step):
            def is_there():
                if worker and show(pawl, process_id)["status"] == "PENDING":
                    assert worker.turn() == 1
                shown = show(pawl, process_id)
                return shown if (shown["life"], shown["status"], shown["step"]) == (life, "WAITING_FOR_ASYNC", step) else None
            return wait_until(is_there, what=f"it waits in {step} of life {life}")

        define(pawl, ROUNDS)
        for kind, worker in (("rounds", None), ("code", module_worker(pawl, "shop", {"code": rounds}))):
            process_id = db.value(f"""select pawl.start('{kind}', '{{"log": ""}}', p_domain => 'shop', p_delay => '1 hour')""")
            for name, n, step in (("rejected", 1, None), ("approved", 2, "confirmed"), ("approved", 3, "decision"), ("rejected", 4, None),
                                  ("approved", 5, None), ("approved", 6, "confirmed")):
                assert send(process_id, name, n, step) == "STORED", n
            db.rows("select pawl.requeue_delayed(array(select id from pawl.delayed where due > now() + interval '1 min' and due < now() + interval '2 hours'))")
            shown = reaches(worker, process_id, 4, "decision")
            # Each is taken once, by the first wait in the order of arrival that may take it, over all lives.
            assert shown["state"]["log"] == " rejected-1-2 approved-3-5 rejected-4-6", (kind, shown["state"])
            assert shown["responses"] == [], shown["responses"]
            assert send(process_id, "rejected", 7) == "RESUMED"
            reaches(worker, process_id, 4, "confirmed")
            # One that came too late for its wait is none for that of the next life; one that came in time for a wait of the next life is.
            assert send(process_id, "rejected", 8, "decision") == "LATE"
            assert send(process_id, "rejected", 9) == "STORED"
            assert send(process_id, "approved", 10, "confirmed") == "RESUMED"
            reaches(worker, process_id, 5, "confirmed")
            assert send(process_id, "approved", 11, "confirmed") == "RESUMED"
            shown = reaches(worker, process_id, 6, "decision")
            assert (shown["state"]["log"][-25:], shown["responses"]) == (" rejected-7-10 rejected-9-11"[-25:], []), (kind, shown)
            # All keys are known, with the step that they named.
            assert [send(process_id, "approved", 2, "confirmed"), send(process_id, "rejected", 8, "decision"), send(process_id, "rejected", 9)] == ["REPEATED"] * 3
            answer = pawl.http("POST", f"/v1/processes/{process_id}/signals/approved", body={"n": 2}, headers={"Idempotency-Key": "k2"})
            assert "with another payload or step" in answer.body.decode(), answer.body
            assert db.value(f"select count(*) from pawl.kept_response k join pawl.command c on c.id = k.id where c.command_id = '{process_id}'") == "11"


CUTS = [f"cut-commit {moment} 1" for moment in ("before", "sent", "answered")]


@test
def a_continue_whose_commit_was_lost_is_not_done_again():
    with Database() as db, Proxy(db) as proxy, Pawl(proxy.url) as pawl:
        pawl.serve("--role", "api")
        process_id = start(pawl)
        for n in range(20):
            assert signal(pawl, process_id, "event", {"n": n}, f"event-{n}") == "STORED"
        for life in range(1, 9):
            item, = claim(pawl)
            assert item["life"] == life
            for number in range(2):
                wait = {"step": f"event-{number}", "response": "event", "taken": [number]}
                assert report(pawl, item, record=wait)["verdict"] == "written"
            proxy.do(CUTS[life % len(CUTS)])
            body = {"items": [{"process_id": process_id, "lease": item["lease"], "end": {"outcome": "continue", "state": {"life": life}}}]}
            for _ in range(20):  # as a worker does whose answer was lost
                answer = pawl.http("POST", "/v1/process-domains/shop/report", body=body)
                if answer.status == 200 and answer.json["items"][0]["verdict"] != "busy":
                    break
            assert answer.json["items"][0]["verdict"] in ("written", "lost"), answer.body
            shown = show(pawl, process_id)
            assert (shown["life"], shown["state"]["life"], len(shown["responses"])) == (life + 1, life, 20 - 2 * life), shown


PROGRAM = """
import sys
from process import Worker
sys.path.insert(0, sys.argv[2])
from process_continue_test import counter
Worker("shop", {"py-order": counter}, lease=1.0, wait=5.0).run()
"""


@test
def a_worker_in_python_that_is_killed_around_a_continue_counts_each_signal_once():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        environment = {**os.environ, "PAWL_URL": f"http://{pawl.server.host}:{pawl.server.port}", "PAWL_TOKEN": pawl.TOKEN,
                       "PYTHONPATH": os.pathsep.join([os.path.dirname(process_module.__file__), os.environ["PYTHONPATH"]])}
        process_id, killed = start(pawl), 0
        for n in range(10):
            assert signal(pawl, process_id, "event", {"n": n}, f"event-{n}") in ("STORED", "RESUMED")
        for crash_at in ("before the end 1", "after the end 1", "before the end 2", "after the end 2", None):
            worker = Process([sys.executable, "-c", PROGRAM, "worker", os.path.dirname(os.path.abspath(__file__))],
                             env={**environment, **({"CRASH_AT": crash_at} if crash_at else {})})
            pawl.processes.append(worker)
            wait_until(lambda: not worker.is_running() or ended(show(pawl, process_id)), what="it is killed, or has ended")
            killed += not worker.is_running()
            if ended(show(pawl, process_id)):
                break
        shown = show(pawl, process_id)
        assert (shown["status"], shown["result"], killed >= 3) == ("COMPLETED", {"seen": list(range(10)), "life": 5}, True), (shown, killed)
        if worker.is_running():
            worker.kill()


if __name__ == "__main__":
    main()
