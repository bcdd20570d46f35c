/*
 * writer.h - writes JSON into a Text: adds commas and escapes, builds no tree.
 *
 *     writer_open(&w, &text); writer_object(&w, NULL);
 *     writer_text(&w, "owner", owner); writer_i64(&w, "balance", 200);
 *     writer_end(&w);
 *
 * The name is NULL inside arrays and at the top. A NULL text is written as null. Bytes that are not UTF-8 become
 * U+FFFD, so the output is always valid. Nesting is at most WRITER_DEPTH_MAX (asserted). Threads: one at a time, as its
 * Text.
 */
#ifndef BASE_WRITER_H
#define BASE_WRITER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/answer.h"
#include "base/reader.h"
#include "base/text.h"

#define WRITER_DEPTH_MAX 32

typedef struct {
    Text *text;
    int   depth;
    bool  comma[WRITER_DEPTH_MAX];
    char  closer[WRITER_DEPTH_MAX];
} Writer;

void writer_open(Writer *writer, Text *text);
void writer_object(Writer *writer, const char *name);
void writer_array(Writer *writer, const char *name);
void writer_end(Writer *writer); /* the innermost object or array */
void writer_text(Writer *writer, const char *name, const char *value);
void writer_i64(Writer *writer, const char *name, int64_t value);
void writer_real(Writer *writer, const char *name, double value);
void writer_bool(Writer *writer, const char *name, bool value);
void writer_time(Writer *writer, const char *name,
                 int64_t micros); /* since 1970, as RFC 3339 in UTC with microseconds; 0: null */
void writer_null(Writer *writer, const char *name);
void writer_raw(Writer *writer, const char *name, const char *json); /* valid JSON, e.g. from PostgreSQL; NULL: null */

/* One object, by the table of its fields, all of which are in the row. A text that is NULL is left out if its field is
 * optional. */
void writer_row(Writer *writer, const AnswerTable *table, const void *row);
/* Its fields alone, into an object that is open. */
void writer_fields(Writer *writer, const AnswerTable *table, const void *row);

/* The body of a request: an object with the fields of the table that are set, as reader_object() reads it. A number is
 * set if it is required or not 0. */
void writer_request(Writer *writer, const FieldTable *table, const void *request);

/* One row of a list as an object: how a module writes its rows. */
typedef void RowWrite(Writer *writer, const void *row);

/* Append value as a JSON string, quotes included. */
void writer_quote(Text *text, const char *value);

#endif
