#!/usr/bin/env python3
"""openapi - the description is complete, and every operation answers what it describes, no more and no less."""
import re
import uuid

from bus_commands import send, work
from checks import dead_letters_put, problem, stop_clean
from pawl_test import Database, Pawl, main, test, wait_until
from rating_model import CHAT, Model

UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z")
TYPES = {"integer": int, "boolean": bool, "string": str, "object": dict, "array": list, "null": type(None)}


def new_key():
    return str(uuid.uuid4())


def resolve(api, schema):
    while "$ref" in schema:
        found = api
        for part in schema["$ref"].removeprefix("#/").split("/"):
            found = found[part]
        schema = found
    return schema


def is_of(value, kind):
    return isinstance(value, TYPES[kind]) and not (kind == "integer" and isinstance(value, bool))


def differences(api, schema, value, where):
    """What is wrong with a value, in words; members that the description does not have are wrong, too."""
    schema = resolve(api, schema)
    if "oneOf" in schema:
        tries = [list(differences(api, one, value, where)) for one in schema["oneOf"]]
        yield from [] if [] in tries else min(tries, key=len)
        return
    kinds = schema.get("type", [])
    kinds = [kinds] if isinstance(kinds, str) else kinds
    if kinds and not any(is_of(value, kind) for kind in kinds):
        yield f"{where} is {value!r}, not {kinds}"
        return
    if "enum" in schema and value is not None and value not in schema["enum"]:
        yield f"{where} is {value!r}, not one of {schema['enum']}"
    pattern = {"uuid": UUID, "date-time": TIME}.get(schema.get("format"))
    if pattern and value is not None and not pattern.fullmatch(value):
        yield f"{where} is {value!r}, no {schema['format']}"
    if isinstance(value, dict) and "properties" in schema:
        for name in set(schema.get("required", [])) - set(value):
            yield f"{where}.{name} is missing"
        for name, one in value.items():
            if name not in schema["properties"]:
                yield f"{where}.{name} is not described"
            else:
                yield from differences(api, schema["properties"][name], one, f"{where}.{name}")
    if isinstance(value, list) and "items" in schema:
        for number, one in enumerate(value):
            yield from differences(api, schema["items"], one, f"{where}[{number}]")


class Tour:
    """Asks, and compares each answer with the description."""

    def __init__(self, pawl):
        self.pawl = pawl
        self.api = pawl.http("GET", "/openapi.json").json
        self.seen = set()

    def ask(self, method, template, body=None, query="", status=None, headers=None, **places):
        answer = self.pawl.http(method, template.format(**places) + query, body, headers=headers)
        got = self.api["paths"][template][method.lower()]["responses"]
        wanted = status or int(next(iter(got)))
        assert answer.status == wanted, (method, template, answer)
        row = resolve(self.api, got.get(str(wanted)) or got[f"{wanted // 100}XX"])
        kind = answer.headers.get("content-type", "").split(";")[0]
        assert ("content" in row) == (wanted != 204) and (wanted == 204 or kind in row["content"]), (template, kind, row)
        if kind in ("application/json", "application/problem+json"):
            wrong = list(differences(self.api, row["content"][kind]["schema"], answer.json, template))
            assert not wrong, (method, wrong, answer.body)
        if wanted < 400:
            self.seen.add((method.lower(), template))
        return answer


def operations(api):
    return {(method, path): row for path, item in api["paths"].items() for method, row in item.items()}


