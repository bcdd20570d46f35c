/*
 * janitor.c - keeps the pool in order on a clock of its own: closes, recycles, checks, replaces, and probes while the
 * breaker is open. One thread per pool; a test may call pool_tend() itself.
 */
#include "base/log.h"
#include "pg/metric.h"
#include "pg/pool_internal.h"

/* When the breaker is open and every slot is held by a checkout that hangs, or a process does not end, check again
 * after this. */
#define PROBE_LATER_MS 100

static bool slot_is_surplus(const Checkout *slot, Mono now)
{
    const Pool *pool = slot->pool;
    int         open = pool->options.size_max - pool->counts[SLOT_FREE];

    return open > pool->options.size_min && mono_ms_between(slot->idle_since, now) >= pool->options.idle_ms_max;
}

/* Take one idle slot that should go, or that has not been looked at since `before`; NULL: none is left. */
static Checkout *idle_take(Pool *pool, bool to_close, Mono before)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&pool->mutex);

    /* What is closed in a moment needs no check, and a probe that is due does not wait for one. */
    if (!to_close && (pool->closing || !breaker_is_closed(&pool->breaker)))
        return NULL;
    for (Checkout **link = &pool->idle; *link; link = &(*link)->next) {
        Checkout *slot   = *link;
        bool      wanted = to_close ? slot_is_stale(slot) || slot_is_surplus(slot, clock_mono())
                                    : mono_before(slot->checked_at, before);

        if (wanted) {
            *link = slot->next;
            slot_move(slot, SLOT_CHECKED);
            return slot;
        }
    }
    return NULL;
}

static void idle_close(Pool *pool)
{
    for (Checkout *slot; (slot = idle_take(pool, /* to_close= */ true, (Mono){0}));) {
        conn_close(take(slot->conn));
        slot_give_back(slot);
    }
}

Deadline janitor_deadline(const Pool *pool, int ms)
{
    return deadline_cut(deadline_in_ms(ms), &pool->closed);
}

static ErrorCode conn_ask(Conn *conn, Deadline deadline, Error *reterr)
{
    scoped(PQclear) PGresult *result = NULL;

    return conn_call(conn, "select 1", CONN_NO_PARAMS, deadline, &result, reterr);
}

bool conn_answers(Pool *pool, Conn *conn)
{
    Error     error = {0};
    ErrorCode code  = conn_ask(conn, janitor_deadline(pool, pool->options.check_ms_max), &error);

    if (code == OK && conn_is_good(conn))
        return true;
    metric_add(&pg_metrics.connections_lost, 1);
    log_error(LOG_WARN, "pool", "a connection failed its health check", &error);
    return false;
}

/* A sick connection's slot: connect anew once, so that the next caller finds a warm one. */
static void slot_replace(Checkout *slot)
{
    Pool     *pool  = slot->pool;
    Error     error = {0};
    ErrorCode code  = OK;
    bool      held  = false, wanted;

    conn_close(take(slot->conn));
    mutex_lock(&pool->mutex);
    slot_move(slot, SLOT_OPENING);
    wanted = !pool->closing;
    mutex_unlock(&pool->mutex);
    if (wanted)
        code = slot_connect(slot, janitor_deadline(pool, pool->options.connect_ms_max), &held, &error);
    mutex_lock(&pool->mutex);
    if (code != OK && !held) /* the slot is free then */
        failure_record(pool, &error);
    slot_offer(slot);
    mutex_unlock(&pool->mutex);
}

static void idle_check(Pool *pool)
{
    Mono start   = clock_mono();
    int  checked = 0, sick = 0;

    for (Checkout *slot; (slot = idle_take(pool, /* to_close= */ false, start));) {
        checked++;
        slot->checked_at = clock_mono();
        if (conn_answers(pool, slot->conn)) {
            slot_give_back(slot);
        } else {
            sick++;
            slot_replace(slot);
        }
    }
    if (sick * 2 <= checked)
        return;
    mutex_lock(&pool->mutex);
    pool->generation++;
    mutex_unlock(&pool->mutex);
    metric_add(&pg_metrics.pool_renewed, 1);
    log_write(LOG_WARN, "pool", "most connections were sick: the whole pool is renewed", LOG_INT("sick", sick),
              LOG_INT("checked", checked));
    idle_close(pool);
}

/* Begin the one probe, if it is time. *ret_later: it is, but every slot is taken by checkouts from before the
 * outage. */
static Checkout *probe_begin(Pool *pool, unsigned *ret_number, bool *ret_later)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&pool->mutex);
    Checkout                   *slot;

    *ret_later = pool->breaker.state == BREAKER_OPEN && !pool->free && !pool->closing;
    if (!pool->free || pool->closing)
        return NULL;
    if (!breaker_probe(&pool->breaker, clock_mono(), ret_number)) {
        if (!breaker_is_closed(&pool->breaker))
            waiters_refuse_late(pool); /* it may have opened again */
        return NULL;
    }
    slot             = slot_pop(&pool->free, SLOT_OPENING);
    slot->generation = pool->generation;
    pool_gauges(pool);
    return slot;
}

static void janitor_probe_end(Checkout *slot, unsigned number, Conn *conn, const Error *error)
{
    Pool                       *pool = slot->pool;
    scoped(mutex_unlock) Mutex *held = mutex_hold(&pool->mutex);

    breaker_probe_ended(&pool->breaker, number, conn != NULL, clock_mono());
    if (conn)
        slot_fill(slot, conn);
    else
        pool->last_error = *error;
    slot_offer(slot);
    if (breaker_is_closed(&pool->breaker))
        waiters_serve(pool);
    else
        waiters_refuse_late(pool);
    pool_gauges(pool);
}

