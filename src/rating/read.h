/*
 * read.h - ratings for programs and operators, each answer in one transaction: what HTTP and the command line show.
 *
 * A group is private unless an administrator of it publishes it: with published_only a private group is as unknown as
 * one that does not exist.
 * Threads: any. Ownership: results live in the arena.
 */
#ifndef RATING_READ_H
#define RATING_READ_H

#include "base/clock.h"
#include "pg/pool.h"
#include "rating/board.h"

typedef struct {
    int64_t     chat_id;
    bool        published_only;
    const char *player; /* history: "@name" or an outside id */
    int64_t     offset; /* leaderboard: places before the first one shown */
    int64_t     before; /* history, matches: only ids below; 0: from the newest on */
    int         limit;
} RatingRead;

/* *ret_total: all places of the group, also where none is left behind the offset; may be NULL. ERR_NOT_FOUND: there
 * is no such group, or no such player in it. ERR_INVALID: the player is neither a name nor a number. */
must_check ErrorCode rating_read_board(Pool *pool, Deadline deadline, Arena *arena, const RatingRead *read,
                                       BoardRow **ret_list, int *ret_count, int64_t *ret_total, Error *reterr);
must_check ErrorCode rating_read_history(Pool *pool, Deadline deadline, Arena *arena, const RatingRead *read,
                                         PlayerMatch **ret_list, int *ret_count, Error *reterr);
must_check ErrorCode rating_read_matches(Pool *pool, Deadline deadline, Arena *arena, const RatingRead *read,
                                         GroupMatch **ret_list, int *ret_count, Error *reterr);

#endif
