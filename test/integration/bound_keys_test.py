#!/usr/bin/env python3
"""bound_keys - a key that is bound to domains and owners reaches these and learns of no other, whatever it asks: each route has a row here."""
import json
import re
import uuid

from checks import problem, refused, stop_clean
from pawl_test import Database, Pawl, main, test, wait_until

# The key's own, those of others, and those that nobody has.
OWN, RIVAL, GHOST = "own.shop", "rival.shop", "ghost.shop"
ANN, BOB, NOBODY = "eu/ann", "us/bob", "us/nil"
SCOPES = "read,send,work,process,post,mint,wallets,operate"
new_id = lambda: str(uuid.uuid4())
SERVICE, NOTHING = "service", "nothing"


def named(body=None, query="", status=(200, 201)):
    """A request in which D and O are the domain and the owner, and N is a new id."""
    return ("named", body, query, status)


def by_id(noun, body=None, status=(200, 201)):
    """The id of the path is that of a thing of the test's world."""
    return ("id", noun, body, status)


def listed(field, query=""):
    """A list of rows with this field: all of them its own."""
    return ("listed", field, query)


MOVE = {"txn_id": "N", "amount": 1}
# Each route with the requests that are made of it.
ROUTES = {
    "GET /health/live": NOTHING, "GET /health/ready": NOTHING, "GET /problems/{type}": NOTHING, "GET /openapi.json": NOTHING,
    "GET /v1/batches": SERVICE, "GET /v1/wallets": [listed("owner"), named(query="?owner=O")],
    "GET /v1/holds": [listed("owner"), named(query="?owner=O")], "GET /v1/transactions": SERVICE,
    "POST /v1/commands/bulk": SERVICE, "POST /v1/processes/bulk": SERVICE, "GET /v1/bulk/{id}": SERVICE,
    **{route: SERVICE for route in (
        "GET /v1/schedules", "POST /v1/schedules", "GET /v1/schedules/{name}", "PUT /v1/schedules/{name}", "DELETE /v1/schedules/{name}",
        "GET /v1/schedules/{name}/next", "POST /v1/schedules/{name}/run", "POST /v1/schedules/{name}/pause", "POST /v1/schedules/{name}/resume")},
    "GET /v1/reply-queues": SERVICE,
    "POST /v1/reply-queues/{queue}/read": [named({})],
    "POST /v1/reply-queues/{queue}/ack": [named({"items": [{"msg_id": 1, "read_count": 1}]})],
    "GET /metrics": SERVICE, "GET /v1/alerts": SERVICE, "POST /telegram/webhook": NOTHING, "GET /v1/ledger/verify": SERVICE,
    "GET /v1/keys": SERVICE, "POST /v1/keys": SERVICE, "DELETE /v1/keys/{name}": SERVICE, "PUT /v1/process-definitions": SERVICE,
    "GET /v1/dead-letters": SERVICE, "GET /v1/dead-letters/{id}": SERVICE, "POST /v1/dead-letters/{id}/retry": SERVICE, "DELETE /v1/dead-letters/{id}": SERVICE,
    "GET /v1/groups/{chat}/leaderboard": SERVICE, "GET /v1/groups/{chat}/matches": SERVICE,
    "GET /v1/groups/{chat}/players/{user}/history": SERVICE,
    "POST /v1/commands": [
        named({"domain": "D", "type": "t"}), named({"domain": OWN, "type": "t", "reply_to": "command:D/t"}),
        named({"domain": OWN, "type": "t", "reply_to": "D"}), by_id("open_batch", {"domain": OWN, "type": "t", "batch_id": "ID"})],
    "POST /v1/commands/batch": [
        named({"items": [{"domain": OWN, "type": "t"}, {"domain": "D", "type": "t"}]}),
        named({"items": [{"domain": OWN, "type": "t"}], "on_complete": {"domain": "D", "type": "t"}})],
    "GET /v1/commands": [listed("domain"), named(query="?domain=D")],
    "GET /v1/commands/{id}": [by_id("command")], "POST /v1/commands/{id}/cancel": [by_id("canceled")],
    "GET /v1/batches/{id}": [by_id("batch")], "POST /v1/batches/{id}/seal": [by_id("open_batch")],
    "GET /v1/stats": [named(query="?measure=sent&domain=D")],
    "GET /v1/domains": [listed("domain"), listed("domain", "?order=depth")], "GET /v1/domains/{domain}": [named()],
    "POST /v1/domains/{domain}/claim": [named({"limit": 1})],
    "POST /v1/domains/{domain}/settle": [named({"items": [{"command_id": "N", "lease": 1, "outcome": "complete"}]})],
    "POST /v1/domains/{domain}/extend": [named({"items": [{"command_id": "N", "lease": 1}], "lease_s": 10})],
    "POST /v1/domains/{domain}/progress": [named({"items": [{"command_id": "N", "lease": 1, "percent": 1}]})],
    "GET /v1/domains/{domain}/retry-policy": [named()],
    "POST /v1/domains/{domain}/pause": [named({})], "POST /v1/domains/{domain}/resume": [named({})],
    "GET /v1/domains/{domain}/limits": [named()], "PUT /v1/domains/{domain}/limits": [named({"running": 5})],
    "DELETE /v1/domains/{domain}/limits": [named()],
    "PUT /v1/domains/{domain}/retry-policy": [named({"delays_s": [1]})], "DELETE /v1/domains/{domain}/retry-policy": [named()],
    "GET /v1/tsq": [listed("domain"), named(query="?domain=D")],
    "POST /v1/tsq/{id}/retry": [by_id("stuck_1")], "POST /v1/tsq/{id}/cancel": [by_id("stuck_2")],
    "POST /v1/tsq/{id}/complete": [by_id("stuck_3")],
    "GET /v1/process-definitions": [listed("domain"), named(query="?domain=D")],
    "POST /v1/processes": [named({"type": "t", "domain": "D"})],
    "POST /v1/processes/batch": [named({"items": [{"type": "t", "domain": OWN}, {"type": "t", "domain": "D"}]})],
    "GET /v1/processes": [listed("domain"), named(query="?domain=D")],
    "GET /v1/processes/{id}": [by_id("process")], "POST /v1/processes/{id}/signals/{name}": [by_id("process", {})],
    # These are refused for what they ask, 409, after the process was found.
    "POST /v1/processes/{id}/retry": [by_id("process", status=(409,))],
    "POST /v1/processes/{id}/complete": [by_id("process", status=(409,))],
    "POST /v1/processes/{id}/move": [by_id("process", {"version": 1}, status=(409,))],
    "POST /v1/processes/{id}/cancel": [by_id("process")],
    "POST /v1/process-domains/{domain}/claim": [named({"types": ["t"]})],
    "POST /v1/process-domains/{domain}/report": [
        named({"items": [{"process_id": "N", "lease": 1, "suspend": {"signals": ["x"]}}]}, status=(200, 400)),
        named({"items": [{"process_id": "N", "lease": 1, "send": {"step": "s", "domain": "D", "type": "t"}}]})],
    "POST /v1/process-domains/{domain}/extend": [named({"items": [{"process_id": "N", "lease": 1}]})],
    "POST /v1/process-domains/{domain}/progress": [named({"items": [{"process_id": "N", "lease": 1, "step": "s", "percent": 1}]})],
    "POST /v1/wallets": [named({"owner": "O"})], "GET /v1/wallets/{owner}": [named()], "GET /v1/owners/{owner}/wallets": [named()],
    "GET /v1/wallets/{owner}/entries": [named()], "GET /v1/wallets/{owner}/statement": [named()],
    "POST /v1/wallets/{owner}/topup": [named(MOVE)], "POST /v1/wallets/{owner}/spend": [named(MOVE)],
    "POST /v1/wallets/{owner}/freeze": [named({"txn_id": "N"})], "POST /v1/wallets/{owner}/unfreeze": [named({"txn_id": "N"})],
    "POST /v1/wallets/{owner}/floor": [named({"txn_id": "N", "floor": 0})],
    "POST /v1/transfers": [named({**MOVE, "from": "eu/payer", "to": "O"}), named({**MOVE, "from": "O", "to": "eu/payer"})],
    "POST /v1/transfers/batch": [named({"items": [{**MOVE, "from": "eu/payer", "to": "O"}]})],
    "POST /v1/transactions": [named({"txn_id": "N", "legs": [{"owner": "eu/payer", "amount": -1}, {"owner": "O", "amount": 1}]})],
    "GET /v1/transactions/{txn_id}": [by_id("txn")], "POST /v1/transactions/{txn_id}/refund": [by_id("txn", {"txn_id": "N", "amount": 1})],
    "POST /v1/holds": [named({**MOVE, "owner": "O"})], "GET /v1/holds/{txn_id}": [by_id("hold")],
    "POST /v1/holds/{txn_id}/capture": [
        by_id("hold", {"txn_id": "N", "amount": 1}), named({"txn_id": "N", "amount": 1, "to": "O"}, status=(404,))],
    "POST /v1/holds/{txn_id}/void": [by_id("hold", {"txn_id": "N"})],
}
# Colleagues of the row "named": what is put for D and O; and in the path for what has nothing to do with it.
OTHERS = {"{name}": "n", "{type}": "busy", "{chat}": "-100", "{user}": "7"}


