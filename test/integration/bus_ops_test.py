#!/usr/bin/env python3
"""bus_ops - what operators see of the bus: metrics, alerts, retention, and words that name what is missing."""
import os
import re

from bus_commands import new_id, send, show, work
from checks import alert, is_clean, metric, problem, refused, stop_clean
from pawl_test import Database, Pawl, main, test, wait_until
from servers import Session, in_threads

FAKE_CLOCK = os.path.join(os.path.dirname(__file__), "../regress/fake_clock.sql")


def claim(pawl, limit=1):
    return pawl.http("POST", "/v1/domains/shop/claim", {"limit": limit}).json["items"]


def settle(pawl, *rows):
    items = [{"command_id": c["command_id"], "lease": c["lease"] + off, "outcome": word} for c, word, off in rows]
    return pawl.http("POST", "/v1/domains/shop/settle", {"items": items}).json["items"]


@test
def metrics_count_what_passes_through():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        body = {"domain": "shop", "type": "charge", "command_id": new_id()}
        for more in ({}, {}, {"payload": 7}, {"command_id": new_id()}, {"command_id": new_id()}, {"command_id": new_id()}):
            pawl.http("POST", "/v1/commands", {**body, **more})
        first, second, third, fourth = claim(pawl, 9)
        settle(pawl, (first, "complete", 0), (second, "reject", 0), (third, "fail", 0), (fourth, "complete", 1))
        settle(pawl, (fourth, "retry", 0))
        sent = {word: metric(pawl, "pawl_commands_sent_total", f'outcome="{word}"') for word in ("new", "known", "refused")}
        assert sent == {"new": 4, "known": 1, "refused": 1}, sent
        assert metric(pawl, "pawl_commands_claimed_total") == 4
        words = ("completed", "retried", "failed", "rejected", "lost")
        settled = {word: metric(pawl, "pawl_commands_settled_total", f'outcome="{word}"') for word in words}
        assert settled == dict.fromkeys(words, 1), settled
        assert metric(pawl, "pawl_bus_calls_total", 'call="send"') == 6
        assert metric(pawl, "pawl_bus_calls_total", 'call="settle"') == 2
        wait_until(lambda: metric(pawl, "pawl_wakeups_total", 'direction="sent"') >= 1, what="a note was sent")
        wait_until(lambda: metric(pawl, "pawl_wakeups_total", 'direction="received"') >= 1, what="and it came")
        stop_clean(pawl.server)


@test
def a_command_in_troubleshooting_raises_an_alert_until_an_operator_decides():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        given_up = send(pawl, "shop", "charge")
        send(pawl, "shop", "remind", None, "--delay", "1h")
        assert work(pawl, "shop", "--exec", "exit 70", "--type", "charge")["failed"] == 1
        wait_until(lambda: metric(pawl, "pawl_commands_all", 'state="troubleshooting"') == 1, what="counted")
        wait_until(lambda: metric(pawl, "pawl_commands_all", 'state="delayed"') == 1, what="the statistics are written")
        assert metric(pawl, "pawl_commands_all", 'state="ready"') == 0
        wait_until(lambda: alert(pawl, "troubleshooting")["state"] == "firing", what="the alert")
        assert "pawl tsq list" in alert(pawl, "troubleshooting")["summary"]
        assert pawl.run("tsq", "cancel", given_up, "--reason", "test").code == 0
        wait_until(lambda: alert(pawl, "troubleshooting")["state"] == "resolved", what="resolved")
        stop_clean(pawl.server)


@test
def a_command_queued_for_too_long_raises_an_alert():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        send(pawl, "shop", "charge")
        wait_until(lambda: metric(pawl, "pawl_commands_all", 'state="ready"') == 1, what="counted")
        assert metric(pawl, "pawl_commands_oldest_ready_seconds") < 300 and alert(pawl, "commands-waiting")["state"] == "ok"
        db.rows("update pawl.command set created_at = created_at - interval '301 seconds'")
        wait_until(lambda: alert(pawl, "commands-waiting")["state"] == "firing", what="the alert")
        assert alert(pawl, "commands-waiting")["summary"].endswith("pawl doctor says why; the oldest is in domain (shop)"), alert(pawl, "commands-waiting")
        assert metric(pawl, "pawl_commands_oldest_ready_seconds") > 300
        work(pawl, "shop", "--noop")
        wait_until(lambda: alert(pawl, "commands-waiting")["state"] == "resolved", what="resolved")
        assert metric(pawl, "pawl_commands_oldest_ready_seconds") == 0
        stop_clean(pawl.server)


