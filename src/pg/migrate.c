/*
 * migrate.c - read what the database holds, compare it with what the binary knows, do the next thing, until nothing is
 * left.
 *
 * Each step is a transaction that takes the lock and reads the state again, so it does not matter which process did the
 * step before, or whether the answer to its commit was lost. A database that is up to date is only read: a pod without
 * the right to create anything can start on it.
 */
#include "pg/migrate.h"

#include <assert.h>
#include <sodium.h>
#include <string.h>

#include "base/log.h"
#include "pg/query.h"
#include "pg/tx.h"
#include "sql.h"

#define SERVER_VERSION_MIN 150000
#define LOCK_POLL_MS       50
#define LOCK_TRY_MS        200 /* a try waits for a lock, and makes others wait behind it */
#define LOCK_REST_MS       300 /* between two tries, for those others */
#define LOCK_LEFT_MS       200 /* too little to ask again and then to do anything */
#define HOLDER_MS          2000
#define EXPLAIN_MS         2000
#define ARENA_BYTES_MAX    ((size_t)16 << 20)
#define CHECKSUM_SIZE      (crypto_hash_sha256_BYTES * 2 + 1)

#define SITE_COLUMNS(X, T)                                                 \
    X(T, BOOL, has_schema, has_table, may_create_schema, may_create_table) \
    X(T, TEXT, user_name, database_name, foreign_schema, foreign_owner)
DB_ROW(Site, SITE_COLUMNS);
DB_SHAPE(site, Site, SITE_COLUMNS);

#define APPLIED_COLUMNS(X, T) \
    X(T, I32, version)        \
    X(T, TEXT, name, checksum, applied_at)
DB_ROW(Applied, APPLIED_COLUMNS);
DB_SHAPE(applied, Applied, APPLIED_COLUMNS);

/* What the database holds. */
typedef struct {
    Site         site;
    const char **extensions; /* names */
    int          extension_count;
    Applied     *applied; /* by version */
    int          applied_count;
    const char  *definitions; /* their checksum; NULL: never applied */
} MigrationState;

/* One transaction of migrate_run(), or the reading of migrate_check(). */
typedef struct {
    const Schema  *schema;
    MigrationState state;
    bool           locked;  /* the step has the lock */
    bool           applied; /* a migration was applied */
    bool           done;    /* nothing is left to do */
    const char    *part;    /* the migration or definition that was begun last */
    const char    *view;    /* that it replaces; NULL: none */
} MigrationStep;

/* ---- checksums ---- */

/* Is it for this database, or does an extension do its work there? */
static bool definition_is_wanted(const SqlDefinition *definition, const MigrationState *state)
{
    for (int i = 0; definition->unless_extension && i < state->extension_count; i++) {
        if (strcmp(definition->unless_extension, state->extensions[i]) == 0)
            return false;
    }
    return true;
}

/* Names and checksums with their NULs, so that moving a line from one file to the next is a change too. */
static void definitions_checksum(const Schema *schema, const MigrationState *state, char *ret_checksum)
{
    crypto_hash_sha256_state sum;
    unsigned char            hash[crypto_hash_sha256_BYTES];

    crypto_hash_sha256_init(&sum);
    for (int i = 0; i < schema->definition_count; i++) {
        const SqlDefinition *definition = &schema->definitions[i];

        if (!definition_is_wanted(definition, state))
            continue;
        crypto_hash_sha256_update(&sum, (const unsigned char *)definition->name, strlen(definition->name) + 1);
        crypto_hash_sha256_update(&sum, (const unsigned char *)definition->checksum, strlen(definition->checksum) + 1);
    }
    crypto_hash_sha256_final(&sum, hash);
    sodium_bin2hex(ret_checksum, CHECKSUM_SIZE, hash, sizeof hash);
}

/* ---- what is there ---- */

