/*
 * print.h - tables for people: columns as wide as their widest cell, numbers to the right; and lists, for programs too. On a terminal, tables keep to
 * its width: a row of a list is one line, or two if its last column does not fit; columns before it that do not fit are left out.
 */
#ifndef CLI_PRINT_H
#define CLI_PRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/error.h"
#include "base/finding.h"
#include "base/text.h"
#include "base/writer.h"
#include "cli/command.h"

#define TABLE_COLUMNS_MAX 12

typedef struct {
    Arena       *arena;
    const char **cells; /* row by row, the head first */
    int          columns, count, capacity;
    /* What is wider than the terminal is cut, with "…"; false: it is wrapped. In both, a last column that does not fit stands below its row. */
    bool is_cut;
} Table;

/* The head's words, ended by NULL; a word that begins with ">" has its column to the right. */
void table_init(Table *table, Arena *arena, const char *const *head);
/* The next cell; NULL is shown as "-". Line breaks and tabs become spaces. */
void table_cell(Table *table, const char *text);
void table_cell_i64(Table *table, int64_t value);
/* UTC, to the second, with the Z of UTC; 0 is shown as "-". */
void table_cell_time(Table *table, int64_t micros);
/* To standard output; `none` instead, to standard error, when there are no rows. */
void table_print(const Table *table, const char *none);

/* One row as a JSON object, to standard output. */
void object_print(RowWrite *write, Arena *arena, const void *row);

/* A list: a table for people, an array of objects for programs. */
typedef enum { CELL_TEXT, CELL_I32, CELL_I64, CELL_TIME } CellType;
typedef struct {
    const char *head; /* as for table_init() */
    const char *key;  /* in JSON; NULL where write() does that */
    CellType    type;
    size_t      offset; /* in the row */
} ListColumn;
typedef struct {
    const ListColumn *columns;
    int               count;
    size_t            row_size;
    const char       *none;  /* as for table_print() */
    RowWrite         *write; /* one row as JSON; NULL: its columns */
} ListShape;
void list_print(const ListShape *shape, Arena *arena, bool json, const void *rows, int count);

/* The same in pages. JSON is printed as it comes, so that a list may be larger than memory; a table is printed at the end. */
typedef struct {
    const ListShape *shape;
    bool             json;
    int64_t          count;
    Table            table;
} List;
void list_begin(List *list, const ListShape *shape, Arena *arena, bool json);
void list_rows(List *list, const void *rows, int count); /* borrowed */
void list_end(List *list);

/* A line. On a terminal it is wrapped to its width, and what follows the first line has this indent. */
void print_wrapped(const char *text, int indent);
/* "name         value", wrapped in the column of the value; nothing if value is NULL. */
#define PRINT_NAME_WIDTH 12
void print_line(const char *name, const char *value);

/* For one JSON document. In the arena. */
Writer *print_writer(Arena *arena);
/* The finished document and a line break, to standard output; nothing if it was too large: see print_failed(). */
void print_json(const Writer *writer);
/* Was something too large to be printed whole? Then it was not printed at all. */
bool print_failed(void);

/* ---- findings ---- */

/* A table of rows and problems. */
void findings_print(const Call *call, const Findings *findings);
/* ERR_CONFLICT with the number of findings, OK if there is none. */
must_check ErrorCode findings_verdict(const Findings *findings, Error *reterr);

/* ---- moments ---- */

/* As RFC 3339, in the arena, to the microsecond; NULL for 0. */
const char *moment_text(Arena *arena, int64_t micros);
/* "2026-11-15T08:51:01.180288Z" as people read it, to the millisecond; NULL for NULL. */
const char *moment_short(Arena *arena, const char *iso);

#endif
