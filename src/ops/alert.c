/*
 * alert.c - the table of conditions and the window of minutes behind the rates; see alert.h.
 */
#include "ops/alert.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/metric.h"
#include "base/sync.h"
#include "base/writer.h"
#include "pg/breaker.h"

#define MINUTE_MS      60000LL
#define MINUTES        5  /* of the window */
#define CALM_CHECKS    2  /* in a row, before an alert is resolved */
#define REQUESTS_LEAST 20 /* fewer requests in the window say nothing about a rate */

/* Counters as they stood at one moment. */
typedef struct {
    Mono    at;
    int64_t requests, failed;
} Sample;

struct Alerts {
    AlertListener *listener;
    void          *context;
    Mutex          mutex; /* guards list; the rest belongs to the stepping thread */
    Alert          list[ALERT_COUNT];
    int            calm[ALERT_COUNT];
    Sample         samples[MINUTES + 1]; /* a ring, one a minute, oldest overwritten */
    int            sample_count, sample_next;
};

static Sample sample_now(void)
{
    Sample sample = {.at = clock_mono(), .failed = metric_value(METRIC_HTTP_5XX)};

    for (Metric metric = METRIC_HTTP_2XX; metric <= METRIC_HTTP_5XX; metric++)
        sample.requests += metric_value(metric);
    return sample;
}

/* The oldest sample that is not older than this many minutes; now when there is none. */
static Sample sample_ago(const Alerts *alerts, Sample now, int minutes)
{
    Sample found = now;

    for (int i = 1; i <= alerts->sample_count; i++) {
        const Sample *sample = &alerts->samples[(alerts->sample_next + MINUTES + 1 - i) % (MINUTES + 1)];

        if (mono_ms_between(sample->at, now.at) > minutes * MINUTE_MS)
            break;
        found = *sample;
    }
    return found;
}

static void sample_keep(Alerts *alerts, Sample now)
{
    const Sample *last = &alerts->samples[(alerts->sample_next + MINUTES) % (MINUTES + 1)];

    if (alerts->sample_count > 0 && mono_ms_between(last->at, now.at) < MINUTE_MS)
        return;
    alerts->samples[alerts->sample_next] = now;
    alerts->sample_next                  = (alerts->sample_next + 1) % (MINUTES + 1);
    if (alerts->sample_count <= MINUTES)
        alerts->sample_count++;
}

/* ---- the conditions: each gives the value that is compared with its limit ---- */

/* Rounded up: 90.1 % is more than 90. */
static int64_t percent(int64_t part, int64_t whole)
{
    return (part * 100 + whole - 1) / whole;
}

static int64_t pool_percent(const Alerts *alerts, Sample now)
{
    int64_t max = metric_value(METRIC_POOL_MAX);

    (void)alerts;
    (void)now;
    return max ? percent(metric_value(METRIC_POOL_IN_USE), max) : 0;
}

static int64_t failing_percent(const Alerts *alerts, Sample now)
{
    Sample  then     = sample_ago(alerts, now, MINUTES);
    int64_t requests = now.requests - then.requests;

    return requests >= REQUESTS_LEAST ? percent(now.failed - then.failed, requests) : 0;
}

static int64_t breaker_open(const Alerts *alerts, Sample now)
{
    (void)alerts;
    (void)now;
    return metric_value(METRIC_BREAKER_STATE) != BREAKER_CLOSED;
}

