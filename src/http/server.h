/*
 * server.h - a small HTTP/1.1 server on epoll; knows no domain. docs/adr/0004-http.md says why it is our own.
 *
 * Network threads read requests. A route marked is_inline is run there, unless its body is large; any other request
 * goes to a bounded queue, and its connection is idle until an executor thread has run the handler. A token that the
 * cache does not know is looked up without a thread, before the body is read (token.h). A handler that would have to
 * wait suspends its request (suspend.h), so thousands of them need no thread each. TLS and HTTP/2 belong to the proxy
 * in front.
 *
 * Invariants
 *   1. Nothing is unbounded: connections, header bytes, body bytes, the queue, the time to send a request, the time to
 *      process it, the time in which a client reads some of the response. Over a limit: 413, 431, 408, or 503 with
 * Retry-After, always as problem+json.
 *   2. A request is owned by one side at a time: network thread, queue, executor, the party that will resume it,
 * network thread.
 *   3. Before a handler runs: the route exists (404, 405 with Allow), the token has the scope (401, 403), the body fits
 *      (413) and is JSON by its content type, or has none, or that of a form, which clients put in by themselves (415).
 * All of it before the body is read: an unauthenticated client makes the server hold no more than the connection's
 * buffer.
 *      Large bodies (more than 64 KiB) have at most bodies_bytes_max in all, from their heads on, or as they grow if
 * they are chunked, until their responses were sent. One key leaves a quarter of it to others: further ones become 503,
 * and their connections are closed.
 *      Large responses (64 KiB) that are being sent have at most unsent_bytes_max in all, and one key leaves a quarter
 * of it to others: further ones become 503. Excepted is what says what a request has done, unless on_sent undoes it.
 *   4. When connections_max are open, a new one replaces the oldest unauthenticated one (no token was accepted on it)
 * that has sent no whole request head. Only if there is none it gets 503. A connection counts for the key that it used
 * last; one key leaves a quarter to others: a further connection gets 503.
 *   5. server_drain(): no new connections, requests in progress get their response with Connection: close, then all
 * connections are closed. Threads: server_new starts network_threads + executor_threads. Ownership: server_free() joins
 * them.
 */
#ifndef HTTP_SERVER_H
#define HTTP_SERVER_H

#include "base/clock.h"
#include "base/error.h"
#include "http/route.h"
#include "http/token.h"

typedef struct Server Server;

/* Zero means the default in the comment. */
typedef struct {
    int bound_fd; /* 0: none; else from server_bind(), and listen is not read */
    const char
        *listen; /* "127.0.0.1:8080", "[::1]:8080", "localhost:8080"; ":8080" on all addresses; port 0: a free one */
    RouteTable        routes; /* borrowed until server_free() */
    void             *app;    /* given to handlers */
    ServerAuth       *auth;   /* NULL, and so auth_submit: no token is good */
    ServerAuthSubmit *auth_submit;
    RouteHandler     *bound; /* runs requests of tokens that are bound in place of their handlers (TokenCheck.bound) */
    int               network_threads;  /* 2 */
    int               executor_threads; /* 8 */
    int               reader_threads;   /* of these for GET: half of them, or fewer */
    int               queue_max;        /* 1024 requests waiting for an executor */
    int               connections_max;  /* 4096 */
    int               body_bytes_max;   /* 8 MiB */
    int               header_bytes_max; /* 16 KiB, with the request line */
    int               unsent_bytes_max; /* 256 MiB of large responses that are being sent */
    int               bodies_bytes_max; /* 256 MiB of large bodies; at least four times body_bytes_max */
    int read_ms_max; /* 10 s for a request to arrive, for an idle connection, for taking 4 KiB/s of a response */
    int deadline_ms; /* 10 s for the response */
} ServerOptions;

/* Split "host:port" or "[host]:port" of an address to listen on. ret_host has SERVER_HOST_SIZE bytes; "": all
 * addresses. Whether the host exists is known when it is bound. ERR_USAGE: it is none. */
#define SERVER_HOST_SIZE 256
must_check ErrorCode server_address(const char *listen, char *ret_host, const char **ret_port, Error *reterr);
/* Reserve an address, before anything else is started. Connections are refused until server_new(), which takes the
 * socket over. Errors as there. */
must_check ErrorCode server_bind(const char *listen, int *ret_fd, Error *reterr);
/* ERR_USAGE: listen is malformed or no address of this machine. ERR_CONFLICT: the address is in use. */
must_check ErrorCode server_new(const ServerOptions *options, Server **ret_server, Error *reterr);
int                  server_port(const Server *server);
/* Stop accepting; wait until every request in progress has got its response or the deadline passes. false: some were
 * not. */
bool server_drain(Server *server, Deadline deadline);
/* Waits for running handlers and for suspended requests, which their deadlines bound; requests still in the queue are
 * dropped. */
void server_free(Server *server);
SCOPED(Server, server_free)
int server_in_flight(Server *server); /* requests with executors, and their responses being sent */

#endif
