/*
 * condition_test.c - what conditions mean, exactly, and what they refuse.
 */
#include "process/condition.h"

#include <string.h>

#include "test/harness/test.h"
#include "test/unit/process/lookup.h"

static const Documents documents = {
    .state = "{\"total\": 250, \"vip\": false, \"name\": \"Ada\", \"none\": null, \"zero\": 0, \"empty\": \"\", "
             "\"list\": [1], "
             "\"object\": {}, \"big\": 123456789012345678901234567890, \"bigger\": 123456789012345678901234567891, "
             "\"pi\": 3.14, \"escaped\": \"\\u0041da\", \"votes\": {\"count\": 3}, \"yes\": true}",
    .item  = "5",
};

static ErrorCode evaluate(const char *text, bool *ret_is_true, Error *error)
{
    scoped(arena_free) Arena  *arena  = arena_new(1 << 20);
    scoped_documents Documents copy   = documents;
    scoped_text Text           quoted = {0};
    const Condition           *condition;
    const char                *at;

    text_init(&quoted, NULL, 65536);
    text_append(&quoted, "\"");
    value_escape(text, strlen(text), &quoted);
    text_append(&quoted, "\"");
    TRY(condition_compile((Value){text_string(&quoted), quoted.length}, arena, &condition, &at, error));
    assert_string_equal(text, condition_text(condition));
    return condition_evaluate(condition, documents_lookup, &copy, ret_is_true, error);
}

static void assert_is(bool expected, const char *text)
{
    bool  is_true = !expected;
    Error error   = {0};

    assert_ok(evaluate(text, &is_true, &error));
    if (is_true != expected)
        fail_msg("%s is %s", text, is_true ? "true" : "false");
}

TEST(condition_compares_numbers_exactly)
{
    assert_is(true, "state.total > 100");
    assert_is(true, "state.total >= 250");
    assert_is(false, "state.total < 250");
    assert_is(true, "state.total == 250.0");
    assert_is(true, "state.total == 2.5e2");
    assert_is(true, "state.total == 25000E-2");
    assert_is(true, "state.big < state.bigger");
    assert_is(false, "state.big == state.bigger");
    assert_is(true, "state.big == 123456789012345678901234567890.000");
    assert_is(true, "9007199254740993 > 9007199254740992");
    assert_is(true, "-9007199254740993 < -9007199254740992");
    assert_is(true, "1e400 > 1e399");
    assert_is(true, "1e-400 > 0");
    assert_is(true, "-1e-400 < 0");
    assert_is(true, "0 == -0.000e9");
    assert_is(true, "1e99999999999999999999 > 1e99999999999");
    assert_is(true, "0.1 < 0.11");
    assert_is(true, "0.10 == 0.1");
    assert_is(true, "0.00001 == 1e-5");
    assert_is(true, "10 > 9");
    assert_is(true, "-10 < 9");
    assert_is(true, "state.pi != 3.140000000000000000001");
    assert_is(true, "0.0 < 0.000000000000000000000000000000000000000000001");
}

TEST(condition_compares_strings_by_bytes)
{
    assert_is(true, "state.name == \"Ada\"");
    assert_is(true, "state.escaped == state.name");
    assert_is(true, "state.name == \"\\u0041da\"");
    assert_is(true, "state.name < \"Adaa\"");
    assert_is(true, "state.name < \"B\"");
    assert_is(true, "\"Z\" < \"a\"");
    assert_is(true, "state.empty == \"\"");
    assert_is(true, "\"\xc3\xa4\" == \"\\u00e4\"");
    assert_is(true, "\"a \\\" b\" != \"a\"");
}

TEST(condition_of_different_kinds_differs)
{
    assert_is(false, "state.total == \"250\"");
    assert_is(true, "state.total != \"250\"");
    assert_is(false, "state.vip == 0");
    assert_is(true, "state.vip == false");
    assert_is(true, "state.yes != false");
    assert_is(false, "state.list == 1");
    assert_is(true, "state.none == null");
    assert_is(true, "state.missing == null");
    assert_is(true, "state.object != null");
    assert_is(false, "state.list == null");
}

