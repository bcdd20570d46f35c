/*
 * base_metric.h - what this module counts.
 */
#ifndef BASE_BASE_METRIC_H
#define BASE_BASE_METRIC_H

#include "base/metric.h"

/* clang-format off */
#define BASE_METRICS(X) \
    X(log_lines_left_out, COUNTER,   "pawl_log_lines_left_out_total", "", "log lines dropped because standard error was blocked")
/* clang-format on */

typedef struct {
    BASE_METRICS(METRIC_FIELD)
} BaseMetrics;
extern BaseMetrics base_metrics;

#endif
