/*
 * outcome_wait.c - one thread that asks for all waits; see outcome_wait.h.
 */
#include "bus/outcome_wait.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/sync.h"
#include "bus/command.h"
#include "bus/metric.h"
#include "pg/tx.h"
#include "sql.h"

#define FIND_MAX    1000 /* waits of one statement */
#define CALL_MS     2000
#define POLL_SHARE  3 /* polls take at most this part of the time of a connection */
#define POLL_MS_MAX 1000
#define AGAIN_MS    200 /* after a failure */

typedef TAILQ_HEAD(OutcomeWaitList, OutcomeWait) OutcomeWaitList;

struct OutcomeWaits {
    Pool           *pool;
    Mutex           mutex; /* guards the rest */
    Cond            changed;
    OutcomeWaitList fresh;   /* to be found */
    OutcomeWaitList waiting; /* asked about */
    int             waiting_count;
    Mono            poll_at;
    bool            has_thread, stopping, ending;
    pthread_t       thread;
};

#define FOUND_COLUMNS(X, T) \
    X(T, I64, id)           \
    X(T, TEXT, domain)      \
    X(T, BOOL, ended)
DB_ROW(OutcomeFound, FOUND_COLUMNS);
DB_SHAPE(found, OutcomeFound, FOUND_COLUMNS);
DB_SHAPE(command_outcome, CommandOutcome, COMMAND_OUTCOME_COLUMNS);

/* ---- ends ---- */

/* Under the mutex; it is in no list. */
static void wait_end(OutcomeWait *wait, OutcomeWaitList *done)
{
    wait->state = OUTCOME_WAIT_DONE;
    TAILQ_INSERT_TAIL(done, wait, link);
}

/* Under the mutex. */
static void waiting_add(OutcomeWaits *waits, OutcomeWait *wait)
{
    if (waits->waiting_count++ == 0)
        waits->poll_at = mono_plus_ms(clock_mono(), OUTCOME_POLL_MS);
    wait->state = OUTCOME_WAIT_WAITING;
    TAILQ_INSERT_TAIL(&waits->waiting, wait, link);
    metric_add(&bus_metrics.outcome_waits, 1);
}

/* Under the mutex. */
static void waiting_remove(OutcomeWaits *waits, OutcomeWait *wait)
{
    TAILQ_REMOVE(&waits->waiting, wait, link);
    waits->waiting_count--;
    metric_add(&bus_metrics.outcome_waits, -1);
}

/* Under the mutex, which it releases: the callers may free their waits, and submit others. */
static void waits_end(OutcomeWaits *waits, OutcomeWaitList *done)
{
    if (TAILQ_EMPTY(done))
        return;
    mutex_unlock(&waits->mutex);
    for (OutcomeWait *wait; (wait = TAILQ_FIRST(done)) != NULL;) {
        TAILQ_REMOVE(done, wait, link);
        wait->on_done(wait->context);
    }
    mutex_lock(&waits->mutex);
}

/* Under the mutex. */
static bool wait_is_over(const OutcomeWaits *waits, const OutcomeWait *wait)
{
    return waits->stopping || wait->canceled || deadline_passed(wait->until);
}

/* ---- find those that are new ---- */

static TxOptions reading(const char *name, Arena *arena)
{
    return (TxOptions){
        .name = name, .deadline = deadline_in_ms(CALL_MS), .arena = arena, .read_only = true, .prepare = true};
}

/* Under the mutex. */
static int fresh_take(OutcomeWaits *waits, OutcomeWait **ret_list)
{
    OutcomeWait *wait;
    int          count = 0;

    while (count < FIND_MAX && (wait = TAILQ_FIRST(&waits->fresh)) != NULL) {
        TAILQ_REMOVE(&waits->fresh, wait, link);
        wait->state       = OUTCOME_WAIT_FINDING;
        ret_list[count++] = wait;
    }
    return count;
}

