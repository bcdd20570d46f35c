/*
 * attempt.c - actions of definitions: tried by their policy (verb.h), each attempt with what templates give it, and what comes of it saved.
 *
 * An action that succeeded but whose result cannot be saved (`save` names what the result does not have, a limit is reached) fails its step,
 * and yet it has happened: RECORD_DONE says that, so it is compensated like others, and not run again when the step is tried again. The same
 * record keeps a result while another transaction has the process locked.
 */
#include <assert.h>
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
/* What templates leave free of an attempt's arena. Beside a response there are small texts, such as that of an error, which are allocated without a
 * check. */
#define SPARE_BYTES_MIN ((size_t)16 << 20)

#define X(id, name, walk, call, ...) [id] = attempt_##call,
static AttemptRun *const attempts[STEP_KIND_COUNT] = {STEP_KINDS(X)};
#undef X

/* ---- templates ---- */

static LookupContext attempt_context(const Attempt *attempt, Value result)
{
    return (LookupContext){.walk   = attempt->walk,
                           .scope  = attempt->scope,
                           .result = result,
                           .arena  = attempt->arena,
                           .gone   = attempt->id.aside};
}

/* What the rendered text takes; one that is too large is refused when it is rendered. */
static size_t part_size(const Attempt *attempt, const InputPart *part)
{
    LookupContext context = attempt_context(attempt, attempt->result_before);
    size_t        size    = part->template ? template_size(part->template, scope_lookup, &context) : 0;

    return size <= RENDER_BYTES_MAX ? size : 0;
}

/* Wait until the pod has the memory for all parts: an attempt that holds some must not wait for more. */
static ErrorCode bytes_take(Attempt *attempt, const InputPart *parts, int count, Error *reterr)
{
    Walk  *walk  = attempt->walk;
    size_t bytes = 0;

    assert(attempt->bytes == 0);
    for (int i = 0; i < count; i++)
        bytes += parts[i].is_taken ? 0 : part_size(attempt, &parts[i]);
    if (bytes < INPUT_BYTES_LEAST)
        return OK;
    if (!walk_share_take(walk, walk->interpreter->bytes, (int64_t)bytes))
        return fail(reterr, ERR_STOPPING, "the activation must stop");
    attempt->bytes = bytes;
    return OK;
}

static ErrorCode part_render_text(const Attempt *attempt, InputPart *part, Error *reterr)
{
    LookupContext context = attempt_context(attempt, attempt->result_before);
    Text          text;

    text_init(&text, attempt->arena, RENDER_BYTES_MAX);
    text_reserve(&text, part_size(attempt, part));
    if (part->is_url)
        TRY(template_render_url(part->template, scope_lookup, &context, &text, reterr));
    else
        TRY(template_render(part->template, scope_lookup, &context, &text, reterr));
    if (!arena_has_space(attempt->arena, SPARE_BYTES_MIN))
        return fail(reterr, ERR_LIMIT, "the rendered values are larger than %zu bytes together",
                    ATTEMPT_BYTES_MAX - SPARE_BYTES_MIN);
    part->text = text_string(&text);
    return OK;
}

/* A part that is too large takes nothing of the arena. */
static ErrorCode part_render(const Attempt *attempt, InputPart *part, Error *reterr)
{
    ArenaMark mark = arena_mark(attempt->arena);
    ErrorCode code = part_render_text(attempt, part, reterr);

    if (code != OK)
        arena_rewind(attempt->arena, mark);
    return code;
}

ErrorCode attempt_render_parts(Attempt *attempt, InputPart *parts, int count, Error *reterr)
{
    TRY(bytes_take(attempt, parts, count, reterr));
    for (int i = 0; i < count; i++)
        if (parts[i].template && !parts[i].is_taken)
            TRY(part_render(attempt, &parts[i], reterr));
    return OK;
}

