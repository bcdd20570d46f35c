/*
 * domain_show.c - domains over HTTP: list, show.
 */
#include "api/api.h"
#include "api/bound.h"
#include "api/domain.h"
#include <string.h>

#include "base/writer.h"
#include "bus/domain.h"

const RouteParameter api_domain_parameters[] = {
    {"order", "name, or depth: those with most queued commands first, without domains that have nothing to do",
     .words = domain_orders},
    {"limit", "how many at most", PARAMETER_I64, .min = 1, .max = DOMAIN_LIST_MAX, .fallback = DOMAIN_LIST_MAX},
    {"cursor", "next_cursor of the page before; only with the order name"},
    {NULL, NULL},
};

/* Without what the token must not read. Where the next page begins follows from what was read, not from what is shown. */
ErrorCode api_domain_list(void *context, Request *request, Response *response, Error *reterr)
{
    Api         *api    = context;
    DomainFilter filter = {.after = request_query(request, "cursor"),
                           .order = request_query(request, "order"),
                           .bound = api_bound_domains(request)};
    Writer      *writer;
    Domain      *list;
    int64_t      limit;
    int          count;

    TRY(request_query_i64(request, "limit", 1, DOMAIN_LIST_MAX, DOMAIN_LIST_MAX, &limit, reterr));
    filter.limit = (int)limit;
    if (filter.after && filter.order && strcmp(filter.order, domain_orders[0]) != 0)
        return fail(reterr, ERR_INVALID,
                    "cursor is only for the order \"name\": the largest domains change between pages");
    TRY(domain_list(api->pool, request_deadline(request), request_arena(request), &filter, &list, &count, reterr));
    writer = response_writer(response);
    writer_object(writer, NULL);
    writer_array(writer, "items");
    for (int i = 0; i < count; i++)
        if (domain_is_open(request, list[i].domain, DOMAIN_READ))
            domain_write(writer, &list[i]);
    writer_end(writer);
    if (count == filter.limit && (!filter.order || strcmp(filter.order, domain_orders[0]) == 0))
        writer_text(writer, "next_cursor", list[count - 1].domain);
    else
        writer_null(writer, "next_cursor");
    writer_end(writer);
    return OK;
}

ErrorCode api_domain_show(void *context, Request *request, Response *response, Error *reterr)
{
    Api        *api  = context;
    const char *name = request_capture(request, "domain");
    Domain      domain, processes;

    TRY(domain_check(request, name, DOMAIN_READ, reterr));
    TRY(domain_show(api->pool, request_deadline(request), request_arena(request), name, &domain, &processes, reterr));
    if (processes.domain[0] && !domain_is_open(request, processes.domain, DOMAIN_READ))
        processes.domain = "";
    domain_show_write(response_writer(response), &domain, &processes);
    return OK;
}
