/*
 * receipt.c - see timeline.h, for transactions.
 */

#include <inttypes.h>
#include <string.h>

#include "cli/print.h"
#include "cli/shown.h"
#include "cli/timeline.h"
#include "wallet/kind.h"
#include "wallet/wallet.h"

#define LEG_FIELDS(X, R, T)  \
    X(T, TEXT, owner, asset) \
    X(T, I64, amount, balance, held, version)
SHOWN(leg, Leg, LEG_FIELDS);

#define HOLD_FIELDS(X, R, T)       \
    X(T, TEXT, status, expires_at) \
    X(T, I64, amount, captured)
SHOWN(hold, Hold, HOLD_FIELDS);

#define TRANSACTION_FIELDS(X, R, T)                                                 \
    X(T, TEXT, txn_id, kind, asset, owner, other, ref, status, refusal, reason, at) \
    X(T, JSON, metadata, hold)                                                      \
    X(T, I64, amount, refunded)                                                     \
    R(T, entries, leg)
SHOWN(transaction, Receipt, TRANSACTION_FIELDS);

static void line(const char *name, const char *value)
{
    if (value)
        printf("%-10s %s\n", name, value);
}

/* "2026-11-15T08:51:01.180288Z" to the second. */
static const char *time_short(Arena *arena, const char *iso)
{
    return arena_print(arena, "%.10s %.8sZ", iso, iso + strlen("2026-11-15T"));
}

static ErrorCode hold_print(const Receipt *receipt, Arena *arena, Error *reterr)
{
    Hold hold;

    if (!receipt->hold)
        return OK;
    TRY(reader_object(receipt->hold, strlen(receipt->hold), &hold_table, arena, &hold, reterr));
    printf("%-10s %s, %" PRId64 " of %" PRId64 " captured", "hold", hold.status, hold.captured, hold.amount);
    if (hold.expires_at)
        printf(", until %s", time_short(arena, hold.expires_at));
    printf("\n");
    return OK;
}

static void legs_print(const Receipt *receipt, Arena *arena)
{
    static const char *const head[] = {"owner", ">amount", "asset", ">balance", ">held", ">version", NULL};
    const Leg               *legs   = receipt->entries.items;
    Table                    table;

    table_init(&table, arena, head);
    for (int i = 0; i < receipt->entries.count; i++) {
        table_cell(&table, legs[i].owner);
        table_cell_i64(&table, legs[i].amount);
        table_cell(&table, legs[i].asset);
        table_cell_i64(&table, legs[i].balance);
        table_cell_i64(&table, legs[i].held);
        table_cell_i64(&table, legs[i].version);
    }
    printf("\n");
    table_print(&table, "");
}

/* As the operation itself was answered: see posting_print(). */
static void parties_print(const Receipt *receipt)
{
    bool is_received = strcmp(receipt->kind, wallet_kind_names[WALLET_TOPUP]) == 0 ||
                       strcmp(receipt->kind, wallet_kind_names[WALLET_REFUND]) == 0;

    line(strcmp(receipt->kind, wallet_kind_names[WALLET_TRANSFER]) == 0 ? "from" : "owner", receipt->owner);
    if (receipt->other && strcmp(receipt->other, WALLET_SYSTEM) != 0)
        line(is_received ? "from" : "to", receipt->other);
}

ErrorCode receipt_print(const char *json, Arena *arena, Error *reterr)
{
    Receipt receipt;

    TRY(reader_object(json, strlen(json), &transaction_table, arena, &receipt, reterr));
    printf("%-10s %s, %s\n", receipt.kind, receipt.status, time_short(arena, receipt.at));
    line("reason", receipt.reason);
    line("txn_id", receipt.txn_id);
    line("ref", receipt.ref);
    parties_print(&receipt);
    if (receipt.amount)
        printf("%-10s %" PRId64 " %s\n", "amount", receipt.amount, receipt.asset);
    if (receipt.refunded)
        printf("%-10s %" PRId64 " %s\n", "refunded", receipt.refunded, receipt.asset);
    TRY(hold_print(&receipt, arena, reterr));
    line("metadata", receipt.metadata);
    if (receipt.entries.count)
        legs_print(&receipt, arena);
    return OK;
}
