/*
 * page.h - lists over HTTP: `limit` and `cursor` of the query in, `items` and `next_cursor` out.
 *
 * The cursor is the id of the last row of the page before; lists are ordered by id, newest first. A page ends early where it grows large.
 * Threads: any.
 */
#ifndef API_PAGE_H
#define API_PAGE_H

#include "base/writer.h"
#include "http/route.h"

#define PAGE_LIMIT_MAX     1000
#define PAGE_LIMIT_DEFAULT 100

typedef struct {
    int     limit;
    int64_t before; /* 0: from the newest on */
} Page;

/* Writes row `index` of the list and returns its id. */
typedef int64_t PageRowWrite(Writer *writer, const void *list, int index);

/* ERR_INVALID names the parameter. */
must_check ErrorCode page_take(Request *request, Page *ret_page, Error *reterr);
/* next: the next_cursor, 0: there is no more, if all rows fit. */
void page_write_next(const void *list, int count, int64_t next, PageRowWrite *write, Response *response);
void page_write(const Page *page, const void *list, int count, PageRowWrite *write, Response *response);

#endif
