/*
 * key_header.c - the key of a request: in the body, in the header Idempotency-Key, or in both if they agree; and keys that
 * follow from it.
 *
 * The header may hold any text. A UUID is the key as it is; any other text becomes one by a hash of the API key's name and the
 * text, so that two clients with "order-17" each have a key of their own. It is the hash of pawl.key() (sql/bus/send_key.sql), and part
 * of the interface: a new version that computes another one would run repeats a second time.
 */
#include <sodium.h>
#include <string.h>

#include "api/api.h"
#include "base/uuid.h"

#define KEY_TEXT_MAX   200
#define DERIVED_PREFIX 13 /* of a key: the digits before its version */

/* Hashing the module's own name first keeps these apart from hashes of the same bytes elsewhere. */
static const char *key_hash(Arena *arena, const char *kind, const char *first, const char *second)
{
    crypto_hash_sha256_state state;
    unsigned char            hash[crypto_hash_sha256_BYTES]; /* its first UUID_BYTES count */
    char                     id[UUID_TEXT_SIZE];

    crypto_hash_sha256_init(&state);
    crypto_hash_sha256_update(&state, (const unsigned char *)kind, strlen(kind) + 1);
    crypto_hash_sha256_update(&state, (const unsigned char *)first, strlen(first) + 1);
    crypto_hash_sha256_update(&state, (const unsigned char *)second, strlen(second));
    crypto_hash_sha256_final(&state, hash);
    uuid_from_hash(hash, id);
    return arena_text(arena, id);
}

/* "order-17" or a structured field's string, "\"order-17\"", whose backslashes escape (RFC 9651, 3.3.3). false: neither. */
static bool key_unquote(const char *header, char *ret_key)
{
    if (*header != '"') {
        memcpy(ret_key, header, strlen(header) + 1);
        return true;
    }
    for (header++; *header && *header != '"'; header++) {
        if (*header == '\\' && *++header != '"' && *header != '\\')
            return false;
        *ret_key++ = *header;
    }
    *ret_key = '\0';
    return header[0] == '"' && header[1] == '\0';
}

ErrorCode api_key_text(Request *request, const char **ret_text, Error *reterr)
{
    const char *header = request_header(request, "Idempotency-Key");
    char       *text   = header ? arena_alloc(request_arena(request), strlen(header) + 1) : NULL;

    if (header && (!key_unquote(header, text) || !*text || strlen(text) > KEY_TEXT_MAX))
        return fail(reterr, ERR_INVALID,
                    "header \"Idempotency-Key\" must be 1 to %d bytes of text, bare or in double quotes", KEY_TEXT_MAX);
    *ret_text = text;
    return OK;
}

/* A UUID as it is, any other text by its hash. */
static const char *key_id(Request *request, const char *text)
{
    char lower[UUID_TEXT_SIZE];

    return uuid_parse(text, lower) ? arena_text(request_arena(request), lower)
                                   : key_hash(request_arena(request), "pawl key", request_principal(request), text);
}

ErrorCode api_key_field_take(Request *request, const char *text, const char *field, const char **id, Error *reterr)
{
    const char *key = text ? key_id(request, text) : NULL;

    if (key && *id && strcmp(*id, key) != 0)
        return fail(reterr, ERR_INVALID, "key and %s differ: give one of them", field);
    *id = key ? key : *id;
    return OK;
}

ErrorCode api_key_take(Request *request, const char *field, const char **id, Error *reterr)
{
    const char *text, *key;

    TRY(api_key_text(request, &text, reterr));
    if (!text)
        return OK;
    key = key_id(request, text);
    if (*id && strcmp(*id, key) != 0)
        return fail(reterr, ERR_INVALID, "header \"Idempotency-Key\" and field \"%s\" differ: give one of them", field);
    *id = key;
    return OK;
}

bool api_key_is_given(Request *request)
{
    return request_header(request, "Idempotency-Key") != NULL;
}

ErrorCode api_key_own(Request *request, const char **ret_key, Error *reterr)
{
    const char *text;

    TRY(api_key_text(request, &text, reterr));
    *ret_key = text ? key_hash(request_arena(request), "pawl answer", request_principal(request), text) : NULL;
    return OK;
}

ErrorCode api_key_refuse(Request *request, const char *why, Error *reterr)
{
    if (api_key_is_given(request))
        return fail(reterr, ERR_INVALID, "header \"Idempotency-Key\" is not allowed here: %s", why);
    return OK;
}

/* It begins like the key, so that index writes stay on a few warm pages. */
const char *api_key_derive(Arena *arena, const char *key, int number)
{
    const char   *seed = arena_print(arena, "%s/%d", key, number);
    unsigned char hash[UUID_BYTES];
    char          id[UUID_TEXT_SIZE];

    crypto_generichash(hash, sizeof hash, (const unsigned char *)seed, strlen(seed), NULL, 0);
    uuid_from_hash(hash, id);
    memcpy(id, key, DERIVED_PREFIX);
    return arena_text(arena, id);
}

void api_replayed_set(Response *response)
{
    response_header(response, "Idempotency-Replayed", "true");
}
