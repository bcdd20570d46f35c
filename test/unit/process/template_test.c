/*
 * template_test.c - what templates render, byte for byte, and what they refuse.
 */
#include "process/template.h"

#include <stdlib.h>
#include <string.h>

#include "base/reader.h"
#include "test/harness/test.h"
#include "test/unit/process/lookup.h"

#define STATE                                                                                               \
    "{\"id\": 12345678901234567890123456789012345678901234567890, \"rate\": 1.10, \"tiny\": 1e-400, "       \
    "\"name\": \"J\\u00fcrgen \\\"J\\\" \\ud83d\\ude00\", \"empty\": \"\", \"none\": null, \"yes\": true, " \
    "\"list\": [ 10, {\"a\": [\"x\", \"y\"]} , [] ], \"order\": {\"id\" : 7 , \"0\": \"zero\"}, "           \
    "\"first name\": \"Ada\", \"a\\nb\": 1, \"\xc3\xbc\": \"umlaut\"}"

static const Documents documents = {
    .state = STATE, .item = "{\"sku\":\"s-1\"}", .index = "3", .result = " [1, 2] ", .reserve = "\"r-1\""};

static Value json(const char *text)
{
    return value_trim(text, strlen(text));
}

static ErrorCode render(const char *source, bool is_text, Arena *arena, Text *text, Error *error)
{
    const Template *template;
    const char                *at;
    scoped_documents Documents copy = documents;

    text_init(text, arena, 4096);
    TRY(is_text ? template_compile_text(json(source), arena, &template, &at, error)
                : template_compile(json(source), arena, &template, &at, error));
    return template_render(template, documents_lookup, &copy, text, error);
}

static void assert_renders(const char *source, bool is_text, const char *expected)
{
    scoped(arena_free) Arena *arena = arena_new(1 << 20);
    Text                      text;
    Error                     error = {0};

    assert_ok(render(source, is_text, arena, &text, &error));
    assert_string_equal(expected, text_string(&text));
    if (!is_text)
        assert_ok(reader_check(text_string(&text), text.length, &error));
}

static void assert_refuses(const char *source, const char *at_text, const char *why)
{
    scoped(arena_free) Arena *arena = arena_new(1 << 20);
    const Template *template;
    const char *at    = NULL;
    Error       error = {0};

    assert_code(ERR_INVALID, template_compile(json(source), arena, &template, &at, &error));
    assert_string_equal(why, error.text);
    assert_true(at >= source && at <= source + strlen(source));
    if (strncmp(at, at_text, strlen(at_text)) != 0)
        fail_msg("%s: refused at %s, not at %s", source, at, at_text);
}

TEST(template_whole_path_is_the_value_byte_for_byte)
{
    assert_renders("\"{{state.id}}\"", false, "12345678901234567890123456789012345678901234567890");
    assert_renders("\"{{state.rate}}\"", false, "1.10");
    assert_renders("\"{{state.tiny}}\"", false, "1e-400");
    assert_renders("\"{{ state.name }}\"", false, "\"J\\u00fcrgen \\\"J\\\" \\ud83d\\ude00\"");
    assert_renders("\"{{state.none}}\"", false, "null");
    assert_renders("\"{{state.yes}}\"", false, "true");
    assert_renders("\"{{state.list.1}}\"", false, "{\"a\": [\"x\", \"y\"]}");
    assert_renders("\"{{state.list.1.a.1}}\"", false, "\"y\"");
    assert_renders("\"{{state.list.2}}\"", false, "[]");
    assert_renders("\"{{state.order.0}}\"", false, "\"zero\"");
    assert_renders("\"{{result}}\"", false, "[1, 2]");
    assert_renders("\"{{result.1}}\"", false, "2");
    assert_renders("\"{{index}}\"", false, "3");
    assert_renders("\"{{item.sku}}\"", false, "\"s-1\"");
    assert_renders("\"{{steps.reserve}}\"", false, "\"r-1\"");
    assert_renders("\"{{process.id}}\"", false, "\"0190a5d0-0000-7000-8000-000000000001\"");
}

TEST(template_part_of_a_string_is_text)
{
    assert_renders("\"order {{state.order.id}}, {{state.rate}}!\"", false, "\"order 7, 1.10!\"");
    assert_renders("\"{{process.domain}}/{{process.type}}\"", false, "\"shop/order\"");
    assert_renders("\"<{{state.name}}>\"", false, "\"<J\\u00fcrgen \\\"J\\\" \\ud83d\\ude00>\"");
    assert_renders("\"<{{state.name}}>\"", true, "<J\xc3\xbcrgen \"J\" \xf0\x9f\x98\x80>");
    assert_renders("\"<{{item}}>\"", false, "\"<{\\\"sku\\\":\\\"s-1\\\"}>\"");
    assert_renders("\"<{{state.none}}{{state.empty}}>\"", false, "\"<null>\"");
    assert_renders("\"{{index}}{{index}}\"", false, "\"33\"");
    assert_renders("\"\\t{{index}}\\u00e4\\\\\"", false,
                   "\"\\u0009"
                   "3\xc3\xa4\\\\\"");
    assert_renders("\"\\t{{index}}\\u00e4\\\\\"", true, "\t3\xc3\xa4\\");
}

