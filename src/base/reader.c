/*
 * reader.c - a table of fields laid over checked JSON.
 *
 * scan_check() has seen every byte before the first field is read, so this file only asks what a value means. Values
 * go to a row in the arena first and to the caller when all of them are right.
 */
#include "base/reader.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/scan.h"
#include "base/text.h"
#include "base/uuid.h"

#define NUMBER_TEXT_SIZE 512

#define FIELDS_MAX         64  /* one bit each in a uint64_t */
#define FIELD_NAME_RAW_MAX 512 /* a name with each letter as \uXXXX still fits */

static_assert(READER_DEPTH_MAX == SCAN_DEPTH_MAX, "the header promises what the scan does");

typedef struct {
    Arena *arena;
    Error *reterr;
} Reader;

/* Where a value stands: items[3].amount is three of these. Spelled out only when something is wrong. */
typedef struct Path Path;
struct Path {
    const Path *above; /* NULL: the body */
    const char *name;  /* NULL: the item with this index */
    int         index;
};

typedef struct {
    int64_t min, max;
} NumberRange;

static ErrorCode row_read(const Reader *reader, const Path *path, const FieldTable *table, const char *object,
                          void *ret_row);

/* What is right, and how to say that something is not. */

static NumberRange number_range(const Field *field)
{
    if (field->min == 0 && field->max == 0)
        return (NumberRange){INT64_MIN, INT64_MAX};
    return (NumberRange){field->min, field->max < field->min ? INT64_MAX : field->max};
}

static NumberRange count_range(const Field *field)
{
    return (NumberRange){field->min, field->max > 0 ? field->max : INT_MAX};
}

static NumberRange text_range(const Field *field)
{
    return (NumberRange){field->min, (int64_t)(field->length_max ? field->length_max : READER_TEXT_MAX)};
}

static bool range_has(NumberRange range, int64_t value)
{
    return value >= range.min && value <= range.max;
}

static void path_print(const Path *path, Text *text)
{
    if (path->above)
        path_print(path->above, text);
    if (path->name)
        text_print(text, "%s%s", text->length ? "." : "", path->name);
    else
        text_print(text, "[%d]", path->index);
}

static void words_print(const char *const *words, Text *text)
{
    text_append(text, "one of ");
    for (size_t i = 0; words[i]; i++)
        text_print(text, "%s\"%s\"", i ? ", " : "", words[i]);
}

/* "an array of 1 to 5 texts", "text of at most 200 bytes": the bounds that say something. */
static void bounds_print(const char *noun, NumberRange range, const char *unit, Text *text)
{
    text_append(text, noun);
    if (range.min > 0 && range.max < INT_MAX)
        text_print(text, " of %lld to %lld", (long long)range.min, (long long)range.max);
    else if (range.min > 0)
        text_print(text, " of at least %lld", (long long)range.min);
    else if (range.max < INT_MAX)
        text_print(text, " of at most %lld", (long long)range.max);
    else
        text_append(text, " of");
    text_print(text, " %s", unit);
}

static void rule_print(const Field *field, Text *text)
{
    NumberRange range = number_range(field);

    switch (field->type) {
    case FIELD_I64:
        text_print(text, "an integer from %lld to %lld", (long long)range.min, (long long)range.max);
        break;
    case FIELD_REAL:
        text_append(text, "a number");
        if (field->min != 0 || field->max != 0)
            text_print(text, " from %lld to %lld", (long long)range.min, (long long)range.max);
        break;
    case FIELD_BOOL:
        text_append(text, "true or false");
        break;
    case FIELD_TEXT:
        if (field->words)
            words_print(field->words, text);
        else
            bounds_print("text", text_range(field), "bytes", text);
        break;
    case FIELD_UUID:
        text_append(text, "a UUID");
        break;
    case FIELD_JSON:
        text_append(text, "a value");
        break;
    case FIELD_TEXTS:
        bounds_print("an array", count_range(field), "texts", text);
        break;
    case FIELD_ROWS:
        bounds_print("an array", count_range(field), "objects", text);
        break;
    case FIELD_OBJECT:
        text_append(text, "an object");
        break;
    }
}

