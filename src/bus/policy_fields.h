/*
 * policy_fields.h - retry policies as JSON: the fields of a request, and the list of a domain.
 *
 * HTTP bodies and OpenAPI are made from the table.
 * Threads: any; the table is constant. Ownership: texts of a request live in the reader's arena.
 */
#ifndef BUS_POLICY_FIELDS_H
#define BUS_POLICY_FIELDS_H

#include "base/reader.h"
#include "base/writer.h"
#include "bus/policy.h"

typedef struct {
    const char *type, *delays_s, *order_key; /* delays_s: JSON */
} PolicyRequest;
extern const FieldTable policy_table;

/* The delays of a request, at most POLICY_DELAYS_MAX; none: it does not set them. ERR_INVALID: it sets nothing, or delays that cannot be. */
must_check ErrorCode policy_request_delays(const PolicyRequest *request, int64_t *ret_delays_ms, int *ret_count,
                                           Error *reterr);

/* {"domain": ..., "items": [...]} */
void policies_write(Writer *writer, const char *domain, const RetryPolicy *list, int count);

#endif
