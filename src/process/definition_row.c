/*
 * definition_row.c - the steps of a definition as rows of pawl.process_definition_step, so that SQL never reads a file.
 */
#include "process/definition.h"

/* "/STEP/BRANCH" for each step around the list, the outermost first. */
static void list_print(const StepList *list, Text *text)
{
    if (!list->above)
        return;
    list_print(list->above->list, text);
    text_print(text, "/%s/%s", list->above->name, list->name ? list->name : "");
}

static int loop_depth(const StepList *list)
{
    int depth = 0;

    for (; list->above; list = list->above->list)
        depth += step_is_loop(list->above);
    return depth;
}

/* The number of the last step inside of this one; its own if there is none. */
static int last_inside(const Definition *definition, const Step *step)
{
    int last = step->number;

    for (int i = last + 1; i < definition->count; i++) {
        const StepList *list = definition->steps[i]->list;

        while (list->above && list->above != step)
            list = list->above->list;
        if (!list->above)
            break;
        last = i;
    }
    return last;
}

static void target_write(const Action *action, const char *name, Writer *writer)
{
    scoped_text Text text = {0};

    if (!action || step_kinds[action->kind].acts != ACTS_SENDS)
        return;
    text_init(&text, NULL, TEXT_MAX_LINE);
    text_print(&text, "\"%s\" to domain \"%s\"", action->send.type, action->send.domain);
    writer_text(writer, name, text_string(&text));
}

static void wait_write(const WaitAction *wait, Writer *writer)
{
    if (wait->response)
        writer_text(writer, "response", wait->response);
    if (wait->any.count)
        writer_array(writer, "race");
    for (int i = 0; i < wait->any.count; i++)
        writer_text(writer, NULL, wait->any.names[i]);
    if (wait->any.count)
        writer_end(writer);
    if (wait->until)
        writer_text(writer, "until", condition_text(wait->until));
    writer_i64(writer, "responses", wait->count);
}

static void sleep_write(const SleepAction *sleep, Writer *writer)
{
    writer_text(writer, "sleeps",
                sleep->until      ? "until a time from a template"
                : sleep->for_text ? "for a time from a template"
                                  : "for a fixed time");
}

static void when_write(const Step *step, Writer *writer)
{
    const WhenAction *when = &step->action.when;
    int               end  = step->list->count; /* positions are from 0 */

    writer_i64(writer, "then_at", when->then_step ? when->then_step->position : end);
    writer_i64(writer, "else_at", when->else_step ? when->else_step->position : end);
}

static void row_write(const Definition *definition, const Step *step, Writer *writer)
{
    scoped_text Text list   = {0};
    const Action    *action = &step->action;

    text_init(&list, NULL, TEXT_MAX_LINE);
    list_print(step->list, &list);
    writer_object(writer, NULL);
    writer_text(writer, "name", step->name);
    writer_text(writer, "kind", step_kinds[action->kind].name);
    writer_text(writer, "list", text_string(&list));
    writer_i64(writer, "position", step->position);
    writer_i64(writer, "depth", loop_depth(step->list));
    writer_i64(writer, "last", last_inside(definition, step));
    if (step->list->above)
        writer_text(writer, "parent", step->list->above->name);
    writer_bool(writer, "is_loop", step_is_loop(step));
    writer_bool(writer, "acts", step_kinds[action->kind].acts != ACTS_NOT);
    writer_bool(writer, "is_compensated", step->compensate != NULL);
    if (step_kinds[action->kind].acts != ACTS_NOT)
        writer_i64(writer, "attempts", action->retry.attempts);
    if (step->compensate)
        writer_i64(writer, "undo_attempts", step->compensate->retry.attempts);
    target_write(action, "sends", writer);
    target_write(step->compensate, "undo_sends", writer);
    if (action->kind == STEP_WAIT)
        wait_write(&action->wait, writer);
    if (action->kind == STEP_SLEEP)
        sleep_write(&action->sleep, writer);
    if (action->kind == STEP_WHEN)
        when_write(step, writer);
    writer_end(writer);
}

void definition_rows_write(const Definition *definition, Writer *writer)
{
    writer_array(writer, NULL);
    for (int i = 0; i < definition->count; i++)
        row_write(definition, definition->steps[i], writer);
    writer_end(writer);
}
