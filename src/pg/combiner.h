/*
 * combiner.h - merges the operations of concurrent callers into one call to the database.
 *
 * A caller that comes when nothing runs is run at once: nobody waits when it is quiet. Under load each run carries what
 * gathered while the last one was under way, and a second run begins beside a first one only when at least half as many
 * wait as that one carries, so that many callers do not fall apart into many small transactions. A run that takes slow_ms
 * waits for a lock, most likely: it does not count any more, so that those behind it do not wait for the same.
 *
 * There are two ways in. combiner_do() waits, and those who wait take turns at leading, without any thread beside them.
 * combiner_begin() does not wait: threads of the combiner's own lead then, and tell each verdict. Thousands may be under
 * way, and where callers had to be woken one by one, one thread hands out a whole run's verdicts.
 *
 *     WAITING -> LEADING  [it is the first in line, and a run is worth while]
 *     WAITING -> RUNNING  [a leader took it along]      LEADING -> RUNNING  [it takes itself along, before all others]
 *     RUNNING -> DONE     [its run is over]             WAITING -> gone     [its deadline passed; it is not run]
 *
 * Invariants
 *   1. Every item gets a verdict of its own. An item whose deadline passes while it waits is not run (ERR_TIMEOUT). One that
 *      is under way is waited for, because the run holds it: so its caller may come back after its own deadline, but
 *      not after the latest one of that run, and never with a doubt.
 *      Nobody watches the clock for an item that was begun until it is first in line: whoever begins gives every item the
 *      same time, so that the runs before it are over by then.
 *   2. One bad item never fails the others: when a run fails for good it is done again in halves, until the bad item
 *      stands alone with its error; so for a lock that was not to be had. A failure that says nothing about the items
 *      (busy, unavailable, unknown, stopping, our own schema) goes to all of that run.
 *   3. At most lanes_max runs at once that are not slow, and 8 in all; at most batch_max items and weight_max in a run, at
 *      most queue_max items waiting (ERR_BUSY).
 *   4. While anything waits, something runs or is about to: nobody waits longer than for the runs under way, nor, while
 *      fewer than 8 are, longer than slow_ms.
 *   5. What was begun is told exactly once, on a thread that leads or in combiner_begin() itself, under no lock.
 * Threads: any. Ownership: items are borrowed until combiner_do() returns or the verdict is told; combiner_free() when
 * nothing is under way.
 */
#ifndef PG_COMBINER_H
#define PG_COMBINER_H

#include <stddef.h>

#include "base/clock.h"
#include "base/error.h"

typedef struct Combiner Combiner;

/* Run all items in one transaction. Each item's own verdict goes into the item; the return value is about the run. May be
 * called again with some of the same items. The deadline is the latest of its items'. */
typedef ErrorCode CombinerRun(void *context, void **items, int count, Deadline deadline, Error *reterr);

/* Zero means the default in the comment. */
typedef struct {
    CombinerRun *run;
    void        *context;
    int          lanes_max;            /* 2; up to 8 when some are slow */
    int          lanes_begun_max;      /* lanes_max; while the first in line was begun */
    int          slow_ms;              /* 50: a run that takes longer is not waited for */
    int          batch_max;            /* 1000 */
    int          queue_max;            /* 10,000 */
    size_t (*weigh)(const void *item); /* NULL: items weigh nothing */
    size_t weight_max;                 /* of one run; a heavier item runs alone */
} CombinerOptions;

Combiner *combiner_new(const CombinerOptions *options);
void      combiner_free(Combiner *combiner);
SCOPED(Combiner, combiner_free)
/* Returns when the item was run: what the run said about it. ERR_TIMEOUT, ERR_BUSY: it was not run. */
must_check ErrorCode combiner_do(Combiner *combiner, void *item, Deadline deadline, Error *reterr);

/* What combiner_do() would have returned. It must not wait: others of the same run are told after it. */
typedef void CombinerTold(void *item, const Error *verdict);
void         combiner_begin(Combiner *combiner, void *item, Deadline deadline, CombinerTold *told);

/* How many wait for a run right now. */
int combiner_waiting(Combiner *combiner);

/* Invariant 2 by itself, for those who have all their items at hand: ret_errors[i].code tells how item i fared. */
void combiner_run_each(CombinerRun *run, void *context, void **items, int count, Deadline deadline, Error *ret_errors);

#endif
