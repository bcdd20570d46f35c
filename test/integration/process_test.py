#!/usr/bin/env python3
"""process - processes from outside: defined, started, signaled, shown and decided about, over the command line and HTTP.

The pods run with default settings. The order of examples/order-saga is what they run.
"""
import json
import os
import re
import subprocess
import uuid

from checks import problem
from pawl_test import TIMEOUT_S, Database, Pawl, main, setting, test, wait_until
from process_cli import cli, define, show, wait_status
from servers import Session

SAGA = os.path.join(setting("PAWL_SOURCE"), "examples", "order-saga")
ITEMS = [{"sku": "cup", "count": 2}, {"sku": "lamp", "count": 1}]  # 474
MANY = [{"sku": "lamp", "count": 3}]  # 1350: needs an approval


def shop_open(db, pawl, ann=5000):
    """The shop of the example, with a customer who has money."""
    with open(os.path.join(SAGA, "shop.sql"), encoding="utf-8") as file:
        db.rows(file.read())
    for arguments in (["create", "ann"], ["topup", "ann", str(ann)]):
        done = pawl.run("wallet", *arguments)
        assert done.code == 0, done
    done = pawl.run("process", "define", os.path.join(SAGA, "order.json"))
    assert (done.code, done.stdout) == (0, "shop order version 1\n"), done


def order_start(pawl, items, **state):
    return cli(pawl, "start", "order", json.dumps({"customer": "ann", "items": items, **state}), "--domain", "shop")["process_id"]


def stock(db):
    return db.rows("select sku, count from shop.stock order by 1")


def balance(db, owner="ann"):
    return db.value(f"select balance || ' ' || held from wallet.get(array['{owner}'], array['CREDIT'])")


# --- the order ---

@test
def an_order_runs_from_start_to_end():
    with Database() as db, Pawl(db) as pawl:
        shop_open(db, pawl)
        pawl.serve()
        order = order_start(pawl, ITEMS)
        done = wait_status(pawl, order, "COMPLETED")
        assert done["result"]["status"] == "shipped" and done["result"]["order"] == order, done
        assert (done["domain"], done["type"], done["version"]) == ("shop", "order", 1), done
        names = [step["name"] for step in done["steps"]]
        assert {"reserve", "hold", "pick[0]", "pick[1]", "address", "print", "ship", "capture"} <= set(names), names
        assert all(step["error"] is None for step in done["steps"]), done
        assert stock(db) == ["cup|98", "lamp|9"] and balance(db) == "4526 0", (stock(db), balance(db))
        assert db.value("select count(*) from shop.pick where is_open") == "2"
        people = pawl.run("process", "show", order)
        assert people.code == 0 and "status       COMPLETED" in people.stdout and " step " in people.stdout, people
        assert "reserve" in people.stdout and "attempt 1, " in people.stdout and "SENT" in people.stdout, people


@test
def a_failing_capture_compensates_the_order():
    with Database() as db, Pawl(db) as pawl:
        shop_open(db, pawl)
        pawl.serve()
        order = order_start(pawl, MANY)
        wait_status(pawl, order, "WAITING_FOR_ASYNC")
        assert stock(db) == ["cup|100", "lamp|7"] and balance(db) == "5000 1350", (stock(db), balance(db))
        assert pawl.run("wallet", "freeze", "ann").code == 0  # no capture, but holds can be voided
        cli(pawl, "signal", order, "approval", '{"approved": true}')
        ended = wait_status(pawl, order, "COMPENSATED", "WAITING_FOR_TSQ", "FAILED", "COMPLETED")
        assert ended["status"] == "COMPENSATED" and "frozen" in ended["error"], ended
        assert stock(db) == ["cup|100", "lamp|10"] and balance(db) == "5000 0", (stock(db), balance(db))
        assert db.value("select count(*) || ' ' || count(*) filter (where is_open) from shop.pick") == "1 0"
        assert db.value("select count(*) || ' ' || count(*) filter (where is_open) from shop.shipment") == "1 0"


