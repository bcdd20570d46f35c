/*
 * metric.h - what senders, workers and monitors of the bus count. Workers also count by domain.
 */
#ifndef BUS_METRIC_H
#define BUS_METRIC_H

#include "base/metric.h"

/* clang-format off */
#define BUS_METRICS(X) \
    X(dead_letters,             GAUGE,     "pawl_dead_letters",                  "",                          "dead letters that are pending, retrying or failed") \
    X(dead_letters_failed,      GAUGE,     "pawl_dead_letters_failed",           "",                          "dead letters whose tries are exhausted") \
    X(dead_letter_retry_ok,     COUNTER,   "pawl_dead_letter_retries_total",     "outcome=\"ok\"",            "dead letters retried, by outcome") \
    X(dead_letter_retry_failed, COUNTER,   "pawl_dead_letter_retries_total",     "outcome=\"failed\"",        "dead letters retried, by outcome") \
    X(sent_new,                 COUNTER,   "pawl_commands_sent_total",           "outcome=\"new\"",           "commands sent from this pod, by outcome") \
    X(sent_known,               COUNTER,   "pawl_commands_sent_total",           "outcome=\"known\"",         "commands sent from this pod, by outcome") \
    X(sent_refused,             COUNTER,   "pawl_commands_sent_total",           "outcome=\"refused\"",       "commands sent from this pod, by outcome") \
    X(claimed,                  COUNTER,   "pawl_commands_claimed_total",        "",                          "commands leased to workers by this pod") \
    X(started,                  COUNTER,   "pawl_commands_started_total",        "",                          "commands leased to workers by this pod in the transaction that sent them, without a claim; also counted as claimed") \
    X(settled_completed,        COUNTER,   "pawl_commands_settled_total",        "outcome=\"completed\"",     "commands settled by this pod, by outcome; canceled: it was canceled meanwhile; lost: the lease had expired") \
    X(settled_retried,          COUNTER,   "pawl_commands_settled_total",        "outcome=\"retried\"",       "commands settled by this pod, by outcome; canceled: it was canceled meanwhile; lost: the lease had expired") \
    X(settled_failed,           COUNTER,   "pawl_commands_settled_total",        "outcome=\"failed\"",        "commands settled by this pod, by outcome; canceled: it was canceled meanwhile; lost: the lease had expired") \
    X(settled_rejected,         COUNTER,   "pawl_commands_settled_total",        "outcome=\"rejected\"",      "commands settled by this pod, by outcome; canceled: it was canceled meanwhile; lost: the lease had expired") \
    X(settled_snoozed,          COUNTER,   "pawl_commands_settled_total",        "outcome=\"snoozed\"",      "commands settled by this pod, by outcome; canceled: it was canceled meanwhile; lost: the lease had expired") \
    X(settled_canceled,         COUNTER,   "pawl_commands_settled_total",        "outcome=\"canceled\"",      "commands settled by this pod, by outcome; canceled: it was canceled meanwhile; lost: the lease had expired") \
    X(settled_lost,             COUNTER,   "pawl_commands_settled_total",        "outcome=\"lost\"",          "commands settled by this pod, by outcome; canceled: it was canceled meanwhile; lost: the lease had expired") \
    X(outcome_waits,            GAUGE,     "pawl_outcome_waits",                 "",                          "clients of this pod that wait for the end of a command or process") \
    X(outcome_polls,            COUNTER,   "pawl_outcome_polls_total",           "",                          "database calls that asked which of the commands and processes that clients wait for have ended") \
    X(handlers_running,         GAUGE,     "pawl_handlers_running",              "",                          "handlers running in this pod") \
    X(send_calls,               COUNTER,   "pawl_bus_calls_total",               "call=\"send\"",             "database calls that sent, settled, requeued, reported progress or ran several handlers; commands per call show the effect of combining") \
    X(settle_calls,             COUNTER,   "pawl_bus_calls_total",               "call=\"settle\"",           "database calls that sent, settled, requeued, reported progress or ran several handlers; commands per call show the effect of combining") \
    X(requeue_calls,            COUNTER,   "pawl_bus_calls_total",               "call=\"requeue\"",          "database calls that sent, settled, requeued, reported progress or ran several handlers; commands per call show the effect of combining") \
    X(progress_calls,           COUNTER,   "pawl_bus_calls_total",               "call=\"progress\"",         "database calls that sent, settled, requeued, reported progress or ran several handlers; commands per call show the effect of combining") \
    X(shared_calls,             COUNTER,   "pawl_bus_calls_total",               "call=\"handle\"",           "database calls that sent, settled, requeued, reported progress or ran several handlers; commands per call show the effect of combining") \
    X(shared_undone,            COUNTER,   "pawl_shared_undone_total",           "",                          "commands whose handler was undone in a transaction that it shared with others, and ran again alone") \
    X(progress_ignored,         COUNTER,   "pawl_progress_lines_ignored_total",  "",                          "lines that programs wrote to the descriptor for their progress and that are none") \
    X(notifications_sent,       COUNTER,   "pawl_wakeups_total",                 "direction=\"sent\"",        "notifications to workers that a domain has work") \
    X(notifications_received,   COUNTER,   "pawl_wakeups_total",                 "direction=\"received\"",    "notifications to workers that a domain has work") \
    X(ready,                    GAUGE,     "pawl_commands_all",                  "state=\"ready\"",           "commands of all domains by state, counted up to 10000; above that estimates, and 10000 in troubleshooting; set in pods with the role monitor") \
    X(delayed,                  GAUGE,     "pawl_commands_all",                  "state=\"delayed\"",         "commands of all domains by state, counted up to 10000; above that estimates, and 10000 in troubleshooting; set in pods with the role monitor") \
    X(parked,                   GAUGE,     "pawl_commands_all",                  "state=\"parked\"",          "commands of all domains by state, counted up to 10000; above that estimates, and 10000 in troubleshooting; set in pods with the role monitor") \
    X(leased,                   GAUGE,     "pawl_commands_all",                  "state=\"leased\"",          "commands of all domains by state, counted up to 10000; above that estimates, and 10000 in troubleshooting; set in pods with the role monitor") \
    X(troubleshooting,          GAUGE,     "pawl_commands_all",                  "state=\"troubleshooting\"", "commands of all domains by state, counted up to 10000; above that estimates, and 10000 in troubleshooting; set in pods with the role monitor") \
    X(oldest_ready_s,           GAUGE,     "pawl_commands_oldest_ready_seconds", "",                          "age of the command that has been queued for longest; set in pods with the role monitor") \
    X(batch_idle_s,             GAUGE,     "pawl_batches_open_idle_seconds",     "",                          "how long an open batch has had no new command; set in pods with the role monitor") \
    X(reply_queues_percent,     GAUGE,     "pawl_reply_queues_percent",          "",                          "queues that pawl created because a reply_to named them, in percent of PAWL_REPLY_QUEUES_MAX; set in pods with the role monitor") \
    X(retention_jump_s,         GAUGE,     "pawl_retention_jump_seconds",        "",                          "how far the clock had moved since the last retention when retention began to wait; 0: it does not wait; set in pods with the role monitor") \
    X(handlers_failing_percent, GAUGE,     "pawl_handlers_failing_percent",      "",                          "percentage of handlers in all pods and workers that failed within 5 minutes; 0 below 20 handlers; set in pods with the role monitor")
