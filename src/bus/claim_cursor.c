/*
 * claim_cursor.c - where a claimer's next claim begins; pure, see claim.h for why it is right.
 */
#include "bus/claim.h"

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

bool claim_cursor_may_start_lower(const ClaimCursor *cursor, Mono now)
{
    return !mono_before(now, cursor->pause_until) && claim_cursor_is_behind(cursor);
}

ClaimFrom claim_cursor_from(ClaimCursor *cursor, Mono now)
{
    if (cursor->scan.is_open || mono_before(now, cursor->pause_until))
        return CLAIM_FROM_CURSOR;
    if (!mono_before(now, cursor->full_at)) {
        cursor->full_at = mono_plus_ms(now, CLAIM_FULL_MS);
        return CLAIM_FROM_START;
    }
    if (claim_cursor_is_behind(cursor) && !mono_before(now, cursor->low_at)) {
        cursor->low_at = mono_plus_ms(now, CLAIM_LOW_MS);
        return CLAIM_FROM_WATERMARK;
    }
    return CLAIM_FROM_CURSOR;
}

ClaimFrom claim_cursor_search_from(const ClaimCursor *cursor, Mono now)
{
    if (mono_before(now, cursor->pause_until))
        return CLAIM_FROM_CURSOR;
    return mono_before(now, cursor->full_at) ? CLAIM_FROM_WATERMARK : CLAIM_FROM_START;
}

void claim_cursor_searched(ClaimCursor *cursor, Mono now, ClaimFrom from, const DecidedPosition *decided_position)
{
    if (from == CLAIM_FROM_START)
        cursor->full_at = mono_plus_ms(now, CLAIM_FULL_MS);
    if (from == CLAIM_FROM_CURSOR)
        return; /* what is between the watermark and the position was not read */
    cursor->scan = (ClaimScan){0};
    claim_cursor_prove(cursor, decided_position);
}

void claim_cursor_measured(ClaimCursor *cursor, Mono now, int64_t took_us)
{
    int64_t pause_ms = took_us * CLAIM_LOW_SHARE / 1000;

    /* Bounded, because a claim that waited for a server that was away took seconds without reading anything. */
    if (took_us > CLAIM_CHEAP_US)
        cursor->pause_until = mono_plus_ms(now, pause_ms < CLAIM_PAUSE_MS ? pause_ms : CLAIM_PAUSE_MS);
}

/* What was remembered is about another history of the database. */
static void memory_forget(ClaimCursor *cursor)
{
    *cursor = (ClaimCursor){.low_at = cursor->low_at, .full_at = cursor->full_at};
}

/* Did it take a row from where none can be? */
static bool list_is_below(const ClaimCursor *cursor, const ClaimedCommand *list, int count)
{
    for (int i = 0; i < count; i++)
        if (list[i].pos <= cursor->watermark[list[i].priority])
            return true;
    return false;
}

/* Are positions and transaction ids smaller than those that were seen before? */
static bool decided_is_behind(const ClaimCursor *cursor, const DecidedPosition *decided_position)
{
    for (int i = 0; i < PRIORITY_COUNT; i++)
        if (cursor->position[i] > decided_position->allocated)
            return true;
    return decided_position->allocated < cursor->decided || decided_position->running < cursor->running;
}

void claim_cursor_stopped(ClaimCursor *cursor, ClaimFrom from, int priority, int64_t pos)
{
    if (!cursor->scan.is_open)
        cursor->scan = (ClaimScan){.is_open = true, .from = from};
    cursor->position[priority] = pos;
    for (int i = 0; i < priority && from != CLAIM_FROM_CURSOR; i++) /* higher priorities come first */
        cursor->position[i] = from == CLAIM_FROM_WATERMARK ? cursor->watermark[i] : 0;
}

void claim_cursor_took(ClaimCursor *cursor, const ClaimedCommand *list, int count)
{
    bool was_open = cursor->scan.is_open;

    cursor->scan = (ClaimScan){0};
    if (list_is_below(cursor, list, count))
        memory_forget(cursor);
    for (int i = 0; i < PRIORITY_COUNT && was_open; i++) /* one from the first row may have ended below */
        cursor->position[i] = larger(cursor->position[i], cursor->watermark[i]);
    for (int i = 0; i < count; i++)
        cursor->position[list[i].priority] = larger(cursor->position[list[i].priority], list[i].pos);
}

bool claim_cursor_is_behind(const ClaimCursor *cursor)
{
    for (int i = 0; i < PRIORITY_COUNT; i++)
        if (cursor->watermark[i] < cursor->position[i])
            return true;
    return false;
}

bool claim_cursor_is_below(const ClaimCursor *cursor)
{
    for (int i = 0; i < PRIORITY_COUNT; i++)
        if (cursor->position[i] < cursor->watermark[i])
            return true;
    return false;
}

void claim_cursor_prove(ClaimCursor *cursor, const DecidedPosition *decided_position)
{
    if (decided_is_behind(cursor, decided_position)) {
        memory_forget(cursor);
        return; /* its firsts are those behind the watermarks that were reset */
    }
    /* The scan was made in the snapshot that has `oldest`: it sees everything that was decided by then. */
    if (cursor->running && decided_position->oldest >= cursor->running) {
        cursor->decided = larger(cursor->decided, cursor->allocated);
        cursor->running = 0;
    }
    for (int i = 0; i < PRIORITY_COUNT; i++) {
        int64_t proven =
            decided_position->firsts[i] - 1 < cursor->decided ? decided_position->firsts[i] - 1 : cursor->decided;

        cursor->watermark[i] = larger(cursor->watermark[i], proven);
        /* Nothing is left below the watermark, so a claim from the position need not begin there either. */
        cursor->position[i] = larger(cursor->position[i], cursor->watermark[i]);
    }
    if (!cursor->running) {
        cursor->allocated = decided_position->allocated;
        cursor->running   = decided_position->running;
    }
}
