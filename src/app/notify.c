/*
 * notify.c - see notify.h.
 */
#include "app/notify.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

/* A manager that does not read delays the stop by no more. */
#define SEND_S    5
#define STATE_MAX 512

Notify notify_open(void)
{
    Notify         notify = {.fd = -1, .address.sun_family = AF_UNIX};
    const char    *path   = getenv("NOTIFY_SOCKET");
    size_t         length = path ? strlen(path) : 0;
    struct timeval limit  = {.tv_sec = SEND_S};

    if (!length)
        return notify;
    if ((path[0] == '/' || path[0] == '@') && length < sizeof notify.address.sun_path) {
        memcpy(notify.address.sun_path, path, length);
        if (path[0] == '@') /* a name in the abstract namespace */
            notify.address.sun_path[0] = '\0';
        notify.address_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + length);
        notify.fd           = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    }
    if (notify.fd < 0)
        log_write(LOG_WARN, "daemon", "cannot use NOTIFY_SOCKET, the service manager is not notified",
                  LOG_STR("path", path));
    else
        (void)setsockopt(notify.fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    unsetenv("NOTIFY_SOCKET");
    return notify;
}

void notify_close(Notify *notify)
{
    if (notify->fd >= 0)
        close(notify->fd);
    notify->fd = -1;
}

static void state_send(const Notify *notify, const char *state)
{
    ssize_t sent;

    if (notify->fd < 0)
        return;
    do
        sent = sendto(notify->fd, state, strlen(state), MSG_NOSIGNAL, (const struct sockaddr *)&notify->address,
                      notify->address_size);
    while (sent < 0 && errno == EINTR);
    if (sent < 0)
        log_write(LOG_WARN, "daemon", "cannot notify the service manager", LOG_STR("error", strerrordesc_np(errno)));
}

void notify_ready(const Notify *notify, const char *status)
{
    char state[STATE_MAX];

    snprintf(state, sizeof state, "READY=1\nSTATUS=%s", status);
    state_send(notify, state);
}

void notify_reloading(const Notify *notify)
{
    char state[STATE_MAX];

    /* Type=notify-reload of systemd 253 and later compares the time with that of its SIGHUP. */
    snprintf(state, sizeof state, "RELOADING=1\nMONOTONIC_USEC=%" PRId64, clock_mono().ns / 1000);
    state_send(notify, state);
}

void notify_stopping(const Notify *notify)
{
    state_send(notify, "STOPPING=1\nSTATUS=stopping");
}
