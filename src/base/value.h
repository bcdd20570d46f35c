/*
 * value.h - a JSON value as the slice of bytes in which it is written.
 *
 * Values are never turned into a tree, so a value that goes from a result into a state or a request keeps every digit
 * and every byte.
 *
 * Invariants
 *   1. A Value is well-formed JSON without white space around it: it comes from scan_check(), from PostgreSQL's jsonb,
 *      or from another Value. A size of 0 means that there is no value.
 *   2. Numbers are compared exactly, whatever their length and exponent.
 * Threads: any. Ownership: bytes are borrowed; they need no NUL behind them.
 */
#ifndef BASE_VALUE_H
#define BASE_VALUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/text.h"

typedef struct {
    const char *bytes;
    size_t      size;
} Value;

typedef enum {
    VALUE_MISSING,
    VALUE_NULL,
    VALUE_FALSE,
    VALUE_TRUE,
    VALUE_NUMBER,
    VALUE_STRING,
    VALUE_ARRAY,
    VALUE_OBJECT,
} ValueKind;

/* The value that begins here, within checked JSON. */
Value value_slice(const char *value);
/* Without the white space around it. */
Value       value_trim(const char *bytes, size_t size);
ValueKind   value_kind(Value value);
const char *value_kind_name(ValueKind kind); /* "a number" */
/* The value of a member; missing: it is no object, or it has none of this name. */
Value value_member(Value object, const char *name, size_t size);
/* The item with this index, from 0; missing: it is no array, or it is shorter. */
Value value_item(Value array, int64_t index);
/* As value_member(), and a null is missing, too. */
Value value_field(Value object, const char *name);
/* The items one after the other; *at is NULL before the first. false: there is none left, or it is no array. */
bool    value_item_next(Value array, const char **at, Value *ret_item);
int64_t value_item_count(Value array);

/* A string without its quotes and escapes, anything else as JSON. */
void value_print(Value value, Text *text);
/* The same as part of a JSON string: what value_print() would append, escaped. */
void value_print_escaped(Value value, Text *text);
/* Plain bytes (UTF-8) as part of a JSON string. */
void value_escape(const char *bytes, size_t size, Text *text);

/* From offsets in a decoded string to the bytes in which it is written: forward only, so that all of them together
 * cost one walk. */
typedef struct {
    const char *raw;
    size_t      offset;
} ValueCursor;
ValueCursor value_cursor(Value string);
const char *value_cursor_move(ValueCursor *cursor, size_t offset);
/* A string without its quotes and escapes, in the arena if it has any. */
Value value_decode(Value string, Arena *arena);

/* Of a value that may be missing or of another type: 0, false and NULL then. Texts are in the arena, with a NUL behind
 * them. */
int64_t     value_i64(Value value); /* 0 as well for a fraction, an exponent and more than 64 bits */
bool        value_true(Value value);
const char *value_text(Value value, Arena *arena); /* of a string */
const char *value_raw(Value value, Arena *arena);  /* as it is written */

/* <0, 0, >0. Both are numbers. */
int value_compare_numbers(Value a, Value b);
/* <0, 0, >0, by bytes without escapes. Both are strings. */
int value_compare_strings(Value a, Value b);
/* Equal for values that are equal as jsonb, however they are written: with other spaces, escapes and zeros, or
 * members in another order. */
#define VALUE_HASH_BYTES 16
void value_hash(Value value, unsigned char *ret_hash);

#endif
