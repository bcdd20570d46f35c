/*
 * command_rating.c - pawl rating leaderboard, history and verify.
 */
#include <stddef.h>
#include <stdio.h>

#include "base/writer.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/progress.h"
#include "rating/read.h"
#include "rating/verify.h"

#define VERIFY_MS 3600000

static ErrorCode read_begin(Call *call, RatingRead *ret_read, Error *reterr)
{
    TRY(call_number("CHAT", call->arguments[0], INT64_MIN, INT64_MAX, 0, &ret_read->chat_id, reterr));
    return call_limit(call, BOARD_LIMIT_MAX, &ret_read->limit, reterr);
}

/* ---- leaderboard ---- */

static void board_table(Call *call, const BoardRow *list, int count)
{
    static const char *const head[] = {">place", "name", "username", ">rating", ">games", ">7 days", NULL};
    Table                    table;

    table_init(&table, call->arena, head);
    for (int i = 0; i < count; i++) {
        table_cell_i64(&table, list[i].place);
        table_cell(&table, list[i].name);
        table_cell(&table, list[i].username);
        table_cell_i64(&table, rating_points(list[i].rating));
        table_cell_i64(&table, list[i].games);
        table_cell(&table, arena_print(call->arena, "%+d", rating_points(list[i].change_week)));
    }
    table_print(&table, "no player has a place yet");
}

ErrorCode command_rating_leaderboard(Call *call, Error *reterr)
{
    RatingRead read = {0};
    BoardRow  *list;
    int        count;

    TRY(read_begin(call, &read, reterr));
    TRY(call_open(call, APP_SCHEMA, reterr));
    TRY(rating_read_board(call->pool, deadline_in_ms(APP_COMMAND_MS), call->arena, &read, &list, &count,
                          /* ret_total= */ NULL, reterr));
    if (call->json)
        list_print(&(ListShape){.row_size = sizeof *list, .write = board_row_write}, call->arena, true, list, count);
    else
        board_table(call, list, count);
    return OK;
}

/* ---- history ---- */

static void history_table(Call *call, const PlayerMatch *list, int count)
{
    static const char *const head[] = {">match", "played", "opponent", ">score", ">change", ">rating", NULL};
    Table                    table;

    table_init(&table, call->arena, head);
    for (int i = 0; i < count; i++) {
        table_cell_i64(&table, list[i].match_id);
        table_cell_time(&table, list[i].played_at);
        table_cell(&table, list[i].opponent);
        table_cell(&table, arena_print(call->arena, "%d:%d", list[i].score, list[i].opponent_score));
        table_cell(&table, arena_print(call->arena, "%+d",
                                       rating_points(list[i].rating) - rating_points(list[i].rating_before)));
        table_cell_i64(&table, rating_points(list[i].rating));
    }
    table_print(&table, "no matches");
}

ErrorCode command_rating_history(Call *call, Error *reterr)
{
    RatingRead   read = {.player = call->arguments[1]};
    PlayerMatch *list;
    int          count;

    TRY(read_begin(call, &read, reterr));
    TRY(call_open(call, APP_SCHEMA, reterr));
    TRY(rating_read_history(call->pool, deadline_in_ms(APP_COMMAND_MS), call->arena, &read, &list, &count, reterr));
    if (call->json)
        list_print(&(ListShape){.row_size = sizeof *list, .write = board_player_write}, call->arena, true, list, count);
    else
        history_table(call, list, count);
    return OK;
}

/* ---- verify ---- */

static void show(void *context, int64_t matches)
{
    progress_show_more(context, matches, "matches", "");
}

static void report_print(Call *call, const RatingReport *report)
{
    if (report->findings.count > 0) {
        findings_print(call, &report->findings);
        return;
    }
    printf("the ratings are consistent: %lld matches of %lld players in %lld group%s, %.1f s\n",
           (long long)report->matches, (long long)report->players, (long long)report->groups,
           report->groups == 1 ? "" : "s", (double)report->took_ms / 1000);
}

ErrorCode command_rating_verify(Call *call, Error *reterr)
{
    Progress            progress;
    RatingReport       *report  = arena_alloc(call->arena, sizeof *report);
    RatingVerifyOptions options = {.progress = show, .context = &progress};
    ErrorCode           code;

    if (call->count > 0)
        TRY(call_number("CHAT", call->arguments[0], INT64_MIN, INT64_MAX, 0, &options.chat_id, reterr));
    TRY(call_open(call, APP_SCHEMA, reterr));
    progress_begin(&progress);
    code = rating_verify(call->pool, &options, VERIFY_MS, call->arena, report, reterr);
    progress_end(&progress);
    TRY(code);
    if (call->json) {
        Writer *writer = print_writer(call->arena);

        rating_report_write(writer, report);
        print_json(writer);
    } else {
        report_print(call, report);
    }
    return findings_verdict(&report->findings, reterr);
}
