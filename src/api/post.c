/*
 * post.c - operations on wallets over HTTP: one per request; the response is its verdict.
 *
 * A verdict that is kept under its key gets the same bytes each time, refusals too: so the instance of such a problem is the
 * transaction and not the request.
 */
#include "api/api.h"
#include "api/bound.h"
#include "http/suspend.h"
#include "wallet/entry.h"
#include "wallet/operation.h"

/* ---- reading ---- */

static ErrorCode item_read(Request *request, WalletKind kind, WalletItem *ret_item, Error *reterr)
{
    WalletRequest given;

    /* The header may have the key, and then some kinds need no other field. */
    TRY(api_body_read_if_any(request, &wallet_operation_bodies[kind], &given, reterr));
    TRY(api_key_take(request, "txn_id", &given.txn_id, reterr));
    if (!given.txn_id)
        return fail(reterr, ERR_INVALID,
                    "txn_id is missing: give a UUID, or any text in the header \"Idempotency-Key\"");
    *ret_item = wallet_request_item(kind, &given);
    if (!given.owner && wallet_kind_needs(kind, "owner") == ARGUMENT_REQUIRED)
        ret_item->owner = request_capture(request, "owner");
    if (wallet_kind_needs(kind, "ref") == ARGUMENT_REQUIRED)
        TRY(api_ref_take(request, &ret_item->ref, reterr));
    return OK;
}

/* ---- answering ---- */

static void headers_add(Request *request, Response *response, const WalletItem *item)
{
    response_header(response, "Pawl-Balance",
                    arena_print(request_arena(request), "%lld", (long long)item->balance_now));
    if (item->replayed)
        api_replayed_set(response);
}

/* A refusal that was decided is the response from now on; what failed may be retried. */
static ErrorCode refusal_answer(Request *request, const WalletItem *item, Response *response, Error *reterr)
{
    if (item->code == ERR_KEY_REUSED && request_bound(request)) /* perhaps by another owner */
        return fail(reterr, ERR_KEY_REUSED, API_BOUND_REUSED, item->txn_id);
    if (!item->decided_at)
        return error_pass(item->code, &item->error, reterr);
    response_problem(response, &item->error, arena_print(request_arena(request), "/v1/transactions/%s", item->txn_id));
    headers_add(request, response, item);
    return OK;
}

static ErrorCode post_end(void *context, Request *request, Response *response, Error *reterr)
{
    const WalletItem *item = request_state(request);

    (void)context;
    if (item->code != OK)
        return refusal_answer(request, item, response, reterr);
    response->status = 201;
    Writer *writer   = response_writer(response);
    writer_object(writer, NULL);
    wallet_posted_write(writer, item);
    writer_end(writer);
    headers_add(request, response, item);
    return OK;
}

static void item_submit(Api *api, Request *request, WalletItem *item, const Suspend *suspend)
{
    LedgerPost *post = arena_array(request_arena(request), LedgerPost, 1);

    *post = (LedgerPost){.item     = item,
                         .arena    = request_arena(request),
                         .deadline = request_deadline(request),
                         .on_done  = request_resume,
                         .context  = request};
    request_body_free(request);
    request_suspend(request, suspend, item);
    ledger_submit(api->ledger, post);
}

static ErrorCode post_submit(Api *api, Request *request, WalletKind kind, Error *reterr)
{
    WalletItem *item = arena_array(request_arena(request), WalletItem, 1);

    TRY(item_read(request, kind, item, reterr));
    item_submit(api, request, item, &(Suspend){.on_resume = post_end});
    return OK;
}

#define POST_HANDLER(name, kind)                                                       \
    ErrorCode name(void *context, Request *request, Response *response, Error *reterr) \
    {                                                                                  \
        (void)response;                                                                \
        return post_submit(context, request, kind, reterr);                            \
    }

POST_HANDLER(api_topup, WALLET_TOPUP)
POST_HANDLER(api_spend, WALLET_SPEND)
POST_HANDLER(api_transfer, WALLET_TRANSFER)
POST_HANDLER(api_hold_place, WALLET_HOLD)
POST_HANDLER(api_hold_capture, WALLET_CAPTURE)
POST_HANDLER(api_hold_void, WALLET_VOID)
POST_HANDLER(api_refund, WALLET_REFUND)
POST_HANDLER(api_freeze, WALLET_FREEZE)
POST_HANDLER(api_unfreeze, WALLET_UNFREEZE)
POST_HANDLER(api_floor, WALLET_FLOOR)

/* A leg in which @system pays creates money. */
static bool legs_create_money(WalletLegs legs)
{
    for (int i = 0; i < legs.count; i++)
        if (strcmp(legs.list[i].owner, "@system") == 0 && legs.list[i].amount < 0)
            return true;
    return false;
}

/* Many wallets changed, so the response has the state of each: one more read from the database, on a thread that may wait. */
static ErrorCode transaction_answer(void *context, Request *request, Response *response, Error *reterr)
{
    Api              *api  = context;
    const WalletItem *item = request_state(request);
    const char       *entries;

    if (item->code != OK)
        return refusal_answer(request, item, response, reterr);
    TRY(transaction_entries(api->pool, request_deadline(request), request_arena(request), item->txn_id, &entries,
                            reterr));
    response->status = 201;
    Writer *writer   = response_writer(response);
    writer_object(writer, NULL);
    writer_text(writer, "txn_id", item->txn_id);
    writer_i64(writer, "amount", item->posted_amount);
    writer_raw(writer, "entries", entries);
    writer_time(writer, "at", item->decided_at);
    writer_end(writer);
    headers_add(request, response, item);
    return OK;
}

ErrorCode api_transaction_post(void *context, Request *request, Response *response, Error *reterr)
{
    WalletItem *item = arena_array(request_arena(request), WalletItem, 1);

    (void)response;
    TRY(item_read(request, WALLET_MULTI, item, reterr));
    if (legs_create_money(item->legs))
        TRY(api_mint_check(request, reterr));
    item_submit(context, request, item, &(Suspend){.on_resume = transaction_answer, .may_wait = true});
    return OK;
}
