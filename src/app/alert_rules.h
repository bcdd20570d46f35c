/*
 * alert_rules.h - the rules of all alerts, over the metrics of all modules.
 */
#ifndef APP_ALERT_RULES_H
#define APP_ALERT_RULES_H

#include "app/settings.h"
#include "ops/alert.h"

typedef enum {
    ALERT_POOL,
    ALERT_FAILING,
    ALERT_HANDLERS,
    ALERT_DEAD_LETTERS,
    ALERT_DEAD_LETTERS_FAILED,
    ALERT_TROUBLESHOOTING,
    ALERT_WAITING,
    ALERT_BATCH,
    ALERT_REPLY_QUEUES,
    ALERT_RETENTION,
    ALERT_SCHEDULES,
    ALERT_LEDGER,
    ALERT_BREAKER,
    ALERT_RATE_LIMITED,
    ALERT_CONFLICTS,
    ALERT_COUNT
} AlertId;

extern const AlertRule alert_rules[ALERT_COUNT];

/* Handlers of the last minutes that failed, in percent, rounded up: 10.1 % is more than 10. Few handlers say nothing about a rate: 0. */
int64_t alert_handlers_percent(int64_t handlers, int64_t failed);
/* The limits that settings give. */
void alert_rules_limit(Alerts *alerts, const Settings *settings);

#endif
