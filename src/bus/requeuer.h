/*
 * requeuer.h - one requeue task for all workers of a process that share a pool.
 *
 * pawl.requeue_due() is about all domains, so one call serves every worker. Each worker asks when it is awake anyway: the first one that
 * finds the time come runs the call, the others continue. When commands were requeued, all of them are woken.
 *
 * Invariants
 *   1. At most one call is in progress for a pool.
 *   2. Between two calls pass at most the `most_ms` of the member that asks for the least.
 * Threads: any. A member is called from the threads of others and must not wait.
 */
#ifndef BUS_REQUEUER_H
#define BUS_REQUEUER_H

#include <stdbool.h>

#include "base/clock.h"
#include "base/error.h"
#include "pg/pool.h"

typedef struct Requeuer       Requeuer;
typedef struct RequeuerMember RequeuerMember;
struct RequeuerMember {
    void (*wake)(void *context); /* commands were requeued: there may be work */
    void           *context;
    RequeuerMember *next;
};

/* The member is borrowed until it leaves. */
Requeuer *requeuer_join(Pool *pool, RequeuerMember *member);
void      requeuer_leave(Requeuer *requeuer, RequeuerMember *member);
/* When to call requeuer_step(), for a member that wants a call at least every most_ms. */
Mono requeuer_at(Requeuer *requeuer, int most_ms);
/* A notification may be about a delayed command: ask for its time soon, but no more often than every 100 ms. */
void requeuer_notified(Requeuer *requeuer);
/* OK, and nothing is done, before the time or while another member does it. */
must_check ErrorCode requeuer_step(Requeuer *requeuer, int most_ms, Deadline deadline, Error *reterr);

#endif
