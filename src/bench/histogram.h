/*
 * histogram.h - percentiles of any number of durations in constant memory, each within 2 %.
 *
 * Below HISTOGRAM_EXACT a bucket is one microsecond; above, each doubling is cut into HISTOGRAM_EXACT / 2 buckets.
 * Threads: one at a time; the owner of a shared one guards it.
 */
#ifndef BENCH_HISTOGRAM_H
#define BENCH_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_EXACT   128
#define HISTOGRAM_BUCKETS (HISTOGRAM_EXACT + 34 * HISTOGRAM_EXACT / 2) /* up to 2^41 us */

typedef struct {
    int64_t count, max_us;
    int64_t buckets[HISTOGRAM_BUCKETS];
} Histogram;

void histogram_add(Histogram *histogram, int64_t us);
/* The value that this share of all is not above, in milliseconds; 0 when there is none. */
double histogram_ms(const Histogram *histogram, int percent);
double histogram_max_ms(const Histogram *histogram);

#endif
