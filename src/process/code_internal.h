/*
 * code_internal.h - what the files of code.h share: code.c matches calls with records and ends activations, code_step.c has steps, code_wait.c
 * waits, sleeps and values, code_send.c commands and children, code_version.c versions.
 */
#ifndef PROCESS_CODE_INTERNAL_H
#define PROCESS_CODE_INTERNAL_H

#include "process/code.h"
#include "process/verb.h"

#define CODE_CALL_MS   10000
#define CODE_HASH_SIZE 17   /* as text */
#define CODE_BUCKETS   1024 /* of names of calls */

/* A call of this activation. */
typedef struct CodeCalled {
    struct CodeCalled *next; /* in its bucket */
    const char        *name;
    int                number;
} CodeCalled;

typedef struct CodeVersion CodeVersion;

struct CodeRun {
    const CodeProgram *program;
    Run               *run;
    Job               *job;
    const StepRecord **marked; /* by number of the call; NULL: nothing is recorded */
    int                marked_count;
    const StepRecord **named; /* those that are there, by name */
    int                named_count;
    CodeCalled        *called[CODE_BUCKETS]; /* the calls so far, by a hash of their names */
    int                number;               /* of the next call */
    CodeVersion       *versions;             /* that this activation has asked for */
    bool               is_over;              /* do nothing more: waits, a defect, an error, a lost lease */
    bool               is_compensating;
    bool               is_rejected; /* the last failure was a business refusal */
    const char        *defect;      /* what is wrong with the function */
    const char        *error;       /* of the last call that failed */
    const char        *result, *reason;
    bool               continues;     /* as new, */
    const char        *next_state;    /* with this; NULL: the present one */
    char              *result_buffer; /* in the arena */
    size_t             result_space;
    char               reason_buffer[CODE_REASON_SIZE];
    ErrorCode          code; /* a failure of the database: says nothing about the process */
    Error              failure;
    struct OpenSend {
        struct OpenSend *next;
        const char      *name;
    } *open; /* calls of the function that have failed and whose command or child has not ended */
};

/* One call. */
typedef struct {
    const char *name, *kind;
    int         number;
    char        hash[CODE_HASH_SIZE]; /* of its input */
} CodeCall;

#define CODE_TRY(call)           \
    do {                         \
        CodeFlow flow_ = (call); \
        if (flow_ != CODE_NEXT)  \
            return flow_;        \
    } while (0)

/* Do nothing more. */
CodeFlow code_over(CodeRun *code);
/* The database failed: the activation is given back, or goes to troubleshooting if it would fail again. */
CodeFlow code_broken(CodeRun *code, ErrorCode reason, const Error *error);
/* error: borrowed until the function returns. */
CodeFlow code_failed(CodeRun *code, bool is_rejected, const char *error);
/* The input of a call: texts that are hashed as if they were one. */
#define CODE_INPUT(...) ((const char *const[]){__VA_ARGS__, NULL})
/* May a call have this name? false: return CODE_RETURN. */
bool code_name_check(CodeRun *code, const char *name);
/* The call of this name that is recorded; NULL: none. */
const StepRecord *code_recorded(const CodeRun *code, const char *name);
/* The number of the first call from this one on that is not recorded as a version. */
int code_versions_pass(const CodeRun *code, int number);
/* Match a call with its record. input: CODE_INPUT(). false: return CODE_RETURN. */
bool code_call_begin(CodeRun *code, const char *name, const char *kind, const char *const *input, CodeCall *ret_call);
/* Is the process canceled, so that its calls that have no record fail? */
bool code_is_canceled(CodeRun *code);
/* Before something that has no record yet: is there a reason to do no more? CODE_NEXT: there is none. The memory of this activation may be one. */
CodeFlow code_go_on(CodeRun *code);
/* The step of this call, whose records have its number, kind and hash. It is tried once. */
Verb code_verb(CodeRun *code, const CodeCall *call);
/* What a verb has said; code_obey() also when it may have failed. */
CodeFlow code_flow(CodeRun *code, const Verb *verb, Flow flow);
CodeFlow code_obey(CodeRun *code, const Verb *verb, ErrorCode result, Flow flow, const Error *error);
/* Record that the call has succeeded. */
CodeFlow code_call_record(CodeRun *code, const CodeCall *call, const char *result);

#endif
