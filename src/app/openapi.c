/*
 * openapi.c - see openapi.h. Rows of one path are written together, in the order in which the path first appears.
 */
#include "app/openapi.h"

#include <ctype.h>
#include <string.h>

#include "base/writer.h"

static const char *const methods[HTTP_METHOD_COUNT] = {
    [HTTP_GET] = "get", [HTTP_POST] = "post", [HTTP_PUT] = "put", [HTTP_DELETE] = "delete"};

/* ---- bodies, from field tables ---- */

static void write_table(Writer *writer, const char *name, const FieldTable *table);

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

static void write_words(Writer *writer, const char *const *words)
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

    writer_object(writer, field->name);
    if (types[field->type])
        writer_text(writer, "type", types[field->type]);
    if (field->type == FIELD_UUID)
        writer_text(writer, "format", "uuid");
    write_limits(writer, field);
    write_words(writer, field->words);
    if (field->type == FIELD_TEXTS)
        writer_raw(writer, "items", "{\"type\":\"string\"}");
    if (field->type == FIELD_ROWS)
        write_table(writer, "items", field->rows);
    if (field->help)
        writer_text(writer, "description", field->help);
    writer_end(writer);
}

static void write_table(Writer *writer, const char *name, const FieldTable *table)
{
    writer_object(writer, name);
    writer_text(writer, "type", "object");
    writer_text(writer, "title", table->noun);
    writer_bool(writer, "additionalProperties", false);
    writer_array(writer, "required");
    for (size_t i = 0; i < table->count; i++)
        if (table->fields[i].required)
            writer_text(writer, NULL, table->fields[i].name);
    writer_end(writer);
    writer_object(writer, "properties");
    for (size_t i = 0; i < table->count; i++)
        write_field(writer, &table->fields[i]);
    writer_end(writer);
    writer_end(writer);
}

static bool table_requires(const FieldTable *table)
{
    for (size_t i = 0; table && i < table->count; i++)
        if (table->fields[i].required)
            return true;
    return false;
}

/* A UUID is the key of what the body asks for. */
static bool table_has_key(const FieldTable *table)
{
    for (size_t i = 0; table && i < table->count; i++)
        if (table->fields[i].type == FIELD_UUID)
            return true;
    return false;
}

static void write_body(Writer *writer, const Route *route)
{
    if (!route->body && !route->body_any)
        return;
    writer_object(writer, "requestBody");
    writer_bool(writer, "required", table_requires(route->body));
    writer_object(writer, "content");
    writer_object(writer, "application/json");
    if (route->body)
        write_table(writer, "schema", route->body);
    else
        writer_raw(writer, "schema", "true");
    writer_end(writer);
    writer_end(writer);
    writer_end(writer);
}

/* ---- parameters ---- */

static void write_parameter(Writer *writer, const char *name, const char *place, const char *help)
{
    writer_object(writer, NULL);
    writer_text(writer, "name", name);
    writer_text(writer, "in", place);
    if (strcmp(place, "path") == 0)
        writer_bool(writer, "required", true);
    if (help)
        writer_text(writer, "description", help);
    writer_raw(writer, "schema", "{\"type\":\"string\"}");
    writer_end(writer);
}

static void write_parameters(Writer *writer, const Route *route)
{
    writer_array(writer, "parameters");
    for (const char *open = route->path; (open = strchr(open, '{')); open++) {
        char name[64];

        snprintf(name, sizeof name, "%.*s", (int)strcspn(open + 1, "}"), open + 1);
        write_parameter(writer, name, "path", NULL);
    }
    for (const RouteParameter *parameter = route->parameters; parameter && parameter->name; parameter++)
        write_parameter(writer, parameter->name, "query", parameter->help);
    if (table_has_key(route->body))
        write_parameter(writer, "Idempotency-Key", "header", "the key, bare or quoted, instead of in the body");
    writer_end(writer);
}

/* ---- operations ---- */

/* "post /v1/wallets/{owner}/spend" becomes "post_v1_wallets_owner_spend". */
static void write_operation_id(Writer *writer, const Route *route)
{
    char   id[128];
    size_t used = (size_t)snprintf(id, sizeof id, "%s", methods[route->method]);

    for (const char *p = route->path; *p && used + 1 < sizeof id; p++)
        if (isalnum((unsigned char)*p))
            id[used++] = *p;
        else if (id[used - 1] != '_' && *p != '}')
            id[used++] = '_';
    id[used] = '\0';
    writer_text(writer, "operationId", id);
}

static void write_operation(Writer *writer, const Route *route)
{
    writer_object(writer, methods[route->method]);
    writer_text(writer, "summary", route->summary);
    write_operation_id(writer, route);
    if (route->scope == SCOPE_NONE)
        writer_raw(writer, "security", "[]");
    write_parameters(writer, route);
    write_body(writer, route);
    writer_object(writer, "responses");
    writer_object(writer, "2XX");
    writer_text(writer, "description", "done");
    if (route->answers)
        writer_raw(writer, "content", route->answers);
    writer_end(writer);
    writer_raw(writer, "default", "{\"$ref\":\"#/components/responses/Problem\"}");
    writer_end(writer);
    writer_end(writer);
}

static bool is_first_of_path(const RouteTable *table, size_t row)
{
    for (size_t i = 0; i < row; i++)
        if (strcmp(table->rows[i].path, table->rows[row].path) == 0)
            return false;
    return true;
}

static void write_paths(Writer *writer, const RouteTable *table)
{
    writer_object(writer, "paths");
    for (size_t row = 0; row < table->count; row++) {
        if (!is_first_of_path(table, row))
            continue;
        writer_object(writer, table->rows[row].path);
        for (size_t i = row; i < table->count; i++)
            if (strcmp(table->rows[i].path, table->rows[row].path) == 0)
                write_operation(writer, &table->rows[i]);
        writer_end(writer);
    }
    writer_end(writer);
}

static const char components[] =
    "{\"securitySchemes\":{\"token\":{\"type\":\"http\",\"scheme\":\"bearer\"}},"
    "\"schemas\":{\"Problem\":{\"type\":\"object\",\"required\":[\"type\",\"title\",\"status\"],\"properties\":{"
    "\"type\":{\"type\":\"string\",\"description\":\"stable name of the kind of problem\"},"
    "\"title\":{\"type\":\"string\"},\"status\":{\"type\":\"integer\"},"
    "\"detail\":{\"type\":\"string\",\"description\":\"what was wrong and what would be right\"},"
    "\"instance\":{\"type\":\"string\",\"description\":\"the request's id\"}}}},"
    "\"responses\":{\"Problem\":{\"description\":\"RFC 9457 problem\",\"content\":{\"application/problem+json\":"
    "{\"schema\":{\"$ref\":\"#/components/schemas/Problem\"}}}}}}";

const char *openapi_text(const RouteTable *table, Arena *arena)
{
    Text   text;
    Writer writer;

    text_init(&text, arena, TEXT_MAX_BODY);
    writer_open(&writer, &text);
    writer_object(&writer, NULL);
    writer_text(&writer, "openapi", "3.1.0");
    writer_object(&writer, "info");
    writer_text(&writer, "title", "pawl");
    writer_text(&writer, "version", PAWL_VERSION);
    writer_text(&writer, "description", "State in PostgreSQL that moves forward exactly once");
    writer_end(&writer);
    writer_raw(&writer, "security", "[{\"token\":[]}]");
    write_paths(&writer, table);
    writer_raw(&writer, "components", components);
    writer_end(&writer);
    return text_string(&text);
}
