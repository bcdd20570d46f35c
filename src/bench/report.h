/*
 * report.h - what was measured, in the order it was measured: figures with their runs, windows of time, judgements.
 *
 * Threads: one. Ownership: all memory is the arena's; names are constants or the arena's.
 */
#ifndef BENCH_REPORT_H
#define BENCH_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "bench/histogram.h"

#define REPORT_RUNS_MAX       32
#define REPORT_FIGURES_MAX    128
#define REPORT_JUDGEMENTS_MAX 8

#define UNITS(X)            \
    X(UNIT_RATE, "/s", 0)   \
    X(UNIT_MS, "ms", 2)     \
    X(UNIT_PERCENT, "%", 1) \
    X(UNIT_BYTES, "bytes each", 0)
#define X(unit, text, decimals) unit,
typedef enum { UNITS(X) UNIT_COUNT } Unit;
#undef X
typedef struct {
    const char *text;
    int         decimals;
} UnitRow;
extern const UnitRow unit_rows[UNIT_COUNT];

typedef struct {
    const char *section, *name;
    Unit        unit;
    int         count;
    double      runs[REPORT_RUNS_MAX];
} Figure;

/* A time window of an offered load. */
typedef struct {
    const char *section;
    double      end_s;         /* since the load began */
    double      offered, done; /* a second */
    int64_t     backlog;       /* at its end */
    double      start_p50_ms, start_p99_ms, claim_p50_ms, claim_p99_ms;
} Window;

typedef struct {
    const char *section;
    bool        good;
    const char *why;
} Judgement;

typedef struct {
    int64_t sent, ready, delayed, leased, completed;
} ReportCounts;

typedef struct {
    Arena       *arena;
    const char  *database, *version, *synchronous_commit, *fsync; /* NULL: nothing was begun */
    int          cpus;
    ReportCounts counts; /* of all databases of this bench together */
    Figure       figures[REPORT_FIGURES_MAX];
    int          figure_count;
    Window      *windows;
    int          window_count, window_space;
    Judgement    judgements[REPORT_JUDGEMENTS_MAX];
    int          judgement_count;
} Report;

void report_init(Report *report, Arena *arena);
/* One more run of a figure; the first one makes it. */
void report_run(Report *report, const char *section, const char *name, Unit unit, double value);
/* The percentiles of a histogram as figures: "NAME, p50". */
void report_times(Report *report, const char *section, const char *name, const Histogram *histogram);
bool report_has(const Report *report, const char *section, const char *name);
void report_window(Report *report, const Window *window);
void report_judge(Report *report, const char *section, bool good, const char *why);

double figure_median(const Figure *figure);

#endif
