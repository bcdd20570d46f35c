/*
 * combiner.h - runs the items of concurrent callers in shared transactions.
 *
 * combiner_submit() queues an item and returns; on_done gets its result. combiner_run() submits and waits. An idle
 * combiner runs an item immediately, on the thread of a caller that waits; a busy one collects items and runs them as
 * one batch.
 *
 *     QUEUED -> RUNNING -> DONE          a batch took the item, ran it, and ended
 *     QUEUED -> DONE                     its deadline passed first: ERR_TIMEOUT, it was not run
 *
 * Invariants
 *   1. on_done is called once for each item, without a lock held: on a thread that ran or expired it, or in
 * combiner_submit() when the queue is full or no thread can be started (ERR_BUSY).
 *   2. One bad item does not fail the others: a batch that fails because of its items is run again in halves
 * (combiner_split.h). Any other error is the result of the whole batch.
 *   3. At most `slots` batches run at a time, the second only if at least half as many items are queued as the first
 * one has. A batch that runs longer than slow_ms probably waits for a lock: then another one may start, up to slots_max
 * in all.
 *   4. With `keys`, batches side by side have no key in common, unless one is slow, and items with a common key run in
 * queue order.
 *   5. A queued item ends at its deadline, a running one at the latest deadline of its batch.
 * Threads: any. The combiner starts up to slots_max + 1 of its own, on demand.
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

/* Run all items in one transaction. Each item's own verdict goes into the item; the return value is about the batch. It
 * may be called again with some of the same items. The deadline is the latest of its items'. */
typedef ErrorCode CombinerBatch(void *context, void **items, int count, Deadline deadline, Error *reterr);
/* error->code OK: the item was run, its verdict is in the item. The callback must not block: the rest of the batch is
 * reported after it. The error is borrowed until it returns. */
typedef void CombinerDone(void *item, const Error *error);

/* Zero means the default in the comment. */
typedef struct {
    CombinerBatch *run;
    void          *context;
    int            slots;              /* 2, but not more than slots_max */
    int            slots_max;          /* COMBINER_SLOTS_MAX; slow batches included */
    int            slow_ms;            /* 50 */
    int            batch_max;          /* 1000 items */
    int            queue_max;          /* 10,000 items */
    size_t (*weigh)(const void *item); /* NULL: items weigh nothing */
    size_t weight_max;                 /* of one batch; a heavier item runs alone */
    /* What an item locks, as hashes; returns how many, or -1 if they are not known: it runs beside no other batch.
     * NULL: items have none. */
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

/* slots_max for a combiner that may use 1 / parts of a pool's connections, at least one: slow batches leave the rest to
 * others. */
int combiner_share(int pool_size, int parts);

#endif
