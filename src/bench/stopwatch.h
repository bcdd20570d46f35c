/*
 * stopwatch.h - a handler that notes how long ago its command was sent: the payload is the sender's clock.
 *
 * Sender and handler are threads of one process, so both read the same clock. Threads: any.
 */
#ifndef BENCH_STOPWATCH_H
#define BENCH_STOPWATCH_H

#include "base/sync.h"
#include "bench/histogram.h"
#include "bus/worker.h"

typedef struct {
    Handler   base;
    Mutex     mutex;       /* guards the tallies */
    Histogram window, all; /* from before the send to the start of the handler */
} Stopwatch;

void stopwatch_init(Stopwatch *stopwatch);
void stopwatch_done(Stopwatch *stopwatch);
/* Forget everything, after a warm-up. */
void stopwatch_reset(Stopwatch *stopwatch);
/* Take the window and begin a new one. */
void stopwatch_lap(Stopwatch *stopwatch, Histogram *ret_window);

#endif
