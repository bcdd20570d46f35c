/*
 * settings.c - the table and the few defaults that depend on the machine.
 */
#include "app/settings.h"

#include <pwd.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "app/task.h"
#include "bus/send.h"
#include "bus/worker_set.h"
#include "client/client.h"
#include "http/server.h"
#include "pg/conn.h"
#include "telegram/bot.h"
#include "telegram/poller.h"

#define POOL_MAX      1000
#define X(role, name) name,
static const char *const role_words[] = {ROLES(X) NULL};
#undef X
#define X(level, name) name,
static const char *const log_words[] = {LOG_LEVELS(X) NULL};
#undef X
static const char *const format_words[]  = {"text", "json", NULL};
static const char *const migrate_words[] = {"auto", "check", NULL};
static const char *const mode_words[]    = {"poll", "webhook", NULL};

#define AT(field) offsetof(Settings, field)
#define MS_MAX    (24LL * 24 * 3600 * 1000) /* 24 days: fits an int */

/* ---- checks of texts ---- */

static ErrorCode url_check(const char *url, Error *reterr)
{
    char name[CONNINFO_TEXT_SIZE];

    return conninfo_describe(url, name, reterr);
}

static ErrorCode home_check(const char *home, Error *reterr)
{
    return home[0] == '/' ? OK : fail(reterr, ERR_USAGE, "\"%s\" is not an absolute path", home);
}

static ErrorCode listen_check(const char *listen, Error *reterr)
{
    char        host[SERVER_HOST_SIZE];
    const char *port;

    return server_address(listen, host, &port, reterr);
}

static ErrorCode daemon_check(const char *url, Error *reterr)
{
    return client_check_url(url, NULL) == OK
               ? OK
               : fail(reterr, ERR_USAGE, "not a URL: it must be like http://127.0.0.1:8080");
}

static ErrorCode webhook_check(const char *url, Error *reterr)
{
    if (client_check_url(url, NULL) != OK)
        return fail(reterr, ERR_USAGE, "not a URL: it must be like https://host/path");
    if (strlen(url) > SETTINGS_WEBHOOK_MAX)
        return fail(reterr, ERR_USAGE, "this is too long: at most %d characters", SETTINGS_WEBHOOK_MAX);
    return OK;
}

