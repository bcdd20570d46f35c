/*
 * definition_field.c - single values of a definition file: each reader stores its value or refuses it with what would be right.
 */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/scan.h"
#include "base/setting.h"
#include "process/definition_internal.h"

#define NAME_LENGTH_MAX     50
#define TYPE_LENGTH_MAX     100
#define LINE_LENGTH_MAX     4096
#define FUNCTION_LENGTH_MAX 127 /* two names of PostgreSQL and a dot */
#define NUMBER_LENGTH_MAX   30

/* ---- refusing ---- */

static Excerpt value_excerpt(Value value)
{
    static const char no_items[] = "an empty array", no_members[] = "an empty object";

    if (value_kind(value) == VALUE_ARRAY && value_item_count(value) == 0)
        return scan_excerpt(no_items, no_items + strlen(no_items));
    if (value_kind(value) == VALUE_OBJECT && value.bytes[1 + strspn(value.bytes + 1, " \t\r\n")] == '}')
        return scan_excerpt(no_members, no_members + strlen(no_members));
    if (value_kind(value) >= VALUE_ARRAY)
        return scan_excerpt(value_kind_name(value_kind(value)),
                            value_kind_name(value_kind(value)) + strlen(value_kind_name(value_kind(value))));
    return scan_excerpt(value.bytes, value.bytes + value.size);
}

/* What a value without braces may have been meant as: such as {"response": ...}. */
static void example_print(const ProcessTable *table, Text *text)
{
    const char *name = table->fields[0].name;

    for (size_t i = 0; i < table->count; i++)
        if (table->fields[i].required) {
            name = table->fields[i].name;
            break;
        }
    text_print(text, " such as {\"%s\": ...}", name);
}

ErrorCode field_refuse(Parser *parser, const ProcessField *field, Value value)
{
    scoped_text Text rule = {0};

    text_init(&rule, NULL, TEXT_MAX_LINE);
    field_rule_print(field, &rule);
    if (field->type == TYPE_OBJECT)
        example_print(field->table, &rule);
    return source_refuse(&parser->source, value.bytes, parser->reterr, "must be %s, got %s", text_string(&rule),
                         value_excerpt(value).text);
}

/* ---- texts ---- */

const char *string_copy(Parser *parser, Value value)
{
    if (value_kind(value) != VALUE_STRING)
        return NULL;
    char *text                           = arena_alloc(parser->arena, value.size);
    text[scan_string(value.bytes, text)] = '\0';
    return text;
}

bool name_is_valid(const char *name, size_t length_max, const char *more)
{
    size_t length = strlen(name);

    if (length == 0 || length > length_max)
        return false;
    for (size_t i = 0; i < length; i++) {
        char c         = name[i];
        bool is_letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');

        if (!is_letter && (i == 0 || (!strchr("_-", c) && !strchr(more, c))))
            return false;
    }
    return true;
}

static ErrorCode name_read(Parser *parser, const ProcessField *field, Value value, void *ret)
{
    bool        is_name = field->type == TYPE_NAME || field->type == TYPE_TARGET;
    size_t      most    = is_name ? NAME_LENGTH_MAX : field->type == TYPE_DOMAIN ? (size_t)field->max : TYPE_LENGTH_MAX;
    const char *text    = string_copy(parser, value);

    if (!text || !name_is_valid(text, most, is_name ? "" : ".:"))
        return field_refuse(parser, field, value);
    *(const char **)ret = text;
    return OK;
}

static ErrorCode names_read(Parser *parser, const ProcessField *field, Value value, void *ret)
{
    NameList    *list  = ret;
    int64_t      count = value_kind(value) == VALUE_ARRAY ? value_item_count(value) : 0;
    const char **names;
    const char  *at = NULL;
    Value        item;

    if (count < field->min || count > field->max)
        return field_refuse(parser, field, value);
    names = arena_array(parser->arena, const char *, (int)count);
    for (int i = 0; value_item_next(value, &at, &item); i++) {
        names[i] = string_copy(parser, item);
        if (!names[i] || !name_is_valid(names[i], NAME_LENGTH_MAX, ""))
            return source_refuse(&parser->source, item.bytes, parser->reterr, "must be a name, got %s",
                                 value_excerpt(item).text);
        for (int j = 0; j < i; j++)
            if (strcmp(names[i], names[j]) == 0)
                return source_refuse(&parser->source, item.bytes, parser->reterr, "\"%s\" is there twice", names[i]);
    }
    *list = (NameList){names, (int)count};
    return OK;
}

