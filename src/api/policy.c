/*
 * policy.c - retry policies over HTTP.
 */
#include "api/api.h"
#include "api/domain.h"

#include "bus/policy.h"

const RouteParameter api_policy_parameters[] = {
    {"type", "only the schedule of this type; the domain's own when absent"},
    {NULL,   NULL                                                          },
};

ErrorCode api_policy_show(void *context, Request *request, Response *response, Error *reterr)
{
    Api         *api    = context;
    const char  *domain = request_capture(request, "domain");
    RetryPolicy *list;
    int          count;

    TRY(retry_policy_list(api->pool, request_deadline(request), request_arena(request), domain, &list, &count, reterr));
    policies_write(response_writer(response), domain, list, count);
    return OK;
}

ErrorCode api_policy_set(void *context, Request *request, Response *response, Error *reterr)
{
    Api          *api = context;
    PolicyRequest given;
    int64_t       delays_ms[POLICY_DELAYS_MAX];
    int           count;

    TRY(api_body_read(request, &policy_table, &given, reterr));
    TRY(domain_check(request, request_capture(request, "domain"), DOMAIN_CANCEL, reterr));
    TRY(policy_request_delays(&given, delays_ms, &count, reterr));
    TRY(retry_policy_set(api->pool, request_deadline(request), API_LOCK_MS, request_capture(request, "domain"),
                         given.type, delays_ms, count, given.order_key, reterr));
    return api_policy_show(context, request, response, reterr);
}

ErrorCode api_policy_reset(void *context, Request *request, Response *response, Error *reterr)
{
    Api *api = context;

    TRY(domain_check(request, request_capture(request, "domain"), DOMAIN_CANCEL, reterr));
    TRY(retry_policy_set(api->pool, request_deadline(request), API_LOCK_MS, request_capture(request, "domain"),
                         request_query(request, "type"), NULL, 0, NULL, reterr));
    return api_policy_show(context, request, response, reterr);
}
