#!/usr/bin/env python3
"""process_shown - what people see of processes: waits in the audit, the step that a process is in, one line per decision, and the width of a terminal. The
pods run with default settings.
"""
import json
import os
import re
import uuid

from pawl_test import Database, Pawl, main, setting, test, wait_until
from process_cli import cli, define, run, show, start, wait_status
from servers import Session, on_terminal


def events(shown, *names):
    return [(event["event"], event["details"].get("step")) for event in shown["audit"] if event["event"] in names]


def timeline(pawl, process):
    return pawl.run("process", "show", process).stdout.split("\n\n")[1].splitlines()


# --- waits ---

@test
def a_wait_for_a_child_or_command_is_an_event_and_names_the_step_of_a_canceled_process():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        define(pawl, {"type": "child", "domain": "edge", "steps": [{"name": "w", "wait": {"response": "go"}}]})
        process, _ = run(pawl, {"type": "parent", "steps": [
            {"name": "a", "exec": "echo 1"}, {"name": "mail", "command": {"domain": "mailer", "type": "welcome"}},
            {"name": "kid", "process": {"type": "child", "domain": "edge"}}]}, "WAITING_FOR_REPLY")
        assert events(show(pawl, process), "WAITING") == [("WAITING", "mail")]
        assert pawl.run("work", "mailer", "--exec", "true", "--drain").code == 0
        wait_until(lambda: [sent["step"] for sent in show(pawl, process)["sent"]] == ["kid"], what="the child is started")
        wait_status(pawl, process, "WAITING_FOR_REPLY")
        assert events(show(pawl, process), "WAITING", "RESUMED") == [("WAITING", "mail"), ("RESUMED", "mail"), ("WAITING", "kid")]
        assert any("WAITING           {\"step\": \"kid\"}" in line for line in timeline(pawl, process)), timeline(pawl, process)
        cli(pawl, "cancel", process)
        shown = wait_status(pawl, process, "CANCELED")
        assert shown["step"] == "kid", shown
        assert [row["process_id"] for row in cli(pawl, "list", "--step", "kid")] == [process]
        assert cli(pawl, "list", "--step", "mail") == []


@test
def a_wait_that_a_worker_reports_over_http_is_an_event():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        process = start(pawl, "code")
        claimed, = wait_until(lambda: pawl.http("POST", "/v1/process-domains/edge/claim", {"types": ["code"], "limit": 1}).json["items"], what="it is claimed")
        report = {"process_id": process, "lease": claimed["lease"], "record": {"step": "a", "result": 1},
                  "wait": {"step": "w", "responses": [{"name": "go", "count": 1}]}}
        verdict, = pawl.http("POST", "/v1/process-domains/edge/report", {"items": [report]}).json["items"]
        assert verdict["verdict"] == "written", verdict
        assert events(show(pawl, process), "WAITING", "RESUMED") == [("WAITING", "w")]
        cli(pawl, "signal", process, "go")
        assert events(show(pawl, process), "WAITING", "RESUMED") == [("WAITING", "w"), ("RESUMED", "w")]
        cli(pawl, "cancel", process)
        assert wait_status(pawl, process, "CANCELED")["step"] == "w"


@test
def the_reply_of_a_child_says_whether_it_was_compensated():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        define(pawl, {"type": "undone", "domain": "edge", "steps": [
            {"name": "a", "exec": "echo 1", "compensate": {"exec": "echo 2"}}, {"name": "b", "exec": "exit 65"}]})
        define(pawl, {"type": "failed", "domain": "edge", "on_failure": "fail", "steps": [{"name": "b", "exec": "exit 70"}]})
        for child, status in (("undone", "COMPENSATED"), ("failed", "FAILED")):
            # A refusal in both cases: it needs no operator.
            _, shown = run(pawl, {"type": f"parent-{child}", "on_failure": "troubleshoot", "steps": [
                {"name": "kid", "process": {"type": child, "domain": "edge"}}]}, "FAILED", "WAITING_FOR_TSQ")
            reply, = [response["payload"] for response in shown["responses"]]
            assert shown["status"] == "FAILED" and reply["status"] == status, shown
            assert shown["error"].startswith(f"step kid: {status}: step b: "), shown


