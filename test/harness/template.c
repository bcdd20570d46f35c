/*
 * template.c - make the template under an advisory lock; it gets its name last, so a name means it is complete.
 */
#include "test/harness/template.h"

#include <inttypes.h>
#include <libpq-fe.h>
#include <stdio.h>
#include <string.h>

#include "pg/migrate.h"
#include "pg/pool.h"
#include "sql.h"
#include "test/harness/conninfo.h"

#define TEMPLATE_LOCK  "7238411"
#define MIGRATE_MS_MAX 60000
#define STATEMENT_SIZE 256

static void finish(PGconn **conn)
{
    PQfinish(*conn);
}

static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u; /* FNV-1a */
    return hash;
}

static uint64_t schema_hash(const Schema *schema)
{
    uint64_t hash = 0xcbf29ce484222325u;

    for (int i = 0; i < schema->migration_count; i++)
        hash = hash_text(hash, schema->migrations[i].sql);
    for (int i = 0; i < schema->definition_count; i++)
        hash = hash_text(hash, schema->definitions[i].sql);
    return hash;
}

static ErrorCode exec(PGconn *conn, const char *sql, bool *ret_has_rows, Error *reterr)
{
    scoped(PQclear) PGresult *result = PQexec(conn, sql);
    ExecStatusType            status = PQresultStatus(result);

    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        return fail(reterr, ERR_INTERNAL, "%s: %s", sql, PQerrorMessage(conn));
    if (ret_has_rows)
        *ret_has_rows = PQntuples(result) > 0;
    return OK;
}

static ErrorCode migrate(const char *url, const char *database, Error *reterr)
{
    char                    conninfo[CONNINFO_SIZE];
    scoped(pool_free) Pool *pool = NULL;
    int                     applied;

    conninfo_change(url, conninfo, "dbname", database, NULL);
    TRY(pool_new(&(PoolOptions){.conninfo = conninfo, .size_min = 1, .size_max = 1}, &pool, reterr));
    return migrate_run(pool, &schema_embedded, deadline_in_ms(MIGRATE_MS_MAX), &applied, reterr);
}

static ErrorCode make(PGconn *conn, const char *url, const char *name, Error *reterr)
{
    char half_made[TEMPLATE_NAME_SIZE + 8];
    char sql[STATEMENT_SIZE];

    snprintf(half_made, sizeof half_made, "%s_making", name);
    snprintf(sql, sizeof sql, "drop database if exists %s with (force)", half_made);
    TRY(exec(conn, sql, NULL, reterr));
    snprintf(sql, sizeof sql, "create database %s template template0", half_made);
    TRY(exec(conn, sql, NULL, reterr));
    TRY(migrate(url, half_made, reterr));
    /* No session may connect, or copying would fail. */
    snprintf(sql, sizeof sql, "alter database %s with allow_connections false", half_made);
    TRY(exec(conn, sql, NULL, reterr));
    snprintf(sql, sizeof sql, "alter database %s rename to %s", half_made, name);
    return exec(conn, sql, NULL, reterr);
}

ErrorCode template_ensure(const char *url, char ret_name[static TEMPLATE_NAME_SIZE], Error *reterr)
{
    __attribute__((cleanup(finish))) PGconn *conn = PQconnectdb(url);
    char                                     sql[STATEMENT_SIZE];
    bool                                     exists;

    if (PQstatus(conn) != CONNECTION_OK)
        return fail(reterr, ERR_UNAVAILABLE, "%s", PQerrorMessage(conn));
    snprintf(ret_name, TEMPLATE_NAME_SIZE, "pawl_template_%016" PRIx64, schema_hash(&schema_embedded));
    /* The lock ends with the connection. */
    TRY(exec(conn, "set client_min_messages = warning; select pg_advisory_lock(" TEMPLATE_LOCK ")", NULL, reterr));
    snprintf(sql, sizeof sql, "select from pg_database where datname = '%s'", ret_name);
    TRY(exec(conn, sql, &exists, reterr));
    return exists ? OK : make(conn, url, ret_name, reterr);
}
