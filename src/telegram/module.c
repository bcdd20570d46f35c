/*
 * module.c - what module telegram contributes; see base/module.h.
 */
#include "base/module.h"

#include "bus/reserved_domain.h"
#include "telegram/metric.h"
#include "telegram/outbox.h"

TelegramMetrics telegram_metrics = {TELEGRAM_METRICS(METRIC_INIT)};

static const MetricTable metric_table = METRIC_TABLE(NULL, telegram_metrics);
/* TG: the bot. */
static const SqlState states[] = {
    {"TG001", ERR_INVALID},
    {TELEGRAM_OUTBOX_FULL, ERR_LIMIT},
    {0}
};

/* An update acts with the rights of the person that it names. Applications send messages in the name of the bot,
 * and nothing more: most of those that wait are the bot's own. */
static const ReservedDomain domains[] = {
    {telegram_domain_is_updates, .commands = "updates of a bot",
     .scopes = {[DOMAIN_SEND] = "admin", [DOMAIN_CANCEL] = "admin", [DOMAIN_WORK] = "admin", [DOMAIN_READ] = "admin"},
     .refuses_replies = true},
    {telegram_domain_is_outbox, .commands = "messages of a bot",
     .scopes = {[DOMAIN_CANCEL] = "admin", [DOMAIN_WORK] = "admin", [DOMAIN_READ] = "admin"}},
    {0}
};
RESERVED_DOMAINS_JOIN(domains)

static const Module telegram_module = {.name = "telegram", .metrics = {&metric_table}, .states = states};
MODULE_JOIN(telegram_module)
