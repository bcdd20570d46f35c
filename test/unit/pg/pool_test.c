/*
 * pool_test.c - the pool against a real server, with and without a bad network in between.
 */
#include "pg/pool.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/sync.h"
#include "pg/metric.h"
#include "test/harness/database.h"
#include "test/harness/fake_clock.h"
#include "test/harness/proxy.h"
#include "test/harness/server.h"
#include "test/harness/test.h"
#include "test/unit/pg/await.h"

#define LONG_MS 30000

static Pool *pool_of(PoolOptions options)
{
    Pool *pool = NULL;
    Error error;

    assert_ok(pool_new(&options, &pool, &error));
    return pool;
}

static Checkout *lease_of(Pool *pool)
{
    Checkout *checkout = NULL;
    Error     error;

    assert_ok(pool_acquire(pool, deadline_in_ms(LONG_MS), &checkout, &error));
    return checkout;
}

static PoolStatus status_of(Pool *pool)
{
    PoolStatus status;

    pool_status(pool, &status);
    return status;
}

static ErrorCode ask(Checkout *checkout, const char *sql, int ms, Error *reterr)
{
    scoped(PQclear) PGresult *result = NULL;
    ErrorCode code = conn_query(checkout_conn(checkout), sql, CONN_NO_PARAMS, deadline_in_ms(ms), &result, reterr);

    checkout_report(checkout, code, reterr);
    return code;
}

static int pid_of(const Checkout *checkout)
{
    return PQbackendPID(conn_native(checkout_conn((Checkout *)(uintptr_t)checkout)));
}

static void kill_pid(TestDatabase *db, int pid)
{
    char sql[96];

    snprintf(sql, sizeof sql, "select pg_terminate_backend(%d, 5000)::int", pid);
    assert_int_equal(1, database_get_i64(db, sql));
}

TEST(pool_refuses_bad_options)
{
    Pool *pool = NULL;
    Error error;

    assert_code(ERR_USAGE,
                pool_new(&(PoolOptions){.conninfo = "dbname=x", .size_max = POOL_SIZE_MAX + 1}, &pool, &error));
    assert_code(ERR_USAGE, pool_new(&(PoolOptions){.conninfo = "dbname=x", .size_max = -1}, &pool, &error));
    assert_code(ERR_USAGE,
                pool_new(&(PoolOptions){.conninfo = "dbname=x", .size_min = 9, .size_max = 3}, &pool, &error));
    assert_code(ERR_USAGE, pool_new(&(PoolOptions){.conninfo = "nonsense"}, &pool, &error));
    assert_null(pool);
}

TEST(pool_opens_on_first_use_and_reuses_the_newest)
{
    scoped(database_free) TestDatabase *db   = database_new_empty();
    scoped(pool_free) Pool             *pool = pool_of((PoolOptions){.conninfo = database_url(db), .no_janitor = true});

    assert_int_equal(status_of(pool).size, 0);
    Checkout *a = lease_of(pool), *b = lease_of(pool);
    int       pid = pid_of(b);
    assert_int_equal(status_of(pool).acquired, 2);
    pool_release(a);
    pool_release(b);
    assert_int_equal(status_of(pool).idle, 2);
    a = lease_of(pool);
    assert_int_equal(pid_of(a), pid);
    pool_release(a);
    assert_int_equal(status_of(pool).size, 2);
}

/* A cancel may arrive late, at the next caller's statement; and it can be requested only once per connection. */
TEST(pool_does_not_keep_a_connection_that_was_interrupted)
{
    scoped(database_free) TestDatabase *db   = database_new_empty();
    scoped(pool_free) Pool             *pool = pool_of((PoolOptions){.conninfo = database_url(db), .no_janitor = true});
    Checkout                           *checkout = lease_of(pool);
    int                                 pid      = pid_of(checkout);

    conn_interrupt(checkout_conn(checkout));
    pool_release(checkout);
    assert_int_equal(status_of(pool).idle, 0);
    checkout = lease_of(pool);
    assert_int_not_equal(pid_of(checkout), pid);
    pool_release(checkout);
    assert_int_equal(status_of(pool).idle, 1);
}

