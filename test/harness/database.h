/*
 * database.h - a database per test, so that tests share nothing but the postmaster.
 *
 *     TEST(send_twice_is_one_row)
 *     {
 *         scoped(database_free) TestDatabase *db = database_new();
 *         database_exec(db, "insert into ...");
 *         assert_int_equal(1, database_get_i64(db, "select count(*) from ..."));
 *     }
 *
 * Everything here is plain blocking libpq as the superuser, and fails the test with the server's words when something
 * goes wrong: main thread only. The cluster comes from test/harness/cluster.sh; without one the test fails, it is
 * never skipped.
 * Ownership: database_free() drops the database, even with open connections.
 */
#ifndef HARNESS_DATABASE_H
#define HARNESS_DATABASE_H

#include <libpq-fe.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/attr.h"

typedef struct TestDatabase TestDatabase;

/* The value of PAWL_TEST_URL and its friends; fails the test when it is missing. */
const char *harness_setting(const char *name);

/* With all migrations applied, copied from the template. */
TestDatabase *database_new(void);
/* As PostgreSQL makes it. */
TestDatabase *database_new_empty(void);
void          database_free(TestDatabase *db);
SCOPED(TestDatabase, database_free)

/* For pools and child processes; borrowed from db. */
const char *database_url(const TestDatabase *db);
/* A session of its own, for tests that hold a lock or listen; the caller calls PQfinish(). */
PGconn *database_connect(const TestDatabase *db);

/* Any number of statements. */
void    database_exec(TestDatabase *db, const char *sql);
int64_t database_get_i64(TestDatabase *db, const char *sql);
/* NULL for SQL null. */
const char *database_get_text(TestDatabase *db, const char *sql, Arena *arena);

#endif
