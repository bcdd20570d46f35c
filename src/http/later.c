/*
 * later.c - two hold a request that rests: its handler until it returns, and whoever will wake it. The last one to let go
 * hands it on.
 */
#include "http/later.h"

#include <assert.h>

#include "http/server_internal.h"

void request_rest(Request *request, RouteHandler *end, void *state)
{
    assert(!request->end);
    request->end   = end;
    request->state = state;
    atomic_fetch_add(&request->holders, 1);
    atomic_fetch_add(&request->peer->loop->resting, 1);
}

void *request_state(const Request *request)
{
    return request->state;
}

bool request_let_go(Request *request)
{
    return atomic_fetch_sub(&request->holders, 1) == 1;
}

void request_wake(void *context)
{
    Request *request = context;

    if (request_let_go(request))
        loop_post(request->peer->loop, request->peer);
}
