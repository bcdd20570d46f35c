/*
 * post.c - money moves over HTTP: one operation per request, answered by its verdict.
 *
 * A verdict that is kept under its key is answered by the same bytes each time, refusals too: so the instance of such a
 * problem is the transaction and not the request.
 */
#include "api/post.h"

#include "api/api.h"
#include "http/suspend.h"
#include "wallet/entry.h"

/* ---- bodies ---- */

static const Field amount_fields[]   = {POST_TXN_ID, POST_AMOUNT, POST_ASSET, POST_METADATA};
static const Field transfer_fields[] = {
    POST_TXN_ID,  POST_OWNER("from", from, "who pays"), POST_OWNER("to", to, "who gets it"), POST_AMOUNT, POST_ASSET,
    POST_METADATA};
static const Field hold_fields[] = {
    POST_TXN_ID,
    POST_OWNER("owner", owner, "whose money is held"),
    POST_AMOUNT,
    POST_ASSET,
    {"expires_in_s", FIELD_I64, offsetof(PostRequest, expires_in_s), .min = 1, .max = WALLET_EXPIRES_IN_S_MAX,
      .help = "then it is given back by itself; never when absent"},
    POST_METADATA
};
static const Field capture_fields[] = {
    POST_TXN_ID,
    POST_AMOUNT_LEFT,
    {"to", FIELD_TEXT, offsetof(PostRequest, to), .min = 1, .length_max = WALLET_OWNER_MAX,
      .help = "who gets it; @system when absent"},
    POST_METADATA
};
static const Field void_fields[]   = {POST_TXN_ID, POST_METADATA};
static const Field refund_fields[] = {POST_TXN_ID, POST_AMOUNT_LEFT, POST_METADATA};
static const Field freeze_fields[] = {POST_TXN_ID, POST_ASSET, POST_METADATA};
static const Field floor_fields[]  = {
    POST_TXN_ID,
    {"floor", FIELD_I64, offsetof(PostRequest, floor), .required = true, .min = -WALLET_AMOUNT_MAX, .max = 0,
      .help = "how far below zero the wallet may go"},
    POST_ASSET,
    POST_METADATA
};

static const Field multi_fields[] = {
    POST_TXN_ID,
    {"legs", FIELD_ROWS, offsetof(PostRequest, legs), .required = true, .min = WALLET_LEGS_MIN, .max = WALLET_LEGS_MAX,
      .rows = &wallet_leg_table, .help = "sum to zero in each asset"},
    POST_METADATA
};

#define POST_TABLE(noun, fields)                         \
    {                                                    \
        noun, fields, COUNT(fields), sizeof(PostRequest) \
    }
const FieldTable api_amount_body   = POST_TABLE("amount", amount_fields);
const FieldTable api_transfer_body = POST_TABLE("transfer", transfer_fields);
const FieldTable api_hold_body     = POST_TABLE("hold", hold_fields);
const FieldTable api_capture_body  = POST_TABLE("capture", capture_fields);
const FieldTable api_void_body     = POST_TABLE("void", void_fields);
const FieldTable api_refund_body   = POST_TABLE("refund", refund_fields);
const FieldTable api_multi_body    = POST_TABLE("transaction", multi_fields);
const FieldTable api_freeze_body   = POST_TABLE("freeze", freeze_fields);
const FieldTable api_floor_body    = POST_TABLE("floor", floor_fields);

/* What the path says and what the body says. */
static const struct {
    const FieldTable *body;
    bool              owner_in_path, ref_in_path;
    const char       *ref; /* what the answer calls it */
} shapes[WALLET_KIND_COUNT] = {
    [WALLET_TOPUP]    = {&api_amount_body, .owner_in_path = true},
    [WALLET_SPEND]    = {&api_amount_body, .owner_in_path = true},
    [WALLET_TRANSFER] = {&api_transfer_body},
    [WALLET_MULTI]    = {&api_multi_body},
    [WALLET_HOLD]     = {&api_hold_body},
    [WALLET_CAPTURE]  = {&api_capture_body, .ref_in_path = true, .ref = "hold"},
    [WALLET_VOID]     = {&api_void_body, .ref_in_path = true, .ref = "hold"},
    [WALLET_REFUND]   = {&api_refund_body, .ref_in_path = true, .ref = "refund_of"},
    [WALLET_FREEZE]   = {&api_freeze_body, .owner_in_path = true},
    [WALLET_UNFREEZE] = {&api_freeze_body, .owner_in_path = true},
    [WALLET_FLOOR]    = {&api_floor_body, .owner_in_path = true},
};

/* ---- reading ---- */

WalletItem api_item_of(WalletKind kind, const PostRequest *given)
{
    return (WalletItem){
        .kind         = kind,
        .txn_id       = given->txn_id,
        .owner        = given->from ? given->from : given->owner,
        .other        = given->to,
        .asset        = given->asset,
        .amount       = given->amount,
        .expires_in_s = given->expires_in_s,
        .floor        = given->floor,
        .legs         = {given->legs.items, given->legs.count},
        .metadata     = given->metadata
    };
}

