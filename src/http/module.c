/*
 * module.c - what module http contributes; see base/module.h.
 */
#include "base/module.h"

#include "http/metric.h"

HttpMetrics http_metrics = {HTTP_METRICS(METRIC_INIT)};

static const MetricTable metric_table = METRIC_TABLE(NULL, http_metrics);

static const RouteMetrics route_metrics      = {ROUTE_METRICS(METRIC_INIT)};
const MetricTable         route_metric_table = METRIC_TABLE("route", route_metrics);

#define STAT(name, row)                                                         \
    {                                                                           \
        name, &route_metric_table, offsetof(RouteMetrics, row) / sizeof(Metric) \
    }
static const MetricStat stats[] = {
    STAT("http_2xx", status_2xx),
    STAT("http_3xx", status_3xx),
    STAT("http_4xx", status_4xx),
    STAT("http_5xx", status_5xx),
    {0},
};
static const Module http_module = {
    .name = "http", .metrics = {&metric_table, &route_metric_table},
         .stats = stats
};
MODULE_JOIN(http_module)
