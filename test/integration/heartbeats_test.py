#!/usr/bin/env python3
"""heartbeats - leases are extended while handlers hold every connection that they may have."""
from pawl_test import Database, Pawl, main, test

COMMANDS = 8


@test
def heartbeats_go_on_while_handlers_hold_the_pool():
    with Database() as db, Pawl(db) as pawl:
        # Three leases long: without a heartbeat every one of them is lost.
        db.rows("create schema shop;"
                "create function shop.slow(payload jsonb, command_id uuid) returns jsonb language plpgsql as $$"
                " begin perform pg_sleep(6); return payload; end $$")
        for n in range(COMMANDS):
            assert pawl.run("send", "shop", "charge", f'{{"n": {n}}}').code == 0
        done = pawl.run("work", "shop", "--sql", "shop.slow", "-j", str(COMMANDS), "--lease", "2s", "--drain", "--json",
                        env={"PAWL_POOL_MAX": "4"}, timeout=180)
        assert done.code == 0, done.stderr
        assert done.json["completed"] == COMMANDS and done.json["lost"] == 0, done.stdout
        assert db.value("select max(attempts) from pawl.outcome") == "1"


main()
