/*
 * exposition.c - see exposition.h. Rows of one name stand together in a table of metrics, so HELP and TYPE are written
 * once.
 */
#include "ops/exposition.h"

#include <inttypes.h>
#include <string.h>

#include "base/module.h"

static const char *const kinds[] = {[METRIC_COUNTER]   = "counter",
                                    [METRIC_GAUGE]     = "gauge",
                                    [METRIC_HISTOGRAM] = "histogram",
                                    [METRIC_DURATION]  = "histogram"};

/* labels: "" or pairs, each ended by a comma. more: "" or one more pair. */
static void write_name(Text *text, const char *name, const char *suffix, const char *labels, const char *more)
{
    size_t length = strlen(labels);

    if (length && !more[0])
        length--; /* without the comma */
    text_print(text, length || more[0] ? "%s%s{%.*s%s} " : "%s%s%.*s%s ", name, suffix, (int)length, labels, more);
}

/* Prometheus' buckets are cumulative: each counts all values that are not above its bound. */
static void write_histogram(Text *text, const Metric *metric, const char *labels)
{
    const char     *name = metric->row.name;
    int64_t         sum  = 0;
    MetricHistogram histogram;

    metric_histogram(metric, &histogram);
    for (int i = 0; i < METRIC_BUCKETS; i++) {
        char bound[32];

        sum += histogram.buckets[i];
        snprintf(bound, sizeof bound, "le=\"%g\"", (double)metric_bounds(metric->row.kind)[i] / 1e6);
        write_name(text, name, "_bucket", labels, bound);
        text_print(text, "%" PRId64 "\n", sum);
    }
    write_name(text, name, "_bucket", labels, "le=\"+Inf\"");
    text_print(text, "%" PRId64 "\n", histogram.count);
    write_name(text, name, "_sum", labels, "");
    text_print(text, "%.6f\n", (double)histogram.sum_us / 1e6);
    write_name(text, name, "_count", labels, "");
    text_print(text, "%" PRId64 "\n", histogram.count);
}

/* A label's value may come from users: Prometheus escapes three characters. */
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

/* series: NULL if the table has no label. */
static void write_metric(Text *text, const MetricTable *table, size_t row, const MetricSeries *series)
{
    const Metric    *metric = series ? &metric_series_metrics(series)[row] : &table->metrics[row];
    scoped_text Text labels = {0};

    text_init(&labels, NULL, TEXT_MAX_LINE);
    if (series)
        label_print(&labels, table->label, metric_series_value(series));
    if (metric->row.label[0])
        text_print(&labels, "%s,", metric->row.label);
    if (metric_is_histogram(metric->row.kind)) {
        write_histogram(text, metric, text_string(&labels));
        return;
    }
    write_name(text, metric->row.name, "", text_string(&labels), "");
    text_print(text, "%" PRId64 "\n", metric_value(metric));
}

static void write_head(Text *text, const MetricRow *row, const char **last)
{
    if (strcmp(row->name, *last) != 0)
        text_print(text, "# HELP %s %s\n# TYPE %s %s\n", row->name, row->help, row->name, kinds[row->kind]);
    *last = row->name;
}

static void write_snapshot(Text *text, const MetricTable *table)
{
    MetricValues list[METRIC_SERIES_MAX + 1];
    int          count = metric_snapshot_get(table->snapshot, list);
    const char  *last  = "";

    for (size_t i = 0; i < table->count && count > 0; i++) {
        const MetricRow *row = &table->metrics[i].row;

        write_head(text, row, &last);
        for (int j = 0; j < count; j++) {
            scoped_text Text labels = {0};

            text_init(&labels, NULL, TEXT_MAX_LINE);
            label_print(&labels, table->label, list[j].value);
            if (row->label[0])
                text_print(&labels, "%s,", row->label);
            write_name(text, row->name, "", text_string(&labels), "");
            text_print(text, "%" PRId64 "\n", list[j].numbers[i]);
        }
    }
}

/* All values of one name stand together, so rows come before series. */
static void write_table(Text *text, const MetricTable *table)
{
    const char *last = "";

    if (table->snapshot) {
        write_snapshot(text, table);
        return;
    }
    if (table->label && !metric_series_next(table, NULL))
        return;
    for (size_t i = 0; i < table->count; i++) {
        const MetricRow *row = &table->metrics[i].row;

        write_head(text, row, &last);
        if (!table->label)
            write_metric(text, table, i, NULL);
        else
            for (const MetricSeries *series = NULL; (series = metric_series_next(table, series));)
                write_metric(text, table, i, series);
    }
}

void exposition_write(Text *text)
{
    const MetricTable *table;

    for (size_t i = 0; (table = module_metrics(i)); i++)
        write_table(text, table);
}
