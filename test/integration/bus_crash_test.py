#!/usr/bin/env python3
"""bus_crash - workers are killed and stopped, the server goes away: each command still ends once, and nothing is lost.

PAWL_TEST_FULL=1 runs 50 kills and 20,000 commands instead of 20 and 8,000.
"""
import os
import random
import signal
import subprocess

from checks import is_clean
from pawl_test import Database, Pawl, Process, Proxy, main, setting, test, wait_until
from servers import Cluster, Session

FULL = bool(os.environ.get("PAWL_TEST_FULL"))
SEED = 20260
KILLS = 50 if FULL else 20
SCALE = 10 if FULL else 4
LEASE_S = 5
# No key on purpose: an effect that happened twice is two rows.
EFFECT = """
create schema shop;
create table shop.effect (command_id uuid);
create function shop.effect(payload jsonb, command_id uuid) returns jsonb language sql as $$
  insert into shop.effect values (command_id);
  select pg_sleep(0.005);
  select payload
$$;
"""
# What must be true of every command of the database once they have all ended: none of these finds one that it is not.
WRONG = {
    "without its one outcome COMPLETED":
        "select id from pawl.command left join pawl.outcome o using (id) where o.status is distinct from 'COMPLETED'",
    "still somewhere else":
        "select id from pawl.ready union all select id from pawl.delayed union all select id from pawl.lease "
        "union all select id from pawl.tsq",
    # A command that was claimed ahead and not begun within a second is released: that is received and queued again, but no attempt.
    "whose attempts do not add up": """
        select e.id
        from (select o.id, o.attempts,
                     count(*) filter (where a.details->>'reason' = 'released by its worker: the attempt does not count') as released,
                     count(*) filter (where a.event = 'RECEIVED') as received,
                     count(distinct a.attempt) filter (where a.event = 'RECEIVED') as numbers,
                     count(*) filter (where a.event = 'RETRY_SCHEDULED') as scheduled,
                     count(*) filter (where a.event = 'SENT') as sent,
                     count(*) filter (where a.event = 'COMPLETED') as completed,
                     count(*) as events
              from pawl.outcome o left join pawl.audit a using (id) group by o.id, o.attempts) e
        where e.received <> e.attempts + e.released or e.numbers <> e.attempts or e.scheduled <> e.attempts - 1 + e.released
           or e.sent <> 1 or e.completed <> 1 or e.events <> 2 * (e.attempts + e.released) + 1""",
    "audited, but never sent": "select id from pawl.audit where id not in (select id from pawl.command)",
}
# On a busy machine the queue's own lock can be held too long: then the reply is kept as a dead letter, for a pod to send.
REPLIES = """
    select count(*), count(distinct message->>'command_id'), count(*) filter (where message->>'status' = 'COMPLETED'),
           count(distinct c.id)
    from (select message from pgmq.q_answers
          union all
          select operation_data->'message' from pawl.failed_operations where operation_type = 'reply' and status <> 'resolved') r
    left join pawl.command c on c.command_id = (message->>'command_id')::uuid"""


def ended(session):
    return int(session.do("select count(*) from pawl.outcome")[0])


def all_is_well(session, count):
    """count commands were sent, and each of them ended as it should."""
    assert session.do("select count(*), count(distinct command_id) from pawl.command") == [f"{count}|{count}"]
    for what, sql in WRONG.items():
        found = session.do(f"select count(*), min(id) from ({sql}) w (id)")
        if found != ["0|"]:
            audit = session.do(f"select a.at, a.event, a.attempt, a.actor, a.details from pawl.audit a "
                               f"where a.id = {found[0].split('|')[1]} order by a.at, a.step, a.place")
            raise AssertionError(f"commands {what}: {found}; the audit of the first: {audit}")


def replies_are_complete(session, count):
    assert session.do(REPLIES) == ["|".join([str(count)] * 4)], session.do(REPLIES)


def effects_are_single(session, count):
    assert session.do("select count(*), count(distinct command_id) from shop.effect") == [f"{count}|{count}"]


