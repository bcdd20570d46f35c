#!/usr/bin/env python3
"""reply_queue - reply queues over HTTP and in the command line: list, read, acknowledge."""
import json

from bus_commands import send, work
from checks import problem
from pawl_test import Database, Pawl, main, test, wait_until
from servers import Session, in_threads

READERS = 8
REPLIES = 200


def answered(pawl, count, *flags):
    """Commands whose replies are in the queue "answers"."""
    ids = [send(pawl, "shop", "charge", {"order": n}, "--reply-to", "answers", *flags) for n in range(count)]
    work(pawl, "shop", "--noop")
    return ids


def read(pawl, limit=10, queue="answers", **body):
    answer = pawl.http("POST", f"/v1/reply-queues/{queue}/read", {"limit": limit, **body})
    assert answer.status == 200, answer.body
    return answer.json["items"]


def ack(pawl, items, queue="answers", headers=None):
    answer = pawl.http("POST", f"/v1/reply-queues/{queue}/ack",
                       {"items": [{"msg_id": one["msg_id"], "read_count": one["read_count"]} for one in items]}, headers=headers)
    assert answer.status == 200, answer.body
    return [one["verdict"] for one in answer.json["items"]]


@test
def a_reply_is_acknowledged_once_by_its_last_read():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve("--role", "api")
        ids = answered(pawl, 3)
        queues = pawl.http("GET", "/v1/reply-queues").json
        assert [(one["queue"], one["messages"]) for one in queues["items"]] == [("answers", 3)] and queues["next_cursor"] is None, queues
        first = read(pawl, 2, visible_s=1)
        assert sorted(one["message"]["command_id"] for one in first) == sorted(ids)[:2] or len(first) == 2
        assert all(one["read_count"] == 1 and one["message"]["status"] == "COMPLETED" for one in first), first
        again = wait_until(lambda: [one for one in read(pawl, 10) if one["read_count"] == 2], what="it is visible again")
        old = next(one for one in first if one["msg_id"] == again[0]["msg_id"])
        assert ack(pawl, [old]) == ["lost"]
        key = {"Idempotency-Key": "ack-1"}
        assert ack(pawl, [again[0]], headers=key) == ["acknowledged"]
        assert ack(pawl, [again[0]], headers=key) == ["acknowledged"]  # the response to the first
        assert ack(pawl, [again[0]]) == ["gone"]
        assert int(db.value("select count(*) from pgmq.q_answers")) == 2
        with Session(db.url) as session:
            session.do("begin")
            session.do("select * from pgmq.q_answers for update")
            rest = [{"msg_id": int(row), "read_count": 1} for row in db.rows("select msg_id from pgmq.q_answers")]
            assert ack(pawl, rest) == ["busy"] * 2
            session.do("rollback")


@test
def readers_beside_each_other_get_each_reply_once():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve("--role", "api")
        db.rows("select count(*) from pawl.send('shop', array['t'], array['1']::jsonb[], p_reply_to => array['answers'])")
        db.rows(f"select pgmq.send('answers', jsonb_build_object('command_id', n)) from generate_series(1, {REPLIES}) n")

        def reader(_):
            seen = []
            while items := read(pawl, 7):
                assert ack(pawl, items) == ["acknowledged"] * len(items)
                seen += [one["message"]["command_id"] for one in items]
            return seen

        seen = sum(in_threads(READERS, reader)(), [])
        assert sorted(seen) == list(range(1, REPLIES + 1)), len(seen)
        assert read(pawl) == []


@test
def what_is_no_reply_queue_is_not_read():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve("--role", "api")
        answered(pawl, 1)
        db.rows("select pgmq.create('mine'); select pgmq.send('mine', '1')")
        reader = pawl.run("key", "create", "reader", "--scopes", "read", "--json").json["token"]
        path = "/v1/reply-queues/{}/{}"
        for queue in ("mine", "nothing", "ANSWERS", "q_answers", "a%3Bb", "x" * 200, "%F0%9F%98%80"):
            problem(pawl.http("POST", path.format(queue, "read"), {}), 404)
            problem(pawl.http("POST", path.format(queue, "ack"), {"items": [{"msg_id": 1, "read_count": 1}]}), 404)
        for body in ({"limit": 0}, {"limit": 1001}, {"limit": "5"}, {"visible_s": 0}, {"visible_s": 86401}, {"wait": 1}, []):
            problem(pawl.http("POST", path.format("answers", "read"), body), 400)
        for body in ({}, {"items": []}, {"items": [{"msg_id": 1}]}, {"items": [{"msg_id": 0, "read_count": 1}]},
                     {"items": [{"msg_id": 1, "read_count": 2**31}]}, {"items": [{"msg_id": "1", "read_count": 1}]}):
            problem(pawl.http("POST", path.format("answers", "ack"), body), 400)
        problem(pawl.http("POST", path.format("answers", "read"), {}, headers={"Idempotency-Key": "1"}), 400)
        problem(pawl.http("POST", path.format("answers", "read"), {}, token=reader), 403)
        assert pawl.http("GET", "/v1/reply-queues", token=reader).status == 200
        problem(pawl.http("GET", "/v1/reply-queues?limit=0"), 400)
        assert db.value("select concat_ws(' ', (select max(read_ct) from pgmq.q_answers), (select max(read_ct) from pgmq.q_mine))") == "0 0"
        assert read(pawl)[0]["read_count"] == 1  # without a body field it is one


@test
def the_command_line_reads_and_acknowledges():
    with Database() as db, Pawl(db) as pawl:
        answered(pawl, 2)
        listed = pawl.run("reply", "list", "--json").json
        assert [(one["queue"], one["messages"]) for one in listed] == [("answers", 2)], listed
        one = pawl.run("reply", "read", "answers", "--limit", "1", "--visible", "1h", "--json").json[0]
        number = str(one["msg_id"])
        assert one["read_count"] == 1 and one["message"]["status"] == "COMPLETED", one
        done = pawl.run("reply", "ack", "answers", number, "2")
        assert done.code == 1 and done.stdout == f"{number} lost\n" and "read again" in done.stderr, done
        done = pawl.run("reply", "ack", "answers", number, "1")
        assert done.code == 0 and done.stdout == f"{number} acknowledged\n", done
        done = pawl.run("reply", "ack", "answers", number, "1", "--json")
        assert done.code == 1 and json.loads(done.stdout)["verdict"] == "gone", done
        assert "COMPLETED" in pawl.run("reply", "read", "answers").stdout
        for arguments, code in ((("read", "nothing"), 1), (("read", "answers", "--visible", "10ms"), 2), (("ack", "answers", "0", "1"), 2)):
            assert pawl.run("reply", *arguments).code == code, arguments


main()
