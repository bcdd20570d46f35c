/*
 * combiner.c - slots for batches, and the threads that fill them from the queue; see combiner.h for the states and
 * invariants.
 *
 * A thread is idle or runs a batch. Whenever something is queued at least one thread is idle: it starts the next batch,
 * ends items whose deadline has passed, and notices that a batch has become slow. It sleeps until the first of these,
 * so submitting wakes it only when a batch can start now, or when it would sleep too long.
 */
#include "pg/combiner.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/sync.h"
#include "pg/combiner_queue.h"
#include "pg/combiner_split.h"

#define SLOTS_DEFAULT   2
#define BATCH_DEFAULT   1000
#define QUEUE_DEFAULT   10000
#define SLOW_MS_DEFAULT 50

/* One failure of a batch, shared by the items it is about. */
typedef struct Failure Failure;
struct Failure {
    Error    error;
    Failure *next;
};

typedef struct {
    int             count; /* 0: the slot is free */
    Mono            began;
    Deadline        deadline;
    CombinerEntry **entries;
    void          **items;
    Failure        *failures;
    KeySet          keys; /* of its items */
} Slot;

/* The batches that have not become slow. */
typedef struct {
    int      count, carried;
    unsigned slots; /* a bit for each */
    Deadline again; /* when one becomes slow */
} Quick;

struct Combiner {
    CombinerOptions options;
    Mutex           mutex; /* guards the rest */
    Cond            changed;
    CombinerQueue   queue;
    bool            is_parted;   /* the queue knows which items may run beside the batches in the slots `parted_by` */
    unsigned        parted_by;   /* as Quick.slots */
    Deadline        watch_until; /* an idle thread is awake by then; never: none has to be */
    Slot            slots[COMBINER_SLOTS_MAX];
    int             running; /* slots in use */
    int             idle;    /* threads that run nothing */
    bool            stopping;
    int             thread_count;
    pthread_t       threads[COMBINER_SLOTS_MAX + 1];
};

/* ---- a batch ---- */

/* Under the mutex: move queued items into a free slot. */
static Slot *batch_take(Combiner *combiner, bool beside)
{
    const CombinerOptions *options = &combiner->options;
    int                    queued  = combiner->queue.count;
    size_t                 most    = (size_t)(queued < options->batch_max ? queued : options->batch_max);
    Slot                  *slot    = combiner->slots;

    while (slot->count > 0)
        slot++;
    *slot       = (Slot){.began   = clock_mono(),
                         .entries = memory_new(most, sizeof *slot->entries),
                         .items   = memory_new(most, sizeof *slot->items)};
    slot->count = combiner_queue_choose(&combiner->queue, /* apart_only= */ beside, slot->entries);
    assert(slot->count > 0); /* batch_is_due() */
    slot->deadline = slot->entries[0]->deadline;
    for (int i = 0; i < slot->count; i++) {
        CombinerEntry *entry = slot->entries[i];

        combiner_queue_remove(&combiner->queue, entry);
        slot->items[i] = entry->item;
        if (mono_before(slot->deadline.at, entry->deadline.at))
            slot->deadline = entry->deadline;
        combiner_keys_add(&slot->keys, options, entry->item);
    }
    combiner->running++;
    combiner->is_parted = false;
    return slot;
}

static void batch_range_done(void *context, int first, int count, const Error *error)
{
    Slot    *slot = context;
    Failure *failure;

    if (error->code == OK)
        return;
    failure        = memory_new(1, sizeof *failure);
    *failure       = (Failure){*error, slot->failures};
    slot->failures = failure;
    for (int i = first; i < first + count; i++)
        slot->entries[i]->error = &failure->error;
}

/* Under no lock. */
static void entry_report(CombinerEntry *entry)
{
    static const Error ok;

    entry->on_done(entry->context, entry->error ? entry->error : &ok);
    free(entry);
}

/* Under the mutex, which it releases while it reports. The slot is free already, so the next batch does not wait for
 * this. */
static void batch_report(Combiner *combiner, Slot batch)
{
    mutex_unlock(&combiner->mutex);
    for (int i = 0; i < batch.count; i++)
        entry_report(batch.entries[i]);
    for (Failure *failure; (failure = batch.failures) != NULL;) {
        batch.failures = failure->next;
        free(failure);
    }
    free(batch.entries);
    free(batch.items);
    mutex_lock(&combiner->mutex);
}

/* ---- threads ---- */

static Deadline slot_is_slow_at(const Combiner *combiner, const Slot *slot)
{
    return (Deadline){mono_plus_ms(slot->began, combiner->options.slow_ms)};
}

/* Under the mutex. */
static Quick quick_find(const Combiner *combiner)
{
    Quick quick = {.again = deadline_never()};

    for (int i = 0; i < COMBINER_SLOTS_MAX; i++) {
        const Slot *slot = &combiner->slots[i];

        if (slot->count == 0 || deadline_passed(slot_is_slow_at(combiner, slot)))
            continue;
        quick.count++;
        quick.carried += slot->count;
        quick.slots |= 1u << i;
        quick.again = deadline_sooner(quick.again, slot_is_slow_at(combiner, slot));
    }
    return quick;
}

