/*
 * part.c - see part.h. The table is at the end.
 */
#include "app/part.h"

#include "api/bound.h"
#include "api/openapi.h"
#include "api/routes.h"
#include "app/alert_rules.h"
#include "app/alert_webhook.h"
#include "app/descriptors.h"
#include "app/monitor.h"
#include "base/log.h"
#include "ops/webhook.h"
#include "pg/combiner.h"
#include "telegram/bot.h"

/* A worker that failed for good (a right was revoked, a function dropped) is tried again after this time. */
#define WORKER_RESTART_MS  10000
#define STEP_REDIRECTS_MAX 5

typedef struct {
    const char *name;
    unsigned    roles; /* starts with any of these; 0: with all */
    ErrorCode (*start)(Daemon *daemon, Error *reterr);
    /* The rest is called also when start was not, or failed half-way; NULL: nothing to do. */
    void (*stop)(Daemon *daemon, Deadline drained);
    /* with_grace: also for as long as it needs to end what outlasted the deadline. false: some work is left. */
    bool (*wait)(Daemon *daemon, Deadline deadline, bool with_grace);
    void (*free)(Daemon *daemon);
} Part;

/* ---- notifications ---- */

static ErrorCode listen_start(Daemon *daemon, Error *reterr)
{
    (void)reterr;
    daemon->listen = listen_new(daemon->app->settings.listen_database_url, daemon->app->pool);
    return OK;
}

/* Its callbacks reach into other parts, so it goes before they do. */
static void listen_stop(Daemon *daemon, Deadline drained)
{
    (void)drained;
    if (daemon->listen)
        listen_free(take(daemon->listen));
}

/* ---- what the HTTP handlers use ---- */

static Alerts *alerts_make(Daemon *daemon)
{
    Alerts *alerts = alerts_new(alert_rules, ALERT_COUNT, alert_webhook_put, daemon);

    alert_rules_limit(alerts, &daemon->app->settings);
    return alerts;
}

static ErrorCode api_start(Daemon *daemon, Error *reterr)
{
    const Settings *settings = &daemon->app->settings;
    Api            *api      = &daemon->api;
    PoolStatus      status;

    (void)reterr;
    api->pool = daemon->app->pool;
    pool_status(api->pool, &status);
    api->keys            = key_cache_new(api->pool, daemon->token);
    api->alerts          = alerts_make(daemon);
    api->sender          = sender_new(api->pool);
    api->hints           = hints_new(api->pool);
    api->ledger          = ledger_new(api->pool);
    api->decisions       = lock_calls_new(combiner_share(status.size_max, 2));
    api->batches         = lock_calls_new(combiner_share(status.size_max, 4));
    api->waker           = waker_new(api->pool);
    api->wake            = waker_wake(api->waker);
    daemon->requeue.wake = &api->wake;
    api->leases          = leases_new(api->pool, &api->wake);
    api->reports         = lock_calls_new(combiner_share(status.size_max, 2));
    api->answers         = lock_calls_new(combiner_share(status.size_max, 4));
    api->verifies        = api_verifies_new(api);
    api->claims          = claims_new(api->pool, daemon->listen);
    api->outcomes        = outcome_waits_new(api->pool);
    api->reads           = lock_calls_new(combiner_share(status.size_max, 4));
    api->shows           = api_shows_new(api, combiner_share(status.size_max, 4));
    api->ready           = ready_new(api->pool);
    if (settings_has_webhook(settings)) {
        api->telegram_secret = settings->telegram_webhook_secret;
        api->telegram        = (TelegramIntake){.pool   = api->pool,
                                                .sender = api->sender,
                                                .bot_id = telegram_token_id(settings->telegram_token)};
    }
    api->key_days = settings->keep_keys_days > settings->keep_commands_days ? settings->keep_keys_days
                                                                            : settings->keep_commands_days;
    return OK;
}

static void api_stop(Daemon *daemon, Deadline drained)
{
    (void)drained;
    if (daemon->api.claims)
        claims_stop(daemon->api.claims);
    if (daemon->api.outcomes)
        outcome_waits_stop(daemon->api.outcomes);
}

