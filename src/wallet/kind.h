/*
 * kind.h - the kinds of operations, and which arguments each takes.
 *
 * Invariant: an argument without a meaning for a kind is refused by its name, never ignored. This table is what HTTP, the
 * command line and the library go by, through wallet_check(); wallet.kind_takes() in sql/wallet/kind.sql is the same for SQL. The
 * test wallet_kinds_are_the_same_in_sql compares the two.
 */
#ifndef WALLET_KIND_H
#define WALLET_KIND_H

#include <stdbool.h>

#include "base/error.h"

/* takes: in order; "?" marks arguments that may be left out. */
/*  kind              name        takes */
#define WALLET_KINDS(X)                                                   \
    X(WALLET_TOPUP, "topup", "owner amount asset? metadata?")             \
    X(WALLET_SPEND, "spend", "owner amount asset? metadata?")             \
    X(WALLET_TRANSFER, "transfer", "owner other amount asset? metadata?") \
    X(WALLET_MULTI, "multi", "legs metadata?")                            \
    X(WALLET_HOLD, "hold", "owner amount asset? expires_in_s? metadata?") \
    X(WALLET_CAPTURE, "capture", "ref other? amount? asset? metadata?")   \
    X(WALLET_VOID, "void", "ref asset? metadata?")                        \
    X(WALLET_REFUND, "refund", "ref amount? asset? metadata?")            \
    X(WALLET_FREEZE, "freeze", "owner asset? metadata?")                  \
    X(WALLET_UNFREEZE, "unfreeze", "owner asset? metadata?")              \
    X(WALLET_FLOOR, "floor", "owner floor asset? metadata?")
#define X(id, name, takes) id,
typedef enum { WALLET_KINDS(X) WALLET_KIND_COUNT } WalletKind;
#undef X
extern const char *const wallet_kind_names[WALLET_KIND_COUNT];
extern const char *const wallet_kind_takes[WALLET_KIND_COUNT];

typedef enum { ARGUMENT_NONE, ARGUMENT_OPTIONAL, ARGUMENT_REQUIRED } ArgumentNeed;
/* argument: a word of the table above. */
ArgumentNeed wallet_kind_needs(WalletKind kind, const char *argument);
/* What the interface calls an argument: the owner of a transfer is "from". */
const char *wallet_field_name(WalletKind kind, const char *argument);
/* Does the kind take an argument that the interface calls so? */
bool wallet_kind_has_field(WalletKind kind, const char *field);
/* ERR_INVALID names the field, and the nearest kind. */
must_check ErrorCode wallet_kind_find(const char *field, const char *name, WalletKind *ret_kind, Error *reterr);

#endif
