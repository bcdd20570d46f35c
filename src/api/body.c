/*
 * body.c - the body of a request, read by the table of its module's fields.
 */
#include "api/api.h"
#include "base/reader.h"

ErrorCode api_body_read(Request *request, const FieldTable *table, void *ret_struct, Error *reterr)
{
    size_t      size;
    const char *body = request_body(request, &size);

    return reader_object(body, size, table, request_arena(request), ret_struct, reterr);
}

ErrorCode api_body_read_if_any(Request *request, const FieldTable *table, void *ret_struct, Error *reterr)
{
    size_t size;

    (void)request_body(request, &size);
    if (size > 0)
        return api_body_read(request, table, ret_struct, reterr);
    return reader_object("{}", 2, table, request_arena(request), ret_struct, reterr);
}

const FieldTable api_empty_body = {.noun = "request"};

ErrorCode api_nothing_take(Request *request, Error *reterr)
{
    char nothing;

    return api_body_read_if_any(request, &api_empty_body, &nothing, reterr);
}
