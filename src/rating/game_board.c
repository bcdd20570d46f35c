/*
 * game_board.c - commands that only read: /ranking, /me, /stats, /history, /h2h, /chart, /export.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "rating/board.h"
#include "rating/chart.h"
#include "rating/game_inner.h"
#include "rating/metric.h"
#include "rating/rules.h"

#define HISTORY_LINES 10

/* ---- /ranking ---- */

static void ranking_lines(Turn *turn, Text *text, const BoardRow *list, int count)
{
    static const char *const medals[] = {"🥇", "🥈", "🥉"};

    for (int i = 0; i < count; i++) {
        const BoardRow *row    = &list[i];
        int             change = rating_points(row->change_week);

        text_append_char(text, '\n');
        PHRASE(text, turn->language, PHRASE_RANKING_LINE,
               row->place <= 3 ? medals[row->place - 1] : arena_print(turn->tx->arena, "%" PRId64 ".", row->place),
               turn_name(turn, row->name, row->username, row->user_id), turn_number(turn, rating_points(row->rating)),
               change ? arena_print(turn->tx->arena, " (%s)", turn_signed(turn, change)) : "",
               turn_number(turn, row->games));
    }
}

static ErrorCode board_names(Turn *turn, const BoardRow *list, int count, Error *reterr)
{
    int64_t *users = arena_array(turn->tx->arena, int64_t, count + 1);

    for (int i = 0; i < count; i++)
        users[i] = list[i].user_id;
    return turn_names(turn, users, count, reterr);
}

static ErrorCode ranking_show(Turn *turn, int64_t offset, Error *reterr)
{
    BoardRow  *list;
    int        count;
    Text       text;
    GameReply *reply;

    TRY(board_read(turn->tx, turn->group.id, offset, GAME_PAGE, &list, &count, reterr));
    if (count == 0 && offset > 0) { /* the list has become shorter */
        offset = 0;
        TRY(board_read(turn->tx, turn->group.id, 0, GAME_PAGE, &list, &count, reterr));
        if (count > 0 && turn->input->kind == GAME_MESSAGE)
            return turn_say(turn, PHRASE_RANKING_BEYOND, turn_number(turn, list[0].total));
    }
    turn_text(turn, &text);
    if (count == 0) {
        PHRASE_ALONE(&text, turn->language, PHRASE_RANKING_EMPTY);
        turn_answer(turn, text_string(&text));
        return OK;
    }
    TRY(board_names(turn, list, count, reterr));
    PHRASE(&text, turn->language, PHRASE_RANKING_HEAD, turn_number(turn, offset + 1), turn_number(turn, offset + count),
           turn_number(turn, list[0].total));
    ranking_lines(turn, &text, list, count);
    reply = turn_answer(turn, text_string(&text));
    if (offset > 0)
        turn_button(turn, reply, PHRASE_BUTTON_BEFORE, false, "top:%" PRId64,
                    offset > GAME_PAGE ? offset - GAME_PAGE : 0);
    if (offset + count < list[0].total)
        turn_button(turn, reply, PHRASE_BUTTON_AFTER, true, "top:%" PRId64, offset + GAME_PAGE);
    return OK;
}

static int64_t offset_read(const char *text)
{
    int number = ask_score(text);

    return number > 0 ? number : 0;
}

ErrorCode game_ranking(Turn *turn, Error *reterr)
{
    int64_t place = turn->ask.count == 0 ? 1 : turn->ask.count == 1 ? offset_read(turn->ask.words[0].text) : 0;

    if (place == 0)
        return turn_say(turn, PHRASE_RANKING_FORMAT, NULL);
    return ranking_show(turn, place - 1, reterr);
}

ErrorCode game_press_top(Turn *turn, const char *data, Error *reterr)
{
    return ranking_show(turn, offset_read(data), reterr);
}

/* ---- /me, /stats ---- */

/* Whose message is replied to; no user: nobody's, or a bot's, whose messages are about others. */
static AskWord replied_to(const Turn *turn)
{
    const GameUser *user = turn->input->reply_to;

    return (AskWord){.text = "", .user = user && !user->is_bot ? user : NULL};
}

