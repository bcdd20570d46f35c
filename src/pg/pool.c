/*
 * pool.c - herding connections between free, opening, idle, checked and leased; see pool.h for who moves them.
 */
#include "pg/pool_inner.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/metric.h"
#include "base/world.h"
#include "pg/retry.h"

/* A try that was given less than this, and less than a whole try, says more about its caller's patience than about the
 * server. */
#define FAIR_MS 1000

/* ---- lists; the mutex is held ---- */

/* Nobody owns a slot. */
static bool pool_is_quiet(const Pool *pool)
{
    return pool->counts[SLOT_FREE] + pool->counts[SLOT_IDLE] == pool->options.size_max;
}

void slot_move(Lease *slot, SlotState state)
{
    Pool *pool = slot->pool;

    pool->counts[slot->state]--;
    pool->counts[state]++;
    slot->state = state;
    if (pool->closing && pool_is_quiet(pool))
        cond_broadcast(&pool->drained);
}

Lease *slot_pop(Lease **list, SlotState state)
{
    Lease *slot = *list;

    if (slot) {
        *list = slot->next;
        slot_move(slot, state);
    }
    return slot;
}

static void slot_push(Lease **list, Lease *slot, SlotState state)
{
    slot->next = *list;
    *list      = slot;
    slot_move(slot, state);
}

static Waiter *waiter_pop(Pool *pool)
{
    Waiter *waiter = pool->first;

    if (waiter) {
        pool->first = waiter->next;
        if (!pool->first)
            pool->last = &pool->first;
        pool->waiting--;
    }
    return waiter;
}

static void waiter_remove(Pool *pool, Waiter *waiter)
{
    Waiter **link = &pool->first;

    while (*link != waiter)
        link = &(*link)->next;
    *link = waiter->next;
    if (!*link)
        pool->last = link;
    pool->waiting--;
}

static void waiters_refuse(Pool *pool, ErrorCode code)
{
    for (Waiter *waiter; (waiter = waiter_pop(pool));) {
        waiter->refused = code;
        cond_signal(&waiter->cond);
    }
}

void slot_offer(Lease *slot)
{
    Pool   *pool   = slot->pool;
    Waiter *waiter = waiter_pop(pool);

    if (waiter) {
        slot_move(slot, slot->conn ? SLOT_LEASED : SLOT_OPENING);
        waiter->slot = slot;
        cond_signal(&waiter->cond);
    } else if (slot->conn) {
        slot_push(&pool->idle, slot, SLOT_IDLE);
    } else {
        slot_push(&pool->free, slot, SLOT_FREE);
    }
}

bool slot_is_stale(const Lease *slot)
{
    return slot->generation != slot->pool->generation || !mono_before(clock_mono(), slot->retire_at);
}

void slot_fill(Lease *slot, Conn *conn)
{
    Pool   *pool     = slot->pool;
    int64_t lifetime = pool->options.lifetime_ms_max;
    Mono    now      = clock_mono();

    /* Not all at the same moment: connections opened together would be renewed together. */
    lifetime -= (int64_t)(world_random() % (unsigned)(lifetime / 10 + 1));
    pool->answered   = true;
    slot->conn       = conn;
    slot->retire_at  = mono_plus_ms(now, lifetime);
    slot->idle_since = now;
}

void pool_gauges(const Pool *pool)
{
    metric_set(METRIC_POOL_SIZE, pool->options.size_max - pool->counts[SLOT_FREE]);
    metric_set(METRIC_POOL_IN_USE, pool->counts[SLOT_LEASED]);
    metric_set(METRIC_POOL_WAITING, pool->waiting);
    metric_set(METRIC_BREAKER_STATE, pool->breaker.state);
}

/* The server is ill, not just one connection. */
static void failure_note(Pool *pool, const Error *error)
{
    pool->last_error = *error;
    if (!error_is_infrastructure(error->code, error->sqlstate) || !breaker_failed(&pool->breaker, clock_mono()))
        return;
    /* What is idle now was opened before the outage; nobody waits for what will not come. */
    pool->generation++;
    pool->opened        = true;
    pool->janitor_poked = true;
    cond_signal(&pool->janitor_wake);
    waiters_refuse(pool, ERR_UNAVAILABLE);
    metric_add(METRIC_BREAKER_OPENED, 1);
    pool_gauges(pool);
}

/* ---- life cycle ---- */

