/*
 * conn_test.c - connecting, failing to, and giving up, against real servers and a hole in the network.
 */
#include "pg/conn.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/sync.h"
#include "test/harness/conninfo.h"
#include "test/harness/database.h"
#include "test/harness/proxy.h"
#include "test/harness/server.h"
#include "test/harness/test.h"
#include "test/unit/pg/await.h"

#define SECRET "hunter2secret"

/* A port where connections are accepted by the kernel and never by anybody else. */
static int hole_open(int *ret_port)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t          size    = sizeof address;
    int                fd      = socket(AF_INET, SOCK_STREAM, 0);

    assert_return_code(bind(fd, (struct sockaddr *)&address, size), 0);
    assert_return_code(listen(fd, 16), 0);
    assert_return_code(getsockname(fd, (struct sockaddr *)&address, &size), 0);
    *ret_port = ntohs(address.sin_port);
    return fd;
}

static ErrorCode query(Conn *conn, const char *sql, int ms, Error *reterr)
{
    scoped(PQclear) PGresult *result = NULL;

    return conn_query(conn, sql, CONN_NO_PARAMS, deadline_in_ms(ms), &result, reterr);
}

TEST(conn_wrong_password_is_refused_in_one_sentence_without_it)
{
    scoped(test_server_free) TestServer *server =
        test_server_new((TestServerOptions){.hba = "host all joe 127.0.0.1/32 scram-sha-256\n"});
    Conn *conn = NULL;
    char  url[256];
    Error error;

    assert_ok(conn_open(test_server_url(server, "postgres"), "conn_test", deadline_in_ms(60000), &conn, &error));
    assert_ok(query(conn, "create role joe login password 'right'", 10000, &error));
    conn_close(take(conn));

    snprintf(url, sizeof url, "postgresql://joe:" SECRET "@127.0.0.1:%d/postgres", test_server_port(server));
    assert_code(ERR_REFUSED, conn_open(url, "conn_test", deadline_in_ms(60000), &conn, &error));
    assert_string_equal(error.sqlstate, "28P01");
    assert_contains(error.text, "password authentication failed for user \"joe\"");
    assert_null(strstr(error.text, SECRET));
    assert_null(strchr(error.text, '\n'));
    assert_null(conn);
}

TEST(conn_unknown_database_is_refused)
{
    scoped(database_free) TestDatabase *db = database_new_empty();
    char                                url[CONNINFO_SIZE];
    Conn                               *conn = NULL;
    Error                               error;

    conninfo_change(database_url(db), url, "dbname", "nowhere", NULL);
    assert_code(ERR_REFUSED, conn_open(url, "conn_test", deadline_in_ms(60000), &conn, &error));
    assert_string_equal(error.sqlstate, "3D000");
    assert_contains(error.text, "\"nowhere\"");
}

TEST(conn_unreachable_host_is_unavailable)
{
    Conn *conn = NULL;
    Error error;

    assert_code(ERR_UNAVAILABLE, conn_open("host=127.0.0.1 port=1 dbname=x user=y password=" SECRET, "conn_test",
                                           deadline_in_ms(60000), &conn, &error));
    assert_contains(error.text, "\"127.0.0.1\", port 1");
    assert_null(strstr(error.text, SECRET));
}

TEST(conn_silent_host_ends_at_the_deadline)
{
    int   port, hole = hole_open(&port);
    char  url[128];
    Conn *conn  = NULL;
    Mono  start = clock_mono();
    Error error;

    snprintf(url, sizeof url, "host=127.0.0.1 port=%d dbname=x user=y", port);
    assert_code(ERR_TIMEOUT, conn_open(url, "conn_test", deadline_in_ms(200), &conn, &error));
    assert_in_range(mono_ms_between(start, clock_mono()), 200, 2000 + test_stalled_ms());
    close(hole);
}

TEST(conn_malformed_urls_are_refused_with_the_whole_reason)
{
    static const char *const urls[] = {"host=h foo", "host=h fo", "host=h f"};
    char                     text[CONNINFO_TEXT_SIZE];
    Error                    error;

    for (size_t i = 0; i < COUNT(urls); i++) {
        assert_code(ERR_USAGE, conninfo_describe(urls[i], text, &error));
        assert_contains(error.text, "(missing \"=\" after \"...\" in connection info string)");
    }
}