/* clang-format on */

typedef struct {
    BUS_METRICS(METRIC_FIELD)
} BusMetrics;
extern BusMetrics bus_metrics;

/* clang-format off */
#define WORKER_METRICS(X) \
    X(claims_won,       COUNTER,   "pawl_worker_claims_total",     "outcome=\"won\"",       "claims by workers of this pod: won if they got a command, else empty") \
    X(claims_empty,     COUNTER,   "pawl_worker_claims_total",     "outcome=\"empty\"",     "claims by workers of this pod: won if they got a command, else empty") \
    X(claim_seconds,    HISTOGRAM, "pawl_worker_claim_seconds",    "",                      "time of one claim, including waits for a connection and for locks") \
    X(completed,        COUNTER,   "pawl_worker_commands_total",   "outcome=\"completed\"", "commands handled by workers of this pod, by outcome") \
    X(retried,          COUNTER,   "pawl_worker_commands_total",   "outcome=\"retried\"",   "commands handled by workers of this pod, by outcome") \
    X(failed,           COUNTER,   "pawl_worker_commands_total",   "outcome=\"failed\"",    "commands handled by workers of this pod, by outcome") \
    X(rejected,         COUNTER,   "pawl_worker_commands_total",   "outcome=\"rejected\"",  "commands handled by workers of this pod, by outcome") \
    X(canceled,         COUNTER,   "pawl_worker_commands_total",   "outcome=\"canceled\"",  "commands handled by workers of this pod, by outcome") \
    X(lost,             COUNTER,   "pawl_worker_commands_total",   "outcome=\"lost\"",      "commands handled by workers of this pod, by outcome") \
    X(handlers_running, GAUGE,     "pawl_worker_handlers_running", "",                      "handlers running in workers of this pod") \
    X(handler_seconds,  HISTOGRAM, "pawl_worker_handler_seconds",  "",                      "time of one handler, without claim and settle")
