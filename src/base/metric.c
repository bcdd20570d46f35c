/*
 * metric.c - the counters. Relaxed: a reader sees each number right, not all of them at one instant.
 */
#include "base/metric.h"

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>

#define X(id, kind, name, label, help) {#id, METRIC_##kind, name, label, help},
const MetricRow metric_rows[METRIC_COUNT] = {METRICS(X)};
#undef X

/* 100 us to 10 s in steps of 1, 2.5, 5: from a cached row to a statement that somebody will complain about. */
const int64_t metric_bounds_us[METRIC_BUCKETS] = {
    100, 250, 500, 1000, 2500, 5000, 10000, 25000, 50000, 100000, 250000, 500000, 1000000, 2500000, 5000000, 10000000,
};

typedef struct {
    _Atomic int64_t buckets[METRIC_BUCKETS + 1];
    _Atomic int64_t sum_us;
} Histogram;

/* Every metric has both: a few kilobytes, and no second numbering to keep in step. */
static _Atomic int64_t values[METRIC_COUNT];
static Histogram       histograms[METRIC_COUNT];

static void add(_Atomic int64_t *value, int64_t amount)
{
    atomic_fetch_add_explicit(value, amount, memory_order_relaxed);
}

static int64_t load(const _Atomic int64_t *value)
{
    return atomic_load_explicit(value, memory_order_relaxed);
}

void metric_add(Metric metric, int64_t amount)
{
    assert(metric_rows[metric].kind == METRIC_GAUGE || (metric_rows[metric].kind == METRIC_COUNTER && amount >= 0));
    add(&values[metric], amount);
}

void metric_set(Metric metric, int64_t value)
{
    assert(metric_rows[metric].kind == METRIC_GAUGE);
    atomic_store_explicit(&values[metric], value, memory_order_relaxed);
}

size_t metric_bucket(int64_t us)
{
    size_t bucket = 0;

    /* Sixteen compares without a branch beat a search whose branches cannot be predicted. */
    for (size_t i = 0; i < METRIC_BUCKETS; i++)
        bucket += us > metric_bounds_us[i];
    return bucket;
}

void metric_observe_us(Metric metric, int64_t us)
{
    assert(metric_rows[metric].kind == METRIC_HISTOGRAM);
    add(&histograms[metric].buckets[metric_bucket(us)], 1);
    add(&histograms[metric].sum_us, us > 0 ? us : 0);
}

int64_t metric_value(Metric metric)
{
    assert(metric_rows[metric].kind != METRIC_HISTOGRAM);
    return load(&values[metric]);
}

void metric_histogram(Metric metric, MetricHistogram *ret_histogram)
{
    const Histogram *histogram = &histograms[metric];

    assert(metric_rows[metric].kind == METRIC_HISTOGRAM);
    *ret_histogram = (MetricHistogram){.sum_us = load(&histogram->sum_us)};
    for (size_t i = 0; i <= METRIC_BUCKETS; i++) {
        ret_histogram->buckets[i] = load(&histogram->buckets[i]);
        ret_histogram->count += ret_histogram->buckets[i]; /* counted here, so it always equals the buckets' sum */
    }
}
