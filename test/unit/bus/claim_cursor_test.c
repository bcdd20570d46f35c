/*
 * claim_cursor_test.c - position and watermark: what may be passed over, and what never.
 */
#include "bus/claim.h"

#include "test/harness/test.h"

#define PRIORITY 4

static ClaimedCommand at(int64_t pos)
{
    return (ClaimedCommand){.priority = PRIORITY, .pos = pos};
}

/* first: the first row behind the watermark; 0: none. */
static DecidedPosition seen(int64_t allocated, int64_t running, int64_t oldest, int64_t first)
{
    DecidedPosition decided_position = {.allocated = allocated, .running = running, .oldest = oldest};

    for (int i = 0; i < PRIORITY_COUNT; i++)
        decided_position.firsts[i] = allocated + 1;
    if (first)
        decided_position.firsts[PRIORITY] = first;
    return decided_position;
}

TEST(claim_cursor_front_moves_with_claims_and_never_back)
{
    ClaimCursor cursor = {0};

    claim_cursor_took(&cursor, (Mono){0}, (ClaimedCommand[]){at(10), at(12)}, 2);
    assert_int_equal(cursor.position[PRIORITY], 12);
    claim_cursor_took(&cursor, (Mono){0}, (ClaimedCommand[]){at(7)}, 1);
    assert_int_equal(cursor.position[PRIORITY], 12);
    assert_int_equal(cursor.position[0], 0);
    assert_true(claim_cursor_is_behind(&cursor));
}

TEST(claim_cursor_floor_needs_two_looks)
{
    ClaimCursor cursor = {0};

    claim_cursor_took(&cursor, (Mono){0}, (ClaimedCommand[]){at(12)}, 1);
    claim_cursor_prove(&cursor, &(DecidedPosition){
                                    .allocated = 12, .running = 100, .oldest = 99, .firsts = {13, 13, 13, 13, 13}
    });
    assert_int_equal(cursor.watermark[PRIORITY], 0); /* another transaction may still have a smaller number */
    DecidedPosition later = seen(20, 120, 100, 0);
    claim_cursor_prove(&cursor, &later);
    assert_int_equal(cursor.watermark[PRIORITY], 12); /* not 20: who drew those may be running */
    assert_int_equal(cursor.watermark[0], 12);
    assert_false(claim_cursor_is_behind(&cursor));
}

/* A search for many claimers finds nothing for this one: that proves as much as a claim, and what it found is left to a claim. */
TEST(claim_cursor_search_proves_what_it_has_read)
{
    ClaimCursor     cursor = {0};
    Mono            now = {NS_PER_S}, later = mono_plus_ms(now, CLAIM_FULL_MS);
    DecidedPosition first = seen(12, 100, 99, 0), second = seen(20, 120, 100, 0);

    claim_cursor_took(&cursor, (Mono){0}, (ClaimedCommand[]){at(12)}, 1);
    assert_int_equal(CLAIM_FROM_START, claim_cursor_search_from(&cursor, now));
    assert_int_equal(CLAIM_FROM_START, claim_cursor_search_from(&cursor, now)); /* a claim would begin there as well */
    claim_cursor_searched(&cursor, now, CLAIM_FROM_START, &first);
    assert_int_equal(CLAIM_FROM_WATERMARK, claim_cursor_search_from(&cursor, now));
    claim_cursor_searched(&cursor, now, CLAIM_FROM_CURSOR, &second);
    assert_int_equal(cursor.watermark[PRIORITY], 0); /* it did not read what is below the position */
    claim_cursor_searched(&cursor, now, CLAIM_FROM_WATERMARK, &second);
    assert_int_equal(cursor.watermark[PRIORITY], 12);
    assert_int_equal(CLAIM_FROM_START, claim_cursor_search_from(&cursor, later));
    claim_cursor_measured(&cursor, later, (int64_t)60 * 1000 * 1000);
    assert_int_equal(CLAIM_FROM_CURSOR, claim_cursor_search_from(&cursor, later));
}

/* Where a claim was stopped: behind `pos` in PRIORITY, and behind what it began at in the others. */
static void stopped(ClaimCursor *cursor, ClaimFrom from, int64_t pos)
{
    ClaimedCommand rows[PRIORITY_COUNT];

    claim_cursor_scan(cursor, from);
    for (int i = 0; i < PRIORITY_COUNT; i++)
        rows[i] = (ClaimedCommand){.priority = i, .pos = i == PRIORITY ? pos : cursor->scan.after[i]};
    claim_cursor_stopped(cursor, rows);
}

/* The watermark is 20, the position 40. */
static ClaimCursor cursor_proven(void)
{
    ClaimCursor     cursor           = {0};
    DecidedPosition decided_position = seen(50, 100, 100, 0);

    claim_cursor_prove(&cursor, &(DecidedPosition){.allocated = 20, .running = 90, .oldest = 80});
    claim_cursor_prove(&cursor, &decided_position);
    claim_cursor_took(&cursor, (Mono){0}, (ClaimedCommand[]){at(40)}, 1);
    return cursor;
}

