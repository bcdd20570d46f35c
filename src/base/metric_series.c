/*
 * metric_series.c - a list that only grows: writers add under a mutex, readers follow it without one.
 */
#include "base/metric_series.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/sync.h"

#define OTHER "other"

/* A counter or a gauge uses the first bucket alone. */
typedef struct {
    _Atomic int64_t buckets[METRIC_BUCKETS + 1];
    _Atomic int64_t sum_us;
} Cell;

struct MetricSeries {
    const MetricTable      *table;
    char                   *value;
    Cell                   *cells; /* one per row */
    _Atomic(MetricSeries *) next;
};

static _Atomic(MetricSeries *) first;
static pthread_mutex_t         making = PTHREAD_MUTEX_INITIALIZER; /* guards the end of the list */

static MetricSeries *series_find(const MetricTable *table, const char *value, int *ret_count)
{
    *ret_count = 0;
    for (MetricSeries *series = atomic_load(&first); series; series = atomic_load(&series->next)) {
        if (series->table != table)
            continue;
        if (strcmp(series->value, value) == 0)
            return series;
        ++*ret_count;
    }
    return NULL;
}

static MetricSeries *series_append(const MetricTable *table, const char *value)
{
    MetricSeries            *series = memory_new(1, sizeof *series);
    _Atomic(MetricSeries *) *end    = &first;

    series->table = table;
    series->cells = memory_new(table->count, sizeof *series->cells);
    series->value = strdup(value);
    if (!series->value)
        abort();
    while (atomic_load(end))
        end = &atomic_load(end)->next;
    atomic_store(end, series);
    return series;
}

MetricSeries *metric_series(const MetricTable *table, const char *value)
{
    int           count;
    MetricSeries *series;

    pthread_mutex_lock(&making);
    series = series_find(table, value, &count);
    if (!series && count >= METRIC_SERIES_MAX) {
        value  = OTHER;
        series = series_find(table, value, &count);
    }
    if (!series)
        series = series_append(table, value);
    pthread_mutex_unlock(&making);
    return series;
}

static void add(_Atomic int64_t *value, int64_t amount)
{
    atomic_fetch_add_explicit(value, amount, memory_order_relaxed);
}

static int64_t load(const _Atomic int64_t *value)
{
    return atomic_load_explicit(value, memory_order_relaxed);
}

void metric_series_add(MetricSeries *series, size_t row, int64_t amount)
{
    assert(row < series->table->count && series->table->rows[row].kind != METRIC_HISTOGRAM);
    add(&series->cells[row].buckets[0], amount);
}

void metric_series_observe_us(MetricSeries *series, size_t row, int64_t us)
{
    assert(row < series->table->count && series->table->rows[row].kind == METRIC_HISTOGRAM);
    add(&series->cells[row].buckets[metric_bucket(us)], 1);
    add(&series->cells[row].sum_us, us > 0 ? us : 0);
}

const MetricTable *metric_series_table(size_t index)
{
    for (const MetricSeries *series = atomic_load(&first); series; series = atomic_load(&series->next))
        if (metric_series_next(series->table, NULL) == series && index-- == 0)
            return series->table;
    return NULL;
}

const MetricSeries *metric_series_next(const MetricTable *table, const MetricSeries *last)
{
    const MetricSeries *series = last ? atomic_load(&last->next) : atomic_load(&first);

    while (series && series->table != table)
        series = atomic_load(&series->next);
    return series;
}

const char *metric_series_label(const MetricSeries *series)
{
    return series->value;
}

int64_t metric_series_value(const MetricSeries *series, size_t row)
{
    return load(&series->cells[row].buckets[0]);
}

void metric_series_histogram(const MetricSeries *series, size_t row, MetricHistogram *ret_histogram)
{
    const Cell *cell = &series->cells[row];

    *ret_histogram = (MetricHistogram){.sum_us = load(&cell->sum_us)};
    for (size_t i = 0; i <= METRIC_BUCKETS; i++) {
        ret_histogram->buckets[i] = load(&cell->buckets[i]);
        ret_histogram->count += ret_histogram->buckets[i];
    }
}
