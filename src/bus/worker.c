/*
 * worker.c - the dispatcher: claims when there may be work and a handler is free, and waits out failures.
 */
#include "bus/worker.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "bus/metric.h"
#include "bus/offer.h"
#include "bus/sample.h"
#include "bus/waker.h"
#include "bus/worker_internal.h"
#include "pg/stat.h"
#include "pg/tally.h"

#define LEASE_MS_DEFAULT 30000
#define CALL_MS          10000
#define STOPPED_CALL_MS  1000 /* how long a call of the dispatcher may still take when the worker is stopped */
#define TALLY_CALL_MS    1000
#define OUTAGE_MS        500
/* Polls after something happened: 10 ms, 20 ms and so on up to WORKER_IDLE_MS. */
#define BUSY_MS 10
/* How long what is due may go unnoticed when it was not foreseen. Without work it is looked for when a poll is due anyway:
 * together below one query per second. */
#define POLL_BUSY_MS 1000

/* What commands are taken to need until the first claim has shown it. */
#define COMMAND_BYTES_FIRST ((size_t)1 << 20)

/* Of all workers of this pod: what they have claimed and hold. */
static atomic_size_t claimed_bytes;

/* When to claim next. */
typedef struct {
    int idle_ms; /* until the next poll */
} Pace;

/* Commands were queued in this domain, or in any domain (NULL). */
static void worker_call(void *context, const char *domain)
{
    Worker *worker = context;

    if (!domain || strcmp(domain, worker->options.domain) == 0)
        worker_wake(worker);
}

/* Commands were queued by a settle of this worker: it wakes itself without waiting for its waker. */
static void worker_notify(void *context, const char *domain)
{
    Worker *worker = context;

    worker_call(worker, domain);
    waker_notify(worker->waker, domain);
}

/* Commands were requeued, by this worker or by another one of this process. */
static void worker_requeued(void *context)
{
    Worker                     *worker = context;
    scoped(mutex_unlock) Mutex *held   = mutex_hold(&worker->mutex);

    worker->requeued = true;
    cond_signal(&worker->changed);
}

/* ---- life ---- */

Worker *worker_new(const WorkerOptions *options)
{
    Worker *worker = memory_new(1, sizeof *worker);

    assert(options->handler && options->concurrency <= WORKER_CONCURRENCY_MAX);
    worker->options = *options;
    if (!worker->options.concurrency)
        worker->options.concurrency = WORKER_CONCURRENCY_DEFAULT;
    if (!worker->options.batch)
        worker->options.batch = CLAIM_MAX;
    if (!worker->options.ahead_max)
        worker->options.ahead_max = AHEAD_MAX;
    if (!worker->options.lease_ms)
        worker->options.lease_ms = LEASE_MS_DEFAULT;
    worker->claimer        = claimer_new(options->pool, options->domain, options->types, options->name);
    worker->metrics        = metric_series(&worker_metric_table, options->domain);
    worker->domain_metrics = metric_series(&domain_metric_table, options->domain);
    worker->waker          = waker_new(options->pool);
    worker->wake           = (Wake){worker_notify, worker};
    worker->outcomes_end   = &worker->outcomes;
    worker->arena          = arena_new(ARENA_BYTES_DEFAULT);
    worker->stop_deadline  = deadline_never();
    worker->again_ms       = -1;
    worker->handler_us     = 10 * AHEAD_US_MAX; /* until it is known to be less */
    worker->command_bytes  = COMMAND_BYTES_FIRST;
    mutex_init(&worker->mutex);
    cond_init(&worker->arrived);
    cond_init(&worker->changed);
    cond_init(&worker->ticked);
    cond_init(&worker->handed);
    cond_init(&worker->reported);
    cond_init(&worker->offer_ended);
    worker->report_at = deadline_never();
    worker->flush_at  = deadline_never();
    worker->member    = (RequeuerMember){.wake = worker_requeued, .context = worker};
    worker->requeuer  = requeuer_join(options->pool, &worker->member);
    worker->local     = (WakeMember){.pool = options->pool, .call = worker_call, .context = worker};
    wake_join(&worker->local);
    offers_join(worker);
    return worker;
}

