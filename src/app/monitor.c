/*
 * monitor.c - see monitor.h. A step works in batches; a step that several pods run at the same time claims its rows.
 *
 * A pod that has nothing to do asks the database less than once a second in all: steps read what went through this process
 * (the metrics) every second or so, and ask the database when that changed, when the last answer said that more is to come, or
 * after an idle period.
 */
#include "app/monitor.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app/alert_rules.h"
#include "app/alert_webhook.h"
#include "base/log.h"
#include "base/uuid.h"
#include "bus/bulk.h"
#include "bus/dead_letter.h"
#include "bus/metric.h"
#include "bus/sample.h"
#include "client/metric.h"
#include "pg/migrate.h"
#include "pg/stat.h"
#include "pg/tally.h"
#include "pg/tx.h"
#include "process/process.h"
#include "rating/game.h"
#include "schedule/metric.h"
#include "schedule/schedule.h"
#include "sql.h"
#include "wallet/metric.h"

#define STEP_MS           10000
#define PROCESSES_MS      3000
#define PROCESSES_TASK    "processes"
#define RELEASE_MS        1000
#define REVIVE_MS         5000
#define BACKLOG_MS        15000
#define LETTERS_IDLE_MS   20000
#define LETTERS_MS        1000 /* between two readings of the number of letters, which cost no statement */
#define LETTERS_ROWS      100  /* in one batch */
#define REQUEUE_MS        1000
#define PRUNE_ROWS        1000 /* in one batch */
#define PRUNE_STEP_MS     300
#define PRUNE_IDLE_MS     20000 /* after all that can be old enough was read */
#define STAT_TASK_MS      2000  /* between two checks of the clock */
#define STAT_DELETE_ROWS  10000 /* as in sql/base/stat.sql: a whole batch says that there may be more */
#define SCHEMA_MS         30000
#define MAINTAIN_MS       60000
#define EXPIRE_MS         500
#define BULK_MS           60000 /* a new operation notifies */
#define BULK_STEP_MS      300
#define BULK_SKIP_MS      2000
#define BULK_TASK         "bulk"
#define SEAL_MS           1000
#define SEAL_IDLE_MS      20000
#define IDLE_MS           5000
#define SCHEDULES_MS      1000
#define SCHEDULES_IDLE_MS 600000 /* the claim of tasks says when a schedule is due, too */
#define SCHEDULES_LAG_MS  2000
#define SCHEDULES_TASK    "schedules"
#define SEAL_ROWS         1000
#define EXPIRE_ROWS       100 /* their wallets stay locked until the end of the batch */
#define EXPIRE_FULL_MS    60000
#define LEDGER_STEP_MS    500

/* ---- idle periods ---- */

/* What went through this process: it changes when the database may hold something new. */
static int64_t activity_sum(Metric *const *metrics, size_t count)
{
    int64_t sum = 0;

    for (size_t i = 0; i < count; i++)
        sum += metric_value(metrics[i]);
    return sum;
}

static int64_t bus_activity(void)
{
    static Metric *const metrics[] = {
        &bus_metrics.sent_new,          &bus_metrics.sent_known,      &bus_metrics.sent_refused,
        &bus_metrics.claimed,           &bus_metrics.settled_retried, &bus_metrics.settled_failed,
        &bus_metrics.settled_completed, &bus_metrics.settled_lost,    &bus_metrics.settled_rejected,
        &bus_metrics.settled_snoozed,
    };

    return activity_sum(metrics, COUNT(metrics));
}

static int64_t ledger_activity(void)
{
    static Metric *const metrics[] = {&wallet_metrics.posted, &wallet_metrics.refused, &wallet_metrics.replayed};

    return activity_sum(metrics, COUNT(metrics));
}

/* true: nothing new went through this process, and the idle period is not over. */
static bool idle_goes_on(Idle *idle, int64_t activity)
{
    bool is_same = activity == idle->activity;

    idle->activity = activity;
    return is_same && mono_before(clock_mono(), idle->until);
}

/* The database was asked; until when is that enough? */
static void idle_begin(Idle *idle, bool more, int idle_ms)
{
    idle->until = !more ? mono_plus_ms(clock_mono(), idle_ms) : (Mono){0};
}

