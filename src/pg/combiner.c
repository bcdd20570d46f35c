/*
 * combiner.c - callers take turns at leading, or threads of our own lead; see combiner.h for the states and the promises.
 */
#include "pg/combiner.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/sync.h"

#define LANES_DEFAULT   2
#define LANES_MOST      8 /* with those that are slow */
#define BATCH_DEFAULT   1000
#define QUEUE_DEFAULT   10000
#define SLOW_MS_DEFAULT 50

typedef enum { CALLER_WAITING, CALLER_LEADING, CALLER_RUNNING, CALLER_DONE } CallerState;

/* One call of combiner_do(), on its caller's stack, or of combiner_begin(), on the heap until it was told. */
typedef struct Caller Caller;
struct Caller {
    void         *item;
    Deadline      deadline;
    CallerState   state;
    CombinerTold *told; /* NULL: it waits itself */
    Cond          changed;
    Error         verdict;
    Caller       *next, *previous;
};

/* count 0: none. */
typedef struct {
    int  count;
    Mono began;
} Run;

struct Combiner {
    CombinerOptions options;
    Mutex           mutex; /* guards the rest */
    Caller         *first, *last;
    int             waiting;          /* in the list, with those that lead and have not begun */
    int             leading;          /* those: at most one */
    int             lanes;            /* led right now */
    Run             runs[LANES_MOST]; /* under way in them */
    bool            stopping;
    int             thread_count; /* 0 until something is begun */
    pthread_t      *threads;
    Cond            lead; /* for them: the first in line leads, and nobody waits behind it */
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

/* Would it go better with fewer items? Yes when one of them wants a lock that is held; not when the server or we are going
 * away, nor when what is wrong is our schema or our rights. */
static bool failure_is_about_items(ErrorCode code, const Error *error)
{
    if (strcmp(error->sqlstate, "55P03") == 0)
        return true;
    return error_verdict(code) == VERDICT_FINAL && code != ERR_STOPPING && code != ERR_REFUSED && code != ERR_DENIED &&
           strncmp(error->sqlstate, "42", 2) != 0;
}

void combiner_run_each(CombinerRun *run, void *context, void **items, int count, Deadline deadline, Error *ret_errors)
{
    Error     error = {0};
    ErrorCode code  = run(context, items, count, deadline, &error);
    int       half  = count / 2;

    if (code != OK && count > 1 && failure_is_about_items(code, &error)) {
        combiner_run_each(run, context, items, half, deadline, ret_errors);
        combiner_run_each(run, context, items + half, count - half, deadline, ret_errors + half);
        return;
    }
    error.code = code;
    for (int i = 0; i < count; i++)
        ret_errors[i] = error;
}

static size_t caller_weight(const CombinerOptions *options, const Caller *caller)
{
    return options->weigh ? options->weigh(caller->item) : 0;
}

/* Under the mutex: the leader, which is the first in line, then those behind it, as many as fit. */
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
        caller               = combiner->first;
        weight += caller ? caller_weight(options, caller) : 0;
    }
    return count;
}

static Deadline run_is_slow_at(const Combiner *combiner, const Run *run)
{
    return (Deadline){mono_plus_ms(run->began, combiner->options.slow_ms)};
}

/* Under the mutex: is it worth while to begin another run? While one is about to begin it takes everything along. Beside a
 * large run a small one would cost a transaction for little: the line grows until it is half as long. A slow run waits for
 * somebody's lock, most likely, and the others need not. *ret_again: when a run under way becomes slow. */
static bool lane_is_worth(const Combiner *combiner, const Caller *first, Deadline *ret_again)
{
    const CombinerOptions *options = &combiner->options;
    int                    quick = 0, running = 0;

    *ret_again = deadline_never();
    if (combiner->leading > 0 || combiner->lanes == LANES_MOST)
        return false;
    for (int i = 0; i < LANES_MOST; i++) {
        const Run *run = &combiner->runs[i];

        if (run->count == 0 || deadline_passed(run_is_slow_at(combiner, run)))
            continue;
        quick++;
        running += run->count;
        *ret_again = deadline_sooner(*ret_again, run_is_slow_at(combiner, run));
    }
    return quick == 0 ||
           (quick < (first->told ? options->lanes_begun_max : options->lanes_max) && combiner->waiting * 2 >= running);
}