@test
def a_command_that_no_worker_takes_says_so():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve("--role", "api")
        command, other = (pawl.run("send", "mailer", "welcome").stdout.strip() for _ in range(2))
        assert show(pawl, command)["worker_note"] is None  # it was sent just now
        db.rows("update pawl.command set created_at = created_at - interval '90 s'")
        note = show(pawl, command)["worker_note"]
        assert re.fullmatch(r'it has been queued for 9\d s, and no worker has a command of domain "mailer"', note), note
        assert f"waits for    a worker: {note[:20]}" in pawl.run("command", "show", command).stdout
        taken, = pawl.http("POST", "/v1/domains/mailer/claim", {"limit": 1}).json["items"]
        assert [show(pawl, one)["worker_note"] for one in (command, other)] == [None, None], taken  # a worker has one of them


@test
def a_batch_that_was_abandoned_raises_an_alert_and_is_found_by_the_doctor():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        db.rows("select * from pawl.batch_new('00000000-0000-4000-8000-00000000000b', 'night', null)")
        db.rows("update pawl.batch set created_at = created_at - interval '25 hours'")
        wait_until(lambda: alert(pawl, "batch-abandoned")["state"] == "firing", what="the alert")
        doctor = pawl.run("doctor", "--json")
        finding, = [row for row in doctor.json if row["check"] == "stuck rows"]
        assert finding["state"] == "warn" and "25 hours" in finding["found"], finding
        assert pawl.http("POST", "/v1/batches/00000000-0000-4000-8000-00000000000b/seal", {}).status == 200
        wait_until(lambda: alert(pawl, "batch-abandoned")["state"] == "resolved", what="resolved")
        stop_clean(pawl.server)


@test
def a_ledger_that_is_ahead_of_the_clock_raises_an_alert():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        db.rows("select count(*) from wallet.open(array['ann'])")
        assert metric(pawl, "pawl_ledger_clock_ahead_seconds") == 0 and alert(pawl, "ledger-clock")["state"] == "ok"
        moved = "set session_replication_role = replica; update wallet.txn set at = at {} interval '1 hour' where id = (select max(id) from wallet.txn)"
        db.rows(moved.format("+"))
        wait_until(lambda: alert(pawl, "ledger-clock")["state"] == "firing", what="the alert")
        assert 3500 < metric(pawl, "pawl_ledger_clock_ahead_seconds") <= 3600
        db.rows(moved.format("-"))
        wait_until(lambda: alert(pawl, "ledger-clock")["state"] == "resolved", what="resolved")
        stop_clean(pawl.server)


@test
def the_doctor_finds_a_command_that_is_nowhere():
    with Database() as db, Pawl(db) as pawl:
        send(pawl, "shop", "charge")
        send(pawl, "shop", "charge", None, "--delay", "1h")

        def finding():
            row, = [row for row in pawl.run("doctor", "--json").json if row["check"] == "stuck rows"]
            return row
        assert finding()["state"] == "ok", finding()
        db.rows("delete from pawl.ready")
        assert finding()["state"] == "fail" and "1 of 2 commands" in finding()["found"], finding()


@test
def a_monitor_prunes_what_is_old_enough_and_nothing_else():
    with Database() as db, Pawl(db) as pawl:
        ids = [send(pawl, "shop", "charge", n) for n in range(4)]
        work(pawl, "shop", "--noop")
        waiting = send(pawl, "shop", "charge")
        numbers = {name: db.value(f"select id from pawl.command where command_id = '{name}'") for name in ids}
        # The first ended long ago, with its audit; the second too, its audit is younger; the third ended 29 days ago.
        db.rows("update pawl.outcome set ended_at = pawl.now() - case id "
                f"when {numbers[ids[0]]} then interval '91 days' when {numbers[ids[1]]} then interval '31 days' "
                f"when {numbers[ids[2]]} then interval '29 days' else interval '0' end")
        db.rows("update pawl.outcome set started_at = ended_at")
        # The age of a command is that of its end.
        db.rows("update pawl.command c set created_at = coalesce((select o.ended_at from pawl.outcome o where o.id = c.id), "
                "pawl.now() - interval '400 days')")
        process = pawl.start("serve", "--role", "monitor")
        wait_until(lambda: db.value("select count(*) from pawl.command") == "3" or not process.is_running(), what="pruned")
        wait_until(lambda: db.value(f"select count(*) from pawl.audit where id = {numbers[ids[0]]}") == "0", what="audit too")
        assert process.stop() == 0 and is_clean(process), process.stderr
        left = db.rows("select command_id from pawl.command order by id")
        assert left == [ids[2], ids[3], waiting], left
        assert db.value("select count(*) from pawl.outcome") == "2"
        assert db.value(f"select count(*) from pawl.audit where id = {numbers[ids[1]]}") == "3"
        assert db.value(f"select count(*) from pawl.audit where id = {numbers[ids[2]]}") == "3"
        assert show(pawl, waiting)["status"] == "PENDING"


