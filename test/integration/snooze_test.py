#!/usr/bin/env python3
"""snooze - a handler puts its command off without using an attempt: a program, a worker over HTTP; and the next attempt has the progress of the last one."""
import json

from checks import problem
from pawl_test import Database, Pawl, main, test, wait_until


def command(db, column="status"):
    return db.value("select pawl.command_show(command_id) ->> '%s' from pawl.command" % column)


@test
def a_worker_over_http_snoozes():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve("--role", "api")
        assert pawl.http("POST", "/v1/commands", {"domain": "shop", "type": "t", "max_attempts": 1}).status == 201
        item = pawl.http("POST", "/v1/domains/shop/claim", {"limit": 1}).json["items"][0]
        settle = {"command_id": item["command_id"], "lease": item["lease"], "outcome": "snooze"}
        for delay in (0, 0.5, 2592001, -1):
            problem(pawl.http("POST", "/v1/domains/shop/settle", {"items": [{**settle, "delay_s": delay}]}), 400, "invalid-request", "delay_s")
        assert command(db) == "IN_PROGRESS", "nothing was written"
        answer = pawl.http("POST", "/v1/domains/shop/settle", {"items": [{**settle, "delay_s": 1, "error": "not open yet"}]})
        assert answer.json["items"][0]["settled"] and answer.json["items"][0]["status"] == "PENDING", answer
        wait_until(lambda: db.value("select moved from pawl.requeue_due(100, 'epoch', 1000)") == "1", what="it is due")
        # In its only attempt: it is not counted.
        again = pawl.http("POST", "/v1/domains/shop/claim", {"limit": 1}).json["items"][0]
        assert again["attempt"] == 1, again
        answer = pawl.http("POST", "/v1/domains/shop/settle", {"items": [{**settle, "lease": again["lease"], "outcome": "complete"}]})
        assert answer.json["items"][0]["status"] == "COMPLETED", answer
        audit = pawl.http("GET", "/v1/commands/" + item["command_id"]).json["audit"]
        assert [event["event"] for event in audit] == ["SENT", "RECEIVED", "SNOOZED", "RECEIVED", "COMPLETED"], audit
        assert audit[2]["details"] == {"reason": "not open yet", "delay_ms": 1000}, audit
        assert 'pawl_commands_settled_total{outcome="snoozed"} 1' in pawl.http("GET", "/metrics").body.decode()


@test
def a_program_snoozes_with_exit_79_and_finds_its_progress_again():
    program = ('if [ -z "$PAWL_PROGRESS" ]; then printf \'pawl: {"percent": 40, "text": "page 4"}\\n\' >&"$PAWL_PROGRESS_FD"; '
               'echo \'{"delay_s": 1}\'; echo "not open yet" >&2; exit 79; fi; echo "$PAWL_PROGRESS"')
    with Database() as db, Pawl(db) as pawl:
        assert pawl.run("send", "shop", "t", "--max-attempts", "1").code == 0
        done = pawl.run("work", "shop", "--exec", program, "--drain")
        assert done.code == 0 and command(db) == "COMPLETED", done
        assert command(db, "attempts") == "1"
        result = json.loads(command(db, "result"))
        assert (result["percent"], result["text"], result["attempt"]) == (40, "page 4", 1), result
        assert db.value("select details from pawl.event where event = 'SNOOZED'") == '{"reason": "not open yet", "delay_ms": 1000}'


@test
def without_output_a_program_snoozes_for_10_s_and_with_wrong_output_it_is_a_retry():
    for output, attempt, reason in (("", "0", None), ("{}", "1", "delay_s"), ('{"delay_s": 0}', "1", "delay_s"), ("soon", "1", "delay_s")):
        with Database() as db, Pawl(db) as pawl:
            assert pawl.run("send", "shop", "t").code == 0
            worker = pawl.start("work", "shop", "--exec", f"printf '%s' '{output}'; exit 79")
            wait_until(lambda: db.value("select count(*) from pawl.delayed") == "1", what="it was put off")
            worker.stop()
            assert db.value("select attempt from pawl.delayed") == attempt, output
            error = command(db, "error")
            assert (reason in error and "79" in error) if reason else error == "", error
            if not reason:
                assert db.value("select due - at = '10 s' from pawl.delayed, pawl.event where event = 'SNOOZED'") == "t"


main()
