/*
 * post_test.c - posting: kinds, keys, refusals, batches.
 */
#include "wallet/post.h"

#include <string.h>

#include "test/unit/wallet/fixture.h"
#include "wallet/metric.h"

#define ID "0190a000-0000-7000-8000-00000000000a"

TEST(wallet_check_names_the_field_as_the_interface_calls_it)
{
    static char long_name[WALLET_OWNER_MAX + 2]; /* filled below: one too many */
    static const struct {
        WalletItem  item;
        const char *words;
    } rows[] = {
        {{.kind = WALLET_TOPUP, .owner = "a", .amount = 1},                                   "txn_id must be"                 },
        {{.kind = WALLET_TOPUP, .txn_id = "7", .owner = "a", .amount = 1},                    "txn_id must be"                 },
        {{.kind = WALLET_TOPUP, .txn_id = ID, .amount = 1},                                   "owner must be"                  },
        {{.kind = WALLET_TOPUP, .txn_id = ID, .owner = "", .amount = 1},                      "owner must be"                  },
        {{.kind = WALLET_TOPUP, .txn_id = ID, .owner = long_name, .amount = 1},               "owner must be 1 to 255 bytes"   },
        {{.kind = WALLET_TOPUP, .txn_id = ID, .owner = "@system", .amount = 1},               "owner must not begin with \"@\""},
        {{.kind = WALLET_TOPUP, .txn_id = ID, .owner = "a\tb", .amount = 1},                  "control characters"             },
        {{.kind = WALLET_TOPUP, .txn_id = ID, .owner = "\xc2\x85", .amount = 1},              "control characters"             },
        {{.kind = WALLET_TOPUP, .txn_id = ID, .owner = "\xff", .amount = 1},                  "UTF-8"                          },
        {{.kind = WALLET_TOPUP, .txn_id = ID, .owner = "a"},                                  "amount must be"                 },
        {{.kind = WALLET_TOPUP, .txn_id = ID, .owner = "a", .amount = -1},                    "amount must be"                 },
        {{.kind = WALLET_TOPUP, .txn_id = ID, .owner = "a", .amount = WALLET_AMOUNT_MAX + 1}, "amount must be"                 },
        {{.kind = WALLET_TOPUP, .txn_id = ID, .owner = "a", .amount = 1, .asset = "eur"},     "asset must be"                  },
        {{.kind = WALLET_TOPUP, .txn_id = ID, .owner = "a", .amount = 1, .metadata = "[]"},   "metadata must be"               },
        {{.kind = WALLET_TRANSFER, .txn_id = ID, .other = "b", .amount = 1},                  "from must be"                   },
        {{.kind = WALLET_TRANSFER, .txn_id = ID, .owner = "a", .amount = 1},                  "to must be"                     },
        {{.kind = WALLET_TRANSFER, .txn_id = ID, .owner = "a", .other = "a", .amount = 1},    "from and to must not be"        },
        {{.kind = WALLET_HOLD, .txn_id = ID, .owner = "a", .amount = 1, .expires_in_s = -1},  "expires_in_s must be"           },
        {{.kind = WALLET_CAPTURE, .txn_id = ID},                                              "hold must be a UUID"            },
        {{.kind = WALLET_CAPTURE, .txn_id = ID, .ref = ID, .amount = -1},                     "amount must be"                 },
        {{.kind = WALLET_REFUND, .txn_id = ID},                                               "transaction must be a UUID"     },
        {{.kind = WALLET_MULTI, .txn_id = ID},                                                "legs must be 2 to 100, not 0"   },
        {{.kind = WALLET_FLOOR, .txn_id = ID, .owner = "a", .floor = 1},                      "floor must be"                  },
    };

    memset(long_name, 'x', sizeof long_name - 1);
    for (size_t i = 0; i < COUNT(rows); i++) {
        Error error = {0};

        assert_code(ERR_INVALID, wallet_check(&rows[i].item, &error));
        assert_contains(error.text, rows[i].words);
    }
}

