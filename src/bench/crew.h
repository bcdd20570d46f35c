/*
 * crew.h - a worker of this process on a thread of its own, as `pawl work` is one.
 *
 * Ownership: whoever starts a crew ends it, also after a failure.
 */
#ifndef BENCH_CREW_H
#define BENCH_CREW_H

#include <pthread.h>
#include <stdatomic.h>

#include "bench/bench.h"
#include "bus/worker.h"

typedef struct {
    Bench      *bench;
    Worker     *worker;
    Listen     *listen; /* NULL: it is not woken */
    pthread_t   thread;
    atomic_bool ended;
    ErrorCode   code;
    Error       error;
} Crew;

/* threads: of the handler; 0: the worker's default. */
void crew_start(Crew *crew, Bench *bench, const Place *place, Handler *handler, int threads);
/* Be woken by notifications from now on; returns when they arrive, or after some seconds without. */
must_check ErrorCode crew_listen(Crew *crew, const Place *place, Error *reterr);
/* Until it has handled this many since its start. Also when it ends by itself, or is told to stop: crew_end() says why. */
void crew_wait(Crew *crew, int64_t count);
/* Stop, join, free. The error is the worker's own, or "interrupted". */
must_check ErrorCode crew_end(Crew *crew, Error *reterr);

#endif
