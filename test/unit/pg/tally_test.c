/*
 * tally_test.c - what several processes counted is summed once, also when an answer is lost.
 */
#include "pg/tally.h"

#include "base/fault.h"
#include "base/module.h"
#include "test/harness/database.h"
#include "test/harness/test.h"

/* As the modules above pg have them. */
#define TEST_METRICS(X)                                              \
    X(completed, COUNTER, "test_total", "outcome=\"completed\"", "") \
    X(retried, COUNTER, "test_total", "outcome=\"retried\"", "")     \
    X(failed, COUNTER, "test_total", "outcome=\"failed\"", "")       \
    X(rejected, COUNTER, "test_total", "outcome=\"rejected\"", "")   \
    X(rate_limited, COUNTER, "test_rate_limited_total", "", "")
static struct {
    TEST_METRICS(METRIC_FIELD)
} metrics                     = {TEST_METRICS(METRIC_INIT)};
static const MetricSum sums[] = {
    {"handlers", {&metrics.completed, &metrics.retried, &metrics.failed, &metrics.rejected}},
    {"handlers_failed", {&metrics.retried, &metrics.failed}},
    {"rate_limited", {&metrics.rate_limited}},
    {0},
};
static const Module tally_module = {"tally-test", {NULL}, sums};
MODULE_JOIN(tally_module)

typedef struct {
    TestDatabase *db;
    Pool         *pool;
} Fixture;

static Fixture fixture_new(void)
{
    Fixture fixture = {.db = database_new()};
    Error   error;

    assert_ok(pool_new(&(PoolOptions){.conninfo = database_url(fixture.db), .size_max = 2, .no_janitor = true},
                       &fixture.pool, &error));
    return fixture;
}

static void fixture_free(Fixture *fixture)
{
    pool_free(fixture->pool);
    database_free(fixture->db);
}

/* As a process that has counted nothing yet. */
static void tally_begin(Tally *tally)
{
    *tally = (Tally){0};
    mutex_init(&tally->mutex);
    for (size_t i = 0; i < COUNT(sums) - 1; i++)
        tally->stored[i] = metric_sum(&sums[i]);
}

static int64_t sum_of(const Fixture *fixture, const char *column)
{
    char sql[128];

    snprintf(sql, sizeof sql, "select %s from pawl.tally_sum()", column);
    return database_get_i64(fixture->db, sql);
}

static void flush(Tally *tally, const Fixture *fixture)
{
    Error error;

    assert_ok(tally_flush(tally, fixture->pool, deadline_in_ms(10000), &error));
}

TEST(tally_sums_what_processes_counted)
{
    Fixture fixture = fixture_new();
    Tally   first, second;

    tally_begin(&first);
    tally_begin(&second); /* both see this process's counters: as two processes that counted the same */
    flush(&first, &fixture);
    assert_int_equal(database_get_i64(fixture.db, "select count(*) from pawl.tally"), 0); /* nothing happened */
    metric_add(&metrics.completed, 7);
    metric_add(&metrics.failed, 2);
    metric_add(&metrics.rejected, 1);
    metric_add(&metrics.rate_limited, 6);
    flush(&first, &fixture);
    flush(&first, &fixture); /* nothing new */
    flush(&second, &fixture);
    assert_int_equal(database_get_i64(fixture.db, "select count(*) from pawl.tally"), 6);
    assert_int_equal(sum_of(&fixture, "handlers"), 20);
    assert_int_equal(sum_of(&fixture, "handlers_failed"), 4);
    assert_int_equal(sum_of(&fixture, "rate_limited"), 12);
    metric_add(&metrics.completed, 1);
    flush(&second, &fixture);
    assert_int_equal(sum_of(&fixture, "handlers"), 21);
    fixture_free(&fixture);
}

TEST(tally_of_a_lost_answer_is_counted_once)
{
    Fixture fixture = fixture_new();
    Tally   tally;
    Error   error;

    tally_begin(&tally);
    metric_add(&metrics.rate_limited, 3);
    flush(&tally, &fixture);
    /* As if the answer had been lost: the process repeats the flush, whatever it has counted since. */
    tally.stored[2] -= 3;
    tally.unsure[0] = tally.unsure[1] = 0;
    tally.unsure[2]                   = 3;
    tally.is_unsure                   = true;
    metric_add(&metrics.rate_limited, 2);
    flush(&tally, &fixture);
    assert_int_equal(sum_of(&fixture, "rate_limited"), 3);
    flush(&tally, &fixture);
    assert_int_equal(sum_of(&fixture, "rate_limited"), 5);
    /* A failed flush is made up for. */
    fault_arm("pg.query", 1000);
    metric_add(&metrics.rate_limited, 4);
    assert_true(tally_flush(&tally, fixture.pool, deadline_in_ms(500), &error) != OK);
    fault_arm_nth(0);
    flush(&tally, &fixture);
    assert_int_equal(sum_of(&fixture, "rate_limited"), 9);
    fixture_free(&fixture);
}

TEST(tally_forgets_old_counts)
{
    Fixture fixture = fixture_new();
    Tally   tally;

    tally_begin(&tally);
    database_exec(
        fixture.db,
        "insert into pawl.tally select pawl.now() - interval '3 hours', 'rate_limited', 1, gen_random_uuid(), 1"
        " from generate_series(1, 8);"
        "insert into pawl.tally select pawl.now() - interval '61 minutes', 'rate_limited', 1, gen_random_uuid(), 1");
    assert_int_equal(sum_of(&fixture, "rate_limited"), 0);
    metric_add(&metrics.rate_limited, 1);
    flush(&tally, &fixture);
    assert_int_equal(sum_of(&fixture, "rate_limited"), 1);
    assert_int_equal(database_get_i64(fixture.db, "select count(*) from pawl.tally"), 2);
    fixture_free(&fixture);
}
