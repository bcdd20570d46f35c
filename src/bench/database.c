/*
 * database.c - create database, drop database; see database.h.
 */
#include "bench/database.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "base/uuid.h"
#include "pg/migrate.h"
#include "pg/query.h"
#include "sql.h"

#define CONNECT_MS 10000
#define CHANGE_MS  120000
#define VACUUM_MS  600000
#define DENIED     "42501"
#define TAKEN      "42P04"
#define NAME_BYTES 8 /* at random, behind the number of the process: containers all have the same few */

#define FACTS_COLUMNS(X, T) X(T, TEXT, database, version, synchronous_commit, fsync)
DB_ROW(Facts, FACTS_COLUMNS);
DB_SHAPE(facts, Facts, FACTS_COLUMNS);

/* ---- the same address, another database ---- */

static void option_append(Text *text, const char *keyword, const char *value)
{
    text_print(text, "%s%s='", text->length ? " " : "", keyword);
    for (; *value; value++) {
        if (*value == '\'' || *value == '\\')
            text_append_char(text, '\\');
        text_append_char(text, *value);
    }
    text_append_char(text, '\'');
}

static ErrorCode conninfo_rename(Arena *arena, const char *conninfo, const char *database, const char **ret_conninfo,
                                 Error *reterr)
{
    scoped(PQconninfoFree) PQconninfoOption *options = PQconninfoParse(conninfo, NULL);
    Text                                     text;

    if (!options)
        return fail(reterr, ERR_USAGE,
                    "database url is malformed: it must look like postgresql://user@host:5432/database");
    text_init(&text, arena, TEXT_MAX_LINE);
    for (const PQconninfoOption *option = options; option->keyword; option++)
        if (option->val && strcmp(option->keyword, "dbname") != 0)
            option_append(&text, option->keyword, option->val);
    option_append(&text, "dbname", database);
    if (text_is_full(&text))
        return fail(reterr, ERR_LIMIT, "database url is longer than %zu bytes", TEXT_MAX_LINE);
    *ret_conninfo = text_string(&text);
    return OK;
}

/* ---- create and drop ---- */

static ErrorCode statement_run(Conn *conn, const char *sql, int64_t ms, Error *reterr)
{
    scoped(PQclear) PGresult *result = NULL;

    return conn_query(conn, sql, CONN_NO_PARAMS, deadline_in_ms(ms), &result, reterr);
}

/* A statement that the server words for us, because of the name in it. */
static ErrorCode statement_make_and_run(Conn *conn, const char *maker, const char *name, Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    Tx                        tx    = {.conn = conn, .arena = arena, .deadline = deadline_in_ms(CONNECT_MS)};
    const char               *statement;

    TRY(db_get_text(&tx, maker, DB_ARGS(db_text(name)), &statement, reterr));
    return statement_run(conn, statement, CHANGE_MS, reterr);
}

static ErrorCode database_create(BenchDatabase *database, Error *reterr)
{
    scoped(conn_close) Conn *conn  = NULL;
    Error                    error = {0};
    char                     id[UUID_TEXT_SIZE];
    ErrorCode                code;

    TRY(conn_open(database->home, "pawl bench", deadline_in_ms(CONNECT_MS), &conn, reterr));
    uuid_new(id);
    snprintf(database->name, sizeof database->name, "pawl_bench_%d_%s", (int)getpid(),
             id + UUID_TEXT_SIZE - 1 - NAME_BYTES);
    code = statement_make_and_run(conn, sql_bench_create, database->name, &error);
    if (code == OK)
        return OK;
    if (strcmp(error.sqlstate, DENIED) == 0 || strcmp(error.sqlstate, TAKEN) == 0)
        database->name[0] = '\0'; /* nothing of ours is there; after a lost answer it may be */
    if (strcmp(error.sqlstate, DENIED) == 0)
        return fail(reterr, ERR_DENIED,
                    "role \"%s\" may not create databases, and a bench measures in one of its own: "
                    "give it the right with \"alter role ... createdb\", or another role",
                    PQuser(conn_native(conn)));
    return error_pass(code, &error, reterr);
}

/* Ending others' sessions is refused to a plain role while a vacuum of the server's own runs there; a drop without it
 * asks that vacuum to end, and waits for it. */
static ErrorCode database_drop(Conn *conn, const char *name, Error *reterr)
{
    Error     error = {0};
    ErrorCode code  = statement_make_and_run(conn, sql_bench_drop, name, &error);

    if (code != OK && strcmp(error.sqlstate, DENIED) == 0)
        return statement_make_and_run(conn, sql_bench_drop_unused, name, reterr);
    return error_pass(code, &error, reterr);
}

