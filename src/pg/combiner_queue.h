/*
 * combiner_queue.h - the items of a combiner that wait for a batch, in the order of their submission. Private to the
 * combiner.
 *
 * An item is apart if it may run beside the running batches: it has no key in common with them, nor with an item before
 * it that has. Without options.keys every item is apart.
 *
 * Invariants
 *   1. `apart` is the number of items that are apart, since the last combiner_queue_part().
 *   2. No item's deadline passes before `expire_at`.
 * Threads: the combiner's mutex is held. Ownership: entries belong to the caller; the queue links them.
 */
#ifndef PG_COMBINER_QUEUE_H
#define PG_COMBINER_QUEUE_H

#include "pg/combiner.h"
#include "pg/key_set.h"

/* One submitted item, until it is done. */
typedef struct CombinerEntry CombinerEntry;
struct CombinerEntry {
    void          *item;
    Deadline       deadline;
    CombinerDone  *on_done;
    void          *context; /* of on_done: the item, or the caller that waits for it */
    const Error   *error;   /* its result, while that is reported; NULL: it was run */
    bool           apart;
    CombinerEntry *next, *previous;
};

typedef struct {
    const CombinerOptions *options;
    CombinerEntry         *first, *last;
    int                    count;
    int                    apart;
    KeySet                 taken; /* keys of the running batches, and of the items that are not apart */
    Deadline               expire_at;
} CombinerQueue;

void combiner_queue_append(CombinerQueue *queue, CombinerEntry *entry);
void combiner_queue_remove(CombinerQueue *queue, CombinerEntry *entry);
/* Other batches run now: taken has their keys. */
void combiner_queue_part(CombinerQueue *queue, const KeySet *taken);
/* The first items that fit into one batch: at most batch_max, not heavier than weight_max unless it is one alone.
 * apart_only: beside other batches. Returns how many; they stay in the queue. */
int combiner_queue_choose(const CombinerQueue *queue, bool apart_only, CombinerEntry **ret_entries);
/* Remove the items whose deadline has passed; they are linked by `next`. NULL: there are none. */
CombinerEntry *combiner_queue_expire(CombinerQueue *queue);

/* Add what the item locks; the queue's options say what that is. */
void combiner_keys_add(KeySet *set, const CombinerOptions *options, const void *item);

#endif
