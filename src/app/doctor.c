/*
 * doctor.c - see doctor.h.
 */
#include "app/doctor.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "app/alert_rules.h"
#include "app/app.h"
#include "base/clock.h"
#include "pg/migrate.h"
#include "pg/tx.h"
#include "sql.h"

#define SKEW_WARN_MS      2000
#define CONNECTIONS_WARN  80      /* percent */
#define SLOT_AGE_WARN     1000000 /* transactions: a quarter of an hour of a busy server */
#define CHECK_MS          10000
#define DISK_WARN_MIB     1024
#define DISK_WARN_PERCENT 5
#define DISK_FAIL_MIB     100

/* One row about the server. */
#define VITALS_COLUMNS(X, T)                    \
    X(T, int64_t, DB_TIME, now)                 \
    X(T, const char *, DB_TEXT, version)        \
    X(T, int32_t, DB_I32, version_number)       \
    X(T, bool, DB_BOOL, read_only)              \
    X(T, int32_t, DB_I32, connections)          \
    X(T, int32_t, DB_I32, connections_max)      \
    X(T, int64_t, DB_I64, longest_seconds)      \
    X(T, int32_t, DB_I32, longest_pid)          \
    X(T, const char *, DB_TEXT, longest_name)   \
    X(T, int64_t, DB_I64, wraparound_age)       \
    X(T, bool, DB_BOOL, synchronous)            \
    X(T, bool, DB_BOOL, durable)                \
    X(T, const char *, DB_TEXT, data_directory) \
    X(T, const char *, DB_TEXT, username)       \
    X(T, bool, DB_BOOL, sees_all)               \
    X(T, int64_t, DB_I64, prepared_seconds)     \
    X(T, const char *, DB_TEXT, prepared_gid)   \
    X(T, const char *, DB_TEXT, prepared_in)    \
    X(T, const char *, DB_TEXT, slot_name)      \
    X(T, bool, DB_BOOL, slot_active)            \
    X(T, int64_t, DB_I64, slot_age)
typedef struct {
    VITALS_COLUMNS(DB_FIELD, Vitals)
} Vitals;
DB_SHAPE(vitals, Vitals, VITALS_COLUMNS);

#define BATCH_IDLE_S   86400
#define LEDGER_AHEAD_S 5 /* as in sql/wallet/post_batch.sql */

#define STUCK_COLUMNS(X, T)          \
    X(T, int64_t, DB_I64, expired)   \
    X(T, int64_t, DB_I64, failed)    \
    X(T, int64_t, DB_I64, unrescued) \
    X(T, int64_t, DB_I64, idle_s)    \
    X(T, int64_t, DB_I64, read)      \
    X(T, int64_t, DB_I64, lost)      \
    X(T, int64_t, DB_I64, keyless)
typedef struct {
    STUCK_COLUMNS(DB_FIELD, Stuck)
} Stuck;
DB_SHAPE(stuck, Stuck, STUCK_COLUMNS);

/* What alerts about shared state are about. */
#define WAITING_COLUMNS(X, T)                  \
    X(T, int64_t, DB_I64, queued_s)            \
    X(T, const char *, DB_TEXT, queued_domain) \
    X(T, const char *, DB_TEXT, queued_type)   \
    X(T, const char *, DB_TEXT, queued_id)     \
    X(T, int64_t, DB_I64, in_tsq)              \
    X(T, const char *, DB_TEXT, tsq_domain)    \
    X(T, int64_t, DB_I64, letters_open)        \
    X(T, int64_t, DB_I64, retention_jump_s)    \
    X(T, int64_t, DB_I64, handlers)            \
    X(T, int64_t, DB_I64, handlers_failed)     \
    X(T, int64_t, DB_I64, rate_limited)
typedef struct {
    WAITING_COLUMNS(DB_FIELD, Waiting)
} Waiting;
DB_SHAPE(waiting, Waiting, WAITING_COLUMNS);

/* What checks need and find out for each other. */
typedef struct {
    const SettingsGiven *given;
    Settings             serve;      /* as pawl serve would have them */
    bool                 is_private; /* no URL is given */
    int64_t              long_tx_ms;
    Arena               *arena;
    const char          *data_dir; /* of a private server, whether it answers or not; NULL: not known */
    App                 *app;      /* NULL until the check "settings" passed */
    Vitals               vitals;   /* asked once, by the check "connection" */
    int64_t              skew_ms;  /* of the database's clock, when it answered */
    Waiting              waiting;  /* asked once, by the check "queues" */
} Doctor;

