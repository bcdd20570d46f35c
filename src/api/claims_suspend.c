/*
 * claims_suspend.c - a claim of a suspended request: no thread waits for it, and a client that disconnects cancels it.
 */
#include "api/claims.h"
#include "http/suspend.h"

/* The response has the payloads now; a release needs only this. */
static void wait_shed(ClaimWait *wait)
{
    Arena          *whole = wait->arena;
    ClaimedCommand *list  = wait->list;

    if (!whole)
        return;
    wait->arena = arena_new(ARENA_BYTES_DEFAULT);
    wait->list  = arena_array(wait->arena, ClaimedCommand, wait->count);
    wait->found = NULL;
    for (int i = 0; i < wait->count; i++)
        wait->list[i] = (ClaimedCommand){.id = list[i].id, .token = list[i].token};
    arena_free(whole);
}

static ErrorCode wait_answer(void *context, Request *request, Response *response, Error *reterr)
{
    ClaimWait *wait = request_state(request);
    Writer     writer;

    (void)context;
    if (wait->code != OK) {
        *reterr = wait->error;
        return wait->code;
    }
    writer_open(&writer, &response->body);
    TRY(wait->write(wait, &writer, request_arena(request), reterr));
    wait_shed(wait);
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
    request_suspend(request, &(Suspend){.on_resume = wait_answer, .on_closed = wait_closed, .on_sent = wait_sent},
                    wait);
    claims_submit(claims, wait);
}
