/*
 * gate.c - pauses and limits of domains over HTTP.
 */
#include "api/api.h"

#include <string.h>

#include "bus/gate.h"

const RouteParameter api_limit_parameters[] = {
    {"type", "only the limits of this type; \"*\" is the domain's own; all when absent"},
    {NULL,   NULL                                                                      },
};

static GateDecision decision_of(Request *request, const char *by, const char *reason)
{
    return (GateDecision){.domain  = request_capture(request, "domain"),
                          .by      = api_actor(request, by),
                          .reason  = reason,
                          .lock_ms = API_LOCK_MS};
}

static ErrorCode pauses_answer(Api *api, Request *request, Response *response, Error *reterr)
{
    const char  *domain = request_capture(request, "domain");
    Writer      *writer;
    DomainPause *list;
    int          count;

    TRY(domain_pauses(api->pool, request_deadline(request), request_arena(request), domain, &list, &count, reterr));
    writer = response_writer(response);
    writer_object(writer, NULL);
    writer_text(writer, "domain", domain);
    writer_array(writer, "items");
    for (int i = 0; i < count; i++)
        domain_pause_write(writer, &list[i]);
    writer_end(writer);
    writer_end(writer);
    return OK;
}

/* pause: else resume. */
static ErrorCode pause_answer(Api *api, Request *request, bool pause, Response *response, Error *reterr)
{
    PauseRequest given = {0};
    GateDecision decision;
    const char  *wake = NULL;

    TRY(api_body_read_if_any(request, &pause_table, &given, reterr));
    decision = decision_of(request, given.by, given.reason);
    TRY((pause ? domain_pause : domain_resume)(api->pool, request_deadline(request), request_arena(request), &decision,
                                               given.types.count ? given.types.items : NULL, given.types.count, &wake,
                                               reterr));
    waker_notify_names(api->waker, wake);
    return pauses_answer(api, request, response, reterr);
}

ErrorCode api_domain_pause(void *context, Request *request, Response *response, Error *reterr)
{
    return pause_answer(context, request, /* pause= */ true, response, reterr);
}

ErrorCode api_domain_resume(void *context, Request *request, Response *response, Error *reterr)
{
    return pause_answer(context, request, /* pause= */ false, response, reterr);
}

ErrorCode api_limit_show(void *context, Request *request, Response *response, Error *reterr)
{
    Api         *api    = context;
    const char  *domain = request_capture(request, "domain");
    Writer      *writer;
    DomainLimit *list;
    int          count;

    TRY(domain_limits(api->pool, request_deadline(request), request_arena(request), domain, &list, &count, reterr));
    writer = response_writer(response);
    writer_object(writer, NULL);
    writer_text(writer, "domain", domain);
    writer_array(writer, "items");
    for (int i = 0; i < count; i++)
        domain_limit_write(writer, &list[i]);
    writer_end(writer);
    writer_end(writer);
    return OK;
}

ErrorCode api_limit_set(void *context, Request *request, Response *response, Error *reterr)
{
    Api         *api = context;
    LimitRequest given;
    DomainLimit  limit;
    GateDecision decision;
    const char  *wake = NULL;

    TRY(api_body_read(request, &limit_table, &given, reterr));
    TRY(limit_request_take(&given, &limit, reterr));
    decision = decision_of(request, given.by, given.reason);
    TRY(domain_limit_set(api->pool, request_deadline(request), request_arena(request), &decision, &limit, &wake,
                         reterr));
    waker_notify_names(api->waker, wake);
    return api_limit_show(context, request, response, reterr);
}

ErrorCode api_limit_remove(void *context, Request *request, Response *response, Error *reterr)
{
    Api         *api      = context;
    GateDecision decision = decision_of(request, NULL, NULL);
    const char  *wake     = NULL;

    TRY(domain_limit_remove(api->pool, request_deadline(request), request_arena(request), &decision,
                            request_query(request, "type"), &wake, reterr));
    waker_notify_names(api->waker, wake);
    return api_limit_show(context, request, response, reterr);
}
