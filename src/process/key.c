/*
 * key.c - see key.h.
 */
#include "process/key.h"

#include <sodium.h>
#include <string.h>

static void text_hash(crypto_generichash_state *state, const char *text)
{
    crypto_generichash_update(state, (const unsigned char *)text, strlen(text) + 1);
}

/* Big-endian, so that pods of any architecture have the same keys. */
static void number_hash(crypto_generichash_state *state, uint32_t number)
{
    const unsigned char bytes[] = {(unsigned char)(number >> 24), (unsigned char)(number >> 16),
                                   (unsigned char)(number >> 8), (unsigned char)number};

    crypto_generichash_update(state, bytes, sizeof bytes);
}

void step_command_id(const KeyOwner *owner, const RecordId *step, int number, char *ret_uuid)
{
    unsigned char            hash[UUID_BYTES];
    crypto_generichash_state state;

    crypto_generichash_init(&state, (const unsigned char *)owner->secret, owner->secret ? strlen(owner->secret) : 0,
                            sizeof hash);
    text_hash(&state, owner->queue);
    text_hash(&state, owner->process_id);
    text_hash(&state, step->step);
    number_hash(&state, (uint32_t)step->depth);
    for (int i = 0; i < step->depth; i++)
        number_hash(&state, (uint32_t)step->item[i]);
    number_hash(&state, step->undo);
    number_hash(&state, (uint32_t)step->aside);
    number_hash(&state, (uint32_t)number);
    crypto_generichash_final(&state, hash, sizeof hash);
    uuid_from_hash(hash, ret_uuid);
}

void step_key(const KeyOwner *owner, const RecordId *step, char *ret_uuid)
{
    step_command_id(owner, step, /* number= */ 0, ret_uuid);
}
