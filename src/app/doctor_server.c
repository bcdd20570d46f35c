/*
 * doctor_server.c - checks of the server: connection, version, schema, roles, and what keeps vacuum from its work.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <sys/statvfs.h>

#include "app/doctor_internal.h"
#include "app/login.h"
#include "base/clock.h"
#include "pg/migrate.h"
#include "pg/tx.h"
#include "sql.h"

#define SKEW_WARN_MS      2000
#define CONNECTIONS_WARN  80      /* percent */
#define SLOT_AGE_WARN     1000000 /* transactions: a quarter of an hour of a busy server */
#define DISK_WARN_MIB     1024
#define DISK_WARN_PERCENT 5
#define DISK_FAIL_MIB     100

DB_SHAPE(vitals, Vitals, VITALS_COLUMNS);

#define RIGHTS_COLUMNS(X, T)            \
    X(T, TEXT, missing, example, owner) \
    X(T, I64, ungranted)                \
    X(T, BOOL, app_lacks_schema)
DB_ROW(Rights, RIGHTS_COLUMNS);
DB_SHAPE(rights, Rights, RIGHTS_COLUMNS);

#define ROW_TYPE_COLUMNS(X, T) \
    X(T, I64, columns)         \
    X(T, TEXT, name, type, statement)
DB_ROW(RowType, ROW_TYPE_COLUMNS);
DB_SHAPE(row_type, RowType, ROW_TYPE_COLUMNS);

static ErrorCode ask_vitals(Doctor *doctor, Error *reterr)
{
    Wall before = clock_wall();

    TRY(doctor_ask(doctor, sql_app_doctor_vitals, &vitals_shape, &doctor->vitals, reterr));
    doctor->skew_ms = (doctor->vitals.now - (before.us + clock_wall().us) / 2) / 1000;
    return OK;
}

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
    if (!doctor->app->settings.handler_database_url)
        doctor->app->settings.handler_database_url = status.url_handler;
    return OK;
}

ErrorCode check_connection(Doctor *doctor, CheckResult *result, Error *reterr)
{
    Mono      start    = clock_mono();
    Checkout *checkout = NULL;

    if (doctor->is_private) {
        TRY(private_url(doctor, reterr));
        TRY(app_reach(doctor->app, APP_POOL, reterr));
    }
    TRY(pool_acquire(doctor->app->pool, deadline_in_ms(DOCTOR_CHECK_MS), &checkout, reterr));
    const char *text =
        arena_print(doctor->arena, "connected in %.1f ms (%s)", (double)mono_us_between(start, clock_mono()) / 1e3,
                    conn_name(checkout_conn(checkout)));
    pool_release(checkout);
    TRY(ask_vitals(doctor, reterr));
    return check_found(result, CHECK_OK, text, NULL);
}

ErrorCode check_server(Doctor *doctor, CheckResult *result, Error *reterr)
{
    const Vitals *vitals = &doctor->vitals;

    (void)reterr;
    if (vitals->version_number < 150000)
        return check_found(result, CHECK_FAIL, arena_print(doctor->arena, "PostgreSQL %s", vitals->version),
                           "pawl needs PostgreSQL 15 or newer");
    if (vitals->read_only)
        return check_found(result, CHECK_FAIL, "this server is read-only",
                           "name the primary in PAWL_DATABASE_URL, or all hosts with target_session_attrs=read-write");
    if (!vitals->durable)
        return check_found(result, CHECK_FAIL, "fsync is off: a power cut loses or corrupts data",
                           "set fsync = on in postgresql.conf");
    if (!vitals->synchronous)
        return check_found(result, CHECK_WARN, "synchronous_commit is off: a crash can lose answers already given",
                           "set synchronous_commit = on for this database");
    return check_found(result, CHECK_OK,
                       arena_print(doctor->arena, "PostgreSQL %s, writable, durable", vitals->version), NULL);
}

DB_SHAPE(stranger, MigrateStranger, MIGRATE_STRANGER_COLUMNS);

ErrorCode check_schema(Doctor *doctor, CheckResult *result, Error *reterr)
{
    TxOptions        options = {.name      = "doctor",
                                .deadline  = deadline_in_ms(DOCTOR_CHECK_MS),
                                .arena     = doctor->arena,
                                .read_only = true};
    MigrateStranger *found;
    int              count;
    ErrorCode        code = migrate_check(doctor->app->pool, &schema_embedded, deadline_in_ms(DOCTOR_CHECK_MS), reterr);

    if (code == ERR_CONFLICT || code == ERR_NOT_FOUND)
        return check_found(result, CHECK_FAIL, arena_text(doctor->arena, reterr->text),
                           "run pawl migrate with the newest pawl");
    TRY(code);
    TRY(db_call_many(doctor->app->pool, &options, sql_pg_migration_stranger, DB_NONE, &stranger_shape, &found, &count,
                     reterr));
    if (count)
        return check_found(result, CHECK_WARN,
                           arena_print(doctor->arena, "%s is in a schema of pawl's, and is not pawl's", found->name),
                           arena_print(doctor->arena, "run as its owner: %s", found->statement));
    return check_found(result, CHECK_OK, arena_print(doctor->arena, "version %d", schema_embedded.migration_count),
                       NULL);
}

