/*
 * command_wallet_show.c - pawl wallet balance, entries and show.
 */
#include <string.h>

#include "base/text.h"
#include "base/uuid.h"
#include "base/writer.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/source.h"
#include "cli/timeline.h"
#include "wallet/entry.h"

static const char *asset_of(const Call *call)
{
    const char *given = call_flag(call, "--asset");

    return given ? given : WALLET_ASSET_DEFAULT;
}

static ErrorCode names_check(const Call *call, Error *reterr)
{
    bool is_good = wallet_check_owner_seen("OWNER", call->arguments[0], reterr) == OK &&
                   wallet_check_asset("--asset", call_flag(call, "--asset"), reterr) == OK;

    return is_good ? OK : ERR_USAGE;
}

/* ---- balance ---- */

static void floor_cell(Table *table, const char *owner, int64_t floor)
{
    if (wallet_has_floor(owner))
        table_cell_i64(table, floor);
    else
        table_cell(table, NULL);
}

static void wallets_table(Call *call, const Wallet *list, int count)
{
    static const char *const head[] = {"owner",  ">balance", "asset",  ">held", ">available",
                                       ">floor", ">version", "frozen", NULL};
    Table                    table;

    table_init(&table, call->arena, head);
    for (int i = 0; i < count; i++) {
        table_cell(&table, list[i].owner);
        table_cell_i64(&table, list[i].balance);
        table_cell(&table, list[i].asset);
        table_cell_i64(&table, list[i].held);
        table_cell_i64(&table, list[i].available);
        floor_cell(&table, list[i].owner, list[i].floor);
        table_cell_i64(&table, list[i].version);
        table_cell(&table, list[i].frozen ? "frozen" : NULL);
    }
    table_print(&table, "no wallets");
}

/* An array for --all, else the wallet itself. */
static void past_table(Call *call, const WalletPast *past, int64_t at)
{
    static const char *const head[] = {"owner",  ">balance", "asset", ">held", ">available",
                                       ">floor", ">version", "at",    NULL};
    Table                    table;

    table_init(&table, call->arena, head);
    table_cell(&table, past->owner);
    table_cell_i64(&table, past->balance);
    table_cell(&table, past->asset);
    table_cell_i64(&table, past->held);
    table_cell_i64(&table, past->available);
    floor_cell(&table, past->owner, past->floor);
    table_cell_i64(&table, past->version);
    table_cell_time(&table, at);
    table_print(&table, "");
}

static ErrorCode balance_past(Call *call, int64_t at, Error *reterr)
{
    WalletPast past;

    TRY(source_wallet_at(call, call->arguments[0], asset_of(call), moment_text(call->arena, at), &past, reterr));
    if (call->json)
        object_print(wallet_past_write, call->arena, &past);
    else
        past_table(call, &past, at);
    return OK;
}

static ErrorCode balance_now(Call *call, Error *reterr)
{
    bool    is_list = call_flag(call, "--all");
    Wallet *list;
    int     count;

    TRY(source_wallet_list(call, call->arguments[0], is_list ? NULL : asset_of(call), &list, &count, reterr));
    if (call->json && is_list)
        list_print(&(ListShape){.row_size = sizeof *list, .write = wallet_write}, call->arena, true, list, count);
    else if (call->json)
        object_print(wallet_write, call->arena, list);
    else
        wallets_table(call, list, count);
    return OK;
}

ErrorCode command_wallet_balance(Call *call, Error *reterr)
{
    int64_t at;

    TRY(names_check(call, reterr));
    TRY(call_moment(call, "--at", &at, reterr));
    if (call_flag(call, "--all") && (at || call_flag(call, "--asset")))
        return fail(reterr, ERR_USAGE,
                    "--all shows the present state of every asset and cannot be combined with --asset or --at");
    TRY(call_open(call, APP_SCHEMA, reterr));
    return at ? balance_past(call, at, reterr) : balance_now(call, reterr);
}

/* ---- entries ---- */

static ErrorCode filter_read(const Call *call, EntryFilter *ret_filter, Error *reterr)
{
    EntryFilter filter = {.owner = call->arguments[0], .asset = asset_of(call), .kind = call_flag(call, "--kind")};
    int64_t     since, until;

    TRY(names_check(call, reterr));
    TRY(call_limit(call, ENTRIES_MAX, &filter.limit, reterr));
    TRY(call_moment(call, "--since", &since, reterr));
    TRY(call_moment(call, "--until", &until, reterr));
    TRY(entry_check_kind("--kind", filter.kind, reterr) == OK ? OK : ERR_USAGE);
    filter.since = moment_text(call->arena, since);
    filter.until = moment_text(call->arena, until);
    *ret_filter  = filter;
    return OK;
}

static void entries_table(Call *call, const Entry *list, int count)
{
    static const char *const head[] = {"at", "kind", ">amount", "asset", ">balance", ">held", "other", "txn_id", NULL};
    Table                    table;

    table_init(&table, call->arena, head);
    table.is_cut = true;
    for (int i = 0; i < count; i++) {
        table_cell_time(&table, list[i].at);
        table_cell(&table, list[i].kind);
        table_cell_i64(&table, list[i].amount);
        table_cell(&table, asset_of(call));
        table_cell_i64(&table, list[i].balance);
        table_cell_i64(&table, list[i].held);
        table_cell(&table, list[i].other);
        table_cell(&table, list[i].txn_id);
    }
    table_print(&table, "no entries");
}

ErrorCode command_wallet_entries(Call *call, Error *reterr)
{
    EntryFilter filter;
    Entry      *list;
    int         count;

    TRY(filter_read(call, &filter, reterr));
    TRY(call_open(call, APP_SCHEMA, reterr));
    TRY(source_entry_list(call, &filter, &list, &count, reterr));
    if (call->json)
        list_print(&(ListShape){.row_size = sizeof *list, .write = entry_write}, call->arena, true, list, count);
    else
        entries_table(call, list, count);
    return OK;
}

/* ---- one transaction ---- */

ErrorCode command_wallet_show(Call *call, Error *reterr)
{
    char        id[UUID_TEXT_SIZE];
    const char *json;

    if (!uuid_parse(call->arguments[0], id))
        return fail(reterr, ERR_USAGE, "ID must be a txn_id, a UUID, got \"%.60s\"; pawl wallet balance shows a wallet",
                    call->arguments[0]);
    TRY(call_open(call, APP_SCHEMA, reterr));
    TRY(source_transaction_show(call, id, &json, reterr));
    if (!call->json)
        return receipt_print(json, call->arena, reterr);
    printf("%s\n", json);
    return OK;
}
