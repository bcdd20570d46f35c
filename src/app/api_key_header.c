/*
 * api_key_header.c - the key of a request: in the body, in the header Idempotency-Key (bare or quoted), or in both if
 * they agree; keys that follow from it; and the key of what it is about, in the path.
 */
#include <sodium.h>
#include <string.h>

#include "app/api.h"
#include "base/reader.h"
#include "base/uuid.h"

ErrorCode api_key_take(Request *request, const char *field, const char **id, Error *reterr)
{
    const char *header = request_header(request, "Idempotency-Key");
    char        key[UUID_TEXT_SIZE];
    char       *bare;
    size_t      length;

    if (!header)
        return OK;
    bare   = arena_text(request_arena(request), header);
    length = strlen(bare);
    if (length >= 2 && bare[0] == '"' && bare[length - 1] == '"') {
        bare[length - 1] = '\0';
        bare++;
    }
    if (!uuid_parse(bare, key))
        return fail(reterr, ERR_INVALID, "header \"Idempotency-Key\" must be a UUID");
    if (*id && strcmp(*id, key) != 0)
        return fail(reterr, ERR_INVALID, "header \"Idempotency-Key\" and field \"%s\" differ", field);
    *id = arena_text(request_arena(request), key);
    return OK;
}

/* It begins like the key, so that index writes stay on a few warm pages. */
const char *api_key_derive(Arena *arena, const char *key, int number)
{
    const char   *seed = arena_print(arena, "%s/%d", key, number);
    unsigned char hash[16];
    char          hex[sizeof hash * 2 + 1];

    crypto_generichash(hash, sizeof hash, (const unsigned char *)seed, strlen(seed), NULL, 0);
    hash[6] = (unsigned char)((hash[6] & 0x0F) | 0x80); /* version 8: a scheme of one's own */
    hash[8] = (unsigned char)((hash[8] & 0x3F) | 0x80);
    sodium_bin2hex(hex, sizeof hex, hash, sizeof hash);
    return arena_print(arena, "%.13s-%.4s-%.4s-%.12s", key, hex + 12, hex + 16, hex + 20);
}

const FieldTable api_empty_body = {.noun = "request"};

ErrorCode api_nothing_take(Request *request, Error *reterr)
{
    char        nothing;
    size_t      size;
    const char *body = request_body(request, &size);

    return size == 0 ? OK : reader_object(body, size, &api_empty_body, request_arena(request), &nothing, reterr);
}

ErrorCode api_ref_take(Request *request, const char **ret_id, Error *reterr)
{
    char id[UUID_TEXT_SIZE];

    if (!uuid_parse(request_capture(request, "txn_id"), id))
        return fail(reterr, ERR_INVALID, "the txn_id in the path must be a UUID");
    *ret_id = arena_text(request_arena(request), id);
    return OK;
}
