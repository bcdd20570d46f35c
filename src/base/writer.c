/*
 * writer.c - JSON out: the only state is, for each open bracket, whether a comma is due and what closes it.
 */
#include "base/writer.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"

#define REAL_TEXT_SIZE 32

/* Everything that stands before a value: the comma and the name. */
static void value_begin(Writer *writer, const char *name)
{
    if (writer->depth == 0) {
        assert(!name);
        return;
    }
    int top = writer->depth - 1;
    assert((name != NULL) == (writer->closer[top] == '}'));
    if (writer->comma[top])
        text_append_char(writer->text, ',');
    writer->comma[top] = true;
    if (name) {
        writer_quote(writer->text, name);
        text_append_char(writer->text, ':');
    }
}

static void bracket_open(Writer *writer, const char *name, char opener, char closer)
{
    value_begin(writer, name);
    assert(writer->depth < WRITER_DEPTH_MAX);
    writer->comma[writer->depth]  = false;
    writer->closer[writer->depth] = closer;
    writer->depth++;
    text_append_char(writer->text, opener);
}

void writer_open(Writer *writer, Text *text)
{
    *writer = (Writer){.text = text};
}

void writer_object(Writer *writer, const char *name)
{
    bracket_open(writer, name, '{', '}');
}

void writer_array(Writer *writer, const char *name)
{
    bracket_open(writer, name, '[', ']');
}

void writer_end(Writer *writer)
{
    assert(writer->depth > 0);
    text_append_char(writer->text, writer->closer[--writer->depth]);
}

void writer_text(Writer *writer, const char *name, const char *value)
{
    value_begin(writer, name);
    if (value)
        writer_quote(writer->text, value);
    else
        text_append(writer->text, "null");
}

void writer_i64(Writer *writer, const char *name, int64_t value)
{
    value_begin(writer, name);
    text_print(writer->text, "%lld", (long long)value);
}

void writer_real(Writer *writer, const char *name, double value)
{
    char digits[REAL_TEXT_SIZE];

    if (!isfinite(value)) {
        writer_null(writer, name);
        return;
    }
    /* The fewest digits that read back as the same number; 17 always do. */
    for (int precision = 15; precision <= 17; precision++) {
        int length = snprintf(digits, sizeof digits, "%.*g", precision, value);

        assert(length > 0 && (size_t)length < sizeof digits);
        double back = strtod(digits, NULL);
        if (!(back < value) && !(back > value))
            break;
    }
    value_begin(writer, name);
    text_append(writer->text, digits);
}

void writer_bool(Writer *writer, const char *name, bool value)
{
    value_begin(writer, name);
    text_append(writer->text, value ? "true" : "false");
}

void writer_time(Writer *writer, const char *name, int64_t micros)
{
    char text[WALL_TEXT_SIZE];

    if (!micros) {
        writer_null(writer, name);
        return;
    }
    wall_text_us((Wall){micros}, text);
    writer_text(writer, name, text);
}

void writer_null(Writer *writer, const char *name)
{
    value_begin(writer, name);
    text_append(writer->text, "null");
}

