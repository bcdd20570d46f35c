/*
 * worker_job.c - handler threads, and the keeper who extends leases and stops what must stop.
 *
 * A job leaves the list of what is held only when it is settled or lost; until then its lease is kept.
 */
#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/metric.h"
#include "base/problem.h"
#include "bus/worker_inner.h"

#define CALL_MS           10000
#define AGAIN_MS          500
#define KEEP_TIMES        3 /* heartbeats within a lease */
#define HANDLER_BYTES_MAX ((size_t)64 << 20)

/* ---- the list of what is held; under the mutex ---- */

static void job_append(Worker *worker, Job *job)
{
    job->previous                                          = worker->last;
    *(worker->last ? &worker->last->next : &worker->first) = job;
    worker->last                                           = job;
    worker->held++;
    worker->waiting++;
}

void job_drop(Worker *worker, Job *job)
{
    Crate *crate = job->crate;

    *(job->previous ? &job->previous->next : &worker->first) = job->next;
    *(job->next ? &job->next->previous : &worker->last)      = job->previous;
    worker->held--;
    worker->waiting -= job->state == JOB_WAITING;
    cond_signal(&worker->changed);
    if (--crate->left == 0)
        crate_free(crate);
    free(job);
}

static Job *job_find_waiting(const Worker *worker)
{
    Job *job = worker->first;

    while (job && job->state != JOB_WAITING)
        job = job->next;
    return job;
}

static Job *job_find(const Worker *worker, int64_t id, int64_t token)
{
    Job *job = worker->first;

    while (job && (job->command->id != id || job->command->token != token))
        job = job->next;
    return job;
}

void jobs_add(Worker *worker, Crate *crate)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);

    for (int i = 0; i < crate->count; i++) {
        Job *job = calloc(1, sizeof *job);

        if (!job)
            abort();
        job->command = &crate->list[i];
        job->crate   = crate;
        job->kept_at = crate->claimed_at;
        job_append(worker, job);
    }
    cond_broadcast(&worker->arrived);
}

/* ---- one job, on a handler thread ---- */

static Job *job_take(Worker *worker, Arena *arena)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);
    Job                        *job;

    /* Once it stops nothing is begun: what waits is given back. */
    while (!(job = worker->stopping ? NULL : job_find_waiting(worker)) && !worker->closing)
        cond_wait(&worker->arrived, &worker->mutex, deadline_never());
    if (!job)
        return NULL;
    worker->waiting--;
    worker->running++;
    metric_add(METRIC_HANDLERS, 1);
    metric_series_add(worker->metrics, WORKER_HANDLERS, 1);
    job->state         = JOB_RUNNING;
    job->task.command  = job->command;
    job->task.domain   = worker->options.domain;
    job->task.arena    = arena;
    job->task.deadline = worker->options.timeout_ms ? deadline_in_ms(worker->options.timeout_ms) : deadline_never();
    if (worker->options.timeout_ms)
        cond_signal(&worker->ticked);
    return job;
}

static void item_give_back(SettleItem *item, int64_t delay_ms, const char *error)
{
    item->outcome  = OUTCOME_RETRY;
    item->result   = NULL;
    item->error    = error;
    item->delay_ms = delay_ms;
}

/* What the handler said, in the light of why it was stopped. What was completed all the same stays so. */
static void item_judge(const Worker *worker, StopReason why, Arena *arena, SettleItem *item)
{
    if (item->outcome == OUTCOME_COMPLETE)
        return;
    if (why == STOP_TIMEOUT)
        item_give_back(item, SETTLE_DELAY_DEFAULT,
                       arena_print(arena, "handler ran longer than %d ms and was stopped", worker->options.timeout_ms));
    if (why == STOP_SHUTDOWN)
        item_give_back(item, 0, "handler was stopped because its worker was");
}

static StopReason job_reason(Worker *worker, const Job *job)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);

    return job->why;
}

static bool stop_is_loss(StopReason why)
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

/* Is it what the handler said that cannot be stored? Anything else that is wrong is not the command's fault. */
static bool outcome_is_refused(const SettleItem *item, ErrorCode code)
{
    return (code == ERR_INVALID || code == ERR_LIMIT) && (item->result || item->outcome != OUTCOME_FAIL);
}

