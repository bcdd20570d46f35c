/*
 * watch.c - looks into the pool, which only a test may do.
 */
#include "test/sim/watch.h"

#include "test/sim/fiber.h"
#include "test/sim/server.h"

/* The janitor may be at a health check that gets no answer, and then at a connection. */
#define PROBE_LATE_MS 8000

static const Pool *watched;
static unsigned    probe_seen; /* the last probe that has connected */

void watch_begin(const Pool *pool)
{
    watched    = pool;
    probe_seen = 0;
}

void watch_end(void)
{
    watched = NULL;
}

static void look_at_counts(void)
{
    int sum = 0;

    for (int i = 0; i < SLOT_STATE_COUNT; i++) {
        if (watched->counts[i] < 0)
            sim_fail("%d slots are in state %d", watched->counts[i], i);
        sum += watched->counts[i];
    }
    if (sum != watched->options.size_max)
        sim_fail("%d slots are counted, not %d", sum, watched->options.size_max);
}

static void look_at_waiter(const Waiter *waiter)
{
    const Breaker *breaker = &watched->breaker;
    bool           may =
        waiter->urgent || waiter->own || watched->ordinary < watched->options.size_max - watched->options.size_reserved;

    if (breaker->state == BREAKER_CLOSED && may && (watched->idle || (watched->free && !waiter->own)))
        sim_fail("a caller waits while %d slots are idle and %d are free", watched->counts[SLOT_IDLE],
                 watched->counts[SLOT_FREE]);
    if (breaker->state == BREAKER_OPEN &&
        !mono_before(mono_plus_ms(breaker->opened_at, breaker->open_ms), waiter->deadline.at))
        sim_fail("a caller waits for a probe that comes after its deadline");
}

static void look_at_queue(void)
{
    int waiting = 0, ordinary = 0;

    for (const Waiter *waiter = watched->first; waiter; waiter = waiter->next, waiting++)
        look_at_waiter(waiter);
    for (int i = 0; i < watched->options.size_max; i++)
        ordinary += watched->slots[i].ordinary;
    if (waiting != watched->waiting)
        sim_fail("%d wait, %d are counted", waiting, watched->waiting);
    if (ordinary != watched->ordinary || ordinary > watched->options.size_max - watched->options.size_reserved)
        sim_fail("%d slots are held by ordinary callers, %d are counted, %d reserved", ordinary, watched->ordinary,
                 watched->options.size_reserved);
}

void watch_look(void)
{
    const Breaker *breaker;

    if (!watched || watched->mutex.owner) /* the thread that holds the mutex is changing it */
        return;
    breaker = &watched->breaker;
    look_at_counts();
    look_at_queue();
    if (breaker->state == BREAKER_OPEN && watched->free && !watched->closing &&
        mono_ms_between(mono_plus_ms(breaker->opened_at, breaker->open_ms), sim_now()) > PROBE_LATE_MS)
        sim_fail("a probe is overdue");
    if (breaker->state == BREAKER_HALF_OPEN && mono_ms_between(breaker->probe_at, sim_now()) > breaker->probe_ms_max)
        sim_fail("the breaker is stuck half-open");
}

void watch_connect(int fd)
{
    const Breaker *breaker;

    sim_trace("connects %d", fd);
    if (!watched)
        return;
    if (server_sessions_of_client() > watched->options.size_max)
        sim_fail("%d connections are open, not %d at most", server_sessions_of_client(), watched->options.size_max);
    breaker = &watched->breaker;
    if (breaker->state == BREAKER_HALF_OPEN) {
        if (breaker->probe == probe_seen)
            sim_fail("a second connection is tried while the breaker is half-open");
        probe_seen = breaker->probe;
    }
    /* Leave given a moment before it opened is still leave: no time has passed since. */
    if (breaker->state == BREAKER_OPEN && mono_before(breaker->opened_at, sim_now()))
        sim_fail("a connection is tried while the breaker is open");
}
