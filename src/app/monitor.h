/*
 * monitor.h - the jobs of the monitor role, and the alert that becomes a webhook.
 */
#ifndef APP_MONITOR_H
#define APP_MONITOR_H

#include "app/daemon.h"

/* Start the jobs of the table in monitor.c. */
Jobs *monitor_start(Daemon *daemon);
/* An AlertListener (context: the Daemon): posts to the webhook if there is one; a post that fails becomes a dead letter. */
void monitor_alert(void *context, const Alert *alert);

#endif
