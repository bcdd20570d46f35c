/*
 * breaker.h - stops asking a database that does not answer. Pure: time comes in as an argument.
 *
 *     CLOSED    -> OPEN       [breaker_failed: the fifth infrastructure failure in a row]
 *     OPEN      -> HALF_OPEN  [breaker_probe: 1 s later, after each probe that failed twice as long, 30 s at most; the
 * one caller that gets true] HALF_OPEN -> CLOSED     [breaker_probe_ended: it worked] HALF_OPEN -> OPEN
 * [breaker_probe_ended: it failed; or breaker_probe: it never reported back]
 *
 * Invariants
 *   1. Business errors never count; a success sets the count to zero.
 *   2. There is at most one probe, named by a number; reports from anyone else change nothing while not CLOSED.
 *   3. HALF_OPEN ends: a probe that has not reported within probe_ms_max is counted as failed.
 * Threads: none of its own; the pool's mutex guards it.
 */
#ifndef PG_BREAKER_H
#define PG_BREAKER_H

#include <stdbool.h>

#include "base/clock.h"

typedef enum { BREAKER_CLOSED, BREAKER_HALF_OPEN, BREAKER_OPEN } BreakerState;

typedef struct {
    int          failures_max; /* 5 */
    int          open_ms_min;  /* 1,000: before the first probe */
    int          open_ms_max;  /* 30,000: between two probes */
    int          probe_ms_max; /* 5,000 */
    BreakerState state;
    int          failures; /* in a row */
    int          open_ms;  /* from opened_at to the next probe */
    Mono         opened_at;
    Mono         probe_at;
    unsigned     probe; /* number of the probe under way or the last one */
} Breaker;

void breaker_init(Breaker *breaker, int failures_max, int open_ms_min, int open_ms_max, int probe_ms_max);
/* May an ordinary caller go on? Only while CLOSED. */
bool breaker_is_closed(const Breaker *breaker);
void breaker_succeeded(Breaker *breaker);
/* true: this failure opened it. */
bool breaker_failed(Breaker *breaker, Mono now);
/* Would one more failure open it? */
bool breaker_is_near(const Breaker *breaker);
/* Is it time for a probe? true for exactly one caller; *ret_probe names it. */
bool breaker_probe(Breaker *breaker, Mono now, unsigned *ret_probe);
void breaker_probe_ended(Breaker *breaker, unsigned probe, bool worked, Mono now);
/* When the next probe may start; meaningful while OPEN. */
Mono        breaker_next_probe(const Breaker *breaker);
const char *breaker_state_text(BreakerState state);

#endif