def stop_all(workers):
    for worker in workers:
        worker.send(signal.SIGTERM)
    for worker in workers:
        code = worker.wait()
        assert code == 0, f"a worker ended with {code}: " + " / ".join(worker.stderr[-5:])
        assert is_clean(worker), "\n".join(worker.stderr)


def send_lines(pawl, domain, count):
    done = pawl.run("send", domain, "job", "--lines", "--json", "--max-attempts", "1000", "--reply-to", "answers",
                    stdin="".join(f"{n}\n" for n in range(count)))
    assert done.code == 0 and done.json == {"sent": count}, done


def started_by(db, domain):
    """Who has been given work, in order."""
    return db.rows("select actor from pawl.audit join pawl.domain d on d.id = domain_id "
                   f"where event = 'RECEIVED' and d.name = '{domain}' order by at")


def program_waiting_for(file, then):
    """A handler that ends once the file is there, or with the test's home: it outlives a worker that is killed."""
    return f"while [ -d '{os.path.dirname(file)}' ] && ! [ -e '{file}' ]; do sleep 0.02; done; {then}"


def file_make(path):
    with open(path, "w", encoding="ascii"):
        pass


@test
def killed_workers_lose_nothing_and_do_nothing_twice():
    jobs = {"effects": (SCALE * 1000, ["--sql", "shop.effect"]), "nothings": (SCALE * 800, ["--noop", "--batch", "3"]),
            "programs": (SCALE * 200, ["--exec", "cat"])}
    total = sum(count for count, _ in jobs.values())
    chance = random.Random(SEED)
    with Database() as db, Pawl(db) as pawl, Session(db.url) as session:
        session.do(EFFECT)
        for domain, (count, _) in jobs.items():
            send_lines(pawl, domain, count * 9 // 10)

        def work(domain):
            return domain, pawl.start("work", domain, "--lease", "1s", *jobs[domain][1])

        workers = [work(domain) for domain in ("effects", "effects", "nothings", "programs")]
        # Spread over the work, so that there is something to lose each time, on fast machines and on slow ones.
        for mark in sorted(chance.sample(range(1, total * 8 // 10), KILLS)):
            wait_until(lambda: ended(session) >= mark, what=f"{mark} have ended")
            leased = session.do("select distinct d.name from pawl.lease l join pawl.domain d on d.id = l.domain_id")
            place = chance.choice([i for i, (domain, _) in enumerate(workers) if domain in leased or not leased])
            domain, victim = workers[place]
            assert victim.stop(signal.SIGKILL) == -signal.SIGKILL, f"it had ended by itself: {victim.stderr[-5:]}"
            workers[place] = work(domain)
        for domain, (count, _) in jobs.items():
            send_lines(pawl, domain, count // 10)
        wait_until(lambda: ended(session) == total, what="all have ended")
        stop_all([worker for _, worker in workers])
        all_is_well(session, total)
        replies_are_complete(session, total)
        effects_are_single(session, jobs["effects"][0])
        lost = int(session.do("select count(*) from pawl.audit where details->>'reason' = 'its worker was lost'")[0])
        assert lost >= KILLS, f"only {lost} commands lost their worker: the kills missed"


@test
def a_worker_that_slept_past_its_lease_changes_nothing_and_says_so():
    record = ("select c.id, l.token, o.*, (select count(*) from pawl.audit a where a.id = c.id) "
              "from pawl.command c left join pawl.lease l using (id) left join pawl.outcome o using (id) order by c.id")
    with Database() as db, Pawl(db) as pawl:
        gate, last = (os.path.join(pawl.home, name) for name in ("gate", "last"))
        # Of two commands one will have been done by another worker, and one will be in its hands.
        ids = [pawl.run("send", "nap", "job", n, "--reply-to", "answers").stdout.strip() for n in ("1", "2")]
        sleeper = pawl.start("work", "nap", "--lease", "60s", "--exec", program_waiting_for(gate, "echo '\"late\"'"))
        wait_until(lambda: len(started_by(db, "nap")) == 2, what="both are begun")
        tokens = db.value("select array_agg(token order by id) from pawl.lease")
        sleeper.send(signal.SIGSTOP)
        db.rows("update pawl.lease set until = now()")  # it sleeps past its lease
        patient = "read n; [ $n = 1 ] || " + program_waiting_for(last, "true") + "; echo '\"in time\"'"
        others = [pawl.start("work", "nap", "--lease", "60s", "--exec", patient) for _ in range(2)]
        wait_until(lambda: len(started_by(db, "nap")) == 4 and db.rows("select id from pawl.outcome"), what="others work")
        before = db.rows(record)
        file_make(gate)  # the sleeper's programs end with success while nobody looks
        sleeper.send(signal.SIGCONT)
        for command in ids:
            wait_until(lambda: sleeper.said(f"lease was lost, the outcome changed nothing.*{command}"), what="it says so")
        late = db.rows("select settled, again, status "
                       "from pawl.settle((select array_agg(id order by id) from pawl.command), "
                       f"'{tokens}', '{{complete,complete}}', array['\"later\"', '\"later\"']::jsonb[]) order by ord")
        assert late == ["f|f|COMPLETED", "f|f|IN_PROGRESS"], late
        assert db.rows(record) == before
        file_make(last)
        wait_until(lambda: db.value("select count(*) from pawl.outcome") == "2", what="both have ended")
        stop_all([sleeper, *others])
        assert sleeper.said("^2 claimed: 0 completed, 0 retried, 0 in troubleshooting, 0 rejected, 2 lost$"), sleeper.stdout
        assert db.rows("select status, attempts, result from pawl.outcome") == ['COMPLETED|2|"in time"'] * 2
        assert db.rows("select message->>'result' from pgmq.q_answers") == ["in time"] * 2


def has_stopped(worker):
    with open(f"/proc/{worker.pid}/stat", encoding="ascii") as file:
        return file.read().rsplit(")", 1)[1].split()[0] == "T"


@test
def a_command_that_ends_its_worker_again_and_again_costs_its_neighbours_no_last_attempt():
    """Hundreds are claimed ahead beside it, as handlers are short; before they lost an attempt with each crash."""
    innocent = 500
    program = os.path.join(setting("PAWL_BUILD"), "test/integration/library_bus")
    for poison in ("crash", "freeze"):
        with Database() as db:
            for kind, count in (("job", innocent // 2), (poison, 1), ("job", innocent // 2)):
                db.rows(f"select count(*) from pawl.send('shop', array_fill('{kind}'::text, array[{count}]), "
                        f"array_fill('{{}}'::jsonb, array[{count}]))")
            frozen, worker = [], None

            def is_over():
                nonlocal worker
                if worker is None or not worker.is_running() or has_stopped(worker):
                    if worker is not None and not worker.is_running() and worker.wait() == 0:
                        return True
                    frozen.append(worker := Process([program, db.url, "crash"]))
                return False

            try:
                wait_until(is_over, what="a worker has drained the domain")
                ends = db.rows("select o.status, count(*) from pawl.command c join pawl.outcome o using (id) where c.type = 'job' group by 1")
                assert ends == [f"COMPLETED|{innocent}"], ends
                given_up = db.rows("select c.type, t.attempt from pawl.tsq t join pawl.command c using (id)")
                assert given_up == [f"{poison}|3"], (given_up, len(frozen), [f.stdout for f in frozen])
                # First beside all that was claimed ahead, then beside seven that had been lost, then without any.
                twice, thrice = (int(db.value(f"select count(*) from pawl.outcome where attempts = {n}")) for n in (2, 3))
                assert twice >= 50, f"only {twice} were claimed ahead"
                assert thrice <= 7, (twice, thrice)
                assert len(frozen) == 4, len(frozen)
                late = db.rows("select * from pawl.outcome order by id")
                for process in frozen:
                    process.send(signal.SIGCONT)
                    process.wait()
                assert db.rows("select * from pawl.outcome order by id") == late
            finally:
                for process in frozen:
                    process.kill()


def crash_measured():
    """How long after the crash of its worker, and after the end of its lease, a command runs elsewhere."""
    with Database() as db, Pawl(db) as pawl:
        assert pawl.run("send", "crash", "job").code == 0
        endless = program_waiting_for(os.path.join(pawl.home, "never"), "true")
        victim = pawl.start("work", "crash", "--lease", f"{LEASE_S}s", "--exec", endless)
        wait_until(lambda: started_by(db, "crash"), what="the command is begun")
        others = [pawl.start("work", "crash", "--lease", f"{LEASE_S}s", "--exec", "true") for _ in range(2)]
        first = db.value("select until from pawl.lease")
        wait_until(lambda: db.value("select until from pawl.lease") != first, what="a heartbeat has kept the lease")
        killed = db.value("select clock_timestamp()")
        assert victim.stop(signal.SIGKILL) == -signal.SIGKILL
        until = db.value("select until from pawl.lease")
        wait_until(lambda: len(started_by(db, "crash")) == 2, what="it runs elsewhere")
        after, late = map(float, db.value(f"select extract(epoch from max(at) - '{killed}'), "
                                          f"extract(epoch from max(at) - '{until}') "
                                          "from pawl.audit where event = 'RECEIVED'").split("|"))
        assert late >= 0, f"{late} s after the end of the lease"
        wait_until(lambda: db.rows("select id from pawl.outcome"), what="it has ended")
        stop_all(others)
        assert db.value("select status, attempts from pawl.outcome") == "COMPLETED|2"
        return after, late


@test
def work_of_a_crashed_worker_runs_elsewhere_in_time():
    # A machine that stalls delays any of them; it does not delay all.
    tries = []
    while not any(after <= LEASE_S + 1 and late <= 1 for after, late in tries):
        assert len(tries) < 5, tries
        tries.append(crash_measured())


@test
def a_claim_that_a_crash_undoes_never_happened():
    """Claims do not wait for the flush: what was done under the token of one that is gone changes nothing."""
    def claim(cluster, token=None):
        found = cluster.rows("select id, token, attempt, (select count(*) from pawl.lease) "
                             "from pawl.claim(pawl.domain_find('shop'), 1, 600000, array_fill(0::bigint, array[10]), null, 'w', p_unflushed => true)")
        assert len(found) == 1, found
        assert token is None or found[0].split("|")[1] != token
        return found[0].split("|")[:3]

    def settle(cluster, command, token):
        return cluster.rows(f"select settled, status from pawl.settle('{{{command}}}', '{{{token}}}', '{{complete}}')")

    # Nothing is flushed but by a commit that waits for it.
    with Cluster(conf="synchronous_commit = on\nwal_writer_delay = 10s\nautovacuum = off\n") as cluster, Pawl(cluster.url()) as pawl:
        assert pawl.run("migrate").code == 0
        cluster.rows("select pawl.send('shop', 'job', p_max_attempts => 2)")
        command, lost, attempt = claim(cluster)
        assert attempt == "1"
        cluster.restart("immediate")
        assert cluster.rows("select count(*) from pawl.lease") == ["0"], "the claim was flushed: the test proves nothing"
        assert settle(cluster, command, lost) == ["f|PENDING"]
        again, token, attempt = claim(cluster, lost)
        assert (again, attempt) == (command, "1"), "the claim that never happened is no attempt"
        assert settle(cluster, command, lost) == ["f|IN_PROGRESS"]
        for call in ("extend('{%s}', '{%s}', 60000)", "release('{%s}', '{%s}')"):
            assert cluster.rows(f"select verdict from pawl.{call % (command, lost)}") == ["LOST"]
        # A settle waits for the flush, and that of its claim with it.
        assert settle(cluster, command, token) == ["t|COMPLETED"]
        cluster.restart("immediate")
        assert cluster.rows("select status, attempts from pawl.outcome") == ["COMPLETED|1"]
        assert settle(cluster, command, lost) == ["f|COMPLETED"]
        # A last attempt is not had twice.
        cluster.rows("select pawl.send('shop', 'job', p_max_attempts => 1)")
        command, token, _ = claim(cluster)
        cluster.restart("immediate")
        assert cluster.rows("select id, token from pawl.lease") == [f"{command}|{token}"]
        assert settle(cluster, command, token) == ["t|COMPLETED"]


@test
def a_restarted_server_is_waited_out():
    senders_count, rounds, lines = (3, 6, 1000) if FULL else (2, 5, 1000)
    total = senders_count * rounds * lines
    # Commits are durable here, as in production: an immediate stop takes back nothing that was confirmed.
    with Cluster(conf="synchronous_commit = on\n") as cluster, \
            Pawl(cluster.url(), env={"PAWL_BREAKER_OPEN": "1s"}) as pawl:
        assert pawl.run("migrate").code == 0
        cluster.rows(EFFECT)
        workers = [pawl.start("work", "load", "--lease", "2s", "--sql", "shop.effect") for _ in range(3)]
        senders = [sender_start(pawl) for _ in range(senders_count)]
        for turn in range(rounds):
            for sender in senders:
                sender.process.stdin.write("".join(f"{turn * lines + n}\n" for n in range(lines)))
                sender.process.stdin.flush()
            begun = turn * senders_count * lines
            wait_until(lambda: int(cluster.rows("select count(*) from pawl.command")[0]) > begun, what="sending goes on")
            if turn in (1, 3):
                cluster.restart("fast" if turn == 1 else "immediate")
        for sender in senders:
            sender.process.stdin.close()
        for sender in senders:
            assert sender.wait() == 0, sender.stderr
            assert sender.stdout == [f"{rounds * lines} sent"], sender.stdout
        wait_until(lambda: cluster.rows("select count(*) from pawl.outcome") == [str(total)],
                   what="all have ended")
        stop_all(workers)
        with Session(cluster.url()) as session:
            all_is_well(session, total)
            replies_are_complete(session, total)
            effects_are_single(session, total)


@test
def lines_whose_answer_was_lost_are_sent_when_the_database_is_back():
    lines = 1000
    with Database() as db, Proxy(db) as proxy, \
            Pawl(proxy.url, env={"PAWL_BREAKER_OPEN": "500ms", "PAWL_LOG": "warn"}) as pawl:
        sender = sender_start(pawl)
        sender.process.stdin.write("1\n" * lines)
        sender.process.stdin.flush()
        wait_until(lambda: db.value("select count(*) from pawl.command") == str(lines), what="it sends")
        proxy.do("cut")  # a statement has its text only before it was prepared on its connection
        proxy.do("cut-on answered 1000 pawl.send")
        sender.process.stdin.write("1\n" * lines)
        sender.process.stdin.flush()
        wait_until(lambda: db.value("select count(*) from pawl.command") == str(2 * lines), what="they are sent")
        proxy.do("mode refuse")

        def waits():
            assert sender.is_running(), sender.stderr
            return sum("the probe failed" in line for line in sender.stderr) >= 3

        wait_until(waits, what="it has waited longer than one call tries")
        assert db.value("select count(*) from pawl.command") == str(2 * lines), "sent, but it does not know"
        proxy.do("cut-on answered 0 pawl.send")
        proxy.do("mode pass")
        sender.process.stdin.close()
        assert sender.wait() == 0 and sender.stdout == [f"{2 * lines} sent"], (sender.stdout, sender.stderr)
        assert db.value("select count(*) from pawl.command") == str(2 * lines)


def sender_start(pawl):
    """A `pawl send --lines` that is fed by hand."""
    sender = Process(pawl._command(["send", "load", "job", "--lines", "--max-attempts", "1000", "--reply-to", "answers"]),
                     pawl.env, stdin=subprocess.PIPE)
    pawl.processes.append(sender)
    return sender


main()