static void api_free(Daemon *daemon)
{
    Api *api = &daemon->api;

    if (!api->pool)
        return;
    claims_free(api->claims);
    outcome_waits_free(api->outcomes);
    combiner_free(api->shows);
    lock_calls_free(api->reads);
    ready_free(api->ready);
    waker_free(api->waker);
    combiner_free(api->verifies);
    lock_calls_free(api->answers);
    lock_calls_free(api->reports);
    leases_free(api->leases);
    lock_calls_free(api->batches);
    lock_calls_free(api->decisions);
    ledger_free(api->ledger);
    hints_free(api->hints);
    sender_free(api->sender);
    alerts_free(api->alerts);
    key_cache_free(api->keys);
}

/* ---- webhooks ---- */

static ErrorCode webhooks_start(Daemon *daemon, Error *reterr)
{
    TRY(client_new(&webhook_client, &daemon->client, reterr));
    daemon->webhooks = alert_webhooks_new(daemon);
    return OK;
}

static void webhooks_stop(Daemon *daemon, Deadline drained)
{
    (void)drained;
    if (daemon->webhooks)
        webhook_queue_stop(daemon->webhooks);
}

/* They are sent until the database is closed; what is left becomes a dead letter, so it is no loss. */
static bool webhooks_wait(Daemon *daemon, Deadline deadline, bool with_grace)
{
    (void)deadline;
    if (daemon->webhooks && with_grace)
        (void)webhook_queue_drain(daemon->webhooks, deadline_in_ms(daemon->app->settings.close_timeout));
    return true;
}

static void webhooks_free(Daemon *daemon)
{
    if (daemon->webhooks)
        webhook_queue_free(daemon->webhooks);
    if (daemon->client)
        client_free(daemon->client);
}

/* ---- workers ---- */

/* From the sections of the settings file; each is checked, none claims yet. */
static ErrorCode workers_start(Daemon *daemon, Error *reterr)
{
    const Settings *settings = &daemon->app->settings;
    Deadline        deadline = deadline_in_ms(APP_COMMAND_MS);

    if (settings->workers_count == 0)
        return OK;
    daemon->workers = worker_set_new(daemon->app->pool, daemon->app->handler_pool);
    for (size_t i = 0; i < settings->workers_count; i++) {
        const SettingSection *section = &settings->workers_list[i];
        const WorkerSettings *values  = section->values;
        WorkerRow             row     = {.domain      = values->domain,
                                         .types       = values->types,
                                         .concurrency = (int)values->concurrency,
                                         .batch       = (int)values->batch,
                                         .lease_ms    = (int)values->lease_ms,
                                         .timeout_ms  = (int)values->timeout_ms,
                                         .exec        = values->exec,
                                         .sql         = values->sql,
                                         .alone       = values->alone};
        ErrorCode             code    = worker_set_add(daemon->workers, &row, deadline, reterr);

        if (code != OK) {
            error_prefix(reterr, "%s", section->location);
            return code;
        }
    }
    return OK;
}

/* Last of all: nothing is claimed by a pod that cannot start. */
static ErrorCode claims_start(Daemon *daemon, Error *reterr)
{
    if (!daemon->workers)
        return OK;
    return worker_set_start(daemon->workers,
                            &(WorkerSetStart){.listen = daemon->listen, .restart_ms = WORKER_RESTART_MS}, reterr);
}

static void workers_stop(Daemon *daemon, Deadline drained)
{
    if (daemon->workers)
        worker_set_stop(daemon->workers, drained);
}

/* A program that outlasted the deadline is killed after EXEC_GRACE_MS, and its command settled within the time of the database. */
static bool workers_wait(Daemon *daemon, Deadline deadline, bool with_grace)
{
    int64_t grace_ms = EXEC_GRACE_MS + daemon->app->settings.close_timeout;

    return !daemon->workers || worker_set_wait(daemon->workers, deadline) ||
           (with_grace && worker_set_wait(daemon->workers, deadline_in_ms(grace_ms)));
}

static void workers_free(Daemon *daemon)
{
    if (daemon->workers)
        worker_set_free(daemon->workers);
}

/* ---- processes ---- */

/* Steps call servers that a definition names, so addresses that are not public are refused unless the settings allow them. */
static ErrorCode processes_start(Daemon *daemon, Error *reterr)
{
    const Settings *settings = &daemon->app->settings;

    TRY(client_new(&(ClientOptions){.allowed_hosts  = settings->step_hosts,
                                    .refuse_private = !settings->step_hosts,
                                    .redirects_max  = STEP_REDIRECTS_MAX},
                   &daemon->step_client, reterr));
    daemon->processes = process_workers_new(&(ProcessWorkersOptions){.pool         = daemon->app->pool,
                                                                     .handler_pool = daemon->app->handler_pool,
                                                                     .client       = daemon->step_client,
                                                                     .listen       = daemon->listen,
                                                                     .concurrency  = (int)settings->process_concurrency,
                                                                     .lease_ms     = (int)settings->process_lease});
    return OK;
}

