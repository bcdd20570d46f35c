#!/usr/bin/env python3
"""dead_letters - what failed is kept, shown, retried and forgotten; alerts about it are sent exactly once."""
from checks import alert, dead_letters_put, metric, problem, refused, stop_clean
from pawl_test import Database, Pawl, main, test, wait_until
from servers import Receiver


@test
def too_many_dead_letters_notify_once_and_resolve_once():
    with Database() as db, Receiver() as receiver, Pawl(db, env={"PAWL_ALERT_WEBHOOK": receiver.url}) as pawl:
        pawl.serve()
        dead_letters_put(db, [f"key-{i}" for i in range(101)])
        wait_until(lambda: receiver.states("dead-letters") == ["firing"], what="the webhook was called")
        shown = alert(pawl, "dead-letters")
        assert shown["state"] == "firing" and shown["value"] == 101 and shown["limit"] == 100, shown
        assert metric(pawl, "pawl_alert_firing", 'alert="dead-letters"') == 1
        assert metric(pawl, "pawl_dead_letters") == 101
        db.rows("delete from pawl.failed_operations where operation_key = 'key-0'")
        wait_until(lambda: receiver.states("dead-letters") == ["firing", "resolved"], what="the webhook was called again")
        assert alert(pawl, "dead-letters")["state"] == "resolved"
        assert metric(pawl, "pawl_alert_firing", 'alert="dead-letters"') == 0
        keys = [key for key, _ in receiver.posts]
        assert len(set(keys)) == len(keys) == 2, keys
        assert pawl.server.said("alert is firing") and pawl.server.said("alert is resolved")
        stop_clean(pawl.server)
        assert receiver.states("dead-letters") == ["firing", "resolved"]
        assert "s3cr3t" not in "\n".join(pawl.server.stderr)


@test
def a_webhook_that_failed_is_a_dead_letter_and_delivered_later():
    with Database() as db, Receiver(status=500) as receiver, \
            Pawl(db, env={"PAWL_ALERT_WEBHOOK": receiver.url, "PAWL_DLQ_EVERY": "1s"}) as pawl:
        pawl.serve()
        dead_letters_put(db, [f"key-{i}" for i in range(101)])
        letter = int(wait_until(lambda: db.rows(
            "select id from pawl.failed_operations where operation_type = 'alert_webhook'"), what="kept")[0])
        shown = pawl.run("dlq", "show", str(letter), "--json").json
        assert shown["operation_data"]["state"] == "firing" and "status 500" in shown["error_message"], shown
        assert "s3cr3t" not in str(shown)
        letters = pawl.http("GET", "/v1/dead-letters?type=alert_webhook")
        assert len(letters.json["items"]) == 1 and b"127.0.0.1" not in letters.body, letters
        wait_until(lambda: any("127.0.0.1" in line and "the webhook failed" in line for line in pawl.server.stderr),
                   what="the log names the receiver")
        key = shown["operation_key"]
        assert receiver.posts[0][0] == f'"{key}"', receiver.posts
        receiver.status = 204
        wait_until(lambda: db.value(f"select status from pawl.failed_operations where id = {letter}") == "resolved",
                   what="delivered")
        assert receiver.taken == [f'"{key}"'], "not exactly once, or under another key"
        problem(pawl.http("POST", f"/v1/dead-letters/{letter}/retry"), 409, "conflict", "resolved")
        refused(pawl, "dlq", "retry", str(letter), code=1, words=["resolved"])
        wait_until(lambda: metric(pawl, "pawl_dead_letter_retries_total", 'outcome="ok"') == 1, what="it is counted")
        stop_clean(pawl.server)


@test
def a_webhook_is_repeated_no_sooner_than_retry_after():
    with Database() as db, Receiver(status=429, headers={"Retry-After": "3600"}) as receiver, \
            Pawl(db, env={"PAWL_ALERT_WEBHOOK": receiver.url, "PAWL_DLQ_EVERY": "1s"}) as pawl:
        pawl.serve()
        dead_letters_put(db, [f"key-{i}" for i in range(101)])
        row = wait_until(lambda: db.rows(
            "select error_message, next_retry_at > pawl.now() + interval '50 minutes' from pawl.failed_operations "
            "where operation_type = 'alert_webhook'"), what="kept")
        assert row == ["webhook: the server asks for fewer requests (status 429)|t"], row
        assert metric(pawl, "pawl_rate_limited_total") == 1
        stop_clean(pawl.server)


