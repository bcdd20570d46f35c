/*
 * claims_suspend.c - a claim of a suspended request: no thread waits for it, and a client that disconnects cancels it.
 */
#include "api/claims.h"
#include "http/suspend.h"

static ErrorCode wait_answer(void *context, Request *request, Response *response, Error *reterr)
{
    const ClaimWait *wait = request_state(request);

    (void)context;
    if (wait->code != OK) {
        *reterr = wait->error;
        return wait->code;
    }
    if (wait->count > 0)
        response_borrow(response, text_string(&wait->body), wait->body.length);
    else
        text_append(&response->body, "{\"items\":[]}");
    return OK;
}

static void wait_closed(void *state)
{
    ClaimWait *wait = state;

    claims_cancel(wait->claims, wait);
}

static void wait_sent(void *state, bool delivered)
{
    claims_end(state, delivered);
}

void claims_suspend(Claims *claims, Request *request, ClaimWait *wait)
{
    wait->on_done  = request_resume;
    wait->context  = request;
    wait->claims   = claims;
    wait->deadline = request_deadline(request);
    request_body_free(request);
    request_suspend(request, &(Suspend){.on_resume = wait_answer, .on_closed = wait_closed, .on_sent = wait_sent},
                    wait);
    claims_submit(claims, wait);
}
