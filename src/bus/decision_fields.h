/*
 * decision_fields.h - an operator's decision about a command as JSON: the fields of the request.
 *
 * HTTP bodies and OpenAPI are made from the table; decision_write() of bus/command.h writes the verdict.
 * Threads: any; the table is constant. Ownership: texts of a request live in the reader's arena.
 */
#ifndef BUS_DECISION_FIELDS_H
#define BUS_DECISION_FIELDS_H

#include "base/reader.h"

/* Rows of every table of decisions; Request has the texts `by` and `reason`. */
#define DECISION_FIELDS(Request)                                                                      \
    {"operator", FIELD_TEXT, offsetof(Request, by), .length_max = 200,                                \
     .help = "who decides, as the client says; the audit shows it after the key's name: shop (ann)"}, \
    {                                                                                                 \
        "reason", FIELD_TEXT, offsetof(Request, reason), .length_max = 2000                           \
    }

typedef struct {
    const char *by, *reason, *result;
} DecisionRequest;
extern const FieldTable decision_table;

#endif
