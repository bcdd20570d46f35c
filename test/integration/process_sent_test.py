#!/usr/bin/env python3
"""process_sent - commands and children that a process has sent, when it ends or is compensated before them. The pods run with default settings."""
import hashlib
import os
import struct
import tempfile
import uuid

from pawl_test import Database, Pawl, main, test, wait_until
from process_cli import cli, define, lines, run, show, wait_status
from servers import Session


def sent_status(db, domain):
    """How the only command of a domain ended; empty: it has not."""
    return db.rows(f"""select o.status from pawl.command c join pawl.domain_name n on n.id = c.domain_id
                       join pawl.outcome o on o.id = c.id where n.name = '{domain}'""")


@test
def what_a_process_has_sent_is_canceled_with_it():
    with Database() as db, Pawl(db) as pawl, tempfile.TemporaryDirectory() as folder:
        pawl.serve()
        seen = os.path.join(folder, "seen")
        define(pawl, {"domain": "kids", "type": "kid", "on_failure": "compensate", "steps": [
            {"name": "k", "exec": f"echo kid >> {seen}; echo 1", "compensate": {"exec": f"echo undo >> {seen}; echo 1"}},
            {"name": "w", "wait": {"response": "never"}}]})
        both = {"name": "both", "parallel": {"a": [{"name": "c", "command": {"domain": "far", "type": "x", "payload": {}}}],
                                             "b": [{"name": "p", "process": {"type": "kid", "domain": "kids", "state": {}}}],
                                             "c": [{"name": "w", "wait": {"response": "fail"}},
                                                   {"name": "f", "exec": "exit 70"}]}}

        def fail_and_complete(process):
            cli(pawl, "signal", process, "fail")
            wait_status(pawl, process, "WAITING_FOR_TSQ")
            cli(pawl, "complete", process)

        kid = "select pawl.process_status(p.id) from pawl.process p where p.depth = 1 order by p.id desc limit 1"
        for number, (decide, action, ends) in enumerate((
                (lambda p: cli(pawl, "cancel", p), "troubleshoot", ("CANCELED", "CANCELED")),
                (lambda p: cli(pawl, "cancel", p, "--compensate"), "troubleshoot", ("COMPENSATED", "COMPENSATED")),
                (lambda p: cli(pawl, "signal", p, "fail"), "compensate", ("COMPENSATED", "COMPENSATED")),
                (lambda p: cli(pawl, "signal", p, "fail"), "fail", ("FAILED", "COMPENSATED")),
                (fail_and_complete, "troubleshoot", ("COMPLETED", "COMPENSATED")))):
            before = len(lines(seen))
            both["parallel"]["a"][0]["command"]["domain"] = f"far{number}"
            process, _ = run(pawl, {"type": f"parent{number}", "on_failure": action, "steps": [both]}, "WAITING_FOR_REPLY")
            wait_until(lambda: len(lines(seen)) == before + 1 and db.value(kid) == "WAITING_FOR_ASYNC", what="the child waits")
            decide(process)
            wait_status(pawl, process, ends[0])
            wait_until(lambda: db.value(kid) == ends[1], what=f"the child is {ends[1]}")
            wait_until(lambda: sent_status(db, f"far{number}") == ["CANCELED"], what="the command is canceled")
            assert lines(seen)[before:] == (["kid"] if ends[1] == "CANCELED" else ["kid", "undo"]), lines(seen)
        wait_until(lambda: db.value("select count(*) from pawl.process_orphan") == "0", what="no note is left")


OPEN = """select count(*) from pawl.command c join pawl.domain_name n on n.id = c.domain_id
          where n.name = '%s' and not exists (select from pawl.outcome o where o.id = c.id)"""


@test
def a_child_that_no_worker_runs_does_not_keep_its_process_from_being_compensated():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        process, _ = run(pawl, {"type": "lost", "on_failure": "compensate", "steps": [
            {"name": "pay", "exec": "echo 1", "compensate": {"exec": "echo 1"}},
            {"name": "kid", "process": {"type": "nosuch", "domain": "edge", "state": {}}}]}, "WAITING_FOR_REPLY")
        cli(pawl, "cancel", process, "--compensate")
        shown = wait_status(pawl, process, "COMPENSATED")
        assert "~pay" in [s["name"] for s in shown["steps"]], shown
        alone = cli(pawl, "start", "nosuch", "--domain", "edge")["process_id"]
        for _ in range(2):
            assert cli(pawl, "cancel", alone, "--compensate", "--reason", "misspelled")["status"] == "CANCELED"
        assert show(pawl, alone)["status"] == "CANCELED"


