/*
 * metric.h - what the pool, the breaker, transactions, statements and the listener count.
 */
#ifndef PG_METRIC_H
#define PG_METRIC_H

#include "base/metric.h"

/* clang-format off */
#define PG_METRICS(X) \
    X(pool_connections,   GAUGE,     "pawl_pool_connections",         "",                   "connections open or being opened") \
    X(pool_min,           GAUGE,     "pawl_pool_connections_min",     "",                   "connections kept open once used") \
    X(pool_max,           GAUGE,     "pawl_pool_connections_max",     "",                   "most connections the pool may open") \
    X(pool_in_use,        GAUGE,     "pawl_pool_in_use",              "",                   "connections checked out") \
    X(pool_waiting,       GAUGE,     "pawl_pool_waiting",             "",                   "callers waiting for a connection") \
    X(pool_wait_timeouts, COUNTER,   "pawl_pool_wait_timeouts_total", "",                   "callers that got no connection before their deadline") \
    X(connect_ok,         COUNTER,   "pawl_connects_total",           "outcome=\"ok\"",     "connections opened, by outcome") \
    X(connect_failed,     COUNTER,   "pawl_connects_total",           "outcome=\"failed\"", "connections opened, by outcome") \
    X(connections_lost,   COUNTER,   "pawl_connections_lost_total",   "",                   "connections lost while in use or found broken") \
    X(pool_renewed,       COUNTER,   "pawl_pool_renewals_total",      "",                   "whole pools renewed because most connections were broken") \
    X(processes_ended,    COUNTER,   "pawl_pool_processes_ended_total", "",                 "server processes ended because a function outlived its deadline") \
    X(breaker_state,      GAUGE,     "pawl_breaker_state",            "",                   "0 closed, 1 half-open, 2 open") \
    X(breaker_opened,     COUNTER,   "pawl_breaker_opened_total",     "",                   "times the breaker opened") \
    X(breaker_refused,    COUNTER,   "pawl_breaker_refused_total",    "",                   "calls refused without waiting because the breaker was open") \
    X(tx_ok,              COUNTER,   "pawl_transactions_total",       "outcome=\"ok\"",     "transactions, by outcome") \
    X(tx_failed,          COUNTER,   "pawl_transactions_total",       "outcome=\"failed\"", "transactions, by outcome") \
    X(retries,            COUNTER,   "pawl_retries_total",            "",                   "transactions run again") \
    X(retries_ok,         COUNTER,   "pawl_retries_succeeded_total",  "",                   "transactions that succeeded after being run again") \
    X(commits_resolved,   COUNTER,   "pawl_commits_resolved_total",   "",                   "commits whose response was lost, resolved by their key") \
    X(query_seconds,      HISTOGRAM, "pawl_query_seconds",            "",                   "time of one statement, as seen by the client") \
    X(listen_up,          GAUGE,     "pawl_listen_up",                "",                   "1 while notifications arrive, 0 while pawl only polls")
/* clang-format on */

typedef struct {
    PG_METRICS(METRIC_FIELD)
} PgMetrics;
extern PgMetrics pg_metrics;

#endif
