/*
 * policy_fields.c - see policy_fields.h.
 */
#include "bus/policy_fields.h"

#include <stdlib.h>
#include <string.h>

#include "bus/send.h"

static const Field policy_fields[] = {
    {"type", FIELD_TEXT, offsetof(PolicyRequest, type), .length_max = SEND_TYPE_MAX,
     .help = "the domain's own when absent"},
    {"delays_s", FIELD_JSON, offsetof(PolicyRequest, delays_s),
     .help = "seconds before the second, third, ... attempt; the last one serves all further attempts"},
    {"order_key", FIELD_TEXT, offsetof(PolicyRequest, order_key), .length_max = 20, .words = order_key_rules,
     .help = "what a command in the troubleshooting queue does with its order key"},
};
const FieldTable policy_table = {"retry policy", policy_fields, COUNT(policy_fields), sizeof(PolicyRequest)};

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

ErrorCode policy_request_delays(const PolicyRequest *request, int64_t *ret_delays_ms, int *ret_count, Error *reterr)
{
    if (!request->delays_s && !request->order_key)
        return fail(reterr, ERR_INVALID, "delays_s or order_key is required");
    if (request->delays_s)
        return delays_read(request->delays_s, ret_delays_ms, ret_count, reterr);
    *ret_count = 0;
    return OK;
}

void policies_write(Writer *writer, const char *domain, const RetryPolicy *list, int count)
{
    writer_object(writer, NULL);
    writer_text(writer, "domain", domain);
    writer_array(writer, "items");
    for (int i = 0; i < count; i++)
        retry_policy_write(writer, &list[i]);
    writer_end(writer);
    writer_end(writer);
}
