/*
 * kind_test.c - which arguments each kind takes, here and in SQL.
 */
#include "wallet/kind.h"

#include <string.h>

#include "base/text.h"
#include "test/unit/wallet/fixture.h"

#define ID "0190a000-0000-7000-8000-00000000000a"

TEST(wallet_kinds_are_the_same_in_sql)
{
    scoped(ledger_fixture_free) LedgerFixture *fixture = ledger_fixture_new(1);

    for (WalletKind kind = 0; kind < WALLET_KIND_COUNT; kind++)
        assert_int_equal(1,
                         database_get_i64(fixture->db, arena_print(fixture->arena,
                                                                   "select (wallet.kind_takes('%s') = '%s')::integer",
                                                                   wallet_kind_names[kind], wallet_kind_takes[kind])));
    /* Kinds that only the ledger itself posts are none that a caller may name. */
    assert_int_equal(WALLET_KIND_COUNT,
                     database_get_i64(fixture->db, "select count(wallet.kind_takes(m[1])) from pg_constraint c, "
                                                   "regexp_matches(pg_get_constraintdef(c.oid), '''([a-z]+)''', 'g') m "
                                                   "where c.conname = 'txn_kind_check'"));
}

TEST(wallet_check_refuses_arguments_that_the_kind_does_not_take)
{
    static const WalletLeg legs[] = {
        {.owner = "a", .amount = 1 },
        {.owner = "b", .amount = -1}
    };
    static const struct {
        const char *argument;
        WalletItem  item;
    } rows[] = {
        {"owner",        {.owner = "a"}     },
        {"other",        {.other = "b"}     },
        {"amount",       {.amount = 1}      },
        {"asset",        {.asset = "EUR"}   },
        {"ref",          {.ref = ID}        },
        {"legs",         {.legs = {legs, 2}}},
        {"expires_in_s", {.expires_in_s = 1}},
        {"floor",        {.floor = -1}      },
    };
    int refused = 0;

    for (WalletKind kind = 0; kind < WALLET_KIND_COUNT; kind++)
        for (size_t i = 0; i < COUNT(rows); i++) {
            WalletItem item  = rows[i].item;
            Error      error = {0};
            char       words[80];

            item.kind   = kind;
            item.txn_id = ID;
            if (wallet_kind_needs(kind, rows[i].argument) != ARGUMENT_NONE)
                continue;
            snprintf(words, sizeof words, "%s must not be given: %s takes", wallet_field_name(kind, rows[i].argument),
                     wallet_kind_names[kind]);
            assert_code(ERR_INVALID, wallet_check(&item, &error));
            assert_contains(error.text, words);
            refused++;
        }
    assert_int_equal(refused, 57);
}

TEST(wallet_kind_has_the_fields_of_its_arguments)
{
    assert_true(wallet_kind_has_field(WALLET_TRANSFER, "from"));
    assert_false(wallet_kind_has_field(WALLET_TRANSFER, "owner"));
    assert_true(wallet_kind_has_field(WALLET_CAPTURE, "hold"));
    assert_true(wallet_kind_has_field(WALLET_REFUND, "transaction"));
    assert_false(wallet_kind_has_field(WALLET_REFUND, "hold"));
    assert_false(wallet_kind_has_field(WALLET_SPEND, "to"));
    assert_false(wallet_kind_has_field(WALLET_SPEND, ""));
}
