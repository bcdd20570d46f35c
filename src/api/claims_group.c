/*
 * claims_group.c - the groups of claims over HTTP, each in the list of its state.
 */
#include <stdlib.h>
#include <string.h>

#include "api/claims_internal.h"
#include "base/memory.h"
#include "base/text.h"

#define GROUPS_KEPT 256
#define NAME_MAX_   ((size_t)32 << 10) /* a domain and 100 types */

void claim_group_free(ClaimGroup *group)
{
    claimer_free(group->claimer);
    arena_free(group->arena);
    free(group);
}

void claim_group_move(Claims *claims, ClaimGroup *group, GroupState state)
{
    TAILQ_REMOVE(&claims->groups[group->state], group, link);
    claims->idle_count += (state == GROUP_IDLE) - (group->state == GROUP_IDLE);
    group->state = state;
    TAILQ_INSERT_TAIL(&claims->groups[state], group, link);
    if (state == GROUP_DUE)
        cond_signal(&claims->changed);
    if (claims->idle_count > GROUPS_KEPT) {
        ClaimGroup *oldest = TAILQ_FIRST(&claims->groups[GROUP_IDLE]);

        TAILQ_REMOVE(&claims->groups[GROUP_IDLE], oldest, link);
        claims->idle_count--;
        claim_group_free(oldest);
    }
}

void claim_group_settle(Claims *claims, ClaimGroup *group)
{
    if (TAILQ_EMPTY(&group->waits)) {
        claim_group_move(claims, group, GROUP_IDLE);
        return;
    }
    group->poll_at = mono_plus_ms(clock_mono(), claims->poll_ms);
    claim_group_move(claims, group, GROUP_WAITING);
}

void claim_group_notify(Claims *claims, ClaimGroup *group)
{
    group->notified = true;
    if (group->state == GROUP_WAITING)
        claim_group_move(claims, group, GROUP_DUE);
}

static const char *wait_name(const ClaimWait *wait, Text *text)
{
    text_init(text, /* arena= */ NULL, NAME_MAX_);
    text_append(text, wait->domain);
    for (int i = 0; i < wait->type_count; i++)
        text_print(text, "\n%s", wait->types[i]);
    return text_string(text);
}

static ClaimGroup *group_new(Claims *claims, const ClaimWait *wait, const char *name)
{
    ClaimGroup  *group = memory_new(1, sizeof *group);
    const char **types;

    group->arena  = arena_new(NAME_MAX_ * 4);
    group->name   = arena_text(group->arena, name);
    group->domain = arena_text(group->arena, wait->domain);
    types         = arena_array(group->arena, const char *, wait->type_count + 1);
    for (int i = 0; i < wait->type_count; i++)
        types[i] = wait->types[i];
    group->claimer = claimer_new(claims->pool, wait->domain, wait->type_count ? types : NULL, wait->worker);
    TAILQ_INIT(&group->waits);
    group->state = GROUP_IDLE;
    TAILQ_INSERT_TAIL(&claims->groups[GROUP_IDLE], group, link);
    claims->idle_count++;
    return group;
}

ClaimGroup *claim_group_find(Claims *claims, const ClaimWait *wait)
{
    Text text   scoped_text = {0};
    const char *name        = wait_name(wait, &text);
    ClaimGroup *group;

    for (int i = 0; i < GROUP_STATE_COUNT; i++)
        TAILQ_FOREACH (group, &claims->groups[i], link)
            if (strcmp(group->name, name) == 0)
                return group;
    return group_new(claims, wait, name);
}

static bool group_has_new(const ClaimGroup *group)
{
    const ClaimWait *last = TAILQ_LAST(&group->waits, WaitList);

    return last && !last->tried;
}

void claim_group_go_on(Claims *claims, ClaimGroup *group, bool again)
{
    if (!TAILQ_EMPTY(&group->waits) && !claims->stopping && (again || group->notified || group_has_new(group)))
        claim_group_move(claims, group, GROUP_DUE);
    else
        claim_group_settle(claims, group);
}