@test
def what_compensations_send_is_not_canceled():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        process, _ = run(pawl, {"type": "refunded", "on_failure": "compensate", "steps": [
            {"name": "pay", "exec": "echo 1", "compensate": {"command": {"domain": "refunds", "type": "refund"}}},
            {"name": "ship", "command": {"domain": "ships", "type": "ship"}}]}, "WAITING_FOR_REPLY")
        # Held: nothing is compensated before it has ended.
        with Session(db.url) as other:
            other.do("begin")
            other.do("select from pawl.ready r join pawl.command c using (id) where c.type = 'ship' for update of r")
            cli(pawl, "cancel", process, "--compensate")
            wait_until(lambda: show(pawl, process)["waits_for"] == {"reply of ship": 1} and db.value("select max(tries) from pawl.process_orphan") != "0",
                       what="it waits for the command, and the task has tried to cancel it")
            assert show(pawl, process)["status"] == "COMPENSATING" and db.value(OPEN % "refunds") == "0"
            other.do("commit")
        wait_until(lambda: sent_status(db, "ships") == ["CANCELED"], what="what was sent before is canceled")
        wait_until(lambda: db.value(OPEN % "refunds") == "1", what="the refund is sent")
        # The task does not take it for something that was sent before: a later command is canceled, and this one is not.
        later, _ = run(pawl, {"type": "later", "steps": [{"name": "c", "command": {"domain": "laters", "type": "x"}}]}, "WAITING_FOR_REPLY")
        cli(pawl, "cancel", later)
        wait_until(lambda: sent_status(db, "laters") == ["CANCELED"], what="the task has come again")
        wait_until(lambda: db.value("select count(*) from pawl.process_orphan") == "0", what="no note is left")
        assert db.value(OPEN % "refunds") == "1", "the compensation's command is canceled"
        done = pawl.run("work", "refunds", "--exec", "echo 1", "--drain")
        assert done.code == 0, done
        assert wait_status(pawl, process, "COMPENSATED", "WAITING_FOR_TSQ")["status"] == "COMPENSATED"


@test
def a_reply_to_a_process_that_is_locked_is_tried_until_it_arrives():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        process, _ = run(pawl, {"type": "asks", "steps": [{"name": "c", "command": {"domain": "far", "type": "x"}}]}, "WAITING_FOR_REPLY")
        letter = "select %s from pawl.failed_operations where operation_type = 'reply'"
        with Session(db.url) as other:
            other.do("begin")
            other.do(f"select pawl.signal('{process}', 'x')")
            done = pawl.run("work", "far", "--exec", "echo 1", "--drain")
            assert done.code == 0, done
            wait_until(lambda: db.rows(letter % "lease >= 4 and status = 'pending'") == ["t"], what="it was tried four times")
            assert db.value(letter % "retry_count || ' ' || error_code") == "0 55P03"
            assert db.value(letter % "next_retry_at <= last_retry_at + interval '15 s'") == "t"
            other.do("commit")
        assert wait_status(pawl, process, "COMPLETED", "WAITING_FOR_TSQ")["status"] == "COMPLETED"
        assert db.value(letter % "status") == "resolved"


@test
def one_command_that_is_held_does_not_keep_a_thousand_others_from_being_canceled():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        process, _ = run(pawl, {"type": "wide", "steps": [{"name": "w", "wait": {"response": "never"}}]}, "WAITING_FOR_ASYNC")
        db.rows("select from pawl.send('many', array_fill('x'::text, array[1000]), array_fill('{}'::jsonb, array[1000]))")
        db.rows(f"""insert into pawl.process_sent (id, sent_id, step, item, undo, aside)
                    select p.id, c.id, 'w', '{{}}', false, 0 from pawl.command p, pawl.command c where p.command_id = '{process}' and c.type = 'x'""")
        with Session(db.url) as other:
            other.do("begin")
            other.do("select from pawl.ready r join pawl.command c using (id) where c.type = 'x' order by r.id limit 1 for update of r")
            cli(pawl, "cancel", process)
            wait_until(lambda: db.value(OPEN % "many") == "1", what="all but the one are canceled")
            late, _ = run(pawl, {"domain": "later", "type": "late", "steps": [{"name": "s", "set": {"a": 1}}]}, "COMPLETED")
            assert db.value(OPEN % "many") == "1", late
            other.do("commit")
        wait_until(lambda: db.value("select count(*) from pawl.process_orphan") == "0", what="no note is left")
        assert db.value(OPEN % "many") == "0"


