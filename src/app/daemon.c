/*
 * daemon.c - start, signals, stop; see daemon.h.
 */
#include "app/daemon.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/openapi.h"
#include "api/routes.h"
#include "app/descriptors.h"
#include "app/monitor.h"
#include "base/log.h"
#include "base/metric.h"
#include "base/writer.h"
#include "ops/webhook.h"

/* After work was cut off: time to notice it. */
#define CUT_OFF_MS 1000
/* A start that is told to end may still be waiting for a database that does not answer. */
#define START_GRACE_S 5
/* A worker that failed for good (a right was revoked, a function dropped) is tried again after this time. */
#define WORKER_RESTART_MS 10000

/* ---- a start that is told to end ---- */

/* The signal that asked for the end before the start was over; 0: none did. */
static volatile sig_atomic_t start_ended_by;
/* A given database may not answer for long. A private one is here, and would be left running if we went too early. */
static volatile sig_atomic_t start_may_hang;

static void start_end(int signal)
{
    if (start_ended_by)
        _exit(EXIT_FAILURE);
    start_ended_by = signal;
    if (start_may_hang)
        alarm(START_GRACE_S);
}

static void start_hurry(bool may_hang)
{
    start_may_hang = may_hang;
    if (may_hang && start_ended_by)
        alarm(START_GRACE_S);
}

/* ---- start ---- */

static void webhook_set(Daemon *daemon, const Settings *settings)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&daemon->mutex);

    snprintf(daemon->webhook, sizeof daemon->webhook, "%s", settings->alert_webhook ? settings->alert_webhook : "");
}

static ErrorCode auth(void *context, const char *token, bool try_cache, Deadline deadline, Scope *ret_scopes,
                      char *ret_name, Error *reterr)
{
    Api *api = context;

    return key_cache_check(api->keys, token, try_cache, deadline, ret_scopes, ret_name, reterr);
}

