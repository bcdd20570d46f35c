/*
 * scan.h - strict JSON (RFC 8259), read in place: checked first, then traversed, never copied into a tree.
 *
 * scan_check() accepts a text or names the line and column where it goes wrong. What it has accepted can be walked
 * without any further check, and each value is a slice of the original bytes: so a payload stays byte for byte what
 * was sent, with all digits of its numbers.
 *
 * Beyond the grammar it refuses what PostgreSQL or a careless reader would trip over: bytes that are not UTF-8, U+0000,
 * lone surrogates, the same key twice in one object, and nesting deeper than SCAN_DEPTH_MAX.
 *
 * Time is linear in the size, whatever the bytes. Threads: any. reader.c lays tables of fields over it; src/process
 * walks definition files, templates and states with it.
 */
#ifndef BASE_SCAN_H
#define BASE_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"

#define SCAN_DEPTH_MAX 64
#define SCAN_BYTES_MAX ((size_t)16 << 20)

/* ERR_INVALID: not JSON, or refused as above. ERR_LIMIT: more than SCAN_BYTES_MAX. what: "body", for the message. */
must_check ErrorCode scan_check(const char *bytes, size_t size, const char *what, Error *reterr);
/* The same for callers that print the location themselves: *ret_at is where it goes wrong, the text only says why. */
must_check ErrorCode scan_check_at(const char *bytes, size_t size, const char **ret_at, Error *reterr);
/* Line and column of a byte, both from 1; columns are characters, not bytes. */
void scan_locate(const char *start, const char *at, int *ret_line, int *ret_column);

/* At most SCAN_EXCERPT_MAX bytes of a value or key, whole characters, "..." when there is more: for messages. */
#define SCAN_EXCERPT_MAX 40
typedef struct {
    char text[SCAN_EXCERPT_MAX + sizeof "..."];
} Excerpt;
Excerpt scan_excerpt(const char *begin, const char *end);

/* The rest trusts that scan_check() said OK and that `at` stands inside an object or an array. */

const char *scan_space(const char *at);
/* The first byte behind the value that begins at `value`. */
const char *scan_value_end(const char *value);
/* From behind an opening bracket or a value to the next member or item. false: there is none, *at is behind the end. */
bool scan_next(const char **at);
/* From a member's key to its value. */
const char *scan_member_value(const char *key);
/* Decode the string between its quotes into ret_bytes, which is at least as large as the raw form. No NUL is
 * put behind. Returns the decoded size. */
size_t scan_string(const char *string, char *ret_bytes);

#endif
