/*
 * database.c - created on the cluster's "postgres" database, used over one session, dropped with force.
 */
#include "test/harness/database.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "pg/conn.h"
#include "test/harness/conninfo.h"
#include "test/harness/template.h"
#include "test/harness/test.h"

struct TestDatabase {
    char    name[48];
    char    url[CONNINFO_SIZE];
    PGconn *conn;
};

const char *harness_setting(const char *name)
{
    const char *value = getenv(name);

    if (!value)
        fail_msg("%s is not set: run ./dev test, or test/harness/cluster.sh run COMMAND", name);
    return value;
}

static PGconn *connect_to(const char *url)
{
    PGconn *conn = PQconnectdb(url);

    if (PQstatus(conn) != CONNECTION_OK)
        fail_msg("%s", PQerrorMessage(conn));
    return conn;
}

static PGresult *query(PGconn *conn, const char *sql)
{
    PGresult      *result = PQexec(conn, sql);
    ExecStatusType status = PQresultStatus(result);

    if (status != PGRES_COMMAND_OK && status != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(conn));
    return result;
}

static void exec_on_cluster(const char *sql)
{
    PGconn *conn = connect_to(harness_setting("PAWL_TEST_URL"));

    PQclear(query(conn, sql));
    PQfinish(conn);
}

/* Unlike any other in this cluster: the process may be one of many, and its number may have been used before. */
static void name_choose(char *ret_name, size_t size)
{
    static int      count;
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    snprintf(ret_name, size, "test_%d_%d_%lx", (int)getpid(), ++count, (unsigned long)now.tv_nsec);
}

static TestDatabase *new_from(const char *template)
{
    TestDatabase *db = calloc(1, sizeof *db);
    char          sql[192];

    assert_non_null(db);
    name_choose(db->name, sizeof db->name);
    /* Copied file by file: the default, which copies through WAL, takes three times as much CPU time. */
    snprintf(sql, sizeof sql, "create database %s template %s strategy file_copy", db->name, template);
    exec_on_cluster(sql);
    conninfo_change(harness_setting("PAWL_TEST_URL"), db->url, "dbname", db->name, NULL);
    db->conn = connect_to(db->url);
    return db;
}

TestDatabase *database_new(void)
{
    char template[TEMPLATE_NAME_SIZE];
    Error error;

    assert_ok(template_ensure(harness_setting("PAWL_TEST_URL"), template, &error));
    return new_from(template);
}

TestDatabase *database_new_empty(void)
{
    return new_from("template0");
}

void database_free(TestDatabase *db)
{
    char sql[192];

    PQfinish(db->conn);
    snprintf(sql, sizeof sql, "drop database %s with (force)", db->name);
    exec_on_cluster(sql);
    free(db);
}

const char *database_url(const TestDatabase *db)
{
    return db->url;
}

PGconn *database_connect(const TestDatabase *db)
{
    return connect_to(db->url);
}

void database_exec(TestDatabase *db, const char *sql)
{
    PQclear(query(db->conn, sql));
}

/* Exactly one row with one column. */
static PGresult *query_value(TestDatabase *db, const char *sql)
{
    PGresult *result = query(db->conn, sql);

    if (PQntuples(result) != 1 || PQnfields(result) != 1)
        fail_msg("%s: %d rows of %d columns, not one value", sql, PQntuples(result), PQnfields(result));
    return result;
}

int64_t database_get_i64(TestDatabase *db, const char *sql)
{
    scoped(PQclear) PGresult *result = query_value(db, sql);
    const char               *text   = PQgetvalue(result, 0, 0);
    char                     *end;

    errno         = 0;
    int64_t value = strtoll(text, &end, 10);
    if (errno || end == text || *end)
        fail_msg("%s: \"%s\" is not a whole number", sql, text);
    return value;
}

const char *database_get_text(TestDatabase *db, const char *sql, Arena *arena)
{
    scoped(PQclear) PGresult *result = query_value(db, sql);

    return PQgetisnull(result, 0, 0) ? NULL : arena_text(arena, PQgetvalue(result, 0, 0));
}