TEST(conn_ports_out_of_range_are_refused)
{
    static const char *const good[] = {"postgresql://h:1/d", "postgresql://h:65535,i/d", "port=,5432 host=h,i",
                                       "port='5432 '", "host=h"};
    static const char *const bad[]  = {
        "postgresql://h:0/d", "postgresql://h:65536/d",           "postgresql://h,i:99999/d", "port=-1",
        "port=5432x",         "postgresql://joe:" SECRET "/x@h/d"};
    char  text[CONNINFO_TEXT_SIZE];
    Error error;

    for (size_t i = 0; i < COUNT(good); i++)
        assert_ok(conninfo_describe(good[i], text, &error));
    for (size_t i = 0; i < COUNT(bad); i++) {
        assert_code(ERR_USAGE, conninfo_describe(bad[i], text, &error));
        assert_string_equal(error.text, "the database url's port must be a number from 1 to 65535");
    }
}

TEST(conn_malformed_urls_never_show_the_secret)
{
    static const char *const urls[] = {
        "postgresql://joe:" SECRET "@[::1/db",
        "postgresql://joe:a\"" SECRET "@[::1/db",
        "postgresql://joe:" SECRET "%zz@host/db",
        "postgresql://joe@host/db?password=" SECRET "%",
        "postgresql://joe@host/db?sekret=" SECRET,
        "password=" SECRET " nonsense",
        "password='" SECRET,
        "host=a " SECRET "=1",
        "password " SECRET,
        "postgresql://joe:" SECRET "@host:port:port/",
        SECRET,
    };
    char text[CONNINFO_TEXT_SIZE];

    for (size_t i = 0; i < COUNT(urls); i++) {
        Error     error = {0};
        Conn     *conn  = NULL;
        ErrorCode code  = conninfo_describe(urls[i], text, &error);

        if (code == OK) { /* libpq takes some for good until it connects */
            assert_null(strstr(text, SECRET));
            code = conn_open(urls[i], "conn_test", deadline_in_ms(2000), &conn, &error);
        }
        assert_int_not_equal(code, OK);
        if (strstr(error.text, SECRET))
            fail_msg("%s: %s", urls[i], error.text);
    }
}

TEST(conn_describes_itself_without_the_password)
{
    char  text[CONNINFO_TEXT_SIZE];
    Error error;

    assert_ok(conninfo_describe("postgresql://joe:" SECRET "@a:1,b:2/shop?sslmode=disable", text, &error));
    assert_string_equal(text, "host=a,b port=1,2 dbname=shop user=joe");
}

TEST(conn_goes_past_a_dead_first_host_within_its_share)
{
    scoped(database_free) TestDatabase *db = database_new_empty();
    int                                 port, hole = hole_open(&port);
    char                                hosts[CONNINFO_SIZE], real[CONNINFO_SIZE], ports[32], url[CONNINFO_SIZE];
    scoped(conn_close) Conn            *conn  = NULL;
    Mono                                start = clock_mono();
    Error                               error;

    conninfo_get(database_url(db), "host", real);
    snprintf(hosts, sizeof hosts, "127.0.0.1,%.512s", real);
    snprintf(ports, sizeof ports, "%d,5432", port);
    conninfo_change(database_url(db), url, "host", hosts, "port", ports, NULL);
    assert_ok(conn_open(url, "conn_test", deadline_in_ms(12000), &conn, &error));
    assert_in_range(mono_ms_between(start, clock_mono()), 5900, 11900);
    assert_ok(query(conn, "select 1", 5000, &error));
    close(hole);
}

TEST(conn_read_only_server_is_evicted)
{
    scoped(database_free) TestDatabase *db   = database_new_empty();
    scoped(conn_close) Conn            *conn = NULL;
    Error                               error;

    assert_ok(conn_open(database_url(db), "conn_test", deadline_in_ms(60000), &conn, &error));
    assert_code(ERR_UNAVAILABLE, query(conn, "begin read only; create table public.t ()", 10000, &error));
    assert_string_equal(error.sqlstate, "25006");
    assert_false(conn_is_good(conn));
}

