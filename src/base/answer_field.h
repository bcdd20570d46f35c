/*
 * answer_field.h - short names for rows of an AnswerTable. For files of tables only: include it last.
 */
#ifndef BASE_ANSWER_FIELD_H
#define BASE_ANSWER_FIELD_H

#include "base/answer.h"
#include "base/attr.h"

/* clang-format off */
#define TABLE(name, noun) const AnswerTable answer_##name = {noun, name##_fields, COUNT(name##_fields)}
/* Where writer_row() finds it. */
#define AT(Row, member) .offset = offsetof(Row, member), .size = sizeof(((Row *)0)->member)
#define I64(name, ...)  {name, ANSWER_I64, ##__VA_ARGS__}
#define BOOL(name, ...) {name, ANSWER_BOOL, ##__VA_ARGS__}
#define TEXT(name, ...) {name, ANSWER_TEXT, ##__VA_ARGS__}
#define UUID(name, ...) {name, ANSWER_UUID, ##__VA_ARGS__}
#define TIME(name, ...) {name, ANSWER_TIME, ##__VA_ARGS__}
#define JSON(name, ...) {name, ANSWER_JSON, ##__VA_ARGS__}
#define ROWS(name, rows, ...) {name, ANSWER_ROWS, .table = &answer_##rows, ##__VA_ARGS__}

#define NEXT_CURSOR \
    I64("next_cursor", .nullable = true, .help = "null: there is no more; a page may be short, even empty, and have a next one")
/* clang-format on */

#endif
