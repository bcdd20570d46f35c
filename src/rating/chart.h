/*
 * chart.h - ratings over time as a PNG, by cairo. Pure but for its memory.
 *
 * Drawn for a phone: large type, few lines, the names at the ends of their curves; colours that differ clearly on the dark panel that the
 * chart brings along, so that it looks the same in a light and in a dark chat.
 *
 * Invariants
 *   1. 1080 by 720 pixels, whatever is drawn. Time runs to the right in proportion, so pauses show.
 *   2. At most CHART_SERIES_MAX series of CHART_POINTS_MAX points; names are shortened, invalid UTF-8 is replaced.
 * Threads: any. Ownership: the bytes live in the arena.
 */
#ifndef RATING_CHART_H
#define RATING_CHART_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"

#define CHART_WIDTH      1080
#define CHART_HEIGHT     720
#define CHART_SERIES_MAX 5
#define CHART_POINTS_MAX 1000

typedef struct {
    int64_t at; /* microseconds since 1970 */
    double  rating;
} ChartPoint;

typedef struct {
    const char *name; /* NULL: none */
    ChartPoint *points;
    int         count;
} ChartSeries;

/* ERR_INVALID: no series, or one without a point. ERR_LIMIT: more than the limits. */
must_check ErrorCode chart_draw(const char *title, const ChartSeries *list, int count, Arena *arena,
                                const void **ret_png, size_t *ret_size, Error *reterr);

#endif
