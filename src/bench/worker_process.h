/*
 * worker_process.h - several processes of this very program, each `pawl work --noop --drain` on one database.
 */
#ifndef BENCH_WORKER_PROCESS_H
#define BENCH_WORKER_PROCESS_H

#include "bench/bench.h"

#define WORKER_PROCESSES_MAX 16

/* Start them and wait until all have ended. When the bench is interrupted they are signaled and waited for. */
must_check ErrorCode worker_processes_run(Bench *bench, const BenchDatabase *database, int processes, Error *reterr);

#endif
