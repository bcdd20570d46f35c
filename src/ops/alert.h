/*
 * alert.h - alerts: rules over the metrics, each with a state.
 *
 *     OK -> FIRING    [alerts_step: the value is above its limit]
 *     FIRING -> OK    [alerts_step: two consecutive values at or below it: "resolved"]
 *
 * Invariants
 *   1. Rates are taken over a window of 5 minutes that is kept here; counters are never reset.
 *   2. Each change of state goes once to the log, to the metric pawl_alert_firing and to the listener (which may send a
 * webhook). Threads: alerts_step() from one thread, alerts_list() and alerts_subject() from any. Ownership:
 * alerts_free().
 */
#ifndef OPS_ALERT_H
#define OPS_ALERT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/metric.h"
#include "base/text.h"

#define ALERTS_MAX         32
#define ALERT_SUBJECT_SIZE 192

/* Exactly one of source, value and rate. */
typedef struct {
    const char   *name; /* "pool-nearly-full" */
    const char   *unit; /* "%" */
    int64_t       limit;
    bool          is_shared; /* about the database as a whole: every monitor computes the same value */
    const Metric *source;    /* the value is this metric's */
    int64_t (*value)(void);  /* the value is computed */
    void (*rate)(int64_t *part,
                 int64_t *of); /* two counters; the value is the percentage of the window's part, rounded up */
    const char *summary;       /* what it means and what to do */
} AlertRule;

typedef struct {
    const AlertRule *rule;
    bool             firing;
    int64_t          value, limit;
    Wall             since;                       /* of the state; 0: never changed */
    char             subject[ALERT_SUBJECT_SIZE]; /* what it is about, such as a domain; "": the rule says it all */
} Alert;

typedef struct Alerts Alerts;
typedef void          AlertListener(void *context, const Alert *alert);

/* rules: at most ALERTS_MAX, borrowed. listener may be NULL; it is called on the thread of alerts_step(). */
Alerts *alerts_new(const AlertRule *rules, int count, AlertListener *listener, void *context);
/* Replace a rule's limit; before the first step. */
void alerts_limit(Alerts *alerts, int index, int64_t limit);
/* What the alert is about; shown after its summary. A longer one is cut. */
void alerts_subject(Alerts *alerts, int index, const char *subject);
void alerts_free(Alerts *alerts);
SCOPED(Alerts, alerts_free)
/* Evaluate every rule; called every few seconds. */
void alerts_step(Alerts *alerts);
/* Returns how many there are, in the order of the rules. */
int alerts_list(Alerts *alerts, Alert ret_list[ALERTS_MAX]);
/* The percentage, rounded up: 90.1 % is more than 90. whole > 0. */
int64_t alert_percent(int64_t part, int64_t whole);
/* One alert as a JSON object, as /v1/alerts and webhooks show it. */
void alert_write(const Alert *alert, Text *text);

#endif
