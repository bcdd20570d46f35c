/*
 * metric.h - what webhooks count, and the state of each alert.
 */
#ifndef OPS_METRIC_H
#define OPS_METRIC_H

#include "base/metric.h"

/* clang-format off */
#define ALERT_METRICS(X) \
    X(firing, GAUGE, "pawl_alert_firing", "", "1 while the alert is firing")

#define OPS_METRICS(X) \
    X(webhook_ok,     COUNTER, "pawl_webhooks_total", "outcome=\"ok\"",     "webhooks sent, by outcome") \
    X(webhook_failed, COUNTER, "pawl_webhooks_total", "outcome=\"failed\"", "webhooks sent, by outcome")
/* clang-format on */

typedef struct {
    ALERT_METRICS(METRIC_FIELD)
} AlertMetrics;
/* Label "alert": its name. */
extern const MetricTable alert_metric_table;

typedef struct {
    OPS_METRICS(METRIC_FIELD)
} OpsMetrics;
extern OpsMetrics ops_metrics;

#endif
