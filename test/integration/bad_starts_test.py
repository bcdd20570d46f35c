#!/usr/bin/env python3
"""bad_starts - whatever is wrong before the first request: one sentence, the right exit code, no secret in it."""
import os
import shutil
import socket
import subprocess
import tempfile

from checks import refused
from pawl_test import Database, Pawl, Proxy, main, psql, setting, test, wait_until
from servers import IS_ROOT, Cluster, UserPawl, disk_fill, postmaster_pid, small_disk

SECRET = "hunter2-hunter2"
NOWHERE = "postgresql://postgres@127.0.0.1:1/postgres"


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


# --- threads ---

@test
def a_thread_that_cannot_be_started_is_named():
    """The fault point of a thread is its name: the limits of a process that a sanitizer watches cannot be set."""
    with Database() as db, Pawl(db) as pawl:
        for name in ("janitor", "http-executor", "http-network", "task"):
            refused(pawl, "serve", env={"PAWL_FAULT": f"{name}:fail"}, code=1,
                    words=[f'cannot start the thread "{name}"', "Resource temporarily unavailable"])
        refused(pawl, "work", "shop", "--noop", env={"PAWL_FAULT": "heartbeat:fail"}, code=1, words=["9 threads for handlers"])


@test
def a_running_pod_that_cannot_start_a_thread_goes_on():
    with Database() as db, Pawl(db) as pawl:
        pawl.serve(env={"PAWL_FAULT": "combiner:fail:1000000"}, wait=False)
        pawl.server.wait_started()
        sent = pawl.http("POST", "/v1/commands", {"domain": "shop", "type": "hello"})
        assert sent.status == 503 and int(sent.headers["retry-after"]) > 0, sent
        assert pawl.http("GET", "/health/ready").status == 503
        assert pawl.http("GET", "/health/live").status == 200
        assert pawl.stop() == 0


# --- settings ---

@test
def a_wrong_setting_is_named_with_its_location_and_a_valid_value():
    with Pawl(NOWHERE) as pawl:
        for name, value, right in (
                ("PAWL_POOL_MAX", "ten", "an integer from 1 to 1000"), ("PAWL_POOL_MAX", "0", "from 1 to 1000"),
                ("PAWL_POOL_MAX", "99999999999999999999", "from 1 to 1000"), ("PAWL_CONNECT_TIMEOUT", "5 parsecs", "a duration from 10ms"),
                ("PAWL_LOG", "loud", "debug"), ("PAWL_LOG_FORMAT", "xml", "json"), ("PAWL_MIGRATE", "maybe", "check"),
                ("PAWL_ROLE", "api,king", "monitor")):
            refused(pawl, "serve", env={name: value}, code=2, words=[name, f'"{value}"', right, "environment"])
        refused(pawl, "serve", "--pool-max", "ten", code=2, words=["--pool-max", "ten", "1 to 1000"])
        refused(pawl, "serve", env={"PAWL_HOME": "relative/path"}, code=2, words=["PAWL_HOME in the environment", "absolute"])
        refused(pawl, "serve", env={"PAWL_LISTEN": "8080"}, code=2,
                words=["PAWL_LISTEN in the environment", '"8080"', "host:port"])
        refused(pawl, "serve", env={"PAWL_DATABASE_URL": "", "DATABASE_URL": f"mysql://{SECRET}"}, code=2, secrets=[SECRET],
                words=["DATABASE_URL in the environment", "postgresql://user@host"])
        refused(pawl, "serve", env={"PAWL_POOL_MIN": "5", "PAWL_POOL_MAX": "3"}, code=2,
                words=["PAWL_POOL_MIN", "PAWL_POOL_MAX", "5", "3"])
        refused(pawl, "serve", env={"PAWL_ALERT_WEBHOOK": SECRET}, code=2, words=["PAWL_ALERT_WEBHOOK in the environment", "https://"],
                secrets=[SECRET])


@test
def a_wrong_line_in_the_file_is_named_with_its_number():
    with Pawl(NOWHERE) as pawl:
        file = os.path.join(pawl.home, "pawl.ini")
        write(file, "# settings\n\npool_max = ten\n")
        refused(pawl, "serve", code=2, words=["PAWL_POOL_MAX", file, "line 3", "1 to 1000"])
        write(file, "PAWL_LISTEN = here\n")
        refused(pawl, "serve", code=2, words=["PAWL_LISTEN", file, "line 1", "host:port"])
        write(file, "pool_maxx = 3\n")
        refused(pawl, "serve", code=2, words=["pool_maxx", file, "line 1", "pool_max"])
        os.remove(file)
        other = os.path.join(pawl.home, "other.ini")
        refused(pawl, "serve", "--config", other, code=2, words=[other])
        write(other, "pool_max = 0\n")
        refused(pawl, "serve", "--config", other, code=2, words=[other, "line 1"])


