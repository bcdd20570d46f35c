/*
 * worker_execution.c - what a worker holds, and the threads that run it.
 *
 * An execution leaves the lists of what is held only when it is settled or lost; until then its lease is kept.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/problem.h"
#include "bus/metric.h"
#include "bus/worker_internal.h"

#define HANDLER_BYTES_MAX ((size_t)64 << 20)

static void handlers_grow(Worker *worker, int wanted);

/* ---- lists of what is held; under the mutex ---- */

static void list_remove(Execution *execution)
{
    ExecutionList *list = execution->list;

    *(execution->previous ? &execution->previous->next : &list->first) = execution->next;
    *(execution->next ? &execution->next->previous : &list->last)      = execution->previous;
}

/* NULL: at the beginning. */
static void list_insert(ExecutionList *list, Execution *execution, Execution *after)
{
    execution->list                                               = list;
    execution->previous                                           = after;
    execution->next                                               = after ? after->next : list->first;
    *(after ? &after->next : &list->first)                        = execution;
    *(execution->next ? &execution->next->previous : &list->last) = execution;
}

/* By priority. */
static void queue_add(Worker *worker, Execution *execution)
{
    Execution *after = worker->queue.last;

    while (after && after->command->priority < execution->command->priority)
        after = after->previous;
    list_insert(&worker->queue, execution, after);
    execution->state = EXECUTION_WAITING;
    worker->waiting++;
}

void execution_move(Worker *worker, Execution *execution)
{
    list_remove(execution);
    list_insert(&worker->begun, execution, worker->begun.last);
}

Execution *execution_first(const Worker *worker)
{
    return worker->queue.first ? worker->queue.first : worker->begun.first;
}

Execution *execution_after(const Worker *worker, const Execution *execution)
{
    return !execution->next && execution->list == &worker->queue ? worker->begun.first : execution->next;
}

/* The dispatcher claims when there is space for a claim that is worth it. */
static void space_note(Worker *worker)
{
    if (worker->is_cut && worker_begins(worker) > 0) {
        worker->is_cut = false;
        worker->woken  = true;
        cond_signal(&worker->changed);
    }
    if (worker->waiting + worker->running <= worker->refill_at)
        cond_signal(&worker->changed);
}

Arena *arena_borrow(Worker *worker)
{
    return worker->spare_count > 0 ? worker->spare[--worker->spare_count] : arena_new(HANDLER_BYTES_MAX);
}

void arena_return(Worker *worker, Arena *arena)
{
    if (worker->spare_count == SPARE_MAX) {
        arena_free(arena);
        return;
    }
    arena_reset(arena);
    worker->spare[worker->spare_count++] = arena;
}

void execution_drop(Worker *worker, Execution *execution)
{
    ClaimedBatch *claimed_batch = execution->claimed_batch;

    list_remove(execution);
    worker->held--;
    worker->waiting -= execution->state == EXECUTION_WAITING;
    worker->locked -= execution->state == EXECUTION_LOCKED;
    worker->lost -= execution->command->lost;
    worker->alone -= claimed_is_alone(execution->command);
    /* There may be more of its type now, or another one that was lost. */
    worker->woken |= worker->leaves_out || execution->command->lost;
    if (worker->leaves_out || execution->command->lost || worker->held == worker->locked)
        cond_signal(&worker->changed);
    space_note(worker);
    if (execution->arena)
        arena_return(worker, execution->arena);
    free(execution->progress);
    if (--claimed_batch->left == 0)
        claimed_batch_free(claimed_batch);
}

Mono executions_stale_at(const Worker *worker)
{
    Mono oldest = deadline_never().at;

    for (const Execution *execution = worker->queue.first; execution; execution = execution->next)
        if (mono_before(execution->claimed_batch->claimed_at, oldest))
            oldest = execution->claimed_batch->claimed_at;
    return worker->queue.first ? mono_plus_ms(oldest, WAITING_MS_MAX) : oldest;
}

