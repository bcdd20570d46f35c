#!/usr/bin/env python3
"""Transactions that stay open, in other sessions: what they lock waits for them, and nothing else does."""
import json
from contextlib import ExitStack

from ledger_servers import new_key
from pawl_test import Database, Pawl, main, test
from servers import Session

OPEN = 20  # more than @system has stripes


def opened(session, count, amount=1000):
    names = f"array(select 'w' || n from generate_series(1, {count}) n)"
    session.do(f"select count(*) from wallet.open({names})")
    session.do(f"select count(*) from wallet.post(array_fill('topup'::text, array[{count}]), array(select gen_random_uuid() "
               f"from generate_series(1, {count})), {names}, array_fill({amount}::bigint, array[{count}]))")


def one(kind, owner, amount, key=None, other=None):
    return (f"select refusal, is_new from wallet.post(array['{kind}'], array['{key or new_key()}']::uuid[], array['{owner}'], "
            f"array[{amount}]::bigint[], {'null' if other is None else f'''array['{other}']'''})")


def buffers(session):
    """Pages that one transfer looks at."""
    lines = session.do("explain (analyze, buffers, timing off, summary off, format json) " + one("transfer", "w1", 1, other="w2"))
    plan = json.loads("\n".join(lines))[0]["Plan"]
    return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]


@test
def postings_stay_flat_while_a_transaction_stays_open():
    with Database() as db, Session(db.url) as session, Session(db.url) as idle:
        opened(session, 2, amount=100000)
        idle.do("begin")
        idle.do("select pg_current_xact_id()")
        for _ in range(20):
            session.do(one("transfer", "w1", 1, other="w2"))
        before = buffers(session)
        session.do("do $$ begin for n in 1 .. 1500 loop perform wallet.post(array['transfer', 'topup', 'hold'], array[gen_random_uuid(), "
                   "gen_random_uuid(), gen_random_uuid()], array['w1', 'w2', 'w1'], array[1, 1, 1], array['w2', null, null]); "
                   "commit; end loop; end $$")
        after = buffers(session)
        # A level more of an index, at most, for each of some ten lookups; it was thousands.
        assert after <= before + 30, (before, after)
        # Locks leave no versions of the rows they lock.
        assert int(db.value("select pg_relation_size('wallet.wallet') / 8192")) <= 2
        assert session.do("select pg_stat_force_next_flush()") is not None
        idle.do("rollback")
        assert db.rows("select * from wallet.verify()") == []


@test
def captures_of_one_hold_stay_flat_while_a_transaction_stays_open():
    with Database() as db, Session(db.url) as session, Session(db.url) as idle:
        opened(session, 2, amount=100000)
        hold = new_key()
        session.do(one("hold", "w1", 5000, key=hold))
        idle.do("begin")
        idle.do("select pg_current_xact_id()")
        session.do(f"do $$ begin for n in 1 .. 50 loop perform wallet.post(array['capture'], array[gen_random_uuid()], null, array[1], "
                   f"array['w2'], p_refs => array['{hold}']::uuid[]); commit; end loop; end $$")
        assert db.value("select count(*) from wallet.hold") == "1"
        assert db.value("select captured || ' ' || status from wallet.holds") == "50 OPEN"
        # No capture has updated the hold's row: it is where it was inserted.
        assert db.value("select ctid from wallet.hold") == "(0,1)"
        idle.do("rollback")


@test
def twenty_open_transactions_do_not_stop_a_topup():
    with Database() as db, ExitStack() as stack:
        sessions = [stack.enter_context(Session(db.url)) for _ in range(OPEN + 1)]
        opened(sessions[0], OPEN + 1)
        for number, session in enumerate(sessions, 1):
            session.do("set lock_timeout = '2s'")  # waiting for @system would be an error
            if number <= OPEN:
                session.do("begin")
            for kind in ("topup", "spend", "topup"):
                assert session.do(one(kind, f"w{number}", 10)) == ["|t"], (number, kind)
        assert db.value("select balance from wallet.get(array['@system'])") == str(-1000 * (OPEN + 1) - 10)
        for session in sessions[:OPEN]:
            session.do("commit")
        stripes = int(db.value("select count(*) from wallet.wallet where owner = '@system'"))
        assert OPEN <= stripes <= 2 * OPEN, stripes
        for number, session in enumerate(sessions, 1):
            session.do(one("topup", f"w{number}", 10))
        assert int(db.value("select count(*) from wallet.wallet where owner = '@system'")) == stripes, "those that are free are taken"
        assert db.value("select balance from wallet.get(array['@system'])") == str(-1020 * (OPEN + 1))
        assert db.rows("select * from wallet.verify()") == []


