/*
 * openapi_test.c - the description is JSON, holds each route, and names what the tables say.
 */
#include "api/key.h"
#include "test/harness/test.h"

#include <ctype.h>
#include <jansson.h>
#include <string.h>

#include "api/openapi.h"
#include "api/openapi_internal.h"
#include "api/routes.h"

static const char *const methods[] = {
    [HTTP_GET] = "get", [HTTP_POST] = "post", [HTTP_PUT] = "put", [HTTP_DELETE] = "delete"};

static json_t *describe(const RouteTable *table)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    json_t                   *api   = json_loads(openapi_text(table, arena), JSON_REJECT_DUPLICATES, NULL);

    assert_non_null(api);
    return api;
}

static const json_t *operation(const json_t *api, const Route *route)
{
    return json_object_get(json_object_get(json_object_get(api, "paths"), route->path), methods[route->method]);
}

TEST(openapi_holds_every_route)
{
    json_t *api = describe(&routes_table);

    assert_string_equal(json_string_value(json_object_get(api, "openapi")), "3.1.0");
    for (size_t i = 0; i < routes_table.count; i++) {
        const Route  *route = &routes_table.rows[i];
        const json_t *item  = operation(api, route);

        assert_non_null(item);
        assert_string_equal(json_string_value(json_object_get(item, "summary")), route->summary);
        assert_int_equal(json_object_get(item, "security") != NULL, route->scope == SCOPE_NONE);
    }
    json_decref(api);
}

TEST(routes_that_are_open_to_everyone_read_no_body_before_their_head_is_checked)
{
    for (size_t i = 0; i < routes_table.count; i++) {
        const Route *route = &routes_table.rows[i];

        if (route->scope == SCOPE_NONE && (route->body || route->body_any)) {
            assert_non_null(route->on_head);
            assert_true(route->body_bytes_max > 0);
        }
    }
}

/* What writes may need a row that another transaction has locked. The bot's webhook waits for the combiner of sends, not for a lock. */
TEST(routes_that_write_run_on_no_executor)
{
    for (size_t i = 0; i < routes_table.count; i++) {
        const Route *route = &routes_table.rows[i];

        if (route->method != HTTP_GET && !route->is_inline)
            assert_string_equal(route->path, "/telegram/webhook");
    }
}

TEST(openapi_names_each_operation_once)
{
    json_t *api = describe(&routes_table), *seen = json_object();

    for (size_t i = 0; i < routes_table.count; i++) {
        const char *id = json_string_value(json_object_get(operation(api, &routes_table.rows[i]), "operationId"));

        assert_non_null(id);
        assert_null(json_object_get(seen, id));
        assert_in_range(id[0], 'a', 'z');
        for (const char *at = id; *at; at++)
            assert_true(isalnum((unsigned char)*at));
        json_object_set_new(seen, id, json_true());
    }
    json_decref(seen);
    json_decref(api);
}

TEST(openapi_names_operations_as_functions)
{
    static const struct {
        HttpMethod  method;
        const char *path, *id;
    } rows[] = {
        {HTTP_POST,   "/v1/commands",                      "sendCommand"            },
        {HTTP_GET,    "/v1/commands/{id}",                 "getCommand"             },
        {HTTP_POST,   "/v1/domains/{domain}/claim",        "claimCommands"          },
        {HTTP_POST,   "/v1/processes/{id}/signals/{name}", "signalProcess"          },
        {HTTP_POST,   "/v1/holds",                         "placeHold"              },
        {HTTP_POST,   "/v1/holds/{txn_id}/capture",        "captureHold"            },
 /* These follow from method and path. */
        {HTTP_GET,    "/v1/batches",                       "listBatches"            },
        {HTTP_GET,    "/v1/batches/{id}",                  "getBatch"               },
        {HTTP_POST,   "/v1/processes/bulk",                "bulkProcess"            },
        {HTTP_POST,   "/v1/schedules",                     "createSchedule"         },
        {HTTP_POST,   "/v1/schedules/{name}/run",          "runSchedule"            },
        {HTTP_GET,    "/v1/schedules/{name}/next",         "getScheduleNext"        },
        {HTTP_PUT,    "/v1/domains/{domain}/limits",       "setDomainLimits"        },
        {HTTP_DELETE, "/v1/domains/{domain}/retry-policy", "deleteDomainRetryPolicy"},
        {HTTP_GET,    "/v1/stats",                         "listStats"              },
        {HTTP_GET,    "/v1/entries/{id}",                  "getEntry"               },
        {HTTP_GET,    "/health/ready",                     "getHealthReady"         },
        {HTTP_DELETE, "/session",                          "deleteSession"          },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        char id[OPENAPI_ID_SIZE];

        openapi_operation_id(&(Route){rows[i].method, rows[i].path}, id);
        assert_string_equal(id, rows[i].id);
    }
}