@test
def tries_run_out_and_an_operator_begins_anew():
    with Database() as db, Receiver(status=503) as receiver, \
            Pawl(db, env={"PAWL_ALERT_WEBHOOK": receiver.url, "PAWL_DLQ_EVERY": "100ms", "PAWL_DLQ_TRIES": "1"}) as pawl:
        pawl.serve()
        letter, = dead_letters_put(db, ["page"], kind="alert_webhook", delay_ms=0)
        status = lambda: db.value(f"select status from pawl.failed_operations where id = {letter}")
        wait_until(lambda: status() == "failed", what="tried once, then failed")
        assert [row["id"] for row in pawl.run("dlq", "list", "--status", "failed", "--json").json] == [letter]
        receiver.status = 200
        assert pawl.run("dlq", "retry", str(letter), "--json").json["retry_count"] == 0
        wait_until(lambda: status() == "resolved", what="worked")
        stop_clean(pawl.server)


@test
def letters_of_an_application_become_commands_once():
    with Database() as db, Pawl(db, env={"PAWL_DLQ_EVERY": "1s", "PAWL_DLQ_TRIES": "2"}) as pawl:
        pawl.serve()
        waiting, = dead_letters_put(db, ["order-1"], kind="charge", delay_ms=3600000)
        done = pawl.run("dlq", "retry", str(waiting), "--json")
        assert done.json["retried_by"] is None and done.stderr == "", (done.json, done.stderr)
        assert 'type "charge" has no route' in pawl.run("dlq", "retry", str(waiting)).stderr
        assert "retried by  -" in pawl.run("dlq", "show", str(waiting)).stdout
        assert pawl.http("POST", f"/v1/dead-letters/{waiting}/retry").json["retried_by"] is None
        db.rows("select pawl.dead_letter_route('charge', 'shop', 'charge-again')")
        done = pawl.run("dlq", "retry", str(waiting), "--json")
        assert done.code == 0 and done.stderr == "" and done.json["retried_by"] == "shop/charge-again", (done.json, done.stderr)
        status = lambda letter: db.value(f"select status from pawl.failed_operations where id = {letter}")
        wait_until(lambda: status(waiting) == "resolved", what="it was sent")
        sent = db.rows("select d.name, c.type, c.payload = f.operation_data from pawl.command c join pawl.domain d on "
                       f"d.id = c.domain_id, pawl.failed_operations f where f.id = {waiting}")
        assert sent == ["shop|charge-again|t"], sent
        other, = dead_letters_put(db, ["order-2"], kind="refund", delay_ms=0)
        assert db.rows("select pawl.dead_letter_forward(100, 2, 0)") == ["0"], "a type without a route stays"
        assert status(other) == "pending"
        db.rows("select pawl.dead_letter_route('refund', 'shop', 'refund-again')")
        wait_until(lambda: status(other) == "resolved", what="the second was sent")
        assert db.value("select count(*) from pawl.command") == "2"
        stop_clean(pawl.server)


@test
def commands_of_batches_that_could_not_be_sent_need_no_webhook():
    with Database() as db, Pawl(db, env={"PAWL_DLQ_EVERY": "1s"}) as pawl:
        pawl.serve()
        letter = db.value("select id from pawl.dead_letter_keep(array['on_complete'], array['batch-1'], "
                          "array['{\"domain\": \"late\", \"type\": \"done\"}']::jsonb[], array['e'], array['c'], 0)")
        wait_until(lambda: db.value(f"select status from pawl.failed_operations where id = {letter}") == "resolved",
                   what="it was sent")
        assert db.value("select c.type from pawl.command c") == "done"
        stop_clean(pawl.server)


@test
def a_letter_that_cannot_be_sent_fails_alone():
    with Database() as db:
        bad, good = dead_letters_put(db, ["bad", "good"], kind="charge", delay_ms=0)
        db.rows("select pawl.dead_letter_route('charge', 'shop', 'charge-again')")
        db.rows("update pawl.failed_operations set operation_data = (select jsonb_agg('1e131071'::jsonb) from generate_series(1, 9000)) "
                f"where id = {bad}")  # more than a payload may have as text
        assert db.rows("select pawl.dead_letter_forward(100, 2, 0)") == ["1"]
        rows = lambda: db.rows("select id, status, retry_count from pawl.failed_operations order by id")
        assert rows() == [f"{bad}|pending|1", f"{good}|resolved|1"], rows()
        assert db.rows("select pawl.dead_letter_forward(100, 2, 0)") == ["0"]
        assert rows()[0] == f"{bad}|failed|2", rows()


