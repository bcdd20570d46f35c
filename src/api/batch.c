/*
 * batch.c - batches over HTTP: send commands as one batch, read its progress, seal it.
 */
#include <string.h>

#include "api/api.h"
#include "api/domain.h"
#include "api/page.h"
#include "base/uuid.h"
#include "base/writer.h"
#include "bus/batch.h"
#include "bus/send_fields.h"
#include "http/suspend.h"
#include "pg/lock_calls.h"

/* ---- send ---- */

static ErrorCode item_read(Request *request, const SendRequest *given, SendItem *ret_item, Error *reterr)
{
    TRY(send_request_item(given, request_principal(request), request_arena(request), ret_item, reterr));
    TRY(api_key_field_take(request, given->key, "command_id", &ret_item->command_id, reterr));
    ret_item->is_keyed = given->key != NULL;
    return OK;
}

/* Everything is checked before the first write, so a batch with a bad last item is not created. */
static ErrorCode batch_check(Request *request, const BatchRequest *given, SendItem *ret_list, Error *reterr)
{
    const SendRequest *requests = given->items.items;
    SendRequest        last;

    if (given->items.count == 0 && !given->open)
        return fail(reterr, ERR_INVALID, "items must be an array of 1 to %d commands unless \"open\" is true",
                    SEND_ITEMS_MAX);
    for (int i = 0; i < given->items.count; i++) {
        if (item_read(request, &requests[i], &ret_list[i], reterr) != OK) {
            error_prefix(reterr, "items[%d]", i);
            return reterr->code;
        }
        if (requests[i].batch_id && (!given->batch_id || strcmp(requests[i].batch_id, given->batch_id) != 0))
            return fail(reterr, ERR_INVALID, "items[%d].batch_id names another batch", i);
        /* A second request for an open batch may mean more commands: only their ids tell it from a repeat. */
        if (given->open && given->batch_id && !ret_list[i].command_id)
            return fail(
                reterr, ERR_INVALID,
                "items[%d].command_id is required where \"open\" is true and a batch_id or an Idempotency-Key is "
                "given: without it a repeat would send the command twice",
                i);
        if (send_check(&ret_list[i], reterr) != OK) {
            error_prefix(reterr, "items[%d]", i);
            return reterr->code;
        }
        TRY(domain_check(request, requests[i].domain, DOMAIN_SEND, reterr));
    }
    if (!given->on_complete)
        return OK;
    TRY(on_complete_read("on_complete", given->on_complete, request_arena(request), &last, reterr));
    return domain_check(request, last.domain, DOMAIN_SEND, reterr);
}

typedef struct {
    Api         *api;
    Request     *request;
    BatchRequest given;
    SendItem    *list;
    SendItem   **items;
    const char  *batch_id, *hint;
    LockCall     call;
} BatchSending;

/* Each try sends the same ids. A twin of up to 8000 commands may just be committing, and the batch be locked. */
static ErrorCode sending_run(LockCall *call, Error *reterr)
{
    BatchSending *sending = call->context;
    Arena        *arena   = request_arena(sending->request);
    int           count   = sending->given.items.count;
    ArenaMark     mark;
    BatchNew      batch = {sending->batch_id, sending->given.name, sending->given.on_complete, sending->given.open};
    ErrorCode     code;

    if (!sending->hint)
        sending->hint = hints_of(sending->api->hints, call->deadline, sending->items, count, arena);
    mark = arena_mark(arena);
    code = batch_send(sending->api->pool, call->deadline, API_LOCK_MS, arena, &batch, sending->items, count,
                      &(const char *){NULL}, reterr);
    if (code != OK)
        arena_rewind(arena, mark);
    return code;
}

static void sending_done(void *context)
{
    BatchSending *sending = context;

    request_resume(sending->request);
}

/* An id that the client did not give is made here, before the first try. */
static void ids_fill(BatchSending *sending)
{
    Arena *arena = request_arena(sending->request);
    char   id[UUID_TEXT_SIZE];

    sending->batch_id = sending->given.batch_id;
    if (!sending->batch_id) {
        uuid_new(id);
        sending->batch_id = arena_text(arena, id);
    }
    sending->items = arena_array(arena, SendItem *, sending->given.items.count + 1);
    for (int i = 0; i < sending->given.items.count; i++) {
        SendItem *item = sending->items[i] = &sending->list[i];

        if (item->command_id)
            continue;
        uuid_new(id);
        item->command_id =
            sending->given.batch_id ? api_key_derive(arena, sending->batch_id, i) : arena_text(arena, id);
    }
}

