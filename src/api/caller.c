/*
 * caller.c - the client of a request: its name for the audit, and what its token may do beyond the route.
 */
#include <string.h>

#include "api/api.h"
#include "api/scope.h"

/* No key may have the name of the admin's token: key_create() refuses it. */
const char *api_actor(Request *request, const char *said)
{
    const char *principal = request_principal(request);

    if (!said || !said[0])
        return principal;
    return strcmp(principal, KEY_NAME_ADMIN) == 0 ? said
                                                  : arena_print(request_arena(request), "%s (%s)", principal, said);
}

ErrorCode api_treasury_check(const Request *request, Error *reterr)
{
    if (request_scopes(request) & SCOPE_TREASURY)
        return OK;
    return fail(reterr, ERR_DENIED, "the token must have the scope treasury to create money or set a floor");
}
