/*
 * lanes.h - claims for workers that come over HTTP: one Lane per domain and set of types, shared by all callers, and the long
 * poll.
 *
 * Invariants
 *   1. A Lane is used by one caller at a time. At most LANES_MAX are kept; the one not used for longest makes room.
 *   2. A caller that waits looks again when a note comes for its domain, and every second without one.
 *   3. At most half of the executors may wait; more are answered at once, as if nothing had come.
 * Threads: any. Ownership: lanes_free() when no caller is inside.
 */
#ifndef APP_LANES_H
#define APP_LANES_H

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "bus/claim.h"
#include "pg/listen.h"

#define LANES_MAX 256

typedef struct Lanes Lanes;

typedef struct {
    const char        *domain;
    const char *const *types;
    int                type_count; /* 0: all */
    int                limit, lease_ms;
    const char        *worker;
    Deadline           wait; /* long poll until then */
} LanesClaim;

/* listen may be NULL. waiters_max: how many callers may wait at once. */
Lanes *lanes_new(Pool *pool, Listen *listen, int waiters_max);
void   lanes_free(Lanes *lanes);
SCOPED(Lanes, lanes_free)
/* No caller waits any longer: shutdown. */
void                 lanes_stop(Lanes *lanes);
must_check ErrorCode lanes_claim(Lanes *lanes, const LanesClaim *claim, Deadline deadline, Arena *arena,
                                 Claimed **ret_list, int *ret_count, Error *reterr);

#endif
