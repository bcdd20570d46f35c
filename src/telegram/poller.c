/*
 * poller.c - see poller.h: the lease, and the loop of the process that has it.
 */
#include "telegram/poller.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "pg/tx.h"
#include "sql.h"
#include "telegram/metric.h"
#include "telegram/poller_internal.h"

#define KEEP_MS      (TELEGRAM_LEASE_MS / 3)
#define QUERY_MS     2000
#define BACK_MS      3000
#define BACK_MORE_MS 4000 /* at random */
#define WAIT_MS      1000
#define LIMIT        100

/* ---- the lease ---- */

#define LEASED_COLUMNS(X, T) \
    X(T, BOOL, is_held)      \
    X(T, TEXT, username)     \
    X(T, I32, waiting)
DB_ROW(Leased, LEASED_COLUMNS);
DB_SHAPE(leased, Leased, LEASED_COLUMNS);

static bool lease_may_ask(TelegramPoller *poller)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&poller->mutex);

    return !mono_before(clock_mono(), poller->back_until);
}

/* Under the mutex. */
static void lease_set(TelegramPoller *poller, bool is_held)
{
    if (is_held && !poller->held) {
        poller->term++;
        log_write(LOG_INFO, "telegram", "this pod polls for the updates of the bot",
                  LOG_INT("bot", poller->options.intake.bot_id));
    }
    poller->held = is_held;
    metric_set(&telegram_metrics.polling, is_held);
    cond_broadcast(&poller->changed);
}

static void lease_read(TelegramPoller *poller, const Leased *leased, Mono asked)
{
    scoped(mutex_unlock) Mutex *held    = mutex_hold(&poller->mutex);
    bool                        is_held = leased->is_held && !mono_before(asked, poller->back_until);

    if (leased->username)
        snprintf(poller->name, sizeof poller->name, "%s", leased->username);
    metric_set(&telegram_metrics.outbox, is_held ? leased->waiting : 0);
    if (is_held != poller->held)
        lease_set(poller, is_held);
}

static void lease_ask(TelegramPoller *poller, bool *failing)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions options = {.name = "telegram-lease", .deadline = deadline_in_ms(QUERY_MS), .arena = arena, .keyed = true};
    Error     error   = {0};
    Mono      asked   = clock_mono();
    Leased    leased;

    if (db_call(poller->options.intake.pool, &options, sql_telegram_lease,
                DB_ARGS(db_i64(poller->options.intake.bot_id), db_uuid(poller->holder), db_i32(TELEGRAM_LEASE_MS),
                        db_i32(poller->options.outbox_max)),
                &leased_shape, &leased, &error) == OK) {
        lease_read(poller, &leased, asked);
        *failing = false;
        return;
    }
    /* The holder polls on, so that users are notified. If another process has the lease by now, its poll ends this
     * one's with 409. */
    if (!*failing)
        log_error(LOG_WARN, "telegram", "cannot renew the bot's lease", &error);
    *failing = true;
}

static void lease_release(TelegramPoller *poller)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions options = {.name = "telegram-lease", .deadline = deadline_in_ms(QUERY_MS), .arena = arena, .keyed = true};
    Error     error   = {0};
    char     *none;

    if (db_call(poller->options.intake.pool, &options, sql_telegram_lease_release, DB_ARGS(db_uuid(poller->holder)),
                &db_text_shape, &none, &error) != OK)
        log_error(LOG_WARN, "telegram", "cannot release the bot's lease; it will expire", &error);
}

void poller_step_back(TelegramPoller *poller)
{
    mutex_lock(&poller->mutex);
    poller->back_until = mono_plus_ms(clock_mono(), BACK_MS + (int)randombytes_uniform(BACK_MORE_MS));
    lease_set(poller, false);
    mutex_unlock(&poller->mutex);
    lease_release(poller);
}

/* ---- another program with the token ---- */

/* Set the metric: how many there were lately. */
static void conflicts_show(TelegramPoller *poller)
{
    int  known  = poller->conflicts_count < POLLER_CONFLICTS_MAX ? poller->conflicts_count : POLLER_CONFLICTS_MAX;
    int  recent = 0;
    Mono now    = clock_mono();

    for (int i = 0; i < known; i++)
        recent += mono_ms_between(poller->conflicts[i], now) < POLLER_CONFLICTS_MS;
    metric_set(&telegram_metrics.conflicts_recent, recent);
}

void poller_conflict(TelegramPoller *poller)
{
    metric_add(&telegram_metrics.conflicts, 1);
    poller->conflicts[poller->conflicts_count++ % POLLER_CONFLICTS_MAX] = clock_mono();
    conflicts_show(poller);
}

