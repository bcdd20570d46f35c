/*
 * interpret_internal.h - what the files of the interpreter share.
 */
#ifndef PROCESS_INTERPRET_INTERNAL_H
#define PROCESS_INTERPRET_INTERNAL_H

#include "base/share.h"
#include "base/sync.h"
#include "process/definition.h"
#include "process/definition_cache.h"
#include "process/interpret.h"
#include "process/sent.h"
#include "process/verb.h"

#define INPUT_BYTES_LEAST ((size_t)64 << 10)

/* A step's statement that runs; the caller's while it runs. */
typedef struct Statement Statement;
struct Statement {
    Statement *next;
    const Job *job;
    Conn      *conn;
};

struct Interpreter {
    Pool   *pool;
    Pool   *handler_pool; /* for functions of applications */
    Client *client;
    Share  *connections; /* of functions and operations of the ledger, which hold one for as long as they run */
    Share  *bytes;       /* of inputs of steps; what is smaller than INPUT_BYTES_LEAST is not counted */
    Share  *threads;     /* of branches */
    DefinitionCache *definitions;
    Mutex            mutex; /* guards the rest */
    Statement       *statements;
    int              unreadable; /* the last definition that this program could not read, which was logged; 0: none */
};

/* One activation of a process. */
typedef struct {
    Interpreter      *interpreter;
    Run              *run;
    Job              *job;
    const Definition *definition;
    Mutex             mutex; /* guards the failure and the arena, while branches run */
    Arena            *arena;
    const char *failed_step, *failure; /* the first step that failed for good, as it is shown, and why; NULL: none */
    bool        is_refusal;            /* a business refusal: nothing to look into */
    const RunRecord *last;             /* of the last step, not written yet: it goes with the end; NULL: none */
    const Step      *next;             /* the step with which the process continues as new; NULL: it does not */
} Walk;

/* Wait for an amount of a share, as the domain of the process. false: the activation must stop. */
must_check bool walk_share_take(Walk *walk, Share *share, int64_t amount);
int64_t         walk_share_give(Walk *walk, Share *share, int64_t amount);

/* Where a step runs: which item of which each, which round of which repeat. NULL: in no loop. */
typedef struct Scope Scope;
struct Scope {
    const Scope *above;
    int64_t      index;
    Value        item; /* of the innermost each */
};
/* A round of a repeat in this scope. */
Scope scope_round(const Scope *above, int64_t round);

/* ---- scope.c ---- */

/* The record of a step in this scope. */
RecordId step_id(const Scope *scope, const Step *step);
/* What paths mean here. result: of the step itself; size 0: none. */
typedef struct {
    Walk        *walk;
    const Scope *scope;
    Value        result;
    Arena       *arena;
    int          gone; /* results of steps as they were before they were set aside for this time; 0: as they are now */
    char         index[24];
} LookupContext;
Lookup scope_lookup;

/* ---- attempt.c: actions that may fail and are tried again ---- */

/* One attempt of an action. */
typedef struct {
    Walk         *walk;
    const Scope  *scope;
    const Step   *step; /* whose; for templates of compensations */
    const Action *action;
    RecordId      id;
    const char   *key;
    int           attempt; /* from 1 */
    const char   *patch;   /* of the state, rendered from `save`; filled by attempt_patch() */
    int64_t       version;
    Value         result_before; /* compensation: the result of the step */
    Arena        *arena;
    Verb          verb;
    ArenaMark     saved; /* before the patch */
    bool          has_saved;
    size_t        bytes; /* that it has taken of the interpreter's share */
} Attempt;
typedef ErrorCode AttemptRun(Attempt *attempt, AttemptResult *ret_result, Error *reterr);

/* A step that is tried once. arena NULL: it records no text of its own. */
Verb walk_verb(Walk *walk, RecordId id, Arena *arena);
/* A verb has said this flow: FLOW_FAILED is the failure of the process. */
void    walk_obey(Walk *walk, const Verb *verb, Flow *flow);
Attempt attempt_begin(Walk *walk, const Scope *scope, const Step *step, const Action *action, RecordId id,
                      Arena *arena);
/* The record of its success has the patch of `save`. The attempt stays where it is. */
void attempt_saves(Attempt *attempt);
/* A step that has no attempts has ended: record it, with the patch of `save`. */
must_check ErrorCode ended_record(Walk *walk, const Scope *scope, const Step *step, const char *result, Arena *arena,
                                  Flow *ret_flow, Error *reterr);
/* Run the action of a step, or of its compensation, by its policy, and record it. */
must_check ErrorCode action_walk(Walk *walk, const Scope *scope, const Step *step, const Action *action, RecordId id,
                                 Value result_before, Flow *ret_flow, Error *reterr);
