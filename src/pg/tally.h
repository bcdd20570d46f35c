/*
 * tally.h - sums of this process's counters, added to table pawl.tally for alerts about all processes together.
 *
 * The sums are those of all modules (base/module.h). A flush adds what was counted since the last flush that is known
 * to be stored; if nothing was, it sends no statement. A flush whose outcome is unknown is repeated under its number
 * with the same counts, so nothing is counted twice. Threads: any; while one thread flushes, a flush by another returns
 * OK without doing anything.
 */
#ifndef PG_TALLY_H
#define PG_TALLY_H

#include "base/sync.h"
#include "base/uuid.h"
#include "pg/pool.h"

#define TALLY_MS       10000 /* between two flushes */
#define TALLY_SUMS_MAX 8

typedef struct {
    Mutex   mutex; /* guards the rest */
    char    source[UUID_TEXT_SIZE];
    int64_t stored[TALLY_SUMS_MAX]; /* of each sum */
    int64_t unsure[TALLY_SUMS_MAX]; /* in the flush that is under way or has failed */
    int64_t flush;                  /* its number */
    bool    is_unsure, is_running;
    Mono    next;
} Tally;

/* The tally of this process, shared by its parts. */
Tally *tally_own(void);

/* Flush if it is time. A failure is repeated with the next flush. */
must_check ErrorCode tally_step(Tally *tally, Pool *pool, Deadline deadline, Error *reterr);
/* Flush now: before the process ends. */
must_check ErrorCode tally_flush(Tally *tally, Pool *pool, Deadline deadline, Error *reterr);

#endif
