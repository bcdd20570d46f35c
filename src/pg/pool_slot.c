/*
 * pool_slot.c - the slots of a pool and the callers that wait for one. The mutex is held throughout.
 *
 * A slot that its owner no longer needs goes to the first waiter that may have it, otherwise into the idle or the free
 * list.
 */
#include "base/world.h"
#include "pg/metric.h"
#include "pg/pool_internal.h"

/* ---- lists ---- */

bool pool_is_quiet(const Pool *pool)
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

void slot_push(Checkout **list, Checkout *slot, SlotState state)
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

void waiters_refuse(Pool *pool, ErrorCode code)
{
    while (pool->first)
        waiter_refuse(pool, pool->first, code);
}

bool probe_is_worth_waiting(const Pool *pool, Deadline deadline)
{
    return pool->breaker.state == BREAKER_HALF_OPEN || mono_before(breaker_next_probe(&pool->breaker), deadline.at);
}

void waiters_refuse_late(Pool *pool)
{
    int     kept = 0;
    Waiter *next;

    for (Waiter *waiter = pool->first; waiter; waiter = next) {
        next = waiter->next;
        if (kept >= POOL_OUTAGE_WAITERS * pool->options.size_max || waiter->prompt ||
            !probe_is_worth_waiting(pool, waiter->deadline))
            waiter_refuse(pool, waiter, ERR_UNAVAILABLE);
        else
            kept++;
    }
}

bool ordinary_may_take(const Pool *pool)
{
    return pool->ordinary < pool->options.size_max - pool->options.size_reserved;
}

static int waiter_rank(const Waiter *waiter)
{
    return waiter->urgent ? 2 : waiter->soon;
}

/* The waiter that gets a slot, with a connection or without: the first of the highest rank; NULL: none. */
static Waiter *waiter_next(const Pool *pool, bool connected)
{
    Waiter *found = NULL;

    if (!breaker_is_closed(&pool->breaker))
        return NULL;
    for (Waiter *waiter = pool->first; waiter && !(found && found->urgent); waiter = waiter->next) {
        /* A waiter that has a slot gives it back for the connection. */
        bool may = waiter->own ? connected : waiter->urgent || ordinary_may_take(pool);

        if (may && (!found || waiter_rank(waiter) > waiter_rank(found)))
            found = waiter;
    }
    return found;
}

void slot_hold(Checkout *slot, bool urgent)
{
    slot->ordinary = !urgent;
    slot->pool->ordinary += !urgent;
}

void slot_let_go(Checkout *slot)
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
    return slot->generation != slot->pool->generation || !mono_before(clock_mono(), slot->retire_at) ||
           (slot->conn && conn_is_large(slot->conn));
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

/* ---- gauges and failures ---- */

void pool_gauges(const Pool *pool)
{
    metric_set(&pg_metrics.pool_connections, pool->options.size_max - pool->counts[SLOT_FREE]);
    metric_set(&pg_metrics.pool_in_use, pool->counts[SLOT_ACQUIRED]);
    metric_set(&pg_metrics.pool_waiting, pool->waiting);
    metric_set(&pg_metrics.breaker_state, pool->breaker.state);
}

void pool_wake_janitor(Pool *pool)
{
    pool->janitor_woken = true;
    cond_signal(&pool->janitor_wake);
}

void failure_record(Pool *pool, const Error *error)
{
    pool->last_error = *error;
    if (!error_is_infrastructure(error->code, error->sqlstate) || !breaker_failed(&pool->breaker, clock_mono()))
        return;
    /* Idle connections were opened before the outage. */
    pool->generation++;
    pool->opened = true;
    pool_wake_janitor(pool);
    waiters_refuse_late(pool);
    metric_add(&pg_metrics.breaker_opened, 1);
    pool_gauges(pool);
}

/* ---- waiting ---- */

Checkout *waiters_join(Pool *pool, Deadline deadline, int wishes, Checkout *own, ErrorCode *ret_refused)
{
    Waiter waiter = {.refused  = OK,
                     .deadline = deadline,
                     .urgent   = wishes & POOL_URGENT,
                     .soon     = wishes & POOL_SOON,
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
