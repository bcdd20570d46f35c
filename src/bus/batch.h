/*
 * batch.h - many commands, and one more when all of them have ended.
 *
 *     OPEN -> SEALED [batch_send without open; batch_seal]      SEALED -> COMPLETED [its last command ended]
 *
 * Invariants
 *   1. The batch, its commands and its seal are one transaction: all of it is there, or nothing.
 *   2. The same batch_id and command ids again are the same batch: nothing is added, and the result is the same.
 * Threads: any. Ownership: texts live in the arena.
 */
#ifndef BUS_BATCH_H
#define BUS_BATCH_H

#include "base/arena.h"
#include "base/writer.h"
#include "bus/send.h"
#include "pg/pool.h"
#include "pg/query.h"

#define BATCH_COLUMNS(X, T)                                                     \
    X(T, UUID, batch_id)                                                        \
    X(T, TEXT, name, status)                                                    \
    X(T, I64, total, pending, in_progress, completed, failed, canceled, in_tsq) \
    X(T, TIME, created_at, completed_at)
DB_ROW(Batch, BATCH_COLUMNS);

typedef struct {
    const char *batch_id;    /* NULL: made */
    const char *name;        /* NULL: none */
    const char *on_complete; /* JSON {domain, type, payload?}; NULL: none */
    bool        open;        /* more commands will be added */
} BatchNew;

/* A batch and its commands, count may be 0; a verdict for each. lock_ms: as in bus/command.h.
 * ERR_KEY_REUSED: it exists with another name or on_complete, or all of the commands exist and one of them with another body; nothing was
 * done. ERR_CONFLICT: it is sealed and does not have all of these commands. */
must_check ErrorCode batch_send(Pool *pool, Deadline deadline, int lock_ms, Arena *arena, const BatchNew *batch,
                                SendItem **items, int count, const char **ret_batch_id, Error *reterr);
/* No more commands will come. *ret_wake: the domains in which commands were queued, for waker_notify_names(). ERR_NOT_FOUND. */
must_check ErrorCode batch_seal(Pool *pool, Deadline deadline, int lock_ms, Arena *arena, const char *batch_id,
                                const char **ret_wake, Error *reterr);
/* ERR_NOT_FOUND. */
must_check ErrorCode batch_progress(Pool *pool, Deadline deadline, Arena *arena, const char *batch_id, Batch *ret_batch,
                                    Error *reterr);
/* As JSON, the same for HTTP and the command line. */
RowWrite batch_write; /* of a Batch */

/* A batch in a list: without the numbers of its commands, which would have to be counted. */
#define BATCH_LINE_COLUMNS(X, T)     \
    X(T, I64, id, searched_to)       \
    X(T, UUID, batch_id)             \
    X(T, TEXT, name, status, domain) \
    X(T, TIME, created_at, sealed_at, completed_at)
DB_ROW(BatchLine, BATCH_LINE_COLUMNS);

typedef struct {
    const char *status, *name; /* NULL: all */
    const char *since, *until; /* RFC 3339, of created_at, both included; NULL: no limit */
    int64_t     before;        /* cursor: ids below this; 0: from the newest */
    int         limit;         /* 1 to 1000 */
} BatchFilter;
extern const char *const batch_statuses[]; /* ended by NULL */

/* The most rows that one call reads. */
#define BATCH_PAGE_ROWS 20000

/* Newest first; *ret_next as command_list(). ERR_INVALID: a status that does not exist. */
must_check ErrorCode batch_list(Pool *pool, Deadline deadline, Arena *arena, const BatchFilter *filter,
                                BatchLine **ret_list, int *ret_count, int64_t *ret_next, Error *reterr);
RowWrite             batch_line_write; /* of a BatchLine */

#endif