@test
def an_unknown_word_is_answered_with_the_nearest_right_one():
    with Pawl(NOWHERE) as pawl:
        refused(pawl, "sevre", code=2, words=["sevre", '"serve"'])
        refused(pawl, "dlq", "lst", code=2, words=["lst", '"list"'])
        refused(pawl, "migrate", "stauts", code=2, words=["stauts", '"status"'])
        refused(pawl, "--jsno", "dlq", "list", code=2, words=["--jsno", '"--json"'])
        refused(pawl, "serve", "--lissten", "127.0.0.1:0", code=2, words=["--lissten", '"--listen"'])
        refused(pawl, "dlq", "list", "--limmit", "3", code=2, words=["--limmit", '"--limit"'])
        refused(pawl, "xyzzy", code=2, words=["xyzzy", "pawl help"])
        refused(pawl, "dlq", "show", code=2, words=["ID is missing"])
        refused(pawl, "send", "shop", code=2, words=["pawl: TYPE is missing: pawl send DOMAIN TYPE [JSON|-]"])
        refused(pawl, "wallet", "transfer", code=2, words=["pawl: FROM is missing"])
        refused(pawl, "wallet", "transfer", "ann", "bob", code=2, words=["pawl: N is missing"])
        refused(pawl, "migrate", code=2, words=["PAWL_DRAIN_TIMEOUT", '"30"', "no unit"], env={"PAWL_DRAIN_TIMEOUT": "30"})
        refused(pawl, "send", "shop", "a", "--delay", "30", code=2, words=["--delay", "no unit"])
        refused(pawl, "dlq", "show", "one", code=2, words=["one", "integer"])
        refused(pawl, "key", "list", "surplus", code=2, words=["surplus"])
        refused(pawl, "serve", "--listen", code=2, words=["--listen", "value"])
        refused(pawl, "serve", "--role", "emperor", code=2, words=["emperor", "monitor"])


@test
def a_malformed_address_is_refused():
    with Database() as db, Pawl(db) as pawl:
        for listen in ("nonsense", "127.0.0.1:99999", "127.0.0.1:-1", "127.0.0.1", "999.1.1.1:80", ":", "[::1:80"):
            refused(pawl, "serve", "--listen", listen, code=2, words=[listen])


@test
def an_address_in_use_is_named():
    with Database() as db, Pawl(db) as pawl, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        refused(pawl, "serve", "--listen", address, code=1, words=[address, "in use"])
    with Database(empty=True) as db, Pawl(db) as pawl, socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        refused(pawl, "serve", "--listen", address, code=1, words=[address, "in use"])
        assert db.rows("select from pg_namespace where nspname = 'pawl'") == [], "it migrated before it had the address"


@test
def roles_with_nothing_to_do_are_refused():
    with Database(empty=True) as db, Pawl(db) as pawl:
        for role, word in (("bot", "--role"),):
            refused(pawl, "serve", "--role", role, code=2, words=["--role", word])


@test
def a_program_that_is_not_there_is_refused_before_a_command_is_claimed():
    with Database() as db, Pawl(db) as pawl:
        assert pawl.run("send", "shop", "charge").code == 0
        for program, words in (("/no/such", ["/no/such", "No such file"]), ("no-such-program --fast", ["no-such-program", "PATH"]),
                               ("A=1 /etc/passwd", ["/etc/passwd", "executable"]), ("/tmp", ["/tmp", "executable"])):
            refused(pawl, "work", "shop", "--exec", program, "--drain", code=2, words=words)
        assert db.value("select count(*) from pawl.ready") == "1"
        assert db.value("select count(*) from pawl.audit where event = 'RECEIVED'") == "0", "an attempt was burned"
        for program in ("cat >/dev/null && true", "if true; then :; fi", "( true )", "\"true\"", "A=1 true"):
            assert pawl.run("send", "shop", "charge").code == 0
            done = pawl.run("work", "shop", "--exec", program, "--drain")
            assert done.code == 0, (program, done.stderr)
        assert db.value("select count(*) from pawl.outcome where status = 'COMPLETED'") == "6"


# --- the way to the database ---

