#!/usr/bin/env python3
"""keys - who may call, and what for: made, listed and revoked by the command line, enforced by every pod."""
import base64
import os
import re
import resource
import selectors
import socket
import threading

from checks import dead_letters_put, problem, refused, stop_clean
from pawl_test import Database, Pawl, main, test, wait_until
from servers import Session


def create(pawl, name, *flags):
    """A new key; its token, which is shown only now."""
    done = pawl.run("key", "create", name, *flags)
    assert done.code == 0, done.stderr
    token = done.stdout.strip()
    assert re.fullmatch(r"pawl_[A-Za-z0-9_-]{43}", token), token
    assert name in done.stderr and token not in done.stderr
    return token


@test
def a_key_creates_money_only_with_the_scope_mint():
    key = lambda n: f"00000000-0000-7000-8000-{n:012d}"
    mint = [("/v1/wallets/a/topup", {"amount": 5}), ("/v1/wallets/a/floor", {"floor": -5}),
            ("/v1/transactions", {"legs": [{"owner": "@system", "amount": -5}, {"owner": "a", "amount": 5}]})]
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        till, mint_key = create(pawl, "till", "--scopes", "wallet"), create(pawl, "mint", "--scopes", "wallet,mint")
        assert pawl.http("POST", "/v1/wallets", {"owner": "a"}, token=till).status == 201
        problem(pawl.http("POST", "/v1/wallets", {"owner": "b", "floor": -5}, token=till), 403, "not-allowed", "mint")
        for number, (path, body) in enumerate(mint):
            problem(pawl.http("POST", path, {"txn_id": key(number), **body}, token=till), 403, "not-allowed", "mint")
            answer = pawl.http("POST", path, {"txn_id": key(number), **body}, token=mint_key)
            assert answer.status == 201, (path, answer)
        assert pawl.http("POST", "/v1/wallets", {"owner": "b", "floor": -5}, token=mint_key).status == 201
        assert pawl.http("POST", "/v1/wallets/a/spend", {"txn_id": key(90), "amount": 5}, token=till).status == 201
        assert pawl.http("POST", "/v1/wallets/a/topup", {"txn_id": key(91), "amount": 5}).status == 201, "the admin token"
        for number, word in enumerate(("freeze", "unfreeze")):
            assert pawl.http("POST", f"/v1/wallets/a/{word}", {"txn_id": key(92 + number)}, token=till).status == 201
        stop_clean(pawl.server)


@test
def a_decision_is_recorded_under_the_name_of_its_key():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        night = create(pawl, "night", "--scopes", "command")
        for body, actor in (({"operator": "the owner"}, "night (the owner)"), ({}, "night")):
            sent = pawl.http("POST", "/v1/commands", {"domain": "d", "type": "t"}).json["command_id"]
            assert pawl.http("POST", f"/v1/commands/{sent}/cancel", body, token=night).status == 200
            shown = pawl.http("GET", f"/v1/commands/{sent}").json
            assert shown["audit"][-1]["actor"] == actor, shown
        sent = pawl.http("POST", "/v1/commands", {"domain": "d", "type": "t"}).json["command_id"]
        assert pawl.http("POST", f"/v1/commands/{sent}/cancel", {"operator": "ann"}).status == 200, "the admin's token has no key"
        assert pawl.http("GET", f"/v1/commands/{sent}").json["audit"][-1]["actor"] == "ann"
        refused(pawl, "key", "create", "admin", code=2, words=["admin"])
        stop_clean(pawl.server)


@test
def a_key_opens_what_its_scopes_allow():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        reader, admin = create(pawl, "reader"), create(pawl, "boss", "--scopes", "admin")
        wallet = create(pawl, "till", "--scopes", "wallet")
        letter, = dead_letters_put(db, ["one"])
        assert pawl.http("GET", "/v1/dead-letters", token=reader).status == 200
        assert pawl.http("GET", "/metrics", token=reader).status == 200
        problem(pawl.http("POST", f"/v1/dead-letters/{letter}/retry", token=reader), 403, "not-allowed")
        problem(pawl.http("DELETE", f"/v1/dead-letters/{letter}", token=reader), 403, "not-allowed")
        problem(pawl.http("GET", "/v1/dead-letters", token=wallet), 403, "not-allowed")
        assert db.value("select count(*) from pawl.failed_operations") == "1", "a refused call changed something"
        assert pawl.http("GET", "/v1/dead-letters", token=admin).json["items"][0]["id"] == letter, "who may act may look"
        for body in (None, {}):
            assert pawl.http("POST", f"/v1/dead-letters/{letter}/retry", body, token=admin).status == 200, body
        problem(pawl.http("POST", f"/v1/dead-letters/{letter}/retry", {"why": 1}, token=admin), 400, part="why")
        assert pawl.http("DELETE", f"/v1/dead-letters/{letter}", token=admin).status == 204
        problem(pawl.http("GET", "/v1/alerts", token=reader[:-1] + "x"), 401, "no-valid-token")
        problem(pawl.http("GET", "/v1/alerts", token=None, headers={"Authorization": "Basic " + reader}), 401)
        stop_clean(pawl.server)


