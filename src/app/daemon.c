/*
 * daemon.c - start, signals, stop; see daemon.h.
 */
#include "app/daemon.h"

#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/openapi.h"
#include "api/routes.h"
#include "app/descriptors.h"
#include "app/login.h"
#include "app/monitor.h"
#include "app/part.h"
#include "app/settings_change.h"
#include "base/log.h"
#include "base/writer.h"
#include "bus/metric.h"
#include "bus/shell.h"
#include "ops/webhook.h"

#define MMAP_BYTES (1 << 20) /* the largest blocks of arenas */
/* After work was cut off: time to notice it. */
#define CUT_OFF_MS 1000
/* A start that gets a signal to end may still be waiting for a database that does not answer. */
#define START_GRACE_S 5

/* ---- signals during the start ---- */

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

static void start_grace_set(bool may_hang)
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

static void manager_tell_ready(const Daemon *daemon)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    const char               *url   = address(daemon, arena);

    notify_ready(&daemon->notify, url ? arena_print(arena, "ready on %s", url) : "ready");
}

static void print_ready(const Daemon *daemon, const char *token_file, bool json)
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
    (void)fflush(stdout); /* the parent may have closed it; serving continues */
}

/* A pod without anything to do would report that it is ready. A worker without sections [worker NAME] still runs processes. */
static ErrorCode roles_check(const Settings *settings, Error *reterr)
{
    if (!settings_roles(settings))
        return fail(
            reterr, ERR_USAGE,
            "PAWL_ROLE (--role) is bot, and PAWL_TELEGRAM_TOKEN is not set: set it, or add api, monitor or worker");
    return OK;
}

/* A pod whose login may not run its tasks would say that it is ready, and hold money and commands back in silence. */
static ErrorCode login_check(const App *app, Error *reterr)
{
    LoginRights rights;

    TRY(login_rights(app->pool, settings_roles(&app->settings), deadline_in_ms(APP_COMMAND_MS), app->arena, &rights,
                     reterr));
    if (rights.denied)
        return fail(reterr, ERR_DENIED, "%s: %s%s%s", rights.denied, rights.grant,
                    rights.rest[0] ? ", or start with --role " : "", rights.rest);
    if (rights.refused)
        log_write(LOG_WARN, "daemon", rights.refused, LOG_STR("advice", rights.grant));
    return OK;
}

static ErrorCode daemon_start(Daemon *daemon, const SettingsGiven *given, Error *reterr)
{
    mutex_init(&daemon->mutex);
    TRY(app_open(given, APP_SETTINGS, &daemon->app, reterr));
    TRY(roles_check(&daemon->app->settings, reterr));
    if (daemon->app->settings.role & ROLE_API)
        TRY(server_bind(daemon->app->settings.listen, &daemon->bound_fd, reterr));
    start_grace_set(/* may_hang= */ daemon->app->settings.database_url != NULL);
    ErrorCode code = app_reach(daemon->app, APP_MIGRATED, reterr);
    if (code == OK || (code == ERR_DENIED && daemon->app->pool)) /* it may not even read the schema */
        TRY(login_check(daemon->app, reterr));
    TRY(code);
    if (daemon->app->settings.role & ROLE_API)
        TRY(app_token(daemon->app, &daemon->token, &daemon->token_file, reterr));
    webhook_set(daemon, &daemon->app->settings);
    TRY(parts_start(daemon, reterr));
    print_ready(daemon, daemon->token_file, given->is_json);
    manager_tell_ready(daemon);
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
    shell_kill_all();
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

/* false: the settings are wrong, and the old ones stay. */
static bool reload(Daemon *daemon, const SettingsGiven *given, const Settings *started)
{
    scoped(arena_free) Arena *arena    = arena_new(ARENA_BYTES_DEFAULT);
    Settings                  settings = {0};
    Error                     error    = {0};

    if (settings_load(given, arena, &settings, &error) != OK) {
        log_error(LOG_ERROR, "daemon", "settings were not reloaded, the old ones stay", &error);
        return false;
    }
    log_set_level(settings_log_level(&settings));
    webhook_set(daemon, &settings);
    log_write(LOG_INFO, "daemon", "settings reloaded");
    if (started)
        settings_explain_restart(started, &settings);
    return true;
}

static void wait_for_end(Daemon *daemon, const SettingsGiven *given)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    Settings                  started = {0}; /* as given at the start: those in use have defaults filled in */
    bool                      known   = settings_load(given, arena, &started, NULL) == OK;
    sigset_t                  set     = signals_ours();
    int                       signal;

    while (sigwait(&set, &signal) == 0 && signal == SIGHUP) {
        notify_reloading(&daemon->notify);
        if (reload(daemon, given, known ? &started : NULL))
            manager_tell_ready(daemon);
        else
            notify_ready(&daemon->notify, "the last reload failed, see the log");
    }
    log_write(LOG_INFO, "daemon", "stopping", LOG_STR("signal", strsignal(signal)));
}

/* ---- stop ---- */

/* false: something still runs that nothing could end. */
static bool daemon_drain(Daemon *daemon)
{
    const Settings *settings = &daemon->app->settings;
    Deadline        drained  = deadline_in_ms(settings->drain_timeout);

    atomic_store(&daemon->api.stopping, true);
    parts_stop(daemon, drained);
    bool ended = parts_wait(daemon, drained, /* with_grace= */ true);

    monitor_release(daemon);
    if (app_pools_drain(daemon->app, deadline_in_ms(settings->close_timeout)) && ended)
        return true;
    log_write(LOG_WARN, "daemon", "work in flight was cut off",
              LOG_INT("requests", daemon->server ? server_in_flight(daemon->server) : 0),
              LOG_INT("handlers", metric_value(&bus_metrics.handlers_running)));
    return app_pools_drain(daemon->app, deadline_in_ms(CUT_OFF_MS)) &&
           parts_wait(daemon, deadline_in_ms(CUT_OFF_MS), /* with_grace= */ false);
}

static void daemon_free(Daemon *daemon)
{
    if (daemon->bound_fd)
        close(daemon->bound_fd);
    parts_free(daemon);
    if (daemon->app)
        app_close(daemon->app);
    notify_close(&daemon->notify);
    mutex_done(&daemon->mutex);
}

ErrorCode daemon_run(const SettingsGiven *given, Error *reterr)
{
    Daemon    daemon = {.notify = notify_open()};
    ErrorCode code;

    /* Large blocks are returned to the system when they are freed. The C library would raise the limit with the first one, and keep the rest. */
    mallopt(M_MMAP_THRESHOLD, MMAP_BYTES);
    signals_start();
    signal(SIGPIPE, SIG_IGN);
    code = daemon_start(&daemon, given, reterr);
    signals_hold();
    if (code == OK) {
        if (!start_ended_by)
            wait_for_end(&daemon, given);
        notify_stopping(&daemon.notify);
        signals_force();
        bool is_drained = daemon_drain(&daemon);

        if (daemon.app->cluster && cluster_stops(daemon.app->cluster))
            log_write(LOG_INFO, "daemon", "stopping the private PostgreSQL");
        if (!is_drained) {
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
