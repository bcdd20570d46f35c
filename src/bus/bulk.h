/*
 * bulk.h - one decision about all commands or processes that match a filter; sql/app/bulk.sql decides.
 *
 *     running -> ended [everything has been decided about]      running -> failed [its filter cannot be read]
 *
 * An operation is run in chunks by the callers of bulk_step(): monitors, and the command line while it waits. Each chunk is a transaction, so a
 * process that dies loses nothing that was recorded.
 * Threads: any. Ownership: results live in the arena.
 */
#ifndef BUS_BULK_H
#define BUS_BULK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/reader.h"
#include "base/writer.h"
#include "pg/pool.h"
#include "pg/query.h"

/* Notified when an operation begins. */
#define BULK_CHANNEL "pawl_bulk"

typedef struct {
    const char *operation_id; /* NULL: made */
    const char *noun;         /* "command" or "process" */
    const char *action;       /* retry, cancel, complete, delete; of processes also compensate */
    const char *filter;       /* JSON object, with the members of its table below */
    const char *argument;     /* JSON object; NULL: none. {"result": ...} of complete, {"from": STEP} of retry */
    const char *actor, *reason;
} BulkNew;

#define BULK_COUNT_COLUMNS(X, T) \
    X(T, I64, count)             \
    X(T, BOOL, is_exact)
DB_ROW(BulkCount, BULK_COUNT_COLUMNS);
/* How many match now: at least so many if it is not exact. Bounded. */
must_check ErrorCode bulk_estimate(Pool *pool, Deadline deadline, Arena *arena, const BulkNew *bulk,
                                   BulkCount *ret_count, Error *reterr);

/* The same again is the same operation. ERR_KEY_REUSED: its id was used for another one. */
must_check ErrorCode bulk_start(Pool *pool, Deadline deadline, Arena *arena, const BulkNew *bulk,
                                const char **ret_operation_id, bool *ret_is_new, Error *reterr);

/* wake: the domains in which commands were queued, for waker_notify_names(). wait_ms: when to call again. */
#define BULK_STEP_COLUMNS(X, T) \
    X(T, BOOL, ended)           \
    X(T, I32, wait_ms)          \
    X(T, TEXT, wake)
DB_ROW(BulkStep, BULK_STEP_COLUMNS);
/* Run the next chunk of an operation; NULL: of any. *ret_ran false: there is none to run, or another process runs it now. */
must_check ErrorCode bulk_step(Pool *pool, Deadline deadline, Arena *arena, const char *operation_id, bool *ret_ran,
                               BulkStep *ret_step, Error *reterr);

/* After a step of any operation that has failed as a whole: others get their turn, and its next chunk is smaller. */
must_check ErrorCode bulk_skip(Pool *pool, Deadline deadline, Error *reterr);

/* refusals: a JSON array of {id, domain, why}, at most ten. error: why it failed; NULL: it did not. */
#define BULK_COLUMNS(X, T)                                   \
    X(T, UUID, operation_id)                                 \
    X(T, TEXT, noun, action, operator, reason, state, error) \
    X(T, JSONB, filter, refusals)                            \
    X(T, I64, matched, decided, known, refused, locked)      \
    X(T, TIME, created_at, ended_at)
DB_ROW(Bulk, BULK_COLUMNS);
/* ERR_NOT_FOUND. */
must_check ErrorCode bulk_show(Pool *pool, Deadline deadline, Arena *arena, const char *operation_id, Bulk *ret_bulk,
                               Error *reterr);
RowWrite             bulk_write; /* of a Bulk */

/* ---- an operation as JSON ---- */

typedef struct {
    const char *operation_id, *action, *filter, *by, *reason, *result, *from;
    bool        dry_run;
} BulkRequest;
extern const FieldTable bulk_command_table, bulk_process_table;
/* What the members of its filter say, checked. ERR_INVALID names the member. Borrows from the arena. */
must_check ErrorCode bulk_request_new(Arena *arena, const char *noun, const BulkRequest *request, BulkNew *ret_bulk,
                                      const char **ret_domain, Error *reterr);

#endif
