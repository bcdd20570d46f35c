/*
 * command_stats.c - pawl stats: numbers over time, as a table with a chart in each line.
 */
#include <inttypes.h>
#include <string.h>

#include "base/writer.h"
#include "cli/command.h"
#include "cli/print.h"
#include "pg/stat.h"

#define SINCE_DEFAULT_S 3600
#define CHART_MAX       60

static const char *const domain_measures[] = {"sent",     "completed", "retried", "failed",
                                              "rejected", "wait",      "run",     NULL};

/* The value of a point: how many, or of times the 95th percentile. */
static int64_t value_of(const StatPoint *point)
{
    return point->p95_ms >= 0 ? point->p95_ms : point->count;
}

/* One character per step, or per few steps where there are many; the last one is the present. */
static const char *chart_text(Arena *arena, const StatFilter *filter, const StatPoint *list, int count, int64_t now_us)
{
    static const char *const blocks[]          = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    int64_t                  values[CHART_MAX] = {0}, most = 1;
    int64_t                  span_us = (int64_t)filter->step_s * 1000000, all = (now_us - filter->since) / span_us + 1;
    int                      width = all < CHART_MAX ? (int)all : CHART_MAX;
    Text                     text;

    for (int i = 0; i < count; i++) {
        int64_t step = (list[i].at - filter->since + span_us - 1) / span_us;
        int64_t at   = step < 0 ? 0 : step * width / all;

        if (at >= width)
            at = width - 1;
        values[at] = value_of(&list[i]) > values[at] ? value_of(&list[i]) : values[at];
        most       = values[at] > most ? values[at] : most;
    }
    text_init(&text, arena, TEXT_MAX_LINE);
    for (int i = 0; i < width; i++)
        text_append(&text, blocks[values[i] ? 1 + values[i] * 7 / most : 0]);
    return text_string(&text);
}

static const char *milliseconds_text(Arena *arena, int64_t ms)
{
    if (ms < 0)
        return "-";
    return ms < 10000 ? arena_print(arena, "%" PRId64 "ms", ms) : arena_print(arena, "%" PRId64 "s", ms / 1000);
}

static void row_add(Table *table, Arena *arena, const StatFilter *filter, const StatPoint *list, int count,
                    int64_t now_us)
{
    const StatPoint *last  = count > 0 ? &list[count - 1] : &(StatPoint){.p50_ms = -1, .p95_ms = -1};
    int64_t          total = 0;

    for (int i = 0; i < count; i++)
        total += list[i].count;
    table_cell(table, filter->measure);
    table_cell_i64(table, total);
    table_cell(table, stat_is_time(filter->measure)
                          ? "-"
                          : arena_print(arena, "%.1f", (double)total * 1e6 / (double)(now_us - filter->since)));
    table_cell(table, milliseconds_text(arena, last->p50_ms));
    table_cell(table, milliseconds_text(arena, last->p95_ms));
    table_cell(table, chart_text(arena, filter, list, count, now_us));
}

static ErrorCode filter_read(const Call *call, int64_t now_us, StatFilter *ret_filter, Error *reterr)
{
    int64_t since, step_ms;

    TRY(call_moment(call, "--since", &since, reterr));
    TRY(call_duration(call, "--step", 0, &step_ms, reterr));
    if (step_ms % 60000 != 0 || step_ms > (int64_t)366 * 86400 * 1000)
        return fail(reterr, ERR_USAGE, "--step must be in whole minutes, from 1m to 366d");
    if (since > now_us)
        return fail(reterr, ERR_USAGE, "--since must not be in the future");
    if (!since)
        since = now_us - (int64_t)SINCE_DEFAULT_S * 1000000;
    *ret_filter = (StatFilter){.label  = call->count > 0 ? call->arguments[0] : NULL,
                               .since  = since,
                               .step_s = step_ms ? (int)(step_ms / 1000)
                                                 : stat_step_s((now_us - since) / 1000000, call->count > 0)};
    return OK;
}

static ErrorCode measures_print(Call *call, StatFilter *filter, const char *const *measures, int64_t now_us,
                                Error *reterr)
{
    static const char *const head[] = {"measure", ">total", ">per s", ">last p50", ">last p95", "over time", NULL};
    Writer                  *writer = print_writer(call->arena);
    Table                    table;
    StatPoint               *list;
    int                      count;

    table_init(&table, call->arena, head);
    writer_array(writer, NULL);
    for (; *measures; measures++) {
        filter->measure = *measures;
        TRY(stat_list(call->pool, deadline_in_ms(APP_COMMAND_MS), call->arena, filter, &list, &count, reterr));
        if (call->json)
            stat_write(writer, filter, list, count);
        else if (count > 0)
            row_add(&table, call->arena, filter, list, count, now_us);
    }
    writer_end(writer);
    if (call->json)
        print_json(writer);
    else
        table_print(&table, "nothing was counted");
    return OK;
}

ErrorCode command_stats(Call *call, Error *reterr)
{
    const char        *measure = call_flag(call, "--measure");
    const char *const  one[]   = {measure, NULL};
    const char *const *all     = call->count > 0 ? domain_measures : stat_measures(call->arena);
    int64_t            now_us  = clock_wall().us;
    StatFilter         filter;

    TRY(filter_read(call, now_us, &filter, reterr));
    TRY(call_open(call, APP_SCHEMA, reterr));
    domain_note(call, "", filter.label);
    return measures_print(call, &filter, measure ? one : all, now_us, reterr);
}