/* Under no lock. ret_ready: of each, does it go on waiting? */
static void fresh_find(const OutcomeWaits *waits, Arena *arena, OutcomeWait *const *list, int count, bool *ret_goes_on)
{
    TxOptions           options  = reading("outcomes_find", arena);
    const char        **ids      = arena_array(arena, const char *, count);
    const char        **domains  = arena_array(arena, const char *, count);
    const char        **prefixes = arena_array(arena, const char *, count);
    const OutcomeFound *rows;
    int                 row_count;

    for (int i = 0; i < count; i++) {
        ids[i]      = list[i]->command_id;
        domains[i]  = list[i]->domain;
        prefixes[i] = list[i]->prefix;
    }
    if (db_call_many(waits->pool, &options, sql_bus_outcomes_find,
                     DB_ARGS(db_uuids(arena, ids, count), db_texts(arena, domains, count),
                             db_texts(arena, prefixes, count)),
                     &found_shape, &rows, &row_count, NULL) != OK)
        return; /* the caller reads it now, and gets the error */
    for (int i = 0; i < count && i < row_count; i++) {
        list[i]->id         = rows[i].id;
        list[i]->has_ended  = rows[i].ended;
        list[i]->is_allowed = rows[i].id != 0 && (!list[i]->may_wait || list[i]->may_wait(list[i], rows[i].domain));
        ret_goes_on[i]      = list[i]->is_allowed && !rows[i].ended;
    }
}

/* Under the mutex, which it releases. */
static void waits_find(OutcomeWaits *waits)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    OutcomeWait             **list    = arena_array(arena, OutcomeWait *, FIND_MAX);
    bool                     *goes_on = arena_array(arena, bool, FIND_MAX);
    int                       count   = fresh_take(waits, list);
    OutcomeWaitList           done    = TAILQ_HEAD_INITIALIZER(done);

    mutex_unlock(&waits->mutex);
    fresh_find(waits, arena, list, count, goes_on);
    mutex_lock(&waits->mutex);
    for (int i = 0; i < count; i++) {
        OutcomeWait *wait = list[i];

        if (!goes_on[i] || wait_is_over(waits, wait)) {
            wait_end(wait, &done);
            continue;
        }
        waiting_add(waits, wait);
    }
    waits_end(waits, &done);
}

/* ---- ask about all that wait ---- */

static int compare(const void *a, const void *b)
{
    int64_t first = *(const int64_t *)a, second = *(const int64_t *)b;

    return (first > second) - (first < second);
}

/* Under the mutex. */
static int64_t *waiting_ids(const OutcomeWaits *waits, Arena *arena)
{
    int64_t     *ids   = arena_array(arena, int64_t, waits->waiting_count);
    int          count = 0;
    OutcomeWait *wait;

    TAILQ_FOREACH (wait, &waits->waiting, link)
        ids[count++] = wait->id;
    return ids;
}

/* Under the mutex. ended: sorted. */
static void waiting_end(OutcomeWaits *waits, const int64_t *ended, int count, OutcomeWaitList *done)
{
    for (OutcomeWait *wait = TAILQ_FIRST(&waits->waiting), *next; wait; wait = next) {
        next            = TAILQ_NEXT(wait, link);
        wait->has_ended = count > 0 && bsearch(&wait->id, ended, (size_t)count, sizeof *ended, compare);
        if (!wait->has_ended && !wait_is_over(waits, wait))
            continue;
        waiting_remove(waits, wait);
        wait_end(wait, done);
    }
}

static int64_t poll_pause_ms(int64_t took_ms)
{
    int64_t pause_ms = took_ms * (POLL_SHARE - 1);

    return pause_ms < OUTCOME_POLL_MS ? OUTCOME_POLL_MS : pause_ms < POLL_MS_MAX ? pause_ms : POLL_MS_MAX;
}

