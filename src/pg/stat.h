/*
 * stat.h - what this process counts, stored once a minute as numbers over time: table pawl.stat (sql/base/stat.sql).
 *
 * The metrics are those that modules name in `stats` (base/module.h). A flush stores what was counted since the last
 * flush that is known to be stored; if nothing was, it sends no statement. A flush whose outcome is unknown is repeated
 * under its number with the same rows, so nothing is counted twice. A process that dies loses what it has not stored,
 * at most a minute. Counting costs what the metric costs, an addition in memory.
 * Threads: any; while one thread flushes, a flush by another returns OK without doing anything.
 */
#ifndef PG_STAT_H
#define PG_STAT_H

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/writer.h"
#include "pg/pool.h"
#include "pg/query.h"

#define STAT_MS          60000 /* between two flushes */
#define STAT_ROWS_MAX    5000  /* of one flush; the others follow with the next one */
#define STAT_MEASURE_MAX 31
#define STAT_LABEL_MAX   200

/* Is it time? true: the caller flushes now. */
bool                 stat_is_due(void);
must_check ErrorCode stat_flush(Pool *pool, Deadline deadline, Error *reterr);

/* ---- reading ---- */

/* p50_ms, p95_ms: of times; -1: a count. */
#define STAT_COLUMNS(X, T) \
    X(T, TIME, at)         \
    X(T, I64, count, p50_ms, p95_ms)
DB_ROW(StatPoint, STAT_COLUMNS);

typedef struct {
    const char *measure; /* one of stat_measures */
    const char *label;   /* a domain, or a route; NULL: all, summed */
    int64_t     since;   /* in microseconds */
    int         step_s;
} StatFilter;

/* Those of all modules, ended by NULL; in the arena. */
const char *const *stat_measures(Arena *arena);
bool               stat_is_time(const char *measure); /* its values are times, counted by length */
/* ERR_INVALID: a measure that does not exist, a time that is not stored, a step that makes too many points. */
must_check ErrorCode stat_list(Pool *pool, Deadline deadline, Arena *arena, const StatFilter *filter,
                               StatPoint **ret_list, int *ret_count, Error *reterr);
/* {"measure", "label", "since", "step_s", "items"} */
void stat_write(Writer *writer, const StatFilter *filter, const StatPoint *list, int count);
/* A step for a chart of so much time: whole minutes, or hours where minutes are not kept for as long; about 60 points.
 */
int stat_step_s(int64_t range_s, bool has_label);

#endif
