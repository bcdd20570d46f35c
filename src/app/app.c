/*
 * app.c - see app.h for the order.
 */
#include "app/app.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/key.h"
#include "base/log.h"
#include "base/memory.h"
#include "pg/migrate.h"
#include "pg/tx.h"
#include "sql.h"

static ErrorCode database_find(App *app, Error *reterr)
{
    ClusterOptions options = {.home = app->settings.home};

    app->database_url = app->settings.database_url;
    if (app->database_url)
        return OK;
    TRY(cluster_open(&options, deadline_in_ms(APP_START_MS), &app->cluster, reterr));
    app->database_url                 = cluster_url(app->cluster);
    app->settings.listen_database_url = app->database_url;
    if (!app->settings.handler_database_url)
        app->settings.handler_database_url = cluster_url_handler(app->cluster);
    return OK;
}

static ErrorCode pools_make(App *app, Error *reterr)
{
    const Settings *settings = &app->settings;
    PoolOptions     options  = {
             .conninfo         = app->database_url,
             .application_name = "pawl",
             .size_min         = (int)settings->pool_min,
             .size_max         = (int)settings->pool_max,
             .size_reserved    = (int)settings->pool_reserved,
             .idle_ms_max      = (int)settings->pool_idle,
             .lifetime_ms_max  = (int)settings->pool_lifetime,
             .connect_ms_max   = (int)settings->connect_timeout,
             .check_ms         = (int)settings->health_every,
             .breaker_failures = (int)settings->breaker_failures,
             .breaker_first_ms = (int)settings->breaker_first,
             .breaker_open_ms  = (int)settings->breaker_open,
             .connect_retry    = {(int)settings->connect_retries,   (int)settings->connect_retry_delay,
                                  (int)settings->connect_retry_delay_max  },
             .operation_retry  = {(int)settings->operation_retries, (int)settings->operation_retry_delay,
                                  (int)settings->operation_retry_delay_max},
    };

    PoolOptions handler = options;

    handler.conninfo         = settings->handler_database_url;
    handler.end_conninfo     = app->database_url;
    handler.application_name = "pawl handler";
    handler.size_reserved    = 0;
    handler.is_relayed       = true;
    if (handler.conninfo) /* first, so that the sizes in the metrics are those of the other */
        TRY(pool_new(&handler, &app->handler_pool, reterr));
    TRY(pool_new(&options, &app->pool, reterr));
    if (!app->handler_pool)
        app->handler_pool = app->pool;
    return OK;
}

bool app_pools_drain(App *app, Deadline deadline)
{
    bool handlers_ended = app->handler_pool == app->pool || pool_drain(app->handler_pool, deadline);

    return pool_drain(app->pool, deadline) && handlers_ended;
}

/* The database has to answer before anything is promised. The pool retries by itself. */
static ErrorCode database_check(App *app, Error *reterr)
{
    scoped(pool_release) Checkout *checkout = NULL;
    ErrorCode                      code = pool_acquire(app->pool, deadline_in_ms(APP_COMMAND_MS), &checkout, reterr);

    return code == ERR_TIMEOUT ? ERR_UNAVAILABLE : code; /* no answer to a connection is no database */
}

static ErrorCode schema_reach(App *app, AppReach reach, Error *reterr)
{
    bool is_private = app->cluster != NULL;
    bool migrate    = strcmp(app->settings.migrate, "auto") == 0 && (reach == APP_MIGRATED || is_private);

    if (migrate)
        return migrate_run(app->pool, &schema_embedded, deadline_in_ms(APP_START_MS), &app->migrated, reterr);
    return migrate_check(app->pool, &schema_embedded, deadline_in_ms(APP_COMMAND_MS), reterr);
}

ErrorCode app_open(const SettingsGiven *given, AppReach reach, App **ret_app, Error *reterr)
{
    scoped(app_close) App *app = memory_new(1, sizeof *app);

    app->arena = arena_new(ARENA_BYTES_DEFAULT);
    TRY(settings_load(given, app->arena, &app->settings, reterr));
    log_open(settings_log_level(&app->settings), strcmp(app->settings.log_format, "json") == 0 ? LOG_JSON : LOG_TEXT,
             STDERR_FILENO);
    TRY(app_reach(app, reach, reterr));
    *ret_app = take(app);
    return OK;
}

ErrorCode app_reach(App *app, AppReach reach, Error *reterr)
{
    if (reach >= APP_POOL) {
        TRY(database_find(app, reterr));
        TRY(pools_make(app, reterr));
    }
    if (reach >= APP_DATABASE)
        TRY(database_check(app, reterr));
    if (reach >= APP_SCHEMA)
        TRY(schema_reach(app, reach, reterr));
    return OK;
}

void app_close(App *app)
{
    if (app->handler_pool && app->handler_pool != app->pool)
        pool_free(app->handler_pool);
    if (app->pool)
        pool_free(app->pool);
    if (app->cluster)
        cluster_close(app->cluster);
    arena_free(app->arena);
    free(app);
}

/* ---- the admin's token ---- */

static ErrorCode token_read(const App *app, const char *file, const char **ret_token, Error *reterr)
{
    char    text[256];
    int     fd = open(file, O_RDONLY | O_CLOEXEC);
    ssize_t size;

    if (fd < 0 && errno == ENOENT)
        return ERR_NOT_FOUND;
    size = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (size < 0)
        (void)fail(reterr, ERR_DENIED, "cannot read token file \"%s\": %s", file, strerror(errno));
    if (fd >= 0)
        close(fd);
    if (size < 0)
        return ERR_DENIED;
    text[size]                  = '\0';
    text[strcspn(text, "\r\n")] = '\0';
    if (strlen(text) < 16)
        return fail(reterr, ERR_USAGE, "token file \"%s\" holds no token of at least 16 characters", file);
    *ret_token = arena_text(app->arena, text);
    return OK;
}

/* Written aside and linked into place, so that of two first starts one wins and both read the same token. */
static ErrorCode token_make(const App *app, const char *file, Error *reterr)
{
    char  token[KEY_TOKEN_SIZE + 1];
    char *aside = arena_print(app->arena, "%s.XXXXXX", file);
    int   fd;
    bool  written;

    key_token_new(token);
    token[KEY_TOKEN_SIZE - 1] = '\n';
    (void)mkdir(app->settings.home, geteuid() == 0 ? 0755 : 0700); /* it exists, or opening the file fails */
    fd      = mkostemp(aside, O_CLOEXEC);                          /* mode 0600 */
    written = fd >= 0 && write(fd, token, KEY_TOKEN_SIZE) == KEY_TOKEN_SIZE && fsync(fd) == 0;
    if (written && link(aside, file) != 0 && errno != EEXIST)
        written = false;
    if (!written)
        (void)fail(reterr, ERR_DENIED, "cannot write token file \"%s\": %s", file, strerror(errno));
    if (fd >= 0) {
        close(fd);
        unlink(aside);
    }
    return written ? OK : ERR_DENIED;
}

ErrorCode app_token(const App *app, const char **ret_token, const char **ret_file, Error *reterr)
{
    const char *file = arena_print(app->arena, "%s/token", app->settings.home);
    ErrorCode   code;

    *ret_file = NULL;
    if (app->settings.admin_token) {
        *ret_token = app->settings.admin_token;
        return OK;
    }
    *ret_file = file;
    code      = token_read(app, file, ret_token, reterr);
    if (code != ERR_NOT_FOUND)
        return code;
    TRY(token_make(app, file, reterr));
    return token_read(app, file, ret_token, reterr);
}