@test
def an_order_that_is_canceled_while_it_is_paid_gives_everything_back():
    with Database() as db, Pawl(db) as pawl:
        shop_open(db, pawl)
        pawl.serve()
        order = order_start(pawl, MANY)
        wait_status(pawl, order, "WAITING_FOR_ASYNC")
        with Session(db.url) as other:
            other.do("begin")
            other.do("select from wallet.wallet where owner = 'ann' for update")
            cli(pawl, "signal", order, "approval", '{"approved": true}')
            wait_until(lambda: "ship" in [s["name"] for s in show(pawl, order)["steps"]], what="it was shipped, and the capture waits")
            cli(pawl, "cancel", order, "--compensate")
            other.do("rollback")
        ended = wait_status(pawl, order, "COMPENSATED", "WAITING_FOR_TSQ", "FAILED", "COMPLETED")
        assert ended["status"] == "COMPENSATED", ended
        assert stock(db) == ["cup|100", "lamp|10"] and balance(db) == "5000 0", (stock(db), balance(db))


@test
def a_hold_that_was_captured_or_has_expired_needs_no_void():
    with Database() as db, Pawl(db) as pawl:
        shop_open(db, pawl)
        hold = {"name": "hold", "wallet": {"kind": "hold", "owner": "ann", "amount": 100}, "compensate": {"wallet": {"kind": "void", "hold": "{{result.txn_id}}"}}}
        expires = {**hold, "wallet": {**hold["wallet"], "expires_in_s": 1}}
        capture = {"name": "capture", "wallet": {"kind": "capture", "hold": "{{steps.hold.txn_id}}"},
                   "compensate": {"wallet": {"kind": "refund", "transaction": "{{result.txn_id}}"}}}
        first = {"name": "first", "exec": "true", "compensate": {"exec": "true"}}
        fails = {"name": "fails", "fail": "no"}
        define(pawl, {"type": "captured", "domain": "shop", "on_failure": "compensate", "steps": [first, hold, capture, fails]})
        define(pawl, {"type": "expired", "domain": "shop", "on_failure": "compensate", "steps": [first, expires, {"name": "later", "sleep": "3s"}, fails]})
        define(pawl, {"type": "twice", "domain": "shop", "on_failure": "troubleshoot", "steps": [
            hold, capture, {"name": "void", "wallet": {"kind": "void", "hold": "{{steps.hold.txn_id}}"}}]})
        pawl.serve()
        for kind in ("captured", "expired"):
            process = cli(pawl, "start", kind, "{}", "--domain", "shop")["process_id"]
            ended = wait_status(pawl, process, "COMPENSATED", "WAITING_FOR_TSQ", "FAILED", "COMPLETED")
            assert ended["status"] == "COMPENSATED" and ended["steps"][-1]["name"] == "~first", ended
            assert balance(db) == "5000 0", balance(db)
        process = cli(pawl, "start", "twice", "{}", "--domain", "shop")["process_id"]  # a step is refused as before
        assert "hold is captured" in wait_status(pawl, process, "FAILED", "COMPLETED")["error"]


@test
def a_signal_resumes_the_order_once():
    with Database() as db, Pawl(db) as pawl:
        shop_open(db, pawl)
        pawl.serve()
        order = order_start(pawl, MANY)
        waiting = wait_status(pawl, order, "WAITING_FOR_ASYNC")
        assert waiting["step"] == "approval" and "approval" in waiting["waits_for"] and waiting["continues_at"], waiting
        people = pawl.run("process", "show", order).stdout
        assert "waits for" in people and "until" in people, people
        say = ("signal", order, "approval", '{"approved": true}', "--key", "k1")
        assert cli(pawl, *say)["verdict"] == "RESUMED"
        assert cli(pawl, *say)["verdict"] == "REPEATED"
        done = wait_status(pawl, order, "COMPLETED")
        assert [(r["name"], r["key"], r["met"]) for r in done["responses"]] == [("approval", "k1", "approval")], done
        assert done["state"]["approved"] is True and cli(pawl, "signal", order, "thanks")["verdict"] == "LATE"


@test
def an_order_that_is_not_approved_is_compensated():
    with Database() as db, Pawl(db) as pawl:
        shop_open(db, pawl)
        pawl.serve()
        order = order_start(pawl, MANY)
        wait_status(pawl, order, "WAITING_FOR_ASYNC")
        cli(pawl, "signal", order, "approval", '{"approved": false}')
        ended = wait_status(pawl, order, "COMPENSATED", "FAILED", "WAITING_FOR_TSQ")
        assert ended["status"] == "COMPENSATED" and "was not approved" in ended["error"], ended
        assert stock(db) == ["cup|100", "lamp|10"] and balance(db) == "5000 0", (stock(db), balance(db))


