/*
 * metric_series.h - metrics with a label whose values are known at run time only: domain="shop".
 *
 * A module has a table of rows as base/metric.h has them; a series is the values of all rows for one value of the label. It is made on
 * first use and lives as long as the process, so a pointer to it may be kept.
 *
 * Invariants
 *   1. At most METRIC_SERIES_MAX of a table; the values that come after them share one, with the label's value "other".
 * Threads: any.
 */
#ifndef BASE_METRIC_SERIES_H
#define BASE_METRIC_SERIES_H

#include <stddef.h>

#include "base/metric.h"

#define METRIC_SERIES_MAX 100

typedef struct {
    const char      *label; /* "domain" */
    const MetricRow *rows;  /* rows with the same name stand together; their label comes after the table's */
    size_t           count;
} MetricTable;

typedef struct MetricSeries MetricSeries;

MetricSeries *metric_series(const MetricTable *table, const char *value);
void          metric_series_add(MetricSeries *series, size_t row, int64_t amount);
void          metric_series_observe_us(MetricSeries *series, size_t row, int64_t us);

/* For readers: each table that has a series, each series of a table in the order they were made. NULL: no more. */
const MetricTable  *metric_series_table(size_t index);
const MetricSeries *metric_series_next(const MetricTable *table, const MetricSeries *last);
const char         *metric_series_label(const MetricSeries *series); /* the label's value */
int64_t             metric_series_value(const MetricSeries *series, size_t row);
void                metric_series_histogram(const MetricSeries *series, size_t row, MetricHistogram *ret_histogram);

#endif