def ok(answer, *statuses):
    assert answer.status in (statuses or (200, 201)), answer
    return answer.json


class World:
    """The same things for one domain and one owner, made with the admin token."""

    def __init__(self, pawl, domain, owner):
        def post(path, body):
            return ok(pawl.http("POST", path, body))
        self.ids = {}
        item = {"domain": domain, "type": "t"}
        for noun in ("command", "canceled"):
            self.ids[noun] = post("/v1/commands", {**item, "reply_to": domain})["command_id"]
        self.ids["batch"] = post("/v1/commands/batch", {"items": [item]})["batch_id"]
        self.ids["open_batch"] = post("/v1/commands/batch", {"items": [item], "open": True})["batch_id"]
        stuck = [post("/v1/commands", {**item, "type": "stuck"})["command_id"] for _ in range(3)]
        for row in post(f"/v1/domains/{domain}/claim", {"limit": 3, "types": ["stuck"]})["items"]:
            post(f"/v1/domains/{domain}/settle", {"items": [{**{k: row[k] for k in ("command_id", "lease")}, "outcome": "fail", "error": "x"}]})
        self.ids |= {f"stuck_{n + 1}": one for n, one in enumerate(stuck)}
        definition = {"type": "defined", "domain": domain, "steps": [{"name": "w", "wait": {"response": "s"}}]}
        ok(pawl.http("PUT", "/v1/process-definitions", definition))
        self.ids["process"] = post("/v1/processes", {"type": "t", "domain": domain})["process_id"]
        post("/v1/wallets", {"owner": owner})
        self.ids["txn"] = post(f"/v1/wallets/{owner.replace('/', '%2F')}/topup", {"txn_id": new_id(), "amount": 100})["txn_id"]
        self.ids["hold"] = post("/v1/holds", {"txn_id": new_id(), "owner": owner, "amount": 10})["txn_id"]