/* ---- alerts ---- */

static ErrorCode task_alerts(void *context, TaskRun *run, Error *reterr)
{
    Daemon *daemon = context;

    (void)run;
    (void)reterr;
    alert_webhooks_take_over(daemon);
    alerts_step(daemon->api.alerts);
    return OK;
}

/* ---- dead letters ---- */

/* Letters of applications, whose types name a domain of the bus. */
static ErrorCode letters_forward(Daemon *daemon, Deadline deadline, Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions options   = {.name = "dead-letter-forward", .deadline = deadline, .arena = arena, .keyed = true};
    int64_t   forwarded = 0;

    do
        TRY(db_call(daemon->app->pool, &options, sql_bus_dead_letter_forward,
                    DB_ARGS(db_i32(LETTERS_ROWS), db_i32((int32_t)daemon->app->settings.dlq_tries),
                            db_i32((int32_t)daemon->app->settings.dlq_every)),
                    &db_i64_shape, &forwarded, reterr));
    while (forwarded >= LETTERS_ROWS && !deadline_passed(deadline));
    return OK;
}

static ErrorCode letters_step(Daemon *daemon, TaskRun *run, DeadLetterType *list, int count, Error *reterr)
{
    DeadLetterTypes types = {list, count, (int)daemon->app->settings.dlq_tries, (int)daemon->app->settings.dlq_every,
                             0};
    int             tried, due_ms;

    TRY(dead_letter_step(daemon->app->pool, run->deadline, types, &tried, reterr));
    TRY(dead_letter_next(daemon->app->pool, run->deadline, types, &due_ms, reterr));
    if (due_ms < run->next_ms)
        run->next_ms = due_ms > LETTERS_MS ? due_ms : LETTERS_MS;
    return OK;
}

/* As of the last claim of tasks: an idle pod asks for nothing more. */
static bool letters_exist(const Daemon *daemon, TaskRun *run)
{
    if (daemon->app->settings.dlq_every < run->next_ms)
        run->next_ms = (int)daemon->app->settings.dlq_every;
    if (metric_value(&bus_metrics.dead_letters) > 0)
        return true;
    run->next_ms = LETTERS_MS;
    return false;
}

static ErrorCode task_dead_letters(void *context, TaskRun *run, Error *reterr)
{
    Daemon        *daemon = context;
    DeadLetterType list[] = {
        {"reply",       reply_retry      },
        {"on_complete", on_complete_retry},
        {GAME_MATCH,    bot_letter_retry },
        {GAME_UNDO,     bot_letter_retry },
    };

    if (!letters_exist(daemon, run))
        return OK;
    TRY(letters_forward(daemon, run->deadline, reterr));
    return letters_step(daemon, run, list, COUNT(list), reterr);
}

/* They wait for a webhook to be set. */
static ErrorCode task_alert_webhooks(void *context, TaskRun *run, Error *reterr)
{
    Daemon        *daemon = context;
    DeadLetterType list[] = {
        {"alert_webhook", .call = alert_webhook_retry, .context = daemon}
    };
    char url[sizeof daemon->webhook];

    if (!letters_exist(daemon, run) || !alert_webhook_url(daemon, url, sizeof url))
        return OK;
    return letters_step(daemon, run, list, COUNT(list), reterr);
}

/* ---- commands ---- */

/* Workers do this too; here it is done when none of them runs. */
static ErrorCode task_requeue(void *context, TaskRun *run, Error *reterr)
{
    Daemon *daemon = context;
    bool    is_idle;
    int     moved, next_ms, most_ms;

    if (idle_goes_on(&daemon->bus_idle, bus_activity()))
        return OK;
    is_idle = daemon->bus_activity == daemon->bus_idle.activity;
    most_ms = is_idle ? IDLE_MS : REQUEUE_MS;
    TRY(requeue_step(daemon->app->pool, run->deadline, &daemon->requeue, most_ms, &moved, &next_ms, reterr));
    daemon->bus_activity = daemon->bus_idle.activity;
    idle_begin(&daemon->bus_idle, /* more= */ !is_idle || moved > 0, next_ms);
    if (next_ms < run->next_ms)
        run->next_ms = next_ms;
    return OK;
}

