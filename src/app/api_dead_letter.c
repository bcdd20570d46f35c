/*
 * api_dead_letter.c - list, retry and delete dead letters.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "app/api.h"
#include "app/daemon.h"
#include "app/letter.h"
#include "base/reader.h"
#include "pg/dead_letter.h"

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

void letter_write(Writer *writer, const DeadLetter *letter)
{
    writer_object(writer, NULL);
    writer_i64(writer, "id", letter->id);
    writer_text(writer, "operation_type", letter->operation_type);
    writer_text(writer, "operation_key", letter->operation_key);
    writer_raw(writer, "operation_data", letter->operation_data);
    writer_text(writer, "error_message", letter->error_message);
    writer_text(writer, "error_code", letter->error_code);
    writer_i64(writer, "retry_count", letter->retry_count);
    writer_text(writer, "status", letter->status);
    writer_time(writer, "created_at", letter->created_at);
    writer_time(writer, "last_retry_at", letter->last_retry_at);
    writer_end(writer);
}

static ErrorCode id_read(Request *request, int64_t *ret_id, Error *reterr)
{
    const char *text = request_capture(request, "id");
    char       *end;

    *ret_id = strtoll(text, &end, 10);
    if (text[0] < '1' || text[0] > '9' || *end || end - text > 18)
        return fail(reterr, ERR_INVALID, "id must be the number of a dead letter");
    return OK;
}

ErrorCode api_dead_letter_list(void *context, Request *request, Response *response, Error *reterr)
{
    Daemon          *daemon = context;
    DeadLetterFilter filter = {.status = request_query(request, "status"), .type = request_query(request, "type")};
    DeadLetter      *list;
    int64_t          limit;
    int              count, shown = 0;
    Writer           writer;

    TRY(request_query_i64(request, "limit", 1, LIMIT_MAX, LIMIT_DEFAULT, &limit, reterr));
    TRY(request_query_i64(request, "cursor", 1, INT64_MAX, 0, &filter.before, reterr));
    filter.limit = (int)limit;
    TRY(dead_letter_list(daemon->app->pool, request_deadline(request), request_arena(request), &filter, &list, &count,
                         reterr));
    writer_open(&writer, &response->body);
    writer_object(&writer, NULL);
    writer_array(&writer, "items");
    while (shown < count && response->body.length < PAGE_BYTES_MAX)
        letter_write(&writer, &list[shown++]);
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
    Daemon    *daemon = context;
    DeadLetter letter;
    int64_t    id;
    Writer     writer;

    TRY(id_read(request, &id, reterr));
    TRY(api_nothing_take(request, reterr));
    TRY(dead_letter_retry(daemon->app->pool, request_deadline(request), request_arena(request), id, &letter, reterr));
    writer_open(&writer, &response->body);
    letter_write(&writer, &letter);
    return OK;
}

ErrorCode api_dead_letter_delete(void *context, Request *request, Response *response, Error *reterr)
{
    Daemon *daemon = context;
    int64_t id;

    TRY(id_read(request, &id, reterr));
    TRY(dead_letter_delete(daemon->app->pool, request_deadline(request), id, reterr));
    response->status = 204;
    return OK;
}
