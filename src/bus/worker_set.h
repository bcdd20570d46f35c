/*
 * worker_set.h - the workers of one process: a table of domain, handler and concurrency, each worker on a thread of its own.
 *
 * pawl work has one row, pawl serve has one for each section [worker NAME] of its settings, and a program that uses the library has
 * the handler that it brings.
 *
 * Invariants
 *   1. A row that cannot work (no program, no such function) is refused when it is added, before anything is claimed.
 *   2. A worker whose run failed for good ends, or is run again after restart_ms; the others go on.
 * Threads: rows are added, started and freed by one thread; the rest from any. Ownership: what a row says is copied, but for its Handler.
 */
#ifndef BUS_WORKER_SET_H
#define BUS_WORKER_SET_H

#include "bus/handler.h"
#include "bus/worker.h"

#define WORKER_LEASE_MS_MIN 100
#define WORKER_TIME_MS_MAX  86400000 /* a day: of a lease, a handler, a stop */
#define WORKER_STOP_MS      30000    /* how long handlers get after a signal */

typedef struct {
    const char        *domain;
    const char *const *types;                                               /* NULL: all */
    int                concurrency, batch, ahead_max, lease_ms, timeout_ms; /* 0: the defaults of WorkerOptions */
    bool               drain;
    bool               is_lazy, is_flushed, shares_types; /* see WorkerOptions */
    bool               alone;                             /* sql: each command in a transaction of its own */
    /* Exactly one of these. */
    const char *exec;
    const char *sql;
    bool        noop;
    Handler    *handler; /* borrowed for as long as the set lives */
} WorkerRow;

typedef struct WorkerSet WorkerSet;

typedef struct {
    Listen *listen;                /* wakes them; must be freed before the set */
    int     restart_ms;            /* run a worker that failed again after this time; 0: it ends */
    void (*on_end)(void *context); /* the last one has ended; called from its thread. NULL: nothing */
    void *context;
} WorkerSetStart;

/* "a, b" to {"a", "b", NULL}, in the arena. ERR_USAGE names the field: no type, or one that no command can have. */
must_check ErrorCode worker_types_read(const char *field, const char *text, Arena *arena, const char *const **ret_types,
                                       Error *reterr);

/* handler_pool: for functions of applications (WorkerRow.sql); see handler.h. Both borrowed. */
WorkerSet *worker_set_new(Pool *pool, Pool *handler_pool);
/* After worker_set_wait() has returned true, or without a start. */
void worker_set_free(WorkerSet *set);
SCOPED(WorkerSet, worker_set_free)
/* ERR_USAGE: not exactly one handler, or a program that is not there. ERR_INVALID, ERR_NOT_FOUND: no such function; the codes of a
 * query. */
must_check ErrorCode worker_set_add(WorkerSet *set, const WorkerRow *row, Deadline deadline, Error *reterr);
/* Once. ERR_INTERNAL: a thread cannot be started; what was started has ended again. */
must_check ErrorCode worker_set_start(WorkerSet *set, const WorkerSetStart *start, Error *reterr);
/* All of them claim these types from now on; NULL: all. What they hold goes on. */
void worker_set_types(WorkerSet *set, const char *const *types);
/* No more claims; handlers get until the deadline, then are stopped. Does not wait. */
void worker_set_stop(WorkerSet *set, Deadline deadline);
/* false: some still run. */
bool worker_set_wait(WorkerSet *set, Deadline deadline);
/* After the wait: the first failure that ended a worker. */
must_check ErrorCode worker_set_result(const WorkerSet *set, Error *reterr);
/* Of all of them together. */
void worker_set_counts(WorkerSet *set, WorkerCounts *ret_counts);

#endif
