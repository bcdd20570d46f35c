/*
 * executor.h - a fixed number of threads behind a queue of fixed size, for handlers that may wait for the database.
 *
 * Jobs run in the order they came. Those that only read have a part of the threads and half of the queue, which their
 * keys share (base/share.h): however many reads wait, others pass them, and so do the reads of other keys.
 *
 * Invariants
 *   1. At most queue_max jobs wait; one more is refused immediately, which is the server's back-pressure.
 *   2. A job is run exactly once, or, when the executor is stopped first, not at all.
 *   3. At most readers_max jobs that only read run at a time, and one key leaves a quarter of these threads to others;
 *      but if readers_max is 1, one runs.
 * Threads: submit from any thread. Ownership: jobs stay the submitter's; the queue only links them.
 */
#ifndef HTTP_EXECUTOR_H
#define HTTP_EXECUTOR_H

#include <stdbool.h>
#include <sys/queue.h>

#include "base/attr.h"
#include "http/token.h"

typedef struct Executor Executor;
typedef void            ExecutorRun(void *item);

/* From executor_submit() until it runs. */
typedef struct ExecutorJob ExecutorJob;
struct ExecutorJob {
    void       *item;
    const char *reader; /* the name of the key, shorter than TOKEN_NAME_SIZE, if it only reads; NULL: it may write */
    TAILQ_ENTRY(ExecutorJob) link;
};

Executor *executor_new(int threads, int readers_max, int queue_max, ExecutorRun *run);
/* false: too many wait, or the executor was stopped. */
must_check bool executor_submit(Executor *executor, ExecutorJob *job);
/* Let running jobs finish, forget those that wait, join the threads. What is submitted from now on is refused. */
void executor_stop(Executor *executor);
/* After executor_stop(), when no thread submits any more. */
void executor_free(Executor *executor);

#endif
