/*
 * report.h - what workers outside of pawl report about the activations they run: records of steps, patches, commands to send, suspension, end.
 *
 * A type without a definition is code: pods do not claim its activations, workers that name the type do. They get the whole history with the
 * claim, replay it, and report as pods write (write.h): each report is fenced by its lease, and what one report says is done as a whole or
 * not at all. A report that is repeated, because its answer was lost, changes nothing more.
 *
 *     record and patch     the record of a step that ended; its patch of the state
 *     send                 a command or child process; its outcome comes as the response of the kind reply
 *     wait | end           suspension or end, after what is above; at most one of them
 *     is_release           give the activation back: it is queued, now or after a delay, and no attempt counts
 *
 * Threads: any. Ownership: reports are borrowed; what is returned lives in the arena.
 */
#ifndef PROCESS_REPORT_H
#define PROCESS_REPORT_H

#include "bus/settle.h"
#include "process/load.h"
#include "process/sent.h"
#include "process/write.h"

#define REPORT_RECORDS_MAX 10000 /* of one process */

typedef struct {
    const char *process_id;
    const char *secret; /* filled: process/key.h */
    int         life;   /* filled */
    ProcessWrite
            write;    /* id: filled from process_id; 0: this domain has no such process, and its verdict is WRITE_LOST.
                         * due_us 0: only a response resumes it. started_us is filled, too */
    int64_t took_us;  /* the step of the record */
    int64_t retry_us; /* its failure: not tried again sooner; 0: as the worker says */
    /* What is sent; type NULL: nothing. is_child: a process. */
    const char *send_step, *send_domain, *send_type, *send_payload;
    int         send_attempt;
    bool        is_child;
    bool        is_release;
    int64_t     release_ms;     /* with is_release: queued after this time; 0: now */
    const char *release_reason; /* with release_ms: for the audit; NULL: none */
    /* The verdict is in `write`. WRITE_MET: `loaded` is what is known now, to begin again with. */
    const LoadedProcess *loaded;
    const char          *state; /* the present one, for WRITE_STALE and after a patch; NULL: not known */
    SendItem            *sent;  /* NULL: nothing was sent */
    ErrorCode            code;  /* OK also for a lost lease; an error: nothing of it was written */
    Error                error;
} ProcessReport;

/* ERR_INVALID, ERR_LIMIT: the report cannot be meant so; the text names the field. Checked by process_report_run() too. */
must_check ErrorCode process_report_check(const ProcessReport *report, Error *reterr);
/* Reports of one request. */
typedef struct {
    Pool           *pool;
    int             lock_ms; /* how long a lock is waited for */
    Arena          *arena;
    const char     *queue; /* PROCESS_DOMAIN_PREFIX and the domain of the processes */
    const Wake     *wake;  /* called with domains in which commands were queued */
    ProcessReport **reports;
    int             count;
    /* Set by process_report_run(). */
    struct Reporting *reporting;  /* NULL: not one of them has a verdict */
    int               open_count; /* did not get a lock: nothing of them was written */
} ReportCall;

/* A code for each report; one that fails does not affect the others. ERR_BUSY with 55P03: open_count of them did not get a lock; when it is
 * called again, only those are written. */
must_check ErrorCode process_report_run(ReportCall *call, Deadline deadline, Error *reterr);

#endif