#define RIGHTS_COLUMNS(X, T)             \
    X(T, const char *, DB_TEXT, missing) \
    X(T, int64_t, DB_I64, ungranted)     \
    X(T, const char *, DB_TEXT, example) \
    X(T, const char *, DB_TEXT, owner)   \
    X(T, bool, DB_BOOL, app_lacks_schema)
typedef struct {
    RIGHTS_COLUMNS(DB_FIELD, Rights)
} Rights;
DB_SHAPE(rights, Rights, RIGHTS_COLUMNS);

typedef ErrorCode Check(Doctor *doctor, CheckResult *result, Error *reterr);

static ErrorCode found(CheckResult *result, CheckState state, const char *text, const char *advice)
{
    result->state  = state;
    result->text   = text;
    result->advice = advice;
    return OK;
}

static ErrorCode ask(Doctor *doctor, const char *sql, const DbShape *shape, void *ret_row, Error *reterr)
{
    TxOptions options = {.name      = "doctor",
                         .deadline  = deadline_in_ms(CHECK_MS),
                         .arena     = doctor->arena,
                         .read_only = true};

    return db_call(doctor->app->pool, &options, sql, DB_NONE, shape, ret_row, reterr);
}

static ErrorCode ask_vitals(Doctor *doctor, Error *reterr)
{
    Wall before = clock_wall();

    TRY(ask(doctor, sql_app_doctor_vitals, &vitals_shape, &doctor->vitals, reterr));
    doctor->skew_ms = (doctor->vitals.now - (before.us + clock_wall().us) / 2) / 1000;
    return OK;
}

/* ---- the checks ---- */

/* A doctor changes nothing: a private server that does not run is neither created nor started. */
static ErrorCode private_url(Doctor *doctor, Error *reterr)
{
    ClusterOptions options = {.home = doctor->app->settings.home};
    ClusterStatus  status;

    TRY(cluster_status(&options, doctor->arena, &status, reterr));
    if (!status.initialised)
        return fail(reterr, ERR_UNAVAILABLE, "there is no private PostgreSQL below \"%s\" yet", options.home);
    doctor->data_dir = status.data_dir;
    if (!status.running)
        return fail(reterr, ERR_UNAVAILABLE, "the private PostgreSQL below \"%s\" does not run", options.home);
    doctor->app->settings.database_url = status.url;
    return OK;
}

static ErrorCode check_settings(Doctor *doctor, CheckResult *result, Error *reterr)
{
    SettingsGiven serve = *doctor->given;

    TRY(app_open(doctor->given, APP_SETTINGS, &doctor->app, reterr));
    doctor->is_private = doctor->app->settings.database_url == NULL;
    serve.is_daemon    = true;
    TRY(settings_load(&serve, doctor->arena, &doctor->serve, reterr));
    if (doctor->is_private)
        TRY(private_url(doctor, reterr));
    TRY(app_reach(doctor->app, APP_POOL, reterr));
    return found(result, CHECK_OK,
                 arena_print(doctor->arena, "home %s, %s database, pool of pawl serve %d to %d",
                             doctor->app->settings.home, doctor->is_private ? "private" : "given",
                             (int)doctor->serve.pool_min, (int)doctor->serve.pool_max),
                 NULL);
}

/* Variables that are no settings of the program: for its handlers, its tests and the examples. */
static bool is_known_variable(const char *name, const char *const *names, size_t count)
{
    static const char *const others[] = {"PAWL_COMMAND_ID",   "PAWL_DOMAIN", "PAWL_TYPE",  "PAWL_ATTEMPT",
                                         "PAWL_MAX_ATTEMPTS", "PAWL_URL",    "PAWL_TOKEN", "PAWL_FAULT"};

    for (size_t i = 0; i < count; i++)
        if (strcmp(name, names[i]) == 0)
            return true;
    for (size_t i = 0; i < COUNT(others); i++)
        if (strcmp(name, others[i]) == 0)
            return true;
    return strncmp(name, "PAWL_TEST", strlen("PAWL_TEST")) == 0;
}

