/*
 * rules.h - the rules of one match: which rating system, with which factor; and what they do to two players. Pure.
 *
 * Each match is computed by the rules that its group had when it was registered, also in a replay: a change of
 * settings applies to later matches only. The formulas belong to the rules. What formula 1 computes never changes,
 * because stored matches say so: a better formula gets the next number, and groups move to it (ADR 39).
 *
 * Under Glicko-2 a rating period is a day, or a match where there are several in a day: before a match the deviation
 * grows by the days since the player's match before, under either system. Elo uses no deviation and leaves it as it
 * is.
 *
 * Invariants
 *   1. Ratings are from 0 to 10000. Under Elo they are whole points and a match keeps their sum; a rating with a
 *      fraction, from a time under Glicko-2, is rounded first.
 *   2. Equal inputs give equal outputs.
 * Threads: any; no state.
 */
#ifndef RATING_RULES_H
#define RATING_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "pg/query.h"

#define RULES_ELO     "elo"
#define RULES_GLICKO2 "glicko2"

#define RULES_FORMULA 1 /* the newest that this program knows */

typedef struct {
    int32_t     formula; /* from 1 */
    const char *system;  /* "elo" or "glicko2" */
    int32_t     k_factor;
    bool        margin;
} Rules;

typedef struct {
    double rating, deviation, volatility;
} RatingState;

/* days: since the match before, of each player. The first player is that of score_a. ERR_CONFLICT: the rules have a
 * newer formula. */
must_check ErrorCode rules_apply(const Rules *rules, const RatingState before[2], const int32_t days[2], int score_a,
                                 int score_b, RatingState ret_after[2], Error *reterr);
/* The deviation of a player so many days after the last match. */
double rating_deviation(double deviation, double volatility, int32_t days);
/* Are they the same, as far as a replay on another machine can tell? */
bool rating_state_is_same(const RatingState *a, const RatingState *b);
/* The rating as people see it. */
int rating_points(double rating);

/* Numbers as an argument of a query, to be cast to double precision[]; written so that they are read back exactly. */
DbArg rating_reals(Arena *arena, const double *values, int count);

#endif