# --- decisions and messages ---

@test
def a_retry_from_a_step_is_one_line_that_can_be_read():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        process, _ = run(pawl, {"type": "again", "on_failure": "troubleshoot", "steps": [
            {"name": "a", "exec": "echo 1"}, {"name": "b", "exec": "echo 2"}, {"name": "c", "exec": "exit 70"}]}, "WAITING_FOR_TSQ")
        cli(pawl, "retry", process, "--from", "b", "--operator", "ann", "--reason", "new address")
        shown = wait_status(pawl, process, "WAITING_FOR_TSQ")
        decisions = [event["details"] for event in shown["audit"] if event["event"] == "OPERATOR_RETRY"]
        assert [sorted(details) for details in decisions] == [["deleted", "from", "key"], ["login", "reason"]], decisions
        lines = [line[28:] for line in timeline(pawl, process)]
        count = len(decisions[0]["deleted"])
        assert [line for line in lines if line.startswith("OPERATOR_RETRY")] == [
            f'OPERATOR_RETRY    by ann  from b: {count} records set aside (b, c)  {{"login": "postgres", "reason": "new address"}}'], lines
        # The record that is kept has the time of its last attempt, not its number.
        assert any(line.startswith("step              b:gone1 ") and "attempt" not in line for line in lines), lines
        refused = cli(pawl, "retry", process, "--from", "z", code=1)["detail"]
        assert refused.endswith('has not recorded step "z"; a retry without a step continues at the one that failed'), refused


@test
def a_start_with_the_id_of_another_process_is_refused_in_the_words_of_processes():
    with Database() as db, Pawl(db) as pawl:
        process = start(pawl, "order", {"n": 1})
        refused = cli(pawl, "start", "order", '{"n": 2}', "--domain", "edge", "--id", process, code=1)["detail"]
        assert refused == f"process {process} exists already: state differs from what was sent first", refused
        refused = cli(pawl, "start", "other", '{"n": 1}', "--domain", "edge", "--id", process, code=1)["detail"]
        assert refused == f'process {process} exists already: type is "other", it was sent as "order"', refused


# --- the terminal ---

@test
def on_a_terminal_lists_are_cut_to_its_width_and_details_are_wrapped():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        error = "the mailbox of the customer is full, " * 5
        process, _ = run(pawl, {"type": "mail", "on_failure": "troubleshoot", "steps": [{"name": "a", "exec": f"echo '{error}' >&2; exit 70"}]},
                         "WAITING_FOR_TSQ", state={"words": ["häuser"] * 30})
        piped = pawl.run("process", "list").stdout.splitlines()
        assert max(map(len, piped)) > 200, piped
        for columns in (40, 80, 120):
            rows = on_terminal(pawl, "process", "list", columns=columns).splitlines()
            assert len(rows) == 3 and len(piped) == 2 and max(map(len, rows)) <= columns, rows
            # A column that does not fit is left out, not cut.
            assert "…" not in rows[0] + rows[1] and piped[1].startswith(rows[1] + "  ") and piped[0].startswith(rows[0] + " "), rows
            # The error does not fit into the row: it stands below.
            assert rows[2].startswith("    step a: the mailbox") and rows[2].endswith("…") and len(rows[2]) == columns, rows
        assert on_terminal(pawl, "process", "list", columns=400).splitlines() == piped
        piped = pawl.run("process", "show", process).stdout.splitlines()
        shown = on_terminal(pawl, "process", "show", process, columns=80).splitlines()
        assert max(map(len, shown)) <= 80, shown
        state = next(i for i, line in enumerate(shown) if line.startswith("state "))
        assert shown[state + 1].startswith(" " * 13 + '"') and "häuser" in shown[state + 1], shown
        failed = next(i for i, line in enumerate(shown) if "step failed" in line)
        assert shown[failed + 1].startswith(" " * 28) and shown[failed + 1][28] != " ", shown
        # Nothing is lost by it.
        assert "".join(" ".join(shown).split()) == "".join(" ".join(piped).split())
        assert not [line for line in piped if line.endswith(" ")], piped
        assert on_terminal(pawl, "process", "show", process, "--json", columns=80).splitlines() == pawl.run("process", "show", process, "--json").stdout.splitlines()


