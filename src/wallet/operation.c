/*
 * operation.c - see operation.h.
 */
#include "wallet/operation.h"

#include <stdio.h>

#include "base/problem.h"
#include "wallet/entry.h"

#define TYPE_SIZE 128

/* ---- fields ---- */

/* Rows in columns; and clang-format would take the "##" of a table in a macro apart. */
/* clang-format off */
#define AT(field)              offsetof(WalletRequest, field)
#define TYPE_TEXT(least, most) FIELD_TEXT, .min = least, .length_max = most
#define TYPE_UUID(least, most) FIELD_UUID
#define TYPE_I64(least, most)  FIELD_I64, .min = least, .max = most
#define TYPE_ROWS(least, most) FIELD_ROWS, .min = least, .max = most, .rows = &wallet_leg_table
#define TYPE_JSON(least, most) FIELD_JSON
#define NAMED_owner        NAMES_OWNER
#define NAMED_other        NAMES_OWNER
#define NAMED_ref          NAMES_NOTHING
#define NAMED_amount       NAMES_NOTHING
#define NAMED_asset        NAMES_NOTHING
#define NAMED_legs         NAMES_NOTHING /* its rows do */
#define NAMED_expires_in_s NAMES_NOTHING
#define NAMED_floor        NAMES_NOTHING
#define NAMED_metadata     NAMES_NOTHING
#define ROW(argument, json, least, most, text, field, need) \
    {.name = field, .offset = AT(argument), .required = need, .help = text, .type = TYPE_##json(least, most), .names = NAMED_##argument},
#define ROW_KEY() \
    {"txn_id", FIELD_UUID, AT(txn_id), .help = "idempotency key, chosen by the client: posting twice with the same key posts once. Required, over HTTP here or in the header Idempotency-Key"},
#define REQUIRED(argument, field) WALLET_ARGUMENT_##argument(ROW, field, true)
#define OPTIONAL(argument, field) WALLET_ARGUMENT_##argument(ROW, field, false)

#define X(id, name, subjects) \
    static const Field id##_fields[] = {{"kind", FIELD_TEXT, AT(kind)}, WALLET_##id##_TAKES(REQUIRED, OPTIONAL, ROW_KEY)};
WALLET_KINDS(X)
#undef X
/* clang-format on */

#define TABLE(id, name, from) {name, id##_fields + (from), COUNT(id##_fields) - (from), sizeof(WalletRequest)},
#define X(id, name, subjects) TABLE(id, name, 0)
const FieldTable wallet_operation_lines[WALLET_KIND_COUNT] = {WALLET_KINDS(X)};
#undef X

#define X(id, name, subjects) TABLE(id, name, 1)
const FieldTable wallet_operation_tables[WALLET_KIND_COUNT] = {WALLET_KINDS(X)};
#undef X

#define X(id, name, subjects) TABLE(id, name, 1 + subjects)
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
        writer_time(writer, "expires_at", item->expires_in_s ? item->decided_at + item->expires_in_s * 1000000 : 0);
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
    writer_time(writer, "at", item->decided_at);
}

void wallet_refusal_write(Writer *writer, const WalletItem *item)
{
    char type[TYPE_SIZE];

    snprintf(type, sizeof type, "/problems/%s", error_type(&item->error));
    writer_text(writer, "txn_id", item->txn_id);
    writer_text(writer, "type", type);
    writer_text(writer, "detail", problem_detail(&item->error));
}

/* ---- many transfers as JSON ---- */

static const Field batch_fields[] = {
    {"atomic", FIELD_BOOL, offsetof(WalletBatchRequest, atomic), .help = "all or none; false when absent"},
    {"items", FIELD_ROWS, offsetof(WalletBatchRequest, items), .required = true, .min = 1, .max = WALLET_BATCH_MAX,
     .rows = &wallet_operation_tables[WALLET_TRANSFER]},
};
const FieldTable wallet_batch_table = {"transfers", batch_fields, COUNT(batch_fields), sizeof(WalletBatchRequest)};

static void verdict_write(Writer *writer, const WalletItem *item)
{
    writer_object(writer, NULL);
    writer_bool(writer, "posted", item->code == OK);
    if (item->code == OK) {
        wallet_posted_write(writer, item);
    } else {
        writer_i64(writer, "status", error_http(item->code));
        wallet_refusal_write(writer, item);
    }
    writer_end(writer);
}

void wallet_verdicts_write(Writer *writer, WalletItem *const *items, int count)
{
    int64_t posted = 0;

    for (int i = 0; i < count; i++)
        posted += items[i]->code == OK;
    writer_i64(writer, "posted", posted);
    writer_i64(writer, "refused", count - posted);
    writer_array(writer, "items");
    for (int i = 0; i < count; i++)
        verdict_write(writer, items[i]);
    writer_end(writer);
}
