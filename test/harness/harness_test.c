/*
 * harness_test.c - can the tools that other tests rely on tell right from wrong?
 */
#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/world.h"
#include "pg/conn.h"
#include "test/harness/database.h"
#include "test/harness/fake_clock.h"
#include "test/harness/proxy.h"
#include "test/harness/server.h"
#include "test/harness/test.h"
#include "test/harness/wire.h"

#define FACT_MS_MAX 10000

static PGconn *session_open(const char *url)
{
    PGconn *conn = PQconnectdb(url);

    if (PQstatus(conn) != CONNECTION_OK)
        fail_msg("%s", PQerrorMessage(conn));
    return conn;
}

static bool run(PGconn *conn, const char *sql)
{
    scoped(PQclear) PGresult *result = PQexec(conn, sql);
    ExecStatusType            status = PQresultStatus(result);

    return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

/* The same by Parse, Bind, Execute and Sync. */
static bool run_extended(PGconn *conn, const char *sql)
{
    scoped(PQclear) PGresult *result = PQexecParams(conn, sql, 0, NULL, NULL, NULL, NULL, 0);

    return PQresultStatus(result) == PGRES_COMMAND_OK;
}

/* Until the query gives this number. */
static void await_i64(TestDatabase *db, int64_t expected, const char *sql)
{
    Deadline deadline = deadline_in_ms(FACT_MS_MAX);

    while (database_get_i64(db, sql) != expected)
        if (deadline_passed(deadline))
            fail_msg("%s is not %lld", sql, (long long)expected);
}

static void await_closed(Proxy *proxy)
{
    Deadline deadline = deadline_in_ms(FACT_MS_MAX);

    while (proxy_counts(proxy).open != 0)
        if (deadline_passed(deadline))
            fail_msg("the proxy has %d open connections", proxy_counts(proxy).open);
}

TEST(database_is_alone)
{
    scoped(database_free) TestDatabase *a     = database_new_empty();
    scoped(database_free) TestDatabase *b     = database_new_empty();
    scoped(arena_free) Arena           *arena = arena_new(ARENA_BYTES_DEFAULT);

    database_exec(a, "create table t (n bigint); insert into t values (41)");
    assert_int_equal(41, database_get_i64(a, "select n from t"));
    assert_null(database_get_text(b, "select to_regclass('t')::text", arena));
    assert_string_equal("t", database_get_text(a, "select to_regclass('t')::text", arena));
}

TEST(database_has_the_schema)
{
    scoped(database_free) TestDatabase *db = database_new();

    assert_true(database_get_i64(db, "select count(*) from pawl.migration") > 0);
}

TEST(database_is_dropped_under_its_users)
{
    TestDatabase *db   = database_new_empty();
    PGconn       *conn = database_connect(db);

    database_free(db);
    assert_false(run(conn, "select 1"));
    PQfinish(conn);
}

TEST(server_stops_and_starts_on_its_port)
{
    scoped(test_server_free) TestServer *server =
        test_server_new((TestServerOptions){.settings = "max_connections = 7\n"});
    PGconn *conn = session_open(test_server_url(server, "postgres"));

    assert_true(run(conn, "create table t (n int)"));
    test_server_stop(server, "immediate");
    assert_false(run(conn, "select 1"));
    PQfinish(conn);
    assert_int_equal(PQPING_NO_RESPONSE, PQping(test_server_url(server, "postgres")));

    test_server_start(server);
    conn                             = session_open(test_server_url(server, "postgres"));
    scoped(PQclear) PGresult *result = PQexec(conn, "select current_setting('max_connections'), count(*) from t");
    assert_int_equal(PGRES_TUPLES_OK, PQresultStatus(result));
    assert_string_equal("7", PQgetvalue(result, 0, 0));
    PQfinish(conn);
}

TEST(server_that_was_killed_starts_again)
{
    scoped(test_server_free) TestServer *server = test_server_new((TestServerOptions){.unix_url = true});

    test_server_kill(server);
    assert_int_not_equal(PQPING_OK, PQping(test_server_url(server, "postgres")));
    test_server_start(server);
    PQfinish(session_open(test_server_url(server, "postgres")));
}

TEST(test_server_asks_for_a_password_on_request)
{
    scoped(test_server_free) TestServer *server =
        test_server_new((TestServerOptions){.hba = "host all guest 127.0.0.1/32 scram-sha-256\n"});
    PGconn *conn = session_open(test_server_url(server, "postgres"));
    char    url[256];

    assert_true(run(conn, "create role guest login password 'right'"));
    PQfinish(conn);
    snprintf(url, sizeof url, "host=127.0.0.1 port=%d dbname=postgres user=guest password=wrong",
             test_server_port(server));
    conn = PQconnectdb(url);
    assert_int_equal(CONNECTION_BAD, PQstatus(conn));
    assert_contains(PQerrorMessage(conn), "password authentication failed");
    PQfinish(conn);
}

TEST(proxy_passes_large_statements)
{
    scoped(database_free) TestDatabase *db    = database_new_empty();
    scoped(proxy_free) Proxy           *proxy = proxy_new(database_url(db));
    PGconn                             *conn  = session_open(proxy_url(proxy));
    static char                         sql[300000];

    memset(sql, 'x', sizeof sql);
    memcpy(sql, "select length('", 15);
    memcpy(sql + sizeof sql - 4, "')", 3);
    scoped(PQclear) PGresult *result = PQexec(conn, sql);
    assert_string_equal("299981", PQgetvalue(result, 0, 0));
    scoped(PQclear) PGresult *back = PQexec(conn, "select repeat('y', 1000000)");
    assert_int_equal(1000000, PQgetlength(back, 0, 0));
    PQfinish(conn);
    await_closed(proxy);
    assert_int_equal(1, proxy_counts(proxy).accepted);
    assert_int_equal(0, proxy_counts(proxy).cuts);
}

TEST(proxy_slices_and_delays)
{
    scoped(database_free) TestDatabase *db    = database_new_empty();
    scoped(proxy_free) Proxy           *proxy = proxy_new(database_url(db));

    proxy_set_slice(proxy, 3);
    PGconn *conn = session_open(proxy_url(proxy));
    assert_true(run(conn, "select 'a statement of some length'"));
    proxy_set_slice(proxy, 0);
    proxy_set_delay(proxy, 50);
    Mono start = clock_mono();
    assert_true(run(conn, "select 1"));
    assert_true(mono_ms_between(start, clock_mono()) >= 100); /* there and back */
    PQfinish(conn);
}

/* A client whose patience ends: libpq's own timeout covers connecting only. */
static bool answers_within_ms(PGconn *conn, int ms)
{
    assert_int_equal(1, PQsendQuery(conn, "select 1"));
    bool answered = world_socket_wait(PQsocket(conn), SOCKET_READ, deadline_in_ms(ms)) != 0;
    for (PGresult *result; answered && (result = PQgetResult(conn));)
        PQclear(result);
    return answered;
}

TEST(proxy_stalls_and_goes_on)
{
    scoped(database_free) TestDatabase *db    = database_new_empty();
    scoped(proxy_free) Proxy           *proxy = proxy_new(database_url(db));
    PGconn                             *conn  = session_open(proxy_url(proxy));

    proxy_set_mode(proxy, PROXY_STALL);
    assert_false(answers_within_ms(conn, 100));
    proxy_set_mode(proxy, PROXY_PASS);
    assert_int_not_equal(0, world_socket_wait(PQsocket(conn), SOCKET_READ, deadline_in_ms(FACT_MS_MAX)));
    PQfinish(conn);
}

TEST(proxy_swallows_in_the_black_hole)
{
    scoped(database_free) TestDatabase *db    = database_new_empty();
    scoped(proxy_free) Proxy           *proxy = proxy_new(database_url(db));
    PGconn                             *conn  = session_open(proxy_url(proxy));

    proxy_set_mode(proxy, PROXY_BLACKHOLE);
    assert_false(answers_within_ms(conn, 100));
    proxy_set_mode(proxy, PROXY_PASS);
    assert_int_equal(0, world_socket_wait(PQsocket(conn), SOCKET_READ, deadline_in_ms(100)));
    PQfinish(conn);
    conn = session_open(proxy_url(proxy));
    assert_true(run(conn, "select 1"));
    PQfinish(conn);
}

TEST(proxy_refuses_newcomers_only)
{
    scoped(database_free) TestDatabase *db    = database_new_empty();
    scoped(proxy_free) Proxy           *proxy = proxy_new(database_url(db));
    PGconn                             *old   = session_open(proxy_url(proxy));

    proxy_set_mode(proxy, PROXY_REFUSE);
    PGconn *conn = PQconnectdb(proxy_url(proxy));
    assert_contains(PQerrorMessage(conn), "Connection refused");
    PQfinish(conn);
    assert_true(run(old, "select 1"));
    PQfinish(old);
    proxy_set_mode(proxy, PROXY_PASS);
    PQfinish(session_open(proxy_url(proxy)));
}

TEST(proxy_cuts_all_now)
{
    scoped(database_free) TestDatabase *db    = database_new_empty();
    scoped(proxy_free) Proxy           *proxy = proxy_new(database_url(db));
    PGconn                             *a     = session_open(proxy_url(proxy));
    PGconn                             *b     = session_open(proxy_url(proxy));

    assert_int_equal(2, proxy_cut_now(proxy));
    assert_false(run(a, "select 1"));
    assert_false(run(b, "select 1"));
    assert_int_equal(2, proxy_counts(proxy).cuts);
    PQfinish(a);
    PQfinish(b);
}

/* Insert a row and lose the wire around the commit: are there as many rows in the end as the moment promises? */
static void commit_is_cut(ProxyMoment moment, bool extended, int64_t expected)
{
    scoped(database_free) TestDatabase *db    = database_new_empty();
    scoped(proxy_free) Proxy           *proxy = proxy_new(database_url(db));
    PGconn                             *conn  = session_open(proxy_url(proxy));

    database_exec(db, "create table t (n int)");
    proxy_cut_commit(proxy, moment, 1);
    assert_true(run(conn, "begin"));
    assert_true(run(conn, "insert into t values (1)"));
    assert_false(extended ? run_extended(conn, "commit") : run(conn, "COMMIT;"));
    assert_int_equal(CONNECTION_BAD, PQstatus(conn));
    PQfinish(conn);
    assert_int_equal(1, proxy_counts(proxy).cuts);
    if (moment == PROXY_CUT_ANSWERED)
        assert_int_equal(expected, database_get_i64(db, "select count(*) from t"));
    /* The server learns of the cut in its own time. */
    await_i64(db, 0,
              "select count(*) from pg_stat_activity"
              " where datname = current_database() and pid <> pg_backend_pid()");
    assert_int_equal(expected, database_get_i64(db, "select count(*) from t"));

    conn = session_open(proxy_url(proxy)); /* the trigger is spent */
    assert_true(run(conn, "begin; insert into t values (2)") && run(conn, "commit"));
    PQfinish(conn);
}

TEST(proxy_cuts_before_commit)
{
    commit_is_cut(PROXY_CUT_BEFORE, false, 0);
}
TEST(proxy_cuts_before_commit_extended)
{
    commit_is_cut(PROXY_CUT_BEFORE, true, 0);
}
TEST(proxy_cuts_when_commit_is_sent)
{
    commit_is_cut(PROXY_CUT_SENT, false, 1);
}
TEST(proxy_cuts_when_commit_is_sent_extended)
{
    commit_is_cut(PROXY_CUT_SENT, true, 1);
}
TEST(proxy_cuts_when_commit_is_answered)
{
    commit_is_cut(PROXY_CUT_ANSWERED, false, 1);
}
TEST(proxy_cuts_when_commit_is_answered_extended)
{
    commit_is_cut(PROXY_CUT_ANSWERED, true, 1);
}

TEST(proxy_cuts_on_a_statement)
{
    scoped(database_free) TestDatabase *db    = database_new_empty();
    scoped(proxy_free) Proxy           *proxy = proxy_new(database_url(db));
    PGconn                             *conn  = session_open(proxy_url(proxy));

    database_exec(db, "create table t (n int)");
    proxy_cut_on(proxy, "insert into t", PROXY_CUT_ANSWERED, -1);
    assert_true(run(conn, "select 1"));
    assert_false(run_extended(conn, "INSERT INTO t VALUES (1)"));
    PQfinish(conn);
    assert_int_equal(1, database_get_i64(db, "select count(*) from t"));
}

TEST(wire_knows_a_commit)
{
    assert_true(wire_is_commit("commit", 6));
    assert_true(wire_is_commit(" Commit ; ", 10));
    assert_true(wire_is_commit("commit; reset all", 17));
    assert_false(wire_is_commit("reset all; commit", 17));
    assert_false(wire_is_commit("commit prepared 'x'", 19));
    assert_false(wire_is_commit("", 0));
}

TEST(fake_clock_moves_only_when_advanced)
{
    fake_clock_install((Wall){1700000000000000});
    Mono start = clock_mono();
    assert_int_equal(0, mono_us_between(start, clock_mono()));
    fake_clock_advance_ms(1500);
    clock_sleep_ms(500);
    assert_int_equal(2000, mono_ms_between(start, clock_mono()));
    assert_int_equal(1700000002000000, clock_wall().us);
    fake_clock_restore();
    assert_true(clock_wall().us > 1700000002000000);
}