def put(body, domain, owner, one):
    """The body with what stands for letters."""
    text = json.dumps(body)
    for letter, value in (("D", domain), ("O", owner), ("ID", one), ("N", new_id())):
        text = text.replace(f'"{letter}"', f'"{value}"')
    return json.loads(text.replace("command:D/t", f"command:{domain}/t"))


def path_of(route, domain, owner, one):
    path = route.split()[1]
    for name, value in {"{domain}": domain, "{queue}": domain, "{owner}": owner.replace("/", "%2F"), "{id}": one, "{txn_id}": one, **OTHERS}.items():
        path = path.replace(name, value)
    return path


def blurred(answer, *values):
    """All that a client sees of an answer, without the names that it gave itself, and without ids of requests and times."""
    text = answer.body.decode()
    request = answer.headers["x-request-id"]
    for value in (*values, request):
        text = text.replace(value, "X")
    headers = {name: value for name, value in answer.headers.items() if name not in ("date", "x-request-id", "content-length")}
    return answer.status, headers, text


class Client:
    def __init__(self, pawl, token):
        self.pawl, self.token, self.wrong = pawl, token, []

    def ask(self, route, shape, domain, owner, one):
        body = None if shape[0] == "listed" else put(shape[1] if shape[0] == "named" else shape[2], domain, owner, one)
        query = shape[2].replace("D", domain).replace("=O", "=" + owner.replace("/", "%2F")) if shape[0] in ("named", "listed") else ""
        return self.pawl.http(route.split()[0], path_of(route, domain, owner, one) + query, body, token=self.token)

    def check(self, route, shape, own, rival):
        """Its own is answered; what others have and what nobody has look the same, and neither is reached."""
        one = own.ids[shape[1]] if shape[0] == "id" else new_id()
        mine = self.ask(route, shape, OWN, ANN, one)
        wanted = shape[3] if len(shape) > 3 else (200,)
        if mine.status not in wanted:
            self.wrong.append((route, "own", mine))
        if shape[0] == "listed":
            shown = {row[shape[1]].removeprefix("process:") for row in mine.json["items"]}
            if shown - {"eu/payer"} != {ANN if shape[1] == "owner" else OWN}:
                self.wrong.append((route, shown))
            return
        theirs, ghost = rival.ids[shape[1]] if shape[0] == "id" else one, new_id() if shape[0] == "id" else one
        a, b = (self.ask(route, shape, domain, owner, one) for domain, owner, one in ((RIVAL, BOB, theirs), (GHOST, NOBODY, ghost)))
        if shape[0] == "id" and "{id}" not in route and "{txn_id}" not in route:
            a, b = (self.ask(route, shape, OWN, ANN, one) for one in (theirs, ghost))
        seen, unseen = blurred(a, theirs, RIVAL, BOB), blurred(b, ghost, GHOST, NOBODY)
        if seen != unseen or seen[0] not in (403, 404):
            self.wrong.append((route, shape, a, b))


