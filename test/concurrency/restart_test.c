/*
 * restart_test.c - PostgreSQL is stopped without a word and started again, under load, with the pool's default settings.
 *
 * Each caller does its deeds one after the other and repeats one, with the same key, until it is told that it was done.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/sync.h"
#include "test/concurrency/deed.h"
#include "test/harness/server.h"
#include "test/harness/test.h"

#define CALLERS        16
#define DEADLINE_MS    3000
#define RECOVER_MS_MAX 35000 /* the breaker's 30 s and some seconds for the rest */
#define AT_ONCE_MS     20    /* a refusal asks nobody */
#define PAUSE_MS       10    /* a polite client's, after a failure */

typedef struct {
    Pool       *pool;
    atomic_bool stop;
} Load;

typedef struct {
    pthread_t  thread;
    Load      *load;
    int        number;
    atomic_int done;
    Told       told;
    int64_t    slowest_ms;
    int        refused, refused_at_once; /* calls made while the breaker was open */
} Caller;

static bool breaker_is(Pool *pool, BreakerState state)
{
    PoolStatus status;

    pool_status(pool, &status);
    return status.breaker == state;
}

static ErrorCode caller_call(Caller *caller, int number)
{
    Error     error  = {0};
    bool      open   = breaker_is(caller->load->pool, BREAKER_OPEN);
    Mono      start  = clock_mono();
    ErrorCode code   = deed_do(caller->load->pool, deadline_in_ms(DEADLINE_MS),
                               (Deed){.caller = caller->number, .number = number}, &error);
    int64_t   took   = mono_ms_between(start, clock_mono());
    bool      failed = open && code != OK;

    told_note(&caller->told, number, code);
    caller->refused += failed;
    caller->refused_at_once += failed && took <= AT_ONCE_MS;
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
    const Told *tolds[CALLERS];

    atomic_store(&load->stop, true);
    for (int i = 0; i < CALLERS; i++) {
        thread_join(crew[i].thread);
        tolds[i] = &crew[i].told;
    }
    return deeds_judge(url, tolds, CALLERS);
}

static void crew_judge(const Caller *crew)
{
    int refused = 0, at_once = 0;

    for (int i = 0; i < CALLERS; i++) {
        refused += crew[i].refused;
        at_once += crew[i].refused_at_once;
        if (crew[i].slowest_ms > DEADLINE_MS + LATE_MS)
            fail_msg("a call with a deadline of %d ms took %d ms", DEADLINE_MS, (int)crew[i].slowest_ms);
    }
    print_message("# %d calls refused, %d of them within %d ms\n", refused, at_once, AT_ONCE_MS);
    assert_true(refused > 1000);
    /* The rest is for a machine that let a thread wait for its turn. */
    assert_true(at_once >= refused - refused / 50);
}

TEST(restart_under_load_loses_and_doubles_nothing)
{
    scoped(test_server_free) TestServer *server = test_server_new((TestServerOptions){0});
    PoolOptions                          wish   = {.conninfo = test_server_url(server, "postgres")};
    Load                                 load   = {0};
    Caller                              *crew   = calloc(CALLERS, sizeof *crew);
    Error                                error  = {0};

    assert_non_null(crew);
    deed_prepare(wish.conninfo);
    assert_ok(pool_new(&wish, &load.pool, &error));
    crew_start(&load, crew);
    progress_await(crew, DEADLINE_MS);

    test_server_stop(server, "immediate");
    breaker_await(load.pool, BREAKER_OPEN, 4 * DEADLINE_MS);
    test_server_start(server);
    int64_t recovered_ms = progress_await(crew, RECOVER_MS_MAX);

    assert_true(breaker_is(load.pool, BREAKER_CLOSED));
    progress_await(crew, DEADLINE_MS);
    Judgement judgement = crew_end(&load, crew, test_server_url(server, "postgres"));
    assert_int_equal(0, judgement.wrong);
    crew_judge(crew);
    print_message("# %d done, all well again %d ms after the start\n", judgement.done, (int)recovered_ms);
    assert_true(pool_drain(load.pool, deadline_in_ms(DEADLINE_MS)));
    pool_free(load.pool);
    free(crew);
}
