/*
 * breaker.c - see breaker.h for the states and who moves them.
 */
#include "pg/breaker.h"

#include <assert.h>

void breaker_init(Breaker *breaker, int failures_max, int open_ms_min, int open_ms_max, int probe_ms_max)
{
    assert(failures_max > 0 && open_ms_min > 0 && open_ms_max > 0 && probe_ms_max > 0);
    *breaker = (Breaker){.failures_max = failures_max,
                         .open_ms_min  = open_ms_min < open_ms_max ? open_ms_min : open_ms_max,
                         .open_ms_max  = open_ms_max,
                         .probe_ms_max = probe_ms_max};
}

bool breaker_is_closed(const Breaker *breaker)
{
    return breaker->state == BREAKER_CLOSED;
}

static void breaker_open(Breaker *breaker, int open_ms, Mono now)
{
    breaker->state     = BREAKER_OPEN;
    breaker->opened_at = now;
    breaker->open_ms   = open_ms;
}

static void breaker_reopen(Breaker *breaker, Mono now)
{
    bool capped = breaker->open_ms > breaker->open_ms_max / 2;

    breaker_open(breaker, capped ? breaker->open_ms_max : breaker->open_ms * 2, now);
}

void breaker_succeeded(Breaker *breaker)
{
    /* A checkout from before the outage may still report: while not CLOSED only the probe is believed. */
    if (breaker->state == BREAKER_CLOSED)
        breaker->failures = 0;
}

bool breaker_failed(Breaker *breaker, Mono now)
{
    if (breaker->state != BREAKER_CLOSED || ++breaker->failures < breaker->failures_max)
        return false;
    breaker_open(breaker, breaker->open_ms_min, now);
    return true;
}

bool breaker_is_near(const Breaker *breaker)
{
    return breaker->state == BREAKER_CLOSED && breaker->failures + 1 >= breaker->failures_max;
}

bool breaker_probe(Breaker *breaker, Mono now, unsigned *ret_probe)
{
    bool lost = breaker->state == BREAKER_HALF_OPEN && mono_ms_between(breaker->probe_at, now) >= breaker->probe_ms_max;

    if (lost)
        breaker_reopen(breaker, now);
    if (breaker->state != BREAKER_OPEN || mono_before(now, breaker_next_probe(breaker)))
        return false;
    breaker->state    = BREAKER_HALF_OPEN;
    breaker->probe_at = now;
    *ret_probe        = ++breaker->probe;
    return true;
}

void breaker_probe_ended(Breaker *breaker, unsigned probe, bool worked, Mono now)
{
    if (breaker->state != BREAKER_HALF_OPEN || breaker->probe != probe)
        return;
    if (!worked) {
        breaker_reopen(breaker, now);
        return;
    }
    breaker->state    = BREAKER_CLOSED;
    breaker->failures = 0;
}

Mono breaker_next_probe(const Breaker *breaker)
{
    return mono_plus_ms(breaker->opened_at, breaker->open_ms);
}

const char *breaker_state_text(BreakerState state)
{
    static const char *const texts[] = {
        [BREAKER_CLOSED] = "closed", [BREAKER_HALF_OPEN] = "half-open", [BREAKER_OPEN] = "open"};

    return texts[state];
}
