/*
 * scope.c - names of records, keys, and what paths mean inside an each.
 */
#include <stdio.h>
#include <string.h>

#include "process/interpret_internal.h"
#include "process/key.h"

/* How many each a step is inside of. */
static int each_depth(const Step *step)
{
    int depth = 0;

    for (const Step *above = step->list->above; above; above = above->list->above)
        depth += above->action.kind == STEP_EACH;
    return depth;
}

static int scope_depth(const Scope *scope)
{
    int depth = 0;

    for (; scope; scope = scope->above)
        depth++;
    return depth;
}

/* The indices from the outermost on. */
static size_t indices_print(const Scope *scope, char *text, size_t size)
{
    size_t used = scope->above ? indices_print(scope->above, text, size) : 0;
    int    more = snprintf(text + used, size - used, "[%lld]", (long long)scope->index);

    return used + (size_t)more < size ? used + (size_t)more : used;
}

RecordName record_name(const Scope *scope, const Step *step, const char *suffix)
{
    RecordName name                         = {0};
    int        wants                        = each_depth(step);
    char       indices[RECORD_NAME_MAX / 2] = "";

    for (int depth = scope_depth(scope); depth > wants; depth--)
        scope = scope->above; /* the step is outside of what this scope is inside of */
    if (scope)
        indices_print(scope, indices, sizeof indices);
    snprintf(name.text, sizeof name.text, "%s%s%s", step->name, indices, suffix);
    return name;
}

void record_key(const Walk *walk, const char *record, char *ret_uuid)
{
    run_step_key(walk->run, record, ret_uuid);
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
        RecordName name = record_name(context->scope, definition_find(walk->definition, path->step), "");

        return text_value(run_result_before(walk->run, name.text, context->gone));
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
