/*
 * restart_test.c - PostgreSQL is stopped without a word and started again, under load, with the pool's default settings.
 *
 * Each caller inserts one row after the other and repeats an insert, with the same key, until the result is OK.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/sync.h"
#include "pg/metric.h"
#include "test/concurrency/keyed_insert.h"
#include "test/harness/server.h"
#include "test/harness/test.h"

#define CALLERS        16
#define DEADLINE_MS    3000
#define RECOVER_MS_MAX 15000 /* probes come after 1, 2 and 4 s; the rest is for a busy machine */
#define PAUSE_MS       10    /* a polite client's, after a failure */

typedef struct {
    Pool       *pool;
    int         deadline_ms;
    atomic_bool stop;
} Load;

typedef struct {
    pthread_t  thread;
    Load      *load;
    int        number;
    atomic_int done;
    Results    results;
    int64_t    slowest_ms;
    int        failed;
} Caller;

static bool breaker_is(Pool *pool, BreakerState state)
{
    PoolStatus status;

    pool_status(pool, &status);
    return status.breaker == state;
}

static ErrorCode caller_call(Caller *caller, int number)
{
    Error     error = {0};
    Mono      start = clock_mono();
    ErrorCode code  = keyed_insert_run(caller->load->pool, deadline_in_ms(caller->load->deadline_ms),
                                       (KeyedInsert){.caller = caller->number, .number = number}, &error);
    int64_t   took  = mono_ms_between(start, clock_mono());

    result_record(&caller->results, number, code);
    caller->failed += code != OK;
    if (took > caller->slowest_ms)
        caller->slowest_ms = took;
    return code;
}

static void *caller_run(void *context)
{
    Caller *caller = context;

    for (int n = 0; n < INSERTS_MAX && !atomic_load(&caller->load->stop);) {
        if (caller_call(caller, n) == OK) {
            n++;
            atomic_fetch_add(&caller->done, 1);
        } else {
            clock_sleep_ms(PAUSE_MS);
        }
    }
    return NULL;
}

static void breaker_await(Pool *pool, BreakerState state, int ms)
{
    for (Deadline deadline = deadline_in_ms(ms); !breaker_is(pool, state); clock_sleep_ms(5))
        if (deadline_passed(deadline))
            fail_msg("the breaker is not %s after %d ms", breaker_state_text(state), ms);
}

/* Waits until each caller has inserted another row. Returns how long that took. */
static int64_t progress_await(Caller *callers, int ms)
{
    Mono     start    = clock_mono();
    Deadline deadline = deadline_in_ms(ms);
    int      before[CALLERS];

    for (int i = 0; i < CALLERS; i++)
        before[i] = atomic_load(&callers[i].done);
    for (int i = 0; i < CALLERS; i++)
        while (atomic_load(&callers[i].done) == before[i]) {
            if (deadline_passed(deadline))
                fail_msg("caller %d got nothing done in %d ms", i, ms);
            clock_sleep_ms(5);
        }
    return mono_ms_between(start, clock_mono());
}

static void callers_start(Load *load, Caller *callers)
{
    for (int i = 0; i < CALLERS; i++) {
        callers[i].load   = load;
        callers[i].number = i;
        callers[i].thread = thread_start("caller", caller_run, &callers[i]);
    }
}

static Comparison callers_end(Load *load, Caller *callers, const char *url)
{
    const Results *lists[CALLERS];

    atomic_store(&load->stop, true);
    for (int i = 0; i < CALLERS; i++) {
        thread_join(callers[i].thread);
        lists[i] = &callers[i].results;
    }
    return keyed_inserts_compare(url, lists, CALLERS);
}

static void callers_check(const Caller *callers)
{
    for (int i = 0; i < CALLERS; i++)
        if (callers[i].slowest_ms > DEADLINE_MS + LATE_MS)
            fail_msg("a call with a deadline of %d ms took %d ms", DEADLINE_MS, (int)callers[i].slowest_ms);
}

/* The server is away for a moment, as when it is restarted: clients get no notice. */
TEST(restart_of_a_moment_fails_no_call)
{
    scoped(test_server_free) TestServer *server  = test_server_new((TestServerOptions){0});
    PoolOptions                          wish    = {.conninfo = test_server_url(server, "postgres")};
    Load                                 load    = {0};
    Caller                              *callers = calloc(CALLERS, sizeof *callers);
    int64_t                              opened  = metric_value(&pg_metrics.breaker_opened);
    Error                                error   = {0};

    assert_non_null(callers);
    keyed_insert_prepare(wish.conninfo);
    assert_ok(pool_new(&wish, &load.pool, &error));
    load.deadline_ms = 60000; /* a busy machine starts a server slowly */
    callers_start(&load, callers);
    for (int i = 0; i < 3; i++) {
        progress_await(callers, 60000);
        test_server_stop(server, "fast");
        test_server_start(server);
    }
    progress_await(callers, 60000);
    Comparison comparison = callers_end(&load, callers, test_server_url(server, "postgres"));
    assert_int_equal(0, comparison.wrong);
    /* Calls whose commit was cut and resolved by their key included. */
    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(0, callers[i].failed);
    print_message("# the breaker opened %d times\n", (int)(metric_value(&pg_metrics.breaker_opened) - opened));
    assert_true(pool_drain(load.pool, deadline_in_ms(60000)));
    pool_free(load.pool);
    free(callers);
}

TEST(restart_under_load_loses_and_doubles_nothing)
{
    scoped(test_server_free) TestServer *server  = test_server_new((TestServerOptions){0});
    PoolOptions                          wish    = {.conninfo = test_server_url(server, "postgres")};
    Load                                 load    = {.deadline_ms = DEADLINE_MS};
    Caller                              *callers = calloc(CALLERS, sizeof *callers);
    Error                                error   = {0};

    assert_non_null(callers);
    keyed_insert_prepare(wish.conninfo);
    assert_ok(pool_new(&wish, &load.pool, &error));
    callers_start(&load, callers);
    progress_await(callers, 60000);

    test_server_stop(server, "immediate");
    breaker_await(load.pool, BREAKER_OPEN, 60000);
    test_server_start(server);
    int64_t recovered_ms = progress_await(callers, 60000);

    assert_in_range(recovered_ms, 0, RECOVER_MS_MAX + test_stalled_ms());

    assert_true(breaker_is(load.pool, BREAKER_CLOSED));
    progress_await(callers, 60000);
    Comparison comparison = callers_end(&load, callers, test_server_url(server, "postgres"));
    assert_int_equal(0, comparison.wrong);
    callers_check(callers);
    print_message("# %d done, all well again %d ms after the start\n", comparison.done, (int)recovered_ms);
    assert_true(pool_drain(load.pool, deadline_in_ms(60000)));
    pool_free(load.pool);
    free(callers);
}
