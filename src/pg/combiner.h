/*
 * combiner.h - merges the operations of concurrent callers into one call to the database.
 *
 * combiner_submit() queues an item and returns; on_done reports how it went. combiner_run() is submit and wait. An idle combiner
 * runs a single item immediately. Under load a batch carries what was queued while the last one ran, and a second batch starts
 * beside a first one only when at least half as many items are queued as that one carries. A batch that takes slow_ms most
 * likely waits for a lock: it is no longer counted, so that what is queued behind it need not wait for the same lock.
 *
 *     QUEUED -> RUNNING  [a slot is free]       RUNNING -> DONE  [its batch has ended]
 *     QUEUED -> DONE     [its deadline passed: ERR_TIMEOUT, it was not run]
 *
 * Invariants
 *   1. Every item gets exactly one result of its own, on_done under no lock: on a thread of the combiner, or inside
 *      combiner_submit() when the queue is full (ERR_BUSY).
 *   2. One bad item never fails the others: a batch that fails for good, or for a lock, is run again in halves until the bad
 *      item is alone with its error. A failure that says nothing about the items (unavailable, unknown, stopping, our own
 *      schema) is the result of the whole batch.
 *   3. At most `slots` batches run at once that are not slow, and slots_max in all; at most batch_max items and weight_max in a
 *      batch; at most queue_max items are queued.
 *   4. While an item is queued, a thread watches its deadline and the batches that run. A running item is waited for: it ends by
 *      the latest deadline of its batch.
 * Threads: any; the combiner starts its own as needed, at most slots_max + 1; fewer serve where no more can be had, and without any
 * an item is refused with ERR_BUSY. A blocking caller that finds the combiner idle runs
 * its item itself. Ownership: items are borrowed until they are done; combiner_free() when all are.
 */
#ifndef PG_COMBINER_H
#define PG_COMBINER_H

#include <stddef.h>

#include "base/clock.h"
#include "base/error.h"

#define COMBINER_SLOTS_MAX 8

typedef struct Combiner Combiner;

/* Run all items in one transaction. Each item's own verdict goes into the item; the return value is about the batch. May be
 * called again with some of the same items. The deadline is the latest of its items'. */
typedef ErrorCode CombinerBatch(void *context, void **items, int count, Deadline deadline, Error *reterr);
/* error->code OK: the item was run, its verdict is in the item. It must not wait: others of the batch come after it. The error is
 * borrowed until it returns. */
typedef void CombinerDone(void *item, const Error *error);

/* Zero means the default in the comment. */
typedef struct {
    CombinerBatch *run;
    void          *context;
    int            slots;              /* 2, but not more than slots_max */
    int            slots_max;          /* COMBINER_SLOTS_MAX; with the slow ones */
    int            slow_ms;            /* 50 */
    int            batch_max;          /* 1000 */
    int            queue_max;          /* 10,000 */
    size_t (*weigh)(const void *item); /* NULL: items weigh nothing */
    size_t weight_max;                 /* of one batch; a heavier item runs alone */
} CombinerOptions;

Combiner *combiner_new(const CombinerOptions *options);
void      combiner_free(Combiner *combiner);
SCOPED(Combiner, combiner_free)

void combiner_submit(Combiner *combiner, void *item, Deadline deadline, CombinerDone *on_done);
/* Submit and wait. ERR_TIMEOUT without an SQLSTATE, ERR_BUSY: it was not run. */
must_check ErrorCode combiner_run(Combiner *combiner, void *item, Deadline deadline, Error *reterr);
/* How many items are queued. */
int combiner_queued(Combiner *combiner);

/* Invariant 2 by itself, on the caller's thread, for a caller that has all its items at hand. */
void combiner_split(CombinerBatch *run, void *context, void **items, int count, Deadline deadline,
                    CombinerDone *on_done);
/* slots_max for a combiner that may hold one of `parts` parts of a pool's connections, at least 1: so its slow batches leave
 * connections to others. */
int combiner_share(int pool_size, int parts);

#endif