/* The action of this step has happened, and it fails all the same: RECORD_DONE says so. A result that is too large to be recorded is left out. */
must_check ErrorCode happened_record(Walk *walk, RecordId id, const char *result, const char *why, Flow *ret_flow,
                                     Error *reterr);
/* The command or child of a step has completed, and the process is being compensated: record it, so that it is compensated. Also after failures
 * of the step, such as a timeout. FLOW_FAILED: its result could not be saved. */
must_check ErrorCode reply_record(Walk *walk, const Scope *scope, const Step *step, RecordId id, const SentReply *reply,
                                  Flow *ret_flow, Error *reterr);
/* The patch of `save` for this result. */
must_check ErrorCode attempt_patch(Attempt *attempt, const char *result, Error *reterr);
/* A part of what a program or request is given. */
typedef struct {
    const char *name;
    const Template *template;     /* NULL: none */
    bool        is_url, is_taken; /* is_taken: the text is what was recorded */
    const char *text;             /* as rendered; before: what it is without a template */
} InputPart;
/* Once in an attempt: wait for the memory that all parts together take, and render them. */
must_check ErrorCode attempt_render_parts(Attempt *attempt, InputPart *parts, int count, Error *reterr);
/* The same for the only part. */
must_check ErrorCode attempt_render(Attempt *attempt, const Template *template, const char *fallback,
                                    const char **ret_text, Error *reterr);

/* ---- attempt_input.c ---- */

bool template_takes_state(const Template *template);
/* Is the input of this program or request recorded, because it takes values from the state? */
bool action_keeps_input(const Action *action);
/* Fill in the texts: as they are recorded, or rendered, and recorded before the action acts. *ret_result is ATTEMPT_STOPPED if the lease is lost. */
must_check ErrorCode attempt_input(Attempt *attempt, InputPart *parts, int count, AttemptResult *ret_result,
                                   Error *reterr);

/* How long this attempt may take: its timeout, else `otherwise`, and no longer than the process may. */
int64_t attempt_limit_ms(const Attempt *attempt, int64_t otherwise);

#define X(id, name, walk, call, ...) AttemptRun attempt_##call;
STEP_KINDS(X)
#undef X

/* ---- the other kinds ---- */

typedef ErrorCode StepWalk(Walk *walk, const Scope *scope, const Step *step, Flow *ret_flow, Error *reterr);
#define X(id, name, walk, ...) StepWalk step_##walk;
STEP_KINDS(X)
#undef X

must_check ErrorCode list_walk(Walk *walk, const Scope *scope, const StepList *list, Flow *ret_flow, Error *reterr);
/* Record a step that succeeded, with its patch. FLOW_NEXT; FLOW_STOPPED: the lease is lost. STALE is left to the caller. */
must_check ErrorCode step_record(Walk *walk, RecordId id, const char *result, const char *patch, int64_t version,
                                 RunVerdict *ret_verdict, Flow *ret_flow, Error *reterr);
/* What a step of this scope remembered when it began, JSON; NULL: it has not begun. */
const char *step_kept(Walk *walk, const Scope *scope, const Step *step);
/* Is it the last step of the file, after which only the end is written? */
bool step_is_last(const Step *step);
/* When a step of this scope began, as recorded; it is recorded now if it was not. what: to remember, JSON or NULL. */
must_check ErrorCode step_begun(Walk *walk, const Scope *scope, const Step *step, const char *what,
                                int64_t *ret_begun_us, const char **ret_what, Flow *ret_flow, Error *reterr);
/* The step failed for good. */
void walk_fail(Walk *walk, RecordId id, const char *error, bool is_refusal, Flow *ret_flow);
/* The process did, and no step of it. */
void process_fail(Walk *walk, const char *error, bool is_refusal, Flow *ret_flow);

/* ---- step_branch.c ---- */

#define JOINED_BYTES_MAX ((size_t)4 << 20) /* of the results of lists together */
/* The result of a list: that of its last step that ran. */
const char *list_result(Walk *walk, const Scope *scope, const StepList *list);
/* The fewest records that one walk over a list leaves. */
int64_t list_records_min(const StepList *list);

/* ---- compensate.c ---- */

/* Record what has been sent and has completed since the process failed. FLOW_BLOCKED: something has not ended yet. */
must_check ErrorCode replies_walk(Walk *walk, Flow *ret_flow, Error *reterr);
must_check ErrorCode compensate_walk(Walk *walk, Flow *ret_flow, Error *reterr);

#endif
