/*
 * definition_read.c - objects and lists of a definition file, laid out by the tables of field.h.
 *
 * A step's name and kind are found before its other members are read, whatever their order in the file.
 */
#include <assert.h>
#include <string.h>

#include "base/moment.h"
#include "base/scan.h"
#include "base/setting.h"
#include "process/definition_internal.h"

#define FIELDS_MAX 64 /* one bit each in a uint64_t */

/* ---- fields ---- */

/* NULL: there is no such field. */
static const ProcessField *field_find(const ProcessTable *table, const char *key)
{
    Value raw = value_slice(key);

    if (memchr(raw.bytes, '\\', raw.size)) /* no field's name needs an escape */
        return NULL;
    for (size_t i = 0; i < table->count; i++)
        if (strlen(table->fields[i].name) == raw.size - 2 &&
            memcmp(table->fields[i].name, raw.bytes + 1, raw.size - 2) == 0)
            return &table->fields[i];
    return NULL;
}

static void unknown_error_set(Parser *parser, const ProcessTable *table, const char *key)
{
    Excerpt     name = scan_excerpt(key + 1, scan_value_end(key) - 1);
    const char *names[FIELDS_MAX];

    assert(table->count <= FIELDS_MAX);
    for (size_t i = 0; i < table->count; i++)
        names[i] = table->fields[i].name;
    const char *nearest = text_nearest(name.text, names, table->count);
    source_error_set(&parser->source, key, parser->reterr, "unknown field \"%s\"%s%s%s", name.text,
                     nearest ? ", did you mean \"" : "", nearest ? nearest : "", nearest ? "\"?" : "");
}

static bool object_has(Value object, const char *name)
{
    return value_member(object, name, strlen(name)).size > 0;
}

static ErrorCode required_check(Parser *parser, const ProcessTable *table, KindSet kinds, Value object)
{
    for (size_t i = 0; i < table->count; i++) {
        const ProcessField *field = &table->fields[i];

        if (field->required && (field->kinds & kinds) == kinds && !object_has(object, field->name))
            return source_refuse(&parser->source, object.bytes, parser->reterr, "missing field \"%s\"", field->name);
    }
    return OK;
}

ErrorCode table_read(Parser *parser, const ProcessTable *table, Value object, void *row)
{
    const char *at = object.bytes + 1;

    while (scan_next(&at)) {
        const ProcessField *field = field_find(table, at);

        if (!field) {
            unknown_error_set(parser, table, at);
            return ERR_INVALID;
        }
        Value value = value_slice(scan_member_value(at));
        TRY(field_read(parser, field, value, row));
        at = value.bytes + value.size;
    }
    return required_check(parser, table, /* kinds= */ 0, object);
}

/* ---- what a step does ---- */

static StepKind field_kind(const ProcessField *field)
{
    return (StepKind)__builtin_ctz(field->kinds);
}

static void kind_error_set(Parser *parser, Value object, bool in_compensate, const char *found)
{
    scoped_text Text kinds = {0};
    KindSet          set   = 0;

    for (size_t i = 0; i < step_table.count; i++)
        if (step_table.fields[i].selects && (!in_compensate || step_table.fields[i].in_compensate))
            set |= step_table.fields[i].kinds;
    text_init(&kinds, NULL, TEXT_MAX_LINE);
    kinds_print(set, &kinds);
    source_error_set(&parser->source, object.bytes, parser->reterr, "%s must have exactly one of %s; it has %s",
                     in_compensate ? "a compensation" : "a step", text_string(&kinds), found);
}

static bool object_has_kind(Value object, bool in_compensate)
{
    for (size_t i = 0; i < step_table.count; i++)
        if (step_table.fields[i].selects && (!in_compensate || step_table.fields[i].in_compensate) &&
            object_has(object, step_table.fields[i].name))
            return true;
    return false;
}

/* A field that is not one of a step. Without another one that says what the step does, it was meant to. */
static void field_error_set(Parser *parser, Value object, const char *key, bool in_compensate)
{
    Excerpt name = scan_excerpt(key + 1, scan_value_end(key) - 1);

    unknown_error_set(parser, &step_table, key);
    if (parser->reterr && !object_has_kind(object, in_compensate) && !strstr(parser->reterr->text, "did you mean"))
        kind_error_set(parser, object, in_compensate, name.text);
}

