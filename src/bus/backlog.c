/*
 * backlog.c - one call and its numbers; see backlog.h.
 */
#include "bus/backlog.h"

#include <stdio.h>
#include <string.h>

#include "bus/metric.h"
#include "pg/tx.h"
#include "sql.h"

#define COUNTS_COLUMNS(X, T)                                                                      \
    X(T, I64, ready, delayed, leased, in_tsq, allocated, oldest, oldest_ms, parked, batch_idle_s, \
      reply_queues_percent)                                                                       \
    X(T, TEXT, oldest_domain)
DB_ROW(Counts, COUNTS_COLUMNS);
DB_SHAPE(counts, Counts, COUNTS_COLUMNS);

#define DEPTH_COLUMNS(X, T) \
    X(T, TEXT, domain)      \
    X(T, I64, ready, delayed, parked, leased, in_tsq, oldest_s)
DB_ROW(Depth, DEPTH_COLUMNS);
DB_SHAPE(depth, Depth, DEPTH_COLUMNS);

void backlog_mark(Backlog *backlog, int64_t allocated, Mono now)
{
    BacklogMark *marks = backlog->marks;

    if (backlog->count > 0 && mono_ms_between(marks[backlog->count - 1].at, now) < BACKLOG_MARK_MS)
        return;
    if (backlog->count == BACKLOG_MARKS)
        memmove(marks, marks + 1, sizeof *marks * (size_t)--backlog->count);
    marks[backlog->count++] = (BacklogMark){allocated, now};
}

int64_t backlog_age_ms(const Backlog *backlog, int64_t number, Mono now)
{
    for (int i = 0; i < backlog->count; i++)
        if (backlog->marks[i].allocated >= number)
            return mono_ms_between(backlog->marks[i].at, now);
    return 0;
}

static int64_t oldest_age_ms(const Backlog *backlog, const Counts *counts, Mono now)
{
    int64_t age_ms;

    if (!counts->oldest)
        return 0;
    age_ms = backlog_age_ms(backlog, counts->oldest, now);
    return age_ms > counts->oldest_ms ? age_ms : counts->oldest_ms;
}

/* A database without work is asked for nothing. */
static ErrorCode depths_read(Pool *pool, const TxOptions *options, const Counts *counts, Depth **ret_list,
                             int *ret_count, Error *reterr)
{
    *ret_list  = NULL;
    *ret_count = 0;
    if (counts->ready + counts->delayed + counts->parked + counts->leased + counts->in_tsq == 0)
        return OK;
    return db_call_many(pool, options, sql_bus_backlog_domains, DB_NONE, &depth_shape, ret_list, ret_count, reterr);
}

static void depths_show(Backlog *backlog, const Depth *list, int count)
{
    MetricValues values[METRIC_SERIES_MAX + 1];
    int          shown = 0;

    backlog->deepest           = 0;
    backlog->deepest_domain[0] = '\0';
    for (int i = 0; i < count && shown < METRIC_SERIES_MAX + 1; i++) {
        const Depth *depth = &list[i];

        values[shown] = (MetricValues){
            .numbers = {depth->ready, depth->delayed, depth->parked, depth->leased, depth->in_tsq, depth->oldest_s}
        };
        snprintf(values[shown].value, sizeof values[shown].value, "%s", depth->domain ? depth->domain : "other");
        shown++;
        if (depth->domain && depth->ready > backlog->deepest) {
            backlog->deepest = depth->ready;
            snprintf(backlog->deepest_domain, sizeof backlog->deepest_domain, "%s", depth->domain);
        }
    }
    metric_snapshot_set(&bus_depths, values, shown);
}

ErrorCode backlog_step(Pool *pool, Deadline deadline, Backlog *backlog, Error *reterr)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    TxOptions                 options = {.name = "backlog", .deadline = deadline, .arena = arena, .read_only = true};
    Mono                      start   = clock_mono(), now;
    Counts                    counts;
    Depth                    *depths;
    int                       count;

    if (mono_before(start, backlog->pause_until))
        return OK;
    TRY(db_call(pool, &options, sql_bus_backlog, DB_NONE, &counts_shape, &counts, reterr));
    TRY(depths_read(pool, &options, &counts, &depths, &count, reterr));
    now = clock_mono();
    if (mono_us_between(start, now) > BACKLOG_CHEAP_US)
        backlog->pause_until = mono_plus_ms(now, mono_us_between(start, now) * BACKLOG_SHARE / 1000);
    backlog_mark(backlog, counts.allocated, now);
    snprintf(backlog->oldest_domain, sizeof backlog->oldest_domain, "%s",
             counts.oldest_domain ? counts.oldest_domain : "");
    depths_show(backlog, depths, count);
    metric_set(&bus_metrics.ready, counts.ready);
    metric_set(&bus_metrics.delayed, counts.delayed);
    metric_set(&bus_metrics.parked, counts.parked);
    metric_set(&bus_metrics.leased, counts.leased);
    metric_set(&bus_metrics.troubleshooting, counts.in_tsq);
    metric_set(&bus_metrics.batch_idle_s, counts.batch_idle_s);
    metric_set(&bus_metrics.reply_queues_percent, counts.reply_queues_percent);
    metric_set(&bus_metrics.oldest_ready_s, oldest_age_ms(backlog, &counts, now) / 1000);
    return OK;
}
