/*
 * topic.c - see topic.h.
 */
#include "cli/topic.h"

#include <stddef.h>
#include <string.h>

#include "api/routes.h"
#include "app/settings.h"
#include "base/module.h"
#include "base/page.h"
#include "base/problem.h"
#include "cli/print.h"
#include "process/field.h"
#include "wallet/kind.h"

/* Unlike other lists, nothing of it is cut: it is there to be read. */
static void topic_list(const ListShape *shape, bool json, Arena *arena, const void *rows, size_t count)
{
    List list;

    list_begin(&list, shape, arena, json);
    list.table.is_cut = false;
    list_rows(&list, rows, (int)count);
    list_end(&list);
}

/* ---- settings: a page of its own for people, because what they mean is long ---- */

typedef struct {
    const char *name, *fallback, *rule, *meaning;
} SettingLine;

static const ListColumn setting_columns[] = {
    {"setting", "setting", CELL_TEXT, offsetof(SettingLine, name)    },
    {"default", "default", CELL_TEXT, offsetof(SettingLine, fallback)},
    {"rule",    "rule",    CELL_TEXT, offsetof(SettingLine, rule)    },
    {"meaning", "meaning", CELL_TEXT, offsetof(SettingLine, meaning) },
};

static const char *rule(Arena *arena, const Setting *row)
{
    Text text;

    text_init(&text, arena, TEXT_MAX_LINE);
    setting_rule_print(row, &text);
    return text.length ? text_string(&text) : NULL;
}

static int setting_lines(const SettingTable *table, const char *before, Arena *arena, SettingLine *ret_lines)
{
    for (size_t i = 0; i < table->count; i++) {
        const Setting *row = &table->rows[i];

        ret_lines[i] =
            (SettingLine){arena_print(arena, "%s%s", before, row->name), row->fallback, rule(arena, row), row->help};
    }
    return (int)table->count;
}

static void settings_print(bool json, Arena *arena)
{
    const SettingTable *worker = settings_workers.table;
    ListShape           shape  = {setting_columns, COUNT(setting_columns), sizeof(SettingLine), "", NULL};
    SettingLine        *lines  = arena_array(arena, SettingLine, settings_table.count + worker->count);
    int                 count;
    Text                text;

    if (!json) {
        text_init(&text, arena, TEXT_MAX_BODY);
        setting_describe(&settings_table, &text);
        text_append(&text, "\nEach section [worker NAME] of the settings file is a worker of pawl serve:\n\n");
        setting_describe(worker, &text);
        printf("%s", text_string(&text));
        return;
    }
    count = setting_lines(&settings_table, "", arena, lines);
    count += setting_lines(worker, "[worker NAME] ", arena, lines + count);
    list_print(&shape, arena, json, lines, count);
}

/* ---- metrics ---- */

typedef struct {
    const char *name, *kind, *label, *meaning;
} MetricLine;

static const ListColumn metric_columns[] = {
    {"metric",  "metric",  CELL_TEXT, offsetof(MetricLine, name)   },
    {"kind",    "kind",    CELL_TEXT, offsetof(MetricLine, kind)   },
    {"label",   "label",   CELL_TEXT, offsetof(MetricLine, label)  },
    {"meaning", "meaning", CELL_TEXT, offsetof(MetricLine, meaning)},
};

static MetricLine metric_line(const MetricRow *row, const char *label)
{
    static const char *const kinds[] = {[METRIC_COUNTER]   = "counter",
                                        [METRIC_GAUGE]     = "gauge",
                                        [METRIC_HISTOGRAM] = "histogram",
                                        [METRIC_DURATION]  = "histogram"};

    return (MetricLine){row->name, kinds[row->kind], label, row->help};
}

static void metrics_print(bool json, Arena *arena)
{
    ListShape          shape = {metric_columns, COUNT(metric_columns), sizeof(MetricLine), "", NULL};
    size_t             count = 0;
    const MetricTable *table;
    MetricLine        *lines;

    for (size_t i = 0; (table = module_metrics(i)); i++)
        count += table->count;
    lines = arena_array(arena, MetricLine, count);
    count = 0;
    for (size_t i = 0; (table = module_metrics(i)); i++)
        for (size_t j = 0; j < table->count; j++) {
            const MetricRow *row = &table->metrics[j].row;

            lines[count++] = metric_line(row, table->label ? arena_print(arena, "%s=\"...\"%s%s", table->label,
                                                                         row->label[0] ? "," : "", row->label)
                                                           : row->label);
        }
    topic_list(&shape, json, arena, lines, count);
}

/* ---- errors ---- */

