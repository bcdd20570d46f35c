/*
 * module.c - what module ops contributes; see base/module.h.
 */
#include "base/module.h"

#include "ops/metric.h"

OpsMetrics ops_metrics = {OPS_METRICS(METRIC_INIT)};

static const AlertMetrics alert_metrics      = {ALERT_METRICS(METRIC_INIT)};
const MetricTable         alert_metric_table = METRIC_TABLE("alert", alert_metrics);

static const MetricTable metric_table = METRIC_TABLE(NULL, ops_metrics);
static const Module      ops_module   = {
           .name = "ops", .metrics = {&alert_metric_table, &metric_table}
};
MODULE_JOIN(ops_module)