/* ---- threads ---- */

bool poller_is_stopped(TelegramPoller *poller)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&poller->mutex);

    return poller->stopping;
}

bool poller_is_held(TelegramPoller *poller)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&poller->mutex);

    return poller->held;
}

void poller_pause(TelegramPoller *poller, Deadline deadline)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&poller->mutex);

    while (!poller->stopping && !deadline_passed(deadline))
        (void)cond_wait(&poller->changed, &poller->mutex, deadline);
}

static void thread_end(TelegramPoller *poller)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&poller->mutex);

    poller->running--;
    cond_broadcast(&poller->changed);
}

static void *keeper_run(void *context)
{
    TelegramPoller *poller  = context;
    bool            failing = false;

    while (!poller_is_stopped(poller)) {
        if (lease_may_ask(poller))
            lease_ask(poller, &failing);
        poller_pause(poller, deadline_in_ms(KEEP_MS));
    }
    mutex_lock(&poller->mutex);
    bool is_held = poller->held;

    lease_set(poller, false);
    mutex_unlock(&poller->mutex);
    if (is_held)
        lease_release(poller);
    thread_end(poller);
    return NULL;
}

/* The term, 0: this process has none. */
static int term_wait(TelegramPoller *poller)
{
    scoped(mutex_unlock) Mutex *held     = mutex_hold(&poller->mutex);
    Deadline                    deadline = deadline_in_ms(WAIT_MS);

    while (!poller->held && !poller->stopping && !deadline_passed(deadline))
        (void)cond_wait(&poller->changed, &poller->mutex, deadline);
    return poller->held && !poller->stopping ? poller->term : 0;
}

static void *loop_run(void *context)
{
    TelegramPoller *poller = context;

    while (!poller_is_stopped(poller)) {
        int term = term_wait(poller);

        if (term == 0) {
            conflicts_show(poller);
            continue;
        }
        if (term != poller->term_ready) {
            poller->offset      = 0;
            poller->steps_done  = 0;
            poller->steps_tries = 0;
            poller->steps_at    = (Mono){0};
            poller->is_started  = false;
            poller->term_ready  = term;
        }
        conflicts_show(poller);
        poller_term_start(poller);
        poller_prune(poller);
        if (poller->options.is_webhook)
            poller_pause(poller, deadline_in_ms(WAIT_MS));
        else
            poller_poll(poller);
    }
    thread_end(poller);
    return NULL;
}

/* ---- life ---- */

static void poller_drop(TelegramPoller *poller)
{
    cond_done(&poller->changed);
    mutex_done(&poller->mutex);
    free(poller);
}

ErrorCode telegram_poller_new(const TelegramPollerOptions *options, TelegramPoller **ret_poller, Error *reterr)
{
    TelegramPoller *poller = memory_new(1, sizeof *poller);

    poller->options = *options;
    poller->limit   = LIMIT;
    poller->running = 2;
    uuid_new(poller->holder);
    mutex_init(&poller->mutex);
    cond_init(&poller->changed);
    if (!thread_try_start("bot-lease", keeper_run, poller, &poller->keeper)) {
        poller_drop(poller);
        return fail(reterr, ERR_INTERNAL, "cannot start a thread for the bot");
    }
    if (!thread_try_start("bot-poll", loop_run, poller, &poller->loop)) {
        thread_end(poller);
        telegram_poller_stop(poller);
        thread_join(poller->keeper);
        poller_drop(poller);
        return fail(reterr, ERR_INTERNAL, "cannot start a thread for the bot");
    }
    *ret_poller = poller;
    return OK;
}

void telegram_poller_stop(TelegramPoller *poller)
{
    mutex_lock(&poller->mutex);
    poller->stopping = true;
    cond_broadcast(&poller->changed);
    mutex_unlock(&poller->mutex);
    telegram_bot_stop(poller->options.bot);
}

bool telegram_poller_wait(TelegramPoller *poller, Deadline deadline)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&poller->mutex);

    while (poller->running > 0 && !deadline_passed(deadline))
        (void)cond_wait(&poller->changed, &poller->mutex, deadline);
    return poller->running == 0;
}

void telegram_poller_free(TelegramPoller *poller)
{
    thread_join(poller->keeper);
    thread_join(poller->loop);
    poller_drop(poller);
}

void telegram_poller_name(TelegramPoller *poller, char *ret_name)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&poller->mutex);

    snprintf(ret_name, TELEGRAM_NAME_SIZE, "%s", poller->name);
}
