/*
 * requeuer.c - see requeuer.h.
 */
#include "bus/requeuer.h"

#include <assert.h>
#include <stdlib.h>

#include "base/memory.h"
#include "base/sync.h"
#include "bus/claim.h"
#include "bus/waker.h"

#define NOTIFIED_MS 100  /* between two calls that notifications cause */
#define RUNNING_MS  1000 /* while another member runs the call */

struct Requeuer {
    Pool           *pool;
    Requeuer       *next;
    RequeuerMember *first;
    Requeue         state; /* of the one that runs */
    Waker          *waker; /* workers of other processes are notified of what was requeued, too */
    Wake            wake;
    Mono            at, last;
    bool            running;
    bool            notified; /* while it ran */
    bool            foreseen; /* something is due at `at` */
};

/* Guards the list and all that is in it but `state`. Held for no statement. */
static Mutex     requeuers_mutex = {.native = PTHREAD_MUTEX_INITIALIZER};
static Requeuer *requeuers;

Requeuer *requeuer_join(Pool *pool, RequeuerMember *member)
{
    scoped(mutex_unlock) Mutex *held     = mutex_hold(&requeuers_mutex);
    Requeuer                   *requeuer = requeuers;

    while (requeuer && requeuer->pool != pool)
        requeuer = requeuer->next;
    if (!requeuer) {
        requeuer             = memory_new(1, sizeof *requeuer);
        requeuer->pool       = pool;
        requeuer->next       = requeuers;
        requeuer->waker      = waker_new(pool);
        requeuer->wake       = waker_wake(requeuer->waker);
        requeuer->state.wake = &requeuer->wake;
        requeuers            = requeuer;
    }
    member->next    = requeuer->first;
    requeuer->first = member;
    return requeuer;
}

/* true: it was the last member, and no other worker finds the requeuer any more. */
static bool member_remove(Requeuer *requeuer, RequeuerMember *member)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&requeuers_mutex);
    RequeuerMember            **link = &requeuer->first;
    Requeuer                  **own  = &requeuers;

    while (*link != member)
        link = &(*link)->next;
    *link = member->next;
    if (requeuer->first)
        return false;
    assert(!requeuer->running);
    while (*own != requeuer)
        own = &(*own)->next;
    *own = requeuer->next;
    return true;
}

void requeuer_leave(Requeuer *requeuer, RequeuerMember *member)
{
    if (!member_remove(requeuer, member))
        return;
    waker_free(requeuer->waker);
    free(requeuer);
}

static Mono sooner(Mono a, Mono b)
{
    return mono_before(a, b) ? a : b;
}

/* Under the mutex. */
static Mono next_at(const Requeuer *requeuer, int most_ms)
{
    return sooner(requeuer->at, mono_plus_ms(requeuer->last, most_ms));
}

Mono requeuer_at(Requeuer *requeuer, int most_ms)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&requeuers_mutex);

    return requeuer->running ? mono_plus_ms(clock_mono(), RUNNING_MS) : next_at(requeuer, most_ms);
}

void requeuer_notified(Requeuer *requeuer)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&requeuers_mutex);

    requeuer->notified = requeuer->running;
    requeuer->at       = sooner(requeuer->at, mono_plus_ms(requeuer->last, NOTIFIED_MS));
}

static bool step_begin(Requeuer *requeuer, int most_ms)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&requeuers_mutex);

    if (requeuer->running || mono_before(clock_mono(), next_at(requeuer, most_ms)))
        return false;
    requeuer->notified       = false;
    return requeuer->running = true;
}

static void step_end(Requeuer *requeuer, int most_ms, ErrorCode code, int moved, int next_ms)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&requeuers_mutex);

    requeuer->running = false;
    if (code != OK)
        return;
    /* Another process may be moving what is due for us right now: then it pays to claim soon. */
    if (moved > 0 || requeuer->foreseen)
        for (RequeuerMember *member = requeuer->first; member; member = member->next)
            member->wake(member->context);
    requeuer->foreseen = next_ms < most_ms;
    requeuer->last     = clock_mono();
    requeuer->at = mono_plus_ms(requeuer->last, requeuer->notified && next_ms > NOTIFIED_MS ? NOTIFIED_MS : next_ms);
}

ErrorCode requeuer_step(Requeuer *requeuer, int most_ms, Deadline deadline, Error *reterr)
{
    int       moved = 0, next_ms = 0;
    ErrorCode code;

    if (!step_begin(requeuer, most_ms))
        return OK;
    code = requeue_step(requeuer->pool, deadline, &requeuer->state, most_ms, &moved, &next_ms, reterr);
    step_end(requeuer, most_ms, code, moved, next_ms);
    return code;
}
