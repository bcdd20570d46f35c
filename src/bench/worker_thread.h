/*
 * worker_thread.h - a worker of this process on a thread of its own, as `pawl work` is one.
 *
 * Ownership: the caller of worker_thread_start() ends it, also after a failure.
 */
#ifndef BENCH_WORKER_THREAD_H
#define BENCH_WORKER_THREAD_H

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
} WorkerThread;

/* Of BENCH_DOMAIN. threads: of the handler; 0: the worker's default. */
void worker_thread_start(WorkerThread *worker_thread, Bench *bench, const BenchDatabase *database, Handler *handler,
                         int threads);
void worker_thread_start_domain(WorkerThread *worker_thread, Bench *bench, const BenchDatabase *database,
                                const char *domain, Handler *handler, int threads);
/* Be woken by notifications from now on; returns when they arrive, or after some seconds without. */
must_check ErrorCode worker_thread_listen(WorkerThread *worker_thread, const BenchDatabase *database, Error *reterr);
/* Until it has handled this many since its start. Also when it ends by itself, or is stopped: worker_thread_end() returns the reason. */
void worker_thread_wait(WorkerThread *worker_thread, int64_t count);
/* Stop, join, free. code: of the measurement so far; if that is OK, the error is the worker's own, or "interrupted". */
must_check ErrorCode worker_thread_end(WorkerThread *worker_thread, ErrorCode code, Error *reterr);

#endif