@test
def the_definition_in_the_documentation_ships_nothing_that_is_not_approved():
    with open(os.path.join(setting("PAWL_SOURCE"), "docs", "definitions.md"), encoding="utf-8") as file:
        source = re.search(r"^```json\n(.*?)^```$", file.read(), re.M | re.S).group(1)
    with Database() as db, Pawl(db) as pawl:
        shop_open(db, pawl)
        done = pawl.run("process", "define", "-", stdin=source)
        assert (done.code, done.stdout) == (0, "shop order version 2\n"), done
        pawl.serve()
        order = order_start(pawl, MANY)
        cli(pawl, "signal", order, "approval", '{"approved": false}')
        ended = wait_status(pawl, order, "COMPENSATED", "FAILED", "WAITING_FOR_TSQ", "COMPLETED")
        assert ended["status"] == "COMPENSATED" and ended["error"] == f"step refused: order {order} was not approved", ended
        assert "ship" not in [step["name"] for step in ended["steps"]] and stock(db) == ["cup|100", "lamp|10"], ended


@test
def the_example_runs_by_one_command():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        path = ":".join([os.path.dirname(setting("PAWL_BIN")), setting("PAWL_TEST_BIN"), os.environ["PATH"]])
        for left in ("3650", "7300"):  # and again
            done = subprocess.run([os.path.join(SAGA, "run.sh")], env={**pawl.env, "PATH": path}, capture_output=True, text=True, timeout=TIMEOUT_S)
            assert done.returncode == 0 and "status       COMPLETED" in done.stdout and left in done.stdout, done


# --- start, list ---

def run_sql(db, sql):
    return subprocess.run([os.path.join(setting("PAWL_TEST_BIN"), "psql"), "-XAtq", "-c", sql, db.url], capture_output=True, text=True, timeout=TIMEOUT_S)


@test
def a_start_in_the_wrong_domain_names_the_right_one():
    with Database() as db, Pawl(db) as pawl:
        assert pawl.run("process", "define", "-", stdin='{"type": "order", "domain": "shop", "steps": [{"name": "a", "set": {"a": 1}}]}').code == 0
        started = pawl.run("process", "start", "order", "{}")
        assert started.code == 0 and started.stderr == (
            'note: type "order" has no definition in domain "process": a program must run it; domain "shop" defines it (is --domain missing?)\n'), started
        code = pawl.run("process", "start", "order", "{}", "--domain", "py-shop")
        assert code.code == 0 and code.stderr == (
            'note: type "order" has no definition in domain "py-shop": a program must run it; domain "shop" defines it\n'), code
        assert pawl.run("process", "start", "order", "{}", "--domain", "shop").stderr == ""


@test
def a_process_that_nothing_runs_says_why_where_it_is_shown():
    """In SQL, on the command line, over HTTP and in pawl doctor, in the same words; a type that a program has run needs no note."""
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        assert pawl.run("process", "define", "-", stdin='{"type": "order", "domain": "shop", "steps": [{"name": "a", "set": {"a": 1}}]}').code == 0
        note = 'type "odrer" has no definition in domain "shop", which defines "order": a program must run it'
        started = pawl.run("process", "start", "odrer", "{}", "--domain", "shop")
        assert started.stderr == f"note: {note}\n", started
        process = started.stdout.strip()
        shown = pawl.run("process", "show", process).stdout
        assert "status       PENDING\n" in shown and f"waits for    a worker: {note}\n" in " ".join(shown.split("\n             ")), shown
        assert pawl.http("GET", f"/v1/processes/{process}").json["worker_note"] == note
        noticed = run_sql(db, "select pawl.start('odrer', p_domain => 'shop')")
        assert noticed.returncode == 0 and f"NOTICE:  {note}\n" in noticed.stderr, noticed
        db.rows("update pawl.command set created_at = created_at - interval '6 minutes'")
        queues = next(row for row in pawl.run("doctor", "--json").json if row["check"] == "queues")
        assert queues["state"] == "warn" and queues["found"].endswith(": " + note) and "pawl process define FILE" in queues["advice"], queues
        # A program runs it: neither its process nor the next start has a note.
        claimed = pawl.http("POST", "/v1/process-domains/shop/claim", {"types": ["odrer"], "wait_s": 20}).json["items"]
        assert len(claimed) == 1 and pawl.http("GET", f"/v1/processes/{claimed[0]['process_id']}").json["worker_note"] is None
        assert pawl.run("process", "start", "odrer", "{}", "--domain", "shop").stderr == ""
        assert "NOTICE" not in run_sql(db, "select pawl.start('order', p_domain => 'shop')").stderr