/* In the file a misspelled name is refused; in the environment it is ignored, because other programs may have variables like it. */
static ErrorCode check_environment(Doctor *doctor, CheckResult *result, Error *reterr)
{
    const char **names = arena_alloc(doctor->arena, settings_table.count * sizeof *names);
    Text         text;

    (void)reterr;
    for (size_t i = 0; i < settings_table.count; i++)
        names[i] = settings_table.rows[i].name;
    text_init(&text, doctor->arena, TEXT_MAX_LINE);
    for (char **variable = environ; *variable; variable++) {
        const char *name = arena_bytes(doctor->arena, *variable, strcspn(*variable, "="));
        const char *near;

        if (strncmp(name, "PAWL_", strlen("PAWL_")) != 0 || is_known_variable(name, names, settings_table.count))
            continue;
        near = text_nearest(name, names, settings_table.count);
        text_print(&text, "%s%.60s is no setting%s%s%s", text.length ? "; " : "", name, near ? ", did you mean " : "",
                   near ? near : "", near ? "?" : "");
    }
    if (text.length)
        return found(result, CHECK_WARN, text_string(&text), "correct the name, or unset it: see pawl help settings");
    return found(result, CHECK_OK, "every variable PAWL_... is a setting", NULL);
}

static ErrorCode check_connection(Doctor *doctor, CheckResult *result, Error *reterr)
{
    Mono      start    = clock_mono();
    Checkout *checkout = NULL;

    TRY(pool_acquire(doctor->app->pool, deadline_in_ms(CHECK_MS), &checkout, reterr));
    const char *text =
        arena_print(doctor->arena, "connected in %.1f ms (%s)", (double)mono_us_between(start, clock_mono()) / 1e3,
                    conn_name(checkout_conn(checkout)));
    pool_release(checkout);
    TRY(ask_vitals(doctor, reterr));
    return found(result, CHECK_OK, text, NULL);
}

static ErrorCode check_server(Doctor *doctor, CheckResult *result, Error *reterr)
{
    const Vitals *vitals = &doctor->vitals;

    (void)reterr;
    if (vitals->version_number < 150000)
        return found(result, CHECK_FAIL, arena_print(doctor->arena, "PostgreSQL %s", vitals->version),
                     "pawl needs PostgreSQL 15 or newer");
    if (vitals->read_only)
        return found(result, CHECK_FAIL, "this server is read-only",
                     "name the primary in PAWL_DATABASE_URL, or all hosts with target_session_attrs=read-write");
    if (!vitals->durable)
        return found(result, CHECK_FAIL, "fsync is off: a power cut loses or corrupts data",
                     "set fsync = on in postgresql.conf");
    if (!vitals->synchronous)
        return found(result, CHECK_WARN, "synchronous_commit is off: a crash can lose answers already given",
                     "set synchronous_commit = on for this database");
    return found(result, CHECK_OK, arena_print(doctor->arena, "PostgreSQL %s, writable, durable", vitals->version),
                 NULL);
}

static ErrorCode check_schema(Doctor *doctor, CheckResult *result, Error *reterr)
{
    ErrorCode code = migrate_check(doctor->app->pool, &schema_embedded, deadline_in_ms(CHECK_MS), reterr);

    if (code == ERR_CONFLICT || code == ERR_NOT_FOUND)
        return found(result, CHECK_FAIL, arena_text(doctor->arena, reterr->text),
                     "run pawl migrate with the newest pawl");
    TRY(code);
    return found(result, CHECK_OK, arena_print(doctor->arena, "version %d", schema_embedded.migration_count), NULL);
}

static ErrorCode check_roles(Doctor *doctor, CheckResult *result, Error *reterr)
{
    Rights rights;

    TRY(ask(doctor, sql_app_doctor_rights, &rights_shape, &rights, reterr));
    if (rights.missing[0])
        return found(
            result, CHECK_WARN, arena_print(doctor->arena, "roles are missing: %s", rights.missing),
            arena_print(
                doctor->arena,
                "let an administrator create role NAME nologin for each, then run as %s: select pawl.grant_roles()",
                rights.owner));
    if (rights.ungranted)
        return found(result, CHECK_WARN,
                     arena_print(doctor->arena, "%" PRId64 " rights of roles are missing, such as %s", rights.ungranted,
                                 rights.example),
                     arena_print(doctor->arena, "run as %s: select pawl.grant_roles()", rights.owner));
    if (doctor->is_private && rights.app_lacks_schema)
        return found(result, CHECK_WARN, "login app may not create objects in schema app",
                     "run as a superuser: alter schema app owner to app; likewise its tables, if pg_restore --no-owner "
                     "made them");
    return found(result, CHECK_OK, "all exist, with their privileges", NULL);
}

