/*
 * handler_shared.c - several commands in one transaction, and how many; see handler_tx.h and ADR 47.
 *
 * It is tried once. After any failure, an error, a lock, a time limit, a lost lease, a lost commit, the worker runs each command that has no status
 * alone: so nothing here says anything about a command, and no neighbour costs it more than this one try.
 */
#include "base/memory.h"
#include "bus/handler_tx.h"
#include "bus/metric.h"
#include "pg/tx.h"

#define SHARED_DEADLINE_MS 10000 /* with the commit */

typedef struct {
    TxHandler         *handler;
    Job *const        *jobs;
    SettleItem *const *items;
    int                count;
    TxSharedBody      *body;
    void              *context;
    int64_t            us; /* of the body */
} SharedRun;

/* ---- how many ---- */

int tx_handler_shared_most(Handler *base)
{
    TxHandler                  *handler = (TxHandler *)base;
    scoped(mutex_unlock) Mutex *held    = mutex_hold(&handler->mutex);

    return mono_before(clock_mono(), handler->shared_at) ? 1 : handler->shared_most;
}

/* The time of the commit is no reason to share less. */
void tx_handler_took(TxHandler *handler, int count, int64_t us)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&handler->mutex);
    int                         most = handler->shared_most;

    if (mono_before(clock_mono(), handler->shared_at))
        return;
    if (us > SHARED_US)
        most = (int)((int64_t)SHARED_US * count / us);
    else if (count >= most && 2 * us < SHARED_US)
        most = 2 * count;
    handler->shared_most = most < 1 ? 1 : most > HANDLER_SHARED_MAX ? HANDLER_SHARED_MAX : most;
    if (count > 1)
        handler->shared_pause_ms /= 2;
}

static void shared_pause(TxHandler *handler)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&handler->mutex);
    int                         ms   = 2 * handler->shared_pause_ms;

    ms                       = ms < SHARED_PAUSE_MS ? SHARED_PAUSE_MS : ms;
    handler->shared_pause_ms = ms < SHARED_PAUSE_MS_MAX ? ms : SHARED_PAUSE_MS_MAX;
    handler->shared_most     = 1;
    handler->shared_at       = mono_plus_ms(clock_mono(), handler->shared_pause_ms);
}

/* ---- the transaction ---- */

static void shared_publish(const SharedRun *run, Conn *conn)
{
    for (int i = 0; i < run->count; i++)
        tx_handler_publish(run->handler, run->jobs[i], conn);
}

static bool shared_is_stopped(const SharedRun *run)
{
    bool is_stopped = false;

    for (int i = 0; i < run->count; i++)
        is_stopped |= job_is_stopped(run->jobs[i]);
    return is_stopped;
}

/* What a function raises is no outage of this database, regardless of its SQLSTATE. */
static ErrorCode shared_body(Tx *tx, void *context, Error *reterr)
{
    SharedRun *run   = context;
    Mono       began = clock_mono();
    ErrorCode  code;

    shared_publish(run, tx->conn);
    code = shared_is_stopped(run) ? fail(reterr, ERR_CONFLICT, "a handler was stopped")
                                  : run->body(tx, run->jobs, run->items, run->count, run->context, reterr);
    shared_publish(run, NULL);
    run->us = mono_us_between(began, clock_mono());
    /* A function can catch the end of its time, which would be longer if it ran alone. */
    if (code == OK && run->us >= SHARED_LIMIT_MS * 1000)
        return fail(reterr, ERR_CONFLICT, "the time of the shared statement was over");
    if (code == OK || conn_transaction(tx->conn) != PQTRANS_INERROR)
        return code;
    error_set_sqlstate(reterr, "");
    return reterr->code = ERR_CONFLICT;
}

/* All jobs began at the same time, and have the same deadline. */
static Deadline shared_deadline(Job *const *jobs)
{
    return deadline_sooner(jobs[0]->deadline, deadline_in_ms(SHARED_DEADLINE_MS));
}

static void items_forget(SettleItem *const *items, int count)
{
    for (int i = 0; i < count; i++) {
        items[i]->settled = false;
        items[i]->status  = NULL;
        items[i]->wake    = NULL;
    }
}

static int items_undone(SettleItem *const *items, int count)
{
    int undone = 0;

    for (int i = 0; i < count; i++)
        undone += !items[i]->status;
    return undone;
}

void tx_handler_run_shared(TxHandler *handler, Job *const *jobs, SettleItem *const *items, int count,
                           TxSharedBody *body, void *context)
{
    SharedRun run     = {handler, jobs, items, count, body, context, .us = 0};
    TxOptions options = {.name         = "handlers",
                         .deadline     = shared_deadline(jobs),
                         .arena        = jobs[0]->arena,
                         .tries_max    = 1,
                         .keyed        = true,
                         .statement_ms = SHARED_LIMIT_MS,
                         .is_foreign   = true};
    Error     error   = {0};

    if (tx_run(handler->pool, &options, shared_body, &run, &error) != OK)
        items_forget(items, count);

    int undone = items_undone(items, count);

    metric_add(&bus_metrics.shared_calls, 1);
    metric_add(&bus_metrics.shared_undone, undone);
    if (4 * undone > count)
        shared_pause(handler);
    else
        tx_handler_took(handler, count, run.us);
}
