/*
 * notify.h - tells a service manager that the daemon is ready, reloads or stops: the protocol of sd_notify(3)
 * (ADR 33).
 *
 * The manager names a Unix datagram socket in NOTIFY_SOCKET. Without it every call does nothing. No call fails: a manager that is gone is no
 * reason to stop.
 * Threads: the main thread only.
 */
#ifndef APP_NOTIFY_H
#define APP_NOTIFY_H

#include <sys/socket.h>
#include <sys/un.h>

typedef struct {
    int                fd; /* -1: no manager */
    struct sockaddr_un address;
    socklen_t          address_size;
} Notify;

/* Takes NOTIFY_SOCKET out of the environment, before threads start: a child that inherits it, such as PostgreSQL, would speak for the daemon. */
Notify notify_open(void);
void   notify_close(Notify *notify);

void notify_ready(const Notify *notify, const char *status); /* status: a line for `systemctl status` */
void notify_reloading(const Notify *notify);                 /* until notify_ready() */
void notify_stopping(const Notify *notify);

#endif