static ErrorCode state_read(Tx *tx, MigrationState *ret_state, Error *reterr)
{
    MigrationState state   = {0};
    int            version = conn_server_version(tx->conn);
    void          *rows;

    if (version < SERVER_VERSION_MIN)
        return fail(reterr, ERR_REFUSED, "database server has version %d.%d: pawl needs PostgreSQL %d or later",
                    version / 10000, version % 10000, SERVER_VERSION_MIN / 10000);
    TRY(db_one(tx, sql_pg_migration_site, DB_NONE, &site_shape, &state.site, reterr));
    TRY(db_many(tx, sql_pg_extension_list, DB_NONE, &db_text_shape, &rows, &state.extension_count, reterr));
    state.extensions = rows;
    if (state.site.has_table) {
        TRY(db_many(tx, sql_pg_migration_list, DB_NONE, &applied_shape, &rows, &state.applied_count, reterr));
        state.applied = rows;
        TRY(db_get_text(tx, sql_pg_definition_checksum, DB_NONE, &state.definitions, reterr));
    }
    *ret_state = state;
    return OK;
}

static bool applied_is_other(const Applied *applied, const Migration *migration)
{
    return strcmp(applied->name, migration->name) != 0 || strcmp(applied->checksum, migration->checksum) != 0;
}

/* Is the database's history a beginning of ours? */
static ErrorCode state_check(const MigrationState *state, const Schema *schema, Error *reterr)
{
    int newest = state->applied_count > 0 ? state->applied[state->applied_count - 1].version : 0;

    for (int i = 0; i < state->applied_count && i < schema->migration_count; i++) {
        const Applied *applied = &state->applied[i];

        if (applied->version != i + 1)
            return fail(reterr, ERR_CONFLICT,
                        "migration %d was applied, but migration %d is missing from pawl.migration", applied->version,
                        i + 1);
        if (applied_is_other(applied, &schema->migrations[i]))
            return fail(
                reterr, ERR_CONFLICT,
                "migration %d \"%s\" of the database differs from this pawl's: run the pawl that applied it, or "
                "use a new database",
                applied->version, applied->name);
    }
    if (newest > schema->migration_count)
        return fail(reterr, ERR_CONFLICT, "database schema is at version %d, this pawl knows %d: run a newer pawl",
                    newest, schema->migration_count);
    return OK;
}

static bool definitions_are_current(const MigrationState *state, const Schema *schema)
{
    char checksum[CHECKSUM_SIZE];

    definitions_checksum(schema, state, checksum);
    return state->definitions && strcmp(state->definitions, checksum) == 0;
}

/* ---- what is to be done ---- */

/* The owner of a schema may replace what it contains. */
static ErrorCode site_check(const Site *site, Error *reterr)
{
    if (!site->foreign_schema)
        return OK;
    return fail(
        reterr, ERR_REFUSED,
        "schema \"%s\" belongs to \"%s\", who could replace what pawl creates there: drop or rename it, or alter "
        "its owner to \"%s\"",
        site->foreign_schema, site->foreign_owner, site->user_name);
}

DB_SHAPE(stranger, MigrateStranger, MIGRATE_STRANGER_COLUMNS);

/* Pawl's functions look for names in its schemas, so what others put there could be called or make a name ambiguous. */
static ErrorCode strangers_check(Tx *tx, Error *reterr)
{
    MigrateStranger *found;
    int              count;

    TRY(db_many(tx, sql_pg_migration_stranger, DB_NONE, &stranger_shape, &found, &count, reterr));
    return count == 0 ? OK : fail(reterr, ERR_REFUSED, "%s: run %s", found->sentence, found->statement);
}

static ErrorCode site_prepare(Tx *tx, const Site *site, Error *reterr)
{
    if (!site->has_schema && !site->may_create_schema)
        return fail(reterr, ERR_DENIED,
                    "user \"%s\" may not create schema in database \"%s\": grant create on database \"%s\" to \"%s\"",
                    site->user_name, site->database_name, site->database_name, site->user_name);
    if (site->has_schema && !site->may_create_table)
        return fail(reterr, ERR_DENIED,
                    "user \"%s\" may not create tables in schema \"pawl\": grant create on schema \"pawl\" to \"%s\"",
                    site->user_name, site->user_name);
    if (!site->has_schema)
        TRY(db_run(tx, sql_pg_migration_bootstrap_schema, DB_NONE, NULL, reterr));
    return db_run(tx, sql_pg_migration_bootstrap, DB_NONE, NULL, reterr);
}