static ErrorCode line_read(Parser *parser, const ProcessField *field, Value value, void *ret)
{
    const char *text = string_copy(parser, value), *open;

    if (!text || text[0] == '\0' || strlen(text) > LINE_LENGTH_MAX)
        return field_refuse(parser, field, value);
    open = strstr(text, "{{");
    if (open)
        return source_refuse(
            &parser->source, value.bytes, parser->reterr,
            "a command line takes no templates, because the shell would read the values: pass them in input");
    *(const char **)ret = text;
    return OK;
}

static ErrorCode function_read(Parser *parser, const ProcessField *field, Value value, void *ret)
{
    const char *text = string_copy(parser, value);
    const char *dot  = text ? strchr(text, '.') : NULL;

    if (!dot || dot == text || !dot[1] || strchr(dot + 1, '.') || strlen(text) > FUNCTION_LENGTH_MAX ||
        strpbrk(text, "{} \t\r\n()\"'"))
        return field_refuse(parser, field, value);
    *(const char **)ret = text;
    return OK;
}

/* -1: it is none of them. */
static int word_find(Parser *parser, const ProcessField *field, Value value)
{
    const char *text = string_copy(parser, value);

    for (int i = 0; text && field->words[i]; i++)
        if (strcmp(text, field->words[i]) == 0)
            return i;
    return -1;
}

static ErrorCode word_read(Parser *parser, const ProcessField *field, Value value, void *ret)
{
    int index = word_find(parser, field, value);

    if (index < 0)
        return field_refuse(parser, field, value);
    if (field->type == TYPE_METHOD)
        *(const char **)ret = field->words[index];
    else if (field->type == TYPE_CONTINUE)
        *(bool *)ret = index == 1;
    else
        *(FailureAction *)ret = (FailureAction)index;
    return OK;
}

/* ---- numbers ---- */

/* false: it is no number, or one of absurd length. */
static bool number_copy(Value value, char *ret_text)
{
    if (value_kind(value) != VALUE_NUMBER || value.size >= NUMBER_LENGTH_MAX)
        return false;
    memcpy(ret_text, value.bytes, value.size);
    ret_text[value.size] = '\0';
    return true;
}

static ErrorCode integer_read(Parser *parser, const ProcessField *field, Value value, void *ret)
{
    char text[NUMBER_LENGTH_MAX], *end;

    if (!number_copy(value, text))
        return field_refuse(parser, field, value);
    int64_t number = strtoll(text, &end, 10); /* out of its range it is out of the field's as well */
    if (*end || number < field->min || number > field->max)
        return field_refuse(parser, field, value);
    *(int64_t *)ret = number;
    return OK;
}

static ErrorCode real_read(Parser *parser, const ProcessField *field, Value value, void *ret)
{
    char text[NUMBER_LENGTH_MAX];

    if (!number_copy(value, text))
        return field_refuse(parser, field, value);
    double number = strtod(text, NULL);
    if (!(number >= (double)field->min && number <= (double)field->max))
        return field_refuse(parser, field, value);
    *(double *)ret = number;
    return OK;
}

static ErrorCode duration_read(Parser *parser, const ProcessField *field, Value value, void *ret)
{
    const char *text = string_copy(parser, value);
    int64_t     ms;
    Error       error;

    if (!text || setting_duration(text, &ms, &error) != OK || ms < field->min || ms > field->max)
        return field_refuse(parser, field, value);
    *(int64_t *)ret = ms;
    return OK;
}

static ErrorCode sleep_read(Parser *parser, const ProcessField *field, Value value, void *ret)
{
    SleepAction *sleep = ret;

    if (value_kind(value) == VALUE_OBJECT)
        return table_read(parser, &sleep_table, value, sleep);
    return duration_read(parser, field, value, &sleep->for_ms);
}

/* ---- templates and conditions ---- */

static bool is_inside(const StepList *list, StepKind kind)
{
    for (; list && list->above; list = list->above->list)
        if (list->above->action.kind == kind)
            return true;
    return false;
}

static void reference_add(Parser *parser, const ValuePath *path)
{
    Reference *reference = arena_array(parser->arena, Reference, 1);

    *reference = (Reference){path, parser->step, parser->is_after_round, NULL};
    if (parser->last_reference)
        parser->last_reference->next = reference;
    else
        parser->first_reference = reference;
    parser->last_reference = reference;
}