@test
def a_start_is_idempotent_and_refusals_name_the_field():
    with Database() as db, Pawl(db) as pawl:
        key = str(uuid.uuid4())
        first, again = [cli(pawl, "start", "order", '{"a": 1}', "--id", key) for _ in range(2)]
        assert (first, again) == ({"process_id": key, "created": True}, {"process_id": key, "created": False}), (first, again)
        assert "state differs" in cli(pawl, "start", "order", '{"a": 2}', "--id", key, code=1)["detail"]
        assert show(pawl, key)["status"] == "PENDING" and show(pawl, key)["domain"] == "process"
        for arguments, words in [(["order", "[1]"], "state must be a JSON object"), (["order", "{"], "state"),
                                 (["a b"], "type"), (["order", "{}", "--domain", "x y"], "domain must be"),
                                 (["order", "{}", "--domain", "d" * 55], "domain must be")]:
            assert words in cli(pawl, "start", *arguments, code=2)["detail"], arguments
        unknown = str(uuid.uuid4())
        for arguments in (["show", unknown], ["signal", unknown, "go"], ["retry", unknown], ["cancel", unknown],
                          ["cancel", unknown, "--compensate"], ["complete", unknown]):
            assert cli(pawl, *arguments, code=1)["detail"] == f"process {unknown} not found", arguments
        assert "name must be" in cli(pawl, "signal", key, "$cancel", code=2)["detail"]
        assert db.value("select count(*) from pawl.process") == "1"


@test
def the_list_filters_and_reads_on_behind_its_limit_of_reads():
    with Database() as db, Pawl(db) as pawl:
        for domain, kind, state in [("shop", "order", {"user": "ann"}), ("shop", "order", {"user": "bob"}),
                                    ("shop", "refund", {}), ("store", "order", {})]:
            cli(pawl, "start", kind, json.dumps(state), "--domain", domain)

        def listed(*arguments):
            return [(row["domain"], row["type"]) for row in cli(pawl, "list", *arguments)]

        assert listed() == [("store", "order"), ("shop", "refund"), ("shop", "order"), ("shop", "order")]
        assert listed("--domain", "shop", "--type", "order") == [("shop", "order")] * 2
        assert listed("--text", "ann", "--status", "PENDING") == [("shop", "order")]
        assert listed("--older", "1h") == listed("--step", "pay") == listed("--status", "COMPLETED") == []
        assert len(listed("--limit", "2")) == 2
        assert 'did you mean "COMPLETED"?' in cli(pawl, "list", "--status", "COMPLETE", code=2)["detail"]
        pages = db.rows("select id is null, last from pawl.process_list(p_step => 'none', p_looks => 3)")
        assert len(pages) == 1 and pages[0].startswith("t|"), pages
        assert db.rows(f"select id from pawl.process_list(p_step => 'none', p_before => {pages[0][2:]})") == []
        people = pawl.run("process", "list", "--type", "refund").stdout.splitlines()
        assert people[0].split()[:5] == ["id", "domain", "type", "status", "step"] and "PENDING" in people[1], people


# --- decisions ---

# Fails until the table has a row.
FRAGILE = {"type": "job", "domain": "process", "on_failure": "troubleshoot", "steps": [
    {"name": "first", "sql": "t.first", "compensate": {"sql": "t.undo"}},
    {"name": "second", "sql": "t.second", "retry": {"attempts": 1}}]}
