/*
 * server.c - starts, drains and ends the server; the work is in loop.c, peer.c and dispatch.c.
 */
#include "http/server.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/memory.h"
#include "http/server_internal.h"

#define BACKLOG 1024

static const ServerOptions defaults = {
    .network_threads  = 2,
    .executor_threads = 8,
    .reader_threads   = INT_MAX,
    .queue_max        = 1024,
    .connections_max  = 4096,
    .body_bytes_max   = 8 << 20,
    .header_bytes_max = 16 << 10,
    .unsent_bytes_max = 256 << 20,
    .bodies_bytes_max = 256 << 20,
    .read_ms_max      = 10000,
    .deadline_ms      = 10000,
};

/* So large that a body of the largest size finds space beside others. */
static int64_t bodies_most(const ServerOptions *options)
{
    int64_t least = 4 * (int64_t)options->body_bytes_max;

    return options->bodies_bytes_max > least ? options->bodies_bytes_max : least;
}

static ServerOptions with_defaults(const ServerOptions *given)
{
    ServerOptions options = *given;

#define FILL(name) options.name = options.name > 0 ? options.name : defaults.name
    FILL(network_threads);
    FILL(executor_threads);
    FILL(reader_threads);
    FILL(queue_max);
    FILL(connections_max);
    FILL(body_bytes_max);
    FILL(header_bytes_max);
    FILL(unsent_bytes_max);
    FILL(bodies_bytes_max);
    FILL(read_ms_max);
    FILL(deadline_ms);
#undef FILL
    /* As many as the caller has connections for, but others must find a thread. */
    int half               = options.executor_threads > 1 ? options.executor_threads / 2 : 1;
    options.reader_threads = options.reader_threads < half ? options.reader_threads : half;
    return options;
}

ErrorCode server_address(const char *listen, char *ret_host, const char **ret_port, Error *reterr)
{
    const char *colon = strrchr(listen, ':');
    const char *host  = listen;
    size_t      size  = colon ? (size_t)(colon - listen) : 0;

    if (!colon || colon[1] == '\0' || colon[1 + strspn(colon + 1, "0123456789")] != '\0' || strlen(colon + 1) > 5 ||
        strtol(colon + 1, NULL, 10) > UINT16_MAX)
        return fail(reterr, ERR_USAGE, "address \"%s\" must be host:port with a port from 0 to 65535", listen);
    if (size >= 2 && host[0] == '[' && host[size - 1] == ']') {
        host++;
        size -= 2;
    } else if (memchr(host, ':', size)) {
        return fail(reterr, ERR_USAGE, "address \"%s\" must have its IPv6 part in brackets: \"[::1]:8080\"", listen);
    }
    if (size >= SERVER_HOST_SIZE)
        return fail(reterr, ERR_USAGE, "the host in the address to listen on is longer than %d bytes",
                    SERVER_HOST_SIZE - 1);
    memcpy(ret_host, host, size);
    ret_host[size] = '\0';
    *ret_port      = colon + 1;
    return OK;
}

/* -1 and errno when the address cannot be had. */
static int bind_to(const struct addrinfo *address)
{
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (address->ai_family == AF_INET6) /* "[::]" serves IPv4 as well */
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &(int){0}, sizeof(int));
    if (bind(fd, address->ai_addr, address->ai_addrlen) == 0)
        return fd;
    int saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

/* Try the addresses of one family; -1 and errno of the last one when none can be had. */
static int bind_to_any(const struct addrinfo *addresses, int family)
{
    int fd = -1;

    for (const struct addrinfo *address = addresses; address && fd < 0; address = address->ai_next)
        if (address->ai_family == family)
            fd = bind_to(address);
    return fd;
}

