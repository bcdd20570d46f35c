/*
 * later.h - an answer that comes later: the request rests, and no thread waits for it.
 *
 *     ErrorCode post(void *app, Request *request, Response *response, Error *reterr)
 *     {
 *         ... read and check; failing is still possible ...
 *         request_rest(request, post_end, state);
 *         somebody_begin(..., request_wake, request);
 *         return OK;
 *     }
 *
 * Invariants
 *   1. A request that rests is woken exactly once, and its deadline bounds that: the server does not end before.
 *   2. The wake-up may come at any moment after request_rest(), also before the handler has returned.
 *   3. end() runs when both have happened, on a network thread, so it must not wait either; also for a client that has
 *      gone, because what was done stays done.
 * Ownership: state is borrowed until end() has returned; the request's arena is a good place.
 */
#ifndef HTTP_LATER_H
#define HTTP_LATER_H

#include "http/route.h"

/* The handler that calls this fills no response and returns OK. */
void  request_rest(Request *request, RouteHandler *end, void *state);
void *request_state(const Request *request); /* for end() */
/* From here on the request is not the caller's. It takes void *, to be handed on as it is. */
void request_wake(void *request);

#endif
