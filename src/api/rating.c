/*
 * rating.c - ratings over HTTP: leaderboard, matches of a player, matches of a group. Reading only.
 *
 * A key with the scope rating reads published groups; one with read or admin reads all.
 */
#include <errno.h>
#include <stdlib.h>

#include "api/api.h"
#include "api/page.h"
#include "base/writer.h"
#include "rating/read.h"

const RouteParameter api_rating_board_parameters[] = {
    {"limit", "how many at most", PARAMETER_I64, .min = 1, .max = BOARD_LIMIT_MAX, .fallback = PAGE_LIMIT_DEFAULT},
    {"offset", "how many places to leave out first", PARAMETER_I64, .min = 0, .max = 1000000},
    {NULL, NULL},
};
const RouteParameter api_rating_page_parameters[] = {
    PAGE_PARAMETERS,
    {NULL, NULL},
};
const RouteParameter api_rating_captures[] = {
    {"chat", "id of the group, such as -1001234567890", PARAMETER_I64, .min = INT64_MIN, .max = INT64_MAX},
    {"user", "id of the player, or @username"},
    {NULL, NULL},
};

static ErrorCode read_begin(const Request *request, RatingRead *ret_read, Error *reterr)
{
    const char *text = request_capture(request, "chat");
    char       *end;

    errno             = 0;
    ret_read->chat_id = strtoll(text, &end, 10);
    if (errno || *end || end == text)
        return fail(reterr, ERR_INVALID, "chat must be a number, got \"%.60s\"", text);
    ret_read->published_only = !(request_scopes(request) & (SCOPE_READ | SCOPE_ADMIN));
    return OK;
}

ErrorCode api_rating_board(void *context, Request *request, Response *response, Error *reterr)
{
    Api       *api  = context;
    RatingRead read = {0};
    BoardRow  *list;
    int64_t    limit, total;
    int        count;

    TRY(read_begin(request, &read, reterr));
    TRY(request_query_i64(request, "limit", 1, BOARD_LIMIT_MAX, PAGE_LIMIT_DEFAULT, &limit, reterr));
    TRY(request_query_i64(request, "offset", 0, 1000000, 0, &read.offset, reterr));
    read.limit = (int)limit;
    TRY(rating_read_board(api->pool, request_deadline(request), request_arena(request), &read, &list, &count, &total,
                          reterr));
    Writer *writer = response_writer(response);
    writer_object(writer, NULL);
    writer_i64(writer, "chat", read.chat_id);
    writer_array(writer, "items");
    for (int i = 0; i < count; i++)
        board_row_write(writer, &list[i]);
    writer_end(writer);
    writer_i64(writer, "total", total);
    writer_end(writer);
    return OK;
}

ErrorCode api_rating_history(void *context, Request *request, Response *response, Error *reterr)
{
    Api         *api  = context;
    RatingRead   read = {.player = request_capture(request, "user")};
    PlayerMatch *list;
    int          count;

    TRY(read_begin(request, &read, reterr));
    TRY(page_take(request, &read.limit, &read.before, reterr));
    TRY(rating_read_history(api->pool, request_deadline(request), request_arena(request), &read, &list, &count,
                            reterr));
    page_write(read.limit, list, count, PAGE_ROW(PlayerMatch, board_player_write, match_id), response);
    return OK;
}

ErrorCode api_rating_matches(void *context, Request *request, Response *response, Error *reterr)
{
    Api        *api  = context;
    RatingRead  read = {0};
    GroupMatch *list;
    int         count;

    TRY(read_begin(request, &read, reterr));
    TRY(page_take(request, &read.limit, &read.before, reterr));
    TRY(rating_read_matches(api->pool, request_deadline(request), request_arena(request), &read, &list, &count,
                            reterr));
    page_write(read.limit, list, count, PAGE_ROW(GroupMatch, board_match_write, id), response);
    return OK;
}