TEST(conn_several_hosts_skip_the_one_that_cannot_write)
{
    scoped(test_server_free) TestServer *standby =
        test_server_new((TestServerOptions){.settings = "default_transaction_read_only = on\n"});
    scoped(test_server_free) TestServer *primary = test_server_new((TestServerOptions){0});
    char                                 url[256];
    scoped(conn_close) Conn             *conn = NULL;
    Error                                error;

    snprintf(url, sizeof url, "host=127.0.0.1,127.0.0.1 port=%d,%d user=postgres dbname=postgres",
             test_server_port(standby), test_server_port(primary));
    assert_ok(conn_open(url, "conn_test", deadline_in_ms(60000), &conn, &error));
    assert_ok(query(conn, "create table public.t ()", 10000, &error));
}

/* ---- statements that are given up ---- */

static const char naps[] = "select count(*) from pg_stat_activity where state = 'active' and query like '%nap%time%'"
                           " and pid <> pg_backend_pid() and datname = current_database()";
static const char wake[] =
    "select count(pg_terminate_backend(pid)) from pg_stat_activity"
    " where query like '%nap%time%' and pid <> pg_backend_pid() and datname = current_database()";

static ErrorCode call(Conn *conn, const char *sql, int ms, Error *reterr)
{
    scoped(PQclear) PGresult *result = NULL;

    return conn_call(conn, sql, CONN_NO_PARAMS, deadline_in_ms(ms), &result, reterr);
}

TEST(conn_statement_given_up_inside_a_transaction_is_canceled_on_the_server)
{
    scoped(database_free) TestDatabase *db   = database_new_empty();
    Conn                               *conn = NULL;
    Error                               error;

    assert_ok(conn_open(database_url(db), "conn_test", deadline_in_ms(60000), &conn, &error));
    assert_ok(query(conn, "begin", 10000, &error));
    assert_code(ERR_TIMEOUT, query(conn, "select pg_sleep(600) /* nap time */", 300, &error));
    assert_false(conn_is_good(conn));
    assert_string_equal(error.sqlstate, "");
    await(database_get_i64(db, naps) == 1); /* it may have begun late, and goes on */
    conn_close(conn);
    await(database_get_i64(db, naps) == 0);
}

/* A cancel could meet it in its commit, in the wait for a standby. */
TEST(conn_statement_given_up_outside_a_transaction_is_not_canceled)
{
    scoped(database_free) TestDatabase *db    = database_new_empty();
    Conn                               *conn  = NULL;
    Conn                               *other = NULL;
    Error                               error;

    assert_ok(conn_open(database_url(db), "conn_test", deadline_in_ms(60000), &conn, &error));
    assert_code(ERR_TIMEOUT, query(conn, "select pg_sleep(600) /* nap time */", 300, &error));
    await(database_get_i64(db, naps) == 1);
    conn_close(conn);
    /* A cancel that is sent after it ends its own statement: by then an earlier one would have done so too. */
    assert_ok(conn_open(database_url(db), "conn_test", deadline_in_ms(60000), &other, &error));
    assert_ok(query(other, "begin", 10000, &error));
    assert_code(ERR_TIMEOUT, query(other, "select pg_sleep(600) /* doze */", 300, &error));
    await(database_get_i64(
              db, "select count(*) from pg_stat_activity where state = 'active' and query like '%d' || 'oze%'") == 1);
    conn_close(other);
    await(database_get_i64(
              db, "select count(*) from pg_stat_activity where state = 'active' and query like '%d' || 'oze%'") == 0);
    assert_int_equal(1, database_get_i64(db, naps));
    assert_int_equal(1, database_get_i64(db, wake));
}

