/*
 * definition.c - a definition file as a whole: read by its table, then checked.
 */
#include "process/definition.h"

#include <string.h>

#include "base/memory.h"
#include "base/scan.h"
#include "process/definition_internal.h"

static bool has(Value object, const char *name)
{
    return value_member(object, name, strlen(name)).size > 0;
}

/* Steps name the process's domain, wherever in the file it is written. */
static ErrorCode domain_read(Parser *parser, Value root)
{
    Value domain = value_member(root, "domain", strlen("domain"));

    for (size_t i = 0; i < definition_table.count; i++)
        if (strcmp(definition_table.fields[i].name, "domain") == 0 && domain.size > 0)
            return field_read(parser, &definition_table.fields[i], domain, parser->definition);
    return OK;
}

static ErrorCode actions_default(Parser *parser, Value root)
{
    Definition *definition = parser->definition;

    if (has(root, "on_deadline") && !has(root, "deadline"))
        return source_refuse(&parser->source, root.bytes, parser->reterr, "on_deadline needs a deadline");
    if (!has(root, "on_failure"))
        definition->on_failure = definition->compensation_count ? ACTION_COMPENSATE : ACTION_TROUBLESHOOT;
    if (!has(root, "on_deadline"))
        definition->on_deadline = definition->on_failure;
    return OK;
}

static void steps_index(Parser *parser)
{
    const Step **steps = arena_array(parser->arena, const Step *, parser->count);

    for (int i = 0; i < parser->count; i++)
        steps[i] = parser->steps[i];
    parser->definition->steps = steps;
    parser->definition->count = parser->count;
}

static ErrorCode definition_read(Parser *parser)
{
    Value root = value_trim(parser->source.text.bytes, parser->source.text.size);

    if (value_kind(root) != VALUE_OBJECT)
        return source_refuse(&parser->source, root.bytes, parser->reterr, "must be an object, got %s",
                             value_kind_name(value_kind(root)));
    parser->located = parser->source.text.bytes;
    parser->line = parser->column = 1;
    TRY(domain_read(parser, root));
    TRY(table_read(parser, &definition_table, root, parser->definition));
    TRY(actions_default(parser, root));
    TRY(definition_check(parser));
    steps_index(parser);
    return OK;
}

static void parser_free(Parser *parser)
{
    free(parser);
}
SCOPED(Parser, parser_free)

ErrorCode definition_parse(const char *name, const char *bytes, size_t size, Arena *arena,
                           const Definition **ret_definition, Error *reterr)
{
    scoped(parser_free) Parser *parser = NULL;

    if (size > DEFINITION_BYTES_MAX)
        return fail(reterr, ERR_LIMIT, "%.100s:1:1: the file has %zu bytes, at most %zu are allowed", name, size,
                    DEFINITION_BYTES_MAX);
    if (!arena_has_space(arena, DEFINITION_ARENA_BYTES(size)))
        return fail(reterr, ERR_LIMIT, "%.100s:1:1: too large for the memory that is left", name);
    parser             = memory_new(1, sizeof *parser);
    parser->arena      = arena;
    parser->reterr     = reterr;
    parser->definition = arena_array(arena, Definition, 1);
    parser->source     = (Source){
        name, {arena_bytes(arena, size ? bytes : "", size), size}
    };
    TRY(source_check(&parser->source, reterr));
    parser->definition->text = parser->source.text;
    TRY(definition_read(parser));
    *ret_definition = parser->definition;
    return OK;
}

const Step *definition_find(const Definition *definition, const char *name)
{
    for (int i = 0; i < definition->count; i++)
        if (strcmp(definition->steps[i]->name, name) == 0)
            return definition->steps[i];
    return NULL;
}

const Step *step_next(const Step *step)
{
    return step->position + 1 < step->list->count ? step + 1 : NULL;
}

int action_lists(const Action *action, const StepList **ret_lists)
{
    *ret_lists = action->kind == STEP_PARALLEL ? action->parallel.branches
                 : action->kind == STEP_EACH   ? &action->each.list
                                               : &action->repeat.list;
    if (action->kind == STEP_PARALLEL)
        return action->parallel.count;
    return action->kind == STEP_EACH || action->kind == STEP_REPEAT;
}

bool step_is_loop(const Step *step)
{
    return step->action.kind == STEP_EACH || step->action.kind == STEP_REPEAT;
}
