#!/usr/bin/env python3
"""process_attempt - a final failure is not tried again, and what is no fault of a step costs it no attempt. The pods run with default settings."""
import http.server
import json
import os
import tempfile
import threading
import time
from datetime import datetime

from pawl_test import Database, Pawl, main, test, wait_until
from process_cli import cli, define, lines, run, show, start, steps, wait_status
from servers import Session


# --- failures that are final ---

@test
def a_permanent_failure_is_not_tried_again_after_a_crash():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pod = pawl.serve()
        seen = os.path.join(folder, "seen")
        both = {"name": "both", "parallel": {"a": [{"name": "x", "exec": f"echo x >> {seen}; exit 65"}],
                                             "b": [{"name": "y", "exec": f"echo y >> {seen}; sleep 60"}]}}
        define(pawl, {"domain": "edge", "type": "final", "on_failure": "troubleshoot", "steps": [both]})
        process = start(pawl, "final")
        wait_until(lambda: steps(pawl, process, "x") and "y" in lines(seen), what="x has failed and y runs")
        pod.kill()
        db.rows("update pawl.lease set until = now()")
        pawl.serve()
        ended = wait_status(pawl, process, "FAILED", "WAITING_FOR_TSQ")
        assert ended["status"] == "FAILED", ended  # a refusal: nothing to look into
        assert lines(seen).count("x") == 1 and len(steps(pawl, process, "x")) == 1, lines(seen)


@test
def no_step_begins_after_a_branch_or_an_item_has_failed():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        assert pawl.run("wallet", "create", "ann").code == 0 and pawl.run("wallet", "topup", "ann", "100").code == 0
        spend = {"name": "pay", "wallet": {"kind": "spend", "owner": "ann", "amount": 100}}
        for kind in ("parallel", "each"):
            go = os.path.join(folder, kind)
            wait = f"until test -e {go}; do sleep 0.05; done"
            both = {"parallel": {"x": [{"name": "hold", "exec": wait}, spend], "y": [{"name": "broken", "exec": "exit 70"}]},
                    "each": "{{state.items}}", "concurrency": 2,
                    "steps": [{"name": "hold", "input": "{{item}}", "exec": f"test $(cat) = 1 || exit 70; {wait}"}, spend]}
            both = {key: value for key, value in both.items() if (key == "parallel") == (kind == "parallel")}
            define(pawl, {"domain": "edge", "type": kind, "on_failure": "compensate", "steps": [{"name": "both", **both}]})
            process = start(pawl, kind, {"items": [1, 2]})
            wait_until(lambda: steps(pawl, process, "broken" if kind == "parallel" else "hold[1]"), what="a step has failed")
            with open(go, "w", encoding="utf-8"):
                pass
            ended = wait_status(pawl, process, "COMPENSATED", "WAITING_FOR_TSQ", "COMPLETED")
            names = {step["name"].split("[")[0] for step in ended["steps"]}
            assert ended["status"] == "COMPENSATED" and "hold" in names and "pay" not in names, ended
        assert json.loads(pawl.run("wallet", "balance", "ann", "--json").stdout)["balance"] == 100


@test
def a_fail_step_ends_the_process_with_its_reason_and_has_it_compensated():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        seen = os.path.join(folder, "seen")
        steps = [{"name": "pay", "exec": f"echo paid >> {seen}; echo 1"},
                 {"name": "check", "when": "state.ok", "then": "ship", "else": "no"},
                 {"name": "no", "fail": "not approved: {{state.why}}"},
                 {"name": "ship", "set": {"shipped": True}}]
        define(pawl, {"type": "plain", "domain": "edge", "steps": steps})
        ended = wait_status(pawl, start(pawl, "plain", {"why": "too dear"}), "FAILED", "WAITING_FOR_TSQ", "COMPLETED")
        assert ended["status"] == "FAILED" and ended["error"] == "step no: not approved: too dear" and ended["step"] == "no", ended
        assert wait_status(pawl, start(pawl, "plain", {"ok": True}), "FAILED", "COMPLETED")["status"] == "COMPLETED"
        steps[0]["compensate"] = {"exec": f"echo refunded >> {seen}"}
        define(pawl, {"type": "undone", "domain": "edge", "steps": steps})
        process = start(pawl, "undone", {"why": "late"})
        ended = wait_status(pawl, process, "COMPENSATED", "FAILED", "WAITING_FOR_TSQ")
        assert ended["status"] == "COMPENSATED" and ended["error"] == "step no: not approved: late", ended
        assert lines(seen)[-2:] == ["paid", "refunded"]
        # The timeline says when the compensation began, and how the process ended.
        events = [event["event"] for event in ended["audit"]]
        assert events[-1] == "COMPENSATED" and events.index("COMPENSATING") < events.index("COMPENSATION"), events
        printed = pawl.run("process", "show", process).stdout
        assert "COMPENSATING" in printed and "COMPENSATED" in printed.splitlines()[-1], printed
        # Nothing comes behind it.
        done = pawl.run("process", "define", "-", stdin=json.dumps({"type": "x", "domain": "edge", "steps": [{"name": "no", "fail": "x"}, {"name": "b", "set": {"b": 1}}]}))
        assert done.code != 0 and "cannot be reached" in done.stderr, done


