/*
 * code.h - a process written as a function: the body of an activation (handler.h) that replays the function's calls.
 *
 * The function is called from its beginning in every activation. Its calls are numbered. A call whose record exists returns what is recorded;
 * the first one without a record does its work, and its record is written before it returns. A call that must wait says CODE_RETURN, and so
 * does every call after it: the function returns, and the process is suspended with the waits collected.
 *
 * Records. A call is recorded under its name, with its number, its kind and a hash of its input. A record of the kind begin says when a wait or sleep
 * ends. The number is in the record because the order of times is not that of records after a failover to a server whose clock is behind.
 *
 * Invariants
 *   1. While the function makes the calls that are recorded, with their inputs, nothing is run twice.
 *   2. When a call differs from the record with its number, nothing is run or written any more in this activation, and the process goes to
 *      troubleshooting with the name of the first step that differs. So does a function that ends or continues as new before its last record.
 *   3. The record of a version takes a number, and all other calls pass it over: the history of a function that does not ask for it is the same.
 *   4. A process that was canceled, or whose deadline has passed and that is to be compensated, fails at its first call that has no record, also in
 *      each later replay, until compensating() is called.
 * Threads: a CodeRun belongs to the thread that runs the function. Ownership: what calls return lives until the function returns.
 */
#ifndef PROCESS_CODE_H
#define PROCESS_CODE_H

#include "process/handler.h"

#define CODE_NAME_MAX    100
#define CODE_REASON_SIZE 1024

typedef enum {
    CODE_NEXT,
    CODE_FAILED, /* for good: code_error() says why; the function may go on */
    CODE_RETURN, /* return now */
} CodeFlow;

typedef struct CodeRun CodeRun;
typedef CodeFlow       CodeFunction(CodeRun *code, void *context);

typedef struct {
    Pool *pool;
    CodeFunction *
        function; /* NEXT: the process is complete. FAILED: it goes to troubleshooting, or ends if a step rejected it */
    void *context;
} CodeProgram;
/* context: a CodeProgram. A process with a definition is not begun: pods run it. */
ProcessBody code_body;

/* ---- what is known ---- */

Job        *code_job(CodeRun *code);
Arena      *code_arena(CodeRun *code);
const char *code_input(CodeRun *code); /* what this life began with */
int         code_life(CodeRun *code);  /* from 1 */
const char *code_state(CodeRun *code); /* as it is now, which is not what it was in an earlier replay */
const char *code_error(CodeRun *code); /* of the last call that said CODE_FAILED */

/* ---- steps ---- */

/* One attempt of a step. */
typedef struct {
    const char *name, *key, *input;
    int         attempt, attempts; /* of the step's policy */
} CodeAttempt;
typedef struct {
    Outcome     outcome;
    const char *result, *error; /* in the arena of the job */
    int64_t     retry_ms;       /* RETRY: not sooner than this; 0: as the policy says */
} CodeEnd;
typedef void CodeBody(CodeRun *code, const CodeAttempt *attempt, void *context, CodeEnd *ret_end);
/* The same inside the transaction that records the step: only OUTCOME_COMPLETE commits. Run again from its beginning as every TxBody. */
typedef ErrorCode CodeTxBody(CodeRun *code, Tx *tx, const CodeAttempt *attempt, void *context, CodeEnd *ret_end,
                             Error *reterr);

/* Zero means the default of a definition's step: 5 attempts, 1 s, at most 60 s, factor 2. */
typedef struct {
    const char *name;
    const char *input;   /* JSON; NULL: null */
    CodeBody   *body;    /* this one, */
    CodeTxBody *tx_body; /* or this one */
    void       *context;
    int         attempts;
    int64_t     delay_ms, delay_ms_max;
    double      factor;
    int64_t     timeout_ms; /* of a tx_body; 0: 10 s */
} CodeStep;
CodeFlow code_step(CodeRun *code, const CodeStep *step, const char **ret_result);

/* ---- the other calls ---- */

typedef struct {
    const char *name;
    const char *response; /* NULL: as the step */
    const char *const
           *any;        /* names, ended by NULL: the first response of one of them, instead of response; NULL: none */
    int     count;      /* of them; 0: 1 */
    int64_t timeout_ms; /* 0: none */
} CodeWait;
/* result NULL after CODE_NEXT: none came in time. *ret_response: the name of what has come; NULL: none. */
CodeFlow code_wait(CodeRun *code, const CodeWait *wait, const char **ret_response, const char **ret_result);
CodeFlow code_sleep(CodeRun *code, const char *name, int64_t ms);
CodeFlow code_send(CodeRun *code, const char *name, bool is_child, const char *domain, const char *type,
                   const char *payload, int64_t timeout_ms, const char **ret_result);
/* The time in microseconds since 1970, and a random number; the same in each replay. */
CodeFlow code_time(CodeRun *code, const char *name, int64_t *ret_us);
CodeFlow code_random(CodeRun *code, const char *name, uint64_t *ret_number);
/* Which way the process goes where its function was changed: the version that is recorded; newest (from 1), which is recorded, if no later call is; else
 * 0, the way before the change, and nothing is recorded. The same for each call in an activation. CODE_RETURN also for a recorded version above newest: the
 * activation is postponed, because another worker has a newer program. */
CodeFlow code_version(CodeRun *code, const char *change, int newest, int *ret_version);
/* Merge an object into the state, once. uses_state: it was computed from code_state(); if that has changed the function is called again. */
CodeFlow code_patch(CodeRun *code, const char *name, const char *patch, bool uses_state);
/* End this life of the process: it begins again with a fresh history and this state, an object; NULL: the present one. CODE_RETURN: return now. CODE_FAILED: the
 * process is canceled. */
CodeFlow code_continue(CodeRun *code, const char *state);
/* What follows undoes what was done; the process ends as COMPENSATED. */
CodeFlow code_compensating(CodeRun *code);
/* What the process returns when it is complete; why it was compensated, of which CODE_REASON_SIZE - 1 bytes count. Both are copied. */
void code_result(CodeRun *code, const char *json);
void code_reason(CodeRun *code, const char *text);
/* A mistake of the caller: the process goes to troubleshooting with these words. */
CodeFlow code_defect(CodeRun *code, const char *format, ...) __attribute__((__format__(printf, 2, 3)));

#endif
