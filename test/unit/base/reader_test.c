/*
 * reader_test.c - what is read, every refusal word by word, and hostile input.
 *
 * jansson is the second opinion: a text that one accepts and the other refuses fails the test, unless it is a matter of
 * the size of numbers or of depth, where we differ on purpose. All inputs lie in memory of exactly their size, so that
 * AddressSanitizer sees the first byte too far.
 */
#include "base/reader.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/text.h"
#include "test/harness/test.h"

typedef struct {
    const char *asset;
    int64_t     amount;
    ReaderArray parts;
} Item;

typedef struct {
    int64_t n;
} Part;

typedef struct {
    const char *owner;
    int64_t     amount;
    int64_t     any;
    double      rate;
    double      share;
    bool        frozen;
    bool        frozen_is_set;
    const char *id;
    const char *state;
    const char *payload;
    const char *first;
    ReaderArray tags;
    ReaderArray items;
} Order;

static const char *const states[] = {"open", "closed", NULL};

static const Field part_fields[] = {
    {"n", FIELD_I64, offsetof(Part, n), .required = true}
};
static const FieldTable part_table = {"part", part_fields, COUNT(part_fields), sizeof(Part)};

static const Field item_fields[] = {
    {"asset", FIELD_TEXT, offsetof(Item, asset), .required = true},
    {"amount", FIELD_I64, offsetof(Item, amount), .min = 1, .max = 9007199254740991},
    {"parts", FIELD_ROWS, offsetof(Item, parts), .rows = &part_table},
};
static const FieldTable item_table = {"item", item_fields, COUNT(item_fields), sizeof(Item)};

static const Field fields[] = {
    {"owner", FIELD_TEXT, offsetof(Order, owner), .required = true, .min = 1, .length_max = 200},
    {"amount", FIELD_I64, offsetof(Order, amount), .min = 1, .max = 9007199254740991},
    {"any", FIELD_I64, offsetof(Order, any)},
    {"rate", FIELD_REAL, offsetof(Order, rate)},
    {"share", FIELD_REAL, offsetof(Order, share), .min = 0, .max = 1},
    {"frozen", FIELD_BOOL, offsetof(Order, frozen), .is_set = offsetof(Order, frozen_is_set)},
    {"id", FIELD_UUID, offsetof(Order, id)},
    {"state", FIELD_TEXT, offsetof(Order, state), .words = states},
    {"payload", FIELD_JSON, offsetof(Order, payload)},
    {"first", FIELD_OBJECT, offsetof(Order, first), .rows = &item_table},
    {"tags", FIELD_TEXTS, offsetof(Order, tags), .max = 3, .length_max = 5},
    {"items", FIELD_ROWS, offsetof(Order, items), .min = 1, .max = 5, .rows = &item_table},
};
static const FieldTable table = {"order", fields, COUNT(fields), sizeof(Order)};

static char *memory_new(size_t size)
{
    char *memory = malloc(size ? size : 1);

    if (!memory)
        abort();
    return memory;
}

static char *exact_copy(const char *bytes, size_t size)
{
    return memcpy(memory_new(size), bytes, size);
}

static ErrorCode order_read(const char *bytes, size_t size, Arena *arena, Order *ret_order, Error *reterr)
{
    char     *copy = exact_copy(bytes, size);
    ErrorCode code = reader_object(copy, size, &table, arena, ret_order, reterr);

    free(copy);
    return code;
}

static ErrorCode check(const char *bytes, size_t size, Error *reterr)
{
    char     *copy = exact_copy(bytes, size);
    ErrorCode code = reader_check(copy, size, reterr);

    free(copy);
    return code;
}

static Order order_of(const char *body, Arena *arena)
{
    Order order;
    Error error = {0};

    assert_ok(order_read(body, strlen(body), arena, &order, &error));
    return order;
}

static void assert_refused(const char *body, size_t size, const char *expected)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    Order                     order = {.amount = -77};
    Error                     error = {0};

    assert_code(ERR_INVALID, order_read(body, size, arena, &order, &error));
    assert_string_equal(error.text, expected);
    assert_int_equal(order.amount, -77);
}

