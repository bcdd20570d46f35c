/*
 * paced_load.h - a load with a fixed rate, whether or not it is handled: sends what is due a hundred times a second.
 */
#ifndef BENCH_PACED_LOAD_H
#define BENCH_PACED_LOAD_H

#include <stdint.h>

#include "bench/bench.h"
#include "bench/stopwatch.h"
#include "bus/waker.h"

typedef struct PacedLoad PacedLoad;
struct PacedLoad {
    Bench         *bench;
    BenchDatabase *database;
    Waker         *waker;
    int64_t        rate; /* a second */
    int64_t        ms;   /* how long */
    int64_t        sent;
    /* Called when this much time has passed, again and again; 0: never. */
    int64_t window_ms;
    void (*window)(PacedLoad *paced_load, int64_t elapsed_us);
    void *context; /* of window() */
};

/* Returns when the last one is sent. */
must_check ErrorCode paced_load_run(PacedLoad *paced_load, Error *reterr);

#endif
