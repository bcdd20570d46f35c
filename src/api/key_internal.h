/*
 * key_internal.h - what key.c and key_cache.c share: the hash of a token, the only form in which one is kept.
 */
#ifndef API_KEY_INTERNAL_H
#define API_KEY_INTERNAL_H

#include <sodium.h>
#include <stdbool.h>

typedef struct {
    unsigned char bytes[crypto_hash_sha256_BYTES];
} KeyHash;

KeyHash key_hash(const char *token);
/* Has it the form that key_token_new() makes? No other text causes a query. */
bool key_token_is_ours(const char *token);

#endif
