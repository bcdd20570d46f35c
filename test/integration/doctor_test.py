#!/usr/bin/env python3
"""doctor - the checks of pawl doctor, and the advice it gives."""
import os
import shutil

from bus_commands import retry_at_once
from checks import dead_letters_put, metric
from pawl_test import Database, Pawl, Proxy, main, psql, test, wait_until
from servers import IS_ROOT, Cluster, Session, disk_fill, small_disk

CHECKS = ["settings", "environment", "charts", "connection", "server", "schema", "roles", "handlers' login", "row types", "pool", "clock", "long transactions", "replication slots",
          "wraparound", "disk", "stuck rows", "queues", "troubleshooting", "handlers", "dead letters", "retention", "schedules", "rate limits", "ledger clock"]


def examine(pawl, *flags):
    """Exit code and findings by check."""
    done = pawl.run("doctor", "--json", *flags)
    assert [row["check"] for row in done.json] == CHECKS, done.stdout
    return done.code, {row["check"]: row for row in done.json}


def examine_with(pawl, env):
    return {row["check"]: row for row in pawl.run("doctor", "--json", env=env).json}


def states(findings, *names):
    return [findings[name]["state"] for name in names]


def not_durable(pawl):
    """The test's own server is not durable; nothing else is wrong with it."""
    code, findings = examine(pawl)
    assert findings["server"]["state"] == "fail" and "fsync" in findings["server"]["found"], findings["server"]
    return code, findings


@test
def a_healthy_private_database_has_no_findings():
    with Pawl() as pawl:
        assert pawl.run("migrate").code == 0 and pawl.run("db", "start").code == 0
        code, findings = examine(pawl)
        assert code == 0 and set(states(findings, *CHECKS)) == {"ok"}, findings
        assert all(row["advice"] is None for row in findings.values())
        done = pawl.run("doctor")
        assert done.code == 0 and done.stderr == "" and all(name in done.stdout for name in CHECKS), done
        assert pawl.run("db", "status", "--json").json["running"] is True, "it left as it came"
        admin = pawl.run("db", "url", "--admin").stdout.strip()
        psql(admin, "alter schema app owner to current_user; revoke all on schema app from app")
        found = examine(pawl)[1]["roles"]
        assert found["state"] == "warn" and "schema app" in found["found"] and "owner to app" in found["advice"], found
        assert pawl.run("db", "stop").code == 0


@test
def nothing_is_created_or_started():
    with Pawl() as pawl:
        code, findings = examine(pawl)
        assert code == 69 and "no private PostgreSQL" in findings["connection"]["found"], findings
        assert "pawl db start" in findings["connection"]["advice"]
        assert not os.path.exists(os.path.join(pawl.home, "pg")), "it created a cluster"
        assert pawl.run("migrate").code == 0
        code, findings = examine(pawl)
        assert code == 69 and "does not run" in findings["connection"]["found"], findings
        assert states(findings, "settings", "environment") == ["ok", "ok"] and findings["connection"]["advice"] == "run pawl db start", findings
        shown = pawl.run("doctor").stdout
        assert "19 checks skipped\n" in shown and "not checked" not in shown, shown
        assert pawl.run("db", "status", "--json").json["running"] is False, "it started a server"


@test
def missing_roles_and_rights_are_found_and_the_advice_works():
    with Cluster() as server:
        server.rows("create role plain login")
        server.rows("create database d owner plain")
        url = server.url("d", user="plain")
        with Pawl(url) as pawl:
            assert pawl.run("migrate").code == 0
            _, findings = examine(pawl)
            assert findings["roles"]["state"] == "warn" and "pawl_treasurer" in findings["roles"]["found"], findings["roles"]
            assert "select pawl.grant_roles()" in findings["roles"]["advice"] and "as plain" in findings["roles"]["advice"]
            for role in findings["roles"]["found"].split(": ")[1].split(", "):
                server.rows(f"create role {role} nologin")
            _, findings = examine(pawl)
            assert findings["roles"]["state"] == "warn" and "rights of roles are missing" in findings["roles"]["found"]
            psql(url, "select pawl.grant_roles()")
            assert states(examine(pawl)[1], "roles") == ["ok"]


@test
def a_server_that_loses_data_is_found():
    with Database() as db, Pawl(db) as pawl:
        code, findings = not_durable(pawl)
        assert code == 1
        assert "fsync = on" in findings["server"]["advice"]
        rest = [name for name in CHECKS if name != "server"]
        assert set(states(findings, *rest)) == {"ok"}, findings
        done = pawl.run("doctor")
        assert "-> server: set fsync = on" in done.stdout and done.stdout.count("fsync") == 2 and done.stderr == 'pawl: check "server" failed\n', done


