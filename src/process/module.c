/*
 * module.c - what module process contributes; see base/module.h.
 */
#include "base/module.h"

#include <string.h>

#include "bus/reserved_domain.h"
#include "process/metric.h"
#include "process/process.h"

static const ProcessMetrics process_metrics      = {PROCESS_METRICS(METRIC_INIT)};
const MetricTable           process_metric_table = METRIC_TABLE("domain", process_metrics);

ProcessMetrics *process_metrics_of(const char *queue)
{
    const char *colon = strchr(queue, ':');

    return metric_series(&process_metric_table, colon ? colon + 1 : queue);
}

/* Here, so that a program that names a status has the rows below. */
const char *const process_statuses[] = {"PENDING",           "IN_PROGRESS",       "WAITING_FOR_REPLY",
                                        "WAITING_FOR_ASYNC", "WAITING_FOR_RETRY", "WAITING_FOR_TSQ",
                                        "COMPENSATING",      "COMPLETED",         "FAILED",
                                        "CANCELED",          "COMPENSATED",       NULL};

const char *const failure_actions[] = {"troubleshoot", "compensate", "fail", NULL};

/* clang-format off */
static const SqlState states[] = {
    {"QP001", ERR_INVALID},
    {"QP003", ERR_NOT_FOUND},
    {"QP004", ERR_LIMIT},
    {"QP005", ERR_CONFLICT, .type = "step-not-recorded",
     .meaning = "The process has not run the step from which it should be retried.",
     .action = "Use one of the steps that GET /v1/processes/{id} lists."},
    {"QP006", ERR_CONFLICT, .type = "process-compensating",
     .meaning = "The process is being compensated: it cannot go back to a step, and can be canceled only if a compensation fails.",
     .action = "Wait for its end. If it is in the troubleshooting queue, retry it without a step, or cancel it, which skips the remaining compensations."},
    {"QP007", ERR_LIMIT},
    {"QP008", ERR_KEY_REUSED, .type = "response-key-reused",
     .meaning = "A response of this name is stored under this key with another payload, or for another step.",
     .action = "Send the same payload to the same step again, or use another key."},
    {"QP009", ERR_CONFLICT, .type = "type-is-code",
     .meaning = "Processes of this type that code has started are open, and a file cannot continue them.",
     .action = "Define another type, or let these processes end first."},
    {0}
};
/* clang-format on */

static bool domain_has_processes(const char *domain)
{
    return strncmp(domain, PROCESS_DOMAIN_PREFIX, strlen(PROCESS_DOMAIN_PREFIX)) == 0;
}

/* A process holds the state of its owner, and runs what its definition says. */
static const ReservedDomain domains[] = {
    {domain_has_processes, .commands = "processes",
     .scopes     = {[DOMAIN_SEND]   = "process admin",
                    [DOMAIN_CANCEL] = "process admin",
                    [DOMAIN_WORK]   = "process admin",
                    [DOMAIN_READ]   = "process read admin"},
     .handled_by = "their definitions or by programs for processes", .refuses_replies = true},
    {0}
};
RESERVED_DOMAINS_JOIN(domains)

static const Module process_module = {.name = "process", .metrics = {&process_metric_table}, .states = states};
MODULE_JOIN(process_module)
