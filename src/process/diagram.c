/*
 * diagram.c - see diagram.h.
 *
 * Nodes come first, in the subgraphs they belong to, then all arrows: Mermaid puts a node into the first subgraph that names it, so an
 * arrow inside of one would pull its target in. A list is left at the end of the process, at the join of its parallel or each, or
 * at the condition of its repeat, which leads back to its first step.
 */
#include "process/diagram.h"

#include <string.h>

#include "base/setting.h"

#define LABEL_MAX 80 /* bytes of a condition, command line or URL */

#define INDENT 4

static void list_print(const StepList *list, Text *text);

/* ---- labels ---- */

/* Mermaid's entities begin with "#"; Markdown and HTML are read in labels, too. */
static void label_escape(const char *bytes, size_t size, Text *text)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)bytes[i];

        if (c < 0x20 || c == 0x7f)
            text_append_char(text, ' ');
        else if (strchr("\"#&<>`$%{}\\;", c))
            text_print(text, "#%u;", c);
        else
            text_append_char(text, (char)c);
    }
}

static void label_print(const char *words, Text *text)
{
    size_t size = strlen(words), cut = text_cut(words, size, LABEL_MAX);

    label_escape(words, cut, text);
    if (cut < size)
        text_append(text, "...");
}

static void label_value(Value value, Text *text)
{
    scoped_text Text words = {0};

    text_init(&words, NULL, TEXT_MAX_BODY);
    text_append_bytes(&words, value.bytes, value.size);
    label_print(text_string(&words), text);
}

static void template_describe(const Template *template, Text *text)
{
    const ValuePath *path   = template_paths(template);
    Value            prefix = template_prefix(template);

    label_value(prefix, text);
    if (path)
        label_print(prefix.size ? "..." : path->text, text);
}

static void duration_describe(const char *before, int64_t ms, Text *text)
{
    text_append(text, before);
    setting_duration_print(ms, text);
}

static void wait_describe(const Step *step, Text *text)
{
    const WaitAction *wait = &step->action.wait;

    if (wait->until) {
        text_append(text, "wait until ");
        label_print(condition_text(wait->until), text);
    } else {
        text_print(text, "wait for ");
        if (wait->count > 1)
            text_print(text, "%lld ", (long long)wait->count);
        text_append(text, wait->any.count ? "the first of " : "");
        if (wait->response)
            label_print(wait->response, text);
        for (int i = 0; i < wait->any.count; i++) {
            text_append(text, i ? ", " : "");
            label_print(wait->any.names[i], text);
        }
    }
    if (step->action.timeout_ms)
        duration_describe(", at most ", step->action.timeout_ms, text);
    if (step->action.timeout_ms)
        text_append(text, step->continues_on_timeout ? ", then go on" : ", then fail");
}

static void action_describe(const Action *action, Text *text)
{
    switch (action->kind) {
    case STEP_EXEC:
        text_append(text, "exec ");
        label_print(action->exec, text);
        break;
    case STEP_SQL:
        text_append(text, "sql ");
        label_print(action->sql, text);
        break;
    case STEP_HTTP:
        text_print(text, "http %s ", action->http.method);
        template_describe(action->http.url, text);
        break;
    case STEP_COMMAND:
    case STEP_PROCESS:
        text_print(text, "%s ", step_kinds[action->kind].name);
        label_print(action->send.domain, text);
        text_append(text, " ");
        label_print(action->send.type, text);
        break;
    case STEP_WALLET:
        text_print(text, "wallet %s", wallet_kind_names[action->wallet.kind]);
        break;
    case STEP_SLEEP:
        if (action->sleep.for_ms)
            duration_describe("sleep ", action->sleep.for_ms, text);
        else {
            text_append(text, action->sleep.until ? "sleep until " : "sleep for ");
            template_describe(action->sleep.until ? action->sleep.until : action->sleep.for_text, text);
        }
        break;
    case STEP_SET:
        text_append(text, "set");
        break;
    case STEP_FAIL:
        text_append(text, "fail ");
        template_describe(action->fail, text);
        break;
    case STEP_CONTINUE:
        text_append(text, "continue as new");
        break;
    case STEP_WHEN:
        label_print(condition_text(action->when.condition), text);
        break;
    case STEP_WAIT:
    case STEP_PARALLEL:
    case STEP_EACH:
    case STEP_REPEAT:
    case STEP_KIND_COUNT:
        break;
    }
}

/* ---- nodes ---- */

static void indent(const StepList *list, Text *text)
{
    text_print(text, "%*s", INDENT * list->depth, "");
}

