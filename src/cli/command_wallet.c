/*
 * command_wallet.c - pawl wallet: open wallets and post operations.
 *
 * Every operation has its key. One that the user gives with --txn-id or --key is posted once, however often it is sent; without, one
 * is made and printed, and when the outcome is unclear the message names it.
 */
#include <string.h>

#include "base/uuid.h"
#include "base/writer.h"
#include "cli/command.h"
#include "cli/posting.h"
#include "cli/print.h"
#include "cli/source.h"
#include "wallet/post.h"
#include "wallet/wallet.h"

#define MS_PER_S 1000

/* ---- arguments ---- */

/* An operation that is named by the id of a hold or a transaction. */
static ErrorCode ref_read(Call *call, WalletItem *item, Error *reterr)
{
    char *ref = arena_array(call->arena, char, UUID_TEXT_SIZE);

    if (!uuid_parse(call->arguments[0], ref))
        return fail(reterr, ERR_USAGE, "ID must be a txn_id, a UUID, got \"%.60s\"", call->arguments[0]);
    item->ref = ref;
    return OK;
}

/* --txn-id, or a new key. */
static ErrorCode key_read(Call *call, const char **ret_key, Error *reterr)
{
    char *key = arena_array(call->arena, char, UUID_TEXT_SIZE);

    TRY(call_uuid(call, "--txn-id", ret_key, reterr));
    if (*ret_key)
        return OK;
    uuid_new(key);
    *ret_key = key;
    return OK;
}

static ErrorCode metadata_read(const Call *call, const char **ret_metadata, Error *reterr)
{
    TRY(call_json(call, "--metadata", ret_metadata, reterr));
    return wallet_check_metadata(*ret_metadata, reterr) == OK ? OK : ERR_USAGE;
}

/* What every operation may have; then all that can be known without the database. */
static ErrorCode item_complete(Call *call, WalletItem *item, Error *reterr)
{
    item->asset = call_flag(call, "--asset");
    TRY(key_read(call, &item->txn_id, reterr));
    TRY(metadata_read(call, &item->metadata, reterr));
    return wallet_check(item, reterr) == OK ? OK : ERR_USAGE;
}

/* ---- posting ---- */

/* It may have been posted, and only a repeat under its key shows whether it was, so the message has the key. */
static ErrorCode key_print(const Call *call, const WalletItem *item, ErrorCode code, Error *reterr)
{
    if (!call_flag(call, "--txn-id") && !call_flag(call, "--key") && error_verdict(code) != VERDICT_FINAL)
        error_prefix(reterr, "repeat with --txn-id %s", item->txn_id);
    return code;
}

static ErrorCode item_print(Call *call, const WalletItem *item, Error *reterr)
{
    if (item->code != OK) {
        *reterr = item->error;
        if (item->replayed)
            error_prefix(reterr, "%s", posting_status(item));
        return item->code;
    }
    if (!call->json) {
        posting_print(item);
        return OK;
    }
    Writer *writer = print_writer(call->arena);

    writer_object(writer, NULL);
    posting_write(writer, item);
    writer_end(writer);
    print_json(writer);
    return OK;
}

static ErrorCode post(Call *call, WalletItem *item, Error *reterr)
{
    ErrorCode code;

    TRY(item_complete(call, item, reterr));
    TRY(call_open(call, APP_SCHEMA, reterr));
    TRY(key_take(call, "--txn-id", &item->txn_id, reterr));
    code = source_wallet_post(call, item, reterr);
    return code == OK ? item_print(call, item, reterr) : key_print(call, item, code, reterr);
}

static ErrorCode expires_read(const Call *call, int64_t *ret_s, Error *reterr)
{
    const char *given = call_flag(call, "--expires-in");
    int64_t     ms;

    TRY(call_duration(call, "--expires-in", /* fallback_ms= */ 0, &ms, reterr));
    if (given && (ms < MS_PER_S || ms % MS_PER_S))
        return fail(reterr, ERR_USAGE, "--expires-in must be whole seconds, such as 30s, 15m or 7d, got \"%.60s\"",
                    given);
    *ret_s = ms / MS_PER_S;
    return OK;
}