static ErrorCode server_start(Daemon *daemon, Error *reterr)
{
    const Settings *settings = &daemon->app->settings;
    int             connections =
        descriptors_for_clients(descriptors_raise(), (int)settings->pool_max, (int)settings->http_connections);
    ServerOptions options = {
        .bound_fd         = daemon->bound_fd,
        .listen           = settings->listen,
        .routes           = routes_table,
        .app              = &daemon->api,
        .auth             = auth,
        .executor_threads = (int)settings->http_threads,
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

/* Where it answers; NULL: nowhere, without the role api. */
static const char *address(const Daemon *daemon, Arena *arena)
{
    const char *listen = daemon->app->settings.listen; /* the server took it, so it has a colon */
    int         host   = (int)(strrchr(listen, ':') - listen);

    if (!daemon->server)
        return NULL;
    return arena_print(arena, "http://%.*s:%d", host ? host : (int)strlen("127.0.0.1"), host ? listen : "127.0.0.1",
                       server_port(daemon->server));
}

static void say_ready(const Daemon *daemon, const char *token_file, bool json)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    const char               *url   = address(daemon, arena);
    Text                      text;
    Writer                    writer;

    text_init(&text, arena, TEXT_MAX_BODY);
    if (json) {
        writer_open(&writer, &text);
        writer_object(&writer, NULL);
        writer_text(&writer, "url", url);
        writer_text(&writer, "token_file", token_file);
        writer_end(&writer);
        text_append_char(&text, '\n');
    } else {
        text_print(&text, "pawl is ready%s%s\n", url ? " on " : "", url ? url : "");
        if (token_file)
            text_print(&text, "admin token: %s\n", token_file);
    }
    printf("%s", text_string(&text));
    (void)fflush(stdout); /* whoever started us may have closed it; serving goes on */
}

static Alerts *alerts_make(Daemon *daemon)
{
    const Settings *settings = &daemon->app->settings;
    Alerts         *alerts   = alerts_new(monitor_alert, daemon);

    alerts_limit(alerts, ALERT_POOL, settings->alert_pool);
    alerts_limit(alerts, ALERT_FAILING, settings->alert_failing);
    alerts_limit(alerts, ALERT_HANDLERS, settings->alert_failing);
    alerts_limit(alerts, ALERT_DLQ, settings->alert_dead_letters);
    alerts_limit(alerts, ALERT_WAITING, settings->alert_waiting / 1000);
    alerts_limit(alerts, ALERT_RATE, settings->alert_rate_limited);
    return alerts;
}

/* What the HTTP handlers use. */
static void api_open(Daemon *daemon, const char *token)
{
    const Settings *settings = &daemon->app->settings;
    Api            *api      = &daemon->api;

    daemon->listen = listen_new(settings->listen_database_url, daemon->app->pool);
    api->pool      = daemon->app->pool;
    api->keys      = key_cache_new(api->pool, token);
    api->alerts    = alerts_make(daemon);
    api->sender    = sender_new(api->pool);
    api->ledger    = ledger_new(api->pool);
    api->waker     = waker_new(api->pool);
    api->claims    = claims_new(api->pool, daemon->listen);
    api->ready     = ready_new(api->pool);
    api->key_days  = settings->keep_keys_days > settings->keep_commands_days ? settings->keep_keys_days
                                                                             : settings->keep_commands_days;
}

/* A pod without anything to do would say that it is ready, and nobody would notice. */
static ErrorCode roles_check(const Settings *settings, Error *reterr)
{
    if (settings->role & (ROLE_API | ROLE_MONITOR))
        return OK;
    if (!(settings->role & ROLE_WORKER))
        return fail(reterr, ERR_USAGE,
                    "PAWL_ROLE (--role) names only roles that have nothing to do: add api, monitor or worker");
    if (settings->workers_count == 0)
        return fail(reterr, ERR_USAGE,
                    "PAWL_ROLE (--role) is worker, but the settings file names none: add a section [worker DOMAIN] "
                    "with exec or sql");
    return OK;
}

/* From the sections of the settings file; each is checked, none claims yet. */
static ErrorCode workers_make(Daemon *daemon, Error *reterr)
{
    const Settings *settings = &daemon->app->settings;
    Deadline        deadline = deadline_in_ms(APP_COMMAND_MS);

    if (!(settings->role & ROLE_WORKER) || settings->workers_count == 0)
        return OK;
    daemon->workers = worker_set_new(daemon->app->pool);
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
                                         .sql         = values->sql};
        ErrorCode             code    = worker_set_add(daemon->workers, &row, deadline, reterr);

        if (code != OK) {
            error_prefix(reterr, "%s", section->place);
            return code;
        }
    }
    return OK;
}

static ErrorCode workers_start(Daemon *daemon, Error *reterr)
{
    if (!daemon->workers)
        return OK;
    return worker_set_start(daemon->workers,
                            &(WorkerSetStart){.listen = daemon->listen, .restart_ms = WORKER_RESTART_MS}, reterr);
}

static ErrorCode daemon_start(Daemon *daemon, const SettingsGiven *given, Error *reterr)
{
    const char *token, *token_file;

    mutex_init(&daemon->mutex);
    TRY(app_open(given, APP_SETTINGS, &daemon->app, reterr));
    TRY(roles_check(&daemon->app->settings, reterr));
    if (daemon->app->settings.role & ROLE_API)
        TRY(server_bind(daemon->app->settings.listen, &daemon->bound_fd, reterr));
    start_hurry(/* may_hang= */ daemon->app->settings.database_url != NULL);
    TRY(app_reach(daemon->app, APP_MIGRATED, reterr));
    TRY(app_token(daemon->app, &token, &token_file, reterr));
    webhook_set(daemon, &daemon->app->settings);
    api_open(daemon, token);
    TRY(client_new(&webhook_client, &daemon->client, reterr));
    TRY(workers_make(daemon, reterr));
    daemon->webhooks = monitor_webhooks(daemon);
    daemon->tasks    = monitor_start(daemon);
    if (daemon->app->settings.role & ROLE_API)
        TRY(server_start(daemon, reterr));
    TRY(workers_start(daemon, reterr));
    say_ready(daemon, token_file, given->is_json);
    log_write(LOG_INFO, "daemon", "ready", LOG_INT("migrations_applied", daemon->app->migrated),
              LOG_INT("pool_max", daemon->app->settings.pool_max),
              LOG_INT("workers", daemon->workers ? (int64_t)daemon->app->settings.workers_count : 0));
    return OK;
}