static ErrorCode kind_find(Parser *parser, Value object, bool in_compensate, StepKind *ret_kind)
{
    const ProcessField *found = NULL;
    const char         *at    = object.bytes + 1;
    char                both[64];

    while (scan_next(&at)) {
        const ProcessField *field = field_find(&step_table, at);

        if (!field) {
            field_error_set(parser, object, at, in_compensate);
            return ERR_INVALID;
        }
        if (in_compensate && !field->in_compensate) {
            if (object_has_kind(object, in_compensate))
                return source_refuse(&parser->source, at, parser->reterr, "a compensation takes no field \"%s\"",
                                     field->name);
            kind_error_set(parser, object, in_compensate, field->name);
            return ERR_INVALID;
        }
        if (field->selects && found) {
            snprintf(both, sizeof both, "%s and %s", found->name, field->name);
            kind_error_set(parser, object, in_compensate, both);
            return ERR_INVALID;
        }
        if (field->selects)
            found = field;
        at = scan_value_end(scan_member_value(at));
    }
    if (!found) {
        kind_error_set(parser, object, in_compensate, "none");
        return ERR_INVALID;
    }
    *ret_kind = field_kind(found);
    return OK;
}

static ErrorCode stranger_refuse(Parser *parser, const ProcessField *field, const char *key, StepKind kind)
{
    scoped_text Text kinds = {0};

    text_init(&kinds, NULL, TEXT_MAX_LINE);
    kinds_print(field->kinds, &kinds);
    return source_refuse(&parser->source, key, parser->reterr, "%s takes no field \"%s\"; it is for %s",
                         step_kinds[kind].name, field->name, text_string(&kinds));
}

/* row: a Step, or an Action, which is how a Step begins. */
static ErrorCode members_read(Parser *parser, Value object, Action *row)
{
    const char *at = object.bytes + 1;

    while (scan_next(&at)) {
        const ProcessField *field = field_find(&step_table, at);
        const char         *key   = at;
        Value               value = value_slice(scan_member_value(at));

        at = value.bytes + value.size;
        if (!(field->kinds >> row->kind & 1))
            return stranger_refuse(parser, field, key, row->kind);
        if (strcmp(field->name, "name") != 0)
            TRY(field_read(parser, field, value, row));
    }
    return OK;
}

static void action_init(Action *action, StepKind kind)
{
    action->kind  = kind;
    action->retry = STEP_RETRY_DEFAULT;
    if (kind == STEP_WAIT)
        action->wait.count = 1;
    if (kind == STEP_EACH)
        action->each.concurrency = 1;
    if (kind == STEP_REPEAT)
        action->repeat.times = DEFINITION_ROUNDS_DEFAULT;
}

static ErrorCode wait_check(Parser *parser, Value object, const WaitAction *wait)
{
    Value value = value_member(object, "wait", strlen("wait"));

    if ((wait->response != NULL) + (wait->any.count > 0) + (wait->until != NULL) != 1)
        return source_refuse(&parser->source, value.bytes, parser->reterr,
                             "must have exactly one of response, any and until");
    if (!wait->response && object_has(value, "count"))
        return source_refuse(&parser->source, value.bytes, parser->reterr, "count is for response, not for %s",
                             wait->until ? "until" : "any");
    if (object_has(object, "on_timeout") && !object_has(object, "timeout"))
        return source_refuse(&parser->source, object.bytes, parser->reterr, "on_timeout needs a timeout");
    return OK;
}

static ErrorCode retry_check(Parser *parser, Value object, StepRetry *retry)
{
    Value delay_max = value_member(value_member(object, "retry", strlen("retry")), "delay_max", strlen("delay_max"));

    if (delay_max.size == 0 && retry->delay_ms_max < retry->delay_ms)
        retry->delay_ms_max = retry->delay_ms;
    if (retry->delay_ms_max < retry->delay_ms)
        return source_refuse(&parser->source, delay_max.bytes, parser->reterr, "must not be shorter than delay");
    return OK;
}

