/*
 * module.c - what module telegram contributes; see base/module.h.
 */
#include "base/module.h"

#include "telegram/metric.h"

TelegramMetrics telegram_metrics = {TELEGRAM_METRICS(METRIC_INIT)};

static const MetricTable metric_table = METRIC_TABLE(NULL, telegram_metrics);
/* TG: the bot. */
static const SqlState states[] = {
    {"TG001", ERR_INVALID},
    {0}
};

static const Module telegram_module = {.name = "telegram", .metrics = {&metric_table}, .states = states};
MODULE_JOIN(telegram_module)
