/*
 * metric_series.c - the series of all tables in one list that only grows: writers append under a mutex, readers follow
 * it without one.
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/memory.h"
#include "base/metric.h"
#include "base/sync.h"

#define OTHER "other"

struct MetricSeries {
    const MetricTable      *table;
    uint64_t                hash; /* of the value: a list of a hundred domains is searched for each activation */
    char                   *value;
    Metric                 *metrics; /* as many as the table has */
    _Atomic(MetricSeries *) next;
};

static _Atomic(MetricSeries *) first;
static pthread_mutex_t         append_mutex = PTHREAD_MUTEX_INITIALIZER; /* guards the end of the list */

static MetricSeries *series_find(const MetricTable *table, const char *value, int *ret_count)
{
    uint64_t hash = hash_text(value);

    *ret_count = 0;
    for (MetricSeries *series = atomic_load(&first); series; series = atomic_load(&series->next)) {
        if (series->table != table)
            continue;
        if (series->hash == hash && strcmp(series->value, value) == 0)
            return series;
        ++*ret_count;
    }
    return NULL;
}

static MetricSeries *series_append(const MetricTable *table, const char *value)
{
    MetricSeries            *series = memory_new(1, sizeof *series);
    _Atomic(MetricSeries *) *end    = &first;

    series->table   = table;
    series->hash    = hash_text(value);
    series->metrics = memory_new(table->count, sizeof *series->metrics);
    for (size_t i = 0; i < table->count; i++)
        series->metrics[i].row = table->metrics[i].row;
    series->value = strdup(value);
    if (!series->value)
        abort();
    while (atomic_load(end))
        end = &atomic_load(end)->next;
    atomic_store(end, series);
    return series;
}

void *metric_series(const MetricTable *table, const char *value)
{
    int           count;
    MetricSeries *series;

    assert(table->label);
    series = series_find(table, value, &count);
    if (series)
        return series->metrics;
    pthread_mutex_lock(&append_mutex);
    series = series_find(table, value, &count);
    if (!series && count >= METRIC_SERIES_MAX) {
        value  = OTHER;
        series = series_find(table, value, &count);
    }
    if (!series)
        series = series_append(table, value);
    pthread_mutex_unlock(&append_mutex);
    return series->metrics;
}

const MetricSeries *metric_series_next(const MetricTable *table, const MetricSeries *last)
{
    const MetricSeries *series = last ? atomic_load(&last->next) : atomic_load(&first);

    while (series && series->table != table)
        series = atomic_load(&series->next);
    return series;
}

const char *metric_series_value(const MetricSeries *series)
{
    return series->value;
}

const Metric *metric_series_metrics(const MetricSeries *series)
{
    return series->metrics;
}