/* A text without templates is the same whenever the sleep begins: it is checked now. */
static ErrorCode sleep_check(Parser *parser, Value object, const SleepAction *sleep)
{
    const Template *given = sleep->for_text ? sleep->for_text : sleep->until;
    Value           place = value_member(object, "sleep", strlen("sleep"));
    const char     *text;
    int64_t         found;

    if (!sleep->for_ms && !sleep->for_text == !sleep->until)
        return source_refuse(&parser->source, place.bytes, parser->reterr, "must have exactly one of for and until");
    if (!given || template_paths(given))
        return OK;
    text = string_copy(parser, template_source(given));
    if (sleep->until && !moment_parse(text, MOMENT_RFC3339, &found))
        return source_refuse(&parser->source, place.bytes, parser->reterr,
                             "until must be a time such as 2026-11-16T08:00:00Z or a template, got \"%.60s\"", text);
    if (sleep->for_text && (setting_duration(text, &found, NULL) != OK || found > DEFINITION_TIME_MS_MAX))
        return source_refuse(&parser->source, place.bytes, parser->reterr,
                             "for must be a duration up to 3650d such as 250ms, 10s, 5m, 1h or 2d, or a template, got "
                             "\"%.60s\"",
                             text);
    return OK;
}

/* What needs more than one field. */
static ErrorCode action_check(Parser *parser, Value object, Action *action)
{
    const HttpAction *http = &action->http;

    if (action->kind == STEP_WAIT)
        TRY(wait_check(parser, object, &action->wait));
    if (action->kind == STEP_SLEEP)
        TRY(sleep_check(parser, object, &action->sleep));
    if (action->kind == STEP_HTTP && http->body &&
        (strcmp(http->method, "GET") == 0 || strcmp(http->method, "HEAD") == 0))
        return source_refuse(&parser->source, value_member(object, "http", strlen("http")).bytes, parser->reterr,
                             "a %s request has no body", http->method);
    if (step_kinds[action->kind].acts == ACTS_SENDS && !action->send.domain)
        action->send.domain = parser->definition->domain;
    return retry_check(parser, object, &action->retry);
}

ErrorCode compensate_read(Parser *parser, const ProcessField *field, Value value, const Action **ret_action)
{
    Action  *action = arena_array(parser->arena, Action, 1);
    StepKind kind;

    if (value_kind(value) != VALUE_OBJECT)
        return field_refuse(parser, field, value);
    TRY(kind_find(parser, value, /* in_compensate= */ true, &kind));
    action_init(action, kind);
    TRY(members_read(parser, value, action));
    TRY(action_check(parser, value, action));
    parser->definition->compensation_count++;
    *ret_action = action;
    return OK;
}

/* ---- steps ---- */

/* Steps come in the order of the file, so each is located from the one before. */
static void step_locate(Parser *parser, const char *at, Step *step)
{
    int lines, columns;

    scan_locate(parser->located, at, &lines, &columns);
    parser->column = lines == 1 ? parser->column + columns - 1 : columns;
    parser->line += lines - 1;
    parser->located = at;
    step->line      = parser->line;
    step->column    = parser->column;
}

static ErrorCode name_check(Parser *parser, const Step *step, Value name)
{
    if (strcmp(step->name, "end") == 0)
        return source_refuse(&parser->source, name.bytes, parser->reterr,
                             "no step can be named \"end\": jumps use it for the end of the list");
    for (int i = 0; i < parser->count; i++)
        if (strcmp(parser->steps[i]->name, step->name) == 0)
            return source_refuse(&parser->source, name.bytes, parser->reterr,
                                 "the name \"%s\" is taken: names are unique in the file, and line %d has it",
                                 step->name, parser->steps[i]->line);
    return OK;
}

static ErrorCode step_name(Parser *parser, Value object, Step *step)
{
    Value               name  = value_member(object, "name", strlen("name"));
    const ProcessField *field = &step_table.fields[0];

    assert(strcmp(field->name, "name") == 0);
    if (name.size == 0)
        return source_refuse(&parser->source, object.bytes, parser->reterr, "missing field \"name\"");
    TRY(field_read(parser, field, name, step));
    return name_check(parser, step, name);
}

static void jump_add(Parser *parser, Value object, Step *step)
{
    Jump *jump = arena_array(parser->arena, Jump, 1);

    *jump = (Jump){step, value_member(object, "then", strlen("then")).bytes,
                   value_member(object, "else", strlen("else")).bytes, NULL};
    if (parser->last_jump)
        parser->last_jump->next = jump;
    else
        parser->first_jump = jump;
    parser->last_jump = jump;
}

