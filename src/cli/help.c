/*
 * help.c - see help.h.
 */
#include "cli/help.h"

#include <stdbool.h>
#include <string.h>

#include "app/settings.h"
#include "cli/command.h"

#define LEFT 30

static void command_line(const Command *command, FILE *out)
{
    char left[128];

    snprintf(left, sizeof left, "pawl %s%s%s %s", command->group, command->verb ? " " : "",
             command->verb ? command->verb : "", command->usage);
    fprintf(out, "  %-*s %s\n", LEFT, left, command->help);
}

static void flag_lines(const CommandFlag *flag, FILE *out)
{
    for (; flag && flag->name; flag++) {
        char left[64];

        snprintf(left, sizeof left, "    %s %s", flag->name, flag->value ? flag->value : "");
        fprintf(out, "  %-*s %s\n", LEFT, left, flag->help);
    }
}

static bool group_help(const char *group, FILE *out)
{
    bool found = false;

    for (size_t i = 0; i < command_count; i++)
        if (strcmp(commands[i].group, group) == 0) {
            command_line(&commands[i], out);
            flag_lines(commands[i].flags, out);
            found = true;
        }
    return found;
}

void help_print(const char *group, FILE *out)
{
    if (group && group_help(group, out)) {
        fprintf(out, "\nAlso --json, --config FILE, and every setting as a flag: see pawl help settings\n");
        return;
    }
    fprintf(out, "pawl %s: state in PostgreSQL that moves forward exactly once\n\n", PAWL_VERSION);
    for (size_t i = 0; i < command_count; i++)
        command_line(&commands[i], out);
    fprintf(out, "\nEvery command takes --json, --config FILE, and every setting as a flag: see pawl help settings\n"
                 "Exit: 0 done, 1 refused or failed, 2 wrong usage, 69 database unavailable, 75 try again\n");
}

ErrorCode command_help(Call *call, Error *reterr)
{
    Text text;

    if (call->count == 1 && strcmp(call->arguments[0], "settings") == 0) {
        text_init(&text, call->arena, TEXT_MAX_BODY);
        setting_describe(&settings_table, NULL, &text);
        printf("%s", text_string(&text));
        return OK;
    }
    for (size_t i = 0; i < command_count && call->count == 1; i++)
        if (strcmp(commands[i].group, call->arguments[0]) == 0) {
            help_print(call->arguments[0], stdout);
            return OK;
        }
    if (call->count == 1)
        return fail(reterr, ERR_USAGE, "no help on \"%s\": a command, or settings", call->arguments[0]);
    help_print(NULL, stdout);
    return OK;
}

ErrorCode command_version(Call *call, Error *reterr)
{
    (void)reterr;
    printf(call->json ? "{\"version\":\"%s\"}\n" : "pawl %s\n", PAWL_VERSION);
    return OK;
}
