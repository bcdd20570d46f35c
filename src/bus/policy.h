/*
 * policy.h - retry policies by domain and type: how long a failed command waits for its next attempt, and whether a command in the
 * troubleshooting queue holds its order key.
 *
 * A type's own policy comes before that of its domain (type "*"), and that before the default: 10, 60, 300 s, and hold. The last delay
 * serves all further attempts.
 * Threads: any. Ownership: texts live in the arena.
 */
#ifndef BUS_POLICY_H
#define BUS_POLICY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/reader.h"
#include "base/writer.h"
#include "pg/pool.h"
#include "pg/query.h"

#define POLICY_DELAYS_MAX 100
#define POLICY_MS_MAX     INT32_MAX

extern const char *const order_key_rules[]; /* NULL-terminated */

/* type "*" is the domain's own; delays are joined by commas. */
#define RETRY_POLICY_COLUMNS(X, T)         \
    X(T, TEXT, type, delays_ms, order_key) \
    X(T, BOOL, is_default)
DB_ROW(RetryPolicy, RETRY_POLICY_COLUMNS);

/* The domain's own first. */
must_check ErrorCode retry_policy_list(Pool *pool, Deadline deadline, Arena *arena, const char *domain,
                                       RetryPolicy **ret_list, int *ret_count, Error *reterr);
/* Replace a policy. type NULL: the domain's own. count 0: it sets no delays. order_key: "hold", "release", or NULL: it does not set it. A
 * policy that sets nothing is removed. lock_ms: as in bus/command.h. ERR_INVALID. */
must_check ErrorCode retry_policy_set(Pool *pool, Deadline deadline, int lock_ms, const char *domain, const char *type,
                                      const int64_t *delays_ms, int count, const char *order_key, Error *reterr);
/* As JSON, the same for HTTP and the command line. */
RowWrite retry_policy_write;

/* ---- a policy as JSON ---- */

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
