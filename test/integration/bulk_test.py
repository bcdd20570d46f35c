#!/usr/bin/env python3
"""bulk - one decision about all that match: counted first, in chunks, resumed after a kill, past what is locked, with the operator in the audit."""
import os
import subprocess
import uuid

from checks import problem
from pawl_test import Database, Pawl, main, setting, test, wait_until

COUNT = 1000000 if os.environ.get("PAWL_TEST_FULL") else 20000


def send(db, domain, count, type_="t"):
    for start in range(0, count, 5000):
        some = min(5000, count - start)
        db.value(f"select count(*) from pawl.send('{domain}', array_fill('{type_}'::text, '{{{some}}}'), array_fill('{{}}'::jsonb, '{{{some}}}'))")


def rows(db, sql):
    return [row.split("|") for row in db.rows(sql)]


def statuses(db, domain):
    return dict(rows(db, f"select pawl.command_status(c.id), count(*)::text from pawl.command c where c.domain_id = pawl.domain_find('{domain}') group by 1"))


def migrated(db):
    pawl = Pawl(db)
    done = pawl.run("migrate")
    assert done.code == 0, done.stderr
    return pawl


@test
def a_filter_is_counted_then_decided_about_and_the_audit_names_the_operator():
    with Database() as db, migrated(db) as pawl:
        send(db, "shop", 30)
        send(db, "shop", 12, "other")
        send(db, "post", 3)
        counted = pawl.run("command", "cancel", "--all", "--domain", "shop", "--type", "t", "--dry-run")
        assert counted.code == 0 and counted.stdout == "30 match\n", counted
        asked = pawl.run("command", "cancel", "--all", "--domain", "shop", "--type", "t")
        assert asked.code == 2 and "30 commands match" in asked.stderr and "nothing was done" in asked.stderr, asked
        assert statuses(db, "shop") == {"PENDING": "42"}
        done = pawl.run("command", "cancel", "--all", "--domain", "shop", "--type", "t", "--yes", "--operator", "ann", "--reason", "sold out")
        assert done.code == 0 and done.stdout == "30 canceled\n", done
        assert statuses(db, "shop") == {"PENDING": "12", "CANCELED": "30"} and statuses(db, "post") == {"PENDING": "3"}
        assert rows(db, "select a.actor, a.details ->> 'reason', count(*)::text from pawl.audit a where a.event = 'CANCELED' group by 1, 2") == [
            ["ann", "sold out", "30"]]
        assert rows(db, "select operator, action, reason, details ->> 'noun' from pawl.control_event where subject = 'bulk'") == [["ann", "cancel", "sold out", "command"]]
        # What has ended may be deleted; its key stays, so a repeat is known.
        gone = pawl.run("command", "delete", "--all", "--domain", "shop", "--status", "CANCELED", "--yes", "--json")
        assert gone.code == 0 and gone.json["decided"] == 30 and gone.json["state"] == "ended", gone
        assert statuses(db, "shop") == {"PENDING": "12"} and db.value("select count(*) from pawl.kept_key") == "30"
        one = db.value("select command_id from pawl.command where domain_id = pawl.domain_find('post') limit 1")
        assert pawl.run("command", "cancel", one).code == 0
        assert pawl.run("command", "delete", one, "--yes").stdout == "1 deleted\n"
        assert statuses(db, "post") == {"PENDING": "2"}
        for words, said in ((("cancel", "--all", "--status", "COMPLETED", "--yes"), "status"), (("cancel", "--all", "--since", "never"), "--since"),
                            (("delete", "--all", "--status", "PENDING", "--yes"), "status"), (("cancel",), "--all")):
            refused = pawl.run("command", *words)
            assert refused.code in (1, 2) and said in refused.stderr, (words, refused)