@test
def on_a_terminal_a_word_that_fits_into_the_next_line_is_not_broken():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        ids = [str(uuid.uuid4()) for _ in range(8)]
        process, _ = run(pawl, {"type": "ids", "steps": [{"name": "a", "exec": "true"}]}, "COMPLETED", state={"ids": ids, "long": "x" * 300})
        for columns in range(53, 100, 3):
            shown = on_terminal(pawl, "process", "show", process, columns=columns).splitlines()
            assert max(map(len, shown)) <= columns, shown
            assert all(any(one in line for line in shown) for one in ids), shown


@test
def on_a_terminal_help_is_wrapped_to_its_width():
    with Pawl() as pawl:
        for topic in ([], ["settings"], ["definitions"], ["serve"], ["work"], ["process"], ["wallet"], ["dlq"]):
            piped = pawl.run("help", *topic).stdout.splitlines()
            assert max(map(len, piped)) <= 80, [line for line in piped if len(line) > 80]
        for topic in ("errors", "metrics", "routes"):
            piped, rows = pawl.run("help", topic).stdout.splitlines(), on_terminal(pawl, "help", topic, columns=80).splitlines()
            assert max(map(len, rows)) <= 80 < max(map(len, piped)), rows
            assert "".join(" ".join(rows[1:]).split()) == "".join(" ".join(piped[1:]).split()), rows


@test
def on_a_terminal_entries_of_a_wallet_keep_to_its_width():
    with Database() as db, Pawl(db) as pawl:
        assert pawl.run("wallet", "create", "ann").code == 0 and pawl.run("wallet", "topup", "ann", "5").code == 0
        for command in ("entries", "statement"):
            piped, rows = pawl.run("wallet", command, "ann").stdout, on_terminal(pawl, "wallet", command, "ann", columns=80).splitlines()
            assert max(map(len, rows)) <= 80 < max(map(len, piped.splitlines())), (rows, piped)
            assert piped.split()[-1] in "\n".join(rows).split(), (rows, piped)


@test
def the_timeline_is_in_order_of_time():
    """Branches of a parallel may be recorded in another order than they ended in."""
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        process, _ = run(pawl, {"type": "two", "steps": [{"name": "a", "exec": "true"}, {"name": "b", "exec": "true"}]}, "COMPLETED")
        db.rows(f"""update pawl.process_step s set ended_at = (select min(started_at) from pawl.process_step where id = s.id) where s.step = 'b'
                    and s.id = (select id from pawl.command where command_id = '{process}')""")
        times = [line.split()[1] for line in timeline(pawl, process)]
        assert times == sorted(times) and [line.split()[3] for line in timeline(pawl, process) if " step " in line] == ["b", "a"], timeline(pawl, process)


@test
def an_amount_that_is_no_integer_is_refused_with_the_bounds_of_the_ledger():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        _, shown = run(pawl, {"type": "pay", "on_failure": "fail", "steps": [
            {"name": "pay", "wallet": {"kind": "topup", "owner": "ann", "amount": "{{state.amount}}"}}]}, "FAILED", state={"amount": 2.5})
        assert "amount must be an integer from 1 to 9007199254740991, got 2.5" in shown["error"], shown


