/*
 * definition_check.c - what only the whole file shows: where jumps lead, which steps can be reached, which results can be there.
 *
 * Steps are numbered in the order of the file and every jump leads forward, so one pass in that order decides what can be reached.
 */
#include <assert.h>
#include <string.h>

#include "base/scan.h"
#include "process/definition_internal.h"

static const Step *step_find(const Parser *parser, const char *name)
{
    for (int i = 0; i < parser->count; i++)
        if (strcmp(parser->steps[i]->name, name) == 0)
            return parser->steps[i];
    return NULL;
}

/* Suggests a step that the place may name: for a jump a later one of its list, for a path any but the step itself. */
static ErrorCode unknown_refuse(Parser *parser, const char *at, const char *name, const Step *from, bool is_jump)
{
    const char *names[DEFINITION_STEPS_MAX];
    size_t      count = 0;

    for (int i = 0; i < parser->count; i++) {
        const Step *step = parser->steps[i];

        if (is_jump ? step->list == from->list && step->position > from->position : step != from)
            names[count++] = step->name;
    }
    const char *nearest = text_nearest(name, names, count);
    return source_refuse(&parser->source, at, parser->reterr, "no step is named \"%.*s\"%s%s%s",
                         (int)text_cut(name, strlen(name), 60), name, nearest ? ", did you mean \"" : "",
                         nearest ? nearest : "", nearest ? "\"?" : "");
}

/* ---- jumps ---- */

static ErrorCode target_find(Parser *parser, const Step *from, const char *name, const char *at, const Step **ret_step)
{
    const Step *target = step_find(parser, name);

    *ret_step = NULL;
    if (strcmp(name, "end") == 0)
        return OK;
    if (!target)
        return unknown_refuse(parser, at, name, from, /* is_jump= */ true);
    if (target->list != from->list)
        return source_refuse(&parser->source, at, parser->reterr,
                             "step \"%s\" is in another list: a jump leads neither into nor out of one", name);
    if (target->position <= from->position)
        return source_refuse(&parser->source, at, parser->reterr, "step \"%s\" %s: a jump leads forward", name,
                             target == from ? "is this one" : "comes before");
    *ret_step = target;
    return OK;
}

static ErrorCode jumps_resolve(Parser *parser)
{
    for (Jump *jump = parser->first_jump; jump; jump = jump->next) {
        WhenAction *when = &jump->step->action.when;

        TRY(target_find(parser, jump->step, when->then_name, jump->then_at, &when->then_step));
        if (when->else_name)
            TRY(target_find(parser, jump->step, when->else_name, jump->else_at, &when->else_step));
        else
            when->else_step = step_next(jump->step);
    }
    return OK;
}

/* ---- what can be reached ---- */

/* Mark what can follow a step, by position in its list; the end of the list is not marked. */
static void followers_mark(const Step *step, bool *marks)
{
    const WhenAction *when = &step->action.when;

    if (step->action.kind == STEP_FAIL || step->action.kind == STEP_CONTINUE)
        return;
    if (step->action.kind != STEP_WHEN) {
        marks[step->position + 1] = true;
        return;
    }
    if (when->then_step)
        marks[when->then_step->position] = true;
    if (when->else_step)
        marks[when->else_step->position] = true;
}

static ErrorCode list_check(Parser *parser, const StepList *list)
{
    bool is_reached[DEFINITION_STEPS_MAX + 1] = {true};

    for (int i = 0; i < list->count; i++) {
        if (list->above && list->steps[i].action.kind == STEP_CONTINUE)
            return source_refuse(&parser->source, parser->step_at[list->steps[i].number], parser->reterr,
                                 "step \"%s\" continues the process as new: it must be in the process's own list of "
                                 "steps, not inside step \"%s\"",
                                 list->steps[i].name, list->above->name);
        if (!is_reached[i])
            return source_refuse(&parser->source, parser->step_at[list->steps[i].number], parser->reterr,
                                 "step \"%s\" cannot be reached: no step leads to it", list->steps[i].name);
        followers_mark(&list->steps[i], is_reached);
    }
    return OK;
}

static ErrorCode lists_check(Parser *parser)
{
    for (int i = 0; i < parser->count; i++)
        if (parser->steps[i]->position == 0)
            TRY(list_check(parser, parser->steps[i]->list));
    return OK;
}

/* Can a run that passes `from` come to `to`, a later step of the same list? */
static bool leads_to(const Step *from, const Step *to)
{
    bool is_reached[DEFINITION_STEPS_MAX + 1] = {false};

    followers_mark(from, is_reached);
    for (int i = from->position + 1; i < to->position; i++)
        if (is_reached[i])
            followers_mark(&from->list->steps[i], is_reached);
    return is_reached[to->position];
}