@test
def a_missing_schema_is_found():
    with Database(empty=True) as db, Pawl(db) as pawl:
        code, findings = not_durable(pawl)
        assert code == 1
        assert findings["schema"]["state"] == "fail" and "pawl migrate" in findings["schema"]["advice"]
        assert states(findings, "stuck rows", "clock") == ["skipped", "ok"]
        assert db.value("select count(*) from pg_namespace where nspname = 'pawl'") == "0", "it changed something"


@test
def a_transaction_that_holds_vacuum_back_is_found_with_its_process():
    with Database() as db, Pawl(db) as pawl, Session(db.url) as session:
        pid = session.do("begin isolation level repeatable read; select pg_backend_pid()")[0]
        # Other tests share the server and may be older; ours is the oldest once they have ended.

        def found():
            row = examine(pawl, "--long-tx", "1s")[1]["long transactions"]
            return row["state"] == "warn" and f"process {pid} " in row["found"] and row

        row = wait_until(found, what="our process is named")
        assert f"pg_terminate_backend({pid})" in row["advice"]
        assert examine(pawl)[1]["long transactions"]["state"] == "ok", "five minutes by default"
        session.do("rollback")


@test
def a_user_who_cannot_see_other_sessions_gets_a_warning():
    with Cluster() as cluster, Pawl(cluster.url(user="Plain")) as pawl:
        cluster.rows('create role "Plain" login')
        findings = examine(pawl)[1]
        for name in ["pool", "long transactions"]:
            row = findings[name]
            assert row["state"] == "warn" and row["found"].startswith("cannot see"), row
            assert row["advice"] == 'grant pg_read_all_stats to "Plain"', row
        cluster.rows('grant pg_read_all_stats to "Plain"')
        assert states(examine(pawl)[1], "pool", "long transactions") == ["ok", "ok"]


@test
def a_missing_right_is_named_and_the_advice_works():
    with Cluster() as cluster, Pawl(cluster.url(user="Plain")) as pawl, Pawl(cluster.url()) as owner:
        cluster.rows('create role "Plain" login')
        assert owner.run("migrate").code == 0
        found = examine(pawl)[1]["schema"]
        assert found["state"] == "fail" and "permission denied for schema pawl" in found["found"], found
        advice, grant = found["advice"].split(": ")
        assert (advice, grant) == ("run as an administrator", 'grant pawl_reader to "Plain"'), found
        cluster.rows(grant)
        found = examine(pawl)[1]
        assert {name for name in CHECKS if found[name]["state"] != "ok"} <= {"server", "pool", "long transactions", "roles"}, found
        assert found["roles"]["advice"] == 'if pods have this login, run as an administrator: grant pawl_admin to "Plain"', found["roles"]
        cluster.rows(found["roles"]["advice"].split(": ")[1])
        assert examine(pawl)[1]["roles"]["state"] == "ok"


@test
def the_login_of_handlers_is_checked_and_the_advice_works():
    with Database() as db:
        login, owner = f"handler_of_{db.name}", f"owner_of_{db.name}"
        env = {"PAWL_HANDLER_DATABASE_URL": db.url.replace("postgres@", f"{login}@", 1)}

        def found(pawl):
            return examine_with(pawl, env)["handlers' login"]

        with Pawl(db) as pawl:
            plain = examine(pawl)[1]["handlers' login"]
            assert plain["state"] == "ok" and plain["found"].startswith("none: "), plain
            row = found(pawl)
            assert row["state"] == "fail" and "PAWL_HANDLER_DATABASE_URL" in row["advice"], row
            db.rows(f"create role {login} login")
            try:
                row = found(pawl)
                assert (row["state"], row["advice"]) == ("fail", f"run as an administrator: grant pawl_handler to {login}"), row
                db.rows(row["advice"].split(": ")[1])
                row = found(pawl)
                assert row["state"] == "ok" and row["found"] == f"{login} may call functions of applications, and nothing else", row
                db.rows(f"grant pawl_monitor to {login}")
                row = found(pawl)
                assert (row["state"], row["advice"]) == ("warn", f"revoke pawl_monitor from {login}"), row
                db.rows(f"revoke pawl_monitor from {login}")
                # The function of a worker of pawl serve.
                db.rows(f"create role {owner}; create schema shop authorization {owner}; set role {owner}; "
                        "create function shop.charge(payload jsonb, command_id uuid) returns jsonb language sql as 'select payload'; "
                        "revoke execute on function shop.charge from public")
                with open(os.path.join(pawl.home, "pawl.ini"), "w", encoding="utf-8") as file:
                    file.write("[worker shop]\nsql = shop.charge\n")
                row = found(pawl)
                assert row["state"] == "fail" and row["advice"].startswith(f"run as {owner}: alter function"), row
                db.rows(f"set role {owner}; " + row["advice"].split(": ")[1])
                row = found(pawl)
                assert row["state"] == "fail" and f"grant usage on schema shop to {login}; grant execute" in row["advice"], row
                db.rows(f"set role {owner}; " + row["advice"].split(": ")[1])
                assert found(pawl)["state"] == "ok", found(pawl)
            finally:
                db.rows(f"drop owned by {login}; drop role {login}; drop schema if exists shop cascade; drop role if exists {owner}")
        with Database() as other, Pawl(db) as pawl:
            row = examine_with(pawl, {"PAWL_HANDLER_DATABASE_URL": other.url})["handlers' login"]
            assert row["state"] == "fail" and "another database" in row["found"], row


