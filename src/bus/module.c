/*
 * module.c - what module bus contributes; see base/module.h.
 */
#include "base/module.h"

#include "bus/metric.h"
#include "bus/worker_metric.h"

BusMetrics bus_metrics = {BUS_METRICS(METRIC_INIT)};

static const WorkerMetrics worker_metrics      = {WORKER_METRICS(METRIC_INIT)};
const MetricTable          worker_metric_table = METRIC_TABLE("domain", worker_metrics);

static const MetricTable metric_table = METRIC_TABLE(NULL, bus_metrics);
/* A refusal for business reasons is a good end of a handler. */
static const MetricSum sums[] = {
    {"handlers",
     {&bus_metrics.settled_completed, &bus_metrics.settled_retried, &bus_metrics.settled_failed,
      &bus_metrics.settled_rejected}},
    {"handlers_failed", {&bus_metrics.settled_retried, &bus_metrics.settled_failed}},
    {0}
};
static const Module bus_module = {
    "bus", {&metric_table, &worker_metric_table},
     sums
};
MODULE_JOIN(bus_module)