static ErrorCode check_disk(Doctor *doctor, CheckResult *result, Error *reterr)
{
    const char    *path = doctor->data_dir ? doctor->data_dir : doctor->vitals.data_directory;
    struct statvfs disk;

    (void)reterr;
    if (!path || !path[0] || statvfs(path, &disk) != 0)
        return found(result, CHECK_OK, "not visible from here: watch the server's disk where it is", NULL);

    int64_t     free_mib = (int64_t)((uint64_t)disk.f_bavail * disk.f_frsize >> 20);
    int         percent  = disk.f_blocks ? (int)(disk.f_bavail * 100 / disk.f_blocks) : 100;
    const char *text =
        arena_print(doctor->arena, "%" PRId64 " MiB (%d %%) are free where the data is", free_mib, percent);

    if (free_mib < DISK_FAIL_MIB)
        return found(result, CHECK_FAIL, text, "free some space now: without it PostgreSQL stops");
    if (free_mib < DISK_WARN_MIB || percent < DISK_WARN_PERCENT)
        return found(result, CHECK_WARN, text,
                     "free some space or enlarge the disk; see replication slots for retained WAL");
    return found(result, CHECK_OK, text, NULL);
}

/* To a user without the right, other users' sessions appear idle and of no kind, so the results are too optimistic. */
static ErrorCode found_blind(const Doctor *doctor, CheckResult *result)
{
    return found(result, CHECK_WARN, "cannot see the sessions of other users",
                 arena_print(doctor->arena, "grant pg_read_all_stats to %s", doctor->vitals.username));
}

static ErrorCode check_pool(Doctor *doctor, CheckResult *result, Error *reterr)
{
    const Vitals *vitals = &doctor->vitals;
    int           free   = vitals->connections_max - vitals->connections;

    (void)reterr;
    if (free < (int)doctor->serve.pool_max)
        return found(result, CHECK_WARN,
                     arena_print(doctor->arena,
                                 "the server has %d connections left, the pool of pawl serve may want %d", free,
                                 (int)doctor->serve.pool_max),
                     "raise max_connections, lower PAWL_POOL_MAX, or put PgBouncer in front");
    if (vitals->connections * 100 > vitals->connections_max * CONNECTIONS_WARN)
        return found(result, CHECK_WARN,
                     arena_print(doctor->arena, "%d of %d connections are in use", vitals->connections,
                                 vitals->connections_max),
                     "find the clients that hold connections: pg_stat_activity");
    if (!vitals->sees_all)
        return found_blind(doctor, result);
    return found(result, CHECK_OK,
                 arena_print(doctor->arena, "%d of %d connections in use", vitals->connections,
                             vitals->connections_max),
                 NULL);
}

static ErrorCode check_clock(Doctor *doctor, CheckResult *result, Error *reterr)
{
    int64_t skew_ms = doctor->skew_ms;

    (void)reterr;
    if (llabs(skew_ms) > SKEW_WARN_MS)
        return found(result, CHECK_WARN,
                     arena_print(doctor->arena, "the database's clock is %" PRId64 " ms away from this machine's",
                                 skew_ms),
                     "run NTP on both; leases and timers follow the database's clock");
    return found(result, CHECK_OK, arena_print(doctor->arena, "differs from the database's by %" PRId64 " ms", skew_ms),
                 NULL);
}

static ErrorCode check_long_transactions(Doctor *doctor, CheckResult *result, Error *reterr)
{
    const Vitals *vitals = &doctor->vitals;

    (void)reterr;
    if (vitals->longest_seconds > 0 && vitals->longest_seconds * 1000 >= doctor->long_tx_ms)
        return found(result, CHECK_WARN,
                     arena_print(doctor->arena,
                                 "process %d (%s) has held a snapshot for %" PRId64 " s: vacuum cannot clean up",
                                 vitals->longest_pid, vitals->longest_name, vitals->longest_seconds),
                     arena_print(doctor->arena, "find its owner, or end it: select pg_terminate_backend(%d)",
                                 vitals->longest_pid));
    if (vitals->prepared_seconds > 0 && vitals->prepared_seconds * 1000 >= doctor->long_tx_ms)
        return found(result, CHECK_WARN,
                     arena_print(doctor->arena,
                                 "prepared transaction %s has been open for %" PRId64 " s: vacuum cannot clean up",
                                 vitals->prepared_gid, vitals->prepared_seconds),
                     arena_print(doctor->arena, "find its owner, or end it in database \"%s\": rollback prepared %s",
                                 vitals->prepared_in, vitals->prepared_gid));
    if (!vitals->sees_all)
        return found_blind(doctor, result);
    return found(result, CHECK_OK,
                 arena_print(doctor->arena, "the oldest snapshot is %" PRId64 " s old", vitals->longest_seconds), NULL);
}

