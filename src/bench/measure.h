/*
 * measure.h - how sections measure: two variants alternately, and work shared out among threads that begin together.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdint.h>

#include "bench/bench.h"

typedef struct {
    const char *section;
    const char *names[2];
    /* The rate of the first or of the second kind. */
    ErrorCode (*measure)(Bench *bench, int which, int64_t value, double *ret_rate, Error *reterr);
    int64_t value;
} Alternation;

/* In an order that changes with each round, so other load affects both. */
must_check ErrorCode alternate_run(Bench *bench, const Alternation *alternation, Error *reterr);

static inline double per_second(int64_t count, int64_t us)
{
    return us > 0 ? (double)count * 1e6 / (double)us : 0;
}

/* One thread's share: `count` pieces of work. thread counts from 0. */
typedef ErrorCode ThreadWork(Bench *bench, void *context, int thread, int64_t count, Error *reterr);

/* As many threads as there are clients. Returns when all have ended; one of the failures, if there were any. *ret_us: how long
 * it took. */
must_check ErrorCode threads_run(Bench *bench, ThreadWork *work, void *context, int64_t count, int64_t *ret_us,
                                 Error *reterr);

#endif
