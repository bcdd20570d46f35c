/*
 * answer.h - the shape of a response's JSON: what FieldTable (base/reader.h) is for request bodies. OpenAPI is made
 * from it, writer_row() (base/writer.h) writes a struct by it, and answer_row_read() reads one. Each module has the
 * tables of its responses in its answers.c; a test compares the responses with them.
 */
#ifndef BASE_ANSWER_H
#define BASE_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/value.h"

typedef enum {
    ANSWER_I64,
    ANSWER_BOOL,
    ANSWER_TEXT,
    ANSWER_UUID,
    ANSWER_TIME, /* RFC 3339, UTC */
    ANSWER_JSON, /* any value */
    ANSWER_OBJECT,
    ANSWER_ROWS, /* array of objects */
} AnswerType;

typedef struct AnswerTable AnswerTable;
typedef struct {
    const char *name;
    AnswerType  type;
    bool        optional; /* it may be missing */
    bool        nullable;
    size_t      offset, size; /* of the member of the row's struct: see AT(); size 0: none, it is written by hand */
    const char *const *words; /* TEXT: the only values, ended by NULL */
    const AnswerTable *table; /* OBJECT, and each of ROWS */
    const char        *help;
} AnswerField;

struct AnswerTable {
    const char        *noun; /* "Wallet": the name of its schema, unique */
    const AnswerField *fields;
    size_t             count;
};

/* The members of the row that the table places, from what writer_row() writes; the others are untouched. A null, a
 * missing member and one of another type are zero. Texts live in the arena. */
void answer_row_read(const AnswerTable *table, Value object, Arena *arena, void *row);
/* An array of such objects into rows of this size, which begin as zeros. Returns how many. */
int answer_rows_read(const AnswerTable *table, Value array, size_t row_size, Arena *arena, void **ret_rows);

#endif
