/*
 * alert_webhook.h - an alert that fires or is resolved becomes a webhook; a webhook that fails becomes a dead letter.
 *
 * Alerts about the database as a whole are sent by one pod: the one that holds the lease on ALERT_WEBHOOK_TASK, which also
 * retries the webhooks among the dead letters. Only a pod that has a webhook claims that lease.
 * Threads: any; the URL may change while they run, and the daemon's mutex guards it. Ownership: all belongs to the daemon.
 */
#ifndef APP_ALERT_WEBHOOK_H
#define APP_ALERT_WEBHOOK_H

#include "app/daemon.h"

#define ALERT_WEBHOOK_TASK "alert-webhooks"

/* The queue that alert_webhook_put() puts webhooks into. */
WebhookQueue *alert_webhooks_new(Daemon *daemon);
/* An AlertListener (context: the Daemon): nothing is sent if there is no URL. */
void alert_webhook_put(void *context, const Alert *alert);
/* After this pod got the lease, once: the pod that had to send what is firing may have died before it did. */
void alert_webhooks_take_over(Daemon *daemon);
/* A handler of dead letters (context: the Daemon). ERR_REFUSED: there is no URL any more. */
must_check ErrorCode alert_webhook_retry(Deadline deadline, const char *key, const char *data, void *context,
                                         Error *reterr);
/* A WebhookUrl (context: the Daemon). false: there is none. */
bool alert_webhook_url(void *context, char *ret_url, size_t size);

#endif
