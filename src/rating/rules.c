/*
 * rules.c - see rules.h.
 */
#include "rating/rules.h"

#include <math.h>
#include <string.h>

#include "rating/elo.h"
#include "rating/glicko2.h"

/* The last bits of exp() and log() differ between C libraries. */
#define TOLERANCE 1e-6

static void elo_apply(const Rules *rules, const RatingState before[2], int score_a, int score_b,
                      RatingState ret_after[2])
{
    int a = rating_points(before[0].rating), b = rating_points(before[1].rating);
    int change = elo_change(a, b, score_a, score_b, rules->k_factor, rules->margin);

    ret_after[0]        = before[0];
    ret_after[1]        = before[1];
    ret_after[0].rating = a + change;
    ret_after[1].rating = b - change;
}

double rating_deviation(double deviation, double volatility, int32_t days)
{
    return fmin(glicko2_idle(deviation, volatility, days), GLICKO2_DEVIATION);
}

static RatingState glicko2_apply(const RatingState *player, const RatingState *opponent, double score)
{
    Glicko2Game game = {opponent->rating, opponent->deviation, score};
    Glicko2     after =
        glicko2_update((Glicko2){player->rating, player->deviation, player->volatility}, &game, 1, GLICKO2_TAU);

    return (RatingState){fmin(fmax(after.rating, ELO_MIN), ELO_MAX), fmin(after.deviation, GLICKO2_DEVIATION),
                         after.volatility};
}

ErrorCode rules_apply(const Rules *rules, const RatingState before[2], const int32_t days[2], int score_a, int score_b,
                      RatingState ret_after[2], Error *reterr)
{
    double      score = score_a > score_b ? 1 : score_a < score_b ? 0 : 0.5;
    RatingState now[2];

    if (rules->formula > RULES_FORMULA)
        return fail(reterr, ERR_CONFLICT,
                    "the match has formula %d, and this program knows formulas up to %d: update it", rules->formula,
                    RULES_FORMULA);
    if (strcmp(rules->system, RULES_GLICKO2) != 0) {
        elo_apply(rules, before, score_a, score_b, ret_after);
        return OK;
    }
    for (int i = 0; i < 2; i++) {
        now[i]           = before[i];
        now[i].deviation = rating_deviation(before[i].deviation, before[i].volatility, days[i]);
    }
    ret_after[0] = glicko2_apply(&now[0], &now[1], score);
    ret_after[1] = glicko2_apply(&now[1], &now[0], 1 - score);
    return OK;
}

bool rating_state_is_same(const RatingState *a, const RatingState *b)
{
    return fabs(a->rating - b->rating) <= TOLERANCE && fabs(a->deviation - b->deviation) <= TOLERANCE &&
           fabs(a->volatility - b->volatility) <= TOLERANCE;
}

int rating_points(double rating)
{
    return (int)lround(rating);
}

DbArg rating_reals(Arena *arena, const double *values, int count)
{
    const char **texts = arena_array(arena, const char *, count ? count : 1);

    for (int i = 0; i < count; i++)
        texts[i] = arena_print(arena, "%.17g", values[i]);
    return db_texts(arena, texts, count);
}
