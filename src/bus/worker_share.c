/*
 * worker_share.c - handlers of a worker are divided among the types of its commands, as base/share.h divides them.
 *
 * A handler begins a command only if its type may have one handler more. While that holds a type back and most of its handlers are slow, its
 * commands are not claimed: a second claimer, of the other types, has a cursor of its own and proves that the commands of the first are none
 * of its own.
 */
#include <string.h>

#include "base/share.h"
#include "bus/worker_internal.h"

#define USES_MAX (2 * CLAIM_TYPES_MAX) /* the types may have changed since something was claimed */

/* What is held of one type. */
typedef struct {
    const char *type;
    int         held;    /* waiting, or handled */
    int         handled; /* of these: a handler has them */
    int         slow;    /* of these: for more than AHEAD_US_MAX */
} TypeUse;

static TypeUse *use_find(TypeUse *uses, int count, const char *type)
{
    for (int i = 0; i < count; i++)
        if (strcmp(uses[i].type, type) == 0)
            return &uses[i];
    return NULL;
}

static int uses_count(const Worker *worker, TypeUse *ret_uses)
{
    Mono now   = clock_mono();
    int  count = 0;

    for (const Execution *execution = execution_first(worker); execution;
         execution                  = execution_after(worker, execution)) {
        bool     is_handled = execution->state == EXECUTION_RUNNING;
        TypeUse *use        = use_find(ret_uses, count, execution->command->type);

        if ((!is_handled && execution->state != EXECUTION_WAITING) || (!use && count == USES_MAX))
            continue;
        if (!use) {
            use  = &ret_uses[count++];
            *use = (TypeUse){.type = execution->command->type};
        }
        use->held++;
        use->handled += is_handled;
        use->slow += is_handled && mono_us_between(execution->began_at, now) > AHEAD_US_MAX;
    }
    return count;
}

bool execution_is_allowed(const Worker *worker, const Execution *execution)
{
    int handled = 0;

    if (!worker->options.shares_types)
        return true;
    for (const Execution *other = worker->begun.first; other; other = other->next)
        handled += other->state == EXECUTION_RUNNING && strcmp(other->command->type, execution->command->type) == 0;
    return share_allows(worker->options.concurrency, worker->running, handled, 1);
}

/* How many more a type may have that has so many. */
static int type_space(const Worker *worker, int held)
{
    int used = worker->waiting + worker->running + worker->offered, more = 0;

    while (used + more < worker->options.concurrency &&
           share_allows(worker->options.concurrency, used + more, held + more, 1))
        more++;
    return more;
}

int share_space(const Worker *worker, const char *type)
{
    TypeUse  uses[USES_MAX];
    int      count = uses_count(worker, uses);
    TypeUse *use   = use_find(uses, count, type);

    return type_space(worker, (use ? use->held : 0) + worker->offered); /* any of these may be for this type */
}

const char *const *share_types(const Worker *worker, const char *const *types, Arena *arena)
{
    TypeUse      uses[USES_MAX];
    int          count = uses_count(worker, uses), open_count = 0;
    const char **open = arena_array(arena, const char *, CLAIM_TYPES_MAX + 1);

    for (; *types && open_count < CLAIM_TYPES_MAX; types++) {
        const TypeUse *use = use_find(uses, count, *types);

        if (type_space(worker, (use ? use->held : 0) + worker->offered) > 0)
            open[open_count++] = *types;
    }
    open[open_count] = NULL;
    return open;
}

/* Under the mutex. full: the types that may have no more now, ended by NULL; returns how many they are. *space: of each other type so many may be
 * claimed. */
static int space_divide(const Worker *worker, const char **full, int *space)
{
    bool    is_ahead = worker->handler_us < AHEAD_US_MAX; /* then more is claimed than can begin */
    int     fresh = type_space(worker, 0), full_count = 0;
    TypeUse uses[USES_MAX];
    int     count = uses_count(worker, uses);

    if (!is_ahead && fresh < *space)
        *space = fresh;
    for (int i = 0; i < count; i++) {
        int more = type_space(worker, uses[i].held);

        if (is_ahead && 2 * uses[i].slow <= uses[i].handled)
            continue;
        if (more == 0)
            full[full_count++] = uses[i].type;
        else if (more < *space)
            *space = more;
    }
    full[full_count] = NULL;
    return full_count;
}

/* The claimer of the types that are not full keeps its cursor while they stay the same. */
static void others_set(Worker *worker, const char *const *full)
{
    Claimer *others = claimer_without(worker->claimer, full);

    if (worker->others && others && claimer_is_same(worker->others, others)) {
        claimer_free(others);
        return;
    }
    share_forget(worker);
    worker->others = others;
}

Claimer *share_claimer(Worker *worker, int *space)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);
    const char                 *full[USES_MAX + 1];

    worker->leaves_out = space_divide(worker, full, space) > 0;
    if (!worker->leaves_out)
        return worker->claimer;
    others_set(worker, full);
    return worker->others;
}

void share_forget(Worker *worker)
{
    if (worker->others)
        claimer_free(worker->others);
    worker->others = NULL;
}