/* ---- signals ---- */

static sigset_t signals_ours(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    return set;
}

static void exit_now(int signal)
{
    (void)signal;
    _exit(EXIT_FAILURE);
}

static void exit_done(int signal)
{
    (void)signal;
    _exit(EXIT_SUCCESS);
}

/* Until the start is over: the first signal lets it come to its end, if that is near; the second ends it on the spot.
 * Nothing is left half done: a migration is a transaction, and a data directory gets its name when it is complete. */
static void signals_start(void)
{
    sigset_t         later;
    struct sigaction action = {.sa_handler = start_end, .sa_flags = SA_RESTART}, overdue = {.sa_handler = exit_done};

    sigemptyset(&later);
    sigaddset(&later, SIGHUP);
    pthread_sigmask(SIG_BLOCK, &later, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGALRM, &overdue, NULL);
}

/* From here on signals reach only sigwait(). */
static void signals_hold(void)
{
    sigset_t set = signals_ours();

    pthread_sigmask(SIG_BLOCK, &set, NULL);
    alarm(0);
}

/* From here on a second SIGTERM or SIGINT ends the process on the spot. */
static void signals_force(void)
{
    struct sigaction action = {.sa_handler = exit_now};
    sigset_t         set    = signals_ours();

    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigdelset(&set, SIGHUP);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static bool setting_is_same(const Setting *row, const Settings *a, const Settings *b)
{
    const char *left = (const char *)a + row->offset, *right = (const char *)b + row->offset;

    if (row->type == SETTING_BOOL)
        return *(const bool *)left == *(const bool *)right;
    if (row->type != SETTING_TEXT && row->type != SETTING_WORD)
        return memcmp(left, right, sizeof(int64_t)) == 0;
    left  = *(const char *const *)left;
    right = *(const char *const *)right;
    return left && right ? strcmp(left, right) == 0 : left == right;
}

/* Settings that were changed and that a running daemon does not take. */
static void restart_explain(const Settings *started, const Settings *now)
{
    char   names[512];
    size_t used = 0;

    names[0] = '\0';
    for (size_t i = 0; i < settings_table.count && used < sizeof names; i++) {
        const Setting *row = &settings_table.rows[i];

        if (!row->reloads && !setting_is_same(row, started, now))
            used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", row->name);
    }
    if (used)
        log_write(LOG_WARN, "daemon", "changed settings take effect at the next start", LOG_STR("settings", names));
}

static void reload(Daemon *daemon, const SettingsGiven *given, const Settings *started)
{
    scoped(arena_free) Arena *arena    = arena_new(ARENA_BYTES_DEFAULT);
    Settings                  settings = {0};
    Error                     error    = {0};

    if (settings_load(given, arena, &settings, &error) != OK) {
        log_error(LOG_ERROR, "daemon", "settings were not reloaded, the old ones stay", &error);
        return;
    }
    log_set_level(settings_log_level(&settings));
    webhook_set(daemon, &settings);
    log_write(LOG_INFO, "daemon", "settings reloaded");
    if (started)
        restart_explain(started, &settings);
}

static void wait_for_end(Daemon *daemon, const SettingsGiven *given)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    Settings                  started = {0}; /* as given at the start: those in use have defaults filled in */
    bool                      known   = settings_load(given, arena, &started, NULL) == OK;
    sigset_t                  set     = signals_ours();
    int                       signal;

    while (sigwait(&set, &signal) == 0 && signal == SIGHUP)
        reload(daemon, given, known ? &started : NULL);
    log_write(LOG_INFO, "daemon", "stopping", LOG_STR("signal", strsignal(signal)));
}

