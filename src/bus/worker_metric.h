/*
 * worker_metric.h - what workers count, by domain (S11).
 */
#ifndef BUS_WORKER_METRIC_H
#define BUS_WORKER_METRIC_H

#include "base/metric_series.h"

/* clang-format off */
#define WORKER_METRICS(X) \
    X(WORKER_CLAIMS_WON,      COUNTER,   "pawl_worker_claims_total",         "outcome=\"won\"",       "claims tried by workers of this process, by whether they got a command") \
    X(WORKER_CLAIMS_EMPTY,    COUNTER,   "pawl_worker_claims_total",         "outcome=\"empty\"",     "claims tried by workers of this process, by whether they got a command") \
    X(WORKER_CLAIM_SECONDS,   HISTOGRAM, "pawl_worker_claim_seconds",        "",                      "time of one claim, waiting for a connection and for locks included") \
    X(WORKER_COMPLETED,       COUNTER,   "pawl_worker_commands_total",       "outcome=\"completed\"", "commands handled by workers of this process, by what became of them") \
    X(WORKER_RETRIED,         COUNTER,   "pawl_worker_commands_total",       "outcome=\"retried\"",   "commands handled by workers of this process, by what became of them") \
    X(WORKER_FAILED,          COUNTER,   "pawl_worker_commands_total",       "outcome=\"failed\"",    "commands handled by workers of this process, by what became of them") \
    X(WORKER_REJECTED,        COUNTER,   "pawl_worker_commands_total",       "outcome=\"rejected\"",  "commands handled by workers of this process, by what became of them") \
    X(WORKER_LOST,            COUNTER,   "pawl_worker_commands_total",       "outcome=\"lost\"",      "commands handled by workers of this process, by what became of them") \
    X(WORKER_HANDLERS,        GAUGE,     "pawl_worker_handlers_running",     "",                      "handlers running in workers of this process") \
    X(WORKER_HANDLER_SECONDS, HISTOGRAM, "pawl_worker_handler_seconds",      "",                      "time of one handler, without claim and settle")
/* clang-format on */
#define X(id, ...) id,
typedef enum { WORKER_METRICS(X) WORKER_METRIC_COUNT } WorkerMetric;
#undef X

extern const MetricTable worker_metrics;

#endif
