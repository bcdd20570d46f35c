/*
 * step_wait.c - steps that wait for responses, for a condition on the state, or for the time.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/moment.h"
#include "base/setting.h"
#include "base/writer.h"
#include "process/interpret_internal.h"

static ErrorCode until_walk(Attempt *attempt, const VerbWait *wait, Flow *ret_flow, Error *reterr)
{
    LookupContext context = {.walk = attempt->walk, .scope = attempt->scope, .arena = attempt->arena};
    Run          *run     = attempt->walk->run;
    Wait          any     = {.of = response_any(), .count = run_response_count(run) + 1};
    int64_t       version = run_version(run); /* before the state is read */
    bool          is_met;

    TRY(condition_evaluate(attempt->action->wait.until, scope_lookup, &context, &is_met, reterr));
    if (is_met)
        return verb_succeed(&attempt->verb, "true", ret_flow, reterr);
    run_wait_state(run, version);
    return verb_wait_on(&attempt->verb, wait, &any, 1, ret_flow, reterr);
}

ErrorCode step_wait(Walk *walk, const Scope *scope, const Step *step, Flow *ret_flow, Error *reterr)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    const WaitAction         *action  = &step->action.wait;
    Attempt                   attempt = attempt_begin(walk, scope, step, &step->action, step_id(scope, step), arena);
    VerbWait                  wait    = {.names      = action->response ? &action->response : action->any.names,
                                         .name_count = action->response ? 1 : action->any.count,
                                         .is_race    = action->any.count > 0,
                                         .count      = action->count,
                                         .timeout_ms = step->action.timeout_ms,
                                         .continues  = step->continues_on_timeout};
    int                       failures;

    attempt.verb.retry             = (StepRetry){.attempts = 1};
    attempt.verb.record.started_us = 0;
    attempt_saves(&attempt);
    *ret_flow = FLOW_FAILED;
    if (!verb_has_failed(&attempt.verb, &failures))
        TRY(action->until ? until_walk(&attempt, &wait, ret_flow, reterr)
                          : verb_wait(&attempt.verb, &wait, ret_flow, reterr));
    walk_obey(walk, &attempt.verb, ret_flow);
    return OK;
}

/* ---- the time ---- */

/* How long, or until when, to sleep as JSON, from the state as it is now; NULL: for a fixed time. */
static ErrorCode until_render(Walk *walk, const Scope *scope, const Step *step, Arena *arena, const char **ret_json,
                              Error *reterr)
{
    LookupContext context = {.walk = walk, .scope = scope, .arena = arena};
    Text          text, json;

    *ret_json = NULL;
    if (step->action.sleep.for_ms)
        return OK;
    text_init(&text, arena, TEXT_MAX_LINE);
    TRY(template_render(step->action.sleep.until ? step->action.sleep.until : step->action.sleep.for_text, scope_lookup,
                        &context, &text, reterr));
    text_init(&json, arena, TEXT_MAX_LINE);
    writer_quote(&json, text_string(&text));
    *ret_json = text_string(&json);
    return OK;
}

/* When a sleep ends that began then; json: what it was given. */
static ErrorCode due_read(const Step *step, const char *json, int64_t begun_us, Arena *arena, int64_t *ret_due_us,
                          Error *reterr)
{
    Value       value = value_decode((Value){json, strlen(json)}, arena);
    const char *text  = arena_bytes(arena, value.bytes, value.size);
    int64_t     ms;

    if (step->action.sleep.until) {
        if (!moment_parse(text, MOMENT_RFC3339, ret_due_us))
            return fail(reterr, ERR_INVALID, "\"%.60s\" is not a time such as 2026-11-16T08:00:00Z", text);
        return OK;
    }
    if (setting_duration(text, &ms, NULL) != OK || ms > DEFINITION_TIME_MS_MAX)
        return fail(reterr, ERR_INVALID, "\"%.60s\" is not a duration up to 3650d such as 250ms, 10s, 5m, 1h or 2d",
                    text);
    *ret_due_us = begun_us + ms * 1000;
    return OK;
}

/* When the sleep ends. What it was given is recorded when it begins: the state may change. It is checked before, so that an operator can have the
 * step tried again with a better state. */
static ErrorCode sleep_due(Walk *walk, const Scope *scope, const Step *step, Arena *arena, int64_t *ret_due_us,
                           Flow *ret_flow, Error *reterr)
{
    const char *given = NULL, *kept;
    int64_t     begun_us;

    if (!step_kept(walk, scope, step)) {
        TRY(until_render(walk, scope, step, arena, &given, reterr));
        if (given)
            TRY(due_read(step, given, 0, arena, ret_due_us, reterr));
    }
    TRY(step_begun(walk, scope, step, given, &begun_us, &kept, ret_flow, reterr));
    if (*ret_flow != FLOW_NEXT)
        return OK;
    if (!step->action.sleep.for_ms)
        return due_read(step, kept, begun_us, arena, ret_due_us, reterr);
    *ret_due_us = begun_us + step->action.sleep.for_ms * 1000;
    return OK;
}

ErrorCode step_sleep(Walk *walk, const Scope *scope, const Step *step, Flow *ret_flow, Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    Verb                      verb  = walk_verb(walk, step_id(scope, step), arena);
    int64_t                   due_us;

    TRY(sleep_due(walk, scope, step, arena, &due_us, ret_flow, reterr));
    return *ret_flow == FLOW_NEXT ? verb_sleep(&verb, due_us, ret_flow, reterr) : OK;
}