@test
def columns_of_row_types_of_pawl_are_named_and_the_advice_works():
    with Database() as db, Pawl(db) as pawl:
        db.rows("create schema shop; create table shop.kept (n integer, c pawl.command[]); create view shop.seen as select c from pawl.command c")
        row = examine(pawl)[1]["row types"]
        assert row["state"] == "warn" and "shop.kept.c of type pawl.command[]" in row["found"], row
        db.rows(row["advice"].split(": ", 1)[1])
        assert examine(pawl)[1]["row types"]["state"] == "ok"


@test
def functions_of_others_in_a_schema_of_pawl_are_named_and_the_advice_works():
    with Database() as db, Pawl(db) as pawl:
        stranger = f"stranger_of_{db.name}"
        db.rows(f"create role {stranger}; create function pawl.mine () returns int language sql as 'select 1'; alter function pawl.mine owner to {stranger}")
        try:
            row = examine(pawl)[1]["schema"]
            assert row["state"] == "warn" and "function pawl.mine() is in a schema of pawl's" in row["found"], row
            db.rows(row["advice"].split(": ", 1)[1])
            assert examine(pawl)[1]["schema"]["state"] == "ok"
        finally:
            db.rows(f"drop owned by {stranger}; drop role {stranger}")


@test
def an_extension_of_an_application_among_the_operators_of_all_is_named_and_the_advice_works():
    """A login that may create in the database may put a trusted one into pg_catalog, where each session finds its operators: those of intarray refuse NULL."""
    with Database() as db, Pawl(db) as pawl:
        assert examine(pawl)[1]["schema"]["state"] == "ok", "plpgsql belongs there"
        if not db.rows("select from pg_available_extensions where name = 'intarray'"):
            return
        stranger = f"stranger_of_{db.name}"
        db.rows(f"create role {stranger}; grant create on database {db.name} to {stranger}; set role {stranger}; create extension intarray schema pg_catalog")
        try:
            row = examine(pawl)[1]["schema"]
            assert row["state"] == "warn" and 'extension "intarray" is in schema pg_catalog' in row["found"], row
            db.rows(row["advice"].split(": ", 1)[1])
            assert examine(pawl)[1]["schema"]["state"] == "ok"
        finally:
            db.rows(f"drop owned by {stranger}; drop role {stranger}")


class WideCluster(Cluster):
    """One that allows what holds vacuum back without a session."""

    def __enter__(self):
        super().__enter__()
        self.rows("alter system set max_prepared_transactions = 2")
        self.rows("alter system set wal_level = logical")
        self._ctl("-m", "fast", "restart")
        return self


@test
def what_holds_vacuum_back_without_a_session_is_found():
    with WideCluster() as cluster, Pawl(cluster.url()) as pawl:
        assert states(examine(pawl)[1], "long transactions", "replication slots") == ["ok", "ok"]
        cluster.rows("select pg_create_logical_replication_slot('forgotten', 'pgoutput')")  # waits for open transactions
        cluster.rows("begin; create table t (); prepare transaction 'it''s old'")

        def found():
            row = examine(pawl, "--long-tx", "1s")[1]["long transactions"]
            return row["state"] == "warn" and row

        row = wait_until(found, what="the prepared transaction is named")
        assert row["found"].startswith("prepared transaction 'it''s old' has been open"), row
        assert row["advice"].endswith("in database \"postgres\": rollback prepared 'it''s old'"), row
        row = examine(pawl)[1]["replication slots"]
        assert row["state"] == "warn" and '"forgotten" has no reader' in row["found"], row
        assert "pg_drop_replication_slot('forgotten')" in row["advice"], row
        cluster.rows("rollback prepared 'it''s old'")
        cluster.rows("select pg_drop_replication_slot('forgotten')")
        # The server's own work may take as long on a busy machine.
        wait_until(lambda: states(examine(pawl, "--long-tx", "1s")[1], "long transactions", "replication slots") == ["ok", "ok"], what="nothing is found")


