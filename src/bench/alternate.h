/*
 * alternate.h - variants that are compared run alternately, in an order that changes with each round, so other load affects both.
 */
#ifndef BENCH_ALTERNATE_H
#define BENCH_ALTERNATE_H

#include <stdint.h>

#include "bench/bench.h"

typedef struct {
    const char *section;
    const char *names[2];
    /* The rate of the first or of the second kind. */
    ErrorCode (*measure)(Bench *bench, int which, int64_t value, double *ret_rate, Error *reterr);
    int64_t value;
} Alternation;

must_check ErrorCode alternate_run(Bench *bench, const Alternation *alternation, Error *reterr);

static inline double per_second(int64_t count, int64_t us)
{
    return us > 0 ? (double)count * 1e6 / (double)us : 0;
}

#endif
