/*
 * worker_heartbeat.c - the thread that extends the leases of what a worker holds, writes progress, and stops handlers that run too long.
 */
#include "base/log.h"
#include "bus/worker_internal.h"

#define BEATS     3    /* heartbeats within a lease */
#define LOCKED_MS 1000 /* between heartbeats of what is locked */

/* Under the mutex, so that run() cannot return meanwhile. */
static void execution_stop(Worker *worker, Execution *execution, StopReason why)
{
    if (execution->why == STOP_NONE || stop_is_loss(why))
        execution->why = why;
    if (execution->state != EXECUTION_RUNNING || atomic_exchange(&execution->job.stopped, true))
        return;
    if (worker->options.handler->stop)
        worker->options.handler->stop(worker->options.handler, &execution->job);
}

/* The lease of an execution that is LOCKED can be ended again. While the worker closes no handler is left that would run it, and nothing more is
 * released: its lease runs out. */
static void execution_unlock(Worker *worker, Execution *execution)
{
    if (!worker->closing) {
        execution_resume(worker, execution);
        return;
    }
    worker->counts.lost++;
    execution_drop(worker, execution);
}

static void verdict_take(Worker *worker, Execution *execution, LeaseVerdict verdict, Mono asked_at)
{
    if (verdict == LEASE_EXTENDED) {
        execution->kept_at = asked_at;
        if (execution->state == EXECUTION_LOCKED)
            execution_unlock(worker, execution);
        else if (execution->state == EXECUTION_WAITING) /* it may have been in doubt */
            cond_signal(&worker->arrived);
        return;
    }
    if (verdict == LEASE_BUSY)
        return; /* the next heartbeat asks again */
    if (execution->state != EXECUTION_WAITING && execution->state != EXECUTION_LOCKED) {
        execution_stop(worker, execution, verdict == LEASE_CANCELED ? STOP_CANCELED : STOP_LOST);
        return;
    }
    worker_count(worker, &(SettleItem){.status = verdict == LEASE_CANCELED ? "CANCELED" : NULL});
    execution_drop(worker, execution);
}

/* What a heartbeat has asked about. */
typedef struct {
    int64_t      *ids, *tokens;
    LeaseVerdict *verdicts;
    int           count;
} Beat;

/* Leases that expire before the heartbeat after the next one, and those that are locked. */
static void leases_collect(Worker *worker, Mono now, int every_ms, Beat *beat)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);

    for (Execution *at = execution_first(worker); at; at = execution_after(worker, at)) {
        bool is_asked = at->state == EXECUTION_LOCKED || mono_ms_between(at->kept_at, now) >= every_ms;

        at->beat = 0;
        if (!is_asked || beat->count == HELD_MAX)
            continue;
        beat->ids[beat->count]    = at->command->id;
        beat->tokens[beat->count] = at->command->token;
        at->beat                  = ++beat->count;
    }
}

static void verdicts_take(Worker *worker, const Beat *beat, Mono asked_at)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);

    for (Execution *at = execution_first(worker), *next; at; at = next) {
        next = execution_after(worker, at); /* it may be dropped */
        if (at->beat > 0)
            verdict_take(worker, at, beat->verdicts[at->beat - 1], asked_at);
    }
}

static void leases_extend(Worker *worker, int every_ms)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    Beat                      beat  = {.ids      = arena_array(arena, int64_t, HELD_MAX),
                                       .tokens   = arena_array(arena, int64_t, HELD_MAX),
                                       .verdicts = arena_array(arena, LeaseVerdict, HELD_MAX)};
    Mono                      now   = clock_mono();
    Error                     error = {0};

    leases_collect(worker, now, every_ms, &beat);
    if (beat.count == 0)
        return;
    if (lease_extend(worker->options.pool, deadline_in_ms(every_ms), arena, beat.ids, beat.tokens, beat.count,
                     worker->options.lease_ms, beat.verdicts, &error) != OK)
        log_error(LOG_WARN, "worker", "cannot extend leases, will retry", &error);
    else
        verdicts_take(worker, &beat, now);
}

/* Under the mutex: stop what runs too long, or longer than the worker; returns when to check again. */
static Deadline executions_stop_late(Worker *worker)
{
    Deadline next = worker->stopping ? worker->stop_deadline : deadline_never();
    bool     end  = deadline_passed(next);

    if (end)
        next = deadline_never();
    for (Execution *execution = worker->begun.first; execution; execution = execution->next) {
        if (execution->state != EXECUTION_RUNNING || execution->why != STOP_NONE)
            continue;
        if (end)
            execution_stop(worker, execution, STOP_SHUTDOWN);
        else if (deadline_passed(execution->job.deadline))
            execution_stop(worker, execution, STOP_TIMEOUT);
        else
            next = deadline_sooner(next, execution->job.deadline);
    }
    return next;
}

/* Under the mutex: the worker ends, and does not wait for the transactions that have them locked. */
static void executions_drop_locked(Worker *worker)
{
    for (Execution *at = worker->begun.first, *next; at; at = next) {
        next = at->next;
        if (at->state != EXECUTION_LOCKED)
            continue;
        worker->counts.lost++;
        execution_drop(worker, at);
    }
}

/* Under the mutex: the next heartbeat, sooner when something is locked. */
static Deadline beat_next(const Worker *worker, Deadline beat, Deadline *locked_beat)
{
    if (worker->locked == 0)
        *locked_beat = deadline_never();
    else if (!mono_before(locked_beat->at, deadline_never().at))
        *locked_beat = deadline_in_ms(LOCKED_MS);
    return deadline_sooner(beat, *locked_beat);
}

void *heartbeat_run(void *context)
{
    Worker  *worker   = context;
    int      every_ms = worker->options.lease_ms / BEATS;
    Deadline next = deadline_in_ms(every_ms), locked_beat = deadline_never();

    mutex_lock(&worker->mutex);
    while (!worker->closing || worker->held > 0) {
        Deadline late = executions_stop_late(worker), beat = beat_next(worker, next, &locked_beat);

        settler_start(worker);

        if (worker->closing && worker->locked > 0) {
            executions_drop_locked(worker);
            continue;
        }
        Deadline report = deadline_sooner(worker->report_at, worker->flush_at);

        cond_wait(&worker->ticked, &worker->mutex, deadline_sooner(deadline_sooner(beat, late), report));
        report = deadline_sooner(worker->report_at, worker->flush_at);
        if (deadline_passed(report)) {
            mutex_unlock(&worker->mutex);
            progress_write(worker, every_ms);
            mutex_lock(&worker->mutex);
        }
        if (!deadline_passed(beat))
            continue;
        mutex_unlock(&worker->mutex);
        leases_extend(worker, every_ms);
        next        = deadline_passed(next) ? deadline_in_ms(every_ms) : next;
        locked_beat = deadline_never();
        mutex_lock(&worker->mutex);
    }
    mutex_unlock(&worker->mutex);
    return NULL;
}