@test
def dead_letters_that_failed_are_found():
    with Database() as db, Pawl(db) as pawl:
        dead_letters_put(db, ["a", "b"])
        db.rows("update pawl.failed_operations set status = 'failed'")
        row = not_durable(pawl)[1]["stuck rows"]
        assert row["state"] == "warn" and row["found"].startswith("2 dead letters") and "dlq list" in row["advice"], row


@test
def what_alerts_are_about_is_found():
    with Database() as db, Pawl(db) as pawl:
        quiet = not_durable(pawl)[1]
        names = ["queues", "troubleshooting", "handlers", "dead letters", "retention", "rate limits"]
        assert states(quiet, *names) == ["ok"] * 6 and quiet["queues"]["found"] == "no command is queued", quiet
        waiting, young, failed = (pawl.run("send", domain, "job").stdout.strip() for domain in ("mail", "shop", "bank"))
        db.rows(f"update pawl.command set created_at = created_at - interval '356 s' where command_id = '{waiting}'")
        assert pawl.run("work", "bank", "--exec", "exit 70", "--drain").code == 0
        dead_letters_put(db, [str(n) for n in range(4)])
        db.rows("insert into pawl.tally (name, count, at, source, flush) select n, c, pawl.now(), gen_random_uuid(), 1 "
                "from (values ('handlers', 20), ('handlers_failed', 3), ('rate_limited', 11)) t (n, c)")
        db.rows("update pawl.retention_clock set at = pawl.now() - interval '3 days', jumped_at = pawl.now()")
        found = examine_with(pawl, {"PAWL_ALERT_DEAD_LETTERS": "3"})
        assert states(found, *names) == ["warn"] * 6, found
        assert f"the oldest queued command, {waiting} (mail / job), has been queued for 3" in found["queues"]["found"], found["queues"]
        assert found["queues"]["found"].endswith(" s, and 1 more in 2 domains"), found["queues"]
        assert found["queues"]["advice"].startswith("start workers: pawl work mail, "), found["queues"]
        assert found["troubleshooting"]["found"] == "1 command waits for an operator, the oldest in domain bank", found
        assert "pawl tsq list" in found["troubleshooting"]["advice"], (found, failed)
        assert found["dead letters"]["found"] == "4 unresolved" and "pawl dlq list" in found["dead letters"]["advice"], found
        patient = examine_with(pawl, {"PAWL_ALERT_WAITING": "1h", "PAWL_ALERT_FAILING": "20", "PAWL_ALERT_RATE_LIMITED": "11"})
        assert states(patient, *names) == ["ok", "warn", "ok", "ok", "warn", "ok"], (patient, young)


@test
def a_command_that_was_retried_is_queued_since_its_retry():
    with Database() as db, Pawl(db) as pawl:
        sent = pawl.run("send", "shop", "job").stdout.strip()
        db.rows(f"update pawl.command set created_at = created_at - interval '1 day' where command_id = '{sent}'")
        retry_at_once(db, "shop")
        assert pawl.run("work", "shop", "--exec", "exit 75", "--drain").code == 0  # to troubleshooting
        assert pawl.run("tsq", "retry", sent).code == 0
        assert states(not_durable(pawl)[1], "queues") == ["ok"]


@test
def misspelled_settings_in_the_environment_are_found():
    with Database() as db, Pawl(db, env={"PAWL_STEP_HOST": "10.0.0.7", "PAWL_TOKEN": "x", "PAWL_TEST_X": "y"}) as pawl:
        row = not_durable(pawl)[1]["environment"]
        assert (row["state"], row["found"]) == ("warn", "PAWL_STEP_HOST is not a setting, did you mean PAWL_STEP_HOSTS?"), row
        assert "pawl help settings" in row["advice"], row