@test
def a_malformed_url_is_refused_without_its_password():
    with Pawl(f"postgresql://app:{SECRET}@host:port/db") as pawl:
        refused(pawl, "migrate", code=2, words=["port must be a number from 1 to 65535"], secrets=[SECRET])
    for url in (f"postgresql://app:{SECRET}@/db?nonsense=1",
                f"password={SECRET} nonsense=1", f"password='{SECRET}", "postgresql://[::1/db"):
        with Pawl(url) as pawl:
            refused(pawl, "migrate", code=2, words=["database url", "postgresql://user@host"], secrets=[SECRET])
    for url in ("mysql://root@host/db", "127.0.0.1/pawl", "127.0.0.1:5432", "foo"):
        with Pawl(url) as pawl:
            refused(pawl, "migrate", code=2, words=["database url must begin with postgresql://, as in postgresql://user@host"])
    for url, reason in [(f"host={SECRET} and", 'missing "=" after "..." in connection info string'), (f"a{SECRET}=1", 'invalid connection option "..."')]:
        with Pawl(url) as pawl:
            refused(pawl, "migrate", code=2, words=[reason, "postgresql://user@host"], secrets=[SECRET])


@test
def a_wrong_password_is_reported_immediately():
    with Cluster(hba="host all locked 127.0.0.1/32 scram-sha-256\n") as cluster:
        cluster.rows("create role locked login superuser password 'right-password'")
        with Pawl(cluster.url(user="locked", password=SECRET)) as pawl:
            refused(pawl, "serve", code=69, words=["password authentication failed", "locked"], secrets=[SECRET])
            with open(cluster.folder + "/log", encoding="utf-8") as log:
                tries = log.read().count('password authentication failed for user "locked"')
            assert tries == 1, f"a wrong password was tried {tries} times"
        with Pawl(cluster.url(user="locked")) as pawl:
            refused(pawl, "migrate", code=69, words=["password"])
        with Pawl(cluster.url(user="locked", password="right-password")) as pawl:
            assert pawl.run("migrate").code == 0


@test
def an_unknown_database_or_user_is_named():
    with Cluster() as cluster:
        with Pawl(cluster.url("nowhere")) as pawl:
            refused(pawl, "serve", code=69, words=['"nowhere"', "does not exist"])
        with Pawl(cluster.url(user="nobody_here")) as pawl:
            refused(pawl, "serve", code=69, words=['"nobody_here"', "does not exist"])


@test
def a_server_that_cannot_be_reached_is_named():
    with Pawl("postgresql://postgres@127.0.0.1:1/postgres") as pawl:
        refused(pawl, "migrate", code=69, words=["127.0.0.1", "1", "refused"])
    with Pawl("postgresql://postgres@/postgres?host=/tmp/no-such-folder") as pawl:
        refused(pawl, "migrate", code=69, words=["/tmp/no-such-folder"])
    with Pawl(f"postgresql://postgres:{SECRET}@no-such-host.invalid/postgres") as pawl:
        refused(pawl, "migrate", code=69, words=["no-such-host.invalid"], secrets=[SECRET])


@test
def a_server_that_never_answers_costs_the_connect_timeout():
    with Database() as db, Proxy(db) as proxy:
        proxy.do("mode blackhole")
        with Pawl(proxy.url, env={"PAWL_CONNECT_TIMEOUT": "300ms"}) as pawl:
            refused(pawl, "serve", code=69, words=["127.0.0.1", str(proxy.port)])
            wait_until(lambda: proxy.do("counts")["accepted"] == 6, what="the first try and five more")


# --- what the database holds ---

@test
def a_missing_right_is_named():
    with Database(empty=True) as db:
        role = f"poor_{os.getpid()}"
        psql(setting("PAWL_TEST_URL"), f"create role {role} login")
        try:
            url = db.url.replace("postgres@", role + "@", 1)
            with Pawl(url) as pawl:
                for command in (["migrate"], ["serve", "--listen", "127.0.0.1:0"]):
                    refused(pawl, *command, code=1, words=[role, db.name, "grant create on database"])
            db.rows(f"create schema pawl; grant usage on schema pawl to {role}")
            with Pawl(url) as pawl:
                refused(pawl, "migrate", code=1, words=[role, "grant create on schema"])
        finally:
            db.rows("drop schema if exists pawl cascade")
            psql(setting("PAWL_TEST_URL"), f"drop role {role}")


@test
def a_newer_schema_is_left_alone():
    with Database() as db, Pawl(db) as pawl:
        db.rows("insert into pawl.migration (version, name, checksum) values (9999, 'from_the_future', 'x')")
        for command in (["serve", "--listen", "127.0.0.1:0"], ["migrate"], ["key", "list"]):
            refused(pawl, *command, code=1, words=["version 9999", "newer pawl"])


@test
def a_changed_migration_is_named():
    with Database() as db, Pawl(db) as pawl:
        db.rows("update pawl.migration set checksum = 'changed' where version = 1")
        refused(pawl, "serve", "--listen", "127.0.0.1:0", code=1, words=["migration 1", "differs"])
        states = {row["version"]: row["state"] for row in pawl.run("migrate", "status", "--json").json}
        assert states[1] == "changed", states


