/*
 * apart.c - routes whose handler may need a lock that another transaction holds: they run apart from the executors, and wait for the lock
 * without a thread.
 *
 * The request is suspended, and its handler is the call (pg/lock_calls.h). A handler that did not get its lock has written nothing, neither
 * into the database nor into the response: it is run again from its beginning.
 */
#include "api/api.h"
#include "base/log.h"
#include "http/suspend.h"

typedef struct {
    Api          *api;
    Request      *request;
    Response     *response;
    RouteHandler *handler;
    LockCall      call;
} Apart;

static ErrorCode apart_run(LockCall *call, Error *reterr)
{
    Apart    *apart = call->context;
    Arena    *arena = request_arena(apart->request);
    ArenaMark mark  = arena_mark(arena);
    ErrorCode code;

    log_set_request(request_id(apart->request));
    code = apart->handler(apart->api, apart->request, apart->response, reterr);
    log_set_request(NULL);
    if (code != OK && error_is_lock(reterr))
        arena_rewind(arena, mark);
    return code;
}

static void apart_done(void *context)
{
    const Apart *apart = context;

    request_resume(apart->request);
}

static ErrorCode apart_end(void *context, Request *request, Response *response, Error *reterr)
{
    const Apart *apart = request_state(request);

    (void)context, (void)response; /* the handler has filled it */
    if (apart->call.code != OK)
        *reterr = apart->call.error;
    return apart->call.code;
}

static ErrorCode apart_submit(Api *api, Request *request, Response *response, RouteHandler *handler)
{
    Apart *apart = arena_array(request_arena(request), Apart, 1);

    *apart = (Apart){
        .api      = api,
        .request  = request,
        .response = response,
        .handler  = handler,
        .call     = {.run = apart_run, .deadline = request_deadline(request), .on_done = apart_done, .context = apart}
    };
    request_suspend(request, &(Suspend){.on_resume = apart_end}, apart);
    lock_calls_submit(api->decisions, &apart->call);
    return OK;
}

#define APART_HANDLER(name)                                                                    \
    ErrorCode name##_apart(void *context, Request *request, Response *response, Error *reterr) \
    {                                                                                          \
        (void)reterr;                                                                          \
        return apart_submit(context, request, response, name);                                 \
    }

APART_HANDLER(api_dead_letter_retry_once)
APART_HANDLER(api_dead_letter_delete)
APART_HANDLER(api_command_cancel_once)
APART_HANDLER(api_batch_seal_once)
APART_HANDLER(api_policy_set)
APART_HANDLER(api_policy_reset)
APART_HANDLER(api_tsq_retry_once)
APART_HANDLER(api_tsq_cancel_once)
APART_HANDLER(api_tsq_complete_once)
APART_HANDLER(api_process_define)
APART_HANDLER(api_process_signal)
APART_HANDLER(api_process_retry_once)
APART_HANDLER(api_process_cancel_once)
APART_HANDLER(api_process_complete_once)
APART_HANDLER(api_process_move_once)
APART_HANDLER(api_wallet_open)
