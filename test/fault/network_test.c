/*
 * network_test.c - slow, sliced, stalled and silent networks, and servers that changed sides: the right result or a clear
 * error, inside the deadline.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/sync.h"
#include "pg/tx.h"
#include "test/concurrency/keyed_insert.h"
#include "test/harness/conninfo.h"
#include "test/harness/database.h"
#include "test/harness/proxy.h"
#include "test/harness/server.h"
#include "test/harness/test.h"

#define DEADLINE_MS 30000

static Pool *pool_open(const char *url)
{
    Pool *pool  = NULL;
    Error error = {0};

    assert_ok(pool_new(&(PoolOptions){.conninfo = url, .size_max = 2}, &pool, &error));
    return pool;
}

typedef struct {
    const char *sql;
    const char *text; /* what it answered */
} Question;

static ErrorCode question_body(Tx *tx, void *context, Error *reterr)
{
    Question *question = context;

    return db_get_text(tx, question->sql, DB_NONE, &question->text, reterr);
}

static ErrorCode ask(Pool *pool, Arena *arena, int deadline_ms, Question *question, Error *reterr)
{
    TxOptions options = {
        .name = "question", .deadline = deadline_in_ms(deadline_ms), .arena = arena, .read_only = true, .tries_max = 1};

    return tx_run(pool, &options, question_body, question, reterr);
}

#define LONG_TEXT "select repeat('pawl', 20000) as value"

typedef struct {
    Proxy *proxy;
    int    after_ms;
} Change;

/* The network recovers while a caller waits for it. */
static void *pass_later(void *context)
{
    const Change *change = context;

    clock_sleep_ms(change->after_ms);
    proxy_set_mode(change->proxy, PROXY_PASS);
    return NULL;
}

TEST(network_stall_of_a_second_only_takes_longer)
{
    scoped(database_free) TestDatabase *db       = database_new_empty();
    scoped(proxy_free) Proxy           *proxy    = proxy_new(database_url(db));
    scoped(pool_free) Pool             *pool     = pool_open(proxy_url(proxy));
    scoped(arena_free) Arena           *arena    = arena_new(ARENA_BYTES_DEFAULT);
    Question                            question = {LONG_TEXT, NULL};
    Error                               error    = {0};

    assert_ok(ask(pool, arena, DEADLINE_MS, &question, &error));
    proxy_set_mode(proxy, PROXY_STALL);
    Mono      start   = clock_mono();
    pthread_t network = thread_start("network", pass_later, &(Change){proxy, 1000});
    assert_ok(ask(pool, arena, DEADLINE_MS, &question, &error));
    thread_join(network);
    assert_in_range(mono_ms_between(start, clock_mono()), 1000, DEADLINE_MS);
    assert_int_equal(80000, strlen(question.text));
}

TEST(network_silence_ends_at_the_deadline)
{
    scoped(database_free) TestDatabase *db       = database_new_empty();
    scoped(proxy_free) Proxy           *proxy    = proxy_new(database_url(db));
    scoped(pool_free) Pool             *pool     = pool_open(proxy_url(proxy));
    scoped(arena_free) Arena           *arena    = arena_new(ARENA_BYTES_DEFAULT);
    Question                            question = {"select 'heard' as value", NULL};
    Error                               error    = {0};

    assert_ok(ask(pool, arena, DEADLINE_MS, &question, &error));
    proxy_set_mode(proxy, PROXY_BLACKHOLE);
    Mono start = clock_mono();
    assert_code(ERR_TIMEOUT, ask(pool, arena, 500, &question, &error));
    assert_in_range(mono_ms_between(start, clock_mono()), 500, 500 + LATE_MS);
    assert_contains(error.text, "did not answer in time");
    proxy_set_mode(proxy, PROXY_PASS);
    assert_ok(ask(pool, arena, DEADLINE_MS, &question, &error));
    assert_string_equal("heard", question.text);
}

/* A whole session, from the first byte on: connect, begin, question, commit. */
TEST(network_of_single_bytes_returns_the_same_answer)
{
    scoped(database_free) TestDatabase *db       = database_new_empty();
    scoped(proxy_free) Proxy           *proxy    = proxy_new(database_url(db));
    scoped(pool_free) Pool             *pool     = pool_open(proxy_url(proxy));
    scoped(arena_free) Arena           *arena    = arena_new(ARENA_BYTES_DEFAULT);
    Question                            question = {"select repeat('x', 500) as value", NULL};
    Error                               error    = {0};

    proxy_set_slice(proxy, 1);
    assert_ok(ask(pool, arena, 4 * DEADLINE_MS, &question, &error));
    assert_int_equal(500, strspn(question.text, "x"));
    assert_int_equal(500, strlen(question.text));
}

