/*
 * suspend.c - two sides hold a suspended request: its handler until it returns, and the party that will resume it. The
 * last one to release it passes it on.
 */
#include "http/suspend.h"

#include <assert.h>

#include "http/server_internal.h"

void request_suspend(Request *request, const Suspend *suspend, void *state)
{
    assert(!request->suspend.on_resume && !(suspend->may_wait && suspend->on_sent));
    request->suspend = *suspend;
    request->state   = state;
    atomic_fetch_add(&request->holders, 1);
    atomic_fetch_add(&request->peer->loop->suspended, 1);
    /* From an executor: the network thread may look for a callback at any moment. */
    atomic_store(&request->watched, suspend->on_closed != NULL);
}

void *request_state(const Request *request)
{
    return request->state;
}

bool request_let_go(Request *request)
{
    return atomic_fetch_sub(&request->holders, 1) == 1;
}

void request_resume(void *context)
{
    Request *request = context;

    if (request_let_go(request))
        loop_post(request->peer->loop, request->peer);
}

bool request_closed(Request *request)
{
    if (!atomic_exchange(&request->watched, false))
        return false;
    request->suspend.on_closed(request->state);
    return true;
}

void request_sent(Request *request)
{
    if (request->suspend.on_sent)
        request->suspend.on_sent(request->state, request->delivered);
    request->suspend = (Suspend){0};
}