@test
def an_old_schema_is_refused_where_migration_is_not_allowed():
    with Database(empty=True) as db, Pawl(db) as pawl:
        refused(pawl, "serve", "--listen", "127.0.0.1:0", env={"PAWL_MIGRATE": "check"}, code=1, words=["pawl migrate"])
        refused(pawl, "dlq", "list", code=1, words=["pawl migrate"])
        assert db.value("select count(*) from pg_namespace where nspname = 'pawl'") == "0", "it changed something"


@test
def a_full_disk_under_the_database_is_reported():
    with small_disk("24m") as disk, Cluster() as cluster:
        os.chmod(disk, 0o777)
        folder = os.path.join(disk, "space")
        os.mkdir(folder)
        if IS_ROOT:
            shutil.chown(folder, "postgres")
        cluster.rows(f"create tablespace small location '{folder}'")
        cluster.rows("create database crowded tablespace small")
        cluster.rows("select 1", "crowded")  # the first connection writes a file of its own
        disk_fill(disk)
        with Pawl(cluster.url("crowded")) as pawl:
            # It is tried again, with a line in the log for each time, because room may have been made.
            refused(pawl, "migrate", code=69, words=["No space left on device"])
        os.remove(os.path.join(disk, "ballast"))
        with Pawl(cluster.url("crowded")) as pawl:
            assert pawl.run("migrate").code == 0, "with room again it works"
        cluster.rows("drop database crowded")


# --- the private server ---

@test
def a_full_disk_under_the_home_is_reported():
    with small_disk("16m") as disk, Pawl(home=disk) as pawl:
        refused(pawl, "serve", "--listen", "127.0.0.1:0", code=69, words=["No space left on device"])
        assert postmaster_pid(disk) == 0


@test
def a_data_directory_of_another_version_is_left_alone():
    with Pawl() as pawl:
        data = os.path.join(pawl.home, "pg/data")
        os.makedirs(data)
        write(os.path.join(data, "PG_VERSION"), "9\n")
        if IS_ROOT:
            shutil.chown(data, "postgres")
        refused(pawl, "serve", "--listen", "127.0.0.1:0", code=69, words=[data, "PostgreSQL 9"])
        assert os.listdir(data) == ["PG_VERSION"]


class BarePawl(Pawl):
    """pawl where no programs of the server are installed: nothing is mounted over their folder, for it alone."""

    def _command(self, arguments):
        # In a chroot the root is no mount of its own, and how it is shared cannot be changed.
        is_chroot = subprocess.run(["unshare", "--mount", "true"], stderr=subprocess.DEVNULL).returncode != 0
        return ["unshare", "--mount", *(["--propagation", "unchanged"] if is_chroot else []), "sh", "-c", 'mount -t tmpfs none /usr/lib/postgresql && exec "$@"', "sh",
                setting("PAWL_BIN"), *arguments]


@test
def missing_server_programs_are_named_with_their_package():
    with BarePawl(env={"PATH": "/usr/bin:/bin"}) as pawl:
        refused(pawl, "serve", "--listen", "127.0.0.1:0", code=1, words=["no PostgreSQL server found", 'package "postgresql'])


@test
def a_home_that_cannot_be_written_is_named():
    with UserPawl() as pawl:
        os.chown(pawl.home, 0, 0)
        os.chmod(pawl.home, 0o555)
        refused(pawl, "serve", "--listen", "127.0.0.1:0", code=1, words=[pawl.home, "denied"])
    with Database() as db, UserPawl(db) as pawl:
        os.chown(pawl.home, 0, 0)
        os.chmod(pawl.home, 0o555)
        pawl.env.pop("PAWL_ADMIN_TOKEN")
        refused(pawl, "serve", "--listen", "127.0.0.1:0", code=1, words=[os.path.join(pawl.home, "token"), "denied"])


@test
def a_directory_above_the_home_that_the_server_may_not_enter_is_named():
    """As root the private PostgreSQL runs as the user postgres."""
    with tempfile.TemporaryDirectory(prefix="pawl-barred.") as folder:
        os.chmod(folder, 0o755)
        barred = os.path.join(folder, "barred")
        home = os.path.join(barred, "open", "home")
        os.makedirs(home)
        os.chmod(barred, 0o700 if IS_ROOT else 0o755)
        with Pawl(home=home) as pawl:
            if IS_ROOT:
                refused(pawl, "db", "start", code=1, words=[f'user "postgres" may not enter the directory "{barred}"'])
            else:
                assert pawl.run("db", "start").code == 0


main()
