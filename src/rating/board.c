/*
 * board.c - see board.h.
 */
#include "rating/board.h"

#include "rating/rules.h"
#include "sql.h"

DB_SHAPE(board_row, BoardRow, BOARD_COLUMNS);
DB_SHAPE(stats, PlayerStats, STATS_COLUMNS);
DB_SHAPE(group_match, GroupMatch, GROUP_MATCH_COLUMNS);
DB_SHAPE(player_match, PlayerMatch, PLAYER_MATCH_COLUMNS);
DB_SHAPE(head, HeadToHead, HEAD_COLUMNS);
DB_SHAPE(point, BoardPoint, POINT_COLUMNS);

ErrorCode board_read(Tx *tx, int64_t group_id, int64_t offset, int limit, BoardRow **ret_list, int *ret_count,
                     Error *reterr)
{
    TRY(db_many(tx, sql_rating_board, DB_ARGS(db_i64(group_id), db_i64(offset), db_i32(limit)), &board_row_shape,
                ret_list, ret_count, reterr));
    for (int i = 0; i < *ret_count; i++) {
        BoardRow *row = *ret_list + i;

        if (row->deviation > 0)
            row->deviation = rating_deviation(row->deviation, row->volatility, row->days);
    }
    return OK;
}

ErrorCode board_places(Tx *tx, const int64_t *groups, const int64_t *players, int count, int64_t *ret_places,
                       Error *reterr)
{
    typedef struct {
        int32_t ord;
        int64_t place;
    } Place;
#define PLACE_COLUMNS(X, T) \
    X(T, I32, ord)          \
    X(T, I64, place)
    DB_SHAPE(place, Place, PLACE_COLUMNS);
    Place *rows;
    int    found;

    TRY(db_many(tx, sql_rating_places, DB_ARGS(db_i64s(tx->arena, groups, count), db_i64s(tx->arena, players, count)),
                &place_shape, &rows, &found, reterr));
    for (int i = 0; i < count; i++)
        ret_places[i] = 0;
    for (int i = 0; i < found; i++)
        ret_places[rows[i].ord - 1] = rows[i].place;
    return OK;
}

ErrorCode board_stats(Tx *tx, int64_t group_id, int64_t player_id, PlayerStats *ret_stats, Error *reterr)
{
    PlayerStats stats;

    TRY(db_one(tx, sql_rating_stats, DB_ARGS(db_i64(group_id), db_i64(player_id)), &stats_shape, &stats, reterr));
    stats.deviation = rating_deviation(stats.deviation, stats.volatility, stats.days);
    *ret_stats      = stats;
    return OK;
}

ErrorCode board_matches(Tx *tx, int64_t group_id, int64_t before, int limit, bool with_undone, GroupMatch **ret_list,
                        int *ret_count, Error *reterr)
{
    return db_many(tx, sql_rating_matches,
                   DB_ARGS(db_i64(group_id), before ? db_i64(before) : db_null(), db_i32(limit), db_bool(with_undone)),
                   &group_match_shape, ret_list, ret_count, reterr);
}

ErrorCode board_player(Tx *tx, int64_t group_id, int64_t player_id, int64_t before, int limit, PlayerMatch **ret_list,
                       int *ret_count, Error *reterr)
{
    return db_many(tx, sql_rating_player_history,
                   DB_ARGS(db_i64(group_id), db_i64(player_id), before ? db_i64(before) : db_null(), db_i32(limit)),
                   &player_match_shape, ret_list, ret_count, reterr);
}

ErrorCode board_head_to_head(Tx *tx, int64_t group_id, int64_t player_a, int64_t player_b, HeadToHead *ret_head,
                             Error *reterr)
{
    return db_one(tx, sql_rating_head_to_head, DB_ARGS(db_i64(group_id), db_i64(player_a), db_i64(player_b)),
                  &head_shape, ret_head, reterr);
}

ErrorCode board_points(Tx *tx, int64_t group_id, const int64_t *players, int count, int limit, BoardPoint **ret_list,
                       int *ret_count, Error *reterr)
{
    return db_many(tx, sql_rating_chart_points,
                   DB_ARGS(db_i64(group_id), db_i64s(tx->arena, players, count), db_i32(limit)), &point_shape, ret_list,
                   ret_count, reterr);
}

/* ---- JSON ---- */

void board_row_write(Writer *writer, const void *place)
{
    const BoardRow *row = place;

    writer_object(writer, NULL);
    writer_i64(writer, "place", row->place);
    writer_i64(writer, "user", row->user_id);
    writer_text(writer, "name", row->name);
    writer_text(writer, "username", row->username);
    writer_i64(writer, "rating", rating_points(row->rating));
    if (row->deviation > 0)
        writer_i64(writer, "deviation", rating_points(row->deviation));
    else
        writer_null(writer, "deviation");
    writer_i64(writer, "games", row->games);
    writer_i64(writer, "change_week", rating_points(row->change_week));
    writer_end(writer);
}

static void side_write(Writer *writer, const char *name, int64_t user_id, const char *shown, int score, double before,
                       double after)
{
    writer_object(writer, name);
    writer_i64(writer, "user", user_id);
    writer_text(writer, "name", shown);
    writer_i64(writer, "score", score);
    writer_i64(writer, "rating_before", rating_points(before));
    writer_i64(writer, "rating", rating_points(after));
    writer_end(writer);
}