void worker_free(Worker *worker)
{
    offers_leave(worker);
    assert(worker->held == 0);
    wake_leave(&worker->local);
    requeuer_leave(worker->requeuer, &worker->member);
    cond_done(&worker->offer_ended);
    cond_done(&worker->reported);
    cond_done(&worker->handed);
    cond_done(&worker->ticked);
    cond_done(&worker->changed);
    cond_done(&worker->arrived);
    mutex_done(&worker->mutex);
    arena_free(worker->arena);
    while (worker->spare_count > 0)
        arena_free(worker->spare[--worker->spare_count]);
    waker_free(worker->waker);
    claimer_free(worker->claimer);
    if (worker->claimer_next)
        claimer_free(worker->claimer_next);
    share_forget(worker);
    free(worker);
}

void claimed_batch_free(ClaimedBatch *claimed_batch)
{
    atomic_fetch_sub(&claimed_bytes, claimed_batch->bytes);
    arena_free(claimed_batch->arena);
    free(claimed_batch);
}

/* ---- from other threads ---- */

void worker_types_set(Worker *worker, const char *const *types)
{
    const WorkerOptions *options = &worker->options;
    Claimer             *next    = claimer_new(options->pool, options->domain, types, options->name), *unused;

    mutex_lock(&worker->mutex);
    unused               = worker->claimer_next;
    worker->claimer_next = next;
    worker->woken        = true;
    cond_broadcast(&worker->changed);
    mutex_unlock(&worker->mutex);
    if (unused)
        claimer_free(unused);
}

void worker_wake(Worker *worker)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);

    worker->woken = true;
    cond_signal(&worker->changed);
}

static void worker_notified(void *context, const char *channel, const char *payload)
{
    Worker *worker = context;

    (void)channel;
    if (payload && strcmp(payload, worker->options.domain) == 0)
        metric_add(&bus_metrics.notifications_received, 1);
    worker_call(worker, payload); /* NULL: notifications may have been missed */
}

void worker_listen(Worker *worker, Listen *listen)
{
    listen_add(listen, WAKER_CHANNEL, worker_notified, worker);
    listen_add(listen, WAKER_PAUSE_CHANNEL, gate_notified, worker);
}

void worker_unlisten(Worker *worker, Listen *listen)
{
    listen_remove(listen, worker_notified, worker);
    listen_remove(listen, gate_notified, worker);
}

void worker_stop(Worker *worker, Deadline deadline)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);

    worker->stopping      = true;
    worker->stop_deadline = deadline_sooner(worker->stop_deadline, deadline);
    cut_at(&worker->stopped, mono_plus_ms(clock_mono(), STOPPED_CALL_MS));
    cond_signal(&worker->changed);
    cond_signal(&worker->ticked);
}

void worker_counts(Worker *worker, WorkerCounts *ret_counts)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);

    *ret_counts         = worker->counts;
    ret_counts->running = worker->running;
    ret_counts->waiting = worker->waiting;
}

