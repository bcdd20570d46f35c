/*
 * attempt.c - actions that may fail: tried by their policy, recorded attempt by attempt.
 *
 *     no record          run it now
 *     n failures         wait until the policy's delay after the last one has passed, then run it again
 *     attempts used up   it has failed for good; so has one whose record says that it was final, or a refusal
 *
 * A failure is recorded before anything else is done, so that a worker that dies does not make an attempt forgotten, and one that dies while
 * the action runs does not make it count.
 *
 * An action that succeeded but whose result cannot be saved (`save` names what the result does not have, a limit is reached) fails its step,
 * and yet it has happened: "NAME:done" records that, so it is compensated like others, and not run again when the step is tried again. The same
 * record keeps a result while another transaction has the process locked.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"
#include "base/uuid.h"
#include "base/writer.h"
#include "process/interpret_internal.h"

#define ATTEMPT_BYTES_MAX ((size_t)64 << 20)
#define RENDER_BYTES_MAX  ((size_t)4 << 20)

static AttemptRun *const attempts[STEP_KIND_COUNT] = {
    [STEP_EXEC] = attempt_exec,     [STEP_SQL] = attempt_sql,      [STEP_HTTP] = attempt_http,
    [STEP_WALLET] = attempt_wallet, [STEP_COMMAND] = attempt_send, [STEP_PROCESS] = attempt_send,
};

/* ---- templates ---- */

static LookupContext attempt_context(const Attempt *attempt, Value result)
{
    return (LookupContext){.walk   = attempt->walk,
                           .scope  = attempt->scope,
                           .result = result,
                           .arena  = attempt->arena,
                           .gone   = attempt->gone};
}

/* Wait until the pod has the memory; an attempt that has taken some does not wait again. */
static ErrorCode bytes_take(Attempt *attempt, size_t bytes, Error *reterr)
{
    Walk  *walk  = attempt->walk;
    Share *share = walk->interpreter->bytes;

    if (bytes < INPUT_BYTES_LEAST)
        return OK;
    if (attempt->bytes > 0)
        share_force(share, walk->definition->domain, (int64_t)bytes);
    else if (!walk_share_take(walk, share, (int64_t)bytes))
        return fail(reterr, ERR_STOPPING, "the activation must stop");
    attempt->bytes += bytes;
    return OK;
}

ErrorCode attempt_render(Attempt *attempt, const Template *template, const char *fallback, const char **ret_text,
                         Error *reterr)
{
    LookupContext context = attempt_context(attempt, attempt->result_before);
    size_t        size;
    Text          text;

    if (!template) {
        *ret_text = fallback;
        return OK;
    }
    text_init(&text, attempt->arena, RENDER_BYTES_MAX);
    size = template_size(template, scope_lookup, &context);
    if (size <= RENDER_BYTES_MAX) {
        TRY(bytes_take(attempt, size, reterr));
        text_reserve(&text, size);
    }
    TRY(template_render(template, scope_lookup, &context, &text, reterr));
    *ret_text = text_string(&text);
    return OK;
}

ErrorCode attempt_render_url(Attempt *attempt, const Template *template, const char **ret_text, Error *reterr)
{
    LookupContext context = attempt_context(attempt, attempt->result_before);
    Text          text;

    text_init(&text, attempt->arena, RENDER_BYTES_MAX);
    TRY(template_render_url(template, scope_lookup, &context, &text, reterr));
    *ret_text = text_string(&text);
    return OK;
}

ErrorCode attempt_patch(Attempt *attempt, const char *result, Error *reterr)
{
    LookupContext context = attempt_context(attempt, (Value){result, strlen(result)});
    Text          text;

    if (!attempt->step->save || attempt->action != &attempt->step->action)
        return OK;
    attempt->version = template_takes_state(attempt->step->save) ? run_version(attempt->walk->run) : 0;
    text_init(&text, attempt->arena, RENDER_BYTES_MAX);
    TRY(template_render(attempt->step->save, scope_lookup, &context, &text, reterr));
    attempt->patch = text_string(&text);
    return OK;
}

int64_t attempt_limit_ms(const Attempt *attempt, int64_t otherwise)
{
    int64_t ms   = attempt->action->timeout_ms ? attempt->action->timeout_ms : otherwise;
    int64_t left = run_ms_left(attempt->walk->run);

    if (left < 0 || ms < left)
        return ms;
    return left ? left : 1;
}

/* ---- the policy ---- */

