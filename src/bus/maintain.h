/*
 * maintain.h - what monitors do for the bus: seal abandoned batches, delete old replies and resolved dead letters, drop idle reply
 * queues, and retry what could not be delivered when a command or a batch ended.
 *
 * Threads: one per Maintain. Any number of processes may run a step at the same time.
 */
#ifndef BUS_MAINTAIN_H
#define BUS_MAINTAIN_H

#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"
#include "bus/dead_letter.h"
#include "pg/pool.h"

typedef struct {
    int64_t batch_expiry_ms; /* an open batch without a new command for so long is sealed */
    int64_t keep_replies_days, keep_letters_days;
    int     reply_queues_max; /* how many pawl creates in all */
} MaintainLimits;

/* Where the next step goes on. Begin with zeros. */
typedef struct {
    char reply_queue[64]; /* "": from the first one */
} Maintain;

/* One batch of each. *ret_more: more may be old enough. */
must_check ErrorCode maintain_step(Pool *pool, Deadline deadline, Maintain *maintain, const MaintainLimits *limits,
                                   bool *ret_more, Error *reterr);

/* Dead letters of type "reply" and "on_complete"; each runs in the transaction that resolves its letter. */
DeadLetterHandler reply_retry, on_complete_retry;

#endif