/* Under the mutex, which it releases. After a failure all are asked about again. */
static void waits_poll(OutcomeWaits *waits)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions                 options = reading("outcomes_ended", arena);
    int                       asked   = waits->waiting_count, count;
    int64_t                  *ids = waiting_ids(waits, arena), *ended = NULL;
    Mono                      start = clock_mono();
    OutcomeWaitList           done  = TAILQ_HEAD_INITIALIZER(done);

    mutex_unlock(&waits->mutex);
    metric_add(&bus_metrics.outcome_polls, 1);
    if (db_call_many(waits->pool, &options, sql_bus_outcomes_ended, DB_ARGS(db_i64s(arena, ids, asked)), &db_i64_shape,
                     &ended, &count, NULL) != OK)
        count = 0;
    if (count > 0)
        qsort(ended, (size_t)count, sizeof *ended, compare);
    mutex_lock(&waits->mutex);
    waiting_end(waits, ended, count, &done);
    waits->poll_at = mono_plus_ms(clock_mono(), poll_pause_ms(mono_ms_between(start, clock_mono())));
    waits_end(waits, &done);
}

/* ---- the thread ---- */

static Deadline poll_at(const OutcomeWaits *waits)
{
    return waits->waiting_count > 0 ? (Deadline){waits->poll_at} : deadline_never();
}

static void *waits_body(void *context)
{
    OutcomeWaits               *waits = context;
    scoped(mutex_unlock) Mutex *held  = mutex_hold(&waits->mutex);

    while (!waits->ending) {
        if (deadline_passed(poll_at(waits)))
            waits_poll(waits);
        else if (!TAILQ_EMPTY(&waits->fresh))
            waits_find(waits);
        else
            cond_wait(&waits->changed, &waits->mutex, poll_at(waits));
    }
    return NULL;
}

/* ---- callers ---- */

/* Under the mutex. */
static bool wait_enter(OutcomeWaits *waits, OutcomeWait *wait)
{
    wait->id        = 0;
    wait->has_ended = wait->is_allowed = false;
    wait->state                        = OUTCOME_WAIT_DONE;
    if (wait->canceled || waits->stopping)
        return false;
    if (!waits->has_thread)
        waits->has_thread = thread_try_start("outcomes", waits_body, waits, &waits->thread);
    if (!waits->has_thread)
        return false;
    wait->state = OUTCOME_WAIT_NEW;
    TAILQ_INSERT_TAIL(&waits->fresh, wait, link);
    cond_signal(&waits->changed);
    return true;
}

void outcome_wait_submit(OutcomeWaits *waits, OutcomeWait *wait)
{
    mutex_lock(&waits->mutex);
    bool entered = wait_enter(waits, wait);
    mutex_unlock(&waits->mutex);
    if (!entered)
        wait->on_done(wait->context);
}

void outcome_wait_cancel(OutcomeWaits *waits, OutcomeWait *wait)
{
    bool is_ours;

    mutex_lock(&waits->mutex);
    is_ours = wait->state == OUTCOME_WAIT_NEW || wait->state == OUTCOME_WAIT_WAITING;
    if (wait->state != OUTCOME_WAIT_DONE)
        wait->canceled = true;
    if (wait->state == OUTCOME_WAIT_NEW)
        TAILQ_REMOVE(&waits->fresh, wait, link);
    if (wait->state == OUTCOME_WAIT_WAITING)
        waiting_remove(waits, wait);
    if (is_ours)
        wait->state = OUTCOME_WAIT_DONE;
    mutex_unlock(&waits->mutex);
    if (is_ours)
        wait->on_done(wait->context);
}

/* ---- outcomes ---- */

static ErrorCode unfound(Pool *pool, Deadline deadline, Arena *arena, const char *noun, const OutcomeWait *wait,
                         Error *reterr)
{
    size_t       length = wait->prefix ? strlen(wait->prefix) : 0;
    const char **domains, *list = NULL;
    int          count, found   = 0;

    TRY(command_domains(pool, deadline, arena, wait->command_id, &domains, &count, reterr));
    for (int i = 0; i < count; i++) {
        if (wait->prefix && strncmp(domains[i], wait->prefix, length) != 0)
            continue;
        if (wait->domain && strcmp(domains[i], wait->domain) != 0)
            continue;
        list = list ? arena_print(arena, "%s, %s", list, domains[i] + length) : domains[i] + length;
        found++;
    }
    if (found > 1)
        return fail(reterr, ERR_CONFLICT, "%s %s is in several domains: %s; name one of them", noun, wait->command_id,
                    list);
    if (found == 1) /* when it was looked for, the statement failed */
        return fail(reterr, ERR_BUSY, "%s %s was not read in time", noun, wait->command_id);
    return fail(reterr, ERR_NOT_FOUND, "%s %s not found%s%s", noun, wait->command_id, wait->domain ? " in domain " : "",
                wait->domain ? wait->domain + length : "");
}