void executions_add(Worker *worker, ClaimedBatch *claimed_batch)
{
    Execution                  *list = arena_array(claimed_batch->arena, Execution, claimed_batch->count);
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);

    for (int i = 0; i < claimed_batch->count; i++) {
        list[i].command       = &claimed_batch->list[i];
        list[i].prepared      = claimed_batch->prepared ? claimed_batch->prepared[i] : NULL;
        list[i].claimed_batch = claimed_batch;
        list[i].worker        = worker;
        list[i].kept_at       = claimed_batch->claimed_at;
        worker->lost += list[i].command->lost;
        worker->alone += claimed_is_alone(list[i].command);
        queue_add(worker, &list[i]);
    }
    worker->held += claimed_batch->count;
    handlers_grow(worker, worker->waiting + worker->running);
    cond_broadcast(&worker->arrived);
}

/* ---- one execution, on a handler thread ---- */

/* Has its lease run out, because the process was stopped for a while, or the database could not be reached? Then another worker may
 * have the command: the next heartbeat decides. */
static bool execution_is_doubtful(const Worker *worker, const Execution *execution)
{
    return FAULT("bus.lease.over") || mono_ms_between(execution->kept_at, clock_mono()) >= worker->options.lease_ms;
}

/* The first one that can begin; NULL: none. */
static Execution *execution_find_ready(const Worker *worker)
{
    Execution *execution = worker->queue.first;

    if (worker->stopping ||
        !outcomes_have_space(worker)) /* a worker that stops begins nothing: it releases what waits */
        return NULL;
    while (execution && (execution_is_doubtful(worker, execution) || !execution_is_allowed(worker, execution)))
        execution = execution->next;
    return execution;
}

static Execution *execution_take(Worker *worker)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);
    Execution                  *execution;

    while (!(execution = execution_find_ready(worker)) && !worker->closing)
        cond_wait(&worker->arrived, &worker->mutex, deadline_never());
    if (!execution)
        return NULL;
    execution_move(worker, execution);
    worker->waiting--;
    worker->running++;
    metric_add(&bus_metrics.handlers_running, 1);
    metric_add(&worker->metrics->handlers_running, 1);
    execution->state    = EXECUTION_RUNNING;
    execution->began_at = clock_mono();
    execution->arena    = arena_borrow(worker);
    execution->job =
        (Job){.command  = execution->command,
              .prepared = execution->prepared,
              .domain   = worker->options.domain,
              .arena    = execution->arena,
              .report   = execution_report,
              .flush    = execution_flush,
              .deadline = worker->options.timeout_ms ? deadline_in_ms(worker->options.timeout_ms) : deadline_never()};
    if (worker->options.timeout_ms)
        cond_signal(&worker->ticked);
    return execution;
}

StopReason execution_reason(Worker *worker, const Execution *execution)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);

    return execution->why == STOP_NONE && execution->job.timed_out ? STOP_TIMEOUT : execution->why;
}

bool stop_is_loss(StopReason why)
{
    return why == STOP_LOST || why == STOP_CANCELED;
}

bool settle_goes_on(Worker *worker, ErrorCode code)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);

    if (worker->closing && error_verdict(code) == VERDICT_FINAL)
        return false;
    return code != ERR_STOPPING && !(worker->stopping && deadline_passed(worker->stop_deadline));
}

/* Under the mutex: the handler of this execution has ended. */
static void running_end(Worker *worker, int64_t us)
{
    worker->running--;
    metric_add(&bus_metrics.handlers_running, -1);
    metric_add(&worker->metrics->handlers_running, -1);
    us = us < 10 * AHEAD_US_MAX ? us : 10 * AHEAD_US_MAX;
    worker->handler_us += (us - worker->handler_us) / 8;
    space_note(worker);
}

bool execution_lock(Worker *worker, Execution *execution)
{
    if (worker->stopping || worker->locked == WORKER_CONCURRENCY_MAX)
        return false;
    execution->state = EXECUTION_LOCKED;
    worker->locked++;
    if (execution->arena)
        arena_return(worker, take(execution->arena));
    cond_signal(&worker->changed);
    cond_signal(&worker->ticked);
    return true;
}

