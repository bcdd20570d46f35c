/*
 * post_check.c - what can be known about an operation without the database; see post.h.
 */
#include <string.h>

#include "base/text.h"
#include "base/uuid.h"
#include "wallet/post.h"

#define ITEM_BYTES 256 /* of an operation without metadata and legs */

/* Every argument that the kind must have is given, and none that it does not take. */
static ErrorCode check_arguments(const WalletItem *item, Error *reterr)
{
    const struct {
        const char *argument;
        bool        given;
    } arguments[] = {
        {"owner",        item->owner != NULL    },
        {"other",        item->other != NULL    },
        {"amount",       item->amount != 0      },
        {"asset",        item->asset != NULL    },
        {"ref",          item->ref != NULL      },
        {"legs",         item->legs.count != 0  },
        {"expires_in_s", item->expires_in_s != 0},
        {"metadata",     item->metadata != NULL },
    };

    for (size_t i = 0; i < COUNT(arguments); i++)
        if (arguments[i].given && wallet_kind_needs(item->kind, arguments[i].argument) == ARGUMENT_NONE)
            return fail(reterr, ERR_INVALID, "%s must not be given: %s takes %s",
                        wallet_field_name(item->kind, arguments[i].argument), wallet_kind_names[item->kind],
                        wallet_kind_takes[item->kind]);
    if (item->floor != 0 && wallet_kind_needs(item->kind, "floor") == ARGUMENT_NONE)
        return fail(reterr, ERR_INVALID, "floor must not be given: %s takes %s", wallet_kind_names[item->kind],
                    wallet_kind_takes[item->kind]);
    return OK;
}

static bool is_required(const WalletItem *item, const char *argument)
{
    return wallet_kind_needs(item->kind, argument) == ARGUMENT_REQUIRED;
}

static ErrorCode check_names(const WalletItem *item, Error *reterr)
{
    const char *owner = wallet_field_name(item->kind, "owner");

    if (is_required(item, "owner"))
        TRY(wallet_check_owner(owner, item->owner, reterr));
    if (is_required(item, "other") || item->other)
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
    TRY(check_arguments(item, reterr));
    TRY(check_names(item, reterr));
    if (is_required(item, "ref"))
        TRY(check_key(wallet_field_name(item->kind, "ref"), item->ref, reterr));
    if (item->amount < (is_required(item, "amount") ? 1 : 0) || item->amount > WALLET_AMOUNT_MAX)
        return fail(reterr, ERR_INVALID, "amount must be an integer from 1 to %lld", (long long)WALLET_AMOUNT_MAX);
    if (item->expires_in_s < 0 || item->expires_in_s > WALLET_EXPIRES_IN_S_MAX)
        return fail(reterr, ERR_INVALID, "expires_in_s must be an integer from 1 to %d", WALLET_EXPIRES_IN_S_MAX);
    if (item->floor > 0 || item->floor < -WALLET_AMOUNT_MAX)
        return fail(reterr, ERR_INVALID, "floor must be an integer from %lld to 0", (long long)-WALLET_AMOUNT_MAX);
    if (is_required(item, "legs"))
        TRY(legs_check(item->legs, reterr));
    return wallet_check_metadata(item->metadata, reterr);
}

size_t wallet_weigh(const WalletItem *item)
{
    return ITEM_BYTES + (item->metadata ? strlen(item->metadata) : 0) + legs_bytes(item->legs);
}