ErrorCode database_close(BenchDatabase *database, Error *reterr)
{
    scoped(conn_close) Conn *conn = NULL;
    ErrorCode                code;

    if (database->pool)
        pool_free(take(database->pool));
    if (!database->name[0])
        return OK;
    code = conn_open(database->home, "pawl bench", deadline_in_ms(CONNECT_MS), &conn, reterr);
    if (code == OK)
        code = database_drop(conn, database->name, reterr);
    if (code != OK)
        error_prefix(reterr, "database \"%s\" is left behind", database->name);
    database->name[0] = '\0';
    return code;
}

/* ---- reach ---- */

static ErrorCode database_check(BenchDatabase *database, Arena *arena, Error *reterr)
{
    scoped(conn_close) Conn *conn  = NULL;
    Facts                    facts = {0};
    ErrorCode                code  = conn_open(database->url, "pawl bench", deadline_in_ms(CONNECT_MS), &conn, reterr);

    if (code != OK) { /* at this address another database answered a moment ago */
        error_prefix(reterr, "a bench needs PostgreSQL itself, not a pooler with a list of databases");
        return code;
    }
    Tx tx = {.conn = conn, .arena = arena, .deadline = deadline_in_ms(CONNECT_MS)};
    TRY(db_one(&tx, sql_bench_facts, DB_NONE, &facts_shape, &facts, reterr));
    if (strcmp(facts.database, database->name) != 0)
        return fail(reterr, ERR_USAGE,
                    "this address leads to database \"%s\" for every name that is asked for: "
                    "a bench needs PostgreSQL itself, not a pooler in front of one database",
                    facts.database);
    database->version            = facts.version;
    database->synchronous_commit = facts.synchronous_commit;
    database->fsync              = facts.fsync;
    return OK;
}

ErrorCode database_open(const BenchDatabaseOptions *options, Arena *arena, BenchDatabase *ret_database, Error *reterr)
{
    PoolOptions pool = {.application_name = "pawl bench", .size_max = options->connections};
    int         applied;

    *ret_database = (BenchDatabase){.home = options->url};
    TRY(database_create(ret_database, reterr));
    TRY(conninfo_rename(arena, options->url, ret_database->name, &ret_database->url, reterr));
    TRY(conninfo_rename(arena, options->listen_url, ret_database->name, &ret_database->listen_url, reterr));
    TRY(database_check(ret_database, arena, reterr));
    pool.conninfo = ret_database->url;
    TRY(pool_new(&pool, &ret_database->pool, reterr));
    return migrate_run(ret_database->pool, &schema_embedded, deadline_in_ms(CHANGE_MS), &applied, reterr);
}

ErrorCode database_settle(BenchDatabase *database, Error *reterr)
{
    scoped(conn_close) Conn *conn  = NULL;
    Error                    error = {0};

    TRY(conn_open(database->url, "pawl bench", deadline_in_ms(CONNECT_MS), &conn, reterr));
    TRY(statement_run(conn, sql_bench_vacuum, VACUUM_MS, reterr));
    if (statement_run(conn, sql_bench_checkpoint, VACUUM_MS, &error) == OK || strcmp(error.sqlstate, DENIED) == 0)
        return OK;
    return error_pass(error.code, &error, reterr);
}

/* ---- holding a transaction open ---- */

ErrorCode hold_begin(const BenchDatabase *database, HoldKind kind, Conn **ret_conn, Error *reterr)
{
    scoped(conn_close) Conn *conn = NULL;

    if (kind != HOLD_NOTHING) {
        TRY(conn_open(database->url, "pawl bench hold", deadline_in_ms(CONNECT_MS), &conn, reterr));
        TRY(statement_run(conn, "begin isolation level repeatable read", CONNECT_MS, reterr));
        TRY(statement_run(conn, "set local idle_in_transaction_session_timeout = 0", CONNECT_MS, reterr));
        TRY(statement_run(conn, "select 1", CONNECT_MS, reterr)); /* takes the snapshot */
    }
    if (kind == HOLD_XID)
        TRY(statement_run(conn, sql_bench_hold_xid, CONNECT_MS, reterr));
    *ret_conn = take(conn);
    return OK;
}

ErrorCode hold_check(Conn *conn, Error *reterr)
{
    ErrorCode code = conn ? statement_run(conn, "select 1", CONNECT_MS, reterr) : OK;

    if (code != OK)
        error_prefix(reterr, "the transaction was not held until the end");
    return code;
}
