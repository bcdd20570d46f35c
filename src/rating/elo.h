/*
 * elo.h - Elo ratings: expected score, change after a match, weight of the margin of victory. Pure.
 *
 * Invariants
 *   1. Ratings are whole points from ELO_MIN to ELO_MAX. The change is rounded half away from zero, once for the
 *      match: what one player gains the other loses, so the sum over both never changes.
 *   2. At a bound both changes shrink by the same amount, to what the players can give and take.
 *   3. Equal inputs give equal outputs: a replay of the same matches gives the same ratings.
 * Threads: any; no state.
 */
#ifndef RATING_ELO_H
#define RATING_ELO_H

#include <stdbool.h>

#define ELO_MIN        0
#define ELO_MAX        10000
#define ELO_K          32
#define ELO_K_MAX      400
#define ELO_FACTOR_MAX 3.0 /* for the margin */

/* The share of points that a player with this rating can expect, 0 to 1. */
double elo_expected(double rating, double opponent);
/* The unrounded change of a player: k * (score - expected); score is 1, 0.5 or 0. */
double elo_change_exact(double rating, double opponent, double score, double k);
/* By how much k is multiplied for a margin of this many points: log2(margin + 1) * 2.2 / (0.001 * (winner - loser)
 * + 2.2), at most ELO_FACTOR_MAX. Between equals a win by 1 counts once, by 3 twice, by 7 or more three times. A
 * favourite who wins high gains less by it than an outsider; for an outsider with 2200 points less, where the
 * formula has a pole, it is ELO_FACTOR_MAX. margin 0, a draw: 1. */
double elo_margin_factor(int margin, double winner, double loser);
/* The change of the first player in whole points, within the bounds; the second one's is its negative. */
int elo_change(int first, int second, int score_first, int score_second, double k, bool with_margin);

#endif