ErrorCode server_bind(const char *listen, int *ret_fd, Error *reterr)
{
    char             host[SERVER_HOST_SIZE];
    const char      *port      = NULL;
    struct addrinfo *addresses = NULL;
    struct addrinfo  hints     = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};

    TRY(server_address(listen, host, &port, reterr));
    int problem = getaddrinfo(*host ? host : NULL, port, &hints, &addresses);
    if (problem != 0)
        return fail(reterr, ERR_USAGE, "cannot listen on \"%s\": %s", listen, gai_strerror(problem));
    /* Every address means both families, which one IPv6 socket serves; a name means what most clients try: IPv4. */
    int first = *host ? AF_INET : AF_INET6;
    errno     = EADDRNOTAVAIL;
    int fd    = bind_to_any(addresses, first);
    if (fd < 0 && errno != EADDRINUSE)
        fd = bind_to_any(addresses, first == AF_INET ? AF_INET6 : AF_INET);
    int saved = errno;
    freeaddrinfo(addresses);
    if (fd < 0 && saved == EADDRINUSE)
        return fail(reterr, ERR_CONFLICT,
                    "address \"%s\" is already in use: choose another with --listen or PAWL_LISTEN", listen);
    if (fd < 0)
        return fail(reterr, ERR_USAGE, "cannot listen on \"%s\": %s", listen, strerror(saved));
    *ret_fd = fd;
    return OK;
}

static int port_of(int fd)
{
    union {
        struct sockaddr     any;
        struct sockaddr_in  v4;
        struct sockaddr_in6 v6;
    } address      = {.v6 = {0}};
    socklen_t size = sizeof address;

    if (getsockname(fd, &address.any, &size) != 0)
        abort();
    return ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port);
}

ErrorCode server_new(const ServerOptions *options, Server **ret_server, Error *reterr)
{
    int fd = options->bound_fd;

    if (fd == 0)
        TRY(server_bind(options->listen, &fd, reterr));
    if (listen(fd, BACKLOG) != 0) { /* another process bound it as well, and was quicker */
        close(fd);
        return fail(reterr, ERR_CONFLICT,
                    "address \"%s\" is already in use: choose another with --listen or PAWL_LISTEN", options->listen);
    }
    Server *server        = memory_new(1, sizeof *server);
    server->options       = with_defaults(options);
    server->listen_fd     = fd;
    server->port          = port_of(fd);
    server->loop_count    = server->options.network_threads;
    server->loops         = memory_new((size_t)server->loop_count, sizeof *server->loops);
    server->route_metrics = memory_new(server->options.routes.count + 1, sizeof *server->route_metrics);
    server->unsent        = share_new(server->options.unsent_bytes_max);
    server->bodies        = share_new(bodies_most(&server->options));
    server->places        = share_new(server->options.connections_max);
    mutex_init(&server->mutex);
    cond_init(&server->quiet);
    server->executor = executor_new(server->options.executor_threads, server->options.reader_threads,
                                    server->options.queue_max, peer_execute);
    /* The first one accepts and hands out, so it starts when the others are there. */
    for (int i = server->loop_count - 1; i >= 0; i--)
        loop_start(&server->loops[i], server);
    *ret_server = server;
    return OK;
}

int server_port(const Server *server)
{
    return server->port;
}

static void server_enter(Server *server, ServerPhase phase)
{
    atomic_store(&server->phase, phase);
    for (int i = 0; i < server->loop_count; i++)
        loop_wake(&server->loops[i]);
}

void server_quiet(Server *server)
{
    scoped(mutex_unlock) Mutex *held = mutex_hold(&server->mutex);

    cond_broadcast(&server->quiet);
}

static bool server_is_quiet(Server *server)
{
    return atomic_load(&server->drained) == server->loop_count && atomic_load(&server->active) == 0;
}

bool server_drain(Server *server, Deadline deadline)
{
    server_enter(server, SERVER_DRAINING);
    scoped(mutex_unlock) Mutex *held = mutex_hold(&server->mutex);
    while (!server_is_quiet(server))
        if (!cond_wait(&server->quiet, held, deadline))
            return server_is_quiet(server);
    return true;
}

/* The executor ends in two steps: loops that still run may submit to it until they are joined, and are refused. */
void server_free(Server *server)
{
    executor_stop(server->executor);
    server_enter(server, SERVER_STOPPING);
    for (int i = 0; i < server->loop_count; i++)
        loop_end(&server->loops[i]);
    executor_free(server->executor);
    share_free(server->unsent);
    share_free(server->bodies);
    share_free(server->places);
    if (server->listen_fd >= 0)
        close(server->listen_fd);
    cond_done(&server->quiet);
    mutex_done(&server->mutex);
    free(server->route_metrics);
    free(server->loops);
    free(server);
}

int server_in_flight(Server *server)
{
    return atomic_load(&server->in_flight);
}
