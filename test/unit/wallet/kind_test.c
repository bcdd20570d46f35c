/*
 * kind_test.c - which arguments each kind takes, here and in SQL.
 */
#include "wallet/kind.h"

#include <string.h>

#include "base/text.h"
#include "test/unit/wallet/fixture.h"
#include "wallet/operation.h"

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
                                                   "regexp_matches(pg_get_constraintdef(c.oid), '[{,]([a-z]+)', 'g') m "
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

/* The tables that HTTP, OpenAPI and the command line read have the arguments of the kind, required where they are required. */
TEST(wallet_operation_fields_are_the_arguments_of_the_kind)
{
    static const char *const arguments[] = {"owner", "other", "amount",       "asset",   "ref",
                                            "legs",  "floor", "expires_in_s", "metadata"};

    for (WalletKind kind = 0; kind < WALLET_KIND_COUNT; kind++) {
        const FieldTable *all = &wallet_operation_tables[kind], *body = &wallet_operation_bodies[kind];
        size_t            taken = 1; /* txn_id */

        assert_string_equal(wallet_kind_names[kind], all->noun);
        assert_string_equal("txn_id", body->fields[0].name); /* without the subject it is first */
        assert_in_range(all->count - body->count, 0, 1);
        for (size_t i = 0; i < COUNT(arguments); i++) {
            ArgumentNeed need  = wallet_kind_needs(kind, arguments[i]);
            const Field *found = NULL;

            for (size_t j = 0; j < all->count; j++)
                if (strcmp(all->fields[j].name, wallet_field_name(kind, arguments[i])) == 0)
                    found = &all->fields[j];
            assert_int_equal(need != ARGUMENT_NONE, found != NULL);
            assert_true(!found || found->required == (need == ARGUMENT_REQUIRED));
            taken += found != NULL;
        }
        assert_int_equal(taken, all->count);
    }
}

TEST(wallet_fields_have_the_names_of_the_interface)
{
    assert_string_equal("from", wallet_field_name(WALLET_TRANSFER, "owner"));
    assert_string_equal("owner", wallet_field_name(WALLET_SPEND, "owner"));
    assert_string_equal("hold", wallet_field_name(WALLET_CAPTURE, "ref"));
    assert_string_equal("transaction", wallet_field_name(WALLET_REFUND, "ref"));
    assert_string_equal("to", wallet_field_name(WALLET_SPEND, "other")); /* not taken: its name elsewhere */
}
