/*
 * combiner.h - runs the operations of concurrent callers in shared transactions.
 *
 * combiner_submit() queues an item and returns; its on_done callback gets the result. combiner_run() submits and waits. Items are run in
 * batches: an idle combiner runs a single item immediately, a busy one collects items until a slot is free.
 *
 *     QUEUED -> RUNNING -> DONE          a batch took the item, ran it, and ended
 *     QUEUED -> DONE                     its deadline passed first: ERR_TIMEOUT, it was not run
 *
 * Invariants
 *   1. Each item gets exactly one result. on_done is called without a lock held, on a thread of the combiner, or inside
 *      combiner_submit() if the queue is full (ERR_BUSY).
 *   2. One bad item does not fail the others: a batch that fails with VERDICT_FINAL or for a lock is run again in halves, until
 *      the bad item is alone with its error. An error that is not about the items (unavailable, unknown, stopping, the schema, rights)
 *      is the result of the whole batch.
 *   3. At most `slots` batches run at a time, and a second one starts only when at least half as many items are queued as the running
 *      ones carry. A batch that has run for slow_ms probably waits for a lock: it no longer counts as one of `slots`, so the queue goes on
 *      without it, up to slots_max batches in all. A batch has at most batch_max items and weight_max weight; the queue at most queue_max
 *      items. With `keys`, batches that run side by side have no key in common, but for slow ones, and items with a key in common run in
 *      the order in which they were queued.
 *   4. Deadlines are kept: a queued item ends at its own, a running one at the latest of its batch.
 * Threads: any. The combiner starts its own on demand, at most slots_max + 1, and works with fewer if no more can be started; with
 * none, items are refused (ERR_BUSY). combiner_run() on an idle combiner runs the item on the caller's thread.
 * Ownership: items are borrowed until they are done; combiner_free() only after that.
 */
#ifndef PG_COMBINER_H
#define PG_COMBINER_H

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"

#define COMBINER_SLOTS_MAX 8
#define COMBINER_KEYS_MAX  128 /* of one item */

typedef struct Combiner Combiner;

/* Run all items in one transaction. Each item's own verdict goes into the item; the return value is about the batch. It may be
 * called again with some of the same items. The deadline is the latest of its items'. */
typedef ErrorCode CombinerBatch(void *context, void **items, int count, Deadline deadline, Error *reterr);
/* error->code OK: the item was run, its verdict is in the item. The callback must not block: the rest of the batch is reported after
 * it. The error is borrowed until it returns. */
typedef void CombinerDone(void *item, const Error *error);

/* Zero means the default in the comment. */
typedef struct {
    CombinerBatch *run;
    void          *context;
    int            slots;              /* 2, but not more than slots_max */
    int            slots_max;          /* COMBINER_SLOTS_MAX; slow batches included */
    int            slow_ms;            /* 50 */
    int            batch_max;          /* 1000 */
    int            queue_max;          /* 10,000 */
    size_t (*weigh)(const void *item); /* NULL: items weigh nothing */
    size_t weight_max;                 /* of one batch; a heavier item runs alone */
    /* What an item locks, as hashes; returns how many, or -1 if they are not known: it runs beside no other batch. NULL: items have none. */
    int (*keys)(const void *item, uint64_t *ret_keys);
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
/* slots_max for a combiner that may use 1 / parts of a pool's connections, at least one: slow batches leave the rest to others. */
int combiner_share(int pool_size, int parts);

#endif
