/*
 * worker_execution.c - what a worker holds, and the threads that run it.
 *
 * An execution leaves the list of what is held only when it is settled or lost; until then its lease is kept.
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

#define CALL_MS           10000
#define AGAIN_MS          500
#define HANDLER_BYTES_MAX ((size_t)64 << 20)

static void handlers_grow(Worker *worker, int wanted);

/* ---- the list of what is held; under the mutex ---- */

static void execution_append(Worker *worker, Execution *execution)
{
    execution->previous                                    = worker->last;
    *(worker->last ? &worker->last->next : &worker->first) = execution;
    worker->last                                           = execution;
    worker->held++;
    worker->waiting++;
}

void execution_drop(Worker *worker, Execution *execution)
{
    ClaimedBatch *claimed_batch = execution->claimed_batch;

    *(execution->previous ? &execution->previous->next : &worker->first) = execution->next;
    *(execution->next ? &execution->next->previous : &worker->last)      = execution->previous;
    worker->held--;
    worker->waiting -= execution->state == EXECUTION_WAITING;
    worker->locked -= execution->state == EXECUTION_LOCKED;
    worker->woken |= worker->leaves_out; /* its type may have more now */
    cond_signal(&worker->changed);
    if (--claimed_batch->left == 0)
        claimed_batch_free(claimed_batch);
    free(execution->progress);
    free(execution);
}

static Execution *execution_find_waiting(const Worker *worker)
{
    Execution *execution = worker->first;

    while (execution && execution->state != EXECUTION_WAITING)
        execution = execution->next;
    return execution;
}

Mono executions_stale_at(const Worker *worker)
{
    const Execution *execution = execution_find_waiting(worker);

    return execution ? mono_plus_ms(execution->claimed_batch->claimed_at, WAITING_MS_MAX) : deadline_never().at;
}

void executions_add(Worker *worker, ClaimedBatch *claimed_batch)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);

    for (int i = 0; i < claimed_batch->count; i++) {
        Execution *execution = memory_new(1, sizeof *execution);

        execution->command       = &claimed_batch->list[i];
        execution->prepared      = claimed_batch->prepared ? claimed_batch->prepared[i] : NULL;
        execution->claimed_batch = claimed_batch;
        execution->worker        = worker;
        execution->kept_at       = claimed_batch->claimed_at;
        execution_append(worker, execution);
    }
    handlers_grow(worker, worker->held);
    cond_broadcast(&worker->arrived);
}

/* ---- one execution, on a handler thread ---- */

/* Has its lease run out, because the process was stopped for a while, or the database could not be reached? Then another worker may
 * have the command: the next heartbeat decides. */
static bool execution_is_doubtful(const Worker *worker, const Execution *execution)
{
    return FAULT("bus.lease.over") || mono_ms_between(execution->kept_at, clock_mono()) >= worker->options.lease_ms;
}

/* The first one that can begin. */
static Execution *execution_find_ready(const Worker *worker)
{
    Execution *execution = worker->first;

    while (execution && (execution->state != EXECUTION_WAITING || execution_is_doubtful(worker, execution) ||
                         !execution_is_allowed(worker, execution)))
        execution = execution->next;
    return execution;
}

static Execution *execution_take(Worker *worker, Arena *arena)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);
    Execution                  *execution;

    /* A worker that stops begins nothing: it releases what waits. */
    while (!(execution = worker->stopping ? NULL : execution_find_ready(worker)) && !worker->closing)
        cond_wait(&worker->arrived, &worker->mutex, deadline_never());
    if (!execution)
        return NULL;
    worker->waiting--;
    worker->running++;
    metric_add(&bus_metrics.handlers_running, 1);
    metric_add(&worker->metrics->handlers_running, 1);
    execution->state        = EXECUTION_RUNNING;
    execution->began_at     = clock_mono();
    execution->job.command  = execution->command;
    execution->job.prepared = execution->prepared;
    execution->job.domain   = worker->options.domain;
    execution->job.arena    = arena;
    execution->job.report   = execution_report;
    execution->job.flush    = execution_flush;
    execution->job.deadline =
        worker->options.timeout_ms ? deadline_in_ms(worker->options.timeout_ms) : deadline_never();
    if (worker->options.timeout_ms)
        cond_signal(&worker->ticked);
    return execution;
}

/* The worker's reason, then the handler's error. */
static void item_give_back(SettleItem *item, Arena *arena, int64_t delay_ms, const char *why)
{
    item->result   = NULL;
    item->error    = item->error ? arena_print(arena, "%s: %s", why, item->error) : why;
    item->delay_ms = delay_ms;
}

/* Why the worker stopped the handler goes before the reason of a retry. A handler that was stopped and still decided has decided: what it
 * completed, rejected or failed is not tried again. */
static void item_judge(const Worker *worker, StopReason why, Arena *arena, SettleItem *item)
{
    if (item->outcome != OUTCOME_RETRY)
        return;
    if (why == STOP_TIMEOUT)
        item_give_back(item, arena, SETTLE_DELAY_DEFAULT,
                       arena_print(arena, "handler ran longer than %d ms and was stopped", worker->options.timeout_ms));
    if (why == STOP_SHUTDOWN)
        item_give_back(item, arena, 0, "handler was stopped because its worker was");
}

static StopReason execution_reason(Worker *worker, const Execution *execution)
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

/* Was the handler's result or error refused? Any other failure is not the command's fault. */
static bool outcome_is_refused(const SettleItem *item, ErrorCode code)
{
    return (code == ERR_INVALID || code == ERR_LIMIT) && (item->result || item->outcome != OUTCOME_FAIL);
}