@test
def a_monitor_prunes_as_much_as_comes_in():
    with Database() as db, Pawl(db) as pawl:
        # What 3,000 commands a second leave behind in six seconds, behind 5,000 that ended yesterday.
        # Its events are in no week's partition, as after weeks without a monitor, so they are deleted row by row.
        db.rows("drop table pawl.event_before; "
                "insert into pawl.command select n, 1, gen_random_uuid(), 't', '{}', 4, 3, null, null, null, now() - interval '400 days' "
                "from generate_series(1, 23000) n; "
                "insert into pawl.outcome select n, 1, 'COMPLETED', 1, now() - case when n > 5000 then interval '399 days' else '1 day' end "
                "from generate_series(1, 23000) n; "
                "insert into pawl.event select n, now() - interval '399 days', 1, 1, 'RECEIVED' from generate_series(1, 23000) n")
        process = pawl.start("serve", "--role", "monitor")
        wait_until(lambda: db.value("select count(*) from pawl.outcome") == "5000", what="commands pruned")
        wait_until(lambda: db.value("select count(*) from pawl.event") == "0", what="audit pruned")
        assert process.stop() == 0 and is_clean(process), process.stderr


@test
def a_clock_that_jumps_ahead_makes_retention_wait():
    with Database() as db, Pawl(db) as pawl, open(FAKE_CLOCK, encoding="utf-8") as fake_clock:
        send(pawl, "shop", "charge")
        work(pawl, "shop", "--noop")
        pawl.serve()
        db.rows(fake_clock.read())
        db.rows("insert into pawl.fake_clock (at) values (clock_timestamp() + interval '400 days')")
        wait_until(lambda: alert(pawl, "retention-waits")["state"] == "firing", what="the alert")
        assert 399 < metric(pawl, "pawl_retention_jump_seconds") / 86400 < 401  # and what passed since its last run
        assert db.value("select count(*) from pawl.outcome") == "1"
        db.rows("truncate pawl.fake_clock")
        wait_until(lambda: alert(pawl, "retention-waits")["state"] == "resolved", what="resolved")
        assert db.value("select count(*) from pawl.outcome") == db.value("select count(*) from pawl.command") == "1"
        stop_clean(pawl.server)


@test
def how_long_things_are_kept_can_be_set():
    with Database() as db, Pawl(db) as pawl:
        send(pawl, "shop", "charge")
        work(pawl, "shop", "--noop")
        db.rows("update pawl.outcome set ended_at = pawl.now() - interval '2 days', started_at = pawl.now() - interval '2 days'; "
                "update pawl.command set created_at = pawl.now() - interval '2 days'")
        days = {"PAWL_KEEP_COMMANDS_DAYS": "3", "PAWL_KEEP_AUDIT_DAYS": "1"}
        process = pawl.start("serve", "--role", "monitor", env=days)
        wait_until(lambda: db.value("select count(*) from pawl.audit") == "0" or not process.is_running(), what="audit goes")
        assert process.stop() == 0 and is_clean(process), process.stderr
        assert db.value("select count(*) from pawl.command") == db.value("select count(*) from pawl.outcome") == "1"


