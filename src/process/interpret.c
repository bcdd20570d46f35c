/*
 * interpret.c - see interpret.h: definitions by number, the walk over lists, and how an activation ends.
 */
#include "process/interpret.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "pg/combiner.h"
#include "pg/tx.h"
#include "process/interpret_internal.h"
#include "sql.h"

#define CALL_MS         10000
#define DEFINITIONS_MAX 256 /* that are kept compiled */
#define WALK_BYTES_MAX  ((size_t)32 << 20)
/* Of steps that run at the same time in this pod. */
#define INPUT_BYTES_MAX    (32 << 20)
#define BRANCH_THREADS_MAX 64
#define POOL_PARTS         3 /* one domain gets a part of the pool's connections */

/* ---- definitions, kept by number ---- */

/* It was started before its type was defined: it gets the newest definition, and is activated again with it. ERR_BUSY: another transaction has it
 * locked. */
static ErrorCode definition_bind(const Interpreter *interpreter, Job *job, BodyVerdict *ret_verdict, Error *reterr)
{
    TxOptions options = {.name = "definition", .deadline = deadline_in_ms(CALL_MS), .arena = job->arena, .keyed = true};
    int64_t   number, wait_ms = 0; /* number 0: there is none; -1: the process is locked */

    do
        TRY(db_call(interpreter->pool, &options, sql_process_bind,
                    DB_ARGS(db_i64(job->command->id), db_i64(job->command->token)), &db_i64_shape, &number, reterr));
    while (number < 0 && run_busy_wait(&wait_ms));
    if (number < 0)
        return fail(reterr, ERR_BUSY, "another transaction has the process locked");
    if (number == 0)
        return fail(reterr, ERR_NOT_FOUND,
                    "code has begun this process, so the file that defines type \"%s\" since then cannot continue it",
                    job->command->type);
    ret_verdict->end = BODY_STOPS;
    return OK;
}

/* A file is stored only after the program that stores it has read it, so this program is older, and its process is for a newer pod. ERR_BUSY. */
static ErrorCode definition_refuse(Interpreter *interpreter, int id, const Error *why, Error *reterr)
{
    bool is_logged;

    {
        scoped(mutex_unlock) Mutex *held = mutex_hold(&interpreter->mutex);

        is_logged               = interpreter->unreadable == id;
        interpreter->unreadable = id;
    }
    if (!is_logged)
        log_error(LOG_WARN, "process", "a stored definition is left to newer pods, this one cannot read it", why);
    return fail(reterr, ERR_BUSY, "left to a newer pawl: %s", why->text);
}

/* It is held until definition_cache_release(). ERR_BUSY: see definition_refuse(). */
static ErrorCode definition_get(Interpreter *interpreter, int id, const Definition **ret_definition, Error *reterr)
{
    scoped(arena_free) Arena *arena   = NULL;
    TxOptions                 options = {.name = "definition", .deadline = deadline_in_ms(CALL_MS), .read_only = true};
    Error                     error   = {0};
    const char               *source;

    *ret_definition = definition_cache_find(interpreter->definitions, id);
    if (*ret_definition)
        return OK;
    arena         = arena_new(ARENA_BYTES_DEFAULT * 2);
    options.arena = arena;
    TRY(db_call(interpreter->pool, &options, sql_process_definition_source, DB_ARGS(db_i64(id)), &db_text_shape,
                &source, reterr));
    if (definition_parse("definition", source, strlen(source), arena, ret_definition, &error) != OK)
        return definition_refuse(interpreter, id, &error, reterr);
    *ret_definition = definition_cache_add(interpreter->definitions, id, take(arena), *ret_definition);
    return OK;
}

static int connections_max(Pool *pool)
{
    PoolStatus status;
    int        most;

    pool_status(pool, &status);
    most = share_size(combiner_share(status.size_max, POOL_PARTS));
    return most < status.size_max ? most : status.size_max > 1 ? status.size_max - 1 : 1;
}

Interpreter *interpreter_new(Pool *pool, Pool *handler_pool, Client *client)
{
    Interpreter *interpreter = memory_new(1, sizeof *interpreter);

    interpreter->pool         = pool;
    interpreter->handler_pool = handler_pool;
    interpreter->client       = client;
    interpreter->definitions  = definition_cache_new(DEFINITIONS_MAX);
    interpreter->connections  = share_new(connections_max(pool));
    interpreter->bytes        = share_new(INPUT_BYTES_MAX);
    interpreter->threads      = share_new(BRANCH_THREADS_MAX);
    mutex_init(&interpreter->mutex);
    return interpreter;
}