static ErrorCode migration_apply(Tx *tx, const Migration *migration, Error *reterr)
{
    ErrorCode code = db_run(tx, migration->sql, DB_NONE, NULL, reterr);

    if (code != OK) {
        error_prefix(reterr, "migration %d \"%s\"", migration->version, migration->name);
        return code;
    }
    return db_run(tx, sql_pg_migration_put,
                  DB_ARGS(db_i32(migration->version), db_text(migration->name), db_text(migration->checksum)), NULL,
                  reterr);
}

/* Is it a view that was made from this text? */
static ErrorCode definition_is_view_made(Tx *tx, const SqlDefinition *definition, bool *ret_is_made, Error *reterr)
{
    const char *checksum = NULL;

    if (definition->view)
        TRY(db_get_text(tx, sql_pg_view_checksum, DB_ARGS(db_text(definition->view)), &checksum, reterr));
    *ret_is_made = checksum && strcmp(checksum, definition->checksum) == 0;
    return OK;
}

static ErrorCode definition_apply(Tx *tx, const SqlDefinition *definition, MigrationStep *step, Error *reterr)
{
    bool is_made;

    TRY(definition_is_view_made(tx, definition, &is_made, reterr));
    if (is_made)
        return OK;
    step->part     = definition->name;
    step->view     = definition->view;
    ErrorCode code = db_run(tx, definition->sql, DB_NONE, NULL, reterr);

    if (code != OK)
        error_prefix(reterr, "definition \"%s\"", definition->name);
    return code;
}

static ErrorCode definitions_apply(Tx *tx, const MigrationState *state, MigrationStep *step, Error *reterr)
{
    const Schema *schema = step->schema;
    char          checksum[CHECKSUM_SIZE];

    for (int i = 0; i < schema->definition_count; i++) {
        if (definition_is_wanted(&schema->definitions[i], state))
            TRY(definition_apply(tx, &schema->definitions[i], step, reterr));
    }
    definitions_checksum(schema, state, checksum);
    return db_run(tx, sql_pg_definition_put, DB_ARGS(db_text(checksum)), NULL, reterr);
}

static ErrorCode step_read(Tx *tx, void *context, Error *reterr)
{
    MigrationStep *step = context;

    return state_read(tx, &step->state, reterr);
}

static ErrorCode step_run(Tx *tx, void *context, Error *reterr)
{
    MigrationStep *step   = context;
    const Schema  *schema = step->schema;
    Site           site;
    MigrationState state;

    *step = (MigrationStep){.schema = schema};
    TRY(db_one(tx, sql_pg_migration_site, DB_NONE, &site_shape, &site, reterr));
    TRY(site_check(&site, reterr));
    TRY(site.has_table ? db_run(tx, sql_pg_migration_lock, DB_NONE, NULL, reterr) : site_prepare(tx, &site, reterr));
    step->locked = true;
    TRY(state_read(tx, &state, reterr));
    TRY(state_check(&state, schema, reterr));
    step->done = state.applied_count == schema->migration_count && definitions_are_current(&state, schema);
    if (step->done) /* also with strangers: pods start, and doctor says so */
        return OK;
    TRY(strangers_check(tx, reterr));
    if (state.applied_count < schema->migration_count) {
        step->applied = true;
        step->part    = schema->migrations[state.applied_count].name;
        return migration_apply(tx, &schema->migrations[state.applied_count], reterr);
    }
    TRY(definitions_apply(tx, &state, step, reterr));
    step->done = true;
    return OK;
}

/* PostgreSQL says what cannot be changed, and not because of what: a view of a user stands in the way of a table's
 * change. */