/* Of the login that runs the doctor, as if pawl serve had it. */
static ErrorCode check_login(Doctor *doctor, CheckResult *result, Error *reterr)
{
    unsigned    roles = settings_roles(&doctor->serve);
    LoginRights rights;

    TRY(login_rights(doctor->app->pool, roles, deadline_in_ms(DOCTOR_CHECK_MS), doctor->arena, &rights, reterr));
    if (rights.denied)
        return check_found(result, CHECK_WARN,
                           arena_print(doctor->arena, "%s: pawl serve does not start as this user", rights.denied),
                           arena_print(doctor->arena, "if pods have this login, run as an administrator: %s",
                                       rights.grant));
    if (rights.refused)
        return check_found(result, CHECK_WARN, rights.refused,
                           arena_print(doctor->arena, "if pods have this login, run as an administrator: %s",
                                       rights.grant));
    return check_found(result, CHECK_OK, "all exist, with their privileges", NULL);
}

ErrorCode check_roles(Doctor *doctor, CheckResult *result, Error *reterr)
{
    Rights rights;

    TRY(doctor_ask(doctor, sql_app_doctor_rights, &rights_shape, &rights, reterr));
    if (rights.missing[0])
        return check_found(
            result, CHECK_WARN, arena_print(doctor->arena, "roles are missing: %s", rights.missing),
            arena_print(
                doctor->arena,
                "let an administrator create role NAME nologin for each, then run as %s: select pawl.grant_roles()",
                rights.owner));
    if (rights.ungranted)
        return check_found(result, CHECK_WARN,
                           arena_print(doctor->arena, "%" PRId64 " rights of roles are missing, such as %s",
                                       rights.ungranted, rights.example),
                           arena_print(doctor->arena, "run as %s: select pawl.grant_roles()", rights.owner));
    if (doctor->is_private && rights.app_lacks_schema)
        return check_found(
            result, CHECK_WARN, "login app may not create objects in schema app",
            "run as a superuser: alter schema app owner to app; likewise its tables, if pg_restore --no-owner "
            "made them");
    return check_login(doctor, result, reterr);
}

/* PostgreSQL refuses to alter the type of a table's column while another table has a column of the table's row type. */
ErrorCode check_row_types(Doctor *doctor, CheckResult *result, Error *reterr)
{
    RowType found;

    TRY(doctor_ask(doctor, sql_app_doctor_row_types, &row_type_shape, &found, reterr));
    if (!found.columns)
        return check_found(result, CHECK_OK, "no column of an application has a row type of pawl's", NULL);
    return check_found(result, CHECK_WARN,
                       arena_print(doctor->arena,
                                   "%" PRId64 " columns have row types of pawl's, such as %s of type %s: "
                                   "a migration that alters that table would fail",
                                   found.columns, found.name, found.type),
                       arena_print(doctor->arena, "keep jsonb instead: %s", found.statement));
}

ErrorCode check_disk(Doctor *doctor, CheckResult *result, Error *reterr)
{
    const char    *path = doctor->data_dir ? doctor->data_dir : doctor->vitals.data_directory;
    struct statvfs disk;

    (void)reterr;
    if (!path || !path[0] || statvfs(path, &disk) != 0)
        return check_found(result, CHECK_OK, "not visible from here: watch the server's disk where it is", NULL);

    int64_t     free_mib = (int64_t)((uint64_t)disk.f_bavail * disk.f_frsize >> 20);
    int         percent  = disk.f_blocks ? (int)(disk.f_bavail * 100 / disk.f_blocks) : 100;
    const char *text =
        arena_print(doctor->arena, "%" PRId64 " MiB (%d %%) are free where the data is", free_mib, percent);

    if (free_mib < DISK_FAIL_MIB)
        return check_found(result, CHECK_FAIL, text, "free some space now: without it PostgreSQL stops");
    if (free_mib < DISK_WARN_MIB || percent < DISK_WARN_PERCENT)
        return check_found(result, CHECK_WARN, text,
                           "free some space or enlarge the disk; see replication slots for retained WAL");
    return check_found(result, CHECK_OK, text, NULL);
}

/* To a user without the right, other users' sessions appear idle and of no kind, so the results are too optimistic. */
static ErrorCode found_blind(const Doctor *doctor, CheckResult *result)
{
    return check_found(result, CHECK_WARN, "cannot see the sessions of other users",
                       arena_print(doctor->arena, "grant pg_read_all_stats to %s", doctor->vitals.username));
}

