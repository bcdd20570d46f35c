#!/usr/bin/env python3
"""A ledger that was written when wallets had a mutable row of state is carried over whole, or not at all."""
import os
import subprocess
from pathlib import Path

from pawl_test import Database, main, setting, test

MIGRATIONS = sorted((Path(setting("PAWL_SOURCE")) / "sql/migrations").glob("*.sql"))
STATE = next(file for file in MIGRATIONS if file.name.endswith("_append_only_state.sql"))

# Ann has 100, of which 30 are held; 20 of the hold were captured before, so 50 were held at first.
LEDGER = """
insert into wallet.asset (code) values ('CREDIT');
insert into wallet.wallet (owner, asset_id, stripe, created_at) values ('@system', 1, 0, '2026-01-01'), ('ann', 1, 0, '2026-01-01');
insert into wallet.txn (id, at, txn_id, kind, asset_id, wallet_id, other_id, amount, ref) values
  (0, '2026-01-01', gen_random_uuid(), 'open', 1, 1, null, 0, null), (1, '2026-01-01', gen_random_uuid(), 'open', 1, 2, null, 0, null),
  (2, '2026-01-02', gen_random_uuid(), 'topup', 1, 2, 1, 120, null), (3, '2026-01-03', gen_random_uuid(), 'hold', 1, 2, null, 50, null),
  (4, '2026-01-04', gen_random_uuid(), 'capture', 1, 2, 1, 20, 3);
insert into wallet.entry (wallet_id, version, txn, amount, balance, held, floor) values
  (1, 0, 0, 0, 0, null, -4611686018427387904), (2, 0, 1, 0, 0, null, null), (1, 1, 2, -120, -120, null, -4611686018427387904), (2, 1, 2, 120, 120, null, null),
  (2, 2, 3, 0, 120, 50, null), (1, 2, 4, 20, -100, null, -4611686018427387904), (2, 3, 4, -20, 100, 30, null);
insert into wallet.hold (id, wallet_id, amount, captured) values (3, 2, 50, 20);
insert into wallet.state (id, balance, held, floor, version, frozen, last_at) values
  (1, -100, 0, -4611686018427387904, 2, false, '2026-01-04'), (2, 100, 30, 0, 3, false, '2026-01-04');
"""


def psql(db, *arguments):
    return subprocess.run([os.path.join(setting("PAWL_TEST_BIN"), "psql"), "-Xq1", "-v", "ON_ERROR_STOP=1", "-d", db.url, *arguments],
                          capture_output=True, text=True)


def old_ledger(db):
    db.rows("create schema pawl")
    for file in MIGRATIONS[:MIGRATIONS.index(STATE)]:
        done = psql(db, "-f", str(file))
        assert done.returncode == 0, done.stderr
    done = psql(db, "-c", LEDGER)
    assert done.returncode == 0, done.stderr


@test
def a_ledger_whose_copies_agree_is_carried_over():
    with Database(empty=True) as db:
        old_ledger(db)
        done = psql(db, "-f", str(STATE))
        assert done.returncode == 0, done.stderr
        assert db.value("select count(*) from wallet.entry") == "7"
        assert db.value("select to_regclass('wallet.state') is null") == "t"


@test
def a_ledger_whose_copies_differ_is_left_as_it_is():
    for what, change in {
            "wallet 2": "update wallet.state set balance = 101 where id = 2",
            "wallet 1": "update wallet.state set held = 1 where id = 1",
            "wallet 2 ": "delete from wallet.state where id = 2",
            "hold 3": "update wallet.hold set captured = 21"}.items():
        with Database(empty=True) as db:
            old_ledger(db)
            assert psql(db, "-c", change).returncode == 0
            done = psql(db, "-f", str(STATE))
            assert done.returncode != 0 and f"{what.strip()} differs" in done.stderr, (change, done.stderr)
            assert db.value("select count(*) from wallet.hold where captured > 0") == "1", "nothing was dropped"


if __name__ == "__main__":
    main()
