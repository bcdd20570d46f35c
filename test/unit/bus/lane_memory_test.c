/*
 * lane_memory_test.c - front and floor: what may be passed over, and what never.
 */
#include "bus/claim.h"

#include "test/harness/test.h"

#define PRIORITY 4

static Claimed at(int64_t pos)
{
    return (Claimed){.priority = PRIORITY, .pos = pos};
}

/* first: the first row behind the floor; 0: none. */
static Horizon seen(int64_t drawn, int64_t running, int64_t oldest, int64_t first)
{
    Horizon horizon = {.drawn = drawn, .running = running, .oldest = oldest};

    for (int i = 0; i < PRIORITY_COUNT; i++)
        horizon.firsts[i] = drawn + 1;
    if (first)
        horizon.firsts[PRIORITY] = first;
    return horizon;
}

TEST(lane_front_moves_with_claims_and_never_back)
{
    LaneMemory memory = {0};

    lane_memory_took(&memory, (Claimed[]){at(10), at(12)}, 2);
    assert_int_equal(memory.front[PRIORITY], 12);
    lane_memory_took(&memory, (Claimed[]){at(7)}, 1);
    assert_int_equal(memory.front[PRIORITY], 12);
    assert_int_equal(memory.front[0], 0);
    assert_true(lane_memory_is_behind(&memory));
}

TEST(lane_floor_needs_two_looks)
{
    LaneMemory memory = {0};

    lane_memory_took(&memory, (Claimed[]){at(12)}, 1);
    lane_memory_prove(&memory, &(Horizon){
                                   .drawn = 12, .running = 100, .oldest = 99, .firsts = {13, 13, 13, 13, 13}
    });
    assert_int_equal(memory.floor[PRIORITY], 0); /* somebody may still have a smaller number */
    Horizon later = seen(20, 120, 100, 0);
    lane_memory_prove(&memory, &later);
    assert_int_equal(memory.floor[PRIORITY], 12); /* not 20: who drew those may be running */
    assert_int_equal(memory.floor[0], 12);
    assert_false(lane_memory_is_behind(&memory));
}

TEST(lane_floor_waits_for_a_late_smaller_number)
{
    LaneMemory memory = {0};

    /* Transaction 90 has drawn 5 and not committed; 6 to 12 are done. */
    lane_memory_took(&memory, (Claimed[]){at(12)}, 1);
    Horizon first = seen(12, 100, 90, 0);
    lane_memory_prove(&memory, &first);
    Horizon still = seen(30, 150, 90, 0);
    lane_memory_prove(&memory, &still);
    assert_int_equal(memory.floor[PRIORITY], 0);
    /* It commits: the look finds its row, and the floor stops just before it. */
    Horizon there = seen(40, 160, 151, 5);
    lane_memory_prove(&memory, &there);
    assert_int_equal(memory.floor[PRIORITY], 4);
    assert_true(lane_memory_is_behind(&memory));
    /* Taken: now the way is free up to what was decided. */
    Horizon gone = seen(40, 170, 165, 0);
    lane_memory_prove(&memory, &gone);
    assert_int_equal(memory.floor[PRIORITY], 40);
    assert_int_equal(memory.front[PRIORITY], 40); /* the front never stands below the floor */
}

TEST(lane_looks_at_the_front_mostly_and_pays_for_long_looks)
{
    LaneMemory memory = {0};
    Mono       now    = {1000 * NS_PER_S};

    assert_int_equal(lane_memory_look(&memory, now), LOOK_FULL);
    assert_int_equal(lane_memory_look(&memory, now), LOOK_FRONT); /* nothing taken, nothing behind */
    assert_false(lane_memory_may_look(&memory, now));
    lane_memory_took(&memory, (Claimed[]){at(1)}, 1);
    assert_true(lane_memory_may_look(&memory, now));
    assert_int_equal(lane_memory_look(&memory, now), LOOK_FLOOR);
    assert_int_equal(lane_memory_look(&memory, mono_plus_ms(now, CLAIM_FLOOR_MS - 1)), LOOK_FRONT);
    lane_memory_looked(&memory, now, 50000); /* it took 50 ms: not again for a second */
    assert_false(lane_memory_may_look(&memory, mono_plus_ms(now, 999)));
    assert_int_equal(lane_memory_look(&memory, mono_plus_ms(now, 999)), LOOK_FRONT);
    assert_int_equal(lane_memory_look(&memory, mono_plus_ms(now, 1000)), LOOK_FLOOR);
    assert_int_equal(lane_memory_look(&memory, mono_plus_ms(now, CLAIM_FULL_MS)), LOOK_FULL);
}

/* The server was restored: rows are there again below what was proven to be empty. */
TEST(lane_forgets_its_memory_when_a_row_comes_from_below_the_floor)
{
    LaneMemory memory = {0};
    Horizon    first = seen(12, 100, 100, 0), second = seen(20, 120, 120, 0);

    lane_memory_took(&memory, (Claimed[]){at(12)}, 1);
    lane_memory_prove(&memory, &first);
    lane_memory_prove(&memory, &second);
    assert_int_equal(memory.floor[PRIORITY], 12);
    lane_memory_took(&memory, (Claimed[]){at(13), at(3), at(5)}, 3);
    assert_int_equal(memory.floor[PRIORITY], 0);
    assert_int_equal(memory.decided, 0);
    assert_int_equal(memory.running, 0);
    assert_int_equal(memory.front[PRIORITY], 13);
    assert_true(lane_memory_is_behind(&memory));
}

TEST(lane_forgets_its_memory_when_positions_or_transactions_go_back)
{
    static const struct {
        int64_t drawn, running;
    } behind[] = {
        {11, 200}, /* the front is at 12 */
        {40, 90 }, /* transaction 100 is awaited */
    };

    for (size_t i = 0; i < COUNT(behind); i++) {
        LaneMemory memory = {0};
        Horizon    first  = seen(12, 100, 99, 0);
        Horizon    back   = seen(behind[i].drawn, behind[i].running, behind[i].running, 0);

        lane_memory_took(&memory, (Claimed[]){at(12)}, 1);
        lane_memory_prove(&memory, &first);
        assert_int_equal(memory.running, 100);
        lane_memory_prove(&memory, &back);
        assert_int_equal(memory.front[PRIORITY], 0);
        assert_int_equal(memory.running, 0);
    }
}