static void recent_append(Text *text, const char *recent)
{
    for (; recent && *recent; recent++)
        text_append(text, *recent == 'W' ? "🟢" : *recent == 'D' ? "⚪" : "🔴");
}

static void stats_lines(Turn *turn, Text *text, const PlayerStats *stats)
{
    Text recent;

    text_append_char(text, '\n');
    if (stats->place) {
        PHRASE(text, turn->language, PHRASE_STATS_PLACE, turn_number(turn, stats->place));
        text_append_char(text, '\n');
    }
    PHRASE(text, turn->language, PHRASE_STATS_GAMES, turn_number(turn, stats->games), turn_number(turn, stats->wins),
           turn_number(turn, stats->draws), turn_number(turn, stats->losses));
    text_append_char(text, '\n');
    if (stats->streak > 1 || stats->streak < -1) {
        int64_t length = llabs(stats->streak);

        PHRASE(text, turn->language,
               phrase_of_number(turn->language, stats->streak > 0 ? PHRASE_STATS_WON_ONE : PHRASE_STATS_LOST_ONE,
                                length),
               turn_number(turn, length));
        text_append_char(text, '\n');
    }
    PHRASE(text, turn->language, PHRASE_STATS_BEST, turn_number(turn, rating_points(stats->best)));
    text_append_char(text, '\n');
    turn_text(turn, &recent);
    recent_append(&recent, stats->recent);
    PHRASE(text, turn->language, PHRASE_STATS_RECENT, text_string(&recent));
}

static ErrorCode stats_show(Turn *turn, const Player *player, Error *reterr)
{
    PlayerStats stats;
    Text        text, rating;

    TRY(board_stats(turn->tx, turn->group.id, player->player_id, &stats, reterr));
    TRY(turn_names(turn, &player->user_id, 1, reterr));
    if (stats.games == 0)
        return turn_say(turn, PHRASE_STATS_NONE, turn_player_name(turn, player));
    turn_text(turn, &text);
    turn_text(turn, &rating);
    text_print(&rating, "%d", rating_points(stats.rating));
    if (strcmp(turn->group.system, RULES_GLICKO2) == 0) {
        text_append_char(&rating, ' ');
        PHRASE(&rating, turn->language, PHRASE_STATS_DEVIATION, turn_number(turn, rating_points(stats.deviation)));
    }
    PHRASE(&text, turn->language, PHRASE_STATS_HEAD, turn_player_name(turn, player), text_string(&rating));
    stats_lines(turn, &text, &stats);
    turn_reply(turn, GAME_SAY, text_string(&text));
    return OK;
}

/* The author, as a player. *ret_found false: it was said why not. */
static ErrorCode author(Turn *turn, Player *ret_player, bool *ret_found, Error *reterr)
{
    *ret_found = turn->from_id != 0;
    if (!*ret_found)
        return turn_say(turn, PHRASE_STATS_WHOM, NULL);
    return players_get(turn->tx, turn->group.id, &turn->from_id, 1, ret_player, reterr);
}

ErrorCode game_me(Turn *turn, Error *reterr)
{
    Player player;
    bool   found;

    TRY(author(turn, &player, &found, reterr));
    return found ? stats_show(turn, &player, reterr) : OK;
}

ErrorCode game_stats(Turn *turn, Error *reterr)
{
    Player  player;
    bool    found;
    AskWord reply = replied_to(turn);

    if (turn->ask.count > 1)
        return turn_say(turn, PHRASE_STATS_WHOM, NULL);
    if (turn->ask.count == 1)
        found = turn_player(turn, &turn->ask.words[0], &player);
    else if (reply.user)
        found = turn_player(turn, &reply, &player);
    else
        return game_me(turn, reterr);
    if (found && !player.is_member)
        return turn_say(turn, PHRASE_PLAYER_BOT, turn_player_name(turn, &player));
    return found ? stats_show(turn, &player, reterr) : OK;
}

/* ---- /history ---- */

