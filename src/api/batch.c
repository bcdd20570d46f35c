/*
 * batch.c - batches over HTTP: send commands as one batch, read its progress, seal it.
 */
#include <string.h>

#include "api/api.h"
#include "api/domain.h"
#include "base/uuid.h"
#include "base/writer.h"
#include "bus/batch.h"
#include "bus/send_fields.h"

/* Longer than API_LOCK_MS: a twin of up to 8000 commands may just be committing. */
#define BATCH_LOCK_MS 1000

/* ---- send ---- */

/* Everything is checked before the first write, so a batch with a bad last item is not created. */
static ErrorCode batch_check(Request *request, const BatchRequest *given, SendItem *ret_list, Error *reterr)
{
    const SendRequest *requests = given->items.items;
    SendRequest        last;

    if (given->items.count == 0 && !given->open)
        return fail(reterr, ERR_INVALID, "items must be an array of 1 to %d commands unless \"open\" is true",
                    SEND_ITEMS_MAX);
    for (int i = 0; i < given->items.count; i++) {
        ret_list[i] = send_request_item(&requests[i], request_principal(request));
        if (requests[i].batch_id && (!given->batch_id || strcmp(requests[i].batch_id, given->batch_id) != 0))
            return fail(reterr, ERR_INVALID, "items[%d].batch_id names another batch", i);
        /* A second request for an open batch may mean more commands: only their ids tell it from a repeat. */
        if (given->open && given->batch_id && !requests[i].command_id)
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

static ErrorCode batch_post(Api *api, Request *request, const BatchRequest *given, SendItem *list,
                            const char **ret_batch_id, Error *reterr)
{
    Arena     *arena = request_arena(request);
    BatchNew   batch = {given->batch_id, given->name, given->on_complete, given->open};
    int        count = given->items.count;
    SendItem **items = arena_array(arena, SendItem *, count + 1);

    for (int i = 0; i < count; i++) {
        if (!list[i].command_id && given->batch_id)
            list[i].command_id = api_key_derive(arena, given->batch_id, i);
        items[i] = &list[i];
    }
    TRY(batch_send(api->pool, request_deadline(request), BATCH_LOCK_MS, arena, &batch, items, count, ret_batch_id,
                   reterr));
    for (int i = 0; i < count; i++)
        waker_notify_sent(api->waker, &list[i]);
    return OK;
}

ErrorCode api_command_batch(void *context, Request *request, Response *response, Error *reterr)
{
    BatchRequest given;
    SendItem    *list;
    const char  *batch_id;
    bool         replayed;
    Writer       writer;

    TRY(api_body_read(request, &batch_table, &given, reterr));
    TRY(api_key_take(request, "batch_id", &given.batch_id, reterr));
    list = arena_array(request_arena(request), SendItem, given.items.count + 1);
    TRY(batch_check(request, &given, list, reterr));
    TRY(batch_post(context, request, &given, list, &batch_id, reterr));
    response->status = 201;
    replayed         = given.items.count > 0;
    for (int i = 0; i < given.items.count; i++)
        replayed &= list[i].code == OK && !list[i].is_new;
    if (replayed)
        api_replayed_set(response);
    writer_open(&writer, &response->body);
    writer_object(&writer, NULL);
    writer_text(&writer, "batch_id", batch_id);
    writer_array(&writer, "items");
    for (int i = 0; i < given.items.count; i++)
        sent_write(&writer, &list[i]);
    writer_end(&writer);
    writer_end(&writer);
    return OK;
}

/* ---- progress ---- */

ErrorCode api_batch_show(void *context, Request *request, Response *response, Error *reterr)
{
    Api   *api = context;
    char   id[UUID_TEXT_SIZE];
    Batch  batch;
    Writer writer;

    TRY(api_id_take(request, id, reterr));
    TRY(batch_progress(api->pool, request_deadline(request), request_arena(request), id, &batch, reterr));
    writer_open(&writer, &response->body);
    batch_write(&writer, &batch);
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