typedef struct {
    const char *type, *verdict, *meaning, *action;
    int32_t     status, exit;
} ErrorLine;

static const ListColumn error_columns[] = {
    {"type",                    "type",    CELL_TEXT, offsetof(ErrorLine, type)   },
    {">status",                 "status",  CELL_I32,  offsetof(ErrorLine, status) },
    {">exit",                   "exit",    CELL_I32,  offsetof(ErrorLine, exit)   },
    {"what pawl does",          "verdict", CELL_TEXT, offsetof(ErrorLine, verdict)},
    {"meaning, and what to do", "meaning", CELL_TEXT, offsetof(ErrorLine, meaning)},
    {"what to do",              "action",  CELL_TEXT, offsetof(ErrorLine, action) },
};

static void errors_print(bool json, Arena *arena)
{
    static const char *const verdicts[] = {[VERDICT_FINAL]   = "returns it to the caller",
                                           [VERDICT_RETRY]   = "runs it again",
                                           [VERDICT_RESOLVE] = "looks the key up",
                                           [VERDICT_EVICT]   = "runs it again on a new connection"};
    ListShape                shape      = {error_columns, COUNT(error_columns), sizeof(ErrorLine), "", NULL};
    ErrorLine               *lines;
    Problem                  row;
    size_t                   count = 0;

    if (!json)
        shape.count--; /* people read what to do behind the meaning */
    while (problem_at(count, &row))
        count++;
    lines = arena_array(arena, ErrorLine, count);
    for (size_t i = 0; problem_at(i, &row); i++)
        lines[i] = (ErrorLine){row.type,
                               verdicts[error_verdict(row.code)],
                               json ? row.meaning : arena_print(arena, "%s %s", row.meaning, row.action),
                               row.action,
                               error_http(row.code),
                               error_exit(row.code)};
    topic_list(&shape, json, arena, lines, count);
}

/* ---- routes ---- */

typedef struct {
    const char *method, *path, *scope, *meaning;
} RouteLine;

static const ListColumn route_columns[] = {
    {"method",  "method",  CELL_TEXT, offsetof(RouteLine, method) },
    {"path",    "path",    CELL_TEXT, offsetof(RouteLine, path)   },
    {"scope",   "scope",   CELL_TEXT, offsetof(RouteLine, scope)  },
    {"meaning", "meaning", CELL_TEXT, offsetof(RouteLine, meaning)},
};

static void routes_print(bool json, Arena *arena)
{
    static const char *const names[] = {
        [HTTP_GET] = "GET", [HTTP_POST] = "POST", [HTTP_PUT] = "PUT", [HTTP_DELETE] = "DELETE"};
    ListShape  shape = {route_columns, COUNT(route_columns), sizeof(RouteLine), "", NULL};
    RouteLine *lines = arena_array(arena, RouteLine, routes_table.count);

    for (size_t i = 0; i < routes_table.count; i++) {
        const Route *row                    = &routes_table.rows[i];
        char         scope[SCOPE_TEXT_SIZE] = "open";

        if (row->scope != SCOPE_NONE)
            scope_print(routes_table.scope_names, row->scope, scope);
        lines[i] = (RouteLine){names[row->method], row->path, arena_print(arena, "%s", scope), row->summary};
    }
    topic_list(&shape, json, arena, lines, routes_table.count);
}

/* ---- definitions of processes ---- */

typedef struct {
    const char *object, *field, *needed, *kinds, *rule, *meaning;
} FieldLine;

static const ListColumn field_columns[] = {
    {"object",   "object",   CELL_TEXT, offsetof(FieldLine, object) },
    {"field",    "field",    CELL_TEXT, offsetof(FieldLine, field)  },
    {"required", "required", CELL_TEXT, offsetof(FieldLine, needed) },
    {"in steps", "kinds",    CELL_TEXT, offsetof(FieldLine, kinds)  },
    {"rule",     "rule",     CELL_TEXT, offsetof(FieldLine, rule)   },
    {"meaning",  "meaning",  CELL_TEXT, offsetof(FieldLine, meaning)},
};

static FieldLine field_line(const ProcessTable *table, const ProcessField *field, Arena *arena)
{
    FieldLine line = {table->noun, field->name, field->required ? "yes" : "no", NULL, NULL, field->help};
    Text      text;

    text_init(&text, arena, TEXT_MAX_LINE);
    field_rule_print(field, &text);
    line.rule = text_string(&text);
    if (field->selects)
        line.needed = "kind";
    else if (table == &step_table && !field_is_common(field)) {
        text_init(&text, arena, TEXT_MAX_LINE);
        kinds_print(field->kinds, &text);
        line.kinds = text_string(&text);
    }
    return line;
}