static ErrorCode check_slots(Doctor *doctor, CheckResult *result, Error *reterr)
{
    const Vitals *vitals = &doctor->vitals;

    (void)reterr;
    if (vitals->slot_name[0] == '\0')
        return found(result, CHECK_OK, "no replication slot holds vacuum back", NULL);
    if (!vitals->slot_active)
        return found(result, CHECK_WARN,
                     arena_print(doctor->arena, "replication slot \"%s\" has no reader: vacuum cannot clean up",
                                 vitals->slot_name),
                     arena_print(doctor->arena, "start its reader, or drop it: select pg_drop_replication_slot('%s')",
                                 vitals->slot_name));
    if (vitals->slot_age > SLOT_AGE_WARN)
        return found(result, CHECK_WARN,
                     arena_print(doctor->arena,
                                 "replication slot \"%s\" is %" PRId64 " transactions behind: vacuum cannot clean up",
                                 vitals->slot_name, vitals->slot_age),
                     "find the slow reader, or the long query on the standby");
    return found(result, CHECK_OK,
                 arena_print(doctor->arena, "the slowest is %" PRId64 " transactions behind", vitals->slot_age), NULL);
}

static ErrorCode check_wraparound(Doctor *doctor, CheckResult *result, Error *reterr)
{
    const Vitals *vitals = &doctor->vitals;

    (void)reterr;
    if (vitals->wraparound_age > 1000000000)
        return found(result, CHECK_WARN,
                     arena_print(doctor->arena, "the oldest transaction id is %" PRId64 " old", vitals->wraparound_age),
                     "vacuum (freeze) the database; see long transactions and replication slots");
    return found(result, CHECK_OK, "transaction ids are far from wraparound", NULL);
}

static ErrorCode check_stuck(Doctor *doctor, CheckResult *result, Error *reterr)
{
    Stuck stuck;

    TRY(ask(doctor, sql_app_doctor_stuck, &stuck_shape, &stuck, reterr));
    if (stuck.lost)
        return found(result, CHECK_FAIL,
                     arena_print(doctor->arena, "%" PRId64 " of %" PRId64 " commands are in no queue and have no end",
                                 stuck.lost, stuck.read),
                     "this must not happen: keep the database as it is and report it");
    if (stuck.keyless)
        return found(result, CHECK_FAIL,
                     arena_print(doctor->arena, "%" PRId64 " order keys are held by no command, or wait for one",
                                 stuck.keyless),
                     "this must not happen: keep the database as it is and report it");
    if (stuck.unrescued)
        return found(result, CHECK_WARN,
                     arena_print(doctor->arena, "%" PRId64 " commands have a lease that ended a minute ago or earlier",
                                 stuck.unrescued),
                     "a worker or a pawl serve with role monitor requeues them: is one running?");
    if (stuck.idle_s > BATCH_IDLE_S)
        return found(result, CHECK_WARN,
                     arena_print(doctor->arena, "an open batch has had no new command for %" PRId64 " hours",
                                 stuck.idle_s / 3600),
                     "seal it with POST /v1/batches/{id}/seal");
    if (stuck.expired)
        return found(result, CHECK_WARN,
                     arena_print(doctor->arena, "%" PRId64 " dead letters have an expired lease", stuck.expired),
                     "a pawl serve with role monitor takes them over: is one running?");
    if (stuck.failed)
        return found(result, CHECK_WARN,
                     arena_print(doctor->arena, "%" PRId64 " dead letters have failed for good", stuck.failed),
                     "see pawl dlq list --status failed, then retry or delete them");
    return found(result, CHECK_OK, "no row is stuck", NULL);
}

