/*
 * ledger_test.c - posting and reading through the combiners; test/concurrency has many concurrent callers.
 */
#include "wallet/ledger.h"

#include <stdatomic.h>

#include "test/unit/pg/await.h"
#include "test/unit/wallet/fixture.h"

TEST(ledger_refuses_metadata_before_it_can_spoil_a_run)
{
    scoped(ledger_fixture_free) LedgerFixture *fixture = ledger_fixture_new(4);
    scoped(ledger_free) Ledger                *ledger  = ledger_new(fixture->pool);
    WalletItem bad   = {.kind = WALLET_TOPUP, .owner = "ann", .amount = 1, .metadata = "{\"n\":1e500000}"};
    WalletItem good  = {.kind = WALLET_TOPUP, .owner = "ann", .amount = 1, .metadata = "{\"n\":1}"};
    Error      error = {0};

    ledger_fixture_open(fixture, "ann", 0);
    bad.txn_id  = ledger_fixture_key(fixture);
    good.txn_id = ledger_fixture_key(fixture);
    assert_code(ERR_INVALID, ledger_post(ledger, soon(), fixture->arena, &bad, &error));
    assert_contains(error.text, "metadata");
    assert_ok(ledger_post(ledger, soon(), fixture->arena, &good, &error));
    assert_int_equal(ledger_fixture_balance(fixture, "ann"), 1);
}

TEST(ledger_result_texts_outlive_the_run)
{
    scoped(ledger_fixture_free) LedgerFixture *fixture = ledger_fixture_new(4);
    scoped(ledger_free) Ledger                *ledger  = ledger_new(fixture->pool);
    WalletItem                                 hold    = {.kind = WALLET_HOLD, .owner = "ann", .amount = 5};
    WalletItem                                 capture = {.kind = WALLET_CAPTURE};
    Error                                      error   = {0};

    ledger_fixture_open(fixture, "ann", 10);
    hold.txn_id    = ledger_fixture_key(fixture);
    capture.txn_id = ledger_fixture_key(fixture);
    capture.ref    = hold.txn_id;
    assert_ok(ledger_post(ledger, soon(), fixture->arena, &hold, &error));
    assert_ok(ledger_post(ledger, soon(), fixture->arena, &capture, &error));
    assert_string_equal(capture.posted_owner, "ann");
    assert_string_equal(capture.posted_other, WALLET_SYSTEM);
    assert_string_equal(capture.posted_asset, WALLET_ASSET_DEFAULT);
    assert_int_equal(capture.posted_amount, 5);
}

TEST(ledger_read_finds_wallets_and_names_those_that_are_missing)
{
    scoped(ledger_fixture_free) LedgerFixture *fixture = ledger_fixture_new(4);
    scoped(ledger_free) Ledger                *ledger  = ledger_new(fixture->pool);
    WalletNew euro = {.owner = "ann", .asset = "EUR", .floor = -7, .metadata = "{\"a\": 1}"};
    Wallet    wallet;
    Error     error = {0};

    ledger_fixture_open(fixture, "ann", 10);
    assert_ok(wallet_open(fixture->pool, soon(), WALLET_LOCK_WAIT, fixture->arena, &euro, &error));
    assert_ok(ledger_get(ledger, soon(), fixture->arena, "ann", NULL, &wallet, &error));
    assert_int_equal(wallet.balance, 10);
    assert_null(wallet.metadata);
    assert_ok(ledger_get(ledger, soon(), fixture->arena, "ann", "EUR", &wallet, &error));
    assert_int_equal(wallet.available, 7);
    assert_string_equal(wallet.metadata, "{\"a\": 1}");
    assert_ok(ledger_get(ledger, soon(), fixture->arena, WALLET_SYSTEM, NULL, &wallet, &error));
    assert_int_equal(wallet.balance, -10);
    assert_code(ERR_NOT_FOUND, ledger_get(ledger, soon(), fixture->arena, "who", NULL, &wallet, &error));
    assert_string_equal(error_type(&error), "wallet-unknown");
    assert_code(ERR_INVALID, ledger_get(ledger, soon(), fixture->arena, "@who", NULL, &wallet, &error));
}

/* ---- a key that an open transaction holds ---- */

#define NEIGHBOURS 8

static void count_done(void *context)
{
    atomic_fetch_add((atomic_int *)context, 1);
}

TEST(ledger_repeat_of_a_key_in_an_open_transaction_holds_up_no_neighbour)
{
    scoped(ledger_fixture_free) LedgerFixture *fixture = ledger_fixture_new(4);
    scoped(ledger_free) Ledger                *ledger  = ledger_new(fixture->pool);
    WalletItem                                 twin    = {.kind = WALLET_SPEND, .owner = "ann", .amount = 3};
    WalletItem                                 items[NEIGHBOURS];
    LedgerPost                                 posts[NEIGHBOURS + 1];
    atomic_int                                 twins = 0, neighbours = 0;

    ledger_fixture_open(fixture, "ann", 10);
    ledger_fixture_open(fixture, "bob", 100);
    twin.txn_id = ledger_fixture_key(fixture);
    database_exec(fixture->db, arena_print(fixture->arena,
                                           "begin; select from wallet.post(array['spend'], array['%s']::uuid[], "
                                           "array['ann'], array[3]::bigint[])",
                                           twin.txn_id));
    posts[NEIGHBOURS] = (LedgerPost){&twin, fixture->arena, soon(), count_done, &twins};
    ledger_submit(ledger, &posts[NEIGHBOURS]);
    for (int i = 0; i < NEIGHBOURS; i++) {
        items[i] =
            (WalletItem){.kind = WALLET_SPEND, .owner = "bob", .amount = 1, .txn_id = ledger_fixture_key(fixture)};
        posts[i] = (LedgerPost){&items[i], arena_new((size_t)1 << 20), soon(), count_done, &neighbours};
        ledger_submit(ledger, &posts[i]);
    }
    await(atomic_load(&neighbours) == NEIGHBOURS);
    assert_int_equal(atomic_load(&twins), 0);
    database_exec(fixture->db, "commit");
    await(atomic_load(&twins) == 1);
    assert_int_equal(twin.code, OK);
    assert_true(twin.replayed);
    assert_int_equal(twin.balance, 7);
    for (int i = 0; i < NEIGHBOURS; i++) {
        assert_int_equal(items[i].code, OK);
        arena_free(posts[i].arena);
    }
    assert_int_equal(ledger_fixture_balance(fixture, "ann"), 7);
    assert_int_equal(ledger_fixture_balance(fixture, "bob"), 100 - NEIGHBOURS);
}
