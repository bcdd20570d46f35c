/*
 * worker_release.c - commands that were claimed and not begun go back to the queue without using up an attempt.
 *
 * Until the database has confirmed it they are held like any other: their leases are extended, and no handler takes them.
 */
#include "base/log.h"
#include "bus/claim.h"
#include "bus/worker_internal.h"

#define CALL_MS   10000
#define AGAIN_MS  500
#define PAUSE_MS  1000
#define PAUSE_MAX 30000

/* ---- the pause of a worker that cannot begin a command ---- */

void pause_begin(Worker *worker, const char *why)
{
    Mono now = clock_mono();
    bool is_first;

    mutex_lock(&worker->mutex);
    is_first = worker->pause_ms == 0;
    if (!mono_before(now, worker->paused_until)) { /* several threads may fail for one reason */
        worker->pause_ms = is_first ? PAUSE_MS : worker->pause_ms < PAUSE_MAX / 2 ? 2 * worker->pause_ms : PAUSE_MAX;
        worker->paused_until = mono_plus_ms(now, worker->pause_ms);
    }
    mutex_unlock(&worker->mutex);
    if (is_first)
        log_write(LOG_WARN, "worker", "cannot begin a command: pausing", LOG_STR("domain", worker->options.domain),
                  LOG_STR("error", why));
}

void pause_end(Worker *worker)
{
    bool was_paused;

    mutex_lock(&worker->mutex);
    was_paused       = worker->pause_ms != 0;
    worker->pause_ms = 0;
    mutex_unlock(&worker->mutex);
    if (was_paused)
        log_write(LOG_INFO, "worker", "commands can be begun again", LOG_STR("domain", worker->options.domain));
}

/* ---- release ---- */

/* The execution given, then those that wait. From here on no handler takes them. */
static int executions_collect(Worker *worker, Execution *execution, Execution **ret_list)
{
    scoped(mutex_unlock) Mutex *held  = mutex_hold(&worker->mutex);
    int                         count = 0;

    if (execution)
        ret_list[count++] = execution;
    for (Execution *waiting = worker->queue.first, *next; waiting && count < HELD_MAX; waiting = next) {
        next           = waiting->next;
        waiting->state = EXECUTION_SETTLING;
        worker->waiting--;
        execution_move(worker, waiting);
        ret_list[count++] = waiting;
    }
    return count;
}

/* Waits out an outage while the worker runs. false: the leases expire. */
static bool leases_release(Worker *worker, Arena *arena, Execution **list, int count)
{
    ClaimedCommand *commands  = arena_array(arena, ClaimedCommand, count);
    ArenaMark       mark      = arena_mark(arena);
    bool            is_logged = false;

    for (int i = 0; i < count; i++)
        commands[i] = *list[i]->command;
    for (;;) {
        Error     error = {0};
        ErrorCode code  = lease_release(worker->options.pool, deadline_in_ms(CALL_MS), arena, commands, count, &error);

        if (code == OK)
            return true;
        if (!is_logged)
            log_error(LOG_WARN, "worker", "cannot release commands, will retry", &error);
        is_logged = true;
        if (!settle_goes_on(worker, code))
            return false;
        clock_sleep_ms(AGAIN_MS);
        arena_rewind(arena, mark);
    }
}

void executions_release(Worker *worker, Execution *execution)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    Execution               **list  = arena_array(arena, Execution *, HELD_MAX);
    int                       count = executions_collect(worker, execution, list);
    bool                      is_released;

    if (count == 0)
        return;
    is_released                      = leases_release(worker, arena, list, count);
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);
    *(is_released ? &worker->counts.released : &worker->counts.lost) += count;
    for (int i = 0; i < count; i++)
        execution_drop(worker, list[i]);
}
