#!/usr/bin/env python3
"""keys_sent - keys of senders: a text is the same id each time, over HTTP, in SQL and on the command line, and counts in all domains."""
import hashlib
import json
import uuid

from bus_commands import work
from checks import problem
from pawl_test import Database, Pawl, main, test
from process_cli import cli
from servers import Session, in_threads


def post(pawl, path, body, key="order-17", **options):
    return pawl.http("POST", path, body, headers={"Idempotency-Key": key}, **options)


def command(domain, **fields):
    return {"domain": domain, "type": "charge", **fields}


def is_replayed(answer):
    return answer.headers.get("idempotency-replayed") == "true"


def refusal(db, sql):
    """The SQLSTATE and message with which a statement fails; "none": it does not."""
    db.rows(f"""create or replace function public.refusal () returns text language plpgsql as $f$
                begin {sql}; return 'none'; exception when others then return sqlstate || ' ' || sqlerrm; end $f$""")
    return db.value("select public.refusal()")


def id_of(text, name):
    """As docs/sql.md describes it, of a role or an API key: callers that repeat a call after an upgrade rely on it."""
    made = bytearray(hashlib.sha256(f"pawl key\0{name}\0{text}".encode()).digest()[:16])
    made[6] = made[6] & 0x0F | 0x80
    made[8] = made[8] & 0x3F | 0x80
    return str(uuid.UUID(bytes=bytes(made)))


@test
def a_key_that_is_sent_to_another_domain_is_refused_over_http():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        for key in ("order-17", str(uuid.uuid4())):
            first = post(pawl, "/v1/commands", command("shop"), key)
            assert first.status == 201, first
            problem(post(pawl, "/v1/commands", command("mail"), key), 422, "key-reused", 'domain is "mail", it was sent as "shop"')
            again = post(pawl, "/v1/commands", command("shop"), key)
            assert (again.status, again.body) == (201, first.body) and is_replayed(again), again
            # An id in the body is unique in its domain only, and one that both domains have is repeated in both.
            other = pawl.http("POST", "/v1/commands", command("mail", command_id=first.json["command_id"]))
            assert other.status == 201 and not is_replayed(other), other
            assert is_replayed(post(pawl, "/v1/commands", command("mail"), key))
        # Processes are apart: the order may be a process as well.
        body = {"type": "order", "domain": "shop", "state": {}}
        started = post(pawl, "/v1/processes", body)
        assert started.status == 201 and not is_replayed(started), started
        problem(post(pawl, "/v1/processes", {**body, "domain": "mail"}), 422, "key-reused", 'domain is "mail", it was sent as "shop"')
        assert is_replayed(post(pawl, "/v1/processes", body))
        assert db.value("select count(*) from pawl.process") == "1"
        # A batch: what it has is sealed, so a command in another domain cannot join it.
        assert post(pawl, "/v1/commands/batch", {"items": [command("shop")]}, "batch").status == 201
        problem(post(pawl, "/v1/commands/batch", {"items": [command("mail")]}, "batch"), 409)


@test
def a_key_counts_in_all_domains_after_retention_too():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve("--role", "api")
        assert post(pawl, "/v1/commands", command("shop")).status == 201
        work(pawl, "shop", "--noop")
        db.rows("update pawl.outcome set ended_at = ended_at - interval '40 days'")
        db.rows("select pawl.prune_commands(1000, interval '30 days', null)")
        assert db.value("select count(*) from pawl.kept_key") == "1"
        problem(post(pawl, "/v1/commands", command("mail")), 422, "key-reused", 'domain is "mail", it was sent as "shop"')


@test
def of_one_key_sent_to_many_domains_at_once_one_is_a_command():
    with Database() as db, Pawl(db) as one, Pawl(db) as two:
        for pawl in (one, two):
            pawl.serve("--role", "api")
        for i in range(15):
            answers = in_threads(8, lambda n: post((one, two)[n % 2], "/v1/commands", command(f"d{n // 2}"), f"key-{i}"))()
            taken = {json.loads(answer.body)["command_id"] for answer in answers if answer.status == 201}
            assert len(taken) == 1 and {answer.status for answer in answers} == {201, 422}, answers
        assert db.value("select count(*) from pawl.command") == "15"


