#!/usr/bin/env python3
"""bus_reply - outcomes that become commands: chains of workers over the command line and HTTP, killed at random; who may name what."""
import json
import random
import signal
import threading

from bus_commands import counts, new_id, send, show, work
from checks import metric, problem, refused
from pawl_test import Database, Pawl, main, psql, test, wait_until
from servers import Session

SEED = 20269
KEYS, COMMANDS, KILLS = 40, 4000, 24
TARGET = "command:second/next"
# `seen` is how many commands of the key had been committed in this domain when this one started. In order: it is n.
HANDLERS = """
create schema chain;
create table chain.run (domain text, order_key text, n integer, seen integer);
create index on chain.run (domain, order_key);
create function chain.first(payload jsonb, command_id uuid) returns jsonb language plpgsql as $$
begin
  insert into chain.run
  select 'first', payload->>'key', (payload->>'n')::integer, count(r.n) from chain.run r where r.domain = 'first' and r.order_key = payload->>'key';
  return payload;
end
$$;
create function chain.second(payload jsonb, command_id uuid) returns jsonb language plpgsql as $$
begin
  insert into chain.run
  select 'second', payload->'result'->>'key', (payload->'result'->>'n')::integer, count(r.n)
  from chain.run r where r.domain = 'second' and r.order_key = payload->'result'->>'key';
  return payload->'result';
end
$$;
"""


def ended(session, domain):
    return int(session.do(f"select count(*) from pawl.outcome where domain_id = pawl.domain_find('{domain}')")[0])


def wakeups(pawl):
    return metric(pawl, "pawl_wakeups_total", 'direction="sent"')


