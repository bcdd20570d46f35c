/*
 * openapi.c - see openapi.h. Rows of one path are written together, in the order in which the path first appears.
 */
#include "api/openapi.h"

#include <stdio.h>
#include <string.h>

#include "api/key.h"
#include "api/openapi_internal.h"
#include "base/writer.h"

static const char *const methods[HTTP_METHOD_COUNT] = {
    [HTTP_GET] = "get", [HTTP_POST] = "post", [HTTP_PUT] = "put", [HTTP_DELETE] = "delete"};

/* ---- operations ---- */

static void write_operation_id(Writer *writer, const Route *route)
{
    char id[OPENAPI_ID_SIZE];

    openapi_operation_id(route, id);
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
    openapi_write_parameters(writer, route);
    openapi_write_body(writer, route);
    openapi_write_answer(writer, route);
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

/* ---- the description ---- */

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
    openapi_write_components(&writer, table);
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