static Excerpt value_excerpt(const char *value)
{
    if (*value == '{')
        return (Excerpt){"an object"};
    if (*value == '[')
        return (Excerpt){"an array"};
    return scan_excerpt(value, scan_value_end(value));
}

static ErrorCode refuse(const Reader *reader, const Path *path, const Field *field, const char *found)
{
    scoped_text Text text = {0};

    text_init(&text, NULL, TEXT_MAX_LINE);
    path_print(path, &text);
    text_append(&text, " must be ");
    rule_print(field, &text);
    return fail(reader->reterr, ERR_INVALID, "%s, got %s", text_string(&text), found);
}

static ErrorCode refuse_value(const Reader *reader, const Path *path, const Field *field, const char *value)
{
    return refuse(reader, path, field, value_excerpt(value).text);
}

static ErrorCode refuse_item(const Reader *reader, const Path *path, const char *value)
{
    scoped_text Text text = {0};

    text_init(&text, NULL, TEXT_MAX_LINE);
    path_print(path, &text);
    return fail(reader->reterr, ERR_INVALID, "%s must be an object, got %s", text_string(&text),
                value_excerpt(value).text);
}

static ErrorCode refuse_count(const Reader *reader, const Path *path, const Field *field, long long count)
{
    Excerpt found;

    snprintf(found.text, sizeof found.text, "%lld", count);
    return refuse(reader, path, field, found.text);
}

static ErrorCode refuse_missing(const Reader *reader, const Path *above, const Field *field)
{
    Path             path = {.above = above, .name = field->name};
    scoped_text Text text = {0};

    text_init(&text, NULL, TEXT_MAX_LINE);
    path_print(&path, &text);
    return fail(reader->reterr, ERR_INVALID, "missing field \"%s\"", text_string(&text));
}

static ErrorCode refuse_unknown(const Reader *reader, const Path *above, const FieldTable *table, const char *key)
{
    Excerpt          name = scan_excerpt(key + 1, scan_value_end(key) - 1);
    Path             path = {.above = above, .name = name.text};
    const char      *names[FIELDS_MAX];
    scoped_text Text text = {0};

    for (size_t i = 0; i < table->count; i++)
        names[i] = table->fields[i].name;
    const char *nearest = text_nearest(name.text, names, table->count);

    text_init(&text, NULL, TEXT_MAX_LINE);
    path_print(&path, &text);
    if (nearest)
        return fail(reader->reterr, ERR_INVALID, "unknown field \"%s\", did you mean \"%s\"?", text_string(&text),
                    nearest);
    return fail(reader->reterr, ERR_INVALID, "unknown field \"%s\"", text_string(&text));
}

/* Reading one value: each function gets a value of any kind and either stores it or refuses it. */

static ErrorCode memory_get(const Reader *reader, size_t bytes, void **ret_memory)
{
    if (!arena_has_space(reader->arena, bytes))
        return fail(reader->reterr, ERR_LIMIT, "body needs more memory than a request may use");
    *ret_memory = arena_alloc(reader->arena, bytes);
    return OK;
}

static bool is_number(const char *value)
{
    return *value == '-' || (*value >= '0' && *value <= '9');
}

/* The C library wants a NUL behind a number, and the body has none. false: not a number, or one of absurd length. */
static bool number_copy(const char *value, char *ret_text)
{
    size_t size = (size_t)(scan_value_end(value) - value);

    if (!is_number(value) || size >= NUMBER_TEXT_SIZE)
        return false;
    memcpy(ret_text, value, size);
    ret_text[size] = '\0';
    return true;
}

static ErrorCode i64_read(const Reader *reader, const Path *path, const Field *field, const char *value, void *ret)
{
    char text[NUMBER_TEXT_SIZE], *end;

    if (!number_copy(value, text))
        return refuse_value(reader, path, field, value);
    errno          = 0;
    int64_t number = strtoll(text, &end, 10);
    /* A fraction or an exponent stops strtoll before the end. */
    if (errno || *end || !range_has(number_range(field), number))
        return refuse_value(reader, path, field, value);
    memcpy(ret, &number, sizeof number);
    return OK;
}

