/*
 * executor.c - a list of jobs, a mutex, a condition.
 */
#include "http/executor.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/share.h"
#include "base/sync.h"
#include "http/metric.h"

typedef TAILQ_HEAD(ExecutorQueue, ExecutorJob) ExecutorQueue;

struct Executor {
    ExecutorRun *run;
    int          thread_count;
    pthread_t   *threads;
    Share       *reading, *places; /* threads and places in the queue of jobs that only read */

    Mutex         mutex; /* guards all below */
    Cond          filled;
    bool          stopping;
    int           queue_max, count;
    ExecutorQueue queue;
};

/* Under the mutex. */
static void job_remove(Executor *executor, ExecutorJob *job)
{
    TAILQ_REMOVE(&executor->queue, job, link);
    executor->count--;
    metric_add(&http_metrics.queue, -1);
    if (job->reader)
        share_give(executor->places, job->reader, 1);
}

/* Under the mutex: the first that may run now; NULL: none. */
static ExecutorJob *job_find(const Executor *executor)
{
    ExecutorJob *job;

    TAILQ_FOREACH (job, &executor->queue, link)
        if (!job->reader || share_try(executor->reading, job->reader, 1))
            return job;
    return NULL;
}

/* The next item, NULL when the executor stops. ret_reader: "" if it may write. */
static void *executor_take(Executor *executor, char *ret_reader, bool *ret_reads)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&executor->mutex);
    ExecutorJob                *job  = NULL;

    while (!executor->stopping && !(job = job_find(executor)))
        cond_wait(&executor->filled, held, deadline_never());
    if (executor->stopping)
        return NULL;
    *ret_reads = job->reader;
    snprintf(ret_reader, TOKEN_NAME_SIZE, "%s", job->reader ? job->reader : "");
    job_remove(executor, job);
    if (executor->count > 0)
        cond_signal(&executor->filled); /* the end of one read may let several run */
    return job->item;
}

static void *executor_body(void *context)
{
    Executor *executor = context;
    char      reader[TOKEN_NAME_SIZE]; /* a copy: the job is its submitter's again when it has run */
    bool      reads = false;

    for (void *item; (item = executor_take(executor, reader, &reads)) != NULL;) {
        executor->run(item);
        if (reads)
            share_give(executor->reading, reader, 1);
    }
    return NULL;
}

Executor *executor_new(int threads, int readers_max, int queue_max, ExecutorRun *run)
{
    Executor *executor = memory_new(1, sizeof *executor);

    assert(threads > 0 && readers_max > 0 && queue_max > 0);
    executor->run       = run;
    executor->queue_max = queue_max;
    executor->threads   = memory_new((size_t)threads, sizeof *executor->threads);
    executor->reading   = share_new(readers_max);
    executor->places    = share_new(queue_max > 1 ? queue_max / 2 : 1);
    TAILQ_INIT(&executor->queue);
    mutex_init(&executor->mutex);
    cond_init(&executor->filled);
    for (; executor->thread_count < threads; executor->thread_count++)
        executor->threads[executor->thread_count] = thread_start("http-executor", executor_body, executor);
    return executor;
}

bool executor_submit(Executor *executor, ExecutorJob *job)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&executor->mutex);

    if (executor->count == executor->queue_max || executor->stopping)
        return false;
    if (job->reader && !share_try(executor->places, job->reader, 1))
        return false;
    TAILQ_INSERT_TAIL(&executor->queue, job, link);
    executor->count++;
    metric_add(&http_metrics.queue, 1);
    cond_signal(&executor->filled);
    return true;
}

void executor_stop(Executor *executor)
{
    mutex_lock(&executor->mutex);
    executor->stopping = true;
    cond_broadcast(&executor->filled);
    mutex_unlock(&executor->mutex);
    for (int i = 0; i < executor->thread_count; i++)
        thread_join(executor->threads[i]);
    mutex_lock(&executor->mutex); /* others still submit, and are refused */
    for (ExecutorJob *job; (job = TAILQ_FIRST(&executor->queue)) != NULL;)
        job_remove(executor, job);
    mutex_unlock(&executor->mutex);
}

void executor_free(Executor *executor)
{
    share_free(executor->reading);
    share_free(executor->places);
    cond_done(&executor->filled);
    mutex_done(&executor->mutex);
    free(executor->threads);
    free(executor);
}
