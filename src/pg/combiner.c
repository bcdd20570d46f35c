/*
 * combiner.c - callers take turns at leading; see combiner.h for the states and the promises.
 */
#include "pg/combiner.h"

#include <assert.h>
#include <stdlib.h>

#include "base/sync.h"

#define LANES_DEFAULT 2
#define BATCH_DEFAULT 1000
#define QUEUE_DEFAULT 10000

typedef enum { CALLER_WAITING, CALLER_LEADING, CALLER_RUNNING, CALLER_DONE } CallerState;

/* One call of combiner_do(), on its caller's stack. */
typedef struct Caller Caller;
struct Caller {
    void       *item;
    Deadline    deadline;
    CallerState state;
    Cond        changed;
    Error      *error; /* where its verdict goes: memory of its own, since the caller's may be NULL */
    Caller     *next, *previous;
};

struct Combiner {
    CombinerOptions options;
    Mutex           mutex; /* guards the rest */
    Caller         *first, *last;
    int             waiting; /* in the list */
    int             lanes;   /* led right now */
};

/* ---- the line ---- */

static void line_append(Combiner *combiner, Caller *caller)
{
    caller->previous                                             = combiner->last;
    *(combiner->last ? &combiner->last->next : &combiner->first) = caller;
    combiner->last                                               = caller;
    combiner->waiting++;
}

static void line_remove(Combiner *combiner, Caller *caller)
{
    *(caller->previous ? &caller->previous->next : &combiner->first) = caller->next;
    *(caller->next ? &caller->next->previous : &combiner->last)      = caller->previous;
    caller->next = caller->previous = NULL;
    combiner->waiting--;
}

/* ---- a run, and its halves ---- */

/* Would it go better with fewer items? Not when the server or we are going away. */
static bool failure_is_about_items(ErrorCode code)
{
    return error_verdict(code) == VERDICT_FINAL && code != ERR_STOPPING && code != ERR_REFUSED;
}

void combiner_run_each(CombinerRun *run, void *context, void **items, int count, Deadline deadline, Error *ret_errors)
{
    Error     error = {0};
    ErrorCode code  = run(context, items, count, deadline, &error);
    int       half  = count / 2;

    if (count > 1 && failure_is_about_items(code) && code != OK) {
        combiner_run_each(run, context, items, half, deadline, ret_errors);
        combiner_run_each(run, context, items + half, count - half, deadline, ret_errors + half);
        return;
    }
    error.code = code;
    for (int i = 0; i < count; i++)
        ret_errors[i] = error;
}

/* The first in line that nobody has made a leader: leaders in line are about to wake up, and each takes itself along. */
static Caller *line_first_waiting(const Combiner *combiner)
{
    Caller *caller = combiner->first;

    while (caller && caller->state == CALLER_LEADING)
        caller = caller->next;
    return caller;
}

static size_t caller_weight(const CombinerOptions *options, const Caller *caller)
{
    return options->weigh ? options->weigh(caller->item) : 0;
}

/* Under the mutex: the leader, then those who wait, as many as fit. */
static int batch_take(Combiner *combiner, Caller *leader, Caller **ret_callers, Deadline *ret_deadline)
{
    const CombinerOptions *options = &combiner->options;
    Caller                *caller  = leader;
    size_t                 weight  = caller_weight(options, leader);
    int                    count   = 0;

    *ret_deadline = leader->deadline;
    while (caller && count < options->batch_max && (caller == leader || weight <= options->weight_max)) {
        line_remove(combiner, caller);
        caller->state = CALLER_RUNNING;
        if (mono_before(ret_deadline->at, caller->deadline.at))
            *ret_deadline = caller->deadline;
        ret_callers[count++] = caller;
        caller               = line_first_waiting(combiner);
        weight += caller ? caller_weight(options, caller) : 0;
    }
    return count;
}

/* Under the mutex: the lane goes to the first who waits, or falls free. */
static void lane_pass(Combiner *combiner)
{
    Caller *heir = line_first_waiting(combiner);

    if (!heir) {
        combiner->lanes--;
        return;
    }
    heir->state = CALLER_LEADING;
    cond_signal(&heir->changed);
}

static void *memory(size_t count, size_t size)
{
    void *bytes = calloc(count, size);

    if (!bytes)
        abort();
    return bytes;
}

