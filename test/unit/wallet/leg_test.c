/*
 * leg_test.c - legs add up, asset by asset, or are named.
 */
#include "wallet/leg.h"

#include <string.h>

#include "test/harness/test.h"
#include "wallet/wallet.h"

#define LEGS(...) ((WalletLegs){(const WalletLeg[]){__VA_ARGS__}, (int)COUNT(((const WalletLeg[]){__VA_ARGS__}))})

TEST(legs_check_takes_what_sums_to_zero)
{
    Error error = {0};

    assert_ok(legs_check(LEGS({"ann", NULL, -5}, {"bob", "CREDIT", 3}, {WALLET_SYSTEM, NULL, 2}), &error));
    assert_ok(legs_check(LEGS({"ann", NULL, -5}, {"ann", "EUR", 1}, {"bob", NULL, 5}, {"bob", "EUR", -1}), &error));
    assert_ok(legs_check(LEGS({"ann", NULL, WALLET_AMOUNT_MAX}, {"bob", NULL, -WALLET_AMOUNT_MAX}), &error));
}

TEST(legs_check_begins_with_what_is_wrong)
{
    static WalletLeg many[WALLET_LEGS_MAX + 1];
    const struct {
        WalletLegs  legs;
        const char *words;
    } rows[] = {
        {{NULL, 0}, "legs must be 2 to 100, not 0"},
        {LEGS({"ann", NULL, -1}), "legs must be 2 to 100, not 1"},
        {{many, COUNT(many)}, "legs must be 2 to 100, not 101"},
        {LEGS({"ann", NULL, -1}, {NULL, NULL, 1}), "legs[1].owner must be"},
        {LEGS({"@ann", NULL, -1}, {"bob", NULL, 1}), "legs[0].owner must not begin"},
        {LEGS({"ann", NULL, -1}, {"bob", "eur", 1}), "legs[1].asset must be"},
        {LEGS({"ann", NULL, -1}, {"bob", NULL, 0}), "legs[1].amount must be"},
        {LEGS({"ann", NULL, -1}, {"bob", NULL, WALLET_AMOUNT_MAX + 1}), "legs[1].amount must be"},
        {LEGS({"ann", NULL, -1}, {"ann", "CREDIT", 1}), "legs must name each owner once"},
        {LEGS({"ann", NULL, -1}, {"bob", NULL, 2}), "legs must sum to zero in CREDIT"},
        {LEGS({"ann", NULL, -1}, {"bob", NULL, 1}, {"ann", "EUR", 2}, {"bob", "EUR", -1}),
         "legs must sum to zero in EUR, not"},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        Error error = {0};

        assert_code(ERR_INVALID, legs_check(rows[i].legs, &error));
        assert_memory_equal(error.text, rows[i].words, strlen(rows[i].words));
    }
}

TEST(legs_are_the_same_however_the_usual_asset_is_said)
{
    WalletLegs       plain = LEGS({"a\"b", NULL, -1}, {"bob", NULL, 1});
    WalletLegs       named = LEGS({"a\"b", "CREDIT", -1}, {"bob", NULL, 1});
    scoped_text Text text  = {0};
    Writer           writer;

    assert_true(legs_same(plain, named));
    assert_false(legs_same(plain, LEGS({"a\"b", NULL, -1}, {"bob", NULL, 2})));
    assert_false(legs_same(plain, LEGS({"a\"b", NULL, -1}, {"eve", NULL, 1})));
    assert_false(legs_same(plain, LEGS({"a\"b", "EUR", -1}, {"bob", NULL, 1})));
    assert_false(legs_same(plain, (WalletLegs){plain.list, 1}));
    text_init(&text, NULL, legs_bytes(plain));
    writer_open(&writer, &text);
    legs_write(&writer, NULL, plain);
    assert_string_equal(text_string(&text), "[{\"owner\":\"a\\\"b\",\"amount\":-1,\"asset\":\"CREDIT\"},"
                                            "{\"owner\":\"bob\",\"amount\":1,\"asset\":\"CREDIT\"}]");
}
