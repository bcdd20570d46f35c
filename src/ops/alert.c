/*
 * alert.c - see alert.h.
 */
#include "ops/alert.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/sync.h"
#include "base/writer.h"
#include "ops/metric.h"

#define MINUTE_MS   60000LL
#define MINUTES     5  /* of the window */
#define CALM_CHECKS 2  /* consecutive, before an alert is resolved */
#define RATE_LEAST  20 /* of fewer events in the window no rate is computed */

/* A rule's two counters at one moment. */
typedef struct {
    Mono    at;
    int64_t part, of;
} Sample;

/* One sample per minute in a ring; the oldest is overwritten. */
typedef struct {
    Sample samples[MINUTES + 1];
    int    count, next;
} AlertWindow;

typedef struct {
    Alert         alert;
    int           calm; /* consecutive values at or below the limit */
    AlertWindow   window;
    AlertMetrics *metrics;
} AlertState;

struct Alerts {
    AlertListener *listener;
    void          *context;
    Mutex          mutex; /* guards the alerts in states; the rest belongs to the stepping thread */
    int            count;
    AlertState     states[ALERTS_MAX];
};

/* ---- rates ---- */

/* The oldest sample that is at most this many minutes old; now if there is none. */
static Sample window_oldest(const AlertWindow *window, Sample now, int minutes)
{
    Sample found = now;

    for (int i = 1; i <= window->count; i++) {
        const Sample *sample = &window->samples[(window->next + MINUTES + 1 - i) % (MINUTES + 1)];

        if (mono_ms_between(sample->at, now.at) > minutes * MINUTE_MS)
            break;
        found = *sample;
    }
    return found;
}

static void window_keep(AlertWindow *window, Sample now)
{
    const Sample *last = &window->samples[(window->next + MINUTES) % (MINUTES + 1)];

    if (window->count > 0 && mono_ms_between(last->at, now.at) < MINUTE_MS)
        return;
    window->samples[window->next] = now;
    window->next                  = (window->next + 1) % (MINUTES + 1);
    if (window->count <= MINUTES)
        window->count++;
}

int64_t alert_percent(int64_t part, int64_t whole)
{
    return (part * 100 + whole - 1) / whole;
}

static int64_t rate_value(AlertState *state)
{
    Sample now = {.at = clock_mono()}, then;

    state->alert.rule->rate(&now.part, &now.of);
    window_keep(&state->window, now);
    then = window_oldest(&state->window, now, MINUTES);
    return now.of - then.of >= RATE_LEAST ? alert_percent(now.part - then.part, now.of - then.of) : 0;
}

/* ---- states ---- */

Alerts *alerts_new(const AlertRule *rules, int count, AlertListener *listener, void *context)
{
    Alerts *alerts = memory_new(1, sizeof *alerts);

    assert(count <= ALERTS_MAX);
    alerts->listener = listener;
    alerts->context  = context;
    alerts->count    = count;
    mutex_init(&alerts->mutex);
    for (int i = 0; i < count; i++) {
        assert((rules[i].source != NULL) + (rules[i].value != NULL) + (rules[i].rate != NULL) == 1);
        alerts->states[i].alert   = (Alert){.rule = &rules[i], .limit = rules[i].limit};
        alerts->states[i].metrics = metric_series(&alert_metric_table, rules[i].name);
    }
    return alerts;
}

void alerts_limit(Alerts *alerts, int index, int64_t limit)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&alerts->mutex);

    alerts->states[index].alert.limit = limit;
}

void alerts_subject(Alerts *alerts, int index, const char *subject)
{
    scoped(mutex_unlock) Mutex *held  = mutex_hold(&alerts->mutex);
    Alert                      *alert = &alerts->states[index].alert;

    snprintf(alert->subject, sizeof alert->subject, "%s", subject);
}

void alerts_free(Alerts *alerts)
{
    mutex_done(&alerts->mutex);
    free(alerts);
}

/* "...: pawl doctor says why; the oldest is in domain (shop)" */
static void summary_print(const Alert *alert, Text *text)
{
    text_append(text, alert->rule->summary);
    if (alert->subject[0])
        text_print(text, " (%s)", alert->subject);
}

static void alert_notify(const Alerts *alerts, const Alert *alert)
{
    scoped_text Text summary = {0};

    text_init(&summary, NULL, TEXT_MAX_LINE);
    summary_print(alert, &summary);
    log_write(alert->firing ? LOG_ERROR : LOG_INFO, "alert", alert->firing ? "alert is firing" : "alert is resolved",
              LOG_STR("alert", alert->rule->name), LOG_INT("value", alert->value), LOG_INT("limit", alert->limit),
              LOG_STR("meaning", text_string(&summary)));
    if (alerts->listener)
        alerts->listener(alerts->context, alert);
}

static int64_t alert_value(AlertState *state)
{
    const AlertRule *rule = state->alert.rule;

    if (rule->rate)
        return rate_value(state);
    return rule->source ? metric_value(rule->source) : rule->value();
}

/* true: the state changed; *ret_alert is a copy for the listener. */
static bool alert_check(Alerts *alerts, AlertState *state, Alert *ret_alert)
{
    int64_t                     value = alert_value(state);
    scoped(mutex_unlock) Mutex *held  = mutex_hold(&alerts->mutex);
    Alert                      *alert = &state->alert;
    bool                        above = value > alert->limit;

    alert->value = value;
    state->calm  = above ? 0 : state->calm + 1;
    if (alert->firing ? state->calm < CALM_CHECKS : !above)
        return false;
    alert->firing = !alert->firing;
    alert->since  = clock_wall();
    metric_set(&state->metrics->firing, alert->firing);
    *ret_alert = *alert;
    return true;
}

void alerts_step(Alerts *alerts)
{
    for (int i = 0; i < alerts->count; i++) {
        Alert changed;

        if (alert_check(alerts, &alerts->states[i], &changed))
            alert_notify(alerts, &changed);
    }
}

int alerts_list(Alerts *alerts, Alert ret_list[ALERTS_MAX])
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&alerts->mutex);

    for (int i = 0; i < alerts->count; i++)
        ret_list[i] = alerts->states[i].alert;
    return alerts->count;
}

void alert_write(const Alert *alert, Text *text)
{
    scoped_text Text summary = {0};
    Writer           writer;

    text_init(&summary, NULL, TEXT_MAX_LINE);
    summary_print(alert, &summary);
    writer_open(&writer, text);
    writer_object(&writer, NULL);
    writer_text(&writer, "alert", alert->rule->name);
    writer_text(&writer, "state", alert->firing ? "firing" : alert->since.us ? "resolved" : "ok");
    writer_time(&writer, "since", alert->since.us);
    writer_i64(&writer, "value", alert->value);
    writer_i64(&writer, "limit", alert->limit);
    writer_text(&writer, "unit", alert->rule->unit);
    writer_text(&writer, "summary", text_string(&summary));
    writer_end(&writer);
}
