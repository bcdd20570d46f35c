/*
 * tally.h - what this process has counted, written to pawl.tally for alerts about all processes together.
 *
 * A flush carries what was counted since the last one that is known to have been stored, and only if that is anything. One whose
 * answer was lost is repeated under its number with the same counts, so nothing is counted twice.
 * Threads: any; a flush that is under way is not joined by another.
 */
#ifndef PG_TALLY_H
#define PG_TALLY_H

#include "base/sync.h"
#include "base/uuid.h"
#include "pg/pool.h"

#define TALLY_MS    10000 /* between two flushes */
#define TALLY_NAMES 3

typedef struct {
    Mutex   mutex; /* guards the rest */
    char    source[UUID_TEXT_SIZE];
    int64_t stored[TALLY_NAMES]; /* of the counters */
    int64_t unsure[TALLY_NAMES]; /* in the flush that is under way or has failed */
    int64_t flush;               /* its number */
    bool    is_unsure, is_running;
    Mono    next;
} Tally;

/* The one of this process, for all that run in it. */
Tally *tally_own(void);

/* Flush if it is time. A failure is repeated with the next flush. */
must_check ErrorCode tally_step(Tally *tally, Pool *pool, Deadline deadline, Error *reterr);
/* Flush now: before the process ends. */
must_check ErrorCode tally_flush(Tally *tally, Pool *pool, Deadline deadline, Error *reterr);

#endif
