/*
 * webhook.h - one POST of JSON to a URL that the operator chose, with an idempotency key, bounded in time and size.
 *
 * Threads: any.
 */
#ifndef OPS_WEBHOOK_H
#define OPS_WEBHOOK_H

#include "base/clock.h"
#include "base/error.h"
#include "client/client.h"

/* Of the client to give here: few connections are kept, and of the answer only its status matters. */
extern const ClientOptions webhook_client;

/* OK: a 2xx answer. ERR_RATE: 429. ERR_UNAVAILABLE: not connected, or 5xx. ERR_REFUSED: any other answer. Else as
 * client_send(). reterr->retry_ms is what Retry-After said. No message has more of the URL than its host. */
must_check ErrorCode webhook_post(Client *client, const char *url, const char *key, const char *json, Deadline deadline,
                                  Error *reterr);

#endif
