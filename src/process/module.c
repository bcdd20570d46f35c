/*
 * module.c - what module process contributes; see base/module.h.
 */
#include "base/module.h"

#include "process/process.h"

/* Here, so that a program that names a status has the rows below. */
const char *const process_statuses[] = {"PENDING",           "IN_PROGRESS",       "WAITING_FOR_REPLY",
                                        "WAITING_FOR_ASYNC", "WAITING_FOR_RETRY", "WAITING_FOR_TSQ",
                                        "COMPENSATING",      "COMPLETED",         "FAILED",
                                        "CANCELED",          "COMPENSATED",       NULL};

/* clang-format off */
static const SqlState states[] = {
    {"QP001", ERR_INVALID},
    {"QP003", ERR_NOT_FOUND},
    {"QP004", ERR_LIMIT},
    {"QP005", ERR_CONFLICT, .type = "step-not-recorded",
     .meaning = "The process has not run the step from which it should be retried.",
     .action = "Take one of the steps that GET /v1/processes/{id} lists."},
    {"QP006", ERR_CONFLICT, .type = "process-compensating",
     .meaning = "The process is being compensated, so it cannot go back to a step.",
     .action = "Retry it without a step: it continues with the compensation that failed."},
    {"QP007", ERR_LIMIT},
    {0}
};
/* clang-format on */

static const Module process_module = {.name = "process", .states = states};
MODULE_JOIN(process_module)
