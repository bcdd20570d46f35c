/*
 * step_branch.c - lists that run side by side: the branches of a parallel, the items of an each.
 *
 * Branches that call programs, functions or servers run on threads of their own, at most THREADS_MAX beside the caller's and as many
 * as the share of its domain has left, because lists nest; without a thread they run one after the other, as do those that only look and wait. An each has at most
 * `concurrency` items under way, also those that wait: an item is begun when one before it has ended. When a branch has failed no further one is
 * begun; those under way end the step that runs and begin no other (walk_is_ended).
 */
#include <string.h>

#include "base/fault.h"
#include "base/sync.h"
#include "process/interpret_internal.h"

#define THREADS_MAX  15
#define EACH_RECORDS 2 /* of an each itself: what it began with, and its results */

typedef struct {
    const StepList *list;
    const Scope    *scope;
    Flow            flow;
    bool            begun;
} Branch;

/* Branches that are walked now. */
typedef struct {
    Walk     *walk;
    Branch   *list;
    int       count;
    int       under_way_max;
    bool      is_slow; /* one of the lists has a step that takes long: they get threads */
    Mutex     mutex;   /* guards the rest */
    int       next, under_way;
    bool      failed;
    ErrorCode code;
    Error     error;
} Branches;

/* ---- walking ---- */

static bool list_is_slow(const StepList *list)
{
    for (int i = 0; i < list->count; i++) {
        const Action   *action = &list->steps[i].action;
        const StepList *inner;
        int             count = action_lists(action, &inner);

        if (step_kinds[action->kind].acts == ACTS_CALLS)
            return true;
        for (int b = 0; b < count; b++)
            if (list_is_slow(&inner[b]))
                return true;
    }
    return false;
}

static Branch *branch_take(Branches *branches)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&branches->mutex);

    if (branches->next == branches->count || branches->failed || branches->under_way >= branches->under_way_max)
        return NULL;
    branches->under_way++;
    Branch *branch = &branches->list[branches->next++];
    branch->begun  = true;
    return branch;
}

/* A branch that waits stays under way. */
static void branch_give(Branches *branches, const Branch *branch, ErrorCode code, const Error *error)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&branches->mutex);

    branches->under_way -= code == OK && branch->flow == FLOW_NEXT;
    branches->failed |= code != OK || branch->flow == FLOW_FAILED || branch->flow == FLOW_STOPPED;
    if (code != OK && branches->code == OK) {
        branches->code  = code;
        branches->error = *error;
    }
}

static void *branches_body(void *context)
{
    Branches *branches = context;
    Branch   *branch;

    while ((branch = branch_take(branches))) {
        Error     error = {0};
        ErrorCode code  = list_walk(branches->walk, branch->scope, branch->list, &branch->flow, &error);

        if (code == OK && FAULT("process.branch.after"))
            code = fail(&error, ERR_UNAVAILABLE, "fault at process.branch.after");
        branch_give(branches, branch, code, &error);
    }
    return NULL;
}

/* false: its domain has as many as it may have, or the pod cannot start one. */
static bool branch_thread_start(Branches *branches, pthread_t *ret_thread)
{
    Walk  *walk  = branches->walk;
    Share *share = walk->interpreter->threads;

    if (!share_try(share, walk->definition->domain, 1))
        return false;
    if (thread_try_start("branch", branches_body, branches, ret_thread))
        return true;
    walk_share_give(walk, share, 1);
    return false;
}

static ErrorCode branches_walk(Branches *branches, Error *reterr)
{
    pthread_t threads[THREADS_MAX];
    int       count = 0, most = branches->under_way_max < branches->count ? branches->under_way_max : branches->count;

    mutex_init(&branches->mutex);
    if (branches->is_slow)
        while (count < most - 1 && count < THREADS_MAX && branch_thread_start(branches, &threads[count]))
            count++;
    branches_body(branches);
    for (int i = 0; i < count; i++)
        thread_join(threads[i]);
    walk_share_give(branches->walk, branches->walk->interpreter->threads, count);
    mutex_done(&branches->mutex);
    if (branches->code != OK && reterr)
        *reterr = branches->error;
    return branches->code;
}

/* The worst of all; those that were not begun wait for the others. */
static Flow branches_flow(const Branches *branches)
{
    Flow flow = FLOW_NEXT;

    for (int i = 0; i < branches->count; i++) {
        Flow own = branches->list[i].begun ? branches->list[i].flow : FLOW_BLOCKED;

        if (own > flow)
            flow = own;
    }
    return flow;
}

/* ---- results: of the last step of each branch that ran ---- */

const char *list_result(Walk *walk, const Scope *scope, const StepList *list)
{
    for (int i = list->count - 1; i >= 0; i--) {
        const char *result = run_result(walk->run, step_id(scope, &list->steps[i]));

        if (result)
            return result;
    }
    return "null";
}

static ErrorCode joined_record(Branches *branches, const Scope *scope, const Step *step, bool is_object, Flow *ret_flow,
                               Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    Text                      text;

    text_init(&text, arena, JOINED_BYTES_MAX);
    text_append(&text, is_object ? "{" : "[");
    for (int i = 0; i < branches->count; i++) {
        const Branch *branch = &branches->list[i];

        if (i)
            text_append(&text, ",");
        if (is_object)
            text_print(&text, "\"%s\":", branch->list->name); /* a name needs no escape */
        text_append(&text, list_result(branches->walk, branch->scope, branch->list));
    }
    text_append(&text, is_object ? "}" : "]");
    if (text_is_full(&text))
        return fail(reterr, ERR_LIMIT, "the results of \"%s\" have more than %zu bytes together", step->name,
                    JOINED_BYTES_MAX);
    return ended_record(branches->walk, scope, step, text_string(&text), arena, ret_flow, reterr);
}

