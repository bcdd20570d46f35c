#!/usr/bin/env python3
"""heartbeats - leases are extended while handlers hold every connection that they may have."""
import json

from pawl_test import Database, Pawl, main, test, wait_until
from servers import Session

COMMANDS = 8


@test
def heartbeats_go_on_while_handlers_hold_the_pool():
    with Database() as db, Pawl(db) as pawl, Session(db.url) as session:
        db.rows("create schema shop;"
                "create function shop.slow(payload jsonb, command_id uuid) returns jsonb language plpgsql as $$"
                " begin perform pg_advisory_xact_lock_shared(77); return payload; end $$")
        for n in range(COMMANDS):
            assert pawl.run("send", "shop", "charge", f'{{"n": {n}}}').code == 0
        session.do("select pg_advisory_lock(77)")
        worker = pawl.start("work", "shop", "--sql", "shop.slow", "-j", str(COMMANDS), "--lease", "9s", "--drain", "--json",
                            env={"PAWL_POOL_MAX": "4"})
        wait_until(lambda: int(db.value("select count(*) from pg_locks where locktype = 'advisory' and objid = 77 and not granted")) >= 2,
                   what="handlers hold what they may have")
        # Longer than a lease: without a heartbeat every one of them is lost.
        ends = db.value("select max(until) + interval '3 s' from pawl.lease")
        wait_until(lambda: db.value(f"select clock_timestamp() > '{ends}'") == "t", what="the leases would have ended")
        session.do("select pg_advisory_unlock(77)")
        assert worker.wait() == 0, worker.stderr
        done = json.loads(worker.stdout[-1])
        assert done["completed"] == COMMANDS and done["lost"] == 0, done
        assert db.value("select max(attempts) from pawl.outcome") == "1"


main()
