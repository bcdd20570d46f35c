/*
 * metric.h - what the ledger counts.
 */
#ifndef WALLET_METRIC_H
#define WALLET_METRIC_H

#include "base/metric.h"

/* clang-format off */
#define WALLET_METRICS(X) \
    X(posted,        COUNTER,   "pawl_ledger_operations_total",    "outcome=\"posted\"",   "operations of the ledger, by outcome") \
    X(refused,       COUNTER,   "pawl_ledger_operations_total",    "outcome=\"refused\"",  "operations of the ledger, by outcome") \
    X(replayed,      COUNTER,   "pawl_ledger_operations_total",    "outcome=\"replayed\"", "operations of the ledger, by outcome") \
    X(clock_ahead_s, GAUGE,     "pawl_ledger_clock_ahead_seconds", "",                     "how far the newest transactions of the ledger are ahead of the database's clock; set in pods with the role monitor")
/* clang-format on */

typedef struct {
    WALLET_METRICS(METRIC_FIELD)
} WalletMetrics;
extern WalletMetrics wallet_metrics;

#endif
