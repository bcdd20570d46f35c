/*
 * moment.c - moments in a query: RFC 3339, which PostgreSQL reads as well; but it also reads "yesterday".
 */
#include <string.h>

#include "api/api.h"
#include "base/moment.h"

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
