/*
 * histogram.c - see histogram.h.
 */
#include "bench/histogram.h"

#define HALF (HISTOGRAM_EXACT / 2)

static int bucket_of(int64_t us)
{
    int doublings = 0, bucket;

    if (us < 0)
        us = 0;
    for (; us >= HISTOGRAM_EXACT; us >>= 1)
        doublings++;
    bucket = doublings * HALF + (int)us;
    return bucket < HISTOGRAM_BUCKETS ? bucket : HISTOGRAM_BUCKETS - 1;
}

/* The largest value that belongs to it. */
static int64_t bucket_top_us(int bucket)
{
    int doublings = bucket < HISTOGRAM_EXACT ? 0 : (bucket - HALF) / HALF;

    return ((int64_t)(bucket - doublings * HALF + 1) << doublings) - 1;
}

void histogram_add(Histogram *histogram, int64_t us)
{
    histogram->buckets[bucket_of(us)]++;
    histogram->count++;
    if (us > histogram->max_us)
        histogram->max_us = us;
}

double histogram_ms(const Histogram *histogram, int percent)
{
    int64_t wanted = (histogram->count * percent + 99) / 100, seen = 0, us = 0;

    if (wanted == 0)
        return 0;
    for (int i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += histogram->buckets[i];
        if (seen >= wanted) {
            us = bucket_top_us(i);
            break;
        }
    }
    return (double)(us < histogram->max_us ? us : histogram->max_us) / 1000;
}

double histogram_max_ms(const Histogram *histogram)
{
    return (double)histogram->max_us / 1000;
}
