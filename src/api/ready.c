/*
 * ready.c - see ready.h.
 */
#include "api/ready.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/sync.h"
#include "pg/combiner.h"
#include "pg/migrate.h"
#include "sql.h"

#define CHECK_MS 2000

struct Ready {
    Pool     *pool;
    Combiner *combiner;
    Mutex     mutex;   /* guards the rest */
    Mono      checked; /* .ns 0: never */
    Error     verdict;
};

static bool is_new(const Ready *ready)
{
    return ready->checked.ns != 0 && mono_ms_between(ready->checked, clock_mono()) < READY_MS;
}

/* One check for all queued callers, unless another has ended while they were queued. */
static ErrorCode checks_run(void *context, void **waits, int count, Deadline deadline, Error *reterr)
{
    Ready *ready = context;
    Error  error = {0};

    (void)deadline, (void)reterr;
    if (!ready_known(ready, &error)) {
        error.code = migrate_watch(ready->pool, &schema_embedded, deadline_in_ms(CHECK_MS), &error);
        mutex_lock(&ready->mutex);
        ready->verdict = error;
        ready->checked = clock_mono();
        mutex_unlock(&ready->mutex);
    }
    for (int i = 0; i < count; i++)
        ((ReadyWait *)waits[i])->error = error;
    return OK;
}

bool ready_known(Ready *ready, Error *ret_verdict)
{
    scoped(mutex_unlock) Mutex *held  = mutex_hold(&ready->mutex);
    bool                        known = is_new(ready);

    if (known)
        *ret_verdict = ready->verdict;
    return known;
}

static void wait_done(void *context, const Error *error)
{
    ReadyWait *wait = context;

    if (error->code != OK)
        wait->error = *error;
    wait->on_done(wait->context);
}

void ready_submit(Ready *ready, Deadline deadline, ReadyWait *wait)
{
    combiner_submit(ready->combiner, wait, deadline, wait_done);
}

Ready *ready_new(Pool *pool)
{
    Ready *ready = memory_new(1, sizeof *ready);

    ready->pool     = pool;
    ready->combiner = combiner_new(&(CombinerOptions){.run = checks_run, .context = ready, .slots_max = 1});
    mutex_init(&ready->mutex);
    return ready;
}

void ready_free(Ready *ready)
{
    combiner_free(ready->combiner);
    mutex_done(&ready->mutex);
    free(ready);
}
