/*
 * policy.h - retry policies: how long a failed command waits for its next attempt, by domain and type.
 *
 * A type's own delays come before those of its domain (type "*"), and those before 10, 60, 300 s. The last delay serves all
 * further attempts.
 * Threads: any. Ownership: texts live in the arena.
 */
#ifndef BUS_POLICY_H
#define BUS_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/writer.h"
#include "pg/pool.h"
#include "pg/query.h"

#define POLICY_DELAYS_MAX 100
#define POLICY_MS_MAX     INT32_MAX

#define RETRY_POLICY_COLUMNS(X, T)         \
    X(T, const char *, DB_TEXT, type)      \
    X(T, const char *, DB_TEXT, delays_ms) \
    X(T, bool, DB_BOOL, is_default)
typedef struct {
    RETRY_POLICY_COLUMNS(DB_FIELD, RetryPolicy) /* type "*" is the domain's own; delays are joined by commas */
} RetryPolicy;

/* The domain's own first. */
must_check ErrorCode retry_policy_list(Pool *pool, Deadline deadline, Arena *arena, const char *domain,
                                       RetryPolicy **ret_list, int *ret_count, Error *reterr);
/* type NULL: the domain's own. count 0: removed. ERR_INVALID. */
must_check ErrorCode retry_policy_set(Pool *pool, Deadline deadline, const char *domain, const char *type,
                                      const int64_t *delays_ms, int count, Error *reterr);
/* As JSON, the same for HTTP and the command line. */
void retry_policy_write(Writer *writer, const RetryPolicy *policy);

#endif
