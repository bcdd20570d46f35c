/*
 * pace.h - a load that comes at its own rate, whether or not it is handled: a hundred times a second what is due is sent.
 */
#ifndef BENCH_PACE_H
#define BENCH_PACE_H

#include <stdint.h>

#include "bench/bench.h"
#include "bench/stopwatch.h"
#include "bus/waker.h"

typedef struct Pace Pace;
struct Pace {
    Bench  *bench;
    Place  *place;
    Waker  *waker;
    int64_t rate; /* a second */
    int64_t ms;   /* how long */
    int64_t sent;
    /* Called when this much time has passed, again and again; 0: never. */
    int64_t window_ms;
    void (*window)(Pace *pace, int64_t elapsed_us);
    void *context; /* of window() */
};

/* Returns when the last one is sent. */
must_check ErrorCode pace_run(Pace *pace, Error *reterr);

#endif
