/*
 * ledger_test.c - what is posted and looked for through the combiners; test/concurrency has many callers at once.
 */
#include "wallet/ledger.h"

#include "test/unit/wallet/fixture.h"

TEST(ledger_refuses_metadata_before_it_can_spoil_a_run)
{
    scoped(books_free) Books   *books  = books_new(4);
    scoped(ledger_free) Ledger *ledger = ledger_new(books->pool);
    WalletItem bad   = {.kind = WALLET_TOPUP, .owner = "ann", .amount = 1, .metadata = "{\"n\":1e500000}"};
    WalletItem good  = {.kind = WALLET_TOPUP, .owner = "ann", .amount = 1, .metadata = "{\"n\":1}"};
    Error      error = {0};

    books_open(books, "ann", 0);
    bad.txn_id  = books_key(books);
    good.txn_id = books_key(books);
    assert_code(ERR_INVALID, ledger_post(ledger, soon(), books->arena, &bad, &error));
    assert_contains(error.text, "metadata");
    assert_ok(ledger_post(ledger, soon(), books->arena, &good, &error));
    assert_int_equal(books_balance(books, "ann"), 1);
}

TEST(ledger_result_texts_outlive_the_run)
{
    scoped(books_free) Books   *books   = books_new(4);
    scoped(ledger_free) Ledger *ledger  = ledger_new(books->pool);
    WalletItem                  hold    = {.kind = WALLET_HOLD, .owner = "ann", .amount = 5};
    WalletItem                  capture = {.kind = WALLET_CAPTURE};
    Error                       error   = {0};

    books_open(books, "ann", 10);
    hold.txn_id    = books_key(books);
    capture.txn_id = books_key(books);
    capture.ref    = hold.txn_id;
    assert_ok(ledger_post(ledger, soon(), books->arena, &hold, &error));
    assert_ok(ledger_post(ledger, soon(), books->arena, &capture, &error));
    assert_string_equal(capture.posted_owner, "ann");
    assert_string_equal(capture.posted_other, WALLET_SYSTEM);
    assert_string_equal(capture.posted_asset, WALLET_ASSET_DEFAULT);
    assert_int_equal(capture.posted_amount, 5);
}

TEST(ledger_look_finds_wallets_and_names_those_that_are_missing)
{
    scoped(books_free) Books   *books  = books_new(4);
    scoped(ledger_free) Ledger *ledger = ledger_new(books->pool);
    WalletNew                   euro   = {.owner = "ann", .asset = "EUR", .floor = -7, .metadata = "{\"a\": 1}"};
    Wallet                      wallet;
    Error                       error = {0};

    books_open(books, "ann", 10);
    assert_ok(wallet_open(books->pool, soon(), books->arena, &euro, &error));
    assert_ok(ledger_look(ledger, soon(), books->arena, "ann", NULL, &wallet, &error));
    assert_int_equal(wallet.balance, 10);
    assert_null(wallet.metadata);
    assert_ok(ledger_look(ledger, soon(), books->arena, "ann", "EUR", &wallet, &error));
    assert_int_equal(wallet.available, 7);
    assert_string_equal(wallet.metadata, "{\"a\": 1}");
    assert_ok(ledger_look(ledger, soon(), books->arena, WALLET_SYSTEM, NULL, &wallet, &error));
    assert_int_equal(wallet.balance, -10);
    assert_code(ERR_NOT_FOUND, ledger_look(ledger, soon(), books->arena, "who", NULL, &wallet, &error));
    assert_string_equal(error_type(&error), "wallet-unknown");
    assert_code(ERR_INVALID, ledger_look(ledger, soon(), books->arena, "@who", NULL, &wallet, &error));
}
