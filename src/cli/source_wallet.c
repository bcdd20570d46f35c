/*
 * source_wallet.c - see source.h: wallets.
 */
#include <stdlib.h>
#include <string.h>

#include "base/moment.h"
#include "cli/remote.h"
#include "cli/source.h"
#include "wallet/answers.h"
#include "wallet/operation.h"

#define ENTRIES_PAGE 1000 /* the most that the route gives */

static Deadline deadline(void)
{
    return deadline_in_ms(APP_COMMAND_MS);
}

/* ---- operations ---- */

static const char *const paths[WALLET_KIND_COUNT] = {
    [WALLET_TOPUP]    = "/v1/wallets/{}/topup",
    [WALLET_SPEND]    = "/v1/wallets/{}/spend",
    [WALLET_FREEZE]   = "/v1/wallets/{}/freeze",
    [WALLET_UNFREEZE] = "/v1/wallets/{}/unfreeze",
    [WALLET_FLOOR]    = "/v1/wallets/{}/floor",
    [WALLET_TRANSFER] = "/v1/transfers",
    [WALLET_MULTI]    = "/v1/transactions",
    [WALLET_HOLD]     = "/v1/holds",
    [WALLET_CAPTURE]  = "/v1/holds/{}/capture",
    [WALLET_VOID]     = "/v1/holds/{}/void",
    [WALLET_REFUND]   = "/v1/transactions/{}/refund",
};

static int64_t header_i64(const RemoteReply *reply, const char *name)
{
    const char *text = client_header(&reply->response, name);

    return text ? strtoll(text, NULL, 10) : 0;
}

/* Members that an operation does not have are zero. */
static void posted_read(WalletItem *item, const RemoteReply *reply, Arena *arena)
{
    Value       body = reply->body;
    const char *from = value_text(value_field(body, "from"), arena), *at = value_text(value_field(body, "at"), arena);

    item->txn_id         = value_text(value_field(body, "txn_id"), arena);
    item->posted_owner   = from ? from : value_text(value_field(body, "owner"), arena);
    item->posted_other   = value_text(value_field(body, "to"), arena);
    item->posted_asset   = value_text(value_field(body, "asset"), arena);
    item->posted_amount  = value_i64(value_field(body, "amount"));
    item->balance_before = value_i64(value_field(body, "balance_before"));
    item->balance        = value_i64(value_field(body, "balance"));
    item->held           = value_i64(value_field(body, "held"));
    item->available      = value_i64(value_field(body, "available"));
    item->version        = value_i64(value_field(body, "version"));
    item->balance_now    = header_i64(reply, "Pawl-Balance");
    item->replayed       = reply->is_replayed;
    if (at && !moment_parse(at, MOMENT_RFC3339, &item->decided_at))
        item->decided_at = 0;
}

/* A refusal that was decided is a verdict: its instance is the transaction. */
static bool is_verdict(const RemoteReply *reply, Arena *arena)
{
    const char *instance = value_text(value_field(reply->body, "instance"), arena);

    return instance && strncmp(instance, "/v1/transactions/", strlen("/v1/transactions/")) == 0;
}

static ErrorCode remote_post(Call *call, WalletItem *item, Error *reterr)
{
    const char         *key   = call_flag(call, "--key");
    const WalletRequest given = {.txn_id       = key && !call_flag(call, "--txn-id") ? NULL : item->txn_id,
                                 .owner        = item->owner,
                                 .other        = item->other,
                                 .asset        = item->asset,
                                 .ref          = item->ref,
                                 .metadata     = item->metadata,
                                 .amount       = item->amount,
                                 .expires_in_s = item->expires_in_s,
                                 .floor        = item->floor};
    RemoteReply         reply = {0};

    item->code =
        remote_send(call,
                    &(RemoteRequest){CLIENT_POST,
                                     paths[item->kind],
                                     {item->ref ? item->ref : item->owner},
                                     .body = remote_body(call->arena, &wallet_operation_bodies[item->kind], &given),
                                     .key  = key},
                    call->arena, &reply, &item->error);
    item->replayed = reply.is_replayed;
    if (item->code == OK)
        posted_read(item, &reply, call->arena);
    else if (!is_verdict(&reply, call->arena))
        return error_pass(item->code, &item->error, reterr);
    return OK;
}