void board_match_write(Writer *writer, const void *row)
{
    const GroupMatch *match = row;

    writer_object(writer, NULL);
    writer_i64(writer, "id", match->id);
    writer_time(writer, "played_at", match->played_at);
    side_write(writer, "a", match->a_user_id, match->a_name, match->score_a, match->a_before, match->a_after);
    side_write(writer, "b", match->b_user_id, match->b_name, match->score_b, match->b_before, match->b_after);
    writer_bool(writer, "undone", match->is_undone);
    writer_end(writer);
}

void board_player_write(Writer *writer, const void *row)
{
    const PlayerMatch       *match      = row;
    static const char *const outcomes[] = {"lost", "drawn", "won"};

    writer_object(writer, NULL);
    writer_i64(writer, "match", match->match_id);
    writer_time(writer, "played_at", match->played_at);
    writer_i64(writer, "opponent", match->opponent_user_id);
    writer_text(writer, "opponent_name", match->opponent);
    writer_i64(writer, "score", match->score);
    writer_i64(writer, "opponent_score", match->opponent_score);
    writer_text(writer, "outcome", outcomes[match->outcome + 1]);
    writer_i64(writer, "rating_before", rating_points(match->rating_before));
    writer_i64(writer, "rating", rating_points(match->rating));
    writer_end(writer);
}

/* ---- CSV ---- */

static void cell_text(Text *csv, const char *value)
{
    bool formula = value && (*value == '=' || *value == '+' || *value == '-' || *value == '@');

    text_append_char(csv, '"');
    if (formula)
        text_append_char(csv, '\'');
    for (; value && *value; value++) {
        if (*value == '"')
            text_append_char(csv, '"');
        text_append_char(csv, *value == '\n' || *value == '\r' ? ' ' : *value);
    }
    text_append_char(csv, '"');
}

static void cell_time(Text *csv, int64_t micros)
{
    char text[WALL_TEXT_SIZE];

    wall_text((Wall){micros}, text);
    text_append(csv, text);
}

/* Programs that open tables know by it that the text is UTF-8. */
#define BYTE_ORDER_MARK "\xEF\xBB\xBF"

#define EXPORT_MATCHES_MAX 20000
#define ROW_BYTES_MAX      4096

static void match_row(Text *csv, const GroupMatch *m)
{
    text_print(csv, "%lld,", (long long)m->id);
    cell_time(csv, m->played_at);
    text_append_char(csv, ',');
    cell_text(csv, m->a_name);
    text_append_char(csv, ',');
    cell_text(csv, m->a_username);
    text_print(csv, ",%d,%d,", m->score_a, m->score_b);
    cell_text(csv, m->b_name);
    text_append_char(csv, ',');
    cell_text(csv, m->b_username);
    text_print(csv, ",%d,%d,%d,%d,%s\r\n", rating_points(m->a_before), rating_points(m->a_after),
               rating_points(m->b_before), rating_points(m->b_after), m->is_undone ? "yes" : "no");
}

/* How many of the newest matches fit into so many bytes. The list is newest first. */
static int matches_fit(const GroupMatch *list, int count, size_t bytes, Arena *arena)
{
    size_t    used = 0;
    ArenaMark mark = arena_mark(arena);
    Text      row;
    int       fit = 0;

    text_init(&row, arena, ROW_BYTES_MAX);
    for (; fit < count; fit++) {
        text_clear(&row);
        match_row(&row, &list[fit]);
        used += row.length;
        if (used > bytes)
            break;
    }
    arena_rewind(arena, mark);
    return fit;
}

ErrorCode board_export_matches(Tx *tx, int64_t group_id, size_t bytes_max, Text *ret_csv, int *ret_count,
                               bool *ret_more, Error *reterr)
{
    static const char head[] =
        BYTE_ORDER_MARK "match,played_at,player_a,username_a,score_a,score_b,player_b,username_b,a_before,"
                        "a_after,b_before,b_after,undone\r\n";
    GroupMatch *list;
    int         count, fit;

    TRY(board_matches(tx, group_id, 0, EXPORT_MATCHES_MAX, /* with_undone= */ true, &list, &count, reterr));
    fit       = matches_fit(list, count, bytes_max - sizeof head, tx->arena);
    *ret_more = fit < count || count == EXPORT_MATCHES_MAX;
    text_init(ret_csv, tx->arena, bytes_max);
    text_append(ret_csv, head);
    for (int i = fit - 1; i >= 0; i--)
        match_row(ret_csv, &list[i]);
    *ret_count = fit;
    return OK;
}

static void rating_row(Text *csv, const BoardRow *row)
{
    text_print(csv, "%lld,", (long long)row->place);
    cell_text(csv, row->name);
    text_append_char(csv, ',');
    cell_text(csv, row->username);
    text_print(csv, ",%d,", rating_points(row->rating));
    if (row->deviation > 0)
        text_print(csv, "%d", rating_points(row->deviation));
    text_print(csv, ",%d,%d\r\n", row->games, rating_points(row->change_week));
}

ErrorCode board_export_ratings(Tx *tx, int64_t group_id, size_t bytes_max, Text *ret_csv, int *ret_count, Error *reterr)
{
    BoardRow *list;
    int       count;

    TRY(board_read(tx, group_id, 0, 10000, &list, &count, reterr));
    text_init(ret_csv, tx->arena, bytes_max);
    text_append(ret_csv, BYTE_ORDER_MARK "place,player,username,rating,deviation,games,change_7_days\r\n");
    for (*ret_count = 0; *ret_count < count && ret_csv->length + ROW_BYTES_MAX < bytes_max; ++*ret_count)
        rating_row(ret_csv, &list[*ret_count]);
    return OK;
}