FRAGILE_SQL = """
create schema t;
create table t.calls (name text);
create table t.fixed ();
create function t.first(input jsonb, key uuid) returns jsonb language sql as $$ insert into t.calls values ('first') returning '1'::jsonb $$;
create function t.undo(input jsonb, key uuid) returns jsonb language sql as $$ insert into t.calls values ('undo') returning '1'::jsonb $$;
create function t.second(input jsonb, key uuid) returns jsonb language plpgsql as $$
begin
  if not exists (select from t.fixed) then raise exception 'broken'; end if;
  insert into t.calls values ('second');
  return '2';
end $$;
"""


def calls(db):
    return db.rows("select name || ' ' || count(*) from t.calls group by name order by name")


@test
def operators_retry_complete_and_cancel():
    with Database() as db, Pawl(db) as pawl:
        db.rows(FRAGILE_SQL)
        define(pawl, FRAGILE)
        pawl.serve()
        ids = [cli(pawl, "start", "job")["process_id"] for _ in range(5)]
        for process_id in ids:
            stuck = wait_status(pawl, process_id, "WAITING_FOR_TSQ")
            assert "broken" in stuck["error"] and stuck["steps"][-1]["name"] == "second", stuck
        assert calls(db) == ["first 5"]
        by = ("--operator", "eve", "--reason", "checked")
        # Completed by hand: the same decision again says who decided, another one is refused.
        done = cli(pawl, "complete", ids[0], "--result", '{"by": "hand"}', *by)
        assert (done["process_id"], done["status"], done["operator"]) == (ids[0], "COMPLETED", "eve"), done
        assert show(pawl, ids[0])["result"] == {"by": "hand"} and show(pawl, ids[0])["status"] == "COMPLETED"
        assert cli(pawl, "complete", ids[0], "--result", '{"by": "hand"}', *by) == done
        assert "complete by eve" in cli(pawl, "cancel", ids[0], code=1)["detail"]
        # Canceled: without and with compensation.
        assert cli(pawl, "cancel", ids[1], *by)["status"] == "CANCELED"
        assert calls(db) == ["first 5"]
        undone = cli(pawl, "cancel", ids[2], "--compensate", *by)
        assert (undone["decision"], undone["operator"]) == ("compensate", "eve") and undone["decided_at"], undone
        assert wait_status(pawl, ids[2], "COMPENSATED", "CANCELED", "FAILED", "WAITING_FOR_TSQ")["status"] == "COMPENSATED"
        assert calls(db) == ["first 5", "undo 1"]
        again = cli(pawl, "cancel", ids[2], "--compensate", *by)
        assert (again["status"], again["operator"], again["decided_at"]) == ("COMPENSATED", "eve", undone["decided_at"]), again
        # Retried: from the step that failed, from a step before it, all that are left.
        assert "has not recorded step" in cli(pawl, "retry", ids[3], "--from", "third", code=1)["detail"]
        db.rows("insert into t.fixed default values")
        assert cli(pawl, "retry", ids[3], "--from", "first", *by)["status"] == "PENDING"
        wait_status(pawl, ids[3], "COMPLETED")
        assert calls(db) == ["first 6", "second 1", "undo 1"]
        assert pawl.run("process", "retry", "--all").code == 2
        assert cli(pawl, "retry", "--all", "--type", "job", "--yes", *by)["decided"] == 1
        kept = wait_status(pawl, ids[4], "COMPLETED")
        assert calls(db) == ["first 6", "second 2", "undo 1"]
        assert [(e["event"], e["actor"]) for e in kept["audit"] if e["event"].startswith("OPERATOR")] == [("OPERATOR_RETRY", "eve")], kept
        assert "cancel by eve" in cli(pawl, "retry", ids[1], code=1)["detail"]


# --- HTTP ---

def post(pawl, path, body=None, status=200, key=None, **options):
    answer = pawl.http("POST", f"/v1/processes{path}", body, headers={"Idempotency-Key": key} if key else None, **options)
    assert answer.status == status, (path, answer)
    return answer


def get(pawl, path):
    answer = pawl.http("GET", f"/v1/processes{path}")
    assert answer.status == 200, (path, answer)
    return answer.json