static ErrorCode step_read(Parser *parser, Value object, Step *step)
{
    StepKind kind;

    if (value_kind(object) != VALUE_OBJECT)
        return source_refuse(&parser->source, object.bytes, parser->reterr, "must be an object, got %s",
                             value_kind_name(value_kind(object)));
    TRY(kind_find(parser, object, /* in_compensate= */ false, &kind));
    action_init(&step->action, kind);
    step_locate(parser, object.bytes, step);
    TRY(step_name(parser, object, step));
    step->number                   = parser->count;
    parser->step_at[parser->count] = object.bytes;
    parser->steps[parser->count++] = step;
    parser->step                   = step;
    TRY(members_read(parser, object, &step->action));
    TRY(required_check(parser, &step_table, 1u << kind, object));
    if (kind == STEP_WHEN)
        jump_add(parser, object, step);
    return action_check(parser, object, &step->action);
}

static int items_count(Value array)
{
    const char *at    = array.bytes + 1;
    int         count = 0;

    for (; scan_next(&at); count++)
        at = scan_value_end(at);
    return count;
}

static ErrorCode list_check(Parser *parser, const ProcessField *field, Value value, const StepList *list, int count)
{
    if (count == 0)
        return field_refuse(parser, field, value);
    if (list->depth > DEFINITION_DEPTH_MAX)
        return source_refuse(&parser->source, value.bytes, parser->reterr, "steps are nested deeper than %d levels",
                             DEFINITION_DEPTH_MAX);
    if (parser->allocated + count > DEFINITION_STEPS_MAX)
        return source_refuse(&parser->source, value.bytes, parser->reterr, "a definition may have at most %d steps",
                             DEFINITION_STEPS_MAX);
    return OK;
}

/* The steps of the list; what is being read is put back afterwards. */
static ErrorCode list_read(Parser *parser, Value value, StepList *list)
{
    const Step     *outer      = parser->step;
    const StepList *outer_list = parser->list;
    Step           *steps      = arena_array(parser->arena, Step, list->count);
    const char     *at         = value.bytes + 1;

    parser->allocated += list->count;
    list->steps = steps;
    for (int i = 0; scan_next(&at); i++, at = scan_value_end(at)) {
        parser->list      = list;
        steps[i].list     = list;
        steps[i].position = i;
        TRY(step_read(parser, value_slice(at), &steps[i]));
    }
    parser->step = outer;
    parser->list = outer_list;
    return OK;
}

ErrorCode steps_read(Parser *parser, const ProcessField *field, Value value, StepList *list)
{
    if (value_kind(value) != VALUE_ARRAY)
        return field_refuse(parser, field, value);
    list->above = parser->step;
    list->depth = parser->list ? parser->list->depth + 1 : 1;
    list->count = items_count(value);
    TRY(list_check(parser, field, value, list, list->count));
    return list_read(parser, value, list);
}

static ErrorCode branch_read(Parser *parser, const ProcessField *field, const char *key, StepList *list)
{
    Value raw = value_slice(key);

    list->name = string_copy(parser, raw);
    if (!name_is_valid(list->name, 50, ""))
        return source_refuse(&parser->source, key, parser->reterr,
                             "the name of a branch must be 1 to 50 letters, digits, \"_\" or \"-\", beginning with a "
                             "letter or digit");
    return steps_read(parser, field, value_slice(scan_member_value(key)), list);
}

ErrorCode branches_read(Parser *parser, const ProcessField *field, Value value, ParallelAction *ret_action)
{
    static const ProcessField list_field = {"steps", TYPE_STEPS, 0};

    if (value_kind(value) != VALUE_OBJECT)
        return field_refuse(parser, field, value);
    const char *at    = value.bytes + 1;
    int         count = 0;
    for (; scan_next(&at); count++)
        at = scan_value_end(scan_member_value(at));
    if (count == 0 || count > DEFINITION_BRANCHES_MAX)
        return field_refuse(parser, field, value);
    StepList *branches   = arena_array(parser->arena, StepList, count);
    ret_action->branches = branches;
    ret_action->count    = count;
    at                   = value.bytes + 1;
    for (int i = 0; scan_next(&at); i++, at = scan_value_end(scan_member_value(at)))
        TRY(branch_read(parser, &list_field, at, &branches[i]));
    return OK;
}
