/*
 * answer_test.c - rows are read as they were written.
 */
#include "base/answer.h"

#include "base/writer.h"
#include "test/harness/test.h"

#include "base/answer_field.h"

typedef struct {
    int64_t     id, at;
    int32_t     count;
    bool        frozen;
    const char *name, *key, *payload, *error;
} Row;

static const AnswerField row_fields[] = {I64("id", AT(Row, id)),
                                         I64("count", AT(Row, count)),
                                         TIME("at", AT(Row, at), .nullable = true),
                                         BOOL("frozen", AT(Row, frozen)),
                                         TEXT("name", AT(Row, name)),
                                         UUID("key", AT(Row, key)),
                                         JSON("payload", AT(Row, payload), .nullable = true),
                                         TEXT("error", AT(Row, error), .optional = true),
                                         JSON("by_hand")};
static const AnswerTable row_table    = {"Row", row_fields, COUNT(row_fields) - 1};
static const AnswerTable all_table    = {"Row", row_fields, COUNT(row_fields)};

TEST(a_row_is_read_as_it_was_written)
{
    scoped(arena_free) Arena *arena = arena_new(ARENA_BYTES_DEFAULT);
    Row                       row   = {
        INT64_MIN, 1700000000123456, -7, true, "Ann \"A\"\n", "00000000-0000-4000-8000-000000000001", "{\"n\":1.10}",
        NULL};
    Row    read = {.error = "stays"};
    Row   *rows;
    Text   text;
    Writer writer;

    text_init(&text, arena, TEXT_MAX_LINE);
    writer_open(&writer, &text);
    writer_array(&writer, NULL);
    writer_row(&writer, &row_table, &row);
    writer_row(&writer, &row_table, &(Row){.name = "", .error = "broken"});
    writer_end(&writer);
    Value array = {text_string(&text), text.length};
    assert_int_equal(answer_rows_read(&all_table, array, sizeof(Row), arena, (void **)&rows), 2);
    assert_int_equal(rows[0].id, row.id);
    assert_int_equal(rows[0].at, row.at);
    assert_int_equal(rows[0].count, row.count);
    assert_true(rows[0].frozen);
    assert_string_equal(rows[0].name, row.name);
    assert_string_equal(rows[0].key, row.key);
    assert_string_equal(rows[0].payload, row.payload);
    assert_null(rows[0].error);
    assert_int_equal(rows[1].at, 0);
    assert_string_equal(rows[1].name, "");
    assert_null(rows[1].payload);
    assert_string_equal(rows[1].error, "broken");
    /* Missing, or of another type: zero. */
    answer_row_read(&row_table, (Value){"{\"id\":\"x\",\"at\":\"soon\"}", 22}, arena, &read);
    assert_int_equal(read.id, 0);
    assert_int_equal(read.at, 0);
    assert_null(read.error);
    assert_int_equal(answer_rows_read(&row_table, (Value){"null", 4}, sizeof(Row), arena, (void **)&rows), 0);
}