TEST(pool_closes_what_is_idle_too_long_down_to_the_minimum)
{
    scoped(database_free) TestDatabase *db   = database_new_empty();
    scoped(pool_free) Pool             *pool = pool_of((PoolOptions){
                    .conninfo = database_url(db), .size_min = 1, .size_max = 4, .idle_ms_max = 1000, .no_janitor = true});
    Checkout                           *checkouts[4];

    for (int i = 0; i < 4; i++)
        checkouts[i] = lease_of(pool);
    for (int i = 0; i < 4; i++)
        pool_release(checkouts[i]);
    pool_tend(pool);
    assert_int_equal(status_of(pool).size, 4);
    await((pool_tend(pool), status_of(pool).size == 1));
    pool_tend(pool);
    assert_int_equal(status_of(pool).size, 1);
}

TEST(pool_counts_idle_time_from_the_last_use)
{
    scoped(database_free) TestDatabase *db   = database_new_empty();
    scoped(pool_free) Pool             *pool = pool_of((PoolOptions){
                    .conninfo = database_url(db), .size_min = 1, .size_max = 2, .idle_ms_max = 1000, .no_janitor = true});

    fake_clock_install((Wall){1700000000000000});
    for (int i = 0; i < 8; i++) {
        Checkout *one = lease_of(pool), *other = lease_of(pool);

        pool_release(one);
        pool_release(other);
        fake_clock_advance_ms(400);
        pool_tend(pool);
        assert_int_equal(status_of(pool).size, 2);
    }
    fake_clock_advance_ms(599);
    pool_tend(pool);
    assert_int_equal(status_of(pool).size, 2);
    fake_clock_advance_ms(1);
    pool_tend(pool);
    assert_int_equal(status_of(pool).size, 1);
    fake_clock_restore();
}

TEST(pool_recycles_the_old)
{
    scoped(database_free) TestDatabase *db = database_new_empty();
    scoped(pool_free) Pool             *pool =
        pool_of((PoolOptions){.conninfo = database_url(db), .size_max = 1, .lifetime_ms_max = 100, .no_janitor = true});
    Checkout *checkout = lease_of(pool);
    int       pid      = pid_of(checkout);

    clock_sleep_ms(120); /* it must grow old */
    pool_release(checkout);
    assert_int_equal(status_of(pool).size, 0);
    checkout = lease_of(pool);
    assert_int_not_equal(pid_of(checkout), pid);
    pool_release(checkout);
}

/* libpq keeps the buffer in which it has received it. */
TEST(pool_does_not_keep_a_connection_that_had_a_large_result)
{
    scoped(database_free) TestDatabase *db   = database_new_empty();
    scoped(pool_free) Pool             *pool = pool_of((PoolOptions){.conninfo = database_url(db), .no_janitor = true});
    Checkout                           *checkout = lease_of(pool);
    Error                               error;

    assert_ok(ask(checkout, "select repeat('x', 1000000)", LONG_MS, &error));
    pool_release(checkout);
    assert_int_equal(status_of(pool).size, 1);
    checkout = lease_of(pool);
    assert_ok(ask(checkout, "select repeat('x', 5000000)", LONG_MS, &error));
    pool_release(checkout);
    assert_int_equal(status_of(pool).size, 0);
}

TEST(pool_does_not_keep_a_connection_inside_a_transaction)
{
    scoped(database_free) TestDatabase *db   = database_new_empty();
    scoped(pool_free) Pool             *pool = pool_of((PoolOptions){.conninfo = database_url(db), .no_janitor = true});
    Checkout                           *checkout = lease_of(pool);
    Error                               error;

    assert_ok(ask(checkout, "begin", LONG_MS, &error));
    pool_release(checkout);
    assert_int_equal(status_of(pool).size, 0);
}

