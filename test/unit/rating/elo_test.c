/*
 * elo_test.c - Elo against published figures, and what holds for any two ratings.
 */
#include "rating/elo.h"

#include <math.h>
#include <stdlib.h>

#include "base/attr.h"
#include "test/harness/test.h"

static void near(double expected, double actual, double tolerance)
{
    if (!(fabs(expected - actual) <= tolerance))
        fail_msg("%.12f is not %.12f", actual, expected);
}

TEST(elo_expected_score_and_changes_are_the_published_ones)
{
    static const struct {
        int    first, second;
        double expected, wins, loses, draws;
    } rows[] = {
        {1500, 1500, 0.500000000, 16.000000, -16.000000, 0         },
        {1600, 1500, 0.640065000, 11.517920, -20.482080, -4.482080 },
        {1700, 1500, 0.759746927, 7.688098,  -24.311902, -8.311902 },
        {1900, 1500, 0.909090909, 2.909091,  -29.090909, -13.090909},
        {2100, 1500, 0.969346570, 0.980910,  -31.019090, -15.019090},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        near(rows[i].expected, elo_expected(rows[i].first, rows[i].second), 1e-9);
        near(rows[i].wins, elo_change_exact(rows[i].first, rows[i].second, 1, ELO_K), 1e-6);
        near(rows[i].loses, elo_change_exact(rows[i].first, rows[i].second, 0, ELO_K), 1e-6);
        near(rows[i].draws, elo_change_exact(rows[i].first, rows[i].second, 0.5, ELO_K), 1e-6);
    }
}

TEST(elo_tournament_of_the_encyclopedia_gives_1601)
{
    static const int    opponents[] = {1609, 1477, 1388, 1586, 1720};
    static const double scores[]    = {0, 0.5, 1, 1, 0};
    double              rating = 1613, sum = 0;

    for (size_t i = 0; i < COUNT(opponents); i++)
        sum += elo_change_exact(rating, opponents[i], scores[i], 32);
    near(1601.269877, rating + sum, 1e-6);
    near(2643.4, 2635 + 10 * (10.5 - 9.66), 1e-9);
}

TEST(elo_change_is_rounded_half_away_from_zero)
{
    assert_int_equal(16, elo_change(1500, 1500, 3, 1, 32, false));
    assert_int_equal(12, elo_change(1600, 1500, 3, 1, 32, false));
    assert_int_equal(-20, elo_change(1600, 1500, 1, 3, 32, false));
    assert_int_equal(-4, elo_change(1600, 1500, 2, 2, 32, false));
    assert_int_equal(1, elo_change(1500, 1500, 1, 0, 1, false));
    assert_int_equal(-1, elo_change(1500, 1500, 0, 1, 1, false));
}

/* ratings.md: A beats B, B beats C, A beats C. Without the first match a replay gives 1515, 1516, 1469. */
TEST(elo_replay_differs_from_subtracting_the_change)
{
    int a = 1500, b = 1500, c = 1500, change;

    change = elo_change(a, b, 1, 0, 32, false), a += change, b -= change;
    assert_int_equal(16, change);
    change = elo_change(b, c, 1, 0, 32, false), b += change, c -= change;
    assert_int_equal(17, change);
    change = elo_change(a, c, 1, 0, 32, false), a += change, c -= change;
    assert_int_equal(14, change);
    assert_int_equal(1530, a);
    assert_int_equal(1501, b);
    assert_int_equal(1469, c);
    a = b = c = 1500;
    change    = elo_change(b, c, 1, 0, 32, false), b += change, c -= change;
    change    = elo_change(a, c, 1, 0, 32, false), a += change, c -= change;
    assert_int_equal(1515, a);
    assert_int_equal(1516, b);
    assert_int_equal(1469, c);
}

/* FiveThirtyEight's ln(margin + 1) * 2.2 / (0.001 * difference + 2.2), divided by ln 2, so that a win by 1 between equals counts once. */
TEST(elo_margin_factor_counts_a_win_by_one_once)
{
    near(1.0, elo_margin_factor(1, 1500, 1500), 1e-9);
    near(1.098612 / M_LN2, elo_margin_factor(2, 1500, 1500), 1e-6);
    near(2.0, elo_margin_factor(3, 1500, 1500), 1e-9);
    near(1.270770 / M_LN2, elo_margin_factor(3, 1700, 1500), 1e-6);
    near(1.524924 / M_LN2, elo_margin_factor(3, 1500, 1700), 1e-6);
    near(1.0, elo_margin_factor(0, 1500, 1700), 0);
    assert_int_equal(16, elo_change(1500, 1500, 1, 0, 32, true)); /* as without the margin */
    assert_int_equal(32, elo_change(1500, 1500, 3, 0, 32, true));
    assert_int_equal(-32, elo_change(1500, 1500, 0, 3, 32, true));
    /* The favourite's win counts less, the outsider's more: 32 * 0.2403 * 1.8333 and 32 * 0.7597 * 2.2. */
    assert_int_equal(14, elo_change(1700, 1500, 3, 0, 32, true));
    assert_int_equal(53, elo_change(1500, 1700, 3, 0, 32, true));
    assert_int_equal(-53, elo_change(1700, 1500, 0, 3, 32, true));
}

TEST(elo_margin_factor_is_at_most_three)
{
    near(3.0, elo_margin_factor(7, 1500, 1500), 1e-9);
    near(3.0, elo_margin_factor(8, 1500, 1500), 0);
    near(3.0, elo_margin_factor(1000, 1500, 1500), 0);
    assert_int_equal(48, elo_change(1500, 1500, 1000, 0, 32, true));
    /* An outsider's win with any difference of ratings, also beyond 2200 where the denominator is not positive. */
    for (int difference = 1000; difference <= ELO_MAX; difference += 100) {
        double factor = elo_margin_factor(3, 0, difference);

        assert_true(factor >= 3.0 - 1e-9 && factor <= 3.0);
    }
    for (int difference = 0; difference <= ELO_MAX; difference += 100)
        assert_true(elo_margin_factor(1, difference, 0) > 0.17);
}

/* Any ratings, scores and k: bounds hold, the sum is kept, sides can be swapped, the winner never loses points. */
TEST(elo_holds_for_any_match)
{
    srandom(7);
    for (int i = 0; i < 200000; i++) {
        int    first  = i % 5 == 0 ? (int)(random() % 40) : (int)(random() % (ELO_MAX + 1));
        int    second = i % 7 == 0 ? ELO_MAX - (int)(random() % 40) : (int)(random() % (ELO_MAX + 1));
        int    x = (int)(random() % 12), y = (int)(random() % 12);
        double k      = 1 + (double)(random() % ELO_K_MAX);
        bool   margin = random() % 2;
        int    change = elo_change(first, second, x, y, k, margin);

        assert_in_range(first + change, ELO_MIN, ELO_MAX);
        assert_in_range(second - change, ELO_MIN, ELO_MAX);
        assert_int_equal(-change, elo_change(second, first, y, x, k, margin));
        if (x > y)
            assert_true(change >= 0);
        if (x == y && first == second)
            assert_int_equal(0, change);
    }
}

TEST(elo_at_a_bound_takes_only_what_is_there)
{
    assert_int_equal(3, elo_change(1, 3, 1, 0, 32, false));       /* the loser has three points */
    assert_int_equal(0, elo_change(1500, 0, 1, 0, 400, false));   /* and none */
    assert_int_equal(5, elo_change(9995, 9999, 1, 0, 32, false)); /* the winner can take five */
    assert_int_equal(-3, elo_change(3, 1, 0, 1, 32, false));
}
