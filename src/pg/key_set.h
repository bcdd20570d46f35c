/*
 * key_set.h - a set of hashed keys in fixed memory, by a few bits of each.
 *
 * It may claim a key that was not added, because another one has the same bits; it never misses one that was. {0} is
 * empty. Threads: the caller's lock.
 */
#ifndef PG_KEY_SET_H
#define PG_KEY_SET_H

#include <stdbool.h>
#include <stdint.h>

#define KEY_SET_BITS 8192

typedef struct {
    bool     all; /* it has every key */
    uint64_t bits[KEY_SET_BITS / 64];
} KeySet;

/* count -1: the keys are not known, so the set has every key from now on. */
static inline void key_set_add(KeySet *set, const uint64_t *keys, int count)
{
    set->all |= count < 0;
    for (int i = 0; i < count; i++)
        set->bits[keys[i] % KEY_SET_BITS / 64] |= UINT64_C(1) << keys[i] % 64;
}

/* count -1: the keys are not known, so one of them may be in the set. */
static inline bool key_set_has_any(const KeySet *set, const uint64_t *keys, int count)
{
    bool has = set->all || count < 0;

    for (int i = 0; i < count && !has; i++)
        has = set->bits[keys[i] % KEY_SET_BITS / 64] >> keys[i] % 64 & 1;
    return has;
}

static inline void key_set_unite(KeySet *set, const KeySet *other)
{
    set->all |= other->all;
    for (int i = 0; i < KEY_SET_BITS / 64; i++)
        set->bits[i] |= other->bits[i];
}

#endif
