/*
 * receiver.c - see receiver.h.
 */
#include "test/unit/client/receiver.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "test/harness/test.h"

typedef struct {
    Receiver *receiver;
    int       fd;
} Connection;

/* Read one request into bytes; NULL: the client has gone. *ret_body is what stands behind the empty line. */
static char *request_read(int fd, char *bytes, char **ret_body)
{
    size_t used = 0;

    for (;;) {
        char   *end    = used ? strstr(bytes, "\r\n\r\n") : NULL;
        char   *length = end ? strcasestr(bytes, "\r\nContent-Length:") : NULL;
        size_t  wanted = length && length < end ? strtoul(length + 17, NULL, 10) : 0;
        ssize_t count;

        if (end && used - (size_t)(end + 4 - bytes) >= wanted) {
            *end      = '\0';
            *ret_body = end + 4;
            return bytes;
        }
        count = used + 1 < RECEIVER_BYTES_MAX ? recv(fd, bytes + used, RECEIVER_BYTES_MAX - 1 - used, 0) : 0;
        if (count <= 0)
            return NULL;
        used += (size_t)count;
        bytes[used] = '\0';
    }
}

static void greet(Receiver *receiver, const Received *received)
{
    mutex_lock(&receiver->mutex);
    const char *greeting = receiver->greeting;
    mutex_unlock(&receiver->mutex);
    if (greeting)
        receiver_write(received, greeting, strlen(greeting));
}

static void *connection_run(void *context)
{
    Connection *connection = context;
    Receiver   *receiver   = connection->receiver;
    int         fd         = connection->fd;
    char       *bytes      = malloc(RECEIVER_BYTES_MAX);
    Received    received   = {.fd = fd};
    char       *body       = NULL;

    free(connection);
    greet(receiver, &received);
    while ((received.head = request_read(fd, bytes, &body)) != NULL) {
        received.number++;
        received.body = body;
        mutex_lock(&receiver->mutex);
        snprintf(receiver->last, sizeof receiver->last, "%s\n\n%s", received.head, received.body);
        mutex_unlock(&receiver->mutex);
        atomic_fetch_add(&receiver->requests, 1);
        if (!receiver->answer(receiver, &received))
            break;
    }
    shutdown(fd, SHUT_RDWR); /* closed at the end, so that no number stands for two sockets */
    atomic_fetch_sub(&receiver->open, 1);
    free(bytes);
    return NULL;
}

static void *receiver_run(void *context)
{
    Receiver *receiver = context;

    for (int fd; (fd = accept(receiver->fd, NULL, NULL)) >= 0;) {
        Connection *connection = malloc(sizeof *connection);
        int         number     = atomic_load(&receiver->connections);

        if (!connection || number == RECEIVER_CONNECTIONS_MAX)
            abort();
        *connection = (Connection){receiver, fd};
        atomic_fetch_add(&receiver->open, 1); /* counted before anything is answered on it */
        atomic_fetch_add(&receiver->connections, 1);
        mutex_lock(&receiver->mutex);
        receiver->fds[number]     = fd;
        receiver->threads[number] = thread_start("receiver", connection_run, connection);
        mutex_unlock(&receiver->mutex);
    }
    return NULL;
}

void receiver_init(Receiver *receiver, ReceiverAnswer *answer, const char *text)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t          size    = sizeof address;

    memset(receiver, 0, sizeof *receiver);
    receiver->answer = answer;
    receiver->text   = text;
    receiver->fd     = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(0, bind(receiver->fd, (struct sockaddr *)&address, size));
    assert_int_equal(0, listen(receiver->fd, 100));
    assert_int_equal(0, getsockname(receiver->fd, (struct sockaddr *)&address, &size));
    receiver->port = ntohs(address.sin_port);
    snprintf(receiver->url, sizeof receiver->url, "http://127.0.0.1:%d", receiver->port);
    mutex_init(&receiver->mutex);
    receiver->thread = thread_start("receiver", receiver_run, receiver);
}

void receiver_done(Receiver *receiver)
{
    shutdown(receiver->fd, SHUT_RDWR);
    thread_join(receiver->thread);
    close(receiver->fd);
    for (int i = 0; i < atomic_load(&receiver->connections); i++) {
        shutdown(receiver->fds[i], SHUT_RDWR);
        thread_join(receiver->threads[i]);
        close(receiver->fds[i]);
    }
    mutex_done(&receiver->mutex);
}

void receiver_greet(Receiver *receiver, const char *greeting)
{
    mutex_lock(&receiver->mutex);
    receiver->greeting = greeting;
    mutex_unlock(&receiver->mutex);
}

const char *receiver_last(Receiver *receiver)
{
    assert_true(atomic_load(&receiver->requests) > 0);
    return receiver->last;
}

bool receiver_write(const Received *received, const char *bytes, size_t size)
{
    for (size_t sent = 0; sent < size;) {
        ssize_t count = send(received->fd, bytes + sent, size - sent, MSG_NOSIGNAL);

        if (count <= 0)
            return false;
        sent += (size_t)count;
    }
    return true;
}

void receiver_await_end(const Received *received)
{
    char byte;

    while (recv(received->fd, &byte, 1, 0) > 0)
        ;
}

bool answer_text(Receiver *receiver, const Received *received)
{
    return receiver_write(received, receiver->text, strlen(receiver->text));
}

bool answer_text_close(Receiver *receiver, const Received *received)
{
    (void)answer_text(receiver, received);
    return false;
}

bool answer_echo(Receiver *receiver, const Received *received)
{
    char head[128];
    int  size = snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n", strlen(received->body));

    (void)receiver;
    return receiver_write(received, head, (size_t)size) &&
           receiver_write(received, received->body, strlen(received->body));
}

bool answer_never(Receiver *receiver, const Received *received)
{
    (void)receiver;
    receiver_await_end(received);
    return false;
}
