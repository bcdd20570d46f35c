/*
 * keys.h - a stack of the keys of all open objects, which finds the one that an object has twice.
 *
 * When an object ends, its keys are compared and dropped: a few by pairs, many through a table whose hash is keyed by a
 * secret, so that a client cannot choose keys that collide. Time is linear in their bytes.
 *
 * Threads: one at a time. Ownership: keys_done() frees the stack; the bytes of the keys are borrowed.
 */
#ifndef BASE_KEYS_H
#define BASE_KEYS_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    const char *bytes; /* without escapes */
    uint32_t    size;
    uint32_t    at; /* where it stands, for the caller */
} Key;

/* Zero is an empty stack. */
typedef struct {
    Key   *list;
    size_t count;
    size_t capacity;
} Keys;

void keys_push(Keys *keys, Key key);
/* The first key, from index `first` on, that is equal to one before it; NULL: they all differ. */
const Key *keys_repeat(const Keys *keys, size_t first);
void       keys_drop(Keys *keys, size_t first);
void       keys_done(Keys *keys);

#endif
