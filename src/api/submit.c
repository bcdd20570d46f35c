/*
 * submit.c - a request that sends one command: suspended until the combiner of the sender has committed it.
 */
#include "api/api.h"
#include "http/suspend.h"

void api_item_submit(Api *api, Request *request, SendItem *item, RouteHandler *on_resume)
{
    item->on_done = request_resume;
    item->context = request;
    request_suspend(request, &(Suspend){.on_resume = on_resume}, item);
    sender_submit(api->sender, request_deadline(request), item);
}

ErrorCode api_item_sent(Api *api, const SendItem *item, Response *response, Error *reterr)
{
    if (item->code != OK) {
        *reterr = item->error;
        return item->code;
    }
    waker_notify_sent(api->waker, item);
    response->status = 201;
    if (!item->is_new)
        api_replayed_set(response);
    return OK;
}
