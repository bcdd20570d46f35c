/*
 * paced_load.c - see paced_load.h.
 */
#include "bench/paced_load.h"

#include <inttypes.h>

#include "bench/load.h"

#define TICK_MS   10
#define CALL_MS   30000
#define US_PER_MS 1000LL

/* Each knows when it was sent. */
static ErrorCode paced_load_send(PacedLoad *paced_load, Arena *arena, int64_t count, Error *reterr)
{
    int        size    = (int)(count < SEND_BATCH_MAX ? count : SEND_BATCH_MAX);
    SendItem  *items   = arena_array(arena, SendItem, size);
    SendItem **list    = arena_array(arena, SendItem *, size);
    char      *payload = arena_print(arena, "%" PRId64, clock_mono().ns);

    for (int i = 0; i < size; i++) {
        items[i] = load_item(payload);
        list[i]  = &items[i];
    }
    TRY(send_many(paced_load->database->pool, deadline_in_ms(CALL_MS), arena, list, size, reterr));
    waker_notify(paced_load->waker, BENCH_DOMAIN);
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
