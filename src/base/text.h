/*
 * text.h - a growing string with a maximum size that is set when it is created.
 *
 * Invariants
 *   1. bytes[length] is NUL once anything was appended; length <= length_max.
 *   2. An append that does not fit changes nothing but the flag, and so does every later one: there are no holes.
 *      text_is_full() is checked once, at the end, so writers need no check per append.
 * Threads: one at a time. Ownership: with an arena the bytes live there; without one text_done() frees them.
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/attr.h"

typedef struct {
    char  *bytes; /* NULL until the first append: use text_string() */
    size_t length;
    size_t length_max;
    size_t capacity;
    Arena *arena; /* NULL: the heap */
    bool   full;
} Text;

#define TEXT_MAX_LINE ((size_t)8 << 10)
#define TEXT_MAX_BODY ((size_t)16 << 20)

void        text_init(Text *text, Arena *arena, size_t length_max);
void        text_done(Text *text);
void        text_clear(Text *text);                  /* keeps the memory */
void        text_shorten(Text *text, size_t length); /* takes back what was appended since it had this length */
void        text_reserve(Text *text, size_t size);   /* so that so many more bytes are appended without a move */
void        text_append(Text *text, const char *string);
void        text_append_bytes(Text *text, const void *bytes, size_t size);
void        text_append_char(Text *text, char c);
void        text_print(Text *text, const char *format, ...) printf_like(2, 3);
const char *text_string(const Text *text); /* never NULL */
bool        text_is_full(const Text *text);

SCOPED(Text, text_done)
#define scoped_text __attribute__((cleanup(text_done)))

/* true when bytes are well-formed UTF-8 without NUL: what PostgreSQL's text can hold. */
bool text_is_utf8(const char *bytes, size_t size);
/* Puts "?" in the place of every byte that keeps it from being so. */
void text_clean(char *bytes, size_t size);
/* The number of a well-formed character that a terminal would obey instead of showing it: a control character but line
 * break and tab, or one that changes the direction of text. 0: it shows it. */
uint32_t text_obeyed(const char *character, size_t size);
/* Appends well-formed UTF-8, such characters as \u009b: a text in JSON keeps its value. */
void text_append_shown(Text *text, const char *utf8);
/* How many of size bytes to keep, at most size_max, without splitting a character. */
size_t text_cut(const char *bytes, size_t size, size_t size_max);
/* "in", "out": the nearest of the words by edit distance, else the only one that begins so; NULL: none. For "did you
 * mean". */
const char *text_nearest(const char *word, const char *const *words, size_t count);

/* The size of a well-formed character that begins with this byte. */
static inline size_t text_character_size(char first)
{
    unsigned char byte = (unsigned char)first;

    return byte < 0xc0 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4;
}

/* The value of a hexadecimal digit; -1: it is none. */
static inline int text_hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

#endif
