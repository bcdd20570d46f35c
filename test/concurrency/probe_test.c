/*
 * probe_test.c - a breaker that is not closed lets exactly one connect through at a time, and that one cannot hang.
 *
 * The server is a proxy that swallows everything: each connect that reaches it is counted and never answered.
 */
#include <stdatomic.h>

#include "base/sync.h"
#include "pg/metric.h"
#include "test/concurrency/keyed_insert.h"
#include "test/harness/database.h"
#include "test/harness/proxy.h"
#include "test/harness/test.h"

#define THREADS    50
#define OPEN_MS    300
#define CONNECT_MS 400 /* a probe that hangs ends after this */
#define PERIOD_MS  (OPEN_MS + CONNECT_MS)
#define PROBES     6
#define CALL_MS    2000

typedef struct {
    Pool       *pool;
    atomic_bool stop;
    atomic_long successes, late;
} Crowd;

static ErrorCode ask(Pool *pool)
{
    scoped(PQclear) PGresult      *result = NULL;
    scoped(pool_release) Checkout *lease  = NULL;
    Error                          error  = {0};
    ErrorCode                      code   = pool_acquire(pool, deadline_in_ms(CALL_MS), &lease, &error);

    if (code != OK)
        return code;
    code = conn_query(checkout_conn(lease), "select 1", CONN_NO_PARAMS, deadline_in_ms(CALL_MS), &result, &error);
    checkout_report(lease, code, &error);
    return code;
}

static void *crowd_run(void *context)
{
    Crowd *crowd = context;

    while (!atomic_load(&crowd->stop)) {
        Mono      start = clock_mono();
        ErrorCode code  = ask(crowd->pool);

        atomic_fetch_add(&crowd->successes, code == OK);
        atomic_fetch_add(&crowd->late, mono_ms_between(start, clock_mono()) > 2 * CALL_MS + LATE_MS);
        clock_sleep_ms(1); /* fifty threads that only ask would leave no time for anybody to answer */
    }
    return NULL;
}

static PoolStatus status_of(Pool *pool)
{
    PoolStatus status;

    pool_status(pool, &status);
    return status;
}

static void breaker_await(Pool *pool, BreakerState state, int ms)
{
    for (Mono start = clock_mono(); status_of(pool).breaker != state; clock_sleep_ms(1))
        if (mono_ms_between(start, clock_mono()) > ms + test_stalled_ms())
            fail_msg("the breaker is not %s after %d ms", breaker_state_text(state), ms);
}

static Pool *pool_open(const Proxy *proxy, PoolOptions wish)
{
    Pool *pool  = NULL;
    Error error = {0};

    wish.conninfo       = proxy_url(proxy);
    wish.connect_ms_max = CONNECT_MS;
    assert_ok(pool_new(&wish, &pool, &error));
    return pool;
}

/* The moments at which the next connects arrive. */
static void arrivals_watch(Proxy *proxy, Pool *pool, Mono *ret_arrivals, int count)
{
    Deadline deadline = deadline_in_ms(60000);
    int      accepted = proxy_counts(proxy).accepted;

    for (int i = 0; i < count;) {
        int now = proxy_counts(proxy).accepted;

        assert_true(now - accepted <= 1 + test_stalled_ms() / PERIOD_MS); /* they come while nothing is seen, too */
        if (now > accepted)
            ret_arrivals[i++] = clock_mono();
        accepted = now;
        assert_true(status_of(pool).opening <= 1);
        if (deadline_passed(deadline))
            fail_msg("%d probes, not %d", i, count);
        clock_sleep_ms(1);
    }
}

/* From the moment it opens until the probe begins no connect begins, whatever callers were about to do. The pool says how many are under
 * way; the proxy would count those late that were begun before. */
static void silence_watch(Pool *pool)
{
    int opening = status_of(pool).opening;

    for (Mono start = clock_mono(); mono_ms_between(start, clock_mono()) < OPEN_MS + LATE_MS; clock_sleep_ms(1)) {
        PoolStatus status = status_of(pool);

        if (status.breaker != BREAKER_OPEN)
            return;
        assert_true(status.opening <= opening);
        opening = status.opening;
    }
    fail_msg("no probe after %d ms", OPEN_MS + LATE_MS);
}

static void crowd_start(Crowd *crowd, pthread_t *threads)
{
    for (int i = 0; i < THREADS; i++)
        threads[i] = thread_start("crowd", crowd_run, crowd);
}

static void crowd_end(Crowd *crowd, const pthread_t *threads)
{
    atomic_store(&crowd->stop, true);
    for (int i = 0; i < THREADS; i++)
        thread_join(threads[i]);
}

