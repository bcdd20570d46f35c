#!/usr/bin/env python3
"""process_rights - what roles may do to processes: cancel them with compensation, read no state or secret without the lease."""
import json

from pawl_test import Database, Pawl, main, test
from process_cli import define, show, start, wait_status
from servers import Cluster

UNDONE = {"type": "undone", "domain": "edge", "steps": [
    {"name": "take", "exec": "true", "compensate": {"exec": "true"}}, {"name": "answer", "wait": {"response": "go"}}]}


def refusal(db, sql):
    """The SQLSTATE with which a statement fails; "none": it does not."""
    db.rows(f"""create or replace function public.refusal () returns text language plpgsql as $f$
                begin {sql}; return 'none'; exception when others then return sqlstate; end $f$""")
    return db.value("select public.refusal()")


def attempt(db, role, sql):
    """What the call says as this role; "none": it is allowed."""
    return refusal(db, f"set local role {role}; perform {sql}")


@test
def who_may_cancel_a_process_may_have_it_compensated():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        define(pawl, UNDONE)
        for role in ("pawl_sender", "pawl_app"):
            process = start(pawl, "undone")
            wait_status(pawl, process, "WAITING_FOR_ASYNC")
            assert db.rows(f"set role {role}; select verdict from pawl.process_compensate(array['{process}']::uuid[])") == ["CANCELING"]
            assert wait_status(pawl, process, "COMPENSATED", "CANCELED", "FAILED")["status"] == "COMPENSATED"
        assert attempt(db, "pawl_worker", f"pawl.process_compensate(array['{process}']::uuid[])") == "42501"


@test
def only_the_holder_of_its_lease_loads_a_process():
    claim = "pawl.claim(pawl.domain_find('process:edge'), 1, 60000, array_fill(0::bigint, array[10]), null, 'w')"
    with Database() as db:
        db.rows("select pawl.start('t', '{\"card\": 4711}', p_domain => 'edge') from generate_series(1, 2)")
        ids = db.rows("select id from pawl.process order by id")
        loaded = "set role {}; select l.id, l.state, l.secret is not null from pawl.process_load(array[{}], array[{}]::bigint[], 0) l"
        for role in ("pawl_app", "pawl_worker", "pawl_admin"):
            assert db.rows(loaded.format(role, ids[0], "1")) == []
            assert db.rows(loaded.format(role, ids[0], "null")) == []
        tokens = [db.value(f"set role pawl_worker; select token from {claim}") for _ in ids]  # one claim has one token
        assert db.rows(loaded.format("pawl_worker", ids[0], tokens[0])) == [ids[0] + '|{"card": 4711}|t']
        # The token of another one's lease is none of its own.
        both = db.rows(loaded.format("pawl_worker", ",".join(ids), ",".join([tokens[0], tokens[0]])))
        assert both == [ids[0] + '|{"card": 4711}|t'], (both, ids, tokens)
        assert refusal(db, f"perform pawl.process_load(array[{ids[0]}], null, 0)") == "QP001"


@test
def a_pod_of_an_admin_runs_processes_of_files_and_of_code():
    """Its login owns nothing: it is a member of pawl_admin."""
    with Cluster() as cluster:
        with Pawl(cluster.url()) as owner:
            assert owner.run("migrate").code == 0
        cluster.rows("create role pod login in role pawl_admin")
        with Pawl(cluster.url(user="pod")) as pawl:
            pawl.serve()
            define(pawl, {**UNDONE, "steps": UNDONE["steps"][:1]})
            assert wait_status(pawl, start(pawl, "undone"), "COMPLETED", "WAITING_FOR_TSQ")["status"] == "COMPLETED"
            process = start(pawl, "coded")
            claimed = pawl.http("POST", "/v1/process-domains/edge/claim", {"types": ["coded"], "limit": 1, "wait_s": 20}).json["items"][0]
            answer = pawl.http("POST", "/v1/process-domains/edge/report", {"items": [
                {"process_id": process, "lease": claimed["lease"], "record": {"step": "a", "result": 1}, "end": {"outcome": "complete"}}]})
            assert answer.status == 200 and answer.json["items"][0]["verdict"] == "written", answer
            assert show(pawl, process)["status"] == "COMPLETED"


main()
