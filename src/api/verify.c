/*
 * verify.c - verification of the ledger over HTTP.
 */
#include <string.h>

#include "api/api.h"
#include "wallet/verify.h"

const RouteParameter api_verify_parameters[] = {
    {"new", "only what was posted since the last clean verification", PARAMETER_BOOL},
    {NULL, NULL}
};

/* Findings are a result, not an error: 200. */
ErrorCode api_verify(void *context, Request *request, Response *response, Error *reterr)
{
    Api          *api      = context;
    const char   *only_new = request_query(request, "new");
    VerifyReport *report   = arena_alloc(request_arena(request), sizeof *report);
    VerifyOptions options  = {.incremental = only_new && strcmp(only_new, "true") == 0};
    Writer        writer;

    if (only_new && !options.incremental && strcmp(only_new, "false") != 0)
        return fail(reterr, ERR_INVALID, "parameter \"new\" must be true or false, got \"%.60s\"", only_new);
    TRY(wallet_verify(api->pool, &options, request_deadline(request), request_arena(request), report, reterr));
    writer_open(&writer, &response->body);
    verify_write(&writer, report);
    return OK;
}
