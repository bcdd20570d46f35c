/*
 * step_repeat.c - a list that runs in rounds, until a condition holds after one.
 *
 * A round is a scope, as an item of an each is: the records of its steps have its number. After a round its decision is recorded, because the state
 * changes later: is it the last one? A round that is decided is passed without a look at its steps. When the rounds are used up the step fails, by a
 * record; an operator who has it tried again gives it as many rounds again.
 */
#include <stdio.h>
#include <string.h>

#include "process/interpret_internal.h"

#define ROUND_RECORDS 2 /* of a repeat itself: the decision after the round, and its end */

static RecordId round_id(const Scope *round, const Step *step)
{
    RecordId id = step_id(round, step);

    id.item[id.depth++] = (int32_t)round->index;
    return id;
}

/* The first step of a list is the first that leaves a record. */
static bool list_has_begun(Walk *walk, const Scope *scope, const StepList *list)
{
    const Step     *step  = &list->steps[0];
    RecordId        id    = step_id(scope, step);
    Scope           first = scope_round(scope, 0);
    const StepList *inner;
    int             count = step->action.kind == STEP_EACH ? 0 : action_lists(&step->action, &inner);

    for (int i = 0; i < count; i++)
        if (list_has_begun(walk, step->action.kind == STEP_REPEAT ? &first : scope, &inner[i]))
            return true;
    for (RecordKind kind = 0; kind < RECORD_KIND_COUNT; kind++)
        if (run_last(walk->run, record_as(id, kind)))
            return true;
    return false;
}

/* Before a round begins: one that cannot be recorded to its end has done nothing yet. */
static ErrorCode round_check(Walk *walk, const Scope *round, const Step *step, Error *reterr)
{
    if (list_records_min(&step->action.repeat.list) + ROUND_RECORDS <= run_records_left(walk->run))
        return OK;
    return fail(
        reterr, ERR_LIMIT,
        "repeat \"%s\" cannot go on after %lld rounds: the process could not record another one, and may record "
        "%d steps in all",
        step->name, (long long)round->index, RUN_RECORDS_MAX);
}

static ErrorCode round_decide(Walk *walk, const Scope *round, const Step *step, Flow *ret_flow, Error *reterr)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    LookupContext             context = {.walk = walk, .scope = round, .arena = arena};
    RunVerdict                verdict;
    bool                      is_last;

    TRY(condition_evaluate(step->action.repeat.until, scope_lookup, &context, &is_last, reterr));
    return step_record(walk, round_id(round, step), is_last ? "true" : "false", /* patch= */ NULL, 0, &verdict,
                       ret_flow, reterr);
}

static ErrorCode exhausted_record(Walk *walk, Verb *verb, int64_t rounds, Flow *ret_flow, Error *reterr)
{
    char          error[200];
    AttemptResult failure = {.end = END_FINAL, .error = error};

    snprintf(error, sizeof error, "repeat \"%s\" did not end within %lld rounds", verb->record.id.step,
             (long long)rounds);
    TRY(verb_fail(verb, &failure, ret_flow, reterr));
    walk_obey(walk, verb, ret_flow);
    return OK;
}

static ErrorCode end_record(Walk *walk, const Scope *scope, const Step *step, int64_t rounds, Flow *ret_flow,
                            Error *reterr)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    Scope                     last  = scope_round(scope, rounds - 1);
    Text                      text;

    text_init(&text, arena, JOINED_BYTES_MAX);
    text_print(&text, "{\"rounds\":%lld,\"last\":", (long long)rounds);
    text_append(&text, list_result(walk, &last, &step->action.repeat.list));
    text_append(&text, "}");
    if (text_is_full(&text))
        return fail(reterr, ERR_LIMIT, "the result of \"%s\" has more than %zu bytes", step->name, JOINED_BYTES_MAX);
    return ended_record(walk, scope, step, text_string(&text), arena, ret_flow, reterr);
}

/* One that a definition with more rounds has begun is walked to its end. */
static bool round_may_run(Walk *walk, const Scope *round, const Step *step, int64_t most)
{
    return round->index < most || list_has_begun(walk, round, &step->action.repeat.list);
}

/* A round that is decided already is passed. */
static ErrorCode round_walk(Walk *walk, const Scope *round, const Step *step, bool *ret_is_last, Flow *ret_flow,
                            Error *reterr)
{
    const StepList *list = &step->action.repeat.list;
    RecordId        id   = round_id(round, step);

    *ret_flow = FLOW_NEXT;
    if (!run_result(walk->run, id)) {
        if (!list_has_begun(walk, round, list))
            TRY(round_check(walk, round, step, reterr));
        TRY(list_walk(walk, round, list, ret_flow, reterr));
        if (*ret_flow == FLOW_NEXT)
            TRY(round_decide(walk, round, step, ret_flow, reterr));
    }
    *ret_is_last = *ret_flow == FLOW_NEXT && strcmp(run_result(walk->run, id), "true") == 0;
    return OK;
}

ErrorCode step_repeat(Walk *walk, const Scope *scope, const Step *step, Flow *ret_flow, Error *reterr)
{
    const RepeatAction *repeat  = &step->action.repeat;
    Verb                verb    = walk_verb(walk, step_id(scope, step), /* arena= */ NULL);
    int64_t             most    = repeat->times * (1 + run_attempts(walk->run, verb.record.id));
    Scope               round   = scope_round(scope, 0);
    bool                is_last = false;
    int                 failures;

    *ret_flow = FLOW_FAILED;
    if (verb_has_failed(&verb, &failures)) {
        walk_obey(walk, &verb, ret_flow);
        return OK;
    }
    for (; !is_last && round_may_run(walk, &round, step, most); round.index++) {
        TRY(round_walk(walk, &round, step, &is_last, ret_flow, reterr));
        if (*ret_flow != FLOW_NEXT)
            return OK;
    }
    if (!is_last && !repeat->continues)
        return exhausted_record(walk, &verb, round.index, ret_flow, reterr);
    return end_record(walk, scope, step, round.index, ret_flow, reterr);
}
