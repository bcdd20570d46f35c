/*
 * wallet_test.c - opening, present and past states, and holds that expire.
 */
#include "wallet/wallet.h"

#include <string.h>

#include "test/unit/wallet/fixture.h"

TEST(wallet_open_twice_is_one_wallet)
{
    scoped(ledger_fixture_free) LedgerFixture *fixture = ledger_fixture_new(4);
    WalletNew first = {.owner = "ann", .floor = -5, .metadata = "{\"a\": 1}"}, again = first, other = first;
    Error     error = {0};

    assert_ok(wallet_open(fixture->pool, soon(), WALLET_LOCK_WAIT, fixture->arena, &first, &error));
    assert_true(first.is_new);
    again.metadata = "{ \"a\" : 1 }";
    assert_ok(wallet_open(fixture->pool, soon(), WALLET_LOCK_WAIT, fixture->arena, &again, &error));
    assert_false(again.is_new);
    assert_int_equal(again.created_at, first.created_at);
    other.floor = -6;
    assert_code(ERR_KEY_REUSED, wallet_open(fixture->pool, soon(), WALLET_LOCK_WAIT, fixture->arena, &other, &error));
    assert_contains(error.text, "floor");
    assert_int_equal(database_get_i64(fixture->db, "select count(*) from wallet.wallet where owner = 'ann'"), 1);
}

TEST(wallet_open_refuses_a_key_that_was_used_for_another_operation)
{
    scoped(ledger_fixture_free) LedgerFixture *fixture = ledger_fixture_new(4);
    WalletNew                                  ann = {.owner = "ann"}, bob = {.owner = "bob"};
    Error                                      error = {0};

    ann.txn_id = bob.txn_id = ledger_fixture_key(fixture);
    assert_ok(wallet_open(fixture->pool, soon(), WALLET_LOCK_WAIT, fixture->arena, &ann, &error));
    assert_code(ERR_KEY_REUSED, wallet_open(fixture->pool, soon(), WALLET_LOCK_WAIT, fixture->arena, &bob, &error));
    assert_contains(error.text, ann.txn_id);
    assert_int_equal(database_get_i64(fixture->db, "select count(*) from wallet.wallet where owner = 'bob'"), 0);
}

TEST(wallet_check_metadata_measures_numbers_as_they_are_written_out)
{
    static const struct {
        const char *metadata;
        bool        is_good;
    } rows[] = {
        {"{}",                                                   true },
        {" {\"a\": [1, -2.5, 1e3, 0.1E-7], \"b\": \"1e99999\"}", true },
        {"{\"1e99999\": \"\\\"1e99999\"}",                       true },
        {"{\"n\": 1e65535}",                                     true },
        {"{\"n\": 1e65536}",                                     false},
        {"{\"n\": -1E+65536}",                                   false},
        {"{\"n\": [1e40000, 1e40000]}",                          false},
        {"{\"n\": 1e-16383}",                                    true },
        {"{\"n\": 1e-16384}",                                    false},
        {"{\"n\": 1.5e-16383}",                                  false},
        {"{\"n\": 1e500000}",                                    false},
        {"{\"n\": 1e99999999999999999999}",                      false},
        {"{\"n\": 1e-99999999999999999999}",                     false},
        {"[]",                                                   false},
    };
    scoped(ledger_fixture_free) LedgerFixture *fixture = ledger_fixture_new(4);

    for (size_t i = 0; i < COUNT(rows); i++) {
        WalletNew wallet = {.owner = arena_print(fixture->arena, "w%zu", i), .metadata = rows[i].metadata};
        Error     error  = {0};
        ErrorCode code   = wallet_open(fixture->pool, soon(), WALLET_LOCK_WAIT, fixture->arena, &wallet, &error);

        if ((code == OK) != rows[i].is_good)
            print_error("%s: %s\n", rows[i].metadata, error.text);
        assert_int_equal(code, rows[i].is_good ? OK : ERR_INVALID); /* and PostgreSQL takes what is good */
        if (!rows[i].is_good)
            assert_memory_equal(error.text, "metadata must", strlen("metadata must"));
    }
}

