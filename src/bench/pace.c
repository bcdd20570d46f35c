/*
 * pace.c - see pace.h.
 */
#include "bench/pace.h"

#include <inttypes.h>

#include "bench/load.h"

#define TICK_MS   10
#define CALL_MS   30000
#define US_PER_MS 1000LL

/* Each knows when it was sent. */
static ErrorCode pace_send(Pace *pace, Arena *arena, int64_t count, Error *reterr)
{
    int        size    = (int)(count < SEND_BATCH_MAX ? count : SEND_BATCH_MAX);
    SendItem  *items   = arena_array(arena, SendItem, size);
    SendItem **list    = arena_array(arena, SendItem *, size);
    char      *payload = arena_print(arena, "%" PRId64, clock_mono().ns);

    for (int i = 0; i < size; i++) {
        items[i] = load_item(payload);
        list[i]  = &items[i];
    }
    TRY(send_many(pace->place->pool, deadline_in_ms(CALL_MS), arena, list, size, reterr));
    waker_poke(pace->waker, BENCH_DOMAIN);
    pace->sent += size;
    atomic_fetch_add(&pace->bench->done, size);
    return OK;
}

/* What should have been sent by now. */
static int64_t pace_due(const Pace *pace, int64_t elapsed_us)
{
    int64_t us = pace->ms * US_PER_MS;

    return pace->rate * (elapsed_us < us ? elapsed_us : us) / (US_PER_MS * 1000);
}

ErrorCode pace_run(Pace *pace, Error *reterr)
{
    scoped(arena_free) Arena *arena      = arena_new(ARENA_BYTES_DEFAULT);
    Mono                      start      = clock_mono();
    int64_t                   elapsed_us = 0, total_us = pace->ms * US_PER_MS, window_us = pace->window_ms * US_PER_MS;

    while (elapsed_us < total_us || pace->sent < pace_due(pace, total_us)) {
        Deadline tick = deadline_in_ms(TICK_MS);

        TRY(bench_continue(pace->bench, reterr));
        elapsed_us = mono_us_between(start, clock_mono());
        if (pace_due(pace, elapsed_us) > pace->sent)
            TRY(pace_send(pace, arena, pace_due(pace, elapsed_us) - pace->sent, reterr));
        arena_reset(arena);
        if (window_us && elapsed_us >= window_us) {
            pace->window(pace, elapsed_us);
            window_us += pace->window_ms * US_PER_MS;
        }
        clock_sleep_until(tick);
    }
    return OK;
}
