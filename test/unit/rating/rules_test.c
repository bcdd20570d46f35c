/*
 * rules_test.c - what the rules of a match do to two players.
 */
#include "rating/rules.h"

#include <math.h>

#include "test/harness/test.h"

static void near(double expected, double actual)
{
    if (!(fabs(expected - actual) <= 1e-6))
        fail_msg("%.12f is not %.12f", actual, expected);
}

static void apply(const Rules *rules, const RatingState before[2], const int32_t days[2], const int score[2],
                  RatingState ret_after[2])
{
    Error error = {0};

    assert_ok(rules_apply(rules, before, days, score[0], score[1], ret_after, &error));
}

/* clang-format off */
/* Matches are stored with these results. If a row here has to change, every such match that is stored disagrees with its replay:
 * give the new formula the next number instead (ADR 39), and leave these rows. */
TEST(rules_of_formula_1_never_change)
{
    static const struct {
        Rules       rules;
        RatingState before[2];
        int32_t     days[2];
        int         score[2];
        RatingState after[2];
    } rows[] = {
        {{1, "elo", 32, false}, {{1500, 350, 0.06}, {1500, 350, 0.06}}, {0, 0}, {3, 1},
         {{1516, 350, 0.06}, {1484, 350, 0.06}}},
        {{1, "elo", 24, false}, {{1712, 350, 0.06}, {1499, 350, 0.06}}, {9, 0}, {2, 2},
         {{1705, 350, 0.06}, {1506, 350, 0.06}}},
        {{1, "elo", 32, true},  {{1500, 350, 0.06}, {1600, 350, 0.06}}, {0, 0}, {5, 1},
         {{1550, 350, 0.06}, {1550, 350, 0.06}}},
        {{1, "elo", 32, true},  {{1500, 350, 0.06}, {1500, 350, 0.06}}, {0, 0}, {0, 1000},
         {{1452, 350, 0.06}, {1548, 350, 0.06}}},
        {{1, "glicko2", 32, false}, {{1500, 350, 0.06}, {1500, 350, 0.06}}, {0, 0}, {1, 0},
         {{1662.310893906, 290.318963718, 0.059999675}, {1337.689106094, 290.318963718, 0.059999675}}},
        {{1, "glicko2", 32, false}, {{1620, 60, 0.059}, {1500, 90, 0.061}}, {30, 0}, {1, 2},
         {{1596.071776848, 80.919470200, 0.059002175}, {1528.610446355, 88.140955961, 0.061002381}}},
        {{1, "glicko2", 32, false}, {{1620, 60, 0.059}, {1500, 90, 0.061}}, {400, 2000}, {2, 2},
         {{1602.776433847, 198.468669227, 0.058998881}, {1549.518665162, 273.259978869, 0.060998705}}},
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        RatingState after[2];

        apply(&rows[i].rules, rows[i].before, rows[i].days, rows[i].score, after);
        for (int side = 0; side < 2; side++) {
            near(rows[i].after[side].rating, after[side].rating);
            near(rows[i].after[side].deviation, after[side].deviation);
            near(rows[i].after[side].volatility, after[side].volatility);
        }
    }
}
/* clang-format on */

TEST(rules_of_glicko2_let_who_was_away_move_further)
{
    static const Rules rules     = {1, RULES_GLICKO2, 32, false};
    const RatingState  before[2] = {
        {1500, 60, 0.06},
        {1500, 60, 0.06}
    };
    RatingState fresh[2], rested[2], long_ago[2], longer_ago[2];

    apply(&rules, before, (int32_t[]){0, 0}, (int[]){1, 0}, fresh);
    apply(&rules, before, (int32_t[]){100, 0}, (int[]){1, 0}, rested);
    assert_true(rested[0].rating > fresh[0].rating + 10);
    assert_true(rested[0].deviation > fresh[0].deviation);
    /* The opponent of an uncertain player loses less by it. */
    assert_true(rested[1].rating > fresh[1].rating);
    /* A deviation grows to that of a new player and no further. */
    apply(&rules, before, (int32_t[]){10000, 0}, (int[]){1, 0}, long_ago);
    apply(&rules, before, (int32_t[]){20000, 0}, (int[]){1, 0}, longer_ago);
    near(long_ago[0].rating, longer_ago[0].rating);
    near(350, rating_deviation(60, 0.06, 10000));
}

TEST(rules_of_elo_know_no_time)
{
    static const Rules rules     = {1, RULES_ELO, 32, false};
    const RatingState  before[2] = {
        {1500, 60, 0.06},
        {1400, 60, 0.06}
    };
    RatingState fresh[2], rested[2];

    apply(&rules, before, (int32_t[]){0, 0}, (int[]){1, 0}, fresh);
    apply(&rules, before, (int32_t[]){1000, 5}, (int[]){1, 0}, rested);
    for (int i = 0; i < 2; i++)
        assert_true(rating_state_is_same(&fresh[i], &rested[i]));
}

TEST(rules_of_a_formula_that_is_not_known_are_refused)
{
    static const Rules rules     = {RULES_FORMULA + 1, RULES_ELO, 32, false};
    const RatingState  before[2] = {
        {1500, 350, 0.06},
        {1500, 350, 0.06}
    };
    RatingState after[2];
    Error       error = {0};

    assert_code(ERR_CONFLICT, rules_apply(&rules, before, (int32_t[]){0, 0}, 1, 0, after, &error));
    assert_contains(error.text, "update it");
}
