#!/usr/bin/env python3
"""process_upgrade - a pod that still runs when a newer program has migrated the database fails no process: it claims nothing more and is not ready."""
from checks import metric, problem
from pawl_test import Database, Pawl, main, test, wait_until
from process_cli import define, show, start, wait_status
from servers import in_threads

WAITING = {"type": "waiting", "domain": "edge", "on_failure": "fail", "steps": [
    {"name": "answer", "wait": {"response": "go"}}, {"name": "last", "set": {"last": 1}}]}
STATUS = "select pawl.process_status(pawl.process_number('%s'))"
NEWER = "insert into pawl.migration (version, name, checksum) select max(version) + 1, 'newer', repeat('0', 64) from pawl.migration"
OLDER = "delete from pawl.migration where name = 'newer'"


def rename(name, arguments, to):
    return f"alter function pawl.{name} ({arguments}) rename to {to}"


def serve_with_waiting(pawl, count):
    pawl.serve()
    define(pawl, WAITING)
    processes = [start(pawl, "waiting") for _ in range(count)]
    for process in processes:
        wait_status(pawl, process, "WAITING_FOR_ASYNC")
    return processes


def requeues(pawl):
    return metric(pawl, "pawl_bus_calls_total", 'call="requeue"')


def signal_sql(process):
    return f"select pawl.signal('{process}', 'go')"


@test
def a_pod_whose_functions_were_replaced_releases_what_it_claims():
    with Database() as db, Pawl(db) as pawl:
        process, other = serve_with_waiting(pawl, 2)
        checksum = db.value("select checksum from pawl.definition")
        # As another program does it that has the same tables: in one transaction, and the process can be claimed from then on.
        db.rows(f"""begin; {rename('process_load', 'bigint[], bigint[], bigint', 'process_load_newer')}; update pawl.definition set checksum = repeat('0', 64);
                    {signal_sql(process)}; commit""")
        wait_until(lambda: pawl.server.said("cannot begin a command: pausing"), what="the pod pauses")
        assert pawl.server.said("functions in the database differ from this pawl's"), pawl.server.last_words()
        # In one query: after its pause the pod claims it again.
        attempts = wait_until(lambda: db.rows(f"select attempt from pawl.ready where id = pawl.process_number('{process}')"), what="it is released")
        assert attempts == ["0"], attempts
        # The functions are those of the program again: it goes on, without an operator.
        db.rows(f"""begin; {rename('process_load_newer', 'bigint[], bigint[], bigint', 'process_load')}; update pawl.definition set checksum = '{checksum}';
                    {signal_sql(other)}; commit""")
        for each in (process, other):
            assert wait_status(pawl, each, "COMPLETED", "WAITING_FOR_TSQ", "FAILED")["status"] == "COMPLETED"


@test
def an_error_of_the_same_schema_is_still_a_failure_of_the_process():
    with Database() as db, Pawl(db) as pawl:
        process, = serve_with_waiting(pawl, 1)
        db.rows(f"begin; {rename('process_load', 'bigint[], bigint[], bigint', 'process_load_gone')}; {signal_sql(process)}; commit")
        wait_until(lambda: db.value(STATUS % process) == "WAITING_FOR_TSQ", what="it needs an operator")


@test
def a_pod_whose_schema_is_newer_is_not_ready_and_claims_nothing():
    with Database() as db, Pawl(db) as pawl:
        process, = serve_with_waiting(pawl, 1)
        db.rows(NEWER)
        # It finds out by itself, also where readiness is not polled.
        wait_until(lambda: pawl.server.said("the schema is newer than this program: it claims nothing more"), what="it is logged")
        # A check that takes too long on a busy machine answers 503 as well, with another reason.
        wait_until(lambda: b"its schema is newer than this program" in pawl.http("GET", "/health/ready").body, what="the pod says why it is not ready")
        assert pawl.http("GET", "/health/ready").status == 503
        wait_until(lambda: db.value("select count(*) from pawl.task where until > now()") == "0", what="its periodic tasks are free for a newer pod")
        # Nothing is claimed from here on, also not what could still be run. Only the worker requeues now: it claims between two of these calls.
        db.rows(signal_sql(process))
        calls = requeues(pawl)
        wait_until(lambda: requeues(pawl) >= calls + 2, what="the worker has requeued, and passed over a claim")
        assert db.value(STATUS % process) == "PENDING", db.value(STATUS % process)
        db.rows(OLDER)
        wait_until(lambda: pawl.http("GET", "/health/ready").status == 200, what="the pod is ready again")
        assert wait_status(pawl, process, "COMPLETED", "WAITING_FOR_TSQ", "FAILED")["status"] == "COMPLETED"
        assert show(pawl, process)["state"] == {"last": 1}


@test
def a_pod_whose_schema_is_newer_refuses_claims_over_http():
    """Its clients should ask another pod, also those that wait for work already."""
    paths, body = ("/v1/domains/mail/claim", "/v1/process-domains/shop/claim"), {"types": ["t"], "limit": 1, "wait_s": 60}
    with Database() as db, Pawl(db) as pawl:
        pawl.serve("--role", "api")
        waits = in_threads(4, lambda i: pawl.http("POST", paths[i % 2], body))
        wait_until(lambda: metric(pawl, "pawl_http_connections") > 4, what="all of them wait")
        db.rows(NEWER)
        wait_until(lambda: b"its schema is newer than this program" in pawl.http("GET", "/health/ready").body, what="the pod knows")
        answers = waits()
        db.rows("select pawl.send('mail', 't'); select pawl.start('t', p_domain => 'shop')")
        for answer in answers + [pawl.http("POST", path, body) for path in paths]:
            problem(answer, 503, "database-unavailable", "newer than this program")
            assert int(answer.headers["retry-after"]) > 0, answer.headers
        assert db.value("select count(*) from pawl.lease") == "0"
        db.rows(OLDER)
        wait_until(lambda: pawl.http("GET", "/health/ready").status == 200, what="the pod is ready again")
        for path in paths:
            assert len(pawl.http("POST", path, body).json["items"]) == 1


@test
def a_pod_that_cannot_read_a_definition_gives_the_process_back():
    """A newer program has stored a kind of step that this one does not know."""
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        define(pawl, {"type": "newer", "domain": "edge", "steps": [{"name": "one", "set": {"one": 1}}]})
        db.rows("""update pawl.process_definition set source = replace(source, '"set"', '"bake"')""")
        processes = [start(pawl, "newer") for _ in range(2)]

        def released():
            events = [event for process in processes for event in show(pawl, process)["audit"] if event["event"] == "RETRY_SCHEDULED"]
            return len(events) >= 2 and events

        reasons = {event["details"]["reason"] for event in wait_until(released, what="both are given back")}
        assert reasons and all(reason.startswith("left to a newer pawl: definition:1:") for reason in reasons), reasons
        assert [show(pawl, process)["status"] for process in processes] == ["PENDING"] * 2
        assert sum("this one cannot read it" in line for line in pawl.server.stderr) == 1, pawl.server.stderr
        db.rows("""update pawl.process_definition set source = replace(source, '"bake"', '"set"')""")  # the newer pod
        assert [wait_status(pawl, process, "COMPLETED")["state"] for process in processes] == [{"one": 1}] * 2


main()
