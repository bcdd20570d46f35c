/*
 * api.c - what handlers share: the body of a request, its client, and the send of one command.
 */
#include "api/api.h"

#include <string.h>

#include "base/reader.h"
#include "http/suspend.h"

/* ---- the body ---- */

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

/* ---- the client ---- */

/* No key may have the name of the admin's token: key_create() refuses it. */
const char *api_actor(Request *request, const char *said)
{
    const char *principal = request_principal(request);

    if (!said || !said[0])
        return principal;
    return strcmp(principal, KEY_NAME_ADMIN) == 0 ? said
                                                  : arena_print(request_arena(request), "%s (%s)", principal, said);
}

ErrorCode api_mint_check(const Request *request, Error *reterr)
{
    if (request_scopes(request) & SCOPE_MINT)
        return OK;
    return fail(reterr, ERR_DENIED, "the token must have the scope mint to create money or set a floor");
}

/* ---- one command: the request is suspended until the combiner of the sender has committed it ---- */

typedef struct {
    Api     *api;
    Request *request;
    SendItem item;
    Hint     hint;
} Sending;

static void item_send(void *context)
{
    Sending *sending = context;

    sender_submit(sending->api->sender, request_deadline(sending->request), &sending->item);
}

void api_item_submit(Api *api, Request *request, const SendItem *item, RouteHandler *on_resume)
{
    Sending *sending = arena_array(request_arena(request), Sending, 1);

    *sending              = (Sending){.api = api, .request = request, .item = *item};
    sending->item.on_done = request_resume;
    sending->item.context = request;
    sending->hint         = (Hint){.item = &sending->item, .on_done = item_send, .context = sending};
    request_body_free(request);
    request_suspend(request, &(Suspend){.on_resume = on_resume}, sending);
    if (request_bound(request)) /* a hint would name domains of others */
        item_send(sending);
    else
        hint_submit(api->hints, request_deadline(request), &sending->hint);
}

void api_hint_set(Response *response, const char *hint)
{
    if (hint && hint[0])
        response_header(response, "Pawl-Note", hint);
}

ErrorCode api_item_sent(Request *request, Response *response, const SendItem **ret_item, Error *reterr)
{
    const Sending  *sending = request_state(request);
    const SendItem *item    = &sending->item;

    TRY(error_pass(item->code, &item->error, reterr));
    waker_notify_sent(sending->api->waker, item);
    response->status = 201;
    if (!item->is_new && !item->duplicate)
        api_replayed_set(response);
    api_hint_set(response, sending->hint.text);
    *ret_item = item;
    return OK;
}
