/*
 * metric.h - what HTTP calls to other services count.
 */
#ifndef CLIENT_METRIC_H
#define CLIENT_METRIC_H

#include "base/metric.h"

/* clang-format off */
#define CLIENT_METRICS(X) \
    X(rate_limited,           COUNTER,   "pawl_rate_limited_total",     "", "answers 429 from peers") \
    X(rate_limited_last_hour, GAUGE,     "pawl_rate_limited_last_hour", "", "answers 429 from peers to all pods within an hour; kept by monitors")
/* clang-format on */

typedef struct {
    CLIENT_METRICS(METRIC_FIELD)
} ClientMetrics;
extern ClientMetrics client_metrics;

#endif
