/*
 * openapi_response.c - responses, from the tables of answers, and the components that all operations refer to; see openapi.h.
 */
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "api/openapi_internal.h"
#include "base/problem.h"

#define SCHEMAS_MAX 512

/* ---- answers, from their tables ---- */

static void write_reference(Writer *writer, const char *name, const char *noun)
{
    char reference[128];

    snprintf(reference, sizeof reference, "#/components/schemas/%s", noun);
    writer_object(writer, name);
    writer_text(writer, "$ref", reference);
    writer_end(writer);
}

static void write_answer_type(Writer *writer, const char *type, bool nullable)
{
    if (!nullable) {
        writer_text(writer, "type", type);
        return;
    }
    writer_array(writer, "type");
    writer_text(writer, NULL, type);
    writer_text(writer, NULL, "null");
    writer_end(writer);
}

static void write_answer_object(Writer *writer, const AnswerField *field)
{
    if (!field->nullable) {
        write_reference(writer, field->name, field->table->noun);
        return;
    }
    writer_object(writer, field->name);
    writer_array(writer, "oneOf");
    write_reference(writer, NULL, field->table->noun);
    writer_raw(writer, NULL, "{\"type\":\"null\"}");
    writer_end(writer);
    if (field->help)
        writer_text(writer, "description", field->help);
    writer_end(writer);
}

static void write_answer_field(Writer *writer, const AnswerField *field)
{
    static const char *const types[] = {
        [ANSWER_I64] = "integer", [ANSWER_BOOL] = "boolean", [ANSWER_TEXT] = "string", [ANSWER_UUID] = "string",
        [ANSWER_TIME] = "string", [ANSWER_JSON] = NULL,      [ANSWER_ROWS] = "array"};

    if (field->type == ANSWER_OBJECT) {
        write_answer_object(writer, field);
        return;
    }
    writer_object(writer, field->name);
    if (types[field->type])
        write_answer_type(writer, types[field->type], field->nullable);
    if (field->type == ANSWER_I64)
        writer_text(writer, "format", "int64");
    if (field->type == ANSWER_UUID)
        writer_text(writer, "format", "uuid");
    if (field->type == ANSWER_TIME)
        writer_text(writer, "format", "date-time");
    openapi_write_words(writer, field->words);
    if (field->type == ANSWER_ROWS)
        write_reference(writer, "items", field->table->noun);
    if (field->help || !types[field->type])
        writer_text(writer, "description", field->help ? field->help : "any JSON");
    writer_end(writer);
}

static void write_answer_table(Writer *writer, const AnswerTable *table)
{
    writer_object(writer, table->noun);
    writer_text(writer, "type", "object");
    writer_array(writer, "required");
    for (size_t i = 0; i < table->count; i++)
        if (!table->fields[i].optional)
            writer_text(writer, NULL, table->fields[i].name);
    writer_end(writer);
    writer_object(writer, "properties");
    for (size_t i = 0; i < table->count; i++)
        write_answer_field(writer, &table->fields[i]);
    writer_end(writer);
    writer_end(writer);
}

typedef struct {
    const AnswerTable *list[SCHEMAS_MAX];
    size_t             count;
} Schemas;

/* This table and those it leads to, each once. */
static void schemas_add(Schemas *schemas, const AnswerTable *table)
{
    if (!table)
        return;
    for (size_t i = 0; i < schemas->count; i++)
        if (schemas->list[i] == table)
            return;
    assert(schemas->count < SCHEMAS_MAX);
    schemas->list[schemas->count++] = table;
    for (size_t i = 0; i < table->count; i++)
        schemas_add(schemas, table->fields[i].table);
}

static void write_answer_schema(Writer *writer, const Route *route)
{
    if (!route->answer_or) {
        write_reference(writer, "schema", route->answer->noun);
        return;
    }
    writer_object(writer, "schema");
    writer_array(writer, "oneOf");
    write_reference(writer, NULL, route->answer->noun);
    write_reference(writer, NULL, route->answer_or->noun);
    writer_end(writer);
    writer_end(writer);
}

static void write_answer_content(Writer *writer, const Route *route)
{
    if (!route->answer && !route->answer_type)
        return;
    writer_object(writer, "content");
    if (route->answer) {
        writer_object(writer, "application/json");
        write_answer_schema(writer, route);
        if (route->example)
            writer_raw(writer, "example", route->example);
        writer_end(writer);
    }
    if (route->answer_type) {
        writer_object(writer, route->answer_type);
        writer_raw(writer, "schema", "{\"type\":\"string\"}");
        writer_end(writer);
    }
    writer_end(writer);
}

static void write_header_reference(Writer *writer, const char *name)
{
    char reference[128];

    snprintf(reference, sizeof reference, "#/components/headers/%s", name);
    writer_object(writer, name);
    writer_text(writer, "$ref", reference);
    writer_end(writer);
}