TEST(conn_call_is_ended_by_the_server_before_its_deadline)
{
    scoped(database_free) TestDatabase *db   = database_new_empty();
    scoped(conn_close) Conn            *conn = NULL;
    scoped(conn_close) Conn            *lock = NULL;
    Error                               error;

    assert_ok(conn_open(database_url(db), "conn_test", deadline_in_ms(60000), &conn, &error));
    assert_ok(conn_open(database_url(db), "conn_test", deadline_in_ms(60000), &lock, &error));
    assert_code(ERR_TIMEOUT, call(conn, "select pg_sleep(600)", 4000, &error));
    assert_string_equal(error.sqlstate, "57014");
    assert_true(conn_is_good(conn));
    assert_ok(query(lock, "create table public.t ()", 10000, &error));
    assert_ok(query(lock, "begin; lock table public.t", 10000, &error));
    assert_true(call(conn, "select from public.t", 4000, &error) != OK);
    assert_true(strcmp(error.sqlstate, "57014") == 0 || strcmp(error.sqlstate, "55P03") == 0);
    assert_true(conn_is_good(conn));
    assert_int_equal(PQTRANS_IDLE, conn_transaction(conn));
}

TEST(conn_call_leaves_no_session_state_behind)
{
    static const char show[] =
        "select current_setting('statement_timeout') || current_setting('lock_timeout') as value";
    scoped(database_free) TestDatabase *db     = database_new_empty();
    scoped(conn_close) Conn            *conn   = NULL;
    scoped(PQclear) PGresult           *inside = NULL;
    scoped(PQclear) PGresult           *after  = NULL;
    Error                               error;

    assert_ok(conn_open(database_url(db), "conn_test", deadline_in_ms(60000), &conn, &error));
    assert_ok(conn_call(conn, show, CONN_NO_PARAMS, deadline_in_ms(60000), &inside, &error));
    assert_string_not_equal("00", PQgetvalue(inside, 0, 0));
    assert_ok(conn_query(conn, show, CONN_NO_PARAMS, deadline_in_ms(60000), &after, &error));
    assert_string_equal("00", PQgetvalue(after, 0, 0));
}

TEST(conn_call_reports_an_error_of_the_commit_itself)
{
    scoped(database_free) TestDatabase *db   = database_new_empty();
    scoped(conn_close) Conn            *conn = NULL;
    Error                               error;

    assert_ok(conn_open(database_url(db), "conn_test", deadline_in_ms(60000), &conn, &error));
    assert_ok(
        query(conn,
              "create table public.t (n int unique deferrable initially deferred); insert into public.t values (1)",
              10000, &error));
    assert_code(ERR_CONFLICT, call(conn, "insert into public.t values (1) returning n", 10000, &error));
    assert_string_equal(error.sqlstate, "23505");
    if (conn_is_good(conn))
        assert_ok(call(conn, "insert into public.t values (2) returning n", 10000, &error));
    assert_int_equal(1, database_get_i64(db, "select count(*) from public.t where n = 1"));
}

TEST(conn_call_reports_a_bad_statement_and_stays_usable)
{
    scoped(database_free) TestDatabase *db   = database_new_empty();
    scoped(conn_close) Conn            *conn = NULL;
    Error                               error;

    assert_ok(conn_open(database_url(db), "conn_test", deadline_in_ms(60000), &conn, &error));
    assert_code(ERR_INTERNAL, call(conn, "select nonsense", 10000, &error));
    assert_string_equal(error.sqlstate, "42703");
    assert_code(ERR_INVALID, call(conn, "copy pg_class to stdout", 10000, &error));
    assert_false(conn_is_good(conn));
}

TEST(conn_call_of_a_terminated_backend_is_lost)
{
    scoped(database_free) TestDatabase *db   = database_new_empty();
    scoped(conn_close) Conn            *conn = NULL;
    Error                               error;

    assert_ok(conn_open(database_url(db), "conn_test", deadline_in_ms(60000), &conn, &error));
    assert_code(ERR_UNAVAILABLE, call(conn, "select pg_terminate_backend(pg_backend_pid())", 10000, &error));
    assert_string_equal(error.sqlstate, "57P01");
    assert_false(conn_is_good(conn));
}