/* Under the mutex: find out which queued items may run beside these batches. */
static void queue_part(Combiner *combiner, const Quick *quick)
{
    KeySet taken = {0};

    for (int i = 0; i < COMBINER_SLOTS_MAX; i++)
        if (quick->slots >> i & 1)
            key_set_unite(&taken, &combiner->slots[i].keys);
    combiner_queue_part(&combiner->queue, &taken);
    combiner->parted_by = quick->slots;
    combiner->is_parted = true;
}

/* Under the mutex: can a batch start now? Beside a large batch a small one would cost a transaction for little, so the
 * queue grows until it is half as long. *ret_beside: only with items that are apart. *ret_again: when a running batch
 * becomes slow. */
static bool batch_is_due(Combiner *combiner, bool *ret_beside, Deadline *ret_again)
{
    const CombinerOptions *options = &combiner->options;
    Quick                  quick;

    *ret_again  = deadline_never();
    *ret_beside = false;
    if (combiner->queue.count == 0 || combiner->running == options->slots_max)
        return false;
    quick       = quick_find(combiner);
    *ret_again  = quick.again;
    *ret_beside = quick.count > 0;
    if (quick.count == 0)
        return true;
    if (quick.count >= options->slots)
        return false;
    if (!combiner->is_parted || combiner->parted_by != quick.slots)
        queue_part(combiner, &quick);
    return combiner->queue.apart > 0 && combiner->queue.apart * 2 >= quick.carried;
}

static void *thread_body(void *context);

/* Under the mutex: make sure that a thread checks the queue: an idle one, a new one, or, if all run batches and no more
 * can be started, the first that ends its batch. */
static void threads_wake(Combiner *combiner)
{
    if (combiner->idle > 0) {
        cond_signal(&combiner->changed);
    } else if (combiner->thread_count <= combiner->options.slots_max &&
               thread_try_start("combiner", thread_body, combiner, &combiner->threads[combiner->thread_count])) {
        combiner->idle++; /* from its start on: it waits for the mutex */
        combiner->thread_count++;
    }
}

/* Under the mutex, which it releases while the batch runs. Returns with the slot free and the results not yet
 * reported. */
static Slot batch_run(Combiner *combiner, bool beside)
{
    Slot         *slot  = batch_take(combiner, beside);
    CombinerSplit split = {combiner->options.run, combiner->options.context, slot->items, slot->count, slot->deadline};
    Slot          batch;

    if (combiner->queue.count > 0)
        threads_wake(combiner);
    mutex_unlock(&combiner->mutex);
    combiner_split_ranges(&split, batch_range_done, slot);
    mutex_lock(&combiner->mutex);
    batch       = *slot;
    slot->count = 0;
    combiner->running--;
    combiner->is_parted = false;
    if (combiner->queue.count > 0)
        threads_wake(combiner);
    return batch;
}

/* Under the mutex, which it releases while it reports: end the items whose deadline has passed. */
static void queue_expire(Combiner *combiner)
{
    int            queued  = combiner->queue.count;
    CombinerEntry *expired = combiner_queue_expire(&combiner->queue);
    Error          error;

    if (!expired)
        return;
    mutex_unlock(&combiner->mutex);
    fail(&error, ERR_TIMEOUT, "not run before its deadline: %d operations are queued", queued);
    for (CombinerEntry *entry = expired, *next; entry; entry = next) {
        next         = entry->next;
        entry->error = &error;
        entry_report(entry);
    }
    mutex_lock(&combiner->mutex);
}

/* Under the mutex. again: when a running batch becomes slow. */
static void thread_sleep(Combiner *combiner, Deadline again)
{
    combiner->watch_until =
        combiner->queue.count > 0 ? deadline_sooner(again, combiner->queue.expire_at) : deadline_never();
    cond_wait(&combiner->changed, &combiner->mutex, combiner->watch_until);
    combiner->watch_until = deadline_never();
}

static void *thread_body(void *context)
{
    Combiner *combiner = context;

    mutex_lock(&combiner->mutex);
    while (!combiner->stopping) {
        Deadline again;
        bool     beside;

        if (combiner->queue.count > 0 && deadline_passed(combiner->queue.expire_at)) {
            queue_expire(combiner);
        } else if (batch_is_due(combiner, &beside, &again)) {
            combiner->idle--;
            batch_report(combiner, batch_run(combiner, beside));
            combiner->idle++;
        } else {
            thread_sleep(combiner, again);
        }
    }
    mutex_unlock(&combiner->mutex);
    return NULL;
}

/* ---- callers ---- */

