/*
 * writer_test.c - commas, escapes, numbers that read back, rows by their tables, and a text that is too small.
 */
#include "base/writer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "test/harness/test.h"

#include "base/answer_field.h"

static void assert_quoted(const char *value, const char *expected)
{
    scoped_text Text text = {0};

    text_init(&text, NULL, TEXT_MAX_LINE);
    writer_quote(&text, value);
    assert_string_equal(text_string(&text), expected);
}

static void assert_real(double value, const char *expected)
{
    scoped_text Text text = {0};
    Writer           writer;

    text_init(&text, NULL, TEXT_MAX_LINE);
    writer_open(&writer, &text);
    writer_real(&writer, NULL, value);
    assert_string_equal(text_string(&text), expected);
}

TEST(writer_puts_commas_and_names)
{
    scoped_text Text text = {0};
    Writer           w;

    text_init(&text, NULL, TEXT_MAX_LINE);
    writer_open(&w, &text);
    writer_object(&w, NULL);
    writer_text(&w, "owner", "Ann");
    writer_text(&w, "note", NULL);
    writer_i64(&w, "least", INT64_MIN);
    writer_array(&w, "items");
    writer_i64(&w, NULL, 1);
    writer_object(&w, NULL);
    writer_end(&w);
    writer_array(&w, NULL);
    writer_end(&w);
    writer_bool(&w, NULL, true);
    writer_end(&w);
    writer_bool(&w, "frozen", false);
    writer_null(&w, "end");
    writer_raw(&w, "payload", "{\"n\":1.10}");
    writer_raw(&w, "none", NULL);
    writer_end(&w);
    assert_int_equal(w.depth, 0);
    assert_string_equal(text_string(&text), "{\"owner\":\"Ann\",\"note\":null,\"least\":-9223372036854775808,"
                                            "\"items\":[1,{},[],true],\"frozen\":false,\"end\":null,"
                                            "\"payload\":{\"n\":1.10},\"none\":null}");
}

TEST(writer_escapes_what_must_be_escaped)
{
    assert_quoted("", "\"\"");
    assert_quoted("a\"b\\c/d", "\"a\\\"b\\\\c/d\"");
    assert_quoted("\b\f\n\r\t", "\"\\b\\f\\n\\r\\t\"");
    assert_quoted("\x01\x1f\x7f", "\"\\u0001\\u001f\x7f\"");
    assert_quoted("h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "\"h\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\"");
}

