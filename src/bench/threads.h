/*
 * threads.h - work shared out among threads that begin together.
 */
#ifndef BENCH_THREADS_H
#define BENCH_THREADS_H

#include <stdint.h>

#include "bench/bench.h"

/* One thread's share: `count` pieces of work. thread counts from 0. */
typedef ErrorCode ThreadWork(Bench *bench, void *context, int thread, int64_t count, Error *reterr);

/* As many threads as there are clients. Returns when all have ended; one of the failures, if there were any. *ret_us: how long
 * it took. */
must_check ErrorCode threads_run(Bench *bench, ThreadWork *work, void *context, int64_t count, int64_t *ret_us,
                                 Error *reterr);

#endif
