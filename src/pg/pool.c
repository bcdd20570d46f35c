/*
 * pool.c - life cycle, acquire, release and status of a pool; see pool.h. Slots and waiters: pool_slot.c. Connecting:
 * pool_open.c. Processes that outlive their deadline: pool_end.c. Upkeep: janitor.c.
 */
#include "pg/pool_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "pg/metric.h"

/* How long pool_free() waits for what the janitor is asking a server that does not answer. */
#define JANITOR_MS 500

/* ---- life cycle ---- */

static int or_default(int given, int fallback)
{
    return given ? given : fallback;
}

static PoolOptions with_defaults(const PoolOptions *given)
{
    PoolOptions options = *given;

    options.size_max         = or_default(given->size_max, 10);
    options.size_min         = or_default(given->size_min, options.size_max < 2 ? options.size_max : 2);
    options.idle_ms_max      = or_default(given->idle_ms_max, 5 * 60 * 1000);
    options.lifetime_ms_max  = or_default(given->lifetime_ms_max, 60 * 60 * 1000);
    options.connect_ms_max   = or_default(given->connect_ms_max, 5000);
    options.check_ms         = or_default(given->check_ms, 30 * 1000);
    options.check_ms_max     = or_default(given->check_ms_max, 2000);
    options.breaker_failures = or_default(given->breaker_failures, 5);
    options.breaker_first_ms = or_default(given->breaker_first_ms, 1000);
    options.breaker_open_ms  = or_default(given->breaker_open_ms, 30 * 1000);
    options.connect_retry    = given->connect_retry.delay_ms ? given->connect_retry : retry_connect;
    options.operation_retry  = given->operation_retry.delay_ms ? given->operation_retry : retry_operation;
    return options;
}

static ErrorCode options_check(const PoolOptions *options, Error *reterr)
{
    char text[CONNINFO_TEXT_SIZE];

    if (options->size_max < 1 || options->size_max > POOL_SIZE_MAX)
        return fail(reterr, ERR_USAGE, "pool size %d is out of range: 1 to %d", options->size_max, POOL_SIZE_MAX);
    if (options->size_min < 0 || options->size_min > options->size_max)
        return fail(reterr, ERR_USAGE, "pool minimum %d is out of range: 0 to %d", options->size_min,
                    options->size_max);
    if (options->size_reserved < 0 || options->size_reserved >= options->size_max)
        return fail(reterr, ERR_USAGE, "reserved connections must be from 0 to %d, got %d", options->size_max - 1,
                    options->size_reserved);
    return conninfo_describe(options->conninfo, text, reterr);
}

/* Without its thread. */
static Pool *pool_make(PoolOptions options)
{
    Pool *pool = memory_new(1, sizeof *pool);

    options.conninfo         = memory_text(options.conninfo);
    options.end_conninfo     = memory_text(options.end_conninfo ? options.end_conninfo : options.conninfo);
    options.application_name = memory_text(options.application_name ? options.application_name : "pawl");
    pool->options            = options;
    pool->slots              = memory_new((size_t)options.size_max, sizeof *pool->slots);
    pool->last               = &pool->first;
    mutex_init(&pool->mutex);
    cond_init(&pool->drained);
    cond_init(&pool->janitor_wake);
    breaker_init(&pool->breaker, options.breaker_failures, options.breaker_first_ms, options.breaker_open_ms,
                 options.connect_ms_max);
    pool->next_check        = mono_plus_ms(clock_mono(), options.check_ms);
    pool->counts[SLOT_FREE] = options.size_max;
    for (int i = options.size_max - 1; i >= 0; i--) {
        pool->slots[i].pool = pool;
        slot_push(&pool->free, &pool->slots[i], SLOT_FREE);
    }
    return pool;
}

ErrorCode pool_new(const PoolOptions *given, Pool **ret_pool, Error *reterr)
{
    PoolOptions options = with_defaults(given);
    Pool       *pool;

    TRY(options_check(&options, reterr));
    pool = pool_make(options);
    metric_set(&pg_metrics.pool_min, options.size_min);
    metric_set(&pg_metrics.pool_max, options.size_max);
    if (!options.no_janitor && !thread_try_start("janitor", janitor_run, pool, &pool->janitor)) {
        (void)fail(reterr, ERR_INTERNAL, "cannot start the thread \"janitor\": %s", strerrordesc_np(errno));
        pool->options.no_janitor = true;
        pool_free(pool);
        return ERR_INTERNAL;
    }
    *ret_pool = pool;
    return OK;
}

bool pool_drain(Pool *pool, Deadline deadline)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&pool->mutex);

    pool->closing = true;
    waiters_refuse(pool, ERR_STOPPING);
    while (!pool_is_quiet(pool) && cond_wait(&pool->drained, held, deadline))
        ;
    if (pool_is_quiet(pool))
        return true;
    for (int i = 0; i < pool->options.size_max; i++)
        if (pool->slots[i].state == SLOT_ACQUIRED && pool->slots[i].conn) {
            conn_interrupt(pool->slots[i].conn);
            pool->slots[i].is_over = true;
        }
    pool_wake_janitor(pool);
    return false;
}

