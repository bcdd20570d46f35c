/*
 * metric.c - see metric.h.
 */
#include "base/metric.h"

#include <assert.h>
#include <string.h>

/* 100 us to 10 s in steps of 1, 2.5, 5: from a cached row to a statement that runs into its timeout. */
const int64_t metric_bounds_us[METRIC_BUCKETS] = {
    100, 250, 500, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 500000, 1000000, 2500000, 5000000, 10000000,
};

/* 1 ms to 6 h: what a command waits, and what a handler runs. */
const int64_t metric_duration_bounds_us[METRIC_BUCKETS] = {
    1000,    5000,    10000,    25000,    50000,     100000,    250000,     500000,
    1000000, 2500000, 10000000, 30000000, 120000000, 600000000, 3600000000, 21600000000,
};

bool metric_is_histogram(MetricKind kind)
{
    return kind == METRIC_HISTOGRAM || kind == METRIC_DURATION;
}

const int64_t *metric_bounds(MetricKind kind)
{
    assert(metric_is_histogram(kind));
    return kind == METRIC_DURATION ? metric_duration_bounds_us : metric_bounds_us;
}

static void add(_Atomic int64_t *value, int64_t amount)
{
    atomic_fetch_add_explicit(value, amount, memory_order_relaxed);
}

static int64_t load(const _Atomic int64_t *value)
{
    return atomic_load_explicit(value, memory_order_relaxed);
}

void metric_add(Metric *metric, int64_t amount)
{
    assert(metric->row.kind == METRIC_GAUGE || (metric->row.kind == METRIC_COUNTER && amount >= 0));
    add(&metric->buckets[0], amount);
}

void metric_set(Metric *metric, int64_t value)
{
    assert(metric->row.kind == METRIC_GAUGE);
    atomic_store_explicit(&metric->buckets[0], value, memory_order_relaxed);
}

/* METRIC_BUCKETS: above all bounds. */
static size_t bucket_of(const int64_t *bounds_us, int64_t us)
{
    size_t bucket = 0;

    /* Sixteen compares without a branch beat a search whose branches cannot be predicted. */
    for (size_t i = 0; i < METRIC_BUCKETS; i++)
        bucket += us > bounds_us[i];
    return bucket;
}

void metric_observe_us(Metric *metric, int64_t us)
{
    add(&metric->buckets[bucket_of(metric_bounds(metric->row.kind), us)], 1);
    add(&metric->sum_us, us > 0 ? us : 0);
}

int64_t metric_value(const Metric *metric)
{
    assert(!metric_is_histogram(metric->row.kind));
    return load(&metric->buckets[0]);
}

void metric_histogram(const Metric *metric, MetricHistogram *ret_histogram)
{
    assert(metric_is_histogram(metric->row.kind));
    *ret_histogram = (MetricHistogram){.sum_us = load(&metric->sum_us)};
    for (size_t i = 0; i <= METRIC_BUCKETS; i++) {
        ret_histogram->buckets[i] = load(&metric->buckets[i]);
        ret_histogram->count += ret_histogram->buckets[i]; /* counted here, so it always equals the buckets' sum */
    }
}

void metric_snapshot_set(MetricSnapshot *snapshot, const MetricValues *list, int count)
{
    assert(count >= 0 && count <= METRIC_SERIES_MAX + 1);
    pthread_mutex_lock(&snapshot->mutex);
    if (count > 0)
        memcpy(snapshot->list, list, (size_t)count * sizeof *list);
    snapshot->count = count;
    pthread_mutex_unlock(&snapshot->mutex);
}

int metric_snapshot_get(MetricSnapshot *snapshot, MetricValues *ret_list)
{
    int count;

    pthread_mutex_lock(&snapshot->mutex);
    count = snapshot->count;
    memcpy(ret_list, snapshot->list, (size_t)count * sizeof *ret_list);
    pthread_mutex_unlock(&snapshot->mutex);
    return count;
}

int64_t metric_sum(const MetricSum *sum)
{
    int64_t value = 0;

    for (int i = 0; i < METRIC_SUM_MAX && sum->metrics[i]; i++)
        value += metric_value(sum->metrics[i]);
    return value;
}