@test
def the_description_is_complete():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        api = pawl.http("GET", "/openapi.json").json
        rows = operations(api)
        assert len({row["operationId"] for row in rows.values()}) == len(rows)
        assert rows["post", "/v1/commands"]["operationId"] == "sendCommand"
        # A schema is an object: linters and generators refuse the booleans that JSON Schema allows.
        assert all(isinstance(content["schema"], dict) for row in rows.values() if "requestBody" in row
                   for content in row["requestBody"]["content"].values())
        tags = {tag["name"] for tag in api["tags"]}
        for (method, path), row in rows.items():
            status = next(iter(row["responses"]))
            assert status.isdigit() and {"4XX", "5XX"} <= set(row["responses"]), (path, row["responses"])
            assert status == "204" or row["responses"][status]["content"], (method, path)
            assert set(row["tags"]) <= tags and row["description"] and row["summary"], (path, row)
            parameters = [resolve(api, parameter) for parameter in row["parameters"]]
            assert {p["name"] for p in parameters if p["in"] == "path"} == set(re.findall(r"{(\w+)}", path)), path
            for parameter in parameters:
                assert parameter["description"] and parameter["schema"]["type"], (path, parameter)
                if parameter["name"] in ("limit",):
                    assert parameter["schema"]["type"] == "integer" and parameter["schema"]["default"], parameter
            keyed = any(parameter["name"] == "Idempotency-Key" for parameter in parameters)
            assert keyed == (method == "post" and not path.endswith(("/claim", "/webhook", "/read", "/v1/keys"))), path
            if "requestBody" in row:
                filled = re.sub(r"{(\w+)}", lambda part: "1" if "dead-letters" in path else new_key(), path)
                got = pawl.http(method.upper(), filled, headers={"Idempotency-Key": new_key()} if keyed else None)
                assert (got.status == 400) == row["requestBody"]["required"], (path, got)
        batch = rows["post", "/v1/commands/batch"]["requestBody"]["content"]["application/json"]["schema"]["properties"]
        last = batch["on_complete"]
        assert (last["type"], last["required"], set(last["properties"])) == (
            "object", ["domain", "type"], {"domain", "type", "payload"}), last
        settle = rows["post", "/v1/domains/{domain}/settle"]["requestBody"]["content"]["application/json"]["schema"]
        outcome = settle["properties"]["items"]["items"]["properties"]["outcome"]["description"]
        assert all(word in outcome for word in ("fail: IN_TSQ", "reject: FAILED", "retry: PENDING")), outcome
        kinds = api["components"]["schemas"]["Problem"]["properties"]["type"]["enum"]
        assert "/problems/insufficient-funds" in kinds and len(kinds) == len(set(kinds)) > 30, kinds
        stop_clean(pawl.server)


@test
def the_description_is_sent_once_to_a_client_that_keeps_it():
    with Database() as db, Pawl(db) as pawl, Pawl(db) as other:
        pawl.serve()
        other.serve()
        first = pawl.http("GET", "/openapi.json")
        tag = first.headers["etag"]
        assert first.status == 200 and first.headers["cache-control"] == "private, no-cache", first.headers
        for server in (pawl, other):  # pods of one version agree
            again = server.http("GET", "/openapi.json", headers={"If-None-Match": f'"old", {tag}'})
            assert (again.status, again.body, again.headers["etag"]) == (304, b"", tag), again
        changed = pawl.http("GET", "/openapi.json", headers={"If-None-Match": '"old"'})
        assert changed.status == 200 and changed.body == first.body
        problem(pawl.http("GET", "/openapi.json", token=None, headers={"If-None-Match": tag}), 401)
        assert pawl.http("GET", "/openapi.json").json["paths"]["/openapi.json"]["get"]["responses"]["304"]
        stop_clean(pawl.server)
        stop_clean(other.server)


@test
def each_type_of_problem_has_a_page():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        api = pawl.http("GET", "/openapi.json").json
        for kind in api["components"]["schemas"]["Problem"]["properties"]["type"]["enum"]:
            page = pawl.http("GET", kind, token=None)
            assert page.status == 200 and page.headers["content-type"].startswith("text/plain"), (kind, page)
            assert kind.removeprefix("/problems/") in page.body.decode() and page.body.count(b"\n") >= 5, page.body
        got = problem(pawl.http("POST", "/v1/wallets", {}), 400)
        assert pawl.http("GET", got["type"], token=None).status == 200, got
        problem(pawl.http("GET", "/problems/no-such-thing", token=None), 404, part="no-such-thing")
        listed = pawl.run("help", "errors", "--json").json
        assert {"/problems/" + row["type"] for row in listed} == set(
            api["components"]["schemas"]["Problem"]["properties"]["type"]["enum"]), listed
        stop_clean(pawl.server)


def tour_operations(tour, db):
    for path in ("/health/live", "/health/ready", "/metrics", "/openapi.json", "/v1/alerts"):
        tour.ask("GET", path)
    tour.ask("GET", "/problems/{type}", type="conflict")
    one, two = dead_letters_put(db, ["one", "two"])
    tour.ask("GET", "/v1/dead-letters", query="?limit=1")
    tour.ask("GET", "/v1/dead-letters/{id}", id=one)
    tour.ask("POST", "/v1/dead-letters/{id}/retry", id=one)
    tour.ask("DELETE", "/v1/dead-letters/{id}", id=two)
    tour.ask("POST", "/v1/keys", {"name": "eu", "scopes": ["send"], "domains": ["eu.*"]})
    tour.ask("GET", "/v1/keys")
    tour.ask("DELETE", "/v1/keys/{name}", name="eu")
    tour.ask("DELETE", "/v1/keys/{name}", name="eu", status=404)