READS, MONEY, OPERATES = "read operate admin", "read post mint wallets", "operate admin"
SCOPES = ("read", "send", "work", "process", "post", "mint", "wallets", "operate", "rating", "admin")
COMMANDS = "read send work operate admin"
# Each route with the scopes of which any one opens it. A route without a row fails the test.
OPENS = {
    "GET /health/live": "open", "GET /health/ready": "open", "GET /problems/{type}": "open",
    "GET /metrics": READS, "GET /v1/alerts": READS, "GET /openapi.json": " ".join(SCOPES),
    "GET /v1/batches": COMMANDS, "GET /v1/wallets": MONEY, "GET /v1/holds": MONEY, "GET /v1/transactions": MONEY,
    "GET /v1/domains": COMMANDS, "GET /v1/domains/{domain}": COMMANDS, "GET /v1/dead-letters/{id}": READS,
    "GET /v1/dead-letters": READS, "POST /v1/dead-letters/{id}/retry": OPERATES, "DELETE /v1/dead-letters/{id}": OPERATES,
    "GET /v1/keys": "admin", "POST /v1/keys": "admin", "DELETE /v1/keys/{name}": "admin",
    "POST /v1/commands": "send", "POST /v1/commands/batch": "send",
    "GET /v1/commands": COMMANDS, "GET /v1/commands/{id}": COMMANDS,
    "POST /v1/commands/{id}/cancel": "send operate admin",
    "GET /v1/batches/{id}": COMMANDS, "POST /v1/batches/{id}/seal": "send operate admin",
    "GET /v1/reply-queues": COMMANDS, "POST /v1/reply-queues/{queue}/read": "send", "POST /v1/reply-queues/{queue}/ack": "send",
    "GET /v1/domains": COMMANDS, "GET /v1/domains/{domain}": COMMANDS,
    "POST /v1/domains/{domain}/claim": "work", "POST /v1/domains/{domain}/settle": "work",
    "POST /v1/domains/{domain}/extend": "work", "POST /v1/domains/{domain}/progress": "work",
    "GET /v1/domains/{domain}/retry-policy": COMMANDS,
    "PUT /v1/domains/{domain}/retry-policy": OPERATES, "DELETE /v1/domains/{domain}/retry-policy": OPERATES,
    "POST /v1/domains/{domain}/pause": OPERATES, "POST /v1/domains/{domain}/resume": OPERATES,
    "GET /v1/domains/{domain}/limits": COMMANDS, "PUT /v1/domains/{domain}/limits": OPERATES, "DELETE /v1/domains/{domain}/limits": OPERATES,
    "POST /v1/commands/bulk": OPERATES, "POST /v1/processes/bulk": OPERATES, "GET /v1/bulk/{id}": READS, "GET /v1/stats": READS,
    "GET /v1/tsq": COMMANDS, "POST /v1/tsq/{id}/retry": OPERATES, "POST /v1/tsq/{id}/cancel": OPERATES,
    "POST /v1/tsq/{id}/complete": OPERATES,
    "GET /v1/schedules": READS, "GET /v1/schedules/{name}": READS, "GET /v1/schedules/{name}/next": READS,
    "POST /v1/schedules": "admin", "PUT /v1/schedules/{name}": "admin", "DELETE /v1/schedules/{name}": OPERATES,
    "POST /v1/schedules/{name}/run": OPERATES, "POST /v1/schedules/{name}/pause": OPERATES, "POST /v1/schedules/{name}/resume": OPERATES,
    "GET /v1/process-definitions": "read process admin",
    "PUT /v1/process-definitions": "admin", "POST /v1/processes": "process", "POST /v1/processes/batch": "process",
    "POST /v1/processes/{id}/signals/{name}": "process",
    "GET /v1/processes": "read process admin", "GET /v1/processes/{id}": "read process admin",
    "POST /v1/processes/{id}/retry": OPERATES, "POST /v1/processes/{id}/cancel": "process admin",
    "POST /v1/processes/{id}/complete": OPERATES, "POST /v1/processes/{id}/move": OPERATES,
    "POST /v1/process-domains/{domain}/claim": "process", "POST /v1/process-domains/{domain}/report": "process",
    "POST /v1/process-domains/{domain}/extend": "process", "POST /v1/process-domains/{domain}/progress": "process",
    "POST /telegram/webhook": "open",
    "GET /v1/groups/{chat}/leaderboard": "read rating admin", "GET /v1/groups/{chat}/matches": "read rating admin",
    "GET /v1/groups/{chat}/players/{user}/history": "read rating admin",
    "GET /v1/batches": COMMANDS, "GET /v1/wallets": MONEY, "GET /v1/holds": MONEY, "GET /v1/transactions": MONEY,
    "POST /v1/wallets": "wallets", "GET /v1/wallets/{owner}": MONEY, "GET /v1/owners/{owner}/wallets": MONEY,
    "POST /v1/wallets/{owner}/topup": "mint", "POST /v1/wallets/{owner}/spend": "post",
    "POST /v1/wallets/{owner}/freeze": "wallets", "POST /v1/wallets/{owner}/unfreeze": "wallets",
    "POST /v1/wallets/{owner}/floor": "mint",
    "GET /v1/wallets/{owner}/entries": MONEY, "GET /v1/wallets/{owner}/statement": MONEY,
    "POST /v1/transfers": "post", "POST /v1/transfers/batch": "post",
    "POST /v1/transactions": "post", "GET /v1/transactions/{txn_id}": MONEY,
    "POST /v1/transactions/{txn_id}/refund": "post",
    "POST /v1/holds": "post", "GET /v1/holds/{txn_id}": MONEY, "POST /v1/holds/{txn_id}/capture": "post",
    "POST /v1/holds/{txn_id}/void": "post",
    "GET /v1/ledger/verify": MONEY + " admin",
}
# Decisions about processes need this scope besides one of the above; admin is both.
ALSO = {f"POST /v1/processes/{{id}}/{verb}": "process" for verb in ("retry", "complete", "move")}
CAPTURES = {"{type}": "busy", "{id}": "00000000-0000-7000-8000-000000000001", "{owner}": "a", "{domain}": "d", "{queue}": "q", "{name}": "n",
            "{txn_id}": "00000000-0000-7000-8000-000000000001", "{chat}": "-100", "{user}": "7"}


