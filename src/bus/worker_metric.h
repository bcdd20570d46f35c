/*
 * worker_metric.h - what workers count by domain.
 */
#ifndef BUS_WORKER_METRIC_H
#define BUS_WORKER_METRIC_H

#include "base/metric.h"

/* clang-format off */
#define WORKER_METRICS(X) \
    X(claims_won,       COUNTER,   "pawl_worker_claims_total",     "outcome=\"won\"",       "claims by workers of this pod: won if they got a command, else empty") \
    X(claims_empty,     COUNTER,   "pawl_worker_claims_total",     "outcome=\"empty\"",     "claims by workers of this pod: won if they got a command, else empty") \
    X(claim_seconds,    HISTOGRAM, "pawl_worker_claim_seconds",    "",                      "time of one claim, including waits for a connection and for locks") \
    X(completed,        COUNTER,   "pawl_worker_commands_total",   "outcome=\"completed\"", "commands handled by workers of this pod, by outcome") \
    X(retried,          COUNTER,   "pawl_worker_commands_total",   "outcome=\"retried\"",   "commands handled by workers of this pod, by outcome") \
    X(failed,           COUNTER,   "pawl_worker_commands_total",   "outcome=\"failed\"",    "commands handled by workers of this pod, by outcome") \
    X(rejected,         COUNTER,   "pawl_worker_commands_total",   "outcome=\"rejected\"",  "commands handled by workers of this pod, by outcome") \
    X(canceled,         COUNTER,   "pawl_worker_commands_total",   "outcome=\"canceled\"",  "commands handled by workers of this pod, by outcome") \
    X(lost,             COUNTER,   "pawl_worker_commands_total",   "outcome=\"lost\"",      "commands handled by workers of this pod, by outcome") \
    X(handlers_running, GAUGE,     "pawl_worker_handlers_running", "",                      "handlers running in workers of this pod") \
    X(handler_seconds,  HISTOGRAM, "pawl_worker_handler_seconds",  "",                      "time of one handler, without claim and settle")
/* clang-format on */

typedef struct {
    WORKER_METRICS(METRIC_FIELD)
} WorkerMetrics;

/* Label "domain": metric_series(&worker_metric_table, "shop") gives the WorkerMetrics of a domain. */
extern const MetricTable worker_metric_table;

#endif