static ErrorCode task_backlog(void *context, TaskRun *run, Error *reterr)
{
    Daemon        *daemon  = context;
    const Backlog *backlog = &daemon->backlog;
    char           subject[ALERT_SUBJECT_SIZE];

    TRY(backlog_step(daemon->app->pool, run->deadline, &daemon->backlog, reterr));
    if (backlog->deepest_domain[0] && strcmp(backlog->deepest_domain, backlog->oldest_domain) != 0)
        snprintf(subject, sizeof subject, "%s; most commands are queued in %s, about %" PRId64, backlog->oldest_domain,
                 backlog->deepest_domain, backlog->deepest);
    else
        snprintf(subject, sizeof subject, "%s", backlog->oldest_domain);
    alerts_subject(daemon->api.alerts, ALERT_WAITING, subject);
    return OK;
}

#define PRUNED_COLUMNS(X, T) \
    X(T, I64, gone, after)   \
    X(T, BOOL, over)
DB_ROW(Pruned, PRUNED_COLUMNS);
DB_SHAPE(pruned, Pruned, PRUNED_COLUMNS);

/* Two steps, each a transaction: the second is run although the first one failed. The first error is returned. */
static ErrorCode prune_batch(const App *app, Deadline deadline, Prune *prune, Pruned *ret_pruned, Error *reterr)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions                 options = {.name = "prune", .deadline = deadline, .arena = arena, .keyed = true};
    int64_t                   events  = 0;
    Error                     error   = {0};
    ErrorCode                 commands, audit;

    commands = db_call(app->pool, &options, sql_bus_prune,
                       DB_ARGS(db_i32(PRUNE_ROWS), db_i32((int32_t)app->settings.keep_commands_days),
                               db_i64(prune->after), db_i32((int32_t)app->settings.keep_keys_days)),
                       &pruned_shape, ret_pruned, reterr);
    if (commands == OK)
        prune->after = ret_pruned->after;
    options.name = "prune_audit";
    audit        = db_call(app->pool, &options, sql_bus_prune_audit,
                           DB_ARGS(db_i32(PRUNE_ROWS), db_i32((int32_t)app->settings.keep_audit_days)), &db_i64_shape, &events,
                    commands == OK ? reterr : &error);
    if (events > ret_pruned->gone)
        ret_pruned->gone = events;
    return commands == OK ? audit : commands;
}

/* As many batches as a step has time for: retention must not be slower than what it takes away comes in. */
static ErrorCode task_prune(void *context, TaskRun *run, Error *reterr)
{
    Daemon  *daemon = context;
    Deadline until  = deadline_sooner(run->deadline, deadline_in_ms(PRUNE_STEP_MS));
    Pruned   pruned = {0};

    do
        TRY(prune_batch(daemon->app, run->deadline, &daemon->prune, &pruned, reterr));
    while ((!pruned.over || pruned.gone >= PRUNE_ROWS) && !deadline_passed(until));
    if (pruned.over && pruned.gone < PRUNE_ROWS)
        run->next_ms = pruned.gone ? IDLE_MS : PRUNE_IDLE_MS;
    return OK;
}

static ErrorCode task_maintain(void *context, TaskRun *run, Error *reterr)
{
    Daemon         *daemon   = context;
    const Settings *settings = &daemon->app->settings;
    MaintainLimits  limits   = {.batch_expiry_ms   = settings->batch_expiry,
                                .keep_replies_days = settings->keep_replies_days,
                                .keep_letters_days = settings->keep_dead_letters_days,
                                .reply_queues_max  = (int)settings->reply_queues_max};
    bool            more;

    TRY(maintain_step(daemon->app->pool, run->deadline, &daemon->maintain, &limits, &more, reterr));
    if (more)
        run->next_ms = IDLE_MS;
    return OK;
}