TEST(template_walks_objects_and_arrays_and_leaves_the_rest_alone)
{
    assert_renders("{\"a\" : [1.50, \"{{index}}\", \"x\"], \"b\": {\"c\": \"n{{index}}\"} , \"d\":\"\\u00e9\"}", false,
                   "{\"a\" : [1.50, 3, \"x\"], \"b\": {\"c\": \"n3\"} , \"d\":\"\\u00e9\"}");
    assert_renders("{}", false, "{}");
    assert_renders("-0.0", false, "-0.0");
    assert_renders("null", false, "null");
    assert_renders("\"\"", false, "\"\"");
    assert_renders("\"\"", true, "");
}

static ErrorCode render_url(const char *source, const char *state, Arena *arena, Text *text, Error *error)
{
    const Template *template;
    const char                *at;
    scoped_documents Documents copy = {.state = state};

    text_init(text, arena, 4096);
    TRY(template_compile_text(json(source), arena, &template, &at, error));
    return template_render_url(template, documents_lookup, &copy, text, error);
}

TEST(template_values_stay_inside_their_part_of_a_url)
{
    static const struct {
        const char *source, *state, *expected;
    } rows[] = {
        {"\"http://h/orders/{{state.id}}/pay\"", "{\"id\":\"../admin/delete?x=\"}",
         "http://h/orders/..%2Fadmin%2Fdelete%3Fx%3D/pay"                                                                 },
        {"\"http://h/orders/{{state.id}}/pay\"", "{\"id\":\"1/refund#\"}",          "http://h/orders/1%2Frefund%23/pay"   },
        {"\"http://h/?q={{state.id}}&n=1\"",     "{\"id\":\"a&b=\\u00fc %\"}",      "http://h/?q=a%26b%3D%C3%BC%20%25&n=1"},
        {"\"http://{{state.id}}/x\"",            "{\"id\":\"user@evil:1\"}",        "http://user%40evil%3A1/x"            },
        {"\"{{state.id}}/x/{{state.id}}\"",      "{\"id\":\"http://h\"}",           "http://h/x/http%3A%2F%2Fh"           },
        {"\"http://h/{{state.id}}\"",            "{\"id\":12.50}",                  "http://h/12.50"                      },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        scoped(arena_free) Arena *arena = arena_new(1 << 20);
        Error                     error = {0};
        Text                      text;

        assert_ok(render_url(rows[i].source, rows[i].state, arena, &text, &error));
        assert_string_equal(rows[i].expected, text_string(&text));
        assert_code(ERR_INVALID, render_url("\"http://h/{{state.id}}/x\"", "{\"id\":\"..\"}", arena, &text, &error));
    }
}

TEST(value_items_are_walked_in_order)
{
    static const char *const arrays[] = {"[]", "[ 1 , [2,[3]], {\"a\":[4]} , \"x,]\\\"\",null]", "[[],[],[]]",
                                         "{\"a\":1}", "7"};
    static const int64_t     counts[] = {0, 5, 3, 0, 0};

    for (size_t i = 0; i < COUNT(arrays); i++) {
        Value       array = json(arrays[i]), item;
        const char *at    = NULL;
        int64_t     index = 0;

        for (; value_item_next(array, &at, &item); index++) {
            Value same = value_item(array, index);

            assert_true(item.bytes == same.bytes && item.size == same.size);
        }
        assert_int_equal(counts[i], index);
        assert_int_equal(counts[i], value_item_count(array));
    }
}

TEST(template_braces_can_be_written)
{
    assert_renders("\"{{\\\"{{\\\"}}\"", false, "\"{{\"");
    assert_renders("\"a {{\\\"{{\\\"}}x}} b\"", false, "\"a {{x}} b\"");
    assert_renders("\"{{\\\"{{\\\"}}{{index}}}}\"", true, "{{3}}");
    assert_renders("\"}} { } {x}\"", false, "\"}} { } {x}\"");
}

TEST(template_escaped_braces_are_braces)
{
    assert_renders("\"\\u007b\\u007bindex}}\"", false, "3");
    assert_renders("\"\\u00fc\\ud83d\\ude00{{index\\u007d}\"", false,
                   "\"\xc3\xbc\xf0\x9f\x98\x80"
                   "3\"");
}

TEST(template_names_of_any_kind)
{
    assert_renders("\"{{state.\\\"first name\\\"}}\"", false, "\"Ada\"");
    assert_renders("\"{{state.\xc3\xbc}}\"", false, "\"umlaut\"");
    assert_renders("\"{{state.\\\"a\\nb\\\"}}\"", false, "1");
}

TEST(template_optional_values)
{
    assert_renders("\"{{state.nothing?}}\"", false, "null");
    assert_renders("\"<{{state.nothing?}}{{state.none?}}{{state.rate?}}>\"", false, "\"<1.10>\"");
    assert_renders("\"{{steps.ship.id?}}\"", false, "null");
    assert_renders("\"x{{steps.ship.id?}}\"", true, "x");
}

