/*
 * webhook_queue.h - webhooks on a thread of their own, so that a receiver that is slow delays nothing but webhooks.
 *
 * Invariants
 *   1. At most WEBHOOK_QUEUE_MAX wait; one more is refused without waiting, and the caller keeps it elsewhere.
 *   2. Each accepted webhook is delivered, or handed to `failed` exactly once: after a failed post, or when the queue
 * stops. Threads: webhook_queue_put() from any; `url` and `failed` are called on the queue's thread. Ownership: the
 * client is borrowed; webhook_queue_free() waits for the post under way, which its deadline bounds, and joins.
 */
#ifndef OPS_WEBHOOK_QUEUE_H
#define OPS_WEBHOOK_QUEUE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/attr.h"
#include "base/clock.h"
#include "base/error.h"
#include "client/client.h"

#define WEBHOOK_QUEUE_MAX 64

/* Where to post now. false: nowhere any more. */
typedef bool WebhookUrl(void *context, char *ret_url, size_t size);
typedef void WebhookFailed(void *context, const char *key, const char *json, const Error *why);

typedef struct WebhookQueue WebhookQueue;

WebhookQueue *webhook_queue_new(Client *client, WebhookUrl *url, WebhookFailed *failed, int post_ms, void *context);
/* false: the queue is full or has been stopped. Both texts are copied. */
bool webhook_queue_put(WebhookQueue *queue, const char *key, const char *json);
/* Nothing further is accepted or posted; what waits goes to `failed`. Does not wait. */
void webhook_queue_stop(WebhookQueue *queue);
/* Stop, and wait until all of it was delivered or handed to `failed`. false: the deadline passed. */
bool webhook_queue_drain(WebhookQueue *queue, Deadline deadline);
void webhook_queue_free(WebhookQueue *queue);
SCOPED(WebhookQueue, webhook_queue_free)

#endif
