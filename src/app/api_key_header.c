/*
 * api_key_header.c - the key of a request: in the body, in the header Idempotency-Key (bare or quoted), or in both if
 * they agree; and the key of what it is about, in the path.
 */
#include <string.h>

#include "app/api.h"
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

ErrorCode api_ref_take(Request *request, const char **ret_id, Error *reterr)
{
    char id[UUID_TEXT_SIZE];

    if (!uuid_parse(request_capture(request, "txn_id"), id))
        return fail(reterr, ERR_INVALID, "the txn_id in the path must be a UUID");
    *ret_id = arena_text(request_arena(request), id);
    return OK;
}
