/*
 * definition.h - a definition file: the steps of a type of process, read and checked as a whole.
 *
 *     {"type": "order", "domain": "shop", "steps": [{"name": "reserve", "exec": "./reserve"}, ...]}
 *
 * field.h has the table of fields: which kind of step takes which, and what each may hold.
 *
 * Invariants
 *   1. A Definition is valid: every name is unique, every jump leads forward to a step of the same list, every step can be reached, and
 *      every path in a template or condition names a value that can exist where it is used. The engine checks none of this again.
 *   2. It is immutable, and the same bytes always give the same Definition.
 *   3. What is refused is refused with line, column and path: "order.json:12:9: steps[3].when: ...".
 *
 * Order. A list of steps runs from its first to its last step. "when" may jump forward in its list, or to its end; other steps are
 * followed by the next one, but "fail", which ends the process, and "continue", which begins it anew and is in the process's own list. The
 * lists of a "parallel" run at the same time and are joined; the list of an "each" runs once per item; that of a "repeat" runs in rounds, until
 * a condition holds after one. "each" and "repeat" are loops: records of the steps inside carry the number of the item or round.
 *
 * Results. A step's result is what its program, function, request, command, transaction, response or child returned. The result of a
 * parallel is an object with the result of each branch's last step that ran, that of an each an array of the same, that of a repeat the number
 * of its rounds and the same of the last one. STEP_KINDS says which kinds have none.
 *
 * What a path may name: state and process anywhere; item inside an each and index inside a loop, of the innermost; result in save and compensate of
 * the step itself; steps.NAME if NAME comes before in the file and a run can pass it before this step. Steps of another branch of the same
 * parallel, and from outside steps inside a loop, cannot be named: the former may not have run, the latter have many results. The condition of a
 * repeat is evaluated at the end of its list, so it may name what a step behind the last one may.
 *
 * Threads: a Definition may be shared by any number of threads. Ownership: all of it lives in the arena, with a copy of the file.
 */
#ifndef PROCESS_DEFINITION_H
#define PROCESS_DEFINITION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/writer.h"
#include "process/condition.h"
#include "process/record.h"
#include "process/template.h"
#include "wallet/kind.h"

#define DEFINITION_BYTES_MAX       ((size_t)1 << 20)
#define DEFINITION_STEPS_MAX       1000
#define DEFINITION_DEPTH_MAX       8 /* lists inside each other; the process's own is 1 */
#define DEFINITION_BRANCHES_MAX    64
#define DEFINITION_HEADERS_MAX     64
#define DEFINITION_CONCURRENCY_MAX 64
#define DEFINITION_ATTEMPTS_MAX    1000
#define DEFINITION_COUNT_MAX       10000 /* responses that one wait needs */
#define DEFINITION_ROUNDS_MAX      10000 /* of a repeat: as many as a process may have records */
#define DEFINITION_ROUNDS_DEFAULT  100
#define DEFINITION_ANY_MAX         20                      /* names of responses that race for one wait */
#define DEFINITION_TIME_MS_MAX     ((int64_t)315360000000) /* 3650 days */
/* What a definition of this many bytes may take of the arena. */
#define DEFINITION_ARENA_BYTES(size) (((size_t)2 << 20) + (size)*64)

/* Does a step act on the world outside of the process? One that does may be retried and compensated, and a retry from a step must not forget
 * that it has run. */
typedef enum {
    ACTS_NOT,
    ACTS_CALLS, /* its result is that of the call, which may take long */
    ACTS_SENDS  /* a command or a child: its outcome arrives later, as a response with the name of the step */
} StepActs;

/* A row per kind of step, complete or not compiled: its name in a file, step_WALK() of interpret_internal.h, attempt_CALL() by which it acts, and how
 * it does, whether it has a result, which it may save and other steps may name, whether it asks another program, which must get the same input in
 * each attempt and whose reply is kept while the state is locked, and the brackets around its label in a diagram, which has the
 * steps of a group instead of a label. */
