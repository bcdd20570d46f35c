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

#define BOARD_COLUMNS(X, T)                                \
    X(T, I64, place, player_id, user_id, total)            \
    X(T, TEXT, name, username)                             \
    X(T, REAL, rating, deviation, change_week, volatility) \
    X(T, I32, games, days)
/* place: shared by players of one rating. deviation: of today, 0 under Elo. days: since the last match. */
DB_ROW(BoardRow, BOARD_COLUMNS);
must_check ErrorCode board_read(Tx *tx, int64_t group_id, int64_t offset, int limit, BoardRow **ret_list,
                                int *ret_count, Error *reterr);
RowWrite             board_row_write;

/* Of each player in its group. ret_places[i]: 0 if the player has none. */
must_check ErrorCode board_places(Tx *tx, const int64_t *groups, const int64_t *players, int count, int64_t *ret_places,
                                  Error *reterr);

#define STATS_COLUMNS(X, T)                                           \
    X(T, I64, player_id, user_id, wins, draws, losses, streak, place) \
    X(T, TEXT, name, username, recent)                                \
    X(T, BOOL, is_present)                                            \
    X(T, REAL, rating, deviation, best, volatility)                   \
    X(T, I32, games, days)
/* place 0: none. deviation: of today. days: since the last match. recent: up to five of W, D, L, newest first;
 * NULL: no match. */
DB_ROW(PlayerStats, STATS_COLUMNS);
/* ERR_NOT_FOUND: not seen in this group. */
must_check ErrorCode board_stats(Tx *tx, int64_t group_id, int64_t player_id, PlayerStats *ret_stats, Error *reterr);

#define GROUP_MATCH_COLUMNS(X, T)                      \
    X(T, I64, id, a_user_id, b_user_id)                \
    X(T, TIME, played_at)                              \
    X(T, TEXT, a_name, a_username, b_name, b_username) \
    X(T, I32, score_a, score_b)                        \
    X(T, REAL, a_before, a_after, b_before, b_after)   \
    X(T, BOOL, is_undone)
DB_ROW(GroupMatch, GROUP_MATCH_COLUMNS);
/* Newest first; before 0: from the newest on. */
must_check ErrorCode board_matches(Tx *tx, int64_t group_id, int64_t before, int limit, bool with_undone,
                                   GroupMatch **ret_list, int *ret_count, Error *reterr);
RowWrite             board_match_write;

#define PLAYER_MATCH_COLUMNS(X, T)            \
    X(T, I64, match_id, opponent_user_id)     \
    X(T, TIME, played_at)                     \
    X(T, TEXT, opponent, opponent_username)   \
    X(T, I32, score, opponent_score, outcome) \
    X(T, REAL, rating_before, rating, deviation)
DB_ROW(PlayerMatch, PLAYER_MATCH_COLUMNS);
must_check ErrorCode board_player(Tx *tx, int64_t group_id, int64_t player_id, int64_t before, int limit,
                                  PlayerMatch **ret_list, int *ret_count, Error *reterr);
RowWrite             board_player_write;

#define HEAD_COLUMNS(X, T)                                      \
    X(T, I64, games, wins_a, draws, wins_b, points_a, points_b) \
    X(T, TIME, last_at)
DB_ROW(HeadToHead, HEAD_COLUMNS);
must_check ErrorCode board_head_to_head(Tx *tx, int64_t group_id, int64_t player_a, int64_t player_b,
                                        HeadToHead *ret_head, Error *reterr);

#define POINT_COLUMNS(X, T) \
    X(T, I32, ord)          \
    X(T, TIME, at)          \
    X(T, REAL, rating, before)
/* ord: which player, from 1. */
DB_ROW(BoardPoint, POINT_COLUMNS);
must_check ErrorCode board_points(Tx *tx, int64_t group_id, const int64_t *players, int count, int limit,
                                  BoardPoint **ret_list, int *ret_count, Error *reterr);

/* The newest matches of a group that fit, oldest first, and the first places of its leaderboard, as CSV (RFC 4180).
 * A cell that a spreadsheet would take for a formula begins with an apostrophe. *ret_more: there are older ones. */
must_check ErrorCode board_export_matches(Tx *tx, int64_t group_id, size_t bytes_max, Text *ret_csv, int *ret_count,
                                          bool *ret_more, Error *reterr);
must_check ErrorCode board_export_ratings(Tx *tx, int64_t group_id, size_t bytes_max, Text *ret_csv, int *ret_count,
                                          Error *reterr);

#endif
