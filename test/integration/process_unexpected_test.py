#!/usr/bin/env python3
"""process_unexpected - a misspelled name of a response or of a domain is said, and a repeat gets the bytes of the first answer."""
import time

from pawl_test import Database, Pawl, main, test
from process_cli import cli, define, show, start, wait_status
from servers import Session

ASKED = {"type": "asked", "domain": "edge", "steps": [
    {"name": "list", "each": "{{state.items}}", "steps": [{"name": "seen", "wait": {"response": "seen"}}]},
    {"name": "approval", "wait": {"response": "approval"}}, {"name": "votes", "wait": {"response": "vote", "count": 2}}]}
NONE = {"type": "none", "domain": "edge", "steps": [{"name": "rest", "sleep": "1h"}]}
ANY = {"type": "any", "domain": "edge", "steps": [{"name": "until", "wait": {"until": "state.a and state.b"}}]}


def signal(pawl, process, name, key, body=None):
    return pawl.http("POST", f"/v1/processes/{process}/signals/{name}", body or {}, headers={"Idempotency-Key": key})


def waiting(pawl, type_, state=None):
    process = start(pawl, type_, state)
    wait_status(pawl, process, "WAITING_FOR_ASYNC", "WAITING_FOR_RETRY")
    return process


def said(pawl, process, name, key, status, near=None, repeats=True):
    """The verdict of a response in header and body; a repeat has the same bytes."""
    answer = signal(pawl, process, name, key)
    assert answer.status == 201 and answer.headers["pawl-status"] == status, answer
    wanted = {"process_id": process, "name": name, "key": key, "status": status}
    assert answer.json == {**wanted, "did_you_mean": near} if near else answer.json == wanted, answer
    again = signal(pawl, process, name, key)
    assert (again.status, again.body) == (201, answer.body), (answer, again)
    assert again.headers["pawl-status"] == "REPEATED" and again.headers["idempotency-replayed"] == "true", again
    return answer


@test
def a_domain_whose_first_starts_were_concurrent_takes_signals():
    """Each of them has made a row of the domain's name."""
    with Database() as db, Session(db.url) as first, Session(db.url) as second:
        for session in (first, second):
            session.do("begin")
            session.do("select pawl.start('order', p_domain => 'edge')")
        first.do("commit")
        second.do("commit")
        assert db.value("select count(*) from pawl.domain_name where name = 'process:edge'") == "2"
        assert db.rows("select pawl.signal(c.command_id, 'answer', '{}') from pawl.command c") == ["STORED", "STORED"]


@test
def a_response_that_no_wait_takes_is_stored_and_said():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        for definition in (ASKED, NONE, ANY):
            define(pawl, definition)
        process = waiting(pawl, "asked", {"items": []})
        said(pawl, process, "aproval", "k1", "STORED_UNEXPECTED", "approval")
        said(pawl, process, "paid", "k1", "STORED_UNEXPECTED")
        # Names that a later wait takes, or one inside of an each, are expected.
        said(pawl, process, "vote", "k1", "STORED")
        said(pawl, process, "seen", "k1", "STORED")
        said(pawl, process, "approval", "k1", "RESUMED")
        wait_status(pawl, process, "WAITING_FOR_ASYNC")
        said(pawl, process, "vote", "k2", "RESUMED")
        wait_status(pawl, process, "COMPLETED")
        said(pawl, process, "aproval", "k2", "LATE")
        # What was answered stays: not what would be answered now.
        assert signal(pawl, process, "aproval", "k1").json["status"] == "STORED_UNEXPECTED"
        said(pawl, waiting(pawl, "none"), "any", "k", "STORED_UNEXPECTED")
        said(pawl, waiting(pawl, "any"), "c", "k", "RESUMED")
        said(pawl, start(pawl, "coded"), "whatever", "k", "STORED")