TEST(reader_keeps_an_object_as_it_was_sent_and_names_its_fields)
{
    scoped(arena_free) Arena *arena      = arena_new(ARENA_BYTES_DEFAULT);
    const char               *wrong[][2] = {
        {"{\"owner\":\"a\",\"first\":7}",                              "first must be an object, got 7"                        },
        {"{\"owner\":\"a\",\"first\":{}}",                             "missing field \"first.asset\""                         },
        {"{\"owner\":\"a\",\"first\":{\"asset\":1}}",                  "first.asset must be text of at most 65536 bytes, got 1"},
        {"{\"owner\":\"a\",\"first\":{\"asset\":\"x\",\"colour\":1}}", "unknown field \"first.colour\""                        },
    };

    assert_string_equal(order_of("{\"owner\":\"a\",\"first\":{ \"asset\" : \"x\" }}", arena).first,
                        "{ \"asset\" : \"x\" }");
    assert_null(order_of("{\"owner\":\"a\",\"first\":null}", arena).first);
    for (size_t i = 0; i < COUNT(wrong); i++)
        assert_refused(wrong[i][0], strlen(wrong[i][0]), wrong[i][1]);
    assert_refused("", 0, "body is missing: it must be a JSON object");
}

TEST(reader_fills_every_kind_of_field)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    Order                     order =
        order_of(" {\"owner\": \"Ann\", \"amount\":9007199254740991,\"any\":-9223372036854775808, \"rate\":-1.5e300,"
                 "\"share\":1,\"frozen\":false,\"id\":\"0190AAAA-1111-7222-8333-444455556666\",\"state\":\"closed\","
                 "\"payload\": { \"n\" : 123456789012345678901234567890, \"x\": 1.10 } ,\"tags\":[\"a\",\"\"],"
                 "\"items\":[{\"asset\":\"X\",\"amount\":1},{\"asset\":\"Y\",\"parts\":[{\"n\":7}]}]}\r\n\t ",
                 arena);

    assert_string_equal(order.owner, "Ann");
    assert_int_equal(order.amount, 9007199254740991);
    assert_true(order.any == INT64_MIN);
    assert_true(order.rate < -1.49e300 && order.rate > -1.51e300);
    assert_true(order.share > 0.99);
    assert_false(order.frozen);
    assert_true(order.frozen_is_set);
    assert_string_equal(order.id, "0190aaaa-1111-7222-8333-444455556666");
    assert_string_equal(order.state, "closed");
    assert_string_equal(order.payload, "{ \"n\" : 123456789012345678901234567890, \"x\": 1.10 }");
    assert_int_equal(order.tags.count, 2);
    assert_string_equal(((const char *const *)order.tags.items)[0], "a");
    assert_string_equal(((const char *const *)order.tags.items)[1], "");
    assert_int_equal(order.items.count, 2);
    const Item *items = order.items.items;
    assert_string_equal(items[1].asset, "Y");
    assert_int_equal(items[0].amount, 1);
    assert_int_equal(items[1].parts.count, 1);
    assert_int_equal(((const Part *)items[1].parts.items)->n, 7);
}

TEST(reader_null_and_absent_are_the_same)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    Order order = order_of("{\"owner\":\"A\",\"amount\":null,\"frozen\":null,\"payload\":null,\"tags\":null}", arena);

    assert_int_equal(order.amount, 0);
    assert_false(order.frozen_is_set);
    assert_null(order.payload);
    assert_null(order.id);
    assert_int_equal(order.tags.count, 0);
}

TEST(reader_decodes_escapes)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    Order                     order =
        order_of("{\"\\u006fwner\":\"\\\"\\\\\\/\\b\\f\\n\\r\\t \\u00e9\\u20AC\\ud83d\\uDE00\\u0001 \xc3\xa9\"}",
                 arena);

    assert_string_equal(order.owner, "\"\\/\b\f\n\r\t \xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\x01 \xc3\xa9");
}

TEST(reader_keeps_payloads_byte_for_byte)
{
    static const char *const payloads[] = {
        "0",
        "-0",
        "1.10",
        "1e400000",
        "-0.0E-0",
        "\"\\u0041\\/\"",
        "true",
        "false",
        "[]",
        "{}",
        "[ 1 ,\n2 ]",
        "{ \"b\" : 1 , \"a\" : { \"b\" : \"]}\\\"\" } }",
        "123456789012345678901234567890.123456789012345678901234567890",
    };

    for (size_t i = 0; i < COUNT(payloads); i++) {
        scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
        Order order = order_of(arena_print(arena, "{\"payload\" :\t%s\n,\"owner\":\"A\"}", payloads[i]), arena);
        assert_string_equal(order.payload, payloads[i]);
        order = order_of(arena_print(arena, "{\"owner\":\"A\",\"payload\":%s}", payloads[i]), arena);
        assert_string_equal(order.payload, payloads[i]);
    }
}

