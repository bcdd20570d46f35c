/*
 * claims_group.c - the groups of claims over HTTP, each in the list of its state.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "api/claims_internal.h"
#include "base/memory.h"
#include "base/text.h"

#define GROUPS_KEPT 256                /* each key keeps its share, and in it each of its domains */
#define NAME_MAX_   ((size_t)32 << 10) /* a key, a domain and 100 types */

/* ---- keys and their domains ---- */

static ClaimKey *key_get(Claims *claims, const char *name)
{
    ClaimKey *key;

    TAILQ_FOREACH (key, &claims->keys, link)
        if (strcmp(key->name, name) == 0)
            return key;
    key       = memory_new(1, sizeof *key);
    key->name = memory_text(name);
    /* Behind all that have waited longer: else names that are always new would always be first. */
    key->turn.served = claims->served_last;
    TAILQ_INIT(&key->domains);
    TAILQ_INSERT_TAIL(&claims->keys, key, link);
    claims->key_count++;
    return key;
}

static ClaimDomain *domain_get(Claims *claims, ClaimKey *key, const char *name)
{
    ClaimDomain *domain;

    TAILQ_FOREACH (domain, &key->domains, link)
        if (strcmp(domain->name, name) == 0)
            return domain;
    domain              = memory_new(1, sizeof *domain);
    domain->key         = key;
    domain->name        = memory_text(name);
    domain->turn.served = claims->served_last; /* as above */
    TAILQ_INSERT_TAIL(&key->domains, domain, link);
    key->domain_count++;
    return domain;
}

static ClaimDomain *domain_hold(Claims *claims, const ClaimWait *wait)
{
    ClaimKey    *key    = key_get(claims, wait->key);
    ClaimDomain *domain = domain_get(claims, key, wait->domain);

    key->turn.group_count++;
    domain->turn.group_count++;
    return domain;
}

static void domain_release(Claims *claims, ClaimDomain *domain)
{
    ClaimKey *key = domain->key;

    if (--domain->turn.group_count == 0) {
        TAILQ_REMOVE(&key->domains, domain, link);
        key->domain_count--;
        free(domain->name);
        free(domain);
    }
    if (--key->turn.group_count == 0) {
        TAILQ_REMOVE(&claims->keys, key, link);
        claims->key_count--;
        free(key->name);
        free(key);
    }
}

/* ---- groups ---- */

/* It leaves the list of its state (sign -1), or has entered it (1). */
static void group_count(Claims *claims, const ClaimGroup *group, int sign)
{
    ClaimTurn *turns[] = {&group->domain->turn, &group->domain->key->turn};
    int        idle    = group->state == GROUP_IDLE ? sign : 0;

    claims->idle_count += idle;
    for (size_t i = 0; i < COUNT(turns); i++) {
        turns[i]->idle_count += idle;
        turns[i]->busy_count += group->state == GROUP_BUSY ? sign : 0;
    }
}

static void group_enter(Claims *claims, ClaimGroup *group, GroupState state)
{
    group->state = state;
    TAILQ_INSERT_TAIL(&claims->groups[state], group, link);
    group_count(claims, group, 1);
}

static void group_leave(Claims *claims, ClaimGroup *group)
{
    TAILQ_REMOVE(&claims->groups[group->state], group, link);
    group_count(claims, group, -1);
}

static void group_free(Claims *claims, ClaimGroup *group)
{
    group_leave(claims, group);
    domain_release(claims, group->domain);
    claimer_free(group->claimer);
    arena_free(group->arena);
    free(group);
}

/* Does its domain keep more than its share, and its key as well? There is such a group when all keep more than GROUPS_KEPT: a key that keeps
 * more than its share has a domain that does. */
static bool group_is_surplus(const Claims *claims, const ClaimGroup *group)
{
    const ClaimDomain *domain = group->domain;
    int                share  = GROUPS_KEPT / claims->key_count;

    return domain->key->turn.idle_count > share && domain->turn.idle_count > share / domain->key->domain_count;
}

static void group_forget(Claims *claims)
{
    ClaimGroup *group;

    TAILQ_FOREACH (group, &claims->groups[GROUP_IDLE], link)
        if (group_is_surplus(claims, group)) {
            group_free(claims, group);
            return;
        }
}

void claim_groups_init(Claims *claims)
{
    for (int i = 0; i < GROUP_STATE_COUNT; i++)
        TAILQ_INIT(&claims->groups[i]);
    TAILQ_INIT(&claims->keys);
}

void claim_groups_free(Claims *claims)
{
    for (int i = 0; i < GROUP_STATE_COUNT; i++)
        for (ClaimGroup *group; (group = TAILQ_FIRST(&claims->groups[i])) != NULL;) {
            assert(TAILQ_EMPTY(&group->waits));
            group_free(claims, group);
        }
}

void claim_group_move(Claims *claims, ClaimGroup *group, GroupState state)
{
    group_leave(claims, group);
    group_enter(claims, group, state);
    if (state == GROUP_BUSY)
        group->domain->turn.served = group->domain->key->turn.served = ++claims->served_last;
    if (state == GROUP_DUE)
        cond_signal(&claims->changed);
    if (claims->idle_count > GROUPS_KEPT)
        group_forget(claims);
}

/* Of so many threads, how many may one of `count` have? */
static int threads_of_one(int threads, int count)
{
    return count > 1 && threads > 1 ? threads - 1 : threads;
}

static bool domain_has_thread(const Claims *claims, const ClaimDomain *domain)
{
    int of_key    = threads_of_one(claims->thread_count, claims->key_count);
    int of_domain = threads_of_one(of_key, domain->key->domain_count);

    return domain->key->turn.busy_count < of_key && domain->turn.busy_count < of_domain;
}

/* Has the first waited longer for its turn? */
static bool domain_is_before(const ClaimDomain *first, const ClaimDomain *second)
{
    if (first->key != second->key)
        return first->key->turn.served < second->key->turn.served;
    return first->turn.served < second->turn.served;
}

ClaimGroup *claim_group_next(Claims *claims)
{
    ClaimGroup *group, *next = NULL;

    TAILQ_FOREACH (group, &claims->groups[GROUP_DUE], link)
        if (domain_has_thread(claims, group->domain) && (!next || domain_is_before(group->domain, next->domain)))
            next = group;
    return next;
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
    text_print(text, "%s\n%s", wait->key, wait->domain);
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
    group->domain = domain_hold(claims, wait);
    types         = arena_array(group->arena, const char *, wait->type_count + 1);
    for (int i = 0; i < wait->type_count; i++)
        types[i] = wait->types[i];
    group->claimer = claimer_new(claims->pool, wait->domain, wait->type_count ? types : NULL, wait->worker);
    TAILQ_INIT(&group->waits);
    group_enter(claims, group, GROUP_IDLE);
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
