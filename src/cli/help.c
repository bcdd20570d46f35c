/*
 * help.c - help made from the table of commands: all of them, one group, or one command.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/command.h"
#include "cli/print.h"
#include "cli/topic.h"

#define LEFT 30

/* NULL matches any. */
static bool is_meant(const CliCommand *command, const char *group, const char *verb)
{
    return (!group || strcmp(command->group, group) == 0) &&
           (!verb || (command->verb && strcmp(command->verb, verb) == 0));
}

/* ---- for people ---- */

static void command_line(const CliCommand *command)
{
    char left[128];

    snprintf(left, sizeof left, "pawl %s%s%s %s", command->group, command->verb ? " " : "",
             command->verb ? command->verb : "", command->usage);
    printf("  %-*s %s\n", LEFT, left, command->help);
}

static void flag_lines(const CommandFlag *flag)
{
    for (; flag && flag->name; flag++) {
        char left[64];

        snprintf(left, sizeof left, "    %s %s", flag->name, flag->value ? flag->value : "");
        printf("  %-*s %s\n", LEFT, left, flag->help);
    }
}

static void page_print(const char *group, const char *verb)
{
    if (!group)
        printf("pawl %s: state in PostgreSQL that moves forward exactly once\n\n", PAWL_VERSION);
    for (size_t i = 0; i < cli_command_count; i++)
        if (is_meant(&cli_commands[i], group, verb)) {
            command_line(&cli_commands[i]);
            if (group)
                flag_lines(cli_commands[i].flags);
        }
    printf("\n%s --json, --config FILE, and every setting as a flag: see pawl help settings\n",
           group ? "Also" : "Every command takes");
    if (!group)
        printf("Exit: 0 done, 1 refused or failed, 2 wrong usage, 69 database unavailable, 75 try again\n");
}

/* ---- for programs ---- */

static void command_write(Writer *writer, const CliCommand *command)
{
    writer_object(writer, NULL);
    writer_text(writer, "group", command->group);
    writer_text(writer, "verb", command->verb);
    writer_text(writer, "usage", command->usage);
    writer_text(writer, "meaning", command->help);
    writer_array(writer, "flags");
    for (const CommandFlag *flag = command->flags; flag && flag->name; flag++) {
        writer_object(writer, NULL);
        writer_text(writer, "flag", flag->name);
        writer_text(writer, "value", flag->value);
        writer_text(writer, "meaning", flag->help);
        writer_end(writer);
    }
    writer_end(writer);
    writer_end(writer);
}

static void array_print(Arena *arena, const char *group, const char *verb)
{
    Text   text;
    Writer writer;

    text_init(&text, arena, TEXT_MAX_BODY);
    writer_open(&writer, &text);
    writer_array(&writer, NULL);
    for (size_t i = 0; i < cli_command_count; i++)
        if (is_meant(&cli_commands[i], group, verb))
            command_write(&writer, &cli_commands[i]);
    writer_end(&writer);
    print_json(&text);
}

ErrorCode command_help(Call *call, Error *reterr)
{
    const char *group = call->count > 0 ? call->arguments[0] : NULL;
    const char *verb  = call->count > 1 ? call->arguments[1] : NULL;
    bool        found = false;

    if (group && !verb && topic_print(group, call->json, call->arena))
        return OK;
    for (size_t i = 0; i < cli_command_count; i++)
        found = found || is_meant(&cli_commands[i], group, verb);
    if (!found)
        return fail(reterr, ERR_USAGE,
                    "no help on \"%s%s%s\": a command, settings, metrics, errors, routes or definitions", group,
                    verb ? " " : "", verb ? verb : "");
    if (call->json)
        array_print(call->arena, group, verb);
    else
        page_print(group, verb);
    return OK;
}

ErrorCode command_version(Call *call, Error *reterr)
{
    (void)reterr;
    printf(call->json ? "{\"version\":\"%s\"}\n" : "pawl %s\n", PAWL_VERSION);
    return OK;
}