/* A fresh connection, and an answer on it: PgBouncer lets us in while the server behind it is down. */
static ErrorCode probe_connect(const Pool *pool, Conn **ret_conn, Error *reterr)
{
    Deadline                 deadline = janitor_deadline(pool, pool->options.connect_ms_max);
    scoped(conn_close) Conn *conn     = NULL;

    TRY(pool_connect(pool, deadline, &conn, reterr));
    TRY(conn_ask(conn, deadline, reterr));
    *ret_conn = take(conn);
    return OK;
}

/* With a deadline of its own. true: check again soon. */
static bool probe(Pool *pool)
{
    bool      later  = false;
    unsigned  number = 0;
    Checkout *slot   = probe_begin(pool, &number, &later);
    Conn     *conn   = NULL;
    Error     error  = {0};

    if (!slot)
        return later;
    if (probe_connect(pool, &conn, &error) == OK)
        log_write(LOG_INFO, "pool", "breaker closed: the database answers again");
    else
        log_error(LOG_WARN, "pool", "breaker stays open: the probe failed", &error);
    janitor_probe_end(slot, number, conn, &error);
    return false;
}

/* ---- a server suspected of silence ---- */

static Checkout *suspect_begin(Pool *pool, bool *ret_later)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&pool->mutex);
    Checkout                   *slot = NULL;

    if (pool->closing || !breaker_is_closed(&pool->breaker))
        pool->suspected = false;
    if (!pool->suspected)
        return NULL;
    slot = slot_pop(&pool->free, SLOT_OPENING);
    if (!slot) /* an idle one may be as silent as the others, and is closed if it is */
        slot = slot_pop(&pool->idle, SLOT_CHECKED);
    *ret_later = !slot;
    if (slot) {
        pool->suspected  = false;
        slot->generation = slot->conn ? slot->generation : pool->generation;
    }
    return slot;
}

/* An answer, whatever it is, shows that the server is well. */
static bool suspect_answers(const Pool *pool, Conn **conn, Error *reterr)
{
    Deadline  deadline = janitor_deadline(pool, pool->options.check_ms_max);
    ErrorCode code     = OK;

    if (!*conn)
        code = pool_connect(pool, deadline, conn, reterr);
    if (code == OK)
        code = conn_ask(*conn, deadline, reterr);
    return code == OK || !error_is_infrastructure(code, reterr->sqlstate);
}

/* true: check again soon, when a slot is free. */
static bool suspect_ask(Pool *pool)
{
    bool      later = false, well;
    Checkout *slot  = suspect_begin(pool, &later);
    Error     error = {0};
    Conn     *conn;

    if (!slot)
        return later;
    conn = slot->conn;
    well = suspect_answers(pool, &conn, &error);
    if (conn && !conn_is_good(conn)) {
        slot->conn = NULL;
        conn_close(take(conn));
    }

    scoped(mutex_unlock) Mutex *held = mutex_hold(&pool->mutex);
    if (well)
        breaker_succeeded(&pool->breaker);
    else
        failure_record(pool, &error);
    if (conn && !slot->conn)
        slot_fill(slot, conn);
    slot_offer(slot);
    return false;
}

/* Logged by the janitor, because the thread that opened the breaker holds the mutex. A database that never answered is
 * reported by the start that needed it. */
static void opening_log(Pool *pool)
{
    Error error;
    bool  opened;

    mutex_lock(&pool->mutex);
    opened       = pool->opened && pool->answered;
    error        = pool->last_error;
    pool->opened = false;
    mutex_unlock(&pool->mutex);
    if (opened)
        log_error(LOG_ERROR, "pool", "breaker opened: calls are refused until a probe succeeds", &error);
}

static bool check_is_due(Pool *pool)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&pool->mutex);

    if (pool->closing || mono_before(clock_mono(), pool->next_check))
        return false;
    pool->next_check = mono_plus_ms(clock_mono(), pool->options.check_ms);
    return breaker_is_closed(&pool->breaker);
}

Mono pool_tend(Pool *pool)
{
    bool later;
    Mono next;

    idle_close(pool);
    later = endings_tend(pool);
    if (check_is_due(pool)) {
        idle_check(pool);
        ender_check(pool);
    }
    later |= suspect_ask(pool);
    opening_log(pool);
    later |= probe(pool);

    scoped(mutex_unlock) Mutex *held = mutex_hold(&pool->mutex);
    pool_gauges(pool);
    if (later)
        return mono_plus_ms(clock_mono(), PROBE_LATER_MS);
    if (pool->closing) /* nothing is due any more: pool_free() wakes the janitor to end it */
        return deadline_never().at;
    next = pool->next_check;
    if (pool->breaker.state == BREAKER_OPEN && mono_before(breaker_next_probe(&pool->breaker), next))
        next = breaker_next_probe(&pool->breaker);
    return next;
}

void *janitor_run(void *context)
{
    Pool *pool = context;

    for (;;) {
        Deadline                    next = {pool_tend(pool)};
        scoped(mutex_unlock) Mutex *held = mutex_hold(&pool->mutex);

        while (!pool->janitor_stop && !pool->janitor_woken && cond_wait(&pool->janitor_wake, held, next))
            ;
        pool->janitor_woken = false;
        if (pool->janitor_stop)
            return NULL;
    }
}