@test
def each_route_is_opened_by_its_scopes_and_by_no_other():
    with Database() as db, Pawl(db) as pawl:
        routes = {f"{row['method']} {row['path']}": row["scope"] for row in pawl.run("help", "routes", "--json").json}
        assert set(routes) == set(OPENS), set(routes) ^ set(OPENS)
        pawl.serve()
        keys = {scope: create(pawl, f"only-{scope}", "--scopes", scope) for scope in SCOPES}
        wrong = []
        for route, scopes in OPENS.items():
            method, path = route.split()
            for name, value in CAPTURES.items():
                path = path.replace(name, value)
            anyone = pawl.http(method, path, token=None).status != 401
            opens = [scope for scope in SCOPES if pawl.http(method, path, token=keys[scope]).status != 403]
            if route in ALSO:
                both = create(pawl, f"both-{len(ALSO)}-{path.rsplit('/', 1)[1]}", "--scopes", f"operate,{ALSO[route]}")
                assert opens == ["admin"] and pawl.http(method, path, token=both).status != 403, (route, opens)
                opens = scopes.split()
            if anyone != (scopes == "open") or not anyone and opens != [s for s in SCOPES if s in scopes.split()]:
                wrong.append((route, opens))
            said = "any" if scopes.split() == list(SCOPES) else " or ".join(scopes.replace(" ", ", ").rsplit(", ", 1))
            assert routes[route] == said, (route, routes[route], said)
        assert not wrong, wrong
        stop_clean(pawl.server)


