/*
 * step_wait.c - steps that wait for responses, for a condition on the state, or for the time.
 *
 * A response that has arrived when the step is looked at meets it, even if its time is over by then. That time is over is recorded only if
 * the state has not changed since it was read, and every response changes it: so of a response and a timeout at the same moment exactly
 * one is recorded.
 */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/moment.h"
#include "base/setting.h"
#include "base/writer.h"
#include "process/interpret_internal.h"

#define RESULT_BYTES_MAX ((size_t)4 << 20)

/* ---- responses ---- */

/* Responses of one name by their positions in the order of arrival, from 0. A retry from a step sets aside the records of some waits and leaves
 * others, so the records of waits have the ones that they have taken: "{[0,3),[5,6)}". */
typedef struct {
    const char *const *payloads;
    int64_t            count; /* that have arrived */
    bool              *is_taken;
    int64_t            taken;
} Responses;

static void position_take(Responses *responses, int64_t position)
{
    if (position < 0 || position >= responses->count || responses->is_taken[position])
        return;
    responses->is_taken[position] = true;
    responses->taken++;
}

/* A multirange as PostgreSQL prints it. */
static void ranges_take(Responses *responses, const char *ranges)
{
    for (const char *at = strchr(ranges, '['); at; at = strchr(at, '[')) {
        char   *end;
        int64_t first = strtoll(at + 1, &end, 10), behind = *end ? strtoll(end + 1, &end, 10) : first;

        for (int64_t i = first; i < behind && i < responses->count; i++)
            position_take(responses, i);
        at = end;
    }
}

/* Has this record of a wait taken responses of this name? A definition that the process was moved to waits for the same where it has. */
static bool record_has_taken(Walk *walk, const StepRecord *record, const char *name)
{
    const Step *step =
        record->taken && record->id.aside == 0 ? definition_find(walk->definition, record->id.step) : NULL;

    return step && step->action.kind == STEP_WAIT && step->action.wait.response &&
           strcmp(step->action.wait.response, name) == 0;
}

/* The responses of this name, and which of them waits have taken. */
static void taken_read(Walk *walk, const char *name, Arena *arena, Responses *ret_responses)
{
    const StepRecord *const *records;
    int                      count = run_records(walk->run, &records);

    *ret_responses          = (Responses){0};
    ret_responses->count    = run_responses(walk->run, response_signal(name), &ret_responses->payloads);
    ret_responses->is_taken = arena_array(arena, bool, (int)ret_responses->count + 1);
    for (int i = 0; i < count; i++)
        if (record_has_taken(walk, records[i], name))
            ranges_take(ret_responses, records[i]->taken);
}

/* The first ones that no wait has taken, of which there are as many: one payload, or an array of several. *ret_taken: a multirange. */
static ErrorCode responses_take(const Responses *responses, int64_t count, Arena *arena, const char **ret_json,
                                const char **ret_taken, Error *reterr)
{
    int64_t taken = 0;
    Text    text, ranges;

    text_init(&text, arena, RESULT_BYTES_MAX);
    text_init(&ranges, arena, RESULT_BYTES_MAX);
    for (int64_t i = 0; i < responses->count && taken < count; i++) {
        if (responses->is_taken[i])
            continue;
        if (count > 1)
            text_append(&text, taken ? "," : "[");
        text_append(&text, responses->payloads[i]);
        text_print(&ranges, "%s[%lld,%lld)", taken++ ? "," : "{", (long long)i, (long long)i + 1);
    }
    text_append(&ranges, "}"); /* the server joins neighbours */
    if (count > 1)
        text_append(&text, "]");
    if (text_is_full(&text))
        return fail(reterr, ERR_LIMIT, "the responses have more than %zu bytes together", RESULT_BYTES_MAX);
    *ret_json  = text_string(&text);
    *ret_taken = text_string(&ranges);
    return OK;
}

/* ---- the end of a wait ---- */

/* taken: the responses that it has taken; NULL: none. */
static ErrorCode met_record(Walk *walk, const Scope *scope, const Step *step, const char *result, const char *taken,
                            Arena *arena, Flow *ret_flow, Error *reterr)
{
    Attempt attempt = {.walk   = walk,
                       .scope  = scope,
                       .step   = step,
                       .action = &step->action,
                       .id     = step_id(scope, step),
                       .arena  = arena};

    return saved_record(&attempt, result, taken, ret_flow, reterr);
}

