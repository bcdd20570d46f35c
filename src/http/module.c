/*
 * module.c - what module http contributes; see base/module.h.
 */
#include "base/module.h"

#include "http/metric.h"

HttpMetrics http_metrics = {HTTP_METRICS(METRIC_INIT)};

static const MetricTable metric_table = METRIC_TABLE(NULL, http_metrics);
static const Module      http_module  = {.name = "http", .metrics = {&metric_table}};
MODULE_JOIN(http_module)
