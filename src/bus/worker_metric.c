/*
 * worker_metric.c - see worker_metric.h.
 */
#include "bus/worker_metric.h"

#define X(id, kind, name, label, help) {#id, METRIC_##kind, name, label, help},
static const MetricRow rows[WORKER_METRIC_COUNT] = {WORKER_METRICS(X)};
#undef X

const MetricTable worker_metrics = {"domain", rows, WORKER_METRIC_COUNT};