TEST(wallet_same_key_twice_is_posted_once_and_answered_twice)
{
    scoped(ledger_fixture_free) LedgerFixture *fixture = ledger_fixture_new(4);
    WalletItem                                 first   = ledger_fixture_transfer("ann", "bob", 30), again;

    ledger_fixture_open(fixture, "ann", 100);
    ledger_fixture_open(fixture, "bob", 0);
    assert_int_equal(ledger_fixture_post(fixture, &first), OK);
    assert_false(first.replayed);
    assert_int_equal(first.balance_before, 100);
    assert_int_equal(first.balance, 70);
    assert_int_equal(first.available, 70);
    assert_int_equal(first.version, 2);
    assert_string_equal(first.posted_asset, "CREDIT");

    again        = ledger_fixture_transfer("ann", "bob", 30);
    again.txn_id = first.txn_id;
    again.asset  = "CREDIT"; /* the same body in other words */
    assert_int_equal(ledger_fixture_post(fixture, &again), OK);
    assert_true(again.replayed);
    assert_int_equal(again.balance, 70);
    assert_int_equal(again.decided_at, first.decided_at);
    assert_int_equal(ledger_fixture_balance(fixture, "ann"), 70);
    assert_int_equal(ledger_fixture_count(fixture, "entry"), 2 + 2 + 2 + 8); /* openings, topup, transfer, stripes */
}

TEST(wallet_refusal_is_kept_under_its_key_with_its_type)
{
    scoped(ledger_fixture_free) LedgerFixture *fixture = ledger_fixture_new(4);
    WalletItem                                 spend   = {.kind = WALLET_SPEND, .owner = "ann", .amount = 5};
    WalletItem                                 topup   = {.kind = WALLET_TOPUP, .owner = "ann", .amount = 5};
    int64_t                                    count   = metric_value(&wallet_metrics.refused);

    ledger_fixture_open(fixture, "ann", 0);
    assert_int_equal(ledger_fixture_post(fixture, &spend), ERR_CONFLICT);
    assert_false(spend.replayed);
    assert_string_equal(error_type(&spend.error), "insufficient-funds");
    assert_string_equal(spend.error.text, "\"ann\" has 0 available, 5 are needed");
    assert_int_equal(ledger_fixture_post(fixture, &topup), OK);
    assert_int_equal(ledger_fixture_post(fixture, &spend), ERR_CONFLICT);
    assert_true(spend.replayed);
    assert_int_equal(spend.balance_now, 5);
    assert_int_equal(metric_value(&wallet_metrics.refused), count + 1);
}

TEST(wallet_unknown_names_leave_no_trace)
{
    scoped(ledger_fixture_free) LedgerFixture *fixture = ledger_fixture_new(4);
    WalletItem                                 spend   = {.kind = WALLET_SPEND, .owner = "who", .amount = 5};
    WalletItem                                 capture = {.kind = WALLET_CAPTURE, .ref = ID};
    WalletItem                                 refund  = {.kind = WALLET_REFUND, .ref = ID};
    int64_t                                    before;

    ledger_fixture_open(fixture, "ann", 0);
    before = ledger_fixture_count(fixture, "txn");
    assert_int_equal(ledger_fixture_post(fixture, &spend), ERR_NOT_FOUND);
    assert_string_equal(error_type(&spend.error), "wallet-unknown");
    assert_int_equal(ledger_fixture_post(fixture, &capture), ERR_NOT_FOUND);
    assert_string_equal(error_type(&capture.error), "hold-unknown");
    assert_int_equal(ledger_fixture_post(fixture, &refund), ERR_NOT_FOUND);
    assert_string_equal(error_type(&refund.error), "transaction-unknown");
    assert_int_equal(spend.decided_at, 0);
    assert_int_equal(ledger_fixture_count(fixture, "txn"), before);
}

TEST(wallet_same_key_another_body_names_the_field)
{
    scoped(ledger_fixture_free) LedgerFixture *fixture = ledger_fixture_new(4);
    WalletItem                                 first   = ledger_fixture_transfer("ann", "bob", 30), other;

    ledger_fixture_open(fixture, "ann", 100);
    ledger_fixture_open(fixture, "bob", 100);
    ledger_fixture_open(fixture, "eve", 100);
    assert_int_equal(ledger_fixture_post(fixture, &first), OK);

    other        = ledger_fixture_transfer("eve", "bob", 30);
    other.txn_id = first.txn_id;
    assert_int_equal(ledger_fixture_post(fixture, &other), ERR_KEY_REUSED);
    assert_contains(other.error.text, "\"from\"");
    other        = ledger_fixture_transfer("ann", "eve", 30);
    other.txn_id = first.txn_id;
    assert_int_equal(ledger_fixture_post(fixture, &other), ERR_KEY_REUSED);
    assert_contains(other.error.text, "\"to\"");
    other        = (WalletItem){.kind = WALLET_SPEND, .owner = "ann", .amount = 30};
    other.txn_id = first.txn_id;
    assert_int_equal(ledger_fixture_post(fixture, &other), ERR_KEY_REUSED);
    assert_contains(other.error.text, "another operation: transfer");
    assert_int_equal(ledger_fixture_balance(fixture, "ann"), 70);
}

