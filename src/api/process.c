/*
 * process.c - processes over HTTP: define, start, read, signal, decide.
 */
#include <string.h>

#include "api/api.h"
#include "api/bound.h"
#include "api/domain.h"
#include "api/page.h"
#include "base/reader.h"
#include "base/uuid.h"
#include "base/writer.h"
#include "bus/send_fields.h"
#include "http/suspend.h"
#include "process/metric.h"
#include "process/process_fields.h"

#define OLDER_S_MAX 315360000 /* ten years */

/* ---- define ---- */

ErrorCode api_process_define(void *context, Request *request, Response *response, Error *reterr)
{
    Api                      *api = context;
    size_t                    size;
    const char               *body = request_body(request, &size);
    const Definition         *definition;
    ProcessDefined            defined;
    scoped(arena_free) Arena *arena = arena_new(DEFINITION_ARENA_BYTES(DEFINITION_BYTES_MAX));

    TRY(definition_parse("definition", body, size, arena, &definition, reterr));
    TRY(process_define(api->pool, request_deadline(request), API_LOCK_MS, definition, request_principal(request),
                       &defined, reterr));
    process_defined_write(response_writer(response), definition, &defined);
    return OK;
}

/* ---- start ---- */

/* A repeat answers with the bytes of the first answer: see commands. */
static ErrorCode start_end(void *context, Request *request, Response *response, Error *reterr)
{
    const SendItem *item;

    (void)context;
    TRY(api_item_sent(request, response, &item, reterr));
    sent_write(response_writer(response), "process_id", item);
    return OK;
}

ErrorCode api_process_start(void *context, Request *request, Response *response, Error *reterr)
{
    SendItem            item;
    ProcessStartRequest given;

    (void)response;
    TRY(api_body_read(request, &process_start_table, &given, reterr));
    TRY(api_key_field_take(request, given.key, "process_id", &given.process_id, reterr));
    TRY(api_key_take(request, "process_id", &given.process_id, reterr));
    TRY(process_start_request_item(request_arena(request), &given, request_principal(request), &item, reterr));
    item.is_keyed = given.key || api_key_is_given(request);
    api_item_submit(context, request, &item, start_end);
    return OK;
}

/* ---- start many ---- */

typedef struct {
    Once                       once; /* first: begin and write get its address */
    Api                       *api;
    Arena                     *arena;
    const ProcessStartRequest *requests;
    SendItem                  *items, **open; /* open: those without a verdict */
    int                        count, open_count;
    const char                *hint;
    LockCall                   call;
} Starts;

/* Any other code is about the database or its schema, and not about this item. */
static bool item_is_decided(const SendItem *item)
{
    return item->code == OK || item->code == ERR_KEY_REUSED || item->code == ERR_INVALID || item->code == ERR_LIMIT;
}

/* Each try sends the items that another transaction was sending, with the same ids. */
static ErrorCode starts_run(LockCall *call, Error *reterr)
{
    Starts *starts = call->context;
    int     busy   = 0;

    if (!starts->hint)
        starts->hint = hints_of(starts->api->hints, call->deadline, starts->open, starts->open_count, starts->arena);
    send_each(starts->api->pool, call->deadline, /* nowait= */ true, starts->open, starts->open_count);
    for (int i = 0; i < starts->open_count; i++) {
        SendItem *item = starts->open[i];

        if (!item->busy && !item_is_decided(item))
            return error_pass(item->code, &item->error, reterr);
        if (item->busy)
            starts->open[busy++] = item;
    }
    starts->open_count = busy;
    if (busy == 0)
        return OK;
    *reterr = starts->open[0]->error;
    error_set_sqlstate(reterr, "55P03"); /* tried again, apart from other calls */
    return reterr->code;
}

static void starts_begin(Once *once)
{
    Starts *starts = (Starts *)once;

    lock_calls_submit(starts->api->batches, &starts->call);
}