static void simple_print(const Step *step, Text *text)
{
    indent(step->list, text);
    text_print(text, "s%d%s", step->number, step_kinds[step->action.kind].open);
    label_print(step->name, text);
    text_append(text, "<br/>");
    if (step->action.kind == STEP_WAIT)
        wait_describe(step, text);
    else
        action_describe(&step->action, text);
    text_print(text, "%s\n", step_kinds[step->action.kind].close);
    if (!step->compensate)
        return;
    indent(step->list, text);
    text_print(text, "c%d[\"", step->number);
    action_describe(step->compensate, text);
    text_append(text, "\"]:::compensation\n");
}

static void branch_print(const Step *step, const StepList *list, int index, Text *text)
{
    indent(step->list, text);
    text_print(text, "subgraph g%d_%d[\"", step->number, index);
    label_print(list->name ? list->name : step->name, text);
    text_append(text, "\"]\n");
    list_print(list, text);
    indent(step->list, text);
    text_append(text, "end\n");
}

static void group_describe(const Action *action, Text *text)
{
    text_append(text, step_kinds[action->kind].name);
    if (action->kind == STEP_EACH) {
        text_append(text, " ");
        template_describe(action->each.items, text);
        text_print(text, ", %lld at once", (long long)action->each.concurrency);
    }
    if (action->kind == STEP_REPEAT)
        text_print(text, ", at most %lld times, then %s", (long long)action->repeat.times,
                   action->repeat.continues ? "go on" : "fail");
}

/* A fork, the lists in boxes, and a join; of a repeat, its condition. */
static void group_print(const Step *step, const StepList *lists, int count, Text *text)
{
    bool is_repeat = step->action.kind == STEP_REPEAT;

    indent(step->list, text);
    text_print(text, "s%d{{\"", step->number);
    label_print(step->name, text);
    text_append(text, "<br/>");
    group_describe(&step->action, text);
    text_append(text, "\"}}\n");
    for (int i = 0; i < count; i++)
        branch_print(step, &lists[i], i, text);
    indent(step->list, text);
    text_print(text, "j%d%s", step->number, is_repeat ? "{\"" : "((\"");
    label_print(is_repeat ? condition_text(step->action.repeat.until) : "join", text);
    text_append(text, is_repeat ? "\"}\n" : "\"))\n");
}

static void list_print(const StepList *list, Text *text)
{
    for (int i = 0; i < list->count; i++) {
        const Step     *step = &list->steps[i];
        const StepList *lists;
        int             count = action_lists(&step->action, &lists);

        if (count > 0)
            group_print(step, lists, count, text);
        else
            simple_print(step, text);
    }
}

/* ---- arrows ---- */

/* to NULL: the end of the list. */
static void arrow_print(const Step *from, const char *label, const Step *to, Text *text)
{
    const StepList *lists;
    bool            is_group = action_lists(&from->action, &lists) > 0;

    text_print(text, "%*s%s%d -->%s ", INDENT, "", is_group ? "j" : "s", from->number, label);
    if (to)
        text_print(text, "s%d\n", to->number);
    else if (from->list->above)
        text_print(text, "j%d\n", from->list->above->number);
    else
        text_append(text, "finish\n");
}

static void arrows_print(const Step *step, Text *text)
{
    const WhenAction *when = &step->action.when;

    /* The first of a branch is entered from its fork. */
    if (step->position == 0 && step->list->above)
        text_print(text, "%*ss%d --> s%d\n", INDENT, "", step->list->above->number, step->number);
    if (step->compensate)
        text_print(text, "%*ss%d -.->|compensate| c%d\n", INDENT, "", step->number, step->number);
    if (step->action.kind == STEP_WHEN) {
        arrow_print(step, "|yes|", when->then_step, text);
        arrow_print(step, "|no|", when->else_step, text);
    } else if (step->action.kind == STEP_REPEAT) {
        arrow_print(step, "|yes|", step_next(step), text);
        arrow_print(step, "|no|", step->action.repeat.list.steps, text);
    } else if (step->action.kind == STEP_CONTINUE)
        text_print(text, "%*ss%d -.-> start\n", INDENT, "", step->number);
    else if (step->action.kind != STEP_FAIL)
        arrow_print(step, "", step_next(step), text);
}

void diagram_print(const Definition *definition, Text *text)
{
    text_append(text, "flowchart TD\n    start([\"");
    label_print(definition->domain, text);
    text_append(text, " ");
    label_print(definition->type, text);
    text_append(text, "\"])\n");
    list_print(&definition->list, text);
    text_append(text, "    finish([\"end\"])\n    start --> s0\n");
    for (int i = 0; i < definition->count; i++)
        arrows_print(definition->steps[i], text);
    if (definition->compensation_count)
        text_append(text, "    classDef compensation stroke-dasharray: 4 4\n");
}
