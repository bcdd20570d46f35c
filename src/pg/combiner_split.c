/*
 * combiner_split.c - a batch by halves; see combiner_split.h for which failures split one.
 */
#include "pg/combiner_split.h"

#include <string.h>

bool failure_is_about_schema(ErrorCode code, const Error *error)
{
    return code == ERR_DENIED || (code != OK && strncmp(error->sqlstate, "42", 2) == 0);
}

static bool failure_is_about_items(ErrorCode code, const Error *error)
{
    if (strcmp(error->sqlstate, "55P03") == 0)
        return true;
    return error_verdict(code) == VERDICT_FINAL && code != ERR_STOPPING && code != ERR_REFUSED &&
           !failure_is_about_schema(code, error);
}

/* Where the results of ranges go. */
typedef struct {
    CombinerRangeDone *on_done;
    void              *context;
} RangeSink;

static void range_run(const CombinerSplit *split, int first, int count, const RangeSink *sink)
{
    Error     error = {0};
    ErrorCode code  = split->run(split->context, split->items + first, count, split->deadline, &error);
    int       half  = count / 2;

    if (code != OK && count > 1 && failure_is_about_items(code, &error)) {
        range_run(split, first, half, sink);
        range_run(split, first + half, count - half, sink);
        return;
    }
    error.code = code;
    sink->on_done(sink->context, first, count, &error);
}

void combiner_split_ranges(const CombinerSplit *split, CombinerRangeDone *on_done, void *context)
{
    range_run(split, 0, split->count, &(RangeSink){on_done, context});
}

typedef struct {
    void        **items;
    CombinerDone *on_done;
} ItemSink;

static void range_report(void *context, int first, int count, const Error *error)
{
    const ItemSink *sink = context;

    for (int i = first; i < first + count; i++)
        sink->on_done(sink->items[i], error);
}

void combiner_split(CombinerBatch *run, void *context, void **items, int count, Deadline deadline,
                    CombinerDone *on_done)
{
    combiner_split_ranges(&(CombinerSplit){run, context, items, count, deadline}, range_report,
                          &(ItemSink){items, on_done});
}