static ErrorCode starts_write(Once *once, Response *response, Error *reterr)
{
    Starts *starts   = (Starts *)once;
    bool    replayed = true;

    TRY(error_pass(starts->call.code, &starts->call.error, reterr));
    for (int i = 0; i < starts->count; i++) {
        const SendItem *item = &starts->items[i];

        waker_notify_sent(starts->api->waker, item);
        replayed &= item->code == OK && !item->is_new;
        if (item->code == ERR_KEY_REUSED && !starts->requests[i].process_id &&
            !starts->requests[i].key) /* the id is that of the request's key */
            return fail(reterr, ERR_KEY_REUSED, "items[%d]: %s", i, item->error.text);
    }
    response->status = 201;
    if (replayed)
        api_replayed_set(response);
    api_hint_set(response, starts->hint);
    Writer *writer = response_writer(response);
    writer_object(writer, NULL);
    writer_array(writer, "items");
    for (int i = 0; i < starts->count; i++)
        sent_write(writer, "process_id", &starts->items[i]);
    writer_end(writer);
    writer_end(writer);
    return OK;
}

/* Everything is checked before the first write. An item without an id gets it here, before the first try. */
static ErrorCode starts_read(Request *request, Starts *starts, Error *reterr)
{
    Arena      *arena = request_arena(request);
    const char *key   = NULL;

    TRY(api_key_take(request, "process_id", &key, reterr));
    for (int i = 0; i < starts->count; i++) {
        SendItem *item = starts->open[i] = &starts->items[i];
        char      id[UUID_TEXT_SIZE];

        if (process_start_request_item(arena, &starts->requests[i], request_principal(request), item, reterr) != OK ||
            api_key_field_take(request, starts->requests[i].key, "process_id", &item->command_id, reterr) != OK ||
            send_check(item, reterr) != OK) {
            error_prefix(reterr, "items[%d]", i);
            return reterr->code;
        }
        item->is_keyed = starts->requests[i].key != NULL;
        uuid_new(id);
        if (!item->command_id)
            item->command_id = key ? api_key_derive(arena, key, i) : arena_text(arena, id);
    }
    return OK;
}

ErrorCode api_process_batch(void *context, Request *request, Response *response, Error *reterr)
{
    Arena              *arena  = request_arena(request);
    Starts             *starts = arena_array(arena, Starts, 1);
    ProcessBatchRequest given;

    TRY(api_body_read(request, &process_batch_table, &given, reterr));
    *starts = (Starts){
        .once       = {.begin = starts_begin, .write = starts_write},
        .api        = context,
        .arena      = arena,
        .requests   = given.items.items,
        .items      = arena_array(arena, SendItem, given.items.count),
        .open       = arena_array(arena, SendItem *, given.items.count),
        .count      = given.items.count,
        .open_count = given.items.count
    };
    starts->call = (LockCall){.run      = starts_run,
                              .deadline = request_deadline(request),
                              .on_done  = api_once_done,
                              .context  = starts};
    if (request_bound(request))
        starts->hint = ""; /* it would name domains of others */
    TRY(starts_read(request, starts, reterr));
    return api_once_submit(context, request, response, &starts->once, reterr);
}

/* ---- read ---- */

const RouteParameter api_process_domain_parameters[] = {
    {"domain", "the process's domain; needed only where several domains have this id", .names = NAMES_DOMAIN},
    {NULL, NULL},
};

const RouteParameter api_process_show_parameters[] = {
    {"domain", "the process's domain; needed only where several domains have this id", .names = NAMES_DOMAIN},
    API_WAIT_PARAMETER,
    {NULL, NULL},
};

const RouteParameter api_process_signal_parameters[] = {
    {"domain", "the process's domain; needed only where several domains have this id", .names = NAMES_DOMAIN},
    {"step", "the wait that it answers, as it is shown: approval, approval[2]; no other wait takes it"},
    {NULL, NULL},
};

