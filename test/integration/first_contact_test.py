#!/usr/bin/env python3
"""first_contact - a machine with PostgreSQL's programs and no settings: one command, and it serves."""
import atexit
import os
import re
import shutil
import signal
import stat
import tempfile

from checks import alert, problem, refused, stop_clean
from pawl_test import Pawl, main, test, wait_until
from servers import UserPawl, kill_postmaster, postmaster_pid

ROUTES = [
    ("get", "/health/live"), ("get", "/health/ready"), ("get", "/metrics"), ("get", "/openapi.json"),
    ("get", "/v1/alerts"), ("get", "/v1/dead-letters"), ("post", "/v1/dead-letters/{id}/retry"),
    ("delete", "/v1/dead-letters/{id}"),
    ("post", "/v1/commands"), ("get", "/v1/commands"), ("post", "/v1/commands/batch"), ("get", "/v1/commands/{id}"),
    ("post", "/v1/commands/{id}/cancel"), ("get", "/v1/batches/{id}"), ("post", "/v1/batches/{id}/seal"),
    ("post", "/v1/domains/{domain}/claim"), ("post", "/v1/domains/{domain}/settle"),
    ("post", "/v1/domains/{domain}/extend"), ("post", "/v1/domains/{domain}/progress"), ("get", "/v1/domains/{domain}/retry-policy"),
    ("put", "/v1/domains/{domain}/retry-policy"), ("delete", "/v1/domains/{domain}/retry-policy"), ("get", "/v1/tsq"), ("post", "/v1/tsq/{id}/retry"),
    ("post", "/v1/tsq/{id}/cancel"), ("post", "/v1/tsq/{id}/complete"),
    ("post", "/v1/schedules"), ("get", "/v1/schedules"), ("get", "/v1/schedules/{name}"), ("put", "/v1/schedules/{name}"),
    ("delete", "/v1/schedules/{name}"), ("get", "/v1/schedules/{name}/next"), ("post", "/v1/schedules/{name}/run"),
    ("post", "/v1/schedules/{name}/pause"), ("post", "/v1/schedules/{name}/resume"),
    ("put", "/v1/process-definitions"), ("get", "/v1/process-definitions"), ("post", "/v1/processes"), ("post", "/v1/processes/batch"),
    ("get", "/v1/processes"), ("get", "/v1/processes/{id}"),
    ("post", "/v1/processes/{id}/signals/{name}"), ("post", "/v1/processes/{id}/retry"), ("post", "/v1/processes/{id}/cancel"),
    ("post", "/v1/processes/{id}/complete"), ("post", "/v1/processes/{id}/move"), ("post", "/v1/process-domains/{domain}/claim"),
    ("post", "/v1/process-domains/{domain}/report"), ("post", "/v1/process-domains/{domain}/extend"),
    ("post", "/v1/process-domains/{domain}/progress"),
    ("post", "/telegram/webhook"), ("get", "/v1/groups/{chat}/leaderboard"), ("get", "/v1/groups/{chat}/matches"),
    ("get", "/v1/groups/{chat}/players/{user}/history"),
    ("post", "/v1/wallets"), ("get", "/v1/wallets/{owner}"), ("get", "/v1/owners/{owner}/wallets"),
    ("post", "/v1/wallets/{owner}/topup"), ("post", "/v1/wallets/{owner}/spend"), ("post", "/v1/wallets/{owner}/freeze"),
    ("post", "/v1/wallets/{owner}/unfreeze"), ("post", "/v1/wallets/{owner}/floor"), ("get", "/v1/wallets/{owner}/entries"),
    ("get", "/v1/wallets/{owner}/statement"), ("post", "/v1/transfers"), ("post", "/v1/transfers/batch"),
    ("post", "/v1/transactions"), ("get", "/v1/transactions/{txn_id}"), ("post", "/v1/transactions/{txn_id}/refund"),
    ("post", "/v1/holds"), ("get", "/v1/holds/{txn_id}"), ("post", "/v1/holds/{txn_id}/capture"),
    ("post", "/v1/holds/{txn_id}/void"), ("get", "/v1/ledger/verify"), ("get", "/problems/{type}"),
    ("get", "/v1/batches"), ("get", "/v1/domains"), ("get", "/v1/domains/{domain}"),
    ("get", "/v1/reply-queues"), ("post", "/v1/reply-queues/{queue}/read"), ("post", "/v1/reply-queues/{queue}/ack"),
    ("get", "/v1/wallets"), ("get", "/v1/transactions"), ("get", "/v1/holds"), ("get", "/v1/dead-letters/{id}"),
    ("post", "/v1/domains/{domain}/pause"), ("post", "/v1/domains/{domain}/resume"), ("get", "/v1/domains/{domain}/limits"),
    ("put", "/v1/domains/{domain}/limits"), ("delete", "/v1/domains/{domain}/limits"), ("get", "/v1/stats"),
    ("post", "/v1/commands/bulk"), ("post", "/v1/processes/bulk"), ("get", "/v1/bulk/{id}"),
    ("get", "/v1/keys"), ("post", "/v1/keys"), ("delete", "/v1/keys/{name}"),
]
# Making a data directory takes seconds: the tests about an old home share one.
HOME = tempfile.mkdtemp(prefix="pawl-home.", dir=os.environ.get("PAWL_TEST_RUN", "/tmp"))
atexit.register(shutil.rmtree, HOME, ignore_errors=True)


