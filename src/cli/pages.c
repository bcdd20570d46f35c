/*
 * pages.c - see pages.h.
 */
#include "cli/pages.h"

#include "cli/progress.h"

#define PAGE_MAX 1000

static int page_limit(int left)
{
    return left < PAGE_MAX ? left : PAGE_MAX;
}

ErrorCode list_pages(Call *call, const Pages *pages, Error *reterr)
{
    Progress  progress;
    List      list;
    int64_t   before = 0, read = 0;
    int       left = pages->limit, count;
    ErrorCode code;

    progress_begin(&progress);
    list_begin(&list, pages->shape, call->arena, call->json);
    do {
        scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
        void                     *rows;

        code =
            pages->read(call, arena, pages->filter, page_limit(left), before, (void *)&rows, &count, &before, reterr);
        if (code != OK)
            break;
        list_rows(&list, rows, count);
        left -= count;
        progress_show(&progress, ++read * pages->page_rows, "rows read");
    } while (left > 0 && before);
    progress_end(&progress);
    if (code == OK)
        list_end(&list);
    return code;
}
