/*
 * match.h - register matches: key, validation, read with versions, compute, conditional updates, match and history.
 *
 * Runs in the caller's transaction, which commits it together with what the caller adds. Optimistic: nothing is
 * locked while it computes.
 *
 * Invariants
 *   1. A key is one match. The same key again answers with that match and changes nothing.
 *   2. Ratings change only where the versions are those that were read. Otherwise ERR_BUSY with SQLSTATE RT001: the
 *      caller rolls back and begins again with the same key. Members are updated in the order of groups and ids, so
 *      A-B and B-A do not deadlock.
 * Threads: any. Ownership: results live in the transaction's arena.
 */
#ifndef RATING_MATCH_H
#define RATING_MATCH_H

#include "base/error.h"
#include "pg/query.h"
#include "rating/group.h"

#define MATCH_SCORE_MAX 1000
#define MATCH_KEY_MAX   200
#define MATCH_CONFLICT  "RT001"

typedef struct {
    const char *key;       /* 1 to MATCH_KEY_MAX bytes */
    int64_t     player[2]; /* ids */
    int         score[2];
    int64_t     author_id;    /* 0: an anonymous administrator */
    int64_t     date_s;       /* when it was sent; 0: now */
    bool        is_confirmed; /* the same result within a minute is meant */
} MatchNew;

typedef enum {
    MATCH_REGISTERED,
    MATCH_REPEATED, /* the key has a match: nothing was changed */
    MATCH_SAME,     /* the same result was registered within the last minute: nothing was changed */
    /* Refusals. */
    MATCH_ONE_PLAYER, /* both are the same */
    MATCH_SCORES,     /* out of range */
    MATCH_NO_SCORE,   /* 0:0 */
    MATCH_NO_DRAWS,   /* the group has none */
    MATCH_NO_MEMBER,  /* player[which] was never seen in the group */
    MATCH_LEFT,       /* player[which] has left it */
    MATCH_BOT,        /* player[which] is a bot */
    MATCH_KEY_USED,   /* the key has another match: of another group, other players or other scores */
} MatchVerdict;

typedef struct {
    MatchVerdict verdict;
    int          which; /* of the refusals about a player */
    int64_t      id;
    double       before[2], after[2];
} MatchDone;

/* One of the matches that are registered together. */
typedef struct {
    const Group    *group;
    const MatchNew *match;
    MatchDone       done; /* written by matches_register() */
} MatchTry;
/* One round trip to read and one to write, for any number of matches. All are registered that are not refused, or,
 * after an error, none. */
must_check ErrorCode matches_register(Tx *tx, MatchTry *const *tries, int count, Error *reterr);

#define MATCH_COLUMNS(X, T)                  \
    X(T, I64, id, player_a, player_b, age_s) \
    X(T, I32, score_a, score_b)              \
    X(T, TIME, played_at)                    \
    X(T, BOOL, is_undone)                    \
    X(T, REAL, a_before, a_after, b_before, b_after)
DB_ROW(Match, MATCH_COLUMNS);
/* id 0: the last one that is not undone. ERR_NOT_FOUND: there is none. */
must_check ErrorCode match_get(Tx *tx, int64_t group_id, int64_t id, Match *ret_match, Error *reterr);

#endif
