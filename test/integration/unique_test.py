#!/usr/bin/env python3
"""unique - of all who send with one unique key at once one command comes; the others get its id, whatever connection or transaction is lost."""
import json
import uuid

from checks import problem
from pawl_test import Database, Pawl, Proxy, main, test
from servers import Session, in_threads



def send(pawl, payload, key="k", scope=None, action=None, **fields):
    unique = {name: value for name, value in (("key", key), ("scope", scope), ("on_duplicate", action)) if value is not None}
    return pawl.http("POST", "/v1/commands", {"domain": "shop", "type": "charge", "payload": payload, "unique": unique, **fields})


def first(answer):
    """The id of the command that has the key, and what became of it; None: it is this one."""
    assert answer.status == 201, answer
    assert answer.json["status"] == "PENDING", answer
    return answer.json["command_id"], answer.json.get("duplicate")


@test
def of_64_senders_over_three_pods_one_has_a_command_and_all_have_its_id():
    with Database() as db, Pawl(db) as one, Pawl(db) as two, Pawl(db) as three:
        pods = (one, two, three)
        for pod in pods:
            pod.serve("--role", "api")
        for round_, (scope, action) in enumerate((("queued", "keep"), ("active", "replace"), ("1h", "move"))):
            answers = in_threads(64, lambda n: send(pods[n % 3], n, f"k{round_}", scope, action, delay_s=3600))()
            ids = [first(answer)[0] for answer in answers]
            assert len(set(ids)) == 1, ids
            ends = sorted(str(first(answer)[1]) for answer in answers)
            assert ends == ["None"] + [{"keep": "kept", "replace": "replaced", "move": "moved"}[action]] * 63, ends
            assert db.value(f"select array_agg(command_id) from pawl.command where command_id = '{ids[0]}'") == "{" + ids[0] + "}"
        assert db.value("select count(*) from pawl.command") == "3"
        assert db.value("select count(*) from pawl.delayed") == "3"


@test
def a_first_sender_that_has_not_committed_is_waited_for_and_holds_up_no_other_key():
    for end, is_first in (("commit", True), ("rollback", False)):
        with Database() as db, Pawl(db) as pawl:
            pawl.serve("--role", "api")
            with Session(db.url) as session:
                begun = session.do("begin; select pawl.send('shop', 'charge', '1', p_unique_key => 'k')")[0]
                wait = in_threads(2, lambda n: send(pawl, n))
                assert first(send(pawl, 5, "other"))[1] is None, "another key is not held up"
                assert pawl.http("POST", "/v1/commands", {"domain": "shop", "type": "charge", "payload": 6}).status == 201
                session.do(end)
                ids, ends = zip(*(first(answer) for answer in wait()))
                assert len(set(ids)) == 1 and (ids[0] == begun) == is_first, (begun, ids)
                assert sorted(map(str, ends)) == (["kept", "kept"] if is_first else ["None", "kept"]), ends


@test
def one_that_is_held_by_an_open_sender_is_not_claimed_before_that_commits():
    """What the sender has written is there when the command begins that stands for its own."""
    with Database() as db, Pawl(db) as pawl:
        pawl.serve("--role", "api")
        assert first(send(pawl, 1, scope="queued"))[1] is None
        with Session(db.url) as session:
            session.do("begin; select pawl.send('shop', 'charge', '2', p_unique_key => 'k')")
            claim = pawl.http("POST", "/v1/domains/shop/claim", {"limit": 1})
            assert claim.json["items"] == [], claim
            # A sender in a shared transaction does not wait for it; it is tried again, until its deadline at the latest.
            wait = in_threads(1, lambda _: send(pawl, 3))
            assert first(send(pawl, 4, "other"))[1] is None
            session.do("commit")
            assert first(wait()[0])[1] == "kept"
        claim = pawl.http("POST", "/v1/domains/shop/claim", {"limit": 10})
        assert [item["payload"] for item in claim.json["items"]] == [1, 4], claim


@test
def after_a_lost_answer_a_repeat_has_the_same_verdict():
    with Database() as db, Proxy(db) as proxy, Pawl(proxy.url, env={"PAWL_BREAKER_FAILURES": "1000"}) as pawl, Pawl(db) as other:
        pawl.serve("--role", "api")
        other.serve("--role", "api")
        holder = first(send(pawl, 0, delay_s=3600))[0]
        for moment in ("before", "sent", "answered"):
            proxy.do("cut")  # a statement has its text only before it was prepared on its connection
            cuts = proxy.do(f"cut-on {moment} 1 pawl.send_items")["cuts"]
            assert first(send(pawl, moment, action="replace")) == (holder, "replaced"), moment
            assert proxy.do("counts")["cuts"] == cuts + 1, "the answer was not lost"
            assert db.value("select payload #>> '{}' from pawl.command") == moment
        # A sender that repeats its request later gets the verdict that it got then, although the key is free by now.
        key, body = str(uuid.uuid4()), {"domain": "shop", "type": "charge", "payload": 7, "unique": {"key": "k", "on_duplicate": "replace"}}
        given = other.http("POST", "/v1/commands", body, headers={"Idempotency-Key": key})
        assert first(given) == (holder, "replaced"), given
        assert other.run("command", "cancel", holder).code == 0
        again = other.http("POST", "/v1/commands", body, headers={"Idempotency-Key": key})
        assert (again.status, again.body) == (201, given.body), again
        assert again.headers["pawl-status"] == "CANCELED", again
        problem(other.http("POST", "/v1/commands", {**body, "payload": 8}, headers={"Idempotency-Key": key}), 422, "key-reused", "payload differs")
        assert db.value("select count(*) from pawl.command") == "1"
        assert first(send(other, 9))[1] is None, "free again"