/* The time is over. RUN_STALE: a response came meanwhile, so the activation begins again with it. */
static ErrorCode timeout_record(Walk *walk, const Scope *scope, const Step *step, Flow *ret_flow, Error *reterr)
{
    RunRecord  record = {.id      = step_id(scope, step),
                         .end     = END_TIMED_OUT,
                         .patch   = "{}",
                         .version = run_version(walk->run)};
    RunVerdict verdict;

    if (step->continues_on_timeout)
        record.result = "null";
    else
        record.error = "timed out";
    TRY(run_record(walk->run, &record, &verdict, reterr));
    if (verdict == RUN_STALE) {
        run_wait_none(walk->run, record.id);
        *ret_flow = FLOW_BLOCKED;
    } else if (verdict == RUN_OVER) {
        *ret_flow = FLOW_STOPPED;
    } else if (step->continues_on_timeout) {
        *ret_flow = FLOW_NEXT;
    } else {
        walk_fail(walk, record.id, record.error, /* is_refusal= */ false, ret_flow);
    }
    return OK;
}

static bool wait_has_failed(Walk *walk, RecordId id, Flow *ret_flow)
{
    int               failures;
    const StepRecord *last = run_failure(walk->run, id, &failures);

    if (last)
        walk_fail(walk, id, last->error, /* is_refusal= */ false, ret_flow);
    return last;
}

/* Not met: the time decides. */
static ErrorCode wait_on(Walk *walk, const Scope *scope, const Step *step, ResponseOf of, int64_t count, Flow *ret_flow,
                         Error *reterr)
{
    RecordId id = step_id(scope, step);
    int64_t  begun_us, due_us = 0;

    TRY(step_begun(walk, scope, step, /* what= */ NULL, &begun_us, /* ret_what= */ NULL, ret_flow, reterr));
    if (*ret_flow != FLOW_NEXT)
        return OK;
    if (run_attempts(walk->run, id) > 0 && begun_us < run_retried_us(walk->run))
        begun_us = run_retried_us(walk->run); /* it timed out before, and an operator has it tried again */
    if (step->action.timeout_ms) {
        due_us = begun_us + step->action.timeout_ms * 1000;
        if (run_now_us(walk->run) >= due_us)
            return timeout_record(walk, scope, step, ret_flow, reterr);
    }
    run_wait(walk->run, id, WAIT_ASYNC, &of, count, due_us);
    *ret_flow = FLOW_BLOCKED;
    return OK;
}

static ErrorCode until_walk(Walk *walk, const Scope *scope, const Step *step, Arena *arena, Flow *ret_flow,
                            Error *reterr)
{
    LookupContext context = {.walk = walk, .scope = scope, .arena = arena};
    int           count   = run_response_count(walk->run);
    int64_t       version = run_version(walk->run); /* before the state is read */
    bool          is_met;

    TRY(condition_evaluate(step->action.wait.until, scope_lookup, &context, &is_met, reterr));
    if (is_met)
        return met_record(walk, scope, step, "true", /* taken= */ NULL, arena, ret_flow, reterr);
    run_wait_state(walk->run, version);
    return wait_on(walk, scope, step, response_any(), count + 1, ret_flow, reterr);
}

/* Responses are taken and recorded as taken before another branch may take any: each meets one wait. */
static ErrorCode response_walk(Walk *walk, const Scope *scope, const Step *step, Arena *arena, Flow *ret_flow,
                               Error *reterr)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&walk->responses_mutex);
    const WaitAction           *wait = &step->action.wait;
    const char                 *result, *taken;
    Responses                   responses;

    taken_read(walk, wait->response, arena, &responses);
    if (responses.count < responses.taken + wait->count)
        return wait_on(walk, scope, step, response_signal(wait->response), responses.taken + wait->count, ret_flow,
                       reterr);
    TRY(responses_take(&responses, wait->count, arena, &result, &taken, reterr));
    return met_record(walk, scope, step, result, taken, arena, ret_flow, reterr);
}

ErrorCode step_wait(Walk *walk, const Scope *scope, const Step *step, Flow *ret_flow, Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);

    if (wait_has_failed(walk, step_id(scope, step), ret_flow))
        return OK;
    if (step->action.wait.until)
        return until_walk(walk, scope, step, arena, ret_flow, reterr);
    return response_walk(walk, scope, step, arena, ret_flow, reterr);
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
    RecordId                  id    = step_id(scope, step);
    RunVerdict                verdict;
    int64_t                   due_us;

    TRY(sleep_due(walk, scope, step, arena, &due_us, ret_flow, reterr));
    if (*ret_flow != FLOW_NEXT)
        return OK;
    if (run_now_us(walk->run) >= due_us)
        return step_record(walk, id, "null", /* patch= */ NULL, 0, &verdict, ret_flow, reterr);
    run_wait(walk->run, id, WAIT_ASYNC, /* of= */ NULL, 0, due_us);
    *ret_flow = FLOW_BLOCKED;
    return OK;
}
