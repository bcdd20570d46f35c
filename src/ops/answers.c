/*
 * answers.c - see answers.h.
 */
#include "ops/answers.h"

#include "base/answer_field.h"

/* clang-format off */
static const char *const alert_states[] = {"ok", "firing", "resolved", NULL};
static const AnswerField alert_fields[] = {
    TEXT("alert"), TEXT("state", .words = alert_states), TIME("since", .nullable = true), I64("value"), I64("limit"),
    TEXT("unit"), TEXT("summary")};
static TABLE(alert, "Alert");
static const AnswerField alerts_fields[] = {ROWS("items", alert)};
TABLE(alerts, "Alerts");
/* clang-format on */