static ErrorCode real_read(const Reader *reader, const Path *path, const Field *field, const char *value, void *ret)
{
    NumberRange range      = number_range(field);
    bool        has_limits = field->min != 0 || field->max != 0;
    char        text[NUMBER_TEXT_SIZE];

    if (!number_copy(value, text))
        return refuse_value(reader, path, field, value);
    double number = strtod(text, NULL);
    if (!isfinite(number) || (has_limits && (number < (double)range.min || number > (double)range.max)))
        return refuse_value(reader, path, field, value);
    memcpy(ret, &number, sizeof number);
    return OK;
}

static ErrorCode bool_read(const Reader *reader, const Path *path, const Field *field, const char *value, void *ret)
{
    if (*value != 't' && *value != 'f')
        return refuse_value(reader, path, field, value);
    *(bool *)ret = *value == 't';
    return OK;
}

static ErrorCode reader_string(const Reader *reader, const char *value, char **ret_text, size_t *ret_size)
{
    void *text;

    TRY(memory_get(reader, (size_t)(scan_value_end(value) - value), &text));
    *ret_size = scan_string(value, text);
    *ret_text = text;
    return OK;
}

static bool word_is_one_of(const char *word, const char *const *words)
{
    for (size_t i = 0; words[i]; i++)
        if (strcmp(word, words[i]) == 0)
            return true;
    return false;
}

static ErrorCode text_read(const Reader *reader, const Path *path, const Field *field, const char *value, void *ret)
{
    char  *text;
    size_t size;

    if (*value != '"')
        return refuse_value(reader, path, field, value);
    TRY(reader_string(reader, value, &text, &size));
    if (field->words && !word_is_one_of(text, field->words))
        return refuse_value(reader, path, field, value);
    if (!field->words && !range_has(text_range(field), (int64_t)size))
        return refuse_count(reader, path, field, (long long)size);
    memcpy(ret, &text, sizeof text);
    return OK;
}

static ErrorCode uuid_read(const Reader *reader, const Path *path, const Field *field, const char *value, void *ret)
{
    char  *text, lower[UUID_TEXT_SIZE];
    size_t size;

    if (*value != '"')
        return refuse_value(reader, path, field, value);
    TRY(reader_string(reader, value, &text, &size));
    if (size != UUID_TEXT_SIZE - 1 || !uuid_parse(text, lower))
        return refuse_value(reader, path, field, value);
    memcpy(text, lower, sizeof lower);
    memcpy(ret, &text, sizeof text);
    return OK;
}

static ErrorCode json_read(const Reader *reader, const Path *path, const Field *field, const char *value, void *ret)
{
    size_t size = (size_t)(scan_value_end(value) - value);
    void  *copy;

    if (*value == 'n')
        return refuse_value(reader, path, field, value);
    TRY(memory_get(reader, size + 1, &copy));
    memcpy(copy, value, size);
    memcpy(ret, &copy, sizeof copy);
    return OK;
}

static int items_count(const char *array)
{
    const char *at    = array + 1;
    int         count = 0;

    for (; scan_next(&at); count++)
        at = scan_value_end(at);
    return count;
}

/* Memory for the items of an array, if there may be as many as there are. */
static ErrorCode array_begin(const Reader *reader, const Path *path, const Field *field, const char *value, size_t size,
                             void **ret_items, int *ret_count)
{
    if (*value != '[')
        return refuse_value(reader, path, field, value);
    *ret_count = items_count(value);
    if (!range_has(count_range(field), *ret_count))
        return refuse_count(reader, path, field, *ret_count);
    return memory_get(reader, (size_t)*ret_count * size, ret_items);
}

static ErrorCode texts_read(const Reader *reader, const Path *path, const Field *field, const char *value, void *ret)
{
    Field       one  = {field->name, FIELD_TEXT, .length_max = field->length_max, .words = field->words};
    Path        item = {.above = path};
    const char *at   = value + 1;
    void       *items;
    int         count;

    TRY(array_begin(reader, path, field, value, sizeof(char *), &items, &count));
    for (; scan_next(&at); at = scan_value_end(at), item.index++)
        TRY(text_read(reader, &item, &one, at, (char **)items + item.index));
    *(ReaderArray *)ret = (ReaderArray){items, count};
    return OK;
}

