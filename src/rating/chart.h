/*
 * chart.h - ratings over time as a PNG, by cairo. Pure but for its memory.
 *
 * Drawn for a phone: large type, few lines, the names at the ends of their curves; colours that differ clearly on the
 * dark panel of the chart, which looks the same in a light and in a dark chat.
 *
 * Invariants
 *   1. CHART_WIDTH by CHART_HEIGHT pixels, which is what Telegram shows of a photo. Time runs to
 *      the right in proportion, so pauses show.
 *   2. At most CHART_SERIES_MAX series of CHART_POINTS_MAX points; names are shortened, and characters that the font
 *      does not have, such as emoji, are left out.
 * Threads: any. Ownership: the bytes live in the arena.
 */
#ifndef RATING_CHART_H
#define RATING_CHART_H

#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "rating/phrase.h"

#define CHART_WIDTH      1280 /* what Telegram shows of a photo */
#define CHART_HEIGHT     853
#define CHART_SERIES_MAX 8
#define CHART_POINTS_MAX 1000

typedef struct {
    int64_t at; /* microseconds since 1970 */
    double  rating;
} ChartPoint;

typedef struct {
    const char *name;     /* NULL: none */
    const char *username; /* shown if nothing of the name can be drawn; NULL: none */
    ChartPoint *points;
    int         count;
} ChartSeries;

/* ERR_INTERNAL: the library that draws is not installed. */
must_check ErrorCode chart_check(Error *reterr);
/* ERR_INVALID: no series, or one without a point. ERR_LIMIT: more than the limits. */
must_check ErrorCode chart_draw(const char *title, Language language, const ChartSeries *list, int count, Arena *arena,
                                const void **ret_png, size_t *ret_size, Error *reterr);
/* A mark of the time axis: "19 Sep", "19.09", "Sep 2026", "09.2026" or "13:05". range: what the axis covers, in
 * microseconds. */
const char *chart_time_text(Language language, int64_t at, int64_t range, Arena *arena);

#endif
