/*
 * combiner_queue.c - a list in both directions, whose items know whether they may run beside the running batches.
 */
#include "pg/combiner_queue.h"

/* ---- keys ---- */

void combiner_keys_add(KeySet *set, const CombinerOptions *options, const void *item)
{
    uint64_t keys[COMBINER_KEYS_MAX];

    if (options->keys)
        key_set_add(set, keys, options->keys(item, keys));
}

static bool keys_met(const KeySet *set, const CombinerOptions *options, const void *item)
{
    uint64_t keys[COMBINER_KEYS_MAX];

    return options->keys && key_set_has_any(set, keys, options->keys(item, keys));
}

static void entry_part(CombinerQueue *queue, CombinerEntry *entry)
{
    entry->apart = !keys_met(&queue->taken, queue->options, entry->item);
    if (entry->apart)
        queue->apart++;
    else
        combiner_keys_add(&queue->taken, queue->options, entry->item);
}

/* ---- the list ---- */

void combiner_queue_append(CombinerQueue *queue, CombinerEntry *entry)
{
    entry->previous                                     = queue->last;
    *(queue->last ? &queue->last->next : &queue->first) = entry;
    queue->last                                         = entry;
    queue->expire_at = queue->count++ ? deadline_sooner(queue->expire_at, entry->deadline) : entry->deadline;
    entry_part(queue, entry);
}

void combiner_queue_remove(CombinerQueue *queue, CombinerEntry *entry)
{
    *(entry->previous ? &entry->previous->next : &queue->first) = entry->next;
    *(entry->next ? &entry->next->previous : &queue->last)      = entry->previous;
    entry->next = entry->previous = NULL;
    queue->count--;
    queue->apart -= entry->apart;
}

void combiner_queue_part(CombinerQueue *queue, const KeySet *taken)
{
    queue->taken = *taken;
    queue->apart = 0;
    for (CombinerEntry *entry = queue->first; entry; entry = entry->next)
        entry_part(queue, entry);
}

static size_t entry_weight(const CombinerOptions *options, const CombinerEntry *entry)
{
    return options->weigh ? options->weigh(entry->item) : 0;
}

int combiner_queue_choose(const CombinerQueue *queue, bool apart_only, CombinerEntry **ret_entries)
{
    const CombinerOptions *options = queue->options;
    size_t                 weight  = 0;
    int                    count   = 0;

    for (CombinerEntry *entry = queue->first; entry && count < options->batch_max; entry = entry->next) {
        if (apart_only && !entry->apart)
            continue;
        weight += entry_weight(options, entry);
        if (count > 0 && weight > options->weight_max)
            break;
        ret_entries[count++] = entry;
    }
    return count;
}

CombinerEntry *combiner_queue_expire(CombinerQueue *queue)
{
    CombinerEntry *expired = NULL, **tail = &expired;

    queue->expire_at = deadline_never();
    for (CombinerEntry *entry = queue->first, *next; entry; entry = next) {
        next = entry->next;
        if (!deadline_passed(entry->deadline)) {
            queue->expire_at = deadline_sooner(queue->expire_at, entry->deadline);
            continue;
        }
        combiner_queue_remove(queue, entry);
        *tail = entry;
        tail  = &entry->next;
    }
    return expired;
}