static ErrorCode rows_read(const Reader *reader, const Path *path, const Field *field, const char *value, void *ret)
{
    Path        item = {.above = path};
    const char *at   = value + 1;
    void       *items;
    int         count;

    TRY(array_begin(reader, path, field, value, field->rows->size, &items, &count));
    for (; scan_next(&at); at = scan_value_end(at), item.index++) {
        if (*at != '{')
            return refuse_item(reader, &item, at);
        TRY(row_read(reader, &item, field->rows, at, (char *)items + (size_t)item.index * field->rows->size));
    }
    *(ReaderArray *)ret = (ReaderArray){items, count};
    return OK;
}

/* Checked by its table, then kept as it was sent. */
static ErrorCode object_read(const Reader *reader, const Path *path, const Field *field, const char *value, void *ret)
{
    void *row;

    if (*value != '{')
        return refuse_value(reader, path, field, value);
    TRY(memory_get(reader, field->rows->size, &row));
    TRY(row_read(reader, path, field->rows, value, row));
    return json_read(reader, path, field, value, ret);
}

typedef ErrorCode ValueRead(const Reader *reader, const Path *path, const Field *field, const char *value, void *ret);
static ValueRead *const value_reads[] = {
    [FIELD_I64] = i64_read,     [FIELD_REAL] = real_read, [FIELD_BOOL] = bool_read,
    [FIELD_TEXT] = text_read,   [FIELD_UUID] = uuid_read, [FIELD_JSON] = json_read,
    [FIELD_TEXTS] = texts_read, [FIELD_ROWS] = rows_read, [FIELD_OBJECT] = object_read,
};

/* Reading one object. */

/* NULL: there is no such field. */
static const Field *field_find(const FieldTable *table, const char *key)
{
    char name[FIELD_NAME_RAW_MAX + 1];

    if (scan_value_end(key) - key > FIELD_NAME_RAW_MAX)
        return NULL;
    name[scan_string(key, name)] = '\0';
    for (size_t i = 0; i < table->count; i++)
        if (strcmp(table->fields[i].name, name) == 0)
            return &table->fields[i];
    return NULL;
}

static ErrorCode reader_field(const Reader *reader, const Path *above, const Field *field, const char *value,
                              char *ret_row)
{
    Path path = {.above = above, .name = field->name};

    TRY(value_reads[field->type](reader, &path, field, value, ret_row + field->offset));
    if (field->is_set)
        *(bool *)(ret_row + field->is_set) = true;
    return OK;
}

static ErrorCode row_read(const Reader *reader, const Path *path, const FieldTable *table, const char *object,
                          void *ret_row)
{
    const char *at    = object + 1;
    uint64_t    given = 0;

    assert(table->count <= FIELDS_MAX);
    while (scan_next(&at)) {
        const char  *key = at, *value = scan_member_value(key);
        const Field *field = field_find(table, key);

        at = scan_value_end(value);
        if (!field)
            return refuse_unknown(reader, path, table, key);
        if (*value == 'n' && !field->required)
            continue;
        TRY(reader_field(reader, path, field, value, ret_row));
        given |= UINT64_C(1) << (field - table->fields);
    }
    for (size_t i = 0; i < table->count; i++)
        if (table->fields[i].required && !(given >> i & 1))
            return refuse_missing(reader, path, &table->fields[i]);
    return OK;
}

ErrorCode reader_object(const char *bytes, size_t size, const FieldTable *table, Arena *arena, void *ret_struct,
                        Error *reterr)
{
    Reader reader = {arena, reterr};
    void  *row;

    if (size == 0)
        return fail(reterr, ERR_INVALID, "body is missing: it must be a JSON object");
    TRY(scan_check(bytes, size, "body", reterr));
    if (*scan_space(bytes) != '{')
        return fail(reterr, ERR_INVALID, "body must be an object");
    TRY(memory_get(&reader, table->size, &row));
    TRY(row_read(&reader, /* path= */ NULL, table, scan_space(bytes), row));
    memcpy(ret_struct, row, table->size);
    return OK;
}

ErrorCode reader_check(const char *bytes, size_t size, Error *reterr)
{
    return scan_check(bytes, size, "value", reterr);
}
