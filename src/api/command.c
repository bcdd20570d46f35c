/*
 * command.c - commands and batches over HTTP: send, show, list, cancel, and the troubleshooting queue.
 */
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "api/domain.h"
#include "api/page.h"
#include "api/scope.h"
#include "base/problem.h"
#include "base/writer.h"
#include "bus/batch.h"
#include "bus/command.h"
#include "bus/decision_fields.h"
#include "bus/send_fields.h"
#include "bus/settle.h"
#include "http/suspend.h"

/* ---- send ---- */

/* Longer than API_LOCK_MS: a twin of up to 8000 commands may just be committing. */
#define BATCH_LOCK_MS 1000

void api_item_submit(Api *api, Request *request, SendItem *item, RouteHandler *on_resume)
{
    item->on_done = request_resume;
    item->context = request;
    request_suspend(request, &(Suspend){.on_resume = on_resume}, item);
    sender_submit(api->sender, request_deadline(request), item);
}

ErrorCode api_item_sent(Api *api, const SendItem *item, Response *response, Error *reterr)
{
    if (item->code != OK) {
        *reterr = item->error;
        return item->code;
    }
    waker_notify_sent(api->waker, item);
    response->status = 201;
    if (!item->is_new)
        response_header(response, "Idempotency-Replayed", "true");
    return OK;
}

static ErrorCode send_end(void *context, Request *request, Response *response, Error *reterr)
{
    Api            *api  = context;
    const SendItem *item = request_state(request);
    Writer          writer;

    TRY(api_item_sent(api, item, response, reterr));
    response_header(response, "Pawl-Status", item->status);
    response_header(response, "Pawl-Key-Days", arena_print(request_arena(request), "%lld", (long long)api->key_days));
    writer_open(&writer, &response->body);
    sent_write(&writer, item);
    return OK;
}

