/*
 * posting.c - see posting.h.
 */
#include "cli/posting.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "wallet/operation.h"

#define LINES_MAX 7

const char *posting_status(const WalletItem *item)
{
    if (item->code == OK)
        return item->replayed ? "already posted" : "posted";
    return item->replayed ? "already refused" : "refused";
}

void posting_write(Writer *writer, const WalletItem *item)
{
    writer_text(writer, "status", posting_status(item));
    writer_text(writer, "kind", wallet_kind_names[item->kind]);
    if (item->code != OK) {
        wallet_refusal_write(writer, item);
        return;
    }
    wallet_posted_write(writer, item);
    writer_i64(writer, "balance_now", item->balance_now);
}

/* ---- for people ---- */

/* Amounts under each other, as wide as the widest. */
typedef struct {
    int count;
    struct {
        const char *name;
        int64_t     amount;
    } lines[LINES_MAX];
} Amounts;

static void amount_add(Amounts *amounts, const char *name, int64_t amount)
{
    assert(amounts->count < LINES_MAX);
    amounts->lines[amounts->count].name     = name;
    amounts->lines[amounts->count++].amount = amount;
}

static void amounts_print(const Amounts *amounts, const char *asset)
{
    int widest = 0;

    for (int i = 0; i < amounts->count; i++) {
        int width = snprintf(NULL, 0, "%" PRId64, amounts->lines[i].amount);

        widest = width > widest ? width : widest;
    }
    for (int i = 0; i < amounts->count; i++)
        printf("%-10s %*" PRId64 " %s\n", amounts->lines[i].name, widest, amounts->lines[i].amount, asset);
}

void posting_print(const WalletItem *item)
{
    Amounts amounts = {0};
    char    at[WALL_TEXT_SIZE];

    wall_text((Wall){item->decided_at}, at);
    printf("%-10s %s, %.10s %.8sZ\n", wallet_kind_names[item->kind], posting_status(item), at, at + 11);
    printf("%-10s %s\n", "txn_id", item->txn_id);
    if (item->posted_owner)
        printf("%-10s %s\n", item->kind == WALLET_TRANSFER ? "from" : "owner", item->posted_owner);
    /* @system is not printed. */
    if (item->posted_other && strcmp(item->posted_other, WALLET_SYSTEM) != 0)
        printf("%-10s %s\n", item->balance < item->balance_before ? "to" : "from", item->posted_other);
    if (item->posted_amount)
        amount_add(&amounts, "amount", item->posted_amount);
    if (item->kind == WALLET_FLOOR)
        amount_add(&amounts, "floor", item->floor);
    amount_add(&amounts, "balance", item->balance);
    if (item->held)
        amount_add(&amounts, "held", item->held);
    amount_add(&amounts, "available", item->available);
    if (item->balance_now != item->balance)
        amount_add(&amounts, "now", item->balance_now);
    amounts_print(&amounts, item->posted_asset ? item->posted_asset : "");
}