static int64_t delay_us(const StepRetry *policy, int failures, int64_t least_ms)
{
    double ms = (double)policy->delay_ms;

    for (int i = 1; i < failures && ms < (double)policy->delay_ms_max; i++)
        ms *= policy->factor;
    if (ms > (double)policy->delay_ms_max)
        ms = (double)policy->delay_ms_max;
    if (ms < (double)least_ms)
        ms = (double)least_ms;
    return (int64_t)(ms * 1000);
}

static const char *end_hash(AttemptEnd end)
{
    if (end == ATTEMPT_REFUSED)
        return HASH_REFUSED;
    return end == ATTEMPT_FAIL ? HASH_FINAL : NULL;
}

/* In input_hash as well: the other side has said how long to wait. */
#define HASH_AFTER "after:"

static const char *failure_hash(const AttemptResult *result, Arena *arena)
{
    if (result->end == ATTEMPT_RETRY && result->retry_ms > 0)
        return arena_print(arena, HASH_AFTER "%lld", (long long)result->retry_ms);
    return end_hash(result->end);
}

static int64_t hash_after_ms(const StepRecord *record)
{
    const char *hash = record->input_hash;

    return hash && strncmp(hash, HASH_AFTER, strlen(HASH_AFTER)) == 0 ? strtoll(hash + strlen(HASH_AFTER), NULL, 10)
                                                                      : 0;
}

static bool hash_is(const StepRecord *record, const char *hash)
{
    return record->input_hash && strcmp(record->input_hash, hash) == 0;
}

bool failure_is_final(const StepRecord *record)
{
    return record->error && (hash_is(record, HASH_FINAL) || hash_is(record, HASH_REFUSED));
}

/* May it be tried now? */
static bool attempt_is_due(Walk *walk, const Action *action, const char *record, Flow *ret_flow, int *ret_failures)
{
    const StepRecord *last = run_failure(walk->run, record);
    const char       *error;
    int64_t           ended_us;

    *ret_failures = run_failures(walk->run, record, &ended_us, &error);
    if (!last)
        return true;
    if (*ret_failures >= action->retry.attempts || failure_is_final(last)) {
        walk_fail(walk, record, error, hash_is(last, HASH_REFUSED), ret_flow);
        return false;
    }
    int64_t due_us = ended_us + delay_us(&action->retry, *ret_failures, hash_after_ms(last));

    if (run_now_us(walk->run) >= due_us)
        return true;
    run_wait(walk->run, record, WAIT_RETRY, /* name= */ NULL, 0, due_us);
    *ret_flow = FLOW_BLOCKED;
    return false;
}

/* ---- recording ---- */

static RecordName done_name(const char *record)
{
    RecordName name;

    snprintf(name.text, sizeof name.text, "%s%s", record, RECORD_DONE);
    return name;
}

ErrorCode happened_record(Walk *walk, const char *record, const char *result, const char *why, Flow *ret_flow,
                          Error *reterr)
{
    RecordName name  = done_name(record);
    Error      error = {0};
    RunVerdict verdict;
    ErrorCode  code = OK;

    *ret_flow = FLOW_NEXT;
    if (!run_result(walk->run, name.text)) {
        code = step_record(walk, name.text, result, /* patch= */ NULL, 0, &verdict, ret_flow, &error);
        if (code == ERR_LIMIT || code == ERR_INVALID)
            code = step_record(walk, name.text, "null", /* patch= */ NULL, 0, &verdict, ret_flow, &error);
    }
    if (code != OK) {
        if (reterr)
            *reterr = error;
        return code;
    }
    if (*ret_flow == FLOW_NEXT)
        walk_fail(walk, record, why, /* is_refusal= */ false, ret_flow);
    return OK;
}

static ErrorCode unsaved_record(Attempt *attempt, const char *result, const char *why, Flow *ret_flow, Error *reterr)
{
    return happened_record(attempt->walk, attempt->record, result, why, ret_flow, reterr);
}

typedef struct {
    Attempt    *attempt;
    const char *result;
} SavePatch;

static ErrorCode save_refresh(void *context, RunRecord *record, Error *reterr)
{
    const SavePatch *patch = context;

    TRY(attempt_patch(patch->attempt, patch->result, reterr));
    record->patch   = patch->attempt->patch;
    record->version = patch->attempt->version;
    return OK;
}

