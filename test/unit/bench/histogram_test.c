/*
 * histogram_test.c - percentiles against the sorted truth.
 */
#include "test/harness/test.h"

#include "bench/histogram.h"

static Histogram histogram;

static void assert_near(double found, double wanted)
{
    if (found < wanted || found > wanted * 1.02)
        fail_msg("%f is not from %f to 2 %% above", found, wanted);
}

TEST(histogram_of_nothing_is_zero)
{
    histogram = (Histogram){0};
    assert_true(histogram_ms(&histogram, 50) == 0 && histogram_ms(&histogram, 99) == 0 &&
                histogram_max_ms(&histogram) == 0);
}

TEST(histogram_of_one_is_that_one)
{
    histogram = (Histogram){0};
    histogram_add(&histogram, 12345);
    assert_true(histogram_ms(&histogram, 1) == 12.345 && histogram_ms(&histogram, 99) == 12.345 &&
                histogram_max_ms(&histogram) == 12.345);
}

TEST(histogram_small_values_are_exact)
{
    histogram = (Histogram){0};
    for (int us = 1; us <= 100; us++)
        histogram_add(&histogram, us);
    assert_true(histogram_ms(&histogram, 50) == 0.050);
    assert_true(histogram_ms(&histogram, 90) == 0.090);
    assert_true(histogram_ms(&histogram, 99) == 0.099);
    assert_true(histogram_ms(&histogram, 100) == 0.100);
}

TEST(histogram_large_values_are_within_two_percent)
{
    for (int64_t unit = 1; unit <= 100000000; unit *= 10) {
        histogram = (Histogram){0};
        for (int n = 1000; n >= 1; n--) /* whatever the order */
            histogram_add(&histogram, n * unit);
        assert_int_equal(histogram.count, 1000);
        assert_near(histogram_ms(&histogram, 50), 0.5 * (double)unit);
        assert_near(histogram_ms(&histogram, 99), 0.99 * (double)unit);
        assert_true(histogram_max_ms(&histogram) == (double)unit);
    }
}

TEST(histogram_takes_any_number)
{
    histogram = (Histogram){0};
    histogram_add(&histogram, -5);
    histogram_add(&histogram, INT64_MAX);
    assert_int_equal(histogram.count, 2);
    assert_true(histogram_ms(&histogram, 50) == 0);
    assert_true(histogram_ms(&histogram, 99) > 1e9);
}
