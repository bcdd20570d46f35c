/*
 * metric.h - what HTTP calls to other services count.
 */
#ifndef CLIENT_METRIC_H
#define CLIENT_METRIC_H

#include "base/metric.h"

/* clang-format off */
#define CLIENT_METRICS(X) \
    X(rate_limited,           COUNTER,   "pawl_rate_limited_total",     "", "responses with status 429 from other servers") \
    X(rate_limited_last_hour, GAUGE,     "pawl_rate_limited_last_hour", "", "responses with status 429 from other servers to all pods within an hour; set in pods with the role monitor")
/* clang-format on */

typedef struct {
    CLIENT_METRICS(METRIC_FIELD)
} ClientMetrics;
extern ClientMetrics client_metrics;

#endif
