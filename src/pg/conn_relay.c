/*
 * conn_relay.c - bound what the server can make libpq hold; see conn_relay() in conn.h.
 *
 * libpq reads a message whole: once it knows the length, it enlarges its buffer to that, and then one PQconsumeInput()
 * reads until the socket is empty, which a server that sends faster never lets happen. So counting between its calls is
 * no bound. Behind a relay libpq has one end of a socket pair, under the descriptor of its own socket, and this file
 * carries at most RELAY_BYTES at a time between the other end and the server. Bytes are counted, not understood, so
 * TLS makes no difference. The statement that runs compares the count with its limit (conn.h, invariant 6).
 *
 * The pair is empty whenever the server's socket is waited for: what libpq left in it is read first, and libpq's buffer
 * always has RELAY_BYTES free.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/world.h"
#include "pg/conn_internal.h"

/* What PQconsumeInput() has space for at least. */
#define RELAY_BYTES 8192

ErrorCode conn_relay(Conn *conn, Error *reterr)
{
    int own = PQsocket(conn->native), server = fcntl(own, F_DUPFD_CLOEXEC, 0), pair[2] = {-1, -1};

    if (server >= 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0 &&
        dup3(pair[0], own, O_CLOEXEC) == own) {
        close(pair[0]);
        conn->socket     = server;
        conn->relay      = pair[1];
        conn->is_relayed = true;
        return OK;
    }
    (void)fail(reterr, ERR_UNAVAILABLE, "cannot bound the input of a connection to %s: %s", conn->name,
               strerror(errno));
    for (int i = 0; i < 3; i++)
        if ((const int[]){server, pair[0], pair[1]}[i] >= 0)
            close((const int[]){server, pair[0], pair[1]}[i]);
    return ERR_UNAVAILABLE;
}

static bool input_is_left(const Conn *conn)
{
    int size = 0;

    return ioctl(PQsocket(conn->native), FIONREAD, &size) == 0 && size > 0;
}

int conn_wait(Conn *conn, int events, Deadline deadline)
{
    if (conn->is_relayed && (events & SOCKET_READ) && input_is_left(conn))
        return SOCKET_READ;
    return world_socket_wait(conn->is_relayed ? conn->socket : PQsocket(conn->native), events, deadline);
}

static bool would_block(void)
{
    return errno == EAGAIN || errno == EINTR;
}

bool conn_take_input(Conn *conn)
{
    char    bytes[RELAY_BYTES];
    ssize_t size;

    if (!conn->is_relayed || input_is_left(conn))
        return PQconsumeInput(conn->native);
    size = recv(conn->socket, bytes, sizeof bytes, 0);
    if (size < 0 && would_block())
        return true;
    if (size > 0 && send(conn->relay, bytes, (size_t)size, MSG_NOSIGNAL) == size)
        conn->received_bytes += (size_t)size;
    else
        shutdown(conn->relay, SHUT_WR); /* libpq finds the end, and says so */
    return PQconsumeInput(conn->native);
}

/* false: the server takes no more for now. */
static bool relay_output(Conn *conn)
{
    char    bytes[RELAY_BYTES];
    ssize_t size, sent;

    while ((size = recv(conn->relay, bytes, sizeof bytes, MSG_PEEK)) > 0) {
        sent = send(conn->socket, bytes, (size_t)size, MSG_NOSIGNAL);
        if (sent < 0 && would_block())
            return false;
        /* A connection that is gone is found by who reads, with what the server said last. */
        if (recv(conn->relay, bytes, (size_t)(sent < 0 ? size : sent), 0) < 0)
            abort();
    }
    return true;
}

int conn_put_output(Conn *conn)
{
    int left = PQflush(conn->native);

    while (conn->is_relayed && left >= 0) {
        if (!relay_output(conn))
            return 1;
        if (left == 0)
            return 0;
        left = PQflush(conn->native);
    }
    return left;
}

void conn_relay_end(Conn *conn)
{
    if (!conn->is_relayed)
        return;
    (void)relay_output(conn); /* the goodbye */
    close(conn->relay);
    close(conn->socket);
}
