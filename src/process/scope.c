/*
 * scope.c - records of steps, and what paths mean inside a loop.
 */
#include <stdio.h>
#include <string.h>

#include "process/interpret_internal.h"

/* How many loops a step is inside of. */
static int loop_depth(const Step *step)
{
    int depth = 0;

    for (const Step *above = step->list->above; above; above = above->list->above)
        depth += step_is_loop(above);
    return depth;
}

static int scope_depth(const Scope *scope)
{
    int depth = 0;

    for (; scope; scope = scope->above)
        depth++;
    return depth;
}

RecordId step_id(const Scope *scope, const Step *step)
{
    RecordId id    = record_of(step->name);
    int      wants = loop_depth(step);

    for (int depth = scope_depth(scope); depth > wants; depth--)
        scope = scope->above; /* the step is outside of what this scope is inside of */
    id.depth = scope_depth(scope);
    for (int at = id.depth; scope; scope = scope->above)
        id.item[--at] = (int32_t)scope->index;
    return id;
}

Scope scope_round(const Scope *above, int64_t round)
{
    return (Scope){.above = above, .index = round, .item = above ? above->item : (Value){0}};
}

/* ---- paths ---- */

static Value text_value(const char *text)
{
    return text ? (Value){text, strlen(text)} : (Value){0};
}

/* A plain text as a JSON value. */
static Value quoted(LookupContext *context, const char *text)
{
    Text json;

    text_init(&json, context->arena, TEXT_MAX_LINE);
    text_append_char(&json, '"');
    value_escape(text, strlen(text), &json);
    text_append_char(&json, '"');
    return (Value){text_string(&json), json.length};
}

Value scope_lookup(void *any, const ValuePath *path)
{
    LookupContext *context = any;
    Walk          *walk    = context->walk;

    switch (path->root) {
    case PATH_STATE:
        return text_value(run_state(walk->run));
    case PATH_STEP: {
        RecordId id = step_id(context->scope, definition_find(walk->definition, path->step));

        return text_value(run_result_before(walk->run, id, context->gone));
    }
    case PATH_PROCESS_ID:
        return quoted(context, walk->job->command->command_id);
    case PATH_PROCESS_TYPE:
        return quoted(context, walk->definition->type);
    case PATH_PROCESS_DOMAIN:
        return quoted(context, walk->definition->domain);
    case PATH_ITEM:
        return context->scope ? context->scope->item : (Value){0};
    case PATH_INDEX:
        snprintf(context->index, sizeof context->index, "%lld",
                 (long long)(context->scope ? context->scope->index : 0));
        return text_value(context->index);
    case PATH_RESULT:
        return context->result;
    case PATH_ROOT_COUNT:
        break;
    }
    return (Value){0};
}
