/*
 * restart_test.c - PostgreSQL is stopped without a word and started again, under load, with the pool's default settings.
 *
 * Each caller does its deeds one after the other and repeats one, with the same key, until the result is OK.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/sync.h"
#include "pg/metric.h"
#include "test/concurrency/deed.h"
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
    ErrorCode code  = deed_do(caller->load->pool, deadline_in_ms(caller->load->deadline_ms),
                              (Deed){.caller = caller->number, .number = number}, &error);
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

    for (int n = 0; n < DEEDS_MAX && !atomic_load(&caller->load->stop);) {
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

/* Every caller gets another deed done. Returns how long that took. */
static int64_t progress_await(Caller *crew, int ms)
{
    Mono     start    = clock_mono();
    Deadline deadline = deadline_in_ms(ms);
    int      before[CALLERS];

    for (int i = 0; i < CALLERS; i++)
        before[i] = atomic_load(&crew[i].done);
    for (int i = 0; i < CALLERS; i++)
        while (atomic_load(&crew[i].done) == before[i]) {
            if (deadline_passed(deadline))
                fail_msg("caller %d got nothing done in %d ms", i, ms);
            clock_sleep_ms(5);
        }
    return mono_ms_between(start, clock_mono());
}

static void crew_start(Load *load, Caller *crew)
{
    for (int i = 0; i < CALLERS; i++) {
        crew[i].load   = load;
        crew[i].number = i;
        crew[i].thread = thread_start("caller", caller_run, &crew[i]);
    }
}

static Judgement crew_end(Load *load, Caller *crew, const char *url)
{
    const Results *lists[CALLERS];

    atomic_store(&load->stop, true);
    for (int i = 0; i < CALLERS; i++) {
        thread_join(crew[i].thread);
        lists[i] = &crew[i].results;
    }
    return deeds_judge(url, lists, CALLERS);
}

static void crew_judge(const Caller *crew)
{
    for (int i = 0; i < CALLERS; i++)
        if (crew[i].slowest_ms > DEADLINE_MS + LATE_MS)
            fail_msg("a call with a deadline of %d ms took %d ms", DEADLINE_MS, (int)crew[i].slowest_ms);
}

/* The server is away for a moment, as when it is restarted: clients get no notice. */
TEST(restart_of_a_moment_fails_no_call)
{
    scoped(test_server_free) TestServer *server = test_server_new((TestServerOptions){0});
    PoolOptions                          wish   = {.conninfo = test_server_url(server, "postgres")};
    Load                                 load   = {0};
    Caller                              *crew   = calloc(CALLERS, sizeof *crew);
    int64_t                              opened = metric_value(&pg_metrics.breaker_opened);
    Error                                error  = {0};

    assert_non_null(crew);
    deed_prepare(wish.conninfo);
    assert_ok(pool_new(&wish, &load.pool, &error));
    load.deadline_ms = 60000; /* a busy machine starts a server slowly */
    crew_start(&load, crew);
    for (int i = 0; i < 3; i++) {
        progress_await(crew, 60000);
        test_server_stop(server, "fast");
        test_server_start(server);
    }
    progress_await(crew, 60000);
    Judgement judgement = crew_end(&load, crew, test_server_url(server, "postgres"));
    assert_int_equal(0, judgement.wrong);
    /* Calls whose commit was cut and resolved by their key included. */
    for (int i = 0; i < CALLERS; i++)
        assert_int_equal(0, crew[i].failed);
    print_message("# the breaker opened %d times\n", (int)(metric_value(&pg_metrics.breaker_opened) - opened));
    assert_true(pool_drain(load.pool, deadline_in_ms(60000)));
    pool_free(load.pool);
    free(crew);
}

TEST(restart_under_load_loses_and_doubles_nothing)
{
    scoped(test_server_free) TestServer *server = test_server_new((TestServerOptions){0});
    PoolOptions                          wish   = {.conninfo = test_server_url(server, "postgres")};
    Load                                 load   = {.deadline_ms = DEADLINE_MS};
    Caller                              *crew   = calloc(CALLERS, sizeof *crew);
    Error                                error  = {0};

    assert_non_null(crew);
    deed_prepare(wish.conninfo);
    assert_ok(pool_new(&wish, &load.pool, &error));
    crew_start(&load, crew);
    progress_await(crew, 60000);

    test_server_stop(server, "immediate");
    breaker_await(load.pool, BREAKER_OPEN, 60000);
    test_server_start(server);
    int64_t recovered_ms = progress_await(crew, 60000);

    assert_in_range(recovered_ms, 0, RECOVER_MS_MAX + test_stalled_ms());

    assert_true(breaker_is(load.pool, BREAKER_CLOSED));
    progress_await(crew, 60000);
    Judgement judgement = crew_end(&load, crew, test_server_url(server, "postgres"));
    assert_int_equal(0, judgement.wrong);
    crew_judge(crew);
    print_message("# %d done, all well again %d ms after the start\n", judgement.done, (int)recovered_ms);
    assert_true(pool_drain(load.pool, deadline_in_ms(60000)));
    pool_free(load.pool);
    free(crew);
}