TEST(pool_health_check_replaces_a_terminated_connection)
{
    scoped(database_free) TestDatabase *db = database_new_empty();
    scoped(pool_free) Pool             *pool =
        pool_of((PoolOptions){.conninfo = database_url(db), .size_max = 3, .check_ms = 1, .no_janitor = true});
    Checkout *checkouts[3];
    int       pids[3];

    for (int i = 0; i < 3; i++)
        checkouts[i] = lease_of(pool), pids[i] = pid_of(checkouts[i]);
    for (int i = 0; i < 3; i++)
        pool_release(checkouts[i]);
    kill_pid(db, pids[1]);
    int64_t renewals = metric_value(&pg_metrics.pool_renewed);
    clock_sleep_ms(2);
    pool_tend(pool);
    assert_int_equal(status_of(pool).idle, 3);
    assert_int_equal(metric_value(&pg_metrics.pool_renewed), renewals); /* one of three is not most */
    for (int i = 0; i < 3; i++) {
        checkouts[i] = lease_of(pool);
        assert_int_not_equal(pid_of(checkouts[i]), pids[1]);
    }
    for (int i = 0; i < 3; i++)
        pool_release(checkouts[i]);
}

TEST(pool_is_renewed_when_most_are_sick)
{
    scoped(database_free) TestDatabase *db = database_new_empty();
    scoped(pool_free) Pool             *pool =
        pool_of((PoolOptions){.conninfo = database_url(db), .size_max = 3, .check_ms = 1, .no_janitor = true});
    Checkout *checkouts[3];
    int       pids[3];

    for (int i = 0; i < 3; i++)
        checkouts[i] = lease_of(pool), pids[i] = pid_of(checkouts[i]);
    for (int i = 0; i < 3; i++)
        pool_release(checkouts[i]);
    kill_pid(db, pids[0]);
    kill_pid(db, pids[1]);
    int64_t renewals = metric_value(&pg_metrics.pool_renewed);
    clock_sleep_ms(2);
    pool_tend(pool);
    assert_int_equal(metric_value(&pg_metrics.pool_renewed), renewals + 1);
    Checkout *checkout = lease_of(pool);
    for (int i = 0; i < 3; i++)
        assert_int_not_equal(pid_of(checkout), pids[i]);
    pool_release(checkout);
}

/* ---- waiting ---- */

typedef struct {
    Pool       *pool;
    int         deadline_ms;
    int         wishes;
    atomic_int *order; /* counts those that were served */
    int         place;
    ErrorCode   code;
    int64_t     waited_ms;
    Error       error;
} Caller;

static void *caller_run(void *context)
{
    Caller   *caller   = context;
    Checkout *checkout = NULL;
    Mono      start    = clock_mono();

    caller->code =
        pool_acquire_as(caller->pool, caller->wishes, deadline_in_ms(caller->deadline_ms), &checkout, &caller->error);
    caller->waited_ms = mono_ms_between(start, clock_mono());
    if (caller->code != OK)
        return NULL;
    if (caller->order)
        caller->place = atomic_fetch_add(caller->order, 1);
    pool_release(checkout);
    return NULL;
}

TEST(pool_serves_waiters_in_the_order_they_came)
{
    enum { COUNT_OF_WAITERS = 8 };
    scoped(database_free) TestDatabase *db = database_new_empty();
    scoped(pool_free) Pool             *pool =
        pool_of((PoolOptions){.conninfo = database_url(db), .size_max = 1, .no_janitor = true});
    Checkout  *checkout = lease_of(pool);
    Caller     callers[COUNT_OF_WAITERS];
    pthread_t  threads[COUNT_OF_WAITERS];
    atomic_int order = 0;

    for (int i = 0; i < COUNT_OF_WAITERS; i++) {
        callers[i] = (Caller){.pool = pool, .deadline_ms = LONG_MS, .order = &order};
        threads[i] = thread_start("caller", caller_run, &callers[i]);
        await(status_of(pool).waiting == i + 1);
    }
    pool_release(checkout);
    for (int i = 0; i < COUNT_OF_WAITERS; i++) {
        thread_join(threads[i]);
        assert_int_equal(callers[i].code, OK);
        assert_int_equal(callers[i].place, i);
    }
}