static void dependents_name(Pool *pool, Deadline deadline, Arena *arena, Error *error)
{
    TxOptions   options = {.name = "migrate", .deadline = deadline, .arena = arena, .read_only = true};
    const char *names;

    if (strcmp(error->sqlstate, "2BP01") != 0 && strcmp(error->sqlstate, "0A000") != 0)
        return;
    if (db_call(pool, &options, sql_pg_migration_dependents, DB_NONE, &db_text_shape, &names, NULL) != OK || !names)
        return;
    error_prefix(error, "%.300s depends on pawl's tables: drop it, migrate, then create it again", names);
}

/* Has another process the lock? It has locked the table, or is creating it or its schema, or just has. */
static bool lock_is_taken(const MigrationStep *step, const Error *error)
{
    static const char *const states[] = {"55P03", "42P06", "42P07", "23505"};

    for (size_t i = 0; i < COUNT(states) && !step->locked; i++)
        if (strcmp(error->sqlstate, states[i]) == 0)
            return true;
    return false;
}

/* Has a transaction that is not a migration locked what the step changes? */
static bool lock_is_held(const MigrationStep *step, const Error *error)
{
    return step->locked && strcmp(error->sqlstate, "55P03") == 0;
}

/* Of several transactions with a lock the oldest one is named: others end by themselves. */
static ErrorCode lock_fail(Pool *pool, Arena *arena, const MigrationStep *step, Error *reterr)
{
    TxOptions   options = {.name = "migrate", .deadline = deadline_in_ms(HOLDER_MS), .arena = arena, .read_only = true};
    const char *holder  = NULL;

    if (!step->locked)
        return fail(reterr, ERR_BUSY, "another process is migrating");
    if (db_call(pool, &options, sql_pg_lock_holder, DB_ARGS(db_text(step->view)), &db_text_shape, &holder, NULL) !=
            OK ||
        !holder)
        holder = "a transaction that has ended by now";
    return fail(reterr, ERR_BUSY, "cannot apply \"%s\": %s has locked what it changes: end that, or migrate later",
                step->part, holder);
}

/* Another process has a lock: sleep a little, unless there is no time left for more. */
static ErrorCode lock_wait(Pool *pool, Deadline deadline, Arena *arena, const MigrationStep *step, Error *reterr)
{
    if (deadline_left_ms(deadline) <= LOCK_LEFT_MS)
        return lock_fail(pool, arena, step, reterr);
    clock_sleep_ms(step->locked ? LOCK_REST_MS : LOCK_POLL_MS);
    return OK;
}

/* ---- the public functions ---- */

ErrorCode migrate_run(Pool *pool, const Schema *schema, Deadline deadline, int *ret_applied, Error *reterr)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_MAX);
    TxOptions                 options = {
                        .name = "migrate", .deadline = deadline, .arena = arena, .keyed = true, .lock_ms = LOCK_TRY_MS};
    MigrationStep step    = {.schema = schema};
    MigrationStep waited  = {0}; /* the last one that did not get a lock */
    Error         error   = {0};
    int           applied = 0;
    ErrorCode     code;

    TRY(tx_run(pool, &(TxOptions){.name = "migrate", .deadline = deadline, .arena = arena, .read_only = true},
               step_read, &step, reterr));
    TRY(state_check(&step.state, schema, reterr));
    step.done = step.state.applied_count == schema->migration_count && definitions_are_current(&step.state, schema);
    while (!step.done) {
        arena_reset(arena);
        code = tx_run(pool, &options, step_run, &step, &error);
        if (code != OK && (lock_is_taken(&step, &error) || lock_is_held(&step, &error))) {
            waited = step;
            TRY(lock_wait(pool, deadline, arena, &step, reterr));
            continue;
        }
        if (code != OK && waited.schema && deadline_passed(deadline))
            return lock_fail(pool, arena, &waited, reterr);
        if (code != OK) {
            if (step.applied)
                dependents_name(pool, deadline, arena, &error);
            return error_pass(code, &error, reterr);
        }
        applied += step.applied;
    }
    *ret_applied = applied;
    return OK;
}