def send_all(pawl):
    """Half over HTTP, half from the command line: numbers of a key in order."""
    for start in range(0, COMMANDS // 2, 1000):
        items = [{"domain": "first", "type": "run", "payload": {"key": f"k{n % KEYS}", "n": n // KEYS}, "order_key": f"k{n % KEYS}",
                  "reply_to": TARGET, "max_attempts": 1000} for n in range(start, start + 1000)]
        assert pawl.http("POST", "/v1/commands/batch", {"items": items}).status == 201
    for key in range(KEYS):
        lines = "".join(json.dumps({"key": f"k{key}", "n": n}) + "\n" for n in range(COMMANDS // 2 // KEYS, COMMANDS // KEYS))
        done = pawl.run("send", "first", "run", "--lines", "--order-key", f"k{key}", "--reply-to", TARGET, "--max-attempts", "1000", stdin=lines)
        assert done.code == 0, done


@test
def a_chain_of_workers_loses_and_repeats_nothing_while_they_are_killed():
    chance = random.Random(SEED)
    with Database() as db, Pawl(db) as pawl, Session(db.url) as session:
        session.do(HANDLERS)
        pawl.serve()
        for domain in ("first", "second"):
            assert pawl.run("policy", "set", domain, "0s,20ms").code == 0
        send_all(pawl)

        def start(domain):
            return domain, pawl.start("work", domain, "--lease", "1s", "-j", "4", "--sql", f"chain.{domain}")

        workers = [start(domain) for domain in ("first", "first", "second", "second")]
        for mark in sorted(chance.sample(range(COMMANDS // 20, COMMANDS * 9 // 10), KILLS)):
            wait_until(lambda: ended(session, "first") >= mark, what=f"{mark} have ended in the first domain")
            place = chance.randrange(len(workers))
            domain, victim = workers[place]
            assert victim.stop(signal.SIGKILL) == -signal.SIGKILL, f"it had ended by itself: {victim.stderr[-5:]}"
            workers[place] = start(domain)
        wait_until(lambda: ended(session, "second") == COMMANDS, timeout=600, what="all have ended in the second domain")
        for _, worker in workers:
            worker.send(signal.SIGTERM)
        for _, worker in workers:
            assert worker.wait() == 0, worker.stderr[-5:]
        assert session.do("select domain, count(*), count(distinct (order_key, n)), count(*) filter (where seen <> n) from chain.run group by 1 "
                          "order by 1") == [f"{domain}|{COMMANDS}|{COMMANDS}|0" for domain in ("first", "second")]
        # Each outcome is one command, whose id follows from the command that ended.
        assert session.do("""
            select count(*), count(distinct f.id), count(*) filter (where s.type = 'next' and s.order_key = f.order_key)
            from pawl.command s
            join pawl.command f on f.domain_id = pawl.domain_find('first') and f.command_id = (s.payload ->> 'command_id')::uuid
            where s.domain_id = pawl.domain_find('second') and s.command_id = pawl.reply_command_id('first', f.command_id)""") \
            == [f"{COMMANDS}|{COMMANDS}|{COMMANDS}"]
        assert session.do("select count(*) from pawl.outcome where status <> 'COMPLETED'") == ["0"]
        assert session.do("select count(*) from pawl.failed_operations") == ["0"]
        lost = int(session.do("select count(*) from pawl.audit where details->>'reason' = 'its worker was lost'")[0])
        assert lost > 0, "no kill met a command"


@test
def a_worker_over_http_is_woken_by_the_outcome_of_another():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        sent = pawl.http("POST", "/v1/commands", {"domain": "shop", "type": "charge", "payload": {"order": 7}, "reply_to": "command:desk/charged",
                                                  "priority": 9, "correlation_id": "order-7"})
        assert sent.status == 201, sent
        found = []
        waiter = threading.Thread(target=lambda: found.extend(
            pawl.http("POST", "/v1/domains/desk/claim", {"limit": 5, "wait_s": 60}).json["items"]))
        waiter.start()
        try:
            item = pawl.http("POST", "/v1/domains/shop/claim", {"limit": 5}).json["items"][0]
            before = wakeups(pawl)
            settled = pawl.http("POST", "/v1/domains/shop/settle", {"items": [
                {"command_id": item["command_id"], "lease": item["lease"], "outcome": "complete", "result": {"paid": 5}}]})
            assert settled.json["items"][0]["settled"], settled.json
            wait_until(lambda: wakeups(pawl) > before, what="the outcome wakes the domain")
        finally:
            waiter.join()
        assert [i["type"] for i in found] == ["charged"], found
        assert found[0]["payload"] == {"command_id": item["command_id"], "domain": "shop", "type": "charge", "status": "COMPLETED",
                                       "result": {"paid": 5}, "error": None, "correlation_id": "order-7"}, found
        shown = show(pawl, found[0]["command_id"])
        assert (shown["domain"], shown["priority"], shown["correlation_id"], shown["reply_to"]) == ("desk", 9, "order-7", None), shown
        # From the command line: a chain of programs, the last of which gets the outcome of the first.
        first = send(pawl, "press", "print", {"page": 1}, "--reply-to", "command:bindery/bind")
        assert work(pawl, "press", "--exec", "cat")["completed"] == 1
        assert work(pawl, "bindery", "--exec", "cat")["completed"] == 1
        bound = db.value(f"select pawl.reply_command_id('press', '{first}')")
        assert show(pawl, bound)["result"]["result"] == {"page": 1}
        assert "reply to     command:bindery/bind\n" in pawl.run("command", "show", first).stdout


@test
def a_target_is_checked_when_it_is_sent():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        before = counts(db)
        for target, words in [("command:", "command:DOMAIN/TYPE"), ("command:desk", "command:DOMAIN/TYPE"), ("command:a b/c", "command:DOMAIN/TYPE"),
                              ("command:desk/" + "t" * 101, "reply_to"), ("command:process:shop/order", "must not name a domain of processes"),
                              ("command:telegram:42/update", "must not name a domain of updates of a bot"),
                              ('response:{"process": 7, "step": "x"}', "command:DOMAIN/TYPE")]:
            body = {"domain": "shop", "type": "t", "reply_to": target}
            assert words in problem(pawl.http("POST", "/v1/commands", body), 400)["detail"], target
            assert words in problem(pawl.http("POST", "/v1/commands/batch", {"items": [body]}), 400)["detail"], target
            refused(pawl, "send", "shop", "t", "--reply-to", target, code=2, words=["reply_to"])
        assert counts(db) == before


@test
def reply_queues_are_bounded_and_the_alert_tells():
    with Database() as db, Pawl(db, {"PAWL_REPLY_QUEUES_MAX": "12"}) as pawl:
        pawl.serve()
        token = json.loads(pawl.run("key", "create", "shop", "--scopes", "command", "--json").stdout)["token"]
        wait_until(lambda: db.value("select most from pawl.reply_queue_bound") == "12", what="the monitor has written the bound")

        def posted(first, last, **given):
            return pawl.http("POST", "/v1/commands/batch", {
                "items": [{"domain": "shop", "type": "t", "reply_to": f"q{n}"} for n in range(first, last + 1)]}, **given)

        assert "creates at most 10" in problem(posted(1, 11), 400)["detail"]
        assert posted(1, 10, token=token).status == 201
        detail = problem(posted(11, 11, token=token), 400)["detail"]
        assert '"shop" has created 10, the most for one sender' in detail, detail
        assert posted(5, 12).status == 201, "others have theirs"
        detail = problem(pawl.http("POST", "/v1/commands", {"domain": "shop", "type": "t", "reply_to": "q13"}), 400)["detail"]
        assert '"q13"' in detail and "pgmq.create() first" in detail, detail
        assert pawl.http("POST", "/v1/commands", {"domain": "shop", "type": "t", "reply_to": "q12"}).status == 201
        firing = wait_until(lambda: [a for a in pawl.http("GET", "/v1/alerts").json["items"] if a["alert"] == "reply-queues" and a["state"] == "firing"],
                            what="the alert")
        assert firing[0]["value"] == 100, firing
        assert metric(pawl, "pawl_reply_queues_percent") == 100
        db.rows("select pgmq.create('q13')")
        assert pawl.http("POST", "/v1/commands", {"domain": "shop", "type": "t", "reply_to": "q13"}).status == 201


@test
def the_scope_command_reaches_no_update_of_a_bot():
    """An update acts as the person that it names, and holds what groups wrote."""
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        token = {scopes: json.loads(pawl.run("key", "create", scopes.replace(",", "-"), "--scopes", scopes, "--json").stdout)["token"]
                 for scopes in ("command", "read", "command,admin")}
        update = {"domain": "telegram:42", "type": "update", "payload": {"update_id": 1}}
        message = {"domain": "telegram:42:outbox", "type": "send", "payload": {"chat_id": 1, "text": "hello"}}
        stored = pawl.http("POST", "/v1/commands", update, token=token["command,admin"]).json["command_id"]
        before = counts(db)
        attempts = [("/v1/commands", update), ("/v1/commands/batch", {"items": [message, update]}),
                    ("/v1/commands/batch", {"items": [message], "on_complete": update}),
                    ("/v1/commands", {**message, "reply_to": "command:telegram:42/update"}), (f"/v1/commands/{stored}/cancel", {}),
                    *((f"/v1/domains/{domain}/claim", {"limit": 1}) for domain in ("telegram:42", "telegram:42:outbox"))]
        for path, body in attempts:
            status = 400 if "reply_to" in body else 403
            assert ("of a bot" if status == 400 else "scope admin") in problem(pawl.http("POST", path, body, token=token["command"]), status)["detail"], path
        assert counts(db) == before
        for scope in ("command", "read"):
            for path in (f"/v1/commands/{stored}", "/v1/commands?domain=telegram:42", "/v1/tsq?domain=telegram:42"):
                assert "scope admin" in problem(pawl.http("GET", path, token=token[scope]), 403)["detail"], path
            assert pawl.http("GET", "/v1/commands", token=token[scope]).json["items"] == []
        assert [item["command_id"] for item in pawl.http("GET", "/v1/commands", token=token["command,admin"]).json["items"]] == [stored]
        # Applications send messages; a domain that only looks alike is theirs.
        for body in (message, {"domain": "telegram:x", "type": "t"}, {"domain": "telegram:42x", "type": "t"}):
            assert pawl.http("POST", "/v1/commands", body, token=token["command"]).status == 201, body
        assert len(pawl.http("POST", "/v1/domains/telegram:x/claim", {"limit": 1}, token=token["command"]).json["items"]) == 1


@test
def a_process_sends_no_update_of_a_bot():
    """Its key would act as any member of any group. It sends to ordinary domains, as its definition may."""
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        key = json.loads(pawl.run("key", "create", "shop", "--scopes", "process", "--json").stdout)["token"]
        assert pawl.http("POST", "/v1/processes", {"type": "forge", "domain": "edge", "state": {}}, token=key).status == 201
        lease = pawl.http("POST", "/v1/process-domains/edge/claim", {"types": ["forge"]}, token=key).json["items"][0]
        before = counts(db)

        def report(step, domain):
            item = {"process_id": lease["process_id"], "lease": lease["lease"], "send": {"step": step, "domain": domain, "type": "update", "payload": {"update_id": 1}}}
            return pawl.http("POST", "/v1/process-domains/edge/report", {"items": [item]}, token=key)
        refusal = problem(report("forged", "telegram:42"), 403)["detail"]
        assert "items[0].send" in refusal and "scope admin" in refusal, refusal
        assert "scope process" in problem(pawl.http("POST", "/v1/commands", {"domain": "process:edge", "type": "t"},
                                                    token=json.loads(pawl.run("key", "create", "c", "--scopes", "command", "--json").stdout)["token"]), 403)["detail"]
        assert counts(db) == before
        assert report("shipped", "shop").json["items"][0]["verdict"] == "written"


@test
def a_login_that_runs_no_bots_sends_no_update_of_one():
    """Also not by the end of a batch, as a route of dead letters, or in a function of a role that may."""
    update = "('telegram:42', 'update')"
    with Database() as db:
        sender, runner = f"sender_of_{db.name}", f"runner_of_{db.name}"
        db.rows(f"create role {sender} login in role pawl_sender; create role {runner} login in role pawl_sender, pawl_monitor; create schema app; "
                f"create function app.forge () returns uuid language sql security definer as $$ select pawl.send{update} $$; "
                f"grant usage on schema app to {sender}")
        try:
            before = counts(db)
            url = db.url.replace("postgres@", f"{sender}@", 1)
            for statement in (f"select pawl.send{update}", "select * from pawl.send('telegram:42', array['update'], array['{}'::jsonb])",
                              "select * from pawl.batch_new(p_on_complete => '{\"domain\": \"telegram:42\", \"type\": \"update\"}')", "select app.forge()"):
                try:
                    psql(url, statement)
                    raise AssertionError(f"{statement}: not refused")
                except AssertionError as refused_with:
                    assert "updates of a bot" in str(refused_with), refused_with
            assert counts(db) == before
            psql(url, "select pawl.send('telegram:42:outbox', 'send', '{\"chat_id\": 1, \"text\": \"hello\"}'), pawl.send('telegram:x', 't')")
            psql(db.url.replace("postgres@", f"{runner}@", 1), f"select pawl.send{update}")
        finally:
            db.rows(f"drop owned by {sender}, {runner}; drop role {sender}, {runner}")


@test
def the_scope_command_reaches_no_process():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        token = {scopes: json.loads(pawl.run("key", "create", scopes.replace(",", "-"), "--scopes", scopes, "--json").stdout)["token"]
                 for scopes in ("command", "command,process", "process", "read")}
        process = new_id()
        assert pawl.http("POST", "/v1/processes", {"type": "order", "process_id": process, "domain": "shop", "state": {"card": 4111}}, token=token["process"]).status == 201
        lease = [{"command_id": process, "lease": 1}]
        send_body = {"domain": "process:shop", "type": "order"}
        attempts = [("/v1/commands", send_body), ("/v1/commands/batch", {"items": [send_body]}),
                    ("/v1/commands/batch", {"items": [{"domain": "shop", "type": "t"}], "on_complete": send_body}),
                    (f"/v1/commands/{process}/cancel", {}), (f"/v1/commands/{process}/cancel?domain=process:shop", {}),
                    ("/v1/domains/process:shop/claim", {"limit": 1}),
                    ("/v1/domains/process:shop/settle", {"items": [{**lease[0], "outcome": "complete"}]}),
                    ("/v1/domains/process:shop/extend", {"items": lease, "lease_s": 30})]
        before = counts(db)
        for path, body in attempts:
            assert "scope process" in problem(pawl.http("POST", path, body, token=token["command"]), 403)["detail"], path
        assert counts(db) == before
        reads = [f"/v1/commands/{process}", f"/v1/commands/{process}?domain=process:shop", "/v1/commands?domain=process:shop",
                 "/v1/tsq?domain=process:shop"]
        for path in reads:
            assert "scope process" in problem(pawl.http("GET", path, token=token["command"]), 403)["detail"], path
            for scopes in ("command,process", "read"):
                assert pawl.http("GET", path, token=token[scopes]).status == 200, (path, scopes)
        listed = {scopes: [item["command_id"] for item in pawl.http("GET", "/v1/commands", token=token[scopes]).json["items"]]
                  for scopes in ("command", "command,process", "read")}
        assert listed == {"command": [], "command,process": [process], "read": [process]}, listed
        for path, body in attempts[:3]:
            assert pawl.http("POST", path, body, token=token["command,process"]).status == 201, path
        # An id that both have is ambiguous for either key; with its domain the command is canceled, and the process is not.
        assert pawl.http("POST", "/v1/commands", {"domain": "shop", "type": "t", "command_id": process}, token=token["command"]).status == 201
        problem(pawl.http("POST", f"/v1/commands/{process}/cancel", {}, token=token["command"]), 409)
        assert pawl.http("POST", f"/v1/commands/{process}/cancel?domain=shop", {}, token=token["command"]).json["status"] == "CANCELED"
        assert db.value(f"select pawl.command_status(pawl.command_number('{process}', 'process:shop'))") == "PENDING"
        assert pawl.http("POST", f"/v1/commands/{process}/cancel?domain=process:shop", {}, token=token["command,process"]).status == 200


FLAKY = {"type": "job", "domain": "process", "on_failure": "troubleshoot", "steps": [
    {"name": "only", "sql": "t.only", "retry": {"attempts": 2, "delay": "10ms"}}]}
FLAKY_SQL = """
create schema t;
create table t.fixed ();
create sequence t.calls;
create function t.only(input jsonb, key uuid) returns jsonb language plpgsql as $$
begin
  perform nextval('t.calls');
  if not exists (select from t.fixed) or nextval('t.calls') < 7 then raise exception 'broken'; end if;
  return '2';
end $$;
"""


@test
def a_retry_from_the_troubleshooting_queue_resets_the_failures_of_a_process():
    with Database() as db, Pawl(db) as pawl:
        db.rows(FLAKY_SQL)
        assert pawl.run("process", "define", "-", stdin=json.dumps(FLAKY)).code == 0
        pawl.serve()
        process = pawl.run("process", "start", "job", "--json").json["process_id"]

        def status():
            return pawl.run("process", "show", process, "--json").json["status"]

        wait_until(lambda: status() == "WAITING_FOR_TSQ", what="both attempts have failed")
        failures = int(db.value("select count(*) from pawl.process_step where error is not null"))
        assert failures == 2, failures
        # The first attempt after it fails, too, so it succeeds only if the earlier failures do not count.
        db.rows("insert into t.fixed default values; select setval('t.calls', 4)")
        assert pawl.run("tsq", "retry", process, "--operator", "eve").code == 0
        wait_until(lambda: status() in ("COMPLETED", "WAITING_FOR_TSQ"), what="it was tried again")
        assert status() == "COMPLETED", pawl.run("process", "show", process).stdout


main()
