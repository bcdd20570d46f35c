/*
 * webhook.c - see webhook.h.
 */
#include "ops/webhook.h"

#include <string.h>

#include "ops/metric.h"

#define BODY_BYTES  ((size_t)4 << 10)
#define ARENA_BYTES (BODY_BYTES + 2 * CLIENT_HEAD_BYTES_MAX)

const ClientOptions webhook_client = {.body_bytes_max = BODY_BYTES, .idle_max = 2};

static ErrorCode post(Client *client, const ClientRequest *request, Error *reterr)
{
    scoped(arena_free) Arena *arena    = arena_new(ARENA_BYTES);
    ClientResponse            response = {0};

    TRY(client_send(client, request, arena, &response, reterr));
    return client_judge(&response, reterr);
}

ErrorCode webhook_post(Client *client, const char *url, const char *key, const char *json, Deadline deadline,
                       Error *reterr)
{
    ClientRequest request = {.method          = CLIENT_POST,
                             .url             = url,
                             .body            = json,
                             .body_size       = strlen(json),
                             .idempotency_key = key,
                             .deadline        = deadline,
                             .truncate        = true};
    ErrorCode     code    = post(client, &request, reterr);

    metric_add(code == OK ? &ops_metrics.webhook_ok : &ops_metrics.webhook_failed, 1);
    if (code != OK)
        error_prefix(reterr, "webhook");
    return code;
}
