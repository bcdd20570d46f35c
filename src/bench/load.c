/*
 * load.c - see load.h.
 */
#include "bench/load.h"

#include "bench/threads.h"

#define CALL_MS     30000
#define ARENA_BYTES ((size_t)256 << 20)
#define PAYLOAD     "{\"to\": \"ann\", \"amount\": 100}"

typedef struct {
    const Load *load;
    Sender     *sender; /* NULL: in batches */
} Sending;

SendItem load_item(const char *payload)
{
    return (SendItem){.domain       = BENCH_DOMAIN,
                      .type         = "noop",
                      .payload      = payload,
                      .priority     = SEND_DEFAULT,
                      .max_attempts = SEND_DEFAULT};
}

static ErrorCode batch_send(const Load *load, Arena *arena, int count, Error *reterr)
{
    SendItem  *items = arena_array(arena, SendItem, count);
    SendItem **list  = arena_array(arena, SendItem *, count);

    for (int i = 0; i < count; i++) {
        items[i]          = load_item(PAYLOAD);
        items[i].delay_ms = load->delay_ms;
        if (load->domain)
            items[i].domain = load->domain;
        list[i] = &items[i];
    }
    return send_many(load->database->pool, deadline_in_ms(CALL_MS), arena, list, count, reterr);
}

static ErrorCode batches_send(Bench *bench, void *context, int thread, int64_t all, Error *reterr)
{
    const Sending            *sending = context;
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES);
    int64_t                   batch   = bench->options.batch;

    (void)thread;
    for (int64_t sent = 0; sent < all; sent += batch) {
        int64_t count = all - sent < batch ? all - sent : batch;

        TRY(bench_continue(bench, reterr));
        TRY(batch_send(sending->load, arena, (int)count, reterr));
        arena_reset(arena);
        atomic_fetch_add(&bench->done, count);
    }
    return OK;
}

static ErrorCode singles_send(Bench *bench, void *context, int thread, int64_t count, Error *reterr)
{
    const Sending *sending = context;

    (void)thread;
    for (int64_t i = 0; i < count; i++) {
        SendItem item = load_item(PAYLOAD);

        TRY(bench_continue(bench, reterr));
        TRY(sender_send(sending->sender, deadline_in_ms(CALL_MS), &item, reterr));
        atomic_fetch_add(&bench->done, 1);
    }
    return OK;
}

ErrorCode load_send(Bench *bench, const Load *load, int64_t *ret_us, Error *reterr)
{
    scoped(sender_free) Sender *sender  = load->single ? sender_new(load->database->pool) : NULL;
    Sending                     sending = {load, sender};

    return threads_run(bench, sender ? singles_send : batches_send, &sending, load->count, ret_us, reterr);
}
