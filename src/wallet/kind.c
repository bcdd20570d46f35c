/*
 * kind.c - see kind.h.
 */
#include "wallet/kind.h"

#include <string.h>

#include "base/text.h"

#define X(id, name, takes) name,
const char *const wallet_kind_names[WALLET_KIND_COUNT] = {WALLET_KINDS(X)};
#undef X
#define X(id, name, takes) takes,
const char *const wallet_kind_takes[WALLET_KIND_COUNT] = {WALLET_KINDS(X)};
#undef X

/* No argument's name contains another one's. */
ArgumentNeed wallet_kind_needs(WalletKind kind, const char *argument)
{
    const char *found = strstr(wallet_kind_takes[kind], argument);

    if (!found)
        return ARGUMENT_NONE;
    return found[strlen(argument)] == '?' ? ARGUMENT_OPTIONAL : ARGUMENT_REQUIRED;
}

const char *wallet_field_name(WalletKind kind, const char *argument)
{
    if (strcmp(argument, "owner") == 0)
        return kind == WALLET_TRANSFER ? "from" : "owner";
    if (strcmp(argument, "other") == 0)
        return "to";
    if (strcmp(argument, "ref") == 0)
        return kind == WALLET_REFUND ? "transaction" : "hold";
    return argument;
}

bool wallet_kind_has_field(WalletKind kind, const char *field)
{
    static const char *const arguments[] = {"owner", "other", "amount",       "asset",   "ref",
                                            "legs",  "floor", "expires_in_s", "metadata"};

    for (size_t i = 0; i < COUNT(arguments); i++)
        if (strcmp(wallet_field_name(kind, arguments[i]), field) == 0)
            return wallet_kind_needs(kind, arguments[i]) != ARGUMENT_NONE;
    return false;
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
