/*
 * worker_batch.c - whole batches, all complete: one is settled while the next one is claimed.
 *
 * There is no handler to wait for, so no heartbeat: a batch that cannot be settled within its lease is left to the worker that
 * claims it next.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "bus/metric.h"
#include "bus/worker_internal.h"

#define CALL_MS  10000
#define AGAIN_MS 200

/* Those without a verdict yet. */
static int items_open(SettleItem *items, int count, SettleItem **ret_list)
{
    int open = 0;

    for (int i = 0; i < count; i++)
        if (!items[i].status && error_verdict(items[i].code) != VERDICT_FINAL)
            ret_list[open++] = &items[i];
    return open;
}

static void items_count(Worker *worker, const SettleItem *items, int count)
{
    int lost = 0;

    mutex_lock(&worker->mutex);
    for (int i = 0; i < count; i++) {
        worker_count(worker, &items[i]);
        lost += !items[i].settled && !settle_is_canceled(&items[i]);
    }
    mutex_unlock(&worker->mutex);
    if (lost > 0)
        log_write(LOG_WARN, "worker", "leases were lost, the outcomes changed nothing", LOG_INT("commands", lost));
}

static void claimed_batch_settle(Worker *worker, const ClaimedBatch *claimed_batch)
{
    SettleItem  *items = arena_array(claimed_batch->arena, SettleItem, claimed_batch->count);
    SettleItem **list  = arena_array(claimed_batch->arena, SettleItem *, claimed_batch->count);
    Deadline     lease = {mono_plus_ms(claimed_batch->claimed_at, worker->options.lease_ms)};
    int          open  = claimed_batch->count;

    for (int i = 0; i < claimed_batch->count; i++) {
        items[i] = (SettleItem){.id      = claimed_batch->list[i].id,
                                .token   = claimed_batch->list[i].token,
                                .outcome = OUTCOME_COMPLETE};
        list[i]  = &items[i];
    }
    while (open > 0) {
        settle_each(worker->options.pool, deadline_sooner(lease, deadline_in_ms(CALL_MS)), &worker->wake, list, open);
        Error error = list[0]->error_text;
        open        = items_open(items, claimed_batch->count, list);
        if (open > 0 && deadline_passed(lease)) {
            log_error(LOG_WARN, "worker", "a batch could not be settled within its lease", &error);
            break;
        }
        if (open > 0)
            clock_sleep_until(deadline_sooner(lease, deadline_in_ms(AGAIN_MS)));
    }
    items_count(worker, items, claimed_batch->count);
}

static void *batches_run(void *context)
{
    Worker *worker = context;

    mutex_lock(&worker->mutex);
    for (;;) {
        while (!worker->claimed_batch && !worker->closing)
            cond_wait(&worker->arrived, &worker->mutex, deadline_never());
        if (!worker->claimed_batch)
            break;
        ClaimedBatch *claimed_batch = take(worker->claimed_batch);
        worker->held                = claimed_batch->count;
        worker->running             = claimed_batch->count;
        cond_signal(&worker->changed);
        mutex_unlock(&worker->mutex);
        metric_add(&bus_metrics.handlers_running, claimed_batch->count);
        metric_add(&worker->metrics->handlers_running, claimed_batch->count);
        claimed_batch_settle(worker, claimed_batch);
        metric_add(&bus_metrics.handlers_running, -claimed_batch->count);
        metric_add(&worker->metrics->handlers_running, -claimed_batch->count);
        claimed_batch_free(claimed_batch);
        mutex_lock(&worker->mutex);
        worker->held = worker->running = 0;
        cond_signal(&worker->changed);
    }
    mutex_unlock(&worker->mutex);
    return NULL;
}

ErrorCode batches_start(Worker *worker, Error *reterr)
{
    if (!thread_try_start("settler", batches_run, worker, &worker->heartbeat))
        return fail(reterr, ERR_INTERNAL, "cannot start the thread \"settler\": %s", strerrordesc_np(errno));
    return OK;
}

void batches_end(Worker *worker)
{
    mutex_lock(&worker->mutex);
    worker->closing = true;
    cond_signal(&worker->arrived);
    mutex_unlock(&worker->mutex);
    thread_join(worker->heartbeat);
}

void batches_add(Worker *worker, ClaimedBatch *claimed_batch)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);

    worker->claimed_batch = claimed_batch;
    cond_signal(&worker->arrived);
}
