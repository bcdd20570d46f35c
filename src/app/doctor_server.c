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

ErrorCode check_connection(Doctor *doctor, Error *reterr)
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
    return doctor_ok(doctor, "%s", text);
}

ErrorCode check_server(Doctor *doctor, Error *reterr)
{
    const Vitals *vitals = &doctor->vitals;

    (void)reterr;
    if (vitals->version_number < 150000)
        return doctor_found(doctor, CHECK_FAIL, "pawl needs PostgreSQL 15 or newer", "PostgreSQL %s", vitals->version);
    if (vitals->read_only)
        return doctor_found(doctor, CHECK_FAIL,
                            "name the primary in PAWL_DATABASE_URL, or all hosts with target_session_attrs=read-write",
                            "this server is read-only");
    if (!vitals->durable)
        return doctor_found(doctor, CHECK_FAIL, "set fsync = on in postgresql.conf",
                            "fsync is off: a power cut loses or corrupts data");
    if (!vitals->synchronous)
        return doctor_found(doctor, CHECK_WARN, "set synchronous_commit = on for this database",
                            "synchronous_commit is off: a crash can lose answers already given");
    return doctor_ok(doctor, "PostgreSQL %s, writable, durable", vitals->version);
}

DB_SHAPE(stranger, MigrateStranger, MIGRATE_STRANGER_COLUMNS);

ErrorCode check_schema(Doctor *doctor, Error *reterr)
{
    TxOptions        options = doctor_options(doctor);
    MigrateStranger *found;
    int              count;
    ErrorCode        code = migrate_check(doctor->app->pool, &schema_embedded, deadline_in_ms(DOCTOR_CHECK_MS), reterr);

    if (code == ERR_CONFLICT || code == ERR_NOT_FOUND)
        return doctor_found(doctor, CHECK_FAIL, "run pawl migrate with the newest pawl", "%s", reterr->text);
    TRY(code);
    TRY(db_call_many(doctor->app->pool, &options, sql_pg_migration_stranger, DB_NONE, &stranger_shape, &found, &count,
                     reterr));
    if (count)
        return doctor_found(doctor, CHECK_WARN, arena_print(doctor->arena, "run as its owner: %s", found->statement),
                            "%s", found->sentence);
    return doctor_ok(doctor, "version %d", schema_embedded.migration_count);
}

/* Of the login that runs the doctor, as if pawl serve had it. */
static ErrorCode check_login(Doctor *doctor, Error *reterr)
{
    unsigned    roles = settings_roles(&doctor->serve);
    LoginRights rights;

    TRY(login_rights(doctor->app->pool, roles, deadline_in_ms(DOCTOR_CHECK_MS), doctor->arena, &rights, reterr));
    if (rights.denied)
        return doctor_found(doctor, CHECK_WARN,
                            arena_print(doctor->arena, "if pods have this login, run as an administrator: %s",
                                        rights.grant),
                            "%s: pawl serve does not start as this user", rights.denied);
    if (rights.refused)
        return doctor_found(doctor, CHECK_WARN,
                            arena_print(doctor->arena, "if pods have this login, run as an administrator: %s",
                                        rights.grant),
                            "%s", rights.refused);
    return doctor_ok(doctor, "all exist, with their privileges");
}

ErrorCode check_roles(Doctor *doctor, Error *reterr)
{
    Rights rights;

    TRY(doctor_ask(doctor, sql_app_doctor_rights, &rights_shape, &rights, reterr));
    if (rights.missing[0])
        return doctor_found(
            doctor, CHECK_WARN,
            arena_print(
                doctor->arena,
                "let an administrator create role NAME nologin for each, then run as %s: select pawl.grant_roles()",
                rights.owner),
            "roles are missing: %s", rights.missing);
    if (rights.ungranted)
        return doctor_found(doctor, CHECK_WARN,
                            arena_print(doctor->arena, "run as %s: select pawl.grant_roles()", rights.owner),
                            "%" PRId64 " rights of roles are missing, such as %s", rights.ungranted, rights.example);
    if (doctor->is_private && rights.app_lacks_schema)
        return doctor_found(
            doctor, CHECK_WARN,
            "run as a superuser: alter schema app owner to app; likewise its tables, if pg_restore --no-owner "
            "made them",
            "login app may not create objects in schema app");
    return check_login(doctor, reterr);
}

/* PostgreSQL refuses to alter the type of a table's column while another table has a column of the table's row type. */
ErrorCode check_row_types(Doctor *doctor, Error *reterr)
{
    RowType found;

    TRY(doctor_ask(doctor, sql_app_doctor_row_types, &row_type_shape, &found, reterr));
    if (!found.columns)
        return doctor_ok(doctor, "no column of an application has a row type of pawl's");
    return doctor_found(doctor, CHECK_WARN, arena_print(doctor->arena, "keep jsonb instead: %s", found.statement),
                        "%" PRId64 " columns have row types of pawl's, such as %s of type %s: "
                        "a migration that alters that table would fail",
                        found.columns, found.name, found.type);
}

