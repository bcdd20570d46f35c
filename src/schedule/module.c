/*
 * module.c - what module schedule contributes; see base/module.h.
 */
#include "base/module.h"

#include "schedule/metric.h"

ScheduleMetrics schedule_metrics = {SCHEDULE_METRICS(METRIC_INIT)};

static const MetricTable metrics = METRIC_TABLE(NULL, schedule_metrics);

/* clang-format off */
static const SqlState states[] = {
    {"QS001", ERR_INVALID},
    {"QS002", ERR_CONFLICT, .type = "schedule-exists",
     .meaning = "Another schedule has this name, or another command has this id.",
     .action = "Replace it with PUT, delete it first, or use another name."},
    {"QS004", ERR_NOT_FOUND},
    {0}
};
/* clang-format on */

static const Module schedule_module = {.name = "schedule", .metrics = {&metrics}, .states = states};
MODULE_JOIN(schedule_module)
