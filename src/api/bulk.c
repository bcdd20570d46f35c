/*
 * bulk.c - one decision about all commands or processes that match a filter, over HTTP.
 */
#include "bus/bulk.h"
#include "api/api.h"
#include "api/domain.h"
#include "base/uuid.h"
#include "base/writer.h"

/* Without a domain the filter may match commands of every domain, also of reserved ones. */
static ErrorCode bulk_allow(const Request *request, const char *noun, const char *domain, Error *reterr)
{
    if (noun[0] != 'c' || (request_scopes(request) & SCOPE_ADMIN))
        return OK;
    if (!domain)
        return fail(reterr, ERR_DENIED, "filter.domain is required for a token without the scope admin");
    return domain_check(request, domain, DOMAIN_CANCEL, reterr);
}

static ErrorCode bulk_begin(Api *api, Request *request, const char *noun, const FieldTable *table, Response *response,
                            Error *reterr)
{
    Arena      *arena = request_arena(request);
    BulkRequest given;
    BulkNew     bulk;
    BulkCount   found;
    const char *id     = NULL, *domain;
    bool        is_new = true;

    TRY(api_body_read(request, table, &given, reterr));
    TRY(api_key_take(request, "operation_id", &given.operation_id, reterr));
    TRY(bulk_request_new(arena, noun, &given, &bulk, &domain, reterr));
    TRY(bulk_allow(request, noun, domain, reterr));
    bulk.actor = api_actor(request, bulk.actor);
    TRY(bulk_estimate(api->pool, request_deadline(request), arena, &bulk, &found, reterr));
    if (!given.dry_run)
        TRY(bulk_start(api->pool, request_deadline(request), arena, &bulk, &id, &is_new, reterr));
    if (!is_new)
        api_replayed_set(response);
    Writer *writer = response_writer(response);
    writer_object(writer, NULL);
    writer_text(writer, "operation_id", id);
    writer_i64(writer, "count", found.count);
    writer_bool(writer, "is_exact", found.is_exact);
    writer_end(writer);
    return OK;
}

ErrorCode api_command_bulk(void *context, Request *request, Response *response, Error *reterr)
{
    return bulk_begin(context, request, "command", &bulk_command_table, response, reterr);
}

ErrorCode api_process_bulk(void *context, Request *request, Response *response, Error *reterr)
{
    return bulk_begin(context, request, "process", &bulk_process_table, response, reterr);
}

ErrorCode api_bulk_show(void *context, Request *request, Response *response, Error *reterr)
{
    const Api *api = context;
    char       id[UUID_TEXT_SIZE];
    Bulk       bulk;

    TRY(api_id_take(request, id, reterr));
    TRY(bulk_show(api->pool, request_deadline(request), request_arena(request), id, &bulk, reterr));
    response_row(response, bulk_write, &bulk);
    return OK;
}
