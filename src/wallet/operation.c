/*
 * operation.c - see operation.h.
 */
#include "wallet/operation.h"

#include <stdio.h>

#include "base/problem.h"
#include "wallet/entry.h"

#define TYPE_SIZE 128

/* ---- fields ---- */

/* clang-format off */
#define AT(field) offsetof(WalletRequest, field)
#define ROW_owner(field, need) \
    {field, FIELD_TEXT, AT(owner), .required = need, .min = 1, .length_max = WALLET_OWNER_MAX, .help = "whose wallet; of a transfer, the payer"},
#define ROW_other(field, need) \
    {field, FIELD_TEXT, AT(other), .required = need, .min = 1, .length_max = WALLET_OWNER_MAX, .help = "the payee; of a capture @system when absent"},
#define ROW_ref(field, need) \
    {field, FIELD_UUID, AT(ref), .required = need, .help = "its txn_id"},
#define ROW_amount(field, need) \
    {field, FIELD_I64, AT(amount), .required = need, .min = 1, .max = WALLET_AMOUNT_MAX, .help = "in minor units; where it may be absent, all that is left"},
#define ROW_asset(field, need) \
    {field, FIELD_TEXT, AT(asset), .required = need, .min = 1, .length_max = 32, \
     .help = "1 to 32 capital letters, digits, _ . : - when absent CREDIT, or that of the hold or transaction"},
#define ROW_legs(field, need) \
    {field, FIELD_ROWS, AT(legs), .required = need, .min = WALLET_LEGS_MIN, .max = WALLET_LEGS_MAX, .rows = &wallet_leg_table, .help = "sum to zero in each asset"},
#define ROW_expires_in_s(field, need) \
    {field, FIELD_I64, AT(expires_in_s), .required = need, .min = 1, .max = WALLET_EXPIRES_IN_S_MAX, .help = "the hold is released after this time; never when absent"},
#define ROW_floor(field, need) \
    {field, FIELD_I64, AT(floor), .required = need, .min = -WALLET_AMOUNT_MAX, .max = 0, .is_set = AT(has_floor), .help = "how far below zero the balance may go"},
#define ROW_metadata(field, need) \
    {field, FIELD_JSON, AT(metadata), .required = need, .help = "an object of at most 65536 bytes, stored with the transaction"},
#define ROW_KEY() \
    {"txn_id", FIELD_UUID, AT(txn_id), .help = "idempotency key, chosen by the client: posting twice with the same key posts once. Required, over HTTP here or in the header Idempotency-Key"},
#define REQUIRED(argument, field) ROW_##argument(field, true)
#define OPTIONAL(argument, field) ROW_##argument(field, false)
/* clang-format on */

#define X(id, name, subjects) static const Field id##_fields[] = {WALLET_##id##_TAKES(REQUIRED, OPTIONAL, ROW_KEY)};
WALLET_KINDS(X)
#undef X

#define X(id, name, subjects) {name, id##_fields, COUNT(id##_fields), sizeof(WalletRequest)},
const FieldTable wallet_operation_tables[WALLET_KIND_COUNT] = {WALLET_KINDS(X)};
#undef X

#define X(id, name, subjects) {name, id##_fields + subjects, COUNT(id##_fields) - subjects, sizeof(WalletRequest)},
const FieldTable wallet_operation_bodies[WALLET_KIND_COUNT] = {WALLET_KINDS(X)};
#undef X

WalletItem wallet_request_item(WalletKind kind, const WalletRequest *request)
{
    return (WalletItem){
        .kind         = kind,
        .txn_id       = request->txn_id,
        .owner        = request->owner,
        .other        = request->other,
        .asset        = request->asset,
        .ref          = request->ref,
        .amount       = request->amount,
        .expires_in_s = request->expires_in_s,
        .floor        = request->floor,
        .legs         = {request->legs.items, request->legs.count},
        .metadata     = request->metadata
    };
}

/* ---- verdicts ---- */

static void write_parties(Writer *writer, const WalletItem *item)
{
    if (item->kind == WALLET_TRANSFER) {
        writer_text(writer, "from", item->posted_owner);
        writer_text(writer, "to", item->posted_other);
        return;
    }
    if (item->ref)
        writer_text(writer, item->kind == WALLET_REFUND ? "refund_of" : wallet_field_name(item->kind, "ref"),
                    item->ref);
    writer_text(writer, "owner", item->posted_owner);
    if (item->kind == WALLET_CAPTURE)
        writer_text(writer, "to", item->posted_other);
}

static void write_rest(Writer *writer, const WalletItem *item)
{
    switch (item->kind) {
    case WALLET_HOLD:
        wallet_time_write(writer, "expires_at",
                          item->expires_in_s ? item->decided_at + item->expires_in_s * 1000000 : 0);
        break;
    case WALLET_FREEZE:
    case WALLET_UNFREEZE:
        writer_bool(writer, "frozen", item->kind == WALLET_FREEZE);
        break;
    case WALLET_FLOOR:
        writer_i64(writer, "floor", item->floor);
        break;
    case WALLET_TOPUP:
    case WALLET_SPEND:
    case WALLET_TRANSFER:
    case WALLET_MULTI:
    case WALLET_CAPTURE:
    case WALLET_VOID:
    case WALLET_REFUND:
    case WALLET_KIND_COUNT:
        break;
    }
}

void wallet_posted_write(Writer *writer, const WalletItem *item)
{
    writer_text(writer, "txn_id", item->txn_id);
    write_parties(writer, item);
    writer_text(writer, "asset", item->posted_asset);
    if (item->posted_amount)
        writer_i64(writer, "amount", item->posted_amount);
    writer_i64(writer, "balance_before", item->balance_before);
    writer_i64(writer, "balance", item->balance);
    writer_i64(writer, "held", item->held);
    writer_i64(writer, "available", item->available);
    writer_i64(writer, "version", item->version);
    write_rest(writer, item);
    wallet_time_write(writer, "at", item->decided_at);
}

void wallet_refusal_write(Writer *writer, const WalletItem *item)
{
    char type[TYPE_SIZE];

    snprintf(type, sizeof type, "/problems/%s", error_type(&item->error));
    writer_text(writer, "txn_id", item->txn_id);
    writer_text(writer, "type", type);
    writer_text(writer, "detail", problem_detail(&item->error));
}
