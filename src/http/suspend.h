/*
 * suspend.h - suspended requests: the response follows later, and no thread waits for it.
 *
 *     ErrorCode post(void *app, Request *request, Response *response, Error *reterr)
 *     {
 *         ... read and check; failing is still possible ...
 *         request_suspend(request, &(Suspend){.on_resume = post_end}, state);
 *         ledger_submit(..., request_resume, request);
 *         return OK;
 *     }
 *
 * Invariants
 *   1. A suspended request is resumed exactly once, and its deadline bounds that: the server does not end before.
 *   2. request_resume() may be called at any moment after request_suspend(), also before the handler has returned.
 *   3. All callbacks run on the request's network thread, so they must not wait (but see may_wait). on_resume runs when
 * the handler has returned and the request was resumed; also for a client that has gone, because its effects are
 * committed.
 *   4. on_closed, if given, is called at most once and before on_resume, when the client closes its connection, or its
 * sending half: nothing will come of waiting. It does not resume the request by itself.
 *   5. on_sent, if given, is called exactly once, after on_resume: delivered says that the whole response was written
 * to the socket. It comes earlier, with false, when the response was replaced because clients are slow to read others.
 * Not with may_wait. Ownership: state is borrowed until the last callback has returned; the request's arena is a good
 * place, but what on_resume puts there is gone by then.
 */
#ifndef HTTP_SUSPEND_H
#define HTTP_SUSPEND_H

#include "http/route.h"

typedef struct {
    RouteHandler *on_resume; /* fills the response, or fails */
    bool          may_wait;  /* on_resume runs on an executor; too many requests there: 503, as for any other */
    void (*on_closed)(void *state);
    void (*on_sent)(void *state, bool delivered);
} Suspend;

/* The handler that calls this fills no response and returns OK. */
void  request_suspend(Request *request, const Suspend *suspend, void *state);
void *request_state(const Request *request); /* for on_resume */
/* From here on the request is not the caller's. It takes void *, to be handed on as it is. */
void request_resume(void *request);

#endif
