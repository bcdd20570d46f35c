/*
 * keys.c - equal keys, found in linear time for any input.
 */
#include "base/keys.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include <sodium.h>

#include "base/memory.h"

#define SPACE_MIN    32
#define BY_PAIRS_MAX 16 /* up to here comparing is cheaper than hashing */

static bool key_equals(const Key *a, const Key *b)
{
    return a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}

static const Key *repeat_by_pairs(const Key *list, size_t count)
{
    for (size_t i = 1; i < count; i++)
        for (size_t j = 0; j < i; j++)
            if (key_equals(&list[i], &list[j]))
                return &list[i];
    return NULL;
}

static size_t keys_hash(const Key *key, const uint8_t *secret)
{
    uint64_t hash;

    static_assert(sizeof hash == crypto_shorthash_BYTES, "one hash is one number");
    crypto_shorthash((unsigned char *)&hash, (const unsigned char *)key->bytes, key->size, secret);
    return (size_t)hash;
}

static const Key *repeat_by_hash(const Key *list, size_t count)
{
    uint8_t    secret[crypto_shorthash_KEYBYTES];
    const Key *repeated = NULL;
    size_t     slots    = 1;

    while (slots < count * 2)
        slots *= 2;
    uint32_t *table = memory_new(slots, sizeof *table); /* index + 1; 0: free */
    if (getrandom(secret, sizeof secret, 0) != sizeof secret)
        abort();
    for (size_t i = 0; i < count && !repeated; i++) {
        size_t slot = keys_hash(&list[i], secret) & (slots - 1);

        while (table[slot] && !key_equals(&list[table[slot] - 1], &list[i]))
            slot = (slot + 1) & (slots - 1);
        if (table[slot])
            repeated = &list[i];
        table[slot] = (uint32_t)i + 1;
    }
    free(table);
    return repeated;
}

void keys_push(Keys *keys, Key key)
{
    if (keys->count == keys->capacity) {
        keys->capacity = keys->capacity ? keys->capacity * 2 : SPACE_MIN;
        keys->list     = realloc(keys->list, keys->capacity * sizeof *keys->list);
        if (!keys->list)
            abort();
    }
    keys->list[keys->count++] = key;
}

const Key *keys_repeat(const Keys *keys, size_t first)
{
    const Key *list  = keys->list + first;
    size_t     count = keys->count - first;

    return count <= BY_PAIRS_MAX ? repeat_by_pairs(list, count) : repeat_by_hash(list, count);
}

void keys_drop(Keys *keys, size_t first)
{
    assert(first <= keys->count);
    keys->count = first;
}

void keys_done(Keys *keys)
{
    free(keys->list);
    *keys = (Keys){0};
}
