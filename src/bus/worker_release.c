/*
 * worker_release.c - commands that were claimed and not begun go back to the queue without using up an attempt.
 *
 * Until the database has confirmed it for each of them they are held like any other: their leases are extended, and no handler takes them. One whose
 * lease another transaction has locked is LOCKED; a worker that stops tries to release it until the stop's deadline.
 */
#include <string.h>

#include "base/log.h"
#include "bus/claim.h"
#include "bus/worker_internal.h"

#define CALL_MS       10000
#define AGAIN_MS      500
#define BUSY_AGAIN_MS 50
#define PAUSE_MS      1000
#define PAUSE_MAX     30000

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

/* What is being released. */
typedef struct {
    Execution     **list;
    ClaimedCommand *commands;
    LeaseVerdict   *verdicts;
    int             count;
} Releasing;

/* Under the mutex: no handler takes it from here on. */
static void releasing_add(Worker *worker, Releasing *releasing, Execution *execution)
{
    worker->waiting -= execution->state == EXECUTION_WAITING;
    worker->locked -= execution->state == EXECUTION_LOCKED;
    execution->state                    = EXECUTION_SETTLING;
    releasing->list[releasing->count++] = execution;
}

static bool type_is_one(const char *type, const char *const *types, int count)
{
    for (int i = 0; i < count; i++)
        if (strcmp(types[i], type) == 0)
            return true;
    return !types;
}

/* The execution given, then those that wait, and if the worker stops those that are LOCKED. types: only of these; NULL: all. */
static void executions_collect(Worker *worker, Execution *execution, const char *const *types, int count,
                               Releasing *releasing)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);

    if (execution)
        releasing_add(worker, releasing, execution);
    for (Execution *at = worker->begun.first; at && worker->stopping && releasing->count < HELD_MAX; at = at->next)
        if (at->state == EXECUTION_LOCKED)
            releasing_add(worker, releasing, at);
    for (Execution *at = worker->queue.first, *next; at && releasing->count < HELD_MAX; at = next) {
        next = at->next;
        if (!type_is_one(at->command->type, types, count))
            continue;
        releasing_add(worker, releasing, at);
        execution_move(worker, at);
    }
}

/* Waits out an outage while the worker runs. false: the leases expire. */
static bool leases_release(Worker *worker, Arena *arena, Releasing *releasing)
{
    ArenaMark mark      = arena_mark(arena);
    bool      is_logged = false;

    for (int i = 0; i < releasing->count; i++)
        releasing->commands[i] = *releasing->list[i]->command;
    for (;;) {
        Error     error = {0};
        ErrorCode code  = lease_release(worker->options.pool, deadline_in_ms(CALL_MS), arena, releasing->commands,
                                        releasing->count, releasing->verdicts, &error);

        arena_rewind(arena, mark);
        if (code == OK)
            return true;
        if (!is_logged)
            log_error(LOG_WARN, "worker", "cannot release commands, will retry", &error);
        is_logged = true;
        if (!settle_goes_on(worker, code))
            return false;
        clock_sleep_ms(AGAIN_MS);
    }
}

/* Under the mutex. Its lease is locked: the heartbeat resumes it, unless the worker stops. Returns whether it is over. */
static bool release_is_over(Worker *worker, Execution *execution, LeaseVerdict verdict)
{
    if (verdict == LEASE_BUSY && worker->stopping)
        return false;
    if (verdict == LEASE_BUSY && execution_lock(worker, execution))
        return true;
    if (verdict == LEASE_RELEASED)
        worker->counts.released++;
    else
        worker_count(worker, &(SettleItem){.status = verdict == LEASE_CANCELED ? "CANCELED" : NULL});
    execution_drop(worker, execution);
    return true;
}

/* Those that are not over stay in the list. */
static void verdicts_take(Worker *worker, Releasing *releasing)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);
    int                         left = 0;

    for (int i = 0; i < releasing->count; i++)
        if (!release_is_over(worker, releasing->list[i], releasing->verdicts[i]))
            releasing->list[left++] = releasing->list[i];
    releasing->count = left;
}

static void executions_lose(Worker *worker, const Releasing *releasing)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);

    worker->counts.lost += releasing->count;
    for (int i = 0; i < releasing->count; i++)
        execution_drop(worker, releasing->list[i]);
}

static void collected_release(Worker *worker, Arena *arena, Releasing *releasing)
{
    while (releasing->count > 0 && leases_release(worker, arena, releasing)) {
        verdicts_take(worker, releasing);
        if (releasing->count == 0 || !settle_goes_on(worker, OK))
            break;
        clock_sleep_ms(BUSY_AGAIN_MS);
    }
    executions_lose(worker, releasing);
}

static Releasing releasing_new(Arena *arena)
{
    return (Releasing){.list     = arena_array(arena, Execution *, HELD_MAX),
                       .commands = arena_array(arena, ClaimedCommand, HELD_MAX),
                       .verdicts = arena_array(arena, LeaseVerdict, HELD_MAX)};
}

void executions_release(Worker *worker, Execution *execution)
{
    scoped(arena_free) Arena *arena     = arena_new(ARENA_BYTES_DEFAULT);
    Releasing                 releasing = releasing_new(arena);

    executions_collect(worker, execution, /* types= */ NULL, 0, &releasing);
    collected_release(worker, arena, &releasing);
}

void executions_release_types(Worker *worker, const char *const *types, int count)
{
    scoped(arena_free) Arena *arena     = arena_new(ARENA_BYTES_DEFAULT);
    Releasing                 releasing = releasing_new(arena);

    executions_collect(worker, /* execution= */ NULL, types, count, &releasing);
    collected_release(worker, arena, &releasing);
}
