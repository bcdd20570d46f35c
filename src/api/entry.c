/*
 * entry.c - the entries of a wallet over HTTP: entries newest first, statements oldest first.
 *
 * Both are returned in pages. A page is read in chunks with an arena each, and it ends early where it grows large: its
 * cursor is where the next page starts.
 */
#include <string.h>

#include "api/api.h"
#include "api/bound.h"
#include "base/writer.h"
#include "wallet/entry.h"

#define LIMIT_MAX      1000
#define LIMIT_DEFAULT  100
#define CHUNK_ENTRIES  250                 /* with the largest metadata they fit into an arena */
#define CSV_LINE_END   "\r\n"              /* RFC 4180 */
#define PAGE_BYTES_MAX (TEXT_MAX_BODY / 2) /* the entry that reaches it is the last one */

static const char *const format_names[] = {"json", "csv", NULL};

const RouteParameter api_entry_parameters[] = {
    {"asset", "CREDIT when absent"},
    {"kind", "only these: topup, spend, transfer, ..."},
    {"since", "not before this moment", PARAMETER_TIME},
    {"until", "not after this moment", PARAMETER_TIME},
    {"limit", "how many at most", PARAMETER_I64, .min = 1, .max = LIMIT_MAX, .fallback = LIMIT_DEFAULT},
    {"cursor", "next_cursor of the page before"},
    {NULL, NULL},
};

const RouteParameter api_statement_parameters[] = {
    {"asset", "CREDIT when absent"},
    {"format", "json when absent", .words = format_names},
    {"since", "not before this moment", PARAMETER_TIME},
    {"until", "not after this moment", PARAMETER_TIME},
    {"limit", "how many at most", PARAMETER_I64, .min = 1, .max = ENTRIES_MAX, .fallback = ENTRIES_MAX},
    {"cursor", "next_cursor of the page before; also the header Pawl-Next-Cursor"},
    {NULL, NULL},
};

typedef ErrorCode ListRead(Pool *pool, Deadline deadline, Arena *arena, const EntryFilter *filter, Entry **ret_list,
                           int *ret_count, Error *reterr);
typedef struct {
    const char *name;
    ListRead   *read;
    int         limit_max, limit_default;
} List;
static const List entries   = {"entries", entry_list, LIMIT_MAX, LIMIT_DEFAULT};
static const List statement = {"statement", statement_page, ENTRIES_MAX, ENTRIES_MAX};

typedef struct {
    const List  *list;
    const Bound *owners; /* of the client's key; NULL: all */
    EntryFilter  filter;
    bool         csv;
    Text        *body;
    Writer       writer;
    int64_t      last; /* number of the last entry written */
    const char  *next; /* cursor; NULL: there is no more */
} Page;

/* ---- what is asked for ---- */

static ErrorCode filter_read(Request *request, const List *list, EntryFilter *ret_filter, Error *reterr)
{
    EntryFilter filter = {.owner = request_capture(request, "owner"), .asset = request_query(request, "asset")};
    int64_t     limit;

    if (list == &entries)
        filter.kind = request_query(request, "kind");
    TRY(wallet_check_owner_seen("owner", filter.owner, reterr));
    TRY(api_moment_take(request, "since", &filter.since, reterr));
    TRY(api_moment_take(request, "until", &filter.until, reterr));
    TRY(request_query_i64(request, "limit", 1, list->limit_max, list->limit_default, &limit, reterr));
    TRY(wallet_check_asset("asset", filter.asset, reterr));
    TRY(entry_check_kind("kind", filter.kind, reterr));
    TRY(cursor_take(request_arena(request), list->name, request_query(request, "cursor"), &filter, reterr));
    filter.limit = (int)limit;
    *ret_filter  = filter;
    return OK;
}

/* ---- pages ---- */

static void page_begin(Page *page)
{
    if (page->csv) {
        text_append(page->body, ENTRY_CSV_HEAD CSV_LINE_END);
        return;
    }
    writer_open(&page->writer, page->body);
    writer_object(&page->writer, NULL);
    writer_text(&page->writer, "owner", page->filter.owner);
    writer_text(&page->writer, "asset", page->filter.asset ? page->filter.asset : WALLET_ASSET_DEFAULT);
    writer_array(&page->writer, "items");
}

static void page_end(Page *page)
{
    if (page->csv)
        return;
    writer_end(&page->writer);
    writer_text(&page->writer, "next_cursor", page->next);
    writer_end(&page->writer);
}

/* A transfer that another client has made may have another owner on its other side. */
static bool other_is_shown(const Bound *owners, const char *other)
{
    return other && (strcmp(other, WALLET_SYSTEM) == 0 || bound_has_owner(owners, other));
}

/* How many of them were written before the page was large enough. */
static int page_add(Page *page, const Entry *list, int count)
{
    int written = 0;

    while (written < count && page->body->length < PAGE_BYTES_MAX) {
        Entry entry = list[written++];

        if (page->owners && !other_is_shown(page->owners, entry.other))
            entry.other = NULL;
        if (page->csv) {
            entry_csv_write(page->body, &entry);
            text_append(page->body, CSV_LINE_END);
        } else {
            entry_write(&page->writer, &entry);
        }
        page->last = entry.number;
    }
    return written;
}

static ErrorCode page_fill(Page *page, Pool *pool, Request *request, Error *reterr)
{
    EntryFilter filter = page->filter;
    bool        more   = true;

    for (int left = page->filter.limit; more && left > 0 && page->body->length < PAGE_BYTES_MAX; left -= filter.limit) {
        scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
        Entry                    *list;
        int                       count;

        filter.limit = left < CHUNK_ENTRIES ? left : CHUNK_ENTRIES;
        TRY(page->list->read(pool, request_deadline(request), arena, &filter, &list, &count, reterr));
        more        = page_add(page, list, count) < count || count == filter.limit;
        filter.seen = page->last;
    }
    if (more)
        page->next = cursor_text(request_arena(request), page->list->name, &page->filter, page->last);
    return OK;
}

static ErrorCode page_answer(Api *api, Request *request, const List *list, bool csv, Response *response, Error *reterr)
{
    Page page = {.list = list, .owners = api_bound_owners(request), .csv = csv, .body = &response->body};

    TRY(filter_read(request, list, &page.filter, reterr));
    page_begin(&page);
    TRY(page_fill(&page, api->pool, request, reterr));
    page_end(&page);
    if (csv)
        response->type = "text/csv; charset=utf-8";
    if (page.next)
        response_header(response, "Pawl-Next-Cursor", page.next);
    return OK;
}

ErrorCode api_entry_list(void *context, Request *request, Response *response, Error *reterr)
{
    return page_answer(context, request, &entries, /* csv= */ false, response, reterr);
}

ErrorCode api_statement(void *context, Request *request, Response *response, Error *reterr)
{
    const char *format = request_query(request, "format");
    bool        csv    = format && strcmp(format, "csv") == 0;

    if (format && !csv && strcmp(format, "json") != 0)
        return fail(reterr, ERR_INVALID, "format must be json or csv, got \"%.40s\"", format);
    return page_answer(context, request, &statement, csv, response, reterr);
}
