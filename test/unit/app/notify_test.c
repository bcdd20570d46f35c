/*
 * notify_test.c - the service manager's socket by name and in the abstract namespace, and without one. What the daemon sends and when:
 * shutdown_test.py.
 */
#include "app/notify.h"

#include <stddef.h>
#include <unistd.h>

#include "test/harness/test.h"

static int manager_open(const char *name, size_t size)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int                fd      = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    memcpy(address.sun_path, name, size);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size)),
                     0);
    return fd;
}

static void notifies(int manager, const char *name)
{
    char    state[128] = "";
    Notify  notify;
    ssize_t size;

    setenv("NOTIFY_SOCKET", name, 1);
    notify = notify_open();
    assert_null(getenv("NOTIFY_SOCKET"));
    notify_ready(&notify, "ready");
    size = recv(manager, state, sizeof state - 1, MSG_DONTWAIT);
    assert_int_equal(size, strlen("READY=1\nSTATUS=ready"));
    assert_string_equal(state, "READY=1\nSTATUS=ready");
    close(manager);
    notify_stopping(&notify); /* it is gone */
    notify_close(&notify);
}

TEST(notify_reaches_a_socket_by_path_and_by_abstract_name)
{
    char name[64];

    snprintf(name, sizeof name, "/tmp/pawl-notify-test.%d", (int)getpid());
    notifies(manager_open(name, strlen(name)), name);
    unlink(name);
    snprintf(name, sizeof name, "@pawl-notify-test.%d", (int)getpid());
    name[0]     = '\0';
    int manager = manager_open(name, 1 + strlen(name + 1));

    name[0] = '@';
    notifies(manager, name);
}

TEST(notify_without_a_usable_socket_does_nothing)
{
    char        name[256];
    const char *names[] = {"", "relative", name};

    memset(name, '/', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        setenv("NOTIFY_SOCKET", names[i], 1);
        Notify notify = notify_open();

        assert_int_equal(notify.fd, -1);
        notify_ready(&notify, "ready");
        notify_close(&notify);
    }
}
