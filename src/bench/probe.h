/*
 * probe.h - a second worker on the same domain, polling slowly, that times each of its claims: one round trip each.
 *
 * What it finds it settles. So it sees what a claim costs by itself, apart from waiting and waking.
 * Threads: its own; probe_lap() and probe_settled() from any.
 */
#ifndef BENCH_PROBE_H
#define BENCH_PROBE_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/sync.h"
#include "bench/database.h"
#include "bench/histogram.h"

typedef struct {
    Pool           *pool;
    pthread_t       thread;
    atomic_bool     stopping;
    _Atomic int64_t settled;
    Mutex           mutex; /* guards window */
    Histogram       window;
    ErrorCode       code; /* when it has ended */
    Error           error;
} Probe;

void probe_start(Probe *probe, const BenchDatabase *database);
void probe_lap(Probe *probe, Histogram *ret_window);
/* Stop and join. code: of the measurement; if that is OK, the error is the probe's own. */
must_check ErrorCode probe_end(Probe *probe, ErrorCode code, Error *reterr);

#endif