/* ---- stop ---- */

/* Handlers get until the deadline; then they are stopped, which takes a program EXEC_GRACE_MS at most, and settle within the
 * time that the database gets. false: some still run. */
static bool workers_drain(Daemon *daemon, Deadline drained)
{
    const Settings *settings = &daemon->app->settings;

    return worker_set_wait(daemon->workers, drained) ||
           worker_set_wait(daemon->workers, deadline_in_ms(EXEC_GRACE_MS + settings->close_timeout));
}

/* false: something still runs that nothing could end. */
static bool daemon_drain(Daemon *daemon)
{
    const Settings *settings = &daemon->app->settings;
    Deadline        drained  = deadline_in_ms(settings->drain_timeout);
    bool            answered = true, worked = true;

    atomic_store(&daemon->api.stopping, true);
    if (daemon->workers)
        worker_set_stop(daemon->workers, drained);
    claims_stop(daemon->api.claims);
    tasks_stop(daemon->tasks);
    webhook_queue_stop(daemon->webhooks);
    if (daemon->server)
        answered = server_drain(daemon->server, drained);
    if (daemon->workers)
        worked = workers_drain(daemon, drained);
    (void)webhook_queue_drain(daemon->webhooks, deadline_in_ms(settings->close_timeout));
    monitor_release(daemon);
    if (pool_drain(daemon->app->pool, deadline_in_ms(settings->close_timeout)) && answered && worked)
        return true;
    log_write(LOG_WARN, "daemon", "work in flight was cut off",
              LOG_INT("requests", daemon->server ? server_in_flight(daemon->server) : 0),
              LOG_INT("handlers", metric_value(METRIC_HANDLERS)));
    return pool_drain(daemon->app->pool, deadline_in_ms(CUT_OFF_MS)) &&
           (!daemon->workers || worker_set_wait(daemon->workers, deadline_in_ms(CUT_OFF_MS))) &&
           (!daemon->server || server_drain(daemon->server, deadline_in_ms(CUT_OFF_MS)));
}

static void daemon_free(Daemon *daemon)
{
    if (daemon->bound_fd)
        close(daemon->bound_fd);
    if (daemon->server)
        server_free(daemon->server);
    if (daemon->client)
        client_stop(daemon->client);
    if (daemon->tasks)
        tasks_free(daemon->tasks);
    if (daemon->webhooks)
        webhook_queue_free(daemon->webhooks);
    if (daemon->client)
        client_free(daemon->client);
    if (daemon->listen)
        listen_free(daemon->listen);
    if (daemon->workers)
        worker_set_free(daemon->workers);
    if (daemon->api.claims)
        claims_free(daemon->api.claims);
    if (daemon->api.ready)
        ready_free(daemon->api.ready);
    if (daemon->api.waker)
        waker_free(daemon->api.waker);
    if (daemon->api.ledger)
        ledger_free(daemon->api.ledger);
    if (daemon->api.sender)
        sender_free(daemon->api.sender);
    if (daemon->api.alerts)
        alerts_free(daemon->api.alerts);
    if (daemon->api.keys)
        key_cache_free(daemon->api.keys);
    if (daemon->app)
        app_close(daemon->app);
    mutex_done(&daemon->mutex);
}

ErrorCode daemon_run(const SettingsGiven *given, Error *reterr)
{
    Daemon    daemon = {0};
    ErrorCode code;

    signals_start();
    signal(SIGPIPE, SIG_IGN);
    code = daemon_start(&daemon, given, reterr);
    signals_hold();
    if (code == OK) {
        if (!start_ended_by)
            wait_for_end(&daemon, given);
        signals_force();
        if (!daemon_drain(&daemon)) {
            /* Its threads hold what we would free. Leases and transactions make this safe. */
            if (daemon.app->cluster)
                cluster_close(daemon.app->cluster);
            _exit(EXIT_SUCCESS);
        }
        log_write(LOG_INFO, "daemon", "stopped");
    }
    daemon_free(&daemon);
    return start_ended_by ? OK : code;
}