def key_of(pawl, name="tenant", *flags):
    made = pawl.run("key", "create", name, "--scopes", SCOPES, "--domains", "own.*", "--owners", "eu/*", *flags, "--json")
    assert made.code == 0, made.stderr
    return made.json["token"]


RIVAL_STATE = f"""
select jsonb_build_array(
  (select jsonb_agg(c order by c.id) from pawl.command c where c.domain_id in (select id from pawl.domain_name where name ~ '{RIVAL}')),
  (select jsonb_agg(pawl.command_status(c.id) order by c.id) from pawl.command c where c.domain_id in (select id from pawl.domain_name where name ~ '{RIVAL}')),
  (select jsonb_agg(b.sealed_at order by b.id) from pawl.batch b where b.id in
     (select c.batch_id from pawl.command c where c.domain_id in (select id from pawl.domain_name where name ~ '{RIVAL}'))),
  (select jsonb_agg(x order by x.number) from wallet.entries('{BOB}') x), (select jsonb_agg(p) from pawl.retry_policy p
   where p.domain_id in (select id from pawl.domain_name where name ~ '{RIVAL}')))"""


@test
def a_bound_key_reaches_its_own_and_learns_of_no_other():
    with Database() as db, Pawl(db) as pawl:
        known = {f"{row['method']} {row['path']}" for row in pawl.run("help", "routes", "--json").json}
        assert known == set(ROUTES), known ^ set(ROUTES)
        pawl.serve()
        token = key_of(pawl)
        ok(pawl.http("POST", "/v1/wallets", {"owner": "eu/payer"}))
        ok(pawl.http("POST", "/v1/wallets/eu%2Fpayer/topup", {"txn_id": new_id(), "amount": 100}))
        own, rival = World(pawl, OWN, ANN), World(pawl, RIVAL, BOB)
        before = db.value(RIVAL_STATE)
        client = Client(pawl, token)
        for route, shapes in ROUTES.items():
            if shapes == NOTHING:
                continue
            if shapes == SERVICE:
                answer = pawl.http(route.split()[0], path_of(route, OWN, ANN, "1"), token=token)
                if answer.status != 403:
                    client.wrong.append((route, answer))
                continue
            for shape in shapes:
                client.check(route, shape, own, rival)
        assert not client.wrong, "\n".join(map(str, client.wrong))
        assert db.value(RIVAL_STATE) == before, "a bound key has changed what belongs to others"
        assert db.value(f"select count(*) from pawl.domain_name where name ~ '{GHOST}'") == "0"
        stop_clean(pawl.server)


