/*
 * stats.c - numbers over time.
 */
#include "api/api.h"
#include "api/domain.h"
#include "base/moment.h"
#include "base/writer.h"
#include "pg/stat.h"

#define SINCE_DEFAULT_S 3600
#define STEP_MAX_S      31622400

const RouteParameter api_stats_parameters[] = {
    {"measure", "sent, completed, retried, failed, rejected, wait or run of a domain; transfers; http_2xx, http_3xx, "
                "http_4xx or http_5xx of a route"},
    {"domain", "only this domain; all, summed, when absent", .names = NAMES_DOMAIN},
    {"route", "only this route, of http_...: GET /v1/commands"},
    {"since", "not before this moment; an hour ago when absent", PARAMETER_TIME},
    {"step", "seconds, in whole minutes; a step for about 60 points when absent", PARAMETER_I64, .min = 60,
     .max = STEP_MAX_S},
    {NULL, NULL},
};

static ErrorCode filter_take(Request *request, StatFilter *ret_filter, Error *reterr)
{
    const char *since, *domain = request_query(request, "domain"), *route = request_query(request, "route");
    int64_t     now_us = clock_wall().us, step_s;

    *ret_filter = (StatFilter){.measure = request_query(request, "measure"),
                               .label   = domain ? domain : route,
                               .since   = now_us - (int64_t)SINCE_DEFAULT_S * 1000000};
    if (!ret_filter->measure)
        return fail(reterr, ERR_INVALID, "measure is required, such as sent, completed, wait or run");
    if (domain && route)
        return fail(reterr, ERR_INVALID, "only one of domain and route may be given");
    TRY(domain_check(request, domain, DOMAIN_READ, reterr));
    TRY(api_moment_take(request, "since", &since, reterr));
    if (since && !moment_parse(since, MOMENT_RFC3339, &ret_filter->since))
        return fail(reterr, ERR_INVALID, "since must be a moment");
    TRY(request_query_i64(request, "step", 60, STEP_MAX_S, 0, &step_s, reterr));
    ret_filter->step_s =
        step_s ? (int)step_s : stat_step_s((now_us - ret_filter->since) / 1000000, ret_filter->label != NULL);
    return OK;
}

ErrorCode api_stats(void *context, Request *request, Response *response, Error *reterr)
{
    Api       *api = context;
    StatFilter filter;
    StatPoint *list;
    Writer    *writer;
    int        count;

    TRY(filter_take(request, &filter, reterr));
    TRY(stat_list(api->pool, request_deadline(request), request_arena(request), &filter, &list, &count, reterr));
    writer = response_writer(response);
    stat_write(writer, &filter, list, count);
    return OK;
}
