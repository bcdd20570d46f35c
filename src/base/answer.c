/*
 * answer.c - see answer.h.
 */
#include "base/answer.h"

#include <string.h>

#include "base/moment.h"

/* A value that the field cannot have is read as missing: 0, false, NULL. */
static void member_read(const AnswerField *field, Value value, Arena *arena, char *at)
{
    const char *text;
    int64_t     number;

    switch (field->type) {
    case ANSWER_I64:
        number = value_i64(value);
        if (field->size == sizeof(int32_t))
            *(int32_t *)at = (int32_t)number;
        else
            *(int64_t *)at = number;
        break;
    case ANSWER_BOOL:
        *(bool *)at = value_true(value);
        break;
    case ANSWER_TEXT:
    case ANSWER_UUID:
        *(const char **)at = value_text(value, arena);
        break;
    case ANSWER_JSON:
        *(const char **)at = value.size ? value_raw(value, arena) : NULL;
        break;
    case ANSWER_TIME:
        text           = value_text(value, arena);
        *(int64_t *)at = text && moment_parse(text, MOMENT_RFC3339, &number) ? number : 0;
        break;
    case ANSWER_OBJECT:
    case ANSWER_ROWS:
        break; /* a member of a row is one value */
    }
}

void answer_row_read(const AnswerTable *table, Value object, Arena *arena, void *row)
{
    for (size_t i = 0; i < table->count; i++) {
        const AnswerField *field = &table->fields[i];

        if (field->size)
            member_read(field, value_field(object, field->name), arena, (char *)row + field->offset);
    }
}

int answer_rows_read(const AnswerTable *table, Value array, size_t row_size, Arena *arena, void **ret_rows)
{
    int         count = (int)value_item_count(array), i = 0;
    char       *rows = arena_alloc(arena, (size_t)(count ? count : 1) * row_size);
    const char *at   = NULL;
    Value       item;

    memset(rows, 0, (size_t)(count ? count : 1) * row_size);
    while (value_item_next(array, &at, &item))
        answer_row_read(table, item, arena, rows + (size_t)i++ * row_size);
    *ret_rows = rows;
    return count;
}