/* What can be said before all steps are known. */
static ErrorCode paths_check(Parser *parser, const ValuePath *path)
{
    bool has_item  = is_inside(parser->list, STEP_EACH);
    bool has_index = has_item || is_inside(parser->list, STEP_REPEAT) || parser->is_after_round;

    for (; path; path = path->next) {
        if (path->root == PATH_ITEM && !has_item)
            return source_refuse(&parser->source, path->at, parser->reterr, "item exists only inside an each");
        if (path->root == PATH_INDEX && !has_index)
            return source_refuse(&parser->source, path->at, parser->reterr,
                                 "index exists only inside an each or a repeat");
        if (path->root == PATH_RESULT && !parser->has_result)
            return source_refuse(&parser->source, path->at, parser->reterr,
                                 "result exists only in save and compensate of a step");
        if (path->root == PATH_STEP)
            reference_add(parser, path);
    }
    return OK;
}

ErrorCode template_read(Parser *parser, Value value, bool is_text, const Template **ret_template)
{
    const char *at;
    ErrorCode   code = is_text ? template_compile_text(value, parser->arena, ret_template, &at, parser->reterr)
                               : template_compile(value, parser->arena, ret_template, &at, parser->reterr);

    if (code != OK) {
        source_prefix(&parser->source, at, parser->reterr);
        return ERR_INVALID;
    }
    return paths_check(parser, template_paths(*ret_template));
}

ErrorCode condition_read(Parser *parser, Value value, const Condition **ret_condition)
{
    const char *at;

    if (condition_compile(value, parser->arena, ret_condition, &at, parser->reterr) != OK) {
        source_prefix(&parser->source, at, parser->reterr);
        return ERR_INVALID;
    }
    return paths_check(parser, condition_paths(*ret_condition));
}

static bool prefix_is(Value prefix, const char *word)
{
    return prefix.size >= strlen(word) && memcmp(prefix.bytes, word, strlen(word)) == 0;
}

static bool url_is_valid(const Template *url)
{
    Value prefix = template_prefix(url);

    for (size_t i = 0; i < prefix.size; i++)
        if ((unsigned char)prefix.bytes[i] <= ' ')
            return false;
    if (prefix.size == 0)
        return template_paths(url) != NULL;
    const char *scheme = prefix_is(prefix, "https://") ? "https://" : "http://";
    return prefix_is(prefix, scheme) && (prefix.size > strlen(scheme) || template_paths(url));
}

static ErrorCode text_read(Parser *parser, const ProcessField *field, Value value, void *ret)
{
    const Template *template;

    if (value_kind(value) != VALUE_STRING)
        return field_refuse(parser, field, value);
    TRY(template_read(parser, value, /* is_text= */ true, &template));
    if (field->type == TYPE_URL && !url_is_valid(template))
        return field_refuse(parser, field, value);
    *(const Template **)ret = template;
    return OK;
}

static ErrorCode json_read(Parser *parser, const ProcessField *field, Value value, void *ret)
{
    const Template *template;

    if ((field->type == TYPE_PATCH && value_kind(value) != VALUE_OBJECT) ||
        (field->type == TYPE_LIST && value_kind(value) != VALUE_STRING))
        return field_refuse(parser, field, value);
    TRY(template_read(parser, value, /* is_text= */ false, &template));
    if (field->type == TYPE_LIST && !template_only_path(template))
        return field_refuse(parser, field, value);
    *(const Template **)ret = template;
    return OK;
}

static ErrorCode condition_field_read(Parser *parser, const ProcessField *field, Value value, void *ret)
{
    if (value_kind(value) != VALUE_STRING)
        return field_refuse(parser, field, value);
    return condition_read(parser, value, ret);
}

/* ---- headers ---- */

static bool header_is_valid(const char *name)
{
    for (const char *c = name; *c; c++)
        if (!strchr("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ", *c))
            return false;
    return name[0] != '\0';
}

/* Those that the engine sets itself. */
static bool header_is_ours(const char *name)
{
    static const char *const ours[] = {"Idempotency-Key", "Host",    "Content-Length", "Transfer-Encoding",
                                       "Connection",      "Upgrade", "Expect",         "Trailer"};

    for (size_t i = 0; i < COUNT(ours); i++)
        if (strcasecmp(name, ours[i]) == 0)
            return true;
    return false;
}