static void processes_stop(Daemon *daemon, Deadline drained)
{
    if (daemon->processes)
        process_workers_stop(daemon->processes, drained);
}

static bool processes_wait(Daemon *daemon, Deadline deadline, bool with_grace)
{
    int64_t grace_ms = EXEC_GRACE_MS + daemon->app->settings.close_timeout;

    if (with_grace && daemon->step_client)
        client_stop(daemon->step_client);
    return !daemon->processes || process_workers_wait(daemon->processes, deadline) ||
           (with_grace && process_workers_wait(daemon->processes, deadline_in_ms(grace_ms)));
}

static void processes_free(Daemon *daemon)
{
    if (daemon->processes)
        process_workers_free(daemon->processes);
    if (daemon->step_client)
        client_free(daemon->step_client);
}

/* ---- periodic tasks ---- */

static ErrorCode periodic_start(Daemon *daemon, Error *reterr)
{
    (void)reterr;
    (void)monitor_start(daemon); /* it sets daemon->tasks, before a notification can arrive */
    return OK;
}

static void periodic_stop(Daemon *daemon, Deadline drained)
{
    (void)drained;
    if (daemon->tasks)
        tasks_stop(daemon->tasks);
}

static void periodic_free(Daemon *daemon)
{
    if (daemon->tasks)
        tasks_free(daemon->tasks);
}

/* ---- HTTP ---- */

static bool auth(void *context, TokenCheck *check)
{
    Api *api = context;

    return key_cache_get(api->keys, check);
}

static void auth_submit(void *context, TokenCheck *check)
{
    Api *api = context;

    key_cache_submit(api->keys, check);
}

static ErrorCode http_start(Daemon *daemon, Error *reterr)
{
    const Settings *settings = &daemon->app->settings;
    /* A connection of handlers has three: see conn_relay(). */
    int descriptors       = (int)settings->pool_max * (settings->handler_database_url ? 4 : 1);
    int connections       = descriptors_for_clients(descriptors_raise(), descriptors, (int)settings->http_connections);
    ServerOptions options = {
        .bound_fd         = daemon->bound_fd,
        .listen           = settings->listen,
        .routes           = routes_table,
        .app              = &daemon->api,
        .auth             = auth,
        .auth_submit      = auth_submit,
        .bound            = api_bound,
        .executor_threads = (int)settings->http_threads,
        .reader_threads   = (int)(settings->pool_max > 1 ? settings->pool_max / 2 : 1),
        .queue_max        = (int)settings->http_queue,
        .connections_max  = connections,
        .body_bytes_max   = (int)settings->http_body_bytes,
        .read_ms_max      = (int)settings->read_timeout,
        .deadline_ms      = (int)settings->request_timeout,
    };

    if (connections < settings->http_connections)
        log_write(LOG_WARN, "daemon", "fewer client connections than PAWL_HTTP_CONNECTIONS: too few file descriptors",
                  LOG_INT("connections", connections));
    daemon->bound_fd    = 0; /* the server's from here on */
    daemon->api.openapi = openapi_asset(&routes_table, daemon->app->arena);
    return server_new(&options, &daemon->server, reterr);
}

static bool http_wait(Daemon *daemon, Deadline deadline, bool with_grace)
{
    (void)with_grace;
    return !daemon->server || server_drain(daemon->server, deadline);
}

static void http_free(Daemon *daemon)
{
    if (daemon->server)
        server_free(daemon->server);
}

/* ---- the bot ---- */

/* Before HTTP: a webhook may fail to store an update as soon as there is one. */
static ErrorCode notices_start(Daemon *daemon, Error *reterr)
{
    const Settings *settings = &daemon->app->settings;

    if (!settings->telegram_token || !(settings->role & (ROLE_BOT | ROLE_API)))
        return OK;
    TRY(bot_notices_new(settings->telegram_token, settings->telegram_api_root, &daemon->notices, reterr));
    bot_intake_watch(daemon->notices, &daemon->api.telegram);
    return OK;
}

static void notices_stop(Daemon *daemon, Deadline drained)
{
    (void)drained;
    if (daemon->notices)
        bot_notices_stop(daemon->notices);
}

