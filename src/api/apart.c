/*
 * apart.c - routes whose inner handler may need a lock that another transaction holds: they run apart from the executors, and wait for the lock
 * without a thread.
 *
 * The request is suspended, and its handler is the call (pg/lock_calls.h). A handler that did not get its lock has written nothing, neither
 * into the database nor into the response: it is run again from its beginning.
 */
#include "api/api.h"
#include "base/log.h"
#include "http/suspend.h"

typedef struct {
    Api      *api;
    Request  *request;
    Response *response;
    LockCall  call;
} Apart;

static ErrorCode apart_run(LockCall *call, Error *reterr)
{
    Apart       *apart = call->context;
    const Route *route = request_route(apart->request);
    Arena       *arena = request_arena(apart->request);
    ArenaMark    mark  = arena_mark(arena);
    ErrorCode    code;

    log_set_request_of(request_id(apart->request), request_principal(apart->request));
    code = route->is_kept ? api_answer_once(apart->api, apart->request, route->inner, apart->response, reterr)
                          : route->inner(apart->api, apart->request, apart->response, reterr);
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
    return error_pass(apart->call.code, &apart->call.error, reterr);
}

ErrorCode api_apart(void *context, Request *request, Response *response, Error *reterr)
{
    Api   *api   = context;
    Apart *apart = arena_array(request_arena(request), Apart, 1);

    (void)reterr;
    *apart = (Apart){
        .api      = api,
        .request  = request,
        .response = response,
        .call     = {.run = apart_run, .deadline = request_deadline(request), .on_done = apart_done, .context = apart}
    };
    request_suspend(request, &(Suspend){.on_resume = apart_end}, apart);
    lock_calls_submit(api->decisions, &apart->call);
    return OK;
}
