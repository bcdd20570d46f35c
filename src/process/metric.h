/*
 * metric.h - what activations of processes count by domain. Claims, their time and that of whole activations are the worker's
 * (bus/metric.h), under the domain "process:DOMAIN".
 */
#ifndef PROCESS_METRIC_H
#define PROCESS_METRIC_H

#include "base/metric.h"

/* clang-format off */
#define PROCESS_METRICS(X) \
    X(ended,         COUNTER,   "pawl_process_activations_total", "outcome=\"ended\"",       "activations of processes in this pod, by outcome") \
    X(suspended,     COUNTER,   "pawl_process_activations_total", "outcome=\"suspended\"",   "activations of processes in this pod, by outcome") \
    X(continued,     COUNTER,   "pawl_process_activations_total", "outcome=\"continued\"",   "activations of processes in this pod, by outcome") \
    X(interrupted,   COUNTER,   "pawl_process_activations_total", "outcome=\"interrupted\"", "activations of processes in this pod, by outcome") \
    X(steps_done,    COUNTER,   "pawl_process_steps_total",       "outcome=\"succeeded\"",   "attempts of steps recorded by this pod, by outcome") \
    X(steps_failed,  COUNTER,   "pawl_process_steps_total",       "outcome=\"failed\"",      "attempts of steps recorded by this pod, by outcome") \
    X(step_seconds,  HISTOGRAM, "pawl_process_step_seconds",      "",                        "time of one attempt of a step, without its record") \
    X(write_seconds, HISTOGRAM, "pawl_process_write_seconds",     "",                        "time of one write of an activation, including waits for its batch, a connection and locks") \
    X(waits_reply,   COUNTER,   "pawl_process_waits_total",       "for=\"reply\"",           "suspensions of processes by this pod, by what they wait for") \
    X(waits_async,   COUNTER,   "pawl_process_waits_total",       "for=\"async\"",           "suspensions of processes by this pod, by what they wait for") \
    X(waits_retry,   COUNTER,   "pawl_process_waits_total",       "for=\"retry\"",           "suspensions of processes by this pod, by what they wait for") \
    X(compensations, COUNTER,   "pawl_process_compensations_total", "",                      "compensations of steps recorded by this pod") \
    X(stale,         COUNTER,   "pawl_process_stale_total",       "",                        "writes that were repeated because the state had changed since it was read") \
    X(busy,          COUNTER,   "pawl_process_busy_total",        "",                        "tries of writes that found the process locked by another transaction") \
    X(signal_seconds, HISTOGRAM, "pawl_process_signal_seconds",  "",                        "time from the request of a signal over HTTP until it is stored, including waits for the process, which other transactions may have locked")
/* clang-format on */

typedef struct {
    PROCESS_METRICS(METRIC_FIELD)
} ProcessMetrics;

/* Label "domain": metric_series(&process_metric_table, "shop") gives the ProcessMetrics of a domain. */
extern const MetricTable process_metric_table;
/* queue: the domain of the bus, "process:shop". */
ProcessMetrics *process_metrics_of(const char *queue);

#endif
