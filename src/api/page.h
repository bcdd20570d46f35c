/*
 * page.h - lists over HTTP: `limit` and `cursor` of the query in, `items` and `next_cursor` out.
 *
 * The cursor is the id of the last row of the page before; lists are ordered by id, newest first. A page ends early where it grows large.
 * Threads: any.
 */
#ifndef API_PAGE_H
#define API_PAGE_H

#include <stddef.h>

#include "base/writer.h"
#include "http/route.h"

#define PAGE_LIMIT_MAX     1000
#define PAGE_LIMIT_DEFAULT 100

/* Rows of the table of parameters of every such list. */
#define PAGE_PARAMETERS                                                                                            \
    {"limit", "how many at most", PARAMETER_I64, .min = 1, .max = PAGE_LIMIT_MAX, .fallback = PAGE_LIMIT_DEFAULT}, \
    {                                                                                                              \
        "cursor", "next_cursor of the page before", PARAMETER_I64, .min = 1                                        \
    }

/* A list of rows, each with its id. */
typedef struct {
    RowWrite *write;
    size_t    size, id; /* of a row; where its id is */
} PageRow;
/* The id is an int64_t, or this does not compile. */
#define PAGE_ROW(Row, row_write, row_id) \
    (&(PageRow){row_write, sizeof(Row),  \
                offsetof(Row, row_id) + 0 * sizeof(char[sizeof((Row){0}.row_id) == sizeof(int64_t) ? 1 : -1])})

/* Into a filter: *ret_before 0: from the newest on. ERR_INVALID names the parameter. */
must_check ErrorCode page_take(Request *request, int *ret_limit, int64_t *ret_before, Error *reterr);
/* A page of fewer rows than the limit is the last one. */
void page_write(int limit, const void *list, int count, const PageRow *row, Response *response);
/* The same for a list whose filter may leave out rows: it says itself where the next page begins, 0: there is none. */
void page_write_next(const void *list, int count, int64_t next, const PageRow *row, Response *response);

#endif