void interpreter_free(Interpreter *interpreter)
{
    definition_cache_free(interpreter->definitions);
    mutex_done(&interpreter->mutex);
    share_free(interpreter->threads);
    share_free(interpreter->bytes);
    share_free(interpreter->connections);
    free(interpreter);
}

void interpreter_stop(void *context, const Job *job)
{
    Interpreter                *interpreter = context;
    scoped(mutex_unlock) Mutex *held        = mutex_hold(&interpreter->mutex);

    for (const Statement *statement = interpreter->statements; statement; statement = statement->next)
        if (statement->job == job)
            conn_interrupt(statement->conn);
}

/* ---- shares of the pod ---- */

static bool share_must_stop(void *run)
{
    return run_must_stop(run);
}

bool walk_share_take(Walk *walk, Share *share, int64_t amount)
{
    return share_take(share, walk->definition->domain, amount, share_must_stop, walk->run);
}

int64_t walk_share_give(Walk *walk, Share *share, int64_t amount)
{
    return share_give(share, walk->definition->domain, amount);
}

/* ---- steps ---- */

static void failure_note(Walk *walk, const RecordId *id, const char *error, bool is_refusal, Flow *ret_flow)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&walk->mutex);

    *ret_flow = FLOW_FAILED;
    if (walk->failure)
        return;
    walk->failed_step = id ? record_text(walk->arena, id) : NULL;
    walk->failure     = arena_text(walk->arena, error ? error : "failed");
    walk->is_refusal  = is_refusal;
}

void walk_fail(Walk *walk, RecordId id, const char *error, bool is_refusal, Flow *ret_flow)
{
    failure_note(walk, &id, error, is_refusal, ret_flow);
}

void process_fail(Walk *walk, const char *error, bool is_refusal, Flow *ret_flow)
{
    failure_note(walk, /* id= */ NULL, error, is_refusal, ret_flow);
}

ErrorCode step_record(Walk *walk, RecordId id, const char *result, const char *patch, int64_t version,
                      RunVerdict *ret_verdict, Flow *ret_flow, Error *reterr)
{
    RunRecord written = {.id = id, .result = result, .patch = patch, .version = version};

    TRY(run_record(walk->run, &written, ret_verdict, reterr));
    *ret_flow = *ret_verdict == RUN_OVER ? FLOW_STOPPED : FLOW_NEXT;
    return OK;
}

const char *step_kept(Walk *walk, const Scope *scope, const Step *step)
{
    return run_result(walk->run, record_as(step_id(scope, step), RECORD_BEGIN));
}

bool step_is_last(const Step *step)
{
    return !step->list->above && !step_next(step) && !step->save;
}

ErrorCode step_begun(Walk *walk, const Scope *scope, const Step *step, const char *what, int64_t *ret_begun_us,
                     const char **ret_what, Flow *ret_flow, Error *reterr)
{
    Verb              verb = walk_verb(walk, step_id(scope, step), /* arena= */ NULL);
    const StepRecord *kept;

    TRY(verb_begun(&verb, /* attempt= */ 1, what, &kept, ret_flow, reterr));
    *ret_begun_us = kept ? kept->ended_us : 0;
    if (ret_what)
        *ret_what = kept ? kept->result : NULL;
    return OK;
}

ErrorCode step_act(Walk *walk, const Scope *scope, const Step *step, Flow *ret_flow, Error *reterr)
{
    return action_walk(walk, scope, step, &step->action, step_id(scope, step), (Value){0}, ret_flow, reterr);
}

#define X(id, name, walk, ...) [id] = step_##walk,
static StepWalk *const walks[STEP_KIND_COUNT] = {STEP_KINDS(X)};
#undef X

/* Behind a "when" the record says where to go on. */
static const Step *step_after(Walk *walk, const Scope *scope, const Step *step)
{
    if (step->action.kind != STEP_WHEN)
        return step_next(step);
    return strcmp(run_result(walk->run, step_id(scope, step)), "true") == 0 ? step->action.when.then_step
                                                                            : step->action.when.else_step;
}

static bool walk_has_failed(Walk *walk)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&walk->mutex);

    return walk->failure;
}