static ErrorCode nothing(void *app, Request *request, Response *response, Error *reterr)
{
    (void)app;
    (void)request;
    (void)response;
    (void)reterr;
    return OK;
}

/* clang-format off */
static const char *const    colours[]    = {"red", "green", NULL};
static const Field          fields[]     = {
    {.name = "amount", .type = FIELD_I64, .required = true, .min = 1, .max = 9, .help = "how \"much\""},
    {.name = "colour", .type = FIELD_TEXT, .words = colours}};
static const FieldTable     body         = {.noun = "spend", .fields = fields, .count = COUNT(fields)};
static const RouteParameter parameters[] = {{"limit", "how many"}, {NULL, NULL}};
static const Route          row          = {
    HTTP_POST, "/v1/{owner}/spend", nothing, SCOPE_POST, .body = &body, .parameters = parameters, .summary = "Spend"};
/* clang-format on */

TEST(openapi_describes_parameters_and_bodies)
{
    const RouteTable table = {&row, 1};
    json_t          *api   = describe(&table);
    const json_t    *item  = operation(api, &row);
    const char      *id, *path_name, *path_in, *query_name, *required, *colour;
    json_int_t       least, most;
    json_error_t     error;

    if (json_unpack_ex((json_t *)(uintptr_t)item, &error, 0,
                       "{s:s, s:[{s:s,s:s},{s:s}], s:{s:{s:{s:{s:[s], s:{s:{s:I,s:I}, s:{s:[s,*]}}}}}}}", "operationId",
                       &id, "parameters", "name", &path_name, "in", &path_in, "name", &query_name, "requestBody",
                       "content", "application/json", "schema", "required", &required, "properties", "amount",
                       "minimum", &least, "maximum", &most, "colour", "enum", &colour) != 0)
        fail_msg("%s", error.text);
    assert_string_equal(id, "spendOwner");
    assert_string_equal(path_name, "owner");
    assert_string_equal(path_in, "path");
    assert_string_equal(query_name, "limit");
    assert_string_equal(required, "amount");
    assert_int_equal(least, 1);
    assert_int_equal(most, 9);
    assert_string_equal(colour, "red");
    json_decref(api);
}

static const Route file_row = {HTTP_GET,   "/assets/{path}",   nothing,
                               SCOPE_NONE, .summary = "Files", .conditional = true};

TEST(openapi_describes_conditional_answers)
{
    const RouteTable table = {&file_row, 1};
    json_t          *api   = describe(&table);
    const char      *id, *name, *condition, *tag;
    json_error_t     error;

    if (json_unpack_ex(api, &error, 0, "{s:{s:{s:{s:s, s:[{s:s},{s:s}], s:{s:{s:{s:{s:s}}}}}}}}", "paths",
                       "/assets/{path}", "get", "operationId", &id, "parameters", "name", &name, "$ref", &condition,
                       "responses", "304", "headers", "ETag", "$ref", &tag) != 0)
        fail_msg("%s", error.text);
    assert_string_equal(id, "getAsset");
    assert_string_equal(name, "path");
    assert_string_equal(condition, "#/components/parameters/IfNoneMatch");
    assert_string_equal(tag, "#/components/headers/ETag");
    assert_non_null(json_object_get(json_object_get(json_object_get(api, "components"), "headers"), "ETag"));
    json_decref(api);
}

