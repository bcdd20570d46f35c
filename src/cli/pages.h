/*
 * pages.h - a list that is read page by page and printed as one.
 *
 * A page may be short, even empty, and have a next one: a filter that matches few of many rows has pages without any. On a terminal the rows that were
 * read are shown meanwhile.
 */
#ifndef CLI_PAGES_H
#define CLI_PAGES_H

#include <stdint.h>

#include "cli/command.h"
#include "cli/print.h"

/* Reads at most `limit` rows below the cursor `before` (0: from the newest on) into the arena. *ret_next: where the next page begins; 0: there is none. */
typedef ErrorCode PageRead(Call *call, Arena *arena, const void *filter, int limit, int64_t before, void *ret_rows,
                           int *ret_count, int64_t *ret_next, Error *reterr);

typedef struct {
    PageRead        *read;
    const void      *filter;
    const ListShape *shape;
    int              limit;     /* of the list */
    int              page_rows; /* that a page reads at most */
} Pages;

#define PAGES_LIMIT_MAX 100000 /* rows of a list */

must_check ErrorCode list_pages(Call *call, const Pages *pages, Error *reterr);

#endif
