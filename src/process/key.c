/*
 * key.c - see key.h.
 */
#include "process/key.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

#define RECORD_SIZE 512

void step_key(const KeyOwner *owner, const char *record, char *ret_uuid)
{
    unsigned char            hash[16];
    crypto_generichash_state state;

    /* A hash of 128 bits as a UUID of version 8. */
    crypto_generichash_init(&state, (const unsigned char *)owner->secret, owner->secret ? strlen(owner->secret) : 0,
                            sizeof hash);
    crypto_generichash_update(&state, (const unsigned char *)owner->queue, strlen(owner->queue) + 1);
    crypto_generichash_update(&state, (const unsigned char *)owner->process_id, strlen(owner->process_id) + 1);
    crypto_generichash_update(&state, (const unsigned char *)record, strlen(record));
    crypto_generichash_final(&state, hash, sizeof hash);
    hash[6] = (unsigned char)((hash[6] & 0x0f) | 0x80);
    hash[8] = (unsigned char)((hash[8] & 0x3f) | 0x80);
    for (int i = 0, at = 0; i < 16; i++) {
        at += snprintf(ret_uuid + at, 3, "%02x", hash[i]);
        if (i == 3 || i == 5 || i == 7 || i == 9)
            ret_uuid[at++] = '-';
        ret_uuid[at] = '\0';
    }
}

void step_command_id(const KeyOwner *owner, const char *record, int attempt, char *ret_uuid)
{
    char name[RECORD_SIZE];

    snprintf(name, sizeof name, "%s#%d", record, attempt);
    step_key(owner, name, ret_uuid);
}