@test
def definitions_are_listed_and_printed():
    with Database() as db, Pawl(db) as pawl:
        files = [json.dumps({"type": "order", "domain": "shop", "steps": [{"name": "a", "set": {"a": n}}]}, indent=1) for n in (1, 2)]
        for file in files:
            assert pawl.run("process", "define", "-", stdin=file).code == 0
        define(pawl, {"type": "mail", "domain": "post", "steps": [{"name": "a", "set": {"a": 1}}]})
        listed = cli(pawl, "definitions")
        assert [(row["domain"], row["type"], row["version"]) for row in listed] == [
            ("post", "mail", 1), ("shop", "order", 2), ("shop", "order", 1)], listed
        assert [row["version"] for row in cli(pawl, "definitions", "order", "--domain", "shop", "--limit", "1")] == [2]
        shown = pawl.run("process", "definitions", "order", "--version", "1")
        assert (shown.code, shown.stdout) == (0, files[0] + "\n"), shown
        assert cli(pawl, "definitions", "order", "--version", "2")["source"] == files[1]
        assert 'type "order" has no version 3' in cli(pawl, "definitions", "order", "--version", "3", code=1)["detail"]
        define(pawl, {"type": "order", "domain": "post", "steps": [{"name": "a", "set": {"a": 1}}]})
        several = cli(pawl, "definitions", "order", "--version", "1", code=1)["detail"]
        assert several == 'domains "shop" and "post" have a type "order": name one with --domain', several
        assert "TYPE is missing" in pawl.run("process", "definitions", "--version", "1").stderr
        pawl.serve()
        first = pawl.http("GET", "/v1/process-definitions?limit=2&type=order").json
        rest = pawl.http("GET", f"/v1/process-definitions?limit=2&type=order&cursor={first['next_cursor']}").json
        assert [(row["domain"], row["version"]) for row in first["items"] + rest["items"]] == [("post", 1), ("shop", 2), ("shop", 1)], (first, rest)
        assert rest["next_cursor"] is None, rest


@test
def a_process_names_what_it_waits_for():
    with Database() as db, Pawl(db) as pawl:
        define(pawl, {"type": "child", "domain": "crm", "steps": [{"name": "w", "wait": {"response": "go"}}]})
        define(pawl, {"type": "welcome", "domain": "crm", "steps": [
            {"name": "onboard", "process": {"type": "child", "domain": "crm"}, "timeout": "1h"},
            {"name": "mail", "command": {"domain": "mailer", "type": "welcome"}}]})
        pawl.serve()
        process = cli(pawl, "start", "welcome", "--domain", "crm")["process_id"]
        shown = wait_status(pawl, process, "WAITING_FOR_REPLY")
        child, = shown["sent"]
        assert (child["kind"], child["domain"], child["type"], child["step"]) == ("process", "crm", "child", "onboard"), child
        wait_status(pawl, child["id"], "WAITING_FOR_ASYNC")
        people = pawl.run("process", "show", process).stdout
        assert f"waits for    process {child['id']} (crm / child, WAITING_FOR_ASYNC), step onboard\n" in people, people
        cli(pawl, "signal", child["id"], "go")
        wait_until(lambda: [sent["kind"] for sent in show(pawl, process)["sent"]] == ["command"], what="the command is sent")
        command, = show(pawl, process)["sent"]
        assert pawl.run("work", "mailer", "--exec", "exit 70", "--drain").code == 0
        people = pawl.run("process", "show", process).stdout
        assert f"waits for    command {command['id']} (mailer / welcome, IN_TSQ), step mail\n" in people and "reply of mail\": 1" not in people, people
        assert f"reply to     process {process}, step mail\n" in pawl.run("command", "show", command["id"]).stdout
        assert pawl.run("command", "show", command["id"], "--json").json["reply_process_id"] == process
        assert pawl.run("tsq", "complete", command["id"]).code == 0
        assert wait_status(pawl, process, "COMPLETED")["sent"] == []
        assert "waits for" not in pawl.run("process", "show", process).stdout


