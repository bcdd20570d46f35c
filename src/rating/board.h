/*
 * board.h - what people read about ratings: leaderboard, one player, matches, head to head. Nothing is written or
 * locked.
 *
 * A player who is a member of the group and has played at least the group's number of games has a place.
 * Threads: any. Ownership: results live in the transaction's arena.
 */
#ifndef RATING_BOARD_H
#define RATING_BOARD_H

#include "base/error.h"
#include "base/writer.h"
#include "pg/query.h"
#include "rating/group.h"

#define BOARD_LIMIT_MAX 1000

#define BOARD_COLUMNS(X, T)               \
    X(T, int64_t, DB_I64, place)          \
    X(T, int64_t, DB_I64, player_id)      \
    X(T, int64_t, DB_I64, user_id)        \
    X(T, const char *, DB_TEXT, name)     \
    X(T, const char *, DB_TEXT, username) \
    X(T, double, DB_REAL, rating)         \
    X(T, double, DB_REAL, deviation)      \
    X(T, int32_t, DB_I32, games)          \
    X(T, double, DB_REAL, change_week)    \
    X(T, int64_t, DB_I64, total)          \
    X(T, double, DB_REAL, volatility)     \
    X(T, int32_t, DB_I32, days)
/* place: shared by players of one rating. deviation: of today, 0 under Elo. days: since the last match. */
typedef struct {
    BOARD_COLUMNS(DB_FIELD, BoardRow)
} BoardRow;
must_check ErrorCode board_read(Tx *tx, int64_t group_id, int64_t offset, int limit, BoardRow **ret_list,
                                int *ret_count, Error *reterr);
RowWrite             board_row_write;

/* Of each player in its group. ret_places[i]: 0 if the player has none. */
must_check ErrorCode board_places(Tx *tx, const int64_t *groups, const int64_t *players, int count, int64_t *ret_places,
                                  Error *reterr);

#define STATS_COLUMNS(X, T)               \
    X(T, int64_t, DB_I64, player_id)      \
    X(T, int64_t, DB_I64, user_id)        \
    X(T, const char *, DB_TEXT, name)     \
    X(T, const char *, DB_TEXT, username) \
    X(T, bool, DB_BOOL, is_present)       \
    X(T, double, DB_REAL, rating)         \
    X(T, double, DB_REAL, deviation)      \
    X(T, int32_t, DB_I32, games)          \
    X(T, int64_t, DB_I64, wins)           \
    X(T, int64_t, DB_I64, draws)          \
    X(T, int64_t, DB_I64, losses)         \
    X(T, int64_t, DB_I64, streak)         \
    X(T, double, DB_REAL, best)           \
    X(T, const char *, DB_TEXT, recent)   \
    X(T, int64_t, DB_I64, place)          \
    X(T, double, DB_REAL, volatility)     \
    X(T, int32_t, DB_I32, days)
/* place 0: none. deviation: of today. days: since the last match. recent: up to five of W, D, L, newest first;
 * NULL: no match. */
typedef struct {
    STATS_COLUMNS(DB_FIELD, PlayerStats)
} PlayerStats;
/* ERR_NOT_FOUND: not seen in this group. */
must_check ErrorCode board_stats(Tx *tx, int64_t group_id, int64_t player_id, PlayerStats *ret_stats, Error *reterr);

#define GROUP_MATCH_COLUMNS(X, T)           \
    X(T, int64_t, DB_I64, id)               \
    X(T, int64_t, DB_TIME, played_at)       \
    X(T, int64_t, DB_I64, a_user_id)        \
    X(T, const char *, DB_TEXT, a_name)     \
    X(T, const char *, DB_TEXT, a_username) \
    X(T, int64_t, DB_I64, b_user_id)        \
    X(T, const char *, DB_TEXT, b_name)     \
    X(T, const char *, DB_TEXT, b_username) \
    X(T, int32_t, DB_I32, score_a)          \
    X(T, int32_t, DB_I32, score_b)          \
    X(T, double, DB_REAL, a_before)         \
    X(T, double, DB_REAL, a_after)          \
    X(T, double, DB_REAL, b_before)         \
    X(T, double, DB_REAL, b_after)          \
    X(T, bool, DB_BOOL, is_undone)
typedef struct {
    GROUP_MATCH_COLUMNS(DB_FIELD, GroupMatch)
} GroupMatch;
/* Newest first; before 0: from the newest on. */
must_check ErrorCode board_matches(Tx *tx, int64_t group_id, int64_t before, int limit, bool with_undone,
                                   GroupMatch **ret_list, int *ret_count, Error *reterr);
RowWrite             board_match_write;

#define PLAYER_MATCH_COLUMNS(X, T)                 \
    X(T, int64_t, DB_I64, match_id)                \
    X(T, int64_t, DB_TIME, played_at)              \
    X(T, int64_t, DB_I64, opponent_user_id)        \
    X(T, const char *, DB_TEXT, opponent)          \
    X(T, const char *, DB_TEXT, opponent_username) \
    X(T, int32_t, DB_I32, score)                   \
    X(T, int32_t, DB_I32, opponent_score)          \
    X(T, int32_t, DB_I32, outcome)                 \
    X(T, double, DB_REAL, rating_before)           \
    X(T, double, DB_REAL, rating)                  \
    X(T, double, DB_REAL, deviation)
typedef struct {
    PLAYER_MATCH_COLUMNS(DB_FIELD, PlayerMatch)
} PlayerMatch;
must_check ErrorCode board_player(Tx *tx, int64_t group_id, int64_t player_id, int64_t before, int limit,
                                  PlayerMatch **ret_list, int *ret_count, Error *reterr);
RowWrite             board_player_write;

#define HEAD_COLUMNS(X, T)          \
    X(T, int64_t, DB_I64, games)    \
    X(T, int64_t, DB_I64, wins_a)   \
    X(T, int64_t, DB_I64, draws)    \
    X(T, int64_t, DB_I64, wins_b)   \
    X(T, int64_t, DB_I64, points_a) \
    X(T, int64_t, DB_I64, points_b) \
    X(T, int64_t, DB_TIME, last_at)
typedef struct {
    HEAD_COLUMNS(DB_FIELD, HeadToHead)
} HeadToHead;
must_check ErrorCode board_head_to_head(Tx *tx, int64_t group_id, int64_t player_a, int64_t player_b,
                                        HeadToHead *ret_head, Error *reterr);

#define POINT_COLUMNS(X, T)       \
    X(T, int32_t, DB_I32, ord)    \
    X(T, int64_t, DB_TIME, at)    \
    X(T, double, DB_REAL, rating) \
    X(T, double, DB_REAL, before)
/* ord: which player, from 1. */
typedef struct {
    POINT_COLUMNS(DB_FIELD, BoardPoint)
} BoardPoint;
must_check ErrorCode board_points(Tx *tx, int64_t group_id, const int64_t *players, int count, int limit,
                                  BoardPoint **ret_list, int *ret_count, Error *reterr);

/* The newest matches of a group that fit, oldest first, and the first places of its leaderboard, as CSV (RFC 4180).
 * A cell that a spreadsheet would take for a formula begins with an apostrophe. *ret_more: there are older ones. */
must_check ErrorCode board_export_matches(Tx *tx, int64_t group_id, size_t bytes_max, Text *ret_csv, int *ret_count,
                                          bool *ret_more, Error *reterr);
must_check ErrorCode board_export_ratings(Tx *tx, int64_t group_id, size_t bytes_max, Text *ret_csv, int *ret_count,
                                          Error *reterr);

#endif