ErrorCode source_wallet_post(Call *call, WalletItem *item, Error *reterr)
{
    WalletItem *items[] = {item};

    if (call->is_remote)
        return remote_post(call, item, reterr);
    return wallet_post(call->pool, deadline(), WALLET_LOCK_WAIT, call->arena, items, 1, reterr);
}

/* ---- wallets ---- */

ErrorCode source_wallet_open(Call *call, WalletNew *wallet, Error *reterr)
{
    const WalletOpenRequest given = {wallet->txn_id,   wallet->owner, wallet->asset,
                                     wallet->metadata, wallet->floor, wallet->has_floor};
    RemoteReply             reply;
    const char             *at;

    if (!call->is_remote)
        return wallet_open(call->pool, deadline(), WALLET_LOCK_WAIT, call->arena, wallet, reterr);
    TRY(remote_send(call,
                    &(RemoteRequest){CLIENT_POST, "/v1/wallets",
                                     .body = remote_body(call->arena, &wallet_open_table, &given),
                                     .key  = call_flag(call, "--key")},
                    call->arena, &reply, reterr));
    at                  = value_text(value_field(reply.body, "created_at"), call->arena);
    wallet->floor       = value_i64(value_field(reply.body, "floor"));
    wallet->balance_now = value_i64(value_field(reply.body, "balance"));
    wallet->is_new      = !reply.is_replayed;
    if (at && !moment_parse(at, MOMENT_RFC3339, &wallet->created_at))
        wallet->created_at = 0;
    return OK;
}

ErrorCode source_wallet_list(Call *call, const char *owner, const char *asset, Wallet **ret_list, int *ret_count,
                             Error *reterr)
{
    const RemoteParameter query[] = {
        {"asset", asset},
        {NULL,    NULL }
    };

    if (call->is_remote && !asset)
        return remote_rows(call, &(RemoteRequest){CLIENT_GET, "/v1/owners/{}/wallets", {owner}}, &answer_wallet,
                           sizeof(Wallet), call->arena, (void **)ret_list, ret_count, NULL, reterr);
    if (!call->is_remote && !asset)
        return wallet_list(call->pool, deadline(), call->arena, owner, ret_list, ret_count, reterr);
    if (!call->is_remote) {
        TRY(wallet_get(call->pool, deadline(), call->arena, &owner, &asset, 1, ret_list, ret_count, reterr));
        return *ret_count ? OK : wallet_missing(owner, asset, reterr);
    }
    *ret_list  = arena_array(call->arena, Wallet, 1);
    *ret_count = 1;
    return remote_row(call, &(RemoteRequest){CLIENT_GET, "/v1/wallets/{}", {owner}, query}, &answer_wallet, call->arena,
                      *ret_list, reterr);
}

ErrorCode source_wallet_at(Call *call, const char *owner, const char *asset, const char *at, WalletPast *ret_past,
                           Error *reterr)
{
    const RemoteParameter query[] = {
        {"asset", asset},
        {"at",    at   },
        {NULL,    NULL }
    };

    if (!call->is_remote)
        return wallet_get_at(call->pool, deadline(), call->arena, owner, asset, at, ret_past, reterr);
    *ret_past = (WalletPast){.owner = owner, .asset = asset, .at = at};
    return remote_row(call, &(RemoteRequest){CLIENT_GET, "/v1/wallets/{}", {owner}, query}, &answer_wallet_past,
                      call->arena, ret_past, reterr);
}

/* ---- lists ---- */

static ErrorCode remote_lines(Call *call, const char *path, const AnswerTable *table, size_t row_size, Arena *arena,
                              const LedgerFilter *filter, void **ret_rows, int *ret_count, int64_t *ret_next,
                              Error *reterr)
{
    const RemoteParameter query[] = {
        {"owner", filter->owner},
        {"asset", filter->asset},
        {"kind", filter->kind},
        {"status", filter->status},
        {"since", filter->since},
        {"until", filter->until},
        {"cursor", remote_number(arena, filter->before)},
        {"limit", remote_number(arena, filter->limit)},
        {NULL, NULL}
    };

    return remote_rows(call, &(RemoteRequest){CLIENT_GET, path, .query = query}, table, row_size, arena, ret_rows,
                       ret_count, ret_next, reterr);
}