/* The times in a list, `stride` bytes apart, become those on the clocks of the group. */
static ErrorCode times_local(Turn *turn, int64_t *first, size_t stride, int count, Error *reterr)
{
    int64_t *times = arena_array(turn->tx->arena, int64_t, count + 1);
    char    *at    = (char *)first;

    for (int i = 0; i < count; i++)
        memcpy(&times[i], at + stride * (size_t)i, sizeof times[i]);
    TRY(group_times(turn->tx, turn->group.id, times, count, reterr));
    for (int i = 0; i < count; i++)
        memcpy(at + stride * (size_t)i, &times[i], sizeof times[i]);
    return OK;
}

static ErrorCode history_group(Turn *turn, Text *text, int *ret_count, Error *reterr)
{
    GroupMatch *list;
    int64_t     users[HISTORY_LINES][2];

    TRY(board_matches(turn->tx, turn->group.id, 0, HISTORY_LINES, /* with_undone= */ false, &list, ret_count, reterr));
    for (int i = 0; i < *ret_count; i++) {
        users[i][0] = list[i].a_user_id;
        users[i][1] = list[i].b_user_id;
    }
    TRY(turn_names(turn, users[0], 2 * *ret_count, reterr));
    if (*ret_count > 0)
        TRY(times_local(turn, &list->played_at, sizeof *list, *ret_count, reterr));
    PHRASE_ALONE(text, turn->language, PHRASE_HISTORY_HEAD);
    for (int i = 0; i < *ret_count; i++) {
        text_append_char(text, '\n');
        PHRASE(text, turn->language, PHRASE_HISTORY_LINE, turn_date(turn, list[i].played_at),
               turn_name(turn, list[i].a_name, list[i].a_username, list[i].a_user_id),
               turn_number(turn, list[i].score_a), turn_number(turn, list[i].score_b),
               turn_name(turn, list[i].b_name, list[i].b_username, list[i].b_user_id),
               turn_signed(turn, rating_points(list[i].a_after) - rating_points(list[i].a_before)));
    }
    return OK;
}

static ErrorCode history_player(Turn *turn, const Player *player, Text *text, int *ret_count, Error *reterr)
{
    PlayerMatch *list;
    const char  *name;
    int64_t      users[HISTORY_LINES + 1] = {player->user_id};

    TRY(board_player(turn->tx, turn->group.id, player->player_id, 0, HISTORY_LINES, &list, ret_count, reterr));
    for (int i = 0; i < *ret_count; i++)
        users[1 + i] = list[i].opponent_user_id;
    TRY(turn_names(turn, users, 1 + *ret_count, reterr));
    if (*ret_count > 0)
        TRY(times_local(turn, &list->played_at, sizeof *list, *ret_count, reterr));
    name = turn_player_name(turn, player);
    PHRASE(text, turn->language, PHRASE_HISTORY_HEAD_OF, name);
    for (int i = 0; i < *ret_count; i++) {
        text_append_char(text, '\n');
        PHRASE(text, turn->language, PHRASE_HISTORY_LINE, turn_date(turn, list[i].played_at), name,
               turn_number(turn, list[i].score), turn_number(turn, list[i].opponent_score),
               turn_name(turn, list[i].opponent, list[i].opponent_username, list[i].opponent_user_id),
               turn_signed(turn, rating_points(list[i].rating) - rating_points(list[i].rating_before)));
    }
    return OK;
}

ErrorCode game_history(Turn *turn, Error *reterr)
{
    AskWord reply = replied_to(turn);
    Player  player;
    int     count = 0;
    Text    text;

    if (turn->ask.count > 1)
        return turn_say(turn, PHRASE_HISTORY_FORMAT, NULL);
    turn_text(turn, &text);
    if (turn->ask.count == 1 || reply.user) {
        if (!turn_player(turn, turn->ask.count == 1 ? &turn->ask.words[0] : &reply, &player))
            return OK;
        TRY(history_player(turn, &player, &text, &count, reterr));
    } else {
        TRY(history_group(turn, &text, &count, reterr));
    }
    if (count == 0)
        turn_say(turn, PHRASE_HISTORY_EMPTY, NULL);
    else
        turn_reply(turn, GAME_SAY, text_string(&text));
    return OK;
}

/* ---- /h2h ---- */