@test
def the_timeline_has_causes_before_effects_and_requests_once():
    with Database() as db, Pawl(db) as pawl:
        define(pawl, {"type": "talk", "domain": "edge", "steps": [{"name": "a", "wait": {"response": "say"}}, {"name": "b", "wait": {"response": "go"}}]})
        pawl.serve()
        process = cli(pawl, "start", "talk", "--domain", "edge")["process_id"]
        wait_status(pawl, process, "WAITING_FOR_ASYNC")
        assert cli(pawl, "signal", process, "say")["verdict"] == "RESUMED"
        wait_until(lambda: show(pawl, process)["step"] == "b" and show(pawl, process)["status"] == "WAITING_FOR_ASYNC", what="it waits again")
        cli(pawl, "cancel", process, "--compensate", "--reason", "customer called", "--operator", "ann")
        wait_status(pawl, process, "COMPENSATED")
        people = pawl.run("process", "show", process).stdout
        events = [line[28:].split(" ")[0] for line in people.split("\n\n")[1].splitlines()]
        assert events.index("response") < events.index("RESUMED") and events.count("response") == 1, people
        assert events.count("CANCEL_REQUESTED") == 1 and " cancel " not in people.split("\n\n")[1], people
        assert "  RESUMED           {" in people and "  WAITING           {" in people, people


@test
def a_list_has_the_error_of_the_last_attempt():
    with Database() as db, Pawl(db) as pawl:
        define(pawl, {"type": "slow", "domain": "edge", "steps": [
            {"name": "a", "exec": "echo the mailbox is full >&2; exit 75", "retry": {"attempts": 3, "delay": "1h", "delay_max": "1h"}}]})
        pawl.serve()
        process = cli(pawl, "start", "slow", "--domain", "edge")["process_id"]
        wait_status(pawl, process, "WAITING_FOR_RETRY")
        row, = cli(pawl, "list", "--status", "WAITING_FOR_RETRY")
        assert (row["step"], "the mailbox is full" in row["error"]) == ("a", True), row


def is_replayed(answer):
    return answer.headers.get("idempotency-replayed") == "true"


@test
def an_order_runs_over_http():
    with Database() as db, Pawl(db) as pawl:
        shop_open(db, pawl)
        pawl.serve()
        with open(os.path.join(SAGA, "order.json"), "rb") as file:
            source = file.read()
        defined = pawl.http("PUT", "/v1/process-definitions", source, headers={"Content-Type": "application/json"})
        assert defined.json == {"domain": "shop", "type": "order", "version": 1, "steps": 14, "compensations": 5}, defined
        body = {"type": "order", "domain": "shop", "state": {"customer": "ann", "items": MANY}}
        first, again = [post(pawl, "", body, 201, key="order-17") for _ in range(2)]
        assert first.body == again.body and not is_replayed(first) and is_replayed(again), (first, again)
        order = first.json["process_id"]
        problem(pawl.http("POST", "/v1/processes", {**body, "state": {}}, headers={"Idempotency-Key": "order-17"}), 422)
        wait_status(pawl, order, "WAITING_FOR_ASYNC")
        assert get(pawl, f"/{order}")["waits_for"] == {"approval": 1}
        said, twice = [post(pawl, f"/{order}/signals/approval", {"approved": True}, 201, key="k1") for _ in range(2)]
        assert said.body == twice.body and said.json == {"process_id": order, "name": "approval", "key": "k1", "status": "RESUMED"}, (said, twice)
        assert said.headers["pawl-status"] == "RESUMED" and twice.headers["pawl-status"] == "REPEATED" and is_replayed(twice), twice
        assert wait_status(pawl, order, "COMPLETED") == get(pawl, f"/{order}?domain=shop")
        listed = get(pawl, "?status=COMPLETED&domain=shop&type=order&limit=10")
        assert [row["process_id"] for row in listed["items"]] == [order] and listed["next_cursor"] is None, listed
        assert get(pawl, "?text=nobody&older_s=1")["items"] == []


