/*
 * openapi_request.c - parameters and bodies of requests, from the tables of routes and fields; see openapi.h.
 */
#include <stdio.h>
#include <string.h>

#include "api/openapi_internal.h"

/* ---- bodies, from field tables ---- */

/* help may be NULL. */
static void write_table(Writer *writer, const char *name, const FieldTable *table, const char *help);

/* Of a number, of the items of an array, or of the length of a text. */
static void write_limits(Writer *writer, const Field *field)
{
    bool counted = field->type == FIELD_TEXTS || field->type == FIELD_ROWS;

    if (field->type == FIELD_TEXT) {
        if (field->min)
            writer_i64(writer, "minLength", field->min);
        if (field->length_max)
            writer_i64(writer, "maxLength", (int64_t)field->length_max);
        return;
    }
    if (field->min == 0 && field->max == 0)
        return;
    writer_i64(writer, counted ? "minItems" : "minimum", field->min);
    writer_i64(writer, counted ? "maxItems" : "maximum", field->max);
}

void openapi_write_words(Writer *writer, const char *const *words)
{
    if (!words)
        return;
    writer_array(writer, "enum");
    for (; *words; words++)
        writer_text(writer, NULL, *words);
    writer_end(writer);
}

static void write_field(Writer *writer, const Field *field)
{
    static const char *const types[] = {
        [FIELD_I64] = "integer", [FIELD_REAL] = "number", [FIELD_BOOL] = "boolean", [FIELD_TEXT] = "string",
        [FIELD_UUID] = "string", [FIELD_JSON] = NULL,     [FIELD_TEXTS] = "array",  [FIELD_ROWS] = "array"};

    if (field->type == FIELD_OBJECT) {
        write_table(writer, field->name, field->rows, field->help);
        return;
    }
    writer_object(writer, field->name);
    if (types[field->type])
        writer_text(writer, "type", types[field->type]);
    if (field->type == FIELD_UUID)
        writer_text(writer, "format", "uuid");
    write_limits(writer, field);
    openapi_write_words(writer, field->words);
    if (field->type == FIELD_TEXTS)
        writer_raw(writer, "items", "{\"type\":\"string\"}");
    if (field->type == FIELD_ROWS)
        write_table(writer, "items", field->rows, /* help= */ NULL);
    if (field->help)
        writer_text(writer, "description", field->help);
    writer_end(writer);
}

static bool table_requires(const FieldTable *table)
{
    for (size_t i = 0; table && i < table->count; i++)
        if (table->fields[i].required)
            return true;
    return false;
}

static void write_table(Writer *writer, const char *name, const FieldTable *table, const char *help)
{
    writer_object(writer, name);
    writer_text(writer, "type", "object");
    writer_text(writer, "title", table->noun);
    if (help)
        writer_text(writer, "description", help);
    writer_bool(writer, "additionalProperties", false);
    if (table_requires(table)) {
        writer_array(writer, "required");
        for (size_t i = 0; i < table->count; i++)
            if (table->fields[i].required)
                writer_text(writer, NULL, table->fields[i].name);
        writer_end(writer);
    }
    writer_object(writer, "properties");
    for (size_t i = 0; i < table->count; i++)
        write_field(writer, &table->fields[i]);
    writer_end(writer);
    writer_end(writer);
}

void openapi_write_body(Writer *writer, const Route *route)
{
    if (!route->body && !route->body_any)
        return;
    writer_object(writer, "requestBody");
    writer_bool(writer, "required", route->body_required || table_requires(route->body));
    writer_object(writer, "content");
    writer_object(writer, "application/json");
    if (route->body)
        write_table(writer, "schema", route->body, /* help= */ NULL);
    else
        writer_raw(writer, "schema", "{}");
    writer_end(writer);
    writer_end(writer);
    writer_end(writer);
}

/* ---- parameters ---- */

static void write_parameter_schema(Writer *writer, const RouteParameter *parameter)
{
    static const char *const types[] = {
        [PARAMETER_TEXT] = "string",  [PARAMETER_I64] = "integer", [PARAMETER_SECONDS] = "number",
        [PARAMETER_BOOL] = "boolean", [PARAMETER_UUID] = "string", [PARAMETER_TIME] = "string"};

    writer_object(writer, "schema");
    writer_text(writer, "type", types[parameter->type]);
    if (parameter->type == PARAMETER_UUID)
        writer_text(writer, "format", "uuid");
    if (parameter->type == PARAMETER_TIME)
        writer_text(writer, "format", "date-time");
    if (parameter->type == PARAMETER_I64 || parameter->type == PARAMETER_SECONDS) {
        writer_i64(writer, "minimum", parameter->min);
        if (parameter->max)
            writer_i64(writer, "maximum", parameter->max);
        if (parameter->fallback)
            writer_i64(writer, "default", parameter->fallback);
    }
    openapi_write_words(writer, parameter->words);
    writer_end(writer);
}

static void write_parameter(Writer *writer, const RouteParameter *parameter, const char *in)
{
    writer_object(writer, NULL);
    writer_text(writer, "name", parameter->name);
    writer_text(writer, "in", in);
    if (strcmp(in, "path") == 0)
        writer_bool(writer, "required", true);
    if (parameter->help)
        writer_text(writer, "description", parameter->help);
    write_parameter_schema(writer, parameter);
    writer_end(writer);
}

/* What {name} in a path means wherever its route does not say otherwise. */
static const RouteParameter captures[] = {
    {"owner", "owner of the wallet; @system is the world outside"},
    {"domain", "name of the domain"},
    {"name", "name of the response that the process waits for, or will"},
    {"id", "id of the command, batch or process", PARAMETER_UUID},
    {"txn_id", "id of the transaction or hold", PARAMETER_UUID},
    {"type", "name of the problem's type"},
    {NULL, NULL},
};

static const RouteParameter *capture_find(const RouteParameter *list, const char *name, size_t length)
{
    for (; list && list->name; list++)
        if (strlen(list->name) == length && memcmp(list->name, name, length) == 0)
            return list;
    return NULL;
}

static void write_captures(Writer *writer, const Route *route)
{
    for (const char *open = route->path; (open = strchr(open, '{')); open++) {
        size_t                length  = strcspn(open + 1, "*}");
        const RouteParameter *capture = capture_find(route->captures, open + 1, length);
        char                  name[64];

        if (!capture)
            capture = capture_find(captures, open + 1, length);
        snprintf(name, sizeof name, "%.*s", (int)length, open + 1);
        write_parameter(writer, capture ? capture : &(RouteParameter){.name = name}, "path");
    }
}

bool openapi_takes_key(const Route *route)
{
    return route->method == HTTP_POST && !route->key_refused;
}

void openapi_write_parameters(Writer *writer, const Route *route)
{
    writer_array(writer, "parameters");
    write_captures(writer, route);
    for (const RouteParameter *parameter = route->parameters; parameter && parameter->name; parameter++)
        write_parameter(writer, parameter, "query");
    if (openapi_takes_key(route))
        writer_raw(writer, NULL, "{\"$ref\":\"#/components/parameters/IdempotencyKey\"}");
    if (route->conditional)
        writer_raw(writer, NULL, "{\"$ref\":\"#/components/parameters/IfNoneMatch\"}");
    writer_end(writer);
}
