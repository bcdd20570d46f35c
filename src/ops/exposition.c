/*
 * exposition.c - see exposition.h. Rows of one name stand together in the metric table, so HELP and TYPE are said once.
 */
#include "ops/exposition.h"

#include <inttypes.h>
#include <string.h>

#include "base/metric.h"

static const char *const kinds[] = {
    [METRIC_COUNTER] = "counter", [METRIC_GAUGE] = "gauge", [METRIC_HISTOGRAM] = "histogram"};

/* Prometheus counts buckets from below: each holds all that is not above its bound. */
static void write_histogram(Text *text, Metric metric)
{
    const char     *name = metric_rows[metric].name;
    MetricHistogram histogram;
    int64_t         sum = 0;

    metric_histogram(metric, &histogram);
    for (int i = 0; i < METRIC_BUCKETS; i++) {
        sum += histogram.buckets[i];
        text_print(text, "%s_bucket{le=\"%g\"} %" PRId64 "\n", name, (double)metric_bounds_us[i] / 1e6, sum);
    }
    sum += histogram.buckets[METRIC_BUCKETS];
    /* The count is the last bucket, not the counter beside it: a reader must see them equal at any moment. */
    text_print(text, "%s_bucket{le=\"+Inf\"} %" PRId64 "\n", name, sum);
    text_print(text, "%s_sum %.6f\n", name, (double)histogram.sum_us / 1e6);
    text_print(text, "%s_count %" PRId64 "\n", name, sum);
}

static void write_value(Text *text, Metric metric)
{
    const MetricRow *row = &metric_rows[metric];

    if (row->label[0])
        text_print(text, "%s{%s} %" PRId64 "\n", row->name, row->label, metric_value(metric));
    else
        text_print(text, "%s %" PRId64 "\n", row->name, metric_value(metric));
}

void exposition_write(Text *text)
{
    const char *last = "";

    for (Metric metric = 0; metric < METRIC_COUNT; metric++) {
        const MetricRow *row = &metric_rows[metric];

        if (strcmp(row->name, last) != 0)
            text_print(text, "# HELP %s %s\n# TYPE %s %s\n", row->name, row->help, row->name, kinds[row->kind]);
        last = row->name;
        if (row->kind == METRIC_HISTOGRAM)
            write_histogram(text, metric);
        else
            write_value(text, metric);
    }
}