@test
def an_operator_decides_with_the_scope_operate_or_admin():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        night, sender = create(pawl, "night", "--scopes", "admin"), create(pawl, "shop", "--scopes", "send,work")
        body = {"domain": "d", "type": "t", "max_attempts": 1}
        sent = pawl.http("POST", "/v1/commands", body, token=sender).json["command_id"]
        assert pawl.run("work", "d", "--exec", "exit 70", "--drain").code == 0
        assert [row["command_id"] for row in pawl.http("GET", "/v1/tsq", token=night).json["items"]] == [sent]
        problem(pawl.http("POST", f"/v1/tsq/{sent}/cancel", {}, token=sender), 403, "not-allowed", "operate or admin")
        assert db.value("select count(*) from pawl.tsq") == "1"
        assert pawl.http("POST", f"/v1/tsq/{sent}/cancel", {"reason": "gone"}, token=night).status == 200
        shown = pawl.http("GET", f"/v1/commands/{sent}", token=night).json
        assert (shown["status"], shown["audit"][-1]["actor"]) == ("CANCELED", "night"), shown
        problem(pawl.http("GET", "/v1/wallets/a", token=night), 403, "not-allowed", "read, post, mint or wallets")
        stop_clean(pawl.server)


@test
def a_revoked_key_dies_within_seconds():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        by_name, by_id = create(pawl, "by_name"), create(pawl, "by_id")
        ids = {row["name"]: row["id"] for row in pawl.run("key", "list", "--json").json}
        for token in (by_name, by_id):
            assert pawl.http("GET", "/v1/alerts", token=token).status == 200
        assert pawl.run("key", "revoke", "by_name").code == 0
        assert pawl.run("key", "revoke", str(ids["by_id"])).code == 0
        for token in (by_name, by_id):
            wait_until(lambda: pawl.http("GET", "/v1/alerts", token=token).status == 401, timeout=30, what="revoked")
        rows = pawl.run("key", "list", "--json").json
        assert all(row["revoked_at"] for row in rows), rows
        refused(pawl, "key", "revoke", "by_name", code=1, words=['key "by_name" not found'])
        assert create(pawl, "by_name") != by_name, "its name is free again"
        stop_clean(pawl.server)


class Strangers:
    """Connections that ask again and again, each time with another token of the right form that nobody has."""

    def __init__(self, server, count):
        self.statuses, self.failed, self.ending = {}, None, threading.Event()
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, count + 500), hard), hard))
        self.selector = selectors.DefaultSelector()
        for _ in range(count):
            connection = socket.create_connection((server.host, server.port), timeout=60)
            connection.setblocking(False)
            self.selector.register(connection, selectors.EVENT_READ)
            self.ask(connection)
        self.thread = threading.Thread(target=self.run)

    def ask(self, connection):
        token = "pawl_" + base64.urlsafe_b64encode(os.urandom(32)).decode().rstrip("=")
        connection.send(f"GET /v1/alerts HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {token}\r\n\r\n".encode())

    def run(self):
        try:
            while not self.ending.is_set():
                for key, _ in self.selector.select(0.1):
                    answer = key.fileobj.recv(65536)
                    if answer.startswith(b"HTTP/1.1 "):
                        status = int(answer[9:12])
                        self.statuses[status] = self.statuses.get(status, 0) + 1
                        self.ask(key.fileobj)
                    elif not answer:
                        raise AssertionError("a stranger's connection was closed")
        except Exception as problem:
            self.failed = problem

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.thread.join()
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()
        self.selector.close()


# A lookup of an unknown token waits until nobody holds the lock.
GATE = """alter function pawl.key_find (bytea) rename to key_find_all;
          create function pawl.key_find (p_hash bytea) returns table (id bigint, name text, scopes text, expires_at bigint, domains text, owners text, is_idle boolean)
            language plpgsql security definer as $$
          begin
            return query select * from pawl.key_find_all(p_hash);
            if not found then
              perform pg_advisory_xact_lock_shared(77);
            end if;
          end $$"""


@test
def unknown_tokens_shut_out_no_known_client():
    with Database() as db, Pawl(db, env={"PAWL_REQUEST_TIMEOUT": "60s"}) as pawl, Session(db.url) as gate:
        pawl.serve()
        hand = create(pawl, "hand", "--scopes", "command")
        beat = {"lease_s": 30, "items": [{"command_id": "00000000-0000-7000-8000-000000000001", "lease": 1}]}

        def beats(token):
            return pawl.http("POST", "/v1/domains/d/extend", beat, token=token).status

        assert beats(hand) == 200
        db.rows(GATE)
        gate.do("select pg_advisory_lock(77)")
        with Strangers(pawl.server, 1500) as strangers:
            wait_until(lambda: db.value("select count(*) from pg_locks where locktype = 'advisory' and not granted") == "1",
                       what="unknown tokens are looked up")
            # What is known about the key is looked up again after 5 s, and finds this. A lookup that waited for those of the strangers would not.
            db.rows("update pawl.api_key set scopes = '{read}' where name = 'hand'")
            statuses = {"admin": set(), "hand": set()}

            def is_refused():
                statuses["admin"].add(beats(Pawl.TOKEN))
                statuses["hand"].add(status := beats(hand))
                return status == 403

            wait_until(is_refused, what="the scopes were looked up")
            assert statuses == {"admin": {200}, "hand": {200, 403}}, statuses
            assert 401 not in strangers.statuses, strangers.statuses
            gate.do("select pg_advisory_unlock(77)")
            wait_until(lambda: strangers.failed or 401 in strangers.statuses, what="strangers are answered")
            assert not strangers.failed, strangers.failed
        assert set(strangers.statuses) <= {401, 503}, strangers.statuses
        stop_clean(pawl.server)


