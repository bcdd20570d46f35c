/*
 * load.c - see load.h.
 */
#include "bench/load.h"

#include <inttypes.h>

#include "bench/measure.h"

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

ErrorCode load_items_send(const BenchDatabase *database, Arena *arena, const SendItem *model, int count,
                          SendItem **ret_items, Error *reterr)
{
    SendItem  *items = arena_array(arena, SendItem, count);
    SendItem **list  = arena_array(arena, SendItem *, count);

    for (int i = 0; i < count; i++) {
        items[i] = *model;
        list[i]  = &items[i];
    }
    *ret_items = items;
    return send_many(database->pool, deadline_in_ms(CALL_MS), arena, list, count, reterr);
}

static ErrorCode batches_send(Bench *bench, void *context, int thread, int64_t all, Error *reterr)
{
    const Sending            *sending = context;
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES);
    int64_t                   batch   = bench->options.batch;
    SendItem                  model   = load_item(PAYLOAD), *items;

    (void)thread;
    model.delay_ms = sending->load->delay_ms;
    model.domain   = sending->load->domain ? sending->load->domain : model.domain;
    for (int64_t sent = 0; sent < all; sent += batch) {
        int64_t count = all - sent < batch ? all - sent : batch;

        TRY(bench_continue(bench, reterr));
        TRY(load_items_send(sending->load->database, arena, &model, (int)count, &items, reterr));
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

/* ---- at a fixed rate ---- */

#define TICK_MS   10
#define US_PER_MS 1000LL

/* Each knows when it was sent. */
static ErrorCode paced_load_send(PacedLoad *paced_load, Arena *arena, int64_t count, Error *reterr)
{
    int      size  = (int)(count < SEND_BATCH_MAX ? count : SEND_BATCH_MAX);
    SendItem model = load_item(arena_print(arena, "%" PRId64, clock_mono().ns)), *items;

    TRY(load_items_send(paced_load->database, arena, &model, size, &items, reterr));
    for (int i = 0; i < size; i++)
        waker_notify_sent(paced_load->waker, &items[i]);
    paced_load->sent += size;
    atomic_fetch_add(&paced_load->bench->done, size);
    return OK;
}

/* What should have been sent by now. */
static int64_t paced_load_due(const PacedLoad *paced_load, int64_t elapsed_us)
{
    int64_t us = paced_load->ms * US_PER_MS;

    return paced_load->rate * (elapsed_us < us ? elapsed_us : us) / (US_PER_MS * 1000);
}

ErrorCode paced_load_run(PacedLoad *paced_load, Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    Mono                      start = clock_mono();
    int64_t elapsed_us = 0, total_us = paced_load->ms * US_PER_MS, window_us = paced_load->window_ms * US_PER_MS;

    while (elapsed_us < total_us || paced_load->sent < paced_load_due(paced_load, total_us)) {
        Deadline tick = deadline_in_ms(TICK_MS);

        TRY(bench_continue(paced_load->bench, reterr));
        elapsed_us = mono_us_between(start, clock_mono());
        if (paced_load_due(paced_load, elapsed_us) > paced_load->sent)
            TRY(paced_load_send(paced_load, arena, paced_load_due(paced_load, elapsed_us) - paced_load->sent, reterr));
        arena_reset(arena);
        if (window_us && elapsed_us >= window_us) {
            paced_load->window(paced_load, elapsed_us);
            window_us += paced_load->window_ms * US_PER_MS;
        }
        clock_sleep_until(tick);
    }
    return OK;
}
