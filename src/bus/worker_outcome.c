/*
 * worker_outcome.c - settles what handlers have handed over.
 *
 * A handler thread hands its outcome over and takes the next command: it never waits for a commit. One thread settles all that have come
 * meanwhile in one call, so batches grow with the time that a commit takes, and a single outcome is settled at once. What cannot be settled now is tried
 * again apart from the others, while its lease is kept.
 *
 * While outcomes cannot be settled, handlers begin no more than the worker's concurrency: a crash would repeat what they do.
 */
#include "base/log.h"
#include "base/problem.h"
#include "bus/settle_internal.h"
#include "bus/worker_internal.h"

#define CALL_MS       10000
#define AGAIN_MS      500
#define BUSY_AGAIN_MS 50
#define BUSY_LOG_MS   10000 /* so long may an application hold a lease before it is logged */

bool outcomes_have_space(const Worker *worker)
{
    int most = worker->is_unsettled ? worker->options.concurrency : OUTCOMES_MAX;

    return worker->settling < most && worker->settling_bytes < OUTCOME_BYTES_MAX;
}

/* ---- the end of one ---- */

/* status: the present one; NULL: the database could not be asked. */
static void loss_log(const Execution *execution, StopReason why)
{
    const SettleItem *item = &execution->outcome;

    log_set_request(execution->command->command_id);
    log_write(settle_is_canceled(item) ? LOG_INFO : LOG_WARN, "worker",
              settle_is_canceled(item)            ? "command was canceled, the outcome changed nothing"
              : item->status || stop_is_loss(why) ? "lease was lost, the outcome changed nothing"
                                                  : "outcome could not be stored, its lease expires",
              LOG_STR("command", execution->command->command_id), LOG_STR("outcome", outcome_names[item->outcome]),
              LOG_STR("status", item->status ? item->status : ""));
    log_set_request(NULL);
}

static void outcome_log(Worker *worker, Execution *execution)
{
    StopReason why = execution_reason(worker, execution);

    if (!execution->outcome.status && why == STOP_CANCELED)
        execution->outcome.status = "CANCELED";
    if (!execution->outcome.settled)
        loss_log(execution, why);
}

/* Under the mutex. */
static void outcome_end(Worker *worker, Execution *execution)
{
    const SettleItem *item = &execution->outcome;

    worker_count(worker, item);
    worker->woken |= item->settled && (item->postponed || item->outcome == OUTCOME_RETRY ||
                                       item->outcome == OUTCOME_SNOOZE); /* its time should be known */
    execution_drop(worker, execution);
}

/* ---- handing over ---- */

static void *settler_run(void *context);

/* Why the worker stopped the handler goes before the reason of a retry. A handler that was stopped and still decided has decided: what it
 * completed, rejected or failed is not tried again. */
static void outcome_override(Worker *worker, Execution *execution)
{
    SettleItem *item = &execution->outcome;
    StopReason  why  = execution_reason(worker, execution);
    const char *text = "handler was stopped because its worker was";

    if (item->outcome != OUTCOME_RETRY || (why != STOP_TIMEOUT && why != STOP_SHUTDOWN))
        return;
    if (why == STOP_TIMEOUT)
        text =
            arena_print(execution->arena, "handler ran longer than %d ms and was stopped", worker->options.timeout_ms);
    item->result   = NULL;
    item->error    = item->error ? arena_print(execution->arena, "%s: %s", text, item->error) : text;
    item->delay_ms = why == STOP_TIMEOUT ? SETTLE_DELAY_DEFAULT : 0;
}

/* Not before there is an outcome: handlers of processes settle by themselves. A thread that cannot be started is tried again with the next outcome and
 * with each heartbeat. */
void settler_start(Worker *worker)
{
    if (worker->outcomes && !worker->has_settler && !worker->has_ended)
        worker->has_settler = thread_try_start("settler", settler_run, worker, &worker->settler);
}

