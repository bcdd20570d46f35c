/*
 * hash.h - FNV-1a: spreads short texts over buckets. Anyone can make two texts that collide, so equal hashes prove
 * nothing.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stdint.h>

static inline uint64_t hash_text(const char *text)
{
    uint64_t hash = 14695981039346656037u;

    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * 1099511628211u;
    return hash;
}

#endif