TEST(network_delay_is_waited_for)
{
    scoped(database_free) TestDatabase *db       = database_new_empty();
    scoped(proxy_free) Proxy           *proxy    = proxy_new(database_url(db));
    scoped(pool_free) Pool             *pool     = pool_open(proxy_url(proxy));
    scoped(arena_free) Arena           *arena    = arena_new(ARENA_BYTES_DEFAULT);
    Question                            question = {LONG_TEXT, NULL};
    Error                               error    = {0};

    proxy_set_delay(proxy, 50);
    Mono start = clock_mono();
    assert_ok(ask(pool, arena, DEADLINE_MS, &question, &error));
    assert_int_equal(80000, strlen(question.text));
    /* Begin, question and commit, there and back. */
    assert_in_range(mono_ms_between(start, clock_mono()), 6 * 50, DEADLINE_MS);
}

/* The server's side of the wire ends in the middle of a session; ours stays open. */
TEST(network_ended_by_the_server_is_a_lost_connection)
{
    scoped(database_free) TestDatabase *db       = database_new_empty();
    scoped(proxy_free) Proxy           *proxy    = proxy_new(database_url(db));
    scoped(pool_free) Pool             *pool     = pool_open(proxy_url(proxy));
    scoped(arena_free) Arena           *arena    = arena_new(ARENA_BYTES_DEFAULT);
    Question                            question = {"select 'answer' as value", NULL};
    Error                               error    = {0};

    assert_ok(ask(pool, arena, DEADLINE_MS, &question, &error));
    database_exec(db, "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and "
                      "pid <> pg_backend_pid()");
    assert_code(ERR_UNAVAILABLE, ask(pool, arena, DEADLINE_MS, &question, &error));
    assert_ok(ask(pool, arena, DEADLINE_MS, &question, &error));
    assert_string_equal("answer", question.text);
}

typedef struct {
    int       listener, port;
    pthread_t thread;
} HalfCloser;

/* Says nothing, ends its side, and listens to the other for as long as it likes to talk. Ends with the listener. */
static void *half_closer_run(void *context)
{
    const HalfCloser *closer = context;
    char              bytes[256];

    for (int fd; (fd = accept(closer->listener, NULL, NULL)) >= 0; close(fd)) {
        shutdown(fd, SHUT_WR);
        while (read(fd, bytes, sizeof bytes) > 0)
            ;
    }
    return NULL;
}

static void half_closer_open(HalfCloser *closer)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t          size    = sizeof address;

    closer->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_return_code(bind(closer->listener, (struct sockaddr *)&address, size), 0);
    assert_return_code(listen(closer->listener, 8), 0);
    assert_return_code(getsockname(closer->listener, (struct sockaddr *)&address, &size), 0);
    closer->port   = ntohs(address.sin_port);
    closer->thread = thread_start("half-closer", half_closer_run, closer);
}

static void half_closer_done(HalfCloser *closer)
{
    shutdown(closer->listener, SHUT_RDWR);
    thread_join(closer->thread);
    close(closer->listener);
}

TEST(network_half_closed_is_reported_within_the_deadline)
{
    scoped(arena_free) Arena *arena    = arena_new(ARENA_BYTES_DEFAULT);
    Question                  question = {"select 'answer' as value", NULL};
    HalfCloser                closer   = {0};
    char                      url[CONNINFO_SIZE];
    Error                     error = {0};

    half_closer_open(&closer);
    snprintf(url, sizeof url, "host=127.0.0.1 port=%d user=postgres dbname=postgres", closer.port);
    Pool *pool  = pool_open(url);
    Mono  start = clock_mono();
    assert_code(ERR_UNAVAILABLE, ask(pool, arena, DEADLINE_MS, &question, &error));
    assert_in_range(mono_ms_between(start, clock_mono()), 0, DEADLINE_MS);
    assert_contains(error.text, "closed the connection");
    pool_free(pool);
    half_closer_done(&closer);
}

/* ---- what a user may send ---- */

