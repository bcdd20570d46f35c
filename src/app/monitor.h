/*
 * monitor.h - the periodic tasks of a pod, and the alert that becomes a webhook.
 */
#ifndef APP_MONITOR_H
#define APP_MONITOR_H

#include "app/daemon.h"

/* Start the tasks of the table in monitor.c. */
Tasks *monitor_start(Daemon *daemon);
/* Let other pods take over the single tasks without waiting for the lease to end; after tasks_stop(). */
void monitor_release(Daemon *daemon);
/* The queue that monitor_alert() puts webhooks into; one that fails becomes a dead letter. */
WebhookQueue *monitor_webhooks(Daemon *daemon);
/* An AlertListener (context: the Daemon): puts a webhook into the queue if there is a URL. Alerts about the database as a
 * whole are sent by one pod. */
void monitor_alert(void *context, const Alert *alert);

#endif
