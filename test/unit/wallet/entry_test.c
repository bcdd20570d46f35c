/*
 * entry_test.c - what was written can be read: entries in pages, transactions, holds.
 */
#include "wallet/entry.h"

#include <string.h>

#include "test/unit/wallet/fixture.h"

TEST(entry_list_goes_back_page_by_page)
{
    scoped(ledger_fixture_free) LedgerFixture *fixture = ledger_fixture_new(4);
    Entry                                     *list;
    int                                        count, seen = 0;
    EntryFilter                                filter = {.owner = "ann", .limit = 3};
    Error                                      error  = {0};

    ledger_fixture_open(fixture, "ann", 0);
    for (int i = 1; i <= 7; i++) {
        WalletItem topup = {.kind = WALLET_TOPUP, .owner = "ann", .amount = i};

        assert_int_equal(ledger_fixture_post(fixture, &topup), OK);
    }
    do {
        assert_ok(entry_list(fixture->pool, soon(), fixture->arena, &filter, &list, &count, &error));
        for (int i = 0; i < count; i++) {
            assert_int_equal(list[i].amount, 7 - seen++);
            assert_string_equal(list[i].other, WALLET_SYSTEM);
            filter.seen = list[i].number;
        }
    } while (count == filter.limit);
    assert_int_equal(seen, 7);
}

TEST(entry_list_tells_no_match_from_an_unknown_wallet)
{
    scoped(ledger_fixture_free) LedgerFixture *fixture = ledger_fixture_new(4);
    Entry                                     *list;
    int                                        count;
    Error                                      error = {0};

    ledger_fixture_open(fixture, "ann", 5);
    assert_ok(entry_list(fixture->pool, soon(), fixture->arena,
                         &(EntryFilter){.owner = "ann", .kind = "spend", .limit = 9}, &list, &count, &error));
    assert_int_equal(count, 0);
    assert_code(ERR_NOT_FOUND, entry_list(fixture->pool, soon(), fixture->arena,
                                          &(EntryFilter){.owner = "who", .limit = 9}, &list, &count, &error));
    assert_code(ERR_INVALID, entry_list(fixture->pool, soon(), fixture->arena,
                                        &(EntryFilter){.owner = "ann", .limit = 0}, &list, &count, &error));
    assert_contains(error.text, "limit");
}

TEST(transactions_and_holds_are_printed_as_json)
{
    scoped(ledger_fixture_free) LedgerFixture *fixture = ledger_fixture_new(4);
    WalletItem  hold = {.kind = WALLET_HOLD, .owner = "ann", .amount = 4, .metadata = "{\"m\": 1}"};
    const char *json;
    Error       error = {0};

    ledger_fixture_open(fixture, "ann", 5);
    assert_int_equal(ledger_fixture_post(fixture, &hold), OK);
    assert_ok(transaction_show(fixture->pool, soon(), fixture->arena, hold.txn_id, NULL, &json, &error));
    assert_contains(json, "\"kind\": \"hold\"");
    assert_ok(hold_show(fixture->pool, soon(), fixture->arena, hold.txn_id, &json, &error));
    assert_contains(json, "\"remaining\": 4");
    assert_contains(json, "\"status\": \"OPEN\"");
    assert_ok(transaction_entries(fixture->pool, soon(), fixture->arena, hold.txn_id, &json, &error));
    assert_contains(json, "\"held\": 4");
    assert_code(ERR_NOT_FOUND,
                hold_show(fixture->pool, soon(), fixture->arena, ledger_fixture_key(fixture), &json, &error));
    assert_string_equal(error_type(&error), "hold-unknown");
    assert_code(ERR_NOT_FOUND, transaction_show(fixture->pool, soon(), fixture->arena, ledger_fixture_key(fixture),
                                                NULL, &json, &error));
    assert_string_equal(error_type(&error), "transaction-unknown");
}