/* As long as the lease is ours: outages are waited out, and what cannot be stored is given up with the reason. */
static void item_settle(Worker *worker, const Job *job, Arena *arena, SettleItem *item)
{
    bool told = false;

    while (!item->status && !stop_is_loss(job_reason(worker, job))) {
        Error     error = {0};
        ErrorCode code  = settler_settle(worker->settler, deadline_in_ms(CALL_MS), item, &error);

        if (code == OK)
            break;
        if (!told)
            log_error(LOG_WARN, "worker", "cannot settle a command, trying on", &error);
        told = true;
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

/* status: how it stands now; NULL: that could not be asked. */
static void loss_log(const Job *job, StopReason why, const SettleItem *item)
{
    log_write(LOG_WARN, "worker",
              item->status || stop_is_loss(why) ? "lease was lost, the outcome changed nothing"
                                                : "outcome could not be told, its lease runs out",
              LOG_STR("command", job->command->command_id), LOG_STR("outcome", outcome_names[item->outcome]),
              LOG_STR("status", item->status ? item->status : ""));
}

static void running_end(Worker *worker)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);

    worker->running--;
    metric_add(METRIC_HANDLERS, -1);
    metric_series_add(worker->metrics, WORKER_HANDLERS, -1);
}

static void job_run(Worker *worker, Job *job, Arena *arena)
{
    SettleItem item  = {.id = job->command->id, .token = job->command->token, .delay_ms = SETTLE_DELAY_DEFAULT};
    Mono       began = clock_mono();

    worker->options.handler->run(worker->options.handler, &job->task, &item);
    metric_series_observe_us(worker->metrics, WORKER_HANDLER_SECONDS, mono_us_between(began, clock_mono()));
    mutex_lock(&worker->mutex);
    job->state = JOB_SETTLING;
    mutex_unlock(&worker->mutex);
    if (job->task.not_begun) {
        pause_begin(worker, job->task.not_begun);
        jobs_release(worker, arena, job);
        running_end(worker);
        return;
    }
    pause_end(worker);
    if (!item.status) {
        item_judge(worker, job_reason(worker, job), arena, &item);
        item_settle(worker, job, arena, &item);
    }
    if (!item.settled)
        loss_log(job, job_reason(worker, job), &item);
    running_end(worker);
    mutex_lock(&worker->mutex);
    worker_count(worker, &item);
    worker->poked |= item.settled && item.outcome == OUTCOME_RETRY; /* its time should be known */
    job_drop(worker, job);
    mutex_unlock(&worker->mutex);
}

static void *handler_run(void *context)
{
    Worker                   *worker = context;
    scoped(arena_free) Arena *arena  = arena_new(HANDLER_BYTES_MAX);
    Job                      *job;

    while ((job = job_take(worker, arena))) {
        log_set_request(job->command->command_id);
        job_run(worker, job, arena);
        log_set_request(NULL);
        arena_reset(arena);
    }
    return NULL;
}

/* ---- the keeper ---- */

/* Under the mutex, so that run() cannot return meanwhile. */
static void job_stop(Worker *worker, Job *job, StopReason why)
{
    if (job->why == STOP_NONE || stop_is_loss(why))
        job->why = why;
    if (job->state != JOB_RUNNING || atomic_exchange(&job->task.stopped, true))
        return;
    if (worker->options.handler->stop)
        worker->options.handler->stop(worker->options.handler, &job->task);
}

static void verdict_take(Worker *worker, Job *job, LeaseVerdict verdict, Mono asked_at)
{
    if (verdict == LEASE_EXTENDED) {
        job->kept_at = asked_at;
        return;
    }
    if (verdict == LEASE_BUSY)
        return; /* the next heartbeat asks again */
    if (job->state != JOB_WAITING) {
        job_stop(worker, job, verdict == LEASE_CANCELED ? STOP_CANCELED : STOP_LOST);
        return;
    }
    worker_count(worker, &(SettleItem){.settled = false});
    job_drop(worker, job);
}

/* Leases that will not last until the next heartbeat but one. */
static int leases_collect(Worker *worker, Mono now, int every_ms, int64_t *ret_ids, int64_t *ret_tokens)
{
    scoped(mutex_unlock) Mutex *held  = mutex_hold(&worker->mutex);
    int                         count = 0;

    for (const Job *job = worker->first; job && count < 2 * WORKER_CONCURRENCY_MAX; job = job->next)
        if (mono_ms_between(job->kept_at, now) >= every_ms) {
            ret_ids[count]    = job->command->id;
            ret_tokens[count] = job->command->token;
            count++;
        }
    return count;
}