@test
def lists_of_a_bound_key_have_all_of_its_own_in_pages():
    """Between the rows of others, in every status; what others add changes no byte of its lists."""
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        token, admin = key_of(pawl), pawl.http
        domains = [OWN, "own.second", "own.third"]
        sent = []
        for n in range(30):
            domain = (*domains, RIVAL)[n % 4]
            made = ok(admin("POST", "/v1/commands", {"domain": domain, "type": "t", **({"delay_s": 60} if n % 3 else {})}))
            ok(admin("POST", "/v1/processes", {"type": "t", "domain": domain}))
            sent += [made["command_id"]] * (domain != RIVAL)

        def all_of(path):
            rows, cursor = [], ""
            while cursor is not None:
                page = ok(admin("GET", f"{path}limit=4{cursor}", token=token))
                rows += page["items"]
                cursor = page["next_cursor"] and f"&cursor={page['next_cursor']}"
            return rows
        for path in ("/v1/commands?type=t&", "/v1/commands?status=PENDING&type=t&"):
            listed = [row["command_id"] for row in all_of(path) if not row["domain"].startswith("process:")]
            assert listed == sent[::-1], (path, listed)
        processes = all_of("/v1/processes?")
        assert len(processes) == 23 and {row["domain"] for row in processes} == set(domains), processes
        paths = ["/v1/commands?limit=3", "/v1/commands?limit=1000", "/v1/tsq", "/v1/processes", "/v1/domains", "/v1/process-definitions"]
        shown = lambda: [re.sub(r'"oldest_s":\d+', "", admin("GET", path, token=token).body.decode()) for path in paths]
        before = shown()
        World(pawl, RIVAL, BOB)
        assert shown() == before
        # A hint about a name would name others.
        answer = admin("POST", "/v1/commands", {"domain": "own.sho", "type": "t"}, token=token)
        assert answer.status == 201 and "pawl-note" not in answer.headers, answer
        assert "pawl-note" in admin("POST", "/v1/commands", {"domain": "rival.sho", "type": "t"}).headers
        many = key_of(pawl, "many", "--reason", "test")
        db.rows("select pawl.domain_id('own.n' || n) from generate_series(1, 100) n")
        problem(admin("GET", "/v1/commands", token=many), 400, part="more than 100 domains")
        assert admin("GET", f"/v1/commands?domain={OWN}", token=many).status == 200
        stop_clean(pawl.server)


@test
def the_other_side_of_a_transfer_and_a_reused_id_say_nothing():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        token, admin = key_of(pawl), pawl.http
        for owner in (ANN, "eu/eve", BOB):
            ok(admin("POST", "/v1/wallets", {"owner": owner}))
            ok(admin("POST", f"/v1/wallets/{owner.replace('/', '%2F')}/topup", {"txn_id": new_id(), "amount": 100}))
        txn = {"txn_id": new_id(), "from": ANN, "to": BOB, "amount": 5}
        ok(admin("POST", "/v1/transfers", txn))
        entries = "/v1/wallets/eu%2Fann/entries"
        for path in (entries, "/v1/wallets/eu%2Fann/statement", "/v1/wallets/eu%2Fann/statement?format=csv"):
            assert BOB in admin("GET", path).body.decode() and BOB not in admin("GET", path, token=token).body.decode(), path
        mine = {"txn_id": txn["txn_id"], "from": ANN, "to": "eu/eve", "amount": 5}
        refusal = admin("POST", "/v1/transfers", mine, token=token)
        assert problem(refusal, 422, "key-reused")["detail"].endswith("for another operation") and "pawl-balance" not in refusal.headers, refusal
        verdict, = ok(admin("POST", "/v1/transfers/batch", {"items": [mine]}, token=token))["items"]
        assert verdict["detail"].endswith("for another operation"), verdict
        # Its own transactions show no balance of @system.
        minted = {"txn_id": new_id(), "amount": 7}
        ok(admin("POST", "/v1/wallets/eu%2Fann/topup", minted, token=token))
        shown = [ok(admin("GET", f"/v1/transactions/{minted['txn_id']}", token=who))["entries"] for who in (token,)]
        assert [[row["owner"] for row in one] for one in shown] == [[ANN]], shown
        problem(admin("GET", "/v1/wallets/@system", token=token), 403)
        legs = [{"owner": "@system", "amount": -5}, {"owner": ANN, "amount": 5}]
        problem(admin("POST", "/v1/transactions", {"txn_id": new_id(), "legs": legs}, token=token), 403, part="legs[0]")
        stop_clean(pawl.server)