@test
def an_operation_over_http_is_run_by_a_monitor_once_per_key():
    with Database() as db, migrated(db) as pawl:
        pawl.serve()
        send(db, "shop", 700)
        answer = pawl.http("POST", "/v1/commands/bulk", {"action": "cancel", "filter": {"domain": "shop"}, "dry_run": True})
        assert answer.status == 200 and answer.json == {"operation_id": None, "count": 700, "is_exact": True}, answer.body
        body = {"action": "cancel", "filter": {"domain": "shop"}, "operator": "ann", "reason": "sold out"}
        key = {"Idempotency-Key": "monday"}
        begun = pawl.http("POST", "/v1/commands/bulk", body, headers=key).json
        again = pawl.http("POST", "/v1/commands/bulk", body, headers=key)
        assert again.json["operation_id"] == begun["operation_id"] and again.headers.get("idempotency-replayed") == "true", again.body
        problem(pawl.http("POST", "/v1/commands/bulk", {**body, "action": "delete"}, headers=key), 422)

        def ended():
            shown = pawl.http("GET", f"/v1/bulk/{begun['operation_id']}").json
            return shown["state"] == "ended" and shown
        shown = wait_until(ended, what="the end of the operation")
        assert (shown["matched"], shown["decided"], shown["refused"], shown["locked"]) == (700, 700, 0, 0), shown
        assert "ann" in shown["operator"] and shown["filter"] == {"domain": "shop"}, shown
        assert statuses(db, "shop") == {"CANCELED": "700"}
        for bad, word in (({"action": "explode", "filter": {}}, "action"), ({"action": "cancel"}, "filter"), ({"action": "cancel", "filter": {"domian": "x"}}, "domian"),
                          ({"action": "cancel", "filter": {"since": "never"}}, "since"), ({"action": "cancel", "filter": {"status": "GONE"}}, "status"),
                          ({"action": "retry", "filter": {"status": "PENDING"}}, "status"), ({"action": "cancel", "filter": {}, "result": 1}, "result"),
                          ({"action": "cancel", "filter": {"batch_id": "x"}}, "batch_id")):
            problem(pawl.http("POST", "/v1/commands/bulk", bad), 400, part=word)
        problem(pawl.http("POST", "/v1/processes/bulk", {"action": "cancel", "filter": {"order_key": "x"}}), 400, part="order_key")
        problem(pawl.http("GET", f"/v1/bulk/{uuid.uuid4()}"), 404)
        assert db.value("select count(*) from pawl.bulk_operation") == "1"
        # Processes too.
        send(db, "process:shop", 40, "order")
        begun = pawl.http("POST", "/v1/processes/bulk", {"action": "cancel", "filter": {"domain": "shop", "type": "order"}}).json
        assert begun["count"] == 40, begun
        shown = wait_until(ended, what="the end of the operation")
        assert shown["decided"] == 40 and statuses(db, "process:shop") == {"CANCELED": "40"}, shown


