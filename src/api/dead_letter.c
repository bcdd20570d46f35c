/*
 * dead_letter.c - list, retry and delete dead letters.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "api/api.h"
#include "api/page.h"
#include "bus/dead_letter.h"

static const char *const letter_status_names[] = {"pending", "retrying", "failed", "resolved", NULL};

const RouteParameter api_dead_letter_parameters[] = {
    {"status", "only this status; all but resolved when absent", .words = letter_status_names},
    {"type", "only operations of this type"},
    PAGE_PARAMETERS,
    {NULL, NULL},
};

static ErrorCode id_read(Request *request, int64_t *ret_id, Error *reterr)
{
    const char *text = request_capture(request, "id");
    char       *end;

    *ret_id = strtoll(text, &end, 10);
    if (text[0] < '1' || text[0] > '9' || *end || end - text > 18)
        return fail(reterr, ERR_INVALID, "id must be the number of a dead letter, got \"%.60s\"", text);
    return OK;
}

ErrorCode api_dead_letter_list(void *context, Request *request, Response *response, Error *reterr)
{
    Api             *api    = context;
    DeadLetterFilter filter = {.status = request_query(request, "status"), .type = request_query(request, "type")};
    DeadLetter      *list;
    int              count;

    TRY(page_take(request, &filter.limit, &filter.before, reterr));
    TRY(dead_letter_list(api->pool, request_deadline(request), request_arena(request), &filter, &list, &count, reterr));
    page_write(filter.limit, list, count, PAGE_ROW(DeadLetter, dead_letter_write, id), response);
    return OK;
}

ErrorCode api_dead_letter_show(void *context, Request *request, Response *response, Error *reterr)
{
    Api       *api = context;
    DeadLetter letter;
    int64_t    id;

    TRY(id_read(request, &id, reterr));
    TRY(dead_letter_find(api->pool, request_deadline(request), request_arena(request), id, &letter, reterr));
    response_row(response, dead_letter_write, &letter);
    return OK;
}

ErrorCode api_dead_letter_retry(void *context, Request *request, Response *response, Error *reterr)
{
    Api       *api = context;
    DeadLetter letter;
    int64_t    id;

    TRY(id_read(request, &id, reterr));
    TRY(api_nothing_take(request, reterr));
    TRY(dead_letter_retry(api->pool, request_deadline(request), API_LOCK_MS, request_arena(request), id, &letter,
                          reterr));
    response_row(response, dead_letter_write, &letter);
    return OK;
}

ErrorCode api_dead_letter_delete(void *context, Request *request, Response *response, Error *reterr)
{
    Api    *api = context;
    int64_t id;

    TRY(id_read(request, &id, reterr));
    TRY(dead_letter_delete(api->pool, request_deadline(request), API_LOCK_MS, id, reterr));
    response->status = 204;
    return OK;
}