/* Under the mutex, whenever something changed: the first in line leads if that is worth while. Returns when to ask again. */
static Deadline lane_offer(Combiner *combiner)
{
    Caller  *first = combiner->first;
    Deadline again = deadline_never();

    if (!first || !lane_is_worth(combiner, first, &again))
        return again;
    combiner->lanes++;
    combiner->leading++;
    first->state = CALLER_LEADING;
    cond_signal(first->told ? &combiner->lead : &first->changed);
    return deadline_never();
}

/* Under the mutex. */
static Run *run_begin(Combiner *combiner, int count)
{
    Run *run = combiner->runs;

    while (run->count > 0)
        run++;
    *run = (Run){count, clock_mono()};
    return run;
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
        callers[i]->verdict = errors[i];
    free(items);
    free(errors);
}

static void caller_tell(Caller *caller)
{
    caller->told(caller->item, &caller->verdict);
    free(caller);
}

/* Under the mutex: those who wait go on; the others are moved to the front. Returns how many these are. */
static int callers_end(Caller **callers, int count, const Caller *leader)
{
    int begun = 0;

    for (int i = 0; i < count; i++) {
        Caller *caller = callers[i];

        caller->state = CALLER_DONE;
        if (caller->told)
            callers[begun++] = caller;
        else if (caller != leader)
            cond_signal(&caller->changed);
    }
    return begun;
}

/* Under the mutex, which it leaves while the run is under way and to tell verdicts. */
static void lane_lead(Combiner *combiner, Caller *leader)
{
    Caller **callers = memory((size_t)combiner->options.batch_max, sizeof(Caller *));
    Deadline deadline;
    int      count = batch_take(combiner, leader, callers, &deadline);

    Run *run = run_begin(combiner, count);

    combiner->leading--;
    lane_offer(combiner);
    mutex_unlock(&combiner->mutex);
    callers_run(&combiner->options, callers, count, deadline);
    mutex_lock(&combiner->mutex);
    run->count = 0;
    combiner->lanes--;
    lane_offer(combiner);
    count = callers_end(callers, count, leader);
    if (count > 0) {
        mutex_unlock(&combiner->mutex);
        for (int i = 0; i < count; i++)
            caller_tell(callers[i]);
        mutex_lock(&combiner->mutex);
    }
    free(callers);
}

/* ---- a caller ---- */

/* Under the mutex. Its turn to lead may have come just when its time was up: then the next one leads. */
static ErrorCode caller_leave(Combiner *combiner, Caller *caller, Error *reterr)
{
    line_remove(combiner, caller);
    if (caller->state == CALLER_LEADING) {
        combiner->leading--;
        combiner->lanes--;
    }
    lane_offer(combiner);
    return fail(reterr, ERR_TIMEOUT, "no turn in time: %d operations are waiting", combiner->waiting);
}

/* Under the mutex. The first in line looks after the runs before it. */
static void caller_wait(Combiner *combiner, Caller *caller)
{
    Deadline until = caller->deadline;

    if (caller == combiner->first)
        until = deadline_sooner(until, lane_offer(combiner));
    if (caller->state == CALLER_WAITING)
        cond_wait(&caller->changed, &combiner->mutex, until);
}

/* Under the mutex. */
static ErrorCode caller_follow(Combiner *combiner, Caller *caller, Error *reterr)
{
    while (caller->state != CALLER_DONE) {
        if (caller->state != CALLER_RUNNING && deadline_passed(caller->deadline))
            return caller_leave(combiner, caller, reterr);
        if (caller->state == CALLER_LEADING)
            lane_lead(combiner, caller);
        else if (caller->state == CALLER_RUNNING)
            cond_wait(&caller->changed, &combiner->mutex, deadline_never());
        else
            caller_wait(combiner, caller);
    }
    if (reterr && caller->verdict.code != OK)
        *reterr = caller->verdict;
    return caller->verdict.code;
}

/* Under the mutex. */
static ErrorCode line_enter(Combiner *combiner, Caller *caller, Error *reterr)
{
    if (combiner->waiting >= combiner->options.queue_max)
        return fail(reterr, ERR_BUSY, "%d operations are waiting already", combiner->options.queue_max);
    line_append(combiner, caller);
    lane_offer(combiner);
    return OK;
}