@test
def a_key_that_an_open_transaction_uses_is_waited_for():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve("--role", "api")
        key = id_of("order-17", db.value("select session_user"))
        with Session(db.url) as session:
            session.do("begin; select pawl.send('shop', 'charge', p_key => 'order-17')")
            wait = in_threads(1, lambda _: post(pawl, "/v1/commands", command("mail"), key))
            # Others are not held up meanwhile: neither those with a key nor those without.
            assert post(pawl, "/v1/commands", command("mail"), "order-18").status == 201
            assert pawl.http("POST", "/v1/commands", command("mail")).status == 201
            session.do("commit")
            problem(wait()[0], 422, "key-reused", 'domain is "mail", it was sent as "shop"')


@test
def a_login_that_may_send_nothing_holds_up_no_key():
    """A key was an advisory lock with a known number, which every login may take."""
    with Database() as db:
        with Session(db.url) as stranger, Session(db.url) as sender:
            stranger.do("begin; select pg_advisory_lock(hashtextextended('pawl key ' || pawl.key('order-17'), 0))")
            sender.do("set lock_timeout = '2s'; select pawl.send('shop', 'charge', p_key => 'order-17')")
            assert db.value("select count(*) from pawl.command") == "1"
        assert db.value("select count(*) from pawl.send_lock") == "0"


@test
def a_text_is_a_key_in_sql():
    with Database() as db:
        role = db.value("select session_user")
        key = id_of("order-17", role)
        assert db.value("select pawl.key('order-17')") == key
        assert db.value("select pawl.key('order-17', 'shop')") == id_of("order-17", "shop") != key
        assert db.value("select pawl.key('018F0000-0000-7000-8000-000000000001')") == "018f0000-0000-7000-8000-000000000001"
        assert db.value("select pawl.key(null)") == ""
        assert refusal(db, "perform pawl.key('order-17', null)").startswith("QU001 name "), "an id that follows from nothing would be a new one"
        for call in ("pawl.send('shop', 'charge', '{\"n\": 1}', p_key => 'order-17')",
                     "pawl.start('order', '{}', p_domain => 'shop', p_key => 'order-17')"):
            assert db.rows(f"select {call} from generate_series(1, 2)") == [key, key], call
            assert db.rows(f"set role pawl_app; select {call}") == [key], "the session's role counts, not that of set role"
        assert db.value("select count(*) from pawl.command") == "2"
        assert refusal(db, "perform pawl.send('shop', 'charge', '{\"n\": 2}', p_key => 'order-17')").startswith("QU002")
        assert 'domain is "mail", it was sent as "shop"' in refusal(db, "perform pawl.send('mail', 'charge', '{\"n\": 1}', p_key => 'order-17')")
        assert 'domain is "b", it was sent as "shop"' in refusal(db, "perform pawl.start('order', p_domain => 'b', p_key => 'order-17')")
        assert db.value(f"select pawl.send('shop', 'charge', '{{\"n\": 1}}', '{key}', p_key => 'order-17')") == key, "they agree"
        for call in ("pawl.send('shop', 'charge', p_command_id => gen_random_uuid(), p_payload => '{}'::jsonb, p_key => 'order-17')",
                     "pawl.start('order', p_process_id => gen_random_uuid(), p_key => 'order-17')"):
            assert refusal(db, "perform " + call).startswith("QU001 key and "), call
        for text in ("''", "repeat('x', 201)"):
            assert refusal(db, f"perform pawl.send('shop', 'charge', p_key => {text})").startswith("QU001 key must have 1 to 200 bytes")
        for arrays in ("array[true, true]", "array[[true]]"):
            assert refusal(db, "perform pawl.send_items(false, 'shop', '{t}', array['{}']::jsonb[], array[gen_random_uuid()], null, null, null, "
                               f"null, null, null, null, p_keyed => {arrays})").startswith("QU001 keyed"), arrays