TEST(pool_serves_settles_before_ordinary_callers)
{
    static const struct {
        int wishes, place;
    } rows[] = {
        {0,           3},
        {POOL_SOON,   1},
        {0,           4},
        {POOL_URGENT, 0},
        {POOL_SOON,   2}
    };
    scoped(database_free) TestDatabase *db = database_new_empty();
    scoped(pool_free) Pool             *pool =
        pool_of((PoolOptions){.conninfo = database_url(db), .size_max = 1, .no_janitor = true});
    Checkout  *checkout = lease_of(pool);
    Caller     callers[COUNT(rows)];
    pthread_t  threads[COUNT(rows)];
    atomic_int order = 0;

    for (int i = 0; i < (int)COUNT(rows); i++) {
        callers[i] = (Caller){.pool = pool, .deadline_ms = LONG_MS, .wishes = rows[i].wishes, .order = &order};
        threads[i] = thread_start("caller", caller_run, &callers[i]);
        await(status_of(pool).waiting == i + 1);
    }
    pool_release(checkout);
    for (size_t i = 0; i < COUNT(rows); i++) {
        thread_join(threads[i]);
        assert_int_equal(callers[i].place, rows[i].place);
    }
}

TEST(pool_acquire_is_busy_at_the_deadline)
{
    scoped(database_free) TestDatabase *db = database_new_empty();
    scoped(pool_free) Pool             *pool =
        pool_of((PoolOptions){.conninfo = database_url(db), .size_max = 1, .no_janitor = true});
    Checkout *checkout = lease_of(pool);
    Caller    caller   = {.pool = pool, .deadline_ms = 100};

    caller_run(&caller);
    assert_int_equal(caller.code, ERR_BUSY);
    assert_contains(caller.error.text, "no connection became free in time");
    assert_in_range(caller.waited_ms, 100, 2000 + test_stalled_ms());
    assert_int_equal(status_of(pool).waiting, 0);
    pool_release(checkout);
}

/* ---- breaker ---- */

/* Callers that may try only once: a failure each. */
static void breaker_open_by_refusal(Pool *pool, Proxy *proxy)
{
    proxy_set_mode(proxy, PROXY_REFUSE);
    for (int failures = 0; failures < 5;) {
        Checkout *checkout = NULL;
        Error     error;

        assert_int_equal(status_of(pool).breaker, BREAKER_CLOSED);
        ErrorCode code = pool_acquire(pool, deadline_in_ms(50), &checkout, &error);
        assert_true(code == ERR_UNAVAILABLE || test_stalled_ms() > 0); /* a stall leaves no time to connect at all */
        failures += code == ERR_UNAVAILABLE;
    }
    assert_int_not_equal(status_of(pool).breaker, BREAKER_CLOSED);
}

TEST(pool_breaker_counts_a_caller_once_however_often_it_tries)
{
    scoped(database_free) TestDatabase *db       = database_new_empty();
    scoped(proxy_free) Proxy           *proxy    = proxy_new(database_url(db));
    scoped(pool_free) Pool             *pool     = pool_of((PoolOptions){
                        .conninfo = proxy_url(proxy), .breaker_failures = 2, .connect_retry = {5, 1, 1},
                                .no_janitor = true
    });
    Caller                              caller   = {.pool = pool, .deadline_ms = LONG_MS};
    int64_t                             failures = metric_value(&pg_metrics.connect_failed);

    proxy_set_mode(proxy, PROXY_REFUSE);
    caller_run(&caller);
    assert_int_equal(caller.code, ERR_UNAVAILABLE);
    assert_int_equal(metric_value(&pg_metrics.connect_failed), failures + 6); /* the first try and five more */
    assert_int_equal(status_of(pool).breaker, BREAKER_CLOSED);
    caller_run(&caller);
    assert_int_equal(status_of(pool).breaker, BREAKER_OPEN);
}

TEST(pool_callers_wait_for_the_probe_that_may_come_in_time)
{
    enum { CALLERS = 6 };
    scoped(database_free) TestDatabase *db    = database_new_empty();
    scoped(proxy_free) Proxy           *proxy = proxy_new(database_url(db));
    scoped(pool_free) Pool             *pool  = pool_of(
        (PoolOptions){.conninfo = proxy_url(proxy), .size_max = 2, .breaker_first_ms = 4000, .no_janitor = true});
    Caller    callers[CALLERS], late = {.pool = pool, .deadline_ms = 100};
    pthread_t threads[CALLERS];
    Checkout *checkout = NULL;
    Error     error    = {0};

    breaker_open_by_refusal(pool, proxy);
    assert_code(ERR_UNAVAILABLE, pool_acquire_as(pool, POOL_PROMPT, deadline_in_ms(LONG_MS), &checkout, &error));
    assert_in_range(error.retry_ms, 1, 4001);
    caller_run(&late); /* its time is up before the probe */
    assert_int_equal(late.code, ERR_UNAVAILABLE);
    assert_contains(late.error.text, "database is unavailable, next try in ");
    assert_in_range(late.error.retry_ms, 1, 4001);
    for (int i = 0; i < CALLERS; i++) {
        callers[i] = (Caller){.pool = pool, .deadline_ms = LONG_MS};
        threads[i] = thread_start("caller", caller_run, &callers[i]);
        await(status_of(pool).waiting == i + 1);
    }
    proxy_set_mode(proxy, PROXY_PASS);
    await((pool_tend(pool), status_of(pool).breaker == BREAKER_CLOSED));
    for (int i = 0; i < CALLERS; i++) {
        thread_join(threads[i]);
        assert_int_equal(callers[i].code, OK);
    }
}