static void janitor_end(Pool *pool)
{
    if (pool->options.no_janitor)
        return;
    mutex_lock(&pool->mutex);
    pool->janitor_stop = true;
    cond_signal(&pool->janitor_wake);
    mutex_unlock(&pool->mutex);
    cut_at(&pool->closed, mono_plus_ms(clock_mono(), JANITOR_MS));
    thread_join(pool->janitor);
}

void pool_free(Pool *pool)
{
    Deadline ended = deadline_in_ms(JANITOR_MS);

    mutex_lock(&pool->mutex);
    pool->closing = true;
    while (pool->counts[SLOT_ENDING] && !pool->options.no_janitor && cond_wait(&pool->drained, &pool->mutex, ended))
        ;
    mutex_unlock(&pool->mutex);
    janitor_end(pool);
    assert(pool->counts[SLOT_FREE] + pool->counts[SLOT_IDLE] + pool->counts[SLOT_ENDING] == pool->options.size_max &&
           !pool->first);
    if (pool->ender)
        conn_close(pool->ender);
    for (Checkout *slot = pool->idle; slot; slot = slot->next)
        conn_close(slot->conn);
    mutex_done(&pool->mutex);
    cond_done(&pool->drained);
    cond_done(&pool->janitor_wake);
    free((void *)(uintptr_t)pool->options.conninfo);
    free((void *)(uintptr_t)pool->options.end_conninfo);
    free((void *)(uintptr_t)pool->options.application_name);
    free(pool->slots);
    free(pool);
}

/* ---- acquire ---- */

/* While a probe is under way, the next one is at least the breaker's open time away. */
static int next_probe_ms(const Pool *pool)
{
    return pool->breaker.state == BREAKER_OPEN ? deadline_left_ms((Deadline){breaker_next_probe(&pool->breaker)})
                                               : pool->breaker.open_ms;
}

ErrorCode pool_refuse(const Pool *pool, ErrorCode code, Error *reterr)
{
    if (code == ERR_STOPPING)
        return fail(reterr, ERR_STOPPING, "shutting down");
    metric_add(&pg_metrics.breaker_refused, 1);
    (void)fail(reterr, ERR_UNAVAILABLE, "database is unavailable, next try in %d ms: %s", next_probe_ms(pool),
               pool->last_error.text);
    error_set_sqlstate(reterr, pool->last_error.sqlstate);
    if (reterr)
        reterr->retry_ms = next_probe_ms(pool) + 1;
    return ERR_UNAVAILABLE;
}

static ErrorCode slot_wait(Pool *pool, Deadline deadline, int wishes, Checkout **ret_slot, Error *reterr)
{
    ErrorCode refused = OK;
    Checkout *slot    = waiters_join(pool, deadline, wishes, /* own= */ NULL, &refused);

    if (slot) {
        *ret_slot = slot;
        return OK;
    }
    if (refused != OK || !breaker_is_closed(&pool->breaker))
        return pool_refuse(pool, refused == OK ? ERR_UNAVAILABLE : refused, reterr);
    metric_add(&pg_metrics.pool_wait_timeouts, 1);
    return fail(reterr, ERR_BUSY, "no connection became free in time: %d in use, %d more waiting",
                pool->counts[SLOT_ACQUIRED], pool->waiting);
}

/* An idle connection, or a slot to connect; NULL: none for this caller. */
static Checkout *slot_find(Pool *pool, bool urgent)
{
    Checkout *slot = NULL;

    if (!breaker_is_closed(&pool->breaker) || (!urgent && !ordinary_may_take(pool)))
        return NULL;
    slot = slot_pop(&pool->idle, SLOT_ACQUIRED);
    if (!slot)
        slot = slot_pop(&pool->free, SLOT_OPENING);
    if (slot)
        slot_hold(slot, urgent);
    return slot;
}

ErrorCode slot_take(Pool *pool, int wishes, Deadline deadline, Checkout **ret_slot, Error *reterr)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&pool->mutex);
    Checkout                   *slot;

    if (pool->closing)
        return pool_refuse(pool, ERR_STOPPING, reterr);
    if (!breaker_is_closed(&pool->breaker) &&
        ((wishes & POOL_PROMPT) || pool->waiting >= POOL_OUTAGE_WAITERS * pool->options.size_max ||
         !probe_is_worth_waiting(pool, deadline)))
        return pool_refuse(pool, ERR_UNAVAILABLE, reterr);
    slot = slot_find(pool, wishes & POOL_URGENT);
    if (!slot)
        TRY(slot_wait(pool, deadline, wishes, &slot, reterr));
    if (slot->conn && ((wishes & POOL_FRESH) || slot_is_stale(slot)))
        slot_move(slot, SLOT_OPENING);
    metric_set(&pg_metrics.pool_in_use, pool->counts[SLOT_ACQUIRED]);
    *ret_slot = slot;
    return OK;
}

