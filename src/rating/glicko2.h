/*
 * glicko2.h - Glicko-2 ratings (Glickman, "Example of the Glicko-2 system"): one rating period of one player. Pure.
 *
 * A player is a rating, its deviation and its volatility. glicko2_update() takes the games of one period, all against
 * the opponents' values at its beginning. In a group each match is a period of its own for both players, so that
 * ratings change immediately (rules.h).
 *
 * Invariants
 *   1. Volatility is found to GLICKO2_TOLERANCE by the Illinois iteration, in at most GLICKO2_STEPS_MAX steps.
 *   2. Results are finite for every finite input within the ranges below.
 * Threads: any; no state.
 */
#ifndef RATING_GLICKO2_H
#define RATING_GLICKO2_H

#define GLICKO2_RATING    1500.0
#define GLICKO2_DEVIATION 350.0
#define GLICKO2_TAU       0.5
#define GLICKO2_TOLERANCE 1e-6
#define GLICKO2_STEPS_MAX 100

typedef struct {
    double rating, deviation, volatility;
} Glicko2;

typedef struct {
    double rating, deviation; /* the opponent's */
    double score;             /* 1, 0.5 or 0 */
} Glicko2Game;

/* The deviation after this many periods without a game. */
double glicko2_idle(double deviation, double volatility, double periods);
/* The player after a period with these games; with none only the deviation grows. The rating is not bounded here. */
Glicko2 glicko2_update(Glicko2 player, const Glicko2Game *games, int count, double tau);

/* The parts, on the internal scale, for tests against the published figures. */
double glicko2_g(double phi);
double glicko2_expected(double mu, double mu_opponent, double phi_opponent);
double glicko2_volatility(double sigma, double delta, double phi, double v, double tau);

#endif
