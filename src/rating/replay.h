/*
 * replay.h - matches of a group in order, and the players that a replay carries along; shared by undo and verification.
 *
 * Threads: one at a time. Ownership: the map has memory of its own; chunks live in the transaction's arena until the
 * next chunk is read.
 */
#ifndef RATING_REPLAY_H
#define RATING_REPLAY_H

#include "base/error.h"
#include "pg/query.h"
#include "rating/rules.h"

#define REPLAY_CHUNK 2000

#define REPLAY_COLUMNS(X, T)                                                                                  \
    X(T, I64, id, player_a, player_b)                                                                         \
    X(T, I32, score_a, score_b, formula, k_factor, history_rows, outcome)                                     \
    X(T, TEXT, system)                                                                                        \
    X(T, BOOL, margin)                                                                                        \
    X(T, REAL, a_rating_before, a_deviation_before, a_volatility_before, a_rating, a_deviation, a_volatility, \
      b_rating_before, b_deviation_before, b_volatility_before, b_rating, b_deviation, b_volatility)          \
    X(T, TIME, played_at)
DB_ROW(ReplayMatch, REPLAY_COLUMNS);

/* At most `limit` matches after this id. */
must_check ErrorCode replay_chunk(Tx *tx, int64_t group_id, int64_t after, int limit, ReplayMatch **ret_list,
                                  int *ret_count, Error *reterr);
int64_t              replay_player(const ReplayMatch *match, int side);
RatingState          replay_before(const ReplayMatch *match, int side);
RatingState          replay_after(const ReplayMatch *match, int side);
/* ---- players by id ---- */

typedef struct {
    int64_t     player_id; /* 0: a free slot */
    RatingState state;     /* what the replay has for it */
    bool        is_set;    /* state differs from what is stored, or is known at all: the user says which */
    bool        is_touched;
    double      start_rating, rating;
    int64_t     version, games, last_match_id;
    int64_t     last_at; /* when it was played, in microseconds; 0: there is none */
} ReplayPlayer;

typedef struct ReplayMap ReplayMap;
ReplayMap               *replay_map_new(void);
void                     replay_map_free(ReplayMap *map);
SCOPED(ReplayMap, replay_map_free)
ReplayPlayer *replay_map_get(ReplayMap *map, int64_t player_id); /* NULL: not there */
ReplayPlayer *replay_map_add(ReplayMap *map,
                             int64_t    player_id); /* there already: that one. Pointers end with the next add */
/* All of them: begin with 0; NULL: no more. */
ReplayPlayer *replay_map_next(ReplayMap *map, size_t *position);

/* By the rules of the match, and the days since its players played before. From now on it is the last one that they
 * have played. */
must_check ErrorCode replay_apply(ReplayMap *map, const ReplayMatch *match, const RatingState before[2],
                                  RatingState ret_after[2], Error *reterr);
/* The same where the states are known. */
void replay_pass(ReplayMap *map, const ReplayMatch *match);

#endif