ErrorCode pool_acquire_as(Pool *pool, int wishes, Deadline deadline, Checkout **ret_checkout, Error *reterr)
{
    Checkout *slot = NULL;

    TRY(slot_take(pool, wishes, deadline, &slot, reterr));
    while (slot->state == SLOT_OPENING)
        TRY(slot_open(slot, wishes, deadline, &slot, reterr));
    slot->answered    = false;
    slot->acquired_at = clock_mono();
    *ret_checkout     = slot;
    return OK;
}

ErrorCode pool_acquire(Pool *pool, Deadline deadline, Checkout **ret_checkout, Error *reterr)
{
    return pool_acquire_as(pool, 0, deadline, ret_checkout, reterr);
}

bool pool_outdated_set(Pool *pool, bool is_outdated)
{
    return atomic_exchange(&pool->is_outdated, is_outdated);
}

bool pool_is_outdated(const Pool *pool)
{
    return atomic_load(&pool->is_outdated);
}

const BackoffPolicy *pool_operation_retry(const Pool *pool)
{
    return &pool->options.operation_retry;
}

bool pool_is_alike(const Pool *pool, const Pool *other)
{
    return pool == other || strcmp(pool->options.conninfo, other->options.conninfo) == 0;
}

Conn *checkout_conn(Checkout *checkout)
{
    return checkout->conn;
}

/* A broken connection says nothing about the next one: a restart breaks all of them and takes a second. */
static bool is_lost_connection(const Error *error)
{
    return error->code == ERR_UNAVAILABLE && (!error->sqlstate[0] || strncmp(error->sqlstate, "57P", 3) == 0);
}

/* Silence until a deadline that left too little time for a fair try. */
static bool is_impatience(const Checkout *checkout, const Error *error)
{
    return error->code == ERR_TIMEOUT &&
           mono_ms_between(checkout->acquired_at, clock_mono()) < pool_fair_ms(checkout->pool);
}

void checkout_report(Checkout *checkout, ErrorCode code, const Error *error)
{
    Pool *pool = checkout->pool;

    /* An error from the server shows that it is up. So does a failure of the caller's own on a connection that is
     * good. */
    if (code == OK || !error_is_infrastructure(code, error->sqlstate) ||
        (!error->sqlstate[0] && conn_is_good(checkout->conn))) {
        checkout->answered = true;
        return;
    }
    if (is_lost_connection(error))
        metric_add(&pg_metrics.connections_lost, 1);
    if (is_lost_connection(error) || is_impatience(checkout, error))
        return;
    scoped(mutex_unlock) Mutex *held = mutex_hold(&pool->mutex);
    /* The statement may have waited for a lock or a standby on a server that is up: the janitor probes before silence
     * opens the breaker. */
    if (error->code == ERR_TIMEOUT && breaker_is_near(&pool->breaker)) {
        pool->last_error = *error;
        pool->suspected  = true;
        pool_wake_janitor(pool);
        return;
    }
    failure_record(pool, error);
}

void pool_release(Checkout *checkout)
{
    Pool *pool = checkout->pool;
    bool  keep = conn_is_good(checkout->conn) && conn_transaction(checkout->conn) == PQTRANS_IDLE &&
                !conn_was_interrupted(checkout->conn);
    bool  runs_on;
    Conn *conn = NULL;

    mutex_lock(&pool->mutex);
    if (checkout->answered && keep)
        breaker_succeeded(&pool->breaker);
    checkout->idle_since = clock_mono();
    runs_on              = slot_may_run_on(checkout);
    if (!keep || slot_is_stale(checkout) || pool->closing)
        conn = take(checkout->conn);
    if (conn) {
        /* Closed before the slot is free again: the server never sees more than size_max connections of this pool. */
        mutex_unlock(&pool->mutex);
        conn_close(conn);
        mutex_lock(&pool->mutex);
    }
    if (runs_on) {
        slot_move(checkout, SLOT_ENDING);
        pool_wake_janitor(pool);
    } else {
        checkout->process = 0;
        slot_offer(checkout);
    }
    metric_set(&pg_metrics.pool_in_use, pool->counts[SLOT_ACQUIRED]);
    mutex_unlock(&pool->mutex);
}

void pool_status(Pool *pool, PoolStatus *ret_status)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&pool->mutex);

    *ret_status = (PoolStatus){
        .size          = pool->options.size_max - pool->counts[SLOT_FREE],
        .idle          = pool->counts[SLOT_IDLE] + pool->counts[SLOT_CHECKED],
        .acquired      = pool->counts[SLOT_ACQUIRED],
        .opening       = pool->counts[SLOT_OPENING],
        .waiting       = pool->waiting,
        .size_min      = pool->options.size_min,
        .size_max      = pool->options.size_max,
        .breaker       = pool->breaker.state,
        .next_probe_ms = pool->breaker.state == BREAKER_OPEN ? next_probe_ms(pool) : 0,
    };
    memcpy(ret_status->last_error, pool->last_error.text, sizeof ret_status->last_error);
}