static void leases_keep(Worker *worker, int every_ms)
{
    scoped(arena_free) Arena *arena    = arena_new(ARENA_BYTES_DEFAULT);
    int64_t                  *ids      = arena_array(arena, int64_t, 2 * WORKER_CONCURRENCY_MAX);
    int64_t                  *tokens   = arena_array(arena, int64_t, 2 * WORKER_CONCURRENCY_MAX);
    LeaseVerdict             *verdicts = arena_array(arena, LeaseVerdict, 2 * WORKER_CONCURRENCY_MAX);
    Mono                      now      = clock_mono();
    Error                     error    = {0};
    int                       count    = leases_collect(worker, now, every_ms, ids, tokens);

    if (count == 0)
        return;
    if (lease_extend(worker->options.pool, deadline_in_ms(every_ms), arena, ids, tokens, count,
                     worker->options.lease_ms, verdicts, &error) != OK) {
        log_error(LOG_WARN, "worker", "leases could not be extended, trying on", &error);
        return;
    }
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);
    for (int i = 0; i < count; i++) {
        Job *job = job_find(worker, ids[i], tokens[i]);

        if (job)
            verdict_take(worker, job, verdicts[i], now);
    }
}

/* Under the mutex: stop what runs too long, or longer than the worker; returns when to look again. */
static Deadline jobs_stop_late(Worker *worker)
{
    Deadline next = worker->stopping ? worker->stop_deadline : deadline_never();
    bool     end  = deadline_passed(next);

    if (end)
        next = deadline_never();
    for (Job *job = worker->first; job; job = job->next) {
        if (job->state != JOB_RUNNING || job->why != STOP_NONE)
            continue;
        if (end)
            job_stop(worker, job, STOP_SHUTDOWN);
        else if (deadline_passed(job->task.deadline))
            job_stop(worker, job, STOP_TIMEOUT);
        else
            next = deadline_sooner(next, job->task.deadline);
    }
    return next;
}

static void *keeper_run(void *context)
{
    Worker  *worker   = context;
    int      every_ms = worker->options.lease_ms / KEEP_TIMES;
    Deadline beat     = deadline_in_ms(every_ms);

    mutex_lock(&worker->mutex);
    while (!worker->closing || worker->held > 0) {
        Deadline late = jobs_stop_late(worker);

        cond_wait(&worker->ticked, &worker->mutex, deadline_sooner(beat, late));
        if (!deadline_passed(beat))
            continue;
        mutex_unlock(&worker->mutex);
        leases_keep(worker, every_ms);
        beat = deadline_in_ms(every_ms);
        mutex_lock(&worker->mutex);
    }
    mutex_unlock(&worker->mutex);
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

ErrorCode jobs_start(Worker *worker, Error *reterr)
{
    worker->threads      = memory_new((size_t)worker->options.concurrency, sizeof *worker->threads);
    worker->thread_count = 0;
    while (worker->thread_count < worker->options.concurrency &&
           thread_try_start("handler", handler_run, worker, &worker->threads[worker->thread_count]))
        worker->thread_count++;
    if (worker->thread_count == worker->options.concurrency &&
        thread_try_start("keeper", keeper_run, worker, &worker->keeper))
        return OK;
    (void)fail(reterr, ERR_INTERNAL, "cannot start %d threads for handlers: %s", worker->options.concurrency + 1,
               strerrordesc_np(errno));
    handlers_end(worker);
    return ERR_INTERNAL;
}

void jobs_end(Worker *worker)
{
    bool is_stopping;

    arena_reset(worker->arena);
    mutex_lock(&worker->mutex);
    is_stopping = worker->stopping;
    mutex_unlock(&worker->mutex);
    if (is_stopping)
        jobs_release(worker, worker->arena, /* job= */ NULL);
    handlers_end(worker);
    jobs_release(worker, worker->arena,
                 /* job= */ NULL); /* the stop may have come just now: then nothing more was begun */
    mutex_lock(&worker->mutex);
    cond_signal(&worker->ticked);
    mutex_unlock(&worker->mutex);
    thread_join(worker->keeper);
}
