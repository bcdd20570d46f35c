/*
 * claim_cursor.c - where a claimer's next claim begins; pure, see claim.h for why it is right.
 */
#include "bus/claim.h"

#include <string.h>

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

bool claim_cursor_may_start_lower(const ClaimCursor *cursor, Mono now)
{
    return !mono_before(now, cursor->pause_until) && claim_cursor_is_behind(cursor);
}

/* From the first row, or on with such a scan that was kept. */
static ClaimFrom full_begin(ClaimCursor *cursor, Mono now)
{
    cursor->full_at = mono_plus_ms(now, CLAIM_FULL_MS);
    if (!cursor->kept.is_open)
        return CLAIM_FROM_START;
    cursor->scan          = cursor->kept;
    cursor->scan.was_kept = true;
    cursor->kept          = (ClaimScan){0};
    return CLAIM_FROM_SCAN;
}

ClaimFrom claim_cursor_from(ClaimCursor *cursor, Mono now)
{
    if (cursor->scan.is_open)
        return CLAIM_FROM_SCAN;
    if (mono_before(now, cursor->pause_until))
        return CLAIM_FROM_CURSOR;

    bool is_low  = claim_cursor_is_behind(cursor) && !mono_before(now, cursor->low_at);
    bool is_full = !mono_before(now, cursor->full_at);

    /* Those from the watermark and one that was kept take turns. */
    if (is_full && !(cursor->kept.is_open && is_low && mono_before(cursor->low_at, cursor->full_at)))
        return full_begin(cursor, now);
    if (!is_low)
        return CLAIM_FROM_CURSOR;
    cursor->low_at = mono_plus_ms(now, CLAIM_LOW_MS);
    return CLAIM_FROM_WATERMARK;
}

const int64_t *claim_cursor_after(const ClaimCursor *cursor, ClaimFrom from)
{
    static const int64_t beginning[PRIORITY_COUNT];

    switch (from) {
    case CLAIM_FROM_CURSOR:
        return cursor->position;
    case CLAIM_FROM_WATERMARK:
        return cursor->watermark;
    case CLAIM_FROM_SCAN:
        return cursor->scan.after;
    case CLAIM_FROM_START:
        break;
    }
    return beginning;
}

ClaimFrom claim_cursor_search_from(const ClaimCursor *cursor, Mono now)
{
    if (mono_before(now, cursor->pause_until))
        return CLAIM_FROM_CURSOR;
    return mono_before(now, cursor->full_at) ? CLAIM_FROM_WATERMARK : CLAIM_FROM_START;
}

void claim_cursor_searched(ClaimCursor *cursor, Mono now, ClaimFrom from, const DecidedPosition *decided_position)
{
    if (from == CLAIM_FROM_START) {
        cursor->full_at = mono_plus_ms(now, CLAIM_FULL_MS);
        cursor->kept    = (ClaimScan){0};
    }
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
        if (list[i].pos > 0 && list[i].pos <= cursor->watermark[list[i].priority])
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

static void positions_raise(int64_t *positions, const ClaimedCommand *list, int count)
{
    for (int i = 0; i < count; i++)
        positions[list[i].priority] = larger(positions[list[i].priority], list[i].pos);
}

void claim_cursor_scan(ClaimCursor *cursor, ClaimFrom from)
{
    if (cursor->scan.is_open)
        return;
    cursor->scan = (ClaimScan){.is_open = true, .from = from};
    memcpy(cursor->scan.after, claim_cursor_after(cursor, from), sizeof cursor->scan.after);
}

void claim_cursor_stopped(ClaimCursor *cursor, const ClaimedCommand *rows)
{
    positions_raise(cursor->scan.after, rows, PRIORITY_COUNT);
    if (cursor->scan.from == CLAIM_FROM_CURSOR)
        positions_raise(cursor->position, rows, PRIORITY_COUNT);
}

void claim_cursor_passed(ClaimCursor *cursor, const ClaimedCommand *rows)
{
    cursor->scan = (ClaimScan){0};
    cursor->kept = (ClaimScan){0};
    positions_raise(cursor->position, rows, PRIORITY_COUNT);
}

void claim_cursor_took(ClaimCursor *cursor, Mono now, const ClaimedCommand *list, int count)
{
    ClaimScan scan = cursor->scan;

    cursor->scan = (ClaimScan){0};
    if (list_is_below(cursor, list, count)) {
        memory_forget(cursor);
    } else if (scan.is_open && scan.from == CLAIM_FROM_START && count > 0) {
        positions_raise(scan.after, list, count);
        cursor->kept    = scan;
        cursor->full_at = mono_plus_ms(now, CLAIM_LOW_MS);
    }
    positions_raise(cursor->position, list, count);
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
        if (cursor->scan.is_open && cursor->scan.after[i] < cursor->watermark[i])
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
        if (cursor->scan.from != CLAIM_FROM_START)
            cursor->scan.after[i] = larger(cursor->scan.after[i], cursor->watermark[i]);
    }
    if (!cursor->running) {
        cursor->allocated = decided_position->allocated;
        cursor->running   = decided_position->running;
    }
}