TEST(writer_replaces_bytes_that_are_not_utf8)
{
    assert_quoted("a\xff"
                  "b",
                  "\"a\xef\xbf\xbd"
                  "b\"");
    assert_quoted("\xc3", "\"\xef\xbf\xbd\"");
    assert_quoted("\xc3(", "\"\xef\xbf\xbd(\"");
    assert_quoted("\xed\xa0\x80", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
    assert_quoted("\xf0\x9f\x98", "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
}

TEST(writer_reals_are_short_and_read_back)
{
    assert_real(0.1, "0.1");
    assert_real(1.0, "1");
    assert_real(-0.0, "-0");
    assert_real(1e300, "1e+300");
    assert_real(0.1 + 0.2, "0.30000000000000004");
    assert_real(5e-324, "4.94065645841247e-324");
    assert_real((double)NAN, "null");
    assert_real((double)INFINITY, "null");
    assert_real((double)-INFINITY, "null");
}

TEST(writer_times_are_utc_and_zero_is_null)
{
    scoped_text Text text = {0};
    Writer           w;

    text_init(&text, NULL, TEXT_MAX_LINE);
    writer_open(&w, &text);
    writer_array(&w, NULL);
    writer_time(&w, NULL, 1);
    writer_time(&w, NULL, 1767323045678000);
    writer_time(&w, NULL, 0);
    writer_end(&w);
    assert_string_equal(text_string(&text), "[\"1970-01-01T00:00:00.000001Z\",\"2026-01-02T03:04:05.678000Z\",null]");
}

TEST(writer_quote_of_any_bytes_is_json)
{
    char     bytes[41];
    unsigned seed = 7;

    for (int round = 0; round < 5000; round++) {
        scoped_text Text text = {0};
        size_t           size = (size_t)rand_r(&seed) % (sizeof bytes - 1);

        for (size_t i = 0; i < size; i++)
            bytes[i] = (char)(rand_r(&seed) % 255 + 1);
        bytes[size] = '\0';
        text_init(&text, NULL, TEXT_MAX_LINE);
        writer_quote(&text, bytes);
        json_t *json = json_loadb(text_string(&text), text.length, JSON_DECODE_ANY, NULL);
        assert_non_null(json);
        if (text_is_utf8(bytes, size))
            assert_string_equal(json_string_value(json), bytes);
        json_decref(json);
    }
}

TEST(writer_reports_once_that_the_text_is_full)
{
    scoped_text Text text = {0};
    Writer           w;

    text_init(&text, NULL, 10);
    writer_open(&w, &text);
    writer_array(&w, NULL);
    for (int i = 0; i < 100; i++)
        writer_text(&w, NULL, "many");
    writer_end(&w);
    assert_true(text_is_full(&text));
    assert_true(text.length <= 10);
}

typedef struct {
    const char *name, *note, *data;
    int64_t     amount, at;
    int32_t     tries;
    bool        good;
} Row;

static const AnswerField row_fields[] = {
    TEXT("who", AT(Row, name)),
    TEXT("note", AT(Row, note), .optional = true),
    JSON("data", AT(Row, data), .nullable = true),
    I64("amount", AT(Row, amount)),
    I64("tries", AT(Row, tries)),
    BOOL("good", AT(Row, good)),
    TIME("at", AT(Row, at), .nullable = true),
};
static TABLE(row, "Row");

static void assert_row(const Row *row, const char *expected)
{
    scoped_text Text text = {0};
    Writer           writer;

    text_init(&text, NULL, TEXT_MAX_LINE);
    writer_open(&writer, &text);
    writer_row(&writer, &answer_row, row);
    assert_string_equal(text_string(&text), expected);
}

TEST(writer_row_writes_each_member_by_the_table)
{
    assert_row(&(Row){"ann", "a\"b", "{\"n\": 1}", INT64_MIN, 1763200000000001, INT32_MIN, true},
               "{\"who\":\"ann\",\"note\":\"a\\\"b\",\"data\":{\"n\": 1},\"amount\":-9223372036854775808,"
               "\"tries\":-2147483648,\"good\":true,\"at\":\"2025-11-15T09:46:40.000001Z\"}");
    /* What is missing is null, and an optional text is left out. */
    assert_row(&(Row){0}, "{\"who\":null,\"data\":null,\"amount\":0,\"tries\":0,\"good\":false,\"at\":null}");
}

typedef struct {
    const char *name, *key, *payload;
    int64_t     amount, priority;
    bool        priority_given, open;
    double      delay_s;
    ReaderArray words, items;
} Asked;

static const Field item_fields[] = {
    {"name", FIELD_TEXT, offsetof(Asked, name)}
};
static const FieldTable item_table     = {"item", item_fields, COUNT(item_fields), sizeof(Asked)};
static const Field      asked_fields[] = {
    {"name", FIELD_TEXT, offsetof(Asked, name)},
    {"key", FIELD_UUID, offsetof(Asked, key)},
    {"payload", FIELD_JSON, offsetof(Asked, payload)},
    {"amount", FIELD_I64, offsetof(Asked, amount)},
    {"priority", FIELD_I64, offsetof(Asked, priority), .is_set = offsetof(Asked, priority_given)},
    {"open", FIELD_BOOL, offsetof(Asked, open)},
    {"delay_s", FIELD_REAL, offsetof(Asked, delay_s)},
    {"words", FIELD_TEXTS, offsetof(Asked, words)},
    {"items", FIELD_ROWS, offsetof(Asked, items), .rows = &item_table},
};
static const FieldTable asked_table = {"asked", asked_fields, COUNT(asked_fields), sizeof(Asked)};

TEST(a_request_is_written_as_it_is_read)
{
    scoped(arena_free) Arena *arena   = arena_new(ARENA_BYTES_DEFAULT);
    const char               *words[] = {"a", "b"};
    Asked                     items[] = {{.name = "first"}, {.name = "second"}};
    Asked                     asked =
              {
                  "Ann",     "00000000-0000-4000-8000-000000000001", "[1.10]", -5, 0, true, true, 0.25, {words, 2},
                  {items, 2}
    },
          read;
    Text   text;
    Writer writer;

    text_init(&text, arena, TEXT_MAX_LINE);
    writer_open(&writer, &text);
    writer_request(&writer, &asked_table, &asked);
    assert_int_equal(reader_object(text_string(&text), text.length, &asked_table, arena, &read, NULL), OK);
    assert_string_equal(read.name, asked.name);
    assert_string_equal(read.key, asked.key);
    assert_string_equal(read.payload, asked.payload);
    assert_int_equal(read.amount, asked.amount);
    assert_true(read.priority_given && read.priority == 0 && read.open && read.delay_s == 0.25);
    assert_int_equal(read.words.count, 2);
    assert_string_equal(((const char *const *)read.words.items)[1], "b");
    assert_int_equal(read.items.count, 2);
    assert_string_equal(((const Asked *)read.items.items)[1].name, "second");
    /* What is absent is left out. */
    text_clear(&text);
    writer_open(&writer, &text);
    writer_request(&writer, &asked_table, &(Asked){0});
    assert_string_equal(text_string(&text), "{}");
}