TEST(network_copy_is_refused_and_the_pool_goes_on)
{
    static const char *const copies[] = {"copy public.thing from stdin", "copy public.thing to stdout"};

    scoped(database_free) TestDatabase *db    = database_new_empty();
    scoped(pool_free) Pool             *pool  = pool_open(database_url(db));
    scoped(arena_free) Arena           *arena = arena_new(ARENA_BYTES_DEFAULT);
    Error                               error = {0};

    database_exec(db, "create table public.thing (n int); insert into public.thing values (1)");
    for (size_t i = 0; i < COUNT(copies); i++) {
        Question copy     = {copies[i], NULL};
        Question question = {"select 'well' as value", NULL};

        TxOptions options = {.name = "copy", .deadline = deadline_in_ms(DEADLINE_MS), .arena = arena};
        assert_code(ERR_INVALID, tx_run(pool, &options, question_body, &copy, &error));
        assert_contains(error.text, "copy");
        assert_ok(ask(pool, arena, DEADLINE_MS, &question, &error));
    }
}

/* ---- failover ---- */

static void server_exec(const char *url, const char *sql)
{
    PGconn   *conn   = PQconnectdb(url);
    PGresult *result = PQexec(conn, sql);

    if (PQresultStatus(result) != PGRES_COMMAND_OK && PQresultStatus(result) != PGRES_TUPLES_OK)
        fail_msg("%s: %s", sql, PQerrorMessage(conn));
    PQclear(result);
    PQfinish(conn);
}

/* Alive and answering, but no longer the one that writes. Returns when new sessions see it. */
static void server_demote(TestServer *server)
{
    const char *url = test_server_url(server, "postgres");

    server_exec(url, "alter system set default_transaction_read_only = on");
    server_exec(url, "select pg_reload_conf()");
    for (Deadline deadline = deadline_in_ms(DEADLINE_MS);; clock_sleep_ms(5)) {
        PGconn     *conn = PQconnectdb(url);
        const char *now  = PQparameterStatus(conn, "default_transaction_read_only");
        bool        done = now && strcmp(now, "on") == 0;

        PQfinish(conn);
        if (done)
            return;
        assert_false(deadline_passed(deadline));
    }
}

static int idle_count(Pool *pool)
{
    PoolStatus status;

    pool_status(pool, &status);
    return status.idle;
}

TEST(failover_to_read_only_evicts_and_says_so)
{
    scoped(test_server_free) TestServer *server = test_server_new((TestServerOptions){0});
    scoped(pool_free) Pool              *pool   = pool_open(test_server_url(server, "postgres"));
    Error                                error  = {0};

    keyed_insert_prepare(test_server_url(server, "postgres"));
    assert_ok(keyed_insert_run(pool, deadline_in_ms(DEADLINE_MS), (KeyedInsert){.number = 1}, &error));
    server_demote(server);
    assert_code(ERR_UNAVAILABLE,
                keyed_insert_run(pool, deadline_in_ms(DEADLINE_MS), (KeyedInsert){.number = 2}, &error));
    assert_string_equal("25006", error.sqlstate);
    assert_contains(error.text, "read-only");
    assert_int_equal(0, idle_count(pool));
}

TEST(failover_finds_the_host_that_writes)
{
    scoped(test_server_free) TestServer *first  = test_server_new((TestServerOptions){0});
    scoped(test_server_free) TestServer *second = test_server_new((TestServerOptions){0});
    char                                 url[CONNINFO_SIZE];
    Error                                error = {0};

    keyed_insert_prepare(test_server_url(first, "postgres"));
    keyed_insert_prepare(test_server_url(second, "postgres"));
    snprintf(url, sizeof url,
             "postgresql://postgres@127.0.0.1:%d,127.0.0.1:%d/postgres?target_session_attrs=read-write",
             test_server_port(first), test_server_port(second));
    scoped(pool_free) Pool *pool = pool_open(url);

    Results before = {0}, after = {0};
    result_record(&before, 0, keyed_insert_run(pool, deadline_in_ms(DEADLINE_MS), (KeyedInsert){.number = 0}, &error));
    server_demote(first);
    /* The connection it has still leads to the first: the write is refused there and done on the second. */
    result_record(&after, 0, keyed_insert_run(pool, deadline_in_ms(DEADLINE_MS), (KeyedInsert){.number = 0}, &error));
    assert_int_equal(OK, before.codes[0]);
    assert_int_equal(OK, after.codes[0]);
    assert_int_equal(0,
                     keyed_inserts_compare(test_server_url(first, "postgres"), (const Results *[]){&before}, 1).wrong);
    assert_int_equal(0,
                     keyed_inserts_compare(test_server_url(second, "postgres"), (const Results *[]){&after}, 1).wrong);
}