/* Why the next step is not begun. A failure of another branch comes first: if the worker stops as well, the process still ends by the failure,
 * instead of being claimed again by a worker that does not know of it yet. */
static bool walk_is_ended(Walk *walk, Flow *ret_flow)
{
    if (walk_has_failed(walk)) {
        *ret_flow = FLOW_FAILED;
        return true;
    }
    if (run_must_end(walk->run)) {
        *ret_flow = FLOW_STOPPED;
        return true;
    }
    if (run_is_canceled(walk->run)) {
        process_fail(walk, run_cancel_text(walk->run), /* is_refusal= */ true, ret_flow);
        return true;
    }
    if (run_is_late(walk->run)) {
        process_fail(walk, RUN_LATE_TEXT, /* is_refusal= */ false, ret_flow);
        return true;
    }
    return false;
}

/* It cannot be stored as it is, and no other attempt changes that. */
static bool is_own_fault(ErrorCode code)
{
    return code == ERR_INVALID || code == ERR_LIMIT;
}

/* What is wrong with the step or its values, and not with the world around it, fails the step for good. */
static ErrorCode step_walk(Walk *walk, const Scope *scope, const Step *step, Flow *ret_flow, Error *reterr)
{
    Error     error = {0};
    ErrorCode code  = walks[step->action.kind](walk, scope, step, ret_flow, &error);

    if (is_own_fault(code) || code == ERR_NOT_FOUND) {
        walk_fail(walk, step_id(scope, step), error.text, /* is_refusal= */ false, ret_flow);
        return OK;
    }
    if (code != OK && reterr)
        *reterr = error;
    return code;
}

ErrorCode list_walk(Walk *walk, const Scope *scope, const StepList *list, Flow *ret_flow, Error *reterr)
{
    *ret_flow = FLOW_NEXT;
    for (const Step *step = list->count ? list->steps : NULL; step; step = step_after(walk, scope, step)) {
        if (run_result(walk->run, step_id(scope, step)))
            continue;
        if (walk_is_ended(walk, ret_flow))
            return OK;
        TRY(step_walk(walk, scope, step, ret_flow, reterr));
        if (*ret_flow != FLOW_NEXT)
            return OK;
    }
    return OK;
}

/* ---- how it ends ---- */

static ErrorCode result_render(Walk *walk, const char **ret_result, Error *reterr)
{
    LookupContext context = {.walk = walk, .arena = walk->arena};
    Text          text;

    if (!walk->definition->result) {
        *ret_result = run_state(walk->run);
        return OK;
    }
    text_init(&text, walk->arena, TEXT_MAX_BODY / 4);
    TRY(template_render(walk->definition->result, scope_lookup, &context, &text, reterr));
    *ret_result = text_string(&text);
    return OK;
}

static const char *failure_text(const Walk *walk)
{
    if (!walk->failed_step)
        return walk->failure;
    return arena_print(walk->arena, "step %s: %s", walk->failed_step, walk->failure);
}

/* That of the start, or else of the definition. */
static FailureAction deadline_action(const Walk *walk)
{
    const char *given = run_deadline_action(walk->run);

    for (int i = 0; given && failure_actions[i]; i++)
        if (strcmp(failure_actions[i], given) == 0)
            return (FailureAction)i;
    return walk->definition->on_deadline;
}

static FailureAction failure_action(const Walk *walk)
{
    if (run_is_canceled(walk->run))
        return ACTION_COMPENSATE;
    if (run_is_late(walk->run))
        return deadline_action(walk);
    if (walk->is_refusal && walk->definition->on_failure == ACTION_TROUBLESHOOT)
        return ACTION_FAIL; /* nothing to look into */
    return walk->definition->on_failure;
}

static ErrorCode failed_end(Walk *walk, BodyVerdict *ret_verdict, Error *reterr)
{
    FailureAction action = failure_action(walk);
    RunVerdict    verdict;

    if (action == ACTION_COMPENSATE) {
        TRY(run_phase_set(walk->run, "compensating", failure_text(walk), walk->failed_step, &verdict, reterr));
        *ret_verdict = (BodyVerdict){.end = verdict == RUN_OK ? BODY_AGAIN : BODY_STOPS};
        return OK;
    }
    *ret_verdict = (BodyVerdict){.end     = BODY_ENDS,
                                 .outcome = action == ACTION_FAIL ? OUTCOME_REJECT : OUTCOME_FAIL,
                                 .error   = failure_text(walk),
                                 .failed  = walk->failed_step};
    return OK;
}