/* A scan from below the position that was stopped reads on from there, in all priorities, and moves no position. No other one begins meanwhile. */
TEST(claim_cursor_goes_on_where_a_scan_was_stopped)
{
    ClaimCursor cursor = cursor_proven();
    Mono        now = {NS_PER_S}, later = mono_plus_ms(now, 2 * CLAIM_FULL_MS);

    assert_int_equal(CLAIM_FROM_START, claim_cursor_from(&cursor, now));
    assert_int_equal(CLAIM_FROM_WATERMARK, claim_cursor_from(&cursor, now));
    stopped(&cursor, CLAIM_FROM_WATERMARK, 30);
    assert_int_equal(claim_cursor_after(&cursor, CLAIM_FROM_SCAN)[PRIORITY], 30);
    assert_int_equal(claim_cursor_after(&cursor, CLAIM_FROM_SCAN)[0], 20);
    assert_int_equal(cursor.position[PRIORITY], 40);
    assert_false(claim_cursor_is_below(&cursor));
    assert_int_equal(CLAIM_FROM_SCAN, claim_cursor_from(&cursor, later));
    stopped(&cursor, CLAIM_FROM_SCAN, 45);
    assert_int_equal(cursor.scan.from, CLAIM_FROM_WATERMARK);
    assert_int_equal(cursor.scan.after[PRIORITY], 45);
    assert_int_equal(cursor.position[PRIORITY], 40);
    claim_cursor_took(&cursor, later, NULL, 0);
    assert_int_equal(CLAIM_FROM_START, claim_cursor_from(&cursor, later));
    stopped(&cursor, CLAIM_FROM_START, 10);
    assert_int_equal(cursor.scan.after[0], 0);
    assert_true(claim_cursor_is_below(&cursor));
    claim_cursor_took(&cursor, later, NULL, 0);
    assert_false(claim_cursor_is_below(&cursor));
    assert_int_equal(cursor.position[0], 20);
    /* One from the position moves it. */
    stopped(&cursor, CLAIM_FROM_CURSOR, 48);
    assert_int_equal(cursor.position[PRIORITY], 48);
}

/* Else commands of a higher priority that come again and again would keep what is below the watermark, after a restore, from ever being found. */
TEST(claim_cursor_keeps_a_scan_from_the_first_row_that_finds_something)
{
    ClaimCursor    cursor = cursor_proven();
    Mono           now = {NS_PER_S}, soon = mono_plus_ms(now, CLAIM_LOW_MS);
    ClaimedCommand urgent = {.priority = 9, .pos = 60};

    assert_int_equal(CLAIM_FROM_START, claim_cursor_from(&cursor, now));
    stopped(&cursor, CLAIM_FROM_START, 10);
    assert_int_equal(CLAIM_FROM_SCAN, claim_cursor_from(&cursor, now));
    claim_cursor_scan(&cursor, CLAIM_FROM_SCAN);
    claim_cursor_took(&cursor, now, &urgent, 1);
    assert_int_equal(cursor.position[9], 60);
    assert_int_equal(cursor.position[PRIORITY], 40);
    /* Scans from the watermark have their turns. */
    assert_int_equal(CLAIM_FROM_WATERMARK, claim_cursor_from(&cursor, now));
    assert_int_equal(CLAIM_FROM_CURSOR, claim_cursor_from(&cursor, now));
    assert_int_equal(CLAIM_FROM_SCAN, claim_cursor_from(&cursor, soon));
    assert_int_equal(cursor.scan.after[PRIORITY], 10);
    assert_int_equal(cursor.scan.after[9], 60);
    assert_true(cursor.scan.was_kept);
    claim_cursor_took(&cursor, soon, &urgent, 1);
    assert_int_equal(CLAIM_FROM_WATERMARK, claim_cursor_from(&cursor, mono_plus_ms(soon, CLAIM_LOW_MS)));
    assert_int_equal(CLAIM_FROM_SCAN, claim_cursor_from(&cursor, mono_plus_ms(soon, CLAIM_LOW_MS)));
    /* It has read all. */
    claim_cursor_took(&cursor, soon, NULL, 0);
    assert_int_equal(CLAIM_FROM_START, claim_cursor_from(&cursor, mono_plus_ms(soon, 2 * CLAIM_FULL_MS)));
}

