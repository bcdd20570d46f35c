/*
 * command.c - commands over HTTP: send, show, list.
 */
#include "bus/command.h"
#include "api/api.h"
#include "api/bound.h"
#include "api/domain.h"
#include "api/page.h"
#include "base/uuid.h"
#include "base/writer.h"
#include "bus/send_fields.h"
#include "http/suspend.h"

/* ---- send ---- */

static ErrorCode send_end(void *context, Request *request, Response *response, Error *reterr)
{
    const Api      *api = context;
    const SendItem *item;

    TRY(api_item_sent(request, response, &item, reterr));
    if (item->status)
        response_header(response, "Pawl-Status", item->status);
    response_header(response, "Pawl-Key-Days", arena_print(request_arena(request), "%lld", (long long)api->key_days));
    sent_write(response_writer(response), "command_id", item);
    return OK;
}

ErrorCode api_command_send(void *context, Request *request, Response *response, Error *reterr)
{
    SendItem    item;
    SendRequest given;

    (void)response;
    TRY(api_body_read(request, &send_table, &given, reterr));
    TRY(api_key_field_take(request, given.key, "command_id", &given.command_id, reterr));
    TRY(api_key_take(request, "command_id", &given.command_id, reterr));
    TRY(domain_check(request, given.domain, DOMAIN_SEND, reterr));
    TRY(send_request_item(&given, request_principal(request), request_arena(request), &item, reterr));
    item.is_keyed = given.key || api_key_is_given(request);
    api_item_submit(context, request, &item, send_end);
    return OK;
}

/* ---- read ---- */

const RouteParameter api_command_parameters[] = {
    {"domain", "only this domain", .names = NAMES_DOMAIN},
    {"status", "only this status", .words = command_statuses},
    {"type", "only this type"},
    {"since", "not sent before this moment", PARAMETER_TIME},
    {"until", "not sent after this moment", PARAMETER_TIME},
    {"batch_id", "only of this batch", PARAMETER_UUID, .names = NAMES_BATCH},
    {"correlation_id", "only with this correlation id"},
    {"key", "only those that were sent under this Idempotency-Key, by the same API key"},
    {"order_key", "only with this order key"},
    PAGE_PARAMETERS,
    {NULL, NULL},
};

const RouteParameter api_tsq_parameters[] = {
    {"domain", "only this domain", .names = NAMES_DOMAIN},
    {"type", "only this type"},
    {"since", "not sent before this moment", PARAMETER_TIME},
    {"until", "not sent after this moment", PARAMETER_TIME},
    {"batch_id", "only of this batch", PARAMETER_UUID, .names = NAMES_BATCH},
    {"correlation_id", "only with this correlation id"},
    {"key", "only those that were sent under this Idempotency-Key, by the same API key"},
    {"order_key", "only with this order key"},
    PAGE_PARAMETERS,
    {NULL, NULL},
};

const RouteParameter api_command_domain_parameters[] = {
    {"domain", "the command's domain; needed only where several domains have this id", .names = NAMES_DOMAIN},
    {NULL, NULL},
};

const RouteParameter api_command_show_parameters[] = {
    {"domain", "the command's domain; needed only where several domains have this id", .names = NAMES_DOMAIN},
    API_WAIT_PARAMETER,
    {NULL, NULL},
};

static bool command_may_wait(const OutcomeWait *wait, const char *domain)
{
    return domain_is_open(api_waiting_request(wait), domain, DOMAIN_READ);
}

ErrorCode api_command_show(void *context, Request *request, Response *response, Error *reterr)
{
    Api        *api = context;
    char        id[UUID_TEXT_SIZE];
    const char *json;

    TRY(api_id_take(request, id, reterr));
    if (api_waits(request))
        return api_wait(api, request, response,
                        &(OutcomeWait){.command_id = id,
                                       .domain     = request_query(request, "domain"),
                                       .may_wait   = command_may_wait},
                        reterr);
    TRY(domain_check_id(api, request, id, DOMAIN_READ, reterr));
    TRY(command_show(api->pool, request_deadline(request), request_arena(request), id, request_query(request, "domain"),
                     &json, reterr));
    text_append(&response->body, json);
    return OK;
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

static ErrorCode filter_take(Request *request, CommandFilter *filter, Error *reterr)
{
    const char *key = request_query(request, "key"), *batch = request_query(request, "batch_id");
    char        id[UUID_TEXT_SIZE];

    TRY(api_moment_take(request, "since", &filter->since, reterr));
    TRY(api_moment_take(request, "until", &filter->until, reterr));
    if (batch && !uuid_parse(batch, id))
        return fail(reterr, ERR_INVALID, "batch_id must be a UUID, got \"%.60s\"", batch);
    filter->batch_id = batch ? arena_text(request_arena(request), id) : NULL;
    TRY(api_key_field_take(request, key, "command_id", &filter->command_id, reterr));
    filter->correlation_id = request_query(request, "correlation_id");
    filter->order_key      = request_query(request, "order_key");
    return OK;
}

static ErrorCode list_answer(Api *api, Request *request, const char *status, Response *response, Error *reterr)
{
    CommandFilter filter = {.domain = request_query(request, "domain"),
                            .status = status,
                            .type   = request_query(request, "type"),
                            .bound  = api_bound_domains(request)};
    Command      *list;
    int64_t       next;
    int           count;

    TRY(domain_check(request, filter.domain, DOMAIN_READ, reterr));
    TRY(filter_take(request, &filter, reterr));
    TRY(page_take(request, &filter.limit, &filter.before, reterr));
    TRY(command_list(api->pool, request_deadline(request), request_arena(request), &filter, &list, &count, &next,
                     reterr));
    count = list_filter(request, list, count);
    page_write_next(list, count, next, PAGE_ROW(Command, command_write, id), response);
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
