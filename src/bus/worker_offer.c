/*
 * worker_offer.c - the workers of this process, and the handlers that they offer; see offer.h.
 */
#include <string.h>

#include "base/memory.h"
#include "bus/metric.h"
#include "bus/offer.h"
#include "bus/sample.h"
#include "bus/worker_internal.h"

/* Held while workers are asked; taken before the mutex of a worker. */
static Mutex   offering_mutex = {.native = PTHREAD_MUTEX_INITIALIZER};
static Worker *offering;

/* ---- by the worker ---- */

void offers_join(Worker *worker)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&offering_mutex);

    worker->offering_next = offering;
    offering              = worker;
}

void offers_leave(Worker *worker)
{
    mutex_lock(&offering_mutex);
    Worker **link = &offering;

    while (*link != worker)
        link = &(*link)->offering_next;
    *link = worker->offering_next;
    mutex_unlock(&offering_mutex);
    mutex_lock(&worker->mutex);
    while (worker->offered > 0)
        cond_wait(&worker->offer_ended, &worker->mutex, deadline_never());
    mutex_unlock(&worker->mutex);
}

void offers_open(Worker *worker)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);

    /* What was left out, or needs a handler that is free, may be ready. */
    worker->is_offering = !worker->leaves_out && !worker->is_cut;
    claimer_positions_read(worker->claimer, clock_mono(), worker->offer_after);
}

void offers_close(Worker *worker)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);

    worker->is_offering = false;
}

void offers_wait(Worker *worker)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);

    while (worker->offered > 0 && !deadline_passed(worker->stop_deadline))
        cond_wait(&worker->offer_ended, &worker->mutex, worker->stop_deadline);
}

/* ---- by the sender ---- */

/* Under the mutex: how many handlers are free. */
static int offer_space(const Worker *worker)
{
    int space = worker_begins(worker), fits = worker_fits(worker);

    if (!worker->is_offering || worker->woken || worker->stopping || worker->closing || !outcomes_have_space(worker) ||
        mono_before(clock_mono(), worker->paused_until) || pool_is_outdated(worker->options.pool))
        return 0;
    return space < fits ? space : fits;
}

/* Under the mutex. */
static Offer offer_make(Worker *worker, int slots, Arena *arena)
{
    Offer offer = {.worker   = worker,
                   .slots    = slots,
                   .name     = worker->options.name,
                   .domain   = worker->options.domain,
                   .types    = claimer_types_copy(worker->claimer, arena),
                   .lease_ms = worker->options.lease_ms,
                   .taken_at = clock_mono()};

    memcpy(offer.after, worker->offer_after, sizeof offer.after);
    return offer;
}

/* Under the mutex of the registry. */
static bool worker_offer(Worker *worker, const char *type, int wanted, Arena *arena, Offer *ret_offer)
{
    scoped(mutex_unlock) Mutex *held  = mutex_hold(&worker->mutex);
    int                         space = offer_space(worker);

    if (space > 0 && worker->options.shares_types) {
        int share = share_space(worker, type);

        space = space < share ? space : share;
    }
    if (space <= 0 || !claimer_has_type(worker->claimer, type))
        return false;
    *ret_offer = offer_make(worker, wanted < space ? wanted : space, arena);
    if (worker->options.shares_types)
        ret_offer->only = type;
    worker->offered += ret_offer->slots;
    return true;
}

bool offer_take(const Pool *pool, const char *domain, const char *type, int wanted, Arena *arena, Offer *ret_offer)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&offering_mutex);

    for (Worker *worker = offering; worker; worker = worker->offering_next)
        if (strcmp(worker->options.domain, domain) == 0 && pool_is_alike(worker->options.pool, pool) &&
            worker_offer(worker, type, wanted, arena, ret_offer))
            return true;
    return false;
}

/* The same for one command of any type. */
static bool worker_offer_resumed(Worker *worker, int kept, Arena *arena, Offer *ret_offer)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);

    if (offer_space(worker) <= kept)
        return false;
    *ret_offer = offer_make(worker, 1, arena);
    if (worker->options.shares_types && ret_offer->types) {
        ret_offer->allowed = share_types(worker, ret_offer->types, arena);
        if (!ret_offer->allowed[0])
            return false;
    }
    worker->offered++;
    return true;
}

void resume_offers_take(const Pool *pool, const char *domain, int kept, Arena *arena, ResumeOffers *ret_offers)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&offering_mutex);

    ret_offers->count = 0;
    for (Worker *worker = offering; worker && ret_offers->count < RESUME_OFFERS_MAX; worker = worker->offering_next)
        if (worker->options.handler->unpack && (!domain || strcmp(worker->options.domain, domain) == 0) &&
            pool_is_alike(worker->options.pool, pool) &&
            worker_offer_resumed(worker, kept, arena, &ret_offers->list[ret_offers->count]))
            ret_offers->tokens[ret_offers->count++] = lease_token_new();
}

bool offer_has_type(const Offer *offer, const char *type)
{
    const char *const *types = offer->types;

    while (types && *types && strcmp(*types, type) != 0)
        types++;
    return !types || *types;
}

static void batch_unpack(ClaimedBatch *batch, const Handler *handler)
{
    if (!handler->unpack)
        return;
    batch->prepared = arena_array(batch->arena, void *, batch->count);
    for (int i = 0; i < batch->count; i++)
        batch->prepared[i] = batch->list[i].loaded ? handler->unpack(batch->list[i].loaded, batch->arena) : NULL;
}

/* Their texts are in the arena of the send, which ends before they do. */
static ClaimedBatch *batch_make(const Offer *offer, const ClaimedCommand *started, int count)
{
    ClaimedBatch *batch = memory_new(1, sizeof *batch);

    batch->arena = arena_new(CLAIMED_BATCH_BYTES_MAX);
    batch->list  = arena_array(batch->arena, ClaimedCommand, count);
    batch->count = batch->left = count;
    batch->claimed_at          = offer->taken_at;
    for (int i = 0; i < count; i++) {
        batch->list[i]            = started[i];
        batch->list[i].command_id = arena_text(batch->arena, started[i].command_id);
        batch->list[i].type       = arena_text(batch->arena, started[i].type);
        batch->list[i].payload    = arena_text(batch->arena, started[i].payload);
        batch->list[i].loaded     = arena_text(batch->arena, started[i].loaded);
    }
    batch_unpack(batch, offer->worker->options.handler);
    return batch;
}

void offer_end(Offer *offer, const ClaimedCommand *started, int count)
{
    scoped(claimed_batch_free) ClaimedBatch *batch  = count > 0 ? batch_make(offer, started, count) : NULL;
    Worker                                  *worker = offer->worker;

    if (batch) {
        claimed_batch_measure(worker, batch, count);
        metric_add(&bus_metrics.claimed, count);
        metric_add(&bus_metrics.started, count);
        sample_claimed(worker->options.domain, started, count);
    }
    scoped(mutex_unlock) Mutex *held = mutex_hold(&worker->mutex);

    worker->offered -= offer->slots;
    worker->counts.claimed += count;
    if (batch && !worker->closing)
        executions_add(worker, take(batch));
    else /* its deadline to stop has passed: the leases expire */
        worker->counts.lost += count;
    if (!worker->is_offering) /* else the dispatcher waits for no handler */
        cond_signal(&worker->changed);
    cond_broadcast(&worker->offer_ended);
}