/* "owner, amount, asset?" of "owner amount asset?": the fields of a kind by their names in JSON. */
static const char *wallet_fields(WalletKind kind, Arena *arena)
{
    const char *rest = wallet_kind_takes[kind];
    Text        text;

    text_init(&text, arena, TEXT_MAX_LINE);
    while (*rest) {
        size_t      size     = strcspn(rest, " ");
        bool        optional = rest[size - 1] == '?';
        const char *argument = arena_print(arena, "%.*s", (int)(size - optional), rest);

        text_print(&text, "%s%s%s", text.length ? ", " : "", wallet_field_name(kind, argument), optional ? "?" : "");
        rest += size;
        rest += strspn(rest, " ");
    }
    return text_string(&text);
}

/* The field "kind", and a line per kind with the fields that it takes. */
static size_t wallet_lines(Arena *arena, FieldLine *ret_lines)
{
    size_t count = 0;

    ret_lines[count++] = (FieldLine){
        "wallet",
        "kind",
        "yes",
        NULL,
        "one of the kinds below",
        "what is posted, with the fields of its kind; any of them may be a template, those with a ? may be missing"};
    for (WalletKind kind = 0; kind < WALLET_KIND_COUNT; kind++)
        ret_lines[count++] =
            (FieldLine){"wallet", wallet_kind_names[kind], "kind", NULL, wallet_fields(kind, arena), NULL};
    return count;
}

static FieldLine *field_lines(Arena *arena, size_t *ret_count)
{
    size_t     most = WALLET_KIND_COUNT + 1, count = 0;
    FieldLine *lines;

    for (size_t i = 0; process_tables[i]; i++)
        most += process_tables[i]->count;
    lines = arena_array(arena, FieldLine, most);
    for (size_t i = 0; process_tables[i]; i++)
        for (size_t j = 0; j < process_tables[i]->count; j++)
            lines[count++] = field_line(process_tables[i], &process_tables[i]->fields[j], arena);
    count += wallet_lines(arena, lines + count);
    *ret_count = count;
    return lines;
}

#define FIELD_COLUMN    2
#define REQUIRED_COLUMN 16
#define MEANING_COLUMN  26

static void field_cells(Page *page, const char *field, const char *needed, const char *meaning)
{
    page_go(page, FIELD_COLUMN);
    text_append(page->text, field);
    page_go(page, REQUIRED_COLUMN);
    text_append(page->text, needed);
    page_words(page, MEANING_COLUMN, meaning);
    page_break(page);
}

/* "JSON with templates; default: null (in exec, sql: a value)" */
static const char *field_words(const FieldLine *line, Arena *arena)
{
    const char *in = line->kinds ? arena_print(arena, "in %s: ", line->kinds) : "";

    return line->meaning ? arena_print(arena, "%s (%s%s)", line->meaning, in, line->rule) : line->rule;
}

/* For people: a section per object, wrapped, because rules and meanings are long. */
static void field_page(const FieldLine *lines, size_t count, Arena *arena)
{
    Text text;
    Page page;

    text_init(&text, arena, TEXT_MAX_BODY);
    page = page_of(&text);
    for (size_t i = 0; i < count; i++) {
        const FieldLine *line = &lines[i];

        if (i == 0 || strcmp(line->object, line[-1].object) != 0) {
            text_print(&text, "%s%s", i == 0 ? "" : "\n", line->object);
            page_break(&page);
            field_cells(&page, "field", "required", "meaning (rule)");
        }
        field_cells(&page, line->field, line->needed, field_words(line, arena));
    }
    printf("%s", text_string(&text));
}

static void definitions_print(bool json, Arena *arena)
{
    ListShape        shape = {field_columns, COUNT(field_columns), sizeof(FieldLine), "", NULL};
    size_t           count;
    const FieldLine *lines = field_lines(arena, &count);

    if (json)
        list_print(&shape, arena, json, lines, (int)count);
    else
        field_page(lines, count, arena);
}

static const struct {
    const char *name;
    void (*print)(bool json, Arena *arena);
} topics[] = {
    {"settings",    settings_print   },
    {"metrics",     metrics_print    },
    {"errors",      errors_print     },
    {"routes",      routes_print     },
    {"definitions", definitions_print},
};

bool topic_print(const char *name, bool json, Arena *arena)
{
    for (size_t i = 0; i < COUNT(topics); i++)
        if (strcmp(topics[i].name, name) == 0) {
            topics[i].print(json, arena);
            return true;
        }
    return false;
}