ErrorCode check_pool(Doctor *doctor, CheckResult *result, Error *reterr)
{
    const Vitals *vitals = &doctor->vitals;
    int           free   = vitals->connections_max - vitals->connections;

    (void)reterr;
    if (free < (int)doctor->serve.pool_max)
        return check_found(result, CHECK_WARN,
                           arena_print(doctor->arena,
                                       "the server has %d connections left, the pool of pawl serve may want %d", free,
                                       (int)doctor->serve.pool_max),
                           "raise max_connections, lower PAWL_POOL_MAX, or put PgBouncer in front");
    if (vitals->connections * 100 > vitals->connections_max * CONNECTIONS_WARN)
        return check_found(result, CHECK_WARN,
                           arena_print(doctor->arena, "%d of %d connections are in use", vitals->connections,
                                       vitals->connections_max),
                           "find the clients that hold connections: pg_stat_activity");
    if (!vitals->sees_all)
        return found_blind(doctor, result);
    return check_found(result, CHECK_OK,
                       arena_print(doctor->arena, "%d of %d connections in use", vitals->connections,
                                   vitals->connections_max),
                       NULL);
}

ErrorCode check_clock(Doctor *doctor, CheckResult *result, Error *reterr)
{
    int64_t skew_ms = doctor->skew_ms;

    (void)reterr;
    if (llabs(skew_ms) > SKEW_WARN_MS)
        return check_found(result, CHECK_WARN,
                           arena_print(doctor->arena, "the database's clock is %" PRId64 " ms away from this machine's",
                                       skew_ms),
                           "run NTP on both; leases and timers follow the database's clock");
    return check_found(result, CHECK_OK,
                       arena_print(doctor->arena, "differs from the database's by %" PRId64 " ms", skew_ms), NULL);
}

ErrorCode check_long_transactions(Doctor *doctor, CheckResult *result, Error *reterr)
{
    const Vitals *vitals = &doctor->vitals;

    (void)reterr;
    if (vitals->longest_seconds > 0 && vitals->longest_seconds * 1000 >= doctor->long_tx_ms)
        return check_found(result, CHECK_WARN,
                           arena_print(doctor->arena,
                                       "process %d (%s) has held a snapshot for %" PRId64 " s: vacuum cannot clean up",
                                       vitals->longest_pid, vitals->longest_name, vitals->longest_seconds),
                           arena_print(doctor->arena, "find its owner, or end it: select pg_terminate_backend(%d)",
                                       vitals->longest_pid));
    if (vitals->prepared_seconds > 0 && vitals->prepared_seconds * 1000 >= doctor->long_tx_ms)
        return check_found(result, CHECK_WARN,
                           arena_print(doctor->arena,
                                       "prepared transaction %s has been open for %" PRId64
                                       " s: vacuum cannot clean up",
                                       vitals->prepared_gid, vitals->prepared_seconds),
                           arena_print(doctor->arena,
                                       "find its owner, or end it in database \"%s\": rollback prepared %s",
                                       vitals->prepared_in, vitals->prepared_gid));
    if (!vitals->sees_all)
        return found_blind(doctor, result);
    return check_found(result, CHECK_OK,
                       arena_print(doctor->arena, "the oldest snapshot is %" PRId64 " s old", vitals->longest_seconds),
                       NULL);
}

ErrorCode check_slots(Doctor *doctor, CheckResult *result, Error *reterr)
{
    const Vitals *vitals = &doctor->vitals;

    (void)reterr;
    if (vitals->slot_name[0] == '\0')
        return check_found(result, CHECK_OK, "no replication slot holds vacuum back", NULL);
    if (!vitals->slot_active)
        return check_found(result, CHECK_WARN,
                           arena_print(doctor->arena, "replication slot \"%s\" has no reader: vacuum cannot clean up",
                                       vitals->slot_name),
                           arena_print(doctor->arena,
                                       "start its reader, or drop it: select pg_drop_replication_slot('%s')",
                                       vitals->slot_name));
    if (vitals->slot_age > SLOT_AGE_WARN)
        return check_found(result, CHECK_WARN,
                           arena_print(doctor->arena,
                                       "replication slot \"%s\" is %" PRId64
                                       " transactions behind: vacuum cannot clean up",
                                       vitals->slot_name, vitals->slot_age),
                           "find the slow reader, or the long query on the standby");
    return check_found(result, CHECK_OK,
                       arena_print(doctor->arena, "the slowest is %" PRId64 " transactions behind", vitals->slot_age),
                       NULL);
}

ErrorCode check_wraparound(Doctor *doctor, CheckResult *result, Error *reterr)
{
    const Vitals *vitals = &doctor->vitals;

    (void)reterr;
    if (vitals->wraparound_age > 1000000000)
        return check_found(result, CHECK_WARN,
                           arena_print(doctor->arena, "the oldest transaction id is %" PRId64 " old",
                                       vitals->wraparound_age),
                           "vacuum (freeze) the database; see long transactions and replication slots");
    return check_found(result, CHECK_OK, "transaction ids are far from wraparound", NULL);
}