TEST(reader_names_the_field_that_is_wrong)
{
#define AMOUNT "amount must be an integer from 1 to 9007199254740991, got "
#define A40    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
    static const struct {
        const char *body, *expected;
    } cases[] = {
        {"{}",                                                                                  "missing field \"owner\""                                               },
        {"[]",                                                                                  "body must be an object"                                                },
        {"5",                                                                                   "body must be an object"                                                },
        {" true ",                                                                              "body must be an object"                                                },
        {"{\"owner\":null}",                                                                    "owner must be text of 1 to 200 bytes, got null"                        },
        {"{\"owner\":5}",                                                                       "owner must be text of 1 to 200 bytes, got 5"                           },
        {"{\"owner\":\"\"}",                                                                    "owner must be text of 1 to 200 bytes, got 0"                           },
        {"{\"owner\":[\"A\"]}",                                                                 "owner must be text of 1 to 200 bytes, got an array"                    },
        {"{\"owner\":\"" A40 A40 A40 A40 A40 "a\"}",                                            "owner must be text of 1 to 200 bytes, got 201"                         },
        {"{\"owner\":\"A\",\"amuont\":5}",                                                      "unknown field \"amuont\", did you mean \"amount\"?"                    },
        {"{\"owner\":\"A\",\"colour\":5}",                                                      "unknown field \"colour\""                                              },
        {"{\"owner\":\"A\",\"\":5}",                                                            "unknown field \"\""                                                    },
        {"{\"owner\":\"A\",\"" A40 "aa\":5}",                                                   "unknown field \"" A40 "...\""                                          },
        {"{\"owner\":\"A\",\"owner\":\"B\"}",                                                   "duplicate field \"owner\" at line 1 column 14"                         },
        {"{\"owner\":\"A\",\n \"payload\":{\"a\":1,\"\\u0061\":2}}",                            "duplicate field \"\\u0061\" at line 2 column 19"                       },
        {"{\"owner\":\"A\",\"amount\":1.5}",                                                    AMOUNT "1.5"                                                            },
        {"{\"owner\":\"A\",\"amount\":1.0}",                                                    AMOUNT "1.0"                                                            },
        {"{\"owner\":\"A\",\"amount\":1e3}",                                                    AMOUNT "1e3"                                                            },
        {"{\"owner\":\"A\",\"amount\":\"5\"}",                                                  AMOUNT "\"5\""                                                          },
        {"{\"owner\":\"A\",\"amount\":0}",                                                      AMOUNT "0"                                                              },
        {"{\"owner\":\"A\",\"amount\":-0}",                                                     AMOUNT "-0"                                                             },
        {"{\"owner\":\"A\",\"amount\":true}",                                                   AMOUNT "true"                                                           },
        {"{\"owner\":\"A\",\"amount\":{}}",                                                     AMOUNT "an object"                                                      },
        {"{\"owner\":\"A\",\"amount\":9007199254740992}",                                       AMOUNT "9007199254740992"                                               },
        {"{\"owner\":\"A\",\"amount\":11111111111111111111111111111111111111111111}",
         AMOUNT "1111111111111111111111111111111111111111..."                                                                                                           },
        {"{\"owner\":\"A\",\"amount\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\xc3\xa9\"}",
         AMOUNT "\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa..."                                                                                                           },
        {"{\"owner\":\"A\",\"any\":9223372036854775808}",
         "any must be an integer from -9223372036854775808 to 9223372036854775807, got 9223372036854775808"                                                             },
        {"{\"owner\":\"A\",\"rate\":1e999}",                                                    "rate must be a number, got 1e999"                                      },
        {"{\"owner\":\"A\",\"rate\":\"1\"}",                                                    "rate must be a number, got \"1\""                                      },
        {"{\"owner\":\"A\",\"share\":1.01}",                                                    "share must be a number from 0 to 1, got 1.01"                          },
        {"{\"owner\":\"A\",\"share\":-0.1}",                                                    "share must be a number from 0 to 1, got -0.1"                          },
        {"{\"owner\":\"A\",\"frozen\":1}",                                                      "frozen must be true or false, got 1"                                   },
        {"{\"owner\":\"A\",\"id\":\"0190aaaa\"}",                                               "id must be a UUID, got \"0190aaaa\""                                   },
        {"{\"owner\":\"A\",\"id\":7}",                                                          "id must be a UUID, got 7"                                              },
        {"{\"owner\":\"A\",\"state\":\"opne\"}",                                                "state must be one of \"open\", \"closed\", got \"opne\""               },
        {"{\"owner\":\"A\",\"tags\":\"a\"}",                                                    "tags must be an array of at most 3 texts, got \"a\""                   },
        {"{\"owner\":\"A\",\"tags\":[\"a\",\"b\",\"c\",\"d\"]}",                                "tags must be an array of at most 3 texts, got 4"                       },
        {"{\"owner\":\"A\",\"tags\":[\"a\",null]}",                                             "tags[1] must be text of at most 5 bytes, got null"                     },
        {"{\"owner\":\"A\",\"tags\":[\"a\",\"abcdef\"]}",                                       "tags[1] must be text of at most 5 bytes, got 6"                        },
        {"{\"owner\":\"A\",\"items\":[]}",                                                      "items must be an array of 1 to 5 objects, got 0"                       },
        {"{\"owner\":\"A\",\"items\":{}}",                                                      "items must be an array of 1 to 5 objects, got an object"               },
        {"{\"owner\":\"A\",\"items\":[{\"asset\":\"X\"},5]}",                                   "items[1] must be an object, got 5"                                     },
        {"{\"owner\":\"A\",\"items\":[{\"amount\":5}]}",                                        "missing field \"items[0].asset\""                                      },
        {"{\"owner\":\"A\",\"items\":[{\"asset\":\"X\",\"amout\":1}]}",
         "unknown field \"items[0].amout\", did you mean \"amount\"?"                                                                                                   },
        {"{\"owner\":\"A\",\"items\":[{\"asset\":\"X\"},{\"asset\":\"X\"},{\"asset\":\"X\"},{\"asset\":\"X\","
         "\"amount\":1.5}]}",                                                          "items[3].amount must be an integer from 1 to 9007199254740991, got 1.5"},
        {"{\"owner\":\"A\",\"items\":[{\"asset\":\"X\",\"parts\":[{\"n\":1},{\"n\":\"2\"}]}]}",
         "items[0].parts[1].n must be an integer from -9223372036854775808 to 9223372036854775807, got \"2\""                                                           },
        {"{\"owner\":\"A\",\"items\":[{\"asset\":\"X\",\"parts\":7}]}",
         "items[0].parts must be an array of objects, got 7"                                                                                                            },
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_refused(cases[i].body, strlen(cases[i].body), cases[i].expected);
}

TEST(reader_says_where_json_goes_wrong)
{
#define BAD "body is not valid JSON: "
#define CASE(body, why)                \
    {                                  \
        body, sizeof body - 1, BAD why \
    }
    static const struct {
        const char *body;
        size_t      size;
        const char *expected;
    } cases[] = {
        CASE(" \n ", "line 2 column 2: expected a value, found the end"),
        CASE("{", "line 1 column 2: expected a name in double quotes, found the end"),
        CASE("{\"a\"", "line 1 column 5: expected ':', found the end"),
        CASE("{\"a\" 1}", "line 1 column 6: expected ':', found '1'"),
        CASE("{\"a\":}", "line 1 column 6: expected a value, found '}'"),
        CASE("{\"a\":1", "line 1 column 7: expected ',' or '}', found the end"),
        CASE("{\"a\":1,}", "line 1 column 8: expected a name in double quotes, found '}'"),
        CASE("{\"a\":1]", "line 1 column 7: expected ',' or '}', found ']'"),
        CASE("{\"\xc3\xa9\":\n  x}", "line 2 column 3: expected a value, found 'x'"),
        CASE("{\"\xc3\xa9\" x}", "line 1 column 6: expected ':', found 'x'"),
        CASE("{'a':1}", "line 1 column 2: expected a name in double quotes, found '''"),
        CASE("[1,]", "line 1 column 4: expected a value, found ']'"),
        CASE("[1 2]", "line 1 column 4: expected ',' or ']', found '2'"),
        CASE("{} {}", "line 1 column 4: expected the end, found '{'"),
        CASE("{}\0", "line 1 column 3: expected the end, found byte 0x00"),
        CASE("\xef\xbb\xbf{}", "line 1 column 1: expected a value, found byte 0xef"),
        CASE("[tru]", "line 1 column 2: expected a value, found 't'"),
        CASE("[truex]", "line 1 column 6: expected ',' or ']', found 'x'"),
        CASE("[NaN]", "line 1 column 2: expected a value, found 'N'"),
        CASE("[01]", "line 1 column 2: a number must not begin with a needless 0"),
        CASE("[-]", "line 1 column 3: expected a digit, found ']'"),
        CASE("[+1]", "line 1 column 2: expected a value, found '+'"),
        CASE("[.5]", "line 1 column 2: expected a value, found '.'"),
        CASE("[1.]", "line 1 column 4: expected a digit, found ']'"),
        CASE("[1e]", "line 1 column 4: expected a digit, found ']'"),
        CASE("[1e+]", "line 1 column 5: expected a digit, found ']'"),
        CASE("[0x10]", "line 1 column 3: expected ',' or ']', found 'x'"),
        CASE("[\"a", "line 1 column 2: the text that begins here has no end"),
        CASE("[\"a\\\"]", "line 1 column 2: the text that begins here has no end"),
        CASE("[\"a\nb\"]", "line 1 column 4: line breaks and control characters in text must be escaped"),
        CASE("[\"\0\"]", "line 1 column 3: line breaks and control characters in text must be escaped"),
        CASE("[\"\xff\"]", "line 1 column 2: the text that begins here is not UTF-8"),
        CASE("[\"\xc0\x80\"]", "line 1 column 2: the text that begins here is not UTF-8"),
        CASE("[\"\xed\xa0\x80\"]", "line 1 column 2: the text that begins here is not UTF-8"),
        CASE("[\"\\q\"]", "line 1 column 3: no such escape: one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX"),
        CASE("[\"\\\0\"]", "line 1 column 3: no such escape: one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX"),
        CASE("[\"\\u12g4\"]", "line 1 column 3: \\u needs four hexadecimal digits"),
        CASE("[\"\\u12", "line 1 column 3: \\u needs four hexadecimal digits"),
        CASE("[\"\\u0000\"]", "line 1 column 3: \\u0000 is not allowed in text"),
        CASE("[\"\\udc00\"]", "line 1 column 3: a low surrogate without a high one before it"),
        CASE("[\"\\ud800\"]", "line 1 column 3: a high surrogate without a low one behind it"),
        CASE("[\"\\ud800\\n\"]", "line 1 column 3: a high surrogate without a low one behind it"),
        CASE("[\"\\ud800\\u0041\"]", "line 1 column 3: a high surrogate without a low one behind it"),
        CASE("[1]/**/", "line 1 column 4: expected the end, found '/'"),
    };
#undef CASE

    for (size_t i = 0; i < COUNT(cases); i++)
        assert_refused(cases[i].body, cases[i].size, cases[i].expected);
}

TEST(reader_takes_no_bytes_for_an_empty_text)
{
    Error error = {0};

    assert_code(ERR_INVALID, reader_check(NULL, 0, &error));
    assert_string_equal(error.text, "value is not valid JSON: line 1 column 1: expected a value, found the end");
}

static size_t nested(char *bytes, int depth, char open, char close)
{
    memset(bytes, open, (size_t)depth);
    memset(bytes + depth, close, (size_t)depth);
    return (size_t)depth * 2;
}

TEST(reader_bounds_the_depth)
{
    size_t size_max = (size_t)2 << 20;
    char  *bytes    = memory_new(size_max);
    Error  error    = {0};

    assert_ok(check(bytes, nested(bytes, READER_DEPTH_MAX, '[', ']'), &error));
    assert_code(ERR_INVALID, check(bytes, nested(bytes, READER_DEPTH_MAX + 1, '[', ']'), &error));
    assert_string_equal(error.text, "value is nested deeper than 64 levels");
    assert_code(ERR_INVALID, check(bytes, nested(bytes, (int)size_max / 2, '[', ']'), &error));
    free(bytes);
}

TEST(reader_depth_is_of_nesting_not_of_brackets)
{
    scoped_text Text text  = {0};
    Error            error = {0};

    text_init(&text, NULL, TEXT_MAX_BODY);
    text_append(&text, "[");
    for (int i = 0; i < 1000; i++)
        text_append(&text, "{\"a\":[{}]},");
    text_append(&text, "[]]");
    assert_ok(check(text_string(&text), text.length, &error));
}

/* An object with count keys, of which the last repeats the one at `repeated` (-1: none). */
static void object_print(int count, int repeated, Text *text)
{
    text_append_char(text, '{');
    for (int i = 0; i < count; i++)
        text_print(text, "\"k%d\":{\"k%d\":0},", i, i);
    text_print(text, repeated < 0 ? "\"x\":%d}" : "\"k%d\":0}", repeated);
}

TEST(reader_finds_duplicates_among_few_and_many)
{
    static const int counts[] = {1, 2, 15, 16, 17, 1000, 50000};

    for (size_t i = 0; i < COUNT(counts); i++)
        for (int repeated = -1; repeated < counts[i]; repeated += 1 + counts[i] / 3) {
            scoped_text Text text  = {0};
            Error            error = {0};

            text_init(&text, NULL, TEXT_MAX_BODY);
            object_print(counts[i], repeated, &text);
            assert_code(repeated < 0 ? OK : ERR_INVALID, check(text_string(&text), text.length, &error));
            if (repeated >= 0)
                assert_contains(error.text, "duplicate field \"k");
        }
}

TEST(reader_refuses_what_would_not_fit_the_arena)
{
    scoped(arena_free) Arena *arena = arena_new((size_t)16 << 10);
    scoped_text Text          text  = {0};
    Order                     order;
    Error                     error = {0};

    text_init(&text, NULL, TEXT_MAX_BODY);
    text_append(&text, "{\"owner\":\"A\",\"items\":[{\"asset\":\"X\",\"parts\":[");
    for (int i = 0; i < 10000; i++)
        text_append(&text, "{\"n\":1},");
    text_append(&text, "{\"n\":1}]}]}");
    assert_code(ERR_LIMIT, order_read(text_string(&text), text.length, arena, &order, &error));
    text_clear(&text);
    text_append(&text, "{\"payload\":\"");
    for (int i = 0; i < 20000; i++)
        text_append_char(&text, 'a');
    text_append(&text, "\"}");
    assert_code(ERR_LIMIT, order_read(text_string(&text), text.length, arena, &order, &error));
}

/* More keys than are compared by pairs. */
static const char many_keys[] =
    "{\"owner\":\"A\",\"payload\":{\"a\":1,\"b\":2,\"c\":3,\"d\":4,\"e\":5,\"f\":6,\"g\":7,\"h\":8,\"i\":9,\"j\":0,"
    "\"k\":1,\"l\":2,\"m\":3,\"n\":4,\"o\":5,\"p\":6,\"q\":7,\"r\":8,\"s\":9}}";

static const char *const seeds[] = {
    "{\"owner\":\"Ann\",\"amount\":12,\"rate\":-1.25e-3,\"frozen\":true,\"payload\":{\"a\":[1,{}],\"c\":\"\\u00e9\"}}",
    "{\"owner\":\"\\ud83d\\ude00\\n\",\"tags\":[\"a\",\"b\"],\"state\":\"open\",\"any\":-9223372036854775808}",
    "{\"owner\":\"h\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\",\"items\":[{\"asset\":\"X\",\"amount\":1,\"parts\":[{\"n\":1}"
    "]}]}",
    "{\"id\":\"0190aaaa-1111-7222-8333-444455556666\",\"owner\":\"A\",\"payload\":[[[]],{},\"\",0,-0,1e5,true,false,"
    "null]}",
    " { \"payload\" : 123456789012345678901234567890 , \"owner\" : \"x\\\"\\\\\\/\\b\\f\\n\\r\\t\" } \n",
    many_keys,
};

/* jansson's verdict; *ret_comparable is false where it refuses only the size of a number. */
static json_t *jansson_load(const char *bytes, size_t size, bool *ret_comparable)
{
    json_error_t error;
    json_t      *json = json_loadb(bytes, size, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);

    *ret_comparable = json || json_error_code(&error) != json_error_numeric_overflow;
    return json;
}

TEST(reader_refuses_all_damaged_texts)
{
    int count = 0;

    for (size_t i = 0; i < COUNT(seeds); i++) {
        char   damaged[512];
        size_t size = strlen(seeds[i]), end = size;
        Error  error = {0};

        assert_true(size < sizeof damaged - 1);
        while (seeds[i][end - 1] != '}')
            end--;
        for (size_t at = 0; at < end; at++, count += 3) {
            assert_code(ERR_INVALID, check(seeds[i], at, &error)); /* cut off */
            assert_contains(error.text, "value is not valid JSON: line ");
            /* A control character is wrong everywhere; so is a lone continuation byte. */
            memcpy(damaged, seeds[i], at);
            memcpy(damaged + at + 1, seeds[i] + at, size - at);
            damaged[at] = '\x02';
            assert_code(ERR_INVALID, check(damaged, size + 1, &error));
            damaged[at] = '\x80';
            assert_code(ERR_INVALID, check(damaged, size + 1, &error));
        }
    }
    assert_true(count > 200);
}

/* Change one place of bytes, which need no NUL. */
static size_t mutate(char *bytes, size_t size, size_t size_max, unsigned *seed)
{
    static const char alphabet[] = "{}[]\",:\\u0019dD8c.eE+-tfn \n\x01\x7f\x80\xc3\xff";
    size_t            at         = size ? (size_t)rand_r(seed) % size : 0;
    size_t            run        = size - at ? (size_t)rand_r(seed) % (size - at) % 12 : 0;
    char              c          = alphabet[(size_t)rand_r(seed) % (sizeof alphabet - 1)];

    switch (rand_r(seed) % 4) {
    case 0: /* replace */
        if (size > 0)
            bytes[at] = c;
        return size;
    case 1: /* insert */
        if (size == size_max)
            return size;
        memmove(bytes + at + 1, bytes + at, size - at);
        bytes[at] = c;
        return size + 1;
    case 2: /* drop */
        memmove(bytes + at, bytes + at + run, size - at - run);
        return size - run;
    default: /* double */
        if (size + run > size_max)
            return size;
        memmove(bytes + at + run, bytes + at, size - at);
        return size + run;
    }
}

static void assert_same_verdict(const char *bytes, size_t size, ErrorCode code, const Error *error)
{
    bool    comparable;
    json_t *json = jansson_load(bytes, size, &comparable);

    if (comparable && (code == OK) != (json != NULL) && !strstr(error->text, "nested deeper"))
        fail_msg("we say %s (%s), jansson %s: %.*s", error_name(code), error->text, json ? "accepts" : "refuses",
                 (int)size, bytes);
    json_decref(json);
}

/* What was read is what jansson would have read. */
static void assert_same_order(const char *bytes, size_t size, const Order *order)
{
    bool    comparable;
    json_t *json = jansson_load(bytes, size, &comparable);

    if (json) {
        assert_string_equal(order->owner, json_string_value(json_object_get(json, "owner")));
        assert_int_equal(order->any, json_integer_value(json_object_get(json, "any")));
        assert_int_equal(order->tags.count, json_array_size(json_object_get(json, "tags")));
    }
    if (order->payload) {
        Error error = {0};

        assert_non_null(memmem(bytes, size, order->payload, strlen(order->payload)));
        assert_ok(check(order->payload, strlen(order->payload), &error));
        json_t *payload = jansson_load(order->payload, strlen(order->payload), &comparable);
        assert_true(payload || !comparable);
        if (json && payload)
            assert_true(json_equal(payload, json_object_get(json, "payload")));
        json_decref(payload);
    }
    json_decref(json);
}

TEST(reader_agrees_with_jansson_on_20000_mutations)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    unsigned                  seed  = 20260101;
    int                       valid = 0, read = 0;

    for (int round = 0; round < 20000; round++) {
        char        bytes[512];
        const char *from  = seeds[(size_t)round % COUNT(seeds)];
        size_t      size  = strlen(from);
        Error       error = {0};
        Order       order;

        memcpy(bytes, from, size + 1);
        for (int i = 1 + rand_r(&seed) % 3; i > 0; i--)
            size = mutate(bytes, size, sizeof bytes, &seed);
        ErrorCode code = check(bytes, size, &error);
        assert_same_verdict(bytes, size, code, &error);
        valid += code == OK;
        arena_reset(arena);
        if (order_read(bytes, size, arena, &order, &error) == OK) {
            assert_int_equal(code, OK);
            assert_same_order(bytes, size, &order);
            read++;
        }
    }
    /* The loop means something only while some mutations live. */
    assert_true(valid > 1000);
    assert_true(read > 500);
}
