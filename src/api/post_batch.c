/*
 * post_batch.c - many transfers in one request and one transaction, a verdict for each.
 */
#include "api/api.h"
#include "api/bound.h"
#include "base/problem.h"
#include "http/suspend.h"
#include "wallet/operation.h"

/* The header's key is that of all items that have none of their own. */
static ErrorCode items_take(Request *request, const WalletBatchRequest *given, WalletItem **ret_items, Error *reterr)
{
    Arena               *arena = request_arena(request);
    const WalletRequest *rows  = given->items.items;
    const char          *key   = NULL;

    TRY(api_key_take(request, NULL, &key, reterr));
    for (int i = 0; i < given->items.count; i++) {
        ret_items[i]  = arena_array(arena, WalletItem, 1);
        *ret_items[i] = wallet_request_item(WALLET_TRANSFER, &rows[i]);
        if (key && !ret_items[i]->txn_id)
            ret_items[i]->txn_id = api_key_derive(arena, key, i);
        if (wallet_check(ret_items[i], reterr) != OK) {
            Error why = *reterr;

            return fail(reterr, ERR_INVALID, "items[%d].%s", i, why.text);
        }
    }
    return OK;
}

static bool all_replayed(WalletItem *const *items, int count)
{
    for (int i = 0; i < count; i++)
        if (!items[i]->replayed)
            return false;
    return true;
}

/* A problem document that has the verdicts as well. */
static void write_taken_back(Writer *writer, WalletItem *const *items, int refused, const char *instance)
{
    const Error *why = &items[refused]->error;
    char         text[sizeof why->text + 64];

    snprintf(text, sizeof text, "nothing was posted, because items[%d] was refused: %s", refused, problem_detail(why));
    writer_text(writer, "type", "/problems/not-posted");
    writer_text(writer, "title", error_text(ERR_CONFLICT));
    writer_i64(writer, "status", error_http(ERR_CONFLICT));
    writer_text(writer, "detail", text);
    writer_text(writer, "instance", instance);
}

static ErrorCode batch_end(void *context, Request *request, Response *response, Error *reterr)
{
    const LedgerMany *batch = request_state(request);

    (void)context;
    TRY(error_pass(batch->call.code, &batch->call.error, reterr));
    for (int i = 0; request_bound(request) && i < batch->count; i++)
        if (batch->items[i]->code == ERR_KEY_REUSED) /* perhaps by another owner */
            fail(&batch->items[i]->error, ERR_KEY_REUSED, API_BOUND_REUSED, batch->items[i]->txn_id);
    Writer *writer = response_writer(response);
    writer_object(writer, NULL);
    if (batch->atomic && batch->refused >= 0) {
        response->status = error_http(ERR_CONFLICT);
        response->type   = "application/problem+json";
        write_taken_back(writer, batch->items, batch->refused, request_id(request));
    }
    if (all_replayed(batch->items, batch->count))
        api_replayed_set(response);
    wallet_verdicts_write(writer, batch->items, batch->count);
    writer_end(writer);
    return OK;
}

ErrorCode api_transfer_batch(void *context, Request *request, Response *response, Error *reterr)
{
    Api               *api   = context;
    Arena             *arena = request_arena(request);
    LedgerMany        *batch = arena_array(arena, LedgerMany, 1);
    WalletBatchRequest given;

    (void)response;
    TRY(api_body_read(request, &wallet_batch_table, &given, reterr));
    *batch       = (LedgerMany){.count   = given.items.count,
                                .atomic  = given.atomic,
                                .arena   = arena,
                                .on_done = request_resume,
                                .context = request};
    batch->items = arena_array(arena, WalletItem *, given.items.count);
    TRY(items_take(request, &given, batch->items, reterr));
    request_body_free(request);
    request_suspend(request, &(Suspend){.on_resume = batch_end}, batch);
    ledger_submit_many(api->ledger, request_deadline(request), batch);
    return OK;
}
