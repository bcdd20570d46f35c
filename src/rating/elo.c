/*
 * elo.c - see elo.h.
 */
#include "rating/elo.h"

#include <math.h>
#include <stdlib.h>

double elo_expected(double rating, double opponent)
{
    return 1.0 / (1.0 + pow(10.0, (opponent - rating) / 400.0));
}

double elo_change_exact(double rating, double opponent, double score, double k)
{
    return k * (score - elo_expected(rating, opponent));
}

double elo_margin_factor(int margin, double winner, double loser)
{
    double share = (0.001 * (winner - loser) + 2.2) / 2.2;

    if (margin <= 0)
        return 1.0;
    return share > 0 ? fmin(log2((double)margin + 1.0) / share, ELO_FACTOR_MAX) : ELO_FACTOR_MAX;
}

/* What one player can lose and the other can take. */
static int bounded(int change, int gains, int loses)
{
    int most = ELO_MAX - gains < loses - ELO_MIN ? ELO_MAX - gains : loses - ELO_MIN;

    return change < most ? change : most;
}

/* From the winner's side, or the side that gains by a draw, so that both orders of the players give the same number. */
static int gain(int gains, int loses, int margin, double k, bool with_margin)
{
    double factor = with_margin ? elo_margin_factor(margin, gains, loses) : 1.0;
    double score  = margin > 0 ? 1.0 : 0.5;

    return bounded((int)lround(elo_change_exact(gains, loses, score, k * factor)), gains, loses);
}

int elo_change(int first, int second, int score_first, int score_second, double k, bool with_margin)
{
    int  margin = abs(score_first - score_second);
    bool gains  = margin ? score_first > score_second : first < second;

    return gains ? gain(first, second, margin, k, with_margin) : -gain(second, first, margin, k, with_margin);
}