void openapi_write_answer(Writer *writer, const Route *route)
{
    char status[4];

    snprintf(status, sizeof status, "%d", route->status ? route->status : 200);
    writer_object(writer, "responses");
    writer_object(writer, status);
    writer_text(writer, "description", route->summary);
    writer_object(writer, "headers");
    write_header_reference(writer, "X-Request-Id");
    if (openapi_takes_key(route))
        write_header_reference(writer, "Idempotency-Replayed");
    if (route->conditional)
        write_header_reference(writer, "ETag");
    for (const char *const *header = route->headers; header && *header; header++)
        write_header_reference(writer, *header);
    writer_end(writer);
    write_answer_content(writer, route);
    writer_end(writer);
    if (route->conditional)
        writer_raw(writer, "304",
                   "{\"description\":\"the client's If-None-Match names what it would get\",\"headers\":{\"ETag\":"
                   "{\"$ref\":\"#/components/headers/ETag\"}}}");
    writer_raw(writer, "4XX", "{\"$ref\":\"#/components/responses/Problem\"}");
    writer_raw(writer, "5XX", "{\"$ref\":\"#/components/responses/Problem\"}");
    writer_end(writer);
}

/* ---- components ---- */

static const struct {
    const char *name, *schema, *help;
} headers[] = {
    {"X-Request-Id",         "{\"type\":\"string\"}",                     "the request's id; the client's own if it sent one"                },
    {"ETag",                 "{\"type\":\"string\"}",                     "names this very content; for If-None-Match"                       },
    {"Idempotency-Replayed", "{\"type\":\"string\",\"enum\":[\"true\"]}",
     "this is the response to an earlier request with the key"                                                                               },
    {"Pawl-Balance",         "{\"type\":\"integer\"}",                    "the wallet's present balance"                                     },
    {"Pawl-Status",          "{\"type\":\"string\"}",                     "the command's present status"                                     },
    {"Pawl-Note",            "{\"type\":\"string\"}",                     "for people: what may be wrong with the name of the domain or type"},
    {"Pawl-Key-Days",        "{\"type\":\"integer\"}",                    "days after its end for which the id is known"                     },
    {"Pawl-Next-Cursor",     "{\"type\":\"string\"}",                     "cursor of the next page, if there is one"                         },
};

static void write_headers(Writer *writer)
{
    writer_object(writer, "headers");
    for (size_t i = 0; i < COUNT(headers); i++) {
        writer_object(writer, headers[i].name);
        writer_text(writer, "description", headers[i].help);
        writer_raw(writer, "schema", headers[i].schema);
        writer_end(writer);
    }
    writer_end(writer);
}

/* The values of a problem's type, as they stand in documents. */
static void write_problem_types(Writer *writer)
{
    Problem problem;

    writer_array(writer, "enum");
    for (size_t i = 0; problem_at(i, &problem); i++) {
        char type[128];

        snprintf(type, sizeof type, "/problems/%s", problem.type);
        writer_text(writer, NULL, type);
    }
    writer_end(writer);
}

static void write_problem(Writer *writer)
{
    writer_object(writer, "Problem");
    writer_text(writer, "type", "object");
    writer_raw(writer, "required", "[\"type\",\"title\",\"status\",\"detail\",\"instance\"]");
    writer_object(writer, "properties");
    writer_object(writer, "type");
    writer_text(writer, "type", "string");
    writer_text(writer, "format", "uri-reference");
    writer_text(writer, "description", "stable name of the kind of problem; GET it to read what it means");
    write_problem_types(writer);
    writer_end(writer);
    writer_raw(writer, "title", "{\"type\":\"string\"}");
    writer_raw(writer, "status", "{\"type\":\"integer\",\"minimum\":400,\"maximum\":599}");
    writer_raw(writer, "detail", "{\"type\":\"string\",\"description\":\"what is wrong and what would be right\"}");
    writer_raw(writer, "instance",
               "{\"type\":\"string\",\"description\":\"the request's id, or the transaction that was refused\"}");
    writer_end(writer);
    writer_end(writer);
}

static void write_schemas(Writer *writer, const RouteTable *table)
{
    Schemas schemas = {.count = 0};

    for (size_t i = 0; i < table->count; i++) {
        schemas_add(&schemas, table->rows[i].answer);
        schemas_add(&schemas, table->rows[i].answer_or);
    }
    writer_object(writer, "schemas");
    write_problem(writer);
    for (size_t i = 0; i < schemas.count; i++)
        write_answer_table(writer, schemas.list[i]);
    writer_end(writer);
}

void openapi_write_components(Writer *writer, const RouteTable *table)
{
    writer_object(writer, "components");
    writer_raw(writer, "securitySchemes",
               "{\"token\":{\"type\":\"http\",\"scheme\":\"bearer\",\"description\":\"a token of pawl key create\"}}");
    writer_raw(
        writer, "parameters",
        "{\"IdempotencyKey\":{\"name\":\"Idempotency-Key\",\"in\":\"header\",\"description\":\"the key of the request, "
        "bare or quoted; where the body has an id, instead of it\",\"schema\":{\"type\":\"string\",\"minLength\":1,"
        "\"maxLength\":200}},\"IfNoneMatch\":{\"name\":\"If-None-Match\",\"in\":\"header\",\"description\":\"entity "
        "tags of "
        "earlier answers\",\"schema\":{\"type\":\"string\"}}}");
    write_headers(writer);
    writer_raw(
        writer, "responses",
        "{\"Problem\":{\"description\":\"a problem document, RFC 9457\",\"content\":{\"application/problem+json\":"
        "{\"schema\":{\"$ref\":\"#/components/schemas/Problem\"}}}}}");
    write_schemas(writer, table);
    writer_end(writer);
}