static ErrorCode item_read(Request *request, WalletKind kind, WalletItem *ret_item, Error *reterr)
{
    PostRequest given;
    size_t      size;
    const char *body = request_body(request, &size);

    if (size == 0) /* the header may have said all there is to say */
        body = "{}", size = 2;
    TRY(reader_object(body, size, shapes[kind].body, request_arena(request), &given, reterr));
    TRY(api_key_take(request, "txn_id", &given.txn_id, reterr));
    if (!given.txn_id)
        return fail(reterr, ERR_INVALID, "txn_id is missing: a UUID, here or in the header \"Idempotency-Key\"");
    *ret_item = api_item_of(kind, &given);
    if (shapes[kind].owner_in_path)
        ret_item->owner = request_capture(request, "owner");
    if (shapes[kind].ref_in_path)
        TRY(api_ref_take(request, &ret_item->ref, reterr));
    return OK;
}

/* ---- answering ---- */

static void write_parties(Writer *writer, const WalletItem *item)
{
    if (item->kind == WALLET_TRANSFER) {
        writer_text(writer, "from", item->posted_owner);
        writer_text(writer, "to", item->posted_other);
        return;
    }
    if (item->ref)
        writer_text(writer, shapes[item->kind].ref, item->ref);
    writer_text(writer, "owner", item->posted_owner);
    if (item->kind == WALLET_CAPTURE)
        writer_text(writer, "to", item->posted_other);
}

static void write_rest(Writer *writer, const WalletItem *item)
{
    switch (item->kind) {
    case WALLET_HOLD:
        wallet_time_write(writer, "expires_at",
                          item->expires_in_s ? item->decided_at + item->expires_in_s * 1000000 : 0);
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

void api_posted_write(Writer *writer, const WalletItem *item)
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
    wallet_time_write(writer, "at", item->decided_at);
}

static void headers_add(Request *request, Response *response, const WalletItem *item)
{
    response_header(response, "Pawl-Balance",
                    arena_print(request_arena(request), "%lld", (long long)item->balance_now));
    if (item->replayed)
        response_header(response, "Idempotency-Replayed", "true");
}

/* A refusal that was decided is the answer for ever; what only failed may be tried again. */
static ErrorCode refusal_answer(Request *request, const WalletItem *item, Response *response, Error *reterr)
{
    if (!item->decided_at) {
        *reterr = item->error;
        return item->code;
    }
    response_problem(response, &item->error, arena_print(request_arena(request), "/v1/transactions/%s", item->txn_id));
    headers_add(request, response, item);
    return OK;
}

static ErrorCode post_end(void *context, Request *request, Response *response, Error *reterr)
{
    const WalletItem *item = request_state(request);
    Writer            writer;

    (void)context;
    if (item->code != OK)
        return refusal_answer(request, item, response, reterr);
    response->status = 201;
    writer_open(&writer, &response->body);
    writer_object(&writer, NULL);
    api_posted_write(&writer, item);
    writer_end(&writer);
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

/* @system pays: what it pays was not there before. */
static bool legs_create_money(WalletLegs legs)
{
    for (int i = 0; i < legs.count; i++)
        if (strcmp(legs.list[i].owner, "@system") == 0 && legs.list[i].amount < 0)
            return true;
    return false;
}

/* Many wallets changed, so it is told how each of them stood: one more read from the database, on a thread that may wait. */
static ErrorCode transaction_answer(void *context, Request *request, Response *response, Error *reterr)
{
    Api              *api  = context;
    const WalletItem *item = request_state(request);
    const char       *entries;
    Writer            writer;

    if (item->code != OK)
        return refusal_answer(request, item, response, reterr);
    TRY(transaction_entries(api->pool, request_deadline(request), request_arena(request), item->txn_id, &entries,
                            reterr));
    response->status = 201;
    writer_open(&writer, &response->body);
    writer_object(&writer, NULL);
    writer_text(&writer, "txn_id", item->txn_id);
    writer_i64(&writer, "amount", item->posted_amount);
    writer_raw(&writer, "entries", entries);
    wallet_time_write(&writer, "at", item->decided_at);
    writer_end(&writer);
    headers_add(request, response, item);
    return OK;
}

ErrorCode api_transaction_post(void *context, Request *request, Response *response, Error *reterr)
{
    WalletItem *item = arena_array(request_arena(request), WalletItem, 1);

    (void)response;
    TRY(item_read(request, WALLET_MULTI, item, reterr));
    if (legs_create_money(item->legs))
        TRY(api_treasury_check(request, reterr));
    item_submit(context, request, item, &(Suspend){.on_resume = transaction_answer, .may_wait = true});
    return OK;
}
