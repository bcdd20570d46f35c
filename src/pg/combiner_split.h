/*
 * combiner_split.h - runs a batch; one that fails because of its items is run again in halves, until each bad item is
 * alone with its error.
 *
 * A failure is about the items if it is final (VERDICT_FINAL) or a lock was not granted (55P03). It is the result of
 * the whole batch if the server or this process is stopping, or if the schema or the rights are wrong: smaller batches
 * would fail as well. Threads: any; all of it runs on the caller's.
 */
#ifndef PG_COMBINER_SPLIT_H
#define PG_COMBINER_SPLIT_H

#include "pg/combiner.h"

/* The schema or the rights are wrong. A trigger of an application may raise the same for one item: it fails those that
 * are beside it in each batch until it is run alone. */
bool failure_is_about_schema(ErrorCode code, const Error *error);

/* The result of items[first] to items[first + count - 1], which were run together. The error is borrowed until it
 * returns. */
typedef void CombinerRangeDone(void *context, int first, int count, const Error *error);

typedef struct {
    CombinerBatch *run;
    void          *context; /* of run */
    void         **items;
    int            count;
    Deadline       deadline;
} CombinerSplit;

/* Every item is in exactly one range. */
void combiner_split_ranges(const CombinerSplit *split, CombinerRangeDone *on_done, void *context);
/* The same, with a callback for each item. */
void combiner_split(CombinerBatch *run, void *context, void **items, int count, Deadline deadline,
                    CombinerDone *on_done);

#endif