TEST(condition_order_with_nothing_is_false)
{
    assert_is(false, "state.missing > 3");
    assert_is(false, "state.missing < 3");
    assert_is(false, "state.none >= null");
    assert_is(false, "3 <= state.votes.other");
    assert_is(true, "state.votes.count >= 3");
    assert_is(true, "not state.missing > 3");
}

TEST(condition_path_alone)
{
    assert_is(true, "state.total");
    assert_is(true, "state.zero");
    assert_is(true, "state.empty");
    assert_is(true, "state.object");
    assert_is(false, "state.none");
    assert_is(false, "state.missing.deeper");
    assert_is(false, "state.vip");
    assert_is(true, "not state.vip");
    assert_is(true, "item == 5");
    assert_is(false, "steps.ship");
    assert_is(true, "process.type == \"order\"");
    assert_is(true, "true");
    assert_is(false, "false");
}

TEST(condition_and_or_not_and_parentheses)
{
    assert_is(true, "state.total > 100 and not state.vip");
    assert_is(true, "true or false and false");
    assert_is(false, "(true or false) and false");
    assert_is(true, "not false and true");
    assert_is(false, "not (false or true)");
    assert_is(true, "not not true");
    assert_is(true, "(((state.total>100)))and(state.pi<4)");
    assert_is(true, "false or false or state.yes");
    assert_is(false, "true and true and state.none");
    /* What the left side decides, the right side cannot spoil. */
    assert_is(true, "true or state.list < 3");
    assert_is(false, "false and state.list < 3");
    assert_is(true, "  state.yes\t\n and state.yes ");
}

TEST(condition_that_cannot_be_compared_is_an_error)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"state.list < 3",               "cannot compare state.list (an array) < 3"                           },
        {"state.name >= 3",              "cannot compare state.name (a string) >= 3"                          },
        {"state.total < \"a\"",          "cannot compare state.total (a number) < \"a\""                      },
        {"state.vip < state.yes",        "cannot compare state.vip (false) < state.yes (true)"                },
        {"state.list == state.list",     "cannot compare state.list (an array) == state.list (an array)"      },
        {"state.object != state.object", "cannot compare state.object (an object) != state.object (an object)"},
        {"state.yes and item > false",   "cannot compare item (a number) > false"                             },
    };

    for (size_t i = 0; i < COUNT(cases); i++) {
        bool  is_true = true;
        Error error   = {0};

        assert_code(ERR_INVALID, evaluate(cases[i].text, &is_true, &error));
        assert_string_equal(cases[i].why, error.text);
        assert_true(is_true); /* untouched */
    }
}

static void assert_refuses(const char *source, const char *at_text, const char *why)
{
    scoped(arena_free) Arena *arena = arena_new(1 << 20);
    const Condition          *condition;
    const char               *at    = NULL;
    Error                     error = {0};

    assert_code(ERR_INVALID, condition_compile((Value){source, strlen(source)}, arena, &condition, &at, &error));
    assert_string_equal(why, error.text);
    if (strncmp(at, at_text, strlen(at_text)) != 0)
        fail_msg("%s: refused at %s, not at %s", source, at, at_text);
}