@test
def creating_a_key_says_its_scopes_and_when_it_expires():
    with Database() as db, Pawl(db) as pawl:
        made = pawl.run("key", "create", "a", "--scopes", "read,wallet", "--expires", "90d")
        assert '"a" (read,post,wallets) expires in 90d; ' in made.stderr, made
        assert "never expires" in pawl.run("key", "create", "b").stderr
        row = pawl.run("key", "create", "c", "--expires", "1500ms", "--json").json
        assert (row["scopes"], row["expires_in_s"]) == ("read", 1.5), row
        assert pawl.run("key", "create", "d", "--json").json["expires_in_s"] is None
        lasts = db.value("select round(extract(epoch from expires_at - created_at)) from pawl.api_key where name = 'a'")
        assert lasts == str(90 * 86400), lasts
        refused(pawl, "key", "create", "e", "--expires", "90", code=2, words=["--expires", "such as 250ms", '"90"'])
        refused(pawl, "key", "create", "Not Right", code=2, words=['"Not Right"'])
        got = refused(pawl, "key", "create", "e", "--scopes", "root", code=2, words=['"root"'])
        scopes = re.search("scope must be (.*), or one of", got).group(1).replace(" or ", ", ").split(", ")
        shown = pawl.run("help", "key", "create").stdout
        assert len(scopes) == 10 and all(scope in shown for scope in scopes), (scopes, shown)
        assert db.value("select count(*) from pawl.api_key") == "4"


@test
def an_expired_key_is_no_key():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        token = create(pawl, "short", "--expires", "10s")
        assert pawl.http("GET", "/v1/alerts", token=token).status == 200
        wait_until(lambda: pawl.http("GET", "/v1/alerts", token=token).status == 401, what="expired")
        stop_clean(pawl.server)


@test
def a_key_works_on_every_pod_and_the_admin_token_on_its_own():
    with Database() as db, Pawl(db) as pawl, Pawl(db, env={"PAWL_ADMIN_TOKEN": "another-token-9876543210"}) as other:
        pawl.serve()
        other.serve()
        token = create(pawl, "everywhere")
        assert other.http("GET", "/v1/alerts", token=token).status == 200
        assert pawl.http("GET", "/v1/alerts", token=Pawl.TOKEN).status == 200
        problem(other.http("GET", "/v1/alerts", token=Pawl.TOKEN), 401)
        assert other.http("GET", "/v1/alerts", token="another-token-9876543210").status == 200
        stop_clean(pawl.server)
        stop_clean(other.server)


@test
def invalid_arguments_create_no_key():
    with Database() as db, Pawl(db) as pawl:
        refused(pawl, "key", "create", "King", code=2, words=["key name"])
        refused(pawl, "key", "create", "a" * 64, code=2, words=["name"])
        refused(pawl, "key", "create", "fine", "--scopes", "read,everything", code=2, words=["everything"])
        refused(pawl, "key", "create", "fine", "--expires", "soon", code=2, words=["soon"])
        refused(pawl, "key", "create", "fine", "--expires", "0s", code=2, words=["--expires"])
        refused(pawl, "key", "revoke", "nobody", code=1, words=['key "nobody" not found'])
        create(pawl, "fine")
        refused(pawl, "key", "create", "fine", code=1, words=["key"])
        assert db.value("select count(*) from pawl.api_key") == "1"


@test
def no_token_is_kept_or_logged():
    with Database() as db, Pawl(db, env={"PAWL_LOG": "debug"}) as pawl:
        pawl.serve()
        token = create(pawl, "quiet")
        assert pawl.http("GET", "/v1/alerts", token=token).status == 200
        stop_clean(pawl.server)
        assert token not in "\n".join(pawl.server.stderr + pawl.server.stdout)
        assert Pawl.TOKEN not in "\n".join(pawl.server.stderr + pawl.server.stdout)
        assert token not in "\n".join(db.rows("select t::text from pawl.api_key t"))


main()