static void successes_await(Crowd *crowd, long count)
{
    long before = atomic_load(&crowd->successes);

    for (Deadline deadline = deadline_in_ms(60000); atomic_load(&crowd->successes) < before + count; clock_sleep_ms(1))
        assert_false(deadline_passed(deadline));
}

TEST(probe_is_alone_and_ends_at_its_deadline)
{
    scoped(database_free) TestDatabase *db    = database_new_empty();
    scoped(proxy_free) Proxy           *proxy = proxy_new(database_url(db));
    Crowd     crowd = {.pool = pool_open(proxy, (PoolOptions){.size_max = 8, .breaker_open_ms = OPEN_MS})};
    pthread_t threads[THREADS];
    Mono      arrivals[PROBES];

    crowd_start(&crowd, threads);
    successes_await(&crowd, THREADS);
    proxy_set_mode(proxy, PROXY_BLACKHOLE);
    proxy_cut_now(proxy);
    breaker_await(crowd.pool, BREAKER_OPEN, 20 * CONNECT_MS);
    silence_watch(crowd.pool);
    /* What hung when it opened has run out by the end of the first probe; from then on all connects are probes. */
    breaker_await(crowd.pool, BREAKER_OPEN, 2 * PERIOD_MS);

    arrivals_watch(proxy, crowd.pool, arrivals, PROBES);
    for (int i = 1; i < PROBES; i++)
        /* Seen some milliseconds late at the earlier one makes the gap look shorter. */
        assert_in_range(mono_ms_between(arrivals[i - 1], arrivals[i]),
                        PERIOD_MS - 100 > test_stalled_ms() ? PERIOD_MS - 100 - test_stalled_ms() : 0,
                        PERIOD_MS + LATE_MS);

    long successes = atomic_load(&crowd.successes);
    proxy_set_mode(proxy, PROXY_PASS);
    breaker_await(crowd.pool, BREAKER_CLOSED, 2 * PERIOD_MS + LATE_MS);
    successes_await(&crowd, THREADS);
    assert_true(atomic_load(&crowd.successes) > successes);
    crowd_end(&crowd, threads);
    assert_int_equal(0, atomic_load(&crowd.late));
    assert_true(pool_drain(crowd.pool, deadline_in_ms(CALL_MS)));
    pool_free(crowd.pool);
}

static void idle_fill(Pool *pool, int count)
{
    Checkout *leases[8];
    Error     error = {0};

    for (int i = 0; i < count; i++)
        assert_ok(pool_acquire(pool, deadline_in_ms(CALL_MS), &leases[i], &error));
    for (int i = 0; i < count; i++)
        pool_release(leases[i]);
    assert_int_equal(count, status_of(pool).idle);
}

/* Eight idle connections that have died without a word take their time to be found out: once the breaker is open nobody
 * needs to know any more. */
TEST(probe_does_not_wait_for_health_checks)
{
    scoped(database_free) TestDatabase *db    = database_new_empty();
    scoped(proxy_free) Proxy           *proxy = proxy_new(database_url(db));
    PoolOptions                         wish  = {.size_min         = 8,
                                                 .size_max         = 8,
                                                 .check_ms         = 500,
                                                 .check_ms_max     = 1000,
                                                 .breaker_failures = 1,
                                                 .breaker_open_ms  = OPEN_MS};
    scoped(pool_free) Pool             *pool  = pool_open(proxy, wish);

    idle_fill(pool, 8);
    proxy_set_mode(proxy, PROXY_BLACKHOLE);
    breaker_await(pool, BREAKER_OPEN, 10000);
    proxy_set_mode(proxy, PROXY_PASS);
    breaker_await(pool, BREAKER_CLOSED, OPEN_MS + LATE_MS);
}

/* Nor does the end of the pool. */
TEST(drain_does_not_wait_for_health_checks)
{
    scoped(database_free) TestDatabase *db    = database_new_empty();
    scoped(proxy_free) Proxy           *proxy = proxy_new(database_url(db));
    PoolOptions                         wish  = {.size_min = 8, .size_max = 8, .check_ms = 200, .check_ms_max = 1000};
    Pool                               *pool  = pool_open(proxy, wish);

    idle_fill(pool, 8);
    proxy_set_mode(proxy, PROXY_STALL);
    for (Deadline deadline = deadline_in_ms(60000); metric_value(&pg_metrics.connections_lost) == 0; clock_sleep_ms(1))
        assert_false(deadline_passed(deadline));
    Mono start = clock_mono();
    assert_true(pool_drain(pool, deadline_in_ms(60000)));
    pool_free(pool);
    assert_in_range(mono_ms_between(start, clock_mono()), 0, 1000 + CONNECT_MS + LATE_MS);
}