static void callers_run(const CombinerOptions *options, Caller **callers, int count, Deadline deadline)
{
    assert(count > 0);
    void **items  = memory((size_t)count, sizeof *items);
    Error *errors = memory((size_t)count, sizeof *errors);

    for (int i = 0; i < count; i++)
        items[i] = callers[i]->item;
    combiner_run_each(options->run, options->context, items, count, deadline, errors);
    for (int i = 0; i < count; i++)
        *callers[i]->error = errors[i];
    free(items);
    free(errors);
}

/* Under the mutex, which it leaves while the run is under way. */
static void lane_lead(Combiner *combiner, Caller *leader)
{
    Caller **callers = memory((size_t)combiner->options.batch_max, sizeof(Caller *));
    Deadline deadline;
    int      count = batch_take(combiner, leader, callers, &deadline);

    mutex_unlock(&combiner->mutex);
    callers_run(&combiner->options, callers, count, deadline);
    mutex_lock(&combiner->mutex);
    for (int i = 0; i < count; i++) {
        callers[i]->state = CALLER_DONE;
        if (callers[i] != leader)
            cond_signal(&callers[i]->changed);
    }
    lane_pass(combiner);
    free(callers);
}

/* ---- a caller ---- */

/* Under the mutex. Its turn to lead may have come just when its time was up: then the next one leads. */
static ErrorCode caller_leave(Combiner *combiner, Caller *caller, Error *reterr)
{
    line_remove(combiner, caller);
    if (caller->state == CALLER_LEADING)
        lane_pass(combiner);
    return fail(reterr, ERR_TIMEOUT, "no turn in time: %d operations are waiting", combiner->waiting);
}

/* Under the mutex. */
static ErrorCode caller_follow(Combiner *combiner, Caller *caller, Error *reterr)
{
    while (caller->state != CALLER_DONE) {
        if (caller->state != CALLER_RUNNING && deadline_passed(caller->deadline))
            return caller_leave(combiner, caller, reterr);
        if (caller->state == CALLER_LEADING)
            lane_lead(combiner, caller);
        else
            cond_wait(&caller->changed, &combiner->mutex,
                      caller->state == CALLER_RUNNING ? deadline_never() : caller->deadline);
    }
    if (reterr && caller->error->code != OK)
        *reterr = *caller->error;
    return caller->error->code;
}

ErrorCode combiner_do(Combiner *combiner, void *item, Deadline deadline, Error *reterr)
{
    Error     error  = {0};
    Caller    caller = {.item = item, .deadline = deadline, .error = &error};
    ErrorCode code;

    mutex_lock(&combiner->mutex);
    if (combiner->waiting >= combiner->options.queue_max) {
        mutex_unlock(&combiner->mutex);
        return fail(reterr, ERR_BUSY, "%d operations are waiting already", combiner->options.queue_max);
    }
    cond_init(&caller.changed);
    line_append(combiner, &caller);
    if (combiner->lanes < combiner->options.lanes_max) {
        assert(line_first_waiting(combiner) == &caller); /* invariant 4 */
        combiner->lanes++;
        caller.state = CALLER_LEADING;
    }
    code = caller_follow(combiner, &caller, reterr);
    mutex_unlock(&combiner->mutex);
    cond_done(&caller.changed);
    return code;
}

int combiner_waiting(Combiner *combiner)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&combiner->mutex);

    return combiner->waiting;
}

Combiner *combiner_new(const CombinerOptions *options)
{
    Combiner *combiner = memory(1, sizeof *combiner);

    assert(options->run);
    combiner->options = *options;
    if (!combiner->options.lanes_max)
        combiner->options.lanes_max = LANES_DEFAULT;
    if (!combiner->options.batch_max)
        combiner->options.batch_max = BATCH_DEFAULT;
    if (!combiner->options.queue_max)
        combiner->options.queue_max = QUEUE_DEFAULT;
    mutex_init(&combiner->mutex);
    return combiner;
}

void combiner_free(Combiner *combiner)
{
    if (!combiner)
        return;
    assert(combiner->waiting == 0 && combiner->lanes == 0);
    mutex_done(&combiner->mutex);
    free(combiner);
}