/* Chunks of operations over many commands, for as long as a step has time. */
static ErrorCode task_bulk(void *context, TaskRun *run, Error *reterr)
{
    Daemon   *daemon = context;
    Deadline  until  = deadline_sooner(run->deadline, deadline_in_ms(BULK_STEP_MS));
    BulkStep  step;
    Error     skipped;
    ErrorCode code;
    bool      ran;

    do {
        scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);

        step = (BulkStep){0};
        code = bulk_step(daemon->app->pool, run->deadline, arena, /* operation_id= */ NULL, &ran, &step, reterr);
        if (code != OK) {
            run->next_ms = BULK_STEP_MS;
            if (bulk_skip(daemon->app->pool, deadline_in_ms(BULK_SKIP_MS), &skipped) != OK)
                log_write(LOG_WARN, "monitor", "cannot skip a bulk operation", LOG_STR("error", skipped.text));
            return code;
        }
        if (ran)
            waker_notify_names(daemon->api.waker, step.wake);
    } while (ran && !step.wait_ms && !deadline_passed(until));
    if (ran)
        run->next_ms = step.wait_ms;
    return OK;
}

static void bulk_begun(void *context, const char *channel, const char *payload)
{
    (void)channel;
    (void)payload;
    tasks_hasten(context, BULK_TASK);
}

/* ---- the ledger ---- */

typedef ErrorCode LedgerBatch(Pool *pool, Deadline deadline, int limit, int *ret_count, Error *reterr);

/* A whole batch says that more is left. A backlog does not delay other tasks for longer than a step. */
static ErrorCode ledger_batches(Daemon *daemon, Deadline deadline, LedgerBatch *batch, int rows, Idle *idle,
                                int idle_ms, Error *reterr)
{
    Deadline until = deadline_sooner(deadline, deadline_in_ms(LEDGER_STEP_MS));
    int      count, all = 0;

    if (idle_goes_on(idle, ledger_activity()))
        return OK;
    do {
        TRY(batch(daemon->app->pool, deadline, rows, &count, reterr));
        all += count;
    } while (count >= rows && !deadline_passed(until));
    idle_begin(idle, /* more= */ all > 0, idle_ms);
    return OK;
}

#define EXPIRED_COLUMNS(X, T) \
    X(T, I64, count, next_ms) \
    X(T, TIME, low)
DB_ROW(Expired, EXPIRED_COLUMNS);
DB_SHAPE(expired, Expired, EXPIRED_COLUMNS);

/* Calls start where the one before has found nothing older, so that the dead rows of holds that have ended are not read again; once a
 * minute at the first hold, because a transaction may commit a hold that was due while it ran.
 * The answer says when the next hold ends: of holds that this pod knows nothing of, only those that are placed and end within
 * an idle period are released late. */
static ErrorCode task_expire(void *context, TaskRun *run, Error *reterr)
{
    Daemon                   *daemon = context;
    scoped(arena_free) Arena *arena  = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions options = {.name = "expire-holds", .deadline = run->deadline, .arena = arena, .keyed = true};
    Expired   expired;

    if (idle_goes_on(&daemon->expire_idle, ledger_activity()))
        return OK;
    if (!mono_before(clock_mono(), daemon->expire_full_at))
        daemon->expire_low = 0;
    TRY(db_call(daemon->app->pool, &options, sql_app_expire,
                DB_ARGS(db_i32(EXPIRE_ROWS), daemon->expire_low ? db_i64(daemon->expire_low) : db_null()),
                &expired_shape, &expired, reterr));
    if (!daemon->expire_low)
        daemon->expire_full_at = mono_plus_ms(clock_mono(), EXPIRE_FULL_MS);
    daemon->expire_low = expired.low;
    idle_begin(&daemon->expire_idle, /* more= */ expired.count > 0 || expired.next_ms <= 0,
               expired.next_ms < IDLE_MS ? (int)expired.next_ms : IDLE_MS);
    if (expired.count >= EXPIRE_ROWS)
        run->next_ms = 0;
    return OK;
}

static ErrorCode task_seal(void *context, TaskRun *run, Error *reterr)
{
    Daemon *daemon = context;

    return ledger_batches(daemon, run->deadline, wallet_seal, SEAL_ROWS, &daemon->seal_idle, SEAL_IDLE_MS, reterr);
}

