/*
 * verb.h - what a step of a process can do: be tried by its policy, wait for responses or the time, send a command or child and await its outcome.
 *
 * Definitions (attempt.c, step_wait.c) and functions (code_step.c, code_wait.c, code_send.c) are front ends: they say which step it is and what its action
 * does, and obey the Flow. Workers over HTTP write the same records by themselves.
 *
 *     tried    an attempt is due unless a failure says otherwise; each that ends is recorded before anything else is done
 *     waits    its begin is recorded, so that its time counts from there; a response that is there ends it even if its time is over by then
 *     sends    once under the lease, with an id that follows from the step; the outcome comes as a reply
 *     undone   a compensation is a step that is tried like others
 *
 * Invariants
 *   1. A response is used by one wait: the record of a wait names those that it has taken. One that names a step is used by no other.
 *   2. That time is over is recorded only if the state has not changed since it was read, and every response changes it: so of a response and a
 *      timeout at the same moment exactly one is recorded.
 *   3. An action that has happened and cannot be recorded is not run again: RECORD_DONE says that it has.
 * Threads: a Verb belongs to one; branches have their own, with the same Run. Ownership: everything is borrowed, from the arena or the Run.
 */
#ifndef PROCESS_VERB_H
#define PROCESS_VERB_H

#include "process/run.h"

/* How far a step, branch or list got. */
typedef enum {
    FLOW_NEXT,    /* it has ended */
    FLOW_BLOCKED, /* it waits; the waits are in the Run */
    FLOW_FAILED,  /* for good; the Verb says why */
    FLOW_STOPPED, /* the activation is over, or must stop: do nothing more */
} Flow;

typedef struct {
    Run   *run;
    Arena *arena; /* of what is recorded */
    RunRecord
        record; /* what its records have in common: id, call; `refresh`, which computes the patch of one that succeeds */
    StepRetry retry; /* the policy */
    /* FLOW_FAILED: why. */
    const char *error;
    bool        is_refusal; /* a business refusal: nothing to look into */
} Verb;

/* What came of an attempt. */
typedef enum {
    ATTEMPT_ENDED,
    ATTEMPT_BLOCKED, /* it waits; the waits are in the Run */
    ATTEMPT_STOPPED, /* the activation is over, or must stop: nothing is recorded */
} AttemptState;
typedef struct {
    AttemptState state;
    StepEnd      end;      /* ENDED */
    const char  *result;   /* JSON; NULL: null */
    const char  *error;    /* why it failed; DONE: it has happened, but there is no result to go on with */
    int64_t      retry_ms; /* FAILED: not sooner than this; 0: as the policy says */
    bool         recorded; /* DONE: in the transaction of the action itself */
} AttemptResult;

/* ---- verb_step.c: a step that is tried ---- */

#define STALE_TRIES 100 /* of one attempt to write a patch, while the state changes */

/* Has it failed for good? *ret_failures: how many failures count. */
bool verb_has_failed(Verb *verb, int *ret_failures);
/* FLOW_NEXT: it may be tried now. FLOW_FAILED, FLOW_BLOCKED: until the policy's delay after the last failure has passed. */
Flow verb_due(Verb *verb, int *ret_failures);
/* Write a record. With `refresh` again while the state changes, at most STALE_TRIES times and while the activation may use more memory; ERR_BUSY: it
 * has changed each time. With a patch and a version FLOW_BLOCKED: the state has changed, and the process is run again from it. */
must_check ErrorCode verb_record(Verb *verb, RunRecord *record, Flow *ret_flow, Error *reterr);
/* It has succeeded. ERR_INVALID, ERR_LIMIT: it cannot be recorded, see verb_happened(). */
must_check ErrorCode verb_succeed(Verb *verb, const char *result, Flow *ret_flow, Error *reterr);
/* The attempt has failed: FLOW_BLOCKED until the next one is due, or FLOW_FAILED. */
must_check ErrorCode verb_fail(Verb *verb, const AttemptResult *result, Flow *ret_flow, Error *reterr);
/* Its action has happened, but the step fails for good: RECORD_DONE says so. A result that is too large is left out. */
must_check ErrorCode verb_happened(Verb *verb, const char *result, const char *why, Flow *ret_flow, Error *reterr);

/* ---- verb_wait.c ---- */

typedef struct {
    const char *const *names; /* of responses */
    int                name_count;
    bool               is_race; /* the first response of one of the names; else `count` of the one name */
    int64_t            count;
    int64_t            timeout_ms; /* 0: none */
    bool               continues;  /* after it; else the step fails */
} VerbWait;

/* When this attempt of the step has begun; recorded now if it was not, with `what` as JSON or NULL. FLOW_NEXT: *ret_kept is the record. */
must_check ErrorCode verb_begun(Verb *verb, int attempt, const char *what, const StepRecord **ret_kept, Flow *ret_flow,
                                Error *reterr);
/* The first responses that no wait has taken, in the order of their arrival, of those that name this step or none. Its result is the payload, of several an array of
 * them, of a race {"response", "payload"}; null if it goes on after its timeout. */
must_check ErrorCode verb_wait(Verb *verb, const VerbWait *wait, Flow *ret_flow, Error *reterr);
/* What it waits for is not there: the time decides. list: any of them resumes the process. */
must_check ErrorCode verb_wait_on(Verb *verb, const VerbWait *wait, const Wait *list, int count, Flow *ret_flow,
                                  Error *reterr);
must_check ErrorCode verb_sleep(Verb *verb, int64_t due_us, Flow *ret_flow, Error *reterr);

/* ---- verb_send.c: commands of the bus and child processes ---- */

/* The outcome of its command or child. *ret_found false: none has come. */
must_check ErrorCode verb_outcome(Verb *verb, AttemptResult *ret_result, bool *ret_found, Error *reterr);
/* What an earlier activation is known to have sent is not sent again; one that is not sure sends again, with the same id. */
bool verb_has_sent(Verb *verb);
/* As it is sent. */
SendItem verb_item(Verb *verb, bool is_child, const char *domain, const char *type, const char *payload);
/* ATTEMPT_BLOCKED: it is sent, and verb_await() follows. */
must_check ErrorCode verb_send(Verb *verb, Pool *pool, SendItem *item, AttemptResult *ret_result, Error *reterr);
/* ATTEMPT_BLOCKED until the outcome comes, or the time is over: an attempt that has failed by that has not ended its command, so the next one waits for the
 * same. Only an operator's retry, which sets replies of failed commands aside, has another sent. */
must_check ErrorCode verb_await(Verb *verb, int64_t timeout_ms, AttemptResult *ret_result, Error *reterr);
/* Wait for one more reply to a step than have come. */
void verb_reply_wait(Run *run, RecordId step, int64_t due_us);

#endif
