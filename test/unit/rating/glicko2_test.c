/*
 * glicko2_test.c - Glicko-2 against the paper's example and other published figures.
 */
#include "rating/glicko2.h"

#include <math.h>
#include <stdlib.h>

#include "base/attr.h"
#include "test/harness/test.h"

#define SCALE 173.7178

static void near(double expected, double actual, double tolerance)
{
    if (!(fabs(expected - actual) <= tolerance))
        fail_msg("%.12f is not %.12f", actual, expected);
}

TEST(glicko2_example_of_the_paper)
{
    Glicko2Game games[] = {
        {1400, 30,  1},
        {1550, 100, 0},
        {1700, 300, 0},
    };
    Glicko2 after = glicko2_update((Glicko2){1500, 200, 0.06}, games, 3, 0.5);

    near(1464.06, after.rating, 0.01);
    near(151.52, after.deviation, 0.01);
    near(0.05999, after.volatility, 1e-5);
    near(1464.0506705, after.rating, 1e-6);
    near(151.5165241, after.deviation, 1e-6);
    near(0.0599959843, after.volatility, 1e-9);
}

TEST(glicko2_parts_of_the_example)
{
    static const double g[] = {0.9955, 0.9531, 0.7242}, e[] = {0.639, 0.432, 0.303};
    static const double rating[] = {1400, 1550, 1700}, deviation[] = {30, 100, 300};

    for (int i = 0; i < 3; i++) {
        near(g[i], glicko2_g(deviation[i] / SCALE), 5e-5);
        near(e[i], glicko2_expected(0, (rating[i] - 1500) / SCALE, deviation[i] / SCALE), 5e-4);
    }
    near(0.0599959843, glicko2_volatility(0.06, -0.4839332610, 200 / SCALE, 1.7789770897, 0.5), 1e-9);
}

TEST(glicko2_more_vectors)
{
    static const struct {
        Glicko2     before;
        Glicko2Game game;
        int         count;
        Glicko2     after;
    } rows[] = {
        {{1500, 350, 0.06}, {1500, 350, 1},   1, {1662.310894, 290.318964, 0.0599996754}},
        {{1500, 350, 0.06}, {1500, 350, 0},   1, {1337.689106, 290.318964, 0.0599996754}},
        {{1500, 350, 0.06}, {1500, 350, 0.5}, 1, {1500, 290.318962, 0.0599989614}       },
        {{1500, 200, 0.06}, {0, 0, 0},        0, {1500, 200.271417, 0.06}               },
        {{1500, 200, 0.06}, {1400, 30, 1},    1, {1563.564194, 175.402656, 0.0599986573}},
        {{1500, 30, 0.06},  {2200, 30, 1},    5, {1528.337301, 31.731690, 0.0603239823} },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        Glicko2Game games[5];
        Glicko2     after;

        for (int j = 0; j < 5; j++)
            games[j] = rows[i].game;
        after = glicko2_update(rows[i].before, games, rows[i].count, 0.5);
        near(rows[i].after.rating, after.rating, 1e-5);
        near(rows[i].after.deviation, after.deviation, 1e-5);
        near(rows[i].after.volatility, after.volatility, 1e-9);
    }
}

/* Published on the internal scale by another implementation, with another end of the iteration. */
TEST(glicko2_agrees_with_another_implementation)
{
    Glicko2Game games[] = {
        {1500 - 0.6 * SCALE, 0.2 * SCALE, 1},
        {1500 + 0.3 * SCALE, 0.6 * SCALE, 0},
        {1500 + 1.2 * SCALE, 1.7 * SCALE, 0},
    };
    Glicko2 after = glicko2_update((Glicko2){1500, 1.2 * SCALE, 0.06}, games, 3, 0.5);

    near(-0.21522518921916625, (after.rating - 1500) / SCALE, 1e-7);
    near(0.8943062104659615, after.deviation / SCALE, 1e-7);
    near(0.059995829968027437, after.volatility, 1e-6);
}

/* Any two players: results are finite, a winner does not lose points, an even draw keeps the rating, deviations stay positive. */
TEST(glicko2_holds_for_any_match)
{
    srandom(11);
    for (int i = 0; i < 100000; i++) {
        Glicko2     before = {(double)(random() % 10001), 1 + (double)(random() % 350),
                              0.03 + (double)(random() % 90) / 1000};
        Glicko2Game game   = {(double)(random() % 10001), 1 + (double)(random() % 350), (double)(random() % 3) / 2};
        Glicko2     after  = glicko2_update(before, &game, 1, 0.5);

        assert_true(isfinite(after.rating) && isfinite(after.deviation) && isfinite(after.volatility));
        assert_true(after.deviation > 0 && after.volatility > 0);
        if (game.score == 1)
            assert_true(after.rating >= before.rating - 1e-9);
        if (game.score == 0)
            assert_true(after.rating <= before.rating + 1e-9);
    }
}

/* sqrt(phi * phi + periods * sigma * sigma), on the scale of ratings: 173.7178 * 0.06 = 10.423068 for one period. */
TEST(glicko2_deviation_grows_with_every_period_without_a_game)
{
    static const struct {
        double deviation, periods, after;
    } rows[] = {
        {200, 0,   200       },
        {200, 1,   200.271417},
        {50,  7,   57.100634 },
        {50,  30,  75.889462 },
        {50,  365, 205.313727},
    };
    Glicko2 player = {1500, 200, 0.06};

    for (size_t i = 0; i < COUNT(rows); i++)
        near(rows[i].after, glicko2_idle(rows[i].deviation, 0.06, rows[i].periods), 1e-5);
    for (int i = 0; i < 90; i++)
        player = glicko2_update(player, NULL, 0, GLICKO2_TAU);
    near(player.deviation, glicko2_idle(200, 0.06, 90), 1e-9);
}
