/*
 * pool_storm_test.c - 50 threads, 4 connections, and a backend terminated every 100 ms.
 *
 * Every fifth thread is impatient: its deadline passes in line, while connecting and in the middle of statements. The
 * linker puts us between the pool and libpq, so connections are counted at every moment and not only when we look.
 */
#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/sync.h"
#include "test/concurrency/keyed_insert.h"
#include "test/harness/database.h"
#include "test/harness/test.h"

#define THREADS       50
#define POOL_SIZE     4
#define PATIENCE_MS   20000
#define IMPATIENCE_MS 30
#define STORM_SECONDS 30

/* ---- connections, counted at libpq's door ---- */

static pthread_mutex_t door = PTHREAD_MUTEX_INITIALIZER; /* guards all below */
static const PGconn   *inside[2 * POOL_SIZE];
static int             inside_count, connecting_count, closing_count, most;

PGconn *__real_PQconnectStartParams(const char *const *keywords, const char *const *values, int expand_dbname);
void    __real_PQfinish(PGconn *conn);
PGconn *__wrap_PQconnectStartParams(const char *const *keywords, const char *const *values, int expand_dbname);
void    __wrap_PQfinish(PGconn *conn);

PGconn *__wrap_PQconnectStartParams(const char *const *keywords, const char *const *values, int expand_dbname)
{
    pthread_mutex_lock(&door);
    connecting_count++;
    if (inside_count + connecting_count + closing_count > most)
        most = inside_count + connecting_count + closing_count;
    pthread_mutex_unlock(&door);

    PGconn *conn = __real_PQconnectStartParams(keywords, values, expand_dbname);

    pthread_mutex_lock(&door);
    connecting_count--;
    if (inside_count == (int)COUNT(inside))
        abort();
    inside[inside_count++] = conn;
    pthread_mutex_unlock(&door);
    return conn;
}

/* A connection is counted until it is closed, not until its closing is requested. The harness's own connections are not counted. */
void __wrap_PQfinish(PGconn *conn)
{
    int  place;
    bool listed;

    pthread_mutex_lock(&door);
    for (place = 0; place < inside_count && inside[place] != conn; place++)
        ;
    listed = place < inside_count;
    if (listed) { /* the address may be used again before we are back: count it without its name */
        inside[place] = inside[--inside_count];
        closing_count++;
    }
    pthread_mutex_unlock(&door);
    __real_PQfinish(conn);
    pthread_mutex_lock(&door);
    closing_count -= listed;
    pthread_mutex_unlock(&door);
}

/* ---- the storm ---- */

typedef struct {
    Pool       *pool;
    atomic_bool stop;
} Storm;

typedef struct {
    pthread_t thread;
    Storm    *storm;
    int       number, deadline_ms;
    Results   results;
    int64_t   slowest_ms;
    int       wordless; /* failures without an explanation */
    int       codes[ERROR_CODE_COUNT];
} Caller;

static void *caller_run(void *context)
{
    Caller *caller = context;

    for (int n = 0; n < INSERTS_MAX && !atomic_load(&caller->storm->stop); n++) {
        Error     error = {0};
        Mono      start = clock_mono();
        ErrorCode code  = keyed_insert_run(caller->storm->pool, deadline_in_ms(caller->deadline_ms),
                                           (KeyedInsert){.caller = caller->number, .number = n}, &error);
        int64_t   took  = mono_ms_between(start, clock_mono());

        result_record(&caller->results, n, code);
        caller->codes[code]++;
        caller->wordless += code != OK && (error.text[0] == '\0' || error.code != code);
        if (took > caller->slowest_ms)
            caller->slowest_ms = took;
    }
    return NULL;
}