/* ---- references ---- */

/* The step itself, or the one around it, that stands in this list; NULL: none. */
static const Step *step_in(const Step *step, const StepList *list)
{
    while (step && step->list != list)
        step = step->list->above;
    return step;
}

static ErrorCode refuse(Parser *parser, const Reference *reference, const char *why)
{
    return source_refuse(&parser->source, reference->path->at, parser->reterr, "step \"%s\" %s", reference->path->step,
                         why);
}

static bool is_inside(const Step *step, const Step *outer)
{
    do
        step = step->list->above;
    while (step && step != outer);
    return step;
}

/* Is the user of the path in this list, or at its end? */
static bool is_used_in(const Reference *reference, const StepList *list)
{
    if (!reference->step)
        return !list->above; /* the end of the process */
    return step_in(reference->step, list) || (reference->is_after_round && list->above == reference->step);
}

/* Up from the target to a list that the user of the path is in as well: *ret_target stands in it. */
static ErrorCode target_climb(Parser *parser, const Reference *reference, const Step *target, const Step **ret_target)
{
    for (; !is_used_in(reference, target->list); target = target->list->above)
        if (step_is_loop(target->list->above))
            return refuse(parser, reference,
                          target->list->above->action.kind == STEP_EACH
                              ? "is inside an each: from outside, name the each"
                              : "is inside a repeat: from outside, name the repeat");
    *ret_target = target;
    return OK;
}

static ErrorCode reference_check(Parser *parser, const Reference *reference)
{
    const Step *named = step_find(parser, reference->path->step), *used = reference->step, *target;
    bool        is_of_round = named && reference->is_after_round && is_inside(named, used);

    if (!named)
        return unknown_refuse(parser, reference->path->at, reference->path->step, used, /* is_jump= */ false);
    if (named == used)
        return refuse(parser, reference,
                      reference->is_after_round
                          ? "is this one and has not ended: name a step of its rounds"
                          : "is this one: its own result is called result, in save and compensate");
    if (!step_kinds[named->action.kind].has_result)
        return refuse(parser, reference,
                      arena_print(parser->arena, "has no result, because it is of the kind %s",
                                  step_kinds[named->action.kind].name));
    if (used && named->number > used->number && !is_of_round)
        return refuse(parser, reference, "comes later in the file");
    TRY(target_climb(parser, reference, named, &target));
    if (!used || is_of_round)
        return OK;
    const Step *user = step_in(used, target->list);
    if (target == user && target == named)
        return refuse(parser, reference, "is around this one and has not ended");
    if (target == user)
        return refuse(parser, reference, "is in another branch and may not have run");
    if (!leads_to(target, user))
        return refuse(parser, reference, "cannot have run before: every run skips one of the two");
    return OK;
}

/* ---- responses ---- */

/* The outcome of a command or a child arrives as a response that has the step's name. */
static ErrorCode response_check(Parser *parser, const Step *step, const char *name)
{
    const Step *other = step_find(parser, name);
    const char *at    = parser->step_at[step->number];
    Value       value = {at, (size_t)(scan_value_end(at) - at)};

    if (!other || step_kinds[other->action.kind].acts != ACTS_SENDS)
        return OK;
    value = value_member(value_member(value, "wait", strlen("wait")), step->action.wait.response ? "response" : "any",
                         step->action.wait.response ? strlen("response") : strlen("any"));
    return source_refuse(&parser->source, value.bytes, parser->reterr,
                         "\"%s\" is the name of a %s step, whose outcome arrives under it: choose another one", name,
                         step_kinds[other->action.kind].name);
}

static ErrorCode responses_check(Parser *parser)
{
    for (int i = 0; i < parser->count; i++) {
        const Step *step = parser->steps[i];
        NameList    any  = step->action.wait.any;

        if (step->action.kind != STEP_WAIT)
            continue;
        if (step->action.wait.response)
            TRY(response_check(parser, step, step->action.wait.response));
        for (int n = 0; n < any.count; n++)
            TRY(response_check(parser, step, any.names[n]));
    }
    return OK;
}

ErrorCode definition_check(Parser *parser)
{
    TRY(jumps_resolve(parser));
    TRY(lists_check(parser));
    TRY(responses_check(parser));
    for (const Reference *reference = parser->first_reference; reference; reference = reference->next)
        TRY(reference_check(parser, reference));
    return OK;
}
