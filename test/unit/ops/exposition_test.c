/*
 * exposition_test.c - the text that Prometheus reads, line by line.
 */
#include "test/harness/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/metric_series.h"
#include "ops/exposition.h"

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

TEST(exposition_says_help_and_type_once_for_each_name)
{
    scoped_text Text text = {0};

    text_make(&text);
    for (int i = 0; i < METRIC_COUNT; i++) {
        char line[128];

        snprintf(line, sizeof line, "# HELP %s ", metric_rows[i].name);
        assert_int_equal(count_of(text_string(&text), line), 1);
        snprintf(line, sizeof line, "# TYPE %s ", metric_rows[i].name);
        assert_int_equal(count_of(text_string(&text), line), 1);
    }
    assert_contains(text_string(&text), "# TYPE pawl_retries_total counter\n");
    assert_contains(text_string(&text), "# TYPE pawl_pool_in_use gauge\n");
    assert_contains(text_string(&text), "# TYPE pawl_query_seconds histogram\n");
}

TEST(exposition_shows_values_with_their_labels)
{
    scoped_text Text text = {0};

    metric_set(METRIC_POOL_IN_USE, 7);
    metric_set(METRIC_ALERT_DLQ, 1);
    text_make(&text);
    metric_set(METRIC_POOL_IN_USE, 0);
    metric_set(METRIC_ALERT_DLQ, 0);
    assert_contains(text_string(&text), "\npawl_pool_in_use 7\n");
    assert_contains(text_string(&text), "\npawl_alert_firing{alert=\"dead-letters\"} 1\n");
    assert_contains(text_string(&text), "\npawl_alert_firing{alert=\"breaker-open\"} 0\n");
}

TEST(exposition_histograms_add_up)
{
    scoped_text Text text = {0};
    double           last = 0;

    metric_observe_us(METRIC_QUERY_SECONDS, 1);
    metric_observe_us(METRIC_QUERY_SECONDS, metric_bounds_us[0]);
    metric_observe_us(METRIC_QUERY_SECONDS, metric_bounds_us[0] + 1);
    metric_observe_us(METRIC_QUERY_SECONDS, metric_bounds_us[METRIC_BUCKETS - 1] + 1);
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

static const MetricRow series_rows[] = {
    {"A", METRIC_COUNTER,   "test_claims_total",  "outcome=\"won\"",   "claims"         },
    {"B", METRIC_COUNTER,   "test_claims_total",  "outcome=\"empty\"", "claims"         },
    {"C", METRIC_HISTOGRAM, "test_claim_seconds", "",                  "time of a claim"},
};
static const MetricTable series_table = {"domain", series_rows, COUNT(series_rows)};

TEST(exposition_shows_series_by_their_label)
{
    MetricSeries    *shop = metric_series(&series_table, "shop"), *odd = metric_series(&series_table, "a\"b\\c\nd");
    scoped_text Text text = {0};

    assert_ptr_equal(shop, metric_series(&series_table, "shop"));
    metric_series_add(shop, 0, 3);
    metric_series_add(odd, 1, 4);
    metric_series_observe_us(shop, 2, 300);
    metric_series_observe_us(shop, 2, 99000000);
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
}

static const MetricTable many_table = {"domain", series_rows, COUNT(series_rows)};

TEST(metric_series_are_bounded)
{
    MetricSeries *other = NULL;
    char          name[16];
    int           count = 0;

    for (int i = 0; i < METRIC_SERIES_MAX + 50; i++) {
        snprintf(name, sizeof name, "d%d", i);
        other = metric_series(&many_table, name);
        assert_string_equal(metric_series_label(other), i < METRIC_SERIES_MAX ? name : "other");
    }
    for (const MetricSeries *series = NULL; (series = metric_series_next(&many_table, series));)
        count++;
    assert_int_equal(METRIC_SERIES_MAX + 1, count);
    assert_ptr_equal(other, metric_series(&many_table, "one more"));
    assert_string_equal("d7", metric_series_label(metric_series(&many_table, "d7")));
}