/* clang-format off */
static const Field      keyed_fields[] = {
    {.name = "txn_id", .type = FIELD_UUID},
    {.name = "owner", .type = FIELD_TEXT, .min = 1, .length_max = 255}};
static const FieldTable keyed_body     = {.noun = "freeze", .fields = keyed_fields, .count = COUNT(keyed_fields)};
static const Route      keyed_row      = {HTTP_POST, "/v1/freeze", nothing, SCOPE_POST, .body = &keyed_body, .summary = "Freeze"};
/* clang-format on */

TEST(openapi_says_that_a_key_may_stand_in_the_header_and_a_body_may_be_left_out)
{
    const RouteTable table = {&keyed_row, 1};
    json_t          *api   = describe(&table);
    const char      *reference;
    int              required;
    json_int_t       least, most;
    const json_t    *owner;
    json_error_t     error;

    if (json_unpack_ex((json_t *)(uintptr_t)operation(api, &keyed_row), &error, 0,
                       "{s:[{s:s}], s:{s:b, s:{s:{s:{s:{s:o}}}}}}", "parameters", "$ref", &reference, "requestBody",
                       "required", &required, "content", "application/json", "schema", "properties", "owner",
                       &owner) != 0)
        fail_msg("%s", error.text);
    assert_string_equal(reference, "#/components/parameters/IdempotencyKey");
    assert_false(required);
    assert_int_equal(json_unpack((json_t *)(uintptr_t)owner, "{s:I, s:I}", "minLength", &least, "maxLength", &most), 0);
    assert_int_equal(least, 1);
    assert_int_equal(most, 255);
    assert_null(json_object_get(owner, "minimum"));
    json_decref(api);
}

/* clang-format off */
static const AnswerField coin_fields[]    = {{"amount", ANSWER_I64}, {"at", ANSWER_TIME, .nullable = true}};
static const AnswerTable coin             = {"Coin", coin_fields, COUNT(coin_fields)};
static const AnswerField purse_fields[]   = {{"coins", ANSWER_ROWS, .table = &coin}, {"note", ANSWER_TEXT, .optional = true}};
static const AnswerTable purse            = {"Purse", purse_fields, COUNT(purse_fields)};
static const RouteParameter coin_number[] = {{"id", "its number", PARAMETER_I64, .min = 1}, {NULL, NULL}};
static const Route answering_row          = {
    HTTP_POST, "/v1/coins/{id}", nothing, SCOPE_POST, .summary = "Count", .status = 201, .answer = &purse, .captures = coin_number,
    .key_refused = true};
/* clang-format on */

TEST(openapi_describes_answers_by_their_tables)
{
    const RouteTable table = {&answering_row, 1};
    json_t          *api   = describe(&table);
    const char      *reference, *place_type, *items, *required, *integer, *time, *null;
    json_error_t     error;

    if (json_unpack_ex((json_t *)(uintptr_t)operation(api, &answering_row), &error, 0,
                       "{s:[{s:{s:s}}!], s:{s:{s:{s:{s:{s:s}}}}}}", "parameters", "schema", "type", &place_type,
                       "responses", "201", "content", "application/json", "schema", "$ref", &reference) != 0 ||
        json_unpack_ex(api, &error, 0, "{s:{s:{s:{s:[s!], s:{s:{s:{s:s}}}}, s:{s:{s:{s:s}, s:{s:[s,s]}}}}}}",
                       "components", "schemas", "Purse", "required", &required, "properties", "coins", "items", "$ref",
                       &items, "Coin", "properties", "amount", "type", &integer, "at", "type", &time, &null) != 0)
        fail_msg("%s", error.text);
    assert_string_equal(place_type, "integer");
    assert_string_equal(reference, "#/components/schemas/Purse");
    assert_string_equal(required, "coins");
    assert_string_equal(items, "#/components/schemas/Coin");
    assert_string_equal(integer, "integer");
    assert_string_equal(null, "null");
    json_decref(api);
}