ErrorCode api_command_send(void *context, Request *request, Response *response, Error *reterr)
{
    Arena      *arena = request_arena(request);
    SendItem   *item  = arena_array(arena, SendItem, 1);
    SendRequest given;

    (void)response;
    TRY(api_body_read(request, &send_table, &given, reterr));
    TRY(api_key_take(request, "command_id", &given.command_id, reterr));
    TRY(domain_check(request, given.domain, DOMAIN_SEND, reterr));
    *item = send_request_item(&given, request_principal(request));
    api_item_submit(context, request, item, send_end);
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
        response_header(response, "Idempotency-Replayed", "true");
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

/* ---- read ---- */

const RouteParameter api_command_parameters[] = {
    {"domain", "only this domain"},
    {"status", "only this status", .words = command_statuses},
    {"type", "only this type"},
    {"limit", "how many at most", PARAMETER_I64, .min = 1, .max = PAGE_LIMIT_MAX, .fallback = PAGE_LIMIT_DEFAULT},
    {"cursor", "next_cursor of the page before", PARAMETER_I64, .min = 1},
    {NULL, NULL},
};

const RouteParameter api_tsq_parameters[] = {
    {"domain", "only this domain"},
    {"type", "only this type"},
    {"limit", "how many at most", PARAMETER_I64, .min = 1, .max = PAGE_LIMIT_MAX, .fallback = PAGE_LIMIT_DEFAULT},
    {"cursor", "next_cursor of the page before", PARAMETER_I64, .min = 1},
    {NULL, NULL},
};

const RouteParameter api_command_domain_parameters[] = {
    {"domain", "the command's domain; needed only where several domains have this id"},
    {NULL,     NULL                                                                  },
};

static ErrorCode id_read(Request *request, char *ret_id, Error *reterr)
{
    if (!uuid_parse(request_capture(request, "id"), ret_id))
        return fail(reterr, ERR_INVALID, "id must be a UUID, got \"%.60s\"", request_capture(request, "id"));
    return OK;
}

ErrorCode api_command_show(void *context, Request *request, Response *response, Error *reterr)
{
    Api        *api = context;
    char        id[UUID_TEXT_SIZE];
    const char *json;

    TRY(id_read(request, id, reterr));
    TRY(domain_check_id(api, request, id, DOMAIN_READ, reterr));
    TRY(command_show(api->pool, request_deadline(request), request_arena(request), id, request_query(request, "domain"),
                     &json, reterr));
    text_append(&response->body, json);
    return OK;
}

static int64_t row_write(Writer *writer, const void *list, int index)
{
    const Command *command = (const Command *)list + index;

    command_write(writer, command);
    return command->id;
}

/* Without what the token must not read. Returns how many are left. */
static int list_filter(const Request *request, Command *list, int count)
{
    int kept = 0;

    for (int i = 0; i < count; i++)
        if (domain_is_open(request, list[i].domain, DOMAIN_READ))
            list[kept++] = list[i];
    return kept;
}

static ErrorCode list_answer(Api *api, Request *request, const char *status, Response *response, Error *reterr)
{
    CommandFilter filter = {.domain = request_query(request, "domain"),
                            .status = status,
                            .type   = request_query(request, "type")};
    Command      *list;
    Page          page;
    int64_t       next;
    int           count;

    TRY(domain_check(request, filter.domain, DOMAIN_READ, reterr));
    TRY(page_take(request, &page, reterr));
    filter.limit  = page.limit;
    filter.before = page.before;
    TRY(command_list(api->pool, request_deadline(request), request_arena(request), &filter, &list, &count, &next,
                     reterr));
    count = list_filter(request, list, count);
    page_write_next(list, count, next, row_write, response);
    return OK;
}

ErrorCode api_command_list(void *context, Request *request, Response *response, Error *reterr)
{
    return list_answer(context, request, request_query(request, "status"), response, reterr);
}

ErrorCode api_tsq_list(void *context, Request *request, Response *response, Error *reterr)
{
    return list_answer(context, request, "IN_TSQ", response, reterr);
}

ErrorCode api_batch_show(void *context, Request *request, Response *response, Error *reterr)
{
    Api   *api = context;
    char   id[UUID_TEXT_SIZE];
    Batch  batch;
    Writer writer;

    TRY(id_read(request, id, reterr));
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

    TRY(id_read(request, id, reterr));
    TRY(api_nothing_take(request, reterr));
    TRY(batch_seal(api->pool, request_deadline(request), API_LOCK_MS, request_arena(request), id, &wake, reterr));
    waker_notify_names(api->waker, wake);
    return api_batch_show(context, request, response, reterr);
}

/* ---- decide ---- */

/* No key may have the name of the admin's token: key_create() refuses it. */
const char *api_actor(Request *request, const char *said)
{
    const char *principal = request_principal(request);

    if (!said || !said[0])
        return principal;
    return strcmp(principal, KEY_NAME_ADMIN) == 0 ? said
                                                  : arena_print(request_arena(request), "%s (%s)", principal, said);
}

static ErrorCode decide_read(Request *request, char *ret_id, DecisionRequest *ret_given, Error *reterr)
{
    TRY(id_read(request, ret_id, reterr));
    *ret_given = (DecisionRequest){0};
    TRY(api_body_read_if_any(request, &decision_table, ret_given, reterr));
    ret_given->operator= api_actor(request, ret_given->operator);
    return OK;
}

static ErrorCode decision_answer(Api *api, const char *id, const Decision *decision, Response *response, Error *reterr)
{
    Writer writer;

    waker_notify_names(api->waker, decision->wake);
    TRY(decision_check("command", id, decision, reterr));
    if (!decision->is_new)
        response_header(response, "Idempotency-Replayed", "true");
    writer_open(&writer, &response->body);
    decision_write(&writer, "command", id, decision);
    return OK;
}

ErrorCode api_command_cancel(void *context, Request *request, Response *response, Error *reterr)
{
    Api            *api = context;
    DecisionRequest given;
    char            id[UUID_TEXT_SIZE];
    const char     *ids[] = {id}, *domains[] = {request_query(request, "domain")};
    Decision       *made;

    TRY(decide_read(request, id, &given, reterr));
    TRY(domain_check_id(api, request, id, DOMAIN_SEND, reterr));
    TRY(command_cancel(api->pool, request_deadline(request), API_LOCK_MS, request_arena(request),
                       (CommandNames){ids, domains, 1}, given.reason, given.operator, & made, reterr));
    return decision_answer(api, id, made, response, reterr);
}

static ErrorCode tsq_answer(Api *api, Request *request, TsqAction action, Response *response, Error *reterr)
{
    DecisionRequest given;
    char            id[UUID_TEXT_SIZE];
    const char     *ids[] = {id}, *domains[] = {request_query(request, "domain")};
    Decision       *made;

    TRY(decide_read(request, id, &given, reterr));
    TRY(tsq_decide(api->pool, request_deadline(request), API_LOCK_MS, request_arena(request),
                   (CommandNames){ids, domains, 1}, &(TsqDecision){action, given.operator, given.reason, given.result},
                   &made, reterr));
    return decision_answer(api, id, made, response, reterr);
}

ErrorCode api_tsq_retry(void *context, Request *request, Response *response, Error *reterr)
{
    return tsq_answer(context, request, TSQ_RETRY, response, reterr);
}

ErrorCode api_tsq_cancel(void *context, Request *request, Response *response, Error *reterr)
{
    return tsq_answer(context, request, TSQ_CANCEL, response, reterr);
}

ErrorCode api_tsq_complete(void *context, Request *request, Response *response, Error *reterr)
{
    return tsq_answer(context, request, TSQ_COMPLETE, response, reterr);
}
