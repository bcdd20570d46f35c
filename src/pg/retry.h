/*
 * retry.h - how long to wait before the next try, if there is one. Pure, but for the jitter.
 *
 * Delays double from delay_ms up to delay_ms_max, each shortened by up to a quarter at random so that pods that failed
 * together do not come back together. A wait that would not end before the deadline is not begun. Threads: any.
 */
#ifndef PG_RETRY_H
#define PG_RETRY_H

#include <stdbool.h>

#include "base/clock.h"

typedef struct {
    int retries_max; /* after the first try */
    int delay_ms;    /* 0: the whole policy is the default */
    int delay_ms_max;
} BackoffPolicy;

extern const BackoffPolicy retry_connect;   /* 5 retries: 100, 200, 400, 800, 1600 ms; cap 30 s */
extern const BackoffPolicy retry_operation; /* 3 retries: 100, 200, 400 ms; cap 30 s */

/* Wait before try number `tries` + 1. false: no try is left, or the deadline would pass first. */
bool retry_wait(const BackoffPolicy *policy, int tries, Deadline deadline);
/* The delay after `tries` tries without jitter. */
int retry_delay_ms(const BackoffPolicy *policy, int tries);

#endif
