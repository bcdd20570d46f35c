/*
 * worker_metric.h - what workers count by domain.
 */
#ifndef BUS_WORKER_METRIC_H
#define BUS_WORKER_METRIC_H

#include "base/metric.h"

/* clang-format off */
#define WORKER_METRICS(X) \
    X(claims_won,       COUNTER,   "pawl_worker_claims_total",     "outcome=\"won\"",       "claims tried by workers of this pod, by whether they got a command") \
    X(claims_empty,     COUNTER,   "pawl_worker_claims_total",     "outcome=\"empty\"",     "claims tried by workers of this pod, by whether they got a command") \
    X(claim_seconds,    HISTOGRAM, "pawl_worker_claim_seconds",    "",                      "time of one claim, waiting for a connection and for locks included") \
    X(completed,        COUNTER,   "pawl_worker_commands_total",   "outcome=\"completed\"", "commands handled by workers of this pod, by what became of them") \
    X(retried,          COUNTER,   "pawl_worker_commands_total",   "outcome=\"retried\"",   "commands handled by workers of this pod, by what became of them") \
    X(failed,           COUNTER,   "pawl_worker_commands_total",   "outcome=\"failed\"",    "commands handled by workers of this pod, by what became of them") \
    X(rejected,         COUNTER,   "pawl_worker_commands_total",   "outcome=\"rejected\"",  "commands handled by workers of this pod, by what became of them") \
    X(canceled,         COUNTER,   "pawl_worker_commands_total",   "outcome=\"canceled\"",  "commands handled by workers of this pod, by what became of them") \
    X(lost,             COUNTER,   "pawl_worker_commands_total",   "outcome=\"lost\"",      "commands handled by workers of this pod, by what became of them") \
    X(handlers_running, GAUGE,     "pawl_worker_handlers_running", "",                      "handlers running in workers of this pod") \
    X(handler_seconds,  HISTOGRAM, "pawl_worker_handler_seconds",  "",                      "time of one handler, without claim and settle")
/* clang-format on */

typedef struct {
    WORKER_METRICS(METRIC_FIELD)
} WorkerMetrics;

/* Label "domain": metric_series(&worker_metric_table, "shop") gives the WorkerMetrics of a domain. */
extern const MetricTable worker_metric_table;

#endif
