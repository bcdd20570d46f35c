/*
 * handler.h - runs activations of processes as commands of the bus.
 *
 * A body is the program of a process: it replays what is recorded, does what is next and says how the activation ends. The claim reads small
 * processes, and the handler loads the others (once per claim). It calls the body, suspends or ends the process, and calls the body again when a response came meanwhile.
 *
 *     body says      the handler
 *     BODY_WAITS     suspends it with the waits that were collected
 *     BODY_ENDS      ends it with the outcome and result given
 *     BODY_CONTINUES begins its next life, with the result as its state
 *     BODY_AGAIN     loads the process and calls the body again
 *     BODY_STOPS     does nothing more: the lease is lost, or the worker stops, or it needs too much memory, and it is given back; or
 *                    job->not_begun says why not
 *
 * A process that another transaction has locked is postponed: it is claimed again later (postpone.h). A
 * failure that passes (the database is away) gives the activation back without an attempt, unless code of an application was running on the
 * connection that was lost: that may be what ends it again and again, so it counts as a worker that died. One that does not (the state is too large,
 * too many steps) sends the process to the troubleshooting queue with the reason.
 * Threads: handler threads of a worker. Ownership: process_handler_free() after worker_run() returned.
 */
#ifndef PROCESS_HANDLER_H
#define PROCESS_HANDLER_H

#include "bus/worker.h"
#include "process/run.h"

typedef enum { BODY_WAITS, BODY_ENDS, BODY_CONTINUES, BODY_AGAIN, BODY_STOPS } BodyEnd;
typedef struct {
    BodyEnd     end;
    Outcome     outcome;
    const char *result, *error; /* live as long as the Run */
    const char *failed;         /* the step that failed, as it is shown; NULL: none */
    /* BODY_ENDS: the record of the last step, written in the transaction of the end; NULL: none. Lives as long as the Run. */
    const RunRecord *last;
} BodyVerdict;

typedef ErrorCode ProcessBody(Run *run, Job *job, const LoadedProcess *loaded, void *context, BodyVerdict *ret_verdict,
                              Error *reterr);

Handler *process_handler_new(Pool *pool, ProcessBody *body, void *context);
void     process_handler_free(Handler *handler);
/* The job's lease is lost or canceled, or time is up: end what its body runs. From another thread; must not wait. */
typedef void ProcessStop(void *context, const Job *job);
void         process_handler_on_stop(Handler *handler, ProcessStop *stop);

#endif
