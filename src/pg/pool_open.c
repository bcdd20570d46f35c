/*
 * pool_open.c - connecting a slot: tries until it is connected, until another slot is handed over, or until trying is
 * of no use.
 */
#include "pg/pool_internal.h"

/* A try that was given less time than this, and less than a whole try, says nothing about the server. */
#define FAIR_MS 1000

static bool worth_another_try(ErrorCode code)
{
    return code == ERR_UNAVAILABLE || code == ERR_TIMEOUT || code == ERR_BUSY;
}

int pool_fair_ms(const Pool *pool)
{
    return pool->options.connect_ms_max < FAIR_MS ? pool->options.connect_ms_max : FAIR_MS;
}

/* Before every try, because the breaker may have opened since the slot was handed over, or between two tries. A
 * connection belongs to the generation in which its connect began: one that succeeds just after the breaker opened
 * proves nothing. */
static ErrorCode connect_begin(Checkout *slot, Error *reterr)
{
    Pool                       *pool = slot->pool;
    scoped(mutex_unlock) Mutex *held = mutex_hold(&pool->mutex);

    slot->generation = pool->generation;
    return breaker_is_closed(&pool->breaker) ? OK : pool_refuse(pool, ERR_UNAVAILABLE, reterr);
}

ErrorCode pool_connect(const Pool *pool, Deadline deadline, Conn **ret_conn, Error *reterr)
{
    scoped(conn_close) Conn *conn = NULL;

    TRY(conn_open(pool->options.conninfo, pool->options.application_name, deadline, &conn, reterr));
    if (pool->options.is_relayed)
        TRY(conn_relay(conn, reterr));
    *ret_conn = take(conn);
    return OK;
}

ErrorCode slot_connect(Checkout *slot, Deadline deadline, bool *ret_held, Error *reterr)
{
    Pool     *pool  = slot->pool;
    Conn     *conn  = NULL;
    Error     error = {0};
    ErrorCode code  = connect_begin(slot, reterr);

    *ret_held = code != OK;
    TRY(code);
    code = pool_connect(pool, deadline_sooner(deadline, deadline_in_ms(pool->options.connect_ms_max)), &conn, &error);
    TRY(error_pass(code, &error, reterr));
    scoped(mutex_unlock) Mutex *held = mutex_hold(&pool->mutex);

    /* Not yet a success for the breaker: a server that accepts connections and then stays silent would never open
     * it. */
    slot_fill(slot, conn);
    slot_move(slot, SLOT_ACQUIRED);
    pool_gauges(pool);
    return OK;
}

void slot_give_back(Checkout *slot)
{
    Pool                       *pool = slot->pool;
    scoped(mutex_unlock) Mutex *held = mutex_hold(&pool->mutex);

    slot_offer(slot);
    pool_gauges(pool);
}

/* The server has no connection left: until the next try, one of this pool may become free. Returns that one, and gives
 * the slot back; NULL: try again, or *ret_late. */
static Checkout *slot_swap(Checkout *slot, int tries, int wishes, Deadline deadline, bool *ret_late)
{
    Pool                       *pool = slot->pool;
    scoped(mutex_unlock) Mutex *held = mutex_hold(&pool->mutex);
    int       alive   = pool->counts[SLOT_ACQUIRED] + pool->counts[SLOT_IDLE] + pool->counts[SLOT_CHECKED];
    ErrorCode refused = OK;
    Deadline  until =
        deadline_sooner(deadline, deadline_in_ms(retry_delay_ms(&pool->options.connect_retry, tries < 5 ? tries : 5)));
    Checkout *other;

    *ret_late =
        deadline_passed(deadline) || pool->closing || (!alive && tries > pool->options.connect_retry.retries_max);
    if (*ret_late)
        return NULL;
    other = breaker_is_closed(&pool->breaker) ? slot_pop(&pool->idle, SLOT_ACQUIRED) : NULL;
    if (other) {
        slot_let_go(slot);
        slot_hold(other, wishes & POOL_URGENT);
    } else {
        other = waiters_join(pool, until, wishes & (POOL_URGENT | POOL_SOON), slot, &refused);
    }
    if (other) {
        slot_offer(slot);
        if (other->conn && slot_is_stale(other))
            slot_move(other, SLOT_OPENING);
    }
    *ret_late = refused == ERR_STOPPING;
    return other;
}

/* All tries of one caller count as one failure, and as none if its deadline left too little time for a fair try. */
static ErrorCode slot_fail(Checkout *slot, ErrorCode code, bool fair, const Error *error, Error *reterr)
{
    Pool                       *pool = slot->pool;
    scoped(mutex_unlock) Mutex *held = mutex_hold(&pool->mutex);

    if (code != ERR_TIMEOUT || fair)
        failure_record(pool, error);
    slot_offer(slot);
    pool_gauges(pool);
    return error_pass(code, error, reterr);
}

static bool pool_is_closing(Pool *pool)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&pool->mutex);

    return pool->closing;
}

ErrorCode slot_open(Checkout *slot, int wishes, Deadline deadline, Checkout **ret_slot, Error *reterr)
{
    Pool *pool = slot->pool;
    bool  fair = deadline_left_ms(deadline) >= pool_fair_ms(pool);
    Error before;

    if (slot->conn)
        conn_close(take(slot->conn));
    for (int tries = 1;; tries++) {
        Error     error = {0};
        bool      held = false, late = false;
        ErrorCode code = slot_connect(slot, deadline, &held, &error);
        Checkout *other;

        *ret_slot = slot;
        if (code == OK)
            return OK;
        if (code == ERR_TIMEOUT && tries > 1 && deadline_passed(deadline)) /* the try before was not cut short */
            return slot_fail(slot, before.code, fair, &before, reterr);
        before = error;
        if (held) { /* the breaker has opened: wait for the probe as any caller does, or be refused */
            slot_give_back(slot);
            return slot_take(pool, wishes, deadline, ret_slot, reterr);
        }
        if (code == ERR_BUSY) {
            other = slot_swap(slot, tries, wishes, deadline, &late);
            if (other) {
                *ret_slot = other;
                return OK;
            }
        } else {
            late = !worth_another_try(code) || pool_is_closing(pool) ||
                   !retry_wait(&pool->options.connect_retry, tries, deadline);
        }
        if (late)
            return slot_fail(slot, code, fair, &error, reterr);
    }
}