ErrorCode combiner_do(Combiner *combiner, void *item, Deadline deadline, Error *reterr)
{
    Caller    caller = {.item = item, .deadline = deadline};
    ErrorCode code;

    cond_init(&caller.changed);
    mutex_lock(&combiner->mutex);
    code = line_enter(combiner, &caller, reterr);
    if (code == OK)
        code = caller_follow(combiner, &caller, reterr);
    mutex_unlock(&combiner->mutex);
    cond_done(&caller.changed);
    return code;
}

/* ---- threads that lead for what was begun ---- */

/* Under the mutex, which it leaves to tell. */
static void begun_expire(Combiner *combiner, Caller *caller)
{
    caller_leave(combiner, caller, &caller->verdict);
    mutex_unlock(&combiner->mutex);
    caller_tell(caller);
    mutex_lock(&combiner->mutex);
}

/* Under the mutex. */
static void leader_wait(Combiner *combiner)
{
    Deadline again = lane_offer(combiner);

    if (!combiner->first || !combiner->first->told || combiner->first->state == CALLER_WAITING)
        cond_wait(&combiner->lead, &combiner->mutex, again);
}

static void *leader_body(void *context)
{
    Combiner *combiner = context;

    mutex_lock(&combiner->mutex);
    while (!combiner->stopping) {
        Caller *first = combiner->first;

        if (!first || !first->told || first->state == CALLER_WAITING)
            leader_wait(combiner);
        else if (deadline_passed(first->deadline))
            begun_expire(combiner, first);
        else
            lane_lead(combiner, first);
    }
    mutex_unlock(&combiner->mutex);
    return NULL;
}

/* Under the mutex. */
static void leaders_start(Combiner *combiner)
{
    if (combiner->thread_count > 0)
        return;
    combiner->threads = memory(LANES_MOST, sizeof *combiner->threads);
    for (; combiner->thread_count < LANES_MOST; combiner->thread_count++)
        combiner->threads[combiner->thread_count] = thread_start("combiner", leader_body, combiner);
}

static void leaders_end(Combiner *combiner)
{
    mutex_lock(&combiner->mutex);
    combiner->stopping = true;
    cond_broadcast(&combiner->lead);
    mutex_unlock(&combiner->mutex);
    for (int i = 0; i < combiner->thread_count; i++)
        thread_join(combiner->threads[i]);
    free(combiner->threads);
}

void combiner_begin(Combiner *combiner, void *item, Deadline deadline, CombinerTold *told)
{
    Caller *caller = memory(1, sizeof *caller);

    caller->item     = item;
    caller->deadline = deadline;
    caller->told     = told;
    mutex_lock(&combiner->mutex);
    leaders_start(combiner);
    ErrorCode code = line_enter(combiner, caller, &caller->verdict);
    if (caller == combiner->first && caller->state == CALLER_WAITING)
        cond_signal(&combiner->lead); /* somebody has to look after the runs before it */
    mutex_unlock(&combiner->mutex);
    if (code != OK)
        caller_tell(caller);
}

int combiner_waiting(Combiner *combiner)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&combiner->mutex);

    return combiner->waiting;
}

Combiner *combiner_new(const CombinerOptions *options)
{
    Combiner *combiner = memory(1, sizeof *combiner);

    assert(options->run && options->lanes_max <= LANES_MOST);
    combiner->options = *options;
    if (!combiner->options.lanes_max)
        combiner->options.lanes_max = LANES_DEFAULT;
    if (!combiner->options.lanes_begun_max)
        combiner->options.lanes_begun_max = combiner->options.lanes_max;
    if (!combiner->options.slow_ms)
        combiner->options.slow_ms = SLOW_MS_DEFAULT;
    if (!combiner->options.batch_max)
        combiner->options.batch_max = BATCH_DEFAULT;
    if (!combiner->options.queue_max)
        combiner->options.queue_max = QUEUE_DEFAULT;
    mutex_init(&combiner->mutex);
    cond_init(&combiner->lead);
    return combiner;
}

void combiner_free(Combiner *combiner)
{
    if (!combiner)
        return;
    assert(combiner->waiting == 0 && combiner->lanes == 0);
    leaders_end(combiner);
    cond_done(&combiner->lead);
    mutex_done(&combiner->mutex);
    free(combiner);
}