/* The last step has happened, and its process does not end with it: its record is written by itself. *ret_flow is FLOW_FAILED if it cannot be:
 * then RECORD_DONE says that it has happened, so it is compensated, and not run again. */
static ErrorCode last_record(Walk *walk, Flow *ret_flow, Error *reterr)
{
    const RunRecord *last  = walk->last;
    Error            error = {0};
    RunVerdict       verdict;
    ErrorCode        code = run_record(walk->run, last, &verdict, &error);

    *ret_flow = FLOW_NEXT;
    if (is_own_fault(code))
        return happened_record(walk, last->id, last->result, error.text, ret_flow, reterr);
    if (code == OK && verdict != RUN_OK)
        *ret_flow = FLOW_STOPPED;
    if (code != OK && reterr)
        *reterr = error;
    return code;
}

/* The process has completed, and cannot be ended with its result: a failure like that of a step. */
static ErrorCode completed_fail(Walk *walk, Error *error, BodyVerdict *ret_verdict, Error *reterr)
{
    Flow flow = FLOW_NEXT;

    *ret_verdict = (BodyVerdict){.end = BODY_STOPS};
    if (walk->last)
        TRY(last_record(walk, &flow, reterr));
    if (flow == FLOW_STOPPED)
        return OK;
    if (flow == FLOW_NEXT) {
        error_prefix(error, "result");
        process_fail(walk, error->text, /* is_refusal= */ false, &flow);
    }
    return failed_end(walk, ret_verdict, reterr);
}

static ErrorCode late_end(Walk *walk, BodyVerdict *ret_verdict, Error *reterr)
{
    Flow flow = FLOW_NEXT;

    if (walk->last)
        TRY(last_record(walk, &flow, reterr));
    if (flow == FLOW_STOPPED)
        return OK;
    if (flow == FLOW_NEXT)
        process_fail(walk, RUN_LATE_TEXT, /* is_refusal= */ false, &flow);
    return failed_end(walk, ret_verdict, reterr);
}

/* A last step is recorded with the end, here and not by the caller, because what cannot be stored fails the process. */
static ErrorCode completed_end(Walk *walk, BodyVerdict *ret_verdict, Error *reterr)
{
    Error       error = {0};
    const char *result;
    Flow        flow;
    ErrorCode   code = result_render(walk, &result, &error);

    *ret_verdict = (BodyVerdict){.end = BODY_STOPS};
    if (run_is_late(walk->run)) /* also if it passed during the last step */
        return late_end(walk, ret_verdict, reterr);
    if (code == OK)
        code = run_end(walk->run, OUTCOME_COMPLETE, result, NULL, /* failed= */ NULL, walk->last, &error);
    if (code == OK && run_is_over(walk->run))
        return OK;
    if (code == OK) {
        process_fail(walk, run_cancel_text(walk->run), /* is_refusal= */ true, &flow);
        return failed_end(walk, ret_verdict, reterr);
    }
    if (is_own_fault(code))
        return completed_fail(walk, &error, ret_verdict, reterr);
    if (reterr)
        *reterr = error;
    return code;
}

/* The state of the next life. version: of the state that it was computed from; 0: it is the present one. */
static ErrorCode state_render(Walk *walk, Arena *arena, const char **ret_state, int64_t *ret_version, Error *reterr)
{
    LookupContext context = {.walk = walk, .arena = arena};
    Text          text;

    *ret_state   = NULL;
    *ret_version = 0;
    if (!walk->next->action.next.state)
        return OK;
    *ret_version = run_version(walk->run); /* before the state is read */
    text_init(&text, arena, TEXT_MAX_BODY / 4);
    TRY(template_render(walk->next->action.next.state, scope_lookup, &context, &text, reterr));
    *ret_state = text_string(&text);
    return OK;
}

static ErrorCode next_begin(Walk *walk, RunVerdict *ret_verdict, Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(WALK_BYTES_MAX);
    const char               *state;
    int64_t                   version;

    TRY(state_render(walk, arena, &state, &version, reterr));
    return run_continue(walk->run, state, version, ret_verdict, reterr);
}

