/*
 * dead_letter.h - operations that failed for good, kept to be tried again: table pawl.failed_operations.
 *
 *     pending  -> retrying [dead_letter_step: claimed by one pod, leased for a minute]
 *     retrying -> resolved [its handler succeeded]
 *     retrying -> retrying [dead_letter_step: its pod did not report back within the lease, tries left]
 *     retrying -> pending  [its handler failed, tries left]      retrying -> failed [the third failure]
 *     retrying -> pending  [a reply to a process, which has no last try; see pawl.dead_letter_is_endless]
 *     pending, failed -> pending [dead_letter_retry: by hand, tries start again]
 *
 * Invariants
 *   1. The operation's idempotency key is part of the row; its handler must use it, so a retry that had worked
 *      already changes nothing. The same key is kept once while it is not resolved.
 *   2. A claim is a fenced lease (a number that only grows): a pod that died in the middle loses the row to another
 *      one, and a late report changes nothing.
 *   3. A try counts when it begins, so an operation that kills its pod runs out of tries as well. Letters are claimed
 *      one by one, each when its turn has come: what one of them does costs no other a try.
 *   4. A try runs its handler once; only where the database failed is it run again, as any transaction (tx.h).
 * Threads: any.
 */
#ifndef BUS_DEAD_LETTER_H
#define BUS_DEAD_LETTER_H

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/writer.h"
#include "pg/pool.h"
#include "pg/query.h"

/* Runs inside a keyed transaction that also settles the row: effect and outcome commit together. */
typedef ErrorCode DeadLetterHandler(Tx *tx, const char *key, const char *data, void *context, Error *reterr);
/* Runs outside of any transaction, for effects that are not in the database: no connection is held while it waits. The
 * letter is settled afterwards; if the pod dies in between it is called again with the same key. */
typedef ErrorCode DeadLetterCall(Deadline deadline, const char *key, const char *data, void *context, Error *reterr);

/* One of handler and call. */
typedef struct {
    const char        *type; /* "match_registration" */
    DeadLetterHandler *handler;
    void              *context;
    DeadLetterCall    *call;
} DeadLetterType;
/* Zero means the default in the comment. */
typedef struct {
    const DeadLetterType *list;
    int                   count;
    int                   tries_max; /* 3, then the letter is "failed" */
    int                   delay_ms;  /* 5 min until the next try */
    int                   lease_ms;  /* 1 min for a try; then another pod may take the letter */
} DeadLetterTypes;

/* Every status there is, ended by NULL; a test compares it with the table's check. */
extern const char *const dead_letter_statuses[];

/* retried_by: "pawl", "DOMAIN/TYPE" by a route; NULL: by nothing but an application. */
#define DEAD_LETTER_COLUMNS(X, T)                                                            \
    X(T, I64, id)                                                                            \
    X(T, TEXT, operation_type, operation_key, error_message, error_code, status, retried_by) \
    X(T, JSONB, operation_data)                                                              \
    X(T, I32, retry_count)                                                                   \
    X(T, TIME, created_at, last_retry_at)
DB_ROW(DeadLetter, DEAD_LETTER_COLUMNS);

typedef struct {
    const char *status; /* NULL: all but resolved */
    const char *type;   /* NULL: all */
    int64_t     before; /* cursor: ids below this; 0: from the newest */
    int         limit;  /* 1..1000 */
} DeadLetterFilter;

typedef struct {
    const char  *type, *key;
    const char  *data; /* JSON, for the handler */
    const Error *why;
    int          delay_ms; /* until the first retry; 0: five minutes */
} DeadLetterNew;

/* Keep an operation that failed. An unresolved row with the same type and key is returned instead. */
must_check ErrorCode dead_letter_put(Pool *pool, Deadline deadline, const DeadLetterNew *letter, int64_t *ret_id,
                                     Error *reterr);
/* NULL is fine: all that are not resolved. ERR_INVALID: a status that does not exist. */
must_check ErrorCode dead_letter_status_check(const char *status, Error *reterr);
must_check ErrorCode dead_letter_list(Pool *pool, Deadline deadline, Arena *arena, const DeadLetterFilter *filter,
                                      DeadLetter **ret_list, int *ret_count, Error *reterr);
must_check ErrorCode dead_letter_find(Pool *pool, Deadline deadline, Arena *arena, int64_t id, DeadLetter *ret_letter,
                                      Error *reterr);
/* By an operator: due immediately, tries are reset. ERR_CONFLICT: already resolved, or being retried right now. */
must_check ErrorCode dead_letter_retry(Pool *pool, Deadline deadline, int lock_ms, Arena *arena, int64_t id,
                                       DeadLetter *ret_letter, Error *reterr);
/* A try in progress finds its letter deleted and rolls back. */
must_check ErrorCode dead_letter_delete(Pool *pool, Deadline deadline, int lock_ms, int64_t id, Error *reterr);
/* One turn of the job, letter by letter and at most a hundred: claim one that is due, run its handler, settle. Types
 * without a handler stay as they are. In the last half second before the deadline no letter is begun, and the report of the
 * last one may take 5 s more. Call it more often than delay_ms: each letter knows when it is due. */
/* In how many ms the next letter of these types is due, from 0 to a day. */
must_check ErrorCode dead_letter_next(Pool *pool, Deadline deadline, DeadLetterTypes types, int *ret_ms, Error *reterr);
must_check ErrorCode dead_letter_step(Pool *pool, Deadline deadline, DeadLetterTypes types, int *ret_tried,
                                      Error *reterr);

/* The object of one letter, the same for HTTP and the command line. */
RowWrite dead_letter_write;

#endif