# --- attempts that cost nothing ---

@test
def a_lock_on_a_wallet_is_no_refusal():
    with Database() as db, Pawl(db) as pawl, Session(db.url) as other:
        pawl.serve()
        for arguments in (["create", "ann"], ["topup", "ann", "100"]):
            assert pawl.run("wallet", *arguments).code == 0
        other.do("begin")
        other.do("lock table wallet.state in access exclusive mode")
        hold = {"name": "h", "wallet": {"kind": "hold", "owner": "ann", "amount": 5}, "timeout": "1s",
                "retry": {"attempts": 100, "delay": "1s", "factor": 1}}
        process, waits = run(pawl, {"type": "locked", "on_failure": "compensate", "steps": [hold]}, "WAITING_FOR_RETRY", "FAILED",
                             "COMPENSATED")
        assert waits["status"] == "WAITING_FOR_RETRY", waits
        other.do("commit")
        wait_status(pawl, process, "COMPLETED")
        refused = {**hold, "wallet": {"kind": "hold", "owner": "ann", "amount": 5000}}
        _, ended = run(pawl, {"type": "refused", "on_failure": "troubleshoot", "steps": [refused]}, "FAILED", "WAITING_FOR_TSQ")
        assert ended["status"] == "FAILED" and len(ended["steps"]) == 1, ended


@test
def a_lock_on_the_process_costs_a_function_or_a_post_no_attempt():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        assert pawl.run("wallet", "create", "ann").code == 0 and pawl.run("wallet", "topup", "ann", "100").code == 0
        db.rows("""create schema demo; create sequence demo.calls; create table demo.stop (n integer); insert into demo.stop values (1);
                   create function demo.save (input jsonb, key uuid) returns jsonb language plpgsql as $$
                   begin while exists (select from demo.stop) loop perform pg_sleep(0.05); end loop;
                   perform nextval('demo.calls'); return '{"v": 1}'; end $$""")
        both = {"name": "both", "parallel": {
            "a": [{"name": "f", "sql": "demo.save", "retry": {"attempts": 1}, "save": {"f": "{{result.v}}"}}],
            "b": [{"name": "nap", "sql": "demo.save", "retry": {"attempts": 1}},
                  {"name": "w", "wallet": {"kind": "spend", "owner": "ann", "amount": 30}, "retry": {"attempts": 1}, "save": {"w": "{{result.amount}}"}}]}}
        define(pawl, {"domain": "edge", "type": "saves", "on_failure": "troubleshoot", "steps": [both]})
        process = start(pawl, "saves")
        wait_until(lambda: db.value("select count(*) from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'") == "2",
                   what="the functions run")
        with Session(db.url) as other:
            other.do("begin")
            other.do(f"select pawl.signal('{process}', 'x')")
            db.rows("delete from demo.stop")
            # Tried again and again, and rolled back each time.
            wait_until(lambda: int(db.value("select last_value from demo.calls")) >= 12, what="the function is tried again")
            assert [(s["name"], s["error"]) for s in show(pawl, process)["steps"]] == [("nap", None)]
            other.do("commit")
        ended = wait_status(pawl, process, "COMPLETED", "WAITING_FOR_TSQ", "FAILED")
        assert ended["status"] == "COMPLETED" and (ended["state"]["f"], ended["state"]["w"]) == (1, 30), ended
        assert all(step["error"] is None for step in ended["steps"]), ended
        assert pawl.run("wallet", "balance", "ann", "--json").json["balance"] == 70