static int fds_open(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int  count  = 0;

    assert_non_null(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

/* Terminates a backend every 100 ms and checks the figures of the pool in between. Returns how many ended. */
static int64_t backends_terminate(TestDatabase *db, Pool *pool, int seconds)
{
    Deadline end  = deadline_in_ms(seconds * 1000);
    int64_t  died = 0;

    while (!deadline_passed(end)) {
        PoolStatus status;

        died += database_get_i64(
            db, "select count(pg_terminate_backend(pid)) from (select pid from pg_stat_activity "
                "where application_name = 'storm' and datname = current_database() order by random() limit 1) victim");
        for (Deadline next = deadline_in_ms(100); !deadline_passed(next); clock_sleep_ms(5)) {
            pool_status(pool, &status);
            assert_true(status.acquired + status.idle + status.opening <= POOL_SIZE);
            assert_int_equal(status.size, status.acquired + status.idle + status.opening);
        }
    }
    return died;
}

/* A waiting caller could get thousands of turns in this time; one that gets none was forgotten. */
static void patient_check(const Caller *caller)
{
    assert_int_equal(0, caller->codes[ERR_BUSY]);
    assert_int_equal(0, caller->codes[ERR_TIMEOUT]);
    assert_true(caller->codes[OK] > 0);
}

static void caller_check(const Caller *caller)
{
    int explained = caller->codes[OK] + caller->codes[ERR_BUSY] + caller->codes[ERR_TIMEOUT] +
                    caller->codes[ERR_UNAVAILABLE] + caller->codes[ERR_UNKNOWN];

    assert_int_equal(caller->results.count, explained);
    assert_int_equal(0, caller->wordless);
    if (caller->slowest_ms > caller->deadline_ms + LATE_MS)
        fail_msg("a call with a deadline of %d ms took %d ms", caller->deadline_ms, (int)caller->slowest_ms);
    if (caller->deadline_ms == PATIENCE_MS)
        patient_check(caller);
}

static void callers_start(Storm *storm, Caller *callers)
{
    for (int i = 0; i < THREADS; i++) {
        callers[i].storm       = storm;
        callers[i].number      = i;
        callers[i].deadline_ms = i % 5 == 0 ? IMPATIENCE_MS : PATIENCE_MS;
        callers[i].thread      = thread_start("caller", caller_run, &callers[i]);
    }
}

static Comparison callers_end(Storm *storm, Caller *callers, const char *url)
{
    const Results *lists[THREADS];

    atomic_store(&storm->stop, true);
    for (int i = 0; i < THREADS; i++) {
        thread_join(callers[i].thread);
        lists[i] = &callers[i].results;
    }
    return keyed_inserts_compare(url, lists, THREADS);
}

/* A cancel that a caller left behind may still be on its way: its socket is open a moment longer. */
static void fds_await(int wanted)
{
    for (Deadline deadline = deadline_in_ms(60000); fds_open() > wanted && !deadline_passed(deadline);)
        clock_sleep_ms(10);
    assert_int_equal(wanted, fds_open());
}

TEST(storm_of_fifty_threads_on_four_connections)
{
    scoped(database_free) TestDatabase *db      = database_new_empty();
    PoolOptions                         wish    = {.conninfo         = database_url(db),
                                                   .application_name = "storm",
                                                   .size_max         = POOL_SIZE,
                                                   .check_ms         = 200,
                                                   .breaker_open_ms  = 500};
    Storm                               storm   = {0};
    Caller                             *callers = calloc(THREADS, sizeof *callers);
    Error                               error   = {0};

    assert_non_null(callers);
    keyed_insert_prepare(database_url(db));
    int fds_before = fds_open();
    assert_ok(pool_new(&wish, &storm.pool, &error));
    callers_start(&storm, callers);
    int64_t    died       = backends_terminate(db, storm.pool, test_seconds(STORM_SECONDS));
    Comparison comparison = callers_end(&storm, callers, database_url(db));

    assert_true(pool_drain(storm.pool, deadline_in_ms(PATIENCE_MS)));
    pool_free(storm.pool);
    fds_await(fds_before);
    assert_int_equal(0, inside_count);
    assert_int_equal(POOL_SIZE, most);
    for (int i = 0; i < THREADS; i++)
        caller_check(&callers[i]);
    assert_int_equal(0, comparison.wrong);
    assert_true(died > test_seconds(STORM_SECONDS));
    print_message("# %d done, %d refused, %d unknown, %d backends terminated\n", comparison.done, comparison.refused,
                  comparison.unknown, (int)died);
    free(callers);
}