TEST(template_missing_values_are_named)
{
    static const struct {
        const char *source, *why;
    } cases[] = {
        {"\"{{state.order.name}}\"",               "{{state.order.name}} is missing: state.order has no \"name\""},
        {"\"{{state.a.b.c}}\"",                    "{{state.a.b.c}} is missing: state has no \"a\""              },
        {"\"{{state.list.3}}\"",                   "{{state.list.3}} is missing: state.list has no \"3\""        },
        {"\"{{state.list.x}}\"",                   "{{state.list.x}} is missing: state.list has no \"x\""        },
        {"\"{{state.rate.x}}\"",                   "{{state.rate.x}} is missing: state.rate has no \"x\""        },
        {"\"{{steps.ship.id}}\"",                  "{{steps.ship.id}} is missing: step \"ship\" has no result"   },
        {"\"a{{state.\\\"x y\\\"}}\"",             "{{state.\"x y\"}} is missing: state has no \"x y\""          },
        {"[1, \"{{index}}\", \"{{item.price}}\"]", "{{item.price}} is missing: item has no \"price\""            },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        scoped(arena_free) Arena *arena = arena_new(1 << 20);
        Text                      text;
        Error                     error = {0};

        assert_code(ERR_INVALID, render(cases[i].source, false, arena, &text, &error));
        assert_string_equal(cases[i].why, error.text);
        assert_string_equal("", text_string(&text)); /* nothing of it stays */
    }
}

TEST(template_refusals_have_their_place)
{
    assert_refuses("\"{{}}\"", "}}", "expected a path such as state.order.id");
    assert_refuses("\"x {{stat.a}}\"", "stat.a",
                   "unknown path \"stat\": it must begin with state, steps, process, item, index or result");
    assert_refuses("\"{{state.a\"", "{{state", "\"{{\" is not closed by \"}}\"");
    assert_refuses("\"{{state.a b}}\"", "b}}", "expected \"}}\" behind the path, found \"b}}\"");
    assert_refuses("\"{{state.}}\"", ".}}", "\".\" must be followed by a name of 1 to 1000 bytes or an index");
    assert_refuses("\"{{state..a}}\"", "..a", "\".\" must be followed by a name of 1 to 1000 bytes or an index");
    assert_refuses("\"{{state.\\\"a}}\"", "\\\"a", "the quote has no end");
    assert_refuses("\"{{\\\"a}}\"", "\\\"a", "the quote has no end");
    assert_refuses("\"{{steps}}\"", "steps", "steps must be followed by the name of a step: steps.reserve.id");
    assert_refuses("\"{{process}}\"", "process", "process has only process.id, process.type and process.domain");
    assert_refuses("\"{{process.name}}\"", "process", "process has only process.id, process.type and process.domain");
    assert_refuses("\"{{process.id.a}}\"", ".a", "process.id is a single value: nothing can follow it");
    assert_refuses("\"{{index.a}}\"", ".a", "index is a single value: nothing can follow it");
    assert_refuses("{\"{{index}}\": 1}", "\"{{index}}\"", "the name of a member cannot contain a template");
    assert_refuses("{\"a\": [true, \"\\u00fc\\ud83d\\ude00\\n{{nope}}\"]}", "nope",
                   "unknown path \"nope\": it must begin with state, steps, process, item, index or result");
    assert_refuses("\"{{{{state.a}}\"", "{{state", "expected a path such as state.order.id");
}

TEST(template_paths_are_listed_in_order)
{
    scoped(arena_free) Arena *arena = arena_new(1 << 20);
    const Template *template;
    const char *at, *source = "{\"a\": \"{{state.x}} {{item.y?}}\", \"b\": \"{{index}}\"}";
    Error       error = {0};

    assert_ok(template_compile(json(source), arena, &template, &at, &error));
    const ValuePath *path = template_paths(template);
    assert_string_equal("state.x", path->text);
    assert_string_equal("item.y", path->next->text);
    assert_string_equal("index", path->next->next->text);
    assert_null(path->next->next->next);
    assert_ptr_equal(strstr(source, "item.y"), path->next->at);
    assert_null(template_only_path(template));

    assert_ok(template_compile(json("\"{{state.x}}\""), arena, &template, &at, &error));
    assert_string_equal("state.x", template_only_path(template)->text);
}

TEST(template_that_does_not_fit_appends_nothing)
{
    scoped(arena_free) Arena  *arena = arena_new(1 << 20);
    scoped_documents Documents copy  = documents;
    const Template *template;
    const char *at;
    Text        text;
    Error       error = {0};

    assert_ok(template_compile(json("\"0123456789{{index}}\""), arena, &template, &at, &error));
    text_init(&text, arena, 10);
    text_append(&text, "[");
    assert_code(ERR_LIMIT, template_render(template, documents_lookup, &copy, &text, &error));
    assert_string_equal("the rendered value is larger than 10 bytes", error.text);
    assert_string_equal("[", text_string(&text));
}
