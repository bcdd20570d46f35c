/*
 * exposition_test.c - the text that Prometheus reads, line by line.
 */
#include "test/harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/module.h"
#include "ops/exposition.h"
#include "ops/metric.h"
#include "pg/metric.h"

static int count_of(const char *text, const char *part)
{
    int count = 0;

    for (; (text = strstr(text, part)); text += strlen(part))
        count++;
    return count;
}

static void text_make(Text *text)
{
    text_init(text, NULL, TEXT_MAX_BODY);
    exposition_write(text);
}

/* The number at the end of the line that begins like this. */
static double value_of(const char *text, const char *begin)
{
    const char *line = strstr(text, begin);

    if (!line)
        fail_msg("no line begins with %s", begin);
    assert_true(line == text || line[-1] == '\n');
    return strtod(line + strlen(begin), NULL);
}

TEST(exposition_writes_help_and_type_once_for_each_name)
{
    scoped_text Text   text = {0};
    const MetricTable *table;

    metric_series(&alert_metric_table, "breaker-open");
    text_make(&text);
    for (size_t t = 0; (table = module_metrics(t)); t++)
        for (size_t i = 0; i < table->count; i++) {
            char line[128];
            int  wanted = !table->label || metric_series_next(table, NULL);

            snprintf(line, sizeof line, "# HELP %s ", table->metrics[i].row.name);
            assert_int_equal(count_of(text_string(&text), line), wanted);
            snprintf(line, sizeof line, "# TYPE %s ", table->metrics[i].row.name);
            assert_int_equal(count_of(text_string(&text), line), wanted);
        }
    assert_contains(text_string(&text), "# TYPE pawl_retries_total counter\n");
    assert_contains(text_string(&text), "# TYPE pawl_pool_in_use gauge\n");
    assert_contains(text_string(&text), "# TYPE pawl_query_seconds histogram\n");
}

TEST(exposition_shows_values_with_their_labels)
{
    scoped_text Text text    = {0};
    AlertMetrics    *letters = metric_series(&alert_metric_table, "dead-letters");

    metric_series(&alert_metric_table, "breaker-open");
    metric_set(&pg_metrics.pool_in_use, 7);
    metric_set(&letters->firing, 1);
    text_make(&text);
    metric_set(&pg_metrics.pool_in_use, 0);
    metric_set(&letters->firing, 0);
    assert_contains(text_string(&text), "\npawl_pool_in_use 7\n");
    assert_contains(text_string(&text), "\npawl_alert_firing{alert=\"dead-letters\"} 1\n");
    assert_contains(text_string(&text), "\npawl_alert_firing{alert=\"breaker-open\"} 0\n");
}

TEST(exposition_histograms_add_up)
{
    scoped_text Text text = {0};
    double           last = 0;

    metric_observe_us(&pg_metrics.query_seconds, 1);
    metric_observe_us(&pg_metrics.query_seconds, metric_bounds_us[0]);
    metric_observe_us(&pg_metrics.query_seconds, metric_bounds_us[0] + 1);
    metric_observe_us(&pg_metrics.query_seconds, metric_bounds_us[METRIC_BUCKETS - 1] + 1);
    text_make(&text);
    for (int i = 0; i < METRIC_BUCKETS; i++) {
        char   line[128];
        double value;

        snprintf(line, sizeof line, "pawl_query_seconds_bucket{le=\"%g\"} ", (double)metric_bounds_us[i] / 1e6);
        value = value_of(text_string(&text), line);
        assert_true(value >= last);
        last = value;
    }
    assert_true(last == 3);
    assert_true(value_of(text_string(&text), "pawl_query_seconds_bucket{le=\"+Inf\"} ") == 4);
    assert_true(value_of(text_string(&text), "pawl_query_seconds_count ") == 4);
    assert_true(value_of(text_string(&text), "pawl_query_seconds_sum ") >=
                (double)metric_bounds_us[METRIC_BUCKETS - 1] / 1e6);
}

TEST(exposition_ends_each_line)
{
    scoped_text Text text = {0};
    const char      *bytes;

    text_make(&text);
    bytes = text_string(&text);
    assert_int_equal(bytes[strlen(bytes) - 1], '\n');
    assert_int_equal(count_of(bytes, "\n\n"), 0);
    assert_int_equal(strncmp(bytes, "# HELP ", 7), 0);
}

#define TEST_METRICS(X)                                                   \
    X(won, COUNTER, "test_claims_total", "outcome=\"won\"", "claims")     \
    X(empty, COUNTER, "test_claims_total", "outcome=\"empty\"", "claims") \
    X(seconds, HISTOGRAM, "test_claim_seconds", "", "time of a claim")    \
    X(labelled, HISTOGRAM, "test_step_seconds", "step=\"a\"", "time of a step")
typedef struct {
    TEST_METRICS(METRIC_FIELD)
} TestMetrics;
static const TestMetrics test_metrics = {TEST_METRICS(METRIC_INIT)};
static const MetricTable test_table   = METRIC_TABLE("domain", test_metrics);
static const Module      test_module  = {"test", {&test_table}, NULL};
MODULE_JOIN(test_module)

TEST(exposition_writes_each_series_with_its_label)
{
    TestMetrics     *shop = metric_series(&test_table, "shop"), *odd = metric_series(&test_table, "a\"b\\c\nd");
    scoped_text Text text = {0};

    assert_ptr_equal(shop, metric_series(&test_table, "shop"));
    metric_add(&shop->won, 3);
    metric_add(&odd->empty, 4);
    metric_observe_us(&shop->seconds, 300);
    metric_observe_us(&shop->seconds, 99000000);
    metric_observe_us(&shop->labelled, 300);
    text_make(&text);
    assert_int_equal(1, count_of(text_string(&text), "# TYPE test_claims_total counter\n"));
    assert_int_equal(1, count_of(text_string(&text), "# TYPE test_claim_seconds histogram\n"));
    assert_true(value_of(text_string(&text), "test_claims_total{domain=\"shop\",outcome=\"won\"} ") == 3);
    assert_true(value_of(text_string(&text), "test_claims_total{domain=\"shop\",outcome=\"empty\"} ") == 0);
    assert_true(value_of(text_string(&text), "test_claims_total{domain=\"a\\\"b\\\\c\\nd\",outcome=\"empty\"} ") == 4);
    assert_true(value_of(text_string(&text), "test_claim_seconds_bucket{domain=\"shop\",le=\"0.0005\"} ") == 1);
    assert_true(value_of(text_string(&text), "test_claim_seconds_bucket{domain=\"shop\",le=\"+Inf\"} ") == 2);
    assert_true(value_of(text_string(&text), "test_claim_seconds_count{domain=\"shop\"} ") == 2);
    assert_true(value_of(text_string(&text), "test_claim_seconds_sum{domain=\"shop\"} ") > 99.0);
    assert_true(value_of(text_string(&text), "test_step_seconds_bucket{domain=\"shop\",step=\"a\",le=\"+Inf\"} ") == 1);
    assert_true(value_of(text_string(&text), "test_step_seconds_count{domain=\"shop\",step=\"a\"} ") == 1);
}
