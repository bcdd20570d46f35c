/*
 * alert_webhook.c - see alert_webhook.h.
 */
#include "app/alert_webhook.h"

#include "base/log.h"
#include "bus/dead_letter.h"
#include "ops/webhook.h"

#define WEBHOOK_MS 5000

bool alert_webhook_url(void *context, char *ret_url, size_t size)
{
    Daemon                     *daemon = context;
    scoped(mutex_unlock) Mutex *held   = mutex_hold(&daemon->mutex);

    snprintf(ret_url, size, "%s", daemon->webhook);
    return ret_url[0] != '\0';
}

static void webhook_failed(void *context, const char *key, const char *json, const Error *why)
{
    Daemon *daemon = context;
    Error   error  = {0};
    int     every  = (int)daemon->app->settings.dlq_every;
    int64_t id;

    log_error(LOG_WARN, "alert", "the webhook failed and is kept as a dead letter", why);
    if (dead_letter_put(daemon->app->pool, deadline_in_ms(WEBHOOK_MS),
                        &(DeadLetterNew){"alert_webhook", key, json, why,
                                         why->retry_ms > every ? why->retry_ms : every},
                        &id, &error) != OK)
        log_error(LOG_ERROR, "alert", "the webhook could not be kept either", &error);
}

WebhookQueue *alert_webhooks_new(Daemon *daemon)
{
    return webhook_queue_new(daemon->client, alert_webhook_url, webhook_failed, WEBHOOK_MS, daemon);
}

void alert_webhook_put(void *context, const Alert *alert)
{
    Daemon          *daemon = context;
    char             url[sizeof daemon->webhook], key[128];
    Error            why  = {0};
    scoped_text Text text = {0};

    if (!alert_webhook_url(daemon, url, sizeof url))
        return;
    if (alert->rule->is_shared && !tasks_holds(daemon->tasks, ALERT_WEBHOOK_TASK))
        return;
    text_init(&text, NULL, TEXT_MAX_LINE);
    alert_write(alert, &text);
    snprintf(key, sizeof key, "%s-%lld", alert->rule->name, (long long)alert->since.us);
    if (webhook_queue_put(daemon->webhooks, key, text_string(&text)))
        return;
    (void)fail(&why, ERR_BUSY, "%d webhooks wait already", WEBHOOK_QUEUE_MAX);
    webhook_failed(daemon, key, text_string(&text), &why);
}

/* The pod that had to send them may have died before it did: its successor sends again what is firing. */
void alert_webhooks_take_over(Daemon *daemon)
{
    Alert list[ALERTS_MAX];
    int   count;
    bool  holds = tasks_holds(daemon->tasks, ALERT_WEBHOOK_TASK);

    if (holds && !daemon->holds_shared) {
        count = alerts_list(daemon->api.alerts, list);
        for (int i = 0; i < count; i++)
            if (list[i].firing && list[i].rule->is_shared)
                alert_webhook_put(daemon, &list[i]);
    }
    daemon->holds_shared = holds;
}

/* The receiver knows the key, so posting once more after a lost settle is harmless. */
ErrorCode alert_webhook_retry(Deadline deadline, const char *key, const char *data, void *context, Error *reterr)
{
    Daemon *daemon = context;
    char    url[sizeof daemon->webhook];

    if (!alert_webhook_url(daemon, url, sizeof url))
        return fail(reterr, ERR_REFUSED, "PAWL_ALERT_WEBHOOK is not set any more");
    return webhook_post(daemon->client, url, key, data, deadline_sooner(deadline, deadline_in_ms(WEBHOOK_MS)), reterr);
}
