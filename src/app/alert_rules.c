/*
 * alert_rules.c - see alert_rules.h.
 */
#include "app/alert_rules.h"

#include "bus/metric.h"
#include "client/metric.h"
#include "http/metric.h"
#include "pg/breaker.h"
#include "pg/metric.h"
#include "schedule/metric.h"
#include "telegram/metric.h"
#include "wallet/metric.h"

static int64_t pool_percent(void)
{
    int64_t max = metric_value(&pg_metrics.pool_max);

    return max ? alert_percent(metric_value(&pg_metrics.pool_in_use), max) : 0;
}

static void requests_failed(int64_t *part, int64_t *of)
{
    *part = metric_value(&http_metrics.status_5xx);
    *of   = *part + metric_value(&http_metrics.status_2xx) + metric_value(&http_metrics.status_3xx) +
          metric_value(&http_metrics.status_4xx);
}

static int64_t breaker_open(void)
{
    return metric_value(&pg_metrics.breaker_state) != BREAKER_CLOSED;
}

const AlertRule alert_rules[ALERT_COUNT] = {
    [ALERT_POOL] =
        {
                      .name    = "pool-nearly-full",
                      .unit    = "%",
                      .limit   = 90,
                      .value   = pool_percent,
                      .summary = "most of the pool's connections are in use: find slow statements, or raise PAWL_POOL_MAX",
                      },
    [ALERT_FAILING] =
        {
                      .name    = "requests-failing",
                      .unit    = "%",
                      .limit   = 10,
                      .rate    = requests_failed,
                      .summary = "too many requests of the last 5 minutes failed: see the log",
                      },
    [ALERT_HANDLERS] =
        {
                      .name      = "handlers-failing",
                      .unit      = "%",
                      .limit     = 10,
                      .is_shared = true,
                      .source    = &bus_metrics.handlers_failing_percent,
                      .summary =
                "too many handlers of the last 5 minutes failed, over all workers: see their logs and pawl tsq list", },
    [ALERT_DEAD_LETTERS] =
        {
                      .name      = "dead-letters",
                      .unit      = "",
                      .limit     = 100,
                      .is_shared = true,
                      .source    = &bus_metrics.dead_letters,
                      .summary   = "too many dead letters wait: see pawl dlq list",
                      },
    [ALERT_DEAD_LETTERS_FAILED] =
        {
                      .name      = "dead-letters-failed",
                      .unit      = "",
                      .is_shared = true,
                      .source    = &bus_metrics.dead_letters_failed,
                      .summary   = "the tries of some dead letters are exhausted: see pawl dlq list --status failed",
                      },
    [ALERT_TROUBLESHOOTING] =
        {
                      .name      = "troubleshooting",
                      .unit      = "",
                      .is_shared = true,
                      .source    = &bus_metrics.troubleshooting,
                      .summary   = "commands wait for an operator: see pawl tsq list",
                      },
    [ALERT_WAITING] =
        {
                      .name      = "commands-waiting",
                      .unit      = "s",
                      .limit     = 300,
                      .is_shared = true,
                      .source    = &bus_metrics.oldest_ready_s,
                      .summary   = "a command has been queued for too long: pawl doctor says why; the oldest is in domain",
                      },
    [ALERT_BATCH] =
        {
                      .name      = "batch-abandoned",
                      .unit      = "s",
                      .limit     = 86400,
                      .is_shared = true,
                      .source    = &bus_metrics.batch_idle_s,
                      .summary   = "an open batch has had no new command for more than a day: seal it, or PAWL_BATCH_EXPIRY does",
                      },
    [ALERT_REPLY_QUEUES] =
        {
                      .name      = "reply-queues",
                      .unit      = "%",
                      .limit     = 80,
                      .is_shared = true,
                      .source    = &bus_metrics.reply_queues_percent,
                      .summary   = "pawl has created most of the reply queues that it may: find out who names so many, or raise "
                         "PAWL_REPLY_QUEUES_MAX", },
    [ALERT_RETENTION] =
        {
                      .name      = "retention-waits",
                      .unit      = "s",
                      .is_shared = true,
                      .source    = &bus_metrics.retention_jump_s,
                      .summary   = "the clock is more than a day past the last retention, which waits for a day: check the "
                         "server's time source", },
    [ALERT_SCHEDULES] =
        {
                      .name      = "schedules-failing",
                      .unit      = "",
                      .is_shared = true,
                      .source    = &schedule_metrics.failing,
                      .summary   = "schedules cannot fire: see pawl schedule list --status failing",
                      },
    [ALERT_LEDGER] =
        {
                      .name      = "ledger-clock",
                      .unit      = "s",
                      .limit     = 5,
                      .is_shared = true,
                      .source    = &wallet_metrics.clock_ahead_s,
                      .summary = "transactions of the ledger are dated after the database's clock, which was set back: check the "
                       "server's time source", },
    [ALERT_BREAKER] =
        {
                      .name    = "breaker-open",
                      .unit    = "",
                      .value   = breaker_open,
                      .summary = "the database does not answer and calls are refused: see pawl doctor",
                      },
    [ALERT_RATE_LIMITED] =
        {
                      .name      = "rate-limited",
                      .unit      = "/h",
                      .limit     = 10,
                      .is_shared = true,
                      .source    = &client_metrics.rate_limited_last_hour,
                      .summary   = "peers answered 429 too often within an hour, over all pods",
                      },
    [ALERT_CONFLICTS] =
        {
                      .name    = "bot-conflict",
                      .unit    = "/10 min",
                      .limit   = 2,
                      .source  = &telegram_metrics.conflicts_recent,
                      .summary = "another program polls with the bot's token, and takes updates away: stop it, or make a "
                       "new token", },
};

#define HANDLERS_LEAST 20

int64_t alert_handlers_percent(int64_t handlers, int64_t failed)
{
    return handlers >= HANDLERS_LEAST ? (failed * 100 + handlers - 1) / handlers : 0;
}

void alert_rules_limit(Alerts *alerts, const Settings *settings)
{
    alerts_limit(alerts, ALERT_POOL, settings->alert_pool);
    alerts_limit(alerts, ALERT_FAILING, settings->alert_failing);
    alerts_limit(alerts, ALERT_HANDLERS, settings->alert_failing);
    alerts_limit(alerts, ALERT_DEAD_LETTERS, settings->alert_dead_letters);
    alerts_limit(alerts, ALERT_WAITING, settings->alert_waiting / 1000);
    alerts_limit(alerts, ALERT_RATE_LIMITED, settings->alert_rate_limited);
}