def tour_commands(tour, pawl):
    command = {"domain": "shop", "type": "charge", "payload": [1], "correlation_id": "c", "reply_to": "answers"}
    sent = tour.ask("POST", "/v1/commands", command).json["command_id"]
    batch = tour.ask("POST", "/v1/commands/batch", {"open": True, "name": "night", "items": [command, command]}).json["batch_id"]
    bad = {"items": [command, {**command, "command_id": sent, "payload": 2}]}
    tour.ask("POST", "/v1/commands/batch", bad)
    tour.ask("GET", "/v1/batches")
    tour.ask("POST", "/v1/commands/bulk", {"action": "cancel", "filter": {}, "dry_run": True})
    bulk = tour.ask("POST", "/v1/processes/bulk", {"action": "cancel", "filter": {"domain": "none"}}).json["operation_id"]
    tour.ask("GET", "/v1/bulk/{id}", id=bulk)
    tour.ask("GET", "/v1/batches/{id}", id=batch)
    tour.ask("POST", "/v1/batches/{id}/seal", id=batch)
    tour.ask("GET", "/v1/commands/{id}", id=sent)
    claimed = tour.ask("POST", "/v1/domains/{domain}/claim", {"limit": 2}, domain="shop").json["items"]
    leases = [{"command_id": item["command_id"], "lease": item["lease"]} for item in claimed]
    tour.ask("GET", "/v1/commands/{id}", id=claimed[0]["command_id"])
    lost = {"command_id": new_key(), "lease": 1}
    tour.ask("POST", "/v1/domains/{domain}/extend", {"lease_s": 60, "items": [*leases, lost]}, domain="shop")
    tour.ask("POST", "/v1/domains/{domain}/progress", {"items": [{**leases[0], "percent": 5}, {**lost, "text": "late"}]}, domain="shop")
    tour.ask("GET", "/v1/commands/{id}", id=claimed[0]["command_id"])
    ends = [{**leases[0], "outcome": "complete", "result": {"n": 1}}, {**leases[1], "outcome": "fail", "error": "no"},
            {**lost, "outcome": "retry"}]
    tour.ask("POST", "/v1/domains/{domain}/settle", {"items": ends}, domain="shop")
    tour.ask("GET", "/v1/commands/{id}", id=claimed[0]["command_id"])
    tour.ask("GET", "/v1/commands", query="?limit=2&domain=shop")
    tour.ask("GET", "/v1/reply-queues")
    reply, = tour.ask("POST", "/v1/reply-queues/{queue}/read", {"visible_s": 60}, queue="answers").json["items"]
    token = {"msg_id": reply["msg_id"], "read_count": reply["read_count"]}
    tour.ask("POST", "/v1/reply-queues/{queue}/ack", {"items": [token, {**token, "msg_id": 9}]}, queue="answers")
    failed = [send(pawl, "yard", "dig") for _ in range(3)]
    work(pawl, "yard", "--exec", "exit 70")
    tour.ask("GET", "/v1/tsq", query="?domain=yard&limit=2")
    for verb, one, body in zip(("retry", "cancel", "complete"), failed, ({}, {"reason": "why"}, {"result": 7})):
        tour.ask("GET", "/v1/commands/{id}", id=one)
        tour.ask("POST", "/v1/tsq/{id}/" + verb, {"operator": "ann", **body}, id=one)
    tour.ask("POST", "/v1/commands/{id}/cancel", {}, id=failed[0])
    tour.ask("GET", "/v1/domains", query="?order=depth&limit=2")
    tour.ask("GET", "/v1/stats", query="?measure=wait&domain=shop")
    tour.ask("GET", "/v1/domains/{domain}", domain="shop")
    tour.ask("POST", "/v1/domains/{domain}/pause", {"types": ["idle"], "reason": "why"}, domain="shop")
    tour.ask("POST", "/v1/domains/{domain}/resume", {"types": ["idle"]}, domain="shop")
    tour.ask("PUT", "/v1/domains/{domain}/limits", {"type": "idle", "running": 5, "rate_per_s": 0.5, "burst": 2}, domain="shop")
    tour.ask("GET", "/v1/domains/{domain}/limits", domain="shop")
    tour.ask("DELETE", "/v1/domains/{domain}/limits", query="?type=idle", domain="shop")
    tour.ask("GET", "/v1/domains/{domain}/retry-policy", domain="shop")
    tour.ask("PUT", "/v1/domains/{domain}/retry-policy", {"delays_s": [1, 2.5], "type": "charge"}, domain="shop")
    tour.ask("DELETE", "/v1/domains/{domain}/retry-policy", query="?type=charge", domain="shop")


