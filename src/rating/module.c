/*
 * module.c - what module rating contributes; see base/module.h.
 */
#include "base/module.h"

#include "rating/metric.h"

RatingMetrics rating_metrics = {RATING_METRICS(METRIC_INIT)};

static const MetricTable metrics = METRIC_TABLE(NULL, rating_metrics);

/* clang-format off */
static const SqlState states[] = {
    {"RT001", ERR_BUSY},
    {"RT002", ERR_INVALID},
    {"RT003", ERR_NOT_FOUND},
    {0}
};
/* clang-format on */

static const Module rating_module = {.name = "rating", .metrics = {&metrics}, .states = states};
MODULE_JOIN(rating_module)