TEST(pool_bounds_those_that_wait_for_a_probe)
{
    enum { CALLERS = 4 };
    scoped(database_free) TestDatabase *db    = database_new_empty();
    scoped(proxy_free) Proxy           *proxy = proxy_new(database_url(db));
    scoped(pool_free) Pool             *pool  = pool_of(
        (PoolOptions){.conninfo = proxy_url(proxy), .size_max = 1, .breaker_first_ms = 3000, .no_janitor = true});
    Caller    callers[CALLERS], more = {.pool = pool, .deadline_ms = 60000};
    pthread_t threads[CALLERS];

    breaker_open_by_refusal(pool, proxy);
    for (int i = 0; i < CALLERS; i++) {
        callers[i] = (Caller){.pool = pool, .deadline_ms = 60000};
        threads[i] = thread_start("caller", caller_run, &callers[i]);
        await(status_of(pool).waiting == i + 1);
    }
    caller_run(&more);
    assert_int_equal(more.code, ERR_UNAVAILABLE);
    assert_false(pool_drain(pool, deadline_in_ms(0)) && status_of(pool).waiting);
    for (int i = 0; i < CALLERS; i++) {
        thread_join(threads[i]);
        assert_int_equal(callers[i].code, ERR_STOPPING);
    }
}

/* ---- a server without a connection to spare ---- */

TEST(pool_waits_for_its_own_when_the_server_is_full)
{
    scoped(test_server_free) TestServer *server =
        test_server_new((TestServerOptions){.settings = "max_connections = 5\nsuperuser_reserved_connections = 0\n"});
    scoped(pool_free) Pool *pool = pool_of((PoolOptions){
        .conninfo         = test_server_url(server, "postgres"),
        .size_max         = 10,
        .breaker_failures = 1,
        .connect_retry    = {2, 1, 1},
        .no_janitor       = true
    });
    Checkout               *checkouts[5];
    Caller                  caller = {.pool = pool, .deadline_ms = LONG_MS}, late = {.pool = pool, .deadline_ms = 200};
    int64_t                 opened;
    pthread_t               thread;

    for (int i = 0; i < 5; i++)
        checkouts[i] = lease_of(pool);
    opened = metric_value(&pg_metrics.connect_ok);
    caller_run(&late);
    assert_int_equal(late.code, ERR_BUSY);
    assert_string_equal(late.error.sqlstate, "53300");
    assert_int_equal(status_of(pool).breaker, BREAKER_CLOSED);
    thread = thread_start("caller", caller_run, &caller);
    await(status_of(pool).waiting == 1);
    pool_release(checkouts[0]);
    thread_join(thread);
    assert_int_equal(caller.code, OK);
    for (int i = 1; i < 5; i++)
        pool_release(checkouts[i]);
    assert_int_equal(status_of(pool).idle, 5); /* none was thrown away */
    assert_int_equal(metric_value(&pg_metrics.connect_ok), opened);
}

/* ---- connections kept for heartbeats ---- */

