/*
 * write.h - what activations write: records of steps, patches of the state, suspension or end.
 *
 * Writes of all activations of a pod share transactions through a combiner. Each is fenced by its lease: a verdict of its own says what
 * became of it, and one that fails keeps none beside it from being written.
 *
 * Threads: any. Ownership: everything in a ProcessWrite is borrowed until the call returns; `state` is the caller's to free().
 */
#ifndef PROCESS_WRITE_H
#define PROCESS_WRITE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/error.h"
#include "bus/settle.h"
#include "pg/pool.h"
#include "pg/query.h"
#include "process/load.h"

#define PROCESS_FOREVER_US ((int64_t)315360000 * 1000000) /* ten years: the longest delay of a command */

#define WRITE_VERDICTS(X)                                                                                 \
    X(WRITE_WRITTEN, "WRITTEN")                                                                           \
    X(WRITE_LOST, "LOST")           /* the lease has ended; nothing was written */                        \
    X(WRITE_STALE, "STALE")         /* the state has another version; nothing was written */              \
    X(WRITE_MET, "MET")             /* go on: a wait is complete, or its compensation was asked for */    \
    X(WRITE_TOO_LARGE, "TOO_LARGE") /* the state would exceed its limit; nothing was written */           \
    X(WRITE_BUSY, "BUSY")           /* another transaction has the process locked; nothing was written */ \
    X(WRITE_KNOWN, "KNOWN")         /* as WRITTEN, but the record was there before */                     \
    X(WRITE_ENDED, "ENDED")         /* the record was written, and with it the process has ended */
#define X(verdict, name) verdict,
typedef enum { WRITE_VERDICTS(X) WRITE_VERDICT_COUNT } WriteVerdict;
#undef X

#define WRITE_CONTINUE "continue"

typedef struct ProcessWrite ProcessWrite;
struct ProcessWrite {
    int64_t id, token;
    StepRecord
        record; /* id.step NULL: none; end: END_DONE with an error is END_FAILED; ended_us: the database says when */
    int64_t started_us;
    /* Merged into the state with the record. version: of the state that it was computed from; 0: it depends on none. */
    const char *patch;
    int64_t     version;
    /* Compute both anew from the state that a STALE has returned; NULL: its caller does. Only for process_write_queued(). */
    ErrorCode (*refresh)(void *context, ProcessWrite *write, Error *reterr);
    void       *context;
    const char *phase;  /* from now on; NULL: as before. end_error: why it is compensated */
    const char *failed; /* with a phase or an end: the step that failed, as it is shown; NULL: none */
    /* Suspension; NULL: none. waits: what resumes it besides the time. */
    const char *wait;
    RecordId    wait_step;
    const Wait *waits;
    int         wait_count;
    int64_t     due_us;
    /* The end, of a command or WRITE_CONTINUE, whose result is the state of the next life (NULL: the present one), of this version; NULL: none. */
    const char *end, *end_result, *end_error;
    /* Filled by the call. */
    WriteVerdict verdict;
    int64_t      state_version; /* as `state`, and for BUSY */
    bool         is_canceled;   /* by an operator or its deadline: it is to be compensated */
    char        *state;         /* the present one: for STALE, MET, and after a patch; else NULL */
    const char  *wake;          /* of process_write_queued(): domains */
};

/* In a transaction of the caller: an SQL step's effects and its record commit together. Anything but WRITE_WRITTEN and
 * WRITE_ENDED: roll back. */
must_check ErrorCode process_write_in(Tx *tx, ProcessWrite *write, Error *reterr);
/* Many in a transaction of the caller; of what is LOST, STALE, TOO_LARGE or BUSY nothing was written. *ret_wake: domains in which it queued
 * commands, joined by commas; NULL: none. Of several of one process, only the first that has a state returns it. */
must_check ErrorCode process_writes_in(Tx *tx, ProcessWrite **writes, int count, const char **ret_wake, Error *reterr);
/* Its record as pawl.record_read() reads it; NULL: none. */
const char *process_write_record(Arena *arena, const ProcessWrite *write);
/* ERR_LIMIT: this JSON is larger than a record, patch or result may be. NULL is fine. name: of the field. */
must_check ErrorCode process_json_check(const char *name, const char *json, Error *reterr);

typedef struct ProcessWriter ProcessWriter;
ProcessWriter               *process_writer_new(Pool *pool);
void                         process_writer_free(ProcessWriter *writer);
SCOPED(ProcessWriter, process_writer_free)
/* Did a write fail because a newer program has migrated the schema? Another pod writes it. */
bool process_writer_is_outdated(const ProcessWriter *writer, const Error *error);
/* Workers of this domain of the bus may have work. */
void process_writer_wake(ProcessWriter *writer, const char *domain);
/* Waits until it is committed. An error: it may or may not be; the same write again is safe. */
must_check ErrorCode process_write(ProcessWriter *writer, Deadline deadline, ProcessWrite *write, Error *reterr);
/* The same in a transaction of its own that waits in the queue of the process's row, for a second at most, and does not let it go for what is
 * STALE: for a process whose row other transactions take again and again, because process_write() never waits for it. WRITE_BUSY: one held it
 * for that long. A few are run at a time. */
must_check ErrorCode process_write_queued(ProcessWriter *writer, Deadline deadline, ProcessWrite *write, Error *reterr);

#endif
