/*
 * claims.c - requests that wait in groups, and a few threads that claim for them; see claims.h.
 */
#include "api/claims.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "api/claims_internal.h"
#include "base/log.h"
#include "base/memory.h"
#include "bus/claim.h"
#include "bus/lease.h"
#include "bus/metric.h"
#include "pg/combiner.h"

#define EXPIRE_MS 20 /* between two searches for waits whose time is over */

/* ---- waits ---- */

/* Under the mutex. */
static void wait_leave(ClaimWait *wait)
{
    TAILQ_REMOVE(&wait->group->waits, wait, link);
    wait->group = NULL;
}

/* Under the mutex: commands that no waiter gets. */
static void undo_add(Claims *claims, Arena *arena, ClaimedCommand *list, int count)
{
    Undo *undo = memory_new(1, sizeof *undo);

    *undo        = (Undo){arena, list, count, claims->undo};
    claims->undo = undo;
    cond_signal(&claims->changed);
}

/* When its time is over. A wait that no claim was tried for yet waits as long as a claim would end before its request's deadline. */
static Mono wait_end(const ClaimWait *wait)
{
    Mono last = mono_plus_ms(wait->deadline.at, -CALL_MS);

    return wait->tried && mono_before(wait->until.at, last) ? wait->until.at : last;
}

static void wait_expires(Claims *claims, const ClaimWait *wait)
{
    if (mono_before(wait_end(wait), claims->expire_at))
        claims->expire_at = wait_end(wait);
}

/* Under the mutex. */
static bool wait_is_over(const Claims *claims, const ClaimWait *wait, Mono now)
{
    if (wait->running)
        return false; /* its claim will say */
    return claims->stopping || !mono_before(now, wait_end(wait));
}

/* Under the mutex. */
static void wait_expire(const Claims *claims, ClaimWait *wait)
{
    wait->code  = wait->group->error.code;
    wait->error = wait->group->error;
    if (wait->code == OK && !wait->tried && !claims->stopping)
        wait->code = fail(&wait->error, ERR_TIMEOUT,
                          "the queue was not read to its end before the deadline of the request: claim again");
    wait_leave(wait);
}

/* Under the mutex: waits of the group whose time is over leave it and are put into *ret_done. Returns when the next one is over. */
static Mono group_expire(Claims *claims, ClaimGroup *group, Mono now, WaitList *ret_done)
{
    Mono soonest = deadline_never().at;

    for (ClaimWait *wait = TAILQ_FIRST(&group->waits), *next; wait; wait = next) {
        next = TAILQ_NEXT(wait, link);
        if (wait_is_over(claims, wait, now)) {
            wait_expire(claims, wait);
            TAILQ_INSERT_TAIL(ret_done, wait, link);
        } else if (mono_before(wait_end(wait), soonest)) {
            soonest = wait_end(wait);
        }
    }
    return soonest;
}

void claim_waits_expire(Claims *claims, WaitList *ret_done)
{
    Mono now = clock_mono(), soonest = deadline_never().at, earliest = mono_plus_ms(now, EXPIRE_MS);

    for (int i = 0; i < GROUP_STATE_COUNT; i++)
        for (ClaimGroup *group = TAILQ_FIRST(&claims->groups[i]); group; group = TAILQ_NEXT(group, link)) {
            Mono next = group_expire(claims, group, now, ret_done);

            soonest = mono_before(next, soonest) ? next : soonest;
        }
    claims->expire_at = mono_before(soonest, earliest) ? earliest : soonest;
}

/* Under no lock. */
static void waits_done(WaitList *done)
{
    for (ClaimWait *wait; (wait = TAILQ_FIRST(done)) != NULL;) {
        TAILQ_REMOVE(done, wait, link);
        wait->on_done(wait->context);
    }
}

/* ---- one claim ---- */

