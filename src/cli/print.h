/*
 * print.h - tables for people: columns as wide as their widest cell, numbers to the right.
 */
#ifndef CLI_PRINT_H
#define CLI_PRINT_H

#include <stdint.h>

#include "base/arena.h"
#include "base/text.h"

#define TABLE_COLUMNS_MAX 12

typedef struct {
    Arena       *arena;
    const char **cells; /* row by row, the head first */
    int          columns, count, room;
} Table;

/* The head's words, ended by NULL; a word that begins with ">" has its column to the right. */
void table_init(Table *table, Arena *arena, const char *const *head);
/* The next cell; NULL is shown as "-". Control characters become spaces. */
void table_cell(Table *table, const char *text);
void table_cell_i64(Table *table, int64_t value);
/* UTC, to the second; 0 is shown as "-". */
void table_cell_time(Table *table, int64_t micros);
/* To standard output; `none` instead, to standard error, when there are no rows. */
void table_print(const Table *table, const char *none);

/* A finished JSON text and a line break, to standard output. */
void print_json(const Text *text);

#endif
