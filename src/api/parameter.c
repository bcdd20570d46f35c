/*
 * parameter.c - parameters in the path and the query of a request that several routes share: ids and moments.
 */
#include <string.h>

#include "api/api.h"
#include "base/moment.h"
#include "base/uuid.h"

ErrorCode api_id_take(Request *request, char *ret_id, Error *reterr)
{
    if (!uuid_parse(request_capture(request, "id"), ret_id))
        return fail(reterr, ERR_INVALID, "id must be a UUID, got \"%.60s\"", request_capture(request, "id"));
    return OK;
}

ErrorCode api_ref_take(Request *request, const char **ret_id, Error *reterr)
{
    char id[UUID_TEXT_SIZE];

    if (!uuid_parse(request_capture(request, "txn_id"), id))
        return fail(reterr, ERR_INVALID, "the txn_id in the path must be a UUID, got \"%.60s\"",
                    request_capture(request, "txn_id"));
    *ret_id = arena_text(request_arena(request), id);
    return OK;
}

/* RFC 3339, which PostgreSQL reads as well; but it also reads "yesterday". */
ErrorCode api_moment_take(Request *request, const char *name, const char **ret_moment, Error *reterr)
{
    int64_t micros;
    char   *moment = arena_text(request_arena(request), request_query(request, name));

    *ret_moment = moment;
    if (!moment)
        return OK;
    /* A plus that was not escaped arrives as a space. */
    for (char *space = moment; (space = strchr(space, ' '));)
        *space = '+';
    if (!moment_parse(moment, MOMENT_RFC3339, &micros))
        return fail(reterr, ERR_INVALID, "%s must be a moment such as 2026-01-31T12:00:00Z, got \"%.60s\"", name,
                    moment);
    return OK;
}