/* Under the mutex, a group with a waiter. A wait that reads more about what it got is served alone. */
static void served_choose(ClaimGroup *group, Served *served)
{
    ClaimWait *first = TAILQ_FIRST(&group->waits);

    for (ClaimWait *wait = first; wait && served->wait_count < SERVED_MAX; wait = TAILQ_NEXT(wait, link)) {
        if (wait->lease_ms != first->lease_ms || wait->on_found != first->on_found ||
            served->limit + wait->limit > CLAIM_MAX)
            continue;
        wait->running                       = true;
        served->waits[served->wait_count++] = wait;
        served->limit += wait->limit;
        if (first->on_found)
            return;
    }
}

/* A lease that cannot be released expires. */
static void served_release(Claims *claims, Served *served)
{
    Error error = {0};

    if (lease_release(claims->pool, deadline_in_ms(CALL_MS), served->arena, served->list, served->count, NULL,
                      &error) != OK)
        log_error(LOG_WARN, "claims", "commands that could not be given to a client were not released", &error);
    served->count = 0;
}

/* NULL: there is one waiter. */
static const char *const *served_workers(const Served *served)
{
    const char **workers = served->wait_count > 1 ? arena_array(served->arena, const char *, served->limit) : NULL;
    int          count   = 0;

    if (!workers)
        return NULL;
    for (int i = 0; i < served->wait_count; i++)
        for (int k = 0; k < served->waits[i]->limit; k++)
            workers[count++] = served->waits[i]->worker;
    return workers;
}

static void group_claim(Claims *claims, ClaimGroup *group, Served *served)
{
    ClaimWait *first = served->waits[0];

    assert(first);
    served->arena = arena_new(ARENA_BYTES_DEFAULT);
    claimer_serve(group->claimer, first->worker, served_workers(served));
    served->code = claimer_claim_part(group->claimer, deadline_in_ms(CALL_MS), served->arena,
                                      &(ClaimTerms){.limit = served->limit, .lease_ms = first->lease_ms}, &served->list,
                                      &served->count, &served->more, &served->error);
    if (served->code != OK) {
        served->count = 0;
        served->more  = false;
    }
    if (served->count > 0 && first->on_found) {
        served->code = first->on_found(first, served->arena, served->list, &served->count, &served->error);
        if (served->code != OK)
            served_release(claims, served);
    }
}

/* Under the mutex: a claim has read all and found nothing, or failed. That is so for every waiter that was there when it began to read. One that found
 * less than was wanted may have been cut by the bytes of payloads: the next one will say. */
static void group_tried(Claims *claims, ClaimGroup *group, const Served *served)
{
    ClaimWait *wait;

    group->error      = served->error;
    group->error.code = served->code;
    for (wait = TAILQ_FIRST(&group->waits); wait && wait->number <= group->scan_last; wait = TAILQ_NEXT(wait, link)) {
        wait->tried = true;
        wait_expires(claims, wait);
    }
}

/* During an outage the waiters wait on, up to their own limits. */
static bool served_is_final(const Served *served)
{
    return served->code != OK && error_verdict(served->code) == VERDICT_FINAL;
}

/* Under the mutex: the waits that are done leave the group. */
static void served_end(Claims *claims, const Served *served, WaitList *ret_done)
{
    for (int i = 0; i < served->wait_count; i++) {
        ClaimWait *wait = served->waits[i];

        wait->running = false;
        if (wait->count > 0 && wait->canceled) {
            undo_add(claims, take(wait->arena), wait->list, wait->count);
            text_done(&wait->body);
            wait->count = 0;
        }
        if (wait->count == 0 && !served_is_final(served) && !wait->canceled)
            continue;
        wait->code  = served->code;
        wait->error = served->error;
        wait_leave(wait);
        TAILQ_INSERT_TAIL(ret_done, wait, link);
    }
}

