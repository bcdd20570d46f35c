/*
 * pool_end.c - end processes of the server in which code that is not pawl's outlives its transaction: invariant 7 of
 * pool.h.
 *
 * A slot counts against size_max until its process is gone, so however many of them hang, the server never sees more
 * connections of this pool than size_max and the one that ends them. That one is opened when such code first runs:
 * later its login may have no connection left.
 */
#include <string.h>

#include "base/log.h"
#include "pg/metric.h"
#include "pg/pool_internal.h"
#include "pg/query.h"
#include "sql.h"

/* Between two tries to connect, and for one question. */
#define ENDER_RETRY_MS 1000
#define ENDER_CALL_MS  5000
#define ENDER_BYTES    4096

#define ENDING_COLUMNS(X, T) X(T, BOOL, is_there, is_ended, is_refused)
DB_ROW(Ending, ENDING_COLUMNS);
DB_SHAPE(ending, Ending, ENDING_COLUMNS);

void checkout_runs_foreign(Checkout *checkout, int process)
{
    Pool                       *pool = checkout->pool;
    scoped(mutex_unlock) Mutex *held = mutex_hold(&pool->mutex);

    checkout->process  = process;
    checkout->begun_at = clock_mono();
    checkout->is_over  = false;
    checkout->is_ended = false;
    if (!pool->runs_foreign)
        pool_wake_janitor(pool);
    pool->runs_foreign = true;
}

/* A connection that is idle or waits for the next statement ends with its socket. */
bool slot_may_run_on(const Checkout *slot)
{
    PGTransactionStatusType status = conn_transaction(slot->conn);

    return slot->process && (status == PQTRANS_ACTIVE || status == PQTRANS_UNKNOWN);
}

/* Is it worth to connect now? During an outage the janitor probes first, if it has a slot for that. */
static bool ender_is_due(Pool *pool)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&pool->mutex);
    bool may = breaker_is_closed(&pool->breaker) ? !pool->closing || pool->counts[SLOT_ENDING] : !pool->free;

    if (!pool->runs_foreign || pool->ender || !may || mono_before(clock_mono(), pool->next_ender))
        return false;
    pool->next_ender = mono_plus_ms(clock_mono(), ENDER_RETRY_MS);
    return true;
}

static void ender_open(Pool *pool)
{
    Error error = {0};

    if (ender_is_due(pool) &&
        conn_open(pool->ends_own ? pool->options.conninfo : pool->options.end_conninfo, pool->options.application_name,
                  janitor_deadline(pool, pool->options.connect_ms_max), &pool->ender, &error) != OK)
        log_error(LOG_WARN, "pool", "no connection to end functions that outlive their deadline", &error);
}

void ender_check(Pool *pool)
{
    if (pool->ender && !conn_answers(pool, pool->ender))
        conn_close(take(pool->ender));
}

static ErrorCode process_end(Pool *pool, int process, int64_t age_ms, Ending *ret_ending, Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(ENDER_BYTES);
    Tx                        tx    = {.conn       = pool->ender,
                                       .arena      = arena,
                                       .deadline   = janitor_deadline(pool, ENDER_CALL_MS),
                                       .autocommit = true,
                                       .read_only  = true};

    return db_one(&tx, sql_pg_process_end, DB_ARGS(db_i64(process), db_i64(age_ms)), &ending_shape, ret_ending, reterr);
}

/* Its own login may, but code of the same login may end that connection first. */
static bool ender_refused(Pool *pool, int process)
{
    if (pool->ends_own || strcmp(pool->options.end_conninfo, pool->options.conninfo) == 0)
        return false;
    pool->ends_own = true;
    log_write(LOG_WARN, "pool",
              "pawl's login may not end sessions of the handlers', so theirs does, which can be prevented: pawl doctor",
              LOG_INT("pid", process));
    return true;
}

/* The process that is to be ended for this slot; 0: none. */
static int ending_process(Pool *pool, const Checkout *slot, int64_t *ret_age_ms)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&pool->mutex);

    *ret_age_ms = mono_ms_between(slot->begun_at, clock_mono());
    return slot->state == SLOT_ENDING || (slot->state == SLOT_ACQUIRED && slot->is_over) ? slot->process : 0;
}

static void ending_free(Checkout *slot)
{
    Pool                       *pool = slot->pool;
    scoped(mutex_unlock) Mutex *held = mutex_hold(&pool->mutex);

    if (slot->state != SLOT_ENDING) /* its owner gives it back */
        return;
    slot->process = 0;
    slot_offer(slot);
    pool_gauges(pool);
}

/* false: the connection is of no use any more. */
static bool slot_end(Checkout *slot)
{
    Pool   *pool = slot->pool;
    Ending  ending;
    Error   error = {0};
    int64_t age_ms;
    int     process = ending_process(pool, slot, &age_ms);

    if (!process)
        return true;
    if (process_end(pool, process, age_ms, &ending, &error) != OK) {
        if (strcmp(error.sqlstate, "42501") == 0 && ender_refused(pool, process))
            return false;
        log_error(LOG_WARN, "pool", "cannot end a function that outlives its deadline, will retry", &error);
        return false;
    }
    if (ending.is_refused && ender_refused(pool, process))
        return false;
    if (!ending.is_there)
        ending_free(slot);
    if (!ending.is_ended || slot->is_ended)
        return true;
    slot->is_ended = true;
    metric_add(&pg_metrics.processes_ended, 1);
    log_write(LOG_WARN, "pool", "ended a process of the server whose function outlived its deadline",
              LOG_INT("pid", process), LOG_INT("ms", age_ms));
    return true;
}

/* Are there any, also those whose slot is still held? */
static bool endings_left(Pool *pool)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&pool->mutex);
    bool                        left = pool->counts[SLOT_ENDING] > 0;

    for (int i = 0; i < pool->options.size_max && pool->closing && !left; i++)
        left = pool->slots[i].state == SLOT_ACQUIRED && pool->slots[i].is_over && pool->slots[i].process;
    return left;
}

bool endings_tend(Pool *pool)
{
    ender_open(pool);
    if (!endings_left(pool))
        return false;
    for (int i = 0; i < pool->options.size_max && pool->ender; i++)
        if (!slot_end(&pool->slots[i]))
            conn_close(take(pool->ender));
    return endings_left(pool);
}