@test
def what_a_stopped_runner_sends_too_late_is_canceled():
    """Its transaction comes when another runner has compensated the process."""
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        process, _ = run(pawl, {"type": "stale", "on_failure": "compensate", "steps": [
            {"name": "a", "exec": "echo 1", "compensate": {"command": {"domain": "undone", "type": "undo"}}},
            {"name": "w", "wait": {"response": "never"}}]}, "WAITING_FOR_ASYNC")
        cli(pawl, "cancel", process, "--compensate")
        wait_until(lambda: db.value(OPEN % "undone") == "1", what="the compensation is sent")
        db.rows(f"""begin;
            select from pawl.send('stales', 'x');
            update pawl.command c set reply_to = format('response:{{"process": %s, "step": "late"}}', p.id) from pawl.command p where c.type = 'x' and p.command_id = '{process}';
            select pawl.process_sent_note(array(select c.id from pawl.command c where c.type = 'x'));
            commit""")
        wait_until(lambda: sent_status(db, "stales") == ["CANCELED"], what="what came late is canceled")
        assert db.value(OPEN % "undone") == "1", "the compensation's command is canceled"


@test
def an_activation_sends_only_what_is_new():
    """Each reply activates the process, which has up to 200 other commands open."""
    with Database() as db, Pawl(db) as pawl:
        db.rows(f"alter database \"{db.name}\" set track_functions = 'all'")
        pawl.serve()
        process, _ = run(pawl, {"type": "fan", "steps": [
            {"name": "outer", "each": "{{state.outer}}", "concurrency": 4, "steps": [
                {"name": "inner", "each": "{{state.inner}}", "concurrency": 50, "steps": [
                    {"name": "c", "command": {"domain": "many", "type": "x"}}]}]}]},
            "WAITING_FOR_REPLY", state={"outer": list(range(4)), "inner": list(range(50))})
        assert db.value(OPEN % "many") == "200"
        # Ten replies, one after the other.
        for number in range(1, 11):
            item = pawl.http("POST", "/v1/domains/many/claim", {"limit": 1}).json["items"][0]
            done = {"command_id": item["command_id"], "lease": item["lease"], "outcome": "complete", "result": number}
            assert pawl.http("POST", "/v1/domains/many/settle", {"items": [done]}).status == 200
            wait_until(lambda: len([s for s in show(pawl, process)["steps"] if s["name"].startswith("c[")]) == number, what="the reply is recorded")
        done = pawl.run("work", "many", "--exec", "echo 1", "--drain")
        assert done.code == 0, done
        assert wait_status(pawl, process, "COMPLETED", "WAITING_FOR_TSQ")["status"] == "COMPLETED"
        assert pawl.stop() == 0
        # After the pod has ended, so that all calls are counted. Those beside the 200: the start, and commands that had ended whose replies were late.
        calls = int(db.value("select calls from pg_stat_user_functions where schemaname = 'pawl' and funcname = 'send_items'"))
        assert 201 <= calls < 300, calls


# --- ids of what is sent ---

def computed_id(domain, process, step, secret=""):
    """The id of a step's first command, outside of any each; without the secret as it would follow from what other senders can know."""
    text = b"\0".join([f"process:{domain}".encode(), process.encode(), step.encode(), b""]) + struct.pack(">4I", 0, 0, 0, 1)
    hashed = bytearray(hashlib.blake2b(text, key=secret.encode(), digest_size=16).digest())
    hashed[6] = hashed[6] & 0x0f | 0x80
    hashed[8] = hashed[8] & 0x3f | 0x80
    return str(uuid.UUID(bytes=bytes(hashed)))


@test
def ids_of_what_a_step_sends_cannot_be_computed_and_taken_before():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        define(pawl, {"type": "bill", "domain": "edge", "steps": [{"name": "bill", "command": {"domain": "bank", "type": "charge", "payload": {"n": 1}}}]})
        process = str(uuid.uuid4())
        taken = computed_id("edge", process, "bill")
        db.rows(f"select pawl.send('bank', 'charge', '{{\"n\": 1}}', '{taken}')")
        cli(pawl, "start", "bill", "{}", "--domain", "edge", "--id", process)
        wait_status(pawl, process, "WAITING_FOR_REPLY")
        sent = db.rows("select command_id from pawl.command where type = 'charge' and reply_to like 'response:%'")
        secret = db.value(f"select secret from pawl.process where id = pawl.process_number('{process}')")
        assert sent == [computed_id("edge", process, "bill", secret)] != [taken], sent
        assert pawl.run("work", "bank", "--noop", "--drain").code == 0
        wait_status(pawl, process, "COMPLETED")


main()