static ErrorCode header_read(Parser *parser, const char *key, Value value, HttpHeader *ret_header)
{
    Value raw = {key, (size_t)(scan_value_end(key) - key)};

    ret_header->name = string_copy(parser, raw);
    assert(ret_header->name); /* keys are strings */
    if (!header_is_valid(ret_header->name))
        return source_refuse(&parser->source, key, parser->reterr, "not the name of a header");
    if (header_is_ours(ret_header->name))
        return source_refuse(&parser->source, key, parser->reterr, "this header is set by the engine");
    if (value_kind(value) != VALUE_STRING)
        return source_refuse(&parser->source, value.bytes, parser->reterr, "must be text, got %s",
                             value_excerpt(value).text);
    return template_read(parser, value, /* is_text= */ true, &ret_header->value);
}

static ErrorCode headers_read(Parser *parser, const ProcessField *field, Value value, void *ret)
{
    HttpAction *http = ret;
    HttpHeader  headers[DEFINITION_HEADERS_MAX];
    int         count = 0;

    if (value_kind(value) != VALUE_OBJECT)
        return field_refuse(parser, field, value);
    const char *at = value.bytes + 1;
    while (scan_next(&at)) {
        const char *key = at, *text = scan_member_value(key);

        at = scan_value_end(text);
        if (count == DEFINITION_HEADERS_MAX)
            return source_refuse(&parser->source, key, parser->reterr, "a request may have at most %d headers",
                                 DEFINITION_HEADERS_MAX);
        TRY(header_read(parser, key, (Value){text, (size_t)(at - text)}, &headers[count]));
        for (int i = 0; i < count; i++)
            if (strcasecmp(headers[i].name, headers[count].name) == 0)
                return source_refuse(&parser->source, key, parser->reterr, "this header is there twice");
        count++;
    }
    if (count == 0)
        return OK;
    http->headers = memcpy(arena_array(parser->arena, HttpHeader, count), headers, sizeof headers[0] * (size_t)count);
    http->header_count = count;
    return OK;
}

/* ---- everything else ---- */

static ErrorCode object_read(Parser *parser, const ProcessField *field, Value value, void *ret)
{
    if (value_kind(value) != VALUE_OBJECT)
        return field_refuse(parser, field, value);
    return table_read(parser, field->table, value, ret);
}

static ErrorCode operation_field_read(Parser *parser, const ProcessField *field, Value value, void *ret)
{
    return operation_read(parser, field, value, ret);
}

static ErrorCode compensate_field_read(Parser *parser, const ProcessField *field, Value value, void *ret)
{
    return compensate_read(parser, field, value, ret);
}

static ErrorCode steps_field_read(Parser *parser, const ProcessField *field, Value value, void *ret)
{
    return steps_read(parser, field, value, ret);
}

static ErrorCode branches_field_read(Parser *parser, const ProcessField *field, Value value, void *ret)
{
    return branches_read(parser, field, value, ret);
}

typedef ErrorCode       FieldRead(Parser *parser, const ProcessField *field, Value value, void *ret);
static FieldRead *const field_reads[] = {
    [TYPE_NAME]       = name_read,
    [TYPE_NAMES]      = names_read,
    [TYPE_DOMAIN]     = name_read,
    [TYPE_TYPE]       = name_read,
    [TYPE_TARGET]     = name_read,
    [TYPE_LINE]       = line_read,
    [TYPE_FUNCTION]   = function_read,
    [TYPE_METHOD]     = word_read,
    [TYPE_WORD]       = word_read,
    [TYPE_CONTINUE]   = word_read,
    [TYPE_INTEGER]    = integer_read,
    [TYPE_REAL]       = real_read,
    [TYPE_DURATION]   = duration_read,
    [TYPE_CONDITION]  = condition_field_read,
    [TYPE_JSON]       = json_read,
    [TYPE_PATCH]      = json_read,
    [TYPE_LIST]       = json_read,
    [TYPE_TEXT]       = text_read,
    [TYPE_URL]        = text_read,
    [TYPE_HEADERS]    = headers_read,
    [TYPE_OPERATION]  = operation_field_read,
    [TYPE_SLEEP]      = sleep_read,
    [TYPE_OBJECT]     = object_read,
    [TYPE_COMPENSATE] = compensate_field_read,
    [TYPE_STEPS]      = steps_field_read,
    [TYPE_BRANCHES]   = branches_field_read,
};

ErrorCode field_read(Parser *parser, const ProcessField *field, Value value, void *row)
{
    bool      had_result = parser->has_result;
    ErrorCode code;

    parser->has_result     = parser->has_result || field->has_result;
    parser->is_after_round = field->is_after_round;
    code                   = field_reads[field->type](parser, field, value, (char *)row + field->offset);
    parser->has_result     = had_result;
    parser->is_after_round = false; /* a condition has no fields */
    return code;
}
