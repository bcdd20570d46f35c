/*
 * tally_test.c - percentiles against the sorted truth.
 */
#include "test/harness/test.h"

#include "bench/tally.h"

static Tally tally;

static void assert_near(double found, double wanted)
{
    if (found < wanted || found > wanted * 1.02)
        fail_msg("%f is not from %f to 2 %% above", found, wanted);
}

TEST(tally_of_nothing_is_zero)
{
    tally = (Tally){0};
    assert_true(tally_ms(&tally, 50) == 0 && tally_ms(&tally, 99) == 0 && tally_max_ms(&tally) == 0);
}

TEST(tally_of_one_is_that_one)
{
    tally = (Tally){0};
    tally_add(&tally, 12345);
    assert_true(tally_ms(&tally, 1) == 12.345 && tally_ms(&tally, 99) == 12.345 && tally_max_ms(&tally) == 12.345);
}

TEST(tally_small_values_are_exact)
{
    tally = (Tally){0};
    for (int us = 1; us <= 100; us++)
        tally_add(&tally, us);
    assert_true(tally_ms(&tally, 50) == 0.050);
    assert_true(tally_ms(&tally, 90) == 0.090);
    assert_true(tally_ms(&tally, 99) == 0.099);
    assert_true(tally_ms(&tally, 100) == 0.100);
}

TEST(tally_large_values_are_within_two_percent)
{
    for (int64_t unit = 1; unit <= 100000000; unit *= 10) {
        tally = (Tally){0};
        for (int n = 1000; n >= 1; n--) /* whatever the order */
            tally_add(&tally, n * unit);
        assert_int_equal(tally.count, 1000);
        assert_near(tally_ms(&tally, 50), 0.5 * (double)unit);
        assert_near(tally_ms(&tally, 99), 0.99 * (double)unit);
        assert_true(tally_max_ms(&tally) == (double)unit);
    }
}

TEST(tally_takes_any_number)
{
    tally = (Tally){0};
    tally_add(&tally, -5);
    tally_add(&tally, INT64_MAX);
    assert_int_equal(tally.count, 2);
    assert_true(tally_ms(&tally, 50) == 0);
    assert_true(tally_ms(&tally, 99) > 1e9);
}
