/*
 * post_check.c - what can be known about an operation without the database; see post.h.
 */
#include <string.h>

#include "base/text.h"
#include "base/uuid.h"
#include "wallet/post.h"

#define ITEM_BYTES 256 /* of an operation without metadata and legs */

static const struct {
    const char *name;
    FieldType   type;
    int64_t     least, most; /* of integers */
    size_t      offset;
} arguments[] = {
#define ROW(argument, type, least, most, ...) {#argument, FIELD_##type, least, most, offsetof(WalletItem, argument)},
    WALLET_ARGUMENTS(ROW)};

static int64_t argument_i64(const WalletItem *item, size_t index)
{
    return *(const int64_t *)((const char *)item + arguments[index].offset);
}

static bool argument_is_given(const WalletItem *item, size_t index)
{
    if (arguments[index].type == FIELD_I64)
        return argument_i64(item, index) != 0;
    if (arguments[index].type == FIELD_ROWS)
        return item->legs.count != 0;
    return *(const char *const *)((const char *)item + arguments[index].offset) != NULL;
}

/* None is given that the kind does not take. */
static ErrorCode check_arguments(const WalletItem *item, Error *reterr)
{
    for (size_t i = 0; i < COUNT(arguments); i++)
        if (argument_is_given(item, i) && wallet_kind_needs(item->kind, arguments[i].name) == ARGUMENT_NONE)
            return fail(reterr, ERR_INVALID, "%s must not be given: %s takes %s",
                        wallet_field_name(item->kind, arguments[i].name), wallet_kind_names[item->kind],
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

/* 0 is "not given". */
static ErrorCode check_integer(const WalletItem *item, size_t index, Error *reterr)
{
    const char *name   = arguments[index].name;
    int64_t     number = argument_i64(item, index);

    if ((number == 0 && !is_required(item, name)) ||
        (number >= arguments[index].least && number <= arguments[index].most))
        return OK;
    return fail(reterr, ERR_INVALID, "%s must be an integer from %lld to %lld", name, (long long)arguments[index].least,
                (long long)arguments[index].most);
}

ErrorCode wallet_check(const WalletItem *item, Error *reterr)
{
    TRY(check_key("txn_id", item->txn_id, reterr));
    TRY(check_arguments(item, reterr));
    TRY(check_names(item, reterr));
    if (is_required(item, "ref"))
        TRY(check_key(wallet_field_name(item->kind, "ref"), item->ref, reterr));
    for (size_t i = 0; i < COUNT(arguments); i++)
        if (arguments[i].type == FIELD_I64)
            TRY(check_integer(item, i, reterr));
    if (is_required(item, "legs"))
        TRY(legs_check(item->legs, reterr));
    return wallet_check_metadata(item->metadata, reterr);
}

size_t wallet_weigh(const WalletItem *item)
{
    return ITEM_BYTES + (item->metadata ? strlen(item->metadata) : 0) + legs_bytes(item->legs);
}
