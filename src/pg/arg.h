/*
 * arg.h - the bound parameters of a statement: numbers and texts as text, arrays in PostgreSQL's binary format.
 *
 * Threads: any; nothing is shared. Ownership: texts are borrowed until the statement was run; arrays live in the arena.
 */
#ifndef PG_ARG_H
#define PG_ARG_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/bound.h"

/* One bound parameter. Build it with db_i64() and friends, never by hand. One that did not fit into the arena fails the
 * query that it is given to, with ERR_LIMIT, before anything is sent. */
typedef struct {
    Oid         type;
    bool        null;
    bool        too_large;
    bool        is_binary;
    int         length;   /* of a binary one */
    const char *text;     /* NULL: digits */
    const char *bad_uuid; /* an element that is none: fails the query with ERR_INVALID */
    char        digits[32];
} DbArg;
typedef struct {
    const DbArg *list;
    int          count;
} DbArgs;

DbArg db_i32(int32_t value);
DbArg db_i64(int64_t value);
DbArg db_bool(bool value);
DbArg db_text(const char *value); /* borrowed; NULL is SQL null; so for the next three */
DbArg db_uuid(const char *value);
DbArg db_jsonb(const char *value);
DbArg db_bytea(Arena *arena, const void *bytes, size_t size);
DbArg db_null(void);
/* Arrays, built in the arena; a NULL element is SQL null. */
DbArg db_i32s(Arena *arena, const int32_t *values, int count);
DbArg db_i64s(Arena *arena, const int64_t *values, int count);
DbArg db_texts(Arena *arena, const char *const *values, int count);
DbArg db_uuids(Arena *arena, const char *const *values, int count);
DbArg db_bound(Arena *arena, const Bound *bound); /* its patterns; NULL: SQL null */
DbArg db_jsonbs(Arena *arena, const char *const *values, int count);
/* The same of the texts (const char *) at this offset of each item; SQL null if no item has one. items: an array of
 * pointers. */
DbArg db_texts_at(Arena *arena, const void *items, int count, size_t offset);
DbArg db_uuids_at(Arena *arena, const void *items, int count, size_t offset);
#define DB_ARGS(...) ((DbArgs){(const DbArg[]){__VA_ARGS__}, (int)COUNT(((const DbArg[]){__VA_ARGS__}))})
#define DB_NONE      ((DbArgs){NULL, 0})
#define DB_ARGS_MAX  32

#endif
