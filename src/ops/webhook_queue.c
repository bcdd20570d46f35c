/*
 * webhook_queue.c - a ring of texts and one thread; see webhook_queue.h.
 */
#include "ops/webhook_queue.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "base/sync.h"
#include "ops/webhook.h"

#define URL_BYTES_MAX 2048
#define IDLE_MS       3600000

typedef struct {
    char *key, *json;
} Webhook;

struct WebhookQueue {
    Client        *client;
    WebhookUrl    *url;
    WebhookFailed *failed;
    void          *context;
    int            post_ms;
    Mutex          mutex; /* guards all below */
    Cond           wake;
    Webhook        ring[WEBHOOK_QUEUE_MAX];
    int            first, count;
    bool           stop, ended;
    pthread_t      thread;
};

/* false: stopped, and nothing is left. */
static bool queue_take(WebhookQueue *queue, Webhook *ret_webhook, bool *ret_stopped)
{
    scoped(mutex_unlock) Mutex *lock = mutex_hold(&queue->mutex);

    while (queue->count == 0 && !queue->stop)
        (void)cond_wait(&queue->wake, lock, deadline_in_ms(IDLE_MS));
    *ret_stopped = queue->stop;
    if (queue->count == 0)
        return false;
    *ret_webhook = queue->ring[queue->first];
    queue->first = (queue->first + 1) % WEBHOOK_QUEUE_MAX;
    queue->count--;
    return true;
}

static ErrorCode webhook_send(const WebhookQueue *queue, const Webhook *webhook, Error *reterr)
{
    char url[URL_BYTES_MAX];

    if (!queue->url(queue->context, url, sizeof url))
        return fail(reterr, ERR_REFUSED, "PAWL_ALERT_WEBHOOK is not set any more");
    return webhook_post(queue->client, url, webhook->key, webhook->json, deadline_in_ms(queue->post_ms), reterr);
}

static void queue_end(WebhookQueue *queue)
{
    scoped(mutex_unlock) Mutex *lock = mutex_hold(&queue->mutex);

    queue->ended = true;
    cond_broadcast(&queue->wake);
}

static void *queue_run(void *context)
{
    WebhookQueue *queue = context;
    Webhook       webhook;
    bool          stopped;

    while (queue_take(queue, &webhook, &stopped)) {
        Error     why = {0};
        ErrorCode code =
            stopped ? fail(&why, ERR_UNAVAILABLE, "the process ended before") : webhook_send(queue, &webhook, &why);

        if (code != OK)
            queue->failed(queue->context, webhook.key, webhook.json, &why);
        free(webhook.key);
        free(webhook.json);
    }
    queue_end(queue);
    return NULL;
}

WebhookQueue *webhook_queue_new(Client *client, WebhookUrl *url, WebhookFailed *failed, int post_ms, void *context)
{
    WebhookQueue *queue = memory_new(1, sizeof *queue);

    queue->client  = client;
    queue->url     = url;
    queue->failed  = failed;
    queue->post_ms = post_ms;
    queue->context = context;
    mutex_init(&queue->mutex);
    cond_init(&queue->wake);
    queue->thread = thread_start("webhook", queue_run, queue);
    return queue;
}

bool webhook_queue_put(WebhookQueue *queue, const char *key, const char *json)
{
    scoped(mutex_unlock) Mutex *lock = mutex_hold(&queue->mutex);
    Webhook                    *webhook;

    if (queue->stop || queue->count == WEBHOOK_QUEUE_MAX)
        return false;
    webhook       = &queue->ring[(queue->first + queue->count++) % WEBHOOK_QUEUE_MAX];
    webhook->key  = memory_text(key);
    webhook->json = memory_text(json);
    cond_signal(&queue->wake);
    return true;
}

void webhook_queue_stop(WebhookQueue *queue)
{
    scoped(mutex_unlock) Mutex *lock = mutex_hold(&queue->mutex);

    queue->stop = true;
    cond_broadcast(&queue->wake);
}

bool webhook_queue_drain(WebhookQueue *queue, Deadline deadline)
{
    scoped(mutex_unlock) Mutex *lock = mutex_hold(&queue->mutex);

    queue->stop = true;
    cond_broadcast(&queue->wake);
    while (!queue->ended && cond_wait(&queue->wake, lock, deadline))
        ;
    return queue->ended;
}

void webhook_queue_free(WebhookQueue *queue)
{
    webhook_queue_stop(queue);
    thread_join(queue->thread);
    mutex_done(&queue->mutex);
    cond_done(&queue->wake);
    free(queue);
}