/* A patch that was computed from a state that has changed since is computed again. */
static ErrorCode success_write(Attempt *attempt, const char *result, Flow *ret_flow, Error *reterr)
{
    RunVerdict verdict = RUN_STALE;
    Error      error   = {0};
    ErrorCode  code    = OK;
    SavePatch  patch   = {attempt, result};
    RunRecord  record  = {.step       = attempt->record,
                          .result     = result,
                          .started_us = attempt->started_us,
                          .refresh    = save_refresh,
                          .context    = &patch};

    for (int i = 0; i < STALE_TRIES && code == OK && verdict == RUN_STALE; i++) {
        code = save_refresh(&patch, &record, &error);
        if (code == OK)
            code = run_record(attempt->walk->run, &record, &verdict, &error);
    }
    if (code == ERR_INVALID || code == ERR_LIMIT)
        return unsaved_record(attempt, result, error.text, ret_flow, reterr);
    if (code != OK) {
        if (reterr)
            *reterr = error;
        return code;
    }
    *ret_flow = verdict == RUN_OVER ? FLOW_STOPPED : FLOW_NEXT;
    if (verdict == RUN_STALE)
        return fail(reterr, ERR_BUSY, "the state changes faster than step \"%s\" can patch it", attempt->record);
    return OK;
}

/* Another transaction has the process locked, so its state cannot be patched. The result is kept as "NAME:done", and the activation ends. A result
 * that is too large to be kept twice stays here until the lock is gone. ERR_BUSY: *reterr says why, as before. */
static ErrorCode success_keep(Attempt *attempt, const char *result, Flow *ret_flow, Error *reterr)
{
    RecordName name  = done_name(attempt->record);
    Run       *run   = attempt->walk->run;
    Error      error = {0};
    RunVerdict verdict;
    ErrorCode  code;

    if (run_result(run, name.text))
        return ERR_BUSY;
    code = step_record(attempt->walk, name.text, result, /* patch= */ NULL, 0, &verdict, ret_flow, &error);
    if (code == OK)
        return *ret_flow == FLOW_NEXT ? ERR_BUSY : OK;
    if (code == ERR_LIMIT || code == ERR_INVALID)
        do
            code = success_write(attempt, result, ret_flow, &error);
        while (code == ERR_BUSY && !run_must_stop(run));
    if (code != OK && reterr)
        *reterr = error;
    return code;
}

static ErrorCode success_record(Attempt *attempt, const char *result, Flow *ret_flow, Error *reterr)
{
    ErrorCode code;

    if (attempt->action == &attempt->step->action && step_is_last(attempt->step)) {
        RunRecord record = {.step = attempt->record, .result = result, .started_us = attempt->started_us};

        attempt->walk->last = run_record_with_end(attempt->walk->run, &record);
        if (attempt->walk->last)
            return OK;
    }
    code = success_write(attempt, result, ret_flow, reterr);
    if (code == ERR_BUSY && attempt->patch &&
        (attempt->action->kind == STEP_EXEC || attempt->action->kind == STEP_HTTP)) /* a reply is stored */
        return success_keep(attempt, result, ret_flow, reterr);
    return code;
}

ErrorCode reply_record(Walk *walk, const Scope *scope, const Step *step, const char *record, const SentReply *reply,
                       Flow *ret_flow, Error *reterr)
{
    scoped(arena_free) Arena *arena   = NULL;
    Attempt                   attempt = {.walk       = walk,
                                         .scope      = scope,
                                         .step       = step,
                                         .action     = &step->action,
                                         .record     = record,
                                         .started_us = run_now_us(walk->run)};

    *ret_flow = FLOW_NEXT;
    if (run_result(walk->run, record) || run_result(walk->run, done_name(record).text))
        return OK;
    if (reply->error)
        return happened_record(walk, record, "null", reply->error, ret_flow, reterr);
    arena         = arena_new(ATTEMPT_BYTES_MAX);
    attempt.arena = arena;
    return success_write(&attempt, reply->result ? reply->result : "null", ret_flow, reterr);
}

static ErrorCode failure_record(Attempt *attempt, const AttemptResult *result, Flow *ret_flow, Error *reterr)
{
    Walk      *walk   = attempt->walk;
    RunRecord  record = {.step       = attempt->record,
                         .error      = result->error,
                         .input_hash = failure_hash(result, attempt->arena),
                         .started_us = attempt->started_us};
    RunVerdict verdict;
    bool       is_last = result->end != ATTEMPT_RETRY || attempt->attempt >= attempt->action->retry.attempts;

    TRY(run_record(walk->run, &record, &verdict, reterr));
    if (verdict != RUN_OK) {
        *ret_flow = FLOW_STOPPED;
        return OK;
    }
    if (is_last) {
        walk_fail(walk, attempt->record, result->error, result->end == ATTEMPT_REFUSED, ret_flow);
        return OK;
    }
    run_wait(walk->run, attempt->record, WAIT_RETRY, /* name= */ NULL, 0,
             run_now_us(walk->run) + delay_us(&attempt->action->retry, attempt->attempt, result->retry_ms));
    *ret_flow = FLOW_BLOCKED;
    return OK;
}