@test
def keys_are_made_listed_and_revoked_over_http():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        body = {"name": "shop", "scopes": ["read", "wallet"], "domains": ["a", "b*"], "owners": "eu/*", "expires_in_s": 3600, "reason": "new team"}
        made = ok(pawl.http("POST", "/v1/keys", body), 201)
        assert made["scopes"] == "read,post,wallets" and made["token"].startswith("pawl_"), made
        problem(pawl.http("POST", "/v1/keys", body), 409, part='"shop" exists already')
        problem(pawl.http("POST", "/v1/keys", body, headers={"Idempotency-Key": "k"}), 400, part="Idempotency-Key")
        row, = ok(pawl.http("GET", "/v1/keys"))["items"]
        assert (row["domains"], row["owners"], row["created_by"], row["used_at"]) == ("a,b*", "eu/*", "admin", None), row
        assert ok(pawl.http("GET", "/v1/commands", token=made["token"]))["items"] == []
        used = wait_until(lambda: ok(pawl.http("GET", "/v1/keys"))["items"][0]["used_at"], what="a key was used")
        assert ok(pawl.http("GET", "/v1/commands", token=made["token"])) and ok(pawl.http("GET", "/v1/keys"))["items"][0]["used_at"] == used
        bad = [({"scopes": ["admin"]}, "cannot be bound"), ({"scopes": ["rating"]}, "cannot be bound"), ({"scopes": []}, "scope must be"),
               ({"scopes": [1]}, "scopes must be an array"), ({"scopes": {"a": 1}}, "scopes must be an array"), ({"domains": ["a*b"]}, "domains must be"),
               ({"domains": ["process:a"]}, "domains must be"), ({"domains": ["telegram:*"]}, "domains must be"), ({"domains": ["a b"]}, "domains must be"),
               ({"owners": ["@system"]}, "owners must be"), ({"owners": ["a,b"]}, "owners[0]"), ({"domains": [], "owners": []}, "must have a pattern"),
               ({"domains": ["d"] * 21}, "at most 20"), ({"name": "Shop"}, "name must be"), ({"name": "admin"}, "reserved"), ({"expires_in_s": -1}, "expires_in_s"),
               ({"domains": [""]}, "domains must"), ({"owners": ["a\tb"]}, "owners")]
        for change, words in bad:
            answer = pawl.http("POST", "/v1/keys", {**body, "name": "other", **change})
            assert answer.status == 400, (change, answer)
            problem(answer, 400, part=words)
        boss = ok(pawl.http("POST", "/v1/keys", {"name": "boss", "scopes": "admin"}), 201)["token"]
        assert pawl.http("DELETE", "/v1/keys/shop", token=boss).status == 204
        problem(pawl.http("DELETE", "/v1/keys/shop", token=boss), 404)
        wait_until(lambda: pawl.http("GET", "/v1/commands", token=made["token"]).status == 401, timeout=30, what="revoked")
        events = db.rows("select concat_ws(' ', subject, name, action, operator, reason) from pawl.control_event order by id")
        assert events == ["key shop create admin new team", "key boss create admin", "key shop revoke boss"], events
        assert db.value("select count(*) from pawl.api_key") == "2", "a refused request has made a key"
        rows = pawl.run("key", "list", "--json").json
        assert {row["name"]: row["created_by"] for row in rows} == {"shop": "admin", "boss": "admin"}, rows
        refused(pawl, "key", "create", "x", "--scopes", "admin", "--domains", "a", code=2, words=["cannot be bound"])
        stop_clean(pawl.server)


@test
def each_line_of_the_log_names_the_key():
    with Database() as db, Pawl(db, env={"PAWL_LOG": "debug", "PAWL_LOG_FORMAT": "json"}) as pawl:
        pawl.serve()
        token = key_of(pawl, "eu.team")
        ok(pawl.http("POST", "/v1/commands", {"domain": OWN, "type": "t"}, token=token))
        lines = lambda: [json.loads(line) for line in list(pawl.server.stderr) if '"request answered"' in line and "/v1/commands" in line]
        wait_until(lines, what="the request is logged")
        assert [line["key"] for line in lines()] == ["eu.team"], lines()
        stop_clean(pawl.server)


@test
def a_queue_in_another_case_is_no_queue_of_a_bound_key():
    """PostgreSQL knows queues in lower case: PAY would be the queue of the domain pay."""
    with Database() as db, Pawl(db) as pawl:
        pawl.serve("--role", "api,monitor")
        other = pawl.run("key", "create", "other", "--scopes", "send", "--domains", "PAY", "--json").json["token"]
        owner = pawl.run("key", "create", "owner", "--scopes", "send", "--domains", "pay", "--json").json["token"]
        problem(pawl.http("POST", "/v1/commands", {"domain": "PAY", "type": "t", "reply_to": "PAY"}, token=other), 403, part="lower case")
        assert pawl.http("POST", "/v1/commands", {"domain": "pay", "type": "t", "reply_to": "pay"}, token=owner).status == 201
        for queue in ("PAY", "pay"):
            problem(pawl.http("POST", f"/v1/reply-queues/{queue}/read", {}, token=other), 403)
        assert pawl.http("POST", "/v1/reply-queues/pay/read", {}, token=owner).status == 200
        stop_clean(pawl.server)


main()
