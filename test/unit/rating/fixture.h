/*
 * fixture.h - a database with one group and numbered players, and matches among them.
 */
#ifndef UNIT_RATING_FIXTURE_H
#define UNIT_RATING_FIXTURE_H

#include "pg/pool.h"
#include "pg/tx.h"
#include "rating/match.h"
#include "rating/undo.h"
#include "test/harness/database.h"
#include "test/harness/test.h"

#define FIXTURE_CHAT    (-1001234567890)
#define FIXTURE_PLAYERS 64
#define FIXTURE_USER(i) (5000000000 + (i))

typedef struct {
    TestDatabase *db;
    Pool         *pool;
    Arena        *arena;
    Group         group;
    int64_t       players[FIXTURE_PLAYERS]; /* ids, in the order of their numbers */
    int           count;
} RatingFixture;

/* players: how many are members of the group, named p0, p1, ... */
RatingFixture *rating_fixture_new(int pool_size, int players);
void           rating_fixture_free(RatingFixture *fixture);
SCOPED(RatingFixture, rating_fixture_free)

Deadline soon(void);
/* A whole transaction each, with the retries of the pool. */
ErrorCode rating_fixture_register(RatingFixture *fixture, Arena *arena, const MatchNew *match, MatchDone *ret_done,
                                  Error *reterr);
ErrorCode rating_fixture_undo(RatingFixture *fixture, Arena *arena, const UndoAsk *ask, UndoDone *ret_done,
                              Error *reterr);
/* Of players by their numbers; the key is made from a counter. Asserts that it is registered. Returns the match's id. */
int64_t rating_fixture_play(RatingFixture *fixture, int a, int b, int score_a, int score_b);
/* date_s: when it was played; 0: now. */
int64_t rating_fixture_play_at(RatingFixture *fixture, int64_t date_s, int a, int b, int score_a, int score_b);
double  rating_fixture_rating(RatingFixture *fixture, int player);
void    rating_fixture_set(RatingFixture *fixture, const char *name, const char *value);
/* Asserts that a replay of all matches agrees with everything that is stored. */
void    rating_fixture_verify(RatingFixture *fixture);
int64_t rating_fixture_count(RatingFixture *fixture, const char *from);

#endif