/* Under the mutex, which it releases for the claim and for on_done. */
static void group_serve(Claims *claims, ClaimGroup *group)
{
    WaitList done   = TAILQ_HEAD_INITIALIZER(done);
    Served   served = {.code = OK};

    claim_group_move(claims, group, GROUP_BUSY);
    group->notified = false;
    if (!group->is_scanning)
        group->scan_last = claims->number_last;
    served_choose(group, &served);
    cond_signal(&claims->changed); /* another thread keeps the time meanwhile */
    mutex_unlock(&claims->mutex);
    group_claim(claims, group, &served);
    claim_responses_write(claims, &served);
    mutex_lock(&claims->mutex);
    group->is_scanning = served.more;
    if (served.count == 0 && !served.more)
        group_tried(claims, group, &served);
    served_end(claims, &served, &done);
    if (claims->stopping)
        claims->expire_at = clock_mono();
    claim_group_go_on(claims, group, served.count > 0 || served.more);
    mutex_unlock(&claims->mutex);
    waits_done(&done);
    arena_free(served.arena);
    mutex_lock(&claims->mutex);
}

/* Under the mutex, which it releases for on_done. The schema is another program's: its waiters should ask another pod. */
static void group_refuse(Claims *claims, ClaimGroup *group)
{
    WaitList done = TAILQ_HEAD_INITIALIZER(done);

    for (ClaimWait *wait; (wait = TAILQ_FIRST(&group->waits)) != NULL;) {
        wait->code = fail(&wait->error, ERR_UNAVAILABLE,
                          "the schema of the database is newer than this program: claim from another pod");
        wait_leave(wait);
        TAILQ_INSERT_TAIL(&done, wait, link);
    }
    claim_group_settle(claims, group);
    mutex_unlock(&claims->mutex);
    waits_done(&done);
    mutex_lock(&claims->mutex);
}

/* Under the mutex, which it releases. A lease that cannot be released expires. */
static void undo_run(Claims *claims)
{
    Undo *undo  = claims->undo;
    Error error = {0};

    claims->undo = undo->next;
    mutex_unlock(&claims->mutex);
    if (lease_release(claims->pool, deadline_in_ms(CALL_MS), undo->arena, undo->list, undo->count, NULL, &error) != OK)
        log_error(LOG_WARN, "claims", "commands of a client that went away were not released", &error);
    arena_free(undo->arena);
    free(undo);
    mutex_lock(&claims->mutex);
}

/* ---- threads ---- */

static void *thread_body(void *context)
{
    Claims *claims = context;

    mutex_lock(&claims->mutex);
    while (!claims->ending) {
        WaitList    done = TAILQ_HEAD_INITIALIZER(done);
        ClaimGroup *group;

        if (deadline_passed((Deadline){claims->expire_at}))
            claim_waits_expire(claims, &done);
        if (!TAILQ_EMPTY(&done)) {
            mutex_unlock(&claims->mutex);
            waits_done(&done);
            mutex_lock(&claims->mutex);
        } else if (claims->undo) {
            undo_run(claims);
        } else if (deadline_passed(claims_poll_at(claims))) {
            claims_poll(claims);
        } else if ((group = claim_group_next(claims)) != NULL) {
            if (TAILQ_EMPTY(&group->waits))
                claim_group_settle(claims, group);
            else if (pool_is_outdated(claims->pool))
                group_refuse(claims, group);
            else
                group_serve(claims, group);
        } else {
            Deadline next = deadline_sooner(claims_poll_at(claims), (Deadline){claims->expire_at});

            cond_wait(&claims->changed, &claims->mutex, next);
        }
    }
    mutex_unlock(&claims->mutex);
    return NULL;
}

/* domain NULL: all. */
static void domain_notify(void *context, const char *domain)
{
    Claims                     *claims = context;
    scoped(mutex_unlock) Mutex *held   = mutex_hold(&claims->mutex);

    for (int i = GROUP_WAITING; i < GROUP_STATE_COUNT; i++)
        for (ClaimGroup *group = TAILQ_FIRST(&claims->groups[i]), *next; group; group = next) {
            next = TAILQ_NEXT(group, link);
            if (!domain || strcmp(group->domain->name, domain) == 0)
                claim_group_notify(claims, group);
        }
}

