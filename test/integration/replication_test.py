#!/usr/bin/env python3
"""replication - synchronous replication: no answer says "done" before a standby has it, repeated requests included."""
import os
import shutil
import subprocess
import uuid

from checks import stop_clean
from pawl_test import TIMEOUT_S, Pawl, main, psql, setting, test, wait_until
from servers import IS_ROOT, Cluster, Session, as_postgres, free_port, in_threads

CONF = "wal_level = replica\nmax_wal_senders = 4\nfsync = on\nsynchronous_commit = on\n"
ENV = {"PAWL_REQUEST_TIMEOUT": "1s", "PAWL_POOL_MAX": "4"}
# Answers that say nothing about what became of the request, or that it was not done.
NOT_DONE = (503,)


def standbys(cluster, names):
    """synchronous_standby_names, in force when it returns."""
    cluster.rows(f"alter system set synchronous_standby_names = '{names}'; select pg_reload_conf()")
    wait_until(lambda: cluster.rows("show synchronous_standby_names") == [names], what="the setting is in force")


def send(pawl, command_id):
    return pawl.http("POST", "/v1/commands", {"domain": "shop", "type": "charge", "payload": {"n": 1},
                                              "command_id": command_id})


def topup(pawl, txn_id):
    return pawl.http("POST", "/v1/wallets/ann/topup", {"txn_id": txn_id, "amount": 5})


def never_done(pawl, request):
    """Three times the same request, while no standby confirms. The problems."""
    answers = [request(pawl) for _ in range(3)]
    for answer in answers:
        assert answer.status in NOT_DONE, f"{answer.status}: {answer.body!r}"
    return [answer.json for answer in answers]


@test
def a_request_is_not_answered_before_a_standby_has_it():
    with Cluster(conf=CONF) as cluster, Pawl(cluster.url(), env=ENV) as pawl:
        pawl.serve()
        wait_until(lambda: pawl.http("POST", "/v1/wallets", {"owner": "ann"}).status == 201, what="the wallet is open")
        standbys(cluster, "nobody")
        command, txn = str(uuid.uuid4()), str(uuid.uuid4())
        problems = never_done(pawl, lambda p: send(p, command)) + never_done(pawl, lambda p: topup(p, txn))
        doubts = [found["detail"] for found in problems if found["type"] == "/problems/try-same-key"]
        assert doubts and all("standby" in detail for detail in doubts), problems
        # A restart ends the waits: what had committed here can be seen, and is still on no standby.
        cluster.restart("immediate")
        wait_until(lambda: pawl.http("GET", "/health/ready").status == 200, what="ready again")
        assert cluster.rows(f"select count(*) from pawl.command where command_id = '{command}'") == ["1"]
        assert cluster.rows(f"select count(*) from wallet.txn where txn_id = '{txn}'") == ["1"]
        never_done(pawl, lambda p: send(p, command))
        never_done(pawl, lambda p: topup(p, txn))
        standbys(cluster, "")
        wait_until(lambda: send(pawl, command).status == 201, what="the command's answer")
        wait_until(lambda: topup(pawl, txn).status == 201, what="the transaction's answer")
        assert cluster.rows("select count(*) from pawl.command") == ["1"]
        assert cluster.rows("select balance from wallet.get(array['ann'], array['CREDIT'])") == ["5"]
        stop_clean(pawl.server)