void worker_count(Worker *worker, const SettleItem *item)
{
    WorkerMetrics *metrics = worker->metrics;
    WorkerCounts  *counts  = &worker->counts;

    bool is_snoozed = item->outcome == OUTCOME_SNOOZE && item->status && strcmp(item->status, "PENDING") == 0;

    if (item->settled && (item->postponed || is_snoozed)) {
        counts->released++;
        if (!item->postponed)
            settle_count(item, worker->domain_metrics);
        return;
    }
    const struct {
        Metric  *metric;
        int64_t *count;
    } by_outcome[OUTCOME_COUNT] =
        {
            [OUTCOME_COMPLETE] = {&metrics->completed, &counts->completed},
            [OUTCOME_RETRY]    = {&metrics->retried,   &counts->retried  },
            [OUTCOME_FAIL]     = {&metrics->failed,    &counts->failed   },
            [OUTCOME_REJECT]   = {&metrics->rejected,  &counts->rejected },
            [OUTCOME_SNOOZE]   = {&metrics->failed,    &counts->failed   }, /* snoozed too often, in its last attempt */
    },
      canceled = {&metrics->canceled, &counts->canceled}, lost = {&metrics->lost, &counts->lost},
      *counted = settle_is_canceled(item) ? &canceled
                 : item->settled          ? &by_outcome[item->outcome]
                                          : &lost;

    /* The last attempt has no next one: it is in troubleshooting, as a permanent failure is. */
    if (item->settled && item->outcome == OUTCOME_RETRY && item->status && strcmp(item->status, "IN_TSQ") == 0)
        counted = &by_outcome[OUTCOME_FAIL];
    ++*counted->count;
    metric_add(counted->metric, 1);
    settle_count(item, worker->domain_metrics);
}

/* ---- the dispatcher ---- */

int worker_fits(const Worker *worker)
{
    size_t used = atomic_load(&claimed_bytes);
    size_t fits = used < WORKER_BYTES_MAX ? (WORKER_BYTES_MAX - used) / (worker->command_bytes + 1) : 0;

    if (fits == 0)
        return worker->held == worker->locked; /* work goes on, however large it is */
    return fits < CLAIM_MAX ? (int)fits : CLAIM_MAX;
}

/* The arena is not read any more when the average is taken: what handlers allocate later is bounded by themselves. */
void claimed_batch_measure(Worker *worker, ClaimedBatch *claimed_batch, int prepared)
{
    size_t each = arena_used(claimed_batch->arena) / (size_t)(prepared > 0 ? prepared : 1);

    claimed_batch->bytes = arena_used(claimed_batch->arena);
    atomic_fetch_add(&claimed_bytes, claimed_batch->bytes);
    mutex_lock(&worker->mutex);
    worker->command_bytes = each > worker->command_bytes ? each : (worker->command_bytes * 3 + each) / 4;
    mutex_unlock(&worker->mutex);
}

/* Of a call of the dispatcher. A worker that stops does not wait for a database that is silent. */
static Deadline call_deadline(const Worker *worker)
{
    return deadline_cut(deadline_in_ms(CALL_MS), &worker->stopped);
}

static int smaller(int a, int b)
{
    return a < b ? a : b;
}

/* Under the mutex: how many commands the handlers have at hand at most. While handlers are short, they have the work of some time ahead, so that
 * claims are few and large, and never awaited. */
static int worker_most(const Worker *worker)
{
    int64_t each  = worker->handler_us > 0 ? worker->handler_us : 1;
    int64_t us    = 2 * worker->claim_us < AHEAD_US ? AHEAD_US : 2 * worker->claim_us;
    int64_t ahead = (us < AHEAD_US_MAX ? us : AHEAD_US_MAX) * worker->options.concurrency / each;

    if (worker->is_careful || worker->handler_us >= AHEAD_US_MAX)
        return worker->options.concurrency;
    if (ahead < worker->options.concurrency)
        ahead = worker->options.concurrency;
    return worker->options.concurrency + (ahead < worker->options.ahead_max ? (int)ahead : worker->options.ahead_max);
}

/* Under the mutex: how many to claim now. What is claimed ahead is claimed when half of it is used up; otherwise as many as can begin now: another
 * pod may be idle. */
static int worker_space(Worker *worker)
{
    const WorkerOptions *options = &worker->options;
    int                  most = worker_most(worker), used = worker->waiting + worker->running + worker->offered;

    worker->refill_at = most > options->concurrency ? most / 2 : most - 1;
    if (pool_is_outdated(options->pool) || mono_before(clock_mono(), worker->paused_until))
        return 0;
    if (used > worker->refill_at || !outcomes_have_space(worker))
        return 0;
    if (worker->is_careful && worker_begins(worker) <= 0)
        return 0;
    return smaller(smaller(most - used, options->batch), worker_fits(worker));
}

