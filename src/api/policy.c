/*
 * policy.c - retry policies over HTTP.
 */
#include <stdlib.h>
#include <string.h>

#include "api/api.h"
#include "base/reader.h"
#include "base/writer.h"
#include "bus/policy.h"

typedef struct {
    const char *type, *delays, *order_key;
} PolicyRequest;

static const Field policy_fields[] = {
    {"type", FIELD_TEXT, offsetof(PolicyRequest, type), .length_max = 100, .help = "the domain's own when absent"},
    {"delays_s", FIELD_JSON, offsetof(PolicyRequest, delays),
     .help = "seconds before the second, third, ... attempt; the last one serves all further attempts"},
    {"order_key", FIELD_TEXT, offsetof(PolicyRequest, order_key), .length_max = 20, .words = order_key_rules,
     .help = "what a command in the troubleshooting queue does with its order key"},
};
const FieldTable api_policy_body = {"retry policy", policy_fields, COUNT(policy_fields), sizeof(PolicyRequest)};

const RouteParameter api_policy_parameters[] = {
    {"type", "only the schedule of this type; the domain's own when absent"},
    {NULL,   NULL                                                          },
};

static ErrorCode delays_refuse(Error *reterr)
{
    return fail(reterr, ERR_INVALID, "delays_s must be an array of 1 to %d numbers from 0 to %d", POLICY_DELAYS_MAX,
                POLICY_MS_MAX / 1000);
}

/* `json` is one valid value. */
static ErrorCode delays_read(const char *json, int64_t *ret_list, int *ret_count, Error *reterr)
{
    const char *next  = json + strspn(json, " \t\r\n");
    int         count = 0;

    if (*next != '[')
        return delays_refuse(reterr);
    do {
        char  *end;
        double value;

        next++;
        next += strspn(next, " \t\r\n");
        if (!strchr("-0123456789", *next) || count == POLICY_DELAYS_MAX)
            return delays_refuse(reterr);
        value = strtod(next, &end);
        if (!(value >= 0 && value <= POLICY_MS_MAX / 1000)) /* not a number is refused too */
            return delays_refuse(reterr);
        ret_list[count++] = (int64_t)(value * 1000 + 0.5);
        next              = end + strspn(end, " \t\r\n");
    } while (*next == ',');
    if (*next != ']')
        return delays_refuse(reterr);
    *ret_count = count;
    return OK;
}

ErrorCode api_policy_show(void *context, Request *request, Response *response, Error *reterr)
{
    Api         *api    = context;
    const char  *domain = request_capture(request, "domain");
    RetryPolicy *list;
    int          count;
    Writer       writer;

    TRY(retry_policy_list(api->pool, request_deadline(request), request_arena(request), domain, &list, &count, reterr));
    writer_open(&writer, &response->body);
    writer_object(&writer, NULL);
    writer_text(&writer, "domain", domain);
    writer_array(&writer, "items");
    for (int i = 0; i < count; i++)
        retry_policy_write(&writer, &list[i]);
    writer_end(&writer);
    writer_end(&writer);
    return OK;
}

ErrorCode api_policy_set(void *context, Request *request, Response *response, Error *reterr)
{
    Api          *api = context;
    PolicyRequest given;
    int64_t       delays_ms[POLICY_DELAYS_MAX];
    size_t        size;
    const char   *body  = request_body(request, &size);
    int           count = 0;

    TRY(reader_object(body, size, &api_policy_body, request_arena(request), &given, reterr));
    if (!given.delays && !given.order_key)
        return fail(reterr, ERR_INVALID, "delays_s or order_key is required");
    if (given.delays)
        TRY(delays_read(given.delays, delays_ms, &count, reterr));
    TRY(retry_policy_set(api->pool, request_deadline(request), request_capture(request, "domain"), given.type,
                         delays_ms, count, given.order_key, reterr));
    return api_policy_show(context, request, response, reterr);
}

ErrorCode api_policy_reset(void *context, Request *request, Response *response, Error *reterr)
{
    Api *api = context;

    TRY(retry_policy_set(api->pool, request_deadline(request), request_capture(request, "domain"),
                         request_query(request, "type"), NULL, 0, NULL, reterr));
    return api_policy_show(context, request, response, reterr);
}
