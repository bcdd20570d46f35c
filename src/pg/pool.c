/*
 * pool.c - herding connections between free, opening, idle, checked and acquired; see pool.h for who moves them.
 */
#include "pg/pool_internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/world.h"
#include "pg/metric.h"

/* A try that was given less than this, and less than a whole try, says more about its caller's patience than about the
 * server. */
#define FAIR_MS 1000
/* While the breaker is open this many callers per connection wait for the next probe; more are refused at once. */
#define OUTAGE_WAITERS 4

/* ---- lists; the mutex is held ---- */

/* Nobody owns a slot. */
static bool pool_is_quiet(const Pool *pool)
{
    return pool->counts[SLOT_FREE] + pool->counts[SLOT_IDLE] == pool->options.size_max;
}

void slot_move(Checkout *slot, SlotState state)
{
    Pool *pool = slot->pool;

    pool->counts[slot->state]--;
    pool->counts[state]++;
    slot->state = state;
    if (pool->closing && pool_is_quiet(pool))
        cond_broadcast(&pool->drained);
}

Checkout *slot_pop(Checkout **list, SlotState state)
{
    Checkout *slot = *list;

    if (slot) {
        *list = slot->next;
        slot_move(slot, state);
    }
    return slot;
}

static void slot_push(Checkout **list, Checkout *slot, SlotState state)
{
    slot->next = *list;
    *list      = slot;
    slot_move(slot, state);
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

static void waiter_refuse(Pool *pool, Waiter *waiter, ErrorCode code)
{
    waiter_remove(pool, waiter);
    waiter->refused = code;
    cond_signal(&waiter->cond);
}

static void waiters_refuse(Pool *pool, ErrorCode code)
{
    while (pool->first)
        waiter_refuse(pool, pool->first, code);
}

/* Could the next probe succeed in time? */
static bool probe_is_worth_waiting(const Pool *pool, Deadline deadline)
{
    return pool->breaker.state == BREAKER_HALF_OPEN || mono_before(breaker_next_probe(&pool->breaker), deadline.at);
}

void waiters_refuse_late(Pool *pool)
{
    int     kept = 0;
    Waiter *next;

    for (Waiter *waiter = pool->first; waiter; waiter = next) {
        next = waiter->next;
        if (kept >= OUTAGE_WAITERS * pool->options.size_max || waiter->prompt ||
            !probe_is_worth_waiting(pool, waiter->deadline))
            waiter_refuse(pool, waiter, ERR_UNAVAILABLE);
        else
            kept++;
    }
}

static bool ordinary_may_take(const Pool *pool)
{
    return pool->ordinary < pool->options.size_max - pool->options.size_reserved;
}

/* Whom a slot goes to, with a connection or without: the first urgent one, else the first; NULL: none. */
static Waiter *waiter_next(const Pool *pool, bool connected)
{
    Waiter *found = NULL;

    if (!breaker_is_closed(&pool->breaker))
        return NULL;
    for (Waiter *waiter = pool->first; waiter && !(found && found->urgent); waiter = waiter->next) {
        /* One that has a slot gives it back for the connection. */
        bool may = waiter->own ? connected : waiter->urgent || ordinary_may_take(pool);

        if (may && (!found || waiter->urgent))
            found = waiter;
    }
    return found;
}

static void slot_hold(Checkout *slot, bool urgent)
{
    slot->ordinary = !urgent;
    slot->pool->ordinary += !urgent;
}

static void slot_let_go(Checkout *slot)
{
    slot->pool->ordinary -= slot->ordinary;
    slot->ordinary = false;
}

static void slot_hand(Checkout *slot, Waiter *waiter)
{
    waiter_remove(slot->pool, waiter);
    if (waiter->own)
        slot_let_go(waiter->own);
    slot_move(slot, slot->conn ? SLOT_ACQUIRED : SLOT_OPENING);
    slot_hold(slot, waiter->urgent);
    waiter->slot = slot;
    cond_signal(&waiter->cond);
}

static void list_serve(Pool *pool, Checkout **list, bool connected)
{
    for (Waiter *waiter; *list && (waiter = waiter_next(pool, connected));) {
        Checkout *slot = *list;

        *list = slot->next;
        slot_hand(slot, waiter);
    }
}

void waiters_serve(Pool *pool)
{
    list_serve(pool, &pool->idle, /* connected= */ true);
    list_serve(pool, &pool->free, /* connected= */ false);
}

void slot_offer(Checkout *slot)
{
    Pool   *pool = slot->pool;
    Waiter *waiter;

    slot_let_go(slot);
    waiter = waiter_next(pool, slot->conn != NULL);
    if (waiter)
        slot_hand(slot, waiter);
    else if (slot->conn)
        slot_push(&pool->idle, slot, SLOT_IDLE);
    else
        slot_push(&pool->free, slot, SLOT_FREE);
    if (waiter && waiter->own) /* one more ordinary caller may take a slot now */
        waiters_serve(pool);
}

bool slot_is_stale(const Checkout *slot)
{
    return slot->generation != slot->pool->generation || !mono_before(clock_mono(), slot->retire_at);
}

void slot_fill(Checkout *slot, Conn *conn)
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
    metric_set(&pg_metrics.pool_connections, pool->options.size_max - pool->counts[SLOT_FREE]);
    metric_set(&pg_metrics.pool_in_use, pool->counts[SLOT_ACQUIRED]);
    metric_set(&pg_metrics.pool_waiting, pool->waiting);
    metric_set(&pg_metrics.breaker_state, pool->breaker.state);
}

