#!/usr/bin/env python3
"""operations - what docs/operations.md says about the settings file, TLS, and restoring a backup, done as it says."""
import os
import re
import subprocess

from bus_commands import send, status, work
from checks import refused, stop_clean
from pawl_test import TIMEOUT_S, Pawl, main, setting, test
from servers import IS_ROOT, Cluster

DOCS = os.path.join(setting("PAWL_SOURCE"), "docs/operations.md")


def run(*command, **rest):
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=TIMEOUT_S * 4, **rest).stdout


def program(name):
    return os.path.join(setting("PAWL_TEST_BIN"), name)


@test
def the_settings_file_of_the_docs_is_read():
    with open(DOCS, encoding="utf-8") as file:
        shown = re.search(r"    # /etc/pawl\.ini.*?\n\n", file.read(), re.S)[0]
    with Cluster() as cluster, Pawl(cluster.url()) as pawl:
        url = pawl.env.pop("PAWL_DATABASE_URL")
        lines = [line.strip() for line in shown.strip().splitlines()]
        assert any(line.startswith("database_url") for line in lines) and "[pawl]" in lines, shown
        with open(os.path.join(pawl.home, "pawl.ini"), "w", encoding="utf-8") as file:
            file.writelines(f"database_url = {url}\n" if line.startswith("database_url") else
                            "listen = 127.0.0.1:0\n" if line.startswith("listen ") else line + "\n" for line in lines)
        assert pawl.run("db", "url").stdout.strip() == url
        rows = {row["setting"]: row for row in pawl.run("help", "settings", "--json").json}
        assert "PAWL_POOL_MAX" in rows
        pawl.serve()
        stop_clean(pawl.server)
        refused(pawl, "serve", "--pool-max", "0", code=2, words=["--pool-max must be an integer"])


def certificates(folder):
    """An authority and a certificate for localhost by it; a second authority that signed nothing."""
    for name in ("ca", "other"):
        run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={name}",
            "-keyout", f"{folder}/{name}.key", "-out", f"{folder}/{name}.crt")
    run("openssl", "req", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-keyout", f"{folder}/server.key",
        "-out", f"{folder}/server.csr")
    run("openssl", "x509", "-req", "-in", f"{folder}/server.csr", "-CA", f"{folder}/ca.crt", "-CAkey", f"{folder}/ca.key",
        "-CAcreateserial", "-days", "2", "-out", f"{folder}/server.crt")
    os.chmod(f"{folder}/server.key", 0o600)
    for name in ("ca.crt", "other.crt"):
        os.chmod(f"{folder}/{name}", 0o644)
    if IS_ROOT:
        run("chown", "postgres", f"{folder}/server.key", f"{folder}/server.crt")


@test
def tls_to_postgresql_is_checked_and_used():
    with Cluster() as cluster:
        certificates(cluster.folder)
        cluster.rows("alter system set ssl = on")
        for name, file in (("ssl_cert_file", "server.crt"), ("ssl_key_file", "server.key")):
            cluster.rows(f"alter system set {name} = '{cluster.folder}/{file}'")
        cluster.restart("fast")
        url = f"postgresql://postgres@localhost:{cluster.port}/postgres?sslmode=verify-full&hostaddr=127.0.0.1&sslrootcert="
        with Pawl(url + f"{cluster.folder}/ca.crt") as pawl:
            assert pawl.run("migrate").code == 0
            pawl.serve()
            used = cluster.rows("select distinct ssl from pg_stat_ssl join pg_stat_activity a using (pid) "
                                "where a.application_name like 'pawl%'")
            assert used == ["t"], used
            stop_clean(pawl.server)
            refused(pawl, "migrate", "status", env={"PAWL_DATABASE_URL": url + f"{cluster.folder}/other.crt"}, code=69,
                    words=["certificate"])


def roles_of_docs():
    with open(DOCS, encoding="utf-8") as file:
        return re.search(r"for role in ([\w ]+); do", file.read())[1].split()


@test
def a_backup_is_restored_as_the_docs_say():
    with Cluster() as there, Cluster(conf="fsync = on\nsynchronous_commit = on\n") as here:
        with Pawl(there.url()) as pawl:
            assert pawl.run("migrate").code == 0
            kept = send(pawl, "shop", "charge", {"n": 1})
            for arguments in (("create", "ann"), ("topup", "ann", "5")):
                assert pawl.run("wallet", *arguments).code == 0
            there.rows("create role app login")
            there.rows("grant pawl_app to app")
            there.rows("create schema app authorization app")
            there.rows("set role app; create table app.orders (id int); insert into app.orders values (1)")
            dump = os.path.join(there.folder, "pawl.dump")
            run(program("pg_dump"), "--format=custom", f"--file={dump}", pawl.run("db", "url").stdout.strip())
        assert set(roles_of_docs()) == set(there.rows("select distinct role from pawl.grant_contains()"))
        for role in roles_of_docs():
            here.rows(f"create role {role} nologin")
        here.rows("create role app login")
        here.rows("grant pawl_app to app")
        here.rows("create database shop")
        run(program("pg_restore"), "--exit-on-error", f"--dbname={here.url('shop')}", dump)
        with Pawl(here.url("shop")) as pawl:
            assert pawl.run("migrate").code == 0
            assert pawl.run("doctor").code == 0, pawl.run("doctor")
            assert pawl.run("wallet", "verify").code == 0
            here.rows("set role app; insert into app.orders values (2); create table app.lines (id int)", "shop")
            assert here.rows("select count(*) from app.orders", "shop") == ["2"]
            assert pawl.run("wallet", "balance", "ann", "--json").json["balance"] == 5
            assert work(pawl, "shop", "--noop")["completed"] == 1 and status(pawl, kept) == "COMPLETED"
            pawl.serve()
            stop_clean(pawl.server)


main()