static ErrorCode branches_end(Branches *branches, const Scope *scope, const Step *step, bool is_object, Flow *ret_flow,
                              Error *reterr)
{
    TRY(branches_walk(branches, reterr));
    *ret_flow = branches_flow(branches);
    return *ret_flow == FLOW_NEXT ? joined_record(branches, scope, step, is_object, ret_flow, reterr) : OK;
}

ErrorCode step_parallel(Walk *walk, const Scope *scope, const Step *step, Flow *ret_flow, Error *reterr)
{
    const ParallelAction *parallel = &step->action.parallel;
    Branch                list[DEFINITION_BRANCHES_MAX];
    Branches branches = {.walk = walk, .list = list, .count = parallel->count, .under_way_max = parallel->count};

    for (int i = 0; i < parallel->count; i++) {
        list[i] = (Branch){.list = &parallel->branches[i], .scope = scope};
        branches.is_slow |= list_is_slow(&parallel->branches[i]);
    }
    return branches_end(&branches, scope, step, /* is_object= */ true, ret_flow, reterr);
}

/* ---- each ---- */

/* An each may have no items; a repeat has one round, and the decision after it; a sleep has a beginning. */
int64_t list_records_min(const StepList *list)
{
    int64_t sum = 0;

    for (int i = 0; i < list->count; i++) {
        const Step     *step = &list->steps[i];
        const StepList *inner;
        int             count = step->action.kind == STEP_EACH ? 0 : action_lists(&step->action, &inner);

        sum += step_is_loop(step) || step->action.kind == STEP_SLEEP || action_keeps_input(&step->action) ? 2 : 1;
        if (step->action.kind == STEP_WHEN)
            return sum; /* it may jump over the rest */
        for (int b = 0; b < count; b++)
            sum += list_records_min(&inner[b]);
    }
    return sum;
}

/* Before it begins: an each that cannot end within the limit of records has done nothing yet. */
static ErrorCode items_check(Walk *walk, const Step *step, Value items, Error *reterr)
{
    int64_t count;

    if (value_kind(items) != VALUE_ARRAY)
        return fail(reterr, ERR_INVALID, "each of \"%s\" must be an array, got %s", step->name,
                    value_kind_name(value_kind(items)));
    count = value_item_count(items);
    if (count > RUN_RECORDS_MAX ||
        count * list_records_min(&step->action.each.list) + EACH_RECORDS > run_records_left(walk->run))
        return fail(
            reterr, ERR_LIMIT,
            "each of \"%s\" has %lld items, and the process could not record their steps: it may record %d in all",
            step->name, (long long)count, RUN_RECORDS_MAX);
    return OK;
}

/* The items as they were when it began, whatever the state is by now. */
static ErrorCode items_get(Walk *walk, const Scope *scope, const Step *step, Arena *arena, Value *ret_items,
                           Flow *ret_flow, Error *reterr)
{
    LookupContext context = {.walk = walk, .scope = scope, .arena = arena};
    const char   *kept    = step_kept(walk, scope, step);
    int64_t       begun_us;
    Text          text;

    *ret_flow = FLOW_NEXT;
    if (!kept) {
        text_init(&text, arena, JOINED_BYTES_MAX);
        TRY(template_render(step->action.each.items, scope_lookup, &context, &text, reterr));
        TRY(items_check(walk, step, value_trim(text_string(&text), text.length), reterr));
        TRY(step_begun(walk, scope, step, text_string(&text), &begun_us, &kept, ret_flow, reterr));
    }
    *ret_items = kept ? value_trim(kept, strlen(kept)) : (Value){0};
    return OK;
}

static void items_add(Branches *branches, const Scope *scope, const Step *step, Value items, Arena *arena)
{
    const char *at = NULL;
    Value       item;

    branches->list = arena_array(arena, Branch, value_item_count(items) + 1);
    while (value_item_next(items, &at, &item)) {
        Scope *inner = arena_alloc(arena, sizeof *inner);

        *inner                            = (Scope){.above = scope, .index = branches->count, .item = item};
        branches->list[branches->count++] = (Branch){.list = &step->action.each.list, .scope = inner};
    }
}

ErrorCode step_each(Walk *walk, const Scope *scope, const Step *step, Flow *ret_flow, Error *reterr)
{
    scoped(arena_free) Arena *arena    = arena_new(ARENA_BYTES_DEFAULT);
    Branches                  branches = {.walk          = walk,
                                          .under_way_max = (int)step->action.each.concurrency,
                                          .is_slow       = list_is_slow(&step->action.each.list)};
    Value                     items;

    TRY(items_get(walk, scope, step, arena, &items, ret_flow, reterr));
    if (*ret_flow != FLOW_NEXT)
        return OK;
    items_add(&branches, scope, step, items, arena);
    return branches_end(&branches, scope, step, /* is_object= */ false, ret_flow, reterr);
}