static void janitor_wake(Pool *pool)
{
    pool->janitor_woken = true;
    cond_signal(&pool->janitor_wake);
}

void failure_note(Pool *pool, const Error *error)
{
    pool->last_error = *error;
    if (!error_is_infrastructure(error->code, error->sqlstate) || !breaker_failed(&pool->breaker, clock_mono()))
        return;
    /* What is idle now was opened before the outage. */
    pool->generation++;
    pool->opened = true;
    janitor_wake(pool);
    waiters_refuse_late(pool);
    metric_add(&pg_metrics.breaker_opened, 1);
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
    if (options->size_reserved < 0 || options->size_reserved >= options->size_max)
        return fail(reterr, ERR_USAGE, "reserved connections must be from 0 to %d, got %d", options->size_max - 1,
                    options->size_reserved);
    return conninfo_describe(options->conninfo, text, reterr);
}

static BackoffPolicy policy(BackoffPolicy given, BackoffPolicy fallback)
{
    return given.delay_ms ? given : fallback;
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
    options.breaker_first_ms = option(options.breaker_first_ms, 1000);
    options.breaker_open_ms  = option(options.breaker_open_ms, 30 * 1000);
    options.connect_retry    = policy(options.connect_retry, retry_connect);
    options.operation_retry  = policy(options.operation_retry, retry_operation);
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
    breaker_init(&pool->breaker, options.breaker_failures, options.breaker_first_ms, options.breaker_open_ms,
                 options.connect_ms_max);
    pool->next_check        = mono_plus_ms(clock_mono(), options.check_ms);
    pool->counts[SLOT_FREE] = options.size_max;
    for (int i = options.size_max - 1; i >= 0; i--) {
        pool->slots[i].pool = pool;
        slot_push(&pool->free, &pool->slots[i], SLOT_FREE);
    }
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
        if (pool->slots[i].state == SLOT_ACQUIRED && pool->slots[i].conn)
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
    for (Checkout *slot = pool->idle; slot; slot = slot->next)
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

/* While a probe is under way the next one is as far off as it was, at the least. */
static int next_probe_ms(const Pool *pool)
{
    return pool->breaker.state == BREAKER_OPEN ? deadline_left_ms((Deadline){breaker_next_probe(&pool->breaker)})
                                               : pool->breaker.open_ms;
}

static ErrorCode refuse(const Pool *pool, ErrorCode code, Error *reterr)
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

/* Until somebody hands over a slot, or the time is up, or nobody will come. */
static Checkout *queue_wait(Pool *pool, Deadline deadline, int wishes, Checkout *own, ErrorCode *ret_refused)
{
    Waiter waiter = {.refused  = OK,
                     .deadline = deadline,
                     .urgent   = wishes & POOL_URGENT,
                     .prompt   = wishes & POOL_PROMPT,
                     .own      = own};

    cond_init(&waiter.cond);
    *pool->last = &waiter;
    pool->last  = &waiter.next;
    pool->waiting++;
    pool_gauges(pool);
    while (!waiter.slot && waiter.refused == OK && cond_wait(&waiter.cond, &pool->mutex, deadline))
        ;
    cond_done(&waiter.cond);
    if (!waiter.slot && waiter.refused == OK)
        waiter_remove(pool, &waiter);
    pool_gauges(pool);
    *ret_refused = waiter.refused;
    return waiter.slot;
}

static ErrorCode slot_wait(Pool *pool, Deadline deadline, int wishes, Checkout **ret_slot, Error *reterr)
{
    ErrorCode refused = OK;
    Checkout *slot    = queue_wait(pool, deadline, wishes, /* own= */ NULL, &refused);

    if (slot) {
        *ret_slot = slot;
        return OK;
    }
    if (refused != OK || !breaker_is_closed(&pool->breaker))
        return refuse(pool, refused == OK ? ERR_UNAVAILABLE : refused, reterr);
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

static ErrorCode slot_take(Pool *pool, int wishes, Deadline deadline, Checkout **ret_slot, Error *reterr)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&pool->mutex);
    Checkout                   *slot;

    if (pool->closing)
        return refuse(pool, ERR_STOPPING, reterr);
    if (!breaker_is_closed(&pool->breaker) &&
        ((wishes & POOL_PROMPT) || pool->waiting >= OUTAGE_WAITERS * pool->options.size_max ||
         !probe_is_worth_waiting(pool, deadline)))
        return refuse(pool, ERR_UNAVAILABLE, reterr);
    slot = slot_find(pool, wishes & POOL_URGENT);
    if (!slot)
        TRY(slot_wait(pool, deadline, wishes, &slot, reterr));
    if (slot->conn && ((wishes & POOL_FRESH) || slot_is_stale(slot)))
        slot_move(slot, SLOT_OPENING);
    metric_set(&pg_metrics.pool_in_use, pool->counts[SLOT_ACQUIRED]);
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
static ErrorCode connect_begin(Checkout *slot, Error *reterr)
{
    Pool                       *pool = slot->pool;
    scoped(mutex_unlock) Mutex *held = mutex_hold(&pool->mutex);

    slot->generation = pool->generation;
    return breaker_is_closed(&pool->breaker) ? OK : refuse(pool, ERR_UNAVAILABLE, reterr);
}

ErrorCode slot_connect(Checkout *slot, Deadline deadline, bool *ret_held, Error *reterr)
{
    Pool     *pool  = slot->pool;
    Conn     *conn  = NULL;
    Error     error = {0};
    ErrorCode code  = connect_begin(slot, reterr);

    *ret_held = code != OK;
    TRY(code);
    code = conn_open(pool->options.conninfo, pool->options.application_name,
                     deadline_sooner(deadline, deadline_in_ms(pool->options.connect_ms_max)), &conn, &error);
    if (code != OK) {
        if (reterr)
            *reterr = error;
        return code;
    }
    scoped(mutex_unlock) Mutex *held = mutex_hold(&pool->mutex);

    /* Not yet a success for the breaker: a server that lets us in and then says nothing would never open it. */
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

/* The server has no connection to spare: until the next try, one of ours may become free. Returns that one, and gives ours
 * back; NULL: try again, or *ret_late. */
static Checkout *slot_swap(Checkout *slot, int tries, bool urgent, Deadline deadline, bool *ret_late)
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
        slot_hold(other, urgent);
    } else {
        other = queue_wait(pool, until, urgent ? POOL_URGENT : 0, slot, &refused);
    }
    if (other) {
        slot_offer(slot);
        if (other->conn && slot_is_stale(other))
            slot_move(other, SLOT_OPENING);
    }
    *ret_late = refused == ERR_STOPPING;
    return other;
}