ErrorCode game_h2h(Turn *turn, Error *reterr)
{
    Player     players[2];
    bool       found;
    HeadToHead head;
    Text       text;
    AskWord    reply = replied_to(turn);
    AskWord    words[2];
    int        named = turn->ask.count;

    if (named == 0 && reply.user)
        words[named++] = reply;
    else if (named == 1 || named == 2)
        memcpy(words, turn->ask.words, sizeof words);
    if (named < 1 || named > 2 || (named == 1 && !turn->from_id))
        return turn_say(turn, PHRASE_H2H_FORMAT, NULL);
    for (int i = 0; i < 2; i++) {
        if (named == 1 && i == 0)
            TRY(author(turn, &players[0], &found, reterr));
        else
            found = turn_player(turn, &words[named == 1 ? 0 : i], &players[i]);
        if (!found)
            return OK;
    }
    if (players[0].player_id == players[1].player_id)
        return turn_say(turn, PHRASE_PLAYERS_SAME, NULL);
    TRY(turn_names(turn, (const int64_t[]){players[0].user_id, players[1].user_id}, 2, reterr));
    TRY(board_head_to_head(turn->tx, turn->group.id, players[0].player_id, players[1].player_id, &head, reterr));
    TRY(group_times(turn->tx, turn->group.id, &head.last_at, 1, reterr));
    turn_text(turn, &text);
    if (head.games == 0) {
        PHRASE(&text, turn->language, PHRASE_H2H_NONE, turn_player_name(turn, &players[0]),
               turn_player_name(turn, &players[1]));
    } else {
        PHRASE(&text, turn->language, PHRASE_H2H_HEAD, turn_player_name(turn, &players[0]),
               turn_player_name(turn, &players[1]), turn_number(turn, head.wins_a), turn_number(turn, head.wins_b),
               turn_number(turn, head.draws));
        text_append_char(&text, '\n');
        PHRASE(&text, turn->language, PHRASE_H2H_POINTS, turn_number(turn, head.points_a),
               turn_number(turn, head.points_b), turn_date(turn, head.last_at));
    }
    turn_reply(turn, GAME_SAY, text_string(&text));
    return OK;
}

/* Files wait in the outbox: those of a group are limited, counted as commands of users of their own. */
#define CHART_USER  (INT64_MIN + 1)
#define EXPORT_USER INT64_MIN

static ErrorCode file_allow(Turn *turn, int64_t counter, int most, bool *ret_allowed, Error *reterr)
{
    Usage usage;

    TRY(usage_add(turn->tx, turn->group.id, counter, 0, most, &usage, reterr));
    *ret_allowed = usage.by_player <= most;
    return OK;
}

/* ---- /chart ---- */

/* The players who are named, else the best. */
static ErrorCode chart_players(Turn *turn, int64_t *ids, ChartSeries *series, int *ret_count, bool *ret_good,
                               Error *reterr)
{
    BoardRow *list;
    int       found;

    *ret_count = 0;
    *ret_good  = turn->ask.count <= GAME_CHART_PLAYERS;
    if (!*ret_good)
        turn_say(turn, PHRASE_CHART_MANY, turn_number(turn, GAME_CHART_PLAYERS));
    for (int i = 0; i < turn->ask.count && *ret_good; i++) {
        Player player;

        *ret_good           = turn_player(turn, &turn->ask.words[i], &player);
        series[*ret_count]  = (ChartSeries){.name = player.name, .username = player.username};
        ids[(*ret_count)++] = player.player_id;
    }
    if (turn->ask.count > 0)
        return OK;
    TRY(board_read(turn->tx, turn->group.id, 0, GAME_CHART_BEST, &list, &found, reterr));
    for (int i = 0; i < found; i++) {
        series[*ret_count]  = (ChartSeries){.name = list[i].name, .username = list[i].username};
        ids[(*ret_count)++] = list[i].player_id;
    }
    return OK;
}

