/*
 * lane_memory.c - where a lane's next claim begins; pure, see claim.h for why it is right.
 */
#include "bus/claim.h"

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

bool lane_memory_may_look(const LaneMemory *memory, Mono now)
{
    return !mono_before(now, memory->rest_until) && lane_memory_is_behind(memory);
}

Look lane_memory_look(LaneMemory *memory, Mono now)
{
    if (mono_before(now, memory->rest_until))
        return LOOK_FRONT;
    if (!mono_before(now, memory->full_at)) {
        memory->full_at = mono_plus_ms(now, CLAIM_FULL_MS);
        return LOOK_FULL;
    }
    if (lane_memory_is_behind(memory) && !mono_before(now, memory->floor_at)) {
        memory->floor_at = mono_plus_ms(now, CLAIM_FLOOR_MS);
        return LOOK_FLOOR;
    }
    return LOOK_FRONT;
}

void lane_memory_looked(LaneMemory *memory, Mono now, int64_t took_us)
{
    if (took_us > CLAIM_CHEAP_US)
        memory->rest_until = mono_plus_ms(now, took_us * CLAIM_LOOK_SHARE / 1000);
}

/* What was remembered is about another history of the database. */
static void memory_forget(LaneMemory *memory)
{
    *memory = (LaneMemory){.floor_at = memory->floor_at, .full_at = memory->full_at};
}

/* Did it take a row from where none can be? */
static bool list_is_below(const LaneMemory *memory, const Claimed *list, int count)
{
    for (int i = 0; i < count; i++)
        if (list[i].pos <= memory->floor[list[i].priority])
            return true;
    return false;
}

/* Are positions and transaction ids smaller than those that were seen before? */
static bool horizon_is_behind(const LaneMemory *memory, const Horizon *horizon)
{
    for (int i = 0; i < PRIORITY_COUNT; i++)
        if (memory->front[i] > horizon->drawn)
            return true;
    return horizon->drawn < memory->decided || horizon->running < memory->running;
}

void lane_memory_took(LaneMemory *memory, const Claimed *list, int count)
{
    if (list_is_below(memory, list, count))
        memory_forget(memory);
    for (int i = 0; i < count; i++)
        memory->front[list[i].priority] = larger(memory->front[list[i].priority], list[i].pos);
}

bool lane_memory_is_behind(const LaneMemory *memory)
{
    for (int i = 0; i < PRIORITY_COUNT; i++)
        if (memory->floor[i] < memory->front[i])
            return true;
    return false;
}

void lane_memory_prove(LaneMemory *memory, const Horizon *horizon)
{
    if (horizon_is_behind(memory, horizon)) {
        memory_forget(memory);
        return; /* its firsts are those behind the floors that were forgotten */
    }
    /* The look was made in the snapshot that tells `oldest`: it sees everything that was decided by then. */
    if (memory->running && horizon->oldest >= memory->running) {
        memory->decided = larger(memory->decided, memory->drawn);
        memory->running = 0;
    }
    for (int i = 0; i < PRIORITY_COUNT; i++) {
        int64_t proven = horizon->firsts[i] - 1 < memory->decided ? horizon->firsts[i] - 1 : memory->decided;

        memory->floor[i] = larger(memory->floor[i], proven);
        /* Nothing is left below the floor, so a claim from the front need not begin there either. */
        memory->front[i] = larger(memory->front[i], memory->floor[i]);
    }
    if (!memory->running) {
        memory->drawn   = horizon->drawn;
        memory->running = horizon->running;
    }
}