@test
def a_batch_and_the_command_line_say_what_is_a_duplicate():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve("--role", "api")
        held = first(send(pawl, 0, delay_s=60))[0]
        item = {"domain": "shop", "type": "charge", "payload": 1}
        answer = pawl.http("POST", "/v1/commands/batch", {"items": [
            item, {**item, "unique": {"key": "k"}}, {**item, "key": "order-1", "unique": {"key": "n"}}, {**item, "unique": {"key": "n", "on_duplicate": "replace"}}]})
        assert answer.status == 201, answer
        items = answer.json["items"]
        assert [i.get("duplicate") for i in items] == [None, "kept", None, "replaced"] and items[1]["command_id"] == held, items
        assert items[2]["command_id"] == items[3]["command_id"]
        batch = pawl.http("GET", "/v1/batches/" + answer.json["batch_id"])
        assert batch.json["total"] == 2, batch

        done = pawl.run("send", "shop", "charge", "5", "--unique", "k", "--on-duplicate", "replace", "--unique-for", "2h")
        assert (done.code, done.stdout.strip()) == (0, held) and "replaced" in done.stderr, done
        done = pawl.run("send", "shop", "charge", "5", "--unique", "k", "--on-duplicate", "move", "--delay", "1h", "--json")
        assert json.loads(done.stdout) == {"command_id": held, "status": "PENDING", "created": False, "duplicate": "moved"}, done
        assert db.value("select extract(epoch from due - now()) between 3500 and 3600 from pawl.delayed") == "t"
        done = pawl.run("send", "shop", "charge", "--lines", "--unique", "k", stdin="1\n2\n")
        assert done.code == 0 and db.value("select count(*) from pawl.command") == "3", done
        shown = pawl.http("GET", f"/v1/commands/{held}").json
        assert shown["unique"] == {"key": "k", "scope": "active", "until": None}, shown
        assert [event["event"] for event in shown["audit"]] == ["SENT", "PAYLOAD_REPLACED", "RESCHEDULED"], shown["audit"]


@test
def what_is_wrong_is_refused_in_words_and_nothing_is_written():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve("--role", "api")
        body = {"domain": "shop", "type": "charge"}
        for unique, words in (({}, "unique.key"), ({"key": ""}, "unique.key"), ({"key": "x" * 201}, "unique.key"), ({"key": 5}, "unique.key"),
                              ({"key": "k", "scope": "always"}, "unique.scope"), ({"key": "k", "scope": "0s"}, "unique.scope"),
                              ({"key": "k", "scope": "366d"}, "unique.scope"), ({"key": "k", "scope": 60}, "unique.scope"),
                              ({"key": "k", "on_duplicate": "drop"}, "unique.on_duplicate"), ({"key": "k", "for": "1h"}, "unique.for"), ("k", "unique")):
            problem(pawl.http("POST", "/v1/commands", {**body, "unique": unique}), 400, "invalid-request", words)
            problem(pawl.http("POST", "/v1/commands/batch", {"items": [body, {**body, "unique": unique}]}), 400, "invalid-request", "items[1]")
        problem(pawl.http("POST", "/v1/commands", {"domain": "process:shop", "type": "charge", "unique": {"key": "k"}}), 400, "invalid-request", "reserved")
        problem(pawl.http("POST", "/v1/commands", {**body, "key": ""}), 400, "invalid-request", "key")
        problem(pawl.http("POST", "/v1/commands", {**body, "key": "a", "command_id": str(uuid.uuid4())}), 400, "invalid-request", "key and command_id differ")
        problem(pawl.http("POST", "/v1/processes", {"type": "order", "key": "a", "process_id": str(uuid.uuid4())}), 400, "invalid-request", "key and process_id")
        for flags, words in ((("--unique", "k", "--unique-for", "always"), "unique_for"), (("--unique-for", "1h"), "unique_key"),
                             (("--unique", "k", "--on-duplicate", "drop"), "on_duplicate"), (("--unique", ""), "unique_key")):
            done = pawl.run("send", "shop", "charge", *flags)
            assert done.code == 2 and words in done.stderr, done
        assert db.value("select (select count(*) from pawl.command) + (select count(*) from pawl.unique_key) + (select count(*) from pawl.send_lock)") == "0"


@test
def a_text_in_the_body_is_a_key_as_in_the_header():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve("--role", "api")
        for path, name, body in (("/v1/commands", "command_id", {"domain": "shop", "type": "charge"}), ("/v1/processes", "process_id", {"type": "order"})):
            given = pawl.http("POST", path, {**body, "key": "order-17"})
            assert given.status == 201, given
            again = pawl.http("POST", path, body, headers={"Idempotency-Key": "order-17"})
            assert again.json[name] == given.json[name] and again.headers["idempotency-replayed"] == "true", again
            other = {**body, "domain": "other", "key": "order-17"}
            problem(pawl.http("POST", path, other), 422, "key-reused", 'domain is "other"')
            answer = pawl.http("POST", path + "/batch", {"items": [{**body, "key": "order-17"}, {**body, "key": "order-18"}]})
            if path == "/v1/processes":
                assert answer.status == 201 and answer.json["items"][0][name] == given.json[name] != answer.json["items"][1][name], answer
        assert db.value("select count(*) from pawl.command") == "4"


main()