/* Players without a match have no curve. */
static int chart_series(const BoardPoint *points, int count, const ChartSeries *players, Arena *arena,
                        ChartSeries *ret_list)
{
    int series = 0;

    for (int i = 0; i < count; i++) {
        ChartSeries *one;
        ChartPoint  *at;

        if (i == 0 || points[i].ord != points[i - 1].ord) {
            ret_list[series]        = players[points[i].ord - 1];
            ret_list[series].points = arena_array(arena, ChartPoint, count + 1);
            one                     = &ret_list[series++];
            at                      = &one->points[one->count++];
            *at                     = (ChartPoint){points[i].at, points[i].before};
        }
        one                       = &ret_list[series - 1];
        one->points[one->count++] = (ChartPoint){points[i].at, points[i].rating};
    }
    return series;
}

ErrorCode game_chart(Turn *turn, Error *reterr)
{
    int64_t     ids[GAME_CHART_PLAYERS];
    ChartSeries named[GAME_CHART_PLAYERS], series[GAME_CHART_PLAYERS];
    BoardPoint *points;
    int         players, count;
    bool        good, allowed;
    Error       unable = {0};
    Text        title, caption;
    GameReply  *reply;
    Mono        begun = clock_mono();
    const void *png;
    size_t      size;

    TRY(chart_players(turn, ids, named, &players, &good, reterr));
    if (!good)
        return OK;
    TRY(board_points(turn->tx, turn->group.id, ids, players, CHART_POINTS_MAX, &points, &count, reterr));
    if (count == 0)
        return turn_say(turn, PHRASE_CHART_EMPTY, NULL);
    if (chart_check(&unable) != OK) {
        log_error(LOG_ERROR, "rating", "cannot draw a chart", &unable);
        return turn_say(turn, PHRASE_CHART_UNABLE, NULL);
    }
    TRY(file_allow(turn, CHART_USER, GAME_CHARTS, &allowed, reterr));
    if (!allowed)
        return turn_say(turn, PHRASE_CHART_OFTEN, turn_number(turn, GAME_CHARTS));
    TRY(times_local(turn, &points->at, sizeof *points, count, reterr));
    TRY(group_timezone(turn->tx, turn->group.id, &turn->timezone, reterr));
    turn_text(turn, &title);
    PHRASE(&title, turn->language, PHRASE_CHART_TITLE, turn->group.title);
    TRY(chart_draw(text_string(&title), turn->language, series,
                   chart_series(points, count, named, turn->tx->arena, series), turn->tx->arena, &png, &size, reterr));
    turn_text(turn, &caption);
    PHRASE(&caption, turn->language, PHRASE_CHART_CAPTION, turn->timezone);
    metric_observe_us(&rating_metrics.charts, mono_us_between(begun, clock_mono()));
    reply            = turn_reply(turn, GAME_PHOTO, text_string(&caption));
    reply->file      = png;
    reply->file_size = size;
    reply->file_name = "chart.png";
    return OK;
}

/* ---- /export ---- */

ErrorCode game_export(Turn *turn, Error *reterr)
{
    Text       matches, ratings, caption;
    int        matches_count, ratings_count;
    bool       more;
    GameReply *reply;
    bool       allowed;

    TRY(file_allow(turn, EXPORT_USER, 1, &allowed, reterr));
    if (!allowed)
        return turn_say(turn, PHRASE_EXPORT_OFTEN, NULL);
    TRY(board_export_matches(turn->tx, turn->group.id, GAME_FILE_MAX, &matches, &matches_count, &more, reterr));
    TRY(board_export_ratings(turn->tx, turn->group.id, GAME_FILE_MAX, &ratings, &ratings_count, reterr));
    turn_text(turn, &caption);
    PHRASE(&caption, turn->language, more ? PHRASE_EXPORT_CAPTION_MORE : PHRASE_EXPORT_CAPTION_MATCHES,
           turn_number(turn, matches_count));
    reply            = turn_reply(turn, GAME_DOCUMENT, text_string(&caption));
    reply->file      = matches.bytes;
    reply->file_size = matches.length;
    reply->file_name = "matches.csv";
    turn_text(turn, &caption);
    PHRASE(&caption, turn->language, PHRASE_EXPORT_CAPTION_RATINGS, turn_number(turn, ratings_count));
    reply            = turn_reply(turn, GAME_DOCUMENT, text_string(&caption));
    reply->file      = ratings.bytes;
    reply->file_size = ratings.length;
    reply->file_name = "ratings.csv";
    return OK;
}
