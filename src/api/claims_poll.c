/*
 * claims_poll.c - polls for all groups of claims that wait: a notification may be lost, and another pod may have released commands.
 */
#include <string.h>

#include "api/claims_internal.h"

#define POLL_MS_MAX  5000
#define POLL_SHARE   20 /* polls take at most this part of the time of a connection */
#define POLL_CALL_MS 2000

/* Groups that are asked about in one statement. */
typedef struct {
    Arena       *arena;
    int          count;
    ClaimGroup **groups;
    Claimer    **claimers;
    bool        *ready;
} Poll;

/* Under the mutex: all that wait, if a poll is due for one of them. */
static void poll_begin(Claims *claims, Poll *poll)
{
    poll->groups   = arena_array(poll->arena, ClaimGroup *, CLAIMERS_MAX);
    poll->claimers = arena_array(poll->arena, Claimer *, CLAIMERS_MAX);
    poll->ready    = arena_array(poll->arena, bool, CLAIMERS_MAX);
    while (poll->count < CLAIMERS_MAX && !TAILQ_EMPTY(&claims->groups[GROUP_WAITING])) {
        ClaimGroup *group = TAILQ_FIRST(&claims->groups[GROUP_WAITING]);

        if (TAILQ_EMPTY(&group->waits)) {
            claim_group_settle(claims, group);
            continue;
        }
        group->notified             = false;
        poll->claimers[poll->count] = group->claimer;
        poll->groups[poll->count++] = group;
        claim_group_move(claims, group, GROUP_POLLED);
    }
}

/* Under the mutex. After a failure the waiters wait on, and end with its error when their time is over. */
static void poll_end(Claims *claims, const Poll *poll, ErrorCode code, const Error *error)
{
    for (int i = 0; i < poll->count; i++) {
        ClaimGroup *group = poll->groups[i];

        group->error      = *error;
        group->error.code = code;
        claim_group_go_on(claims, group, poll->ready[i]);
    }
}

static int64_t poll_pause_ms(int64_t took_ms)
{
    int64_t pause_ms = took_ms * POLL_SHARE;

    return pause_ms < POLL_MS ? POLL_MS : pause_ms < POLL_MS_MAX ? pause_ms : POLL_MS_MAX;
}

void claims_poll(Claims *claims)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    Poll                      poll  = {.arena = arena};
    Error                     error = {0};
    ErrorCode                 code  = OK;
    Mono                      start = clock_mono();

    poll_begin(claims, &poll);
    cond_signal(&claims->changed); /* another thread keeps the time meanwhile */
    mutex_unlock(&claims->mutex);
    if (pool_is_outdated(claims->pool))
        memset(poll.ready, true, (size_t)poll.count * sizeof *poll.ready); /* each is refused */
    else if (poll.count > 0)
        code = claimers_ready(claims->pool, deadline_in_ms(POLL_CALL_MS), arena, poll.claimers, poll.count, poll.ready,
                              &error);
    mutex_lock(&claims->mutex);
    claims->poll_ms = poll_pause_ms(mono_ms_between(start, clock_mono()));
    poll_end(claims, &poll, code, &error);
}

Deadline claims_poll_at(const Claims *claims)
{
    const ClaimGroup *group = TAILQ_FIRST(&claims->groups[GROUP_WAITING]);

    if (!group)
        return deadline_never();
    return (Deadline){group->poll_at};
}
