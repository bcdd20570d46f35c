#!/usr/bin/env python3
"""shared - handlers in SQL that share transactions: each effect happens once, also when something goes wrong with one of them or with the transaction.

Effects have no key on purpose: one that happened twice is two rows. Each notes its transaction.
"""
import json
import random
import signal

from bus_commands import retry_at_once, work
from checks import stop_clean
from pawl_test import Database, Pawl, main, test, wait_until
from servers import Session

SEED = 46
SCHEMA = """
create schema app;
create table app.effect (command_id uuid, xid xid8 default pg_current_xact_id());
create table app.gate (is_open boolean);
create table app.account (id integer primary key, amount integer default 0);
insert into app.account select generate_series(1, 50);
create table app.checked (chance float, depth integer);
-- Fires again at the commit, when what it has deferred then is due.
create function app.check () returns trigger language plpgsql as $$
begin
  if new.depth > 0 then
    set constraints all deferred;
    insert into app.checked values (new.chance, new.depth - 1);
  elsif random() < new.chance then
    raise 'the check has failed';
  end if;
  return null;
end $$;
create constraint trigger checked after insert on app.checked deferrable initially deferred for each row execute function app.check();

create function app.run (payload jsonb, command_id uuid) returns jsonb language plpgsql as $$
declare
  v_kind text := payload ->> 'kind';
begin
  insert into app.effect values (command_id);
  case v_kind
    when 'fine' then null;
    when 'gate' then
      while not exists (select from app.gate) loop
        perform pg_sleep(0.02);
      end loop;
    when 'row' then update app.account set amount = amount + 1 where id = (payload ->> 'id')::integer;
    when 'flaky' then
      if random() < 0.5 then
        raise 'not this time';
      end if;
    when 'reject' then raise exception 'no' using errcode = 'QU065';
    when 'fail' then raise exception 'never' using errcode = 'QU070';
    when 'deferred' then insert into app.checked values ((payload ->> 'chance')::float, 0);
    when 'commit' then insert into app.checked values ((payload ->> 'chance')::float, 1);
    when 'temporary' then create temp table seen (n integer) on commit drop;
    when 'slow' then perform pg_sleep(0.2 * (random() < 0.3)::integer);
    when 'terminate' then
      if random() < 0.5 then
        perform pg_terminate_backend(pg_backend_pid());
      end if;
  end case;
  return null;
end $$;
"""
UNFINISHED = "select (select count(*) from pawl.ready) + (select count(*) from pawl.delayed) + (select count(*) from pawl.lease)"
# What must be true of each command that has ended: none of these finds one that it is not.
WRONG = {
    "COMPLETED without its one effect":
        "select c.command_id from pawl.command c join pawl.outcome o using (id) where o.status = 'COMPLETED' "
        "and (select count(*) from app.effect e where e.command_id = c.command_id) <> 1",
    "not COMPLETED, with an effect":
        "select e.command_id from app.effect e join pawl.command c using (command_id) left join pawl.outcome o using (id) "
        "where o.status is distinct from 'COMPLETED'",
}
SQL = ("--sql", "app.run")


def send_all(pawl, domain, payloads, attempts=3):
    done = pawl.run("send", domain, "run", "--lines", "--max-attempts", str(attempts), stdin="".join(json.dumps(p) + "\n" for p in payloads))
    assert done.code == 0, done.stderr


def fine(count):
    return [{"kind": "fine"}] * count


def completed(db):
    return int(db.value("select count(*) from pawl.outcome where status = 'COMPLETED'"))


def check(db):
    for what, query in WRONG.items():
        assert db.rows(query) == [], what


def check_first_attempts(db):
    """Nothing that happens to a neighbour is an attempt."""
    check(db)
    assert db.rows("select attempts, count(*) from pawl.outcome where attempts <> 1 group by 1") == []


@test
def short_handlers_share_transactions_unless_they_are_to_run_alone():
    with Database() as db, Pawl(db) as pawl:
        db.rows(SCHEMA)
        send_all(pawl, "shop", fine(3000))
        assert work(pawl, "shop", *SQL)["completed"] == 3000
        check_first_attempts(db)
        assert int(db.value("select count(distinct xid) from app.effect")) < 1000
        db.rows("truncate app.effect, pawl.command, pawl.outcome")
        send_all(pawl, "shop", fine(300))
        assert work(pawl, "shop", *SQL, "--alone")["completed"] == 300
        assert db.value("select count(distinct xid) from app.effect") == "300"
        for arguments in (("--noop",), ("--exec", "true")):
            done = pawl.run("work", "shop", *arguments, "--alone", "--drain")
            assert done.code == 2 and "--alone is for --sql FUNCTION" in done.stderr, done.stderr