/* The process continues as new: again while its state changes. */
static ErrorCode continued_end(Walk *walk, BodyVerdict *ret_verdict, Error *reterr)
{
    Error      error   = {0};
    RunVerdict verdict = RUN_STALE;
    ErrorCode  code    = OK;
    Flow       flow;

    for (int i = 0; i < STALE_TRIES && code == OK && verdict == RUN_STALE && !run_must_end(walk->run); i++)
        code = next_begin(walk, &verdict, &error);
    if (is_own_fault(code)) {
        walk_fail(walk, step_id(/* scope= */ NULL, walk->next), error.text, /* is_refusal= */ false, &flow);
        return failed_end(walk, ret_verdict, reterr);
    }
    if (code != OK) {
        if (reterr)
            *reterr = error;
        return code;
    }
    if (verdict == RUN_STALE && !run_must_end(walk->run))
        return fail(reterr, ERR_BUSY, "the state has changed in each of %d tries", STALE_TRIES);
    *ret_verdict = (BodyVerdict){.end = run_must_end(walk->run) ? BODY_STOPS : BODY_AGAIN};
    return OK;
}

static ErrorCode flow_end(Walk *walk, Flow flow, BodyVerdict *ret_verdict, Error *reterr)
{
    switch (flow) {
    case FLOW_NEXT:
        return completed_end(walk, ret_verdict, reterr);
    case FLOW_BLOCKED:
        ret_verdict->end = BODY_WAITS;
        return OK;
    case FLOW_FAILED:
        return failed_end(walk, ret_verdict, reterr);
    case FLOW_STOPPED:
        break;
    }
    ret_verdict->end = BODY_STOPS;
    return OK;
}

/* All compensations have a record, or one of them waits or has failed. None begins before everything that was sent has ended, because order is
 * the promise. */
static ErrorCode compensation_end(Walk *walk, BodyVerdict *ret_verdict, Error *reterr)
{
    Flow       flow;
    RunVerdict verdict;

    TRY(replies_walk(walk, &flow, reterr));
    walk->failure = NULL; /* why it compensates is recorded; from here on failures are those of compensations */
    if (flow == FLOW_NEXT)
        TRY(compensate_walk(walk, &flow, reterr));
    switch (flow) {
    case FLOW_NEXT:
        TRY(run_phase_set(walk->run, "compensated", /* reason= */ NULL, /* failed= */ NULL, &verdict, reterr));
        *ret_verdict = (BodyVerdict){.end     = verdict == RUN_OK ? BODY_ENDS : BODY_STOPS,
                                     .outcome = OUTCOME_REJECT,
                                     .error   = run_reason(walk->run)};
        return OK;
    case FLOW_FAILED:
        *ret_verdict = (BodyVerdict){.end = BODY_ENDS, .outcome = OUTCOME_FAIL, .error = failure_text(walk)};
        return OK;
    case FLOW_BLOCKED:
        ret_verdict->end = BODY_WAITS;
        return OK;
    case FLOW_STOPPED:
        break;
    }
    ret_verdict->end = BODY_STOPS;
    return OK;
}

static ErrorCode walk_run(Walk *walk, BodyVerdict *ret_verdict, Error *reterr)
{
    Flow flow;

    if (strcmp(run_phase(walk->run), "forward") != 0)
        return compensation_end(walk, ret_verdict, reterr);
    TRY(list_walk(walk, /* scope= */ NULL, &walk->definition->list, &flow, reterr));
    if (walk->next && flow == FLOW_STOPPED)
        return continued_end(walk, ret_verdict, reterr);
    return flow_end(walk, flow, ret_verdict, reterr);
}

ErrorCode interpret_body(Run *run, Job *job, const LoadedProcess *loaded, void *context, BodyVerdict *ret_verdict,
                         Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(WALK_BYTES_MAX);
    Walk                      walk  = {.interpreter = context, .run = run, .job = job, .arena = arena};
    ErrorCode                 code;

    if (!loaded->definition_id)
        return definition_bind(walk.interpreter, job, ret_verdict, reterr);
    TRY(definition_get(walk.interpreter, loaded->definition_id, &walk.definition, reterr));
    *ret_verdict = (BodyVerdict){.end = BODY_WAITS};
    mutex_init(&walk.mutex);
    code = walk_run(&walk, ret_verdict, reterr);
    mutex_done(&walk.mutex);
    definition_cache_release(walk.interpreter->definitions, loaded->definition_id);
    ret_verdict->result = arena_text(job->arena, ret_verdict->result);
    ret_verdict->error  = arena_text(job->arena, ret_verdict->error);
    ret_verdict->failed = arena_text(job->arena, ret_verdict->failed);
    return code;
}
