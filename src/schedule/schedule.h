/*
 * schedule.h - schedules: commands and processes that are sent at given times; sql/schedule/ decides.
 *
 * A schedule is paused, or has a next time. Monitors call schedules_fire() when that is due; any number of them may,
 * each time fires once.
 * Threads: any. Ownership: texts live in the arena.
 */
#ifndef SCHEDULE_SCHEDULE_H
#define SCHEDULE_SCHEDULE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/reader.h"
#include "base/writer.h"
#include "pg/pool.h"
#include "pg/query.h"

#define SCHEDULE_NAME_MAX     100
#define SCHEDULE_CRON_MAX     200
#define SCHEDULE_TIMEZONE_MAX 100
#define SCHEDULE_EVERY_S_MAX  (366 * 86400)
#define SCHEDULE_JITTER_S_MAX 86400
#define SCHEDULE_NEXT_MAX     1000 /* times in one preview */
#define SCHEDULE_NEXT_DEFAULT 10
#define SCHEDULE_CHANNEL      "pawl_schedule" /* a schedule was created, changed or resumed */

/* cron and timezone, or every_ms. payload: only from schedule_find(). */
#define SCHEDULE_COLUMNS(X, T)                                                      \
    X(T, I64, id, every_ms, jitter_ms)                                              \
    X(T, TEXT, name, domain, type, cron, timezone, missed, overlap, status, error)  \
    X(T, BOOL, is_process)                                                          \
    X(T, UUID, last_id)                                                             \
    X(T, TIME, next_at, last_at, skipped_at, failing_since, created_at, changed_at) \
    X(T, JSONB, payload)
DB_ROW(Schedule, SCHEDULE_COLUMNS);

/* A time; due_at: with its jitter; local: what clocks in the schedule's time zone show. */
#define SCHEDULE_TIME_COLUMNS(X, T) \
    X(T, TIME, at, due_at)          \
    X(T, TEXT, local)
DB_ROW(ScheduleTime, SCHEDULE_TIME_COLUMNS);

extern const char *const schedule_statuses[], *const schedule_missed[],
                                                  *const schedule_overlaps[]; /* NULL-terminated */

typedef struct {
    const char *domain, *type, *status; /* NULL: all */
    int64_t     before;                 /* cursor: ids below this; 0: from the newest */
    int         limit;                  /* 1..1000 */
} ScheduleFilter;

must_check ErrorCode schedule_list(Pool *pool, Deadline deadline, Arena *arena, const ScheduleFilter *filter,
                                   Schedule **ret_list, int *ret_count, Error *reterr);
/* With its payload. ERR_NOT_FOUND. */
must_check ErrorCode schedule_find(Pool *pool, Deadline deadline, Arena *arena, const char *name,
                                   Schedule *ret_schedule, Error *reterr);
/* The next times from now on, also of one that is paused. */
must_check ErrorCode schedule_next(Pool *pool, Deadline deadline, Arena *arena, const char *name, int count,
                                   ScheduleTime **ret_list, int *ret_count, Error *reterr);

/* ---- decisions; each has an operator, NULL: the login, and a reason or NULL. lock_ms: as in bus/command.h ---- */

typedef struct {
    const char *name, *operator, * reason;
} ScheduleDecision;

/* What a schedule is to be. missed and overlap NULL: once, allow; payload NULL: {}; every_s, jitter_s 0: none. */
typedef struct {
    const char *name, *domain, *type, *payload, *cron, *timezone, *missed, *overlap;
    double      every_s, jitter_s;
    bool        process;
} ScheduleRequest;
extern const FieldTable schedule_table, schedule_replace_table; /* the second without the name */

/* The body of a decision over HTTP. */
typedef struct {
    const char *by, *reason, *command_id; /* command_id: of a run */
} ScheduleDecisionRequest;
extern const FieldTable schedule_decision_table, schedule_run_table;

/* ret_done: "created", "replaced" or "unchanged". ERR_CONFLICT: it exists and differs, and is not to be replaced. */
must_check ErrorCode schedule_create(Pool *pool, Deadline deadline, int lock_ms, Arena *arena,
                                     const ScheduleRequest *request, bool replace, const ScheduleDecision *decision,
                                     const char **ret_done, Error *reterr);
/* ret_changed: was it otherwise before? ERR_NOT_FOUND; but deleting none is OK. */
must_check ErrorCode schedule_pause(Pool *pool, Deadline deadline, int lock_ms, const ScheduleDecision *decision,
                                    bool *ret_changed, Error *reterr);
must_check ErrorCode schedule_resume(Pool *pool, Deadline deadline, int lock_ms, const ScheduleDecision *decision,
                                     bool *ret_changed, Error *reterr);
must_check ErrorCode schedule_delete(Pool *pool, Deadline deadline, int lock_ms, const ScheduleDecision *decision,
                                     bool *ret_changed, Error *reterr);
/* Send its command now, under this id. ret_wake: domains to wake, or NULL. */
must_check ErrorCode schedule_run(Pool *pool, Deadline deadline, int lock_ms, Arena *arena, const char *command_id,
                                  const ScheduleDecision *decision, const char **ret_wake, Error *reterr);

/* ---- firing ---- */

/* Fire a batch of those that are due. ret_fired: how many were; ret_next_ms: until the next one is due, most_ms at
 * most, 0: there is more to do, or another pod does it; ret_wake: domains to wake, or NULL. */
must_check ErrorCode schedules_fire(Pool *pool, Deadline deadline, Arena *arena, int most_ms, int *ret_fired,
                                    int *ret_next_ms, const char **ret_wake, Error *reterr);

/* ---- as JSON, the same for HTTP and the command line ---- */

RowWrite schedule_write, schedule_whole_write; /* the second with the payload */
void     schedule_times_write(Writer *writer, const ScheduleTime *list, int count);

#endif