TEST(conn_interrupt_ends_a_statement_of_another_thread)
{
    scoped(database_free) TestDatabase *db   = database_new_empty();
    scoped(conn_close) Conn            *conn = NULL;
    Error                               error;

    assert_ok(conn_open(database_url(db), "conn_test", deadline_in_ms(60000), &conn, &error));
    assert_int_equal(1, PQsendQuery(conn_native(conn), "select pg_sleep(600) /* interrupted */"));
    await(PQflush(conn_native(conn)) == 0);
    await(database_get_i64(db,
                           "select count(*) from pg_stat_activity where state = 'active' and query like '%interrupted%'"
                           " and pid <> pg_backend_pid()") == 1);
    conn_interrupt(conn);
    PGresult *result = PQgetResult(conn_native(conn));
    assert_string_equal(PQresultErrorField(result, PG_DIAG_SQLSTATE), "57014");
    PQclear(result);
    assert_null(PQgetResult(conn_native(conn)));
}

TEST(conn_that_was_interrupted_commits_nothing)
{
    scoped(database_free) TestDatabase *db   = database_new_empty();
    scoped(conn_close) Conn            *conn = NULL;
    Error                               error;

    assert_ok(conn_open(database_url(db), "conn_test", deadline_in_ms(60000), &conn, &error));
    assert_ok(query(conn, "begin; create table public.t ()", 10000, &error));
    conn_interrupt(conn);
    assert_code(ERR_STOPPING, conn_commit(conn, deadline_in_ms(60000), &error));
    assert_false(conn_is_good(conn));
    assert_code(ERR_STOPPING, call(conn, "create table public.t ()", 10000, &error));
    assert_int_equal(0, database_get_i64(db, "select count(*) from pg_class where relname = 't'"));
}

typedef struct {
    Conn     *conn;
    ErrorCode code;
    Error     error;
} Nap;

static void *nap_run(void *context)
{
    Nap *nap = context;

    nap->code = call(nap->conn, "select pg_sleep(600) /* nap time */", 60000, &nap->error);
    return NULL;
}

TEST(conn_interrupt_of_what_may_commit_closes_the_way_and_sends_no_cancel)
{
    scoped(database_free) TestDatabase *db   = database_new_empty();
    scoped(conn_close) Conn            *conn = NULL;
    Nap                                 nap  = {0};
    pthread_t                           thread;
    Error                               error;

    assert_ok(conn_open(database_url(db), "conn_test", deadline_in_ms(60000), &conn, &error));
    nap.conn = conn;
    thread   = thread_start("nap", nap_run, &nap);
    await(database_get_i64(db, naps) == 1);
    conn_interrupt(conn);
    thread_join(thread);
    assert_int_equal(ERR_UNAVAILABLE, nap.code);
    assert_string_equal(nap.error.sqlstate, "");
    assert_true(conn_was_interrupted(conn));
    assert_int_equal(1, database_get_i64(db, wake));
}

TEST(conn_lost_in_a_statement_is_reported)
{
    scoped(database_free) TestDatabase *db    = database_new_empty();
    scoped(proxy_free) Proxy           *proxy = proxy_new(database_url(db));
    scoped(conn_close) Conn            *conn  = NULL;
    Error                               error;

    proxy_cut_on(proxy, "now_cut", PROXY_CUT_SENT, 1);
    assert_ok(conn_open(proxy_url(proxy), "conn_test", deadline_in_ms(60000), &conn, &error));
    assert_code(ERR_UNAVAILABLE, query(conn, "select 1 as now_cut", 10000, &error));
    assert_string_equal(error.sqlstate, "");
    assert_contains(error.text, "connection to database lost");
    assert_false(conn_is_good(conn));
}

TEST(conn_terminated_backend_says_so)
{
    scoped(database_free) TestDatabase *db   = database_new_empty();
    scoped(conn_close) Conn            *conn = NULL;
    Error                               error;

    assert_ok(conn_open(database_url(db), "conn_test", deadline_in_ms(60000), &conn, &error));
    assert_code(ERR_UNAVAILABLE, query(conn, "select pg_terminate_backend(pg_backend_pid())", 10000, &error));
    assert_string_equal(error.sqlstate, "57P01");
    assert_false(conn_is_good(conn));
}
