/*
 * leg.c - see leg.h.
 */
#include "wallet/leg.h"

#include <stdlib.h>
#include <string.h>

#include "wallet/wallet.h"

#define LEG_BYTES_MAX (WALLET_OWNER_MAX * 2 + 128) /* every byte of the owner escaped */

static const Field leg_fields[] = {
    {"owner", FIELD_TEXT, offsetof(WalletLeg, owner), .required = true, .min = 1, .length_max = WALLET_OWNER_MAX,
     .names = NAMES_OWNER},
    {"amount", FIELD_I64, offsetof(WalletLeg, amount), .required = true, .min = -WALLET_AMOUNT_MAX,
     .max = WALLET_AMOUNT_MAX, .help = "negative: pays"},
    {"asset", FIELD_TEXT, offsetof(WalletLeg, asset), .min = 1, .length_max = 32, .help = "CREDIT when absent"},
};
const FieldTable wallet_leg_table = {"leg", leg_fields, COUNT(leg_fields), sizeof(WalletLeg)};

static const char *leg_asset(const WalletLeg *leg)
{
    return leg->asset ? leg->asset : WALLET_ASSET_DEFAULT;
}

static ErrorCode leg_check(const WalletLeg *leg, int place, Error *reterr)
{
    char field[32];

    snprintf(field, sizeof field, "legs[%d].owner", place);
    TRY(wallet_check_owner_seen(field, leg->owner, reterr));
    snprintf(field, sizeof field, "legs[%d].asset", place);
    TRY(wallet_check_asset(field, leg->asset, reterr));
    if (leg->amount == 0 || leg->amount < -WALLET_AMOUNT_MAX || leg->amount > WALLET_AMOUNT_MAX)
        return fail(reterr, ERR_INVALID, "legs[%d].amount must be an integer from %lld to %lld, not 0", place,
                    (long long)-WALLET_AMOUNT_MAX, (long long)WALLET_AMOUNT_MAX);
    return OK;
}

static int leg_order(const void *a, const void *b)
{
    const WalletLeg *left = a, *right = b;
    int              order = strcmp(leg_asset(left), leg_asset(right));

    return order ? order : strcmp(left->owner, right->owner);
}

/* Asset by asset: each owner once, and the sum is zero. */
static ErrorCode legs_balance(WalletLegs legs, Error *reterr)
{
    WalletLeg sorted[WALLET_LEGS_MAX];
    int64_t   sum = 0; /* a hundred times 2^53 fits */

    memcpy(sorted, legs.list, sizeof *sorted * (size_t)legs.count);
    qsort(sorted, (size_t)legs.count, sizeof *sorted, leg_order);
    for (int i = 0; i < legs.count; i++) {
        const WalletLeg *leg  = &sorted[i];
        bool             last = i + 1 == legs.count || strcmp(leg_asset(leg), leg_asset(leg + 1)) != 0;

        sum += leg->amount;
        if (!last && strcmp(leg->owner, leg[1].owner) == 0)
            return fail(reterr, ERR_INVALID, "legs must name each owner once per asset, not \"%.100s\" twice",
                        leg->owner);
        if (last && sum != 0)
            return fail(reterr, ERR_INVALID, "legs must sum to zero in %s, not to %lld", leg_asset(leg),
                        (long long)sum);
    }
    return OK;
}

ErrorCode legs_check(WalletLegs legs, Error *reterr)
{
    if (legs.count < WALLET_LEGS_MIN || legs.count > WALLET_LEGS_MAX)
        return fail(reterr, ERR_INVALID, "legs must be %d to %d, not %d", WALLET_LEGS_MIN, WALLET_LEGS_MAX, legs.count);
    for (int i = 0; i < legs.count; i++)
        TRY(leg_check(&legs.list[i], i, reterr));
    return legs_balance(legs, reterr);
}

bool legs_same(WalletLegs a, WalletLegs b)
{
    if (a.count != b.count)
        return false;
    for (int i = 0; i < a.count; i++)
        if (a.list[i].amount != b.list[i].amount || strcmp(a.list[i].owner, b.list[i].owner) != 0 ||
            strcmp(leg_asset(&a.list[i]), leg_asset(&b.list[i])) != 0)
            return false;
    return true;
}

void legs_write(Writer *writer, const char *name, WalletLegs legs)
{
    writer_array(writer, name);
    for (int i = 0; i < legs.count; i++) {
        writer_object(writer, NULL);
        writer_text(writer, "owner", legs.list[i].owner);
        writer_i64(writer, "amount", legs.list[i].amount);
        writer_text(writer, "asset", leg_asset(&legs.list[i]));
        writer_end(writer);
    }
    writer_end(writer);
}

size_t legs_bytes(WalletLegs legs)
{
    return (size_t)legs.count * LEG_BYTES_MAX;
}
