/*
 * lock_calls.c - two combiners whose batches are single calls: one for first tries, one for the others.
 */
#include "pg/lock_calls.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "pg/combiner.h"

#define RETRY_LEFT_MS 250 /* a try that the deadline cuts off would end in doubt: not begun with less */

struct LockCalls {
    Combiner *firsts, *retries;
};

bool error_is_lock(const Error *error)
{
    return error->code == ERR_BUSY && strcmp(error->sqlstate, "55P03") == 0;
}

static ErrorCode call_run(void *context, void **items, int count, Deadline deadline, Error *reterr)
{
    LockCall *call = items[0];

    (void)context, (void)count, (void)deadline; /* a batch is one call */
    return call->run(call, reterr);
}

static void call_done(void *context, const Error *error)
{
    LockCall *call = context;

    if (error_is_lock(error) && deadline_left_ms(call->deadline) > RETRY_LEFT_MS) {
        call->queued_at = clock_mono();
        combiner_submit(call->calls->retries, call, call->deadline, call_done);
        return;
    }
    call->code  = error->code;
    call->error = *error;
    call->on_done(call->context);
}

void lock_calls_submit(LockCalls *calls, LockCall *call)
{
    call->calls     = calls;
    call->queued_at = clock_mono();
    combiner_submit(call->is_deferred ? calls->retries : calls->firsts, call, call->deadline, call_done);
}

LockCalls *lock_calls_new(int slots)
{
    LockCalls *calls = memory_new(1, sizeof *calls);

    calls->firsts = combiner_new(
        &(CombinerOptions){.run = call_run, .context = calls, .slots = slots, .slots_max = slots, .batch_max = 1});
    calls->retries =
        combiner_new(&(CombinerOptions){.run = call_run, .context = calls, .slots = 1, .slots_max = 1, .batch_max = 1});
    return calls;
}

void lock_calls_free(LockCalls *calls)
{
    combiner_free(calls->firsts);
    combiner_free(calls->retries);
    free(calls);
}