ErrorCode attempt_render(Attempt *attempt, const Template *template, const char *fallback, const char **ret_text,
                         Error *reterr)
{
    InputPart part = {.template = template, .text = fallback};

    TRY(attempt_render_parts(attempt, &part, 1, reterr));
    *ret_text = part.text;
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

/* ---- recording ---- */

Verb walk_verb(Walk *walk, RecordId id, Arena *arena)
{
    return (Verb){.run = walk->run, .arena = arena, .record = {.id = id}, .retry = {.attempts = 1}};
}

void walk_obey(Walk *walk, const Verb *verb, Flow *flow)
{
    if (*flow == FLOW_FAILED)
        walk_fail(walk, verb->record.id, verb->error, verb->is_refusal, flow);
}

ErrorCode happened_record(Walk *walk, RecordId id, const char *result, const char *why, Flow *ret_flow, Error *reterr)
{
    Verb verb = walk_verb(walk, id, /* arena= */ NULL);

    TRY(verb_happened(&verb, result, why, ret_flow, reterr));
    walk_obey(walk, &verb, ret_flow);
    return OK;
}

/* What the patch before has taken of the arena is used again. */
static ErrorCode save_refresh(void *context, RunRecord *record, Error *reterr)
{
    Attempt *attempt = context;

    if (attempt->has_saved)
        arena_rewind(attempt->arena, attempt->saved);
    attempt->saved     = arena_mark(attempt->arena);
    attempt->has_saved = true;
    TRY(attempt_patch(attempt, record->result, reterr));
    record->patch   = attempt->patch;
    record->version = attempt->version;
    return OK;
}

static ErrorCode success_write(Attempt *attempt, const char *result, Flow *ret_flow, Error *reterr)
{
    Error     error = {0};
    ErrorCode code  = verb_succeed(&attempt->verb, result, ret_flow, &error);

    if (code == ERR_INVALID || code == ERR_LIMIT)
        return happened_record(attempt->walk, attempt->id, result, error.text, ret_flow, reterr);
    if (code != OK && reterr)
        *reterr = error;
    return code;
}

/* Another transaction has the process locked, so its state cannot be patched. The result is kept as RECORD_DONE, and the activation ends. A result
 * that is too large to be kept twice stays here until the lock is gone. ERR_BUSY: *reterr says why, as before. */
static ErrorCode success_keep(Attempt *attempt, const char *result, Flow *ret_flow, Error *reterr)
{
    Run      *run   = attempt->walk->run;
    RunRecord done  = {.id = record_as(attempt->id, RECORD_DONE), .result = result};
    Error     error = {0};
    ErrorCode code;

    if (run_result(run, done.id))
        return ERR_BUSY;
    code = verb_record(&attempt->verb, &done, ret_flow, &error);
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
        RunRecord record = {.id = attempt->id, .result = result, .started_us = attempt->verb.record.started_us};

        attempt->walk->last = run_record_with_end(attempt->walk->run, &record);
        if (attempt->walk->last)
            return OK;
    }
    code = success_write(attempt, result, ret_flow, reterr);
    if (code == ERR_BUSY && attempt->patch && step_kinds[attempt->action->kind].asks)
        return success_keep(attempt, result, ret_flow, reterr);
    return code;
}

Attempt attempt_begin(Walk *walk, const Scope *scope, const Step *step, const Action *action, RecordId id, Arena *arena)
{
    Attempt attempt = {.walk   = walk,
                       .scope  = scope,
                       .step   = step,
                       .action = action,
                       .id     = id,
                       .arena  = arena,
                       .verb   = walk_verb(walk, id, arena)};

    attempt.verb.retry             = action->retry;
    attempt.verb.record.started_us = run_now_us(walk->run);
    return attempt;
}

void attempt_saves(Attempt *attempt)
{
    if (!attempt->step->save || attempt->action != &attempt->step->action)
        return;
    attempt->verb.record.refresh = save_refresh;
    attempt->verb.record.context = attempt;
}

ErrorCode ended_record(Walk *walk, const Scope *scope, const Step *step, const char *result, Arena *arena,
                       Flow *ret_flow, Error *reterr)
{
    Attempt attempt = attempt_begin(walk, scope, step, &step->action, step_id(scope, step), arena);

    attempt.verb.record.started_us = 0;
    attempt_saves(&attempt);
    return verb_succeed(&attempt.verb, result, ret_flow, reterr);
}

ErrorCode reply_record(Walk *walk, const Scope *scope, const Step *step, RecordId id, const SentReply *reply,
                       Flow *ret_flow, Error *reterr)
{
    scoped(arena_free) Arena *arena = NULL;
    Attempt                   attempt;

    *ret_flow = FLOW_NEXT;
    if (run_result(walk->run, id) || run_result(walk->run, record_as(id, RECORD_DONE)))
        return OK;
    if (reply->error)
        return happened_record(walk, id, "null", reply->error, ret_flow, reterr);
    arena   = arena_new(ATTEMPT_BYTES_MAX);
    attempt = attempt_begin(walk, scope, step, &step->action, id, arena);
    attempt_saves(&attempt);
    return success_write(&attempt, reply->result ? reply->result : "null", ret_flow, reterr);
}