@test
def a_step_that_has_ended_is_recorded_when_a_lock_is_released_and_not_run_again():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        seen = os.path.join(folder, "seen")
        define(pawl, {"type": "once", "domain": "edge", "steps": [
            {"name": "first", "exec": f"echo first >> {seen}; while ! test -e {folder}/go; do sleep 0.1; done", "retry": {"attempts": 1}}, {"name": "second", "set": {"a": 1}}]})
        pawl.serve()
        one = start(pawl, "once")
        wait_until(lambda: lines(seen), what="it runs")
        with Session(db.url) as other:
            other.do("begin")
            other.do("lock table pawl.process_step in share mode")
            open(f"{folder}/go", "w").close()
            waiting = ("select coalesce(max(query_start)::text, '') from pg_stat_activity"
                       " where wait_event_type = 'Lock' and query like '%process_write%' and pid <> pg_backend_pid()")
            first = wait_until(lambda: db.value(waiting), what="its record waits")
            wait_until(lambda: db.value(waiting) not in ("", first), what="it is tried again")
            other.do("rollback")
        assert wait_status(pawl, one, "COMPLETED")["status"] == "COMPLETED" and lines(seen) == ["first"], lines(seen)


@test
def a_program_that_cannot_be_started_is_postponed():
    """As when no process can be forked: it costs no attempt, and is not claimed again at once."""
    with Database() as db, Pawl(db, env={"PAWL_FAULT": "bus.exec.spawn:fail:3"}) as pawl:
        pawl.serve()
        process, shown = run(pawl, {"type": "busy", "on_failure": "fail", "steps": [{"name": "a", "exec": "echo 1", "retry": {"attempts": 1}}]}, "COMPLETED", "FAILED")
        assert shown["status"] == "COMPLETED", shown
        events = [(e["event"], (e["details"] or {}).get("delay_ms")) for e in shown["audit"]]
        # The audit has it once a minute. The next tries come a second later, then two, then four.
        assert events.count(("RETRY_SCHEDULED", 1000)) == 1, events
        at = {e["event"]: datetime.fromisoformat(e["at"].replace("Z", "+00:00")) for e in shown["audit"]}
        assert (at["COMPLETED"] - at["RETRY_SCHEDULED"]).total_seconds() >= 1 + 2 + 4, shown["audit"]


@test
def a_function_that_cannot_be_called_fails_its_step_at_once():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        owner = f"owner_of_{db.name}"
        db.rows(f"create role {owner}; create schema demo authorization {owner}; set role {owner}; "
                "create function demo.mine (input jsonb, key uuid) returns jsonb language sql as 'select input'")
        try:
            for name, words in (("demo.mine", "its owner must alter it to be security definer"), ("demo.nowhere", "function demo.nowhere(")):
                process, shown = run(pawl, {"type": "no-" + name.split(".")[1], "domain": "edge", "on_failure": "troubleshoot",
                                            "steps": [{"name": "x", "sql": name, "retry": {"attempts": 3, "delay": "1h"}}]}, "WAITING_FOR_TSQ")
                assert words in shown["error"] and "SQLSTATE" not in shown["error"], shown["error"]
                assert [s["attempt"] for s in steps(pawl, process, "x")] == [1]
        finally:
            db.rows(f"drop owned by {owner} cascade; drop role {owner}")


@test
def a_function_that_ends_its_connection_runs_once_per_activation():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        db.rows("""create sequence public.calls;
                   create function public.die (input jsonb, key uuid) returns jsonb language plpgsql as $$
                   begin perform nextval('public.calls'), pg_terminate_backend(pg_backend_pid()); perform pg_sleep(10); return '1'; end $$""")
        process, shown = run(pawl, {"type": "die", "domain": "edge", "on_failure": "troubleshoot", "steps": [
            {"name": "x", "sql": "public.die", "retry": {"attempts": 1}}]}, "WAITING_FOR_TSQ")
        assert shown["error"].startswith("step x: the connection to the database was lost while its function ran"), shown["error"]
        assert db.value("select last_value from public.calls") == "10"


# --- commands and requests that are tried again ---