@test
def what_is_locked_stops_nothing_beside_it():
    with Database() as db, migrated(db) as pawl:
        send(db, "shop", 300)
        other = subprocess.Popen([os.path.join(setting("PAWL_TEST_BIN"), "psql"), "-Xqd", db.url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            other.stdin.write("begin; select 'held' from (select r.id from pawl.ready r order by r.pos limit 1 for update) r;\n")
            other.stdin.flush()
            while "held" not in other.stdout.readline():
                pass
            done = pawl.run("command", "cancel", "--all", "--domain", "shop", "--yes")
            assert done.code == 75 and done.stdout == "299 canceled, 1 locked\n" and "locked by other transactions" in done.stderr, done
            assert statuses(db, "shop") == {"CANCELED": "299", "PENDING": "1"}
        finally:
            other.kill()
            other.wait()
            other.stdin.close()
            other.stdout.close()
        assert pawl.run("command", "cancel", "--all", "--domain", "shop", "--yes").stdout == "1 canceled\n"


@test
def killed_in_the_middle_it_is_ended_by_another_and_others_are_not_held_up():
    with Database() as db, migrated(db) as pawl:
        send(db, "shop", COUNT)
        asked = pawl.start("command", "cancel", "--all", "--domain", "shop", "--yes", "--operator", "ann")
        wait_until(lambda: int(db.value("select count(*) from pawl.bulk_chunk")) > 2, what="some chunks")
        asked.kill()
        some = int(statuses(db, "shop").get("CANCELED", "0"))
        assert 0 < some < COUNT, some
        assert db.value("select count(*) from pawl.bulk_operation where ended_at is null") == "1"
        send(db, "shop", 1, "later")
        pawl.serve()
        # Meanwhile other work goes on: no chunk holds it up.
        slowest = 0.0
        while db.value("select count(*) from pawl.bulk_operation where ended_at is null") == "1":
            took = db.value("select extract(epoch from clock_timestamp() - b.at) from (select clock_timestamp() as at offset 0) b, "
                            "lateral (select count(*) from pawl.send('shop', array['beside'], array['{}']::jsonb[]) s where b.at is not null) s")
            slowest = max(slowest, float(took))
        assert slowest < 2, slowest
        assert rows(db, "select sum(matched)::text, sum(decided)::text, (max(matched) <= 500)::text from pawl.bulk_chunk") == [[str(COUNT), str(COUNT), "true"]]
        assert rows(db, "select c.type, pawl.command_status(c.id), count(*)::text from pawl.command c where c.type in ('t', 'later') group by 1, 2 order by 1") == [
            ["later", "PENDING", "1"], ["t", "CANCELED", str(COUNT)]]
        assert rows(db, "select a.actor, count(*)::text from pawl.audit a where a.event = 'CANCELED' group by 1") == [["ann", str(COUNT)]]
        # The same again finds only what was sent since.
        left = db.value("select count(*) from pawl.ready")
        assert pawl.run("command", "cancel", "--all", "--domain", "shop", "--yes").stdout == f"{left} canceled\n"


@test
def the_filters_of_command_lists():
    with Database() as db, migrated(db) as pawl:
        pawl.serve()
        batch = str(uuid.uuid4())
        assert pawl.run("batch", "create", "--id", batch).code == 0
        ids = [pawl.run("send", "shop", "t", *flags).stdout.strip() for flags in (
            ("--key", "order-17"), ("--correlation-id", "c1"), ("--batch", batch), ("--order-key", "k"), ())]
        for flags, index in ((("--key", "order-17"), 0), (("--correlation-id", "c1"), 1), (("--batch", batch), 2), (("--order-key", "k"), 3)):
            for more in ((), ("--status", "PENDING"), ("--since", "1h", "--domain", "shop")):
                listed = pawl.run("command", "list", "--json", *flags, *more).json
                assert [c["command_id"] for c in listed] == [ids[index]], (flags, more, listed)
            assert pawl.run("command", "list", "--json", *flags, "--until", "2020-01-01").json == []
        sent = pawl.http("POST", "/v1/commands", {"domain": "shop", "type": "t"}, headers={"Idempotency-Key": "order-18"}).json["command_id"]
        for query, id_ in (("correlation_id=c1", ids[1]), (f"batch_id={batch}", ids[2]), ("order_key=k&status=PENDING", ids[3]), ("key=order-18", sent)):
            listed = pawl.http("GET", f"/v1/commands?{query}&since=2020-01-01T00:00:00Z").json["items"]
            assert [c["command_id"] for c in listed] == [id_], (query, listed)
        problem(pawl.http("GET", "/v1/commands?batch_id=x"), 400, part="batch_id")
        problem(pawl.http("GET", "/v1/commands?since=x"), 400, part="since")
        assert pawl.run("command", "list", "--count", "--batch", batch).code == 2
        counted = pawl.run("command", "cancel", "--all", "--batch", batch, "--dry-run")
        assert counted.stdout == "1 match\n", counted


main()
