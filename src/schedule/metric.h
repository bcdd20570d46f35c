/*
 * metric.h - what monitors count about schedules.
 */
#ifndef SCHEDULE_METRIC_H
#define SCHEDULE_METRIC_H

#include "base/metric.h"

/* clang-format off */
#define SCHEDULE_METRICS(X) \
    X(fired,   COUNTER, "pawl_schedule_firings_total", "outcome=\"sent\"",   "firings of schedules by this pod: commands and processes that were sent, and schedules that failed") \
    X(failed,  COUNTER, "pawl_schedule_firings_total", "outcome=\"failed\"", "firings of schedules by this pod: commands and processes that were sent, and schedules that failed") \
    X(failing, GAUGE,   "pawl_schedules_failing",      "",                   "schedules whose last firing failed; set in pods with the role monitor")
/* clang-format on */

typedef struct {
    SCHEDULE_METRICS(METRIC_FIELD)
} ScheduleMetrics;
extern ScheduleMetrics schedule_metrics;

#endif