def serve_fresh(pawl):
    """Start without a token in the environment; the token from the file that the program names."""
    pawl.env.pop("PAWL_ADMIN_TOKEN")
    server = pawl.serve()
    file = wait_until(lambda: server.said(r"^admin token: (.*)$"), what="the token file is named").group(1)
    assert file == os.path.join(pawl.home, "token")
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    with open(file, encoding="utf-8") as text:
        return text.read().strip()


def routes_are_guarded(pawl, token):
    """Each route is open to the tokens that may use it, and to no others."""
    assert pawl.http("GET", "/health/live", token=None).json == {"status": "live"}
    assert pawl.http("GET", "/health/ready", token=None).json == {"status": "ready"}
    for path in ("/metrics", "/v1/alerts", "/openapi.json", "/v1/dead-letters"):
        answer = pawl.http("GET", path, token=None)
        problem(answer, 401, "no-valid-token")
        assert answer.headers["www-authenticate"].startswith("Bearer")
        problem(pawl.http("GET", path, token="wrong-token-0123456789"), 401, "no-valid-token")
        assert pawl.http("GET", path, token=token).status == 200
    metrics = pawl.http("GET", "/metrics", token=token)
    assert metrics.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    for line in metrics.body.decode().splitlines():
        assert re.fullmatch(r'# (HELP|TYPE) .*|[a-z_]+(\{[a-z]+="[^"]*"(,[a-z]+="[^"]*")*\})? -?[0-9.e+-]+', line), line
    items = pawl.http("GET", "/v1/alerts", token=token).json["items"]
    assert {item["alert"] for item in items} == {
        "pool-nearly-full", "requests-failing", "handlers-failing", "dead-letters", "dead-letters-failed", "troubleshooting", "commands-waiting",
        "batch-abandoned", "reply-queues", "retention-waits", "schedules-failing", "ledger-clock", "breaker-open", "rate-limited",
        "bot-conflict"}
    assert all(item["state"] == "ok" for item in items), items


def interface_is_described(pawl, token):
    api = pawl.http("GET", "/openapi.json", token=token).json
    described = {(method, path) for path, item in api["paths"].items() for method in item}
    assert described == set(ROUTES), described ^ set(ROUTES)
    assert len({item[method]["operationId"] for item in api["paths"].values() for method in item}) == len(ROUTES)


def first_start(pawl):
    token = serve_fresh(pawl)
    routes_are_guarded(pawl, token)
    interface_is_described(pawl, token)
    server_pid = postmaster_pid(pawl.home)
    assert server_pid > 0
    if os.geteuid() == 0:
        owner = os.stat(f"/proc/{server_pid}").st_uid
        assert owner != 0, "the private PostgreSQL runs as root"
    stop_clean(pawl.server)
    assert postmaster_pid(pawl.home) == 0, "the private PostgreSQL was left behind"
    return token


@test
def a_command_migrates_the_private_database_only_where_it_may():
    with Pawl() as pawl:
        refused(pawl, "send", "shop", "charge", code=1, words=["pawl migrate"], env={"PAWL_MIGRATE": "check"})
        assert pawl.run("send", "shop", "charge").code == 0


@test
def the_first_start_needs_nothing():
    with Pawl() as pawl:
        token = first_start(pawl)
        made = os.stat(os.path.join(pawl.home, "pg/data/PG_VERSION"))
        assert serve_fresh_again(pawl) == token
        # The second one finds everything there.
        assert os.path.samestat(made, os.stat(os.path.join(pawl.home, "pg/data/PG_VERSION")))
        wait_until(lambda: pawl.server.said('"migrations_applied":0'), what="nothing was to be migrated")
        stop_clean(pawl.server)


def serve_fresh_again(pawl):
    pawl.serve()
    with open(os.path.join(pawl.home, "token"), encoding="utf-8") as file:
        return file.read().strip()


@test
def it_works_for_a_user_without_rights():
    with UserPawl() as pawl:
        first_start(pawl)


@test
def two_serves_share_one_private_server():
    with Pawl(home=HOME) as pawl:
        first = pawl.serve()
        server_pid = postmaster_pid(pawl.home)
        second = pawl.serve()
        assert postmaster_pid(pawl.home) == server_pid
        stop_clean(first)
        assert postmaster_pid(pawl.home) == server_pid, "the first to leave stopped the server"
        assert second.http("GET", "/health/ready").status == 200
        stop_clean(second)
        assert postmaster_pid(pawl.home) == 0
        word = "stopping the private PostgreSQL"
        assert second.said(word) and not first.said(word), "only the last one stops it, and says so before it waits"


@test
def a_killed_pawl_leaves_nothing_in_the_way():
    with Pawl(home=HOME) as pawl:
        pawl.serve()
        server_pid = postmaster_pid(pawl.home)
        assert pawl.stop(signal.SIGKILL) == -signal.SIGKILL
        assert postmaster_pid(pawl.home) == server_pid, "the server does not die with its user"
        pawl.serve()
        assert postmaster_pid(pawl.home) == server_pid
        stop_clean(pawl.server)
        assert postmaster_pid(pawl.home) == 0


@test
def a_killed_private_server_comes_back_by_itself():
    with Pawl(home=HOME) as pawl:
        pawl.serve()
        killed = kill_postmaster(pawl.home)
        wait_until(lambda: postmaster_pid(pawl.home) not in (0, killed), what="another server runs")
        assert pawl.http("GET", "/health/live").status == 200
        wait_until(lambda: pawl.http("GET", "/health/ready").status == 200, what="ready again")
        assert pawl.run("send", "shop", "charge").code == 0
        wait_until(lambda: alert(pawl, "breaker-open")["state"] != "firing", what="no alert is firing")
        stop_clean(pawl.server)
        assert postmaster_pid(pawl.home) == 0


main()