@test
def a_command_that_is_late_is_not_sent_twice_and_its_outcome_counts():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        bill = {"name": "bill", "command": {"domain": "late", "type": "charge", "payload": {"n": 1}}, "timeout": "1s",
                "retry": {"attempts": 3, "delay": "1s"}}
        process, _ = run(pawl, {"type": "cmdt", "on_failure": "troubleshoot", "steps": [bill]}, "WAITING_FOR_TSQ")
        assert db.value("select count(*) from pawl.command c join pawl.domain_name n on n.id = c.domain_id where n.name = 'late'") == "1"
        assert len([s for s in show(pawl, process)["steps"] if s["name"] == "bill"]) == 3
        done = pawl.run("work", "late", "--exec", "echo '{\"paid\": 1}'", "--drain")
        assert done.code == 0, done
        cli(pawl, "retry", process)
        ended = wait_status(pawl, process, "COMPLETED", "WAITING_FOR_TSQ")
        assert ended["status"] == "COMPLETED", ended
        assert db.value("select count(*) from pawl.command c join pawl.domain_name n on n.id = c.domain_id where n.name = 'late'") == "1"


@test
def a_retry_sends_a_command_that_was_canceled_again():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        bill = {"name": "bill", "command": {"domain": "again", "type": "charge", "payload": {}}}
        sent = "select c.command_id from pawl.command c join pawl.domain_name n on n.id = c.domain_id where n.name = 'again' order by c.id"
        process, _ = run(pawl, {"type": "cmd", "on_failure": "troubleshoot", "steps": [bill]}, "WAITING_FOR_REPLY")
        for retry in (("retry",), ("retry", "--from", "bill")):
            assert pawl.run("command", "cancel", db.rows(sent)[-1]).code == 0
            wait_status(pawl, process, "WAITING_FOR_TSQ")
            cli(pawl, retry[0], process, *retry[1:])
            wait_status(pawl, process, "WAITING_FOR_REPLY")
        assert len(db.rows(sent)) == 3, db.rows(sent)
        assert pawl.run("work", "again", "--exec", "echo '{}'", "--drain").code == 0
        wait_status(pawl, process, "COMPLETED")


class Busy(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.seen.append(time.time())
        self.send_response(429)
        self.send_header("Retry-After", "3600")
        self.end_headers()

    def log_message(self, *_):
        pass


@test
def a_retry_after_is_kept_with_the_attempt():
    with Database() as db, http.server.HTTPServer(("127.0.0.1", 0), Busy) as server, \
            Pawl(db, env={"PAWL_STEP_HOSTS": f"127.0.0.1:{server.server_port}"}) as pawl:
        server.seen = []
        threading.Thread(target=server.serve_forever, daemon=True).start()
        pawl.serve()
        define(pawl, {"type": "call", "domain": "edge", "steps": [{"name": "call", "http": {"method": "GET", "url": f"http://127.0.0.1:{server.server_port}/"}}]})
        process = start(pawl, "call")
        waiting = wait_status(pawl, process, "WAITING_FOR_RETRY", "WAITING_FOR_TSQ")
        assert waiting["status"] == "WAITING_FOR_RETRY" and "Retry-After 3600 s" in waiting["steps"][0]["error"], waiting
        # A response resumes it, and the attempt is not made sooner for that.
        define(pawl, {"type": "both", "domain": "edge", "steps": [{"name": "both", "parallel": {
            "a": [{"name": "call2", "http": {"method": "GET", "url": f"http://127.0.0.1:{server.server_port}/"}}],
            "b": [{"name": "w", "wait": {"response": "go"}}, {"name": "w2", "wait": {"response": "stop"}}]}}]})
        process = start(pawl, "both")
        wait_until(lambda: len(server.seen) == 2 and show(pawl, process)["status"] == "WAITING_FOR_ASYNC", what="it waits")
        assert cli(pawl, "signal", process, "go")["verdict"] == "RESUMED"
        wait_until(lambda: [s["name"] for s in show(pawl, process)["steps"]].count("w") == 1, what="it went on")
        wait_status(pawl, process, "WAITING_FOR_ASYNC")
        due = db.value(f"select extract(epoch from due - clock_timestamp()) > 3000 from pawl.delayed where id = pawl.process_number('{process}')")
        assert due == "t" and len(server.seen) == 2, (due, server.seen)
        server.shutdown()


main()