def neighbours_go_on(db, pawl, payload, release):
    """One command cannot go on; all others complete meanwhile, and it does when it can."""
    send_all(pawl, "shop", fine(600) + [payload] + fine(600))
    worker = pawl.start("work", "shop", *SQL, "-j", "2")
    wait_until(lambda: completed(db) == 1200, what="the neighbours are completed")
    check_first_attempts(db)
    release()
    wait_until(lambda: completed(db) == 1201, what="the command itself is completed")
    check_first_attempts(db)
    stop_clean(worker)


@test
def one_that_is_slow_does_not_hold_its_neighbours_up():
    with Database() as db, Pawl(db) as pawl:
        db.rows(SCHEMA)
        neighbours_go_on(db, pawl, {"kind": "gate"}, lambda: db.rows("insert into app.gate values (true)"))


@test
def one_that_waits_for_a_lock_does_not_hold_its_neighbours_up():
    with Database() as db, Pawl(db) as pawl, Session(db.url) as session:
        db.rows(SCHEMA)
        session.do("begin; update app.account set amount = 100 where id = 7")
        neighbours_go_on(db, pawl, {"kind": "row", "id": 7}, lambda: session.do("commit"))
        assert db.value("select amount from app.account where id = 7") == "101"


@test
def one_that_fails_at_the_commit_costs_its_neighbours_no_attempt():
    with Database() as db, Pawl(db) as pawl:
        db.rows(SCHEMA)
        retry_at_once(db, "shop")
        for kind in ("deferred", "commit"):
            send_all(pawl, "shop", fine(300) + [{"kind": kind, "chance": 1}] + fine(300), attempts=2)
            counts = work(pawl, "shop", *SQL)
            assert (counts["completed"], counts["retried"], counts["failed"]) == (600, 1, 1), counts
        check_first_attempts(db)
        assert db.value("select count(*) from pawl.tsq where error like 'the check has failed%'") == "2"


@test
def two_workers_whose_commands_lock_rows_in_opposite_orders_complete_them():
    with Database() as db, Pawl(db) as pawl:
        db.rows(SCHEMA)
        rows = [{"kind": "row", "id": n} for n in range(1, 51)]
        send_all(pawl, "up", rows * 20)
        send_all(pawl, "down", rows[::-1] * 20)
        workers = [pawl.start("work", domain, *SQL, "-j", "2", "--drain") for domain in ("up", "down")]
        assert [worker.wait() for worker in workers] == [0, 0]
        assert completed(db) == 2000
        check_first_attempts(db)
        assert db.rows("select distinct amount from app.account") == ["40"]


def trouble(count):
    """Commands of all kinds, most of them fine, in an order that is the same in every run."""
    kinds = {"flaky": 100, "reject": 50, "fail": 50, "deferred": 20, "commit": 20, "temporary": 20, "slow": 20, "terminate": 6}
    payloads = [{"kind": kind, "chance": 0.3} for kind, number in kinds.items() for _ in range(number)]
    payloads += [{"kind": "row", "id": n % 5 + 1} for n in range(200)]
    payloads += fine(count - len(payloads))
    random.Random(SEED).shuffle(payloads)
    return payloads, kinds


@test
def effects_happen_once_whatever_goes_wrong():
    with Database() as db, Pawl(db) as pawl:
        db.rows(SCHEMA)
        payloads, kinds = trouble(4000)
        send_all(pawl, "shop", payloads, attempts=1000)
        retry_at_once(db, "shop")
        flags = ("shop", *SQL, "-j", "4", "--lease", "2s")
        workers = [pawl.start("work", *flags) for _ in range(2)]
        ended = len(payloads) - kinds["fail"]

        def go_on():
            """Another worker gets some of the leases, as if they had expired. True at the end."""
            db.rows("update pawl.lease set token = token + 1, until = now() where id in (select id from pawl.lease order by random() limit 3)")
            return int(db.value("select count(*) from pawl.outcome")) == ended
        for share in (4, 2):
            wait_until(lambda share=share: go_on() or completed(db) > ended / share, what="some are completed")
            assert workers.pop(0).stop(signal.SIGKILL) == -signal.SIGKILL
            workers.append(pawl.start("work", *flags))
        wait_until(go_on, timeout=180, what="all have ended")
        wait_until(lambda: db.value(UNFINISHED) == "0", what="nothing is left")
        for worker in workers:
            worker.stop()
        check(db)
        assert db.value("select count(*) from pawl.outcome where status = 'FAILED'") == str(kinds["reject"])
        assert db.value("select count(*) from pawl.tsq") == str(kinds["fail"])
        assert db.value("select sum(amount) from app.account") == "200"
        effects, transactions = db.value("select count(*), count(distinct xid) from app.effect").split("|")
        assert int(transactions) < int(effects), "some have shared a transaction"


main()
