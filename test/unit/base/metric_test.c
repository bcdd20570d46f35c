/*
 * metric_test.c - counters, gauges, histograms and series, on a table of the test's own.
 */
#include "base/module.h"

#include <stdio.h>
#include <string.h>

#include "base/sync.h"
#include "test/harness/test.h"

#define TEST_METRICS(X)                                    \
    X(done, COUNTER, "test_done_total", "", "things done") \
    X(size, GAUGE, "test_size", "", "things there are")    \
    X(seconds, HISTOGRAM, "test_seconds", "", "time of a thing")
typedef struct {
    TEST_METRICS(METRIC_FIELD)
} TestMetrics;
static TestMetrics       metrics      = {TEST_METRICS(METRIC_INIT)};
static const MetricTable plain_table  = METRIC_TABLE(NULL, metrics);
static const MetricTable series_table = METRIC_TABLE("domain", metrics);

TEST(metric_counters_grow)
{
    int64_t before = metric_value(&metrics.done);

    metric_add(&metrics.done, 1);
    metric_add(&metrics.done, 41);
    assert_int_equal(metric_value(&metrics.done) - before, 42);
}

TEST(metric_gauges_are_set_and_moved)
{
    metric_set(&metrics.size, 5);
    metric_add(&metrics.size, -2);
    assert_int_equal(metric_value(&metrics.size), 3);
    metric_set(&metrics.size, 0);
    assert_int_equal(metric_value(&metrics.size), 0);
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

    metric_histogram(&metrics.seconds, &before);
    for (int i = 0; i < METRIC_BUCKETS; i++) { /* on the bound and one above: into the bucket and into the next */
        metric_observe_us(&metrics.seconds, metric_bounds_us[i]);
        metric_observe_us(&metrics.seconds, metric_bounds_us[i] + 1);
        sum += 2 * metric_bounds_us[i] + 1;
    }
    metric_observe_us(&metrics.seconds, 0);
    metric_observe_us(&metrics.seconds, -5);
    metric_histogram(&metrics.seconds, &after);
    assert_int_equal(after.buckets[0] - before.buckets[0], 3);
    for (int i = 1; i < METRIC_BUCKETS; i++)
        assert_int_equal(after.buckets[i] - before.buckets[i], 2);
    assert_int_equal(after.buckets[METRIC_BUCKETS] - before.buckets[METRIC_BUCKETS], 1);
    assert_int_equal(after.count - before.count, 2 * METRIC_BUCKETS + 2);
    assert_int_equal(after.sum_us - before.sum_us, sum);
}

#define THREADS 4
#define ROUNDS  5000

static void *count_many(void *context)
{
    for (int i = 0; i < ROUNDS; i++) {
        metric_add(&metrics.done, 1);
        metric_observe_us(&metrics.seconds, i);
    }
    return context;
}

TEST(metric_threads_lose_nothing)
{
    int64_t         before = metric_value(&metrics.done);
    MetricHistogram histogram_before, histogram;
    pthread_t       threads[THREADS];

    metric_histogram(&metrics.seconds, &histogram_before);
    for (int i = 0; i < THREADS; i++)
        threads[i] = thread_start("counter", count_many, NULL);
    for (int i = 0; i < THREADS; i++)
        thread_join(threads[i]);
    metric_histogram(&metrics.seconds, &histogram);
    assert_int_equal(metric_value(&metrics.done) - before, THREADS * ROUNDS);
    assert_int_equal(histogram.count - histogram_before.count, THREADS * ROUNDS);
}

TEST(metric_series_count_apart_and_are_bounded)
{
    TestMetrics *other = NULL, *seventh;
    char         name[16];
    int          count = 0;

    for (int i = 0; i < METRIC_SERIES_MAX + 50; i++) {
        snprintf(name, sizeof name, "d%d", i);
        other = metric_series(&series_table, name);
        metric_add(&other->done, 1);
    }
    for (const MetricSeries *series = NULL; (series = metric_series_next(&series_table, series)); count++) {
        snprintf(name, sizeof name, "d%d", count);
        assert_string_equal(metric_series_value(series), count < METRIC_SERIES_MAX ? name : "other");
    }
    assert_int_equal(METRIC_SERIES_MAX + 1, count);
    assert_ptr_equal(other, metric_series(&series_table, "one more"));
    assert_int_equal(metric_value(&other->done), 50);
    seventh = metric_series(&series_table, "d7");
    assert_int_equal(metric_value(&seventh->done), 1);
    assert_null(metric_series_next(&plain_table, NULL));
}

TEST(metric_sum_adds_its_counters)
{
    const MetricSum sum = {
        "test", {&metrics.done, &metrics.size}
    };
    int64_t before = metric_sum(&sum);

    metric_add(&metrics.done, 3);
    metric_add(&metrics.size, 4);
    assert_int_equal(metric_sum(&sum) - before, 7);
    metric_add(&metrics.size, -4);
}

static const Module last = {"zz-last", {&plain_table}, NULL}, first = {"aa-first", {NULL}, NULL};

TEST(modules_are_listed_by_name_and_once)
{
    size_t count = 0, tables = 0;

    module_join(&last);
    module_join(&first);
    module_join(&last);
    assert_ptr_equal(module_at(0), &first);
    while (module_at(count))
        count++;
    assert_ptr_equal(module_at(count - 1), &last);
    for (size_t i = 1; i < count; i++)
        assert_true(strcmp(module_at(i - 1)->name, module_at(i)->name) < 0);
    while (module_metrics(tables))
        tables++;
    assert_ptr_equal(module_metrics(tables - 1), &plain_table);
}
