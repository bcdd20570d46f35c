/*
 * statement_test.c - a statement runs from the oldest, and its balance adds up.
 */
#include "wallet/entry.h"

#include "test/unit/wallet/fixture.h"

#define ROUNDS 12

/* All of it in pages of this size: each balance is the one before and the amount, each version the next one. */
static int statement_follow(LedgerFixture *fixture, EntryFilter filter, int64_t *ret_balance)
{
    int   seen  = 0, count;
    Error error = {0};

    *ret_balance = 0;
    do {
        Entry *list;

        assert_ok(statement_page(fixture->pool, soon(), fixture->arena, &filter, &list, &count, &error));
        for (int i = 0; i < count; i++) {
            assert_true(list[i].number > filter.seen);
            assert_int_equal(list[i].balance, *ret_balance + list[i].amount);
            assert_int_equal(list[i].version, ++seen);
            *ret_balance = list[i].balance;
            filter.seen  = list[i].number;
        }
    } while (count == filter.limit);
    return seen;
}

TEST(statement_adds_up_for_an_owner_and_for_the_system_in_stripes)
{
    scoped(ledger_fixture_free) LedgerFixture *fixture = ledger_fixture_new(4);
    int64_t                                    balance;

    ledger_fixture_open(fixture, "ann", 0);
    for (int i = 1; i <= ROUNDS; i++) {
        WalletItem topup = {.kind = WALLET_TOPUP, .owner = "ann", .amount = 10 * i};
        WalletItem spend = {.kind = WALLET_SPEND, .owner = "ann", .amount = i};

        assert_int_equal(ledger_fixture_post(fixture, &topup), OK);
        /* Another transaction has locked the stripe that was used last, so another one is taken. */
        database_exec(fixture->db,
                      "begin; select from wallet.wallet w join wallet.entry e on e.wallet_id = w.id "
                      "where e.txn = (select max(id) from wallet.txn) and w.owner = '@system' for update of w");
        assert_int_equal(ledger_fixture_post(fixture, &spend), OK);
        database_exec(fixture->db, "rollback");
    }
    assert_true(database_get_i64(fixture->db, "select count(*) from wallet.state s join wallet.wallet w on w.id = s.id "
                                              "where w.owner = '@system' and s.version > 0") > 1);
    for (int limit = 1; limit <= 100; limit += 9) {
        assert_int_equal(statement_follow(fixture, (EntryFilter){.owner = "ann", .limit = limit}, &balance),
                         2 * ROUNDS);
        assert_int_equal(balance, 9 * ROUNDS * (ROUNDS + 1) / 2);
        assert_int_equal(statement_follow(fixture, (EntryFilter){.owner = WALLET_SYSTEM, .limit = limit}, &balance),
                         2 * ROUNDS);
        assert_int_equal(balance, -9 * ROUNDS * (ROUNDS + 1) / 2);
    }
}

TEST(statement_tells_no_match_from_an_unknown_wallet)
{
    scoped(ledger_fixture_free) LedgerFixture *fixture = ledger_fixture_new(4);
    EntryFilter                                early   = {.owner = "ann", .until = "2001-01-01T00:00:00Z", .limit = 5};
    EntryFilter                                none    = {.owner = "who", .limit = 5};
    Entry                                     *list;
    int                                        count;
    Error                                      error = {0};

    ledger_fixture_open(fixture, "ann", 5);
    assert_ok(statement_page(fixture->pool, soon(), fixture->arena, &early, &list, &count, &error));
    assert_int_equal(count, 0);
    assert_code(ERR_NOT_FOUND, statement_page(fixture->pool, soon(), fixture->arena, &none, &list, &count, &error));
    assert_string_equal(error_type(&error), "wallet-unknown");
}
