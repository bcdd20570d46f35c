/*
 * conn_prepared_test.c - statements are prepared once per connection, and whatever makes that impossible is not seen by the caller.
 */
#include <stdlib.h>

#include "pg/conn_internal.h"
#include "pg/oid.h"
#include "test/harness/database.h"
#include "test/harness/test.h"

static const char twice[] = "select $1::integer * 2 as value";

static Conn *conn_of(TestDatabase *db)
{
    Conn *conn  = NULL;
    Error error = {0};

    assert_ok(conn_open(database_url(db), "conn_prepared_test", deadline_in_ms(10000), &conn, &error));
    return conn;
}

static ErrorCode call(Conn *conn, const char *sql, Oid type, const char *value, bool prepare, int *ret_value,
                      Error *reterr)
{
    scoped(PQclear) PGresult *result = NULL;

    TRY(conn_call(conn, sql, (ConnParams){.count = 1, .types = &type, .values = &value, .prepare = prepare},
                  deadline_in_ms(10000), &result, reterr));
    *ret_value = (int)strtol(PQgetvalue(result, 0, PQnfields(result) - 1), NULL, 10);
    return OK;
}

static int doubled(Conn *conn, const char *value)
{
    int   number = -1;
    Error error  = {0};

    assert_ok(call(conn, twice, OID_INT4, value, /* prepare= */ true, &number, &error));
    return number;
}

static int number_of(Conn *conn, const char *sql)
{
    scoped(PQclear) PGresult *result = NULL;
    Error                     error  = {0};

    assert_ok(conn_query(conn, sql, CONN_NO_PARAMS, deadline_in_ms(10000), &result, &error));
    return (int)strtol(PQgetvalue(result, 0, 0), NULL, 10);
}

static void run(Conn *conn, const char *sql)
{
    scoped(PQclear) PGresult *result = NULL;
    Error                     error  = {0};

    assert_ok(conn_query(conn, sql, CONN_NO_PARAMS, deadline_in_ms(10000), &result, &error));
}

#define PREPARED "select count(*) from pg_prepared_statements where name like 'pawl\\_%'"
#define USED     "select sum(generic_plans + custom_plans) from pg_prepared_statements where statement like '%* 2%'"

TEST(conn_prepares_a_statement_once)
{
    scoped(database_free) TestDatabase *db    = database_new();
    scoped(conn_close) Conn            *conn  = conn_of(db);
    int                                 other = 0;
    Error                               error = {0};

    assert_int_equal(doubled(conn, "1"), 2); /* as a text: which process runs it is not known yet */
    assert_int_equal(number_of(conn, PREPARED), 0);
    for (int i = 0; i < 10; i++)
        assert_int_equal(doubled(conn, "4"), 8);
    assert_int_equal(number_of(conn, PREPARED), 2); /* it and the limits */
    assert_int_equal(number_of(conn, USED), 10);
    /* A null, which has no type, is a parameter of the same statement; a statement that was not meant to be prepared is not. */
    assert_ok(call(conn, twice, /* type= */ 0, NULL, /* prepare= */ true, &other, &error));
    assert_int_equal(other, 0);
    assert_int_equal(number_of(conn, PREPARED), 2);
    assert_ok(call(conn, "select $1::integer * 3 as value", OID_INT4, "5", /* prepare= */ false, &other, &error));
    assert_int_equal(other, 15);
    assert_int_equal(number_of(conn, PREPARED), 2);
}

