/*
 * monitor.c - see monitor.h. A step works in bites and may run in every pod at once.
 */
#include "app/monitor.h"

#include <string.h>

#include "base/log.h"
#include "base/metric.h"
#include "ops/webhook.h"
#include "pg/dead_letter.h"
#include "pg/tx.h"
#include "sql.h"

#define WEBHOOK_MS     5000
#define STEP_MS        10000
#define REVIVE_MS      5000
#define BRING_BACK_MS  1000
#define PRUNE_ROWS     1000 /* in one bite */
#define PRUNE_STEP_MS  300
#define PRUNE_REST_MS  5000 /* after all that can be old enough was looked at */
#define EXPIRE_MS      500
#define SEAL_MS        1000
#define LEDGER_ROWS    1000 /* likewise */
#define LEDGER_STEP_MS 500

/* ---- alerts and their webhook ---- */

static bool webhook_url(Daemon *daemon, char *ret_url, size_t size)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&daemon->mutex);

    snprintf(ret_url, size, "%s", daemon->webhook);
    return ret_url[0] != '\0';
}

void monitor_alert(void *context, const Alert *alert)
{
    Daemon          *daemon = context;
    char             url[sizeof daemon->webhook], key[128];
    Error            why = {0}, error = {0};
    int64_t          id;
    scoped_text Text text = {0};

    if (!webhook_url(daemon, url, sizeof url))
        return;
    text_init(&text, NULL, TEXT_MAX_LINE);
    alert_write(alert, &text);
    snprintf(key, sizeof key, "%s-%lld", alert->name, (long long)alert->since.us);
    if (webhook_post(url, key, text_string(&text), deadline_in_ms(WEBHOOK_MS), &why) == OK)
        return;
    log_error(LOG_WARN, "alert", "the webhook failed and is kept as a dead letter", &why);
    if (dead_letter_put(daemon->app->pool, deadline_in_ms(WEBHOOK_MS),
                        &(DeadLetterNew){"alert_webhook", key, text_string(&text), &why,
                                         (int)daemon->app->settings.dlq_every},
                        &id, &error) != OK)
        log_error(LOG_ERROR, "alert", "the webhook could not be kept either", &error);
}

/* The receiver knows the key, so posting once more after a lost settle is harmless. */
static ErrorCode webhook_again(Tx *tx, const char *key, const char *data, void *context, Error *reterr)
{
    Daemon *daemon = context;
    char    url[sizeof daemon->webhook];

    if (!webhook_url(daemon, url, sizeof url))
        return fail(reterr, ERR_REFUSED, "PAWL_ALERT_WEBHOOK is not set any more");
    return webhook_post(url, key, data, deadline_sooner(tx->deadline, deadline_in_ms(WEBHOOK_MS)), reterr);
}

static ErrorCode job_alerts(void *context, Deadline deadline, Error *reterr)
{
    Daemon *daemon = context;

    (void)deadline;
    (void)reterr;
    alerts_step(daemon->alerts);
    return OK;
}

/* ---- dead letters ---- */

static ErrorCode job_dead_letters(void *context, Deadline deadline, Error *reterr)
{
    Daemon        *daemon = context;
    DeadLetterType list[] = {
        {"alert_webhook", webhook_again, daemon}
    };
    int tried;

    return dead_letter_step(daemon->app->pool, deadline,
                            (DeadLetterTypes){list, COUNT(list), (int)daemon->app->settings.dlq_tries,
                                              (int)daemon->app->settings.dlq_every, 0},
                            &tried, reterr);
}

static ErrorCode failed_count(Tx *tx, void *context, Error *reterr)
{
    return db_get_i64(tx, sql_app_letters_failed, DB_NONE, context, reterr);
}

static ErrorCode job_dead_letter_count(void *context, Deadline deadline, Error *reterr)
{
    Daemon                   *daemon  = context;
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions                 options = {.name      = "dead-letter-count",
                                         .deadline  = deadline_sooner(deadline, deadline_in_ms(STEP_MS)),
                                         .arena     = arena,
                                         .read_only = true};
    int64_t                   count, failed;

    TRY(dead_letter_count(daemon->app->pool, options.deadline, &count, reterr));
    TRY(tx_run(daemon->app->pool, &options, failed_count, &failed, reterr));
    metric_set(METRIC_DLQ_SIZE, count);
    metric_set(METRIC_DLQ_FAILED, failed);
    return OK;
}

/* ---- commands ---- */

/* Workers do this too; here it is done when none of them runs. */
static ErrorCode job_bring_back(void *context, Deadline deadline, Error *reterr)
{
    Daemon *daemon = context;
    int     moved, next_ms;

    return bring_back_step(daemon->app->pool, deadline, &daemon->bring_back, BRING_BACK_MS, &moved, &next_ms, reterr);
}