/* How a known migration stands. */
static MigrationStatus migration_status(const Migration *migration, const Applied *applied)
{
    MigrationStatus status = {.version = migration->version, .name = migration->name, .state = "pending"};

    if (applied) {
        status.state      = applied_is_other(applied, migration) ? "changed" : "applied";
        status.applied_at = applied->applied_at;
    }
    return status;
}

ErrorCode migrate_status(Pool *pool, const Schema *schema, Deadline deadline, Arena *arena, MigrationStatus **ret_list,
                         int *ret_count, Error *reterr)
{
    TxOptions        options = {.name = "migrate_status", .deadline = deadline, .arena = arena, .read_only = true};
    MigrationStep    step    = {.schema = schema};
    int              count = 0, next = 0;
    MigrationStatus *list;

    TRY(tx_run(pool, &options, step_read, &step, reterr));
    assert(step.state.applied || step.state.applied_count == 0);
    list = arena_array(arena, MigrationStatus, schema->migration_count + step.state.applied_count);
    for (int i = 0; i < schema->migration_count; i++) {
        const Migration *migration = &schema->migrations[i];
        const Applied   *applied   = next < step.state.applied_count ? &step.state.applied[next] : NULL;
        bool             is_same   = applied && applied->version == migration->version;

        list[count++] = migration_status(migration, is_same ? applied : NULL);
        next += is_same;
    }
    for (; next < step.state.applied_count; next++) {
        const Applied *applied = &step.state.applied[next];

        list[count++] = (MigrationStatus){applied->version, applied->name, "unknown", applied->applied_at};
    }
    *ret_list  = list;
    *ret_count = count;
    return OK;
}

ErrorCode migrate_check(Pool *pool, const Schema *schema, Deadline deadline, Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_MAX);
    TxOptions     options = {.name = "migrate_check", .deadline = deadline, .arena = arena, .read_only = true};
    MigrationStep step    = {.schema = schema};

    TRY(tx_run(pool, &options, step_read, &step, reterr));
    TRY(state_check(&step.state, schema, reterr));
    if (step.state.applied_count < schema->migration_count)
        return fail(reterr, ERR_CONFLICT, "database schema is at version %d, this pawl needs %d: run \"pawl migrate\"",
                    step.state.applied_count, schema->migration_count);
    if (!definitions_are_current(&step.state, schema))
        return fail(reterr, ERR_CONFLICT, "functions in the database differ from this pawl's: run \"pawl migrate\"");
    return OK;
}

ErrorCode migrate_watch(Pool *pool, const Schema *schema, Deadline deadline, Error *reterr)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions                 options = {.name      = "schema",
                                         .deadline  = deadline,
                                         .arena     = arena,
                                         .tries_max = 2, /* a restart leaves dead connections: the second one is new */
                                         .read_only = true,
                                         .prompt    = true};
    int64_t                   version;

    TRY(db_call(pool, &options, sql_pg_migration_version, DB_NONE, &db_i64_shape, &version, reterr));
    bool is_newer = version > schema->migration_count;

    if (pool_outdated_set(pool, is_newer) != is_newer)
        log_write(is_newer ? LOG_ERROR : LOG_INFO, "migrate",
                  is_newer ? "the schema is newer than this program: it claims nothing more, start a newer one"
                           : "the schema is the one this program knows again",
                  LOG_INT("schema", version), LOG_INT("program", schema->migration_count));
    if (is_newer)
        return fail(reterr, ERR_CONFLICT, "the schema is newer than this program: version %lld, it knows %d",
                    (long long)version, schema->migration_count);
    return OK;
}

bool migrate_explains(Pool *pool, const Schema *schema, const Error *error, Error *ret_why)
{
    /* No such function, table, column or type, a wrong number of arguments; a result of another type than before. */
    if (strncmp(error->sqlstate, "42", 2) != 0 && strcmp(error->sqlstate, "0A000") != 0)
        return false;
    return migrate_check(pool, schema, deadline_in_ms(EXPLAIN_MS), ret_why) == ERR_CONFLICT;
}
