/*
 * step_state.c - steps that only read and patch the state, or end the process or its life: set, when, fail, continue.
 */
#include "process/interpret_internal.h"

/* A patch of the state as it is known. */
typedef struct {
    const Step   *step;
    LookupContext lookup;
    ArenaMark     mark; /* what the patch before has taken is used again */
} SetPatch;

static ErrorCode set_refresh(void *context, RunRecord *record, Error *reterr)
{
    SetPatch *patch = context;
    Text      text;

    arena_rewind(patch->lookup.arena, patch->mark);
    record->version = template_takes_state(patch->step->action.set) ? run_version(patch->lookup.walk->run) : 0;
    text_init(&text, patch->lookup.arena, (size_t)2 << 20);
    TRY(template_render(patch->step->action.set, scope_lookup, &patch->lookup, &text, reterr));
    record->patch = text_string(&text);
    return OK;
}

ErrorCode step_set(Walk *walk, const Scope *scope, const Step *step, Flow *ret_flow, Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    SetPatch                  patch = {
        step, {.walk = walk, .scope = scope, .arena = arena},
         arena_mark(arena)
    };
    Verb verb = walk_verb(walk, step_id(scope, step), arena);

    verb.record.refresh = set_refresh;
    verb.record.context = &patch;
    return verb_succeed(&verb, "null", ret_flow, reterr);
}

/* The record holds the decision, so that a state that changes later does not change the way. */
ErrorCode step_when(Walk *walk, const Scope *scope, const Step *step, Flow *ret_flow, Error *reterr)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    LookupContext             context = {.walk = walk, .scope = scope, .arena = arena};
    RunVerdict                verdict;
    bool                      is_true;

    TRY(condition_evaluate(step->action.when.condition, scope_lookup, &context, &is_true, reterr));
    return step_record(walk, step_id(scope, step), is_true ? "true" : "false", /* patch= */ NULL, 0, &verdict, ret_flow,
                       reterr);
}

/* The reason is recorded as a refusal, so that a state that changes later does not change it. */
ErrorCode step_fail(Walk *walk, const Scope *scope, const Step *step, Flow *ret_flow, Error *reterr)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    LookupContext             context = {.walk = walk, .scope = scope, .arena = arena};
    RunRecord                 record  = {.id = step_id(scope, step), .end = END_REFUSED};
    RunVerdict                verdict = RUN_OK;
    Text                      text;
    int                       failures;
    const StepRecord         *known = run_failure(walk->run, record.id, &failures);

    if (known)
        record.error = known->error;
    else {
        text_init(&text, arena, TEXT_MAX_LINE);
        TRY(template_render(step->action.fail, scope_lookup, &context, &text, reterr));
        record.error = text_string(&text);
        TRY(run_record(walk->run, &record, &verdict, reterr));
    }
    *ret_flow = FLOW_STOPPED;
    if (verdict == RUN_OK)
        walk_fail(walk, record.id, record.error, /* is_refusal= */ true, ret_flow);
    return OK;
}

/* It has no record: those of this life end with it. */
ErrorCode step_continue(Walk *walk, const Scope *scope, const Step *step, Flow *ret_flow, Error *reterr)
{
    (void)scope;
    (void)reterr;
    walk->next = step;
    *ret_flow  = FLOW_STOPPED;
    return OK;
}
