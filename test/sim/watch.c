/*
 * watch.c - looks into the pool, which only a test may do.
 */
#include "test/sim/watch.h"

#include "test/sim/fiber.h"
#include "test/sim/server.h"

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

static void look_at_line(void)
{
    if (watched->waiting && (watched->counts[SLOT_IDLE] || watched->counts[SLOT_FREE]))
        sim_fail("%d wait while %d slots are idle and %d are free", watched->waiting, watched->counts[SLOT_IDLE],
                 watched->counts[SLOT_FREE]);
    if (watched->waiting && watched->breaker.state != BREAKER_CLOSED)
        sim_fail("%d wait while the breaker is %s", watched->waiting, breaker_state_text(watched->breaker.state));
}

void watch_look(void)
{
    const Breaker *breaker;

    if (!watched || watched->mutex.owner) /* whoever holds the mutex is in the middle of something */
        return;
    breaker = &watched->breaker;
    look_at_counts();
    look_at_line();
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