/* clang-format off */
#define STEP_KINDS(X)                                                                            \
    X(STEP_EXEC,     "exec",     act,      exec,   ACTS_CALLS, true,  true,  "[\"",  "\"]")      \
    X(STEP_SQL,      "sql",      act,      sql,    ACTS_CALLS, true,  false, "[\"",  "\"]")      \
    X(STEP_HTTP,     "http",     act,      http,   ACTS_CALLS, true,  true,  "[\"",  "\"]")      \
    X(STEP_COMMAND,  "command",  act,      send,   ACTS_SENDS, true,  false, "[\"",  "\"]")      \
    X(STEP_WALLET,   "wallet",   act,      wallet, ACTS_CALLS, true,  false, "[\"",  "\"]")      \
    X(STEP_WAIT,     "wait",     wait,     none,   ACTS_NOT,   true,  false, "([\"", "\"])")     \
    X(STEP_SLEEP,    "sleep",    sleep,    none,   ACTS_NOT,   false, false, "([\"", "\"])")     \
    X(STEP_SET,      "set",      set,      none,   ACTS_NOT,   false, false, "[\"",  "\"]")      \
    X(STEP_WHEN,     "when",     when,     none,   ACTS_NOT,   false, false, "{\"",  "\"}")      \
    X(STEP_FAIL,     "fail",     fail,     none,   ACTS_NOT,   false, false, "([\"", "\"])")     \
    X(STEP_CONTINUE, "continue", continue, none,   ACTS_NOT,   false, false, "([\"", "\"])")     \
    X(STEP_PARALLEL, "parallel", parallel, none,   ACTS_NOT,   true,  false, "",    "")          \
    X(STEP_EACH,     "each",     each,     none,   ACTS_NOT,   true,  false, "",    "")          \
    X(STEP_REPEAT,   "repeat",   repeat,   none,   ACTS_NOT,   true,  false, "",    "")          \
    X(STEP_PROCESS,  "process",  act,      send,   ACTS_SENDS, true,  false, "[[\"", "\"]]")
/* clang-format on */
#define X(id, ...) id,
typedef enum { STEP_KINDS(X) STEP_KIND_COUNT } StepKind;
#undef X
typedef struct {
    const char *name;
    StepActs    acts;
    bool        has_result, asks;
    const char *open, *close;
} StepKindRow;
extern const StepKindRow step_kinds[STEP_KIND_COUNT];

/* What happens to a process that fails, or whose deadline passes. In the order of failure_actions. */
typedef enum { ACTION_TROUBLESHOOT, ACTION_COMPENSATE, ACTION_FAIL } FailureAction;
extern const char *const failure_actions[]; /* ended by NULL */

typedef struct Step     Step;
typedef struct StepList StepList;
struct StepList {
    const Step *steps;
    int         count;
    const char *name;  /* of the branch of a parallel; else NULL */
    const Step *above; /* the parallel, each or repeat that it belongs to; NULL: the process's own list */
    int         depth; /* 1: the process's own */
};

typedef struct {
    const char     *name;
    const Template *value; /* a text */
} HttpHeader;

typedef struct {
    const char       *method; /* "GET", "POST", "PUT", "PATCH", "DELETE", "HEAD" */
    const Template   *url;    /* a text */
    const HttpHeader *headers;
    int               header_count;
    const Template   *body; /* JSON; NULL: none */
} HttpAction;

typedef struct {
    const char     *domain; /* that of the process unless given */
    const char     *type;
    const Template *payload; /* of a child its state; NULL: {} */
} SendAction;

typedef struct {
    WalletKind      kind;
    const Template *operation; /* the whole object, kind included, without txn_id: that is the step's key */
} WalletAction;

typedef struct {
    const char *const *names;
    int                count;
} NameList;

typedef struct {
    const char      *response; /* its name; NULL: any or until */
    NameList         any;      /* the first response of one of these; count 0: response or until */
    int64_t          count;    /* how many of them; 1 unless given */
    const Condition *until;    /* NULL: a response */
} WaitAction;