static ErrorCode job_backlog(void *context, Deadline deadline, Error *reterr)
{
    Daemon *daemon = context;

    return backlog_step(daemon->app->pool, deadline_sooner(deadline, deadline_in_ms(STEP_MS)), &daemon->backlog,
                        reterr);
}

#define PRUNED_COLUMNS(X, T)              \
    X(T, int64_t, DB_I64, gone)           \
    X(T, int64_t, DB_I64, commands_after) \
    X(T, int64_t, DB_I64, audit_after)    \
    X(T, bool, DB_BOOL, over)
typedef struct {
    PRUNED_COLUMNS(DB_FIELD, Pruned)
} Pruned;
DB_SHAPE(pruned, Pruned, PRUNED_COLUMNS);

static ErrorCode prune_bite(const App *app, Deadline deadline, Prune *prune, Pruned *ret_pruned, Error *reterr)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions                 options = {.name = "prune", .deadline = deadline, .arena = arena, .keyed = true};

    TRY(db_call(app->pool, &options, sql_bus_prune,
                DB_ARGS(db_i32(PRUNE_ROWS), db_i32((int32_t)app->settings.keep_commands_days),
                        db_i32((int32_t)app->settings.keep_audit_days), db_i64(prune->commands_after),
                        db_i64(prune->audit_after)),
                &pruned_shape, ret_pruned, reterr));
    prune->commands_after = ret_pruned->commands_after;
    prune->audit_after    = ret_pruned->audit_after;
    return OK;
}

/* As many bites as a step has time for: retention must not be slower than what it takes away comes in. */
static ErrorCode job_prune(void *context, Deadline deadline, Error *reterr)
{
    Daemon  *daemon = context;
    Deadline until  = deadline_sooner(deadline, deadline_in_ms(PRUNE_STEP_MS));
    Pruned   pruned = {0};

    if (mono_before(clock_mono(), daemon->prune.rest_until))
        return OK;
    do
        TRY(prune_bite(daemon->app, deadline, &daemon->prune, &pruned, reterr));
    while ((!pruned.over || pruned.gone >= PRUNE_ROWS) && !deadline_passed(until));
    if (pruned.over && pruned.gone < PRUNE_ROWS)
        daemon->prune.rest_until = mono_plus_ms(clock_mono(), PRUNE_REST_MS);
    return OK;
}

/* ---- the ledger ---- */

typedef ErrorCode LedgerBite(Pool *pool, Deadline deadline, int limit, int *ret_count, Error *reterr);

/* Whole bites say that more is left. A backlog does not hold up the other jobs for longer than a step. */
static ErrorCode ledger_bites(Daemon *daemon, Deadline deadline, LedgerBite *bite, Error *reterr)
{
    Deadline until = deadline_sooner(deadline, deadline_in_ms(LEDGER_STEP_MS));
    int      count;

    do
        TRY(bite(daemon->app->pool, deadline, LEDGER_ROWS, &count, reterr));
    while (count >= LEDGER_ROWS && !deadline_passed(until));
    return OK;
}

static ErrorCode job_expire(void *context, Deadline deadline, Error *reterr)
{
    return ledger_bites(context, deadline, wallet_expire, reterr);
}

static ErrorCode job_seal(void *context, Deadline deadline, Error *reterr)
{
    return ledger_bites(context, deadline, wallet_seal, reterr);
}

/* ---- the private PostgreSQL ---- */

static ErrorCode job_revive(void *context, Deadline deadline, Error *reterr)
{
    Daemon    *daemon = context;
    PoolStatus status;

    if (!daemon->app->cluster)
        return OK;
    pool_status(daemon->app->pool, &status);
    if (status.breaker == BREAKER_CLOSED)
        return OK;
    /* A long recovery goes on by itself: the next turn looks again, and alerts are not held up. */
    return cluster_revive(daemon->app->cluster, deadline_sooner(deadline, deadline_in_ms(REVIVE_MS)), reterr);
}

/* Every pod watches itself; what all pods share is for those with the role monitor, so that it is told once. */
static const Job table[] = {
    {"alerts",             2000,          job_alerts           },
    {"private-postgresql", 2000,          job_revive           },
    {"dead-letters",       5000,          job_dead_letters     },
    {"dead-letter-count",  5000,          job_dead_letter_count},
    {"bring-back",         BRING_BACK_MS, job_bring_back       },
    {"backlog",            5000,          job_backlog          },
    {"prune",              1000,          job_prune            },
    {"expire-holds",       EXPIRE_MS,     job_expire           },
    {"seal",               SEAL_MS,       job_seal             },
};
#define EVERY_POD 2

Jobs *monitor_start(Daemon *daemon)
{
    bool is_monitor = daemon->app->settings.role & ROLE_MONITOR;

    return jobs_new(table, is_monitor ? COUNT(table) : EVERY_POD, daemon);
}