@test
def an_operator_who_cancels_a_commits_wait_does_not_make_it_an_answer():
    with Cluster(conf=CONF) as cluster, Pawl(cluster.url(), env={**ENV, "PAWL_REQUEST_TIMEOUT": "2m"}) as pawl:
        pawl.serve()
        standbys(cluster, "nobody")
        command = str(uuid.uuid4())
        waits = "select pid from pg_stat_activity where wait_event = 'SyncRep' and application_name = 'pawl'"
        answers = []
        join = in_threads(1, lambda _: answers.append(send(pawl, command).status))

        def canceled():
            """Periodic tasks commit too and wait in the same way: cancel whatever waits until the command is there."""
            cluster.rows(f"select pg_cancel_backend(w.pid) from ({waits}) w")
            return cluster.rows("select count(*) from pawl.command") == ["1"]

        # It has committed here and the wait is over; the answer is still to come, by way of its key.
        wait_until(canceled, what="it can be seen")
        wait_until(lambda: cluster.rows(waits), what="the repeated one waits too")
        assert not answers, answers
        standbys(cluster, "")
        join()
        assert answers == [201], answers
        stop_clean(pawl.server)


# Every function that answers from what an earlier call left, called twice.
REPEATED = {
    "pawl.send": "select * from pawl.send('shop', array['charge'], array['1'::jsonb], array['00000000-0000-4000-8000-000000000001'::uuid])",
    "pawl.batch_new": "select * from pawl.batch_new('00000000-0000-4000-8000-000000000002', 'b', null)",
    "pawl.dead_letter_put": "select * from pawl.dead_letter_put(array['t'], array['k'], array['{}'::jsonb], array['m'], array['c'], 0)",
    "pawl.batch_seal": "select pawl.batch_seal('00000000-0000-4000-8000-000000000002')",
    "pawl.tsq_decide": "select * from pawl.tsq_decide(array['00000000-0000-4000-8000-000000000004'::uuid], 'retry', 'ann')",
    "pawl.cancel": "select * from pawl.cancel(array['00000000-0000-4000-8000-000000000005'::uuid], 'no', 'ann')",
    "pawl.settle": "select s.* from (select id, token from pawl.lease union all select id, token from pawl.outcome where token is not null) l, "
                   "pawl.settle(array[l.id], array[l.token], '{complete}') s",
    "pawl.answer_find": "select * from pawl.answer_find('00000000-0000-4000-8000-000000000006', sha256('x'))",
    "wallet.open": "select * from wallet.open(array['ann'])",
    "wallet.post": "select * from wallet.post(array['topup'], array['00000000-0000-4000-8000-000000000003'::uuid], array['ann'], array[5::bigint])",
}


CLAIM = "pawl.claim(pawl.domain_find('desk'), 1, 600000, array_fill(0::bigint, '{10}'), null, 'w') c"
# What they need: a command in troubleshooting, one to cancel, a leased one, a kept answer.
BEFORE = [
    "select pawl.send('desk', 'x', '1', '00000000-0000-4000-8000-000000000004')",
    f"select count(s.*) from {CLAIM}, pawl.settle(array[c.id], array[c.token], '{{fail}}') s",
    "select pawl.send('desk', 'x', '1')",
    f"select count(*) from {CLAIM}",
    "select pawl.send('desk', 'x', '1', '00000000-0000-4000-8000-000000000005')",
    "select pawl.answer_keep('00000000-0000-4000-8000-000000000006', sha256('x'), 200, 'body')",
]


@test
def every_function_that_answers_for_an_earlier_call_waits_for_its_standby():
    with Cluster(conf=CONF) as cluster, Pawl(cluster.url(), env=ENV) as pawl:
        assert pawl.run("migrate").code == 0
        for sql in ["select wallet.asset_id('CREDIT')", *BEFORE, *REPEATED.values()]:
            cluster.rows(sql)
        standbys(cluster, "nobody")
        for name, sql in REPEATED.items():
            with Session(cluster.url()) as session:
                pid = session.do("select pg_backend_pid()")[0]
                session.process.stdin.write(sql + ";\n")
                session.process.stdin.flush()
                wait_until(lambda: cluster.rows(f"select wait_event from pg_stat_activity where pid = {pid}") == ["SyncRep"],
                           what=f"{name} waits for a standby")
                cluster.rows(f"select pg_terminate_backend({pid})")
            with Session(cluster.url()) as session:  # a session that does not wait for standbys
                session.do("set synchronous_commit = local")
                assert session.do(sql)