TEST(conn_keeps_what_was_prepared_before_an_error)
{
    static const char                   inverse[] = "select 100 / $1::integer as value";
    scoped(database_free) TestDatabase *db        = database_new();
    scoped(conn_close) Conn            *conn      = conn_of(db);
    int                                 value     = 0;
    Error                               error     = {0};

    doubled(conn, "1");
    assert_int_not_equal(call(conn, inverse, OID_INT4, "0", /* prepare= */ true, &value, &error), OK);
    assert_string_equal(error.sqlstate, "22012");
    assert_ok(call(conn, inverse, OID_INT4, "5", /* prepare= */ true, &value, &error));
    assert_int_equal(value, 20);
    assert_int_equal(number_of(conn, PREPARED), 2);
    /* A statement that cannot be prepared fails as it would as a text, each time. */
    for (int i = 0; i < 2; i++) {
        assert_int_not_equal(call(conn, "select missing($1) as value", OID_INT4, "5", /* prepare= */ true, &value,
                                  &error),
                             OK);
        assert_string_equal(error.sqlstate, "42883");
    }
    assert_int_equal(doubled(conn, "3"), 6);
    assert_int_equal(conn->prepare, PREPARE_ALLOWED);
}

TEST(conn_prepares_nothing_behind_a_pooler)
{
    scoped(database_free) TestDatabase *db   = database_new();
    scoped(conn_close) Conn            *conn = conn_of(db), *other = conn_of(db);
    char                                row[64];
    scoped(PQclear) PGresult           *limits = NULL;
    Error                               error  = {0};

    /* What the first call learns when another process than that of the handshake ran it. */
    snprintf(row, sizeof row, "select '', '', '', %d", PQbackendPID(conn_native(other)));
    assert_ok(conn_query(conn, row, CONN_NO_PARAMS, deadline_in_ms(10000), &limits, &error));
    conn_prepared_learn(conn, limits);
    for (int i = 0; i < 3; i++)
        assert_int_equal(doubled(conn, "4"), 8);
    assert_int_equal(number_of(conn, PREPARED), 0);
}

TEST(conn_sends_texts_when_prepared_statements_are_gone)
{
    scoped(database_free) TestDatabase *db   = database_new();
    scoped(conn_close) Conn            *conn = conn_of(db), *taken = conn_of(db);

    doubled(conn, "1");
    doubled(conn, "1");
    assert_int_equal(number_of(conn, PREPARED), 2);
    run(conn, "deallocate all");
    for (int i = 0; i < 3; i++)
        assert_int_equal(doubled(conn, "4"), 8);
    assert_int_equal(number_of(conn, PREPARED), 0);

    /* The names are in use. */
    doubled(taken, "1");
    doubled(taken, "1");
    conn_prepared_forget(taken);
    for (int i = 0; i < 3; i++)
        assert_int_equal(doubled(taken, "4"), 8);
}

TEST(conn_prepares_again_after_a_reset)
{
    scoped(database_free) TestDatabase *db    = database_new();
    scoped(conn_close) Conn            *conn  = conn_of(db);
    Error                               error = {0};

    doubled(conn, "1");
    doubled(conn, "1");
    run(conn, "begin");
    assert_ok(conn_commit_reset(conn, deadline_in_ms(10000), &error));
    assert_int_equal(number_of(conn, PREPARED), 0);
    assert_int_equal(doubled(conn, "4"), 8);
    assert_int_equal(number_of(conn, PREPARED), 2);
}

TEST(conn_survives_a_function_whose_result_changes)
{
    static const char                   sql[] = "select * from public.counted($1)";
    scoped(database_free) TestDatabase *db    = database_new();
    scoped(conn_close) Conn            *conn  = conn_of(db);
    int                                 value = 0;
    Error                               error = {0};

    database_exec(db, "create function public.counted(n integer) returns table (a integer) language plpgsql as "
                      "$$ begin return query select n; end $$");
    for (int i = 0; i < 3; i++)
        assert_ok(call(conn, sql, OID_INT4, "7", /* prepare= */ true, &value, &error));
    assert_int_equal(value, 7);
    database_exec(
        db, "drop function public.counted; create function counted(n integer) returns table (a integer, b integer) "
            "language plpgsql as $$ begin return query select n, n + 1; end $$");
    for (int i = 0; i < 3; i++)
        assert_ok(call(conn, sql, OID_INT4, "7", /* prepare= */ true, &value, &error));
    assert_int_equal(value, 8);
}