/* ---- schedules ---- */

/* As of now, a schedule is due in due_ms. */
static void schedules_due(Daemon *daemon, int64_t due_ms)
{
    Mono at = mono_plus_ms(clock_mono(), due_ms + atomic_load(&daemon->schedules_lag_ms));

    if (at.ns < atomic_load(&daemon->schedules_at))
        atomic_store(&daemon->schedules_at, at.ns);
}

/* Every monitor knows when the next schedule is due, and sleeps until then without a statement. One that finds nothing to fire at that
 * time asks later than the others from then on, so one pod fires and the others see that it does; one that fires asks at once. */
static ErrorCode schedules_step(Daemon *daemon, Deadline deadline, Error *reterr)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    int64_t                   at      = atomic_load(&daemon->schedules_at);
    int64_t                   unknown = INT64_MAX; /* until the answer; what is stored meanwhile stays */
    const char               *wake;
    int                       fired, due_ms;

    atomic_store(&daemon->schedules_at, unknown);
    if (schedules_fire(daemon->app->pool, deadline, arena, SCHEDULES_IDLE_MS, &fired, &due_ms, &wake, reterr) != OK) {
        atomic_store(&daemon->schedules_at, at);
        return reterr->code;
    }
    waker_notify_names(daemon->api.waker, wake);
    if (fired > 0 || at)
        atomic_store(&daemon->schedules_lag_ms, fired > 0 ? 0 : SCHEDULES_LAG_MS);
    at = mono_plus_ms(clock_mono(), due_ms + atomic_load(&daemon->schedules_lag_ms)).ns;
    (void)atomic_compare_exchange_strong(&daemon->schedules_at, &unknown, at);
    return OK;
}

static ErrorCode task_schedules(void *context, TaskRun *run, Error *reterr)
{
    Daemon *daemon = context;
    int64_t left_ms;

    if (pool_is_outdated(daemon->app->pool))
        return OK;
    if (!mono_before(clock_mono(), (Mono){atomic_load(&daemon->schedules_at)}))
        TRY(schedules_step(daemon, run->deadline, reterr));
    left_ms = mono_ms_between(clock_mono(), (Mono){atomic_load(&daemon->schedules_at)}) + 1;
    if (left_ms < run->next_ms)
        run->next_ms = left_ms > 0 ? (int)left_ms : 0;
    return OK;
}

static void schedule_changed(void *context, const char *channel, const char *payload)
{
    Daemon *daemon = context;

    (void)channel;
    (void)payload;
    atomic_store(&daemon->schedules_at, 0);
    tasks_hasten(daemon->tasks, SCHEDULES_TASK);
}

/* ---- counts ---- */

static ErrorCode task_tally(void *context, TaskRun *run, Error *reterr)
{
    Daemon *daemon = context;

    return tally_step(tally_own(), daemon->app->pool, run->deadline, reterr);
}

/* ---- numbers over time ---- */

static ErrorCode stat_store(Pool *pool, Deadline deadline, Error *reterr)
{
    ErrorCode code  = sample_measure(pool, deadline, reterr), stored;
    Error     error = {0};

    stored = stat_flush(pool, deadline, code == OK ? reterr : &error);
    return code == OK ? stored : code;
}

static ErrorCode task_stat(void *context, TaskRun *run, Error *reterr)
{
    Daemon *daemon = context;

    return stat_is_due() ? stat_store(daemon->app->pool, run->deadline, reterr) : OK;
}

static ErrorCode task_stat_maintain(void *context, TaskRun *run, Error *reterr)
{
    Daemon                   *daemon = context;
    scoped(arena_free) Arena *arena  = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions options = {.name = "stat_maintain", .deadline = run->deadline, .arena = arena, .keyed = true};
    int64_t   deleted;

    TRY(db_call(daemon->app->pool, &options, sql_pg_stat_maintain, DB_NONE, &db_i64_shape, &deleted, reterr));
    if (deleted >= STAT_DELETE_ROWS)
        run->next_ms = IDLE_MS;
    return OK;
}

/* ---- definitions of processes ---- */