@test
def a_ledger_that_is_ahead_of_the_clock_is_found():
    with Database() as db, Pawl(db) as pawl:
        db.rows("select count(*) from wallet.open(array['ann'])")
        assert not_durable(pawl)[1]["ledger clock"]["state"] == "ok"
        db.rows("set session_replication_role = replica; "
                "update wallet.txn set at = at + interval '1 hour' where id = (select max(id) from wallet.txn)")
        row = not_durable(pawl)[1]["ledger clock"]
        assert row["state"] == "warn" and "after the database's clock" in row["found"] and "time source" in row["advice"], row


@test
def a_dead_database_is_found_and_nothing_after_it_is_tried():
    with Database() as db, Proxy(db) as proxy, Pawl(proxy.url) as pawl:
        proxy.do("mode refuse")
        code, findings = examine(pawl)
        assert code == 69, code
        assert findings["connection"]["state"] == "fail" and "reachable" in findings["connection"]["advice"]
        assert set(states(findings, *CHECKS[CHECKS.index("connection") + 1:])) == {"skipped"}


@test
def wrong_settings_are_found():
    with Database() as db, Pawl(db, env={"PAWL_POOL_MAX": "many"}) as pawl:
        code, findings = examine(pawl)
        assert code == 2 and findings["settings"]["state"] == "fail" and "PAWL_POOL_MAX" in findings["settings"]["found"]
        assert set(states(findings, *CHECKS[1:])) == {"skipped"}


@test
def a_disk_that_is_nearly_full_is_found():
    with small_disk("400m") as disk, Pawl(home=disk) as pawl:
        assert pawl.run("migrate").code == 0 and pawl.run("db", "start").code == 0
        code, findings = examine(pawl)
        assert code == 0 and findings["disk"]["state"] == "warn", findings["disk"]  # less than 1 GiB, more than 100 MiB
        assert "MiB" in findings["disk"]["found"] and "enlarge the disk" in findings["disk"]["advice"], findings["disk"]
        disk_fill(disk, free=60 << 20)
        code, findings = examine(pawl)
        assert code == 1 and findings["disk"]["state"] == "fail", findings["disk"]
        assert "free some space now" in findings["disk"]["advice"], findings["disk"]
        assert pawl.run("db", "stop").code == 0
        code, findings = examine(pawl)  # a full disk is why a server does not start
        assert states(findings, "settings", "connection", "disk", "stuck rows") == ["ok", "fail", "fail", "skipped"], findings


@test
def a_full_disk_stops_writes_and_neither_reads_nor_readiness():
    """All pods share the disk: taking them out of service would stop the reads too, and help nothing."""
    with small_disk("64m") as disk, Cluster() as cluster:
        folder = os.path.join(disk, "space")
        os.mkdir(folder)
        if IS_ROOT:
            shutil.chown(folder, "postgres")
        cluster.rows(f"create tablespace small location '{folder}'")
        cluster.rows("create database crowded tablespace small")
        with Pawl(cluster.url("crowded")) as pawl:
            pawl.serve()
            first = pawl.http("POST", "/v1/commands", {"domain": "shop", "type": "hello"})
            assert first.status == 201, first
            disk_fill(disk)
            body = {"domain": "shop", "type": "hello", "payload": {"text": os.urandom(250000).hex()}}
            for _ in range(8):  # more than open the breaker
                sent = pawl.http("POST", "/v1/commands", body)
                assert sent.status == 503 and sent.json["type"].endswith("/database-unavailable"), sent
            assert metric(pawl, "pawl_breaker_opened_total") == 0
            assert pawl.http("GET", "/health/ready").status == 200
            assert pawl.http("GET", f"/v1/commands/{first.json['command_id']}").status == 200
            os.remove(os.path.join(disk, "ballast"))
            assert pawl.http("POST", "/v1/commands", body).status == 201, "with room again it works"
            assert pawl.stop() == 0
        cluster.rows("drop database crowded")


@test
def charts_need_a_library_where_there_is_a_bot():
    with Database() as db, Pawl(db) as pawl:
        def charts(**env):
            return next(row for row in pawl.run("doctor", "--json", env=env).json if row["check"] == "charts")

        assert charts()["state"] == "ok" and "no bot" in charts()["found"], charts()
        token = {"PAWL_TELEGRAM_TOKEN": "424242:TEST-token_of-the-bot"}
        assert charts(**token)["state"] == "ok", charts(**token)
        missing = charts(**token, PAWL_FAULT="rating.cairo.load:fail")
        assert missing["state"] == "warn" and "libcairo2" in missing["found"], missing


main()
