/*
 * postpone.c - see postpone.h.
 */
#include "process/postpone.h"

#include "base/attr.h"

/* A try that begins later than this after it was due is no more one in a row. */
#define IN_A_ROW_MS 10000

void postpone_init(Postpone *postpone)
{
    *postpone = (Postpone){0};
    mutex_init(&postpone->mutex);
}

void postpone_done(Postpone *postpone)
{
    mutex_done(&postpone->mutex);
}

static int64_t delay_next(const PostponedProcess *before, int64_t id, Mono now)
{
    if (before->id != id || !mono_before(now, mono_plus_ms(before->due, IN_A_ROW_MS)))
        return POSTPONE_MS_MIN;
    return before->delay_ms * 2 < POSTPONE_MS_MAX ? before->delay_ms * 2 : POSTPONE_MS_MAX;
}

/* The first delay, or the next slot. */
static Mono slot_take(Postpone *postpone, Mono now)
{
    Mono at = mono_plus_ms(now, POSTPONE_MS_MIN), slot = mono_plus_ms(postpone->slot, POSTPONE_SLOT_MS);

    if (mono_before(at, slot))
        at = slot;
    if (mono_before(mono_plus_ms(now, POSTPONE_SLOTS_MS), at))
        at = mono_plus_ms(now, POSTPONE_SLOTS_MS);
    postpone->slot = at;
    return at;
}

int64_t postpone_ms(Postpone *postpone, int64_t id, Mono now)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&postpone->mutex);
    PostponedProcess           *own  = &postpone->list[(uint64_t)id % COUNT(postpone->list)];
    int64_t                     ms   = delay_next(own, id, now);
    Mono                        due  = mono_plus_ms(slot_take(postpone, now), ms - POSTPONE_MS_MIN);

    *own = (PostponedProcess){.id = id, .delay_ms = ms, .due = due};
    return mono_ms_between(now, due);
}