class Standby:
    """A streaming standby of a Cluster, named "second"."""

    def __init__(self, primary):
        self.folder = primary.folder + "-standby"
        self.port = free_port()
        self.primary = primary

    def _program(self, name, *arguments):
        subprocess.run(as_postgres([os.path.join(setting("PAWL_TEST_BIN"), name), *arguments]), check=True, timeout=TIMEOUT_S,
                       stdout=subprocess.DEVNULL)

    def _copy(self):
        """A base backup by hand: pg_basebackup does not come with every server of ./dev versions."""
        with Session(self.primary.url()) as session:
            session.do("select pg_backup_start('standby', true)")
            copied = subprocess.run(["cp", "-a", self.primary.folder, self.folder], env={**os.environ, "LC_ALL": "C"}, text=True,
                                    stderr=subprocess.PIPE, check=False, timeout=TIMEOUT_S)
            # The server may delete a file meanwhile; its WAL says so.
            assert all("No such file" in line for line in copied.stderr.splitlines()), copied.stderr
            label = "\n".join(session.do("select labelfile from pg_backup_stop(false)")) + "\n"
        os.remove(self.folder + "/postmaster.pid")
        for name, text in (("backup_label", label), ("standby.signal", "")):
            with open(os.path.join(self.folder, name), "w", encoding="utf-8") as file:
                file.write(text)
            if IS_ROOT:
                shutil.chown(os.path.join(self.folder, name), "postgres", "postgres")

    def __enter__(self):
        self._copy()
        with open(self.folder + "/postgresql.conf", "a", encoding="utf-8") as conf:
            conf.write(f"port = {self.port}\nunix_socket_directories = '{self.folder}'\nprimary_conninfo = "
                       f"'host=127.0.0.1 port={self.primary.port} user=postgres application_name=second'\n")
        self.ctl("start")
        return self

    def __exit__(self, *_):
        subprocess.run(as_postgres([os.path.join(setting("PAWL_TEST_BIN"), "pg_ctl"), "-D", self.folder, "-s", "-m", "immediate", "stop"]),
                       check=False, timeout=TIMEOUT_S, stderr=subprocess.DEVNULL)
        shutil.rmtree(self.folder, ignore_errors=True)

    def ctl(self, *arguments):
        self._program("pg_ctl", "-D", self.folder, "-s", "-w", "-l", self.folder + "/log", *arguments)

    def rows(self, sql):
        return psql(f"postgresql://postgres@127.0.0.1:{self.port}/postgres", sql)


@test
def what_was_answered_survives_a_failover():
    hba = "host replication all 127.0.0.1/32 trust\n"
    with Cluster(conf=CONF, hba=hba) as primary, Pawl(primary.url(), env=ENV) as pawl:
        pawl.serve()
        wait_until(lambda: pawl.http("POST", "/v1/wallets", {"owner": "ann"}).status == 201, what="the wallet is open")
        with Standby(primary) as standby:
            standbys(primary, "second")
            wait_until(lambda: primary.rows("select sync_state from pg_stat_replication") == ["sync"], what="a standby in step")
            before, during, txn = (str(uuid.uuid4()) for _ in range(3))
            wait_until(lambda: send(pawl, before).status == 201, what="an answer with a standby")
            standby.ctl("-m", "immediate", "stop")
            answered = [r for r in range(3) if send(pawl, during).status == 201]
            posted = [r for r in range(3) if topup(pawl, txn).status == 201]
            # The primary dies, the standby takes over: what was answered is there.
            primary.stop("immediate")
            standby.ctl("start")
            standby.ctl("promote")
            ids = standby.rows("select command_id from pawl.command")
            assert before in ids, ids
            assert not answered or during in ids, "an answered command is lost"
            assert not posted or standby.rows(f"select 1 from wallet.txn where txn_id = '{txn}'") == ["1"]
            primary.start()


main()
