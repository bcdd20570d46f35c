/*
 * ops.c - health, metrics, alerts and the description of the interface.
 */
#include "api/api.h"
#include "base/problem.h"
#include "http/suspend.h"
#include "ops/exposition.h"

ErrorCode api_live(void *context, Request *request, Response *response, Error *reterr)
{
    (void)context;
    (void)request;
    (void)reterr;
    text_append(&response->body, "{\"status\":\"live\"}");
    return OK;
}

/* The route is open to everyone: texts that name hosts and users go to the log only. */
static ErrorCode ready_write(Request *request, const Error *verdict, Response *response, Error *reterr)
{
    if (verdict->code == ERR_CONFLICT)
        return fail(reterr, ERR_UNAVAILABLE, "database not ready: its schema is newer than this program");
    if (verdict->code != OK)
        return fail(reterr, verdict->code, "database not ready: %s%s%s", error_text(verdict->code),
                    verdict->sqlstate[0] ? ", SQLSTATE " : "", arena_text(request_arena(request), verdict->sqlstate));
    text_append(&response->body, "{\"status\":\"ready\"}");
    return OK;
}

static ErrorCode ready_answer(void *context, Request *request, Response *response, Error *reterr)
{
    const ReadyWait *wait = request_state(request);

    (void)context;
    return ready_write(request, &wait->error, response, reterr);
}

ErrorCode api_ready(void *context, Request *request, Response *response, Error *reterr)
{
    Api       *api = context;
    Error      verdict;
    ReadyWait *wait;

    if (atomic_load(&api->stopping))
        return fail(reterr, ERR_STOPPING, "shutting down");
    if (ready_known(api->ready, &verdict))
        return ready_write(request, &verdict, response, reterr);
    wait  = arena_array(request_arena(request), ReadyWait, 1);
    *wait = (ReadyWait){.on_done = request_resume, .context = request};
    request_suspend(request, &(Suspend){.on_resume = ready_answer}, wait);
    ready_submit(api->ready, request_deadline(request), wait);
    return OK;
}

ErrorCode api_metrics(void *context, Request *request, Response *response, Error *reterr)
{
    (void)context;
    (void)request;
    (void)reterr;
    response->type = EXPOSITION_TYPE;
    exposition_write(&response->body);
    return OK;
}

ErrorCode api_alerts(void *context, Request *request, Response *response, Error *reterr)
{
    Api  *api = context;
    Alert list[ALERTS_MAX];
    int   count = alerts_list(api->alerts, list);

    (void)request;
    (void)reterr;
    text_append(&response->body, "{\"items\":[");
    for (int i = 0; i < count; i++) {
        text_append(&response->body, i ? "," : "");
        alert_write(&list[i], &response->body);
    }
    text_append(&response->body, "]}");
    return OK;
}

ErrorCode api_openapi(void *context, Request *request, Response *response, Error *reterr)
{
    Api *api = context;

    (void)reterr;
    asset_answer(&api->openapi, request, response);
    return OK;
}

ErrorCode api_problem(void *context, Request *request, Response *response, Error *reterr)
{
    const char *type = request_capture(request, "type");
    Problem     problem;

    (void)context;
    if (!problem_find(type, &problem))
        return fail(reterr, ERR_NOT_FOUND, "no problem has the type \"%.64s\"", type);
    response->type = "text/plain; charset=utf-8";
    text_print(&response->body, "%s\n\nStatus %d: %s\n\n%s\n%s\n", problem.type, error_http(problem.code),
               error_text(problem.code), problem.meaning, problem.action);
    return OK;
}