@test
def a_repeat_is_answered_the_same_after_a_move():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        define(pawl, ASKED)
        process = waiting(pawl, "asked", {"items": []})
        first = said(pawl, process, "aproval", "k", "STORED_UNEXPECTED", "approval")
        define(pawl, {**ASKED, "steps": ASKED["steps"] + [{"name": "more", "wait": {"response": "aproval"}}]})
        cli(pawl, "move", process, "--to", "2")
        assert signal(pawl, process, "aproval", "k").body == first.body
        said(pawl, process, "aproval", "k2", "STORED")


@test
def a_repeat_of_a_response_of_an_earlier_version_has_no_status():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve("--role", "api")
        process = start(pawl, "coded")
        said(pawl, process, "go", "k", "STORED")
        db.rows("update pawl.process_response set verdict = null")
        again = signal(pawl, process, "go", "k")
        assert again.json == {"process_id": process, "name": "go", "key": "k"} and again.headers["pawl-status"] == "REPEATED", again


@test
def sql_and_the_command_line_say_it_too():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        define(pawl, ASKED)
        define(pawl, NONE)
        process, none = waiting(pawl, "asked", {"items": []}), waiting(pawl, "none")
        assert db.rows(f"select pawl.signal('{process}', 'aproval', p_key => 'k') from generate_series(1, 2)") == ["STORED_UNEXPECTED", "REPEATED"]
        many = f"array['{process}', '{process}']::uuid[], '{{vot,vote}}', array['1', '2']::jsonb[], '{{k,k}}'"
        assert db.rows(f"select verdict from pawl.process_signal({many}) order by ord") == ["STORED_UNEXPECTED", "STORED"]
        done = pawl.run("process", "signal", process, "apoval")
        assert done.code == 0 and done.stdout == f"{process} STORED_UNEXPECTED\n", done
        assert 'no wait of its definition takes "apoval", did you mean "approval"?' in done.stderr and "the state" not in done.stderr, done
        done = pawl.run("process", "signal", process, "paid")
        assert 'no wait of its definition takes "paid"; they take: approval seen vote' in done.stderr, done
        done = pawl.run("process", "signal", process, "fix", '{"fixed": 1}')
        assert done.stderr.endswith("; the state has its payload now\n") and show(pawl, process)["state"]["fixed"] == 1, done
        assert 'no wait of its definition takes "paid": it has none' in pawl.run("process", "signal", none, "paid").stderr
        done = pawl.run("process", "signal", process, "approval")
        assert done.stdout == f"{process} RESUMED\n" and done.stderr == "", done


@test
def a_command_to_a_misspelled_domain_is_said():
    with Database() as db, Pawl(db) as pawl:
        done = pawl.run("send", "shop", "charge")
        assert done.code == 0 and done.stderr == "", "there is no other one that could be meant"
        assert pawl.run("send", "shop", "charge").stderr == ""
        done = pawl.run("send", "shp", "charge")
        assert done.code == 0 and done.stderr == 'note: nothing was sent to domain "shp" before, did you mean "shop"?\n', done
        assert pawl.run("send", "shp", "charge").stderr == "", "it is known from now on"
        done = pawl.run("send", "shopp", "charge", "--lines", stdin='{"n": 1}\n')
        assert done.stdout == "1 sent\n" and 'did you mean "shop"?' in done.stderr, done
        assert db.value("select count(*) from pawl.command") == "5"


@test
def a_misspelled_domain_is_said_where_it_finds_nothing():
    with Database() as db, Pawl(db) as pawl:
        assert pawl.run("send", "shop", "charge").code == 0
        define(pawl, {"type": "trip", "domain": "travel", "steps": [{"name": "a", "wait": {"response": "go"}}]})
        start(pawl, "trip", domain="travel")
        note = 'note: nothing was sent to domain "%s" before, did you mean "%s"?\n'
        for arguments in (["work", "shpo", "--noop", "--drain"], ["command", "list", "--domain", "shpo"], ["tsq", "list", "--domain", "shpo"],
                          ["policy", "set", "shpo", "1s"]):
            assert pawl.run(*arguments).stderr.startswith(note % ("shpo", "shop")), arguments
        for arguments in (["process", "list"], ["process", "cancel", "--all", "--yes"]):
            done = pawl.run(*arguments, "--domain", "travle")
            assert done.code == 0 and done.stderr.startswith(note % ("travle", "travel")), done
        assert pawl.run("process", "list", "--domain", "travel").stderr == ""