@test
def decisions_and_scopes_over_http():
    with Database() as db, Pawl(db) as pawl:
        db.rows(FRAGILE_SQL)
        define(pawl, FRAGILE)
        pawl.serve()
        made = pawl.run("key", "create", "shop", "--scopes", "process", "--json")
        token = json.loads(made.stdout)["token"]
        ids = [post(pawl, "", {"type": "job"}, 201, token=token).json["process_id"] for _ in range(3)]
        for process_id in ids:
            wait_status(pawl, process_id, "WAITING_FOR_TSQ")
        for path in (f"/{ids[0]}/retry", f"/{ids[0]}/complete"):
            problem(pawl.http("POST", f"/v1/processes{path}", {}, token=token), 403)
        problem(pawl.http("PUT", "/v1/process-definitions", FRAGILE, token=token), 403)
        first, again = [post(pawl, f"/{ids[0]}/complete", {"operator": "eve", "result": 7}, key="d1") for _ in range(2)]
        assert first.body == again.body and is_replayed(again) and first.json["operator"] == "eve", (first, again)
        assert get(pawl, f"/{ids[0]}")["result"] == 7
        canceled = post(pawl, f"/{ids[1]}/cancel", {"compensate": True, "operator": "ann"}, token=token).json
        assert (canceled["decision"], canceled["operator"]) == ("compensate", "shop (ann)"), canceled
        wait_status(pawl, ids[1], "COMPENSATED")
        problem(pawl.http("POST", f"/v1/processes/{ids[2]}/retry", {"from": "third"}), 409, part="third")
        db.rows("insert into t.fixed default values")
        assert post(pawl, f"/{ids[2]}/retry", {"reason": "fixed"}).json["status"] == "PENDING"
        wait_status(pawl, ids[2], "COMPLETED")
        assert calls(db) == ["first 3", "second 1", "undo 1"]


@test
def bad_requests_are_refused_by_field_and_nothing_is_written():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        for body, words in [({}, "type"), ({"type": "a b"}, "type"), ({"type": "t", "state": 7}, "state must be a JSON object"),
                            ({"type": "t", "domain": "x y"}, "domain"), ({"type": "t", "process_id": "7"}, "process_id"),
                            ({"type": "t", "stat": {}}, "stat"), ({"type": "t", "state": "\0"}, "\\u0000")]:
            assert words in problem(pawl.http("POST", "/v1/processes", body), 400)["detail"], body
        unknown = str(uuid.uuid4())
        problem(pawl.http("GET", f"/v1/processes/{unknown}"), 404, part=unknown)
        problem(pawl.http("GET", "/v1/processes/7"), 400, part="id")
        problem(pawl.http("GET", "/v1/processes?status=DONE"), 400, part="status")
        problem(pawl.http("GET", "/v1/processes?older_s=-1"), 400, part="older_s")
        for path in ("signals/go", "retry", "cancel", "complete"):
            problem(pawl.http("POST", f"/v1/processes/{unknown}/{path}", {}), 404, part=unknown)
        problem(pawl.http("POST", f"/v1/processes/{unknown}/signals/$cancel", {}), 400, part="name must be")
        problem(pawl.http("POST", f"/v1/processes/{unknown}/signals/go", b"{", headers={"Content-Type": "application/json"}), 400)
        for source, words in [({"type": "t"}, "definition:1:1: missing field"), ([], "definition:1:1: must be an object"),
                              ({**FRAGILE, "deadlin": "1h"}, "unknown field")]:
            assert words in problem(pawl.http("PUT", "/v1/process-definitions", source), 400)["detail"], source
        assert db.value("select (select count(*) from pawl.command) + (select count(*) from pawl.process_definition)") == "0"


@test
def a_retried_command_step_sends_another_command():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        define(pawl, {"type": "pay", "domain": "shop", "steps": [{"name": "charge", "command": {"domain": "bank", "type": "charge"}}]})
        process_id = cli(pawl, "start", "pay", "{}", "--domain", "shop")["process_id"]

        def settle(outcome):
            item, = pawl.http("POST", "/v1/domains/bank/claim", body={"limit": 1, "wait_s": 60}).json["items"]
            body = {"items": [{"command_id": item["command_id"], "lease": item["lease"], "outcome": outcome}]}
            assert pawl.http("POST", "/v1/domains/bank/settle", body=body).json["items"][0]["settled"]
            return item["command_id"]

        first = settle("fail")
        assert pawl.run("tsq", "cancel", first, "--domain", "bank").code == 0  # CANCELED: the step has failed for good
        wait_status(pawl, process_id, "WAITING_FOR_TSQ")
        cli(pawl, "retry", process_id)
        assert settle("complete") != first
        assert [s["error"] is None for s in wait_status(pawl, process_id, "COMPLETED")["steps"]] == [False, True]


main()
