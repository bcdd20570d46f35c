/*
 * openapi.c - see openapi.h. Rows of one path are written together, in the order in which the path first appears.
 */
#include "api/openapi.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "api/scope.h"
#include "base/problem.h"
#include "base/writer.h"

#define SCHEMAS_MAX 96

static const char *const methods[HTTP_METHOD_COUNT] = {
    [HTTP_GET] = "get", [HTTP_POST] = "post", [HTTP_PUT] = "put", [HTTP_DELETE] = "delete"};

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
    write_words(writer, field->words);
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

static void write_body(Writer *writer, const Route *route)
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
        writer_raw(writer, "schema", "true");
    writer_end(writer);
    writer_end(writer);
    writer_end(writer);
}

/* ---- parameters ---- */

static void write_parameter_schema(Writer *writer, const RouteParameter *parameter)
{
    static const char *const types[] = {[PARAMETER_TEXT] = "string",
                                        [PARAMETER_I64]  = "integer",
                                        [PARAMETER_BOOL] = "boolean",
                                        [PARAMETER_UUID] = "string",
                                        [PARAMETER_TIME] = "string"};

    writer_object(writer, "schema");
    writer_text(writer, "type", types[parameter->type]);
    if (parameter->type == PARAMETER_UUID)
        writer_text(writer, "format", "uuid");
    if (parameter->type == PARAMETER_TIME)
        writer_text(writer, "format", "date-time");
    if (parameter->type == PARAMETER_I64) {
        writer_i64(writer, "minimum", parameter->min);
        if (parameter->max)
            writer_i64(writer, "maximum", parameter->max);
        if (parameter->fallback)
            writer_i64(writer, "default", parameter->fallback);
    }
    write_words(writer, parameter->words);
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

static bool takes_key(const Route *route)
{
    return route->method == HTTP_POST && !route->key_refused;
}

static void write_parameters(Writer *writer, const Route *route)
{
    writer_array(writer, "parameters");
    write_captures(writer, route);
    for (const RouteParameter *parameter = route->parameters; parameter && parameter->name; parameter++)
        write_parameter(writer, parameter, "query");
    if (takes_key(route))
        writer_raw(writer, NULL, "{\"$ref\":\"#/components/parameters/IdempotencyKey\"}");
    if (route->conditional)
        writer_raw(writer, NULL, "{\"$ref\":\"#/components/parameters/IfNoneMatch\"}");
    writer_end(writer);
}

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

static void write_answer_field(Writer *writer, const AnswerField *field)
{
    static const char *const types[] = {
        [ANSWER_I64] = "integer", [ANSWER_BOOL] = "boolean", [ANSWER_TEXT] = "string", [ANSWER_UUID] = "string",
        [ANSWER_TIME] = "string", [ANSWER_JSON] = NULL,      [ANSWER_ROWS] = "array"};

    if (field->type == ANSWER_OBJECT) {
        write_reference(writer, field->name, field->table->noun);
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
    write_words(writer, field->words);
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

static void write_answer(Writer *writer, const Route *route)
{
    char status[4];

    snprintf(status, sizeof status, "%d", route->status ? route->status : 200);
    writer_object(writer, "responses");
    writer_object(writer, status);
    writer_text(writer, "description", route->summary);
    writer_object(writer, "headers");
    write_header_reference(writer, "X-Request-Id");
    if (takes_key(route))
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

/* ---- operations ---- */

/* "post /v1/wallets/{owner}/spend" becomes "post_v1_wallets_owner_spend". */
static void write_operation_id(Writer *writer, const Route *route)
{
    char   id[128];
    size_t used = (size_t)snprintf(id, sizeof id, "%s", methods[route->method]);

    for (const char *p = route->path; *p && used + 1 < sizeof id; p++)
        if (isalnum((unsigned char)*p))
            id[used++] = *p;
        else if (id[used - 1] != '_' && !strchr("*}", *p))
            id[used++] = '_';
    id[used] = '\0';
    writer_text(writer, "operationId", id);
}

/* Each first segment behind /v1 is a tag; what has no version is "operations". */
static const char *const tags[][2] = {
    {"operations",   "health, metrics, alerts and this description"          },
    {"problems",     "what the types of problem documents mean"              },
    {"dead-letters", "operations that failed"                                },
    {"commands",     "sending, reading and canceling commands"               },
    {"batches",      "commands that are sent together"                       },
    {"domains",      "what workers do"                                       },
    {"processes",    "processes, their definitions, and decisions about them"},
    {"tsq",          "commands that wait for an operator"                    },
    {"wallets",      "wallets, their balances and entries"                   },
    {"transactions", "postings and holds"                                    },
    {"ledger",       "proof of the ledger"                                   },
    {"groups",       "ratings of groups"                                     },
};
static const char *const tag_of_segment[][2] = {
    {"alerts",              "operations"  },
    {"owners",              "wallets"     },
    {"process-definitions", "processes"   },
    {"transfers",           "transactions"},
    {"holds",               "transactions"},
};

static void write_tags(Writer *writer, const Route *route)
{
    const char *segment = strncmp(route->path, "/v1/", 4) == 0 ? route->path + 4 : route->path + 1;
    char        name[64];

    snprintf(name, sizeof name, "%.*s", (int)strcspn(segment, "/"), segment);
    const char *tag = "operations";
    for (size_t i = 0; i < COUNT(tags); i++)
        if (strcmp(tags[i][0], name) == 0)
            tag = tags[i][0];
    for (size_t i = 0; i < COUNT(tag_of_segment); i++)
        if (strcmp(tag_of_segment[i][0], name) == 0)
            tag = tag_of_segment[i][1];
    writer_array(writer, "tags");
    writer_text(writer, NULL, tag);
    writer_end(writer);
}

static void write_scope(Writer *writer, const Route *route)
{
    char names[SCOPE_TEXT_SIZE], bytes[SCOPE_TEXT_SIZE + 40] = "Open to everyone.";

    if (route->scope != SCOPE_NONE) {
        scope_print(scope_names, route->scope, names);
        snprintf(bytes, sizeof bytes, "Needs a token with the scope %s.", names);
    }
    if (route->scope == SCOPE_ALL)
        snprintf(bytes, sizeof bytes, "Needs a token with any scope.");
    writer_text(writer, "description", bytes);
}

static void write_operation(Writer *writer, const Route *route)
{
    writer_object(writer, methods[route->method]);
    writer_text(writer, "summary", route->summary);
    write_operation_id(writer, route);
    write_tags(writer, route);
    write_scope(writer, route);
    if (route->scope == SCOPE_NONE)
        writer_raw(writer, "security", "[]");
    write_parameters(writer, route);
    write_body(writer, route);
    write_answer(writer, route);
    writer_end(writer);
}

static bool is_first_of_path(const RouteTable *table, size_t row)
{
    for (size_t i = 0; i < row; i++)
        if (strcmp(table->rows[i].path, table->rows[row].path) == 0)
            return false;
    return true;
}

/* OpenAPI has no {path*}: there it is a parameter like any other. */
static void write_path_name(Writer *writer, const char *path)
{
    char   name[128];
    size_t used = 0;

    for (; *path && used + 1 < sizeof name; path++)
        if (*path != '*')
            name[used++] = *path;
    name[used] = '\0';
    writer_object(writer, name);
}

static void write_paths(Writer *writer, const RouteTable *table)
{
    writer_object(writer, "paths");
    for (size_t row = 0; row < table->count; row++) {
        if (!is_first_of_path(table, row))
            continue;
        write_path_name(writer, table->rows[row].path);
        for (size_t i = row; i < table->count; i++)
            if (strcmp(table->rows[i].path, table->rows[row].path) == 0)
                write_operation(writer, &table->rows[i]);
        writer_end(writer);
    }
    writer_end(writer);
}

/* ---- components ---- */

static const struct {
    const char *name, *schema, *help;
} headers[] = {
    {"X-Request-Id",         "{\"type\":\"string\"}",                     "the request's id; the client's own if it sent one"},
    {"ETag",                 "{\"type\":\"string\"}",                     "names this very content; for If-None-Match"       },
    {"Idempotency-Replayed", "{\"type\":\"string\",\"enum\":[\"true\"]}",
     "this is the response to an earlier request with the key"                                                               },
    {"Pawl-Balance",         "{\"type\":\"integer\"}",                    "the wallet's present balance"                     },
    {"Pawl-Status",          "{\"type\":\"string\"}",                     "the command's present status"                     },
    {"Pawl-Key-Days",        "{\"type\":\"integer\"}",                    "days after its end for which the id is known"     },
    {"Pawl-Next-Cursor",     "{\"type\":\"string\"}",                     "cursor of the next page, if there is one"         },
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

static void write_components(Writer *writer, const RouteTable *table)
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

static void write_info(Writer *writer)
{
    writer_object(writer, "info");
    writer_text(writer, "title", "pawl");
    writer_text(writer, "version", PAWL_VERSION);
    writer_text(writer, "description",
                "Commands, processes and a wallet ledger in PostgreSQL, each effect exactly once.");
    writer_raw(writer, "contact", "{\"name\":\"the operator of this server\"}");
    writer_raw(writer, "license", "{\"name\":\"Apache 2.0\",\"identifier\":\"Apache-2.0\"}");
    writer_end(writer);
    writer_raw(writer, "servers", "[{\"url\":\"/\",\"description\":\"the server that returned this description\"}]");
    writer_array(writer, "tags");
    for (size_t i = 0; i < COUNT(tags); i++) {
        writer_object(writer, NULL);
        writer_text(writer, "name", tags[i][0]);
        writer_text(writer, "description", tags[i][1]);
        writer_end(writer);
    }
    writer_end(writer);
}

const char *openapi_text(const RouteTable *table, Arena *arena)
{
    Text   text;
    Writer writer;

    text_init(&text, arena, TEXT_MAX_BODY);
    writer_open(&writer, &text);
    writer_object(&writer, NULL);
    writer_text(&writer, "openapi", "3.1.0");
    write_info(&writer);
    writer_raw(&writer, "security", "[{\"token\":[]}]");
    write_paths(&writer, table);
    write_components(&writer, table);
    writer_end(&writer);
    return text_string(&text);
}

Asset openapi_asset(const RouteTable *table, Arena *arena)
{
    const char *text  = openapi_text(table, arena);
    Asset       asset = {
              .type  = "application/json",
              .cache = "private, no-cache", /* a token is needed to read it */
              .plain = {text, strlen(text)}
    };

    asset_prepare(&asset);
    return asset;
}
