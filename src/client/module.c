/*
 * module.c - what module client contributes; see base/module.h.
 */
#include "base/module.h"

#include "client/metric.h"

ClientMetrics client_metrics = {CLIENT_METRICS(METRIC_INIT)};

static const MetricTable metric_table = METRIC_TABLE(NULL, client_metrics);
static const MetricSum   sums[]       = {
    {"rate_limited", {&client_metrics.rate_limited}},
    {0}
};
static const Module client_module = {.name = "client", .metrics = {&metric_table}, .sums = sums};
MODULE_JOIN(client_module)
