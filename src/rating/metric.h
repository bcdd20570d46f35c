/*
 * metric.h - what module rating counts; see base/metric.h.
 *
 * Matches and undos are counted when they are written; a transaction that is rolled back afterwards, by a lost
 * connection, counts too.
 */
#ifndef RATING_METRIC_H
#define RATING_METRIC_H

#include "base/metric.h"

/* clang-format off */
#define RATING_METRICS(X) \
    X(matches,   COUNTER,   "pawl_rating_matches_total",    "", "matches registered") \
    X(undos,     COUNTER,   "pawl_rating_undos_total",      "", "matches undone") \
    X(replayed,  COUNTER,   "pawl_rating_replayed_total",   "", \
      "later matches whose ratings were computed again by an undo") \
    X(conflicts, COUNTER,   "pawl_rating_conflicts_total",  "", \
      "registrations and undos rolled back because a rating had changed since it was read") \
    X(refused,   COUNTER,   "pawl_rating_refused_total",    "", "matches and undos refused by the rules of the game") \
    X(limited,   COUNTER,   "pawl_rating_limited_total",    "", "commands beyond the limits per user and group") \
    X(charts,    HISTOGRAM, "pawl_rating_chart_seconds",    "", "time to draw a chart")
/* clang-format on */

typedef struct {
    RATING_METRICS(METRIC_FIELD)
} RatingMetrics;
extern RatingMetrics rating_metrics;

#endif
