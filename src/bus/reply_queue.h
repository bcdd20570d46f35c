/*
 * reply_queue.h - reply queues for clients without PGMQ: list them, read replies, acknowledge them.
 *
 * Only queues that pawl has created, because a reply_to named them; others belong to applications.
 * Invariant: a reply that was read is hidden until its time is over, and read again then. An acknowledgement counts only with the read count of the last
 * read, so a reader that was too slow deletes nothing.
 * Threads: any.
 */
#ifndef BUS_REPLY_QUEUE_H
#define BUS_REPLY_QUEUE_H

#include "base/reader.h"
#include "base/writer.h"
#include "pg/pool.h"
#include "pg/query.h"

#define REPLY_READ_MAX        1000
#define REPLY_READ_BYTES      ((int64_t)8 << 20)
#define REPLY_VISIBLE_DEFAULT 30
#define REPLY_VISIBLE_MAX     86400
#define REPLY_ACK_MAX         8000

#define REPLY_QUEUE_COLUMNS(X, T) \
    X(T, TEXT, queue, creator)    \
    X(T, I64, messages)           \
    X(T, TIME, oldest_at, created_at)
DB_ROW(ReplyQueue, REPLY_QUEUE_COLUMNS);
#define REPLY_MESSAGE_COLUMNS(X, T)     \
    X(T, I64, msg_id)                   \
    X(T, I32, read_count)               \
    X(T, TIME, enqueued_at, visible_at) \
    X(T, JSONB, message)
DB_ROW(ReplyMessage, REPLY_MESSAGE_COLUMNS);

/* By name, behind `after` (NULL: from the first). */
must_check ErrorCode reply_queue_list(Pool *pool, Deadline deadline, Arena *arena, const char *after, int limit,
                                      ReplyQueue **ret_list, int *ret_count, Error *reterr);
/* Up to limit replies with REPLY_READ_BYTES together, one at least. ERR_NOT_FOUND: there is no such queue. After ERR_UNKNOWN some may be hidden. */
must_check ErrorCode reply_read(Pool *pool, Deadline deadline, Arena *arena, const char *queue, int limit,
                                int visible_s, ReplyMessage **ret_list, int *ret_count, Error *reterr);
/* A verdict for each, of reply_verdicts. */
must_check ErrorCode reply_ack(Pool *pool, Deadline deadline, Arena *arena, const char *queue, const int64_t *msg_ids,
                               const int32_t *read_counts, int count, const char *const **ret_verdicts, Error *reterr);
extern const char *const reply_verdicts[]; /* "acknowledged" first; ended by NULL */

/* ---- as JSON ---- */

RowWrite reply_queue_write, reply_message_write;

typedef struct {
    int64_t limit, visible_s; /* 0: absent */
} ReplyReadRequest;
extern const FieldTable reply_read_table;
typedef struct {
    int64_t msg_id, read_count;
} ReplyAckRow;
typedef struct {
    ReaderArray items; /* of ReplyAckRow */
} ReplyAckRequest;
extern const FieldTable reply_ack_table;

#endif