TEST(claim_cursor_floor_waits_for_a_late_smaller_number)
{
    ClaimCursor cursor = {0};

    /* Transaction 90 has allocated 5 and not committed; 6 to 12 are done. */
    claim_cursor_took(&cursor, (Mono){0}, (ClaimedCommand[]){at(12)}, 1);
    DecidedPosition first = seen(12, 100, 90, 0);
    claim_cursor_prove(&cursor, &first);
    DecidedPosition still = seen(30, 150, 90, 0);
    claim_cursor_prove(&cursor, &still);
    assert_int_equal(cursor.watermark[PRIORITY], 0);
    /* It commits: the scan finds its row, and the watermark stops just before it. */
    DecidedPosition there = seen(40, 160, 151, 5);
    claim_cursor_prove(&cursor, &there);
    assert_int_equal(cursor.watermark[PRIORITY], 4);
    assert_true(claim_cursor_is_behind(&cursor));
    /* Taken: now the way is free up to what was decided. */
    DecidedPosition gone = seen(40, 170, 165, 0);
    claim_cursor_prove(&cursor, &gone);
    assert_int_equal(cursor.watermark[PRIORITY], 40);
    assert_int_equal(cursor.position[PRIORITY], 40); /* the position never stands below the watermark */
}

TEST(claim_cursor_looks_at_the_front_mostly_and_pays_for_long_looks)
{
    ClaimCursor cursor = {0};
    Mono        now    = {1000 * NS_PER_S};

    assert_int_equal(claim_cursor_from(&cursor, now), CLAIM_FROM_START);
    assert_int_equal(claim_cursor_from(&cursor, now), CLAIM_FROM_CURSOR); /* nothing taken, nothing behind */
    assert_false(claim_cursor_may_start_lower(&cursor, now));
    claim_cursor_took(&cursor, (Mono){0}, (ClaimedCommand[]){at(1)}, 1);
    assert_true(claim_cursor_may_start_lower(&cursor, now));
    assert_int_equal(claim_cursor_from(&cursor, now), CLAIM_FROM_WATERMARK);
    assert_int_equal(claim_cursor_from(&cursor, mono_plus_ms(now, CLAIM_LOW_MS - 1)), CLAIM_FROM_CURSOR);
    claim_cursor_measured(&cursor, now, 50000); /* it took 50 ms: not again for a second */
    assert_false(claim_cursor_may_start_lower(&cursor, mono_plus_ms(now, 999)));
    assert_int_equal(claim_cursor_from(&cursor, mono_plus_ms(now, 999)), CLAIM_FROM_CURSOR);
    assert_int_equal(claim_cursor_from(&cursor, mono_plus_ms(now, 1000)), CLAIM_FROM_WATERMARK);
    assert_int_equal(claim_cursor_from(&cursor, mono_plus_ms(now, CLAIM_FULL_MS)), CLAIM_FROM_START);

    /* It took ten seconds, because the server was away: not again for five seconds only. */
    claim_cursor_measured(&cursor, now, 10000000);
    assert_int_equal(claim_cursor_from(&cursor, mono_plus_ms(now, CLAIM_PAUSE_MS - 1)), CLAIM_FROM_CURSOR);
    assert_int_not_equal(claim_cursor_from(&cursor, mono_plus_ms(now, CLAIM_FULL_MS + CLAIM_PAUSE_MS)),
                         CLAIM_FROM_CURSOR);
}

/* The server was restored: rows are there again below what was proven to be empty. */
TEST(claim_cursor_forgets_its_memory_when_a_row_comes_from_below_the_floor)
{
    ClaimCursor     cursor = {0};
    DecidedPosition first = seen(12, 100, 100, 0), second = seen(20, 120, 120, 0);

    claim_cursor_took(&cursor, (Mono){0}, (ClaimedCommand[]){at(12)}, 1);
    claim_cursor_prove(&cursor, &first);
    claim_cursor_prove(&cursor, &second);
    assert_int_equal(cursor.watermark[PRIORITY], 12);
    claim_cursor_took(&cursor, (Mono){0}, (ClaimedCommand[]){at(13), at(3), at(5)}, 3);
    assert_int_equal(cursor.watermark[PRIORITY], 0);
    assert_int_equal(cursor.decided, 0);
    assert_int_equal(cursor.running, 0);
    assert_int_equal(cursor.position[PRIORITY], 13);
    assert_true(claim_cursor_is_behind(&cursor));
}

TEST(claim_cursor_forgets_its_memory_when_positions_or_transactions_go_back)
{
    static const struct {
        int64_t allocated, running;
    } behind[] = {
        {11, 200}, /* the position is at 12 */
        {40, 90 }, /* transaction 100 is awaited */
    };

    for (size_t i = 0; i < COUNT(behind); i++) {
        ClaimCursor     cursor = {0};
        DecidedPosition first  = seen(12, 100, 99, 0);
        DecidedPosition back   = seen(behind[i].allocated, behind[i].running, behind[i].running, 0);

        claim_cursor_took(&cursor, (Mono){0}, (ClaimedCommand[]){at(12)}, 1);
        claim_cursor_prove(&cursor, &first);
        assert_int_equal(cursor.running, 100);
        claim_cursor_prove(&cursor, &back);
        assert_int_equal(cursor.position[PRIORITY], 0);
        assert_int_equal(cursor.running, 0);
    }
}
