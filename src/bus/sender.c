/*
 * sender.c - single commands of concurrent callers, sent together by a combiner; see send.h.
 */
#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "bus/command.h"
#include "bus/send_internal.h"
#include "pg/combiner.h"

#define RETRY_LEFT_MS 250 /* an item that waits for a concurrent send is tried again only with more time left */

/* Items that wait for a concurrent send of the same id go to `retries`, so that `sends` waits for it once at most. There an item is run
 * again until that send has ended; each run waits for some milliseconds inside PostgreSQL, which is all the pause that is needed. */
struct Sender {
    Pool     *pool;
    Combiner *sends, *retries;
};

static int id_order(const void *a, const void *b)
{
    const SendItem *const *left = a, *const *right = b;

    return strcmp((*left)->id, (*right)->id);
}

/* The items were checked and have their ids. */
static ErrorCode sender_run(void *context, void **items, int count, Deadline deadline, Error *reterr)
{
    Sender                   *sender = context;
    scoped(arena_free) Arena *arena  = arena_new((SEND_CALL_BYTES_MAX + SEND_PAYLOAD_MAX) * SEND_BYTES_FACTOR);
    SendItem                **sorted = arena_array(arena, SendItem *, count);

    for (int i = 0; i < count; i++)
        sorted[i] = items[i];
    /* Concurrent callers have no order among them. By id, so that two batches with the same ids cannot wait for each other. */
    qsort(sorted, (size_t)count, sizeof(void *), id_order);
    send_sort(arena, sorted, count);
    TRY(send_sorted(sender->pool, deadline, arena, sorted, count, /* nowait= */ true, reterr));
    for (int i = 0; i < count; i++)
        sorted[i]->status = command_status_constant(sorted[i]->status);
    return OK;
}

Sender *sender_new(Pool *pool)
{
    Sender    *sender = memory_new(1, sizeof *sender);
    PoolStatus status;

    pool_status(pool, &status);
    sender->pool    = pool;
    sender->sends   = combiner_new(&(CombinerOptions){.run        = sender_run,
                                                      .context    = sender,
                                                      .slots_max  = combiner_share(status.size_max, 4),
                                                      .weigh      = send_bytes,
                                                      .weight_max = SEND_CALL_BYTES_MAX});
    sender->retries = combiner_new(&(CombinerOptions){.run        = sender_run,
                                                      .context    = sender,
                                                      .slots      = 1,
                                                      .slots_max  = 1,
                                                      .weigh      = send_bytes,
                                                      .weight_max = SEND_CALL_BYTES_MAX});
    return sender;
}

void sender_free(Sender *sender)
{
    combiner_free(sender->retries);
    combiner_free(sender->sends);
    free(sender);
}

/* Shall it be run again, because another transaction that has not ended sends the same command? */
static bool item_is_busy(const SendItem *item, const Error *error, Deadline deadline)
{
    return error->code == OK && item->busy && deadline_left_ms(deadline) > RETRY_LEFT_MS;
}

/* The batch failed: so did the item. */
static void item_fail(SendItem *item, const Error *error)
{
    if (error->code == OK)
        return;
    item->code  = error->code;
    item->error = *error;
}

ErrorCode sender_send(Sender *sender, Deadline deadline, SendItem *item, Error *reterr)
{
    Error error = {0};

    TRY(send_prepare(item, reterr));
    error.code = combiner_run(sender->sends, item, deadline, &error);
    while (item_is_busy(item, &error, deadline))
        error.code = combiner_run(sender->retries, item, deadline, &error);
    item_fail(item, &error);
    if (reterr && item->code != OK)
        *reterr = item->error;
    return item->code;
}

static void send_done(void *context, const Error *error)
{
    SendItem *item = context;

    if (item_is_busy(item, error, item->deadline)) {
        combiner_submit(item->sender->retries, item, item->deadline, send_done);
        return;
    }
    item_fail(item, error);
    item->on_done(item->context);
}

void sender_submit(Sender *sender, Deadline deadline, SendItem *item)
{
    item->sender   = sender;
    item->deadline = deadline;
    item->code     = send_prepare(item, &item->error);
    if (item->code == OK)
        combiner_submit(sender->sends, item, deadline, send_done);
    else
        item->on_done(item->context);
}
