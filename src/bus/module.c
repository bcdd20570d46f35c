/*
 * module.c - what module bus contributes; see base/module.h.
 */
#include "base/module.h"

#include "bus/metric.h"

BusMetrics bus_metrics = {BUS_METRICS(METRIC_INIT)};

static const DomainMetrics domain_metrics      = {DOMAIN_METRICS(METRIC_INIT)};
const MetricTable          domain_metric_table = METRIC_TABLE("domain", domain_metrics);

static const WorkerMetrics worker_metrics      = {WORKER_METRICS(METRIC_INIT)};
const MetricTable          worker_metric_table = METRIC_TABLE("domain", worker_metrics);

static const DepthMetrics depth_metrics      = {DEPTH_METRICS(METRIC_INIT)};
MetricSnapshot            bus_depths         = METRIC_SNAPSHOT_INIT;
static const MetricTable  depth_metric_table = METRIC_SNAPSHOT_TABLE("domain", depth_metrics, &bus_depths);

static const MetricTable metric_table = METRIC_TABLE(NULL, bus_metrics);
/* A refusal for business reasons is a good end of a handler. */
static const MetricSum sums[] = {
    {"handlers",
     {&bus_metrics.settled_completed, &bus_metrics.settled_retried, &bus_metrics.settled_failed,
      &bus_metrics.settled_rejected}},
    {"handlers_failed", {&bus_metrics.settled_retried, &bus_metrics.settled_failed}},
    {0}
};
#define STAT(measure)                                                                     \
    {                                                                                     \
        #measure, &domain_metric_table, offsetof(DomainMetrics, measure) / sizeof(Metric) \
    }
static const MetricStat stats[] = {
    STAT(sent), STAT(completed), STAT(retried), STAT(failed), STAT(rejected), STAT(wait), STAT(run), {0},
};

/* PW: dead letters. QU: commands. */
/* clang-format off */
static const SqlState states[] = {
    {"PW001", ERR_NOT_FOUND},
    {"PW002", ERR_CONFLICT},
    {"PW003", ERR_INVALID},
    {"QU001", ERR_INVALID},
    {"QU002", ERR_KEY_REUSED},
    {"QU004", ERR_NOT_FOUND},
    {"QU007", ERR_RATE}, /* as many operations are under way as may be */
    {"QU065", ERR_CONFLICT}, /* raised by a handler in SQL: a business refusal */
    {"QU070", ERR_CONFLICT}, /* likewise: no further attempt would help */
    {"QU005", ERR_CONFLICT, .type = "ambiguous-id",
     .meaning = "Several domains have a command of this id.",
     .action = "Name the command's domain with ?domain=."},
    {"QU006", ERR_CONFLICT, .type = "decided-otherwise",
     .meaning = "An operator has already made a different decision about the command.",
     .action = "The detail says what was decided, by whom and when; a decision cannot be changed."},
    {"QU003", ERR_CONFLICT, .type = "batch-closed",
     .meaning = "The batch is sealed and takes no more commands.",
     .action = "Send them in another batch."},
    {0}
};
/* clang-format on */

static const Module bus_module = {
    .name    = "bus",
    .metrics = {&metric_table, &depth_metric_table, &domain_metric_table, &worker_metric_table},
    .sums    = sums,
    .stats   = stats,
    .states  = states
};
MODULE_JOIN(bus_module)