static ErrorCode task_processes(void *context, TaskRun *run, Error *reterr)
{
    Daemon *daemon = context;

    return daemon->processes ? process_workers_step(daemon->processes, run->deadline, reterr) : OK;
}

static void definition_stored(void *context, const char *channel, const char *payload)
{
    (void)channel;
    (void)payload;
    tasks_hasten(context, PROCESSES_TASK);
}

/* ---- the schema ---- */

/* A newer program may have migrated it. That is logged, and the pod is not ready. */
static ErrorCode task_schema(void *context, TaskRun *run, Error *reterr)
{
    Daemon   *daemon = context;
    ErrorCode code   = migrate_watch(daemon->app->pool, &schema_embedded, run->deadline, reterr);

    return code == ERR_CONFLICT ? OK : code;
}

/* ---- the private PostgreSQL ---- */

static ErrorCode task_revive(void *context, TaskRun *run, Error *reterr)
{
    Daemon    *daemon = context;
    PoolStatus status;

    if (!daemon->app->cluster)
        return OK;
    pool_status(daemon->app->pool, &status);
    if (status.breaker == BREAKER_CLOSED && !cluster_is_down(daemon->app->cluster))
        return OK;
    /* A long recovery goes on by itself, and the next step sees how far it has come. */
    return cluster_revive(daemon->app->cluster, run->deadline, reterr);
}

/* ---- the table ---- */

/* Every pod watches itself, and every monitor shows how much work there is; the rest is done once for all pods. */
static const PeriodicTask table[] = {
    {"alerts", 2000, STEP_MS, .step = task_alerts},
    {"tally", TALLY_MS, STEP_MS, .step = task_tally},
    {"stat", STAT_TASK_MS, STEP_MS, .step = task_stat},
    {"stat-maintain", STAT_MS, STEP_MS, TASK_SINGLE, .role = ROLE_MONITOR, .step = task_stat_maintain},
    {PROCESSES_TASK, PROCESSES_MS, STEP_MS, .role = ROLE_WORKER, .step = task_processes},
    {"schema", SCHEMA_MS, STEP_MS, .step = task_schema},
    {"private-postgresql", 2000, REVIVE_MS, .target = TASK_EXTERNAL, .step = task_revive},
    {"backlog", BACKLOG_MS, STEP_MS, .role = ROLE_MONITOR, .step = task_backlog},
    {SCHEDULES_TASK, SCHEDULES_MS, STEP_MS, .role = ROLE_MONITOR, .step = task_schedules},
    {"dead-letters", LETTERS_IDLE_MS, STEP_MS, TASK_SINGLE, TASK_EXTERNAL, ROLE_MONITOR, task_dead_letters},
    {ALERT_WEBHOOK_TASK, LETTERS_IDLE_MS, STEP_MS, TASK_SINGLE, TASK_EXTERNAL, ROLE_MONITOR, task_alert_webhooks},
    {"requeue", REQUEUE_MS, STEP_MS, TASK_SINGLE, .role = ROLE_MONITOR, .step = task_requeue},
    {"prune", 1000, STEP_MS, TASK_SINGLE, .role = ROLE_MONITOR, .step = task_prune},
    {BULK_TASK, BULK_MS, STEP_MS, TASK_SINGLE, .role = ROLE_MONITOR, .step = task_bulk},
    {"maintain", MAINTAIN_MS, STEP_MS, TASK_SINGLE, .role = ROLE_MONITOR, .step = task_maintain},
    {"expire-holds", EXPIRE_MS, STEP_MS, TASK_SINGLE, .role = ROLE_MONITOR, .step = task_expire},
    {"seal", SEAL_MS, STEP_MS, TASK_SINGLE, .role = ROLE_MONITOR, .step = task_seal},
};

#define CLAIM_COLUMNS(X, T)                                                                                        \
    X(T, BOOL, is_held)                                                                                            \
    X(T, I64, letters_open, letters_failed, ledger_ahead_s, retention_jump_s, schedules_failing, schedules_due_ms, \
      handlers, handlers_failed, rate_limited)
DB_ROW(Claim, CLAIM_COLUMNS);
DB_SHAPE(claim, Claim, CLAIM_COLUMNS);