static int option(int value, int fallback)
{
    return value ? value : fallback;
}

static ErrorCode options_check(const PoolOptions *options, Error *reterr)
{
    char text[CONNINFO_TEXT_SIZE];

    if (options->size_max < 1 || options->size_max > POOL_SIZE_MAX)
        return fail(reterr, ERR_USAGE, "pool size %d is out of range: 1 to %d", options->size_max, POOL_SIZE_MAX);
    if (options->size_min < 0 || options->size_min > options->size_max)
        return fail(reterr, ERR_USAGE, "pool minimum %d is out of range: 0 to %d", options->size_min,
                    options->size_max);
    return conninfo_describe(options->conninfo, text, reterr);
}

ErrorCode pool_new(const PoolOptions *given, Pool **ret_pool, Error *reterr)
{
    PoolOptions options = *given;
    Pool       *pool;

    options.size_max         = option(options.size_max, 10);
    options.size_min         = option(options.size_min, options.size_max < 2 ? options.size_max : 2);
    options.idle_ms_max      = option(options.idle_ms_max, 5 * 60 * 1000);
    options.lifetime_ms_max  = option(options.lifetime_ms_max, 60 * 60 * 1000);
    options.connect_ms_max   = option(options.connect_ms_max, 5000);
    options.check_ms         = option(options.check_ms, 30 * 1000);
    options.check_ms_max     = option(options.check_ms_max, 2000);
    options.breaker_failures = option(options.breaker_failures, 5);
    options.breaker_open_ms  = option(options.breaker_open_ms, 30 * 1000);
    TRY(options_check(&options, reterr));

    pool                     = calloc(1, sizeof *pool);
    pool->slots              = calloc((size_t)options.size_max, sizeof *pool->slots);
    options.conninfo         = strdup(options.conninfo);
    options.application_name = strdup(options.application_name ? options.application_name : "pawl");
    if (!pool->slots || !options.conninfo || !options.application_name)
        abort();
    pool->options = options;
    pool->last    = &pool->first;
    mutex_init(&pool->mutex);
    cond_init(&pool->drained);
    cond_init(&pool->janitor_wake);
    breaker_init(&pool->breaker, options.breaker_failures, options.breaker_open_ms, options.connect_ms_max);
    pool->next_check        = mono_plus_ms(clock_mono(), options.check_ms);
    pool->counts[SLOT_FREE] = options.size_max;
    for (int i = options.size_max - 1; i >= 0; i--) {
        pool->slots[i].pool = pool;
        slot_push(&pool->free, &pool->slots[i], SLOT_FREE);
    }
    metric_set(METRIC_POOL_MIN, options.size_min);
    metric_set(METRIC_POOL_MAX, options.size_max);
    if (!options.no_janitor)
        pool->janitor = thread_start("janitor", janitor_run, pool);
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
        if (pool->slots[i].state == SLOT_LEASED && pool->slots[i].conn)
            conn_interrupt(pool->slots[i].conn);
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
    thread_join(pool->janitor);
}

void pool_free(Pool *pool)
{
    mutex_lock(&pool->mutex);
    pool->closing = true;
    mutex_unlock(&pool->mutex);
    janitor_end(pool);
    assert(pool_is_quiet(pool) && !pool->first);
    for (Lease *slot = pool->idle; slot; slot = slot->next)
        conn_close(slot->conn);
    mutex_done(&pool->mutex);
    cond_done(&pool->drained);
    cond_done(&pool->janitor_wake);
    free((void *)(uintptr_t)pool->options.conninfo);
    free((void *)(uintptr_t)pool->options.application_name);
    free(pool->slots);
    free(pool);
}

/* ---- leasing ---- */

static ErrorCode refuse(const Pool *pool, ErrorCode code, Error *reterr)
{
    if (code == ERR_STOPPING)
        return fail(reterr, ERR_STOPPING, "shutting down");
    metric_add(METRIC_BREAKER_REFUSED, 1);
    (void)fail(reterr, ERR_UNAVAILABLE, "database is unavailable, next try in %d ms: %s",
               deadline_left_ms((Deadline){breaker_next_probe(&pool->breaker)}), pool->last_error.text);
    error_set_sqlstate(reterr, pool->last_error.sqlstate);
    return ERR_UNAVAILABLE;
}

