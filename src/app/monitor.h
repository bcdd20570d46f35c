/*
 * monitor.h - the periodic tasks of a pod.
 *
 * Threads: steps run on the threads of app/task.h. Ownership: the daemon has the tasks and what they remember.
 */
#ifndef APP_MONITOR_H
#define APP_MONITOR_H

#include "app/daemon.h"

/* Start the tasks of the table in monitor.c. The daemon's listener, if there is one, must be freed before them. */
Tasks *monitor_start(Daemon *daemon);
/* Let other pods take over the single tasks without waiting for the lease to end; after tasks_stop(). */
void monitor_release(Daemon *daemon);

#endif
