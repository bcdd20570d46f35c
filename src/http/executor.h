/*
 * executor.h - a fixed number of threads behind a queue of fixed size, for handlers that may wait for the database.
 *
 * Invariants
 *   1. At most queue_max items wait; one more is refused immediately, which is the server's back-pressure.
 *   2. An item is run exactly once, or, when the executor is stopped first, not at all.
 * Threads: submit from any thread. Ownership: items stay the submitter's; the queue only points to them.
 */
#ifndef HTTP_EXECUTOR_H
#define HTTP_EXECUTOR_H

#include <stdbool.h>

#include "base/attr.h"

typedef struct Executor Executor;
typedef void            ExecutorRun(void *item);

Executor *executor_new(int threads, int queue_max, ExecutorRun *run);
/* false: the queue is full, or the executor was stopped. */
must_check bool executor_submit(Executor *executor, void *item);
/* Let running items finish, forget those that wait, join the threads. What is submitted from now on is refused. */
void executor_stop(Executor *executor);
/* After executor_stop(), when no thread submits any more. */
void executor_free(Executor *executor);

#endif
