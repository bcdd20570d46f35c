/*
 * post_check.c - what can be known about an operation without the database; see post.h.
 */
#include <string.h>

#include "base/text.h"
#include "base/uuid.h"
#include "wallet/post.h"

#define ITEM_BYTES 256 /* of an operation without metadata and legs */

#define X(id, name) name,
const char *const wallet_kind_names[WALLET_KIND_COUNT] = {WALLET_KINDS(X)};
#undef X

/* What each kind must have. */
static const struct {
    bool owner, other, amount, ref, legs;
} needs[WALLET_KIND_COUNT] = {
    [WALLET_TOPUP]    = {.owner = true, .amount = true},
    [WALLET_SPEND]    = {.owner = true, .amount = true},
    [WALLET_TRANSFER] = {.owner = true, .other = true, .amount = true},
    [WALLET_MULTI]    = {.legs = true},
    [WALLET_HOLD]     = {.owner = true, .amount = true},
    [WALLET_CAPTURE]  = {.ref = true},
    [WALLET_VOID]     = {.ref = true},
    [WALLET_REFUND]   = {.ref = true},
    [WALLET_FREEZE]   = {.owner = true},
    [WALLET_UNFREEZE] = {.owner = true},
    [WALLET_FLOOR]    = {.owner = true},
};

const char *wallet_field_name(WalletKind kind, const char *column)
{
    if (strcmp(column, "owner") == 0)
        return kind == WALLET_TRANSFER ? "from" : "owner";
    if (strcmp(column, "other") == 0)
        return "to";
    if (strcmp(column, "ref") == 0)
        return kind == WALLET_REFUND ? "transaction" : "hold";
    return column;
}

static ErrorCode check_names(const WalletItem *item, Error *reterr)
{
    const char *owner = wallet_field_name(item->kind, "owner");

    if (needs[item->kind].owner)
        TRY(wallet_check_owner(owner, item->owner, reterr));
    if (needs[item->kind].other || item->other)
        TRY(wallet_check_owner("to", item->other, reterr));
    if (item->owner && item->other && strcmp(item->owner, item->other) == 0)
        return fail(reterr, ERR_INVALID, "%s and to must not be the same", owner);
    return wallet_check_asset("asset", item->asset, reterr);
}

static ErrorCode check_key(const char *field, const char *text, Error *reterr)
{
    char id[UUID_TEXT_SIZE];

    if (!text || !uuid_parse(text, id))
        return fail(reterr, ERR_INVALID, "%s must be a UUID", field);
    return OK;
}

ErrorCode wallet_check(const WalletItem *item, Error *reterr)
{
    TRY(check_key("txn_id", item->txn_id, reterr));
    TRY(check_names(item, reterr));
    if (needs[item->kind].ref)
        TRY(check_key(wallet_field_name(item->kind, "ref"), item->ref, reterr));
    if (item->amount < (needs[item->kind].amount ? 1 : 0) || item->amount > WALLET_AMOUNT_MAX)
        return fail(reterr, ERR_INVALID, "amount must be an integer from 1 to %lld", (long long)WALLET_AMOUNT_MAX);
    if (item->expires_in_s < 0 || item->expires_in_s > WALLET_EXPIRES_IN_S_MAX)
        return fail(reterr, ERR_INVALID, "expires_in_s must be an integer from 1 to %d", WALLET_EXPIRES_IN_S_MAX);
    if (item->floor > 0 || item->floor < -WALLET_AMOUNT_MAX)
        return fail(reterr, ERR_INVALID, "floor must be an integer from %lld to 0", (long long)-WALLET_AMOUNT_MAX);
    if (needs[item->kind].legs)
        TRY(legs_check(item->legs, reterr));
    return wallet_check_metadata(item->metadata, reterr);
}

size_t wallet_weigh(const WalletItem *item)
{
    return ITEM_BYTES + (item->metadata ? strlen(item->metadata) : 0) + legs_bytes(item->legs);
}

ErrorCode wallet_kind_find(const char *field, const char *name, WalletKind *ret_kind, Error *reterr)
{
    const char *near;

    for (WalletKind kind = 0; kind < WALLET_KIND_COUNT; kind++)
        if (strcmp(wallet_kind_names[kind], name) == 0) {
            *ret_kind = kind;
            return OK;
        }
    near = text_nearest(name, wallet_kind_names, WALLET_KIND_COUNT);
    return fail(reterr, ERR_INVALID, "%s \"%.40s\" is unknown%s%s: topup, spend, transfer, multi, hold, ...", field,
                name, near ? ", did you mean " : "", near ? near : "");
}