static bool take_flag(bool *flag)
{
    bool was = *flag;

    *flag = false;
    return was;
}

/* Wait for a notification, for the time, for a free handler if there is none, or for the stop. Returns how many to claim; 0: none. */
static int worker_wait(Worker *worker, Mono until, bool for_space)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);

    if (mono_before(clock_mono(), worker->paused_until) && mono_before(worker->paused_until, until))
        until = worker->paused_until;
    if (mono_before(executions_stale_at(worker), until))
        until = executions_stale_at(worker);
    while (!worker->stopping && mono_before(clock_mono(), until)) {
        if (worker->is_gate_noted || (for_space ? worker_space(worker) > 0 : worker->woken || worker->requeued))
            break;
        cond_wait(&worker->changed, &worker->mutex, (Deadline){until});
    }
    return worker->stopping ? 0 : worker_space(worker);
}

/* A notification may be about a delayed command: then its time should be known. Returns whether there was one. */
static bool notification_take(Worker *worker, Pace *pace)
{
    bool woken;

    mutex_lock(&worker->mutex);
    woken = take_flag(&worker->woken);
    if (take_flag(&worker->requeued))
        pace->idle_ms = BUSY_MS;
    mutex_unlock(&worker->mutex);
    if (woken)
        requeuer_notified(worker->requeuer);
    return woken;
}

/* Handlers turned out to be slow after more was claimed than they could begin. Returns whether something was released: then there is another space. */
static bool executions_release_stale(Worker *worker)
{
    bool is_stale;

    mutex_lock(&worker->mutex);
    is_stale = !mono_before(clock_mono(), executions_stale_at(worker));
    if (is_stale)
        worker->handler_us = 10 * AHEAD_US_MAX;
    mutex_unlock(&worker->mutex);
    if (is_stale)
        executions_release(worker, /* execution= */ NULL);
    return is_stale;
}

static bool worker_is_stopping(Worker *worker)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);

    return worker->stopping;
}

static bool worker_is_empty(Worker *worker)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);

    return worker->held == 0 && worker->offered == 0;
}

/* How long what is due may go unnoticed. */
static int requeue_most_ms(const Pace *pace)
{
    return pace->idle_ms < POLL_BUSY_MS ? POLL_BUSY_MS : WORKER_IDLE_MS;
}

/* Returns how many commands have their memory in the arena. */
static int batch_prepare(Handler *handler, ClaimedBatch *claimed_batch)
{
    if (!handler->prepare)
        return claimed_batch->count;
    claimed_batch->prepared = arena_array(claimed_batch->arena, void *, claimed_batch->count);
    return handler->prepare(handler, claimed_batch->list, claimed_batch->count, claimed_batch->arena,
                            claimed_batch->prepared);
}

static void claimer_renew(Worker *worker)
{
    Claimer *before = NULL;

    mutex_lock(&worker->mutex);
    if (worker->claimer_next) {
        before               = worker->claimer;
        worker->claimer      = worker->claimer_next;
        worker->claimer_next = NULL;
    }
    mutex_unlock(&worker->mutex);
    if (!before)
        return;
    claimer_free(before);
    share_forget(worker);
}

static ClaimTerms claim_terms(Worker *worker, int space)
{
    scoped(mutex_unlock) Mutex *held  = mutex_hold(&worker->mutex);
    int                         begin = smaller(worker_begins(worker), space);

    begin = begin < 0 ? 0 : begin;
    return (ClaimTerms){.limit      = space,
                        .lease_ms   = worker->options.lease_ms,
                        .ahead      = space - begin,
                        .lost       = worker->alone > 0 ? CLAIM_LOST_ALONE : worker->lost,
                        .is_flushed = worker->options.is_flushed,
                        .source     = worker->options.handler->source};
}

