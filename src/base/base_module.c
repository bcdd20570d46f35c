/*
 * base_module.c - what module base contributes; see base/module.h.
 */
#include "base/base_metric.h"
#include "base/module.h"

BaseMetrics base_metrics = {BASE_METRICS(METRIC_INIT)};

static const MetricTable metric_table = METRIC_TABLE(NULL, base_metrics);
static const Module      base_module  = {.name = "base", .metrics = {&metric_table}};
MODULE_JOIN(base_module)