def note(pawl, path, body, **headers):
    """The header of a 201 that says what may be wrong with a name; None: nothing is."""
    answer = pawl.http("POST", path, body, headers=headers)
    assert answer.status == 201, answer
    return answer.headers.get("pawl-note")


@test
def a_misspelled_name_is_said_over_http_by_each_route_that_queues():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        send = {"domain": "shop", "type": "charge"}
        first = pawl.http("POST", "/v1/commands", send, headers={"Idempotency-Key": "a"})
        assert first.headers["pawl-note"] == 'nothing was sent to domain "shop" before', first
        again = pawl.http("POST", "/v1/commands", send, headers={"Idempotency-Key": "a"})
        assert again.body == first.body and again.headers.get("pawl-note") is None, "the first has made the domain known"
        assert note(pawl, "/v1/commands", {**send, "domain": "shp"}) == 'nothing was sent to domain "shp" before, did you mean "shop"?'
        assert note(pawl, "/v1/commands", {**send, "domain": "shp"}) is None
        items = [send, {**send, "domain": "shopp"}, {**send, "domain": "shoop"}, {**send, "domain": "shopp"}]
        assert note(pawl, "/v1/commands/batch", {"items": items}).split("; ") == [
            f'nothing was sent to domain "{name}" before, did you mean "shop"?' for name in ("shopp", "shoop")]
        assert note(pawl, "/v1/commands/batch", {"items": items}) is None
        none = 'type "odrer" has no definition in domain "shop": a program must run it'
        start = {"domain": "shop", "type": "odrer"}
        assert note(pawl, "/v1/processes", start) == none
        define(pawl, {"type": "order", "domain": "shop", "steps": [{"name": "a", "wait": {"response": "go"}}]})
        none = 'type "odrer" has no definition in domain "shop", which defines "order": a program must run it'
        keyed = [pawl.http("POST", "/v1/processes", start, headers={"Idempotency-Key": "b"}) for _ in range(2)]
        assert [answer.headers.get("pawl-note") for answer in keyed] == [none, none] and keyed[0].body == keyed[1].body, keyed
        assert note(pawl, "/v1/processes", {**start, "type": "order"}) is None
        assert note(pawl, "/v1/processes/batch", {"items": [{**start, "type": "order"}, start, start]}) == none
        assert note(pawl, "/v1/processes/batch", {"items": [{**start, "type": "order"}]}) is None
        # What is refused gets no note, and names no one could have are refused as before.
        refused = pawl.http("POST", "/v1/commands", {"domain": "a b", "type": "t"})
        assert refused.status == 400 and "pawl-note" not in refused.headers and refused.json["detail"].startswith("domain must "), refused
        # A program runs the type: no note any more.
        assert pawl.http("POST", "/v1/process-domains/shop/claim", {"types": ["odrer"], "limit": 1}).json["items"]
        assert note(pawl, "/v1/processes", start) is None


@test
def a_note_that_cannot_be_found_does_not_hold_up_the_send():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        db.rows("create function public.slow () returns text language plpgsql as $f$ begin perform pg_sleep(5); return null; end $f$; "
                "alter function pawl.process_type_note(text, text) rename to process_type_note_before; "
                "create function pawl.process_type_note(p_domain text, p_type text) returns text language sql as $f$ select public.slow() $f$")
        began = time.monotonic()
        assert note(pawl, "/v1/processes", {"domain": "shop", "type": "order"}) is None
        assert time.monotonic() - began < 4.5, "a look at the name has half a second"


main()