static ErrorCode result_take(Attempt *attempt, const AttemptResult *result, Flow *ret_flow, Error *reterr)
{
    *ret_flow = result->state == ATTEMPT_BLOCKED ? FLOW_BLOCKED : FLOW_STOPPED;
    if (result->state != ATTEMPT_ENDED)
        return OK;
    if (result->end != END_DONE) {
        TRY(verb_fail(&attempt->verb, result, ret_flow, reterr));
        walk_obey(attempt->walk, &attempt->verb, ret_flow);
        return OK;
    }
    *ret_flow = run_is_over(attempt->walk->run) ? FLOW_STOPPED : FLOW_NEXT; /* canceled meanwhile */
    if (result->recorded)
        return OK;
    if (result->error)
        return happened_record(attempt->walk, attempt->id, "null", result->error, ret_flow, reterr);
    return success_record(attempt, result->result ? result->result : "null", ret_flow, reterr);
}

ErrorCode attempt_none(Attempt *attempt, AttemptResult *ret_result, Error *reterr)
{
    (void)ret_result;
    return fail(reterr, ERR_INVALID, "a step of the kind %s has no call", step_kinds[attempt->action->kind].name);
}

/* A template that cannot be rendered, and anything else that is wrong with the definition or its values, fails for good; what says nothing
 * about the step (the database is away) ends the activation. */
static ErrorCode attempt_try(Attempt *attempt, AttemptResult *ret_result, Error *reterr)
{
    Error     error = {0};
    Mono      began = clock_mono();
    ErrorCode code  = attempts[attempt->action->kind](attempt, ret_result, &error);

    if (ret_result->state != ATTEMPT_BLOCKED)
        metric_observe_us(&run_metrics(attempt->walk->run)->step_seconds, mono_us_between(began, clock_mono()));
    if (code == OK)
        return OK;
    if (code == ERR_INVALID || code == ERR_LIMIT || code == ERR_NOT_FOUND || code == ERR_DENIED) {
        *ret_result = (AttemptResult){.end = END_FINAL, .error = arena_text(attempt->arena, error.text)};
        return OK;
    }
    if (reterr)
        *reterr = error;
    return code;
}

ErrorCode action_walk(Walk *walk, const Scope *scope, const Step *step, const Action *action, RecordId id,
                      Value result_before, Flow *ret_flow, Error *reterr)
{
    scoped(arena_free) Arena *arena   = NULL;
    AttemptResult             result  = {0};
    Attempt                   attempt = attempt_begin(walk, scope, step, action, id, /* arena= */ NULL);
    char                      key[UUID_TEXT_SIZE];
    int                       failures;
    ErrorCode                 code = OK;

    *ret_flow = verb_due(&attempt.verb, &failures);
    walk_obey(walk, &attempt.verb, ret_flow);
    if (*ret_flow != FLOW_NEXT)
        return OK;
    if (!id.undo && run_records_left(walk->run) == 0) /* before it does something that cannot be recorded */
        return fail(reterr, ERR_LIMIT, RUN_RECORDS_REACHED, RUN_RECORDS_MAX);
    arena = arena_new(ATTEMPT_BYTES_MAX);
    run_step_key(walk->run, id, key);
    attempt.arena = attempt.verb.arena = arena;
    attempt.key                        = key;
    attempt.attempt                    = failures + 1;
    attempt.result_before              = result_before;
    attempt_saves(&attempt);
    if (FAULT("process.step.before"))
        return fail(reterr, ERR_UNAVAILABLE, "fault at process.step.before");
    result.result = run_result(walk->run, record_as(id, RECORD_DONE));
    if (!result.result) /* else only its `save` is tried again */
        code = attempt_try(&attempt, &result, reterr);
    if (code == OK && FAULT("process.step.after"))
        code = fail(reterr, ERR_UNAVAILABLE, "fault at process.step.after");
    if (code == OK)
        code = result_take(&attempt, &result, ret_flow, reterr);
    if (attempt.bytes > 0 && walk_share_give(walk, walk->interpreter->bytes, (int64_t)attempt.bytes) == 0)
        malloc_trim(0); /* the memory of large inputs is returned to the system */
    return code;
}
