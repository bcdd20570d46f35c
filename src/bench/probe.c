/*
 * probe.c - see probe.h.
 */
#include "bench/probe.h"

#include "bench/bench.h"
#include "bus/claim.h"
#include "bus/settle.h"

#define EVERY_MS 50
#define LIMIT    10
#define LEASE_MS 30000
#define CALL_MS  10000

static ErrorCode claimed_settle(Probe *probe, Arena *arena, const ClaimedCommand *claimed, int count, Error *reterr)
{
    SettleItem  items[LIMIT];
    SettleItem *list[LIMIT];

    for (int i = 0; i < count; i++) {
        items[i] = (SettleItem){.id = claimed[i].id, .token = claimed[i].token, .outcome = OUTCOME_COMPLETE};
        list[i]  = &items[i];
    }
    TRY(settle_many(probe->pool, deadline_in_ms(CALL_MS), arena, list, count, reterr));
    for (int i = 0; i < count; i++)
        if (items[i].settled)
            atomic_fetch_add(&probe->settled, 1);
    return OK;
}

static ErrorCode probe_step(Probe *probe, Claimer *claimer, Arena *arena, Error *reterr)
{
    Mono            start = clock_mono();
    ClaimedCommand *claimed;
    int             count;

    TRY(claimer_claim(claimer, deadline_in_ms(CALL_MS), arena, &(ClaimTerms){.limit = LIMIT, .lease_ms = LEASE_MS},
                      &claimed, &count, reterr));
    mutex_lock(&probe->mutex);
    histogram_add(&probe->window, mono_us_between(start, clock_mono()));
    mutex_unlock(&probe->mutex);
    return count > 0 ? claimed_settle(probe, arena, claimed, count, reterr) : OK;
}

static void *probe_run(void *context)
{
    Probe                        *probe   = context;
    scoped(claimer_free) Claimer *claimer = claimer_new(probe->pool, BENCH_DOMAIN, NULL, "probe");
    scoped(arena_free) Arena     *arena   = arena_new(ARENA_BYTES_DEFAULT);

    while (!atomic_load(&probe->stopping) && probe->code == OK) {
        probe->code = probe_step(probe, claimer, arena, &probe->error);
        arena_reset(arena);
        clock_sleep_ms(EVERY_MS);
    }
    return NULL;
}

void probe_start(Probe *probe, const BenchDatabase *database)
{
    *probe = (Probe){.pool = database->pool};
    mutex_init(&probe->mutex);
    probe->thread = thread_start("probe", probe_run, probe);
}

void probe_lap(Probe *probe, Histogram *ret_window)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&probe->mutex);

    *ret_window   = probe->window;
    probe->window = (Histogram){0};
}

ErrorCode probe_end(Probe *probe, ErrorCode code, Error *reterr)
{
    atomic_store(&probe->stopping, true);
    thread_join(probe->thread);
    mutex_done(&probe->mutex);
    TRY(code);
    return error_pass(probe->code, &probe->error, reterr);
}