/* Waits out an outage while the lease is ours. A result that cannot be stored fails the command with the reason. */
static void item_settle(Worker *worker, const Execution *execution, Arena *arena, SettleItem *item)
{
    bool logged = false;

    while (!item->status && !stop_is_loss(execution_reason(worker, execution))) {
        Error     error = {0};
        ErrorCode code  = settler_settle(worker->settler, deadline_in_ms(CALL_MS), item, &error);

        if (code == OK)
            break;
        if (!logged)
            log_error(LOG_WARN, "worker", "cannot settle command, will retry", &error);
        logged = true;
        if (outcome_is_refused(item, code)) {
            item->outcome = OUTCOME_FAIL;
            item->result  = NULL;
            item->error   = arena_print(arena, "outcome could not be stored: %s", problem_stored(&error));
            continue;
        }
        if (!settle_goes_on(worker, code))
            break;
        clock_sleep_ms(AGAIN_MS);
    }
}

/* status: the present one; NULL: the database could not be asked. */
static void loss_log(const Execution *execution, StopReason why, const SettleItem *item)
{
    log_write(settle_is_canceled(item) ? LOG_INFO : LOG_WARN, "worker",
              settle_is_canceled(item)            ? "command was canceled, the outcome changed nothing"
              : item->status || stop_is_loss(why) ? "lease was lost, the outcome changed nothing"
                                                  : "outcome could not be stored, its lease expires",
              LOG_STR("command", execution->command->command_id), LOG_STR("outcome", outcome_names[item->outcome]),
              LOG_STR("status", item->status ? item->status : ""));
}

static void running_end(Worker *worker)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);

    worker->running--;
    metric_add(&bus_metrics.handlers_running, -1);
    metric_add(&worker->metrics->handlers_running, -1);
}

/* Under the mutex. */
static void duration_note(Worker *worker, int64_t us)
{
    us = us < 10 * AHEAD_US_MAX ? us : 10 * AHEAD_US_MAX;
    worker->handler_us += (us - worker->handler_us) / 8;
}

/* Another transaction has locked the lease. Keep the command; the heartbeat resumes it when the lock is gone. A worker that stops, or that
 * has many of them, lets the lease expire. */
static void execution_set_aside(Worker *worker, Execution *execution)
{
    running_end(worker);
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);

    if (worker->stopping || worker->locked == WORKER_CONCURRENCY_MAX) {
        worker->counts.lost++;
        execution_drop(worker, execution);
        return;
    }
    execution->state = EXECUTION_LOCKED;
    worker->locked++;
    cond_signal(&worker->changed);
    cond_signal(&worker->ticked);
}

void execution_resume(Worker *worker, Execution *execution)
{
    execution->state    = EXECUTION_WAITING;
    execution->why      = STOP_NONE;
    execution->prepared = NULL; /* it may have changed */
    execution->job      = (Job){0};
    worker->locked--;
    worker->waiting++;
    cond_signal(&worker->arrived);
}

static void execution_run(Worker *worker, Execution *execution, Arena *arena)
{
    SettleItem item  = {.id       = execution->command->id,
                        .token    = execution->command->token,
                        .delay_ms = SETTLE_DELAY_DEFAULT};
    Mono       began = clock_mono();

    worker->options.handler->run(worker->options.handler, &execution->job, &item);
    if (item.settled)
        wake_names(&worker->wake, item.wake); /* it was settled by the handler's own transaction */
    metric_observe_us(&worker->metrics->handler_seconds, mono_us_between(began, clock_mono()));
    mutex_lock(&worker->mutex);
    execution->state = EXECUTION_SETTLING;
    duration_note(worker, mono_us_between(began, clock_mono()));
    mutex_unlock(&worker->mutex);
    if (execution->job.not_begun) {
        pause_begin(worker, execution->job.not_begun);
        executions_release(worker, arena, execution);
        running_end(worker);
        return;
    }
    pause_end(worker);
    if (execution->job.is_locked) {
        execution_set_aside(worker, execution);
        return;
    }
    if (!item.status) {
        if (item.outcome != OUTCOME_COMPLETE)
            execution_flush(&execution->job);
        item_judge(worker, execution_reason(worker, execution), arena, &item);
        item_settle(worker, execution, arena, &item);
    }
    if (!item.status && execution_reason(worker, execution) == STOP_CANCELED)
        item.status = "CANCELED";
    if (!item.settled)
        loss_log(execution, execution_reason(worker, execution), &item);
    running_end(worker);
    mutex_lock(&worker->mutex);
    worker_count(worker, &item);
    worker->woken |= item.settled && (item.postponed || item.outcome == OUTCOME_RETRY); /* its time should be known */
    execution_drop(worker, execution);
    mutex_unlock(&worker->mutex);
}

static void *handler_run(void *context)
{
    Worker                   *worker = context;
    scoped(arena_free) Arena *arena  = arena_new(HANDLER_BYTES_MAX);
    Execution                *execution;

    while ((execution = execution_take(worker, arena))) {
        log_set_request(execution->command->command_id);
        execution_run(worker, execution, arena);
        log_set_request(NULL);
        arena_reset(arena);
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

    arena_reset(worker->arena);
    mutex_lock(&worker->mutex);
    is_stopping = worker->stopping;
    mutex_unlock(&worker->mutex);
    if (is_stopping)
        executions_release(worker, worker->arena, /* execution= */ NULL);
    handlers_end(worker);
    executions_release(worker, worker->arena,
                       /* execution= */ NULL); /* the stop may have come just now: then nothing more was begun */
    mutex_lock(&worker->mutex);
    cond_signal(&worker->ticked);
    mutex_unlock(&worker->mutex);
    thread_join(worker->heartbeat);
}
