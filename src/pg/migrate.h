/*
 * migrate.h - brings the schema to the version this binary was built with.
 *
 * Migrations (tables, indexes, data) are numbered from 1 without gaps, embedded in the binary, applied one transaction
 * each under the lock of pawl.migration, and remembered there with the checksum of their text. Migration 1 is the
 * tables of a new database, sql/<module>/tables.sql together; sql/migrations/ has the later ones. Definitions
 * (functions and views, all `create or replace`) are the files of sql/<module>/ as they are now: they are applied
 * together, in one transaction, after the last migration, whenever their common checksum differs from the one
 * remembered. So a function has one text, not one per release. A definition that stands in for an extension is left
 * out, and is not part of the checksum, where that extension is installed; so its coming or going is noticed.
 *
 * Replacing a view, and most changes of tables, need a lock that waits for every transaction that has read them, and
 * makes all later ones wait. So a view that was made from the same text is left alone, and a transaction that does not
 * get a lock within LOCK_TRY_MS ends, with all that it has locked; it is run again until the deadline.
 *
 * A schema that is up to date is only read: then migrate_run() needs no lock and no more rights than a pod has.
 *
 * Refused with one sentence: a schema newer than the binary (ERR_CONFLICT), a migration whose text is not the one that
 * was applied (ERR_CONFLICT), missing rights (ERR_DENIED), a server older than 15 (ERR_REFUSED), another process that
 * migrates until our deadline, or a transaction that holds a lock until then, which is named (ERR_BUSY).
 * Threads and pods: any number may migrate at the same time; each migration is applied exactly once.
 */
#ifndef PG_MIGRATE_H
#define PG_MIGRATE_H

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "pg/pool.h"
#include "pg/query.h"

typedef struct {
    int         version;
    const char *name;
    const char *checksum; /* SHA-256 of the text, as hex; computed when the program is built */
    const char *sql;
} Migration;

typedef struct {
    const char *name; /* "base/clock.sql" */
    const char *checksum;
    const char *sql;
    const char *unless_extension; /* left out of databases where this extension is installed; NULL: never */
    const char *view;             /* the view that it is, and whose comment is the checksum; NULL: none */
} SqlDefinition;

/* All that a binary knows of the schema. The embedded one is schema_embedded in the generated sql.h. */
typedef struct {
    const Migration     *migrations;
    int                  migration_count;
    const SqlDefinition *definitions;
    int                  definition_count;
} Schema;

typedef struct {
    int         version;
    const char *name;
    const char *state;      /* "applied", "pending", "changed", "unknown" (applied by a newer binary) */
    const char *applied_at; /* ISO time; NULL while pending */
} MigrationStatus;

/* See sql_pg_migration_stranger: nothing is created beside it. */
#define MIGRATE_STRANGER_COLUMNS(X, T) X(T, TEXT, sentence, statement)
DB_ROW(MigrateStranger, MIGRATE_STRANGER_COLUMNS);

must_check ErrorCode migrate_run(Pool *pool, const Schema *schema, Deadline deadline, int *ret_applied, Error *reterr);
must_check ErrorCode migrate_status(Pool *pool, const Schema *schema, Deadline deadline, Arena *arena,
                                    MigrationStatus **ret_list, int *ret_count, Error *reterr);
/* One read: has a newer program migrated the database since this one started? Then ERR_CONFLICT, and pool_is_outdated()
 * until a later call sees that it is not so. Logged when it changes. */
must_check ErrorCode migrate_watch(Pool *pool, const Schema *schema, Deadline deadline, Error *reterr);
/* Did a statement of this program's own fail because the schema is another program's, which has other functions and
 * columns? Reads the schema only if the error may be one of these; *ret_why says which side is older. */
bool migrate_explains(Pool *pool, const Schema *schema, const Error *error, Error *ret_why);
/* OK when the schema is exactly this binary's. ERR_CONFLICT says which side is older and what to do. */
must_check ErrorCode migrate_check(Pool *pool, const Schema *schema, Deadline deadline, Error *reterr);

#endif