static ErrorCode result_take(Attempt *attempt, const AttemptResult *result, Flow *ret_flow, Error *reterr)
{
    switch (result->end) {
    case ATTEMPT_DONE:
        *ret_flow = run_is_over(attempt->walk->run) ? FLOW_STOPPED : FLOW_NEXT; /* canceled meanwhile */
        if (result->recorded)
            return OK;
        if (result->error)
            return unsaved_record(attempt, "null", result->error, ret_flow, reterr);
        return success_record(attempt, result->result ? result->result : "null", ret_flow, reterr);
    case ATTEMPT_RETRY:
    case ATTEMPT_FAIL:
    case ATTEMPT_REFUSED:
        return failure_record(attempt, result, ret_flow, reterr);
    case ATTEMPT_BLOCKED:
        *ret_flow = FLOW_BLOCKED;
        return OK;
    case ATTEMPT_STOPPED:
        break;
    }
    *ret_flow = FLOW_STOPPED;
    return OK;
}

/* A template that cannot be rendered, and anything else that is wrong with the definition or its values, fails for good; what says nothing
 * about the step (the database is away) ends the activation. */
static ErrorCode attempt_try(Attempt *attempt, AttemptResult *ret_result, Error *reterr)
{
    Error     error = {0};
    Mono      began = clock_mono();
    ErrorCode code  = attempts[attempt->action->kind](attempt, ret_result, &error);

    if (ret_result->end != ATTEMPT_BLOCKED)
        metric_observe_us(&run_metrics(attempt->walk->run)->step_seconds, mono_us_between(began, clock_mono()));
    if (code == OK)
        return OK;
    if (code == ERR_INVALID || code == ERR_LIMIT || code == ERR_NOT_FOUND || code == ERR_DENIED) {
        *ret_result = (AttemptResult){.end = ATTEMPT_FAIL, .error = arena_text(attempt->arena, error.text)};
        return OK;
    }
    if (reterr)
        *reterr = error;
    return code;
}

ErrorCode action_walk(Walk *walk, const Scope *scope, const Step *step, const Action *action, const char *record,
                      Value result_before, int gone, Flow *ret_flow, Error *reterr)
{
    scoped(arena_free) Arena *arena   = NULL;
    AttemptResult             result  = {0};
    Attempt                   attempt = {.walk          = walk,
                                         .scope         = scope,
                                         .step          = step,
                                         .action        = action,
                                         .record        = record,
                                         .result_before = result_before,
                                         .gone          = gone};
    char                      key[UUID_TEXT_SIZE];
    int                       failures;
    ErrorCode                 code = OK;

    if (!attempt_is_due(walk, action, record, ret_flow, &failures))
        return OK;
    if (record[0] != '~' && run_records_left(walk->run) == 0) /* before it does something that cannot be recorded */
        return fail(reterr, ERR_LIMIT, RUN_RECORDS_REACHED, RUN_RECORDS_MAX);
    arena = arena_new(ATTEMPT_BYTES_MAX);
    record_key(walk, record, key);
    attempt.arena      = arena;
    attempt.key        = key;
    attempt.attempt    = failures + 1;
    attempt.started_us = run_now_us(walk->run);
    if (FAULT("process.step.before"))
        return fail(reterr, ERR_UNAVAILABLE, "fault at process.step.before");
    result.result = run_result(walk->run, done_name(attempt.record).text);
    if (result.result)
        result.end = ATTEMPT_DONE; /* only its `save` is tried again */
    else
        code = attempt_try(&attempt, &result, reterr);
    if (code == OK && FAULT("process.step.after"))
        code = fail(reterr, ERR_UNAVAILABLE, "fault at process.step.after");
    if (code == OK)
        code = result_take(&attempt, &result, ret_flow, reterr);
    if (attempt.bytes > 0 && walk_share_give(walk, walk->interpreter->bytes, (int64_t)attempt.bytes) == 0)
        malloc_trim(0); /* the memory of large inputs is returned to the system */
    return code;
}