@test
def what_is_missing_is_named():
    with Database() as db, Pawl(db) as pawl:
        name = new_id()
        for words in (["command", "show"], ["command", "cancel"], ["tsq", "retry"], ["tsq", "cancel"], ["tsq", "complete"],
                      ["batch", "show"]):
            refused(pawl, *words, name, code=1, words=[f"{'batch' if words[0] == 'batch' else 'command'} {name} not found"])
        for verb in ("show", "retry", "delete"):
            refused(pawl, "dlq", verb, "4711", code=1, words=["dead letter 4711 not found"])
        sent = send(pawl, "shop", "charge")
        refused(pawl, "tsq", "retry", sent, code=1, words=[sent, "not in the troubleshooting queue"])
        work(pawl, "shop", "--noop")
        refused(pawl, "command", "cancel", sent, code=1, words=[sent, "has ended already"])
        pawl.serve()
        for path in (f"/v1/commands/{name}/cancel", f"/v1/tsq/{name}/retry", f"/v1/batches/{name}/seal"):
            problem(pawl.http("POST", path, {} if "seal" not in path else None), 404, part=name)
        problem(pawl.http("GET", f"/v1/batches/{name}"), 404, part=name)
        stop_clean(pawl.server)


@test
def alerts_count_over_all_processes():
    """What processes count reaches every monitor by way of the database: handlers of `pawl work`, peers' 429s."""
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        for _ in range(30):
            pawl.http("POST", "/v1/commands", {"domain": "shop", "type": "pay", "max_attempts": 1})
        pawl.run("work", "shop", "--exec", "exit 1", "--drain")
        wait_until(lambda: alert(pawl, "handlers-failing")["state"] == "firing", what="the handlers of a worker count")
        assert alert(pawl, "handlers-failing")["value"] == 100
        assert alert(pawl, "requests-failing")["state"] == "ok"
        for _ in range(2):
            db.value("select pawl.tally_add(gen_random_uuid(), 1, '{rate_limited}', '{6}')")
        wait_until(lambda: alert(pawl, "rate-limited")["state"] == "firing", what="six and six are more than ten")
        stop_clean(pawl.server)


@test
def what_another_transaction_holds_is_waited_for_until_the_deadline_and_keeps_no_connection():
    def is_busy(answer):
        # The second only where the machine is so busy that the time is over before the lock's.
        assert problem(answer, 503)["type"] in ("/problems/try-again", "/problems/timed-out"), answer

    with Database() as db, Pawl(db, env={"PAWL_REQUEST_TIMEOUT": "2s"}) as pawl, Session(db.url) as other:
        pawl.serve()
        running, stuck = [pawl.http("POST", "/v1/commands", {"domain": "shop", "type": "pay"}).json["command_id"] for _ in range(2)]
        batch = pawl.http("POST", "/v1/commands/batch", {"open": True, "items": [
            {"domain": "shop", "type": "pay", "command_id": "00000000-0000-4000-8000-00000000000d"}]}).json["batch_id"]
        items = {item["command_id"]: item for item in claim(pawl, 2)}
        settle(pawl, (items[stuck], "fail", 0))
        letter = db.value("select id from pawl.dead_letter_put(array['mail'], array['1'], array['1']::jsonb[], array['x'], array['y'])")
        held = {f"/v1/commands/{running}/cancel": {}, f"/v1/tsq/{stuck}/retry": {}, f"/v1/tsq/{stuck}/complete": {},
                f"/v1/batches/{batch}/seal": {}, f"/v1/dead-letters/{letter}/retry": {},
                "/v1/commands/batch": {"batch_id": batch, "items": [
                    {"domain": "shop", "type": "pay", "command_id": "00000000-0000-4000-8000-00000000000d"}]}}
        other.do("begin")
        for table in ("lease", "tsq", "batch", "failed_operations"):
            other.do(f"select from pawl.{table} for update")
        for path, body in held.items():
            is_busy(pawl.http("POST", path, body))
        is_busy(pawl.http("DELETE", f"/v1/dead-letters/{letter}"))
        # Far more of them than there are connections: what needs no such row is served between them.
        answers = in_threads(60, lambda n: pawl.http(*(("POST", f"/v1/commands/{running}/cancel", {}) if n % 3 else
                                                       ("GET", f"/v1/commands/{running}"))))()
        assert sorted({answer.status for answer in answers}) == [200, 503], sorted(answer.status for answer in answers)
        assert all(answer.status == 200 for n, answer in enumerate(answers) if n % 3 == 0)
        other.do("rollback")
        for path, body in held.items():
            if "complete" not in path:
                answer = pawl.http("POST", path, body)
                assert answer.status in (200, 201), (path, answer.body)
        assert pawl.http("DELETE", f"/v1/dead-letters/{letter}").status == 204


main()