const RouteParameter api_process_parameters[] = {
    {"domain", "only this domain", .names = NAMES_DOMAIN},
    {"type", "only this type"},
    {"status", "only this status", .words = process_statuses},
    {"step", "only those whose last step, or the one they wait in, is this"},
    {"text", "only those with this text in their state"},
    {"older_s", "only those that started at least so many seconds ago", PARAMETER_I64, .min = 1, .max = OLDER_S_MAX},
    PAGE_PARAMETERS,
    {NULL, NULL},
};

static ErrorCode name_read(Request *request, char *ret_id, ProcessName *ret_name, Error *reterr)
{
    TRY(api_id_take(request, ret_id, reterr));
    *ret_name = (ProcessName){ret_id, request_query(request, "domain")};
    return OK;
}

ErrorCode api_process_show(void *context, Request *request, Response *response, Error *reterr)
{
    Api        *api = context;
    char        id[UUID_TEXT_SIZE];
    ProcessName name;
    const char *json;

    TRY(name_read(request, id, &name, reterr));
    if (api_waits(request))
        return api_wait(api, request, response,
                        &(OutcomeWait){.command_id = id,
                                       .domain     = name.domain ? arena_print(request_arena(request), "%s%s",
                                                                               PROCESS_DOMAIN_PREFIX, name.domain)
                                                                 : NULL,
                                       .prefix     = PROCESS_DOMAIN_PREFIX},
                        reterr);
    TRY(process_show(api->pool, request_deadline(request), request_arena(request), name, &json, reterr));
    text_append(&response->body, json);
    return OK;
}

ErrorCode api_process_list(void *context, Request *request, Response *response, Error *reterr)
{
    Api          *api    = context;
    ProcessFilter filter = {.domain = request_query(request, "domain"),
                            .type   = request_query(request, "type"),
                            .status = request_query(request, "status"),
                            .step   = request_query(request, "step"),
                            .text   = request_query(request, "text"),
                            .bound  = api_bound_domains(request)};
    Process      *list;
    int64_t       older_s, next;
    int           count;

    TRY(page_take(request, &filter.limit, &filter.before, reterr));
    TRY(request_query_i64(request, "older_s", 1, OLDER_S_MAX, 0, &older_s, reterr));
    filter.older_ms = older_s * 1000;
    TRY(process_list(api->pool, request_deadline(request), request_arena(request), &filter, &list, &count, &next,
                     reterr));
    page_write_next(list, count, next, PAGE_ROW(Process, process_row_write, id), response);
    return OK;
}

const RouteParameter api_process_version_parameters[] = {
    {"domain", "only this domain", .names = NAMES_DOMAIN},
    {"type", "only this type"},
    PAGE_PARAMETERS,
    {NULL, NULL},
};

static void version_write(Writer *writer, const void *version)
{
    process_version_write(writer, version);
}

ErrorCode api_process_versions(void *context, Request *request, Response *response, Error *reterr)
{
    Api                 *api    = context;
    ProcessVersionFilter filter = {.domain = request_query(request, "domain"),
                                   .type   = request_query(request, "type"),
                                   .bound  = api_bound_domains(request)};
    ProcessVersion      *list;
    int                  count;

    TRY(page_take(request, &filter.limit, &filter.before, reterr));
    TRY(process_versions(api->pool, request_deadline(request), request_arena(request), &filter, &list, &count, reterr));
    page_write(filter.limit, list, count, PAGE_ROW(ProcessVersion, version_write, id), response);
    return OK;
}

/* ---- signal ---- */

static ErrorCode signal_read(Request *request, ProcessSignal *ret_signal, Error *reterr)
{
    size_t      size;
    const char *body = request_body(request, &size), *key;
    char       *made = arena_array(request_arena(request), char, UUID_TEXT_SIZE);

    TRY(api_key_text(request, &key, reterr));
    if (size > 0)
        TRY(reader_check(body, size, reterr));
    uuid_new(made);
    *ret_signal = (ProcessSignal){.name    = request_capture(request, "name"),
                                  .payload = size > 0 ? arena_bytes(request_arena(request), body, size) : NULL,
                                  .key     = key ? key : made,
                                  .actor   = request_principal(request),
                                  .step    = request_query(request, "step")};
    return OK;
}

