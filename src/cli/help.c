/*
 * help.c - help from the table of commands: all of them under headings, one group, or one command, in columns.
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/page.h"
#include "cli/command.h"
#include "cli/print.h"
#include "cli/topic.h"

/* The groups of commands before which `pawl help` prints a heading. */
static const struct {
    const char *group, *heading;
} headings[] = {
    {"serve",   "Daemon"          },
    {"send",    "Commands"        },
    {"process", "Processes"       },
    {"wallet",  "Wallets"         },
    {"rating",  "Ratings"         },
    {"migrate", "Operations"      },
    {"bench",   "Benchmarks"      },
    {"help",    "Help and version"},
};

/* NULL matches any. */
static bool is_meant(const CliCommand *command, const char *group, const char *verb)
{
    return (!group || strcmp(command->group, group) == 0) &&
           (!verb || (command->verb && strcmp(command->verb, verb) == 0));
}

/* ---- for people ---- */

static const char *command_usage(const CliCommand *command, Arena *arena)
{
    return arena_print(arena, "  pawl %s%s%s%s%s", command->group, command->verb ? " " : "",
                       command->verb ? command->verb : "", command->usage[0] ? " " : "", command->usage);
}

static const char *flag_usage(const CommandFlag *flag, Arena *arena)
{
    return arena_print(arena, "      %s%s%s", flag->name, flag->value ? " " : "", flag->value ? flag->value : "");
}

static size_t wider(size_t column, const char *usage)
{
    return strlen(usage) + 2 > column ? strlen(usage) + 2 : column;
}

/* Where the second column begins: behind the longest usage that the page has. */
static size_t column_measure(const char *group, const char *verb, Arena *arena)
{
    size_t column = 0;

    for (size_t i = 0; i < cli_command_count; i++) {
        if (!is_meant(&cli_commands[i], group, verb))
            continue;
        column = wider(column, command_usage(&cli_commands[i], arena));
        for (const CommandFlag *flag = cli_commands[i].flags; group && flag && flag->name; flag++)
            column = wider(column, flag_usage(flag, arena));
    }
    return column;
}

static void line_print(Page *page, const char *usage, size_t column, const char *help)
{
    text_append(page->text, usage);
    page_words(page, column, help);
    page_break(page);
}

static void heading_print(Page *page, const CliCommand *command)
{
    for (size_t i = 0; i < COUNT(headings); i++)
        if (strcmp(command->group, headings[i].group) == 0 &&
            (command == cli_commands || strcmp(command[-1].group, command->group) != 0))
            text_print(page->text, "\n%s\n", headings[i].heading);
    page->line_start = page->text->length;
}

static void page_print(const char *group, const char *verb, Arena *arena)
{
    size_t column = column_measure(group, verb, arena);
    Text   text;
    Page   page;

    text_init(&text, arena, TEXT_MAX_BODY);
    if (!group)
        text_print(&text, "pawl %s: state in PostgreSQL that moves forward exactly once\n", PAWL_VERSION);
    page = page_of(&text);
    for (size_t i = 0; i < cli_command_count; i++) {
        const CliCommand *command = &cli_commands[i];

        if (!is_meant(command, group, verb))
            continue;
        if (!group)
            heading_print(&page, command);
        line_print(&page, command_usage(command, arena), column, command->help);
        for (const CommandFlag *flag = command->flags; group && flag && flag->name; flag++)
            line_print(&page, flag_usage(flag, arena), column, flag->help);
    }
    text_append(&text, group ? "\nAlso --json, --config FILE, and every setting as a flag: see pawl help settings\n"
                             : "\nEvery command takes --json, --config FILE, and every setting as a flag: see pawl\n"
                               "help settings. pawl help COMMAND lists the flags of a command.\n"
                               "Exit: 0 done, 1 refused or failed, 2 wrong usage, 69 database unavailable,\n"
                               "75 try again\n");
    printf("%s", text_string(&text));
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
    Writer *writer = print_writer(arena);

    writer_array(writer, NULL);
    for (size_t i = 0; i < cli_command_count; i++)
        if (is_meant(&cli_commands[i], group, verb))
            command_write(writer, &cli_commands[i]);
    writer_end(writer);
    print_json(writer);
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
        page_print(group, verb, call->arena);
    return OK;
}

ErrorCode command_version(Call *call, Error *reterr)
{
    (void)reterr;
    printf(call->json ? "{\"version\":\"%s\"}\n" : "pawl %s\n", PAWL_VERSION);
    return OK;
}
