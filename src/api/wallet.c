/*
 * wallet.c - wallets over HTTP: open, read the present and a past state; one transaction, one hold; verification.
 */
#include "api/api.h"
#include "api/bound.h"

#include <string.h>

#include "base/writer.h"
#include "wallet/entry.h"
#include "wallet/ledger.h"
#include "wallet/wallet.h"

/* ---- open ---- */

/* The wallet is its own key, so a second request changes nothing. Its response has the wallet's present state, because clients would take
 * the "balance": 0 of the first response for the present balance. */
ErrorCode api_wallet_open(void *context, Request *request, Response *response, Error *reterr)
{
    Api              *api   = context;
    Arena            *arena = request_arena(request);
    WalletOpenRequest given;
    WalletNew         wallet;
    Wallet            opened;

    TRY(api_body_read(request, &wallet_open_table, &given, reterr));
    TRY(api_key_take(request, "txn_id", &given.txn_id, reterr));
    if (given.floor)
        TRY(api_mint_check(request, reterr));
    wallet = wallet_open_request_new(&given);
    TRY(wallet_open(api->pool, request_deadline(request), WALLET_LOCK_BRIEFLY, arena, &wallet, reterr));
    opened = (Wallet){.owner      = wallet.owner,
                      .asset      = wallet.asset,
                      .available  = -wallet.floor,
                      .floor      = wallet.floor,
                      .metadata   = wallet.metadata,
                      .created_at = wallet.created_at};
    if (!wallet.is_new)
        TRY(ledger_get(api->ledger, request_deadline(request), arena, wallet.owner, wallet.asset, &opened, reterr));
    response->status = 201;
    response_row(response, wallet_write, &opened);
    response_header(response, "Pawl-Balance", arena_print(arena, "%lld", (long long)opened.balance));
    if (!wallet.is_new)
        api_replayed_set(response);
    return OK;
}

/* ---- read ---- */

const RouteParameter api_wallet_parameters[] = {
    {"asset", "CREDIT when absent"},
    {"at", "its state at this moment", PARAMETER_TIME},
    {NULL, NULL},
};

static ErrorCode past_answer(Api *api, Request *request, const char *at, Response *response, Error *reterr)
{
    const char *owner = request_capture(request, "owner"), *asset = request_query(request, "asset");
    WalletPast  past;

    TRY(wallet_check_owner_seen("owner", owner, reterr));
    TRY(wallet_check_asset("asset", asset, reterr));
    TRY(wallet_get_at(api->pool, request_deadline(request), request_arena(request), owner, asset, at, &past, reterr));
    response_row(response, wallet_past_write, &past);
    return OK;
}

ErrorCode api_wallet_show(void *context, Request *request, Response *response, Error *reterr)
{
    Api        *api = context;
    const char *at;
    Wallet      wallet;

    TRY(api_moment_take(request, "at", &at, reterr));
    if (at)
        return past_answer(api, request, at, response, reterr);
    TRY(ledger_get(api->ledger, request_deadline(request), request_arena(request), request_capture(request, "owner"),
                   request_query(request, "asset"), &wallet, reterr));
    response_row(response, wallet_write, &wallet);
    return OK;
}

ErrorCode api_owner_wallets(void *context, Request *request, Response *response, Error *reterr)
{
    Api        *api   = context;
    const char *owner = request_capture(request, "owner");
    Wallet     *list;
    int         count;

    TRY(wallet_check_owner_seen("owner", owner, reterr));
    TRY(wallet_list(api->pool, request_deadline(request), request_arena(request), owner, &list, &count, reterr));
    if (count == 0)
        return fail(reterr, ERR_NOT_FOUND, "there is no wallet of \"%s\"", owner);
    Writer *writer = response_writer(response);
    writer_object(writer, NULL);
    writer_array(writer, "items");
    for (int i = 0; i < count; i++)
        wallet_write(writer, &list[i]);
    writer_end(writer);
    writer_end(writer);
    return OK;
}

/* ---- transactions and holds ---- */

ErrorCode api_transaction_show(void *context, Request *request, Response *response, Error *reterr)
{
    Api        *api = context;
    const char *id, *json;

    TRY(api_ref_take(request, &id, reterr));
    TRY(transaction_show(api->pool, request_deadline(request), request_arena(request), id, api_bound_owners(request),
                         &json, reterr));
    text_append(&response->body, json);
    return OK;
}

ErrorCode api_hold_show(void *context, Request *request, Response *response, Error *reterr)
{
    Api        *api = context;
    const char *id, *json;

    TRY(api_ref_take(request, &id, reterr));
    TRY(hold_show(api->pool, request_deadline(request), request_arena(request), id, &json, reterr));
    text_append(&response->body, json);
    return OK;
}