static void notices_free(Daemon *daemon)
{
    if (daemon->notices)
        bot_notices_free(daemon->notices);
}

static ErrorCode bot_part_start(Daemon *daemon, Error *reterr)
{
    const Settings *settings = &daemon->app->settings;

    if (!settings->telegram_token)
        return OK;
    if (settings_has_webhook(settings) && !(settings->role & ROLE_API))
        log_write(LOG_WARN, "daemon",
                  "PAWL_TELEGRAM_MODE is webhook: pods with the role api get the updates, this one does not");
    return bot_new(&(BotOptions){.token          = settings->telegram_token,
                                 .api_root       = settings->telegram_api_root,
                                 .is_webhook     = settings_has_webhook(settings),
                                 .webhook_url    = settings->telegram_webhook_url,
                                 .webhook_secret = settings->telegram_webhook_secret,
                                 .concurrency    = (int)settings->telegram_concurrency,
                                 .outbox_max     = (int)settings->telegram_outbox,
                                 .chat_ms        = (int)settings->telegram_chat_interval,
                                 .group_max      = (int)settings->telegram_group_per_minute,
                                 .per_second     = (int)settings->telegram_per_second,
                                 .per_user       = (int)settings->rating_user_per_minute,
                                 .per_group      = (int)settings->rating_group_per_minute,
                                 .pool           = daemon->app->pool,
                                 .waker          = daemon->api.waker,
                                 .listen         = daemon->listen,
                                 .notices        = daemon->notices},
                   &daemon->bot, reterr);
}

static void bot_part_stop(Daemon *daemon, Deadline drained)
{
    if (daemon->bot)
        bot_stop(daemon->bot, drained);
}

static bool bot_part_wait(Daemon *daemon, Deadline deadline, bool with_grace)
{
    if (!daemon->bot || bot_wait(daemon->bot, deadline))
        return true;
    bot_cut_off(daemon->bot);
    return with_grace && bot_wait(daemon->bot, deadline_in_ms(daemon->app->settings.close_timeout));
}

static void bot_part_free(Daemon *daemon)
{
    if (daemon->bot)
        bot_free(daemon->bot);
}

/* ---- all of them ---- */

/* clang-format off */
static const Part parts[] = {
    {"notifications", 0,           listen_start,   .stop = listen_stop},
    {"api",           0,           api_start,      .stop = api_stop, .free = api_free},
    {"webhooks",      0,           webhooks_start, .stop = webhooks_stop, .wait = webhooks_wait, .free = webhooks_free},
    {"workers",       ROLE_WORKER, workers_start,  .stop = workers_stop, .wait = workers_wait, .free = workers_free},
    {"processes",     ROLE_WORKER, processes_start, .stop = processes_stop, .wait = processes_wait, .free = processes_free},
    {"tasks",         0,           periodic_start, .stop = periodic_stop, .free = periodic_free},
    {"notices",       0,           notices_start,  .stop = notices_stop, .free = notices_free},
    {"http",          ROLE_API,    http_start,     .wait = http_wait, .free = http_free},
    {"bot",           ROLE_BOT,    bot_part_start, .stop = bot_part_stop, .wait = bot_part_wait, .free = bot_part_free},
    {"claims",        ROLE_WORKER, claims_start},
};
/* clang-format on */

ErrorCode parts_start(Daemon *daemon, Error *reterr)
{
    for (size_t i = 0; i < COUNT(parts); i++)
        if (!parts[i].roles || daemon->app->settings.role & parts[i].roles)
            TRY(parts[i].start(daemon, reterr));
    return OK;
}

void parts_stop(Daemon *daemon, Deadline drained)
{
    for (size_t i = COUNT(parts); i-- > 0;)
        if (parts[i].stop)
            parts[i].stop(daemon, drained);
}

bool parts_wait(Daemon *daemon, Deadline drained, bool with_grace)
{
    bool ended = true;

    for (size_t i = COUNT(parts); i-- > 0;)
        if (parts[i].wait && !parts[i].wait(daemon, drained, with_grace)) {
            log_write(LOG_WARN, "daemon", "a part still has work in flight", LOG_STR("part", parts[i].name));
            ended = false;
        }
    return ended;
}

void parts_free(Daemon *daemon)
{
    parts_stop(daemon, deadline_in_ms(0));
    for (size_t i = COUNT(parts); i-- > 0;)
        if (parts[i].free)
            parts[i].free(daemon);
}
