/*
 * kind.h - the kinds of operations, and which arguments each takes.
 *
 * Invariant: an argument without a meaning for a kind is refused by its name, never ignored. This is the only such table in C: operation.h
 * makes the fields of HTTP bodies, OpenAPI, JSON lines of the command line and steps of definitions from it, and wallet_check() checks
 * items of every interface against it. wallet.kind_takes() in sql/wallet/kind.sql is the same for SQL; the test
 * wallet_kinds_are_the_same_in_sql compares the two.
 */
#ifndef WALLET_KIND_H
#define WALLET_KIND_H

#include <stdbool.h>

#include "base/error.h"

/* Each argument: its name, its type in JSON (as in FieldType), its range (of a text in bytes, of rows their number), and what it is. */
/* clang-format off */
#define WALLET_ARGUMENT_owner(X, ...) \
    X(owner, TEXT, 1, WALLET_OWNER_MAX, "whose wallet; of a transfer, the payer", __VA_ARGS__)
#define WALLET_ARGUMENT_other(X, ...) \
    X(other, TEXT, 1, WALLET_OWNER_MAX, "the payee; of a capture @system when absent", __VA_ARGS__)
#define WALLET_ARGUMENT_ref(X, ...) \
    X(ref, UUID, 0, 0, "its txn_id", __VA_ARGS__)
#define WALLET_ARGUMENT_amount(X, ...) \
    X(amount, I64, 1, WALLET_AMOUNT_MAX, "in minor units; where it may be absent, all that is left", __VA_ARGS__)
#define WALLET_ARGUMENT_asset(X, ...) \
    X(asset, TEXT, 1, 32, \
      "1 to 32 capital letters, digits, _ . : - when absent CREDIT, or that of the hold or transaction", __VA_ARGS__)
#define WALLET_ARGUMENT_legs(X, ...) \
    X(legs, ROWS, WALLET_LEGS_MIN, WALLET_LEGS_MAX, "sum to zero in each asset", __VA_ARGS__)
#define WALLET_ARGUMENT_expires_in_s(X, ...) \
    X(expires_in_s, I64, 1, WALLET_EXPIRES_IN_S_MAX, \
      "the hold is released after this time; never when absent", __VA_ARGS__)
#define WALLET_ARGUMENT_floor(X, ...) \
    X(floor, I64, -WALLET_AMOUNT_MAX, 0, "how far below zero the balance may go", __VA_ARGS__)
#define WALLET_ARGUMENT_metadata(X, ...) \
    X(metadata, JSON, 0, 0, "an object of at most 65536 bytes, stored with the transaction", __VA_ARGS__)
#define WALLET_ARGUMENTS(X) \
    WALLET_ARGUMENT_owner(X, ) WALLET_ARGUMENT_other(X, ) WALLET_ARGUMENT_ref(X, ) WALLET_ARGUMENT_amount(X, ) \
    WALLET_ARGUMENT_asset(X, ) WALLET_ARGUMENT_legs(X, ) WALLET_ARGUMENT_expires_in_s(X, ) WALLET_ARGUMENT_floor(X, ) \
    WALLET_ARGUMENT_metadata(X, )

/* The arguments of each kind, in SQL's order. R: required, O: optional; then the argument's name in JSON. KEY() is where a JSON object has
 * txn_id: what comes before it is the subject, which HTTP has in the path. */
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
