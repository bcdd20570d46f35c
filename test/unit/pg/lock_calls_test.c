/*
 * lock_calls_test.c - calls whose lock is held are tried again, and delay no others.
 */
#include "pg/lock_calls.h"

#include <stdatomic.h>

#include "test/harness/test.h"
#include "test/unit/pg/await.h"

#define WAITERS 20

typedef struct {
    LockCall           call;
    const atomic_bool *granted; /* NULL: it needs no lock */
    ErrorCode          code;    /* once it has the lock */
    atomic_int         tries, done;
} Tried;

static ErrorCode tried_run(LockCall *call, Error *reterr)
{
    Tried *tried = call->context;

    atomic_fetch_add(&tried->tries, 1);
    if (tried->granted && !atomic_load(tried->granted)) {
        clock_sleep_ms(1); /* as PostgreSQL would wait */
        ErrorCode code = fail(reterr, ERR_BUSY, "locked");

        error_set_sqlstate(reterr, "55P03");
        return code;
    }
    return tried->code == OK ? OK : fail(reterr, tried->code, "refused");
}

static void tried_done(void *context)
{
    Tried *tried = context;

    atomic_fetch_add(&tried->done, 1);
}

static void tried_submit(LockCalls *calls, Tried *tried, int deadline_ms)
{
    tried->call = (LockCall){.run         = tried_run,
                             .deadline    = deadline_in_ms(deadline_ms),
                             .is_deferred = tried->call.is_deferred,
                             .on_done     = tried_done,
                             .context     = tried};
    lock_calls_submit(calls, &tried->call);
}

TEST(lock_calls_are_tried_again_until_the_lock_is_granted_and_delay_no_others)
{
    scoped(lock_calls_free) LockCalls *calls            = lock_calls_new(2);
    atomic_bool                        granted          = false;
    Tried                              waiters[WAITERS] = {0}, other = {0};

    for (int i = 0; i < WAITERS; i++) {
        waiters[i].granted          = &granted;
        waiters[i].call.is_deferred = i % 2 == 0;
        tried_submit(calls, &waiters[i], 60000);
    }
    for (int i = 0; i < WAITERS; i++)
        await(atomic_load(&waiters[i].tries) >= 2);
    tried_submit(calls, &other, 60000);
    await(atomic_load(&other.done) == 1);
    assert_int_equal(other.call.code, OK);
    for (int i = 0; i < WAITERS; i++)
        assert_int_equal(atomic_load(&waiters[i].done), 0);
    atomic_store(&granted, true);
    for (int i = 0; i < WAITERS; i++)
        await(atomic_load(&waiters[i].done) == 1);
    for (int i = 0; i < WAITERS; i++)
        assert_int_equal(waiters[i].call.code, OK);
}

TEST(lock_calls_end_at_their_deadline_and_say_what_held_them)
{
    scoped(lock_calls_free) LockCalls *calls   = lock_calls_new(1);
    atomic_bool                        granted = false;
    Tried                              waiter  = {.granted = &granted};

    tried_submit(calls, &waiter, 600);
    await(atomic_load(&waiter.done) == 1);
    assert_true(error_is_lock(&waiter.call.error));
    assert_int_equal(waiter.call.code, ERR_BUSY);
}

TEST(lock_calls_try_other_failures_once)
{
    scoped(lock_calls_free) LockCalls *calls   = lock_calls_new(1);
    Tried                              refused = {.code = ERR_CONFLICT};

    tried_submit(calls, &refused, 60000);
    await(atomic_load(&refused.done) == 1);
    assert_int_equal(refused.call.code, ERR_CONFLICT);
    assert_contains(refused.call.error.text, "refused");
    assert_int_equal(atomic_load(&refused.tries), 1);
}