typedef struct {
    int64_t         for_ms;   /* 0: one of the others */
    const Template *for_text; /* a text: a duration as files write it; NULL: none */
    const Template *until;    /* a text: a time as RFC 3339 writes it; NULL: none */
} SleepAction;

typedef struct {
    const Condition *condition;
    const char      *then_name, *else_name; /* as written; NULL: not given */
    const Step      *then_step;             /* NULL: the end of the list */
    const Step      *else_step;             /* NULL: the end of the list. The next step unless given */
} WhenAction;

typedef struct {
    const StepList *branches;
    int             count;
} ParallelAction;

typedef struct {
    const Template *items; /* exactly one path, to an array */
    int64_t         concurrency;
    StepList        list;
} EachAction;

typedef struct {
    StepList         list;
    const Condition *until;
    int64_t          times;     /* 1 to DEFINITION_ROUNDS_MAX */
    bool             continues; /* when the rounds are used up; else the step fails */
} RepeatAction;

typedef struct {
    const Template *state; /* of the next life; NULL: the present one */
} ContinueAction;

/* What a step or a compensation does. */
typedef struct {
    StepKind        kind;
    StepRetry       retry;
    int64_t         timeout_ms; /* 0: none */
    const Template *input;      /* EXEC, SQL; NULL: null */
    union {
        const char     *exec; /* a command line for the shell; without templates */
        const char     *sql;  /* schema.function(input jsonb, key uuid) returns jsonb */
        HttpAction      http;
        SendAction      send; /* COMMAND, PROCESS */
        WalletAction    wallet;
        WaitAction      wait;
        SleepAction     sleep;
        const Template *set;  /* an object: the patch */
        const Template *fail; /* a text: the reason */
        WhenAction      when;
        ContinueAction  next;
        ParallelAction  parallel;
        EachAction      each;
        RepeatAction    repeat;
    };
} Action;

struct Step {
    Action          action; /* first: the table of fields addresses both */
    const char     *name;
    const Template *save;                 /* an object: the patch of the state; NULL: none */
    const Action   *compensate;           /* EXEC, SQL, HTTP, COMMAND or WALLET; NULL: none */
    bool            continues_on_timeout; /* WAIT: else the step fails */
    int             number;               /* in the order of the file, from 0 */
    const StepList *list;
    int             position; /* in the list */
    int             line, column;
};

typedef struct {
    const char        *type, *domain;
    int64_t            deadline_ms; /* 0: none */
    FailureAction      on_deadline; /* that of on_failure unless given */
    FailureAction      on_failure;  /* unless given: COMPENSATE if a step has a compensation, else TROUBLESHOOT */
    StepList           list;
    const Template    *result; /* of the process; NULL: its state */
    const Step *const *steps;  /* all, by number */
    int                count;
    int                compensation_count;
    Value              text; /* the file */
} Definition;

/* name: of the file, for messages. ERR_INVALID: refused, with its location. ERR_LIMIT: larger than DEFINITION_BYTES_MAX, or the arena has
 * less than DEFINITION_ARENA_BYTES(size) left. */
must_check ErrorCode definition_parse(const char *name, const char *bytes, size_t size, Arena *arena,
                                      const Definition **ret_definition, Error *reterr);
/* NULL: there is no such step. */
const Step *definition_find(const Definition *definition, const char *name);
/* Its steps in the order of the file, as an array of rows of pawl.process_definition_step (sql/process/tables.sql), which
 * says what their fields mean. */
void definition_rows_write(const Definition *definition, Writer *writer);
/* The step behind this one, of any kind but WHEN; NULL: it is the last of its list. */
const Step *step_next(const Step *step);
/* The lists inside of it: the branches of a PARALLEL, the one of an EACH or REPEAT. Returns how many; 0: another kind. */
int action_lists(const Action *action, const StepList **ret_lists);
/* EACH, REPEAT: do records of the steps inside carry a number, of an item or a round? */
bool step_is_loop(const Step *step);

#endif
