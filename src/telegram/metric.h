/*
 * metric.h - what the bot's transport counts.
 */
#ifndef TELEGRAM_METRIC_H
#define TELEGRAM_METRIC_H

#include "base/metric.h"

/* clang-format off */
#define UPDATES_HELP \
    "updates received by this pod, by outcome; known: delivered before; noted: no command, of " \
    "which at most the author is stored"
#define HANDLED_HELP \
    "updates handled by this pod, by outcome; conflict: another update changed the same rows, " \
    "so it was retried"
#define MESSAGES_HELP \
    "messages of the bot, by outcome; full: refused because the outbox was full"
#define TELEGRAM_METRICS(X) \
    X(updates_new,       COUNTER, "pawl_telegram_updates_total",   "outcome=\"new\"",        UPDATES_HELP) \
    X(updates_known,     COUNTER, "pawl_telegram_updates_total",   "outcome=\"known\"",      UPDATES_HELP) \
    X(updates_noted,     COUNTER, "pawl_telegram_updates_total",   "outcome=\"noted\"",      UPDATES_HELP) \
    X(updates_malformed, COUNTER, "pawl_telegram_updates_total",   "outcome=\"malformed\"",  UPDATES_HELP) \
    X(handled,           COUNTER, "pawl_telegram_handled_total",   "outcome=\"done\"",       HANDLED_HELP) \
    X(handled_conflict,  COUNTER, "pawl_telegram_handled_total",   "outcome=\"conflict\"",   HANDLED_HELP) \
    X(handled_failed,    COUNTER, "pawl_telegram_handled_total",   "outcome=\"failed\"",     HANDLED_HELP) \
    X(sent,              COUNTER, "pawl_telegram_messages_total",  "outcome=\"sent\"",       MESSAGES_HELP) \
    X(sent_refused,      COUNTER, "pawl_telegram_messages_total",  "outcome=\"refused\"",    MESSAGES_HELP) \
    X(sent_retried,      COUNTER, "pawl_telegram_messages_total",  "outcome=\"retried\"",    MESSAGES_HELP) \
    X(sent_limited,      COUNTER, "pawl_telegram_messages_total",  "outcome=\"limited\"",    MESSAGES_HELP) \
    X(sent_dropped,      COUNTER, "pawl_telegram_messages_total",  "outcome=\"full\"",       MESSAGES_HELP) \
    X(outbox,            GAUGE,   "pawl_telegram_outbox",          "", \
      "messages that wait to be sent; set in the pod that polls") \
    X(polling,           GAUGE,   "pawl_telegram_polling",         "", \
      "1 in the pod that polls, or that registered the webhook") \
    X(conflicts,         COUNTER, "pawl_telegram_conflicts_total", "", \
      "polls that ended with 409, because another program polls with the same token") \
    X(conflicts_recent,  GAUGE,   "pawl_telegram_conflicts",       "", \
      "polls of this pod that ended with 409 within the last 10 minutes")
/* clang-format on */

typedef struct {
    TELEGRAM_METRICS(METRIC_FIELD)
} TelegramMetrics;
extern TelegramMetrics telegram_metrics;

#endif