static void on_notification(void *context, const char *channel, const char *payload)
{
    (void)channel;
    metric_add(&bus_metrics.notifications_received,
               payload != NULL); /* without one: notifications may have been missed */
    domain_notify(context, payload);
}

/* ---- callers ---- */

/* Under the mutex. false: it is done already. */
static bool wait_enter(Claims *claims, ClaimWait *wait)
{
    wait->claims = claims;
    if (wait->canceled || claims->stopping)
        return false;
    wait->number = ++claims->number_last;
    wait->group  = claim_group_find(claims, wait);
    TAILQ_INSERT_TAIL(&wait->group->waits, wait, link);
    wait_expires(claims, wait);
    if (wait->group->state == GROUP_IDLE || wait->group->state == GROUP_WAITING)
        claim_group_move(claims, wait->group, GROUP_DUE);
    return true;
}

void claims_submit(Claims *claims, ClaimWait *wait)
{
    mutex_lock(&claims->mutex);
    bool waits = wait_enter(claims, wait);
    mutex_unlock(&claims->mutex);
    if (!waits)
        wait->on_done(wait->context);
}

void claims_cancel(Claims *claims, ClaimWait *wait)
{
    bool done;

    mutex_lock(&claims->mutex);
    wait->canceled = true;
    done           = wait->group && !wait->running;
    if (done)
        wait_leave(wait);
    mutex_unlock(&claims->mutex);
    if (done)
        wait->on_done(wait->context);
}

void claims_end(ClaimWait *wait, bool delivered)
{
    Claims *claims = wait->claims;

    text_done(&wait->body);
    if (!wait->arena)
        return;
    if (delivered || wait->code != OK) {
        arena_free(take(wait->arena));
        return;
    }
    mutex_lock(&claims->mutex);
    undo_add(claims, take(wait->arena), wait->list, wait->count);
    mutex_unlock(&claims->mutex);
}

/* ---- life ---- */

Claims *claims_new(Pool *pool, Listen *listen)
{
    Claims    *claims = memory_new(1, sizeof *claims);
    PoolStatus status;
    int        share;

    pool_status(pool, &status);
    share             = combiner_share(status.size_max, 4);
    claims->pool      = pool;
    claims->poll_ms   = POLL_MS;
    claims->expire_at = deadline_never().at;
    mutex_init(&claims->mutex);
    cond_init(&claims->changed);
    claim_groups_init(claims);
    mutex_lock(&claims->mutex); /* the threads begin when all are counted */
    for (int i = 0; i < share && i < CLAIMS_THREADS_MAX; i++)
        claims->threads[claims->thread_count++] = thread_start("claims", thread_body, claims);
    mutex_unlock(&claims->mutex);
    claims->local = (WakeMember){.pool = pool, .call = domain_notify, .context = claims};
    wake_join(&claims->local);
    if (listen)
        listen_add(listen, WAKER_CHANNEL, on_notification, claims);
    return claims;
}

void claims_stop(Claims *claims)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&claims->mutex);

    claims->stopping  = true;
    claims->expire_at = clock_mono();
    cond_broadcast(&claims->changed);
}

void claims_free(Claims *claims)
{
    wake_leave(&claims->local);
    mutex_lock(&claims->mutex);
    claims->ending = true;
    cond_broadcast(&claims->changed);
    mutex_unlock(&claims->mutex);
    for (int i = 0; i < claims->thread_count; i++)
        thread_join(claims->threads[i]);
    claim_groups_free(claims);
    for (Undo *undo; (undo = claims->undo) != NULL;) { /* the database is unavailable by now: their leases expire */
        claims->undo = undo->next;
        arena_free(undo->arena);
        free(undo);
    }
    cond_done(&claims->changed);
    mutex_done(&claims->mutex);
    free(claims);
}
