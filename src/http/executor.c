/*
 * executor.c - a ring of items, a mutex, a condition.
 */
#include "http/executor.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/sync.h"
#include "http/metric.h"

struct Executor {
    ExecutorRun *run;
    int          thread_count;
    pthread_t   *threads;

    Mutex  mutex; /* guards all below */
    Cond   filled;
    bool   stopping;
    int    queue_max, first, count;
    void **queue;
};

/* The next item, NULL when the executor stops. */
static void *executor_take(Executor *executor)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&executor->mutex);

    while (executor->count == 0 && !executor->stopping)
        cond_wait(&executor->filled, held, deadline_never());
    if (executor->stopping)
        return NULL;
    void *item      = executor->queue[executor->first];
    executor->first = (executor->first + 1) % executor->queue_max;
    executor->count--;
    metric_add(&http_metrics.queue, -1);
    return item;
}

static void *executor_body(void *context)
{
    Executor *executor = context;

    for (void *item; (item = executor_take(executor)) != NULL;)
        executor->run(item);
    return NULL;
}

Executor *executor_new(int threads, int queue_max, ExecutorRun *run)
{
    Executor *executor = memory_new(1, sizeof *executor);

    assert(threads > 0 && queue_max > 0);
    executor->run       = run;
    executor->queue_max = queue_max;
    executor->queue     = memory_new((size_t)queue_max, sizeof *executor->queue);
    executor->threads   = memory_new((size_t)threads, sizeof *executor->threads);
    mutex_init(&executor->mutex);
    cond_init(&executor->filled);
    for (; executor->thread_count < threads; executor->thread_count++)
        executor->threads[executor->thread_count] = thread_start("http-executor", executor_body, executor);
    return executor;
}

bool executor_submit(Executor *executor, void *item)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&executor->mutex);

    if (executor->count == executor->queue_max || executor->stopping)
        return false;
    executor->queue[(executor->first + executor->count++) % executor->queue_max] = item;
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
    metric_add(&http_metrics.queue, -executor->count);
}

void executor_free(Executor *executor)
{
    cond_done(&executor->filled);
    mutex_done(&executor->mutex);
    free(executor->threads);
    free(executor->queue);
    free(executor);
}
