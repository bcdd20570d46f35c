/*
 * exposition.c - see exposition.h. Rows of one name stand together in the metric table, so HELP and TYPE are said once.
 */
#include "ops/exposition.h"

#include <inttypes.h>
#include <string.h>

#include "base/metric_series.h"

static const char *const kinds[] = {
    [METRIC_COUNTER] = "counter", [METRIC_GAUGE] = "gauge", [METRIC_HISTOGRAM] = "histogram"};

/* Prometheus counts buckets from below: each holds all that is not above its bound. labels: "" or pairs, each ended by a comma. */
static void write_histogram(Text *text, const char *name, const char *labels, const MetricHistogram *histogram)
{
    int64_t sum = 0;

    for (int i = 0; i < METRIC_BUCKETS; i++) {
        sum += histogram->buckets[i];
        text_print(text, "%s_bucket{%sle=\"%g\"} %" PRId64 "\n", name, labels, (double)metric_bounds_us[i] / 1e6, sum);
    }
    sum += histogram->buckets[METRIC_BUCKETS];
    /* The count is the last bucket, not the counter beside it: a reader must see them equal at any moment. */
    text_print(text, "%s_bucket{%sle=\"+Inf\"} %" PRId64 "\n", name, labels, sum);
    if (labels[0]) {
        int length = (int)strlen(labels) - 1; /* without the comma */

        text_print(text, "%s_sum{%.*s} %.6f\n", name, length, labels, (double)histogram->sum_us / 1e6);
        text_print(text, "%s_count{%.*s} %" PRId64 "\n", name, length, labels, sum);
        return;
    }
    text_print(text, "%s_sum %.6f\n", name, (double)histogram->sum_us / 1e6);
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

static void write_heading(Text *text, const MetricRow *row)
{
    text_print(text, "# HELP %s %s\n# TYPE %s %s\n", row->name, row->help, row->name, kinds[row->kind]);
}

/* A value of a label comes from users: Prometheus escapes three characters. */
static void label_print(Text *labels, const char *name, const char *value)
{
    text_print(labels, "%s=\"", name);
    for (; *value; value++) {
        if (*value == '"' || *value == '\\')
            text_append_char(labels, '\\');
        if (*value == '\n')
            text_append(labels, "\\n");
        else
            text_append_char(labels, *value);
    }
    text_append(labels, "\",");
}

static void write_series(Text *text, const MetricSeries *series, const MetricTable *table, size_t index)
{
    const MetricRow *row    = &table->rows[index];
    scoped_text Text labels = {0};

    text_init(&labels, NULL, TEXT_MAX_LINE);
    label_print(&labels, table->label, metric_series_label(series));
    if (row->label[0])
        text_print(&labels, "%s,", row->label);
    if (row->kind == METRIC_HISTOGRAM) {
        MetricHistogram histogram;

        metric_series_histogram(series, index, &histogram);
        write_histogram(text, row->name, text_string(&labels), &histogram);
        return;
    }
    text_print(text, "%s{%.*s} %" PRId64 "\n", row->name, (int)labels.length - 1, text_string(&labels),
               metric_series_value(series, index));
}

/* All values of one name stand together, so rows come before series. */
static void write_table(Text *text, const MetricTable *table)
{
    const char *last = "";

    for (size_t i = 0; i < table->count; i++) {
        if (strcmp(table->rows[i].name, last) != 0)
            write_heading(text, &table->rows[i]);
        last = table->rows[i].name;
        for (const MetricSeries *series = NULL; (series = metric_series_next(table, series));)
            write_series(text, series, table, i);
    }
}

void exposition_write(Text *text)
{
    const MetricTable *table;
    const char        *last = "";

    for (Metric metric = 0; metric < METRIC_COUNT; metric++) {
        const MetricRow *row = &metric_rows[metric];

        if (strcmp(row->name, last) != 0)
            write_heading(text, row);
        last = row->name;
        if (row->kind == METRIC_HISTOGRAM) {
            MetricHistogram histogram;

            metric_histogram(metric, &histogram);
            write_histogram(text, row->name, "", &histogram);
        } else
            write_value(text, metric);
    }
    for (size_t i = 0; (table = metric_series_table(i)); i++)
        write_table(text, table);
}
