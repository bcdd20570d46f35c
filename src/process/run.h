/*
 * run.h - one activation of a process: replays recorded steps, records new ones, and finally suspends or ends the process.
 *
 * A Run is what the interpreter of definitions and processes written in C have in common. Steps are found by their record's identity (record.h). A step that has a
 * successful record is never run again. A step that failed has one record per attempt; its policy says whether another one follows (verb.h).
 * A step that cannot end now (a wait, a sleep, a retry that is not due) adds a wait; when nothing else can be done the caller suspends,
 * and the process is queued again when one of the waits is complete or the earliest time has come.
 *
 *     RUNNING -> SUSPENDED | ENDED  [run_suspend(), run_end(), run_continue()]      RUNNING -> LOST  [a write found the lease gone]
 *
 * Invariants
 *   1. After LOST nothing is written: every write is fenced by the lease, and run_is_over() is true.
 *   2. A record is written before run_record() returns RUN_OK: what comes next may rely on it.
 *   3. Waits are collected and never taken back within an activation.
 * Threads: branches of one process may use it at the same time. Ownership: everything it returns lives as long as the Run.
 */
#ifndef PROCESS_RUN_H
#define PROCESS_RUN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/sync.h"
#include "base/value.h"
#include "bus/worker.h"
#include "process/key.h"
#include "process/load.h"
#include "process/metric.h"
#include "process/write.h"

#define RUN_RECORDS_MAX     10000 /* of a process, but those of its compensations */
#define RUN_BUSY_MS         155   /* for so long a locked process is waited for */
#define RUN_RECORDS_REACHED "the process has recorded %d steps and may record no more"

typedef struct Run Run;

/* loaded: of this process; NULL: there is none, which ends the activation. All borrowed. */
must_check ErrorCode run_new(ProcessWriter *writer, Job *job, const LoadedProcess *loaded, Run **ret_run,
                             Error *reterr);
void                 run_free(Run *run);
SCOPED(Run, run_free)

/* Of the process. */
int64_t run_number(const Run *run);
/* What keys of its steps are derived from. */
KeyOwner run_key_owner(const Run *run);
/* The key of a step: another one each time an operator has set the step aside. ret_uuid has UUID_TEXT_SIZE bytes. */
void run_step_key(Run *run, RecordId step, char *ret_uuid);
/* How often the process has begun, from 1: it continues as new. */
int run_life(const Run *run);
/* The state that this life began with, JSON. */
const char *run_input(const Run *run);
/* Of the domain; any thread may count. */
ProcessMetrics *run_metrics(const Run *run);

/* ---- what is known ---- */

/* The result of a record that succeeded; NULL: it has not. The JSON text "null" for a step without a result. */
const char *run_result(Run *run, RecordId id);
/* The same as it was before an operator had the process retried from a step for the number-th time; 0: as it is now. A step that was not set
 * aside then or later has the result that it has now. */
