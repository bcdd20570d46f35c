/*
 * reply_queue.c - see reply_queue.h.
 */
#include "bus/reply_queue.h"

#include <assert.h>

#include "bus/answers.h"
#include "pg/tx.h"
#include "sql.h"

DB_SHAPE(reply_queue, ReplyQueue, REPLY_QUEUE_COLUMNS);
DB_SHAPE(reply_message, ReplyMessage, REPLY_MESSAGE_COLUMNS);

const char *const reply_verdicts[] = {"acknowledged", "lost", "gone", "busy", NULL};

ErrorCode reply_queue_list(Pool *pool, Deadline deadline, Arena *arena, const char *after, int limit,
                           ReplyQueue **ret_list, int *ret_count, Error *reterr)
{
    TxOptions options = {.name = "reply_queue_list", .deadline = deadline, .arena = arena, .read_only = true};

    return db_call_many(pool, &options, sql_bus_reply_queue_list, DB_ARGS(db_text(after), db_i32(limit)),
                        &reply_queue_shape, ret_list, ret_count, reterr);
}

ErrorCode reply_read(Pool *pool, Deadline deadline, Arena *arena, const char *queue, int limit, int visible_s,
                     ReplyMessage **ret_list, int *ret_count, Error *reterr)
{
    TxOptions options = {.name = "reply_read", .deadline = deadline, .arena = arena};

    return db_call_many(pool, &options, sql_bus_reply_read,
                        DB_ARGS(db_text(queue), db_i32(limit), db_i32(visible_s), db_i64(REPLY_READ_BYTES)),
                        &reply_message_shape, ret_list, ret_count, reterr);
}

/* Keyed by the read counts: repeated after a lost response it deletes nothing more. */
ErrorCode reply_ack(Pool *pool, Deadline deadline, Arena *arena, const char *queue, const int64_t *msg_ids,
                    const int32_t *read_counts, int count, const char *const **ret_verdicts, Error *reterr)
{
    TxOptions options = {.name = "reply_ack", .deadline = deadline, .arena = arena, .keyed = true};
    int       got;

    TRY(db_call_many(pool, &options, sql_bus_reply_ack,
                     DB_ARGS(db_text(queue), db_i64s(arena, msg_ids, count), db_i32s(arena, read_counts, count)),
                     &db_text_shape, ret_verdicts, &got, reterr));
    assert(got == count);
    return OK;
}

/* ---- as JSON ---- */

void reply_queue_write(Writer *writer, const void *queue)
{
    writer_row(writer, &answer_reply_queue, queue);
}

void reply_message_write(Writer *writer, const void *message)
{
    writer_row(writer, &answer_reply_message, message);
}

static const Field reply_read_fields[] = {
    {"limit",     FIELD_I64, offsetof(ReplyReadRequest, limit),     .min = 1, .max = REPLY_READ_MAX,
     .help = "how many at most; 1 when absent"                                                         },
    {"visible_s", FIELD_I64, offsetof(ReplyReadRequest, visible_s), .min = 1, .max = REPLY_VISIBLE_MAX,
     .help = "after so many seconds they are read again, unless they were acknowledged; 30 when absent"},
};
const FieldTable reply_read_table = {"read", reply_read_fields, COUNT(reply_read_fields), sizeof(ReplyReadRequest)};

static const Field reply_ack_row_fields[] = {
    {"msg_id", FIELD_I64, offsetof(ReplyAckRow, msg_id), .required = true, .min = 1, .max = INT64_MAX},
    {"read_count", FIELD_I64, offsetof(ReplyAckRow, read_count), .required = true, .min = 1, .max = INT32_MAX,
     .help = "that of the read"},
};
static const FieldTable reply_ack_row_table = {"acknowledgement", reply_ack_row_fields, COUNT(reply_ack_row_fields),
                                               sizeof(ReplyAckRow)};
static const Field      reply_ack_fields[]  = {
    {"items", FIELD_ROWS, offsetof(ReplyAckRequest, items), .required = true, .min = 1, .max = REPLY_ACK_MAX,
     .rows = &reply_ack_row_table},
};
const FieldTable reply_ack_table = {"acknowledge", reply_ack_fields, COUNT(reply_ack_fields), sizeof(ReplyAckRequest)};
