/*
 * module.c - what module pg contributes; see base/module.h.
 */
#include "base/module.h"

#include "pg/metric.h"

PgMetrics pg_metrics = {PG_METRICS(METRIC_INIT)};

static const MetricTable metric_table = METRIC_TABLE(NULL, pg_metrics);
static const Module      pg_module    = {"pg", {&metric_table}, NULL};
MODULE_JOIN(pg_module)