@test
def parts_of_the_system_have_no_limit():
    most = 9007199254740991
    with Database() as db, Session(db.url) as session:
        session.do("select count(*) from wallet.open(array(select 'w' || n from generate_series(1, 40) n))")
        # 1,200 times the most that a wallet may have, in and out: more than any single number could hold.
        for _ in range(30):
            for kind in ("topup", "spend"):
                done = session.do(f"select count(*) filter (where p.refusal is null) from wallet.post(array_fill('{kind}'::text, array[40]), "
                                  "array(select gen_random_uuid() from generate_series(1, 40)), array(select 'w' || n from generate_series(1, 40) n), "
                                  f"array_fill({most}::bigint, array[40])) p")
                assert done == ["40"], done
        assert db.value("select balance from wallet.get(array['@system'])") == "0"
        # Out through one stripe and in through another: each passes 2^53 far, and nothing is refused.
        with Session(db.url) as other:
            session.do(f"select 1 from wallet.post(array['topup'], array[gen_random_uuid()], array['w1'], array[{most}])")
            for number in range(1, 12):
                session.do("begin")
                assert session.do(one("spend", f"w{number}", most)) == ["|t"]
                assert other.do(one("topup", f"w{number + 1}", most)) == ["|t"]
                session.do("commit")
        assert db.rows("select * from wallet.verify()") == []


@test
def expiry_waits_for_no_wallet():
    with Database() as db, Session(db.url) as session, Session(db.url) as holder, Session(db.url) as monitor:
        opened(session, 10)
        session.do("select count(*) from wallet.post(array_fill('hold'::text, array[30]), array(select gen_random_uuid() from "
                   "generate_series(1, 30)), array(select 'w' || 1 + n % 10 from generate_series(1, 30) n), array_fill(1::bigint, array[30]), "
                   "p_requests => array_fill('{\"expires_in_s\": 60}'::jsonb, array[30]))")
        session.do("update wallet.hold set expires_at = expires_at - interval '1 hour'")
        holder.do("begin")
        holder.do("select from wallet.wallet where owner = 'w1' for update")
        monitor.do("set lock_timeout = '2s'")
        # Those of w1 come first and do not count towards the limit.
        session.do("update wallet.hold set expires_at = expires_at - interval '1 hour' where wallet_id = (select id from wallet.wallet where owner = 'w1')")
        monitor.do("begin")
        assert monitor.do("select wallet.expire(20)") == ["20"]
        monitor.do("commit")
        assert monitor.do("select wallet.expire(20)") == ["7"], "all but those of the locked wallet"
        holder.do("rollback")
        assert monitor.do("select wallet.expire(20)") == ["3"]
        assert db.rows("select * from wallet.verify() where sentence not like 'expires at another time%'") == []


