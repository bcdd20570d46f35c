#!/usr/bin/env python3
"""roles - what a pod does: answer, watch, or both."""
import os
import signal

from checks import alert, dead_letters_put, is_clean, metric, refused, stop_clean
from pawl_test import Database, Pawl, main, test, wait_until
from servers import Cluster, Receiver, backends


def serve_without_http(pawl, *arguments):
    """A pod without the role api has no address."""
    process = pawl.start("serve", *arguments)
    wait_until(lambda: process.said(r"^pawl is ready$") or not process.is_running(), what="ready")
    assert process.is_running(), process.stderr
    return process


def sockets_listening(pid):
    """Inodes of the listening TCP sockets that this process holds."""
    held = set()
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            held.add(os.readlink(f"/proc/{pid}/fd/{name}"))
        except FileNotFoundError:
            pass
    with open("/proc/net/tcp", encoding="ascii") as table:
        rows = [line.split() for line in table.readlines()[1:]]
    return [row[9] for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in held]


@test
def an_api_pod_watches_only_itself():
    with Database() as db, Receiver() as receiver, Pawl(db, env={"PAWL_ALERT_WEBHOOK": receiver.url}) as pawl, \
            Pawl(db, env={"PAWL_ALERT_WEBHOOK": receiver.url}) as watcher:
        api = pawl.serve("--role", "api")
        dead_letters_put(db, [f"key-{i}" for i in range(101)])
        monitor = serve_without_http(watcher, "--role", "monitor")
        wait_until(lambda: receiver.states("dead-letters") == ["firing"], what="the watching pod tells")
        assert alert(pawl, "dead-letters")["state"] == "ok" and metric(pawl, "pawl_dead_letters") == 0, "it looked"
        assert monitor.stop() == 0 and is_clean(monitor), monitor.stderr
        assert receiver.states("dead-letters") == ["firing"]
        stop_clean(api)


@test
def a_monitor_pod_has_no_address():
    with Database() as db, Pawl(db) as pawl:
        process = serve_without_http(pawl, "--role", "monitor", "--listen", "192.0.2.1:1")
        assert sockets_listening(process.pid) == []
        assert backends(db) >= 1
        assert process.stop(signal.SIGINT) == 0
        assert is_clean(process), process.stderr
        assert backends(db) == 0


@test
def a_pod_with_both_roles_does_both():
    with Database() as db, Pawl(db, env={"PAWL_ROLE": "monitor,api"}) as pawl:
        pawl.serve()
        assert len(sockets_listening(pawl.server.pid)) == 1
        dead_letters_put(db, ["one"])
        wait_until(lambda: metric(pawl, "pawl_dead_letters") == 1, what="it looks")
        stop_clean(pawl.server)


@test
def a_webhook_is_called_by_a_monitor_that_has_one():
    """Another monitor holds the leases of all tasks and has no webhook."""
    with Database() as db, Receiver() as receiver, Pawl(db) as deaf, Pawl(db, env={"PAWL_ALERT_WEBHOOK": receiver.url}) as pawl:
        serve_without_http(deaf, "--role", "monitor")
        wait_until(lambda: int(db.value("select count(*) from pawl.task where until > pawl.now()")) >= 5, what="its leases")
        dead_letters_put(db, [f"key-{i}" for i in range(101)])
        pawl.serve("--role", "api,monitor")
        wait_until(lambda: receiver.states("dead-letters") == ["firing"], what="the pod with the webhook sends it")
        stop_clean(pawl.server)


@test
def a_pod_whose_login_lacks_rights_does_not_start_and_the_advice_works():
    with Cluster() as cluster, Pawl(cluster.url()) as owner, Pawl(cluster.url(user="shop")) as pawl:
        assert owner.run("migrate").code == 0
        cluster.rows("create role shop login in role pawl_app")
        listen = ("--listen", "127.0.0.1:0")
        said = refused(pawl, "serve", *listen, code=1, words=["user shop", "role monitor needs"])
        assert said.endswith(": grant pawl_admin to shop, or start with --role api,worker"), said
        said = refused(pawl, "serve", "--role", "monitor", code=1, words=["user shop"])
        assert said.endswith(": grant pawl_monitor to shop"), said
        roles = next(row for row in pawl.run("doctor", "--json").json if row["check"] == "roles")
        assert roles["state"] == "warn" and "user shop may not do what the role monitor needs" in roles["found"], roles
        assert roles["advice"].endswith(": grant pawl_admin to shop"), roles
        # Enough for applications, so it starts, and says what operators will not get.
        pawl.serve("--role", "api,worker")
        wait_until(lambda: pawl.server.said("requests of operators get 403: user shop"), what="the warning")
        stop_clean(pawl.server)
        cluster.rows("grant pawl_monitor to shop")
        assert serve_without_http(pawl, "--role", "monitor").stop() == 0
        cluster.rows("grant pawl_admin to shop")
        pawl.serve()
        assert not pawl.server.said("operators get 403")
        stop_clean(pawl.server)
        roles = next(row for row in pawl.run("doctor", "--json").json if row["check"] == "roles")
        assert roles["state"] == "ok", roles
        cluster.rows("alter role shop set default_transaction_read_only = on")
        said = refused(pawl, "serve", *listen, code=1, words=["default_transaction_read_only is on for user shop"])
        assert said.endswith(": alter role shop set default_transaction_read_only = off"), said


@test
def the_advice_to_a_member_that_does_not_inherit_its_rights_works():
    with Cluster() as cluster, Pawl(cluster.url()) as owner, Pawl(cluster.url(user="idle")) as pawl:
        assert owner.run("migrate").code == 0
        cluster.rows("create role idle login noinherit in role pawl_admin")
        said = refused(pawl, "serve", "--listen", "127.0.0.1:0", code=1, words=["user idle", "roles api,worker,monitor need"])
        advice = said.rpartition(": ")[2].partition(", or")[0]
        assert advice in ("alter role idle inherit", "grant pawl_admin to idle with inherit true"), said
        cluster.rows(advice)
        pawl.serve()
        stop_clean(pawl.server)


@test
def an_unknown_role_is_refused():
    with Database() as db, Pawl(db) as pawl:
        refused(pawl, "serve", "--role", "api,emperor", code=2, words=["emperor", "api", "worker", "monitor", "bot"])
        refused(pawl, "serve", "--role", ",", code=2, words=["--role"])


main()
