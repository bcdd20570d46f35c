/*
 * kind.c - see kind.h.
 */
#include "wallet/kind.h"

#include <string.h>

#include "base/text.h"

#define X(id, name, subjects) name,
const char *const wallet_kind_names[WALLET_KIND_COUNT] = {WALLET_KINDS(X)};
#undef X

#define NO_KEY()
#define REQUIRED(argument, field) " " #argument
#define OPTIONAL(argument, field) " " #argument "?"
#define X(id, name, subjects)     (WALLET_##id##_TAKES(REQUIRED, OPTIONAL, NO_KEY)) + 1,
const char *const wallet_kind_takes[WALLET_KIND_COUNT] = {WALLET_KINDS(X)};
#undef X

typedef struct {
    const char *argument, *field;
} ArgumentName;
#define NAME(argument, field) {#argument, field},
/* clang-format off */
#define X(id, name, subjects) static const ArgumentName id##_names[] = {WALLET_##id##_TAKES(NAME, NAME, NO_KEY) {NULL, NULL}};
WALLET_KINDS(X)
#undef X
/* clang-format on */
#define X(id, name, subjects) id##_names,
static const ArgumentName *const kind_names[WALLET_KIND_COUNT] = {WALLET_KINDS(X)};
#undef X

/* No argument's name contains another one's. */
ArgumentNeed wallet_kind_needs(WalletKind kind, const char *argument)
{
    const char *found = strstr(wallet_kind_takes[kind], argument);

    if (!found)
        return ARGUMENT_NONE;
    return found[strlen(argument)] == '?' ? ARGUMENT_OPTIONAL : ARGUMENT_REQUIRED;
}

static const char *field_find(WalletKind kind, const char *argument)
{
    for (const ArgumentName *name = kind_names[kind]; name->argument; name++)
        if (strcmp(name->argument, argument) == 0)
            return name->field;
    return NULL;
}

const char *wallet_field_name(WalletKind kind, const char *argument)
{
    const char *field = field_find(kind, argument);

    for (WalletKind other = 0; !field && other < WALLET_KIND_COUNT; other++)
        field = field_find(other, argument);
    return field ? field : argument;
}

ErrorCode wallet_kind_find(const char *field, const char *name, WalletKind *ret_kind, Error *reterr)
{
    const char      *near;
    scoped_text Text names = {0};

    for (WalletKind kind = 0; kind < WALLET_KIND_COUNT; kind++)
        if (strcmp(wallet_kind_names[kind], name) == 0) {
            *ret_kind = kind;
            return OK;
        }
    near = text_nearest(name, wallet_kind_names, WALLET_KIND_COUNT);
    text_init(&names, NULL, TEXT_MAX_LINE);
    for (WalletKind kind = 0; kind < WALLET_KIND_COUNT; kind++)
        text_print(&names, "%s%s",
                   kind == 0                       ? ""
                   : kind + 1 == WALLET_KIND_COUNT ? " or "
                                                   : ", ",
                   wallet_kind_names[kind]);
    return fail(reterr, ERR_INVALID, "%s \"%.40s\" is unknown%s%s%s%s", field, name, near ? ", did you mean \"" : "",
                near ? near : "", near ? "\"? It must be " : "; it must be ", text_string(&names));
}