@test
def times_in_one_output_have_one_format():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        process, shown = run(pawl, {"type": "quick", "deadline": "1h", "steps": [{"name": "a", "exec": "echo 1"}]}, "COMPLETED")
        people = pawl.run("process", "show", process).stdout
        for field in ("created_at", "ended_at", "deadline"):
            at = shown[field]
            assert f"{at[:10]} {at[11:23]}Z" in people.split("\n\n", maxsplit=1)[0] and at not in people, (at, people)
        command = json.loads(pawl.run("send", "mailer", "welcome", "--delay", "1h", "--json").stdout)["command_id"]
        due = pawl.run("command", "show", command, "--json").json["due_at"]
        assert f"due          {due[:10]} {due[11:23]}Z\n" in pawl.run("command", "show", command).stdout


@test
def one_wait_for_the_first_of_two_names_is_shown_otherwise_than_two_waits():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        def waits(name, responses):
            return [{"name": name, "wait": responses}]
        race, _ = run(pawl, {"type": "race", "steps": waits("first", {"any": ["b", "a"]})}, "WAITING_FOR_ASYNC")
        both, _ = run(pawl, {"type": "both", "steps": [
            {"name": "all", "parallel": {"x": waits("one", {"response": "a"}), "y": waits("two", {"response": "b"})}}]}, "WAITING_FOR_ASYNC")
        more, _ = run(pawl, {"type": "more", "steps": [{"name": "all", "parallel": {
            "x": waits("one", {"any": ["a", "b"]}), "y": waits("two", {"response": "a", "count": 2}), "z": waits("three", {"any": ["a", "c"]})}}]}, "WAITING_FOR_ASYNC")
        assert [show(pawl, p)["waits_for"] for p in (race, both, more)] == [
            {"any of: a, b": 1}, {"a": 1, "b": 1}, {"any of: a, b": 1, "a": 2, "any of: a, c": 1}]
        assert 'waits for    {"any of: a, b": 1}' in pawl.run("process", "show", race).stdout


@test
def a_process_that_no_worker_takes_says_so_and_one_that_runs_says_until_when():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve("--role", "api")
        define(pawl, {"type": "order", "domain": "shop", "steps": [{"name": "w", "wait": {"response": "go"}}]})
        process = db.value("select pawl.start('order', p_domain => 'shop')")
        assert show(pawl, process)["worker_note"] is None  # it was started just now
        db.rows("update pawl.command set created_at = created_at - interval '90 s'")
        note = show(pawl, process)["worker_note"]
        assert note.startswith("it has been queued for 9") and note.endswith(
            's, and no worker has a process of domain "shop": does a pod with the role worker run?'), note
        assert f"waits for    a worker: {note[:20]}" in pawl.run("process", "show", process).stdout
        # A process of the same domain in code, which a program takes.
        code = db.value("select pawl.start('by-hand', p_domain => 'shop')")
        item, = pawl.http("POST", "/v1/process-domains/shop/claim", body={"types": ["by-hand"], "worker": "me", "lease_s": 300}).json["items"]
        shown = show(pawl, code)
        assert (shown["status"], shown["worker"], shown["worker_note"]) == ("IN_PROGRESS", "me", None), shown
        lease_s = float(db.value(f"select extract(epoch from '{shown['lease_until']}'::timestamptz - started_at) from pawl.lease"))
        assert 299 < lease_s < 301, (shown, lease_s)
        assert f"leased until {shown['lease_until'][:10]}" in pawl.run("process", "show", code).stdout
        # A worker has a process of the domain, so the other one is only queued.
        assert show(pawl, process)["worker_note"] is None
        report = {"items": [{"process_id": code, "lease": item["lease"], "record": {"step": "a"}, "release": True}]}
        assert pawl.http("POST", "/v1/process-domains/shop/report", body=report).json["items"][0]["verdict"] == "written"
        assert show(pawl, code)["lease_until"] is None and show(pawl, process)["worker_note"]
        # Its program is not there: what returned is queued since the next command was sent after it.
        assert show(pawl, code)["worker_note"] is None
        db.rows("select pawl.send('other', '{x}', array['1']::jsonb[])")
        db.rows("update pawl.command set created_at = created_at - interval '90 s'")
        assert show(pawl, code)["worker_note"].endswith("does its program run?"), show(pawl, code)["worker_note"]