static ErrorCode wait_in_line(Pool *pool, Deadline deadline, Lease **ret_slot, Error *reterr)
{
    Waiter waiter = {.refused = OK};

    cond_init(&waiter.cond);
    *pool->last = &waiter;
    pool->last  = &waiter.next;
    pool->waiting++;
    pool_gauges(pool);
    while (!waiter.slot && waiter.refused == OK && cond_wait(&waiter.cond, &pool->mutex, deadline))
        ;
    cond_done(&waiter.cond);
    if (waiter.slot) {
        *ret_slot = waiter.slot;
        return OK;
    }
    if (waiter.refused != OK)
        return refuse(pool, waiter.refused, reterr);
    waiter_remove(pool, &waiter);
    pool_gauges(pool);
    metric_add(METRIC_POOL_WAIT_FAILED, 1);
    return fail(reterr, ERR_BUSY, "no connection became free in time: %d in use, %d more waiting",
                pool->counts[SLOT_LEASED], pool->waiting);
}

static ErrorCode slot_take(Pool *pool, Deadline deadline, bool fresh, Lease **ret_slot, Error *reterr)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&pool->mutex);
    Lease                      *slot;

    if (pool->closing)
        return refuse(pool, ERR_STOPPING, reterr);
    if (!breaker_is_closed(&pool->breaker))
        return refuse(pool, ERR_UNAVAILABLE, reterr);
    slot = slot_pop(&pool->idle, SLOT_LEASED);
    if (!slot)
        slot = slot_pop(&pool->free, SLOT_OPENING);
    if (!slot)
        TRY(wait_in_line(pool, deadline, &slot, reterr));
    if (slot->conn && (fresh || slot_is_stale(slot)))
        slot_move(slot, SLOT_OPENING);
    metric_set(METRIC_POOL_IN_USE, pool->counts[SLOT_LEASED]);
    *ret_slot = slot;
    return OK;
}

static bool worth_another_try(ErrorCode code)
{
    return code == ERR_UNAVAILABLE || code == ERR_TIMEOUT || code == ERR_BUSY;
}

static int fair_ms(const Pool *pool)
{
    return pool->options.connect_ms_max < FAIR_MS ? pool->options.connect_ms_max : FAIR_MS;
}

/* Asked before every try: the breaker may have opened since the slot was handed over, or between two tries. A connection
 * is of the generation in which it was begun: one that comes through just after the breaker opened proves nothing. */
static ErrorCode connect_begin(Lease *slot, Error *reterr)
{
    Pool                       *pool = slot->pool;
    scoped(mutex_unlock) Mutex *held = mutex_hold(&pool->mutex);

    slot->generation = pool->generation;
    return breaker_is_closed(&pool->breaker) ? OK : refuse(pool, ERR_UNAVAILABLE, reterr);
}

ErrorCode slot_connect(Lease *slot, Deadline deadline, bool *ret_again, Error *reterr)
{
    Pool     *pool  = slot->pool;
    Conn     *conn  = NULL;
    Error     error = {0};
    bool      fair  = deadline_left_ms(deadline) >= fair_ms(pool);
    ErrorCode code;

    TRY(connect_begin(slot, reterr));
    code                             = conn_open(pool->options.conninfo, pool->options.application_name,
                                                 deadline_sooner(deadline, deadline_in_ms(pool->options.connect_ms_max)), &conn, &error);
    scoped(mutex_unlock) Mutex *held = mutex_hold(&pool->mutex);

    /* Not yet a success for the breaker: a server that lets us in and then says nothing would never open it. */
    if (code == OK) {
        slot_fill(slot, conn);
        slot_move(slot, SLOT_LEASED);
        pool_gauges(pool);
        return OK;
    }
    if (code != ERR_TIMEOUT || fair)
        failure_note(pool, &error);
    *ret_again = worth_another_try(code) && breaker_is_closed(&pool->breaker) && !pool->closing;
    if (reterr)
        *reterr = error;
    return code;
}

void slot_give_back(Lease *slot)
{
    Pool                       *pool = slot->pool;
    scoped(mutex_unlock) Mutex *held = mutex_hold(&pool->mutex);

    slot_offer(slot);
    pool_gauges(pool);
}