static ErrorCode batch_end(void *context, Request *request, Response *response, Error *reterr)
{
    Api                *api      = context;
    const BatchSending *sending  = request_state(request);
    int                 count    = sending->given.items.count;
    bool                replayed = count > 0;

    TRY(error_pass(sending->call.code, &sending->call.error, reterr));
    response->status = 201;
    for (int i = 0; i < count; i++) {
        waker_notify_sent(api->waker, &sending->list[i]);
        replayed &= sending->list[i].code == OK && !sending->list[i].is_new && !sending->list[i].duplicate;
    }
    if (replayed)
        api_replayed_set(response);
    api_hint_set(response, sending->hint);
    Writer *writer = response_writer(response);
    writer_object(writer, NULL);
    writer_text(writer, "batch_id", sending->batch_id);
    writer_array(writer, "items");
    for (int i = 0; i < count; i++)
        sent_write(writer, "command_id", &sending->list[i]);
    writer_end(writer);
    writer_end(writer);
    return OK;
}

ErrorCode api_command_batch(void *context, Request *request, Response *response, Error *reterr)
{
    Api          *api     = context;
    BatchSending *sending = arena_array(request_arena(request), BatchSending, 1);
    BatchRequest *given   = &sending->given;

    (void)response;
    *sending = (BatchSending){.api = api, .request = request};
    TRY(api_body_read(request, &batch_table, given, reterr));
    TRY(api_key_take(request, "batch_id", &given->batch_id, reterr));
    sending->list = arena_array(request_arena(request), SendItem, given->items.count + 1);
    TRY(batch_check(request, given, sending->list, reterr));
    ids_fill(sending);
    if (request_bound(request))
        sending->hint = ""; /* it would name domains of others */
    sending->call = (LockCall){.run      = sending_run,
                               .deadline = request_deadline(request),
                               .on_done  = sending_done,
                               .context  = sending};
    request_body_free(request);
    request_suspend(request, &(Suspend){.on_resume = batch_end}, sending);
    lock_calls_submit(api->batches, &sending->call);
    return OK;
}

/* ---- list ---- */

const RouteParameter api_batch_parameters[] = {
    {"status", "only this status", .words = batch_statuses},
    {"name", "only this name"},
    {"since", "not created before this moment", PARAMETER_TIME},
    {"until", "not created after this moment", PARAMETER_TIME},
    PAGE_PARAMETERS,
    {NULL, NULL},
};

/* Without those whose first command the token must not read. */
static int list_filter(const Request *request, BatchLine *list, int count)
{
    int kept = 0;

    for (int i = 0; i < count; i++)
        if (domain_is_open(request, list[i].domain, DOMAIN_READ))
            list[kept++] = list[i];
    return kept;
}

ErrorCode api_batch_list(void *context, Request *request, Response *response, Error *reterr)
{
    const Api  *api    = context;
    BatchFilter filter = {.status = request_query(request, "status"), .name = request_query(request, "name")};
    BatchLine  *list;
    int64_t     next;
    int         count;

    TRY(api_moment_take(request, "since", &filter.since, reterr));
    TRY(api_moment_take(request, "until", &filter.until, reterr));
    TRY(page_take(request, &filter.limit, &filter.before, reterr));
    TRY(batch_list(api->pool, request_deadline(request), request_arena(request), &filter, &list, &count, &next,
                   reterr));
    count = list_filter(request, list, count);
    page_write_next(list, count, next, PAGE_ROW(BatchLine, batch_line_write, id), response);
    return OK;
}

/* ---- progress ---- */

ErrorCode api_batch_show(void *context, Request *request, Response *response, Error *reterr)
{
    Api  *api = context;
    char  id[UUID_TEXT_SIZE];
    Batch batch;

    TRY(api_id_take(request, id, reterr));
    TRY(batch_progress(api->pool, request_deadline(request), request_arena(request), id, &batch, reterr));
    response_row(response, batch_write, &batch);
    return OK;
}

ErrorCode api_batch_seal(void *context, Request *request, Response *response, Error *reterr)
{
    Api        *api = context;
    char        id[UUID_TEXT_SIZE];
    const char *wake;

    TRY(api_id_take(request, id, reterr));
    TRY(api_nothing_take(request, reterr));
    TRY(batch_seal(api->pool, request_deadline(request), API_LOCK_MS, request_arena(request), id, &wake, reterr));
    waker_notify_names(api->waker, wake);
    return api_batch_show(context, request, response, reterr);
}