const char *run_result_before(Run *run, RecordId id, int number);
/* This attempt of it; NULL: it has no record. Records of other kinds than steps may be numbered by the attempt that they belong to. */
const StepRecord *run_attempt(Run *run, RecordId id, int attempt);
/* The last attempt of it that is recorded, also one that does not count any more; NULL: none. */
const StepRecord *run_last(Run *run, RecordId id);
/* The record that succeeded; NULL: none. */
const StepRecord *run_success(Run *run, RecordId id);
/* The last failed attempt that counts; NULL: none. *ret_failures: how many do. */
const StepRecord *run_failure(Run *run, RecordId id, int *ret_failures);
/* Its attempts that are recorded, also those that do not count any more. */
int run_attempts(Run *run, RecordId id);
/* When an operator last had the process tried again; 0: never. */
int64_t run_retried_us(const Run *run);
/* The payloads of such responses that arrived, in order; without those that were set aside. */
int run_responses(Run *run, ResponseOf of, const char *const **ret_payloads);
/* The same. Responses of all names stand in memory in the order of their arrival. */
int run_arrivals(Run *run, ResponseOf of, const ProcessResponse *const **ret_list);
/* Held from the time when a wait finds the responses that it takes until its record says so. Taken before the Run's own. */
Mutex *run_responses_mutex(Run *run);
/* How many replies to this step were set aside. */
int run_replies_aside(Run *run, RecordId step);
int run_response_count(Run *run); /* of all */
/* Those of which some arrived, sorted, from 0 on; NULL: there is none with this index. */
const ResponseOf *run_response_of(Run *run, int index);
/* Of a process that is being compensated: the steps whose commands or children have not ended. */
int run_open(const Run *run, const RecordId **ret_list);
/* Was the command or child with this id sent before this activation began, and had not ended then? */
bool run_has_sent(const Run *run, const char *id);
/* Why it is compensated; NULL: it is not, or nothing was said. */
const char *run_reason(const Run *run);
const char *run_state(Run *run); /* JSON; as of the last write that reported it */
int64_t     run_version(Run *run);
const char *run_phase(Run *run);
/* The time of the database, in microseconds since 1970: a pod whose clock is wrong decides as the others do. */
int64_t run_now_us(const Run *run);
/* Successful records in the order in which they ended. */
int run_records(Run *run, const StepRecord *const **ret_list);
/* How many more the process may have. */
int run_records_left(Run *run);
/* All records, also of failures, by identity and attempt; valid until the next one is written. */
int  run_history(Run *run, StepRecord *const **ret_list);
bool run_is_over(Run *run);
#define RUN_LATE_TEXT     "the deadline of the process has passed" /* pawl.deadline_error() has the same */
#define RUN_CANCELED_TEXT "canceled by an operator"

/* An operator wants it canceled, and its steps compensated; or its deadline has passed with that action. */
bool run_is_canceled(Run *run);
/* Why it is canceled: one of the two texts above. */
const char *run_cancel_text(Run *run);
/* The deadline of the process has passed. */
bool run_is_late(const Run *run);
/* What happens at the deadline, a word of failure_actions; NULL: there is none. */
const char *run_deadline_action(const Run *run);
/* Until the deadline, which ends what runs; -1: there is none, or it does not count any more. */
int64_t run_ms_left(const Run *run);
/* The connection was lost while a function of an application ran on it, in the step of this record. */
void run_suspect(Run *run, RecordId record);
/* Such a step, as it is shown; NULL: none. Borrowed until the run is freed. */
const char *run_suspected(Run *run);
/* The server does not run what writes a result, for a reason that is not in the result: a revoked right, a trigger that raises an error. */
bool run_is_unwritten(Run *run);
/* The worker asks to stop, or the lease is lost: stop what runs. */
bool run_must_stop(Run *run);
/* The same, or the activation uses too much memory: begin no further step. */
bool run_must_end(Run *run);

/* ---- what is written ---- */

typedef enum {
    RUN_OK,
    RUN_OVER,  /* the lease is lost, or the process has ended: write nothing more */
    RUN_STALE, /* the state has changed since it was read: compute the patch again */
    RUN_KNOWN, /* run_record_in(): it was recorded before, so roll back: this work was done by a transaction whose answer was lost */
} RunVerdict;

typedef struct RunRecord RunRecord;
typedef ErrorCode        RunRefresh(void *context, RunRecord *record, Error *reterr);
struct RunRecord {
    RecordId    id;
    int         attempt; /* 0: the one after those that are recorded */
    StepEnd     end;     /* END_DONE with an error is END_FAILED */
    int64_t     retry_us;
    const char *response, *taken; /* see StepRecord */
    int         call;             /* with a call_kind */
    const char *call_kind, *input_hash;
    const char *result, *error;
    int64_t     started_us;
    const char *patch;
    int64_t     version; /* that the patch was computed from; 0: it depends on none */
    /* Compute both anew, from what the run knows now: a process whose state changes all the time would never take the patch. NULL: RUN_STALE */
    RunRefresh *refresh;
    void       *context;
    const char *state; /* set by run_record_in(): what the state is if the transaction commits; NULL: as it was */
    int64_t     state_version;
};
/* ERR_LIMIT: the state would grow beyond its limit. ERR_BUSY: a record with a patch was not written, because another transaction has the process
 * locked. Other errors: it may be written; the activation cannot go on. */
