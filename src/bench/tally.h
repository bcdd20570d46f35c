/*
 * tally.h - many times in little memory: percentiles of any number of microseconds, each within 2 %.
 *
 * Below TALLY_EXACT a bucket is one microsecond; above, each doubling is cut into TALLY_EXACT / 2 buckets.
 * Threads: one at a time; whoever shares one guards it.
 */
#ifndef BENCH_TALLY_H
#define BENCH_TALLY_H

#include <stdint.h>

#define TALLY_EXACT   128
#define TALLY_BUCKETS (TALLY_EXACT + 34 * TALLY_EXACT / 2) /* up to 2^41 us */

typedef struct {
    int64_t count, max_us;
    int64_t buckets[TALLY_BUCKETS];
} Tally;

void tally_add(Tally *tally, int64_t us);
/* The value that this share of all is not above, in milliseconds; 0 when there is none. */
double tally_ms(const Tally *tally, int percent);
double tally_max_ms(const Tally *tally);

#endif
