/*
 * tally.c - see tally.h.
 */
#include "bench/tally.h"

#define HALF (TALLY_EXACT / 2)

static int bucket_of(int64_t us)
{
    int doublings = 0, bucket;

    if (us < 0)
        us = 0;
    for (; us >= TALLY_EXACT; us >>= 1)
        doublings++;
    bucket = doublings * HALF + (int)us;
    return bucket < TALLY_BUCKETS ? bucket : TALLY_BUCKETS - 1;
}

/* The largest value that belongs to it. */
static int64_t bucket_top_us(int bucket)
{
    int doublings = bucket < TALLY_EXACT ? 0 : (bucket - HALF) / HALF;

    return ((int64_t)(bucket - doublings * HALF + 1) << doublings) - 1;
}

void tally_add(Tally *tally, int64_t us)
{
    tally->buckets[bucket_of(us)]++;
    tally->count++;
    if (us > tally->max_us)
        tally->max_us = us;
}

double tally_ms(const Tally *tally, int percent)
{
    int64_t wanted = (tally->count * percent + 99) / 100, seen = 0, us = 0;

    if (wanted == 0)
        return 0;
    for (int i = 0; i < TALLY_BUCKETS; i++) {
        seen += tally->buckets[i];
        if (seen >= wanted) {
            us = bucket_top_us(i);
            break;
        }
    }
    return (double)(us < tally->max_us ? us : tally->max_us) / 1000;
}

double tally_max_ms(const Tally *tally)
{
    return (double)tally->max_us / 1000;
}
