/*
 * maintain.c - see maintain.h; sql/bus/maintain.sql decides.
 */
#include "bus/maintain.h"

#include <stdio.h>

#include "pg/tx.h"
#include "sql.h"

#define ROWS_MAX 1000

#define MAINTAINED_COLUMNS(X, T) \
    X(T, I32, expired)           \
    X(T, I64, replies, letters)  \
    X(T, TEXT, after)
DB_ROW(Maintained, MAINTAINED_COLUMNS);
DB_SHAPE(maintained, Maintained, MAINTAINED_COLUMNS);

ErrorCode maintain_step(Pool *pool, Deadline deadline, Maintain *maintain, const MaintainLimits *limits, bool *ret_more,
                        Error *reterr)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions                 options = {.name = "maintain", .deadline = deadline, .arena = arena, .keyed = true};
    Maintained                done    = {0};

    TRY(db_call(pool, &options, sql_bus_maintain,
                DB_ARGS(db_i32(ROWS_MAX), db_i64(limits->batch_expiry_ms), db_i32((int32_t)limits->keep_replies_days),
                        db_i32((int32_t)limits->keep_letters_days),
                        db_text(maintain->reply_queue[0] ? maintain->reply_queue : NULL),
                        db_i32(limits->reply_queues_max)),
                &maintained_shape, &done, reterr));
    snprintf(maintain->reply_queue, sizeof maintain->reply_queue, "%s", done.after ? done.after : "");
    *ret_more = done.after || done.replies >= ROWS_MAX || done.letters >= ROWS_MAX;
    return OK;
}

ErrorCode reply_retry(Tx *tx, const char *key, const char *data, void *context, Error *reterr)
{
    (void)data;
    (void)context;
    return db_run(tx, sql_bus_reply_retry, DB_ARGS(db_text(key)), NULL, reterr);
}

ErrorCode on_complete_retry(Tx *tx, const char *key, const char *data, void *context, Error *reterr)
{
    (void)data;
    (void)context;
    return db_run(tx, sql_bus_on_complete_retry, DB_ARGS(db_text(key)), NULL, reterr);
}
