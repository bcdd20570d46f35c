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

#endif