ErrorCode outcome_get(Pool *pool, Deadline deadline, Arena *arena, const char *noun, const OutcomeWait *wait,
                      CommandOutcome *ret_outcome, Error *reterr)
{
    TxOptions             options = {.name = "outcome_get", .deadline = deadline, .arena = arena, .read_only = true};
    const CommandOutcome *rows;
    int                   count;

    if (wait->id == 0)
        return unfound(pool, deadline, arena, noun, wait, reterr);
    TRY(db_call_many(pool, &options, sql_bus_outcome_get, DB_ARGS(db_i64(wait->id)), &command_outcome_shape, &rows,
                     &count, reterr));
    if (count == 0)
        return fail(reterr, ERR_NOT_FOUND, "%s %s not found", noun, wait->command_id);
    *ret_outcome = rows[0];
    return OK;
}

/* ---- a caller that waits ---- */

typedef struct {
    Mutex mutex;
    Cond  done;
    bool  is_done;
} OutcomeWaiter;

static void waiter_done(void *context)
{
    OutcomeWaiter              *waiter = context;
    scoped(mutex_unlock) Mutex *held   = mutex_hold(&waiter->mutex);

    waiter->is_done = true;
    cond_signal(&waiter->done);
}

static void wait_run(OutcomeWaits *waits, OutcomeWait *wait)
{
    OutcomeWaiter waiter = {0};

    mutex_init(&waiter.mutex);
    cond_init(&waiter.done);
    wait->on_done = waiter_done;
    wait->context = &waiter;
    outcome_wait_submit(waits, wait);
    mutex_lock(&waiter.mutex);
    while (!waiter.is_done)
        cond_wait(&waiter.done, &waiter.mutex, deadline_never());
    mutex_unlock(&waiter.mutex);
    cond_done(&waiter.done);
    mutex_done(&waiter.mutex);
}

ErrorCode outcome_wait_run(OutcomeWaits *waits, Arena *arena, const char *noun, OutcomeWait *wait,
                           CommandOutcome *ret_outcome, Error *reterr)
{
    for (;;) {
        ErrorCode code;

        wait_run(waits, wait);
        code = outcome_get(waits->pool, deadline_in_ms(OUTCOME_READ_MS), arena, noun, wait, ret_outcome, reterr);
        if (code == OK ? ret_outcome->ended || deadline_passed(wait->until)
                       : error_verdict(code) == VERDICT_FINAL || deadline_passed(wait->until))
            return code;
        clock_sleep_until(deadline_sooner(wait->until, deadline_in_ms(AGAIN_MS)));
    }
}

/* ---- life ---- */

OutcomeWaits *outcome_waits_new(Pool *pool)
{
    OutcomeWaits *waits = memory_new(1, sizeof *waits);

    waits->pool = pool;
    mutex_init(&waits->mutex);
    cond_init(&waits->changed);
    TAILQ_INIT(&waits->fresh);
    TAILQ_INIT(&waits->waiting);
    return waits;
}

void outcome_waits_stop(OutcomeWaits *waits)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&waits->mutex);

    waits->stopping = true;
    waits->poll_at  = clock_mono();
    cond_signal(&waits->changed);
}

void outcome_waits_free(OutcomeWaits *waits)
{
    mutex_lock(&waits->mutex);
    waits->ending = true;
    cond_signal(&waits->changed);
    mutex_unlock(&waits->mutex);
    if (waits->has_thread)
        thread_join(waits->thread);
    cond_done(&waits->changed);
    mutex_done(&waits->mutex);
    free(waits);
}
