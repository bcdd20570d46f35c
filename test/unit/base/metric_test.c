/*
 * metric_test.c - nothing is ever reset, so every test looks at differences.
 */
#include "test/harness/test.h"

#include <string.h>

#include "base/metric.h"
#include "base/sync.h"

TEST(metric_counters_grow)
{
    int64_t before = metric_value(METRIC_RETRY);

    metric_add(METRIC_RETRY, 1);
    metric_add(METRIC_RETRY, 41);
    assert_int_equal(metric_value(METRIC_RETRY) - before, 42);
}

TEST(metric_gauges_are_set_and_moved)
{
    metric_set(METRIC_POOL_IN_USE, 5);
    metric_add(METRIC_POOL_IN_USE, -2);
    assert_int_equal(metric_value(METRIC_POOL_IN_USE), 3);
    metric_set(METRIC_POOL_IN_USE, 0);
    assert_int_equal(metric_value(METRIC_POOL_IN_USE), 0);
}

TEST(metric_rows_with_one_name_stand_together_and_differ_in_label)
{
    for (int a = 0; a < METRIC_COUNT; a++) {
        assert_non_null(metric_rows[a].id);
        assert_int_equal(strncmp(metric_rows[a].name, "pawl_", 5), 0);
        for (int b = 0; b < a; b++) {
            if (strcmp(metric_rows[a].name, metric_rows[b].name) != 0)
                continue;
            assert_string_equal(metric_rows[a - 1].name, metric_rows[a].name);
            assert_string_not_equal(metric_rows[a].label, metric_rows[b].label);
            assert_string_equal(metric_rows[a].help, metric_rows[b].help);
            assert_int_equal(metric_rows[a].kind, metric_rows[b].kind);
        }
    }
}

TEST(metric_bounds_grow)
{
    for (int i = 1; i < METRIC_BUCKETS; i++)
        assert_true(metric_bounds_us[i - 1] < metric_bounds_us[i]);
}

TEST(metric_histogram_puts_each_value_into_its_bucket)
{
    MetricHistogram before, after;
    int64_t         sum = 0;

    metric_histogram(METRIC_QUERY_SECONDS, &before);
    for (int i = 0; i < METRIC_BUCKETS; i++) { /* on the bound and one above: into the bucket and into the next */
        metric_observe_us(METRIC_QUERY_SECONDS, metric_bounds_us[i]);
        metric_observe_us(METRIC_QUERY_SECONDS, metric_bounds_us[i] + 1);
        sum += 2 * metric_bounds_us[i] + 1;
    }
    metric_observe_us(METRIC_QUERY_SECONDS, 0);
    metric_observe_us(METRIC_QUERY_SECONDS, -5);
    metric_histogram(METRIC_QUERY_SECONDS, &after);
    assert_int_equal(after.buckets[0] - before.buckets[0], 3);
    for (int i = 1; i < METRIC_BUCKETS; i++)
        assert_int_equal(after.buckets[i] - before.buckets[i], 2);
    assert_int_equal(after.buckets[METRIC_BUCKETS] - before.buckets[METRIC_BUCKETS], 1);
    assert_int_equal(after.count - before.count, 2 * METRIC_BUCKETS + 2);
    assert_int_equal(after.sum_us - before.sum_us, sum);
}

#define THREADS 4
#define ROUNDS  5000

static void *count_much(void *context)
{
    for (int i = 0; i < ROUNDS; i++) {
        metric_add(METRIC_TX_OK, 1);
        metric_observe_us(METRIC_HTTP_SECONDS, i);
    }
    return context;
}

TEST(metric_threads_lose_nothing)
{
    int64_t         before = metric_value(METRIC_TX_OK);
    MetricHistogram histogram_before, histogram;
    pthread_t       threads[THREADS];

    metric_histogram(METRIC_HTTP_SECONDS, &histogram_before);
    for (int i = 0; i < THREADS; i++)
        threads[i] = thread_start("counter", count_much, NULL);
    for (int i = 0; i < THREADS; i++)
        thread_join(threads[i]);
    metric_histogram(METRIC_HTTP_SECONDS, &histogram);
    assert_int_equal(metric_value(METRIC_TX_OK) - before, THREADS * ROUNDS);
    assert_int_equal(histogram.count - histogram_before.count, THREADS * ROUNDS);
}
