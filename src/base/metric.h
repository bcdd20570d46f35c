/*
 * metric.h - counters, gauges and histograms that any thread can count and any thread can read.
 *
 * A module lists its metrics in an X-macro, one row each: field, kind, name, label ("" or one pair as Prometheus writes
 * it), help. METRIC_FIELD makes a struct of the rows, METRIC_INIT its first value, and a MetricTable names them for
 * readers (base/module.h). Rows with the same name stand together and differ in their label. Only ops reads all of
 * them.
 *
 * A table whose `label` is set has a label with values that are known at run time only, such as domain="shop". Its
 * struct is the model of one series; metric_series() makes the series of a value on first use. A series lives as long
 * as the process, so a pointer to it may be kept.
 *
 * A MetricSnapshot has gauges by label that are read together and replaced as a whole, such as the sizes of the largest
 * domains: what is not among the last values is not shown.
 *
 * Invariants
 *   1. A counter only grows, a gauge is set or moved, nothing is reset.
 *   2. A table has at most METRIC_SERIES_MAX series; values beyond them share one more, named "other".
 * Threads: any. Counting is one relaxed atomic addition: a reader sees each number right, not all of them at one
 * instant.
 */
#ifndef BASE_METRIC_H
#define BASE_METRIC_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

#define METRIC_BUCKETS    16
#define METRIC_SERIES_MAX 100

/* DURATION: a histogram of times from milliseconds to hours; HISTOGRAM: up to seconds. */
typedef enum { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM, METRIC_DURATION } MetricKind;

typedef struct {
    MetricKind  kind;
    const char *name;
    const char *label;
    const char *help;
} MetricRow;

/* A counter or a gauge uses the first bucket only. */
typedef struct {
    MetricRow       row;
    _Atomic int64_t buckets[METRIC_BUCKETS + 1];
    _Atomic int64_t sum_us;
} Metric;

/* clang-format off */
#define METRIC_FIELD(field, kind, name, label, help) Metric field;
#define METRIC_INIT(field, kind, name, label, help)  {.row = {METRIC_##kind, name, label, help}},
/* clang-format on */

typedef struct MetricSnapshot MetricSnapshot;

typedef struct {
    const char     *label;   /* NULL: metrics are counted themselves; else they are the model of a series */
    const Metric   *metrics; /* the module's struct, seen as an array */
    size_t          count;
    MetricSnapshot *snapshot; /* has the values of a table of gauges by label; NULL: they are counted */
} MetricTable;

/* metrics: the struct that METRIC_FIELD made. */
#define METRIC_TABLE(label, metrics)                                              \
    {                                                                             \
        label, (const Metric *)&(metrics), sizeof(metrics) / sizeof(Metric), NULL \
    }
#define METRIC_SNAPSHOT_TABLE(label, metrics, snapshot)                               \
    {                                                                                 \
        label, (const Metric *)&(metrics), sizeof(metrics) / sizeof(Metric), snapshot \
    }

/* ---- counting ---- */

void metric_add(Metric *metric, int64_t amount); /* counters: amount >= 0; gauges: any */
void metric_set(Metric *metric, int64_t value);  /* gauges */
void metric_observe_us(Metric *metric, int64_t us);
/* The module's struct for one value of the table's label. */
void *metric_series(const MetricTable *table, const char *value);

/* ---- gauges that are replaced as a whole ---- */

#define METRIC_SNAPSHOT_ROWS 8
typedef struct {
    char    value[64];                     /* of the label */
    int64_t numbers[METRIC_SNAPSHOT_ROWS]; /* in the order of the table's rows */
} MetricValues;
/* At most METRIC_SERIES_MAX and one more. */
void metric_snapshot_set(MetricSnapshot *snapshot, const MetricValues *list, int count);
/* ret_list has METRIC_SERIES_MAX + 1 slots. Returns how many there are. */
int metric_snapshot_get(MetricSnapshot *snapshot, MetricValues *ret_list);

struct MetricSnapshot {
    pthread_mutex_t mutex; /* guards the rest */
    int             count;
    MetricValues    list[METRIC_SERIES_MAX + 1];
};
#define METRIC_SNAPSHOT_INIT                \
    {                                       \
        .mutex = PTHREAD_MUTEX_INITIALIZER, \
    }

/* ---- reading ---- */

int64_t metric_value(const Metric *metric); /* counters and gauges */

/* Upper bounds of the buckets, in microseconds; one more bucket holds larger values. Exported in seconds. */
extern const int64_t metric_bounds_us[METRIC_BUCKETS], metric_duration_bounds_us[METRIC_BUCKETS];
bool                 metric_is_histogram(MetricKind kind);
const int64_t       *metric_bounds(MetricKind kind); /* of a histogram */
typedef struct {
    int64_t buckets[METRIC_BUCKETS + 1]; /* not cumulative */
    int64_t count;
    int64_t sum_us;
} MetricHistogram;
void metric_histogram(const Metric *metric, MetricHistogram *ret_histogram);

/* The series of a table in the order they were made; begin with NULL. NULL: no more. */
typedef struct MetricSeries MetricSeries;
const MetricSeries         *metric_series_next(const MetricTable *table, const MetricSeries *last);
const char                 *metric_series_value(const MetricSeries *series); /* the label's value */
const Metric               *metric_series_metrics(const MetricSeries *series);

/* The sum of some counters, which every process stores in the database: alerts about all processes read it there. */
#define METRIC_SUM_MAX 4
typedef struct {
    const char   *name;
    const Metric *metrics[METRIC_SUM_MAX]; /* NULL: no more */
} MetricSum;
int64_t metric_sum(const MetricSum *sum);

/* A metric that every process stores in the database once a minute, as a number over time: by its table's label, or
 * with the label "". */
typedef struct {
    const char        *measure;
    const MetricTable *table;
    size_t             row;
} MetricStat;

#endif
