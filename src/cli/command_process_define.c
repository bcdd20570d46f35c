/*
 * command_process_define.c - define types of processes, and list their definitions.
 */
#include <stdio.h>
#include <string.h>

#include "base/writer.h"
#include "cli/command.h"
#include "cli/decision.h"
#include "cli/print.h"
#include "cli/visible.h"
#include "process/definition.h"
#include "process/diagram.h"
#include "process/process_fields.h"

#define PAGE_ROWS 100

/* One byte more than allowed, so that the parser sees a file that is too large. */
static ErrorCode file_read(Call *call, FILE *file, Value *ret_text, Error *reterr)
{
    char  *bytes = arena_alloc(call->arena, DEFINITION_BYTES_MAX + 1);
    size_t size  = fread(bytes, 1, DEFINITION_BYTES_MAX + 1, file);

    if (ferror(file))
        return fail(reterr, ERR_USAGE, "FILE \"%.200s\" cannot be read: %m", call->arguments[0]);
    *ret_text = (Value){bytes, size};
    return OK;
}

static ErrorCode argument_read(Call *call, Value *ret_text, Error *reterr)
{
    FILE     *file;
    ErrorCode code;

    if (strcmp(call->arguments[0], "-") == 0)
        return file_read(call, stdin, ret_text, reterr);
    file = fopen(call->arguments[0], "re");
    if (!file)
        return fail(reterr, ERR_USAGE, "FILE \"%.200s\" cannot be read: %m", call->arguments[0]);
    code = file_read(call, file, ret_text, reterr);
    (void)fclose(file); /* it was only read */
    return code;
}

static void definition_json(Call *call, const Definition *definition, const char *diagram)
{
    Writer *writer = print_writer(call->arena);

    writer_object(writer, NULL);
    writer_text(writer, "domain", definition->domain);
    writer_text(writer, "type", definition->type);
    writer_i64(writer, "steps", definition->count);
    writer_i64(writer, "compensations", definition->compensation_count);
    if (diagram)
        writer_text(writer, "diagram", diagram);
    writer_end(writer);
    print_json(writer);
}

static void definition_show(Call *call, const Definition *definition)
{
    Text diagram;

    text_init(&diagram, call->arena, TEXT_MAX_BODY);
    if (call_flag(call, "--diagram"))
        diagram_print(definition, &diagram);
    if (call->json)
        definition_json(call, definition, diagram.length ? text_string(&diagram) : NULL);
    else if (diagram.length)
        printf("%s", text_string(&diagram));
    else
        printf("%s %s is valid: %d step%s, %d compensation%s\n", definition->domain, definition->type,
               definition->count, definition->count == 1 ? "" : "s", definition->compensation_count,
               definition->compensation_count == 1 ? "" : "s");
}

static ErrorCode definition_store(Call *call, const Definition *definition, Error *reterr)
{
    ProcessDefined defined;

    TRY(call_open(call, APP_SCHEMA, reterr));
    TRY(process_define(call->pool, deadline_in_ms(APP_COMMAND_MS), /* lock_ms= */ 0, definition, call_operator(call),
                       &defined, reterr));
    if (call->json) {
        Writer *writer = print_writer(call->arena);

        process_defined_write(writer, definition, &defined);
        print_json(writer);
        return OK;
    }
    printf("%s %s version %d\n", definition->domain, definition->type, defined.version);
    if (!defined.is_new)
        fprintf(stderr, "this is the newest version already: nothing was stored\n");
    return OK;
}

ErrorCode command_process_define(Call *call, Error *reterr)
{
    bool              is_stdin = strcmp(call->arguments[0], "-") == 0;
    const Definition *definition;
    Value             text;

    TRY(argument_read(call, &text, reterr));
    call->reads_input               = true; /* from here on it is the file that is wrong, not the command line */
    scoped(arena_free) Arena *arena = arena_new(DEFINITION_ARENA_BYTES(DEFINITION_BYTES_MAX));
    TRY(definition_parse(is_stdin ? "standard input" : call->arguments[0], text.bytes, text.size, arena, &definition,
                         reterr));
    if (!call_flag(call, "--check") && !call_flag(call, "--diagram"))
        return definition_store(call, definition, reterr);
    definition_show(call, definition);
    return OK;
}

static const ListColumn version_columns[] = {
    {"domain",  NULL, CELL_TEXT, offsetof(ProcessVersion, domain)    },
    {"type",    NULL, CELL_TEXT, offsetof(ProcessVersion, type)      },
    {"version", NULL, CELL_I32,  offsetof(ProcessVersion, version)   },
    {"stored",  NULL, CELL_TIME, offsetof(ProcessVersion, created_at)},
    {"by",      NULL, CELL_TEXT, offsetof(ProcessVersion, author)    },
};

static void version_row_write(Writer *writer, const void *row)
{
    process_version_write(writer, row);
}

static const ListShape version_shape = {version_columns, COUNT(version_columns), sizeof(ProcessVersion),
                                        "no definitions", version_row_write};

/* The file of one version. */
static ErrorCode version_print(Call *call, ProcessVersionFilter *filter, Error *reterr)
{
    ProcessVersion *list;
    const char     *source;
    int             count;

    if (!filter->type)
        return fail(reterr, ERR_USAGE, "TYPE is missing: --version is about one type");
    filter->limit = 2;
    TRY(process_versions(call->pool, deadline_in_ms(APP_COMMAND_MS), call->arena, filter, &list, &count, reterr));
    if (count == 0)
        return fail(reterr, ERR_NOT_FOUND, "type \"%.100s\" has no version %d%s%s%s", filter->type,
                    (int)filter->version, filter->domain ? " in domain \"" : "", filter->domain ? filter->domain : "",
                    filter->domain ? "\"" : "");
    if (count > 1)
        return fail(reterr, ERR_CONFLICT, "domains \"%s\" and \"%s\" have a type \"%s\": name one with --domain",
                    list[1].domain, list[0].domain, filter->type);
    TRY(process_version_source(call->pool, deadline_in_ms(APP_COMMAND_MS), call->arena, list, &source, reterr));
    if (!call->json) {
        visible_data();
        printf("%s%s", source, strlen(source) && source[strlen(source) - 1] == '\n' ? "" : "\n");
        return OK;
    }
    Writer *writer = print_writer(call->arena);

    writer_object(writer, NULL);
    writer_text(writer, "domain", list->domain);
    writer_text(writer, "type", list->type);
    writer_i64(writer, "version", list->version);
    writer_text(writer, "source", source);
    writer_end(writer);
    print_json(writer);
    return OK;
}

ErrorCode command_process_definitions(Call *call, Error *reterr)
{
    ProcessVersionFilter filter = {.domain = call_flag(call, "--domain"),
                                   .type   = call->count ? call->arguments[0] : NULL};

    TRY(call_number("--version", call_flag(call, "--version"), 1, PROCESS_VERSION_MAX, 0, &filter.version, reterr));
    TRY(call_limit(call, PROCESS_LIST_MAX, &filter.limit, reterr));
    TRY(call_open(call, APP_SCHEMA, reterr));
    if (filter.version)
        return version_print(call, &filter, reterr);

    ProcessVersion *rows;
    int             count;

    TRY(process_versions(call->pool, deadline_in_ms(APP_COMMAND_MS), call->arena, &filter, &rows, &count, reterr));
    list_print(&version_shape, call->arena, call->json, rows, count);
    return OK;
}