@test
def a_text_is_a_key_on_the_command_line():
    with Database() as db, Pawl(db) as pawl:
        key = db.value("select pawl.key('order-17')")
        first, again = (pawl.run("send", "shop", "charge", "--key", "order-17", "--json").json for _ in range(2))
        assert first == {"command_id": key, "status": "PENDING", "created": True} and again == {**first, "created": False}, (first, again)
        refused = pawl.run("send", "mail", "charge", "--key", "order-17", "--json")
        assert refused.code != 0 and 'domain is \\"mail\\", it was sent as \\"shop\\"' in refused.stderr, refused
        assert pawl.run("send", "shop", "charge", "--key", "order-17", "--id", key).code == 0
        assert "differ" in pawl.run("send", "shop", "charge", "--key", "order-17", "--id", str(uuid.uuid4())).stderr
        assert "--lines" in pawl.run("send", "shop", "charge", "--key", "order-17", "--lines").stderr
        started = [cli(pawl, "start", "order", "--domain", "shop", "--key", "order-17") for _ in range(2)]
        assert started == [{"process_id": key, "created": True}, {"process_id": key, "created": False}], started
        assert db.value("select pawl.start('order', p_domain => 'shop', p_key => 'order-17')") == key
        assert db.value("select count(*) from pawl.command") == "2"


def wallet(pawl, *arguments):
    done = pawl.run("wallet", *arguments, "--json")
    assert done.code == 0, done
    return done.json


@test
def a_text_is_a_key_of_the_ledger_on_the_command_line():
    with Database() as db, Pawl(db) as pawl:
        key = db.value("select pawl.key('order-17')")
        wallet(pawl, "create", "bob")
        wallet(pawl, "create", "ann", "--key", "wallet of ann")
        assert db.value("select count(*) from wallet.txn where txn_id = pawl.key('wallet of ann')") == "1"
        for verb, arguments in (("topup", ("ann", "100")), ("spend", ("ann", "5")), ("transfer", ("ann", "bob", "10")), ("hold", ("ann", "20")),
                                ("hold", ("ann", "7")), ("freeze", ("bob",)), ("unfreeze", ("bob",)), ("floor", ("ann", "-5"))):
            text = f"{verb}-{arguments[-1]}"
            first, again = (wallet(pawl, verb, *arguments, "--key", text) for _ in range(2))
            assert first["txn_id"] == db.value(f"select pawl.key('{text}')"), first
            assert (first["status"], again["status"]) == ("posted", "already posted"), (first, again)
        hold, other = (db.value(f"select pawl.key('hold-{amount}')") for amount in (20, 7))
        moved = db.value("select pawl.key('transfer-10')")
        for verb, arguments in (("capture", (hold, "--amount", "15")), ("void", (other,)), ("refund", (moved,))):
            assert [wallet(pawl, verb, *arguments, "--key", verb)["status"] for _ in range(2)] == ["posted", "already posted"], verb
        assert wallet(pawl, "topup", "ann", "1", "--key", "order-17", "--txn-id", key)["txn_id"] == key, "they agree"
        differ = pawl.run("wallet", "topup", "ann", "1", "--key", "order-17", "--txn-id", str(uuid.uuid4()))
        assert differ.code == 2 and "--key and --txn-id differ" in differ.stderr, differ
        reused = pawl.run("wallet", "topup", "ann", "2", "--key", "order-17")
        assert reused.code == 1 and "amount" in reused.stderr, reused
        assert "key must have 1 to 200 bytes" in pawl.run("wallet", "topup", "ann", "2", "--key", "x" * 201).stderr


@test
def a_key_is_the_same_id_for_an_api_key_and_a_role_of_one_name():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve()
        role = db.value("select session_user")
        token = pawl.run("key", "create", role, "--scopes", "command,wallet,treasury").stdout.strip()
        assert wallet(pawl, "create", "ann")["created"] is True
        assert wallet(pawl, "topup", "ann", "100", "--key", "order-17")["status"] == "posted"
        topped = post(pawl, "/v1/wallets/ann/topup", {"amount": 100}, token=token)
        assert topped.status == 201 and is_replayed(topped) and topped.json["txn_id"] == id_of("order-17", role), topped
        assert pawl.run("send", "shop", "charge", "--key", "order-17", "--json").json["command_id"] == id_of("order-17", role)
        assert is_replayed(post(pawl, "/v1/commands", {**command("shop"), "max_attempts": 3}, token=token))
        assert not is_replayed(post(pawl, "/v1/wallets/ann/topup", {"amount": 100})), "the admin token has another name"


main()