def tour_schedules(tour):
    fields = {"domain": "shop", "type": "report", "cron": "@daily", "timezone": "Europe/Berlin", "payload": {"n": 1}}
    tour.ask("POST", "/v1/schedules", {"name": "nightly", **fields})
    tour.ask("PUT", "/v1/schedules/{name}", {"domain": "shop", "type": "tick", "every_s": 1.5, "jitter_s": 0.5}, name="tick")
    tour.ask("GET", "/v1/schedules", query="?limit=1")
    tour.ask("GET", "/v1/schedules/{name}/next", name="tick")
    tour.ask("POST", "/v1/schedules/{name}/run", {"by": "ann"}, name="tick")
    tour.ask("POST", "/v1/schedules/{name}/pause", {"reason": "why"}, name="tick")
    tour.ask("GET", "/v1/schedules/{name}", name="tick")
    tour.ask("POST", "/v1/schedules/{name}/resume", {}, name="tick")
    tour.ask("DELETE", "/v1/schedules/{name}", name="tick")


def tour_processes(tour, db):
    db.rows("create function public.broken(input jsonb, key uuid) returns jsonb language plpgsql as "
            "$$ begin raise exception 'broken' using errcode = 'QU070'; end $$")
    tour.ask("PUT", "/v1/process-definitions",
             {"type": "job", "domain": "yard", "steps": [{"name": "dig", "sql": "public.broken"}]})
    tour.ask("PUT", "/v1/process-definitions",
             {"type": "talk", "domain": "yard", "steps": [{"name": "ask", "wait": {"response": "say", "count": 9}}]})
    tour.ask("GET", "/v1/process-definitions", query="?domain=yard&limit=1")
    jobs = [tour.ask("POST", "/v1/processes", {"type": "job", "domain": "yard"}).json["process_id"] for _ in range(3)]
    talk = tour.ask("POST", "/v1/processes", {"type": "talk", "domain": "yard", "state": {"n": 1}}).json["process_id"]
    tour.ask("POST", "/v1/processes/{id}/signals/{name}", {"a": 1}, id=talk, name="say")
    for status, count in (("WAITING_FOR_TSQ", 3), ("WAITING_FOR_ASYNC", 1)):
        wait_until(lambda: len(tour.ask("GET", "/v1/processes", query=f"?status={status}").json["items"]) == count)
    for one in (jobs[0], talk):
        tour.ask("GET", "/v1/processes/{id}", id=one)
    for verb, one, body in zip(("retry", "cancel", "complete"), jobs, ({}, {"compensate": True}, {"result": 7})):
        tour.ask("POST", "/v1/processes/{id}/" + verb, {"operator": "ann", **body}, id=one)
        tour.ask("GET", "/v1/processes/{id}", id=one)
    tour.ask("PUT", "/v1/process-definitions",
             {"type": "talk", "domain": "yard", "steps": [{"name": "ask", "wait": {"response": "say", "count": 8}}]})
    wait_until(lambda: tour.ask("POST", "/v1/processes/{id}/move", {"version": 2}, id=talk).status == 200)
    tour_activations(tour)


def tour_activations(tour):
    one = tour.ask("POST", "/v1/processes", {"type": "code", "domain": "yard"}).json["process_id"]
    tour.ask("POST", "/v1/processes/batch", {"items": [{"type": "code", "domain": "yard", "process_id": one, "priority": 9},
                                                       {"type": "later", "domain": "yard", "delay_s": 3600}]})
    tour.ask("POST", "/v1/processes/{id}/signals/{name}", {"a": 1}, id=one, name="say")
    domain = "/v1/process-domains/{domain}/"
    item, = tour.ask("POST", domain + "claim", {"types": ["code"], "wait_s": 60}, domain="yard").json["items"]
    name = {"process_id": one, "lease": item["lease"]}
    tour.ask("POST", domain + "extend", {"items": [name]}, domain="yard")
    tour.ask("POST", domain + "progress", {"items": [{**name, "step": "dig", "text": "deep"}]}, domain="yard")
    tour.ask("GET", "/v1/processes/{id}", id=one)
    for parts in ({"record": {"step": "dig", "result": 1}, "patch": {"b": 2}}, {"record": {"step": "no", "error": "broken"}},
                  {"send": {"step": "call", "domain": "yard", "type": "call"}},
                  {"wait": {"step": "ask", "responses": [{"name": "say", "count": 1}]}}, {"end": {"outcome": "complete"}}, {}):
        tour.ask("POST", domain + "report", {"items": [{**name, **parts}]}, domain="yard")