@test
def a_process_that_waits_for_a_retry_names_the_attempt():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        _, shown = run(pawl, {"type": "again", "steps": [{"name": "a", "exec": "exit 1", "retry": {"attempts": 3, "delay": "1h"}}]}, "WAITING_FOR_RETRY")
        assert shown["attempt"] == "attempt 2 of 3 of step a", shown
        assert "waits for    attempt 2 of 3 of step a\n" in pawl.run("process", "show", shown["process_id"]).stdout
        _, shown = run(pawl, {"type": "undo", "on_failure": "compensate", "steps": [
            {"name": "a", "exec": "true", "compensate": {"exec": "exit 1", "retry": {"attempts": 7, "delay": "1h"}}}, {"name": "b", "exec": "exit 65"}]}, "COMPENSATING")
        shown = wait_until(lambda: (now := show(pawl, shown["process_id"]))["attempt"] and now, what="its compensation waits")
        assert shown["attempt"] == "attempt 2 of 7 of step ~a", shown


@test
def a_command_that_code_sends_and_waits_for_in_one_report_is_one_wait():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve("--role", "api")
        process = start(pawl, "code")
        claimed, = pawl.http("POST", "/v1/process-domains/edge/claim", {"types": ["code"], "limit": 1}).json["items"]
        report = {"process_id": process, "lease": claimed["lease"], "record": {"step": "charge", "kind": "begin"},
                  "send": {"step": "charge", "domain": "bank", "type": "charge"},
                  "wait": {"step": "charge", "responses": [{"kind": "reply", "name": "charge", "count": 1}]}}
        verdict, = pawl.http("POST", "/v1/process-domains/edge/report", {"items": [report]}).json["items"]
        assert verdict["verdict"] == "written", verdict
        assert events(show(pawl, process), "WAITING") == [("WAITING", "charge")], show(pawl, process)["audit"]


@test
def a_process_that_another_transaction_has_locked_says_so_and_its_session_can_be_found():
    with Database() as db, Pawl(db) as pawl, Session(db.url) as other:
        define(pawl, {"type": "held", "domain": "edge", "steps": [{"name": "a", "set": {"done": True}}, {"name": "w", "wait": {"response": "go"}}]})
        process = start(pawl, "held")
        other.do("begin")
        pid = other.do("select pg_backend_pid()")
        other.do(f"select pawl.signal('{process}', 'x')")
        assert show(pawl, process)["lock_note"] is None  # it is queued
        pawl.serve()
        note = "another transaction that has the process locked"
        shown = wait_until(lambda: (now := show(pawl, process))["lock_note"] and now, what="it was put off")
        assert (shown["lock_note"], shown["status"]) == (note, "PENDING"), shown
        people = wait_until(lambda: note in (text := pawl.run("process", "show", process).stdout) and text,
                            what="people see it")
        assert re.search(rf"^waits for    {note} \(next try \S+ \S+Z\)$", people, re.M) and "\nuntil " not in people, people
        with open(os.path.join(setting("PAWL_SOURCE"), "docs/process.md"), encoding="utf-8") as file:
            query, = re.findall(r"```sql\n(select a\.pid.*?);\n```", file.read(), re.S)
        assert db.value(re.sub(r"'ID'", f"'{process}'", query)).split("|")[0] == pid[0], (query, pid)
        other.do("commit")
        wait_until(lambda: show(pawl, process)["state"].get("done"), what="it continues")
        assert show(pawl, process)["lock_note"] is None


if __name__ == "__main__":
    main()
