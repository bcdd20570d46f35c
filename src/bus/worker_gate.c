/*
 * worker_gate.c - what a worker does about pauses and limits of its domain (ADR 52): it releases what it has claimed and not begun when its type is
 * paused, and claims again when a limit may leave space.
 *
 * A notification says that the domain was paused. If it is lost, the next claim says so, and what has waited for WAITING_MS_MAX is released in any case.
 */
#include <string.h>

#include "bus/claim.h"
#include "bus/worker_internal.h"
#include "pg/tx.h"
#include "sql.h"

void gate_notified(void *context, const char *channel, const char *payload)
{
    Worker                     *worker = context;
    scoped(mutex_unlock) Mutex *held   = mutex_hold(&worker->mutex);

    (void)channel;
    if (payload && strcmp(payload, worker->options.domain) != 0)
        return;
    worker->is_gate_noted = true;
    cond_signal(&worker->changed);
}

/* Under the mutex: is there anything that a pause could be about? */
static bool gate_is_due(Worker *worker)
{
    bool is_due = worker->is_gate_noted && worker->waiting > 0;

    worker->is_gate_noted = false;
    return is_due;
}

ErrorCode gate_check(Worker *worker, Deadline deadline, Error *reterr)
{
    TxOptions options = {.name = "pauses", .deadline = deadline, .arena = worker->arena, .read_only = true};
    void     *rows;
    int       count;
    bool      is_due;

    mutex_lock(&worker->mutex);
    is_due = gate_is_due(worker);
    mutex_unlock(&worker->mutex);
    if (!is_due)
        return OK;
    arena_reset(worker->arena);
    TRY(db_call_many(worker->options.pool, &options, sql_bus_pauses, DB_ARGS(db_text(worker->options.domain)),
                     &db_text_shape, &rows, &count, reterr));
    if (count == 0)
        return OK;

    const char *const *types = rows;

    if (strcmp(types[0], "*") == 0)
        executions_release(worker, /* execution= */ NULL);
    else
        executions_release_types(worker, types, count);
    return OK;
}

void gate_note(Worker *worker, const Claimer *claimer, int count)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);

    worker->again_ms = count == 0 ? claimer_again_ms(claimer) : -1;
    worker->is_gate_noted |= claimer_is_gated(claimer) && !worker->is_gated;
    worker->is_gated = claimer_is_gated(claimer);
    worker->is_careful |= worker->is_gated; /* nothing is claimed ahead */
}