typedef int64_t AlertValue(const Alerts *alerts, Sample now);
static const struct {
    const char *name, *unit;
    int64_t     limit; /* fires above it */
    bool        is_shared;
    AlertValue *value; /* NULL: what `source` says */
    Metric      source;
    Metric      metric;
    const char *summary;
} rows[ALERT_COUNT] = {
    [ALERT_POOL]    = {"pool-nearly-full", "%", 90, false, pool_percent, .metric = METRIC_ALERT_POOL,
                       .summary =
                           "most of the pool's connections are in use: look for slow statements, or raise PAWL_POOL_MAX"},
    [ALERT_FAILING] = {"requests-failing", "%", 10, false, failing_percent, .metric = METRIC_ALERT_FAILING,
                       .summary = "too many requests of the last 5 minutes failed: see the log"},
    [ALERT_HANDLERS] =
        {"handlers-failing", "%", 10, true, NULL, METRIC_HANDLERS_FAILING, METRIC_ALERT_HANDLERS,
                       "too many handlers of the last 5 minutes failed, over all workers: see their logs and pawl tsq list"},
    [ALERT_DLQ]        = {"dead-letters", "", 100, true, NULL, METRIC_DLQ_SIZE, METRIC_ALERT_DLQ,
                       "too many dead letters wait: see pawl dlq list"},
    [ALERT_DLQ_FAILED] = {"dead-letters-failed", "", 0, true, NULL, METRIC_DLQ_FAILED, METRIC_ALERT_DLQ_FAILED,
                       "the tries of some dead letters are exhausted: see pawl dlq list --status failed"},
    [ALERT_TROUBLE]    = {"troubleshooting", "", 0, true, NULL, METRIC_TROUBLE, METRIC_ALERT_TROUBLE,
                       "commands wait for an operator: see pawl tsq list"},
    [ALERT_WAITING]    = {"commands-waiting", "s", 300, true, NULL, METRIC_READY_AGE, METRIC_ALERT_WAITING,
                       "a command has been queued for too long: start more workers for its domain"},
    [ALERT_BATCH]      = {"batch-abandoned", "s", 86400, true, NULL, METRIC_BATCH_IDLE, METRIC_ALERT_BATCH,
                       "an open batch has had no new command for more than a day: seal it, or PAWL_BATCH_EXPIRY does"},
    [ALERT_LEDGER]     = {"ledger-clock", "s", 5, true, NULL, METRIC_LEDGER_AHEAD, METRIC_ALERT_LEDGER,
                       "transactions of the ledger are dated after the database's clock, which was set back: check the "
                              "server's time source"},
    [ALERT_BREAKER]    = {"breaker-open", "", 0, false, breaker_open, .metric = METRIC_ALERT_BREAKER,
                       .summary = "the database does not answer and calls are refused at once: see pawl doctor"},
    [ALERT_RATE]       = {"rate-limited", "/h", 10, true, NULL, METRIC_RATE_LIMITED_HOUR, METRIC_ALERT_RATE,
                       "peers told pawl to slow down too often within an hour, over all processes"},
};

/* ---- states ---- */

Alerts *alerts_new(AlertListener *listener, void *context)
{
    Alerts *alerts = calloc(1, sizeof *alerts);

    if (!alerts)
        abort();
    alerts->listener = listener;
    alerts->context  = context;
    mutex_init(&alerts->mutex);
    for (int i = 0; i < ALERT_COUNT; i++)
        alerts->list[i] = (Alert){.name      = rows[i].name,
                                  .summary   = rows[i].summary,
                                  .unit      = rows[i].unit,
                                  .limit     = rows[i].limit,
                                  .is_shared = rows[i].is_shared};
    return alerts;
}

void alerts_limit(Alerts *alerts, AlertId id, int64_t limit)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&alerts->mutex);

    alerts->list[id].limit = limit;
}

void alerts_free(Alerts *alerts)
{
    mutex_done(&alerts->mutex);
    free(alerts);
}

static void alert_notify(const Alerts *alerts, const Alert *alert)
{
    log_write(alert->firing ? LOG_ERROR : LOG_INFO, "alert", alert->firing ? "alert is firing" : "alert is resolved",
              LOG_STR("alert", alert->name), LOG_INT("value", alert->value), LOG_INT("limit", alert->limit),
              LOG_STR("meaning", alert->summary));
    if (alerts->listener)
        alerts->listener(alerts->context, alert);
}

/* true: the state changed; *ret_alert is a copy to tell. */
static bool alert_check(Alerts *alerts, int i, Sample now, Alert *ret_alert)
{
    scoped(mutex_unlock) Mutex *held  = mutex_hold(&alerts->mutex);
    Alert                      *alert = &alerts->list[i];
    bool                        above;

    alert->value    = rows[i].value ? rows[i].value(alerts, now) : metric_value(rows[i].source);
    above           = alert->value > alert->limit;
    alerts->calm[i] = above ? 0 : alerts->calm[i] + 1;
    if (alert->firing ? alerts->calm[i] < CALM_CHECKS : !above)
        return false;
    alert->firing = !alert->firing;
    alert->since  = clock_wall();
    metric_set(rows[i].metric, alert->firing);
    *ret_alert = *alert;
    return true;
}

void alerts_step(Alerts *alerts)
{
    Sample now = sample_now();

    sample_keep(alerts, now);
    for (int i = 0; i < ALERT_COUNT; i++) {
        Alert changed;

        if (alert_check(alerts, i, now, &changed))
            alert_notify(alerts, &changed);
    }
}

void alerts_list(Alerts *alerts, Alert ret_list[ALERT_COUNT])
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&alerts->mutex);

    memcpy(ret_list, alerts->list, sizeof alerts->list);
}

void alert_write(const Alert *alert, Text *text)
{
    Writer writer;

    writer_open(&writer, text);
    writer_object(&writer, NULL);
    writer_text(&writer, "alert", alert->name);
    writer_text(&writer, "state", alert->firing ? "firing" : alert->since.us ? "resolved" : "ok");
    writer_time(&writer, "since", alert->since.us);
    writer_i64(&writer, "value", alert->value);
    writer_i64(&writer, "limit", alert->limit);
    writer_text(&writer, "unit", alert->unit);
    writer_text(&writer, "summary", alert->summary);
    writer_end(&writer);
}
