/*
 * stopwatch.c - see stopwatch.h.
 */
#include "bench/stopwatch.h"

#include <stdlib.h>

static void stopwatch_run(Handler *base, Job *job, SettleItem *ret_settle)
{
    Stopwatch *stopwatch = (Stopwatch *)base;
    Mono       sent      = {strtoll(job->command->payload, NULL, 10)};
    int64_t    us        = mono_us_between(sent, clock_mono());

    mutex_lock(&stopwatch->mutex);
    histogram_add(&stopwatch->window, us);
    histogram_add(&stopwatch->all, us);
    mutex_unlock(&stopwatch->mutex);
    ret_settle->outcome = OUTCOME_COMPLETE;
}

void stopwatch_init(Stopwatch *stopwatch)
{
    *stopwatch = (Stopwatch){.base = {.run = stopwatch_run}};
    mutex_init(&stopwatch->mutex);
}

void stopwatch_done(Stopwatch *stopwatch)
{
    mutex_done(&stopwatch->mutex);
}

void stopwatch_reset(Stopwatch *stopwatch)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&stopwatch->mutex);

    stopwatch->window = stopwatch->all = (Histogram){0};
}

void stopwatch_lap(Stopwatch *stopwatch, Histogram *ret_window)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&stopwatch->mutex);

    *ret_window       = stopwatch->window;
    stopwatch->window = (Histogram){0};
}