/* Commands that are not claimed ahead usually come together: claim as many as can begin until there are none. */
static void careful_note(Worker *worker, const ClaimTerms *terms, const ClaimedCommand *list, int count)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);

    worker->is_cut     = count == 0 && terms->ahead == terms->limit;
    worker->is_careful = false;
    for (int i = 0; i < count && !worker->is_careful; i++)
        worker->is_careful = list[i].lost || list[i].attempt >= list[i].max_attempts;
}

static ErrorCode worker_claim(Worker *worker, int space, int *ret_count, Error *reterr)
{
    scoped(claimed_batch_free) ClaimedBatch *claimed_batch = NULL;
    Claimer                                 *claimer;
    ClaimTerms                               terms;
    int64_t                                  us;

    claimer_renew(worker);
    claimer = worker->options.shares_types ? share_claimer(worker, &space) : worker->claimer;
    if (!claimer)
        return OK;
    terms                     = claim_terms(worker, space);
    claimed_batch             = memory_new(1, sizeof *claimed_batch);
    claimed_batch->arena      = arena_new(CLAIMED_BATCH_BYTES_MAX);
    claimed_batch->claimed_at = clock_mono();
    TRY(claimer_claim(claimer, call_deadline(worker), claimed_batch->arena, &terms, &claimed_batch->list,
                      &claimed_batch->count, reterr));
    careful_note(worker, &terms, claimed_batch->list, claimed_batch->count);
    gate_note(worker, claimer, claimed_batch->count);
    us = mono_us_between(claimed_batch->claimed_at, clock_mono());
    metric_observe_us(&worker->metrics->claim_seconds, us);
    metric_add(claimed_batch->count ? &worker->metrics->claims_won : &worker->metrics->claims_empty, 1);
    *ret_count = claimed_batch->left = claimed_batch->count;
    if (claimed_batch->count == 0)
        return OK;
    claimed_batch_measure(worker, claimed_batch, batch_prepare(worker->options.handler, claimed_batch));
    mutex_lock(&worker->mutex);
    worker->counts.claimed += claimed_batch->count;
    worker->claim_us += (us - worker->claim_us) / 8;
    executions_add(worker, take(claimed_batch));
    mutex_unlock(&worker->mutex);
    return OK;
}

/* After a claim that found nothing: is the domain empty? */
static ErrorCode worker_is_drained(Worker *worker, bool *ret_drained, Error *reterr)
{
    bool has = true;

    if (worker->options.drain && worker_is_empty(worker)) {
        arena_reset(worker->arena);
        TRY(claimer_has_work(worker->claimer, call_deadline(worker), worker->arena, &has, reterr));
    }
    *ret_drained = !has;
    return OK;
}

/* Requeue what is due and claim. A notification is most likely about a command that is ready: then the claim comes first, else what
 * was requeued is claimed with the rest. */
static ErrorCode worker_step(Worker *worker, Pace *pace, int space, int *ret_count, Error *reterr)
{
    bool is_notified = notification_take(worker, pace);
    int  most_ms     = requeue_most_ms(pace);

    if (!is_notified)
        TRY(requeuer_step(worker->requeuer, most_ms, call_deadline(worker), reterr));
    if (space > 0)
        TRY(worker_claim(worker, space, ret_count, reterr));
    return is_notified ? requeuer_step(worker->requeuer, most_ms, call_deadline(worker), reterr) : OK;
}

/* When to claim again after a claim that found nothing. */
static Mono idle_until(Worker *worker, Pace *pace)
{
    int again_ms, idle_ms = pace->idle_ms;

    mutex_lock(&worker->mutex);
    again_ms = worker->again_ms;
    mutex_unlock(&worker->mutex);
    pace->idle_ms = smaller(pace->idle_ms * 2, WORKER_IDLE_MS);
    if (again_ms >= 0)
        idle_ms = again_ms > 0 ? smaller(again_ms, WORKER_IDLE_MS) : 1;
    return mono_plus_ms(clock_mono(), idle_ms);
}

