/*
 * route_test.c - which row a path finds.
 */
#include <string.h>

#include "http/route.h"
#include "test/harness/test.h"

static const Route rows[] = {
    {HTTP_GET,    "/"                        },
    {HTTP_GET,    "/v1/wallets/{owner}"      },
    {HTTP_POST,   "/v1/wallets/{owner}/spend"},
    {HTTP_GET,    "/v1/wallets/all"          },
    {HTTP_DELETE, "/v1/wallets/{owner}"      },
    {HTTP_GET,    "/v1/{kind}/all"           },
    {HTTP_GET,    "/assets/{name}"           },
    {HTTP_GET,    "/assets/{name}/map"       },
};
static const RouteTable table = {rows, COUNT(rows)};

#define PATH(...)                               \
    &(RoutePath)                                \
    {                                           \
        COUNT(((const char *[]){__VA_ARGS__})), \
        {                                       \
            __VA_ARGS__                         \
        }                                       \
    }

TEST(route_finds_literals_and_captures)
{
    RouteMatch match;
    Error      error;

    assert_ok(route_find(&table, HTTP_GET, PATH(""), &match, &error));
    assert_ptr_equal(match.route, &rows[0]);
    assert_ok(route_find(&table, HTTP_POST, PATH("v1", "wallets", "ann", "spend"), &match, &error));
    assert_ptr_equal(match.route, &rows[2]);
    assert_string_equal(route_capture(match.route, PATH("v1", "wallets", "ann", "spend"), "owner"), "ann");
    assert_null(route_capture(match.route, PATH("v1", "wallets", "ann", "spend"), "own"));
}

TEST(route_prefers_the_leftmost_literal)
{
    RouteMatch match;
    Error      error;

    assert_ok(route_find(&table, HTTP_GET, PATH("v1", "wallets", "all"), &match, &error));
    assert_ptr_equal(match.route, &rows[3]);
    assert_ok(route_find(&table, HTTP_GET, PATH("v1", "queues", "all"), &match, &error));
    assert_ptr_equal(match.route, &rows[5]);
    assert_ok(route_find(&table, HTTP_DELETE, PATH("v1", "wallets", "all"), &match, &error));
    assert_ptr_equal(match.route, &rows[4]);
}

TEST(route_distinguishes_unknown_paths_from_wrong_methods)
{
    RouteMatch match;
    Error      error;
    char       allow[ROUTE_ALLOW_SIZE];

    assert_code(ERR_NOT_FOUND, route_find(&table, HTTP_GET, PATH("v1"), &match, &error));
    assert_code(ERR_NOT_FOUND, route_find(&table, HTTP_GET, PATH("v1", "wallets", "ann", ""), &match, &error));
    assert_code(ERR_NOT_FOUND, route_find(&table, HTTP_GET, PATH("v1", "wallets", ""), &match, &error));
    assert_code(ERR_NOT_FOUND, route_find(&table, HTTP_GET, PATH("v1", "wallet", "ann"), &match, &error));
    assert_code(ERR_METHOD, route_find(&table, HTTP_PUT, PATH("v1", "wallets", "ann"), &match, &error));
    assert_contains(error.text, "GET, HEAD, DELETE");
    assert_code(ERR_METHOD,
                route_find(&table, HTTP_METHOD_COUNT, PATH("v1", "wallets", "ann", "spend"), &match, &error));
    route_allow(match.methods, allow);
    assert_string_equal(allow, "POST");
}

TEST(route_prefers_the_literal_and_captures_by_name)
{
    const RoutePath *file = PATH("assets", "a b%c\\"), *map = PATH("assets", "a", "map");
    RouteMatch       match;
    Error            error;

    assert_ok(route_find(&table, HTTP_GET, file, &match, &error));
    assert_ptr_equal(match.route, &rows[6]);
    assert_string_equal("a b%c\\", route_capture(match.route, file, "name"));
    assert_null(route_capture(match.route, file, "names"));
    assert_ok(route_find(&table, HTTP_GET, map, &match, &error));
    assert_ptr_equal(match.route, &rows[7]);
    assert_string_equal("a", route_capture(match.route, map, "name"));
}

TEST(route_scopes_are_printed_by_name)
{
    static const char *const names[] = {"read", "wallet", "admin", NULL};
    static const struct {
        Scope       scopes;
        const char *text;
    } cases[] = {
        {1,          "read"           },
        {1 | 2,      "read or wallet" },
        {2 | 4,      "wallet or admin"},
        {1 | 2 | 4,  "any"            },
        {SCOPE_NONE, ""               }
    };
    static const char *const four[] = {"a", "b", "c", "d", NULL};
    char                     text[SCOPE_TEXT_SIZE];

    for (size_t i = 0; i < COUNT(cases); i++) {
        scope_print(names, cases[i].scopes, text);
        assert_string_equal(text, cases[i].text);
    }
    scope_print(four, 1 | 2 | 8, text);
    assert_string_equal(text, "a, b or d");
}
