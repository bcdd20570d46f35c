/*
 * receipt.c - see timeline.h, for transactions.
 */

#include <inttypes.h>
#include <string.h>

#include "base/reader.h"
#include "cli/print.h"
#include "cli/timeline.h"
#include "wallet/kind.h"
#include "wallet/wallet.h"

typedef struct {
    const char *owner, *asset;
    int64_t     amount, balance, held, version;
} Leg;

static const Field leg_fields[] = {
    {"owner",   FIELD_TEXT, offsetof(Leg, owner)  },
    {"asset",   FIELD_TEXT, offsetof(Leg, asset)  },
    {"amount",  FIELD_I64,  offsetof(Leg, amount) },
    {"balance", FIELD_I64,  offsetof(Leg, balance)},
    {"held",    FIELD_I64,  offsetof(Leg, held)   },
    {"version", FIELD_I64,  offsetof(Leg, version)},
};
static const FieldTable leg_table = {"leg", leg_fields, COUNT(leg_fields), sizeof(Leg)};

typedef struct {
    const char *status, *expires_at;
    int64_t     amount, captured;
} Hold;

static const Field hold_fields[] = {
    {"status",     FIELD_TEXT, offsetof(Hold, status)    },
    {"expires_at", FIELD_TEXT, offsetof(Hold, expires_at)},
    {"amount",     FIELD_I64,  offsetof(Hold, amount)    },
    {"captured",   FIELD_I64,  offsetof(Hold, captured)  },
};
static const FieldTable hold_table = {"hold", hold_fields, COUNT(hold_fields), sizeof(Hold)};

typedef struct {
    const char *txn_id, *kind, *asset, *owner, *other, *ref, *metadata, *status, *refusal, *reason, *at, *hold;
    int64_t     amount, refunded;
    ReaderArray entries;
} Receipt;

static const Field receipt_fields[] = {
    {"txn_id", FIELD_TEXT, offsetof(Receipt, txn_id)},
    {"kind", FIELD_TEXT, offsetof(Receipt, kind)},
    {"asset", FIELD_TEXT, offsetof(Receipt, asset)},
    {"owner", FIELD_TEXT, offsetof(Receipt, owner)},
    {"other", FIELD_TEXT, offsetof(Receipt, other)},
    {"ref", FIELD_TEXT, offsetof(Receipt, ref)},
    {"metadata", FIELD_JSON, offsetof(Receipt, metadata)},
    {"status", FIELD_TEXT, offsetof(Receipt, status)},
    {"refusal", FIELD_TEXT, offsetof(Receipt, refusal)},
    {"reason", FIELD_TEXT, offsetof(Receipt, reason)},
    {"at", FIELD_TEXT, offsetof(Receipt, at)},
    {"hold", FIELD_JSON, offsetof(Receipt, hold)},
    {"amount", FIELD_I64, offsetof(Receipt, amount)},
    {"refunded", FIELD_I64, offsetof(Receipt, refunded)},
    {"entries", FIELD_ROWS, offsetof(Receipt, entries), .rows = &leg_table},
};
static const FieldTable receipt_table = {"transaction", receipt_fields, COUNT(receipt_fields), sizeof(Receipt)};

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

    TRY(reader_object(json, strlen(json), &receipt_table, arena, &receipt, reterr));
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
