/*
 * metric.h - what the bot's transport counts.
 */
#ifndef TELEGRAM_METRIC_H
#define TELEGRAM_METRIC_H

#include "base/metric.h"

/* clang-format off */
#define TELEGRAM_METRICS(X) \
    X(updates_new,       COUNTER, "pawl_telegram_updates_total",   "outcome=\"new\"",        "updates received by this pod, by outcome; known: delivered before; noted: no command, of which at most the author is stored") \
    X(updates_known,     COUNTER, "pawl_telegram_updates_total",   "outcome=\"known\"",      "updates received by this pod, by outcome; known: delivered before; noted: no command, of which at most the author is stored") \
    X(updates_noted,     COUNTER, "pawl_telegram_updates_total",   "outcome=\"noted\"",      "updates received by this pod, by outcome; known: delivered before; noted: no command, of which at most the author is stored") \
    X(updates_malformed, COUNTER, "pawl_telegram_updates_total",   "outcome=\"malformed\"",  "updates received by this pod, by outcome; known: delivered before; noted: no command, of which at most the author is stored") \
    X(handled,           COUNTER, "pawl_telegram_handled_total",   "outcome=\"done\"",       "updates handled by this pod, by outcome; conflict: another update changed the same rows, so it was retried") \
    X(handled_conflict,  COUNTER, "pawl_telegram_handled_total",   "outcome=\"conflict\"",   "updates handled by this pod, by outcome; conflict: another update changed the same rows, so it was retried") \
    X(handled_failed,    COUNTER, "pawl_telegram_handled_total",   "outcome=\"failed\"",     "updates handled by this pod, by outcome; conflict: another update changed the same rows, so it was retried") \
    X(sent,              COUNTER, "pawl_telegram_messages_total",  "outcome=\"sent\"",       "messages of the bot, by outcome; full: refused because the outbox was full") \
    X(sent_refused,      COUNTER, "pawl_telegram_messages_total",  "outcome=\"refused\"",    "messages of the bot, by outcome; full: refused because the outbox was full") \
    X(sent_retried,      COUNTER, "pawl_telegram_messages_total",  "outcome=\"retried\"",    "messages of the bot, by outcome; full: refused because the outbox was full") \
    X(sent_limited,      COUNTER, "pawl_telegram_messages_total",  "outcome=\"limited\"",    "messages of the bot, by outcome; full: refused because the outbox was full") \
    X(sent_dropped,      COUNTER, "pawl_telegram_messages_total",  "outcome=\"full\"",       "messages of the bot, by outcome; full: refused because the outbox was full") \
    X(outbox,            GAUGE,   "pawl_telegram_outbox",          "",                       "messages that wait to be sent; set in the pod that polls") \
    X(polling,           GAUGE,   "pawl_telegram_polling",         "",                       "1 in the pod that polls, or that registered the webhook") \
    X(conflicts,         COUNTER, "pawl_telegram_conflicts_total", "",                       "polls that ended with 409, because another program polls with the same token") \
    X(conflicts_recent,  GAUGE,   "pawl_telegram_conflicts",       "",                       "polls of this pod that ended with 409 within the last 10 minutes")
/* clang-format on */

typedef struct {
    TELEGRAM_METRICS(METRIC_FIELD)
} TelegramMetrics;
extern TelegramMetrics telegram_metrics;

#endif
