/*
 * verify.h - do ratings, counts and history agree with a replay of all matches?
 *
 * Each group is read in one snapshot and computed from its first match on. Named are: history rows that differ from
 * the replay or are missing, and members whose rating, number of games or last match is not what the history says.
 * Threads: any. Ownership: the report lives in the arena.
 */
#ifndef RATING_VERIFY_H
#define RATING_VERIFY_H

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/finding.h"
#include "pg/pool.h"

typedef struct {
    int64_t  groups, matches, players, took_ms;
    Findings findings;
} RatingReport;

typedef struct {
    int64_t chat_id;                                  /* 0: all groups */
    void (*progress)(void *context, int64_t matches); /* may be NULL */
    void *context;
} RatingVerifyOptions;

/* deadline_ms: for each group. ERR_NOT_FOUND: there is no such group. */
must_check ErrorCode rating_verify(Pool *pool, const RatingVerifyOptions *options, int64_t deadline_ms, Arena *arena,
                                   RatingReport *ret_report, Error *reterr);
/* {"ok", "groups", "matches", "players", "took_ms", and what findings_write() adds} */
void rating_report_write(Writer *writer, const RatingReport *report);

#endif