/* Postings follow the clock again immediately; the times that were written remain. */
static ErrorCode check_ledger_clock(Doctor *doctor, CheckResult *result, Error *reterr)
{
    int64_t ahead_s;

    TRY(ask(doctor, sql_app_doctor_ledger, &db_i64_shape, &ahead_s, reterr));
    if (ahead_s > LEDGER_AHEAD_S)
        return found(result, CHECK_WARN,
                     arena_print(doctor->arena,
                                 "transactions of the ledger are dated %" PRId64 " s after the database's clock",
                                 ahead_s),
                     "the database's clock was ahead: check its time source; their order is that of the versions");
    return found(result, CHECK_OK, "no transaction of the ledger is dated in the future", NULL);
}

static ErrorCode check_queues(Doctor *doctor, CheckResult *result, Error *reterr)
{
    Waiting    *waiting = &doctor->waiting;
    const char *text;

    TRY(ask(doctor, sql_app_doctor_waiting, &waiting_shape, waiting, reterr));
    if (!waiting->queued_id)
        return found(result, CHECK_OK, "no command is queued", NULL);
    text = arena_print(doctor->arena, "the oldest queued command, %s (%s / %s), is queued for %" PRId64 " s",
                       waiting->queued_id, waiting->queued_domain, waiting->queued_type, waiting->queued_s);
    if (waiting->queued_s * 1000 <= doctor->serve.alert_waiting)
        return found(result, CHECK_OK, text, NULL);
    if (strncmp(waiting->queued_domain, "process:", strlen("process:")) == 0)
        return found(result, CHECK_WARN, text,
                     "start a pawl serve with the role worker, or the program that runs processes of this type");
    return found(result, CHECK_WARN, text,
                 arena_print(doctor->arena, "start workers: pawl work %s, or a section [worker NAME] for pawl serve",
                             waiting->queued_domain));
}

static ErrorCode check_troubleshooting(Doctor *doctor, CheckResult *result, Error *reterr)
{
    const Waiting *waiting = &doctor->waiting;

    (void)reterr;
    if (waiting->in_tsq == 0)
        return found(result, CHECK_OK, "no command waits for an operator", NULL);
    return found(result, CHECK_WARN,
                 arena_print(doctor->arena, "%" PRId64 " command%s for an operator, the oldest in domain %s",
                             waiting->in_tsq, waiting->in_tsq == 1 ? " waits" : "s wait", waiting->tsq_domain),
                 "see pawl tsq list, and pawl process list --status WAITING_FOR_TSQ; then retry, cancel or complete");
}

static ErrorCode check_handlers(Doctor *doctor, CheckResult *result, Error *reterr)
{
    const Waiting *waiting = &doctor->waiting;
    const char    *text = arena_print(doctor->arena, "%" PRId64 " of %" PRId64 " handlers of the last 5 minutes failed",
                                      waiting->handlers_failed, waiting->handlers);

    (void)reterr;
    if (alert_handlers_percent(waiting->handlers, waiting->handlers_failed) > doctor->serve.alert_failing)
        return found(result, CHECK_WARN, text, "see the logs of the workers, and pawl tsq list");
    return found(result, CHECK_OK, text, NULL);
}

static ErrorCode check_dead_letters(Doctor *doctor, CheckResult *result, Error *reterr)
{
    const char *text = arena_print(doctor->arena, "%" PRId64 " unresolved", doctor->waiting.letters_open);

    (void)reterr;
    if (doctor->waiting.letters_open > doctor->serve.alert_dead_letters)
        return found(result, CHECK_WARN, text, "see pawl dlq list");
    return found(result, CHECK_OK, text, NULL);
}

static ErrorCode check_retention(Doctor *doctor, CheckResult *result, Error *reterr)
{
    (void)reterr;
    if (doctor->waiting.retention_jump_s > 0)
        return found(result, CHECK_WARN,
                     arena_print(doctor->arena,
                                 "retention waits for a day, because the clock is %" PRId64 " s past its last run",
                                 doctor->waiting.retention_jump_s),
                     "check the server's time source, within a day");
    return found(result, CHECK_OK, "does not wait", NULL);
}

static ErrorCode check_rate_limits(Doctor *doctor, CheckResult *result, Error *reterr)
{
    const char *text = arena_print(doctor->arena, "other servers answered 429 %" PRId64 " times within the last hour",
                                   doctor->waiting.rate_limited);

    (void)reterr;
    if (doctor->waiting.rate_limited > doctor->serve.alert_rate_limited)
        return found(result, CHECK_WARN, text,
                     "see pawl_rate_limited_total of the pods: which server is called too often?");
    return found(result, CHECK_OK, text, NULL);
}