void outcome_hand_over(Worker *worker, Execution *execution)
{
    if (execution->outcome.status) {
        outcome_log(worker, execution);
        scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);
        outcome_end(worker, execution);
        return;
    }
    outcome_override(worker, execution);
    execution->outcome_bytes         = arena_used(execution->arena);
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);
    if (!worker->outcomes)
        cond_signal(&worker->handed);
    *worker->outcomes_end = execution;
    worker->outcomes_end  = &execution->settled_next;
    worker->settling++;
    worker->settling_bytes += execution->outcome_bytes;
    settler_start(worker);
}

/* ---- settling ---- */

/* Outcomes of the settler, in a list. */
typedef struct {
    Execution *first, **end;
} Outcomes;

static void outcomes_init(Outcomes *outcomes)
{
    outcomes->first = NULL;
    outcomes->end   = &outcomes->first;
}

static void outcomes_add(Outcomes *outcomes, Execution *execution)
{
    execution->settled_next = NULL;
    *outcomes->end          = execution;
    outcomes->end           = &execution->settled_next;
}

static void outcomes_finish(Worker *worker, const Outcomes *ended)
{
    bool was_full;

    for (Execution *at = ended->first; at; at = at->settled_next)
        outcome_log(worker, at);
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);
    was_full                         = !outcomes_have_space(worker);
    for (Execution *at = ended->first, *next; at; at = next) {
        next = at->settled_next;
        worker->settling--;
        worker->settling_bytes -= at->outcome_bytes;
        outcome_end(worker, at);
    }
    if (was_full)
        cond_broadcast(&worker->arrived);
}

/* Was the handler's result or error refused? Any other failure is not the command's fault. */
static bool outcome_is_refused(const SettleItem *item)
{
    return (item->code == ERR_INVALID || item->code == ERR_LIMIT) && (item->result || item->outcome != OUTCOME_FAIL);
}

/* A result that cannot be stored fails the command with the reason. */
static void outcome_refuse(Execution *execution)
{
    SettleItem *item = &execution->outcome;

    item->error   = arena_print(execution->arena, "outcome could not be stored: %s", problem_stored(&item->error_text));
    item->outcome = OUTCOME_FAIL;
    item->result  = NULL;
    execution->settle_at = clock_mono();
}

static void failure_log(Execution *execution)
{
    SettleItem *item = &execution->outcome;

    if (execution->is_logged || (item->busy && mono_ms_between(execution->handed_at, clock_mono()) < BUSY_LOG_MS))
        return;
    execution->is_logged = true;
    log_set_request(execution->command->command_id);
    log_error(LOG_WARN, "worker", "cannot settle command, will retry", &item->error_text);
    log_set_request(NULL);
}

/* After a call: is it over? */
static bool outcome_is_over(Worker *worker, Execution *execution)
{
    SettleItem *item = &execution->outcome;

    if (item->code == OK)
        return true;
    failure_log(execution);
    if (outcome_is_refused(item)) {
        outcome_refuse(execution);
        return false;
    }
    execution->settle_at = mono_plus_ms(clock_mono(), item->busy ? BUSY_AGAIN_MS : AGAIN_MS);
    return !settle_goes_on(worker, item->code);
}

/* Another worker has the command, or will have it: nothing of it is reported. */
static void outcomes_divide(Worker *worker, const Outcomes *given, SettleItem **items, int *ret_count, Outcomes *lost)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);

    *ret_count = 0;
    for (Execution *at = given->first, *next; at; at = next) {
        next = at->settled_next;
        if (stop_is_loss(at->why))
            outcomes_add(lost, at);
        else
            items[(*ret_count)++] = &at->outcome;
    }
}

static void unsettled_set(Worker *worker, bool is_unsettled)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);

    if (worker->is_unsettled && !is_unsettled)
        cond_broadcast(&worker->arrived);
    worker->is_unsettled = is_unsettled;
}