ErrorCode api_process_signal(void *context, Request *request, Response *response, Error *reterr)
{
    Api            *api = context;
    char            id[UUID_TEXT_SIZE];
    ProcessName     name;
    ProcessSignal   signal;
    ProcessSignaled signaled;

    TRY(name_read(request, id, &name, reterr));
    TRY(signal_read(request, &signal, reterr));
    TRY(process_signal(api->pool, request_deadline(request), API_LOCK_MS, request_arena(request), name, &signal,
                       &signaled, reterr));
    waker_notify_names(api->waker, signaled.wake);
    metric_observe_us(&process_metrics_of(signaled.domain)->signal_seconds,
                      mono_us_between(request_began(request), clock_mono()));
    if (strcmp(signaled.verdict, "REPEATED") == 0)
        api_replayed_set(response);
    response->status = 201;
    response_header(response, "Pawl-Status", signaled.verdict);
    process_signaled_write(response_writer(response), request_arena(request), id, &signal, &signaled,
                           /* with_verdict= */ false);
    return OK;
}

/* ---- move ---- */

/* The route's scope is an operator's. */
static ErrorCode decider_check(const Request *request, Error *reterr)
{
    return domain_check(request, PROCESS_DOMAIN_PREFIX, DOMAIN_CANCEL, reterr);
}

ErrorCode api_process_move(void *context, Request *request, Response *response, Error *reterr)
{
    Api               *api = context;
    char               id[UUID_TEXT_SIZE];
    ProcessName        name;
    ProcessMoveRequest given;
    ProcessMoved      *moved;

    TRY(decider_check(request, reterr));
    TRY(name_read(request, id, &name, reterr));
    TRY(api_body_read(request, &process_move_table, &given, reterr));
    TRY(process_move(api->pool, request_deadline(request), API_LOCK_MS, request_arena(request),
                     (CommandNames){&name.id, &name.domain, 1}, (int)given.version, api_actor(request, given.by),
                     given.reason, &moved, reterr));
    TRY(process_moved_check(id, (int)given.version, moved, reterr));
    if (!moved->is_new)
        api_replayed_set(response);
    else if (moved->domains)
        waker_notify(api->waker, moved->domains);
    process_moved_write(response_writer(response), id, (int)given.version, moved);
    return OK;
}

/* ---- decide ---- */

/* table: the fields that the decision takes. */
static ErrorCode decide(Api *api, Request *request, ProcessVerb verb, const FieldTable *table, Response *response,
                        Error *reterr)
{
    ProcessDecisionRequest given = {0};
    ProcessDecision        decision;
    char                   id[UUID_TEXT_SIZE];
    ProcessName            name;
    Decision              *made;

    TRY(decider_check(request, reterr));
    TRY(api_body_read_if_any(request, table, &given, reterr));
    TRY(name_read(request, id, &name, reterr));
    decision = process_request_decision(verb, &given, api_actor(request, given.by));
    TRY(process_decide(api->pool, request_deadline(request), API_LOCK_MS, request_arena(request),
                       (CommandNames){&name.id, &name.domain, 1}, &decision, &made, reterr));
    return api_decision_answer(api, "process", id, made, response, reterr);
}

ErrorCode api_process_retry(void *context, Request *request, Response *response, Error *reterr)
{
    return decide(context, request, PROCESS_RETRY, &process_retry_table, response, reterr);
}

ErrorCode api_process_cancel(void *context, Request *request, Response *response, Error *reterr)
{
    return decide(context, request, PROCESS_CANCEL, &process_cancel_table, response, reterr);
}

ErrorCode api_process_complete(void *context, Request *request, Response *response, Error *reterr)
{
    return decide(context, request, PROCESS_COMPLETE, &process_complete_table, response, reterr);
}
