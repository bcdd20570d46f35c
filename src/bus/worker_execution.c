/*
 * worker_execution.c - what a worker holds, and the threads that run it.
 *
 * An execution leaves the lists of what is held only when it is settled or lost; until then its lease is kept.
 *
 * A thread takes one execution, or several for a handler that runs them in one transaction (ADR 47). What such a transaction has undone goes back to the
 * front of the queue and runs alone: it was not tried, so it has neither an outcome nor a used attempt.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/problem.h"
#include "bus/metric.h"
#include "bus/offer.h"
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

/* By priority: behind those of the same one, or before them. */
static void queue_add(Worker *worker, Execution *execution, bool is_first)
{
    Execution *after    = worker->queue.last;
    int        priority = execution->command->priority;

    while (after && (is_first ? after->command->priority <= priority : after->command->priority < priority))
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
    /* There may be more of its type now, or another one that was lost, or one that was over a limit. */
    worker->woken |= worker->leaves_out || execution->command->lost || worker->again_ms >= 0;
    if (worker->woken || worker->held == worker->locked)
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
    Execution *list = arena_array(claimed_batch->arena, Execution, claimed_batch->count);

    for (int i = 0; i < claimed_batch->count; i++) {
        list[i].command       = &claimed_batch->list[i];
        list[i].prepared      = claimed_batch->prepared ? claimed_batch->prepared[i] : NULL;
        list[i].claimed_batch = claimed_batch;
        list[i].worker        = worker;
        list[i].kept_at       = claimed_batch->claimed_at;
        worker->lost += list[i].command->lost;
        worker->alone += claimed_is_alone(list[i].command);
        queue_add(worker, &list[i], /* is_first= */ false);
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

static bool execution_can_begin(const Worker *worker, const Execution *execution)
{
    return !execution_is_doubtful(worker, execution) && execution_is_allowed(worker, execution);
}

/* The first one that can begin; NULL: none. */
static Execution *execution_find_ready(const Worker *worker)
{
    Execution *execution = worker->queue.first;

    if (worker->stopping ||
        !outcomes_have_space(worker)) /* a worker that stops begins nothing: it releases what waits */
        return NULL;
    while (execution && !execution_can_begin(worker, execution))
        execution = execution->next;
    return execution;
}

static void execution_begin(Worker *worker, Execution *execution, Arena *arena)
{
    execution_move(worker, execution);
    worker->waiting--;
    execution->state    = EXECUTION_RUNNING;
    execution->began_at = clock_mono();
    execution->outcome  = (SettleItem){.id       = execution->command->id,
                                       .token    = execution->command->token,
                                       .delay_ms = SETTLE_DELAY_DEFAULT};
    execution->job =
        (Job){.command  = execution->command,
              .prepared = execution->prepared,
              .domain   = worker->options.domain,
              .arena    = arena,
              .report   = execution_report,
              .flush    = execution_flush,
              .deadline = worker->options.timeout_ms ? deadline_in_ms(worker->options.timeout_ms) : deadline_never()};
}

/* How many executions a thread takes: as many as its handler runs together, if as much is left for each other idle thread. */
static int share_most(const Worker *worker, const Execution *first)
{
    Handler *handler = worker->options.handler;
    int      idle    = worker->options.concurrency - worker->running;
    int      fair    = (worker->waiting + idle - 1) / idle;

    if (!handler->run_shared || first->is_undone || worker->options.shares_types || fair < 2)
        return 1;
    int most = handler->shared_most(handler);

    return most < fair ? most : fair;
}

/* Those that are run together, the first one with the arena of all of them. Returns how many; 0: the worker ends. */
static int executions_take(Worker *worker, Execution **ret_list)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);
    Execution                  *first, *next;
    size_t                      bytes = 0;
    int                         most, count = 0;

    while (!(first = execution_find_ready(worker)) && !worker->closing)
        cond_wait(&worker->arrived, &worker->mutex, deadline_never());
    if (!first)
        return 0;
    most         = share_most(worker, first);
    first->arena = arena_borrow(worker);
    for (Execution *at = first; at && count < most; at = next) {
        next = at->next;
        if (at != first && (at->is_undone || !execution_can_begin(worker, at)))
            continue;
        bytes += most > 1 ? strlen(at->command->payload) : 0;
        if (at != first && bytes > SHARED_BYTES_MAX)
            break;
        execution_begin(worker, at, first->arena);
        ret_list[count++] = at;
    }
    worker->running++;
    metric_add(&bus_metrics.handlers_running, 1);
    metric_add(&worker->metrics->handlers_running, 1);
    if (worker->options.timeout_ms)
        cond_signal(&worker->ticked);
    return count;
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

/* Under the mutex: a handler has ended. us: for each of `count` commands, which may be none. */
static void running_end(Worker *worker, int64_t us, int count)
{
    worker->running--;
    metric_add(&bus_metrics.handlers_running, -1);
    metric_add(&worker->metrics->handlers_running, -1);
    us = us < 10 * AHEAD_US_MAX ? us : 10 * AHEAD_US_MAX;
    for (int i = 0; i < count; i++)
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
    queue_add(worker, execution, /* is_first= */ false);
    cond_signal(&worker->arrived);
}

static void execution_run(Worker *worker, Execution *execution)
{
    SettleItem *item  = &execution->outcome;
    Mono        began = clock_mono();
    int64_t     us;

    worker->options.handler->run(worker->options.handler, &execution->job, item);
    execution->handed_at = clock_mono();
    us                   = mono_us_between(began, execution->handed_at);
    if (item->settled)
        wake_names(&worker->wake, item->wake); /* it was settled by the handler's own transaction */
    metric_observe_us(&worker->metrics->handler_seconds, us);
    mutex_lock(&worker->mutex);
    execution->state = EXECUTION_SETTLING;
    running_end(worker, us, 1);
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

/* ---- several executions, in one transaction ---- */

/* Under the mutex: run it alone, on the next thread that is free. One whose lease is lost is dropped: it has no effect. */
static void execution_undo(Worker *worker, Execution *execution)
{
    if (stop_is_loss(execution->why)) {
        worker_count(worker, &(SettleItem){.status = execution->why == STOP_CANCELED ? "CANCELED" : NULL});
        execution_drop(worker, execution);
        return;
    }
    execution->why       = STOP_NONE; /* the time limit was that of all */
    execution->is_undone = true;
    list_remove(execution);
    queue_add(worker, execution, /* is_first= */ true);
}

/* Under the mutex. Those that are settled come to the front; returns how many. The others go back, the last one first, so that they keep their order. */
static int executions_divide(Worker *worker, Execution **list, int count)
{
    Execution *undone[HANDLER_SHARED_MAX];
    int        settled = 0, left = 0;

    for (int i = 0; i < count; i++)
        if (list[i]->outcome.status) {
            list[i]->state  = EXECUTION_SETTLING;
            list[settled++] = list[i];
        } else
            undone[left++] = list[i];
    if (left > 0)
        cond_broadcast(&worker->arrived);
    while (left > 0)
        execution_undo(worker, undone[--left]);
    return settled;
}

static void executions_run_shared(Worker *worker, Execution **list, int count)
{
    Handler    *handler = worker->options.handler;
    Job        *jobs[HANDLER_SHARED_MAX];
    SettleItem *items[HANDLER_SHARED_MAX];
    Mono        began = clock_mono();

    for (int i = 0; i < count; i++) {
        jobs[i]  = &list[i]->job;
        items[i] = &list[i]->outcome;
    }
    handler->run_shared(handler, jobs, items, count);

    int64_t     us    = mono_us_between(began, clock_mono()) / count;
    const char *wakes = NULL;

    mutex_lock(&worker->mutex);
    Arena *arena = take(list[0]->arena); /* has the names of domains */
    count        = executions_divide(worker, list, count);
    running_end(worker, us, count);
    mutex_unlock(&worker->mutex);
    for (int i = 0; i < count; i++) {
        metric_observe_us(&worker->metrics->handler_seconds, us);
        wakes = list[i]->outcome.wake;
    }
    wake_names(&worker->wake, wakes);
    if (count > 0)
        pause_end(worker);
    for (int i = 0; i < count; i++)
        outcome_hand_over(worker, list[i]);
    mutex_lock(&worker->mutex);
    arena_return(worker, arena);
    mutex_unlock(&worker->mutex);
}

static void *handler_run(void *context)
{
    Worker    *worker = context;
    Execution *list[HANDLER_SHARED_MAX];
    int        count;

    while ((count = executions_take(worker, list)) > 0) {
        log_set_request(count == 1 ? list[0]->command->command_id : NULL);
        if (count == 1)
            execution_run(worker, list[0]);
        else
            executions_run_shared(worker, list, count);
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

/* Under the mutex, or before anything is claimed. A thread that cannot be started is tried again with the next claim. */
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
    offers_wait(worker);
    if (is_stopping) /* what they have started */
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