TEST(pool_keeps_a_connection_for_urgent_callers)
{
    scoped(database_free) TestDatabase *db = database_new_empty();
    scoped(pool_free) Pool             *pool =
        pool_of((PoolOptions){.conninfo = database_url(db), .size_max = 3, .size_reserved = 1, .no_janitor = true});
    Checkout *first = lease_of(pool), *second = lease_of(pool), *urgent = NULL;
    Caller    ordinary = {.pool = pool, .deadline_ms = LONG_MS};
    pthread_t thread   = thread_start("caller", caller_run, &ordinary);
    Error     error;

    await(status_of(pool).waiting == 1);
    for (int i = 0; i < 3; i++) { /* again and again, while others wait */
        assert_ok(pool_acquire_as(pool, POOL_URGENT, deadline_in_ms(LONG_MS), &urgent, &error));
        assert_int_equal(status_of(pool).waiting, 1);
        pool_release(urgent);
    }
    assert_int_equal(status_of(pool).waiting, 1);
    pool_release(first);
    thread_join(thread);
    assert_int_equal(ordinary.code, OK);
    pool_release(second);
}

TEST(pool_breaker_opens_refuses_at_once_and_recovers_by_itself)
{
    scoped(database_free) TestDatabase *db    = database_new_empty();
    scoped(proxy_free) Proxy           *proxy = proxy_new(database_url(db));
    scoped(pool_free) Pool             *pool =
        pool_of((PoolOptions){.conninfo = proxy_url(proxy), .breaker_first_ms = 60000, .breaker_open_ms = 60000});
    Caller caller = {.pool = pool, .deadline_ms = LONG_MS};

    breaker_open_by_refusal(pool, proxy);
    caller_run(&caller);
    assert_int_equal(caller.code, ERR_UNAVAILABLE);
    assert_contains(caller.error.text, "database is unavailable, next try in ");
    assert_true(caller.waited_ms < 500 + test_stalled_ms()); /* far from the next try */
    assert_in_range(status_of(pool).next_probe_ms, 1, 60000);
    pool_free(take(pool));
    pool = pool_of((PoolOptions){.conninfo = proxy_url(proxy), .breaker_first_ms = 300});
    breaker_open_by_refusal(pool, proxy);
    proxy_set_mode(proxy, PROXY_PASS);
    await(status_of(pool).breaker == BREAKER_CLOSED); /* nobody called */
    pool_release(lease_of(pool));
}

