/*
 * report.c - see report.h.
 */
#include "bench/report.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WINDOWS_FIRST 64

#define X(unit, text, decimals) [unit] = {text, decimals},
const UnitRow unit_rows[UNIT_COUNT] = {UNITS(X)};
#undef X

void report_init(Report *report, Arena *arena)
{
    *report = (Report){.arena = arena, .cpus = (int)sysconf(_SC_NPROCESSORS_ONLN)};
}

/* Behind the last one when it is not there yet. */
static int figure_place(const Report *report, const char *section, const char *name)
{
    int database = 0;

    while (database < report->figure_count && (strcmp(report->figures[database].section, section) != 0 ||
                                               strcmp(report->figures[database].name, name) != 0))
        database++;
    return database;
}

bool report_has(const Report *report, const char *section, const char *name)
{
    return figure_place(report, section, name) < report->figure_count;
}

void report_run(Report *report, const char *section, const char *name, Unit unit, double value)
{
    int     database = figure_place(report, section, name);
    Figure *figure   = &report->figures[database];

    assert(database < REPORT_FIGURES_MAX);
    if (database == report->figure_count) {
        *figure = (Figure){.section = section, .name = arena_text(report->arena, name), .unit = unit};
        report->figure_count++;
    }
    assert(figure->count < REPORT_RUNS_MAX);
    figure->runs[figure->count++] = value;
}

void report_times(Report *report, const char *section, const char *name, const Histogram *histogram)
{
    static const int percents[] = {50, 90, 99};

    for (size_t i = 0; i < COUNT(percents); i++)
        report_run(report, section, arena_print(report->arena, "%s, p%d", name, percents[i]), UNIT_MS,
                   histogram_ms(histogram, percents[i]));
    report_run(report, section, arena_print(report->arena, "%s, max", name), UNIT_MS, histogram_max_ms(histogram));
}

void report_window(Report *report, const Window *window)
{
    if (report->window_count == report->window_space) {
        int     space = report->window_space ? 2 * report->window_space : WINDOWS_FIRST;
        Window *wider = arena_array(report->arena, Window, space);

        if (report->window_count)
            memcpy(wider, report->windows, sizeof *wider * (size_t)report->window_count);
        report->windows      = wider;
        report->window_space = space;
    }
    report->windows[report->window_count++] = *window;
}

void report_judge(Report *report, const char *section, bool good, const char *why)
{
    assert(report->judgement_count < REPORT_JUDGEMENTS_MAX);
    report->judgements[report->judgement_count++] = (Judgement){section, good, why};
}

static int value_order(const void *a, const void *b)
{
    double left = *(const double *)a, right = *(const double *)b;

    return (left > right) - (left < right);
}

double figure_median(const Figure *figure)
{
    double sorted[REPORT_RUNS_MAX];

    assert(figure->count > 0);
    memcpy(sorted, figure->runs, sizeof sorted);
    qsort(sorted, (size_t)figure->count, sizeof *sorted, value_order);
    return (sorted[(figure->count - 1) / 2] + sorted[figure->count / 2]) / 2;
}