void writer_raw(Writer *writer, const char *name, const char *json)
{
    value_begin(writer, name);
    text_append(writer->text, json ? json : "null");
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

static void escape_append(Text *text, unsigned char c)
{
    static const char codes[] = "\"\\\b\f\n\r\t", names[] = "\"\\bfnrt";
    const char       *found = strchr(codes, c);

    if (found)
        text_print(text, "\\%c", names[found - codes]);
    else
        text_print(text, "\\u%04x", c);
}

/* The size of the well-formed character that begins here, 0: none does. */
static size_t character_size(const char *bytes, size_t left)
{
    for (size_t size = 2; size <= 4 && size <= left; size++)
        if (text_is_utf8(bytes, size))
            return size;
    return 0;
}

static void field_write(Writer *writer, const AnswerField *field, const void *row)
{
    const char *at   = (const char *)row + field->offset;
    const char *text = NULL;

    assert(field->size);
    switch (field->type) {
    case ANSWER_I64:
        writer_i64(writer, field->name, field->size == sizeof(int32_t) ? *(const int32_t *)at : *(const int64_t *)at);
        return;
    case ANSWER_BOOL:
        writer_bool(writer, field->name, *(const bool *)at);
        return;
    case ANSWER_TIME:
        writer_time(writer, field->name, *(const int64_t *)at);
        return;
    case ANSWER_TEXT:
    case ANSWER_UUID:
    case ANSWER_JSON:
        text = *(const char *const *)at;
        break;
    case ANSWER_OBJECT:
    case ANSWER_ROWS:
        assert(false); /* a member of a row is one value */
    }
    if (text || !field->optional)
        (field->type == ANSWER_JSON ? writer_raw : writer_text)(writer, field->name, text);
}

void writer_fields(Writer *writer, const AnswerTable *table, const void *row)
{
    for (size_t i = 0; i < table->count; i++)
        field_write(writer, &table->fields[i], row);
}

void writer_row(Writer *writer, const AnswerTable *table, const void *row)
{
    writer_object(writer, NULL);
    writer_fields(writer, table, row);
    writer_end(writer);
}

/* Is there a value? An absent field is zero. */
static bool field_is_set(const Field *field, const char *request)
{
    const char *at = request + field->offset;

    if (field->is_set)
        return *(const bool *)(request + field->is_set);
    switch (field->type) {
    case FIELD_I64:
        return field->required || *(const int64_t *)at != 0;
    case FIELD_REAL:
        return *(const double *)at != 0;
    case FIELD_BOOL:
        return *(const bool *)at;
    case FIELD_TEXTS:
    case FIELD_ROWS:
        return ((const ReaderArray *)at)->items != NULL;
    case FIELD_TEXT:
    case FIELD_UUID:
    case FIELD_JSON:
    case FIELD_OBJECT:
        break;
    }
    return *(const char *const *)at != NULL;
}

static void field_array_write(Writer *writer, const Field *field, const ReaderArray *array)
{
    writer_array(writer, field->name);
    for (int i = 0; i < array->count; i++)
        if (field->type == FIELD_TEXTS)
            writer_text(writer, NULL, ((const char *const *)array->items)[i]);
        else
            writer_request(writer, field->rows, (const char *)array->items + (size_t)i * field->rows->size);
    writer_end(writer);
}

static void field_value_write(Writer *writer, const Field *field, const char *at)
{
    switch (field->type) {
    case FIELD_I64:
        writer_i64(writer, field->name, *(const int64_t *)at);
        break;
    case FIELD_REAL:
        writer_real(writer, field->name, *(const double *)at);
        break;
    case FIELD_BOOL:
        writer_bool(writer, field->name, *(const bool *)at);
        break;
    case FIELD_TEXT:
    case FIELD_UUID:
        writer_text(writer, field->name, *(const char *const *)at);
        break;
    case FIELD_JSON:
    case FIELD_OBJECT:
        writer_raw(writer, field->name, *(const char *const *)at);
        break;
    case FIELD_TEXTS:
    case FIELD_ROWS:
        field_array_write(writer, field, (const ReaderArray *)at);
        break;
    }
}

void writer_request(Writer *writer, const FieldTable *table, const void *request)
{
    writer_object(writer, NULL);
    for (size_t i = 0; i < table->count; i++)
        if (field_is_set(&table->fields[i], request))
            field_value_write(writer, &table->fields[i], (const char *)request + table->fields[i].offset);
    writer_end(writer);
}

void writer_quote(Text *text, const char *value)
{
    const char *end = value + strlen(value);

    text_append_char(text, '"');
    while (value < end) {
        const char *plain = value;

        while (is_plain((unsigned char)*value)) /* the NUL at the end is not plain */
            value++;
        text_append_bytes(text, plain, (size_t)(value - plain));
        if (value == end)
            break;
        if ((unsigned char)*value < 0x80) {
            escape_append(text, (unsigned char)*value++);
            continue;
        }
        size_t size = character_size(value, (size_t)(end - value));
        if (size > 0)
            text_append_bytes(text, value, size);
        else
            text_append(text, "\xef\xbf\xbd"); /* U+FFFD */
        value += size ? size : 1;
    }
    text_append_char(text, '"');
}
