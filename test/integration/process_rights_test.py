#!/usr/bin/env python3
"""process_rights - what roles may do to processes: cancel them with compensation, read no state or secret without the lease, store valid definitions."""
import json
import os
import re

from pawl_test import Database, Pawl, main, setting, test
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


def stored(db, source, type_="t"):
    """How pawl.process_define decides about a file."""
    return refusal(db, f"perform pawl.process_define('d', '{type_}', $pawl${json.dumps(source)}$pawl$, null, null, 'me')")


@test
def a_definition_that_sql_stores_has_the_shape_of_one():
    def file(*steps, **fields):
        return {"type": "t", "domain": "d", "steps": list(steps), **fields}

    step, each = {"name": "a", "set": {"a": 1}}, {"name": "a", "each": "{{state.list}}"}
    wrong = [{}, {"steps": 5}, file(steps=5), file(), file(step, type="other"), file(step, domain="other"), file(5), file({"set": {}}),
             file({"name": 5, "set": {}}), file({"name": "a b", "set": {}}), file({"name": "end", "set": {}}), file({"name": "a"}),
             file({"name": "a", "set": {}, "exec": "true"}), file(step, step), file(each), file({**each, "steps": [step]}),
             file({**each, "steps": {}}), file({"name": "a", "parallel": {}}), file({"name": "a", "parallel": [[step]]}),
             file({"name": "b", "parallel": {"left": [step], "right": [step]}}), file(*({"name": f"n{i}", "set": {}} for i in range(1001)))]
    nested = {"name": "a", "set": {"a": 1}}
    for i in range(8):
        nested = {"name": f"n{i}", "parallel": {"one": [nested]}}
    with Database() as db:
        for source in wrong + [file(nested)]:
            assert stored(db, source) == "QP001", source
        assert stored(db, file(nested["parallel"]["one"][0])) == "none"
        assert db.rows("select distinct source::jsonb -> 'steps' -> 0 ->> 'name' from pawl.process_definition") == ["n6"]


@test
def sql_takes_every_definition_of_the_manual():
    """All kinds of steps are in these files, which the whole check takes."""
    with open(os.path.join(setting("PAWL_SOURCE"), "docs/definitions.md"), encoding="utf-8") as file:
        files = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", file.read(), re.S)]
    with open(os.path.join(setting("PAWL_SOURCE"), "examples/order-saga/order.json"), encoding="utf-8") as file:
        files.append(json.load(file))
    kinds = set()
    with Database() as db, Pawl(db) as pawl:
        for source in files:
            assert pawl.run("process", "define", "-", "--check", stdin=json.dumps(source)).code == 0, source
            assert stored(db, {**source, "domain": "d"}, source["type"]) == "none", source
            kinds |= {kind for kind in db.value("select pawl.step_kinds()").strip("{}").split(",") if f'"{kind}":' in json.dumps(source)}
        assert len(kinds) == 13, kinds


main()