ErrorCode source_ledger_wallets(Call *call, Arena *arena, const LedgerFilter *filter, WalletLine **ret_list,
                                int *ret_count, int64_t *ret_next, Error *reterr)
{
    if (call->is_remote)
        return remote_lines(call, "/v1/wallets", &answer_wallet_line, sizeof(WalletLine), arena, filter,
                            (void **)ret_list, ret_count, ret_next, reterr);
    return ledger_wallets(call->pool, deadline(), arena, filter, ret_list, ret_count, ret_next, reterr);
}

ErrorCode source_ledger_holds(Call *call, Arena *arena, const LedgerFilter *filter, HoldLine **ret_list, int *ret_count,
                              int64_t *ret_next, Error *reterr)
{
    if (call->is_remote)
        return remote_lines(call, "/v1/holds", &answer_hold_line, sizeof(HoldLine), arena, filter, (void **)ret_list,
                            ret_count, ret_next, reterr);
    return ledger_holds(call->pool, deadline(), arena, filter, ret_list, ret_count, ret_next, reterr);
}

ErrorCode source_ledger_transactions(Call *call, Arena *arena, const LedgerFilter *filter, TransactionLine **ret_list,
                                     int *ret_count, int64_t *ret_next, Error *reterr)
{
    if (call->is_remote)
        return remote_lines(call, "/v1/transactions", &answer_transaction_line, sizeof(TransactionLine), arena, filter,
                            (void **)ret_list, ret_count, ret_next, reterr);
    return ledger_transactions(call->pool, deadline(), arena, filter, ret_list, ret_count, ret_next, reterr);
}

/* ---- entries ---- */

/* Page by page: the cursor of entries is a text. */
static ErrorCode remote_entries(Call *call, const EntryFilter *filter, Entry **ret_list, int *ret_count, Error *reterr)
{
    const char *cursor = NULL;
    Entry      *list   = arena_array(call->arena, Entry, filter->limit);
    int         count  = 0;

    do {
        const RemoteParameter query[] = {
            {"asset", filter->asset},
            {"kind", filter->kind},
            {"since", filter->since},
            {"until", filter->until},
            {"cursor", cursor},
            {"limit",
             remote_number(call->arena, filter->limit - count < ENTRIES_PAGE ? filter->limit - count : ENTRIES_PAGE)},
            {NULL, NULL}
        };
        RemoteReply reply;
        Entry      *page;
        int         found;

        TRY(remote_send(call, &(RemoteRequest){CLIENT_GET, "/v1/wallets/{}/entries", {filter->owner}, query},
                        call->arena, &reply, reterr));
        found = answer_rows_read(&answer_entry, value_field(reply.body, "items"), sizeof(Entry), call->arena,
                                 (void **)&page);
        if (found > filter->limit - count)
            found = filter->limit - count;
        memcpy(list + count, page, (size_t)found * sizeof *page);
        count += found;
        cursor = value_text(value_field(reply.body, "next_cursor"), call->arena);
    } while (cursor && count < filter->limit);
    *ret_list  = list;
    *ret_count = count;
    return OK;
}

ErrorCode source_entry_list(Call *call, const EntryFilter *filter, Entry **ret_list, int *ret_count, Error *reterr)
{
    if (call->is_remote)
        return remote_entries(call, filter, ret_list, ret_count, reterr);
    return entry_list(call->pool, deadline(), call->arena, filter, ret_list, ret_count, reterr);
}

ErrorCode source_transaction_show(Call *call, const char *id, const char **ret_json, Error *reterr)
{
    if (call->is_remote)
        return remote_json(call, &(RemoteRequest){CLIENT_GET, "/v1/transactions/{}", {id}}, call->arena, ret_json,
                           reterr);
    return transaction_show(call->pool, deadline(), call->arena, id, /* owners= */ NULL, ret_json, reterr);
}