TEST(pool_has_exactly_one_probe_however_many_call)
{
    enum { THREADS = 50 };
    scoped(database_free) TestDatabase *db    = database_new_empty();
    scoped(proxy_free) Proxy           *proxy = proxy_new(database_url(db));
    scoped(pool_free) Pool             *pool  = pool_of(
        (PoolOptions){.conninfo = proxy_url(proxy), .breaker_open_ms = 200, .connect_ms_max = 5000, .size_max = 10});
    Caller    callers[THREADS];
    pthread_t threads[THREADS];

    breaker_open_by_refusal(pool, proxy);
    proxy_set_mode(proxy, PROXY_STALL); /* the probe hangs */
    int before = proxy_counts(proxy).accepted;
    await(status_of(pool).breaker == BREAKER_HALF_OPEN);
    for (int i = 0; i < THREADS; i++) {
        callers[i] = (Caller){.pool = pool, .deadline_ms = 300};
        threads[i] = thread_start("caller", caller_run, &callers[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        thread_join(threads[i]);
        assert_int_equal(callers[i].code, ERR_UNAVAILABLE);
    }
    await(proxy_counts(proxy).accepted > before);
    assert_int_equal(proxy_counts(proxy).accepted, before + 1);
    proxy_set_mode(proxy, PROXY_PASS);
    await(status_of(pool).breaker == BREAKER_CLOSED);
}

/* Statements that got no answer in time, each. */
static void silences(Pool *pool, int count)
{
    for (int i = 0; i < count; i++) {
        scoped(pool_release) Checkout *checkout = lease_of(pool);
        Error                          error;

        assert_code(ERR_TIMEOUT, ask(checkout, "select pg_sleep(600)", 3200, &error));
    }
}

static PoolOptions silent_options(const char *conninfo)
{
    return (PoolOptions){.conninfo         = conninfo,
                         .size_max         = 2,
                         .breaker_failures = 2,
                         .connect_ms_max   = 3000,
                         .check_ms_max     = 3000,
                         .no_janitor       = true};
}

TEST(pool_breaker_opens_for_a_server_that_lets_us_in_and_says_nothing)
{
    scoped(database_free) TestDatabase *db    = database_new_empty();
    scoped(proxy_free) Proxy           *proxy = proxy_new(database_url(db));
    scoped(pool_free) Pool             *pool  = pool_of(silent_options(proxy_url(proxy)));

    silences(pool, 2);
    proxy_set_mode(proxy, PROXY_STALL);
    (void)pool_tend(pool); /* asks the server, and hears nothing */
    assert_int_equal(status_of(pool).breaker, BREAKER_OPEN);
}

/* Say, a lock, or a standby that is away. */
TEST(pool_breaker_stays_closed_for_statements_that_wait_on_a_server_that_answers)
{
    scoped(database_free) TestDatabase *db   = database_new_empty();
    scoped(pool_free) Pool             *pool = pool_of(silent_options(database_url(db)));

    silences(pool, 2);
    assert_int_equal(status_of(pool).breaker, BREAKER_CLOSED);
    (void)pool_tend(pool);
    silences(pool, 1);
    assert_int_equal(status_of(pool).breaker, BREAKER_CLOSED);
    pool_release(lease_of(pool));
}

TEST(pool_breaker_does_not_count_impatience_nor_business)
{
    scoped(database_free) TestDatabase *db = database_new_empty();
    scoped(pool_free) Pool             *pool =
        pool_of((PoolOptions){.conninfo = database_url(db), .size_max = 2, .breaker_failures = 2, .no_janitor = true});
    Error error;

    for (int i = 0; i < 4; i++) {
        scoped(pool_release) Checkout *checkout = lease_of(pool);

        assert_code(ERR_TIMEOUT, ask(checkout, "select pg_sleep(600)", 20, &error));
    }
    for (int i = 0; i < 4; i++) {
        scoped(pool_release) Checkout *checkout = lease_of(pool);

        assert_code(ERR_INVALID, ask(checkout, "select 1/0", LONG_MS, &error));
    }
    assert_int_equal(status_of(pool).breaker, BREAKER_CLOSED);
}

/* ---- closing ---- */

TEST(pool_drain_waits_for_leases_and_refuses_the_rest)
{
    scoped(database_free) TestDatabase *db       = database_new_empty();
    scoped(pool_free) Pool             *pool     = pool_of((PoolOptions){.conninfo = database_url(db), .size_max = 1});
    Checkout                           *checkout = lease_of(pool);
    Caller                              waiter   = {.pool = pool, .deadline_ms = LONG_MS};
    pthread_t                           thread   = thread_start("waiter", caller_run, &waiter);

    await(status_of(pool).waiting == 1);
    assert_false(pool_drain(pool, deadline_in_ms(20)));
    thread_join(thread);
    assert_int_equal(waiter.code, ERR_STOPPING);
    caller_run(&waiter);
    assert_int_equal(waiter.code, ERR_STOPPING);
    pool_release(checkout);
    assert_true(pool_drain(pool, deadline_in_ms(LONG_MS)));
}

static void *nap_run(void *context)
{
    Caller   *caller   = context;
    Checkout *checkout = NULL;

    caller->code = pool_acquire(caller->pool, deadline_in_ms(LONG_MS), &checkout, &caller->error);
    if (caller->code == OK)
        caller->code = ask(checkout, "begin", 60000, &caller->error);
    if (caller->code == OK)
        caller->code = ask(checkout, "select pg_sleep(600)", 60000, &caller->error);
    if (checkout)
        pool_release(checkout);
    return NULL;
}

TEST(pool_drain_cancels_what_runs_too_long_inside_a_transaction)
{
    scoped(database_free) TestDatabase *db     = database_new_empty();
    scoped(pool_free) Pool             *pool   = pool_of((PoolOptions){.conninfo = database_url(db)});
    Caller                              napper = {.pool = pool};
    pthread_t                           thread = thread_start("napper", nap_run, &napper);

    await(database_get_i64(db, "select count(*) from pg_stat_activity where query = 'select pg_sleep(600)'"
                               " and state = 'active' and datname = current_database()") == 1);
    assert_false(pool_drain(pool, deadline_in_ms(20)));
    thread_join(thread);
    assert_int_equal(napper.code, ERR_TIMEOUT);
    assert_string_equal(napper.error.sqlstate, "57014");
    assert_true(pool_drain(pool, deadline_in_ms(LONG_MS)));
}
