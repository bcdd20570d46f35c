/*
 * fleet.h - several processes of this very program, each `pawl work --noop --drain` on one place.
 */
#ifndef BENCH_FLEET_H
#define BENCH_FLEET_H

#include "bench/bench.h"

#define FLEET_MAX 16

/* Start them and wait until all have ended. When the bench is to stop they are told to, and waited for. */
must_check ErrorCode fleet_run(Bench *bench, const Place *place, int processes, Error *reterr);

#endif
