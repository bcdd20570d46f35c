/*
 * app.h - settings, database and pool, as the daemon, every command and the library open them.
 *
 * Order (D12): settings, log, private PostgreSQL if no URL is given, pool, first connection, schema. A failure names its
 * step in one sentence, and what was made before is unmade in reverse.
 * Threads: opened and closed by the main thread. Ownership: app_close() frees all.
 */
#ifndef APP_APP_H
#define APP_APP_H

#include "app/settings.h"
#include "base/arena.h"
#include "base/error.h"
#include "cluster/cluster.h"
#include "pg/pool.h"

/* How far to go; each includes the ones before. */
typedef enum {
    APP_SETTINGS, /* settings and log */
    APP_POOL,     /* a pool; nothing is connected yet */
    APP_DATABASE, /* the database has answered */
    APP_SCHEMA,   /* its schema is this binary's; a private database is brought up to date */
    APP_MIGRATED, /* brought up to date, unless PAWL_MIGRATE says check */
} AppReach;

typedef struct {
    Arena      *arena;
    Settings    settings;
    Cluster    *cluster; /* NULL: a URL was given */
    const char *database_url;
    Pool       *pool;         /* NULL below APP_POOL */
    Pool       *handler_pool; /* for functions of applications, see bus/handler.h; `pool` without a login for them */
    int         migrated;
} App;

must_check ErrorCode app_open(const SettingsGiven *given, AppReach reach, App **ret_app, Error *reterr);
/* The rest of the way, for a caller that opened with APP_SETTINGS and has read them. */
must_check ErrorCode app_reach(App *app, AppReach reach, Error *reterr);
void                 app_close(App *app);
SCOPED(App, app_close)
/* See pool_drain(). */
bool app_pools_drain(App *app, Deadline deadline);

/* The admin's token: PAWL_ADMIN_TOKEN, else home/token, made with mode 0600 if it is missing. *ret_file: the file's
 * name, NULL when the environment or the settings file gave it. */
must_check ErrorCode app_token(const App *app, const char **ret_token, const char **ret_file, Error *reterr);

/* For commands that ask the database once. */
#define APP_COMMAND_MS 30000
/* First start of a private PostgreSQL, and migrations. */
#define APP_START_MS 120000

#endif
