/*
 * metric.h - what the house counts: one table, relaxed atomics, readable at any time.
 *
 * A row: identifier, kind, name, label ("" or one pair as Prometheus writes it), help. Rows with the same name stand
 * together and differ in their label. Every room counts here; only ops reads. A histogram has fixed buckets in
 * microseconds and is exported in seconds.
 *
 * Threads: any. A counter only grows; a gauge is set or moved; nothing is ever reset.
 */
#ifndef BASE_METRIC_H
#define BASE_METRIC_H

#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"

/* clang-format off */
#define METRICS(X)                                                                                                     \
    X(METRIC_POOL_SIZE,        GAUGE,     "pawl_pool_connections",          "",                 "connections open or being opened")    \
    X(METRIC_POOL_MIN,         GAUGE,     "pawl_pool_connections_min",      "",                 "connections kept open once used")     \
    X(METRIC_POOL_MAX,         GAUGE,     "pawl_pool_connections_max",      "",                 "most connections the pool may open")  \
    X(METRIC_POOL_IN_USE,      GAUGE,     "pawl_pool_in_use",               "",                 "connections leased right now")        \
    X(METRIC_POOL_WAITING,     GAUGE,     "pawl_pool_waiting",              "",                 "callers waiting for a connection")    \
    X(METRIC_POOL_WAIT_FAILED, COUNTER,   "pawl_pool_wait_timeouts_total",  "",                 "callers that got no connection inside their deadline") \
    X(METRIC_CONNECT_OK,       COUNTER,   "pawl_connects_total",            "outcome=\"ok\"",     "connections opened, by outcome")   \
    X(METRIC_CONNECT_FAILED,   COUNTER,   "pawl_connects_total",            "outcome=\"failed\"", "connections opened, by outcome")   \
    X(METRIC_CONN_LOST,        COUNTER,   "pawl_connections_lost_total",    "",                 "connections lost while in use or found sick") \
    X(METRIC_POOL_RENEWED,     COUNTER,   "pawl_pool_renewals_total",       "",                 "whole pools renewed because most connections were sick") \
    X(METRIC_BREAKER_STATE,    GAUGE,     "pawl_breaker_state",             "",                 "0 closed, 1 half-open, 2 open")       \
    X(METRIC_BREAKER_OPENED,   COUNTER,   "pawl_breaker_opened_total",      "",                 "times the breaker opened")            \
    X(METRIC_BREAKER_REFUSED,  COUNTER,   "pawl_breaker_refused_total",     "",                 "calls refused at once because the breaker was open") \
    X(METRIC_TX_OK,            COUNTER,   "pawl_transactions_total",        "outcome=\"ok\"",     "transactions, by outcome")         \
    X(METRIC_TX_FAILED,        COUNTER,   "pawl_transactions_total",        "outcome=\"failed\"", "transactions, by outcome")         \
    X(METRIC_RETRY,            COUNTER,   "pawl_retries_total",             "",                 "transactions run again")              \
    X(METRIC_RETRY_OK,         COUNTER,   "pawl_retries_succeeded_total",   "",                 "transactions that succeeded after being run again") \
    X(METRIC_RESOLVED,         COUNTER,   "pawl_commits_resolved_total",    "",                 "lost commit answers resolved by their key") \
    X(METRIC_QUERY_SECONDS,    HISTOGRAM, "pawl_query_seconds",             "",                 "time of one statement, as seen by the client") \
    X(METRIC_LOG_LEFT_OUT,     COUNTER,   "pawl_log_lines_left_out_total",  "",                 "log lines dropped because standard error was blocked") \
    X(METRIC_LISTEN_UP,        GAUGE,     "pawl_listen_up",                 "",                 "1 while notifications arrive, 0 while polling alone") \
    X(METRIC_DLQ_SIZE,         GAUGE,     "pawl_dead_letters",              "",                 "dead letters that are pending, retrying or failed") \
    X(METRIC_DLQ_FAILED,       GAUGE,     "pawl_dead_letters_failed",       "",                 "dead letters whose tries are exhausted") \
    X(METRIC_DLQ_RETRY_OK,     COUNTER,   "pawl_dead_letter_retries_total", "outcome=\"ok\"",     "dead letters retried, by outcome") \
    X(METRIC_DLQ_RETRY_FAILED, COUNTER,   "pawl_dead_letter_retries_total", "outcome=\"failed\"", "dead letters retried, by outcome") \
    X(METRIC_SENT_NEW,         COUNTER,   "pawl_commands_sent_total",           "outcome=\"new\"",              "commands sent from this process, by outcome") \
    X(METRIC_SENT_KNOWN,       COUNTER,   "pawl_commands_sent_total",           "outcome=\"known\"",            "commands sent from this process, by outcome") \
    X(METRIC_SENT_REFUSED,     COUNTER,   "pawl_commands_sent_total",           "outcome=\"refused\"",          "commands sent from this process, by outcome") \
    X(METRIC_CLAIMED,          COUNTER,   "pawl_commands_claimed_total",        "",                             "commands leased to workers by this process") \
    X(METRIC_SETTLED_COMPLETED, COUNTER,   "pawl_commands_settled_total",        "outcome=\"completed\"",        "commands settled by this process, by outcome; lost: the lease had expired") \
    X(METRIC_SETTLED_RETRIED,  COUNTER,   "pawl_commands_settled_total",        "outcome=\"retried\"",          "commands settled by this process, by outcome; lost: the lease had expired") \
    X(METRIC_SETTLED_FAILED,   COUNTER,   "pawl_commands_settled_total",        "outcome=\"failed\"",           "commands settled by this process, by outcome; lost: the lease had expired") \
    X(METRIC_SETTLED_REJECTED, COUNTER,   "pawl_commands_settled_total",        "outcome=\"rejected\"",         "commands settled by this process, by outcome; lost: the lease had expired") \
    X(METRIC_SETTLED_LOST,     COUNTER,   "pawl_commands_settled_total",        "outcome=\"lost\"",             "commands settled by this process, by outcome; lost: the lease had expired") \
    X(METRIC_HANDLERS,         GAUGE,     "pawl_handlers_running",              "",                             "handlers running in this process") \
    X(METRIC_SEND_CALLS,       COUNTER,   "pawl_bus_calls_total",               "call=\"send\"",                "database calls that sent or settled; commands per call show the effect of combining") \
    X(METRIC_SETTLE_CALLS,     COUNTER,   "pawl_bus_calls_total",               "call=\"settle\"",              "database calls that sent or settled; commands per call show the effect of combining") \
    X(METRIC_NOTIFICATIONS_SENT,       COUNTER,   "pawl_wakeups_total",                 "direction=\"sent\"",           "notifications to workers that a domain has work") \
    X(METRIC_NOTIFICATIONS_RECEIVED,   COUNTER,   "pawl_wakeups_total",                 "direction=\"received\"",       "notifications to workers that a domain has work") \
    X(METRIC_READY,            GAUGE,     "pawl_commands",                      "state=\"ready\"",              "commands by state; troubleshooting is counted up to 10000, the others are estimates; kept by monitors") \
    X(METRIC_DELAYED,          GAUGE,     "pawl_commands",                      "state=\"delayed\"",            "commands by state; troubleshooting is counted up to 10000, the others are estimates; kept by monitors") \
    X(METRIC_LEASED,           GAUGE,     "pawl_commands",                      "state=\"leased\"",             "commands by state; troubleshooting is counted up to 10000, the others are estimates; kept by monitors") \
    X(METRIC_TROUBLE,          GAUGE,     "pawl_commands",                      "state=\"troubleshooting\"",    "commands by state; troubleshooting is counted up to 10000, the others are estimates; kept by monitors") \
    X(METRIC_READY_AGE,        GAUGE,     "pawl_commands_oldest_ready_seconds", "",                             "age of the command that has been queued for longest; kept by monitors") \
    X(METRIC_BATCH_IDLE,       GAUGE,     "pawl_batches_open_idle_seconds",     "",                             "how long an open batch has had no new command; kept by monitors") \
    X(METRIC_RATE_LIMITED,     COUNTER,   "pawl_rate_limited_total",        "",                 "answers 429 from peers")   \
    X(METRIC_RATE_LIMITED_HOUR, GAUGE,    "pawl_rate_limited_last_hour",    "",                 "answers 429 from peers to all processes within an hour; kept by monitors") \
    X(METRIC_HANDLERS_FAILING, GAUGE,     "pawl_handlers_failing_percent",  "",                 "handlers of all processes that failed within 5 minutes, of 20 at least; kept by monitors") \
    X(METRIC_HTTP_1XX,         COUNTER,   "pawl_http_requests_total",       "code=\"1xx\"",     "requests answered, by class of status") \
    X(METRIC_HTTP_2XX,         COUNTER,   "pawl_http_requests_total",       "code=\"2xx\"",     "requests answered, by class of status") \
    X(METRIC_HTTP_3XX,         COUNTER,   "pawl_http_requests_total",       "code=\"3xx\"",     "requests answered, by class of status") \
    X(METRIC_HTTP_4XX,         COUNTER,   "pawl_http_requests_total",       "code=\"4xx\"",     "requests answered, by class of status") \
    X(METRIC_HTTP_5XX,         COUNTER,   "pawl_http_requests_total",       "code=\"5xx\"",     "requests answered, by class of status") \
    X(METRIC_HTTP_QUEUE,       GAUGE,     "pawl_http_queue",                "",                 "requests waiting for an executor")    \
    X(METRIC_HTTP_SHED,        COUNTER,   "pawl_http_shed_total",           "",                 "requests refused because the queue was full") \
    X(METRIC_HTTP_CONNECTIONS, GAUGE,     "pawl_http_connections",          "",                 "client connections open")             \
    X(METRIC_HTTP_SECONDS,     HISTOGRAM, "pawl_http_request_seconds",      "",                 "time from request read to answer ready") \
    X(METRIC_ALERT_POOL,       GAUGE,     "pawl_alert_firing",              "alert=\"pool-nearly-full\"",  "1 while the alert is firing") \
    X(METRIC_ALERT_FAILING,    GAUGE,     "pawl_alert_firing",              "alert=\"requests-failing\"",  "1 while the alert is firing") \
    X(METRIC_ALERT_HANDLERS,   GAUGE,     "pawl_alert_firing",              "alert=\"handlers-failing\"",  "1 while the alert is firing") \
    X(METRIC_ALERT_DLQ,        GAUGE,     "pawl_alert_firing",              "alert=\"dead-letters\"",      "1 while the alert is firing") \
    X(METRIC_ALERT_DLQ_FAILED, GAUGE,     "pawl_alert_firing",              "alert=\"dead-letters-failed\"", "1 while the alert is firing") \
    X(METRIC_ALERT_TROUBLE,    GAUGE,     "pawl_alert_firing",              "alert=\"troubleshooting\"",   "1 while the alert is firing") \
    X(METRIC_ALERT_WAITING,    GAUGE,     "pawl_alert_firing",              "alert=\"commands-waiting\"",  "1 while the alert is firing") \
    X(METRIC_ALERT_BATCH,      GAUGE,     "pawl_alert_firing",              "alert=\"batch-abandoned\"",   "1 while the alert is firing") \
    X(METRIC_ALERT_LEDGER,     GAUGE,     "pawl_alert_firing",              "alert=\"ledger-clock\"",      "1 while the alert is firing") \
    X(METRIC_ALERT_BREAKER,    GAUGE,     "pawl_alert_firing",              "alert=\"breaker-open\"",      "1 while the alert is firing") \
    X(METRIC_ALERT_RATE,       GAUGE,     "pawl_alert_firing",              "alert=\"rate-limited\"",      "1 while the alert is firing") \
    X(METRIC_WEBHOOK_OK,       COUNTER,   "pawl_webhooks_total",            "outcome=\"ok\"",     "webhooks sent, by outcome") \
    X(METRIC_WEBHOOK_FAILED,   COUNTER,   "pawl_webhooks_total",            "outcome=\"failed\"", "webhooks sent, by outcome") \
    X(METRIC_LEDGER_POSTED,    COUNTER,   "pawl_ledger_operations_total",   "outcome=\"posted\"",   "operations of the ledger, by outcome") \
    X(METRIC_LEDGER_REFUSED,   COUNTER,   "pawl_ledger_operations_total",   "outcome=\"refused\"",  "operations of the ledger, by outcome") \
    X(METRIC_LEDGER_REPLAYED,  COUNTER,   "pawl_ledger_operations_total",   "outcome=\"replayed\"", "operations of the ledger, by outcome") \
    X(METRIC_LEDGER_AHEAD,     GAUGE,     "pawl_ledger_clock_ahead_seconds", "",                    "by how much the newest transactions of the ledger are ahead of the database's clock; kept by monitors")
/* clang-format on */

#define X(id, ...) id,
typedef enum { METRICS(X) METRIC_COUNT } Metric;
#undef X
typedef enum { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM } MetricKind;

typedef struct {
    const char *id;
    MetricKind  kind;
    const char *name;
    const char *label;
    const char *help;
} MetricRow;
extern const MetricRow metric_rows[METRIC_COUNT];

/* Upper bounds of the histogram buckets; one more bucket holds the rest. */
#define METRIC_BUCKETS 16
extern const int64_t metric_bounds_us[METRIC_BUCKETS];
/* Of a value; METRIC_BUCKETS: above all bounds. */
size_t metric_bucket(int64_t us);
typedef struct {
    int64_t buckets[METRIC_BUCKETS + 1]; /* not cumulative */
    int64_t count;
    int64_t sum_us;
} MetricHistogram;

void    metric_add(Metric metric, int64_t amount); /* counters: amount >= 0; gauges: any */
void    metric_set(Metric metric, int64_t value);  /* gauges */
void    metric_observe_us(Metric metric, int64_t us);
int64_t metric_value(Metric metric); /* counters and gauges */
void    metric_histogram(Metric metric, MetricHistogram *ret_histogram);

#endif
