/*
 * kind.h - the kinds of operations, and which arguments each takes.
 *
 * Invariant: an argument without a meaning for a kind is refused by its name, never ignored. This is the only such table in C: HTTP bodies,
 * OpenAPI and JSON lines of the command line are made from it in operation.h, and wallet_check() checks items of every interface
 * against it. wallet.kind_takes() in sql/wallet/kind.sql is the same for SQL; the test wallet_kinds_are_the_same_in_sql compares the two.
 */
#ifndef WALLET_KIND_H
#define WALLET_KIND_H

#include <stdbool.h>

#include "base/error.h"

/* The arguments of each kind, in SQL's order. R: required, O: optional; then the argument's name in JSON. KEY() is where a JSON object has
 * txn_id: what comes before it is the subject, which HTTP has in the path. */
/* clang-format off */
#define WALLET_TOPUP_TAKES(R, O, KEY) \
    R(owner, "owner") KEY() R(amount, "amount") O(asset, "asset") O(metadata, "metadata")
#define WALLET_SPEND_TAKES(R, O, KEY) \
    R(owner, "owner") KEY() R(amount, "amount") O(asset, "asset") O(metadata, "metadata")
#define WALLET_TRANSFER_TAKES(R, O, KEY) \
    KEY() R(owner, "from") R(other, "to") R(amount, "amount") O(asset, "asset") O(metadata, "metadata")
#define WALLET_MULTI_TAKES(R, O, KEY) \
    KEY() R(legs, "legs") O(metadata, "metadata")
#define WALLET_HOLD_TAKES(R, O, KEY) \
    KEY() R(owner, "owner") R(amount, "amount") O(asset, "asset") O(expires_in_s, "expires_in_s") O(metadata, "metadata")
#define WALLET_CAPTURE_TAKES(R, O, KEY) \
    R(ref, "hold") KEY() O(other, "to") O(amount, "amount") O(asset, "asset") O(metadata, "metadata")
#define WALLET_VOID_TAKES(R, O, KEY) \
    R(ref, "hold") KEY() O(asset, "asset") O(metadata, "metadata")
#define WALLET_REFUND_TAKES(R, O, KEY) \
    R(ref, "transaction") KEY() O(amount, "amount") O(asset, "asset") O(metadata, "metadata")
#define WALLET_FREEZE_TAKES(R, O, KEY) \
    R(owner, "owner") KEY() O(asset, "asset") O(metadata, "metadata")
#define WALLET_UNFREEZE_TAKES(R, O, KEY) \
    R(owner, "owner") KEY() O(asset, "asset") O(metadata, "metadata")
#define WALLET_FLOOR_TAKES(R, O, KEY) \
    R(owner, "owner") KEY() R(floor, "floor") O(asset, "asset") O(metadata, "metadata")

/* The kind, its name, and how many of its arguments come before KEY(). */
#define WALLET_KINDS(X) \
    X(TOPUP, "topup", 1) \
    X(SPEND, "spend", 1) \
    X(TRANSFER, "transfer", 0) \
    X(MULTI, "multi", 0) \
    X(HOLD, "hold", 0) \
    X(CAPTURE, "capture", 1) \
    X(VOID, "void", 1) \
    X(REFUND, "refund", 1) \
    X(FREEZE, "freeze", 1) \
    X(UNFREEZE, "unfreeze", 1) \
    X(FLOOR, "floor", 1)
/* clang-format on */
#define X(id, name, subjects) WALLET_##id,
typedef enum { WALLET_KINDS(X) WALLET_KIND_COUNT } WalletKind;
#undef X
extern const char *const wallet_kind_names[WALLET_KIND_COUNT];
extern const char *const wallet_kind_takes[WALLET_KIND_COUNT]; /* "owner amount asset? metadata?", as in SQL */

typedef enum { ARGUMENT_NONE, ARGUMENT_OPTIONAL, ARGUMENT_REQUIRED } ArgumentNeed;
ArgumentNeed wallet_kind_needs(WalletKind kind, const char *argument);
/* The argument's name in JSON: the owner of a transfer is "from". Of one that the kind does not take, its name in another kind. */
const char *wallet_field_name(WalletKind kind, const char *argument);
/* ERR_INVALID names the field, and the nearest kind. */
must_check ErrorCode wallet_kind_find(const char *field, const char *name, WalletKind *ret_kind, Error *reterr);

#endif