static Execution *execution_of(SettleItem *item)
{
    return (Execution *)((char *)item - offsetof(Execution, outcome));
}

/* In one call, or where an item fails the others, in several. Those that have no verdict go to `later`. */
static void outcomes_settle(Worker *worker, const Outcomes *given, int count, Outcomes *later)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    SettleItem              **items = arena_array(arena, SettleItem *, count), **good;
    bool                      any = false, failed = false;
    Outcomes                  over;

    outcomes_init(&over);
    outcomes_divide(worker, given, items, &count, &over);
    good = arena_array(arena, SettleItem *, count + 1);
    settle_apart(worker->options.pool, deadline_in_ms(CALL_MS), &worker->wake, good,
                 settle_items_good(items, count, good));
    for (int i = 0; i < count; i++) {
        Execution *execution = execution_of(items[i]);

        any |= items[i]->code == OK;
        failed |= items[i]->code != OK && !items[i]->busy; /* a locked lease is about its command */
        outcomes_add(outcome_is_over(worker, execution) ? &over : later, execution);
    }
    if (count > 0)
        unsettled_set(worker, failed && !any);
    outcomes_finish(worker, &over);
}

/* ---- the thread ---- */

/* Under the mutex: all that were handed over. */
static int outcomes_take(Worker *worker, Outcomes *ret_outcomes)
{
    int count = 0;

    outcomes_init(ret_outcomes);
    for (Execution *at = worker->outcomes, *next; at; at = next, count++) {
        next = at->settled_next;
        outcomes_add(ret_outcomes, at);
    }
    worker->outcomes     = NULL;
    worker->outcomes_end = &worker->outcomes;
    return count;
}

/* Those that are tried again now. The others stay. */
static int outcomes_take_due(Outcomes *later, Outcomes *ret_outcomes)
{
    Mono     now   = clock_mono();
    int      count = 0;
    Outcomes kept;

    outcomes_init(&kept);
    outcomes_init(ret_outcomes);
    for (Execution *at = later->first, *next; at; at = next) {
        bool is_due = !mono_before(now, at->settle_at);

        next = at->settled_next;
        outcomes_add(is_due ? ret_outcomes : &kept, at);
        count += is_due;
    }
    *later = kept;
    if (!kept.first)
        outcomes_init(later);
    return count;
}

static Deadline later_at(const Outcomes *later)
{
    Deadline next = deadline_never();

    for (const Execution *at = later->first; at; at = at->settled_next)
        next = deadline_sooner(next, (Deadline){at->settle_at});
    return next;
}

/* Wait for outcomes, or for the time of those that are tried again. false: all handlers have ended, and nothing is left. */
static bool outcomes_wait(Worker *worker, const Outcomes *later, Outcomes *ret_fresh, int *ret_count)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);
    Deadline                    next = later_at(later);

    while (!worker->outcomes && !deadline_passed(next)) {
        if (worker->has_ended && !later->first)
            return false;
        cond_wait(&worker->handed, &worker->mutex, next);
    }
    *ret_count = outcomes_take(worker, ret_fresh);
    return true;
}

static void *settler_run(void *context)
{
    Worker  *worker = context;
    Outcomes later, taken;
    int      count;

    outcomes_init(&later);
    while (outcomes_wait(worker, &later, &taken, &count)) {
        if (count > 0)
            outcomes_settle(worker, &taken, count, &later);
        count = outcomes_take_due(&later, &taken); /* apart: one that fails its neighbours does so no more */
        if (count > 0)
            outcomes_settle(worker, &taken, count, &later);
    }
    return NULL;
}

void settler_end(Worker *worker)
{
    bool is_started;

    mutex_lock(&worker->mutex);
    worker->has_ended   = true;
    is_started          = worker->has_settler;
    worker->has_settler = false;
    cond_signal(&worker->handed);
    mutex_unlock(&worker->mutex);
    if (is_started)
        thread_join(worker->settler);
    else
        (void)settler_run(worker);
}