/* As setWebhook takes it. */
static ErrorCode secret_check(const char *secret, Error *reterr)
{
    size_t length = strlen(secret);

    if (length < 1 || length > TELEGRAM_SECRET_MAX ||
        length != strspn(secret, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"))
        return fail(reterr, ERR_USAGE, "this must be 1 to %d letters, digits, \"_\" or \"-\"", TELEGRAM_SECRET_MAX);
    return OK;
}

/* clang-format off */
static const Setting rows[] = {
    {"PAWL_DATABASE_URL", "DATABASE_URL", SETTING_TEXT, AT(database_url), .check = url_check, .secret = true,
     .help = "libpq URL or conninfo, several hosts allowed; unset: a private PostgreSQL under PAWL_HOME"},
    {"PAWL_LISTEN_DATABASE_URL", NULL, SETTING_TEXT, AT(listen_database_url), .check = url_check, .secret = true,
     .help = "direct URL for LISTEN if PAWL_DATABASE_URL is that of a pooler; unset: PAWL_DATABASE_URL"},
    {"PAWL_HANDLER_DATABASE_URL", NULL, SETTING_TEXT, AT(handler_database_url), .check = url_check, .secret = true,
     .help = "URL with a login that is only a member of pawl_handler, for transactions that call functions of applications; unset: "
             "the login handler of the private PostgreSQL, else PAWL_DATABASE_URL, and only functions whose owner may act as its "
             "user are called"},
    {"PAWL_HOME", NULL, SETTING_TEXT, AT(home), .check = home_check,
     .help = "directory of the private PostgreSQL and the token file; unset: ~/.pawl, for root /var/lib/pawl"},
    {"PAWL_LISTEN", NULL, SETTING_TEXT, AT(listen), "127.0.0.1:8080", .check = listen_check,
     .help = "HTTP address; port 0 chooses a free port"},
    {"PAWL_ADMIN_TOKEN", NULL, SETTING_TEXT, AT(admin_token), .secret = true,
     .help = "bearer token with all scopes; unset: generated once into PAWL_HOME/token"},
    {"PAWL_URL", NULL, SETTING_TEXT, AT(url), .check = daemon_check,
     .help = "URL of a daemon, such as https://pawl.example.com: commands ask it instead of the database; unset: they use the database"},
    {"PAWL_TOKEN", NULL, SETTING_TEXT, AT(token), .secret = true,
     .help = "bearer token for PAWL_URL"},
    {"PAWL_ROLE", NULL, SETTING_WORDS, AT(role), "api,worker,monitor,bot", .words = role_words,
     .help = "what pawl serve does: any of api, worker, monitor, bot"},
    {"PAWL_MIGRATE", NULL, SETTING_WORD, AT(migrate), "auto", .words = migrate_words,
     .help = "auto: pawl serve brings the schema up to date; check: it refuses to start if the schema is not up to date"},
    {"PAWL_WORKERS", NULL, SETTING_INT, AT(workers), .min = 1, .max = 1024,
     .help = "threads that the default of PAWL_POOL_MAX assumes for commands other than pawl serve and pawl work, whose workers have "
             "-j and concurrency; unset: the number of CPUs"},
    {"PAWL_POOL_MIN", NULL, SETTING_INT, AT(pool_min), .min = 1, .max = 1000,
     .help = "connections that stay open once they have been used; unset: 2, or PAWL_POOL_MAX if that is less"},
    {"PAWL_POOL_MAX", NULL, SETTING_INT, AT(pool_max), .min = 1, .max = POOL_MAX,
     .help = "most connections at the same time; unset: max(2, min(10, threads that use them + 2)): PAWL_HTTP_THREADS for pawl serve, "
             "-j for pawl work, else PAWL_WORKERS; pawl serve with workers adds 2 to 10 for "
             "programs, and one for each handler in SQL and 2; with a bot, PAWL_TELEGRAM_CONCURRENCY and 4"},
    {"PAWL_CONNECT_TIMEOUT", NULL, SETTING_DURATION_MS, AT(connect_timeout), "5s", 10, MS_MAX,
     .help = "timeout of one attempt to connect, and of the breaker's probe"},
    {"PAWL_CONNECT_RETRIES", NULL, SETTING_INT, AT(connect_retries), "5", 0, 100,
     .help = "retries after a failed attempt to connect, within the deadline of the request"},
    {"PAWL_CONNECT_RETRY_DELAY", NULL, SETTING_DURATION_MS, AT(connect_retry_delay), "100ms", 1, MS_MAX,
     .help = "delay before the first of these retries; it doubles with each further one"},
    {"PAWL_CONNECT_RETRY_DELAY_MAX", NULL, SETTING_DURATION_MS, AT(connect_retry_delay_max), "30s", 1, MS_MAX,
     .help = "longest delay between two of these retries"},
    {"PAWL_OPERATION_RETRIES", NULL, SETTING_INT, AT(operation_retries), "3", 0, 100,
     .help = "retries of a transaction after its first attempt, within the deadline of the request"},
    {"PAWL_OPERATION_RETRY_DELAY", NULL, SETTING_DURATION_MS, AT(operation_retry_delay), "100ms", 1, MS_MAX,
     .help = "delay before the first of these retries; it doubles with each further one"},
    {"PAWL_OPERATION_RETRY_DELAY_MAX", NULL, SETTING_DURATION_MS, AT(operation_retry_delay_max), "30s", 1, MS_MAX,
     .help = "longest delay between two of these retries"},
    {"PAWL_POOL_IDLE", NULL, SETTING_DURATION_MS, AT(pool_idle), "5m", 100, MS_MAX,
     .help = "a connection idle for longer is closed"},
    {"PAWL_POOL_LIFETIME", NULL, SETTING_DURATION_MS, AT(pool_lifetime), "1h", 1000, MS_MAX,
     .help = "a connection older than this is replaced"},
    {"PAWL_HEALTH_EVERY", NULL, SETTING_DURATION_MS, AT(health_every), "30s", 100, MS_MAX,
     .help = "time between health checks of idle connections"},
    {"PAWL_BREAKER_FAILURES", NULL, SETTING_INT, AT(breaker_failures), "5", 1, 1000,
     .help = "consecutive infrastructure failures that open the breaker; a request counts once, however often it was retried"},
    {"PAWL_BREAKER_FIRST", NULL, SETTING_DURATION_MS, AT(breaker_first), "1s", 10, MS_MAX,
     .help = "time from the breaker's opening to its first probe; it doubles with each probe that fails"},
    {"PAWL_BREAKER_OPEN", NULL, SETTING_DURATION_MS, AT(breaker_open), "30s", 100, MS_MAX,
     .help = "longest time between two probes of the open breaker"},
    {"PAWL_REQUEST_TIMEOUT", NULL, SETTING_DURATION_MS, AT(request_timeout), "10s", 10, MS_MAX,
     .help = "timeout of one HTTP request, including waits"},
    {"PAWL_READ_TIMEOUT", NULL, SETTING_DURATION_MS, AT(read_timeout), "10s", 10, MS_MAX,
     .help = "timeout for receiving a whole HTTP request, of an idle connection, and for taking 4 KiB per second of a response"},
    {"PAWL_DRAIN_TIMEOUT", NULL, SETTING_DURATION_MS, AT(drain_timeout), "30s", 0, MS_MAX,
     .help = "how long shutdown waits for requests and handlers in progress"},
    {"PAWL_CLOSE_TIMEOUT", NULL, SETTING_DURATION_MS, AT(close_timeout), "10s", 0, MS_MAX,
     .help = "how long shutdown then waits for the database before it cancels statements"},
    {"PAWL_HTTP_CONNECTIONS", NULL, SETTING_INT, AT(http_connections), "4096", 1, 1000000,
     .help = "most client connections at the same time; fewer if the limit of file descriptors is too low"},
    {"PAWL_HTTP_QUEUE", NULL, SETTING_INT, AT(http_queue), "1024", 1, 1000000,
     .help = "most requests that wait for a thread; further ones get 503"},
    {"PAWL_HTTP_BODY_BYTES", NULL, SETTING_INT, AT(http_body_bytes), "8388608", 1024, 1 << 30,
     .help = "largest request body"},
    {"PAWL_HTTP_THREADS", NULL, SETTING_INT, AT(http_threads), "64", 2, 1024,
     .help = "threads for HTTP requests that wait for the database"},
    {"PAWL_KEEP_COMMANDS_DAYS", NULL, SETTING_INT, AT(keep_commands_days), "30", 1, 36500,
     .help = "ended commands older than this are deleted"},
    {"PAWL_KEEP_KEYS_DAYS", NULL, SETTING_INT, AT(keep_keys_days), "365", 1, 36500,
     .help = "ids of ended commands are remembered for this long, at least as long as the commands"},
    {"PAWL_KEEP_AUDIT_DAYS", NULL, SETTING_INT, AT(keep_audit_days), "90", 1, 36500,
     .help = "events of the audit older than this are deleted"},
    {"PAWL_KEEP_REPLIES_DAYS", NULL, SETTING_INT, AT(keep_replies_days), "30", 1, 36500,
     .help = "replies older than this are deleted from queues that pawl created; such a queue is dropped when it is idle for as long"},
    {"PAWL_KEEP_DEAD_LETTERS_DAYS", NULL, SETTING_INT, AT(keep_dead_letters_days), "90", 1, 36500,
     .help = "resolved dead letters older than this are deleted"},
    {"PAWL_BATCH_EXPIRY", NULL, SETTING_DURATION_MS, AT(batch_expiry), "7d", 1000, MS_MAX,
     .help = "an open batch that has had no new command for this long is sealed"},
    {"PAWL_REPLY_QUEUES_MAX", NULL, SETTING_INT, AT(reply_queues_max), "1000", 1, 100000,
     .help = "most queues that pawl creates because a reply_to names them; one sender (API key, or login) a quarter. Those that pgmq.create made do not count"},
    {"PAWL_DLQ_EVERY", NULL, SETTING_DURATION_MS, AT(dlq_every), "5m", 100, MS_MAX,
     .help = "time between retries of a dead letter"},
    {"PAWL_DLQ_TRIES", NULL, SETTING_INT, AT(dlq_tries), "3", 1, 1000,
     .help = "retries before a dead letter is marked as failed"},
    {"PAWL_PROCESS_CONCURRENCY", NULL, SETTING_INT, AT(process_concurrency), "16", 1, 1000,
     .help = "processes of one type that a pod runs at the same time; those of the other types of its domain have a third more"},
    {"PAWL_PROCESS_LEASE", NULL, SETTING_DURATION_MS, AT(process_lease), "60s", 1000, 86400000,
     .help = "lease of a process that a pod runs: if the pod sends no heartbeat for this long, another pod runs it"},
    {"PAWL_STEP_HOSTS", NULL, SETTING_TEXT, AT(step_hosts),
     .help = "hosts that http steps of processes may call, comma-separated: api.example.com, *.example.org, 10.0.0.7:8443; unset: every "
             "host with a public address"},
    {"PAWL_TELEGRAM_TOKEN", NULL, SETTING_TEXT, AT(telegram_token), .check = telegram_token_check, .secret = true,
     .help = "token of the bot, from BotFather; unset: no bot"},
    {"PAWL_TELEGRAM_API_ROOT", NULL, SETTING_TEXT, AT(telegram_api_root), TELEGRAM_API_ROOT, .check = telegram_root_check,
     .help = "server of the Bot API"},
    {"PAWL_TELEGRAM_MODE", NULL, SETTING_WORD, AT(telegram_mode), "poll", .words = mode_words,
     .help = "poll: request updates from the server; webhook: the server sends them to POST /telegram/webhook"},
    {"PAWL_TELEGRAM_WEBHOOK_SECRET", NULL, SETTING_TEXT, AT(telegram_webhook_secret), .check = secret_check, .secret = true,
     .help = "expected value of the header X-Telegram-Bot-Api-Secret-Token; required in mode webhook"},
    {"PAWL_TELEGRAM_WEBHOOK_URL", NULL, SETTING_TEXT, AT(telegram_webhook_url), .check = webhook_check,
     .help = "URL of that route as the server reaches it, registered at startup; unset: register it yourself with setWebhook"},
    {"PAWL_TELEGRAM_CONCURRENCY", NULL, SETTING_INT, AT(telegram_concurrency), "8", 1, WORKER_CONCURRENCY_MAX,
     .help = "updates that a pod handles at the same time; those of one chat are handled one after the other, matches of different chats together"},
    {"PAWL_TELEGRAM_OUTBOX", NULL, SETTING_INT, AT(telegram_outbox), "1000", 1, 1000000,
     .help = "messages of the bot that may be queued; further ones are refused"},
    {"PAWL_TELEGRAM_CHAT_INTERVAL", NULL, SETTING_DURATION_MS, AT(telegram_chat_interval), "1s", 0, 60000,
     .help = "shortest time between two messages to one chat, over all pods"},
    {"PAWL_TELEGRAM_GROUP_PER_MINUTE", NULL, SETTING_INT, AT(telegram_group_per_minute), "20", 1, 1000,
     .help = "most messages to one group within a minute, over all pods"},
    {"PAWL_TELEGRAM_PER_SECOND", NULL, SETTING_INT, AT(telegram_per_second), "30", 1, 10000,
     .help = "most messages of the bot within a second, over all pods"},
    {"PAWL_RATING_USER_PER_MINUTE", NULL, SETTING_INT, AT(rating_user_per_minute), "30", 1, 100000,
     .help = "commands of one user within a minute that the rating bot answers, in each group and in the chat with the bot"},
    {"PAWL_RATING_GROUP_PER_MINUTE", NULL, SETTING_INT, AT(rating_group_per_minute), "300", 1, 100000,
     .help = "commands of one group within a minute that the rating bot answers"},
    {"PAWL_ALERT_POOL", NULL, SETTING_INT, AT(alert_pool), "90", 1, 100,
     .help = "alert when more than this percentage of the pool's connections are in use"},
    {"PAWL_ALERT_FAILING", NULL, SETTING_INT, AT(alert_failing), "10", 0, 100,
     .help = "alert when more than this percentage of a pod's requests, or of all handlers, failed within 5 minutes"},
    {"PAWL_ALERT_DEAD_LETTERS", NULL, SETTING_INT, AT(alert_dead_letters), "100", 0, 1000000000,
     .help = "alert when more dead letters than this are unresolved"},
    {"PAWL_ALERT_WAITING", NULL, SETTING_DURATION_MS, AT(alert_waiting), "5m", 1000, MS_MAX,
     .help = "alert when a command has been queued for longer"},
    {"PAWL_ALERT_RATE_LIMITED", NULL, SETTING_INT, AT(alert_rate_limited), "10", 0, 1000000000,
     .help = "alert when other servers responded with 429 more often than this within an hour, over all pods"},
    {"PAWL_ALERT_WEBHOOK", NULL, SETTING_TEXT, AT(alert_webhook), .check = webhook_check, .secret = true, .reloads = true,
     .help = "URL that gets a POST when an alert fires or is resolved"},
    {"PAWL_LOG", NULL, SETTING_WORD, AT(log), .words = log_words, .reloads = true,
     .help = "lowest level that is logged; unset: info for pawl serve, error for other commands"},
    {"PAWL_LOG_FORMAT", NULL, SETTING_WORD, AT(log_format), .words = format_words,
     .help = "text or json; unset: text on a terminal, else json"},
};
/* clang-format on */

const SettingTable settings_table = {rows, COUNT(rows)};

/* clang-format off */
#define WORKER_AT(field) offsetof(WorkerSettings, field)
static const Setting worker_rows[] = {
    {"domain", NULL, SETTING_TEXT, WORKER_AT(domain),
     .help = "domain whose commands it handles; unset: NAME"},
    {"exec", NULL, SETTING_TEXT, WORKER_AT(exec),
     .help = "shell command line that is run for each command, as by pawl work --exec"},
    {"sql", NULL, SETTING_TEXT, WORKER_AT(sql),
     .help = "schema.function that is called for each command, as by pawl work --sql"},
    {"types", NULL, SETTING_TEXT, WORKER_AT(types_text),
     .help = "only commands of these types, comma-separated; unset: all"},
    {"concurrency", NULL, SETTING_INT, WORKER_AT(concurrency), "8", 1, WORKER_CONCURRENCY_MAX,
     .help = "commands that are handled at the same time"},
    {"batch", NULL, SETTING_INT, WORKER_AT(batch), .min = 1, .max = CLAIM_MAX,
     .help = "most commands per claim; unset: the number of free handlers"},
    {"lease", NULL, SETTING_DURATION_MS, WORKER_AT(lease_ms), "30s", WORKER_LEASE_MS_MIN, WORKER_TIME_MS_MAX,
     .help = "how long a lease lasts without a heartbeat"},
    {"timeout", NULL, SETTING_DURATION_MS, WORKER_AT(timeout_ms), .min = WORKER_LEASE_MS_MIN, .max = WORKER_TIME_MS_MAX,
     .help = "how long one handler may run; then it is stopped and its command is retried; unset: no limit"},
    {"alone", NULL, SETTING_BOOL, WORKER_AT(alone), "false",
     .help = "each call of the function in sql has a transaction of its own; false: short ones share some"},
};
/* clang-format on */
static const SettingTable worker_table     = {worker_rows, COUNT(worker_rows)};
const SettingGroup        settings_workers = {"worker", &worker_table, sizeof(WorkerSettings)};

static const char *home_default(Arena *arena)
{
    const char          *home = getenv("HOME");
    const struct passwd *user;

    if (geteuid() == 0)
        return "/var/lib/pawl";
    if (!home || home[0] != '/')
        home = (user = getpwuid(geteuid())) ? user->pw_dir : "/";
    return arena_print(arena, "%s/.pawl", home);
}

static int64_t clamp(int64_t value, int64_t least, int64_t most)
{
    return value < least ? least : value > most ? most : value;
}

/* ---- workers ---- */

static ErrorCode worker_complete(const SettingSection *section, Arena *arena, Error *reterr)
{
    WorkerSettings *worker = section->values;

    if (!worker->exec == !worker->sql)
        return fail(reterr, ERR_USAGE, "%s must have exactly one of exec and sql", section->location);
    if (worker->alone && !worker->sql)
        return fail(reterr, ERR_USAGE, "%s: alone is for sql: programs share no transaction", section->location);
    if (!worker->domain)
        worker->domain = section->name;
    TRY(send_check_domain(arena_print(arena, "%s: domain", section->location), worker->domain, reterr) == OK
            ? OK
            : ERR_USAGE);
    if (worker->types_text)
        TRY(worker_types_read(arena_print(arena, "%s: types", section->location), worker->types_text, arena,
                              &worker->types, reterr));
    return OK;
}

static ErrorCode workers_load(const SettingSources *sources, Arena *arena, Settings *settings, Error *reterr)
{
    SettingSection *list = NULL;
    size_t          count;

    TRY(setting_load_sections(sources, arena, &list, &count, reterr));
    for (size_t i = 0; i < count; i++)
        TRY(worker_complete(&list[i], arena, reterr));
    settings->workers_list  = list;
    settings->workers_count = count;
    return OK;
}

/* ---- what depends on the machine and on the roles ---- */

unsigned settings_roles(const Settings *settings)
{
    return (unsigned)settings->role & ~(settings->telegram_token ? 0u : (unsigned)ROLE_BOT);
}

bool settings_has_webhook(const Settings *settings)
{
    return settings->telegram_token && strcmp(settings->telegram_mode, "webhook") == 0;
}

/* Of the sections [worker NAME]: those that call functions in SQL, or those that run programs. */
static int64_t section_handlers(const Settings *settings, bool is_sql)
{
    int64_t count = 0;

    for (size_t i = 0; i < settings->workers_count && settings->role & ROLE_WORKER; i++) {
        const WorkerSettings *values = settings->workers_list[i].values;

        if ((values->sql != NULL) == is_sql)
            count += values->concurrency;
    }
    return count;
}

/* Handlers of this process; 0: it runs none. */
static int64_t handlers_count(const SettingsGiven *given, const Settings *settings)
{
    if (given->handlers || !given->is_daemon)
        return given->handlers;
    return section_handlers(settings, true) + section_handlers(settings, false);
}

/* D1, for each kind of thread that uses the pool: two more than there are of them, from 2 to 10. */
static int64_t pool_share(int64_t threads)
{
    return clamp(threads + 2, 2, 10);
}

/* Matches share transactions, so more updates than this need no more connections. */
#define BOT_TRANSACTIONS 16

/* A function in SQL holds its connection for as long as it runs. So in a pod each has one of its own, and however slow they are, requests
 * and tasks keep theirs. A program needs one only to settle. */
static int64_t pool_default(const SettingsGiven *given, const Settings *settings)
{
    int64_t programs = section_handlers(settings, false), functions = section_handlers(settings, true);
    int64_t bot = settings->telegram_token && settings->role & ROLE_BOT
                      ? clamp(settings->telegram_concurrency, 1, BOT_TRANSACTIONS) + 4
                      : 0;

    if (!given->is_daemon)
        return pool_share(settings->workers);
    if (given->handlers)
        return pool_share(given->handlers);
    return clamp((settings->role & ROLE_API ? pool_share(settings->http_threads) : pool_share(TASKS_THREADS)) +
                     (programs ? pool_share(programs) : 0) + (functions ? functions + 2 : 0) + bot,
                 2, POOL_MAX);
}

static ErrorCode complete(const SettingsGiven *given, Arena *arena, Settings *settings, Error *reterr)
{
    if (!settings->home)
        settings->home = home_default(arena);
    if (!settings->workers)
        settings->workers = clamp(sysconf(_SC_NPROCESSORS_ONLN), 1, 1024);
    if (!settings->pool_max) {
        settings->pool_max = pool_default(given, settings);
        if (settings->pool_max < clamp(settings->pool_min, 2, 10))
            settings->pool_max = clamp(settings->pool_min, 2, 10);
    }
    if (!settings->pool_min)
        settings->pool_min = clamp(2, 1, settings->pool_max);
    if (settings->pool_min > settings->pool_max)
        return fail(reterr, ERR_USAGE, "PAWL_POOL_MIN must be at most PAWL_POOL_MAX (%d), got %d",
                    (int)settings->pool_max, (int)settings->pool_min);
    if (settings->telegram_token && strcmp(settings->telegram_api_root, TELEGRAM_API_ROOT) == 0 &&
        !telegram_token_is_botfathers(settings->telegram_token))
        return fail(reterr, ERR_USAGE,
                    "PAWL_TELEGRAM_TOKEN must be NUMBER:SECRET as BotFather gives it, such as 424242:AAE...");
    if (settings_has_webhook(settings) && !settings->telegram_webhook_secret)
        return fail(
            reterr, ERR_USAGE,
            "PAWL_TELEGRAM_MODE is webhook: PAWL_TELEGRAM_WEBHOOK_SECRET must be set, or anyone could send updates");
    /* A worker keeps one for heartbeats however small its pool is; a pod has other uses for the second and third. */
    settings->pool_reserved = given->is_daemon && settings->pool_max > (handlers_count(given, settings) ? 1 : 3);
    if (!settings->log)
        settings->log = given->is_daemon ? "info" : "error"; /* a command has its own sentence to say */
    if (!settings->log_format)
        settings->log_format = isatty(STDERR_FILENO) ? "text" : "json";
    if (!settings->listen_database_url)
        settings->listen_database_url = settings->database_url;
    return OK;
}

/* The file is looked for under PAWL_HOME first, so that one must be known before the file is read. */
static const char *home_early(const SettingsGiven *given, Arena *arena)
{
    const char *home = getenv("PAWL_HOME");

    for (const SettingFlag *flag = given->flags; flag && flag->name; flag++)
        if (strcmp(flag->name, "PAWL_HOME") == 0)
            home = flag->value;
    return home && home[0] ? home : home_default(arena);
}

ErrorCode settings_load(const SettingsGiven *given, Arena *arena, Settings *ret_settings, Error *reterr)
{
    const char *const files[]  = {arena_print(arena, "%s/pawl.ini", home_early(given, arena)), "/etc/pawl.ini", NULL};
    SettingSources    sources  = {.file        = given->file,
                                  .files       = files,
                                  .environment = (const char *const *)environ,
                                  .flags       = given->flags,
                                  .group       = &settings_workers};
    Settings          settings = {0};

    TRY(setting_load(&settings_table, &sources, arena, &settings, reterr));
    TRY(workers_load(&sources, arena, &settings, reterr));
    TRY(complete(given, arena, &settings, reterr));
    *ret_settings = settings;
    return OK;
}

LogLevel settings_log_level(const Settings *settings)
{
    LogLevel level = LOG_DEBUG;

    while (strcmp(log_words[level], settings->log) != 0) /* the table lets no other word in */
        level++;
    return level;
}