@test
def no_sender_can_take_the_id_of_a_letter_that_will_be_sent():
    with Database() as db:
        letter, = dead_letters_put(db, ["order-1"], kind="charge", delay_ms=0)
        db.rows("select pawl.dead_letter_route('charge', 'shop', 'charge-again')")
        # An id that follows from the letter's number.
        db.rows(f"select pawl.send('shop', 'other', '1'::jsonb, md5('pawl dead letter {letter}')::uuid)")
        assert db.rows("select pawl.dead_letter_forward(100, 2, 0)") == ["1"]
        assert db.rows("select pawl.dead_letter_forward(100, 2, 0)") == ["0"]
        assert db.rows("select type, count(*), count(distinct command_id) from pawl.command group by type order by type") == [
            "charge-again|1|1", "other|1|1"]


def pages(pawl, limit):
    """Every page of the list, by its cursors."""
    ids, cursor = [], ""
    while True:
        page = pawl.http("GET", f"/v1/dead-letters?limit={limit}{cursor}").json
        assert len(page["items"]) <= limit
        ids.append([item["id"] for item in page["items"]])
        if page["next_cursor"] is None:
            return ids
        cursor = f"&cursor={page['next_cursor']}"


@test
def the_list_is_read_page_by_page():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        ids = dead_letters_put(db, [f"key-{i}" for i in range(7)])
        other, = dead_letters_put(db, ["x"], kind="other")
        newest_first = sorted(ids + [other], reverse=True)
        assert sum(pages(pawl, 3), []) == newest_first
        assert sum(pages(pawl, 4), []) == newest_first
        assert [row["id"] for row in pawl.run("dlq", "list", "--json").json] == newest_first
        assert [row["id"] for row in pawl.http("GET", "/v1/dead-letters?type=other").json["items"]] == [other]
        assert pawl.http("GET", "/v1/dead-letters?status=resolved").json["items"] == []
        item = pawl.http("GET", "/v1/dead-letters?type=other").json["items"][0]
        assert item == pawl.run("dlq", "show", str(other), "--json").json
        assert item["operation_data"] == {"n": 1} and item["status"] == "pending" and item["last_retry_at"] is None
        stop_clean(pawl.server)


@test
def a_letter_that_is_too_large_as_text_hides_no_other():
    """An earlier version took data that is small in the database and more than PostgreSQL can write out."""
    with Database() as db, Pawl(db) as pawl:
        db.rows("select * from pawl.dead_letter_put(array['a', 'b', 'c'], array['1', '2', '3'], array['[1]', '[2]', '[3]']::jsonb[], "
                "array_fill('x'::text, '{3}'), array_fill('y'::text, '{3}'))")
        db.rows("update pawl.failed_operations set operation_data = (select jsonb_agg('1e131071'::jsonb) from generate_series(1, 9000)) "
                "where operation_key = '2'")
        for flags in ((), ("--status", "pending")):
            listed = pawl.run("dlq", "list", "--json", *flags).json
            assert [item["operation_type"] for item in listed] == ["c", "b", "a"], listed
        letter = db.value("select id from pawl.failed_operations where operation_key = '2'")
        shown = pawl.run("dlq", "show", letter, "--json").json
        assert shown["operation_data"]["truncated"] is True and shown["operation_data"]["stored_bytes"] > 100000, shown
        assert pawl.run("dlq", "delete", letter).code == 0


@test
def wrong_questions_are_refused_and_change_nothing():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        letter, = dead_letters_put(db, ["one"])
        for query in ("limit=0", "limit=1001", "limit=x", "cursor=-1", "cursor=x", "status=broken", "nonsense=1",
                      "limit=1&limit=2", "limit=99999999999999999999", "type=%FF", "type=%00"):
            problem(pawl.http("GET", "/v1/dead-letters?" + query), 400)
        for word in ("0", "-1", "x", "1x", "99999999999999999999", "01", "%31%00", "1.0", "+1", "%20"):
            problem(pawl.http("POST", f"/v1/dead-letters/{word}/retry"), 400)
            problem(pawl.http("DELETE", f"/v1/dead-letters/{word}"), 400)
        missing = letter + 1000
        problem(pawl.http("POST", f"/v1/dead-letters/{missing}/retry"), 404, "not-found")
        problem(pawl.http("DELETE", f"/v1/dead-letters/{missing}"), 404, "not-found")
        refused(pawl, "dlq", "show", str(missing), code=1, words=["not found"])
        refused(pawl, "dlq", "delete", str(missing), code=1, words=["not found"])
        refused(pawl, "dlq", "list", "--status", "broken", code=2, words=["broken", "pending"])
        refused(pawl, "dlq", "list", "--limit", "0", code=2, words=["--limit"])
        assert db.value("select count(*) from pawl.failed_operations where status = 'pending'") == "1"
        assert pawl.http("DELETE", f"/v1/dead-letters/{letter}").status == 204
        problem(pawl.http("DELETE", f"/v1/dead-letters/{letter}"), 404)
        stop_clean(pawl.server)


main()