def tour_ledger(tour):
    def post(path, status=None, **body):
        places = {name: body.pop(name) for name in ("owner_", "id_") if name in body}
        body = {"txn_id": new_key(), **body}
        tour.ask("POST", path, body, status=status, owner=places.get("owner_"), txn_id=places.get("id_"))
        return body["txn_id"]

    why = {"metadata": {"why": 1}}
    for owner in ("ann", "bob"):
        tour.ask("POST", "/v1/wallets", {"owner": owner, "floor": -10, **why})
    for _ in range(2):
        tour.ask("POST", "/v1/wallets", {"owner": "cid"})
    post("/v1/wallets/{owner}/topup", owner_="ann", amount=1000)
    spent = post("/v1/wallets/{owner}/spend", owner_="ann", amount=10, **why)
    refused = post("/v1/wallets/{owner}/spend", 409, owner_="ann", amount=5000)
    post("/v1/wallets/{owner}/floor", owner_="bob", floor=-5)
    post("/v1/wallets/{owner}/freeze", owner_="bob")
    post("/v1/wallets/{owner}/unfreeze", owner_="bob")
    paid = post("/v1/transfers", **{"from": "ann", "to": "bob", "amount": 5})
    items = [{"txn_id": new_key(), "from": "ann", "to": "bob", "amount": amount} for amount in (1, 5000)]
    tour.ask("POST", "/v1/transfers/batch", {"items": items})
    multi = post("/v1/transactions", legs=[{"owner": "ann", "amount": -1}, {"owner": "bob", "amount": 1}])
    hold = post("/v1/holds", owner="ann", amount=50, expires_in_s=600, **why)
    held = post("/v1/holds", owner="ann", amount=50)
    taken = post("/v1/holds/{txn_id}/capture", id_=hold, amount=20, to="bob")
    post("/v1/holds/{txn_id}/void", id_=held)
    post("/v1/transactions/{txn_id}/refund", id_=paid, amount=1)
    tour.ask("GET", "/v1/wallets")
    tour.ask("GET", "/v1/holds")
    tour.ask("GET", "/v1/transactions")
    for one in (spent, refused, paid, multi, hold, held, taken):
        tour.ask("GET", "/v1/transactions/{txn_id}", txn_id=one)
    for one in (hold, held):
        tour.ask("GET", "/v1/holds/{txn_id}", txn_id=one)
    for owner in ("ann", "bob", "@system"):
        tour.ask("GET", "/v1/wallets/{owner}", owner=owner)
        tour.ask("GET", "/v1/wallets/{owner}", query="?at=2999-01-01T00:00:00.000000Z", owner=owner)
        tour.ask("GET", "/v1/wallets/{owner}/entries", query="?limit=2", owner=owner)
        tour.ask("GET", "/v1/wallets/{owner}/statement", owner=owner)
        tour.ask("GET", "/v1/wallets/{owner}/statement", query="?format=csv", owner=owner)
        tour.ask("GET", "/v1/owners/{owner}/wallets", owner=owner)
    tour.ask("GET", "/v1/ledger/verify")


def tour_ratings(tour, db):
    model = Model(db, 3)
    model.play(0, 1, 3, 1)
    model.play(0, 1, 2, 2)
    group = "/v1/groups/{chat}/"
    tour.ask("GET", group + "leaderboard", query="?limit=2", chat=CHAT)
    tour.ask("GET", group + "players/{user}/history", query="?limit=1", chat=CHAT, user="@p1")
    tour.ask("GET", group + "matches", chat=CHAT)


@test
def every_operation_answers_what_it_describes():
    webhook = {"PAWL_TELEGRAM_TOKEN": "1:x", "PAWL_TELEGRAM_MODE": "webhook", "PAWL_TELEGRAM_WEBHOOK_SECRET": "s3cret"}
    with Database() as db, Pawl(db, env=webhook) as pawl:
        pawl.serve("--role", "api,worker,monitor")
        tour = Tour(pawl)
        tour.ask("POST", "/telegram/webhook", {"update_id": 1}, headers={"X-Telegram-Bot-Api-Secret-Token": "s3cret"})
        tour.ask("POST", "/telegram/webhook", {"update_id": 1}, status=401)
        tour_operations(tour, db)
        tour_commands(tour, pawl)
        tour_schedules(tour)
        tour_processes(tour, db)
        tour_ledger(tour)
        tour_ratings(tour, db)
        missed = set(operations(tour.api)) - tour.seen
        assert not missed, missed
        stop_clean(pawl.server)


main()
