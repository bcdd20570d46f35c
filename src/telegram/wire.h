/*
 * wire.h - JSON of the Bot API, read in place: a value that is missing, null or of another type counts as absent.
 *
 * A value is a pointer to its first byte in a text that scan_check() has accepted; NULL is no value. All functions
 * take NULL.
 * Threads: any. Ownership: texts are decoded into the arena.
 */
#ifndef TELEGRAM_WIRE_H
#define TELEGRAM_WIRE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/arena.h"

/* The whole text without the white space in front of it. */
const char *wire_open(const char *json);
/* A member of an object. */
const char *wire_member(const char *object, const char *name);
/* The next item of an array: *item is NULL for the first one, which makes it the first. false: there is none, or it
 * is no array. */
bool wire_next(const char *array, const char **item);
/* An integer; 0: none, or one that has more than 64 bits. */
int64_t wire_i64(const char *value);
bool    wire_true(const char *value);
/* A string, NULL: none. */
const char *wire_text(const char *value, Arena *arena);
/* The bytes of a value, as they stand. NULL: none. */
const char *wire_raw(const char *value, Arena *arena);

#endif