TEST(wallet_balance_at_reports_what_was_available_then)
{
    scoped(ledger_fixture_free) LedgerFixture *fixture = ledger_fixture_new(4);
    WalletItem                                 hold    = {.kind = WALLET_HOLD, .owner = "ann", .amount = 3};
    WalletItem                                 floor   = {.kind = WALLET_FLOOR, .owner = "ann", .floor = -20};
    char                                       at[WALLET_TIME_SIZE];
    WalletPast                                 past;
    Error                                      error = {0};

    ledger_fixture_open(fixture, "ann", 10);
    assert_int_equal(ledger_fixture_post(fixture, &hold), OK);
    assert_int_equal(ledger_fixture_post(fixture, &floor), OK);
    wallet_time_text(hold.decided_at, at);
    assert_ok(wallet_get_at(fixture->pool, soon(), fixture->arena, "ann", NULL, at, &past, &error));
    assert_int_equal(past.held, 3);
    assert_int_equal(past.floor, 0);
    assert_int_equal(past.available, 7);
    wallet_time_text(floor.decided_at, at);
    assert_ok(wallet_get_at(fixture->pool, soon(), fixture->arena, "ann", NULL, at, &past, &error));
    assert_int_equal(past.floor, -20);
    assert_int_equal(past.available, 27);
    assert_ok(wallet_get_at(fixture->pool, soon(), fixture->arena, WALLET_SYSTEM, NULL, at, &past, &error));
    assert_int_equal(past.available, -10);
}

TEST(wallet_balance_at_finds_each_moment)
{
    scoped(ledger_fixture_free) LedgerFixture *fixture = ledger_fixture_new(4);
    char                                       at[5][WALLET_TIME_SIZE];
    WalletPast                                 past;
    Error                                      error = {0};

    ledger_fixture_open(fixture, "ann", 0);
    for (int i = 0; i < 5; i++) {
        WalletItem topup = {.kind = WALLET_TOPUP, .owner = "ann", .amount = 10};

        assert_int_equal(ledger_fixture_post(fixture, &topup), OK);
        wallet_time_text(topup.decided_at, at[i]);
    }
    for (int i = 0; i < 5; i++) {
        assert_ok(wallet_get_at(fixture->pool, soon(), fixture->arena, "ann", NULL, at[i], &past, &error));
        assert_int_equal(past.balance, 10 * (i + 1));
        assert_int_equal(past.version, i + 1);
    }
    assert_code(ERR_NOT_FOUND, wallet_get_at(fixture->pool, soon(), fixture->arena, "ann", NULL, "2001-01-01T00:00:00Z",
                                             &past, &error));
    assert_contains(error.text, "at 2001-01-01T00:00:00Z: there is no wallet of \"ann\"");
    assert_string_equal(error_type(&error), "wallet-unknown");
}

TEST(wallet_expire_gives_back_what_is_due_and_nothing_else)
{
    scoped(ledger_fixture_free) LedgerFixture *fixture  = ledger_fixture_new(4);
    WalletItem                                 holds[3] = {
        {.kind = WALLET_HOLD, .owner = "ann", .amount = 1, .expires_in_s = 1},
        {.kind = WALLET_HOLD, .owner = "ann", .amount = 2, .expires_in_s = 3600},
        {.kind = WALLET_HOLD, .owner = "ann", .amount = 4}
    };

    ledger_fixture_open(fixture, "ann", 10);
    for (int i = 0; i < 3; i++)
        assert_int_equal(ledger_fixture_post(fixture, &holds[i]), OK);
    assert_int_equal(database_get_i64(fixture->db, "select wallet.expire(100)"), 0);
    database_exec(fixture->db, "update wallet.hold set expires_at = expires_at - interval '1 minute'");
    assert_int_equal(database_get_i64(fixture->db, "select wallet.expire(100)"), 1);
    assert_int_equal(database_get_i64(fixture->db, "select wallet.expire(100)"), 0);
    assert_int_equal(database_get_i64(fixture->db,
                                      "select held from wallet.state s join wallet.wallet w on w.id = s.id where "
                                      "w.owner = 'ann'"),
                     6);
}

TEST(wallet_time_text_is_rfc_3339_to_the_microsecond)
{
    char text[WALLET_TIME_SIZE];

    wallet_time_text(INT64_C(1769860800000001), text);
    assert_string_equal(text, "2026-01-31T12:00:00.000001Z");
}
