/*
 * page.c - see page.h.
 */
#include "api/page.h"

#include <string.h>

#define NEXT_IS_LAST   (-1)
#define PAGE_BYTES_MAX (TEXT_MAX_BODY / 2) /* the row that reaches it is the last one of its page */

ErrorCode page_take(Request *request, int *ret_limit, int64_t *ret_before, Error *reterr)
{
    int64_t limit;

    TRY(request_query_i64(request, "limit", 1, PAGE_LIMIT_MAX, PAGE_LIMIT_DEFAULT, &limit, reterr));
    TRY(request_query_i64(request, "cursor", 1, INT64_MAX, 0, ret_before, reterr));
    *ret_limit = (int)limit;
    return OK;
}

void page_write_next(const void *list, int count, int64_t next, const PageRow *row, Response *response)
{
    int     shown = 0;
    int64_t last  = 0;

    Writer *writer = response_writer(response);

    writer_object(writer, NULL);
    writer_array(writer, "items");
    for (const char *at = list; shown < count && response->body.length < PAGE_BYTES_MAX; at += row->size, shown++) {
        row->write(writer, at);
        memcpy(&last, at + row->id, sizeof last);
    }
    writer_end(writer);
    if (shown < count || next == NEXT_IS_LAST)
        writer_i64(writer, "next_cursor", last);
    else if (next)
        writer_i64(writer, "next_cursor", next);
    else
        writer_null(writer, "next_cursor");
    writer_end(writer);
}

void page_write(int limit, const void *list, int count, const PageRow *row, Response *response)
{
    page_write_next(list, count, count == limit ? NEXT_IS_LAST : 0, row, response);
}