static ErrorCode worker_cycle(Worker *worker, Pace *pace, bool *ret_drained, Error *reterr)
{
    int space = worker_wait(worker, requeuer_at(worker->requeuer, requeue_most_ms(pace)), /* for_space= */ true);
    int count = 0;

    if (executions_release_stale(worker))
        return OK;
    TRY(gate_check(worker, call_deadline(worker), reterr));
    TRY(worker_step(worker, pace, space, &count, reterr));
    if (space == 0)
        return OK;
    if (count > 0) {
        pace->idle_ms = BUSY_MS;
        return OK;
    }
    TRY(worker_is_drained(worker, ret_drained, reterr));
    if (*ret_drained)
        return OK;
    Mono next       = idle_until(worker, pace);
    Mono requeue_at = requeuer_at(worker->requeuer, requeue_most_ms(pace));
    offers_open(worker);
    worker_wait(worker, mono_before(next, requeue_at) ? next : requeue_at, /* for_space= */ false);
    offers_close(worker);
    return OK;
}

/* May another try succeed? Not after an error in the schema, the rights or the domain's name, nor with a password that never worked. One
 * that has worked may be about to be changed. */
static bool failure_passes(const Worker *worker, ErrorCode code)
{
    return error_verdict(code) != VERDICT_FINAL || (code == ERR_REFUSED && worker->worked);
}

static void outage_note(Worker *worker, ErrorCode code, const Error *error)
{
    if (code != OK && !worker->outage && !worker_is_stopping(worker))
        log_error(LOG_WARN, "worker", "cannot claim commands, will retry", error);
    if (code == OK && worker->outage)
        log_write(LOG_INFO, "worker", "claims commands again", LOG_STR("domain", worker->options.domain));
    worker->outage = code != OK;
    if (code != OK)
        worker_wait(worker, mono_plus_ms(clock_mono(), OUTAGE_MS), /* for_space= */ false);
}

/* For alerts over all processes, and numbers over time. What cannot be written is written with the next flush. */
static void counts_flush(Worker *worker, bool is_last)
{
    Pool *pool = worker->options.pool;

    (void)!(is_last ? tally_flush : tally_step)(tally_own(), pool, deadline_in_ms(TALLY_CALL_MS), NULL);
    if (!stat_is_due() && !is_last)
        return;
    (void)!sample_measure(pool, deadline_in_ms(TALLY_CALL_MS), NULL);
    (void)!stat_flush(pool, deadline_in_ms(TALLY_CALL_MS), NULL);
}

static ErrorCode worker_loop(Worker *worker, Error *reterr)
{
    Pace pace    = {.idle_ms = BUSY_MS};
    bool drained = false;

    while (!drained && !worker_is_stopping(worker)) {
        Error     error = {0};
        ErrorCode code  = worker_cycle(worker, &pace, &drained, &error);

        if (code == ERR_STOPPING)
            break;
        worker->worked |= code == OK;
        if (code != OK && !failure_passes(worker, code)) {
            if (reterr)
                *reterr = error;
            return code;
        }
        outage_note(worker, code, &error);
        if (code == OK)
            counts_flush(worker, /* is_last= */ false);
    }
    return OK;
}

ErrorCode worker_run(Worker *worker, Error *reterr)
{
    ErrorCode code;

    mutex_lock(&worker->mutex);
    worker->closing = worker->has_ended = false; /* it may be run again after a failure */
    mutex_unlock(&worker->mutex);
    TRY(executions_start(worker, reterr));
    code = worker_loop(worker, reterr);
    executions_end(worker);
    if (!worker->outage)
        counts_flush(worker, /* is_last= */ true);
    return code;
}
