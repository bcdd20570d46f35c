/*
 * answer.h - the shape of a response's JSON: what FieldTable (base/reader.h) is for request bodies. OpenAPI is made
 * from it, and writer_row() (base/writer.h) writes a struct by it. Each module has the tables of its responses in its
 * answers.c; a test compares the responses with them.
 */
#ifndef BASE_ANSWER_H
#define BASE_ANSWER_H

#include <stdbool.h>
#include <stddef.h>

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

#endif