TEST(condition_refusals_have_their_place)
{
    assert_refuses("\"\"", "\"", "expected a path or a value, found the end");
    assert_refuses("\"state.a and\"", "\"", "expected a path or a value, found the end");
    assert_refuses("\"and state.a\"", "and", "expected a path or a value, found \"and\"");
    assert_refuses("\"state.a state.b\"", "state.b", "expected \"and\", \"or\" or the end, found \"state.b\"");
    assert_refuses("\"state.a = 1\"", "= 1", "expected \"and\", \"or\" or the end, found \"=\": write \"==\"");
    assert_refuses("\"state.a => 1\"", "=> 1", "expected \"and\", \"or\" or the end, found \"=>\": write \">=\"");
    assert_refuses("\"state.a && state.b\"", "&&", "expected \"and\", \"or\" or the end, found \"&&\": write \"and\"");
    assert_refuses("\"state.a || state.b\"", "||", "expected \"and\", \"or\" or the end, found \"||\": write \"or\"");
    assert_refuses("\"!state.a\"", "!state", "expected a path or a value, found \"!\": write \"not\"");
    assert_refuses("\"state.a == 'x'\"", "'x", "expected a path or a value, found \"'\": write a double quote");
    assert_refuses("\"{{state.a}} > 1\"", "{{state",
                   "expected a path or a value, found \"{{\": write the path without {{ and }}");
    assert_refuses("\"(state.a\"", "\"", "expected \"and\", \"or\" or \")\", found the end");
    assert_refuses("\"state.a)\"", ")", "expected \"and\", \"or\" or the end, found \")\"");
    assert_refuses("\"1 < state.a < 3\"", "< 3", "expected \"and\", \"or\" or the end, found \"< 3\"");
    assert_refuses("\"5\"", "5", "a number alone is not a condition: compare it with something");
    assert_refuses("\"\\\"a\\\"\"", "\\\"a", "a string alone is not a condition: compare it with something");
    assert_refuses("\"null\"", "null", "null alone is not a condition: compare it with something");
    assert_refuses("\"state.a == 01\"", "01", "\"01\" is not a number as JSON writes it");
    assert_refuses("\"state.a == 1.\"", "1.", "\"1.\" is not a number as JSON writes it");
    assert_refuses("\"state.a == \\\"x\"", "\\\"x", "the quote has no end");
    assert_refuses("\"state.a == \\\"\\\\x\\\"\"", "\\\\x", "not a valid string: escapes are those of JSON");
    assert_refuses("\"\\u00fc\"", "\\u00fc",
                   "unknown path \"\xc3\xbc\": it must begin with state, steps, process, item, index or result");
    assert_refuses("\"true and stat.a\"", "stat.a",
                   "unknown path \"stat\": it must begin with state, steps, process, item, index or result");
    assert_refuses("\"state.\"", ".", "\".\" must be followed by a name of 1 to 1000 bytes or an index");
}

static void deep(char c, int count, const char *end, Text *ret_text)
{
    text_append(ret_text, "\"");
    for (int i = 0; i < count; i++)
        text_print(ret_text, c == '(' ? "(" : "not ");
    text_append(ret_text, end);
}

TEST(condition_nests_so_deep_and_no_deeper)
{
    scoped(arena_free) Arena *arena = arena_new(1 << 22);
    const Condition          *condition;
    const char               *at;
    Error                     error = {0};
    Text                      text;

    text_init(&text, arena, 65536);
    deep('n', CONDITION_DEPTH_MAX - 1, "state.a\"", &text);
    assert_ok(condition_compile((Value){text_string(&text), text.length}, arena, &condition, &at, &error));
    text_clear(&text);
    deep('n', CONDITION_DEPTH_MAX, "state.a\"", &text);
    assert_code(ERR_INVALID,
                condition_compile((Value){text_string(&text), text.length}, arena, &condition, &at, &error));
    assert_string_equal("nested deeper than 32 levels", error.text);
    text_clear(&text);
    deep('(', 4000, "\"", &text);
    assert_code(ERR_INVALID,
                condition_compile((Value){text_string(&text), text.length}, arena, &condition, &at, &error));
    text_clear(&text);
    deep('(', CONDITION_BYTES_MAX + 1, "\"", &text);
    assert_code(ERR_INVALID,
                condition_compile((Value){text_string(&text), text.length}, arena, &condition, &at, &error));
    assert_string_equal("a condition may have at most 4096 bytes", error.text);
}