ErrorCode check_disk(Doctor *doctor, Error *reterr)
{
    const char    *path = doctor->data_dir ? doctor->data_dir : doctor->vitals.data_directory;
    struct statvfs disk;

    (void)reterr;
    if (!path || !path[0] || statvfs(path, &disk) != 0)
        return doctor_ok(doctor, "not visible from here: watch the server's disk where it is");

    int64_t     free_mib = (int64_t)((uint64_t)disk.f_bavail * disk.f_frsize >> 20);
    int         percent  = disk.f_blocks ? (int)(disk.f_bavail * 100 / disk.f_blocks) : 100;
    const char *text =
        arena_print(doctor->arena, "%" PRId64 " MiB (%d %%) are free where the data is", free_mib, percent);

    if (free_mib < DISK_FAIL_MIB)
        return doctor_found(doctor, CHECK_FAIL, "free some space now: without it PostgreSQL stops", "%s", text);
    if (free_mib < DISK_WARN_MIB || percent < DISK_WARN_PERCENT)
        return doctor_found(doctor, CHECK_WARN,
                            "free some space or enlarge the disk; see replication slots for retained WAL", "%s", text);
    return doctor_ok(doctor, "%s", text);
}

/* To a user without the right, other users' sessions appear idle and of no kind, so the results are too optimistic. */
static ErrorCode found_blind(Doctor *doctor)
{
    return doctor_found(doctor, CHECK_WARN,
                        arena_print(doctor->arena, "grant pg_read_all_stats to %s", doctor->vitals.username),
                        "cannot see the sessions of other users");
}

ErrorCode check_pool(Doctor *doctor, Error *reterr)
{
    const Vitals *vitals = &doctor->vitals;
    int           free   = vitals->connections_max - vitals->connections;

    (void)reterr;
    if (free < (int)doctor->serve.pool_max)
        return doctor_found(doctor, CHECK_WARN, "raise max_connections, lower PAWL_POOL_MAX, or put PgBouncer in front",
                            "the server has %d connections left, the pool of pawl serve may want %d", free,
                            (int)doctor->serve.pool_max);
    if (vitals->connections * 100 > vitals->connections_max * CONNECTIONS_WARN)
        return doctor_found(doctor, CHECK_WARN, "find the clients that hold connections: pg_stat_activity",
                            "%d of %d connections are in use", vitals->connections, vitals->connections_max);
    if (!vitals->sees_all)
        return found_blind(doctor);
    return doctor_ok(doctor, "%d of %d connections in use", vitals->connections, vitals->connections_max);
}

ErrorCode check_clock(Doctor *doctor, Error *reterr)
{
    int64_t skew_ms = doctor->skew_ms;

    (void)reterr;
    if (llabs(skew_ms) > SKEW_WARN_MS)
        return doctor_found(doctor, CHECK_WARN, "run NTP on both; leases and timers follow the database's clock",
                            "the database's clock is %" PRId64 " ms away from this machine's", skew_ms);
    return doctor_ok(doctor, "differs from the database's by %" PRId64 " ms", skew_ms);
}

ErrorCode check_long_transactions(Doctor *doctor, Error *reterr)
{
    const Vitals *vitals = &doctor->vitals;

    (void)reterr;
    if (vitals->longest_seconds > 0 && vitals->longest_seconds * 1000 >= doctor->long_tx_ms)
        return doctor_found(doctor, CHECK_WARN,
                            arena_print(doctor->arena, "find its owner, or end it: select pg_terminate_backend(%d)",
                                        vitals->longest_pid),
                            "process %d (%s) has held a snapshot for %" PRId64 " s: vacuum cannot clean up",
                            vitals->longest_pid, vitals->longest_name, vitals->longest_seconds);
    if (vitals->prepared_seconds > 0 && vitals->prepared_seconds * 1000 >= doctor->long_tx_ms)
        return doctor_found(doctor, CHECK_WARN,
                            arena_print(doctor->arena,
                                        "find its owner, or end it in database \"%s\": rollback prepared %s",
                                        vitals->prepared_in, vitals->prepared_gid),
                            "prepared transaction %s has been open for %" PRId64 " s: vacuum cannot clean up",
                            vitals->prepared_gid, vitals->prepared_seconds);
    if (!vitals->sees_all)
        return found_blind(doctor);
    return doctor_ok(doctor, "the oldest snapshot is %" PRId64 " s old", vitals->longest_seconds);
}

ErrorCode check_slots(Doctor *doctor, Error *reterr)
{
    const Vitals *vitals = &doctor->vitals;

    (void)reterr;
    if (vitals->slot_name[0] == '\0')
        return doctor_ok(doctor, "no replication slot holds vacuum back");
    if (!vitals->slot_active)
        return doctor_found(doctor, CHECK_WARN,
                            arena_print(doctor->arena,
                                        "start its reader, or drop it: select pg_drop_replication_slot('%s')",
                                        vitals->slot_name),
                            "replication slot \"%s\" has no reader: vacuum cannot clean up", vitals->slot_name);
    if (vitals->slot_age > SLOT_AGE_WARN)
        return doctor_found(doctor, CHECK_WARN, "find the slow reader, or the long query on the standby",
                            "replication slot \"%s\" is %" PRId64 " transactions behind: vacuum cannot clean up",
                            vitals->slot_name, vitals->slot_age);
    return doctor_ok(doctor, "the slowest is %" PRId64 " transactions behind", vitals->slot_age);
}

ErrorCode check_wraparound(Doctor *doctor, Error *reterr)
{
    const Vitals *vitals = &doctor->vitals;

    (void)reterr;
    if (vitals->wraparound_age > 1000000000)
        return doctor_found(doctor, CHECK_WARN,
                            "vacuum (freeze) the database; see long transactions and replication slots",
                            "the oldest transaction id is %" PRId64 " old", vitals->wraparound_age);
    return doctor_ok(doctor, "transaction ids are far from wraparound");
}
