/*
 * settings.h - every setting of pawl, in one table: names, defaults, limits, meaning.
 *
 * `pawl help settings` and docs/reference.md are printed from it. Read once at start; on SIGHUP the rows marked as
 * reloading are read again. Threads: any; settings do not change once they are loaded. Ownership: texts live in the arena.
 */
#ifndef APP_SETTINGS_H
#define APP_SETTINGS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/log.h"
#include "base/setting.h"

#define ROLES(X)               \
    X(ROLE_API, "api")         \
    X(ROLE_WORKER, "worker")   \
    X(ROLE_MONITOR, "monitor") \
    X(ROLE_BOT, "bot")
#define X(role, name) role##_BIT,
enum { ROLES(X) ROLE_COUNT };
#undef X
#define X(role, name) role = 1u << role##_BIT,
typedef enum { ROLES(X) } Role;
#undef X

#define SETTINGS_WEBHOOK_MAX 1023

/* One section [worker NAME] of the settings file: a worker of pawl serve. */
typedef struct {
    const char        *domain;     /* its name, unless the section says another */
    const char        *exec, *sql; /* exactly one */
    const char        *types_text;
    const char *const *types;                                    /* NULL: all */
    int64_t            concurrency, batch, lease_ms, timeout_ms; /* 0: the worker's default */
    bool               alone;                                    /* sql: each command in a transaction of its own */
} WorkerSettings;

typedef struct {
    const char *database_url; /* NULL: a private PostgreSQL under home */
    const char *listen_database_url;
    const char *handler_database_url; /* NULL: functions of applications run on connections of database_url */
    const char *home;
    const char *listen;
    const char *admin_token; /* NULL: the file home/token */
    const char *url, *token; /* of a daemon, for commands over HTTP; NULL: commands use the database */
    uint64_t    role;
    const char *migrate; /* "auto", "check" */
    int64_t     workers, pool_min, pool_max;
    int64_t     pool_reserved; /* of pool_max, for heartbeats */
    int64_t     connect_retries, connect_retry_delay, connect_retry_delay_max;
    int64_t     operation_retries, operation_retry_delay, operation_retry_delay_max;
    int64_t     connect_timeout, pool_idle, pool_lifetime, health_every;
    int64_t     breaker_failures, breaker_first, breaker_open;
    int64_t     request_timeout, read_timeout, drain_timeout, close_timeout;
    int64_t     http_connections, http_queue, http_body_bytes;
    int64_t     http_threads;
    int64_t     dlq_every, dlq_tries;
    int64_t     keep_commands_days, keep_keys_days, keep_audit_days, keep_replies_days, keep_dead_letters_days;
    int64_t     batch_expiry, reply_queues_max;
    int64_t     alert_pool, alert_failing, alert_dead_letters, alert_waiting, alert_rate_limited;
    const char *alert_webhook;
    const char *step_hosts; /* NULL: every public address */
    int64_t     process_concurrency, process_lease;
    const char *telegram_token; /* NULL: no bot */
    const char *telegram_api_root, *telegram_mode, *telegram_webhook_url, *telegram_webhook_secret;
    int64_t     telegram_concurrency, telegram_outbox;
    int64_t     telegram_chat_interval, telegram_group_per_minute, telegram_per_second;
    int64_t     rating_user_per_minute, rating_group_per_minute;
    const char *log, *log_format;

    const SettingSection *workers_list; /* values: WorkerSettings */
    size_t                workers_count;
} Settings;

extern const SettingTable settings_table;
extern const SettingGroup settings_workers;

/* Where settings may come from besides the table's defaults; NULL fields: nothing given. */
typedef struct {
    const char        *file;  /* --config */
    const SettingFlag *flags; /* ended by a NULL name */
    bool               is_daemon;
    int                handlers; /* of pawl work; 0: it is none */
    bool               is_json;  /* what it says when it is ready is for a program */
} SettingsGiven;

/* Load and complete: home, pool sizes (D1) and workers get the values that depend on the machine. */
must_check ErrorCode settings_load(const SettingsGiven *given, Arena *arena, Settings *ret_settings, Error *reterr);
/* The roles that have something to do: a bot without a token has nothing. */
unsigned settings_roles(const Settings *settings);
/* Do the bot's updates come by POST /telegram/webhook? */
bool     settings_has_webhook(const Settings *settings);
LogLevel settings_log_level(const Settings *settings);

#endif