/* The tries of one caller count as one failure, and not at all when it came too late to find out. */
static ErrorCode slot_fail(Checkout *slot, ErrorCode code, bool fair, const Error *error, Error *reterr)
{
    Pool                       *pool = slot->pool;
    scoped(mutex_unlock) Mutex *held = mutex_hold(&pool->mutex);

    if (code != ERR_TIMEOUT || fair)
        failure_note(pool, error);
    slot_offer(slot);
    pool_gauges(pool);
    if (reterr)
        *reterr = *error;
    return code;
}

static bool pool_is_closing(Pool *pool)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&pool->mutex);

    return pool->closing;
}

/* The slot is ours and OPENING: close what it held, connect, and keep trying while that makes sense. *ret_slot: this one, or
 * another one that was handed over meanwhile; then it may be OPENING too. */
static ErrorCode slot_open(Checkout *slot, int wishes, Deadline deadline, Checkout **ret_slot, Error *reterr)
{
    Pool *pool = slot->pool;
    bool  fair = deadline_left_ms(deadline) >= fair_ms(pool);
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
        if (code == ERR_TIMEOUT && tries > 1 && deadline_passed(deadline)) /* the try before says more than a cut one */
            return slot_fail(slot, before.code, fair, &before, reterr);
        before = error;
        if (held) { /* the breaker has opened: like anyone else, wait for the probe or be refused */
            slot_give_back(slot);
            return slot_take(pool, wishes, deadline, ret_slot, reterr);
        }
        if (code == ERR_BUSY) {
            other = slot_swap(slot, tries, wishes & POOL_URGENT, deadline, &late);
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

const BackoffPolicy *pool_operation_retry(const Pool *pool)
{
    return &pool->options.operation_retry;
}

Conn *checkout_conn(Checkout *checkout)
{
    return checkout->conn;
}

/* A connection that broke says nothing about the next one: a restart breaks them all and is over in a second. */
static bool is_lost_connection(const Error *error)
{
    return error->code == ERR_UNAVAILABLE && (!error->sqlstate[0] || strncmp(error->sqlstate, "57P", 3) == 0);
}

/* Silence until the deadline, met by somebody who came late in the first place. */
static bool is_impatience(const Checkout *checkout, const Error *error)
{
    return error->code == ERR_TIMEOUT && mono_ms_between(checkout->acquired_at, clock_mono()) < fair_ms(checkout->pool);
}

void checkout_report(Checkout *checkout, ErrorCode code, const Error *error)
{
    Pool *pool = checkout->pool;

    /* A refusal is an answer too: the server is well. So is a failure of the caller's own, on a connection that is. */
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
    /* It may have waited for a lock or a standby on a server that is well: before silence opens the breaker, ask. */
    if (error->code == ERR_TIMEOUT && breaker_is_near(&pool->breaker)) {
        pool->last_error = *error;
        pool->suspected  = true;
        janitor_wake(pool);
        return;
    }
    failure_note(pool, error);
}

void pool_release(Checkout *checkout)
{
    Pool *pool = checkout->pool;
    bool  keep = conn_is_good(checkout->conn) && conn_transaction(checkout->conn) == PQTRANS_IDLE &&
                !conn_was_interrupted(checkout->conn);
    Conn *conn = NULL;

    mutex_lock(&pool->mutex);
    if (checkout->answered && keep)
        breaker_succeeded(&pool->breaker);
    checkout->idle_since = clock_mono();
    if (!keep || slot_is_stale(checkout) || pool->closing)
        conn = take(checkout->conn);
    if (conn) {
        /* Closed before the slot is free again: the server never sees more of us than size_max. */
        mutex_unlock(&pool->mutex);
        conn_close(conn);
        mutex_lock(&pool->mutex);
    }
    slot_offer(checkout);
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