/* Its handler could not begin it, because another transaction has locked the lease. */
static void execution_set_aside(Worker *worker, Execution *execution)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);

    if (execution_lock(worker, execution))
        return;
    worker->counts.lost++;
    execution_drop(worker, execution);
}

void execution_resume(Worker *worker, Execution *execution)
{
    execution->why      = STOP_NONE;
    execution->prepared = NULL; /* it may have changed */
    worker->locked--;
    list_remove(execution);
    queue_add(worker, execution);
    cond_signal(&worker->arrived);
}

static void execution_run(Worker *worker, Execution *execution)
{
    SettleItem *item  = &execution->outcome;
    Mono        began = clock_mono();
    int64_t     us;

    *item = (SettleItem){.id       = execution->command->id,
                         .token    = execution->command->token,
                         .delay_ms = SETTLE_DELAY_DEFAULT};
    worker->options.handler->run(worker->options.handler, &execution->job, item);
    execution->handed_at = clock_mono();
    us                   = mono_us_between(began, execution->handed_at);
    if (item->settled)
        wake_names(&worker->wake, item->wake); /* it was settled by the handler's own transaction */
    metric_observe_us(&worker->metrics->handler_seconds, us);
    mutex_lock(&worker->mutex);
    execution->state = EXECUTION_SETTLING;
    running_end(worker, us);
    mutex_unlock(&worker->mutex);
    if (execution->job.not_begun) {
        pause_begin(worker, execution->job.not_begun);
        executions_release(worker, execution);
        return;
    }
    pause_end(worker);
    if (execution->job.is_locked)
        execution_set_aside(worker, execution);
    else {
        if (!item->status && item->outcome != OUTCOME_COMPLETE)
            execution_flush(&execution->job);
        outcome_hand_over(worker, execution);
    }
}

static void *handler_run(void *context)
{
    Worker    *worker = context;
    Execution *execution;

    while ((execution = execution_take(worker))) {
        log_set_request(execution->command->command_id);
        execution_run(worker, execution);
        log_set_request(NULL);
    }
    return NULL;
}

/* ---- beginning and end ---- */

/* Nothing waits for a thread any more: they end. */
static void handlers_end(Worker *worker)
{
    mutex_lock(&worker->mutex);
    worker->closing = true;
    cond_broadcast(&worker->arrived);
    cond_signal(&worker->ticked);
    mutex_unlock(&worker->mutex);
    for (int i = 0; i < worker->thread_count; i++)
        thread_join(worker->threads[i]);
    free(take(worker->threads));
}

/* By the dispatcher only. A thread that cannot be started is tried again with the next claim. */
static void handlers_grow(Worker *worker, int wanted)
{
    wanted = wanted < worker->options.concurrency ? wanted : worker->options.concurrency;
    while (worker->thread_count < wanted &&
           thread_try_start("handler", handler_run, worker, &worker->threads[worker->thread_count]))
        worker->thread_count++;
}

ErrorCode executions_start(Worker *worker, Error *reterr)
{
    int wanted = worker->options.is_lazy ? 1 : worker->options.concurrency;

    worker->threads      = memory_new((size_t)worker->options.concurrency, sizeof *worker->threads);
    worker->thread_count = 0;
    handlers_grow(worker, wanted);
    if (worker->thread_count == wanted && thread_try_start("heartbeat", heartbeat_run, worker, &worker->heartbeat))
        return OK;
    (void)fail(reterr, ERR_INTERNAL, "cannot start %d threads for handlers: %s", worker->options.concurrency + 1,
               strerrordesc_np(errno));
    handlers_end(worker);
    return ERR_INTERNAL;
}

void executions_end(Worker *worker)
{
    bool is_stopping;

    mutex_lock(&worker->mutex);
    is_stopping = worker->stopping;
    mutex_unlock(&worker->mutex);
    if (is_stopping)
        executions_release(worker, /* execution= */ NULL);
    handlers_end(worker);
    settler_end(worker);
    executions_release(worker,
                       /* execution= */ NULL); /* the stop may have come just now: then nothing more was begun */
    mutex_lock(&worker->mutex);
    cond_signal(&worker->ticked);
    mutex_unlock(&worker->mutex);
    thread_join(worker->heartbeat);
}