/* The slot is ours and OPENING: close what it held, connect, and keep trying while that makes sense. */
static ErrorCode slot_open(Lease *slot, Deadline deadline, Error *reterr)
{
    if (slot->conn)
        conn_close(take(slot->conn));
    for (int tries = 1;; tries++) {
        bool      again = false;
        ErrorCode code  = slot_connect(slot, deadline, &again, reterr);

        if (code == OK)
            return OK;
        if (!again || !retry_wait(&retry_connect, tries, deadline)) {
            slot_give_back(slot);
            return code;
        }
    }
}

static ErrorCode lease_begin(Pool *pool, Deadline deadline, bool fresh, Lease **ret_lease, Error *reterr)
{
    Lease *slot = NULL;

    TRY(slot_take(pool, deadline, fresh, &slot, reterr));
    if (slot->state == SLOT_OPENING)
        TRY(slot_open(slot, deadline, reterr));
    slot->answered  = false;
    slot->leased_at = clock_mono();
    *ret_lease      = slot;
    return OK;
}

ErrorCode pool_lease(Pool *pool, Deadline deadline, Lease **ret_lease, Error *reterr)
{
    return lease_begin(pool, deadline, /* fresh= */ false, ret_lease, reterr);
}

ErrorCode pool_lease_fresh(Pool *pool, Deadline deadline, Lease **ret_lease, Error *reterr)
{
    return lease_begin(pool, deadline, /* fresh= */ true, ret_lease, reterr);
}

Conn *lease_conn(Lease *lease)
{
    return lease->conn;
}

/* A connection that broke says nothing about the next one: a restart breaks them all and is over in a second. */
static bool is_lost_connection(const Error *error)
{
    return error->code == ERR_UNAVAILABLE && (!error->sqlstate[0] || strncmp(error->sqlstate, "57P", 3) == 0);
}

/* Silence until the deadline, met by somebody who came late in the first place. */
static bool is_impatience(const Lease *lease, const Error *error)
{
    return error->code == ERR_TIMEOUT && mono_ms_between(lease->leased_at, clock_mono()) < fair_ms(lease->pool);
}

void lease_report(Lease *lease, ErrorCode code, const Error *error)
{
    Pool *pool = lease->pool;

    /* A refusal is an answer too: the server is well. So is a failure of the caller's own, on a connection that is. */
    if (code == OK || !error_is_infrastructure(code, error->sqlstate) ||
        (!error->sqlstate[0] && conn_is_good(lease->conn))) {
        lease->answered = true;
        return;
    }
    if (is_lost_connection(error))
        metric_add(METRIC_CONN_LOST, 1);
    if (is_lost_connection(error) || is_impatience(lease, error))
        return;
    scoped(mutex_unlock) Mutex *held = mutex_hold(&pool->mutex);
    failure_note(pool, error);
}

void lease_end(Lease *lease)
{
    Pool *pool = lease->pool;
    bool  keep = conn_is_good(lease->conn) && conn_transaction(lease->conn) == PQTRANS_IDLE &&
                !conn_was_interrupted(lease->conn);
    Conn *conn = NULL;

    mutex_lock(&pool->mutex);
    if (lease->answered && keep)
        breaker_succeeded(&pool->breaker);
    lease->idle_since = clock_mono();
    if (!keep || slot_is_stale(lease) || pool->closing)
        conn = take(lease->conn);
    if (conn) {
        /* Closed before the slot is free again: the server never sees more of us than size_max. */
        mutex_unlock(&pool->mutex);
        conn_close(conn);
        mutex_lock(&pool->mutex);
    }
    slot_offer(lease);
    metric_set(METRIC_POOL_IN_USE, pool->counts[SLOT_LEASED]);
    mutex_unlock(&pool->mutex);
}

void pool_status(Pool *pool, PoolStatus *ret_status)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&pool->mutex);

    *ret_status = (PoolStatus){
        .size     = pool->options.size_max - pool->counts[SLOT_FREE],
        .idle     = pool->counts[SLOT_IDLE] + pool->counts[SLOT_CHECKED],
        .leased   = pool->counts[SLOT_LEASED],
        .opening  = pool->counts[SLOT_OPENING],
        .waiting  = pool->waiting,
        .size_min = pool->options.size_min,
        .size_max = pool->options.size_max,
        .breaker  = pool->breaker.state,
        .next_probe_ms =
            pool->breaker.state == BREAKER_OPEN ? deadline_left_ms((Deadline){breaker_next_probe(&pool->breaker)}) : 0,
    };
    memcpy(ret_status->last_error, pool->last_error.text, sizeof ret_status->last_error);
}