static const struct {
    const char *name;
    Check      *check;
    bool        needs_schema;
    bool        vital; /* without it nothing after it can be checked */
} checks[] = {
    {"settings",          check_settings,          false, true },
    {"environment",       check_environment,       false, false},
    {"connection",        check_connection,        false, true },
    {"server",            check_server,            false, false},
    {"schema",            check_schema,            false, false},
    {"roles",             check_roles,             true,  false},
    {"pool",              check_pool,              false, false},
    {"clock",             check_clock,             false, false},
    {"long transactions", check_long_transactions, false, false},
    {"replication slots", check_slots,             false, false},
    {"wraparound",        check_wraparound,        false, false},
    {"disk",              check_disk,              false, false},
    {"stuck rows",        check_stuck,             true,  false},
    {"queues",            check_queues,            true,  false},
    {"troubleshooting",   check_troubleshooting,   true,  false},
    {"handlers",          check_handlers,          true,  false},
    {"dead letters",      check_dead_letters,      true,  false},
    {"retention",         check_retention,         true,  false},
    {"rate limits",       check_rate_limits,       true,  false},
    {"ledger clock",      check_ledger_clock,      true,  false},
};

const char *check_state_text(CheckState state)
{
    static const char *const texts[] = {
        [CHECK_OK] = "ok", [CHECK_WARN] = "warn", [CHECK_FAIL] = "fail", [CHECK_SKIPPED] = "skipped"};

    return texts[state];
}

/* The codes that a check may return, as advice. */
static const char *advice_for(const Doctor *doctor, ErrorCode code)
{
    switch (code) {
    case ERR_USAGE:
        return "see pawl help settings";
    case ERR_REFUSED:
        return "check user, password and database in PAWL_DATABASE_URL, and pg_hba.conf on the server";
    case ERR_UNAVAILABLE:
        if (doctor->app && !doctor->app->pool)
            return "pawl serve and pawl db start create and start it";
        return "is PostgreSQL running, and reachable from here? see host and port in PAWL_DATABASE_URL";
    case ERR_TIMEOUT:
        return "is PostgreSQL running, and reachable from here? see host and port in PAWL_DATABASE_URL";
    case ERR_BUSY:
        return "the server has no connection left: raise max_connections or lower PAWL_POOL_MAX";
    case ERR_DENIED:
        return "grant the missing right to the user in PAWL_DATABASE_URL";
    default:
        return "see the message";
    }
}

ErrorCode doctor_run(const SettingsGiven *given, int64_t long_tx_ms, Arena *arena, CheckResult *ret_list,
                     int *ret_count, Error *reterr)
{
    Doctor    doctor = {.given = given, .long_tx_ms = long_tx_ms, .arena = arena};
    ErrorCode worst  = OK;
    bool      dead = false, no_schema = false;

    _Static_assert(COUNT(checks) <= DOCTOR_CHECKS_MAX, "space for every result");
    for (size_t i = 0; i < COUNT(checks); i++) {
        CheckResult *result = &ret_list[i];
        Error        error  = {0};
        ErrorCode    code;

        *result = (CheckResult){.check = checks[i].name};
        /* A full disk is why a server does not start or answer, so it is looked for in any case. */
        bool is_blind = dead && !(doctor.data_dir && checks[i].check == check_disk);

        if (is_blind || (no_schema && checks[i].needs_schema)) {
            (void)found(result, CHECK_SKIPPED, "not checked", NULL);
            continue;
        }
        code = checks[i].check(&doctor, result, &error);
        if (code != OK)
            (void)found(result, CHECK_FAIL, arena_text(arena, error.text), advice_for(&doctor, code));
        else if (result->state == CHECK_FAIL)
            code = fail(&error, ERR_CONFLICT, "%s", result->text);
        dead |= code != OK && checks[i].vital;
        no_schema |= code != OK && checks[i].check == check_schema;
        if (code != OK && worst == OK) {
            worst = code;
            (void)fail(reterr, code, "%s: %s", checks[i].name, error.text);
        }
    }
    if (doctor.app)
        app_close(doctor.app);
    *ret_count = COUNT(checks);
    return worst;
}
