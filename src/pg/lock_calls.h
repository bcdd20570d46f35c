/*
 * lock_calls.h - calls that may need a lock which another transaction holds: they wait for it without a thread of their
 * own.
 *
 *     QUEUED -> RUNNING -> DONE        it ended
 *     RUNNING -> DEFERRED -> RUNNING   its lock was not granted (55P03), so nothing was done: it is tried again until
 * its deadline
 *
 * Invariants
 *   1. on_done is called once for each call, without a lock held, on a thread that ran or expired it, or in
 * lock_calls_submit().
 *   2. Deferred calls are tried again apart from the others and one at a time: all of them use one connection.
 *      First tries use at most a share of the pool's connections.
 *   3. A try waits for a lock for a short time only: that is its function's part (TxOptions.lock_ms).
 * Threads: any. The combiners below start a few of their own, on demand.
 * Ownership: calls are borrowed until they are done; lock_calls_free() only after that.
 */
#ifndef PG_LOCK_CALLS_H
#define PG_LOCK_CALLS_H

#include "base/clock.h"
#include "base/error.h"

typedef struct LockCalls LockCalls;
typedef struct LockCall  LockCall;

struct LockCall {
    ErrorCode (*run)(LockCall *call, Error *reterr);
    Deadline deadline;
    bool     is_deferred; /* it is known that its lock is held: it begins among those that are tried again */
    void (*on_done)(void *context);
    void *context;
    /* The verdict: OK, or why the last try failed. */
    ErrorCode code;
    Error     error;
    /* Set by lock_calls_submit(). */
    LockCalls *calls;
    Mono       queued_at; /* for the next try */
};

/* slots: how many first tries run at a time, 1 to COMBINER_SLOTS_MAX; combiner_share() of a pool. */
LockCalls *lock_calls_new(int slots);
void       lock_calls_free(LockCalls *calls);
SCOPED(LockCalls, lock_calls_free)
void lock_calls_submit(LockCalls *calls, LockCall *call);

/* A lock was not granted: the try wrote nothing. */
bool error_is_lock(const Error *error);

#endif