/* N is the last argument of those that have more than a wallet or an ID; to others a flag gives an amount. */
static ErrorCode number_read(const Call *call, WalletItem *item, Error *reterr)
{
    bool        is_last = call->count > 1;
    const char *text    = is_last ? call->arguments[call->count - 1] : call_flag(call, "--amount");

    if (item->kind == WALLET_FLOOR)
        return call_number("N", text, -WALLET_AMOUNT_MAX, 0, 0, &item->floor, reterr);
    return call_number(is_last ? "N" : "--amount", text, 1, WALLET_AMOUNT_MAX, /* fallback= */ 0, &item->amount,
                       reterr);
}

/* The operation that the verb names. */
ErrorCode command_wallet_post(Call *call, Error *reterr)
{
    WalletItem item = {.other = call_flag(call, "--to")};

    TRY(wallet_kind_find("verb", call->verb, &item.kind, reterr));
    TRY(expires_read(call, &item.expires_in_s, reterr));
    if (wallet_kind_needs(item.kind, "ref") == ARGUMENT_REQUIRED)
        TRY(ref_read(call, &item, reterr));
    else
        item.owner = call->arguments[0];
    if (item.kind == WALLET_TRANSFER)
        item.other = call->arguments[1];
    TRY(number_read(call, &item, reterr));
    return post(call, &item, reterr);
}

/* ---- wallets and assets ---- */

static void wallet_print(Call *call, const WalletNew *wallet)
{
    if (!call->json) {
        printf("wallet of %s in %s %s\n", wallet->owner, wallet->asset, wallet->is_new ? "created" : "already exists");
        return;
    }
    Writer *writer = print_writer(call->arena);

    writer_object(writer, NULL);
    writer_text(writer, "owner", wallet->owner);
    writer_text(writer, "asset", wallet->asset);
    writer_i64(writer, "floor", wallet->floor);
    writer_i64(writer, "balance", wallet->balance_now);
    writer_bool(writer, "created", wallet->is_new);
    writer_time(writer, "created_at", wallet->created_at);
    writer_end(writer);
    print_json(writer);
}

ErrorCode command_wallet_create(Call *call, Error *reterr)
{
    const char *asset  = call_flag(call, "--asset");
    WalletNew   wallet = {.owner = call->arguments[0], .asset = asset ? asset : WALLET_ASSET_DEFAULT};

    TRY(wallet_check_owner("OWNER", wallet.owner, reterr) == OK ? OK : ERR_USAGE);
    TRY(wallet_check_asset("--asset", wallet.asset, reterr) == OK ? OK : ERR_USAGE);
    TRY(call_number("--floor", call_flag(call, "--floor"), -WALLET_AMOUNT_MAX, 0, 0, &wallet.floor, reterr));
    wallet.has_floor = call_flag(call, "--floor") != NULL;
    TRY(metadata_read(call, &wallet.metadata, reterr));
    TRY(call_uuid(call, "--txn-id", &wallet.txn_id, reterr)); /* without a key, the wallet is its own */
    TRY(call_open(call, APP_SCHEMA, reterr));
    TRY(key_take(call, "--txn-id", &wallet.txn_id, reterr));
    TRY(source_wallet_open(call, &wallet, reterr));
    wallet_print(call, &wallet);
    return OK;
}

ErrorCode command_wallet_events(Call *call, Error *reterr)
{
    const char *asset  = call->arguments[0];
    const char *domain = strcmp(call->arguments[1], "off") == 0 ? NULL : call->arguments[1];
    ErrorCode   code;

    TRY(wallet_check_asset("ASSET", asset, reterr) == OK ? OK : ERR_USAGE);
    TRY(call_open(call, APP_SCHEMA, reterr));
    code = asset_emit_to(call->pool, deadline_in_ms(APP_COMMAND_MS), asset, domain, reterr);
    if (code != OK)
        return code == ERR_INVALID ? ERR_USAGE : code; /* the domain: the asset is fine */
    if (call->json)
        printf("{\"asset\":\"%s\",\"domain\":%s%s%s}\n", asset, domain ? "\"" : "", domain ? domain : "null",
               domain ? "\"" : "");
    else if (domain)
        printf("each transaction in %s sends \"wallet.posted\" to domain %s\n", asset, domain);
    else
        printf("transactions in %s send nothing\n", asset);
    return OK;
}
