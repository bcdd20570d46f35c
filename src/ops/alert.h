/*
 * alert.h - what wakes the night shift: a table of conditions over the metrics, each with a state.
 *
 *     OK -> FIRING    [alerts_step: the value is above its limit]
 *     FIRING -> OK    [alerts_step: two looks in a row found it at or below: "resolved"]
 *
 * Invariants
 *   1. Rates are taken over a window of minutes kept here; counters are never reset.
 *   2. A change of state is told once: to the log, to the metric, and to the listener (which may send a webhook).
 * Threads: alerts_step() from one thread, alerts_list() from any. Ownership: alerts_free().
 */
#ifndef OPS_ALERT_H
#define OPS_ALERT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/text.h"

typedef enum {
    ALERT_POOL,
    ALERT_FAILING,
    ALERT_HANDLERS,
    ALERT_DLQ,
    ALERT_DLQ_FAILED,
    ALERT_TROUBLE,
    ALERT_WAITING,
    ALERT_BATCH,
    ALERT_LEDGER,
    ALERT_BREAKER,
    ALERT_RATE,
    ALERT_COUNT
} AlertId;

typedef struct {
    const char *name;    /* "pool-nearly-full" */
    const char *summary; /* what it means and what to do */
    const char *unit;    /* "%" */
    bool        firing;
    bool        is_shared; /* about the database as a whole: every monitor sees it */
    int64_t     value, limit;
    Wall        since; /* of the state; 0: never changed */
} Alert;

typedef struct Alerts Alerts;
typedef void          AlertListener(void *context, const Alert *alert);

/* listener may be NULL; it is called on the thread of alerts_step(). */
Alerts *alerts_new(AlertListener *listener, void *context);
/* Another limit than the table's; before the first step. */
void alerts_limit(Alerts *alerts, AlertId id, int64_t limit);
void alerts_free(Alerts *alerts);
SCOPED(Alerts, alerts_free)
/* Look at the metrics now. Called every few seconds. */
void alerts_step(Alerts *alerts);
void alerts_list(Alerts *alerts, Alert ret_list[ALERT_COUNT]);
/* One alert as a JSON object, as /v1/alerts and webhooks show it. */
void alert_write(const Alert *alert, Text *text);

#endif