/* Under the mutex. */
static ErrorCode entry_queue(Combiner *combiner, CombinerEntry *entry, Error *reterr)
{
    Deadline again;
    bool     beside;

    if (combiner->queue.count >= combiner->options.queue_max)
        return fail(reterr, ERR_BUSY, "%d operations are queued already", combiner->options.queue_max);
    combiner_queue_append(&combiner->queue, entry);
    if (batch_is_due(combiner, &beside, &again) ||
        mono_before(deadline_sooner(again, entry->deadline).at, combiner->watch_until.at))
        threads_wake(combiner);
    if (combiner->thread_count == 0) /* a queued item always has a thread that will check the queue */
        threads_wake(combiner);
    if (combiner->thread_count > 0)
        return OK;
    combiner_queue_remove(&combiner->queue, entry);
    return fail(reterr, ERR_BUSY, "no thread can be started: %s", strerrordesc_np(errno));
}

/* may_run: on an idle combiner the caller's thread runs it. */
static void entry_submit(Combiner *combiner, CombinerEntry given, bool may_run)
{
    CombinerEntry *entry = memory_new(1, sizeof *entry);
    Error          error;
    ErrorCode      code = OK;

    *entry = given;
    mutex_lock(&combiner->mutex);
    if (may_run && combiner->queue.count == 0 && combiner->running == 0 && !deadline_passed(entry->deadline)) {
        combiner_queue_append(&combiner->queue, entry);
        batch_report(combiner, batch_run(combiner, /* beside= */ false));
    } else {
        code = entry_queue(combiner, entry, &error);
    }
    mutex_unlock(&combiner->mutex);
    if (code == OK)
        return;
    entry->error = &error;
    entry_report(entry);
}

void combiner_submit(Combiner *combiner, void *item, Deadline deadline, CombinerDone *on_done)
{
    entry_submit(combiner, (CombinerEntry){.item = item, .deadline = deadline, .on_done = on_done, .context = item},
                 /* may_run= */ false);
}

/* A caller that waits. */
typedef struct {
    Combiner *combiner;
    Cond      changed;
    bool      done;
    Error     error; /* if its code is not OK */
} CombinerWaiter;

static void waiter_done(void *context, const Error *error)
{
    CombinerWaiter             *waiter = context;
    scoped(mutex_unlock) Mutex *held   = mutex_hold(&waiter->combiner->mutex);

    if (error->code != OK)
        waiter->error = *error;
    waiter->done = true;
    cond_signal(&waiter->changed);
}

ErrorCode combiner_run(Combiner *combiner, void *item, Deadline deadline, Error *reterr)
{
    CombinerWaiter waiter = {.combiner = combiner};

    cond_init(&waiter.changed);
    entry_submit(combiner,
                 (CombinerEntry){.item = item, .deadline = deadline, .on_done = waiter_done, .context = &waiter},
                 /* may_run= */ true);
    mutex_lock(&combiner->mutex);
    while (!waiter.done)
        cond_wait(&waiter.changed, &combiner->mutex, deadline_never());
    mutex_unlock(&combiner->mutex);
    cond_done(&waiter.changed);
    if (reterr && waiter.error.code != OK)
        *reterr = waiter.error;
    return waiter.error.code;
}

int combiner_queued(Combiner *combiner)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&combiner->mutex);

    return combiner->queue.count;
}

/* ---- life ---- */

static int or_default(int given, int fallback)
{
    return given ? given : fallback;
}

Combiner *combiner_new(const CombinerOptions *given)
{
    Combiner        *combiner = memory_new(1, sizeof *combiner);
    CombinerOptions *options  = &combiner->options;

    *options           = *given;
    options->slots_max = or_default(given->slots_max, COMBINER_SLOTS_MAX);
    options->slots     = or_default(given->slots, SLOTS_DEFAULT);
    options->slow_ms   = or_default(given->slow_ms, SLOW_MS_DEFAULT);
    options->batch_max = or_default(given->batch_max, BATCH_DEFAULT);
    options->queue_max = or_default(given->queue_max, QUEUE_DEFAULT);
    if (options->slots > options->slots_max)
        options->slots = options->slots_max;
    assert(options->run && options->slots_max <= COMBINER_SLOTS_MAX);
    combiner->queue       = (CombinerQueue){.options = options, .expire_at = deadline_never()};
    combiner->watch_until = deadline_never();
    mutex_init(&combiner->mutex);
    cond_init(&combiner->changed);
    return combiner;
}

void combiner_free(Combiner *combiner)
{
    if (!combiner)
        return;
    mutex_lock(&combiner->mutex);
    assert(combiner->queue.count == 0);
    combiner->stopping = true;
    cond_broadcast(&combiner->changed);
    mutex_unlock(&combiner->mutex);
    for (int i = 0; i < combiner->thread_count; i++)
        thread_join(combiner->threads[i]);
    cond_done(&combiner->changed);
    mutex_done(&combiner->mutex);
    free(combiner);
}

int combiner_share(int pool_size, int parts)
{
    int share = pool_size / parts;

    return share < 1 ? 1 : share > COMBINER_SLOTS_MAX ? COMBINER_SLOTS_MAX : share;
}
