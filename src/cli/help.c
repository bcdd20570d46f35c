/*
 * help.c - see help.h.
 */
#include "cli/help.h"

#include <stdbool.h>
#include <string.h>

#include "app/routes.h"
#include "app/settings.h"
#include "base/metric.h"
#include "cli/command.h"
#include "cli/print.h"

#define LEFT 30

static void command_line(const CliCommand *command, FILE *out)
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

    for (size_t i = 0; i < cli_command_count; i++)
        if (strcmp(cli_commands[i].group, group) == 0) {
            command_line(&cli_commands[i], out);
            flag_lines(cli_commands[i].flags, out);
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
    for (size_t i = 0; i < cli_command_count; i++)
        command_line(&cli_commands[i], out);
    fprintf(out, "\nEvery command takes --json, --config FILE, and every setting as a flag: see pawl help settings\n"
                 "Exit: 0 done, 1 refused or failed, 2 wrong usage, 69 database unavailable, 75 try again\n");
}

/* ---- topics: the other tables of the house ---- */

static void settings_help(Arena *arena)
{
    Text text;

    text_init(&text, arena, TEXT_MAX_BODY);
    setting_describe(&settings_table, NULL, &text);
    printf("%s", text_string(&text));
}

static void metrics_help(Arena *arena)
{
    static const char *const head[]  = {"metric", "kind", "label", "meaning", NULL};
    static const char *const kinds[] = {
        [METRIC_COUNTER] = "counter", [METRIC_GAUGE] = "gauge", [METRIC_HISTOGRAM] = "histogram"};
    Table table;

    table_init(&table, arena, head);
    for (Metric metric = 0; metric < METRIC_COUNT; metric++) {
        const MetricRow *row = &metric_rows[metric];

        table_cell(&table, row->name);
        table_cell(&table, kinds[row->kind]);
        table_cell(&table, row->label);
        table_cell(&table, row->help);
    }
    table_print(&table, "");
}

static void errors_help(Arena *arena)
{
    static const char *const head[]     = {"type", ">status", ">exit", "what pawl does", "title", NULL};
    static const char *const verdicts[] = {[VERDICT_FINAL]   = "tells the caller",
                                           [VERDICT_RETRY]   = "runs it again",
                                           [VERDICT_RESOLVE] = "asks the key",
                                           [VERDICT_EVICT]   = "runs it again on a fresh connection"};
    Table                    table;

    table_init(&table, arena, head);
    for (ErrorCode code = OK + 1; code < ERROR_CODE_COUNT; code++) {
        table_cell(&table, error_type(&(Error){.code = code}));
        table_cell_i64(&table, error_http(code));
        table_cell_i64(&table, error_exit(code));
        table_cell(&table, verdicts[error_verdict(code)]);
        table_cell(&table, error_text(code));
    }
    table_print(&table, "");
}

static void routes_help(Arena *arena)
{
    static const char *const head[]  = {"method", "path", "scope", "meaning", NULL};
    static const char *const names[] = {
        [HTTP_GET] = "GET", [HTTP_POST] = "POST", [HTTP_PUT] = "PUT", [HTTP_DELETE] = "DELETE"};
    Table table;

    table_init(&table, arena, head);
    for (size_t i = 0; i < routes_table.count; i++) {
        const Route *route = &routes_table.rows[i];

        table_cell(&table, names[route->method]);
        table_cell(&table, route->path);
        table_cell(&table, route->scope == SCOPE_NONE ? "open" : scope_names[__builtin_ctz(route->scope)]);
        table_cell(&table, route->summary);
    }
    table_print(&table, "");
}

static const struct {
    const char *name;
    void (*print)(Arena *arena);
} topics[] = {
    {"settings", settings_help},
    {"metrics",  metrics_help },
    {"errors",   errors_help  },
    {"routes",   routes_help  }
};

ErrorCode command_help(Call *call, Error *reterr)
{
    const char *topic = call->count ? call->arguments[0] : NULL;

    for (size_t i = 0; i < COUNT(topics) && topic; i++)
        if (strcmp(topics[i].name, topic) == 0) {
            topics[i].print(call->arena);
            return OK;
        }
    for (size_t i = 0; i < cli_command_count && topic; i++)
        if (strcmp(cli_commands[i].group, topic) == 0) {
            help_print(topic, stdout);
            return OK;
        }
    if (topic)
        return fail(reterr, ERR_USAGE, "no help on \"%s\": a command, settings, metrics, errors or routes", topic);
    help_print(NULL, stdout);
    return OK;
}

ErrorCode command_version(Call *call, Error *reterr)
{
    (void)reterr;
    printf(call->json ? "{\"version\":\"%s\"}\n" : "pawl %s\n", PAWL_VERSION);
    return OK;
}