/* clang-format on */

typedef struct {
    WORKER_METRICS(METRIC_FIELD)
} WorkerMetrics;

/* clang-format off */
#define DEPTH_METRICS(X) \
    X(ready,           GAUGE, "pawl_commands",                     "state=\"ready\"",           "commands of the 100 largest domains by state, the others summed as domain other; estimates where a domain has thousands; set in pods with the role monitor") \
    X(delayed,         GAUGE, "pawl_commands",                     "state=\"delayed\"",         "commands of the 100 largest domains by state, the others summed as domain other; estimates where a domain has thousands; set in pods with the role monitor") \
    X(parked,          GAUGE, "pawl_commands",                     "state=\"parked\"",          "commands of the 100 largest domains by state, the others summed as domain other; estimates where a domain has thousands; set in pods with the role monitor") \
    X(leased,          GAUGE, "pawl_commands",                     "state=\"leased\"",          "commands of the 100 largest domains by state, the others summed as domain other; estimates where a domain has thousands; set in pods with the role monitor") \
    X(troubleshooting, GAUGE, "pawl_commands",                     "state=\"troubleshooting\"", "commands of the 100 largest domains by state, the others summed as domain other; estimates where a domain has thousands; set in pods with the role monitor") \
    X(oldest_s,        GAUGE, "pawl_commands_oldest_seconds",       "",                          "age of the command that has been queued for longest, of the same domains; other: of all others; set in pods with the role monitor")
/* clang-format on */

typedef struct {
    DEPTH_METRICS(METRIC_FIELD)
} DepthMetrics;
/* By domain, as a monitor has read them last. */
extern MetricSnapshot bus_depths;

/* clang-format off */
#define DOMAIN_METRICS(X) \
    X(sent,      COUNTER,  "pawl_domain_commands_total", "event=\"sent\"",      "commands sent from this pod and ends of attempts that it settled, by domain; failed: now in troubleshooting") \
    X(completed, COUNTER,  "pawl_domain_commands_total", "event=\"completed\"", "commands sent from this pod and ends of attempts that it settled, by domain; failed: now in troubleshooting") \
    X(retried,   COUNTER,  "pawl_domain_commands_total", "event=\"retried\"",   "commands sent from this pod and ends of attempts that it settled, by domain; failed: now in troubleshooting") \
    X(failed,    COUNTER,  "pawl_domain_commands_total", "event=\"failed\"",    "commands sent from this pod and ends of attempts that it settled, by domain; failed: now in troubleshooting") \
    X(rejected,  COUNTER,  "pawl_domain_commands_total", "event=\"rejected\"",  "commands sent from this pod and ends of attempts that it settled, by domain; failed: now in troubleshooting") \
    X(wait,      DURATION, "pawl_domain_wait_seconds",   "",                    "time from send to claim of commands without a delay: of a sample of what this pod has claimed, measured once a minute") \
    X(run,       DURATION, "pawl_domain_run_seconds",    "",                    "time from claim to end of the attempts that ended commands: of the same sample")
/* clang-format on */

typedef struct {
    DOMAIN_METRICS(METRIC_FIELD)
} DomainMetrics;

/* Label "domain": metric_series(&domain_metric_table, "shop") gives the DomainMetrics of a domain. */
extern const MetricTable domain_metric_table;

/* Label "domain": metric_series(&worker_metric_table, "shop") gives the WorkerMetrics of a domain. */
extern const MetricTable worker_metric_table;

#endif