must_check ErrorCode run_record(Run *run, const RunRecord *record, RunVerdict *ret_verdict, Error *reterr);
/* The same inside a transaction of the caller, with what an SQL step wrote. RUN_OVER: roll back. RUN_STALE: roll back, and run_reload(), because what the
 * transaction has read may be a change of its own. run_record_done() after the commit. */
must_check ErrorCode run_record_in(Run *run, Tx *tx, RunRecord *record, RunVerdict *ret_verdict, Error *reterr);
void                 run_record_done(Run *run, const RunRecord *record);
/* Read the state and its version anew. RUN_STALE: done. */
must_check ErrorCode run_reload(Run *run, RunVerdict *ret_verdict, Error *reterr);
/* The record is known from now on and is written by run_end(), with the end of the process: for the last step. Returns what to give there;
 * NULL: it is too large for that, and must be written by itself. */
const RunRecord *run_record_with_end(Run *run, const RunRecord *record);
/* Writes nothing: is the lease held, until this transaction ends? */
must_check ErrorCode run_fence_in(Run *run, Tx *tx, RunVerdict *ret_verdict, Error *reterr);
/* Another transaction has the process locked (ERR_BUSY of the two above): sleep for *ms before the next try, and longer each time. *ms: 0 before the
 * first. false: it has been locked for RUN_BUSY_MS, and the activation should end, because other processes may need its place. */
must_check bool run_busy_wait(int64_t *ms);
/* Workers of this domain of the bus may have work. */
void run_wake(Run *run, const char *domain);
/* reason, failed: why it is compensated, and the step that failed, as it is shown; both may be NULL. RUN_OVER also if the process was canceled without
 * compensation: then it has ended, and nothing was written. */
must_check ErrorCode run_phase_set(Run *run, const char *phase, const char *reason, const char *failed,
                                   RunVerdict *ret_verdict, Error *reterr);

/* ---- how it ends ---- */

typedef enum { WAIT_REPLY, WAIT_ASYNC, WAIT_RETRY } WaitKind; /* in the order in which they are shown */
/* of: NULL: only the time. count: of all such responses since the start, of signals without those that name another step. due_us 0: ten years. */
void run_wait(Run *run, RecordId step, WaitKind kind, const ResponseOf *of, int64_t count, int64_t due_us);
/* Complete at once: the process is not suspended but run again with what is known then. */
void run_wait_none(Run *run, RecordId step);
/* A condition was false for the state of this version: do not suspend if it has changed since. */
void run_wait_state(Run *run, int64_t version);
bool run_has_waits(Run *run);
/* Suspend with the waits collected. *ret_met: a response has come meanwhile and the process runs on: begin again with what is known now. */
must_check ErrorCode run_suspend(Run *run, bool *ret_met, Error *reterr);
/* outcome: as of a command. failed: the step that failed, as it is shown; NULL: none. The last record may be written with it (record NULL: none). If run_is_over() is false afterwards, only the record was
 * written: its compensation was asked for before, by an operator or by its deadline. */
must_check ErrorCode run_end(Run *run, Outcome outcome, const char *result, const char *error, const char *failed,
                             const RunRecord *record, Error *reterr);
/* End this life; the process is queued with the next one. state: an object; NULL: as it is. version: of the state that it was computed from, 0: of none.
 * RUN_STALE: that has changed, compute it again. If run_is_over() is false afterwards: as run_end(). ERR_LIMIT: the state is too large. */
must_check ErrorCode run_continue(Run *run, const char *state, int64_t version, RunVerdict *ret_verdict, Error *reterr);

#endif