TEST(wallet_hold_is_captured_in_parts_and_the_rest_voided)
{
    scoped(ledger_fixture_free) LedgerFixture *fixture = ledger_fixture_new(4);
    WalletItem                                 hold    = {.kind = WALLET_HOLD, .owner = "ann", .amount = 60};
    WalletItem                                 capture = {.kind = WALLET_CAPTURE, .other = "bob", .amount = 25};
    WalletItem                                 release = {.kind = WALLET_VOID};

    ledger_fixture_open(fixture, "ann", 100);
    ledger_fixture_open(fixture, "bob", 0);
    assert_int_equal(ledger_fixture_post(fixture, &hold), OK);
    assert_int_equal(hold.available, 40);
    capture.ref = release.ref = hold.txn_id;
    assert_int_equal(ledger_fixture_post(fixture, &capture), OK);
    assert_string_equal(capture.posted_owner, "ann");
    assert_string_equal(capture.posted_other, "bob");
    assert_int_equal(capture.held, 35);
    assert_int_equal(ledger_fixture_post(fixture, &release), OK);
    assert_int_equal(release.posted_amount, 35);
    assert_int_equal(release.held, 0);
    assert_int_equal(release.balance, 75);
    assert_int_equal(ledger_fixture_balance(fixture, "bob"), 25);
}

TEST(wallet_post_many_has_a_verdict_for_each_and_one_for_twins)
{
    scoped(ledger_fixture_free) LedgerFixture *fixture = ledger_fixture_new(4);
    WalletItem  items[5] = {ledger_fixture_transfer("ann", "bob", 60), ledger_fixture_transfer("ann", "bob", 60),
                            ledger_fixture_transfer("ann", "who", 1), ledger_fixture_transfer("ann", "bob", 60),
                            ledger_fixture_transfer("ann", "bob", 61)};
    WalletItem *list[5];
    int         refused;
    Error       error = {0};

    ledger_fixture_open(fixture, "ann", 100);
    ledger_fixture_open(fixture, "bob", 0);
    for (int i = 0; i < 5; i++) {
        list[i]         = &items[i];
        items[i].txn_id = i < 3 ? ledger_fixture_key(fixture) : items[0].txn_id;
    }
    assert_ok(
        wallet_post_many(fixture->pool, soon(), 0, fixture->arena, list, 5, /* atomic= */ false, &refused, &error));
    assert_int_equal(refused, 1);
    assert_int_equal(items[0].code, OK);
    assert_int_equal(items[1].code, ERR_CONFLICT);
    assert_int_equal(items[2].code, ERR_NOT_FOUND);
    assert_int_equal(items[3].code, OK);
    assert_true(items[3].replayed);
    assert_int_equal(items[3].balance, 40);
    assert_int_equal(items[4].code, ERR_KEY_REUSED);
    assert_contains(items[4].error.text, "\"amount\"");
    assert_int_equal(ledger_fixture_balance(fixture, "ann"), 40);
}

TEST(wallet_post_many_atomic_takes_everything_back)
{
    scoped(ledger_fixture_free) LedgerFixture *fixture = ledger_fixture_new(4);
    WalletItem  items[3] = {ledger_fixture_transfer("ann", "bob", 60), ledger_fixture_transfer("ann", "bob", 60),
                            ledger_fixture_transfer("bob", "ann", 1)};
    WalletItem *list[3];
    int         refused;
    Error       error = {0};
    int64_t     before;

    ledger_fixture_open(fixture, "ann", 100);
    ledger_fixture_open(fixture, "bob", 0);
    before = ledger_fixture_count(fixture, "txn");
    for (int i = 0; i < 3; i++) {
        list[i]         = &items[i];
        items[i].txn_id = ledger_fixture_key(fixture);
    }
    assert_ok(
        wallet_post_many(fixture->pool, soon(), 0, fixture->arena, list, 3, /* atomic= */ true, &refused, &error));
    assert_int_equal(refused, 1);
    for (int i = 0; i < 3; i++)
        assert_int_equal(items[i].code, ERR_CONFLICT);
    assert_contains(items[0].error.text, "because items[1] was refused");
    assert_string_equal(error_type(&items[1].error), "insufficient-funds");
    assert_int_equal(ledger_fixture_count(fixture, "txn"), before);
    assert_int_equal(ledger_fixture_balance(fixture, "ann"), 100);

    items[1].amount = 40;
    assert_ok(
        wallet_post_many(fixture->pool, soon(), 0, fixture->arena, list, 3, /* atomic= */ true, &refused, &error));
    assert_int_equal(refused, -1);
    assert_int_equal(ledger_fixture_balance(fixture, "ann"), 1);
}