@test
def a_repeat_of_a_key_in_an_open_transaction_holds_up_no_neighbour():
    with Database() as db, Session(db.url) as session, Session(db.url) as holder:
        opened(session, 3)
        key = new_key()
        holder.do("begin")
        assert holder.do(one("spend", "w1", 5, key=key)) == ["|t"]
        session.do("set lock_timeout = '2s'")
        three = (f"select p.ord, p.refusal, p.is_new from wallet.post(array['spend', 'spend', 'transfer', 'spend'], array['{key}', "
                 f"'{new_key()}', '{new_key()}', '{new_key()}']::uuid[], array['w1', 'w2', 'w2', 'w1'], array[5, 5, 5, 5], array[null, null, 'w3', null], p_skip_locked => true) p")
        assert session.do(three) == ["1|busy|f", "2||t", "3||t", "4|busy|f"]
        holder.do("commit")
        assert session.do(three) == ["1||f", "2||f", "3||f", "4||t"], "nothing is kept of what was busy"
        # A key that was decided is answered although its wallet is locked.
        holder.do("begin")
        holder.do("select from wallet.wallet where owner = 'w1' for update")
        assert session.do(one("spend", "w1", 5, key=key)) == ["|f"]
        holder.do("rollback")
        assert db.value("select string_agg(balance::text, ' ' order by owner) from wallet.get(array['w1', 'w2', 'w3'])") == "990 990 1005"
        assert db.rows("select * from wallet.verify()") == []


@test
def an_opening_in_another_transaction_is_waited_for_without_a_connection():
    """A request that kept a connection of the pool while it waits would take all of them together with a few others."""
    with Database() as db, Pawl(db, env={"PAWL_REQUEST_TIMEOUT": "2s"}) as pawl, Session(db.url) as holder:
        pawl.serve()
        assert pawl.http("POST", "/v1/wallets", {"owner": "ann"}).status == 201
        holder.do("begin")
        holder.do("select count(*) from wallet.open(array['bob', 'bob'], array['USD', 'CREDIT'])")
        for body in ({"owner": "cid", "asset": "USD"}, {"owner": "bob"}, {"owner": "bob", "asset": "USD"}):
            answer = pawl.http("POST", "/v1/wallets", body)
            # The second only where the machine is so busy that the time is over before the lock's.
            assert answer.status == 503 and answer.json["type"] in ("/problems/try-again", "/problems/timed-out"), (body, answer.status, answer.body)
            assert int(answer.headers["retry-after"]) >= 1
        assert pawl.http("POST", "/v1/wallets", {"owner": "dan"}).status == 201
        assert pawl.http("POST", "/v1/wallets", {"owner": "dan", "asset": "EUR"}).status == 201, "nor is another new asset held up"
        holder.do("rollback")
        for body in ({"owner": "cid", "asset": "USD"}, {"owner": "bob"}, {"owner": "bob", "asset": "USD"}):
            assert pawl.http("POST", "/v1/wallets", body).status == 201
        assert pawl.stop() == 0


@test
def a_snapshot_that_is_too_old_is_a_serialization_failure():
    with Database() as db, Session(db.url) as other:
        opened(other, 1)
        for level in ("repeatable read", "serializable"):
            with Session(db.url) as session:
                session.do(f"begin isolation level {level}")
                session.do("select 1")
                other.do(one("spend", "w1", 5))
                try:
                    session.do(one("spend", "w1", 5))
                except AssertionError as error:
                    assert "could not serialize access" in str(error), error
                else:
                    raise AssertionError("it was posted on what had changed since")
        assert db.value("select balance from wallet.get(array['w1'])") == "990"


@test
def large_calls_take_time_by_their_size_alone():
    """Rows and buffers, not seconds: twice as many items must not look at four times as much."""
    with Database() as db, Session(db.url) as session:
        opened(session, 2, amount=1000000)
        hold = new_key()
        session.do(one("hold", "w1", 100000, key=hold))

        def captures(count):
            lines = session.do("explain (analyze, buffers, timing off, summary off, format json) select count(*) from wallet.post("
                               f"array_fill('capture'::text, array[{count}]), array(select gen_random_uuid() from generate_series(1, {count})), null, "
                               f"array_fill(1::bigint, array[{count}]), array_fill('w2'::text, array[{count}]), "
                               f"p_refs => array_fill('{hold}'::uuid, array[{count}]))")
            plan = json.loads("\n".join(lines))[0]["Plan"]
            return plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]

        captures(10)
        small, large = captures(500), captures(2000)
        assert large < 6 * small, (small, large)
        assert db.value("select captured from wallet.holds") == "2510"
        assert db.rows("select * from wallet.verify()") == []


if __name__ == "__main__":
    main()
