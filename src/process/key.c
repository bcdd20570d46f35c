/*
 * key.c - see key.h.
 */
#include "process/key.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/uuid.h"

#define RECORD_SIZE 512

void step_key(const KeyOwner *owner, const char *record, char *ret_uuid)
{
    unsigned char            hash[UUID_BYTES];
    crypto_generichash_state state;

    crypto_generichash_init(&state, (const unsigned char *)owner->secret, owner->secret ? strlen(owner->secret) : 0,
                            sizeof hash);
    crypto_generichash_update(&state, (const unsigned char *)owner->queue, strlen(owner->queue) + 1);
    crypto_generichash_update(&state, (const unsigned char *)owner->process_id, strlen(owner->process_id) + 1);
    crypto_generichash_update(&state, (const unsigned char *)record, strlen(record));
    crypto_generichash_final(&state, hash, sizeof hash);
    uuid_from_hash(hash, ret_uuid);
}

void step_command_id(const KeyOwner *owner, const char *record, int attempt, char *ret_uuid)
{
    char name[RECORD_SIZE];

    snprintf(name, sizeof name, "%s#%d", record, attempt);
    step_key(owner, name, ret_uuid);
}