/* The twin of what was taken back was not posted either; what had been posted before still is. */
TEST(wallet_post_many_atomic_takes_twins_back_as_well)
{
    scoped(ledger_fixture_free) LedgerFixture *fixture = ledger_fixture_new(4);
    WalletItem  items[5] = {ledger_fixture_transfer("ann", "bob", 10), ledger_fixture_transfer("ann", "bob", 20),
                            ledger_fixture_transfer("ann", "bob", 20), ledger_fixture_transfer("ann", "bob", 1000),
                            ledger_fixture_transfer("ann", "bob", 10)};
    WalletItem *list[5];
    int         refused;
    Error       error = {0};

    ledger_fixture_open(fixture, "ann", 100);
    ledger_fixture_open(fixture, "bob", 0);
    for (int i = 0; i < 5; i++) {
        list[i]         = &items[i];
        items[i].txn_id = i == 2 ? items[1].txn_id : i == 4 ? items[0].txn_id : ledger_fixture_key(fixture);
    }
    assert_int_equal(ledger_fixture_post(fixture, &items[0]), OK);
    assert_ok(
        wallet_post_many(fixture->pool, soon(), 0, fixture->arena, list, 5, /* atomic= */ true, &refused, &error));
    assert_int_equal(refused, 3);
    static const ErrorCode wanted[] = {OK, ERR_CONFLICT, ERR_CONFLICT, ERR_CONFLICT, OK};
    for (int i = 0; i < 5; i++) {
        assert_int_equal(items[i].code, wanted[i]);
        assert_int_equal(items[i].replayed, wanted[i] == OK);
    }
    assert_int_equal(ledger_fixture_balance(fixture, "ann"), 90);
}

TEST(wallet_post_many_refuses_what_is_too_much)
{
    scoped(ledger_fixture_free) LedgerFixture *fixture = ledger_fixture_new(4);
    scoped(arena_free) Arena                  *small   = arena_new(4096);
    WalletItem                                 item    = ledger_fixture_transfer("ann", "bob", 1);
    WalletItem                                *list[8] = {&item, &item, &item, &item, &item, &item, &item, &item};
    int                                        refused;
    Error                                      error = {0};

    assert_code(ERR_LIMIT,
                wallet_post_many(fixture->pool, soon(), 0, fixture->arena, list, 0, false, &refused, &error));
    assert_code(ERR_LIMIT, wallet_post_many(fixture->pool, soon(), 0, fixture->arena, list, WALLET_BATCH_MAX + 1, false,
                                            &refused, &error));
    assert_code(ERR_LIMIT, wallet_post_many(fixture->pool, soon(), 0, small, list, 8, false, &refused, &error));
    assert_contains(error.text, "too large");
}

TEST(wallet_post_that_skips_leaves_out_what_is_locked_and_names_the_wallet)
{
    scoped(ledger_fixture_free) LedgerFixture *fixture = ledger_fixture_new(4);
    WalletItem                                 there   = ledger_fixture_transfer("bob", "ann", 1),
               here                                    = {.kind = WALLET_SPEND, .owner = "bob", .amount = 2};
    WalletItem *items[]                                = {&there, &here};
    Error       error                                  = {0};

    ledger_fixture_open(fixture, "ann", 10);
    ledger_fixture_open(fixture, "bob", 10);
    there.txn_id = ledger_fixture_key(fixture);
    here.txn_id  = ledger_fixture_key(fixture);
    database_exec(fixture->db, "begin; select from wallet.wallet where owner = 'ann' for update");
    assert_ok(wallet_post(fixture->pool, soon(), WALLET_LOCK_SKIP, fixture->arena, items, 2, &error));
    assert_true(wallet_is_locked(&there));
    assert_string_equal(there.posted_owner, "ann");
    assert_contains(there.error.text, "the wallet of \"ann\" is locked by another transaction");
    assert_int_equal(there.decided_at, 0);
    assert_int_equal(here.code, OK);
    assert_int_equal(here.balance, 8);
    database_exec(fixture->db, "rollback");
    assert_ok(wallet_post(fixture->pool, soon(), WALLET_LOCK_SKIP, fixture->arena, items, 2, &error));
    assert_int_equal(there.code, OK);
    assert_false(there.replayed);
    assert_true(here.replayed);
    assert_int_equal(ledger_fixture_balance(fixture, "ann"), 11);
    assert_int_equal(ledger_fixture_balance(fixture, "bob"), 7);
}