/* The lease on webhooks is for a pod that has one: another pod would send them nowhere. Returns how many names it claims; indexes[i] is where
 * the i-th of them stands in the names. */
static int names_claimed(Daemon *daemon, const char *const *names, int count, const char **ret_names, int *ret_indexes)
{
    char url[sizeof daemon->webhook];
    bool has_webhook = alert_webhook_url(daemon, url, sizeof url);
    int  claimed     = 0;

    for (int i = 0; i < count; i++)
        if (has_webhook || strcmp(names[i], ALERT_WEBHOOK_TASK) != 0) {
            ret_names[claimed]     = names[i];
            ret_indexes[claimed++] = i;
        }
    return claimed;
}

/* One statement every few seconds is what an idle pod costs: what alerts need comes along. */
static ErrorCode leases_claim(void *context, Deadline deadline, const char *const *names, int count, bool *ret_held,
                              Error *reterr)
{
    Daemon                   *daemon  = context;
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions                 options = {.name = "task-claim", .deadline = deadline, .arena = arena, .keyed = true};
    const char               *claimed[TASKS_MAX];
    int                       indexes[TASKS_MAX], claimed_count, row_count;
    Claim                    *rows;

    memset(ret_held, 0, (size_t)count * sizeof *ret_held);
    if (pool_is_outdated(
            daemon->app->pool)) /* the tasks of this program are for another schema: a newer pod takes them over */
        return OK;
    claimed_count = names_claimed(daemon, names, count, claimed, indexes);
    TRY(db_call_many(daemon->app->pool, &options, sql_app_task_claim,
                     DB_ARGS(db_texts(arena, claimed, claimed_count), db_text(daemon->holder), db_i32(TASKS_LEASE_MS)),
                     &claim_shape, &rows, &row_count, reterr));
    for (int i = 0; i < row_count && i < claimed_count; i++) {
        const Claim *claim = &rows[i];

        ret_held[indexes[i]] = claim->is_held;
        metric_set(&bus_metrics.dead_letters, claim->letters_open);
        metric_set(&bus_metrics.dead_letters_failed, claim->letters_failed);
        metric_set(&wallet_metrics.clock_ahead_s, claim->ledger_ahead_s);
        metric_set(&bus_metrics.retention_jump_s, claim->retention_jump_s);
        metric_set(&schedule_metrics.failing, claim->schedules_failing);
        schedules_due(daemon, claim->schedules_due_ms);
        metric_set(&bus_metrics.handlers_failing_percent,
                   alert_handlers_percent(claim->handlers, claim->handlers_failed));
        metric_set(&client_metrics.rate_limited_last_hour, claim->rate_limited);
    }
    return OK;
}

Tasks *monitor_start(Daemon *daemon)
{
    Tasks *tasks;

    uuid_new(daemon->holder);
    tasks         = tasks_new(table, COUNT(table), (unsigned)daemon->app->settings.role, leases_claim, daemon);
    daemon->tasks = tasks;
    if (daemon->listen) {
        listen_add(daemon->listen, DEFINITION_CHANNEL, definition_stored, tasks);
        listen_add(daemon->listen, BULK_CHANNEL, bulk_begun, tasks);
        listen_add(daemon->listen, SCHEDULE_CHANNEL, schedule_changed, daemon);
    }
    return tasks;
}

void monitor_release(Daemon *daemon)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions options = {.name = "task-release", .deadline = deadline_in_ms(RELEASE_MS), .arena = arena, .keyed = true};
    Error     error   = {0};
    bool      released;

    if (stat_store(daemon->app->pool, deadline_in_ms(RELEASE_MS), &error) != OK)
        log_error(LOG_INFO, "stat", "what was counted in the last minute was not stored", &error);
    if (!(daemon->app->settings.role & ROLE_MONITOR))
        return;
    if (db_call(daemon->app->pool, &options, sql_app_task_release, DB_ARGS(db_text(daemon->holder)), &db_bool_shape,
                &released, &error) != OK)
        log_error(LOG_INFO, "task", "leases on periodic tasks were not given back, and end by themselves", &error);
}
