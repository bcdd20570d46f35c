/*
 * dead_letter.c - list, retry and delete dead letters.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "api/api.h"
#include "base/reader.h"
#include "bus/dead_letter.h"

#define LIMIT_DEFAULT  100
#define LIMIT_MAX      1000
#define PAGE_BYTES_MAX (TEXT_MAX_BODY / 2) /* the letter that reaches it is the last one of its page */

static const char *const letter_status_names[] = {"pending", "retrying", "failed", "resolved", NULL};

const RouteParameter api_dead_letter_parameters[] = {
    {"status", "only this status; all but resolved when absent", .words = letter_status_names},
    {"type", "only operations of this type"},
    {"limit", "how many at most", PARAMETER_I64, .min = 1, .max = 1000, .fallback = 100},
    {"cursor", "next_cursor of the page before", PARAMETER_I64, .min = 1},
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
    int64_t          limit;
    int              count, shown = 0;
    Writer           writer;

    TRY(request_query_i64(request, "limit", 1, LIMIT_MAX, LIMIT_DEFAULT, &limit, reterr));
    TRY(request_query_i64(request, "cursor", 1, INT64_MAX, 0, &filter.before, reterr));
    filter.limit = (int)limit;
    TRY(dead_letter_list(api->pool, request_deadline(request), request_arena(request), &filter, &list, &count, reterr));
    writer_open(&writer, &response->body);
    writer_object(&writer, NULL);
    writer_array(&writer, "items");
    while (shown < count && response->body.length < PAGE_BYTES_MAX)
        dead_letter_write(&writer, &list[shown++]);
    writer_end(&writer);
    if (shown == limit || shown < count)
        writer_i64(&writer, "next_cursor", list[shown - 1].id);
    else
        writer_null(&writer, "next_cursor");
    writer_end(&writer);
    return OK;
}

ErrorCode api_dead_letter_retry(void *context, Request *request, Response *response, Error *reterr)
{
    Api       *api = context;
    DeadLetter letter;
    int64_t    id;
    Writer     writer;

    TRY(id_read(request, &id, reterr));
    TRY(api_nothing_take(request, reterr));
    TRY(dead_letter_retry(api->pool, request_deadline(request), request_arena(request), id, &letter, reterr));
    writer_open(&writer, &response->body);
    dead_letter_write(&writer, &letter);
    return OK;
}

ErrorCode api_dead_letter_delete(void *context, Request *request, Response *response, Error *reterr)
{
    Api    *api = context;
    int64_t id;

    TRY(id_read(request, &id, reterr));
    TRY(dead_letter_delete(api->pool, request_deadline(request), id, reterr));
    response->status = 204;
    return OK;
}
