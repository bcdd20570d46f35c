/*
 * decision_fields.c - see decision_fields.h.
 */
#include "bus/decision_fields.h"

static const Field decision_fields[] = {
    DECISION_FIELDS(DecisionRequest),
    {"result", FIELD_JSON, offsetof(DecisionRequest, result), .help = "complete: what the handler would have returned"},
};
const FieldTable decision_table = {"decision", decision_fields, COUNT(decision_fields), sizeof(DecisionRequest)};
